package api

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/webui"
)

// desk is an officer's browser before the Web UI, whose gate stands before this API.
type desk struct {
	*env
	gate *httptest.Server
	http *http.Client
}

func openDesk(t *testing.T) desk {
	t.Helper()
	var gate http.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { gate.ServeHTTP(w, r) }))
	t.Cleanup(server.Close)
	// Passkeys belong to a name: the browser reaches the gate as localhost.
	origin := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	database := storetest.URL(t)
	e := startOn(t, storetest.Open(t, database, store.Options{}), func(d *Deps) { d.Config.WebUI = origin })
	guard, err := StaffOnly(e.server.Config, storetest.OpenAs(t, database, store.RoleCodec, store.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	ui := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "flows") }))
	t.Cleanup(ui.Close)
	gate, err = webui.New(webui.Config{
		Origin: origin, UI: must(url.Parse(ui.URL)), API: must(url.Parse(e.base)), Public: "http://localhost:8080",
		Codec: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "plain") }),
		Staff: func(r *http.Request) error {
			err := guard(r)
			if exchange.CodeOf(err) == exchange.CodeStepUpRequired {
				return webui.ErrUnproven
			}
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	server.URL = origin
	return desk{e, server, &http.Client{Jar: must(cookiejar.New(nil))}}
}

// send sends what the gate's pages do.
func (o desk) send(path, kind, body string) (int, []byte) {
	o.t.Helper()
	req, err := http.NewRequestWithContext(o.t.Context(), post, o.gate.URL+path, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	req.Header.Set("Origin", o.gate.URL)
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Accept", "text/html")
	resp, err := o.http.Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return resp.StatusCode, raw
}

// TestWebUITakesThePasskeyOfStaff logs an officer in to the Web UI by the real endpoints: the password leads to the passkey alone,
// the passkey of the gate's own page opens flows and payloads, and the end of the session at the API ends it there.
func TestWebUITakesThePasskeyOfStaff(t *testing.T) {
	o := openDesk(t)
	officer := o.person(exchange.RoleOTCOfficer)
	key := o.enrol(officer)
	key.party.Origin = o.gate.URL

	form := url.Values{"email": {officer.Email}, "password": {testPassword}}.Encode()
	if status, body := o.send("/login", "application/x-www-form-urlencoded", form); status != http.StatusOK || !strings.Contains(string(body), `id="prove"`) {
		t.Fatalf("the password: %d %s", status, body)
	}
	if status, _ := o.send("/codec/decode", "application/json", "{}"); status != http.StatusUnauthorized {
		t.Errorf("a payload by the password alone: %d", status)
	}
	prove := func(key *authenticator) int {
		status, raw := o.send("/login/options", "application/json", "")
		if status != http.StatusCreated {
			t.Fatalf("the challenge: %d %s", status, raw)
		}
		ask := &reply{t: t, status: status, body: raw}
		answer, err := json.Marshal(map[string]any{"challenge_id": ask.text("challenge_id"), "credential": key.proves(t, ask)})
		if err != nil {
			t.Fatal(err)
		}
		status, _ = o.send("/login/passkey", "application/json", string(answer))
		return status
	}
	elsewhere := *key
	elsewhere.party.Origin = "http://localhost.evil:8233"
	if status := prove(&elsewhere); status != http.StatusUnprocessableEntity {
		t.Errorf("a passkey that another page asked for: %d", status)
	}
	key.cred.Counter = elsewhere.cred.Counter
	if status := prove(key); status != http.StatusOK {
		t.Fatalf("the passkey: %d", status)
	}
	if status, body := o.send("/codec/decode", "application/json", "{}"); status != http.StatusOK || string(body) != "plain" {
		t.Errorf("a payload: %d %s", status, body)
	}
	o.do(post, "/api/v1/auth/sessions/revoke-all", nil, officer.auth()).want(http.StatusNoContent)
	if status, _ := o.send("/codec/decode", "application/json", "{}"); status != http.StatusUnauthorized {
		t.Errorf("a payload after all sessions ended: %d", status)
	}
}

// TestB12StrangersShutNobodyOutOfTheWebUI types wrong passwords of an officer's at the gate from another browser: who has entered there
// before enters again.
func TestB12StrangersShutNobodyOutOfTheWebUI(t *testing.T) {
	o := openDesk(t)
	officer := o.person(exchange.RoleOTCOfficer)
	login := func(o desk, password string) int {
		status, _ := o.send("/login", "application/x-www-form-urlencoded", url.Values{"email": {officer.Email}, "password": {password}}.Encode())
		return status
	}
	if status := login(o, testPassword); status != http.StatusOK {
		t.Fatalf("the password: %d", status)
	}
	stranger := desk{o.env, o.gate, &http.Client{Jar: must(cookiejar.New(nil))}}
	for range 5 {
		login(stranger, "guess")
	}
	if status := login(stranger, "guess"); status != http.StatusTooManyRequests {
		t.Errorf("the sixth guess: %d", status)
	}
	if status := login(o, testPassword); status != http.StatusOK {
		t.Errorf("the officer: %d", status)
	}
}
