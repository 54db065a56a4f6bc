package api

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"kivuko/exchange"
)

// checkTimeout bounds the check of one dependency.
const checkTimeout = 3 * time.Second

// Without these the API can serve nothing; without one of the others it is degraded.
var vital = map[string]bool{"postgres": true, "schema": true, "temporal": true}

// breakerName is the name of the payout breaker in /readyz.
const breakerName = "momo-payouts"

type dependencyWire struct {
	Status string `json:"status"` // "up" or "down"
	Vital  bool   `json:"vital"`
	Millis int64  `json:"latency_ms"`
	State  string `json:"state,omitempty"` // of the breaker
}

// healthz answers as long as the process runs.
func (s *server) healthz(c *call) error {
	return c.json(http.StatusOK, map[string]string{"status": "ok"})
}

// breakerCheck returns a check that fails while payouts are suspended or on trial. The service is then degraded, because
// everything else works. The check stores the breaker's state before it returns.
func (s *server) breakerCheck(state *atomic.Value) func(context.Context) error {
	return func(ctx context.Context) error {
		b, err := s.Store.Breaker(ctx, s.Config.Operator)
		if err != nil {
			return err
		}
		state.Store(string(b.State()))
		if b.State() == exchange.BreakerMoved {
			return exchange.Errorf(exchange.CodeSuspended, "Nothing is requested of the mobile money operator: the database is another one than before.")
		}
		if b.State() != exchange.BreakerClosed {
			return exchange.Errorf(exchange.CodeSuspended, "The breaker of payouts is in state %s: the mobile money operator refused our credentials with %s.", b.State(), b.Code)
		}
		return nil
	}
}

// readyAge is how long a result of /readyz is reused. The page is public and its checks use nodes and the database, so
// callers must not be able to cause any number of checks.
const readyAge = time.Second

// readiness is the last result of /readyz. Its lock is held while the checks run: other requests wait for that
// result.
type readiness struct {
	mu     sync.Mutex
	at     time.Time
	status int
	body   readyWire
}

type readyWire struct {
	Status       string                    `json:"status"` // "ready", "degraded" or "unavailable"
	Dependencies map[string]dependencyWire `json:"dependencies"`
}

// readyz answers with the status of each dependency. The page is public, so the causes are only in the log.
func (s *server) readyz(c *call) error {
	r := &s.ready
	r.mu.Lock()
	defer r.mu.Unlock()
	if age := s.now().Sub(r.at); age < 0 || age >= readyAge {
		r.status, r.body = s.askDependencies(c.ctx)
		r.at = s.now()
	}
	return c.json(r.status, r.body)
}

// askDependencies runs all checks concurrently.
func (s *server) askDependencies(ctx context.Context) (int, readyWire) {
	var mu sync.Mutex
	code, body := http.StatusOK, readyWire{"ready", map[string]dependencyWire{}}
	var wait sync.WaitGroup
	checks := maps.Clone(s.Health)
	if checks == nil {
		checks = map[string]func(context.Context) error{}
	}
	var breaker atomic.Value
	checks[breakerName] = s.breakerCheck(&breaker)
	for name, check := range checks {
		wait.Go(func() {
			start := time.Now()
			err := bounded(ctx, check)
			state := dependencyWire{Status: "up", Vital: vital[name], Millis: time.Since(start).Milliseconds()}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				state.Status = "down"
				s.log.Warn("a dependency is down", "dependency", name, "error", err)
				if vital[name] {
					body.Status, code = "unavailable", http.StatusServiceUnavailable
				} else if code == http.StatusOK {
					body.Status = "degraded"
				}
			}
			body.Dependencies[name] = state
		})
	}
	wait.Wait()
	if state, ok := breaker.Load().(string); ok {
		d := body.Dependencies[breakerName]
		d.State = state
		body.Dependencies[breakerName] = d
	}
	return code, body
}

// bounded runs a check that may ignore its context.
func bounded(ctx context.Context, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- check(ctx) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// exposeMetrics serves Prometheus to those who may read it.
func (s *server) exposeMetrics(c *call) error {
	if len(s.Config.MetricsReaders) > 0 && !containsText(s.Config.MetricsReaders, c.who.IP) {
		return notFound()
	}
	s.metrics.measure(s.inbox.spool)
	all := append(prometheus.Gatherers{s.Metrics}, s.Gather...)
	return adaptor.HTTPHandler(promhttp.HandlerFor(all, promhttp.HandlerOpts{}))(c.fc)
}
