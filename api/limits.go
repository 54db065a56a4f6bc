package api

import (
	"sync"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/limiter"
	"github.com/google/uuid"

	"kivuko/exchange"
)

// limitClass names a rate limit. Every route has one; all but limitNone also count for the general limit.
type limitClass string

const (
	limitGeneral     limitClass = "general"
	limitLogin       limitClass = "login"
	limitRefresh     limitClass = "refresh"
	limitSearch      limitClass = "search"
	limitOrderCreate limitClass = "order_create"
	limitUpload      limitClass = "upload"
	limitNone        limitClass = "none" // probes, and callbacks, which must not be rejected
)

func (s *server) limiters() map[limitClass]fiber.Handler {
	r := s.Config.Rates
	all := map[limitClass]fiber.Handler{}
	for class, rate := range map[limitClass]Rate{
		limitGeneral: r.General, limitLogin: r.Login, limitRefresh: r.Refresh, limitSearch: r.Search, limitOrderCreate: r.OrderCreate, limitUpload: r.Upload,
	} {
		if rate.Max > 0 {
			all[class] = limiter.New(limiter.Config{
				Max: rate.Max, Expiration: rate.Per, KeyGenerator: callerKey,
				LimitReached: func(*fiber.Ctx) error {
					return exchange.Errorf(exchange.CodeRateLimited, "Too many requests. Try again after the time in Retry-After.")
				},
			})
		}
	}
	return all
}

// callerKey is the key of a limit's counter: the user, or the address of an unauthenticated caller.
func callerKey(fc *fiber.Ctx) string {
	c := callOf(fc)
	if c.who.UserID != uuid.Nil {
		return c.who.UserID.String()
	}
	return c.who.Origin()
}

// window counts events in fixed windows of time.
type window struct {
	mu   sync.Mutex
	rate Rate
	now  func() time.Time
	end  time.Time
	n    int
}

func newWindow(r Rate, now func() time.Time) *window { return &window{rate: r, now: now} }

// allow counts one event and reports whether it is within the rate.
func (w *window) allow() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.now(); !t.Before(w.end) {
		w.end, w.n = t.Add(w.rate.Per), 0
	}
	w.n++
	return w.rate.Max < 0 || w.n <= w.rate.Max
}
