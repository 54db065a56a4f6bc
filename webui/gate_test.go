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

	"kivuko/workflows"
)

// place is a gate between a browser and servers that tell what reached them.
type place struct {
	t       *testing.T
	gate    *httptest.Server
	browser *http.Client
	now     atomic.Int64 // nanoseconds after the start

	mu        sync.Mutex
	reached   []string // what the Web UI's server was asked
	proven    bool     // whether a passkey has proven the officer's session
	noted     int      // how often the API was told that somebody is at work
	refreshed int
	froms     []string // the addresses that the API was told
	clients   []string // the clients that the API was told
	devices   []string // the device tokens of logins
	live      map[string]bool
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, live: map[string]bool{}}
	ui := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.reached = append(p.reached, r.Method+" "+r.URL.Path)
		p.mu.Unlock()
		if r.Header.Get("Authorization") != "" || strings.Contains(r.Header.Get("Cookie"), "kivuko") {
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
		Origin: p.gate.URL, UI: address(t, ui.URL), API: address(t, api.URL), Public: "https://api.example",
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

// api logs in whoever has the password, for a quarter of an hour; a refresh token works once. The right passkey proves the session.
func (p *place) api(w http.ResponseWriter, r *http.Request) {
	var in struct {
		Email, Password string
		Refresh         string `json:"refresh_token"`
		Device          string `json:"device_token"`
		Challenge       string `json:"challenge_id"`
		Credential      string
	}
	_ = json.NewDecoder(r.Body).Decode(&in) // logout has no body
	p.mu.Lock()
	defer p.mu.Unlock()
	who, _, _ := strings.Cut(in.Email, "@")
	switch r.URL.Path {
	case "/api/v1/users/login":
		p.froms = append(p.froms, r.Header.Get("X-Forwarded-For"))
		p.clients, p.devices = append(p.clients, r.UserAgent()), append(p.devices, in.Device)
		if in.Password != "right" {
			http.Error(w, "{}", http.StatusUnauthorized)
			return
		}
		p.proven = false
	case "/api/v1/auth/user/me":
		p.noted++
		return
	case "/api/v1/auth/step-up/options":
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"challenge_id":"c1","options":{}}`)
		return
	case "/api/v1/auth/step-up":
		p.proven = r.Header.Get("Authorization") != "" && in.Challenge == "c1" && in.Credential == "signed"
		if !p.proven {
			http.Error(w, `{"detail":"no"}`, http.StatusUnprocessableEntity)
		}
		return
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
		"device_token": who + "-device",
	})
}

func (p *place) staff(r *http.Request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer officer-access-"):
		return errors.New("not staff")
	case !p.proven:
		return fmt.Errorf("the API: %w", ErrUnproven)
	}
	return nil
}

// send sends a form as the page of an origin does.
func (p *place) send(method, path, origin string, form url.Values) (int, string) {
	p.t.Helper()
	kind := ""
	if form != nil {
		kind = "application/x-www-form-urlencoded"
	}
	return p.sendAs(method, path, origin, kind, form.Encode())
}

func (p *place) sendAs(method, path, origin, kind, body string) (int, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.gate.URL+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html")
	if origin != "" {
		req.Header.Set("Origin", origin)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
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

// prove answers the challenge as the page's script does.
func (p *place) prove(credential string) (int, string) {
	p.t.Helper()
	return p.sendAs(http.MethodPost, passkeyPath, p.gate.URL, "application/json", `{"challenge_id":"c1","credential":"`+credential+`"}`)
}

// enter logs an officer in, by both steps.
func (p *place) enter() {
	p.t.Helper()
	if status, body := p.logIn("officer", "right"); status != http.StatusOK || !strings.Contains(body, `id="prove"`) {
		p.t.Fatalf("the password: %d %s", status, body)
	}
	if status, body := p.prove("signed"); status != http.StatusOK {
		p.t.Fatalf("the passkey: %d %s", status, body)
	}
}

// cookie is the browser's cookie of the gate.
func (p *place) cookie() *http.Cookie {
	p.t.Helper()
	for _, c := range p.browser.Jar.Cookies(address(p.t, p.gate.URL)) {
		if c.Name == cookieName {
			return c
		}
	}
	p.t.Fatal("the browser has no cookie")
	return nil
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
	p.enter()
	if status, body := p.send(http.MethodGet, "/", "", nil); status != http.StatusOK || body != "flows" {
		t.Errorf("staff: %d %s", status, body)
	}
	if status, body := p.send(http.MethodPost, "/codec/decode", p.gate.URL, nil); status != http.StatusOK || body != "plain /decode" {
		t.Errorf("staff read a payload: %d %s", status, body)
	}
	if p.froms[0] == "" {
		t.Error("the API was not told who typed the password")
	}
}

// The buttons that end, reset or start a flow were only hidden: the Web UI's server did what it was asked. Signals reach what waits for
// an officer, and neither Temporal's own flows, which pause and rewrite schedules, nor what Kivuko's processes tell a flow.
func TestWebUISendsOperatorsSignalsAndNothingElse(t *testing.T) {
	p := newPlace(t)
	p.enter()
	const flow = "/api/v1/namespaces/kivuko/workflows/on-ramp%3A1"
	for _, bad := range []struct{ method, path string }{
		{http.MethodPost, flow + "/terminate"},
		{http.MethodPost, flow + "/cancel"},
		{http.MethodPost, flow + "/reset"},
		{http.MethodPost, flow + "/update/x"},
		{http.MethodPost, "/api/v1/namespaces/kivuko/workflows/x"},
		{http.MethodPost, "/api/v1/namespaces/kivuko/batch-operations/x"},
		{http.MethodPost, flow + "/update/command"},
		{http.MethodPost, flow + "/signal/" + workflows.SignalFloat},
		{http.MethodPost, flow + "/signal/" + workflows.SignalCallback},
		{http.MethodPost, flow + "/signal/" + workflows.SignalDeposit},
		{http.MethodPost, flow + "/signal/" + workflows.SignalResume},
		{http.MethodPost, flow + "/signal/" + workflows.SignalRefundAddress},
		{http.MethodPost, flow + "/signal/" + workflows.SignalWebhooks},
		{http.MethodPost, flow + "/signal/retry2"},
		{http.MethodPost, "/api/v1/namespaces/kivuko/workflows/temporal-sys-scheduler:seal-audit/signal/patch"},
		{http.MethodPost, "/api/v1/namespaces/kivuko/workflows/temporal-sys-scheduler%3Aseal-audit/signal/update"},
		{http.MethodPost, "/api/v1/namespaces/kivuko/workflows/temporal-sys-scheduler:seal-audit/signal/retry"},
		{http.MethodPost, "/api/v1/namespaces/kivuko/workflows/temporal%2Dsys-scheduler:seal-audit/signal/retry"},
		{http.MethodPost, "/api/v1/namespaces/kivuko/workflows/temporal%252Dsys-scheduler:seal-audit/signal/retry"},
		{http.MethodPost, "/api/v1/namespaces/kivuko/workflows/%74emporal-sys-scheduler:seal-audit/query/describe"},
		{http.MethodPost, "/api/v1/namespaces/temporal-system/workflows/x/signal/retry"},
		{http.MethodPost, flow + "/terminate/../signal/x/y"},
		{http.MethodPost, flow + "/terminate?x=/signal/retry"},
		{http.MethodPost, flow + "%2Fterminate%3F/signal/x"},
		{http.MethodPost, flow + "/signal/x%2F..%2F..%2Fterminate"},
		{http.MethodPut, flow + "/signal/retry"},
		{http.MethodDelete, "/api/v1/namespaces/kivuko/schedules/prune"},
		{http.MethodPost, "/api/v1/namespaces/kivuko/workflow-rules"},
		{http.MethodPatch, "/api/v1/namespaces/kivuko/schedules/prune"},
		{http.MethodGet, "/codec/decode"},
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
	paths := []string{flow + "/query/__stack_trace"}
	for _, name := range []string{
		workflows.SignalRetry, workflows.SignalRefund, workflows.SignalResolve, workflows.SignalApprove, workflows.SignalReject,
	} {
		paths = append(paths, flow+"/signal/"+name)
	}
	for _, path := range paths {
		if status, _ := p.send(http.MethodPost, path, p.gate.URL, nil); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// A session goes on while it is used, ends when it is not, and at the logout. Requests at the same time use a refresh token once.
func TestSessionOfTheWebUI(t *testing.T) {
	p := newPlace(t)
	p.enter()
	p.now.Add(int64(14*time.Minute + 45*time.Second))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if status, body := p.send(http.MethodGet, "/", "", nil); status != http.StatusOK || body != "flows" {
				t.Errorf("after the access token expired: %d %s", status, body)
			}
		})
	}
	all.Wait()
	if p.refreshed != 1 || p.noted != 1 {
		t.Errorf("refreshed %d times, and told the API %d times that somebody is at work", p.refreshed, p.noted)
	}
	p.now.Add(int64(idle + time.Minute))
	if _, body := p.send(http.MethodGet, "/", "", nil); !strings.Contains(body, `action="/login"`) {
		t.Errorf("after nobody used it: %s", body)
	}
	p.enter()
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

// A stolen password of staff reads no flow: the session it opens leads to the second step alone.
func TestPasswordAloneReadsNoFlow(t *testing.T) {
	p := newPlace(t)
	if status, _ := p.sendAs(http.MethodPost, optionsPath, p.gate.URL, "", ""); status != http.StatusUnauthorized {
		t.Errorf("a challenge without a login: %d", status)
	}
	if status, body := p.logIn("officer", "right"); status != http.StatusOK || !strings.Contains(body, "https://api.example/people/account") {
		t.Fatalf("%d %s", status, body)
	}
	halfway := p.cookie()
	for _, path := range []string{"/codec/decode", "/api/v1/namespaces/kivuko/workflows/x/signal/retry"} {
		if status, _ := p.send(http.MethodPost, path, p.gate.URL, nil); status != http.StatusUnauthorized {
			t.Errorf("%s by the password alone: %d", path, status)
		}
	}
	if status, body := p.sendAs(http.MethodPost, optionsPath, p.gate.URL, "", ""); status != http.StatusCreated || !strings.Contains(body, `"challenge_id":"c1"`) {
		t.Errorf("the challenge: %d %s", status, body)
	}
	if status, body := p.prove("forged"); status != http.StatusUnprocessableEntity || !strings.Contains(body, "no") {
		t.Errorf("a forged answer: %d %s", status, body)
	}
	if status, _ := p.sendAs(http.MethodPost, passkeyPath, p.gate.URL, "application/json", `{"password":"right"}`); status != http.StatusUnprocessableEntity {
		t.Errorf("the password in place of the passkey: %d", status)
	}
	if status, _ := p.sendAs(http.MethodPost, passkeyPath, "https://other.example", "application/json", `{"challenge_id":"c1","credential":"signed"}`); status != http.StatusForbidden {
		t.Errorf("another page's answer: %d", status)
	}
	p.untouched("a password alone")
	if status, _ := p.prove("signed"); status != http.StatusOK {
		t.Fatalf("the passkey: %d", status)
	}
	if status, body := p.send(http.MethodGet, "/", "", nil); status != http.StatusOK || body != "flows" {
		t.Errorf("after the passkey: %d %s", status, body)
	}
	// Who knew the cookie before the passkey has nothing.
	p.browser.Jar.SetCookies(address(t, p.gate.URL), []*http.Cookie{halfway})
	if status, _ := p.send(http.MethodPost, "/codec/decode", p.gate.URL, nil); status != http.StatusUnauthorized {
		t.Errorf("by the cookie of before: %d", status)
	}
}

// Five wrong passwords from anywhere shut every officer out of the flows, because the API took the gate for the one device of them all.
func TestGateTellsDevicesApart(t *testing.T) {
	p := newPlace(t)
	p.enter()
	p.send(http.MethodPost, logoutPath, p.gate.URL, nil)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.gate.URL+loginPath, strings.NewReader("email=officer%40kivuko.example&password=right"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", p.gate.URL)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("User-Agent", "browser/1")
	req.Header.Set("X-Forwarded-For", "203.0.113.9")
	resp, err := p.browser.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if len(p.devices) != 2 || p.devices[0] != "" || p.devices[1] != "officer-device" {
		t.Errorf("the logins had the device tokens %q", p.devices)
	}
	if got := p.clients[1]; got != "browser/1" {
		t.Errorf("the API was told the client %q", got)
	}
	if got := p.froms[1]; got != "203.0.113.9, 127.0.0.1" {
		t.Errorf("the API was told the address %q", got)
	}
}
