package api

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// earn gives a customer's wallet a fee that the house earned there, and the house its treasury.
func (e *env) earn(amount string) exchange.Wallet {
	e.t.Helper()
	e.treasuries.Do(func() { storetest.TreasuryWallet(e.t, e.store, exchange.Tron) })
	w := e.wallet(e.person(exchange.RoleCustomer))
	storetest.Earned(e.t, e.store, w.ID, money.Must(money.USDT, amount))
	return w
}

// sweep is a sweep of earned fees that two officers agreed to.
func (e *env) sweep() uuid.UUID {
	e.t.Helper()
	e.earn("3")
	request := store.FeeSweepRequest{ID: newID(), Network: exchange.Tron, Asset: money.USDT, Least: money.Must(money.USDT, "1")}
	c, err := e.store.ProposeFeeSweep(e.t.Context(), request, principalOf(e.person(exchange.RoleTreasury)))
	if err == nil {
		_, err = e.store.ConfirmChange(e.t.Context(), c.ID, "", principalOf(e.person(exchange.RoleTreasury)))
	}
	if err != nil {
		e.t.Fatal(err)
	}
	all, _, err := e.store.FeeSweeps(e.t.Context(), store.FeeSweepFilter{ChangeID: c.ID}, store.Page{Number: 1, Size: 1})
	if err != nil || len(all) != 1 {
		e.t.Fatal(all, err)
	}
	return all[0].ID
}

// sweepRule is a rule of fee sweeps that two officers agreed to.
func (e *env) sweepRule() uuid.UUID {
	e.t.Helper()
	e.treasuries.Do(func() { storetest.TreasuryWallet(e.t, e.store, exchange.Tron) })
	r := exchange.FeeSweepRule{ID: newID(), Network: exchange.Tron, Asset: money.USDT, Threshold: money.Must(money.USDT, "50"), Least: money.Must(money.USDT, "1")}
	c, err := e.store.ProposeFeeSweepRule(e.t.Context(), r, principalOf(e.person(exchange.RoleTreasury)))
	if err == nil {
		_, err = e.store.ConfirmChange(e.t.Context(), c.ID, "", principalOf(e.person(exchange.RoleTreasury)))
	}
	if err != nil {
		e.t.Fatal(err)
	}
	rules, err := e.store.FeeSweepRules(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	return rules[0].ID
}

// Earned fees are listed where they lie, and go to the treasury when two treasury officers agree.
func TestEarnedFeesAreSweptByTwo(t *testing.T) {
	e := start(t)
	one, two, admin := e.person(exchange.RoleTreasury), e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin)
	w := e.earn("3")
	storetest.EarnedShillings(t, e.store, money.Must(money.KES, "70"))
	fees := e.do(get, feesPath, nil, admin.auth()).want(http.StatusOK).object()
	if all := fees["fees"].([]any); fees["total"] != 2.0 || all[1].(map[string]any)["wallet_id"] != w.ID.String() || all[1].(map[string]any)["available"] != "3.000000" || all[0].(map[string]any)["sweepable"] != true {
		t.Errorf("earned %v", fees)
	}
	propose := func(who person, body map[string]any) *reply {
		return e.do(post, feeSweepsPath, body, who.auth(), freshKey())
	}
	crypto := map[string]any{"asset": "USDT", "network": "tron", "least": "1"}
	propose(admin, crypto).refused(exchange.CodeForbidden)
	propose(one, map[string]any{"asset": "USDT", "amount": "1"}).blames("/network required", "/least required", "/amount forbidden")
	propose(one, map[string]any{"asset": "KES", "network": "tron", "least": "1"}).blames("/amount required", "/network forbidden", "/least forbidden")
	propose(one, map[string]any{"asset": "USDT", "network": "tron", "least": "4"}).refused(exchange.CodeStateConflict)
	waits := propose(one, crypto).want(http.StatusAccepted)
	e.confirmedBy(two, waits).want(http.StatusOK)
	list := e.do(get, feeSweepsPath+"?status=pending&network=tron", nil, admin.auth()).want(http.StatusOK).object()["fee_sweeps"].([]any)
	if len(list) != 1 {
		t.Fatalf("the sweeps are %v", list)
	}
	id := list[0].(map[string]any)["id"].(string)
	if !slices.Contains(e.flows.calls, "sweep fee "+id) {
		t.Error("its flow was not started")
	}
	if f := e.do(get, feeSweepsPath+"/"+id, nil, one.auth()).want(http.StatusOK).object(); f["amount"] != "3.000000" || f["requested_by"] != one.ID.String() || f["scheduled"] != false {
		t.Errorf("the sweep is %v", f)
	}
	e.do(post, feeSweepsPath+"/"+id+"/retry", map[string]any{}, admin.auth(), freshKey()).want(http.StatusAccepted)
	e.do(post, feeSweepsPath+"/"+id+"/refund", map[string]any{"note": "not worth it"}, admin.auth(), freshKey()).want(http.StatusOK)
	e.confirmedBy(two, propose(one, map[string]any{"asset": "KES", "amount": "70"}).want(http.StatusAccepted)).want(http.StatusOK)
	if done := e.do(get, feeSweepsPath+"?status=completed", nil, one.auth()).want(http.StatusOK).object(); done["total"] != 1.0 {
		t.Errorf("booked %v", done)
	}
}

// When fees are swept by themselves is agreed by two treasury officers, and stopped by one.
func TestFeeSweepRulesAreAgreedByTwo(t *testing.T) {
	e := start(t)
	e.earn("3")
	one, two := e.person(exchange.RoleTreasury), e.person(exchange.RoleTreasury)
	rule := map[string]any{"network": "tron", "asset": "USDT", "threshold": "50", "least": "60"}
	e.do(post, sweepRulesPath, rule, one.auth(), freshKey()).blames("/least out_of_range")
	rule["least"] = "1"
	e.confirmedBy(two, e.do(post, sweepRulesPath, rule, one.auth(), freshKey()).want(http.StatusAccepted)).want(http.StatusOK)
	rules := e.do(get, sweepRulesPath, nil, e.person(exchange.RoleAdmin).auth()).want(http.StatusOK).object()["fee_sweep_rules"].([]any)
	if len(rules) != 1 || rules[0].(map[string]any)["threshold"] != "50.000000" || rules[0].(map[string]any)["is_active"] != true {
		t.Fatalf("the rules are %v", rules)
	}
	off := e.do(post, sweepRulesPath+"/"+rules[0].(map[string]any)["id"].(string)+"/switch-off", nil, one.auth()).want(http.StatusOK).object()
	if off["is_active"] != false {
		t.Errorf("it is %v", off)
	}
}
