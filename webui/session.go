package webui

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

const (
	cookieName  = "kivuko_web_ui"
	maxSessions = 1000
	// A session ends when nobody used it for so long.
	idle = 30 * time.Minute
	// An access token is replaced when it has less than this left.
	least = 30 * time.Second
)

// digest is that of a cookie's value: what is in memory opens nothing.
type digest [sha256.Size]byte

// session is one login of a member of staff. The mutex lets one request at a time replace the tokens, because a refresh token works
// only once.
type session struct {
	key    digest
	mu     sync.Mutex
	tokens tokens
	used   time.Time // guarded by sessions.mu
}

type tokens struct {
	Access       string    `json:"access_token"`
	Refresh      string    `json:"refresh_token"`
	AccessUntil  time.Time `json:"access_token_expires_at"`
	RefreshUntil time.Time `json:"refresh_token_expires_at"`
}

// token returns an access token that is still valid.
func (s *session) token(ctx context.Context, api apiClient, now time.Time) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.tokens.AccessUntil.Add(-least)) {
		return s.tokens.Access, nil
	}
	fresh, err := api.refresh(ctx, s.tokens.Refresh)
	if err != nil {
		return "", err
	}
	s.tokens = fresh
	return fresh.Access, nil
}

type sessions struct {
	mu  sync.Mutex
	all map[digest]*session
	now func() time.Time
}

// add keeps a session and returns the value of its cookie.
func (s *sessions) add(t tokens) (string, error) {
	value := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, old := range s.all {
		if s.over(old) {
			delete(s.all, key)
		}
	}
	if len(s.all) >= maxSessions {
		return "", errors.New("too many sessions of the Web UI")
	}
	key := digest(sha256.Sum256([]byte(value)))
	s.all[key] = &session{key: key, tokens: t, used: s.now()}
	return value, nil
}

// of is the session of a request, or nil.
func (s *sessions) of(r *http.Request) *session {
	c, err := r.Cookie(cookieName)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.all[digest(sha256.Sum256([]byte(c.Value)))]
	if found == nil || s.over(found) {
		return nil
	}
	found.used = s.now()
	return found
}

func (s *sessions) over(x *session) bool { return s.now().Sub(x.used) > idle }

func (s *sessions) end(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, x.key)
}

// dropCookie takes our cookie out of a request: the Web UI's server has no use for it.
func dropCookie(r *http.Request) {
	all := r.Cookies()
	r.Header.Del("Cookie")
	for _, c := range all {
		if c.Name != cookieName {
			r.AddCookie(c)
		}
	}
}

// apiClient asks Kivuko's API.
type apiClient struct {
	base *url.URL
	http *http.Client
}

const (
	apiTimeout = 15 * time.Second
	maxAnswer  = 64 << 10
)

func newAPIClient(base *url.URL) apiClient {
	return apiClient{base: base, http: &http.Client{
		Timeout:       apiTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// refused is an answer of the API that no repetition changes.
type refused int

func (r refused) Error() string { return fmt.Sprintf("the API answered %d", int(r)) }

func (a apiClient) logIn(ctx context.Context, email, password, from string) (tokens, error) {
	return a.post(ctx, "/api/v1/users/login", map[string]string{"email": email, "password": password}, from)
}

func (a apiClient) refresh(ctx context.Context, token string) (tokens, error) {
	return a.post(ctx, "/api/v1/auth/refresh", map[string]string{"refresh_token": token}, "")
}

// post sends an object and reads the tokens of the answer. The address of the person is passed on, because the API counts wrong
// passwords by address.
func (a apiClient) post(ctx context.Context, path string, body any, from string) (tokens, error) {
	var t tokens
	b, err := json.Marshal(body)
	if err != nil {
		return t, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base.JoinPath(path).String(), bytes.NewReader(b))
	if err != nil {
		return t, err
	}
	req.Header.Set("Content-Type", "application/json")
	if from != "" {
		req.Header.Set("X-Forwarded-For", from)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return t, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return t, refused(resp.StatusCode)
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&t); err != nil {
		return t, fmt.Errorf("the API's answer to a login: %w", err)
	}
	return t, nil
}

// logOut ends a session at the API; the error only says that it lives on until it expires.
func (a apiClient) logOut(ctx context.Context, token string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base.JoinPath("/api/v1/auth/logout").String(), http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := a.http.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close() // nothing of it is read
	if resp.StatusCode != http.StatusNoContent {
		return refused(resp.StatusCode)
	}
	return nil
}
