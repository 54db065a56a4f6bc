package pg

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net"
	"time"

	"github.com/lib/pq"

	"kivuko/exchange"
)

// The limits of waiting for a server that does not answer. One that vanished, without closing its connections, would else hold a
// statement for as long as the kernel repeats packets: a quarter of an hour and more.
const (
	connectTimeout = 10 * time.Second
	// hostTimeout is how long sent data may stay unacknowledged, and a connection without an answer to probes.
	hostTimeout = 20 * time.Second
	probeIdle   = 15 * time.Second // without traffic until the first probe
	probeEvery  = 5 * time.Second
	probes      = 3
)

// dialer connects to PostgreSQL so that a host that vanished is noticed.
type dialer struct{ net.Dialer }

func newDialer() *dialer {
	return &dialer{net.Dialer{
		Timeout: connectTimeout, Control: limitSilence,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: probeIdle, Interval: probeEvery, Count: probes},
	}}
}

// DialTimeout implements pq.Dialer.
func (d *dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return d.DialContext(ctx, network, address)
}

// Connect returns a pool of connections of a Connector. It connects at the first use.
func Connect(dsn string) (*sql.DB, error) {
	c, err := Connector(dsn)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

// Connector makes connections on which a host that vanished is noticed within half a minute.
func Connector(dsn string) (driver.Connector, error) {
	c, err := pq.NewConnector(dsn)
	if err != nil {
		return nil, exchange.Wrap(exchange.CodeInternal, err, "The database URL can't be read.")
	}
	c.Dialer(newDialer())
	return c, nil
}
