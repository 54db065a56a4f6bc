package api

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

const (
	ratesPath    = "/api/v1/auth/pricing/fx-rates"
	profilesPath = "/api/v1/auth/pricing/profiles"
	quotesPath   = "/api/v1/auth/pricing/quotes"
)

func TestRatesAreTheAdmins(t *testing.T) {
	e := start(t)
	admin, officer := e.person(exchange.RoleAdmin), e.person(exchange.RoleTreasury)
	enter := func(change map[string]any, options ...option) *reply {
		body := map[string]any{"base": "USDT", "bid": "128.9", "ask": "129.1"}
		for k, v := range change {
			if body[k] = v; v == nil {
				delete(body, k)
			}
		}
		return e.do(post, ratesPath, body, append(options, admin.auth())...)
	}
	e.do(post, ratesPath, map[string]any{"base": "USDT", "mid": "129"}, officer.auth()).refused(exchange.CodeForbidden)
	e.agree(enter(nil).want(http.StatusAccepted), officer) // there is nothing yet to hold it against
	e.fed("128.9", "129.1")
	first := enter(nil, withKey("one")).want(http.StatusCreated)
	if again := enter(nil, withKey("one")).want(http.StatusCreated); again.text("id") != first.text("id") {
		t.Error("one key entered two rates")
	}
	if got := first.object(); got["mid"] != "129" || got["in_force"] != true || got["source"] != "admin" || got["created_by"] != admin.ID.String() || got["replaces"] == nil {
		t.Errorf("entered %s", first.body)
	}
	enter(map[string]any{"ask": nil}).blames("/ask required")
	enter(map[string]any{"mid": "129"}).blames("/bid conflict", "/ask conflict")
	enter(map[string]any{"bid": 128.9}).blames("/bid type")
	enter(map[string]any{"bid": "128.9000001"}).blames("/bid precision")
	enter(map[string]any{"bid": "129.2"}).blames("/ask out_of_range")
	enter(map[string]any{"base": "KES"}).blames("/base enum")
	enter(map[string]any{"quote": "UGX"}).blames("/quote enum")
	enter(map[string]any{"stale_after_seconds": 59}).blames("/stale_after_seconds out_of_range")
	enter(map[string]any{"valid_from": "yesterday"}).blames("/valid_from format")
	enter(map[string]any{"valid_from": ""}).blames("/valid_from format")
	enter(map[string]any{"valid_from": "2099-01-01T00:00:00Z"}).blames("/valid_from out_of_range")
	enter(map[string]any{"valid_from": first.text("valid_from")}).blames("/valid_from not_newer")
	waits := enter(map[string]any{"bid": nil, "ask": nil, "mid": "140"}).want(http.StatusAccepted)
	e.agree(waits, officer)
	list := e.do(get, ratesPath+"?base=USDT&source=admin", nil, officer.auth()).want(http.StatusOK).object()
	rates := list["fx_rates"].([]any)
	far := rates[0].(map[string]any)
	if far["jump_confirmed"] != true || far["replaces"] != first.text("id") || far["bid"] != "140" || far["ask"] != "140" || far["created_by"] != admin.ID.String() {
		t.Errorf("confirmed %v", far)
	}
	if list["total"] != 3.0 || far["in_force"] != true || rates[1].(map[string]any)["in_force"] != false || rates[1].(map[string]any)["replaced_at"] != far["valid_from"] {
		t.Errorf("listed %v", list)
	}
}

func TestProfilesAreTheAdmins(t *testing.T) {
	e := start(t)
	admin := e.person(exchange.RoleAdmin)
	enter := func(change map[string]any) *reply {
		body := map[string]any{"scope": "transfer", "asset": "USDT", "fixed": "0.25", "basis_points": 30}
		for k, v := range change {
			if body[k] = v; v == nil {
				delete(body, k)
			}
		}
		return e.do(post, profilesPath, body, admin.auth())
	}
	newest := func() map[string]any {
		return e.do(get, profilesPath+"?scope=transfer&asset=USDT", nil, admin.auth()).want(http.StatusOK).object()["profiles"].([]any)[0].(map[string]any)
	}
	colleague := e.person(exchange.RoleTreasury)
	e.agree(enter(map[string]any{"maximum": "10", "note": "for a start"}).want(http.StatusAccepted), colleague)
	first := newest()
	if first["version"] != 1.0 || first["in_force"] != true || first["minimum"] != "0.000000" || first["maximum"] != "10.000000" || first["spread_basis_points"] != 0.0 {
		t.Errorf("entered %v", first)
	}
	e.agree(enter(map[string]any{"fixed": "0"}).want(http.StatusAccepted), colleague)
	if second := newest(); second["version"] != 2.0 || second["maximum"] != nil {
		t.Errorf("entered %v", second)
	}
	enter(map[string]any{"scope": "coffee"}).blames("/scope enum")
	enter(map[string]any{"scope": "transfer", "asset": "KES"}).blames("/asset enum")
	enter(map[string]any{"asset": nil}).blames("/fixed conflict")
	enter(map[string]any{"method": "bank"}).blames("/method enum")
	enter(map[string]any{"merchant_id": newID().String()}).blames("/merchant_id not_found")
	enter(map[string]any{"retired": true}).blames("/retired mismatch")
	enter(map[string]any{"fixed": "0.0000001"}).blames("/fixed precision")
	enter(map[string]any{"fixed": "-1"}).blames("/fixed format")
	enter(map[string]any{"maximum": "0"}).blames("/maximum out_of_range")
	merchant := e.person(exchange.RoleVendor)
	close := map[string]any{"merchant_id": merchant.ID.String(), "network": "tron", "fixed": nil, "asset": nil, "basis_points": 10}
	e.agree(enter(close).want(http.StatusAccepted), colleague)
	enter(map[string]any{"merchant_id": merchant.ID.String()}).refused(exchange.CodeConflict)
	special := e.do(get, profilesPath+"?network=tron&merchant_id="+merchant.ID.String(), nil, admin.auth()).want(http.StatusOK).object()["profiles"].([]any)[0].(map[string]any)
	if special["asset"] != nil || special["fee_currency"] != nil || special["method"] != nil || special["network"] != "tron" || special["retired"] != false {
		t.Errorf("entered %v", special)
	}
	enter(map[string]any{"minimum": "11", "maximum": "10"}).blames("/maximum out_of_range")
	enter(map[string]any{"basis_points": 2001}).blames("/basis_points out_of_range")
	enter(map[string]any{"spread_basis_points": "1"}).blames("/spread_basis_points type")
	enter(map[string]any{"valid_from": "2020-01-01T00:00:00Z"}).blames("/valid_from out_of_range")
	list := e.do(get, profilesPath+"?scope=transfer&asset=USDT", nil, admin.auth()).want(http.StatusOK).object()
	versions := list["profiles"].([]any)
	if list["total"] != 2.0 || versions[0].(map[string]any)["in_force"] != true || versions[1].(map[string]any)["in_force"] != false {
		t.Errorf("listed %v", list)
	}
}

// Holidays of the moon are entered by two officers, also by those of the treasury.
func TestBankDaysAreAgreedByTwo(t *testing.T) {
	const path = "/api/v1/auth/pricing/bank-days"
	e := start(t)
	admin, officer := e.person(exchange.RoleAdmin), e.person(exchange.RoleTreasury)
	day := exchange.DateOf(e.server.now()).AddDate(0, 0, 40).Format(time.DateOnly)
	enter := func(change map[string]any) *reply {
		body := map[string]any{"day": day, "is_open": false, "name": "Idd-ul-Fitr"}
		for k, v := range change {
			if body[k] = v; v == nil {
				delete(body, k)
			}
		}
		return e.do(post, path, body, officer.auth())
	}
	enter(map[string]any{"day": "2020-01-01"}).blames("/day out_of_range")
	enter(map[string]any{"day": "soon"}).blames("/day format")
	enter(map[string]any{"name": ""}).blames("/name required")
	enter(map[string]any{"is_open": nil}).blames("/is_open required")
	e.agree(enter(nil).want(http.StatusAccepted), admin)
	enter(nil).refused(exchange.CodeStateConflict)
	next := exchange.DateOf(e.server.now()).AddDate(0, 0, 41).Format(time.DateOnly)
	if before := e.do(get, path+"?from_day=2020-01-01&to_day="+day, nil, admin.auth()).want(http.StatusOK).object(); strings.Contains(fmt.Sprint(before), "Idd-ul-Fitr") {
		t.Errorf("listed before the day %v", before)
	}
	list := e.do(get, path+"?from_day="+day+"&to_day="+next, nil, admin.auth()).want(http.StatusOK).object()
	got := list["bank_days"].([]any)[0].(map[string]any)
	if list["total"] != 1.0 || got["day"] != day || got["is_open"] != false || got["name"] != "Idd-ul-Fitr" || got["change_id"] == nil {
		t.Errorf("listed %v", list)
	}
}

func TestAutomaticLimitsAreRaisedByTwo(t *testing.T) {
	const path = "/api/v1/auth/otc/limits"
	e := start(t)
	admin, officer, merchant := e.person(exchange.RoleAdmin), e.person(exchange.RoleTreasury), e.person(exchange.RoleVendor)
	set := func(merchant any, automatic any) *reply {
		body := map[string]any{"automatic": automatic}
		if merchant != nil {
			body["merchant_id"] = merchant
		}
		return e.do(post, path, body, admin.auth())
	}
	set(nil, nil).blames("/automatic required")
	set(nil, "-1").blames("/automatic format")
	set(nil, "0.001").blames("/automatic precision")
	set(officer.ID, "1").blames("/merchant_id role")
	set(newID(), "1").refused(exchange.CodeNotFound)
	set(merchant.ID, "100000.00").refused(exchange.CodeStateConflict)
	e.do(post, path, map[string]any{"automatic": "1"}, merchant.auth()).refused(exchange.CodeForbidden)
	e.do(get, path, nil, merchant.auth()).refused(exchange.CodeForbidden)
	e.agree(set(merchant.ID, "250000").want(http.StatusAccepted), officer)
	set(nil, "50000").want(http.StatusNoContent)
	list := e.do(get, path, nil, officer.auth()).want(http.StatusOK).object()
	got := list["limits"].([]any)
	house, own := got[0].(map[string]any), got[1].(map[string]any)
	if list["total"] != 2.0 || house["merchant_id"] != nil || house["automatic"] != "50000.00" || house["change_id"] != nil || house["entered_by"] != admin.ID.String() ||
		own["merchant_id"] != merchant.ID.String() || own["automatic"] != "250000.00" || own["change_id"] == nil || own["entered_by"] != officer.ID.String() {
		t.Errorf("listed %v", list)
	}
	set(merchant.ID, "0").want(http.StatusNoContent) // all of it needs an officer
	list = e.do(get, path, nil, officer.auth()).want(http.StatusOK).object()
	if own = list["limits"].([]any)[1].(map[string]any); own["automatic"] != "0.00" {
		t.Errorf("none is listed as %v", own)
	}
	set(merchant.ID, "1").want(http.StatusAccepted)
}

func TestSendWithAQuote(t *testing.T) {
	c := newCrossing(t, "100")
	ask := func(who person, change map[string]any) *reply {
		body := map[string]any{"purpose": "transfer", "asset": "USDT", "amount": "12.5"}
		for k, v := range change {
			body[k] = v
		}
		return c.do(post, quotesPath, body, who.auth(), withKey(newID().String()))
	}
	ask(c.sender, nil).refused(exchange.CodeStateConflict) // no rate
	c.rate("128.9", "129.1")
	waits := c.do(post, profilesPath, map[string]any{"scope": "transfer", "asset": "USDT", "fixed": "0.5", "spread_basis_points": 50}, c.admin.auth())
	c.confirm(waits, c.officers[0]).want(http.StatusOK)
	q := ask(c.sender, nil).want(http.StatusCreated)
	got := q.object()
	if got["fiat_amount"] != "1603.00" || got["rate"] != "128.2555" || got["fee"] != "0.500000" || got["total_amount"] != "13.000000" ||
		got["rounding"] != "payee_down_to_whole_shillings" || q.header.Get("Location") != quotesPath+"/"+q.text("id") {
		t.Errorf("quoted %s", q.body)
	}
	if buy := ask(c.sender, map[string]any{"offer_type": "SELL"}).want(http.StatusCreated).object(); buy["fiat_amount"] != "1622.00" || buy["rate"] != "129.7455" {
		t.Errorf("buying costs %v at %v", buy["fiat_amount"], buy["rate"])
	}
	ask(c.sender, map[string]any{"purpose": "swap"}).blames("/purpose enum")
	ask(c.sender, map[string]any{"amount": "0.000001"}).blames("/amount out_of_range")
	ask(c.sender, map[string]any{"supersedes": newID()}).blames("/supersedes not_found")
	ask(c.person(exchange.RoleOTCOfficer), nil).refused(exchange.CodeForbidden)
	c.do(get, quotesPath+"/"+q.text("id"), nil, c.other.auth()).refused(exchange.CodeNotFound)

	with := func(amount, quote string) map[string]any {
		body := sends(amount, map[string]any{"user_id": c.other.ID})
		body["fx_rate_quote_id"] = quote
		return body
	}
	c.send(with("12.5", newID().String())).blames("/fx_rate_quote_id not_found")
	c.send(with("12.4", q.text("id"))).blames("/amount mismatch")
	coin := with("12.5", q.text("id"))
	coin["asset"] = "USDC"
	c.send(coin).blames("/asset mismatch")
	foreign := ask(c.other, nil).want(http.StatusCreated).text("id")
	c.send(with("12.5", foreign)).blames("/fx_rate_quote_id not_found")
	body := with("12.5", q.text("id"))
	sent := c.do(post, transfersPath, body, c.sender.auth(), withKey("k")).want(http.StatusCreated)
	c.do(post, transfersPath, body, c.sender.auth(), withKey("k")).want(http.StatusCreated)
	w := sent.object()
	if w["fiat_amount"] != "1603.00" || w["fiat_currency"] != "KES" || w["fiat_rate"] != "128.2555" || w["fx_rate_quote_id"] != q.text("id") || w["fee"] != "0.500000" ||
		w["fiat_equivalent"].(map[string]any)["rate"] != "129" {
		t.Errorf("sent %s", sent.body)
	}
	used := c.do(get, quotesPath+"/"+q.text("id"), nil, c.sender.auth()).want(http.StatusOK).object()
	if used["status"] != "consumed" || used["object_id"] != w["id"] || used["object_type"] != "transfer" {
		t.Errorf("used %v", used)
	}
	seen := c.do(get, transfersPath+"/"+sent.text("id"), nil, c.other.auth()).want(http.StatusOK).object()
	if seen["fee"] != nil || seen["fx_rate_quote_id"] != nil || seen["fee_profile_id"] != nil || seen["fiat_amount"] != "1603.00" {
		t.Errorf("the recipient sees %v", seen)
	}
	c.send(with("12.5", q.text("id"))).refused(exchange.CodeStateConflict)
	// The fee is also charged without a quote.
	if plain := c.send(sends("1", map[string]any{"user_id": c.other.ID})).want(http.StatusCreated).object(); plain["fee"] != "0.500000" || plain["fiat_amount"] != nil {
		t.Errorf("sent %v", plain)
	}
}

func TestReplayNamesWhatWasChanged(t *testing.T) {
	e := start(t)
	admin, owner := e.person(exchange.RoleAdmin), e.person(exchange.RoleCustomer)
	q := e.quote(owner, "10")
	path := quotesPath + "/" + q.ID.String() + "/replay"
	e.do(post, path, nil, owner.auth()).refused(exchange.CodeForbidden)
	got := e.do(post, path, nil, admin.auth()).want(http.StatusOK).object()
	if got["agrees"] != true || len(got["differs"].([]any)) != 0 || got["hash"] != q.Hash || got["recomputed"].(map[string]any)["fiat_amount"] != q.Price.Fiat.String() {
		t.Errorf("as it is: %v", got)
	}
	storetest.Exec(t, e.store, `ALTER TABLE fx_quotes DISABLE TRIGGER ALL`)
	storetest.Exec(t, e.store, `UPDATE fx_quotes SET fiat_amount = 1`)
	got = e.do(post, path, nil, admin.auth()).want(http.StatusOK).object()
	if got["agrees"] != false || got["differs"].([]any)[0] != "fiat_amount" || got["hash"] == q.Hash {
		t.Errorf("tampered with: %v", got)
	}
	storetest.Exec(t, e.store, `UPDATE fx_quotes SET formula = 'unknown'`)
	if got = e.do(post, path, nil, admin.auth()).want(http.StatusOK).object(); got["recomputed"] != nil {
		t.Errorf("without a formula: %v", got)
	}
}

// A merchant sees a price without a promise, locks it until the next bank day, and finds it in its list.
func TestQuotesOfTheDesk(t *testing.T) {
	const indicative = "/api/v1/auth/pricing/indicative"
	e := start(t)
	admin, merchant, other := e.person(exchange.RoleAdmin), e.person(exchange.RoleVendor), e.person(exchange.RoleVendor)
	storetest.AgreeValuations(t, e.store)
	e.rate("129", "130")
	fees := map[string]any{"scope": "otc_deposit", "fixed": "50", "basis_points": 100, "spread_basis_points": 50}
	e.agree(e.do(post, profilesPath, fees, admin.auth()).want(http.StatusAccepted), e.person(exchange.RoleTreasury))
	e.do(get, indicative, nil, merchant.auth()).blames("query/purpose required", "query/asset required", "query/amount required")
	e.do(get, indicative+"?purpose=otc_deposit&amount=0.5&asset=bogus", nil, merchant.auth()).blames("query/asset enum")
	e.do(get, indicative+"?purpose=otc_deposit&asset=USDT&amount=0.5&amount_side=coins", nil, merchant.auth()).blames("query/amount_side enum")
	const terms = "?purpose=otc_deposit&asset=USDT&amount=10000&amount_side=fiat&offer_type=SELL&network=tron&method=bank"
	said := e.do(get, indicative+terms, nil, merchant.auth()).want(http.StatusOK).object()
	body := map[string]any{
		"purpose": "otc_deposit", "asset": "USDT", "amount": "10000", "amount_side": "fiat", "offer_type": "SELL", "network": "tron", "method": "bank",
	}
	got := e.do(post, quotesPath, body, merchant.auth()).want(http.StatusCreated).object()
	for name, want := range map[string]any{
		"amount": "75.392269", "fiat_amount": "10000.00", "fee": "150.00", "fee_currency": "KES", "total_amount": "75.392269", "rate": "130.65",
		"amount_side": "fiat", "network": "tron", "method": "bank", "formula": "kivuko-price-2",
	} {
		if got[name] != want || said[name] != want {
			t.Errorf("%s is %v, and was said to be %v; want %v", name, got[name], said[name], want)
		}
	}
	if got["pricing_profile_id"] == nil || got["fee_profile_id"] != got["pricing_profile_id"] || said["priced_at"] == nil {
		t.Errorf("quoted %v", got)
	}
	for who, want := range map[*person]float64{&merchant: 1, &other: 0, &admin: 1} {
		list := e.do(get, quotesPath+"?status=active&purpose=otc_deposit", nil, who.auth()).want(http.StatusOK).object()
		if list["total"] != want {
			t.Errorf("the %s sees %v", who.Role, list)
		}
	}
	delete(body, "network")
	e.do(post, quotesPath, body, merchant.auth()).blames("/network required")
	body["network"], body["amount"] = "tron", "10000.5"
	e.do(post, quotesPath, body, merchant.auth()).blames("/amount precision")
}
