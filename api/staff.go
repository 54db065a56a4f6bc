package api

import (
	"net/http"
	"strings"
	"time"

	"kivuko/exchange"
	"kivuko/store"
)

// StaffOnly guards an endpoint outside the API, such as the one that decrypts payloads for Temporal's Web UI. It
// accepts requests with the access token of an active member of staff, whose session a passkey has proven.
func StaffOnly(c Config, st *store.Store) (func(*http.Request) error, error) {
	c.setDefaults()
	ring, err := newKeyring(c.Issuer, c.TokenKeys)
	if err != nil {
		return nil, err
	}
	return func(r *http.Request) error {
		text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !ok {
			return exchange.Errorf(exchange.CodeUnauthenticated, "An access token is required.")
		}
		claims, err := ring.open(text, time.Now())
		if err != nil {
			return err
		}
		state, err := st.AuthState(r.Context(), claims.UserID, claims.SessionID)
		if err != nil {
			return err
		}
		if !state.SessionLive || !state.User.IsActive || state.AuthVersion != claims.AuthVersion {
			return exchange.Errorf(exchange.CodeUnauthenticated, "The session has ended.")
		}
		if !state.User.Role.Staff() {
			return exchange.Errorf(exchange.CodeForbidden, "Only staff may read payloads.")
		}
		if !state.Assurance.Reaches(exchange.AssurancePasskey) {
			return exchange.Errorf(exchange.CodeStepUpRequired, "Payloads are read in a session that a passkey has proven.")
		}
		return nil
	}, nil
}

// DefaultRates returns the rate limits of an API that has none configured.
func DefaultRates() Rates {
	var c Config
	c.setDefaults()
	return c.Rates
}
