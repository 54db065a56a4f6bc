// Package webui puts Temporal's Web UI behind the login of Kivuko's staff. The Web UI has no login of its own that Kivuko's accounts
// fit, and its buttons are only hidden, not refused: whoever reaches its server could end a flow or start one.
package webui

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// ErrUnproven is the refusal of a session of staff that a passkey has not proven yet.
var ErrUnproven = errors.New("web ui: a passkey has to prove the session")

// Config is what the gate stands between.
type Config struct {
	Origin string       // where browsers reach it: scheme, host and port
	UI     *url.URL     // the Web UI's own server, which nobody else may reach
	API    *url.URL     // Kivuko's API, at which staff log in
	Public string       // the API's address for browsers, where staff add a passkey
	Codec  http.Handler // encodes and decodes payloads, below /codec/
	// Staff checks a request's access token: nil for a session of staff that a passkey has proven, ErrUnproven before that.
	Staff func(*http.Request) error
	Now   func() time.Time
}

// Gate is the handler. It holds the sessions in memory, so that no token of the API reaches a browser: after a restart staff log in
// again.
type Gate struct {
	Config
	sessions sessions
	api      apiClient
	ui       http.Handler
	codec    http.Handler
}

var _ http.Handler = (*Gate)(nil)

// New returns a gate.
func New(c Config) (*Gate, error) {
	origin, err := url.Parse(c.Origin)
	if err != nil || origin.Host == "" || origin.Path != "" {
		return nil, fmt.Errorf("web ui: %q is no origin", c.Origin)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	g := &Gate{Config: c, sessions: sessions{all: map[digest]*session{}, now: c.Now}, api: newAPIClient(c.API)}
	g.codec = http.StripPrefix("/codec", c.Codec)
	g.ui = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(c.UI)
		r.SetXForwarded()
		r.Out.Host = r.In.Host // the Web UI compares it with the page's address
		r.Out.Header.Del("Authorization")
		dropCookies(r.Out)
	}}
	return g, nil
}

// What staff may ask of Temporal besides reading: the signals that wait for an operator, and queries. A query reads, though it is sent as
// POST. Other signals are what Kivuko's processes tell a flow.
var asked = regexp.MustCompile(`^/api/v1/namespaces/([^/]+)/workflows/([^/]+)/(?:signal/(?:retry|refund|resolve|approve|reject)|query/[^/]+)$`)

// Temporal's own flows and namespaces have names of this kind. The flow of a schedule takes signals that pause or rewrite it.
const temporals = "temporal-"

// asks reports whether a request only asks that, however its path is read: with the escapes or without. A path that still has escapes
// after the first reading has none of our names.
func asks(r *http.Request) bool {
	names := asked.FindStringSubmatch(r.URL.Path)
	if r.Method != http.MethodPost || names == nil || !asked.MatchString(r.URL.EscapedPath()) || strings.Contains(r.URL.Path, "%") {
		return false
	}
	return !strings.HasPrefix(names[1], temporals) && !strings.HasPrefix(names[2], temporals)
}

// ServeHTTP lets staff through.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	if r.Method == http.MethodOptions { // no other origin is allowed anything; kivuko health asks this
		w.WriteHeader(http.StatusNoContent)
		return
	}
	reading := r.Method == http.MethodGet || r.Method == http.MethodHead
	// Every browser names the page that sends something. A page of another origin must not act for who is logged in here.
	if from := r.Header.Get("Origin"); !reading && from != g.Origin {
		http.Error(w, "this origin may not send anything here", http.StatusForbidden)
		return
	}
	switch r.URL.Path {
	case loginPath:
		g.login(w, r)
		return
	case logoutPath:
		g.logout(w, r)
		return
	case scriptPath:
		showScript(w)
		return
	case optionsPath, passkeyPath:
		g.prove(w, r)
		return
	}
	s := g.sessions.of(r)
	if s == nil || g.staff(s, r) != nil {
		g.turnAway(w, r)
		return
	}
	coding := strings.HasPrefix(r.URL.Path, "/codec/")
	switch {
	case coding && r.Method == http.MethodPost:
		g.codec.ServeHTTP(w, r)
	case !coding && (reading || asks(r)):
		g.ui.ServeHTTP(w, r)
	default:
		http.Error(w, "the Web UI may read flows and send them the signals of operators, nothing else", http.StatusForbidden)
	}
}

// staff checks that a session is still one of staff that a passkey has proven, as the API would.
func (g *Gate) staff(s *session, r *http.Request) error {
	token, err := s.token(r.Context(), g.api, g.Now())
	if final(err) {
		g.sessions.end(s)
	}
	if err != nil {
		return err
	}
	return g.Staff(withToken(r, token))
}

// halfway reports whether a person has typed the password, and not yet proven the session by a passkey.
func (g *Gate) halfway(s *session, r *http.Request) bool {
	return s != nil && errors.Is(g.staff(s, r), ErrUnproven)
}

// turnAway sends a person to the login, and a script away.
func (g *Gate) turnAway(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
		http.Redirect(w, r, loginPath, http.StatusSeeOther)
		return
	}
	http.Error(w, "log in first", http.StatusUnauthorized)
}

func withToken(r *http.Request, token string) *http.Request {
	out := r.Clone(r.Context())
	out.Header.Set("Authorization", "Bearer "+token)
	return out
}
