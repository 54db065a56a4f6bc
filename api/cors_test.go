package api

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"kivuko/exchange"
)

const office = "https://office.example"

func preflight(from string) []option {
	return []option{header("Origin", from), header("Access-Control-Request-Method", patch), header("Access-Control-Request-Headers", "authorization,if-match")}
}

// corsHeaders are the headers of a response that speak to browsers.
func corsHeaders(h http.Header) map[string]string {
	out := map[string]string{}
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") || name == "Vary" {
			out[name] = h.Get(name)
		}
	}
	return out
}

func wantHeaders(t *testing.T, what string, r *reply, want map[string]string) {
	t.Helper()
	if got := corsHeaders(r.header); !maps.Equal(got, want) {
		t.Errorf("%s: %s answers %d with %v, want %v", what, r.what, r.status, got, want)
	}
}

func TestBrowsersOfListedOriginsAlone(t *testing.T) {
	e := start(t, func(d *Deps) { d.Config.Origins = []string{"https://other.example:8443", office} })
	user := e.person(exchange.RoleUser)
	const me = "/api/v1/auth/user/me"

	exposed := map[string]string{
		"Vary": "Origin", "Access-Control-Allow-Origin": office,
		"Access-Control-Expose-Headers": "ETag, Content-Disposition, Content-Range, Idempotency-Replayed, Location, Retry-After, X-Request-Id, X-Total-Count",
	}
	wantHeaders(t, "a listed origin", e.do(get, me, nil, user.auth(), header("Origin", office)).want(http.StatusOK), exposed)
	wantHeaders(t, "a problem", e.do(get, me, nil, header("Origin", office)).want(http.StatusUnauthorized), exposed)
	wantHeaders(t, "an unknown path", e.do(get, "/nothing", nil, header("Origin", office)).want(http.StatusNotFound), exposed)
	wantHeaders(t, "a preflight", e.do("OPTIONS", me, nil, preflight(office)...).want(http.StatusNoContent), map[string]string{
		"Vary":                         "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
		"Access-Control-Allow-Origin":  office,
		"Access-Control-Allow-Methods": "DELETE, GET, PATCH, POST, PUT",
		"Access-Control-Allow-Headers": "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Range, If-Range",
		"Access-Control-Max-Age":       "600",
	})

	nothing := map[string]string{"Vary": "Origin"}
	wantHeaders(t, "no browser", e.do(get, me, nil, user.auth()).want(http.StatusOK), nothing)
	for _, stranger := range []string{"https://evil.example", "http://office.example", office + ":8443", "https://OFFICE.example", "https://office.example.evil.example", office + "/", "null", "*"} {
		wantHeaders(t, stranger, e.do(get, me, nil, user.auth(), header("Origin", stranger)).want(http.StatusOK), nothing)
		wantHeaders(t, stranger, e.do("OPTIONS", me, nil, preflight(stranger)...).refused(exchange.CodeMethodNotAllowed), nothing)
	}
}

func TestNoBrowsersWithoutAList(t *testing.T) {
	e := start(t)
	wantHeaders(t, "a request", e.do(get, "/healthz", nil, header("Origin", office)).want(http.StatusOK), map[string]string{})
	wantHeaders(t, "a preflight", e.do("OPTIONS", "/healthz", nil, preflight(office)...).refused(exchange.CodeMethodNotAllowed), map[string]string{})
}

// Scripts may send each header that an operation takes, and read each that the document describes.
func TestBrowsersHaveTheHeadersOfTheDocument(t *testing.T) {
	doc := contract(t)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for _, p := range op.Parameters {
				if p.Value.In == "header" && !slices.Contains(corsRequestHeaders, p.Value.Name) {
					t.Errorf("%s %s takes the header %s, which scripts may not send", method, path, p.Value.Name)
				}
			}
			for _, r := range op.Responses.Map() {
				for name := range r.Value.Headers {
					if !slices.Contains(corsResponseHeaders, name) {
						t.Errorf("%s %s answers with the header %s, which scripts may not read", method, path, name)
					}
				}
			}
		}
	}
}
