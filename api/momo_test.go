package api

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo/daraja"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

const (
	floatPath      = "/api/v1/auth/momo/float"
	movesPath      = "/api/v1/auth/momo/float/moves"
	termsPath      = "/api/v1/auth/momo/terms"
	closePath      = "/api/v1/auth/momo/breaker/close"
	releasePath    = "/api/v1/auth/momo/release"
	allocationPath = "/api/v1/auth/treasury/allocations"
	inventoryPath  = "/api/v1/auth/treasury/inventory"
)

// collects books shillings into the account that receives payments.
func (e *env) collects(amount string) {
	e.t.Helper()
	m := money.Must(money.KES, amount)
	err := e.store.Post(e.t.Context(), exchange.Posting{Entries: []exchange.Entry{{
		Key: "test:" + newID().String(), Kind: "test", ObjectType: "test", Lines: []exchange.Line{
			exchange.Debit(exchange.House(exchange.AccMomoCollection, money.KES), m), exchange.Credit(exchange.House(exchange.AccCapital, money.KES), m),
		},
	}}})
	if err != nil {
		e.t.Fatal(err)
	}
}

// movedFloat is a movement that an unrelated admin requested.
func (w *harness) movedFloat() uuid.UUID {
	w.t.Helper()
	open, err := w.store.OpenFloatMoves(w.t.Context())
	if err == nil && len(open) > 0 {
		return open[0]
	}
	w.collects("1000")
	id := newID()
	if _, _, err := w.store.BeginFloatMove(w.t.Context(), id, money.Must(money.KES, "10"), principalOf(w.env.person(exchange.RoleAdmin))); err != nil {
		w.t.Fatal(err)
	}
	return id
}

func waiting(r *reply) map[string]any {
	return r.want(http.StatusAccepted).object()["changes"].([]any)[0].(map[string]any)
}

// The float is shown, moved once for a key, settled by another officer, and a large movement waits for a second officer.
func TestFloatIsMoved(t *testing.T) {
	c := newCrossing(t, "1")
	colleague := c.person(exchange.RoleTreasury)
	c.collects("5000000")
	ask := func(who person, body any, key string) *reply {
		return c.do(post, movesPath, body, who.auth(), withKey(key))
	}
	c.do(post, movesPath, map[string]any{"amount": "5"}, c.admin.auth()).refused(exchange.CodeIdempotencyRequired)
	ask(c.admin, map[string]any{"amount": "10.50"}, "cents").blames("/amount precision")
	ask(c.sender, map[string]any{"amount": "10"}, "who").refused(exchange.CodeForbidden)
	first := ask(c.admin, map[string]any{"amount": "50000"}, "one").want(http.StatusCreated).object()
	again := ask(c.admin, map[string]any{"amount": "50000"}, "one").want(http.StatusCreated)
	read := c.do(get, again.header.Get("Location"), nil, colleague.auth()).want(http.StatusOK).object()
	if first["id"] != again.text("id") || first["status"] != "created" || read["id"] != first["id"] || read["amount"] != "50000.00" {
		t.Errorf("%v, again %s, and read %v", first, again.body, read)
	}
	c.do(get, movesPath+"/"+newID().String(), nil, colleague.auth()).refused(exchange.CodeNotFound)
	ask(c.admin, map[string]any{"amount": "60000"}, "two").refused(exchange.CodeConflict)
	id := uuid.MustParse(first["id"].(string))
	if _, _, err := c.store.ClaimFloatMove(t.Context(), exchange.FloatMove{ID: id, CallbackToken: strings.Repeat("a", 64), StatusToken: strings.Repeat("b", 64)}); err != nil {
		t.Fatal(err)
	}
	shown := c.do(get, floatPath, nil, colleague.auth()).want(http.StatusOK).object()
	if moves := shown["open_moves"].([]any); len(moves) != 1 || shown["collection"].(map[string]any)["held"] != "50000.00" || shown["breaker"].(map[string]any)["state"] != "closed" {
		t.Errorf("the float is %v", shown)
	}
	settle := func(who person, body any) *reply {
		return c.do(post, movesPath+"/"+id.String()+"/settle", body, who.auth(), withKey(newID().String()))
	}
	sale := storetest.TakeCrypto(t, c.store, storetest.NewSellers(t, c.store).Sale(t, c.store, "10")).ID
	if err := c.store.SetOrderDetail(t.Context(), sale, exchange.WaitFloat); err != nil {
		t.Fatal(err)
	}
	settle(colleague, map[string]any{"outcome": "completed", "note": "seen"}).blames("/receipt required")
	settle(colleague, map[string]any{"outcome": "failed", "receipt": "X1", "note": "seen"}).blames("/receipt forbidden")
	settle(c.admin, map[string]any{"outcome": "completed", "receipt": "UKL1234567", "note": "seen"}).refused(exchange.CodeForbidden)
	if done := settle(colleague, map[string]any{"outcome": "completed", "receipt": "UKL1234567", "note": "in the statement"}).want(http.StatusOK).object(); done["status"] != "completed" {
		t.Errorf("settled %v", done)
	}
	if !slices.Contains(c.flows.calls, "wake for float "+sale.String()) {
		t.Errorf("a sale that waits for float was not notified: %v", c.flows.calls)
	}
	large := ask(c.admin, map[string]any{"amount": "4000000"}, "large")
	waits := waiting(large)
	if large.header.Get("Location") != changesPath+"/"+waits["id"].(string) {
		t.Errorf("what waits is at %q", large.header.Get("Location"))
	}
	before := c.flows.count()
	c.do(post, changesPath+"/"+waits["id"].(string)+"/confirm", map[string]any{"note": "for payday"}, colleague.auth(), withKey("yes")).want(http.StatusOK)
	if list := c.do(get, movesPath, nil, c.admin.auth()).want(http.StatusOK).object(); list["total"] != 2.0 || c.flows.count() != before+1 {
		t.Errorf("%v movements, %d flows were started", list["total"], c.flows.count()-before)
	}
}

// A refused credential shows on the readiness page and with the float, and an officer closes the breaker with a note.
func TestBreakerShowsAndIsClosed(t *testing.T) {
	w := newHarness(t)
	admin := w.people[exchange.RoleAdmin]
	storetest.Float(t, w.store, money.Must(money.KES, "100000"))
	for range exchange.BreakerHits {
		r, err := w.store.Refund(t.Context(), w.owedBack())
		if err != nil {
			t.Fatal(err)
		}
		a, err := w.store.BeginPayout(t.Context(), exchange.RefundObject(r.ID), exchange.PaymentAttempt{ID: newID(), Provider: daraja.Name, Reference: "Refund"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.store.RecordFailure(t.Context(), a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2001", Class: exchange.ClassCredential}); err != nil {
			t.Fatal(err)
		}
	}
	state := func() any {
		return w.do(get, floatPath, nil, admin.auth()).want(http.StatusOK).object()["breaker"].(map[string]any)["state"]
	}
	ready := w.do(get, "/readyz", nil).object()
	if state() != "open" || ready["dependencies"].(map[string]any)["momo-payouts"].(map[string]any)["status"] != "down" {
		t.Errorf("the breaker is %v, ready %v", state(), ready)
	}
	w.do(post, closePath, map[string]any{}, admin.auth()).blames("/note required")
	w.agree(w.do(post, closePath, map[string]any{"note": "a new password"}, admin.auth()).want(http.StatusAccepted), w.env.person(exchange.RoleTreasury))
	w.do(post, closePath, map[string]any{"note": "once more"}, admin.auth()).refused(exchange.CodeStateConflict)
	w.skew.Add(int64(readyAge))
	// Until the operator accepts a payout, payouts go one at a time.
	if shown := w.do(get, "/readyz", nil).object()["dependencies"].(map[string]any)["momo-payouts"].(map[string]any); shown["status"] != "down" || shown["state"] != "trial" {
		t.Errorf("closed, it is shown as %v", shown)
	}
}

// D4: after the database was put back, requests to the operator go out again when two officers say so, and what waited goes on.
func TestTwoOfficersReleaseTheDatabase(t *testing.T) {
	c := newCrossing(t, "1")
	colleague := c.person(exchange.RoleTreasury)
	order := storetest.NewMarket(t, c.store).Order(t, c.store, "10")
	storetest.Attempt(t, c.store, order) // the first request of a new database releases it
	ask := func(who person, note string) *reply {
		return c.do(post, releasePath, map[string]any{"note": note}, who.auth(), freshKey())
	}
	state := func() any {
		return c.do(get, floatPath, nil, colleague.auth()).want(http.StatusOK).object()["breaker"].(map[string]any)["state"]
	}
	ask(c.admin, "nothing was put back").refused(exchange.CodeStateConflict)
	storetest.PutBack(t, c.store)
	if state() != "moved" {
		t.Errorf("the breaker is %v", state())
	}
	parked := c.parks(workflows.OnRampID(order.ID), workflows.TypeOnRamp, "order", order.ID, workflows.ReasonMomoSuspended, exchange.Tron).WorkflowID
	ask(c.admin, "without a report").refused(exchange.CodeStateConflict)
	balance := money.Must(money.KES, "100000")
	report := exchange.FloatReport{Ticket: "AG_1", Code: "0", At: time.Now(), Accounts: []exchange.FloatAccount{
		{Name: exchange.FloatWorking, Current: balance, Available: balance}, {Name: exchange.FloatUtility, Current: balance, Available: balance},
	}}
	if _, err := c.store.RecordFloatReport(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	ask(c.admin, "").blames("/note required")
	ask(c.sender, "mine").refused(exchange.CodeForbidden)
	waits := waiting(ask(c.admin, "every payout since the backup is settled by its receipt"))
	if waits["kind"] != "database_release" || state() != "moved" {
		t.Errorf("waits %v, and the breaker is %v", waits, state())
	}
	confirm := func(who person) *reply {
		return c.do(post, changesPath+"/"+waits["id"].(string)+"/confirm", nil, who.auth(), freshKey())
	}
	confirm(c.admin).refused(exchange.CodeForbidden)
	before := len(c.flows.calls)
	confirm(colleague).want(http.StatusOK)
	if woken := c.flows.calls[before:]; state() != "closed" || !slices.Contains(woken, "wake for float "+parked) {
		t.Errorf("the breaker is %v, and woken is %v", state(), woken)
	}
	// Repeated, because the answer was lost, it wakes who still waits, and nothing else.
	confirm(colleague).want(http.StatusOK)
	if woken := slices.Compact(c.flows.calls[before:]); state() != "closed" || len(woken) != 1 {
		t.Errorf("confirmed again, the breaker is %v, and woken is %v", state(), woken)
	}
}

// Two officers enter the operator's terms, and every broken rule is named.
func TestMomoTermsAreEnteredByTwo(t *testing.T) {
	c := newCrossing(t, "1")
	colleague := c.person(exchange.RoleTreasury)
	body := func(change func(map[string]any)) map[string]any {
		b := map[string]any{
			"valid_from": time.Now().Add(time.Hour).Format(time.RFC3339), "min_prompt": "1", "max_prompt": "250000", "min_payout": "10", "max_payout": "250000", "payee_day": "500000",
			"tariff": []any{map[string]any{"up_to": "1000", "charge": "0"}, map[string]any{"up_to": "250000", "charge": "11.50"}},
		}
		change(b)
		return b
	}
	ask := func(who person, change func(map[string]any)) *reply {
		return c.do(post, termsPath, body(change), who.auth())
	}
	for rule, change := range map[string]func(map[string]any){
		"/valid_from out_of_range":  func(b map[string]any) { b["valid_from"] = time.Now().Add(-time.Hour).Format(time.RFC3339) },
		"/valid_from format":        func(b map[string]any) { b["valid_from"] = "tomorrow" },
		"/max_payout out_of_range":  func(b map[string]any) { b["max_payout"] = "5" },
		"/payee_day out_of_range":   func(b map[string]any) { b["payee_day"] = "1000" },
		"/min_payout out_of_range":  func(b map[string]any) { b["min_payout"] = "10.50" },
		"/tariff out_of_range":      func(b map[string]any) { b["tariff"] = []any{map[string]any{"up_to": "1000", "charge": "5"}} },
		"/tariff type":              func(b map[string]any) { b["tariff"] = "cheap" },
		"/tariff/0/charge required": func(b map[string]any) { b["tariff"] = []any{map[string]any{"up_to": "250000"}} },
		"/tariff/0/more unknown_field": func(b map[string]any) {
			b["tariff"] = []any{map[string]any{"up_to": "250000", "charge": "1", "more": true}}
		},
		"/tariff/1/up_to out_of_range": func(b map[string]any) {
			b["tariff"] = []any{map[string]any{"up_to": "1000", "charge": "5"}, map[string]any{"up_to": "900", "charge": "5"}}
		},
	} {
		ask(c.admin, change).blames(rule)
	}
	none := func(map[string]any) {}
	ask(c.sender, none).refused(exchange.CodeForbidden)
	waits := waiting(ask(c.admin, none))
	if waits["kind"] != "momo_terms" || waits["was"].(map[string]any)["max_payout"] != "250000" {
		t.Errorf("waits %v", waits)
	}
	c.do(post, changesPath+"/"+waits["id"].(string)+"/confirm", nil, c.admin.auth(), freshKey()).refused(exchange.CodeForbidden)
	c.do(post, changesPath+"/"+waits["id"].(string)+"/confirm", nil, colleague.auth(), freshKey()).want(http.StatusOK)
	list := c.do(get, termsPath, nil, colleague.auth()).want(http.StatusOK).object()
	newest := list["terms"].([]any)[0].(map[string]any)
	if list["total"] != 2.0 || newest["change_id"] != waits["id"] || newest["tariff"].([]any)[1].(map[string]any)["charge"] != "11.50" {
		t.Errorf("the terms are %v", list)
	}
}

// Two officers move shillings to the platform's treasury, and back.
func TestTreasuryIsAllocatedByTwo(t *testing.T) {
	c := newCrossing(t, "1")
	colleague := c.person(exchange.RoleTreasury)
	ask := func(who person, amount, direction string) *reply {
		return c.do(post, allocationPath, map[string]any{"amount": amount, "direction": direction, "note": "sales without an offer"}, who.auth(), withKey(newID().String()))
	}
	ask(c.admin, "0", "in").blames("/amount out_of_range")
	ask(c.admin, "5", "up").blames("/direction enum")
	ask(c.sender, "5", "in").refused(exchange.CodeForbidden)
	confirm := func(waits map[string]any, who person) *reply {
		return c.do(post, changesPath+"/"+waits["id"].(string)+"/confirm", nil, who.auth(), freshKey())
	}
	confirm(waiting(ask(colleague, "500000", "in")), c.admin).want(http.StatusOK)
	confirm(waiting(ask(c.admin, "200000", "out")), colleague).want(http.StatusOK)
	confirm(waiting(ask(c.admin, "300001", "out")), colleague).refused(exchange.CodeInsufficientFunds)
	a, err := c.store.Account(t.Context(), exchange.Owned(exchange.AccFiatBalance, exchange.PlatformTreasury, money.KES))
	if err != nil || a.Posted.String() != "300000.00" {
		t.Errorf("the treasury has %s, %v", a.Posted, err)
	}
}

// Two officers set crypto aside for sale and take some back; others neither see nor change it.
func TestInventoryIsAllocatedByTwo(t *testing.T) {
	c := newCrossing(t, "1")
	colleague := c.person(exchange.RoleTreasury)
	wallet := storetest.TreasuryWallet(t, c.store, exchange.Tron)
	storetest.Deposit(t, c.store, wallet.ID, money.Must(money.USDT, "1000"))
	ask := func(who person, amount, direction string, more map[string]any) *reply {
		body := map[string]any{"wallet_id": wallet.ID.String(), "asset": "USDT", "amount": amount, "direction": direction, "note": "for purchases"}
		maps.Copy(body, more)
		return c.do(post, inventoryPath, body, who.auth(), withKey(newID().String()))
	}
	ask(c.admin, "0", "in", nil).blames("/amount out_of_range")
	ask(c.admin, "5", "up", nil).blames("/direction enum")
	ask(c.admin, "5", "in", map[string]any{"asset": "ETH"}).blames("/asset enum")
	ask(c.admin, "5", "in", map[string]any{"wallet_id": newID().String()}).blames("/wallet_id not_found")
	ask(c.sender, "5", "in", nil).refused(exchange.CodeForbidden)
	c.do(get, inventoryPath, nil, c.sender.auth()).refused(exchange.CodeForbidden)
	confirm := func(waits map[string]any, who person) *reply {
		return c.do(post, changesPath+"/"+waits["id"].(string)+"/confirm", nil, who.auth(), freshKey())
	}
	waits := waiting(ask(colleague, "500", "in", nil))
	confirm(waits, colleague).refused(exchange.CodeForbidden)
	confirm(waits, c.admin).want(http.StatusOK)
	confirm(waiting(ask(c.admin, "200", "out", nil)), colleague).want(http.StatusOK)
	confirm(waiting(ask(c.admin, "300.000001", "out", nil)), colleague).refused(exchange.CodeInsufficientFunds)
	confirm(waiting(ask(c.admin, "700.000001", "in", nil)), colleague).refused(exchange.CodeInsufficientFunds)
	list := c.do(get, inventoryPath, nil, colleague.auth()).want(http.StatusOK).object()["inventories"].([]any)
	if len(list) != 1 {
		t.Fatalf("the inventories are %v", list)
	}
	if i := list[0].(map[string]any); i["allocated_amount"] != "300.000000" || i["available_amount"] != "300.000000" || i["reserved_amount"] != "0.000000" || i["sold_amount"] != "0.000000" ||
		i["wallet_id"] != wallet.ID.String() || i["network"] != "tron" || i["asset"] != "USDT" {
		t.Errorf("the inventory is %v", i)
	}
}

// A notice to the address of a movement is stored only for that movement.
func TestFloatCallbacksAreStored(t *testing.T) {
	w := newHarness(t)
	id, token := w.movedFloat(), strings.Repeat("b", 64)
	if _, _, err := w.store.ClaimFloatMove(t.Context(), exchange.FloatMove{ID: id, CallbackToken: token, StatusToken: token[1:] + "0"}); err != nil {
		t.Fatal(err)
	}
	w.do(post, "/api/v1/callbacks/momo/"+token+"/result", `{"Result":{}}`).want(http.StatusOK)
	w.do(post, "/api/v1/callbacks/momo/"+strings.Repeat("c", 64)+"/result", `{"Result":{}}`).want(http.StatusOK)
	if got, err := w.store.FloatCallbacks(t.Context(), id); err != nil || len(got) != 1 || got[0].Kind != exchange.CallbackResult || got[0].AttemptID != uuid.Nil {
		t.Errorf("stored %+v, %v", got, err)
	}
}
