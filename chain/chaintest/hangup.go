package chaintest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
)

type servedKey struct{}

// HangsUp serves a handler, but responds to one request on each connection. The second request finds the connection closed,
// as when a node closes a kept-alive connection just as a request is sent on it. lost counts the requests that were lost in
// this way.
func HangsUp(t testing.TB, h http.Handler) (address string, lost *atomic.Int64) {
	t.Helper()
	lost = &atomic.Int64{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if served, ok := r.Context().Value(servedKey{}).(*atomic.Bool); ok && served.Swap(true) {
			_, _ = io.Copy(io.Discard, r.Body) // the request did arrive
			lost.Add(1)
			panic(http.ErrAbortHandler) // closes the connection without a response
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

// OnKeptConnection repeats do until the first request of its context went out on a connection that was used before.
// net/http gives up a connection whose writer a loaded machine delayed, and then no request meets a closed one.
func OnKeptConnection(t testing.TB, do func(context.Context)) {
	t.Helper()
	const opened, kept = 1, 2
	for range 50 {
		var first atomic.Int32
		do(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
			if i.Reused {
				first.CompareAndSwap(0, kept)
			} else {
				first.CompareAndSwap(0, opened)
			}
		}}))
		if first.Load() == kept {
			return
		}
	}
	t.Fatal("no request went out on a connection that was used before")
}
