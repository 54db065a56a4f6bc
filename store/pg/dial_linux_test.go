package pg

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// The driver waits for a host that vanished no longer than we say: the kernel ends such a connection.
func TestVanishedHostIsNoticed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	c, err := newDialer().DialTimeout("tcp", l.Addr().String(), connectTimeout)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		t.Fatalf("the connection is a %T", c)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	option := func(level, name int) (n int) {
		if cerr := raw.Control(func(fd uintptr) { n, err = unix.GetsockoptInt(int(fd), level, name) }); cerr != nil || err != nil {
			t.Fatal(cerr, err)
		}
		return n
	}
	for name, c := range map[string]struct{ got, want int }{
		"unacknowledged data": {option(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT), int(hostTimeout.Milliseconds())},
		"probes":              {option(unix.SOL_SOCKET, unix.SO_KEEPALIVE), 1},
		"first probe":         {option(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE), int(probeIdle.Seconds())},
		"further probes":      {option(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL), int(probeEvery.Seconds())},
		"how many":            {option(unix.IPPROTO_TCP, unix.TCP_KEEPCNT), probes},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", name, c.got, c.want)
		}
	}
}
