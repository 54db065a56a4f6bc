package webui

import (
	_ "embed"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"strings"
	"time"
)

const (
	loginPath   = "/login"
	scriptPath  = "/login/passkey.js"
	optionsPath = "/login/options"
	passkeyPath = "/login/passkey"
	logoutPath  = "/logout"
	maxForm     = 8 << 10
	// Browsers keep no cookie for longer than this; the API's device token lives as long.
	deviceLife = 400 * 24 * time.Hour
)

//go:embed passkey.js
var passkeyScript []byte

var page = template.Must(template.New("login").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Kivuko: flows</title>
<style>
body { font: 17px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #f6f5f2; max-width: 24rem; margin: 3rem auto; padding: 0 1rem }
section { background: #fff; border: 1px solid #ddd; border-radius: .5rem; padding: 1rem 1.5rem }
input { display: block; width: 100%; box-sizing: border-box; font: inherit; padding: .4rem; margin-bottom: .8rem }
button { font: inherit; padding: .4rem 1rem; border: 1px solid #1f4e79; border-radius: .3rem; color: #fff; background: #1f4e79; cursor: pointer }
button.quiet { color: #1f4e79; background: #fff }
button:disabled { opacity: .5; cursor: default }
form[action="/logout"] { display: inline }
#say { min-height: 1.5em; font-weight: 600 }
</style>
<h1>Kivuko: flows</h1>
<p id="say" role="alert">{{.Said}}</p>
<section>
{{if .Account}}
<p>The password is right. Now prove that it is you.</p>
<button id="prove" autofocus>Use my passkey</button>
<form method="post" action="/logout"><button class="quiet">Start again</button></form>
<p>You have none yet? Add one at <a href="{{.Account}}">your account</a>.</p>
<script src="/login/passkey.js"></script>
{{else}}
<form method="post" action="/login">
<label for="email">E-mail address</label>
<input id="email" name="email" type="email" autocomplete="username" required autofocus>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
<button>Log in</button>
</form>
{{end}}
</section>
</html>
`))

// shown is what the page shows: the password's form, or the passkey's button once the account is known.
type shown struct {
	Said    string
	Account string // the address of the account's own page
}

// Answers to a login that is no login.
const (
	saidWrong    = "The account is unknown, the password is wrong, or the account is not one of staff."
	saidTooMany  = "There were too many wrong passwords. Wait a while."
	saidNotNow   = "Nobody can log in at the moment. Try again."
	saidReloaded = "The form could not be read."
)

// login takes the password, and shows the next step after it.
func (g *Gate) login(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		if g.halfway(g.sessions.of(r), r) {
			show(w, http.StatusOK, shown{Account: g.Public + "/people/account"})
			return
		}
		refuse(w, http.StatusOK, "")
		return
	case http.MethodPost:
	default:
		http.Error(w, "the login is a form", http.StatusMethodNotAllowed)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		refuse(w, http.StatusBadRequest, saidReloaded)
		return
	}
	t, err := g.api.logIn(r.Context(), r.PostForm.Get("email"), r.PostForm.Get("password"), deviceOf(r), personOf(r))
	if status := refused(0); errors.As(err, &status) && status < http.StatusInternalServerError {
		said, code := saidWrong, http.StatusUnauthorized
		if status == http.StatusTooManyRequests || status == http.StatusLocked {
			said, code = saidTooMany, http.StatusTooManyRequests
		}
		refuse(w, code, said)
		return
	}
	if err != nil {
		refuse(w, http.StatusBadGateway, saidNotNow)
		return
	}
	if err := g.Staff(withToken(r, t.Access)); err != nil && !errors.Is(err, ErrUnproven) {
		_ = g.api.logOut(r.Context(), t.Access) // or it expires
		refuse(w, http.StatusUnauthorized, saidWrong)
		return
	}
	value, err := g.sessions.add(t)
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, saidNotNow)
		return
	}
	g.setCookie(w, value)
	g.keepDevice(w, t.Device)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// prove carries the challenge for a passkey from the API to the page, and the passkey's answer back.
func (g *Gate) prove(w http.ResponseWriter, r *http.Request) {
	s := g.sessions.of(r)
	if r.Method != http.MethodPost || !g.halfway(s, r) {
		g.turnAway(w, r)
		return
	}
	path, body := "/api/v1/auth/step-up/options", []byte(nil)
	if r.URL.Path == passkeyPath {
		var in struct {
			Challenge  string          `json:"challenge_id"`
			Credential json.RawMessage `json:"credential"`
		}
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAnswer)).Decode(&in)
		if err == nil {
			body, err = json.Marshal(in)
		}
		if err != nil {
			http.Error(w, "that is no passkey's answer", http.StatusBadRequest)
			return
		}
		path = "/api/v1/auth/step-up"
	}
	token, err := s.token(r.Context(), g.api, g.Now())
	if err != nil {
		http.Error(w, saidNotNow, http.StatusBadGateway)
		return
	}
	got, err := g.api.send(r.Context(), http.MethodPost, path, token, personOf(r), body)
	if err != nil {
		http.Error(w, saidNotNow, http.StatusBadGateway)
		return
	}
	if got.status == http.StatusOK { // of a step-up; options are created
		g.setCookie(w, g.sessions.renew(s))
	}
	w.Header().Set("Content-Type", got.kind)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(got.status)
	_, _ = w.Write(got.body) // the browser went away
}

func (g *Gate) logout(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "log out by POST", http.StatusMethodNotAllowed)
		return
	}
	if s := g.sessions.of(r); s != nil {
		if token, err := s.token(r.Context(), g.api, g.Now()); err == nil {
			_ = g.api.logOut(r.Context(), token) // or it expires
		}
		g.sessions.end(s)
	}
	g.setCookie(w, "")
	http.Redirect(w, r, loginPath, http.StatusSeeOther)
}

// setCookie sets our cookie, or removes it if the value is empty. Only this origin's pages send it, and no script reads it.
func (g *Gate) setCookie(w http.ResponseWriter, value string) {
	c := &http.Cookie{ //nolint:gosec // it is secure wherever the page is: a stack on one machine has no TLS
		Name: cookieName, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: strings.HasPrefix(g.Origin, "https://"),
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// keepDevice has the browser keep the token of its device, which outlives the session: with it the wrong passwords of strangers delay no
// login from here.
func (g *Gate) keepDevice(w http.ResponseWriter, token string) {
	if token == "" {
		return
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // it is secure wherever the page is: a stack on one machine has no TLS
		Name: deviceName, Value: token, Path: loginPath, MaxAge: int(deviceLife / time.Second), HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: strings.HasPrefix(g.Origin, "https://"),
	})
}

// deviceOf is the token of the device that a browser keeps, or nothing.
func deviceOf(r *http.Request) string {
	c, err := r.Cookie(deviceName)
	if err != nil {
		return ""
	}
	return c.Value
}

// refuse shows the password's form again.
func refuse(w http.ResponseWriter, status int, said string) { show(w, status, shown{Said: said}) }

func showScript(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	_, _ = w.Write(passkeyScript) // the browser went away
}

func show(w http.ResponseWriter, status int, what shown) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	w.WriteHeader(status)
	_ = page.Execute(w, what) // the browser went away
}
