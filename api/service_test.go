package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

func TestHealth(t *testing.T) {
	broken := map[string]error{}
	check := func(name string) func(context.Context) error {
		return func(context.Context) error { return broken[name] }
	}
	e := start(t, func(d *Deps) {
		d.Health = map[string]func(context.Context) error{"postgres": check("postgres"), "schema": check("schema"), "temporal": check("temporal"), "tron": check("tron")}
	})
	e.do(get, "/healthz", nil).want(200)
	for _, c := range []struct {
		down   string
		status int
		word   string
	}{{"", 200, "ready"}, {"tron", 200, "degraded"}, {"temporal", 503, "unavailable"}, {"postgres", 503, "unavailable"}, {"schema", 503, "unavailable"}} {
		clear(broken)
		broken[c.down] = errors.New("secret host refused")
		e.skew.Add(int64(readyAge))
		r := e.do(get, "/readyz", nil).want(c.status)
		if r.text("status") != c.word || strings.Contains(string(r.body), "secret") {
			t.Errorf("without %s: %s", c.down, r.body)
		}
	}
}

// TestReadinessIsAskedOnce sends many requests at once: the page is public, and its checks load dependencies.
func TestReadinessIsAskedOnce(t *testing.T) {
	var asked atomic.Int64
	e := start(t, func(d *Deps) {
		now := time.Now() // the second never ends
		d.Now = func() time.Time { return now }
		d.Health = map[string]func(context.Context) error{"tron": func(context.Context) error {
			asked.Add(1)
			return nil
		}}
	})
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 125 {
				if r := e.do(get, "/readyz", nil); r.status != http.StatusOK {
					t.Errorf("status %d", r.status)
				}
			}
		})
	}
	wait.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("1,000 requests asked %d times", n)
	}
}

// TestTransfersAreLimited checks that transfers count with orders, and that a refusal has Retry-After.
func TestTransfersAreLimited(t *testing.T) {
	e := start(t, func(d *Deps) { d.Config.Rates.OrderCreate = Rate{Max: 1, Per: time.Hour} })
	p := e.person(exchange.RoleCustomer)
	e.do(post, "/api/v1/auth/transfers", map[string]any{}, p.auth(), freshKey()).want(http.StatusUnprocessableEntity)
	r := e.do(post, "/api/v1/auth/transfers", map[string]any{}, p.auth(), freshKey()).refused(exchange.CodeRateLimited)
	if after, err := strconv.Atoi(r.header.Get("Retry-After")); err != nil || after < 1 || after > 3600 {
		t.Errorf("Retry-After is %q", r.header.Get("Retry-After"))
	}
}

func TestMetricsCountByTemplate(t *testing.T) {
	e := start(t)
	p := e.person(exchange.RoleCustomer)
	id := newID().String()
	e.do(get, ordersPath+"/"+id, nil, p.auth()).want(404)
	e.do(get, "/nowhere/"+id, nil).want(404)
	page := string(e.do(get, "/metrics", nil).want(200).body)
	if !strings.Contains(page, `kivuko_http_requests_total{method="GET",route="/api/v1/auth/orders/{id}",status="404"} 1`) {
		t.Error("the request is not counted under its template")
	}
	if strings.Contains(page, id) {
		t.Error("an id is a label")
	}
	closed := start(t, func(d *Deps) { d.Config.MetricsReaders = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")} })
	closed.do(get, "/metrics", nil).refused(exchange.CodeNotFound)
	closed.do(get, "/metrics", nil, from("10.1.2.3")).want(200)
}

func TestDocs(t *testing.T) {
	e := start(t)
	page := e.do(get, "/docs", nil).want(200)
	if policy := page.header.Get("Content-Security-Policy"); !strings.Contains(policy, "script-src 'self'") || strings.Contains(string(page.body), "//cdn") {
		t.Errorf("policy %q", policy)
	}
	for asset := range docsTypes {
		if got := e.do(get, "/docs/"+asset, nil).want(200); len(got.body) == 0 || got.header.Get("Content-Type") != docsTypes[asset] {
			t.Errorf("%s: %s, %d bytes", asset, got.header.Get("Content-Type"), len(got.body))
		}
	}
	e.do(get, "/docs/index.html", nil).refused(exchange.CodeNotFound)
	if v := e.do(get, "/openapi.json", nil).want(200).text("openapi"); v != "3.1.0" {
		t.Errorf("openapi %s", v)
	}
}

// TestHugeBody announces 50 MB. The response comes before the body is sent.
func TestHugeBody(t *testing.T) {
	e := start(t)
	conn, err := (&net.Dialer{Timeout: hanging}).DialContext(t.Context(), "tcp", strings.TrimPrefix(e.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(hanging))
	_, err = fmt.Fprintf(conn, "POST /api/v1/users/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", 50<<20)
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(conn)
	r, err := http.ReadResponse(answers, nil)
	if err == nil && r.StatusCode == http.StatusContinue {
		_ = r.Body.Close()
		r, err = http.ReadResponse(answers, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode != http.StatusRequestEntityTooLarge || r.Header.Get("Content-Type") != problemType {
		t.Errorf("50 MB answer %d %s", r.StatusCode, r.Header.Get("Content-Type"))
	}
}

func TestCountriesAndCurrencies(t *testing.T) {
	e := start(t)
	if err := e.store.SeedCatalogs(t.Context()); err != nil {
		t.Fatal(err)
	}
	admin, user := e.person(exchange.RoleAdmin), e.person(exchange.RoleUser)
	for _, c := range []struct{ path, plural, key string }{
		{"/api/v1/auth/countries", "countries", "alpha2_code"}, {"/api/v1/auth/fiat-currencies", "fiat_currencies", "code"},
	} {
		all := e.do(get, c.path+"/admin", nil, admin.auth()).want(200).object()[c.plural].([]any)
		active := e.do(get, c.path, nil, user.auth()).want(200).object()[c.plural].([]any)
		if len(all) < 100 || len(active) == 0 || len(active) >= len(all) {
			t.Errorf("%s: %d rows, %d active", c.path, len(all), len(active))
		}
		for _, row := range active {
			if row.(map[string]any)["is_active"] != true {
				t.Errorf("an inactive row is listed: %v", row)
			}
		}
		id := active[0].(map[string]any)["id"].(string)
		e.do(get, c.path+"/"+id, nil, admin.auth()).want(200)
		off := e.do(patch, c.path+"/"+id, map[string]any{"is_active": false}, admin.auth()).want(200)
		if off.object()["is_active"] != false {
			t.Errorf("patched %s", off.body)
		}
		if now := e.do(get, c.path, nil, user.auth()).want(200).object()[c.plural].([]any); len(now) != len(active)-1 {
			t.Errorf("%s: %d active rows after one was switched off", c.path, len(now))
		}
		e.do(patch, c.path+"/"+id, map[string]any{"id": newID().String()}, admin.auth()).blames("/id unknown_field")
		e.do(patch, c.path+"/"+newID().String(), map[string]any{"is_active": true}, admin.auth()).refused(exchange.CodeNotFound)
	}
	public := e.do(get, "/api/v1/countries", nil).want(200).object()["countries"].([]any)
	own := e.do(get, "/api/v1/auth/countries", nil, user.auth()).want(200).object()["countries"].([]any)
	if len(public) != len(own) {
		t.Errorf("public %d, authenticated %d", len(public), len(own))
	}
	land := map[string]any{
		"display_name": "Examplia", "official_name": "Republic of Examplia", "alpha2_code": "XA", "alpha3_code": "XAA", "numeric_code": "999",
		"phone_code": "+999", "nationality": "Examplian", "region": "Africa", "subregion": "Eastern Africa", "default_fiat_currency": "KES",
	}
	made := e.do(post, "/api/v1/auth/countries", land, admin.auth(), withKey("c")).want(http.StatusCreated)
	e.do(post, "/api/v1/auth/countries", land, admin.auth()).refused(exchange.CodeConflict)
	land["phone_code"] = "254"
	e.do(post, "/api/v1/auth/countries", land, admin.auth()).blames("/phone_code format")
	all := e.do(get, "/api/v1/auth/countries/admin", nil, admin.auth()).want(200).object()["countries"].([]any) // Kenya is switched off above
	e.do(patch, "/api/v1/auth/countries/"+kenyaOf(all), map[string]any{"phone_code": "+44"}, admin.auth()).blames("/phone_code mismatch")
	e.do(del, "/api/v1/auth/countries/"+made.text("id"), nil, admin.auth()).want(http.StatusNoContent)
	e.do(get, "/api/v1/auth/countries/"+made.text("id"), nil, admin.auth()).refused(exchange.CodeNotFound)
}

// kenyaOf finds the id of Kenya in a listing.
func kenyaOf(countries []any) string {
	for _, c := range countries {
		if row, ok := c.(map[string]any); ok && row["alpha2_code"] == "KE" {
			id, _ := row["id"].(string)
			return id
		}
	}
	return ""
}

func TestOffersLive(t *testing.T) {
	m := openMarket(t)
	const path = "/api/v1/auth/offers"
	m.fund(m.wallet, "70")
	body := map[string]any{
		"offer_type": "SELL", "asset": "USDT", "network": "tron", "usdt_amount": "60.5", "rate": "128.75", "min_order": "1", "max_order": "20",
		"description": "Fast and friendly",
	}
	made := m.do(post, path, body, m.vendor.auth(), withKey("o")).want(http.StatusCreated)
	if made.text("status") != "draft" || made.text("usdt_amount") != "60.500000" || made.text("available_amount") != "0.000000" {
		t.Errorf("made %s", made.body)
	}
	id := path + "/" + made.text("id")
	m.do(get, id, nil, m.customer.auth()).refused(exchange.CodeNotFound)
	m.do(patch, id, map[string]any{"rate": "128.5", "usdt_amount": "61"}, m.vendor.auth()).want(200)
	state := func(verb, want string, p person) {
		t.Helper()
		if got := m.do(post, id+"/"+verb, nil, p.auth()).want(200).text("status"); got != want {
			t.Errorf("%s leads to %s", verb, got)
		}
	}
	admin := m.person(exchange.RoleAdmin)
	gas := func(want bool) {
		t.Helper()
		if got := slices.Contains(m.flows.calls, "bring gas"); got != want {
			t.Errorf("gas for the offer's wallet is asked for: %t", got)
		}
		m.flows.reset()
	}
	m.flows.reset()
	m.flows.failWith(exchange.Errorf(exchange.CodeUnavailable, "away")) // the offer is published all the same
	state("publish", "active", m.vendor)
	m.flows.failWith(nil)
	gas(true)
	if left := m.do(get, id, nil, m.customer.auth()).want(200).text("available_amount"); left != "61.000000" {
		t.Errorf("published with %s", left)
	}
	m.do(patch, id, map[string]any{"usdt_amount": "62"}, m.vendor.auth()).want(http.StatusConflict)
	body["wallet_id"] = m.env.wallet(m.person(exchange.RoleVendor)).ID.String()
	m.do(post, path, body, m.vendor.auth()).blames("/wallet_id not_found")
	delete(body, "wallet_id")
	for _, rate := range []string{"0.000001", "0.99", "10000.01", "1000000000"} {
		body["rate"] = rate
		m.do(post, path, body, m.vendor.auth()).blames("/rate range")
	}
	body["rate"] = "128.75"
	state("pause", "paused", m.vendor)
	gas(false)
	m.do(post, ordersPath, m.request(map[string]any{"offer_id": made.text("id")}), m.customer.auth(), freshKey()).refused(exchange.CodeStateConflict)
	m.flows.reset()
	state("resume", "active", m.vendor)
	gas(true)
	state("suspend", "suspended", admin)
	gas(false)
	m.do(post, id+"/resume", nil, m.vendor.auth()).refused(exchange.CodeStateConflict)
	state("unsuspend", "paused", admin)
	m.do(del, id, nil, m.vendor.auth()).refused(exchange.CodeStateConflict)
	state("close", "closed", m.vendor)
	m.do(del, id, nil, m.vendor.auth()).want(http.StatusNoContent)
	m.do(get, id, nil, m.vendor.auth()).refused(exchange.CodeNotFound)

	list := func(query string) *reply { return m.do(get, path+"?"+query, nil, m.customer.auth()) }
	if r := list("page_id=1&page_size=5&offer_type=SELL&asset=USDT&status=active&amount=10").want(200); len(r.array()) != 1 || r.header.Get("X-Total-Count") != "1" {
		t.Errorf("lists %s", r.body)
	}
	if r := list("page_id=1&page_size=5&amount=51").want(200); len(r.array()) != 0 {
		t.Errorf("an offer takes more than its maximum: %s", r.body)
	}
	for _, q := range []string{"page_id=1", "page_size=5", "page_id=1&page_size=4", "page_id=1&page_size=11", "page_id=1&page_size=5&asset=BTC", "page_id=1&page_size=5&amount=1e3"} {
		list(q).refused(exchange.CodeInvalid)
	}
	for name, value := range map[string]any{"usdt_amount": "1.1234567", "rate": "-1", "min_order": 1, "max_order": "1e3", "network": "bitcoin", "status": "active", "wallet_id": newID().String()} {
		wrong := map[string]any{}
		for k, v := range body {
			wrong[k] = v
		}
		wrong[name] = value
		m.do(post, path, wrong, m.vendor.auth()).refused(exchange.CodeInvalid)
	}
}

func TestRecords(t *testing.T) {
	m := openMarket(t)
	o := m.order(m.customer, m.offer.ID)
	admin := m.person(exchange.RoleAdmin)
	read := func(path string) map[string]any {
		t.Helper()
		return m.do(get, "/api/v1/auth/"+path, nil, admin.auth()).want(200).object()
	}
	// The log shows an event only when no older transaction can still add one before it. Other tests write to the same
	// server, so the test has to retry.
	var cursor string
	seen := map[string]bool{}
	for deadline := time.Now().Add(hanging); !seen["order.opened"]; {
		page := read("events?page_size=3&after=" + cursor)
		for _, ev := range page["events"].([]any) {
			seen[ev.(map[string]any)["type"].(string)] = true
		}
		if cursor = page["next_after"].(string); page["has_more"] == false {
			if time.Now().After(deadline) {
				t.Fatalf("paging the log shows %v", seen)
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	if audit := read("audit?object_id=" + o.ID.String()); len(audit["audit"].([]any)) != 1 || audit["next_after"] != nil {
		t.Errorf("audit %v", audit)
	}
	first := read("audit?page_size=1")
	second := read("audit?page_size=1&after=" + first["next_after"].(string))
	one, other := first["audit"].([]any)[0].(map[string]any)["id"].(float64), second["audit"].([]any)[0].(map[string]any)["id"].(float64)
	if first["has_more"] != true || other >= one {
		t.Errorf("pages of the audit log: %v, then %v", first, second)
	}
	storetest.Exec(t, m.store, `
INSERT INTO audit_log (id, at, actor, role, ip, request_id, action, object_type, object_id)
SELECT (SELECT max(id) FROM audit_log) + n, at, actor, role, ip, request_id, action, object_type, object_id
FROM (SELECT * FROM audit_log LIMIT 1) a, generate_series(1, 101) n`)
	if largest := read("audit?page_size=100"); largest["has_more"] != true || len(largest["audit"].([]any)) != 100 {
		t.Errorf("the largest page has %d rows, more: %v", len(largest["audit"].([]any)), largest["has_more"])
	}
	held := read("ledger/accounts?kind=wallet_balance&asset=USDT")["accounts"].([]any)
	if len(held) != 1 || held[0].(map[string]any)["held"] != "100.000000" {
		t.Errorf("accounts %v", held)
	}
	entries := read("ledger/entries?kind=custody&asset=USDT&owner_id=" + m.wallet.ID.String())["entries"].([]any)
	if len(entries) != 1 || len(entries[0].(map[string]any)["lines"].([]any)) != 2 {
		t.Errorf("entries %v", entries)
	}
	m.do(get, "/api/v1/auth/ledger/entries?kind=custody", nil, admin.auth()).blames("query/kind required")
	if read("payment-exceptions")["total"] != 0.0 {
		t.Error("exceptions out of nothing")
	}
	if n := len(read("state-machines")["state_machines"].([]any)); n != len(exchange.Machines()) {
		t.Errorf("%d machines", n)
	}
}

func TestConfigIsChecked(t *testing.T) {
	good := testDeps(t, nil).Config
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Config){
		"no keys":      func(c *Config) { c.TokenKeys = nil },
		"empty secret": func(c *Config) { c.TokenKeys = []Key{{ID: "a"}} },
		"no id":        func(c *Config) { c.TokenKeys = []Key{testKey("", 1)} },
		"same id":      func(c *Config) { c.TokenKeys = []Key{testKey("a", 1), testKey("a", 2)} },
		"no pepper":    func(c *Config) { c.Peppers = nil },
		"no spool":     func(c *Config) { c.SpoolDir = "" },
	} {
		c := good
		spoil(&c)
		if c.Validate() == nil {
			t.Errorf("%s: the configuration is accepted", name)
		}
	}
}

// Answers, problems and the document have <, > and & as they are.
func TestAnswersAreNotEscapedForPages(t *testing.T) {
	e := start(t)
	customer := e.person(exchange.RoleCustomer)
	body := map[string]any{"network": "tron", "asset": "USDT", "label": "a<b> & c"}
	made := e.do(post, "/api/v1/auth/wallets", body, customer.auth(), freshKey()).want(http.StatusCreated)
	if !strings.Contains(string(made.body), `"a<b> & c"`) {
		t.Errorf("made %s", made.body)
	}
	refused := e.do(post, "/api/v1/auth/wallets", map[string]any{"network": "tron", "asset": "USDT", "<&>": 1}, customer.auth(), freshKey())
	if refused.blames("/<&> unknown_field"); strings.Contains(string(refused.body), `\u00`) {
		t.Errorf("refused with %s", refused.body)
	}
	if raw, err := Document(); err != nil || strings.Contains(string(raw), `\u003`) {
		t.Errorf("the document is escaped, %v", err)
	}
}
