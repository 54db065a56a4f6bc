package endpoints

import (
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"time"

	"kivuko/chain"
)

// Endpoint is the address of a node that is reached over HTTP or WebSocket. Providers put keys into paths and queries, so only
// scheme and host are ever shown.
type Endpoint struct {
	URL string
}

// Check reports whether the address is one of the schemes.
func (e Endpoint) Check(schemes ...string) bool {
	u, err := url.Parse(e.URL)
	return err == nil && u.Host != "" && slices.Contains(schemes, u.Scheme)
}

// String is scheme and host.
func (e Endpoint) String() string {
	u, err := url.Parse(e.URL)
	if err != nil {
		return "(unreadable address)"
	}
	return u.Scheme + "://" + u.Host
}

// Format is scheme and host, for every verb.
func (e Endpoint) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.String()) }

// LogValue is scheme and host.
func (e Endpoint) LogValue() slog.Value { return slog.StringValue(e.String()) }

// MarshalText is scheme and host.
func (e Endpoint) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// Fresh refuses a node whose newest block is too old (or from the future): its balances and fees would be wrong.
func Fresh(newest chain.Block, now time.Time, most time.Duration) error {
	age := now.Sub(newest.Time)
	if age.Abs() > most {
		return chain.Errorf(chain.ReasonUnavailable, "the node is behind: its newest block %d is %s old, at most %s is accepted",
			newest.Number, age.Round(time.Second), most)
	}
	return nil
}
