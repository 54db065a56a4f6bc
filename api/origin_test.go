package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// A proxy may put the client's address on its own header line below a forged line of the client.
func TestClaimedAddressLosesAgainstTheProxysLine(t *testing.T) {
	e := start(t, func(d *Deps) { d.Config.Rates.Login = Rate{Max: 2, Per: time.Hour} })
	guess := func(claim string) *reply {
		return e.do(post, "/api/v1/users/login", map[string]any{"email": "a@example.com", "password": "x"}, func(r *http.Request) {
			r.Header["X-Forwarded-For"] = []string{claim, "203.0.113.9"}
		})
	}
	guess("198.51.100.1").refused(exchange.CodeInvalidCredentials)
	guess("198.51.100.2").refused(exchange.CodeInvalidCredentials)
	guess("198.51.100.3").refused(exchange.CodeRateLimited)
}

// A client with one IPv6 address can use the whole site.
func TestSiteOfIPv6CountsAsOneAddress(t *testing.T) {
	e := start(t, func(d *Deps) { d.Config.Rates.Login = Rate{Max: 2, Per: time.Hour} })
	guess := func(address string) *reply {
		return e.do(post, "/api/v1/users/login", map[string]any{"email": "a@example.com", "password": "x"}, from(address))
	}
	guess("2001:db8:1:2::1").refused(exchange.CodeInvalidCredentials)
	guess("2001:db8:1:2:ffff::2").refused(exchange.CodeInvalidCredentials)
	guess("2001:db8:1:2::3").refused(exchange.CodeRateLimited)
	guess("2001:db8:1:3::1").refused(exchange.CodeInvalidCredentials)

	e = start(t, func(d *Deps) {
		d.Config.Guesses.Address = store.Delays{Free: 1, Base: time.Hour, Most: time.Hour, Memory: time.Hour}
	})
	pin := func(address, email string) *reply {
		return e.do(post, "/api/v1/users/login-pin", map[string]any{"email": email, "pin": "8364"}, from(address))
	}
	pin("2001:db8:9:9::1", "b@example.com").refused(exchange.CodeInvalidCredentials)
	pin("2001:db8:9:9::2", "c@example.com").refused(exchange.CodePINLocked)
}

func TestNoiseIsKeptInPart(t *testing.T) {
	e := start(t)
	e.accepted(e.do(post, callbackPath(strings.Repeat("d", 32)), strings.Repeat("x", callbackBody)))
	var size int
	row := storetest.Owner(t, e.store).QueryRowContext(t.Context(), "SELECT octet_length(body) FROM momo_callbacks")
	if err := row.Scan(&size); err != nil || size != unknownBody {
		t.Errorf("%d bytes of a stranger's notice are stored, %v", size, err)
	}
}

// A handler that used up the request's time must not leave a claim that blocks the retry.
func TestClaimIsSettledWhenTheTimeIsUp(t *testing.T) {
	e := start(t)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for status, want := range map[int]store.IdempotencyState{
		http.StatusServiceUnavailable: store.IdempotencyNew, http.StatusCreated: store.IdempotencyReplay,
	} {
		key := strconv.Itoa(status)
		if _, err := e.store.IdempotencyBegin(t.Context(), "scope", key, [32]byte{}); err != nil {
			t.Fatal(err)
		}
		app := fiber.New()
		app.Get("/", func(fc *fiber.Ctx) error {
			fc.Status(status)
			e.server.keep(&call{fc: fc, ctx: over}, "scope", key, false)
			return nil
		})
		answer, err := app.Test(httptest.NewRequestWithContext(t.Context(), get, "/", nil), -1)
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if again, err := e.store.IdempotencyBegin(t.Context(), "scope", key, [32]byte{}); err != nil || again.State != want {
			t.Errorf("after %d the key is %s, want %s, %v", status, again.State, want, err)
		}
	}
}
