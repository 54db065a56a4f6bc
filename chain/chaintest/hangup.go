package chaintest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

type servedKey struct{}

// HangsUp serves a handler, but answers one request on each connection: the second one finds it closed, as it does when
// a node closes a connection that is kept alive just when a question goes out on it. The count is of the requests that
// were lost that way.
func HangsUp(t testing.TB, h http.Handler) (address string, lost *atomic.Int64) {
	t.Helper()
	lost = &atomic.Int64{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if served, ok := r.Context().Value(servedKey{}).(*atomic.Bool); ok && served.Swap(true) {
			_, _ = io.Copy(io.Discard, r.Body) // it did arrive
			lost.Add(1)
			panic(http.ErrAbortHandler) // closes the connection without an answer
		}
		h.ServeHTTP(w, r)
	}))
	server.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, servedKey{}, &atomic.Bool{})
	}
	server.Start()
	t.Cleanup(server.Close)
	return server.URL, lost
}
