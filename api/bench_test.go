package api

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

const (
	benchClients = 8
	benchStretch = 300 * time.Millisecond
)

// BenchmarkGetOrder compares reading one order through the whole API (token, session, policy, view,
// encoding, log line, metrics) with the store's read of the same order behind a bare Fiber. Both serve
// the same number of keep-alive clients in alternating periods of one run, so that the ratio is meaningful
// on a busy machine. The goal is 0.8.
func BenchmarkGetOrder(b *testing.B) {
	var m market
	var floor string
	// The harness needs a *testing.T for its fixtures; the benchmark borrows one with the same lifetime.
	done, ready := make(chan struct{}), make(chan struct{})
	var finished sync.WaitGroup
	finished.Go(func() {
		testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "fixtures", F: func(t *testing.T) {
			m = openMarket(t, func(d *Deps) { d.Logger = slog.New(slog.NewJSONHandler(io.Discard, nil)) }) //nolint:sloglint // formatting the line is part of the work
			floor = m.bareFiber(t, m.order(m.customer, m.offer.ID).ID)
			close(ready)
			<-done
		}}})
	})
	<-ready
	order := m.order(m.customer, m.offer.ID)
	ours := m.base + ordersPath + "/" + order.ID.String()
	var oursN, floorN int
	hammer(b, floor, "")
	hammer(b, ours, m.customer.token)
	b.ResetTimer()
	for range b.N {
		floorN += hammer(b, floor, "")
		oursN += hammer(b, ours, m.customer.token)
	}
	b.StopTimer()
	seconds := float64(b.N) * benchStretch.Seconds()
	b.ReportMetric(float64(oursN)/seconds, "api-req/s")
	b.ReportMetric(float64(floorN)/seconds, "bare-req/s")
	b.ReportMetric(float64(oursN)/float64(floorN), "ratio")
	close(done)
	finished.Wait()
}

// bareFiber serves the order with only the store's prepared read and its encoding: no token, no checks, no log.
func (m market) bareFiber(t *testing.T, id uuid.UUID) string {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Get("/order", func(fc *fiber.Ctx) error {
		o, err := m.store.Order(context.Background(), store.Everything(), id)
		if err != nil {
			return err
		}
		return fc.JSON(orderWire(o, exchange.Principal{}))
	})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = app.Listener(listener) }()
	t.Cleanup(func() { _ = app.Shutdown() })
	return "http://" + listener.Addr().String() + "/order"
}

// hammer requests one address from several clients for a period and counts the responses.
func hammer(b *testing.B, url, token string) int {
	b.Helper()
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: benchClients}}
	defer client.CloseIdleConnections()
	var mu sync.Mutex
	var wait sync.WaitGroup
	total, end := 0, time.Now().Add(benchStretch)
	for range benchClients {
		wait.Go(func() {
			n := 0
			for time.Now().Before(end) {
				r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url, nil)
				if err != nil {
					b.Error(err)
					return
				}
				if token != "" {
					r.Header.Set("Authorization", "Bearer "+token)
				}
				answer, err := client.Do(r)
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
				if answer.StatusCode != http.StatusOK {
					b.Errorf("status %d", answer.StatusCode)
					return
				}
				n++
			}
			mu.Lock()
			total += n
			mu.Unlock()
		})
	}
	wait.Wait()
	return total
}
