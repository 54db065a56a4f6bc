package webui

import (
	"errors"
	"html/template"
	"net"
	"net/http"
	"strings"
)

const (
	loginPath  = "/login"
	logoutPath = "/logout"
	maxForm    = 8 << 10
)

var page = template.Must(template.New("login").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Kivuko: flows</title>
<style>
body { font: 16px/1.5 sans-serif; max-width: 22rem; margin: 15vh auto; padding: 0 1rem }
label, input, button { display: block; width: 100%; box-sizing: border-box }
input, button { font: inherit; padding: .5rem; margin-bottom: 1rem }
</style>
<h1>Kivuko: flows</h1>
{{if .}}<p role="alert">{{.}}</p>{{end}}
<form method="post" action="/login">
<label for="email">E-mail address</label>
<input id="email" name="email" type="email" autocomplete="username" required autofocus>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required>
<button>Log in</button>
</form>
</html>
`))

// Answers to a login that is no login.
const (
	saidWrong    = "The account is unknown, the password is wrong, or the account is not one of staff."
	saidTooMany  = "There were too many wrong passwords. Wait a while."
	saidNotNow   = "Nobody can log in at the moment. Try again."
	saidReloaded = "The form could not be read."
)

func (g *Gate) login(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		show(w, http.StatusOK, "")
		return
	case http.MethodPost:
	default:
		http.Error(w, "the login is a form", http.StatusMethodNotAllowed)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		show(w, http.StatusBadRequest, saidReloaded)
		return
	}
	t, err := g.api.logIn(r.Context(), r.PostForm.Get("email"), r.PostForm.Get("password"), addressOf(r))
	if status := refused(0); errors.As(err, &status) && status < http.StatusInternalServerError {
		said, code := saidWrong, http.StatusUnauthorized
		if status == http.StatusTooManyRequests || status == http.StatusLocked {
			said, code = saidTooMany, http.StatusTooManyRequests
		}
		show(w, code, said)
		return
	}
	if err != nil {
		show(w, http.StatusBadGateway, saidNotNow)
		return
	}
	if g.Staff(withToken(r, t.Access)) != nil {
		_ = g.api.logOut(r.Context(), t.Access) // or it expires
		show(w, http.StatusUnauthorized, saidWrong)
		return
	}
	value, err := g.sessions.add(t)
	if err != nil {
		show(w, http.StatusServiceUnavailable, saidNotNow)
		return
	}
	g.setCookie(w, value)
	http.Redirect(w, r, "/", http.StatusSeeOther)
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
	c := &http.Cookie{
		Name: cookieName, Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: strings.HasPrefix(g.Origin, "https://"),
	}
	if value == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

func show(w http.ResponseWriter, status int, said string) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	w.WriteHeader(status)
	_ = page.Execute(w, said) // the browser went away
}

// addressOf is the address of who sent a request.
func addressOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	return host
}
