package devnode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	anyLoopback = "127.0.0.1:0"
	httpTimeout = 30 * time.Second
	// shutdownWait is how long open requests may take after Close.
	shutdownWait = 2 * time.Second
)

// Host is the serving side of a node: its ports and what runs behind them. It starts once and ends once.
type Host struct {
	log       *slog.Logger
	listeners map[string]net.Listener
	web       []*http.Server
	work      sync.WaitGroup

	mu      sync.Mutex
	started bool
	closed  bool
	stop    context.CancelFunc
}

// NewHost makes a host without ports.
func NewHost(log *slog.Logger) *Host {
	return &Host{log: log, listeners: map[string]net.Listener{}, stop: func() {}}
}

// Listen binds the port of a part of the node; an empty address is any port.
func (h *Host) Listen(part, addr string) error {
	if addr == "" {
		addr = anyLoopback
	}
	// Binding a loopback port does not block, so there is nothing for a context to end.
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen for %s: %w", part, err)
	}
	h.listeners[part] = l
	return nil
}

// Listener is the port of a part.
func (h *Host) Listener(part string) net.Listener { return h.listeners[part] }

// Addr is the bound host:port of a part.
func (h *Host) Addr(part string) string { return h.listeners[part].Addr().String() }

// Start lets serve start what the node is made of, with a context that ends with the given one or by Close.
// When serve fails, nothing may run yet, and the node may be started again.
func (h *Host) Start(ctx context.Context, serve func(context.Context) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.started || h.closed {
		return errors.New("a node starts once")
	}
	ctx, stop := context.WithCancel(ctx)
	if err := serve(ctx); err != nil {
		stop()
		return err
	}
	h.started, h.stop = true, stop
	return nil
}

// Go runs a part until Close waits for it. A failure is logged, unless it is one of the ends.
func (h *Host) Go(part string, f func() error, ends ...error) {
	h.work.Go(func() {
		err := f()
		for _, end := range ends {
			if errors.Is(err, end) {
				return
			}
		}
		if err != nil {
			h.log.Error("stopped", "part", part, "error", err)
		}
	})
}

// ServeHTTP serves HTTP on the port of a part.
func (h *Host) ServeHTTP(part string, handler http.Handler) {
	s := &http.Server{
		Handler: handler, ReadHeaderTimeout: httpTimeout, ReadTimeout: httpTimeout,
		ErrorLog: slog.NewLogLogger(h.log.Handler(), slog.LevelDebug), // an answer that is lost on purpose is no news
	}
	h.web = append(h.web, s)
	h.Go(part, func() error { return s.Serve(h.listeners[part]) }, http.ErrServerClosed)
}

// Close ends what Start began and releases the ports, once: it is false for every further call. The node
// ends by itself, in end, what HTTP's shutdown does not know; started reports whether anything was.
func (h *Host) Close(end func(started bool)) bool {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return false
	}
	h.closed = true
	started, stop := h.started, h.stop
	h.mu.Unlock()
	stop()
	end(started)
	ctx, cancel := context.WithTimeout(context.Background(), shutdownWait)
	defer cancel()
	for _, s := range h.web {
		if err := s.Shutdown(ctx); err != nil {
			h.log.Warn("requests were cut off", "error", err)
			_ = s.Close() // there is no gentler way left
		}
	}
	for _, l := range h.listeners {
		_ = l.Close() // already closed when it was served
	}
	h.work.Wait()
	return true
}
