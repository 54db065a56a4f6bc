package webui

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// place is a gate between a browser and servers that tell what reached them.
type place struct {
	t       *testing.T
	gate    *httptest.Server
	browser *http.Client
	now     atomic.Int64 // nanoseconds after the start

	mu        sync.Mutex
	reached   []string // what the Web UI's server was asked
	refreshed int
	froms     []string // the addresses that the API was told
	live      map[string]bool
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, live: map[string]bool{}}
	ui := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.reached = append(p.reached, r.Method+" "+r.URL.Path)
		p.mu.Unlock()
		if r.Header.Get("Authorization") != "" || strings.Contains(r.Header.Get("Cookie"), cookieName) {
			t.Error("the Web UI's server was given a session")
		}
		_, _ = io.WriteString(w, "flows")
	}))
	api := httptest.NewServer(http.HandlerFunc(p.api))
	t.Cleanup(ui.Close)
	t.Cleanup(api.Close)
	gate := &handler{}
	p.gate = httptest.NewServer(gate)
	t.Cleanup(p.gate.Close)
	g, err := New(Config{
		Origin: p.gate.URL, UI: address(t, ui.URL), API: address(t, api.URL),
		Codec: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "plain "+r.URL.Path) }),
		Staff: p.staff,
		Now:   func() time.Time { return time.Unix(0, 0).Add(time.Duration(p.now.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	gate.h = g
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p.browser = &http.Client{Jar: jar}
	return p
}

// handler is set after its server got an address.
type handler struct{ h http.Handler }

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.h.ServeHTTP(w, r) }

func address(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// api logs in whoever has the password, for a quarter of an hour; a refresh token works once.
func (p *place) api(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Email, Password string
		Refresh         string `json:"refresh_token"`
	}
	_ = json.NewDecoder(r.Body).Decode(&in) // logout has no body
	p.mu.Lock()
	defer p.mu.Unlock()
	who, _, _ := strings.Cut(in.Email, "@")
	switch r.URL.Path {
	case "/api/v1/users/login":
		p.froms = append(p.froms, r.Header.Get("X-Forwarded-For"))
		if in.Password != "right" {
			http.Error(w, "{}", http.StatusUnauthorized)
			return
		}
	case "/api/v1/auth/refresh":
		if !p.live[in.Refresh] {
			http.Error(w, "{}", http.StatusUnauthorized)
			return
		}
		delete(p.live, in.Refresh)
		who, _, _ = strings.Cut(in.Refresh, "-")
		p.refreshed++
	case "/api/v1/auth/logout":
		p.live = map[string]bool{}
		w.WriteHeader(http.StatusNoContent)
		return
	}
	refresh := fmt.Sprintf("%s-refresh-%d", who, p.refreshed)
	p.live[refresh] = true
	until := time.Unix(0, 0).Add(time.Duration(p.now.Load()) + 15*time.Minute)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"access_token": fmt.Sprintf("%s-access-%d", who, p.refreshed), "refresh_token": refresh,
		"access_token_expires_at": until.Format("2006-01-02T15:04:05.000Z07:00"), "refresh_token_expires_at": until.Format(time.RFC3339),
	})
}

func (p *place) staff(r *http.Request) error {
	if strings.HasPrefix(r.Header.Get("Authorization"), "Bearer officer-access-") {
		return nil
	}
	return errors.New("not staff")
}

// send sends a request as the page of an origin does.
func (p *place) send(method, path, origin string, form url.Values) (int, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.gate.URL+path, strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	if origin != "" {
		req.Header.Set("Origin", origin)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := p.browser.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func (p *place) logIn(who, password string) (int, string) {
	p.t.Helper()
	return p.send(http.MethodPost, loginPath, p.gate.URL, url.Values{"email": {who + "@kivuko.example"}, "password": {password}})
}

func (p *place) untouched(what string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.reached) > 0 {
		p.t.Errorf("%s reached the Web UI's server: %v", what, p.reached)
	}
}

// Whoever reached the Web UI could read every flow and send it signals, without a login. Now nothing reaches its server before staff
// logged in.
func TestWebUIIsBehindTheLoginOfStaff(t *testing.T) {
	p := newPlace(t)
	if status, body := p.send(http.MethodGet, "/namespaces/kivuko/workflows", "", nil); status != http.StatusOK || !strings.Contains(body, `action="/login"`) {
		t.Errorf("without a login: %d %s", status, body)
	}
	for _, path := range []string{"/codec/decode", "/api/v1/namespaces/kivuko/workflows/x/signal/retry"} {
		if status, _ := p.send(http.MethodPost, path, p.gate.URL, nil); status != http.StatusUnauthorized {
			t.Errorf("%s without a login: %d", path, status)
		}
	}
	for who, password := range map[string]string{"officer": "wrong", "customer": "right"} {
		if status, body := p.logIn(who, password); status != http.StatusUnauthorized || !strings.Contains(body, saidWrong) {
			t.Errorf("%s with the %s password: %d %s", who, password, status, body)
		}
	}
	if status, _ := p.send(http.MethodPost, loginPath, "https://other.example", url.Values{"email": {"officer@kivuko.example"}, "password": {"right"}}); status != http.StatusForbidden {
		t.Errorf("another page logs in: %d", status)
	}
	p.untouched("somebody who did not log in")
	if status, body := p.logIn("officer", "right"); status != http.StatusOK || body != "flows" {
		t.Errorf("staff: %d %s", status, body)
	}
	if status, body := p.send(http.MethodPost, "/codec/decode", p.gate.URL, nil); status != http.StatusOK || body != "plain /decode" {
		t.Errorf("staff read a payload: %d %s", status, body)
	}
	if p.froms[0] == "" {
		t.Error("the API was not told who typed the password")
	}
}

// The buttons that end, reset or start a flow were only hidden: the Web UI's server did what it was asked.
func TestWebUISendsSignalsAndNothingElse(t *testing.T) {
	p := newPlace(t)
	if status, _ := p.logIn("officer", "right"); status != http.StatusOK {
		t.Fatal(status)
	}
	p.mu.Lock()
	p.reached = nil
	p.mu.Unlock()
	const flow = "/api/v1/namespaces/kivuko/workflows/on-ramp%3A1"
	for _, bad := range []struct{ method, path string }{
		{http.MethodPost, flow + "/terminate"}, {http.MethodPost, flow + "/cancel"}, {http.MethodPost, flow + "/reset"}, {http.MethodPost, flow + "/update/x"},
		{http.MethodPost, "/api/v1/namespaces/kivuko/workflows/x"}, {http.MethodPost, "/api/v1/namespaces/kivuko/batch-operations/x"},
		{http.MethodPost, flow + "/terminate/../signal/x/y"}, {http.MethodPost, flow + "/terminate?x=/signal/retry"},
		{http.MethodPost, flow + "%2Fterminate%3F/signal/x"}, {http.MethodPost, flow + "/signal/x%2F..%2F..%2Fterminate"}, {http.MethodPut, flow + "/signal/retry"}, {http.MethodDelete, "/api/v1/namespaces/kivuko/schedules/prune"},
		{http.MethodPost, "/api/v1/namespaces/kivuko/workflow-rules"}, {http.MethodPatch, "/api/v1/namespaces/kivuko/schedules/prune"}, {http.MethodGet, "/codec/decode"},
	} {
		if status, _ := p.send(bad.method, bad.path, p.gate.URL, nil); status != http.StatusForbidden {
			t.Errorf("%s %s: %d", bad.method, bad.path, status)
		}
	}
	p.untouched("something that changes a flow")
	if status, _ := p.send(http.MethodPost, flow+"/signal/retry", "https://other.example", nil); status != http.StatusForbidden {
		t.Errorf("another page sends a signal: %d", status)
	}
	p.untouched("another page's signal")
	for _, path := range []string{flow + "/signal/retry", flow + "/query/__stack_trace"} {
		if status, _ := p.send(http.MethodPost, path, p.gate.URL, nil); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// A session goes on while it is used, ends when it is not, and at the logout. Requests at the same time use a refresh token once.
func TestSessionOfTheWebUI(t *testing.T) {
	p := newPlace(t)
	if status, _ := p.logIn("officer", "right"); status != http.StatusOK {
		t.Fatal(status)
	}
	p.now.Add(int64(20 * time.Minute))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if status, body := p.send(http.MethodGet, "/", "", nil); status != http.StatusOK || body != "flows" {
				t.Errorf("after the access token expired: %d %s", status, body)
			}
		})
	}
	all.Wait()
	if p.refreshed != 1 {
		t.Errorf("refreshed %d times", p.refreshed)
	}
	p.now.Add(int64(idle + time.Minute))
	if _, body := p.send(http.MethodGet, "/", "", nil); !strings.Contains(body, `action="/login"`) {
		t.Errorf("after nobody used it: %s", body)
	}
	if status, _ := p.logIn("officer", "right"); status != http.StatusOK {
		t.Fatal(status)
	}
	if _, body := p.send(http.MethodPost, logoutPath, p.gate.URL, nil); !strings.Contains(body, `action="/login"`) {
		t.Errorf("at the logout: %s", body)
	}
	if _, body := p.send(http.MethodGet, "/", "", nil); !strings.Contains(body, `action="/login"`) {
		t.Errorf("after the logout: %s", body)
	}
	if len(p.live) > 0 {
		t.Error("the session lives on at the API")
	}
}
