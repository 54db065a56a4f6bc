package momo

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

// refreshEarly is how long before its end a token is no longer used, so that it can't run out on
// the way. A token that lives shorter than twice this is used for half its life.
const refreshEarly = time.Minute

// tokenTimeout bounds a token request, which serves several callers and so obeys none of theirs.
const tokenTimeout = 30 * time.Second

// tokenSource holds the access token of the application. Issuing a token invalidates the one before
// it (portal, FAQ), so only one request for a token is ever under way.
type tokenSource struct {
	clock func() time.Time
	fetch func(context.Context) (token string, life time.Duration, err error)

	mu      sync.Mutex
	token   string
	renewAt time.Time
	flight  *tokenFlight
}

// tokenFlight is a token request that is under way; token and err may be read once done is closed.
type tokenFlight struct {
	done  chan struct{}
	token string
	err   error
}

func newTokenSource(clock func() time.Time, fetch func(context.Context) (string, time.Duration, error)) *tokenSource {
	return &tokenSource{clock: clock, fetch: fetch}
}

// get gives the current token, waiting for a request that is under way or starting one.
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

// fly performs one token request for everybody who waits.
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

// drop forgets a token that the gateway turned down, unless it has been replaced already.
func (s *tokenSource) drop(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token == token {
		s.token = ""
	}
}

// current is the token that texts must not show.
func (s *tokenSource) current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.token
}

// tokenError is a token request that failed. Nothing else has been sent then.
type tokenError struct {
	config bool // the credentials were turned down
	err    error
}

func (e *tokenError) Error() string { return "access token: " + e.err.Error() }
func (e *tokenError) Unwrap() error { return e.err }

// fetchToken asks for a token with the application's credentials (client_credentials grant).
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
		// A bad key is answered with status 400 and an empty body, or with 400.008.01 or .02.
		turnedDown := r.status == http.StatusBadRequest || r.status == http.StatusUnauthorized
		return "", 0, &tokenError{config: turnedDown, err: fmt.Errorf("status %d, code %q", r.status, r.envelope().ErrorCode)}
	}
	seconds, err := strconv.Atoi(answer.ExpiresIn.text())
	if err != nil || seconds <= 0 {
		return "", 0, &tokenError{err: errors.New("expires_in is no number of seconds")}
	}
	return answer.AccessToken.text(), time.Duration(seconds) * time.Second, nil
}
