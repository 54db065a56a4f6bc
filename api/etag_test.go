package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// conditionCells are the requests of routes that have no line in the matrix of permissions.
func conditionCells(w *harness) map[string]cell {
	const auth = "/api/v1/auth/"
	rows := w.catalogRows()
	country := func(scene) uuid.UUID { return uuid.MustParse(rows[auth+"countries/{id}"]) }
	currency := func(scene) uuid.UUID { return uuid.MustParse(rows[auth+"fiat-currencies/{id}"]) }
	return map[string]cell{
		"GET " + auth + "countries/{id}":          {id: country},
		"PATCH " + auth + "countries/{id}":        {id: country, body: fixed(map[string]any{"sort_order": 77})},
		"GET " + auth + "fiat-currencies/{id}":    {id: currency},
		"PATCH " + auth + "fiat-currencies/{id}":  {id: currency, body: fixed(map[string]any{"sort_order": 77})},
		"PATCH " + auth + "limits":                {body: fixed(map[string]any{"roles": map[string]any{"user": map[string]any{"per_transaction": "10", "per_day": "20", "per_month": "30"}}})},
		"PATCH " + auth + "escrow-wallets/policy": {body: fixed(map[string]any{"network": "tron", "keep_free": 3})},
	}
}

// target is one request to a route, as a caller whom the policy allows it.
type target struct {
	path string
	who  person
	body any
}

// targets makes a request for each route that a rule selects.
func (w *harness) targets(t *testing.T, selects func(route) bool) map[string]target {
	t.Helper()
	catalog, more, out := cells(), conditionCells(w), map[string]target{}
	for _, r := range bareRoutes() {
		if !selects(r) {
			continue
		}
		name := r.method + " " + r.path
		c, listed := catalog[name]
		if special, ok := more[name]; ok {
			c, listed = special, true
		}
		if strings.Contains(r.path, "id}") && (!listed || c.id == nil) || r.method == patch && c.body == nil {
			t.Errorf("%s has no request in the matrix of permissions or in conditionCells", name)
			continue
		}
		roles := slices.Clone(exchange.Roles())
		role := roles[slices.IndexFunc(roles, func(role exchange.Role) bool { return exchange.ScopeOf(role, r.action) != exchange.ScopeNone })]
		at := target{path: r.path, who: w.people[role]}
		s := scene{w: w, who: at.who, own: true}
		if c.id != nil {
			at.path = pathParameter.ReplaceAllString(r.path, c.id(s).String())
		}
		if c.body != nil {
			at.body = c.body(s)
		}
		out[name] = at
	}
	return out
}

// Every read of one object has a tag, and answers 304 to a caller who has it.
func TestEveryObjectHasATag(t *testing.T) {
	w := newHarness(t)
	w.fund(w.wallet[w.people[exchange.RoleVendor].ID], "1000000")
	objects := w.targets(t, route.single)
	for name, at := range objects {
		read := func(tag string) *reply { return w.do(get, at.path, nil, at.who.auth(), header("If-None-Match", tag)) }
		first := read("")
		if first.want(http.StatusOK); len(first.header.Values("ETag")) != 1 {
			t.Errorf("%s has the tags %q", name, first.header.Values("ETag"))
			continue
		}
		tag := first.header.Get("ETag")
		for _, has := range []string{tag, `"other", W/` + tag, "*"} {
			if again := read(has); again.status != http.StatusNotModified || len(again.body) != 0 || again.header.Get("ETag") != tag {
				t.Errorf("%s answers %d with %q to If-None-Match: %s", name, again.status, again.header.Get("ETag"), has)
			}
		}
		if again := read(`"other"`).want(http.StatusOK); string(again.body) != string(first.body) {
			t.Errorf("%s answers %s and then %s", name, first.body, again.body)
		}
	}
	if len(objects) < 20 {
		t.Errorf("only %d objects", len(objects))
	}
}

// Every PATCH refuses a version that is not the object's, and takes the one that the read showed.
func TestEveryPatchTakesAVersion(t *testing.T) {
	w := newHarness(t)
	w.fund(w.wallet[w.people[exchange.RoleVendor].ID], "1000000")
	changes := w.targets(t, func(r route) bool { return r.method == patch })
	for name, at := range changes {
		change := func(tag string) *reply {
			return w.do(patch, at.path, at.body, at.who.auth(), header("If-Match", tag))
		}
		read := func() *reply {
			return w.do(get, strings.TrimSuffix(strings.TrimSuffix(at.path, "/refund-address"), "/draft"), nil, at.who.auth()).want(http.StatusOK)
		}
		before := read()
		tag := before.header.Get("ETag")
		for _, stale := range []string{`"1000000-0"`, `"0-0"`, `"-1"`, `"x"`, "1-0", "W/" + tag} {
			if got := change(stale); got.status != http.StatusPreconditionFailed || got.problem().Code != exchange.CodePrecondition {
				t.Errorf("%s answers %d to If-Match: %s: %s", name, got.status, stale, got.body)
			}
		}
		if now := read(); now.header.Get("ETag") != tag || string(now.body) != string(before.body) {
			t.Errorf("%s: a refused change counted", name)
		}
		done := change(`"1000000-0", ` + tag).want(http.StatusOK)
		if after := read().header.Get("ETag"); after == tag || version(after) != version(done.header.Get("ETag")) {
			t.Errorf("%s has the tag %s, then answers %s and shows %s", name, tag, done.header.Get("ETag"), after)
		}
		change(tag).refused(exchange.CodePrecondition)
	}
	if len(changes) < 9 {
		t.Errorf("only %d changes", len(changes))
	}
}

// An operation that is no PATCH takes no If-Match, and says so: a caller who sends it relies on it.
func TestOtherOperationsRefuseIfMatch(t *testing.T) {
	w := newHarness(t)
	for _, r := range bareRoutes() {
		if r.method == patch || r.public {
			continue
		}
		roles := exchange.Roles()
		who := w.people[roles[slices.IndexFunc(roles, func(role exchange.Role) bool { return exchange.ScopeOf(role, r.action) != exchange.ScopeNone })]]
		path := pathParameter.ReplaceAllString(r.path, newID().String())
		for _, tag := range []string{`"1-0"`, "*", ""} {
			w.doIn(t, r.method, path, nil, who.auth(), freshKey(), header("If-Match", tag)).blames("header/If-Match unknown_header")
		}
	}
	w.do(get, "/api/v1/countries", nil, header("If-Match", `"1-0"`)).want(http.StatusOK)
}

// Several tags, in one header or in several, count if one of them is the object's.
func TestIfMatchHasSeveralTags(t *testing.T) {
	e := start(t)
	admin, user := e.person(exchange.RoleAdmin), e.person(exchange.RoleUser)
	path := "/api/v1/auth/users/" + user.ID.String()
	change := func(options ...option) *reply {
		return e.do(patch, path, map[string]any{"verified": true}, append(options, admin.auth())...)
	}
	more := func(tag string) option { return func(r *http.Request) { r.Header.Add("If-Match", tag) } }
	change(more(`"3-0", "4-0"`)).refused(exchange.CodePrecondition)
	change(more(`"3-0"`), more(`"4-0"`)).refused(exchange.CodePrecondition)
	change(more("*"), more(`"4-0"`)).refused(exchange.CodePrecondition)
	tag := func() string { return e.do(get, path, nil, admin.auth()).want(http.StatusOK).header.Get("ETag") }
	change(more(`"3-0", `+tag()), more(`"4-0"`)).want(http.StatusOK)
	change(more(`"3-0"`), more(tag())).want(http.StatusOK)
	change(more("*")).want(http.StatusOK)
}

func version(tag string) string {
	v, _, _ := strings.Cut(tag, "-")
	return v
}

// The version of a user covers the user's own limits, which are rows of their own.
func TestVersionOfAUserCoversItsLimits(t *testing.T) {
	e := start(t)
	admin, user := e.person(exchange.RoleAdmin), e.person(exchange.RoleUser)
	path := "/api/v1/auth/users/" + user.ID.String()
	tag := e.do(get, path, nil, admin.auth()).want(http.StatusOK).header.Get("ETag")
	least := exchange.SpendingLimits{PerTransaction: money.Must(money.KES, "5")}
	if _, err := e.store.UpdateUser(t.Context(), user.ID, store.UserPatch{Limits: &least}, principalOf(admin)); err != nil {
		t.Fatal(err)
	}
	e.do(patch, path, map[string]any{"limits": map[string]any{}}, admin.auth(), header("If-Match", tag)).refused(exchange.CodePrecondition)
}

// A figure that is computed changes the tag and refuses no change of the object.
func TestComputedFiguresRefuseNoChange(t *testing.T) {
	text := `"12-aa"`
	if versionIn(text) != 12 || versionIn(`"12-bb"`) != 12 || holdsTag(`"12-bb"`, text) {
		t.Error("only the version counts for If-Match, and the whole tag for If-None-Match")
	}
}

// A read whose answer has no list is one object: a path without an id easily lacks its mark in the table.
func TestReadsWithoutAListAreObjects(t *testing.T) {
	figures := []string{"/api/v1/auth/users/count/role/{role}", "/api/v1/auth/pricing/indicative"} // computed anew each time
	doc := contract(t)
	for _, r := range bareRoutes() {
		if r.method != get || r.public || r.single() || slices.Contains(figures, r.path) {
			continue
		}
		answer := doc.Paths.Find(r.path).Get.Responses.Status(http.StatusOK).Value.Content["application/json"]
		if answer == nil { // the content of a file, whose tag is its digest
			continue
		}
		schema := answer.Schema.Value
		lists := schema.Type.Is("array")
		for _, p := range schema.Properties {
			lists = lists || p.Value.Type.Is("array")
		}
		if !lists {
			t.Errorf("GET %s answers with one object and has no tag", r.path)
		}
	}
}

// fileContents are the paths of the contents of files, whose tag is their digest.
var fileContents = []string{filesPath + "/{id}/content", "/files/{id}", "/otc-deposits-proof/{deposit_id}/{file}.pdf"}

func TestConditionsAreDocumented(t *testing.T) {
	doc := contract(t)
	for _, r := range bareRoutes() {
		op := doc.Paths.Find(r.path).GetOperation(r.method)
		for name, want := range map[string]bool{"If-Match": r.method == patch, "If-None-Match": r.single()} {
			if got := op.Parameters.GetByInAndName("header", name) != nil; got != want {
				t.Errorf("%s %s: %s is documented %v, want %v", r.method, r.path, name, got, want)
			}
		}
		tagged := r.method == patch || r.single() || slices.Contains(fileContents, r.path)
		if answer := op.Responses.Status(http.StatusOK); answer != nil && (answer.Value.Headers["ETag"] != nil) != tagged {
			t.Errorf("%s %s: the document says that the answer has a tag: %v", r.method, r.path, !tagged)
		}
		if (op.Responses.Status(http.StatusPreconditionFailed) != nil) != (r.method == patch) || (op.Responses.Status(http.StatusNotModified) != nil) != r.single() {
			t.Errorf("%s %s: the document has wrong answers to conditions", r.method, r.path)
		}
	}
}
