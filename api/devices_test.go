package api

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store"
)

// TestStrangersShareNoKnownDevice plays a stranger behind the owner's carrier, whose address and client look like the owner's. Its
// guesses delay nobody with a device token, and the owner's logins buy it no new ones.
func TestStrangersShareNoKnownDevice(t *testing.T) {
	e := start(t, func(d *Deps) {
		d.Config.Guesses.Address = store.Delays{Free: 20, Base: time.Hour, Most: time.Hour, Memory: time.Hour}
	})
	p := e.person(exchange.RoleCustomer)
	nat, app := from("198.51.100.7"), header("User-Agent", "app/1")
	login := func(password, device string, options ...option) *reply {
		body := map[string]any{"email": p.Email, "password": password}
		if device != "" {
			body["device_token"] = device
		}
		return e.do(post, "/api/v1/users/login", body, append(options, nat)...)
	}
	device := login(testPassword, "", app).want(http.StatusOK).text("device_token")
	for range 4 {
		login("guess", "", app).refused(exchange.CodeInvalidCredentials)
	}
	login(testPassword, "", app).want(http.StatusOK) // an old client of the owner's
	login(testPassword, device, app).want(http.StatusOK)
	login("guess", "", app).refused(exchange.CodeInvalidCredentials)
	login("guess", "", app).refused(exchange.CodeRateLimited)
	login(testPassword, device, app).want(http.StatusOK)

	// What only looks like the owner's device counts against its address, and waits with it.
	for i := range 15 {
		e.do(post, "/api/v1/users/login", map[string]any{"email": fmt.Sprintf("ghost%d@example.com", i), "password": "guess"}, nat).
			refused(exchange.CodeInvalidCredentials)
	}
	other := e.login(e.person(exchange.RoleCustomer)).text("device_token")
	login(testPassword, other, app).refused(exchange.CodeRateLimited)
	login(testPassword, device, app).want(http.StatusOK)
}
