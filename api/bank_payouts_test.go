package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

const bankPath = "/api/v1/auth/bank-payouts"

// atBank is an order of 10 USDT whose 1293 KES wait in the treasury's queue.
func atBank(t *testing.T) (*env, exchange.Order) {
	t.Helper()
	e := start(t)
	m := storetest.NewSellers(t, e.store)
	o := storetest.TakeCrypto(t, e.store, m.RemittanceToBank(t, e.store))
	if _, err := e.store.BeginBankPayout(t.Context(), o.ID); err != nil {
		t.Fatal(err)
	}
	return e, o
}

// dayOf is the day of a moment in Kenya. The bank may have paid an order on the day of its opening or later.
func dayOf(at time.Time) string {
	return at.In(time.FixedZone("EAT", 3*60*60)).Format(time.DateOnly)
}

func (e *env) confirmBank(who person, o exchange.Order, reference string) *reply {
	e.t.Helper()
	return e.do(post, "/api/v1/auth/orders/"+o.ID.String()+"/confirm-bank-payout",
		map[string]any{"reference": reference, "paid_on": dayOf(o.CreatedAt), "amount": "1293"}, who.auth(), withKey(newID().String()))
}

// An officer sees what to pay to whom, pays it, and names the bank's reference: the order is completed.
func TestOfficerPaysByBank(t *testing.T) {
	e, o := atBank(t)
	officer := e.person(exchange.RoleTreasury)
	for query, want := range map[string]int{"": 1, "?status=processing": 1, "?status=pending": 0, "?status=completed": 0} {
		if list := e.do(get, bankPath+query, nil, officer.auth()).want(http.StatusOK).object()["bank_payouts"].([]any); len(list) != want {
			t.Errorf("%s: %d", query, len(list))
		}
	}
	b := e.do(get, bankPath+"/"+o.ID.String(), nil, officer.auth()).want(http.StatusOK).object()
	for name, want := range map[string]any{
		"order_id": o.ID.String(), "status": "processing", "status_detail": "bank", "amount": "1293.00", "currency": "KES", "payment_reference": o.PaymentReference,
		"beneficiary_account_name": "Amina Otieno", "beneficiary_account_number": "0011223344", "beneficiary_bank_name": "Bank of Examples",
		"beneficiary_bank_code": "01", "beneficiary_swift_code": nil, "sender_name": "Jane Roe", "second_person_required": false, "bank_reference": nil,
	} {
		if b[name] != want {
			t.Errorf("%s is %v, want %v", name, b[name], want)
		}
	}
	key := newID().String()
	body := map[string]any{"reference": "FT26325XYZ", "paid_on": dayOf(o.CreatedAt), "amount": "1293", "note": "by hand"}
	for range 2 {
		r := e.do(post, "/api/v1/auth/orders/"+o.ID.String()+"/confirm-bank-payout", body, officer.auth(), withKey(key)).want(http.StatusOK).object()
		said := r["confirmations"].([]any)
		if r["status"] != "completed" || r["bank_reference"] != "FT26325XYZ" || r["completed_at"] == nil || len(said) != 1 || said[0].(map[string]any)["note"] != "by hand" {
			t.Errorf("confirmed %v", r)
		}
	}
	if n := e.flows.count(); n != 1 || e.flows.calls[0] != "bank "+o.ID.String() {
		t.Errorf("the flow was notified of %v", e.flows.calls)
	}
	if done := e.do(get, "/api/v1/auth/orders/"+o.ID.String(), nil, officer.auth()).want(http.StatusOK).object(); done["status"] != "completed" {
		t.Errorf("the order is %v", done["status"])
	}
	e.confirmBank(e.person(exchange.RoleAdmin), o, "FT26325XYZ").refused(exchange.CodeStateConflict)
}

// Above the value two officers have to confirm; their confirmations are compared with each other and with the order.
func TestOfficersAtTheBankAgree(t *testing.T) {
	e, o := atBank(t)
	storetest.Exec(t, e.store, `UPDATE approval_rules SET one_above = 1000, two_above = 1000 WHERE object_type = 'bank_payout'`)
	one, two := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin)
	// A lost signal changes nothing: the flow reads the rows.
	e.flows.failWith(exchange.Errorf(exchange.CodeUnavailable, "away"))
	if r := e.confirmBank(one, o, "FT1").want(http.StatusAccepted); r.header.Get("Location") != bankPath+"/"+o.ID.String() ||
		r.object()["confirm_at"].([]any)[0] != "/api/v1/auth/orders/"+o.ID.String()+"/confirm-bank-payout" {
		t.Errorf("after one: %s at %s", r.body, r.header.Get("Location"))
	}
	if r := e.do(get, bankPath+"/"+o.ID.String(), nil, two.auth()).want(http.StatusOK).object(); r["status_detail"] != "bank_second" || r["second_person_required"] != true {
		t.Errorf("after one: %v", r)
	}
	e.confirmBank(two, o, "FT2").refused(exchange.CodeConflict)
	e.do(post, "/api/v1/auth/orders/"+o.ID.String()+"/refuse-bank-payout", map[string]any{"note": "closed"}, two.auth(), withKey(newID().String())).refused(exchange.CodeConflict)
	e.confirmBank(one, o, "FT1").refused(exchange.CodeConflict)
	if r := e.confirmBank(two, o, "ft-1").want(http.StatusOK).object(); r["status"] != "completed" {
		t.Errorf("after two: %v", r["status"])
	}
	a, err := e.store.Account(t.Context(), storetest.BankAccount(t, e.store).Ledger())
	if err != nil || a.Posted.String() != "298707.00" || !a.Held.IsZero() {
		t.Errorf("at the bank are %s, %s held, %v", a.Posted, a.Held, err)
	}
}

// The error names what is wrong in a confirmation.
func TestBankConfirmationIsRead(t *testing.T) {
	e, o := atBank(t)
	officer := e.person(exchange.RoleTreasury)
	path := "/api/v1/auth/orders/" + o.ID.String() + "/confirm-bank-payout"
	for body, blamed := range map[string][]string{
		`{}`: {"/reference required", "/paid_on required", "/amount required"},
		`{"reference": " x", "paid_on": "2026-11-21T00:00:00Z", "amount": "0"}`:         {"/paid_on format", "/amount out_of_range"},
		`{"reference": "x\u00e9", "paid_on": "2026-11-21", "amount": "1293"}`:           {"/reference format"},
		`{"reference": "- / -", "paid_on": "2026-11-21", "amount": "1293"}`:             {"/reference format"},
		`{"reference": "x", "paid_on": "yesterday", "amount": "1293"}`:                  {"/paid_on format"},
		`{"reference": "x", "paid_on": "2001-01-01", "amount": "1293"}`:                 {"/paid_on range"},
		`{"reference": "x", "paid_on": "` + dayOf(o.CreatedAt) + `", "amount": "1292"}`: {"/amount mismatch"},
	} {
		e.do(post, path, body, officer.auth(), withKey(newID().String())).blames(blamed...)
	}
	e.do(post, path, `{"reference": "x", "paid_on": "`+dayOf(o.CreatedAt)+`", "amount": "1293"}`, officer.auth()).refused(exchange.CodeIdempotencyRequired)
	bought := storetest.NewMarket(t, e.store)
	e.confirmBank(officer, bought.Order(t, e.store, "10"), "FT1").refused(exchange.CodeNotFound)
	e.do(get, bankPath+"/"+newID().String(), nil, officer.auth()).refused(exchange.CodeNotFound)
}

// Two officers say that the bank did not pay an order. One alone changes nothing, also the one who named its reference.
func TestBankPayoutIsRefusedByTwo(t *testing.T) {
	e, o := atBank(t)
	storetest.Exec(t, e.store, `UPDATE approval_rules SET one_above = 1000, two_above = 1000 WHERE object_type = 'bank_payout'`)
	one, two := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin)
	path, note := "/api/v1/auth/orders/"+o.ID.String()+"/refuse-bank-payout", map[string]any{"note": "the account is closed"}
	e.do(post, path, map[string]any{}, one.auth(), freshKey()).blames("/note required")
	e.confirmBank(one, o, "FT1").want(http.StatusAccepted)
	e.do(post, path, note, two.auth(), freshKey()).refused(exchange.CodeConflict)
	waits := e.do(post, path, note, one.auth(), freshKey()).want(http.StatusAccepted)
	change := waits.object()["changes"].([]any)[0].(map[string]any)
	if was := change["was"].(map[string]any); change["kind"] != "bank_payout_refusal" || was["account_number"] != "0011223344" || was["references"].([]any)[0] != "FT1" {
		t.Errorf("the second officer sees %v", change)
	}
	e.do(post, changesPath+"/"+change["id"].(string)+"/confirm", map[string]any{"digest": change["digest"]}, one.auth(), freshKey()).refused(exchange.CodeForbidden)
	if b := e.do(get, bankPath+"/"+o.ID.String(), nil, one.auth()).want(http.StatusOK).object(); b["status"] != "processing" {
		t.Errorf("one officer made it %v", b["status"])
	}
	told := e.flows.asked("bank " + o.ID.String())
	e.agree(waits, two)
	if n := e.flows.asked("bank "+o.ID.String()) - told; n != 1 {
		t.Errorf("the flow was told %d times", n)
	}
	if b := e.do(get, bankPath+"/"+o.ID.String(), nil, one.auth()).want(http.StatusOK).object(); b["status"] != "refused" || b["status_detail"] != "operator" || len(b["confirmations"].([]any)) != 0 {
		t.Errorf("refused: %v", b)
	}
	e.do(post, path, note, one.auth(), freshKey()).refused(exchange.CodeStateConflict)
}

// bankCells are the rows of the matrix about payments by bank.
func bankCells() map[string]cell {
	const auth = "/api/v1/auth/"
	order := func(s scene) uuid.UUID { return s.w.paidByBank() }
	return map[string]cell{
		"GET " + auth + "bank-payouts/{id}": {id: order, shared: true},
		"POST " + auth + "orders/{id}/confirm-bank-payout": {id: order, shared: true, body: func(scene) any {
			return map[string]any{"reference": newID().String(), "paid_on": dayOf(time.Now()), "amount": "1293"}
		}},
		"POST " + auth + "orders/{id}/refuse-bank-payout": {id: order, shared: true, body: fixed(map[string]any{"note": "because"})},
	}
}

// paidByBank is an order that waits in the treasury's queue.
func (w *harness) paidByBank() uuid.UUID {
	w.t.Helper()
	storetest.EscrowPool(w.t, w.store, exchange.Tron, 1)
	o := storetest.Market{Customer: w.other.User, Offer: w.buys}.RemittanceToBank(w.t, w.store)
	o = storetest.TakeCrypto(w.t, w.store, o)
	if _, err := w.store.BeginBankPayout(w.t.Context(), o.ID); err != nil {
		w.t.Fatal(err)
	}
	return o.ID
}

// A remittance to a bank account is opened like any other, and an officer's confirmation completes it.
func TestRemittanceGoesToABank(t *testing.T) {
	c := openCounter(t)
	if err := c.store.SeedCatalogs(t.Context()); err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, c.store, `UPDATE countries SET is_active = true WHERE alpha2_code = 'KE'`)
	body := c.sell(map[string]any{
		"order_subtype": "remittance_offramp", "payment_method": "bank", "sender_name": "Jane Roe", "sender_country": "KE", "sender_phone": "+254711111111",
		"beneficiary_account_name": "Amina Otieno", "beneficiary_account_number": "0011223344", "beneficiary_bank_name": "Bank of Examples", "beneficiary_bank_code": "01",
	})
	opened := c.open(c.customer, body).want(http.StatusCreated).object()
	if opened["payment_method"] != "bank" || opened["fiat_amount"] != "1293.00" {
		t.Errorf("opened %v", opened)
	}
	id, err := uuid.Parse(opened["id"].(string))
	if err != nil {
		t.Fatal(err)
	}
	o, err := c.store.Order(t.Context(), store.Everything(), id)
	if err != nil {
		t.Fatal(err)
	}
	o = storetest.TakeCrypto(t, c.store, o)
	storetest.Bank(t, c.store, money.Must(money.KES, "300000"))
	if _, err := c.store.BeginBankPayout(t.Context(), o.ID); err != nil {
		t.Fatal(err)
	}
	officer := c.person(exchange.RoleTreasury)
	if r := c.confirmBank(officer, o, "FT1").want(http.StatusOK).object(); r["status"] != "completed" || r["beneficiary_account_number"] != "0011223344" {
		t.Errorf("confirmed %v", r)
	}
}

// A line that an officer named for a payout by mistake is freed when a second officer agrees.
func TestTwoOfficersFreeALine(t *testing.T) {
	e, o := atBank(t)
	one, two := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin)
	e.confirmBank(e.person(exchange.RoleTreasury), o, "FT2").want(http.StatusOK)
	l := storetest.Line(t, strings.ToUpper(newID().String()[26:]), money.Must(money.KES, "1293"))
	l.Side, l.ValueDate = exchange.SideDebit, exchange.DateOf(o.CreatedAt)
	l.BookedOn = l.ValueDate
	storetest.Statement(t, e.store, storetest.BankAccount(t, e.store), l)
	l = lineWith(t, e, l.BankReference)
	path := treasuryPath + "/statement-lines/" + l.ID.String()
	free := func(who person, note string) *reply {
		return e.do(post, path+"/free", map[string]any{"note": note}, who.auth(), freshKey())
	}
	free(one, "not matched").refused(exchange.CodeStateConflict)
	e.do(post, path+"/match", map[string]any{"object_type": "bank_payout", "object_id": o.ID}, one.auth(), freshKey()).want(http.StatusOK)
	free(one, "").blames("/note required")
	waits := free(one, "it paid the rent").want(http.StatusAccepted).object()
	confirm := waits["confirm_at"].([]any)[0].(string)
	e.do(post, confirm, map[string]any{}, one.auth(), freshKey()).refused(exchange.CodeForbidden)
	e.do(post, confirm, map[string]any{}, two.auth(), freshKey()).want(http.StatusOK)
	if got := e.do(get, path, nil, one.auth()).want(http.StatusOK).object(); got["status"] != "new" || got["object_id"] != nil || got["matched_by"] != nil {
		t.Errorf("the line is %v", got)
	}
}
