package daraja

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// refreshEarly is how long before its expiry a token is no longer used, so that it can't expire in transit. A token that
// lives shorter than twice this is used for half its life.
const refreshEarly = time.Minute

// tokenTimeout bounds a token request. Several callers share the request, so it has a deadline of its own.
const tokenTimeout = 30 * time.Second

// tokenSource holds the application's access token. Issuing a token invalidates the previous one (portal, FAQ), so at most
// one token request runs at a time.
type tokenSource struct {
	clock func() time.Time
	fetch func(context.Context) (token string, life time.Duration, err error)

	mu      sync.Mutex
	token   string
	renewAt time.Time
	flight  *tokenFlight
}

// tokenFlight is a running token request; read token and err only after done is closed.
type tokenFlight struct {
	done  chan struct{}
	token string
	err   error
}

func newTokenSource(clock func() time.Time, fetch func(context.Context) (string, time.Duration, error)) *tokenSource {
	return &tokenSource{clock: clock, fetch: fetch}
}

// get returns the current token. It waits for a running request or starts one.
func (s *tokenSource) get(ctx context.Context) (string, error) {
	s.mu.Lock()
	if s.token != "" && s.clock().Before(s.renewAt) {
		defer s.mu.Unlock()
		return s.token, nil
	}
	flight := s.flight
	if flight == nil {
		flight = &tokenFlight{done: make(chan struct{})}
		s.flight = flight
		go s.fly(context.WithoutCancel(ctx), flight)
	}
	s.mu.Unlock()
	select {
	case <-flight.done:
		return flight.token, flight.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// fly performs one token request for all waiting callers.
func (s *tokenSource) fly(ctx context.Context, flight *tokenFlight) {
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	asked := s.clock()
	token, life, err := s.fetch(ctx)
	flight.token, flight.err = token, err
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flight = nil
	if err == nil {
		s.token, s.renewAt = token, asked.Add(life-min(refreshEarly, life/2))
	}
	close(flight.done)
}

// drop forgets a token that the gateway refused, unless it has already been replaced.
func (s *tokenSource) drop(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == token {
		s.token = ""
	}
}

// current is the token, for redaction.
func (s *tokenSource) current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

// tokenError is a failed token request. Nothing else was sent.
type tokenError struct {
	config bool // the credentials were refused
	err    error
}

func (e *tokenError) Error() string { return "access token: " + e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err }

// fetchToken requests a token with the application's credentials (client_credentials grant).
func (c *Client) fetchToken(ctx context.Context) (string, time.Duration, error) {
	address := c.base.String() + string(endpointToken) + "?grant_type=client_credentials"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", 0, &tokenError{config: true, err: errors.New("its address can't be built")}
	}
	basic := base64.StdEncoding.EncodeToString([]byte(c.cfg.ConsumerKey + ":" + c.cfg.ConsumerSecret))
	req.Header.Set("Authorization", "Basic "+basic)
	r, err := c.do(req)
	if err != nil {
		return "", 0, &tokenError{err: err}
	}
	var answer struct {
		AccessToken flexString `json:"access_token"`
		ExpiresIn   flexString `json:"expires_in"`
	}
	if decode(r.body, &answer) != nil || answer.AccessToken == "" {
		// A bad key gets status 400 with an empty body, or 400.008.01 or .02.
		turnedDown := r.status == http.StatusBadRequest || r.status == http.StatusUnauthorized
		return "", 0, &tokenError{config: turnedDown, err: fmt.Errorf("status %d, code %q", r.status, r.envelope().ErrorCode)}
	}
	seconds, err := strconv.Atoi(answer.ExpiresIn.text())
	if err != nil || seconds <= 0 {
		return "", 0, &tokenError{err: errors.New("expires_in is not a number of seconds")}
	}
	return answer.AccessToken.text(), time.Duration(seconds) * time.Second, nil
}
