package webhook

import (
	"context"
	"net"
	"net/http"
)

// WithResolved is a sender for which every name resolves to one address. Its connections pass the same guard.
func WithResolved(s *Sender, to string) *Sender {
	dialer := &net.Dialer{Control: s.policy.control}
	changed, client := *s, *s.client
	transport, _ := s.client.Transport.(*http.Transport)
	transport = transport.Clone()
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, to)
	}
	client.Transport = transport
	changed.client = &client
	return &changed
}
