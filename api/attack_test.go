package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"kivuko/exchange"
)

// TestAttackRun breaks the documented rules of every operation one at a time: bodies, query and path parameters,
// headers. No response may be 5xx or have an undocumented status, every response must fit its schema (do checks
// both), and a broken rule must be refused with its own error.
func TestAttackRun(t *testing.T) {
	w := newHarness(t)
	rows := w.catalogRows()
	doc, sent := contract(t), 0
	for _, r := range bareRoutes() {
		if strings.HasPrefix(r.path, "/docs") {
			continue
		}
		op := doc.Paths.Find(r.path).GetOperation(r.method)
		t.Run(op.OperationID, func(t *testing.T) {
			a := attack{harness: w, t: t, rows: rows, route: r, op: op, who: w.attacker(r)}
			a.bodies()
			a.parameters()
			a.headers()
			sent += a.sent
		})
	}
	if sent < 2000 {
		t.Errorf("only %d requests were made", sent)
	}
}

// attacker is a user whom the policy allows the route.
func (w *harness) attacker(r route) person {
	if endsSessions(r) {
		return w.person(exchange.RoleCustomer)
	}
	for _, role := range []exchange.Role{exchange.RoleAdmin, exchange.RoleTreasury, exchange.RoleOTCOfficer, exchange.RoleVendor, exchange.RoleCustomer} {
		if exchange.ScopeOf(role, r.action) != exchange.ScopeNone {
			return w.people[role]
		}
	}
	return person{}
}

// catalogRows seeds the catalogs and picks a row of each.
func (w *harness) catalogRows() map[string]string {
	w.t.Helper()
	if err := w.store.SeedCatalogs(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	countries, err := w.store.ListCountries(w.t.Context(), false)
	if err != nil {
		w.t.Fatal(err)
	}
	currencies, err := w.store.ListFiatCurrencies(w.t.Context(), false)
	if err != nil {
		w.t.Fatal(err)
	}
	return map[string]string{
		"/api/v1/auth/countries/{id}":       countries[len(countries)-1].ID.String(),
		"/api/v1/auth/fiat-currencies/{id}": currencies[len(currencies)-1].ID.String(),
	}
}

// endsSessions reports whether a route ends the caller's session.
func endsSessions(r route) bool {
	return strings.HasSuffix(r.path, "/logout") || r.method == del && strings.HasSuffix(r.path, "/sessions/{id}") || strings.HasSuffix(r.path, "/revoke-all")
}

type attack struct {
	*harness
	t     *testing.T
	route route
	op    *openapi3.Operation
	who   person
	rows  map[string]string // an existing row of each catalog by the path of its operations
	sent  int
}

// path is the route's path with an unknown id.
func (a *attack) path() string {
	p := strings.ReplaceAll(a.route.path, "{role}", "user")
	p = strings.ReplaceAll(p, "{kind}", "result")
	p = strings.ReplaceAll(p, "{token}", strings.Repeat("t", 32))
	if a.route.method == patch && a.rows[p] != "" { // the catalogs check a change together with the row
		return strings.ReplaceAll(p, "{id}", a.rows[p])
	}
	return pathParameter.ReplaceAllString(p, newID().String())
}

func (a *attack) send(path string, body any, more ...option) *reply {
	a.t.Helper()
	a.sent++
	options := []option{withKey(newID().String())}
	switch {
	case a.route.public:
	case endsSessions(a.route):
		options = append(options, a.session(a.who.User).auth())
	default:
		options = append(options, a.who.auth())
	}
	got := a.doIn(a.t, a.route.method, path, body, append(options, more...)...)
	if got.status >= 500 && got.status != http.StatusNotImplemented {
		a.t.Errorf("%s answers %d to %.200v: %s", got.what, got.status, body, got.body)
	}
	return got
}

// refuse sends a request that breaks a rule.
func (a *attack) refuse(why, path string, body any, more ...option) {
	a.t.Helper()
	got := a.send(path, body, more...)
	switch got.status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusUnsupportedMediaType, http.StatusRequestEntityTooLarge:
	default:
		a.t.Errorf("%s: %s answers %d to %.200v: %s", why, got.what, got.status, body, clip(string(got.body), 300))
	}
}

func (a *attack) bodies() {
	if a.op.RequestBody == nil {
		if a.route.method != get && a.route.method != del {
			a.refuse("unknown field", a.path(), `{"surprise":1}`)
			a.refuse("broken JSON", a.path(), `{`)
		}
		return
	}
	media := a.op.RequestBody.Value.Content["application/json"]
	if media == nil {
		a.send(a.path(), "\x00\xff not JSON", header("Content-Type", "application/x-noise"))
		return
	}
	schema := media.Schema.Value
	valid, _ := sample(schema).(map[string]any)
	a.send(a.path(), valid)
	for _, raw := range []string{
		"", "null", "[]", `"text"`, "1", "{", `{"a":}`, "\xff\xfe", `{"a":"` + "\xff" + `"}`, "{}{}", strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200),
		strings.Repeat("[", 20000), `{"surprise":1e999}`, `{"__proto__":{}}`, `{"` + strings.Repeat("k", 5000) + `":1}`, `{"a":1,"a":2}`,
	} {
		if raw == "" && len(schema.Required) == 0 && schema.MinProps == 0 {
			continue
		}
		a.refuse("broken body", a.path(), raw)
	}
	a.refuse("no JSON", a.path(), `{}`, header("Content-Type", "text/plain"))
	a.refuse("too long", a.path(), `{"a":"`+strings.Repeat("x", defaultBody)+`"}`)
	a.refuse("unknown field", a.path(), with(valid, "surprise", 1))
	for _, name := range schema.Required {
		a.refuse("missing "+name, a.path(), with(valid, name, nil))
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		for why, value := range violations(schema.Properties[name].Value) {
			a.refuse(name+" "+why, a.path(), with(valid, name, value))
		}
	}
}

// with is a body with one field changed; nil leaves it out.
func with(body map[string]any, name string, value any) map[string]any {
	out := maps.Clone(body)
	if out == nil {
		out = map[string]any{}
	}
	if value == nil {
		delete(out, name)
	} else {
		out[name] = value
	}
	return out
}

// samples are texts for the patterns of the document.
var samples = map[string]string{
	`^[0-9]{4,6}$`: "4821", `^[A-Z]{2}$`: "XX", `^[A-Z]{3}$`: "XXX", `^[0-9]{3}$`: "999", `^\+[1-9][0-9]{0,6}$`: "+999",
}

// sample is a value that a schema allows.
func sample(s *openapi3.Schema) any {
	switch {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.Format == "uuid":
		return newID().String()
	case len(s.Examples) > 0:
		return s.Examples[0]
	case s.Type.Is("string") && samples[s.Pattern] != "":
		return samples[s.Pattern]
	case s.Type.Is("string"):
		return strings.Repeat("a", max(int(s.MinLength), 1))
	case s.Type.Is("integer"):
		if s.Min != nil {
			return *s.Min
		}
		return 1
	case s.Type.Is("boolean"):
		return true
	case s.Type.Is("array"):
		return []any{sample(s.Items.Value)}
	case s.Type.Is("object"):
		out := map[string]any{}
		for _, name := range s.Required {
			out[name] = sample(s.Properties[name].Value)
		}
		return out
	}
	return nil
}

// violations are values that a schema forbids, by the rule they break.
func violations(s *openapi3.Schema) map[string]any {
	out := map[string]any{"is a list": []any{1}, "is infinite": json.RawMessage("1e999")}
	if !s.Type.Is("object") {
		out["is an object"] = map[string]any{"a": 1}
	}
	if !s.Type.Is("boolean") {
		out["is a boolean"] = true
	}
	switch {
	case s.Type.Is("string"):
		out["is a number"], out["has NUL"], out["has a control character"] = 10.5, "a\x00b", "a\x07b"
		if s.MaxLength != nil {
			out["is too long"] = strings.Repeat("1", int(*s.MaxLength)+1)
		}
		if s.MinLength > 0 {
			out["is empty"] = ""
		}
		if len(s.Enum) > 0 {
			out["is not listed"], out["has another case"] = "bogus", strings.ToLower(fmt.Sprint(s.Enum[0]))+" "
		}
		if strings.Contains(s.Pattern, "[0-9]") || s.Format == "uuid" {
			out["breaks the pattern"], out["has foreign digits"], out["has spaces"], out["is a script"] = "x y z", "١٢٣٤", " 1 ", "'; DROP TABLE users;--"
		}
	case s.Type.Is("integer"):
		out["is a text"], out["is a fraction"], out["is huge"] = "1", 1.5, json.RawMessage("99999999999999999999")
		if s.Min != nil {
			out["is too small"] = *s.Min - 1
		}
		if s.Max != nil {
			out["is too large"] = *s.Max + 1
		}
	case s.Type.Is("boolean"):
		out["is a text"], out["is a number"] = "true", 1
	}
	return out
}

func (a *attack) parameters() {
	for _, ref := range a.op.Parameters {
		p := ref.Value
		s := p.Schema.Value
		switch p.In {
		case "query":
			base := a.path() + "?"
			for _, other := range a.op.Parameters {
				if o := other.Value; o.In == "query" && o.Required && o.Name != p.Name {
					base += o.Name + "=" + url.QueryEscape(fmt.Sprint(sample(o.Schema.Value))) + "&"
				}
			}
			a.send(base+p.Name+"="+url.QueryEscape(fmt.Sprint(sample(s))), nil)
			for why, value := range badTexts(s) {
				a.refuse("query "+p.Name+" "+why, base+p.Name+"="+url.QueryEscape(value), nil)
			}
			a.refuse("query "+p.Name+" twice", base+p.Name+"=1&"+p.Name+"=2", nil)
			if p.Required {
				a.refuse("query "+p.Name+" missing", base, nil)
			}
		case "path":
			for _, value := range []string{"1", "x", "%00", "..%2f..%2fetc", strings.Repeat("9", 3000), "%F0%9F%92%A9", "'--", "%ff", "urn:uuid:" + newID().String()} {
				got := a.send(strings.ReplaceAll(a.route.path, "{"+p.Name+"}", value), a.plainBody())
				if got.status != http.StatusUnprocessableEntity && got.status != http.StatusNotFound {
					a.t.Errorf("path %s=%q answers %d", p.Name, value, got.status)
				}
			}
		}
	}
}

// plainBody fits an operation without looking at its path.
func (a *attack) plainBody() any {
	if a.op.RequestBody == nil || a.op.RequestBody.Value.Content["application/json"] == nil {
		return nil
	}
	return sample(a.op.RequestBody.Value.Content["application/json"].Schema.Value)
}

// badTexts are values that a parameter's schema forbids.
func badTexts(s *openapi3.Schema) map[string]string {
	out := map[string]string{"has NUL": "a\x00b", "is not UTF-8": "\xff"}
	switch {
	case s.Type.Is("integer"):
		for why, text := range map[string]string{
			"is a word": "one", "is a fraction": "1.5", "is infinite": "1e999", "is huge": "99999999999999999999", "has foreign digits": "١",
			"has a sign": "+1", "is negative": "-1", "is hex": "0x1",
		} {
			out[why] = text
		}
		if s.Min != nil {
			out["is too small"] = fmt.Sprintf("%.0f", *s.Min-1)
		}
		if s.Max != nil {
			out["is too large"] = fmt.Sprintf("%.0f", *s.Max+1)
		}
	case len(s.Enum) > 0, s.Type.Is("boolean"), s.Format == "uuid", s.Format == "date-time":
		out["is noise"], out["is a script"] = "bogus", "'; DROP TABLE users;--"
	case s.MaxLength != nil:
		out["is too long"] = strings.Repeat("1", int(*s.MaxLength)+1)
	}
	return out
}

func (a *attack) headers() {
	long := a.send(a.path(), nil, header("X-Noise", strings.Repeat("n", 2*maxHeaderBytes)))
	if long.status != http.StatusRequestHeaderFieldsTooLarge {
		a.t.Errorf("headers of %d bytes answer %d", 2*maxHeaderBytes, long.status)
	}
	a.send(a.path(), nil, header("Accept", "application/xml"), header("X-HTTP-Method-Override", "DELETE"), header("Content-Type", "a/b;;c=\""))
	if a.route.public {
		return
	}
	for _, token := range []string{"", "x", a.who.token[:20], a.who.token + "x", strings.Repeat("A", 4000)} {
		if got := a.send(a.path(), nil, header("Authorization", "Bearer "+token)); got.status != http.StatusUnauthorized {
			a.t.Errorf("the token %.30q answers %d", token, got.status)
		}
	}
	if a.route.key == keyRequired {
		for _, key := range []string{strings.Repeat("k", 256), "with space", "\u00e9"} {
			a.refuse("key", a.path(), a.plainBody(), withKey(key))
		}
	}
}
