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
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	cookieName  = "kivuko_web_ui"
	deviceName  = "kivuko_web_ui_device"
	maxSessions = 1000
	// A session ends when nobody used it for so long, as at the API.
	idle = 15 * time.Minute
	// The API learns so often that a person is at work.
	noteEvery = time.Minute
	// An access token is replaced when it has less than this left.
	least = 30 * time.Second
)

// digest is that of a cookie's value: what is in memory opens nothing.
type digest [sha256.Size]byte

// session is one login of a member of staff. The mutex lets one request at a time replace the tokens, because a refresh token works
// only once.
type session struct {
	key    digest // guarded by sessions.mu
	mu     sync.Mutex
	tokens tokens
	noted  time.Time // when the API was last asked for this session
	used   time.Time // guarded by sessions.mu
}

type tokens struct {
	Access       string    `json:"access_token"`
	Refresh      string    `json:"refresh_token"`
	AccessUntil  time.Time `json:"access_token_expires_at"`
	RefreshUntil time.Time `json:"refresh_token_expires_at"`
	Device       string    `json:"device_token"` // only of a login
}

// person is who stands behind a request: the addresses that it came through, the nearest last, and the browser. The API tells devices
// apart by both.
type person struct{ addresses, browser string }

func personOf(r *http.Request) person {
	hops := r.Header.Values("X-Forwarded-For")
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		hops = append(slices.Clone(hops), host)
	}
	return person{strings.Join(hops, ", "), r.UserAgent()}
}

// token returns an access token that is still valid. Reading flows asks the API nothing, so it is told now and then that somebody is
// at work; it would end the session as idle.
func (s *session) token(ctx context.Context, api apiClient, now time.Time) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !now.Before(s.tokens.AccessUntil.Add(-least)) {
		fresh, err := api.refresh(ctx, s.tokens.Refresh)
		if err != nil {
			return "", err
		}
		s.tokens = fresh
	}
	if now.Sub(s.noted) < noteEvery {
		return s.tokens.Access, nil
	}
	if err := api.note(ctx, s.tokens.Access); err != nil {
		return "", err
	}
	s.noted = now
	return s.tokens.Access, nil
}

type sessions struct {
	mu  sync.Mutex
	all map[digest]*session
	now func() time.Time
}

// add keeps a session that just began, and returns the value of its cookie.
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
	s.all[key] = &session{key: key, tokens: t, noted: s.now(), used: s.now()}
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

// renew gives a session another cookie: what was proven since then must not hold for who knew the old one.
func (s *sessions) renew(x *session) string {
	value := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, x.key)
	x.key = sha256.Sum256([]byte(value))
	s.all[x.key] = x
	return value
}

func (s *sessions) end(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, x.key)
}

// dropCookies takes our cookies out of a request: the Web UI's server has no use for them.
func dropCookies(r *http.Request) {
	all := r.Cookies()
	r.Header.Del("Cookie")
	for _, c := range all {
		if c.Name != cookieName && c.Name != deviceName {
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

// refused is an answer of the API that is no success.
type refused int

func (r refused) Error() string { return fmt.Sprintf("the API answered %d", int(r)) }

// final reports whether the API refused something, so that no repetition changes it.
func final(err error) bool {
	status, ok := errors.AsType[refused](err)
	return ok && status < http.StatusInternalServerError
}

// logIn logs a person in, on the device that an earlier login's token names; the token may be empty.
func (a apiClient) logIn(ctx context.Context, email, password, device string, from person) (tokens, error) {
	body := map[string]string{"email": email, "password": password}
	if device != "" {
		body["device_token"] = device
	}
	return a.tokens(ctx, "/api/v1/users/login", body, from)
}

func (a apiClient) refresh(ctx context.Context, token string) (tokens, error) {
	return a.tokens(ctx, "/api/v1/auth/refresh", map[string]string{"refresh_token": token}, person{})
}

// tokens sends an object and reads the tokens of the answer.
func (a apiClient) tokens(ctx context.Context, path string, body map[string]string, from person) (tokens, error) {
	var t tokens
	b, err := json.Marshal(body)
	if err != nil {
		return t, err
	}
	got, err := a.send(ctx, http.MethodPost, path, "", from, b)
	if err != nil {
		return t, err
	}
	if got.status != http.StatusOK {
		return t, refused(got.status)
	}
	if err := json.Unmarshal(got.body, &t); err != nil {
		return t, fmt.Errorf("the API's answer to a login: %w", err)
	}
	return t, nil
}

// logOut ends a session at the API; the error only says that it lives on until it expires.
func (a apiClient) logOut(ctx context.Context, token string) error {
	return a.want(ctx, http.StatusNoContent, http.MethodPost, "/api/v1/auth/logout", token)
}

// note has the API see that a session is in use.
func (a apiClient) note(ctx context.Context, token string) error {
	return a.want(ctx, http.StatusOK, http.MethodGet, "/api/v1/auth/user/me", token)
}

func (a apiClient) want(ctx context.Context, status int, method, path, token string) error {
	got, err := a.send(ctx, method, path, token, person{}, nil)
	if err == nil && got.status != status {
		return refused(got.status)
	}
	return err
}

// answer is one of the API's.
type answer struct {
	status int
	kind   string // the content type
	body   []byte
}

// send sends a request, with an access token and a body of JSON if there are any. Whose it is is passed on, because the API counts wrong
// passwords by address and device. It believes no address that a proxy it trusts did not add.
func (a apiClient) send(ctx context.Context, method, path, token string, from person, body []byte) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if from.addresses != "" {
		req.Header.Set("X-Forwarded-For", from.addresses)
	}
	if from.browser != "" {
		req.Header.Set("User-Agent", from.browser)
	}
	resp, err := a.http.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return answer{resp.StatusCode, resp.Header.Get("Content-Type"), got}, err
}
