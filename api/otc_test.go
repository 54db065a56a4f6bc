package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

// otcCells are the rows of the matrix about OTC deposits. Each is a draft, which the state machine refuses to most verbs.
func otcCells() map[string]cell {
	draft := func(s scene) uuid.UUID {
		o, err := storetest.OpenOTC(s.w.t.Context(), s.w.store, exchange.IntendOTCDraft, exchange.OTCRequest{ID: newID()}, principalOf(s.merchant()))
		if err != nil {
			s.w.t.Fatal(err)
		}
		return o.ID
	}
	proven := func(s scene) uuid.UUID {
		id, by := draft(s), s.w.session(s.merchant().User)
		s.w.proofs[id] = uuid.MustParse(strings.TrimSuffix(s.w.prove(by, id).text("proof_url")[len("/otc-deposits-proof/")+37:], ".pdf"))
		return id
	}
	all := map[string]cell{
		"GET " + otcPath + "/{id}": {id: draft}, "GET " + otcPath + "/{id}/audit-trail": {id: draft}, "POST " + otcPath + "/{id}/proof": {id: draft},
		"PATCH " + otcPath + "/{id}/draft":                {id: draft, body: fixed(map[string]any{"fiat_amount": "200"})},
		"GET /otc-deposits-proof/{deposit_id}/{file}.pdf": {id: proven},
		"POST /api/v1/auth/otc/c2b/payments/{id}/match":   {id: func(s scene) uuid.UUID { return s.w.stray() }, shared: true, body: func(s scene) any { return map[string]any{"otc_deposit_id": draft(s)} }},
		"POST " + otcPath: {body: fixed(map[string]any{"method": "bank", "requested_asset": "KES", "fiat_amount": "100"})},
	}
	for verb, body := range map[string]map[string]any{
		"quote": nil, "submit": nil, "claim": nil, "release": nil, "unhold": nil, "assign": nil, "settle": nil, "audit": nil,
		"provide-info": {"info_reply": "yes"}, "cancel": {"reason": "no"}, "hold": {"reason": "odd"}, "request-info": {"info_request": "who?"},
		"reject": {"rejection_reason": "no"}, "confirm": {"received_amount": "1", "value_date": "2026-01-31", "statement_line_id": uuid.Nil},
	} {
		c := cell{id: draft}
		if body != nil {
			c.body = fixed(body)
		}
		all["POST "+otcPath+"/{id}/"+verb] = c
	}
	return all
}

// otcDesk is the API with who takes part in OTC deposits.
type otcDesk struct {
	*env
	merchant, officer, second, treasury, boss person
	bank                                      exchange.HouseBankAccount
}

func newDesk(t *testing.T) otcDesk {
	t.Helper()
	e := start(t)
	return otcDesk{
		e, e.person(exchange.RoleVendor), e.person(exchange.RoleOTCOfficer), e.person(exchange.RoleOTCOfficer), e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin),
		storetest.BankAccount(t, e.store),
	}
}

// step sends a verb.
func (d otcDesk) step(who person, id any, verb string, body map[string]any) *reply {
	d.t.Helper()
	if body == nil {
		body = map[string]any{}
	}
	return d.do(post, otcPath+"/"+id.(string)+"/"+verb, body, who.auth(), freshKey())
}

// prove sends a receipt for a deposit.
func (e *env) prove(p person, id any, more ...formPart) *reply {
	e.t.Helper()
	text, isText := id.(string)
	if !isText {
		text = id.(uuid.UUID).String()
	}
	body, media := sentForm(e.t, append(more, formPart{name: "file", file: "receipt.pdf", value: string(receipt(newID().String()))})...)
	return e.do(post, otcPath+"/"+text+"/proof", body, p.auth(), media).want(http.StatusOK)
}

// shows imports a statement with money that came under a reference, and gives its line.
func (d otcDesk) shows(reference, amount string) exchange.StatementLine {
	d.t.Helper()
	l := storetest.Line(d.t, strings.ToUpper(newID().String()[26:]), money.Must(money.KES, amount))
	l.Reference, l.ValueDate = reference, exchange.DateOf(time.Now())
	l.BookedOn = l.ValueDate
	storetest.Statement(d.t, d.store, d.bank, l)
	return lineWith(d.t, d.env, l.BankReference)
}

func confirmation(l exchange.StatementLine) map[string]any {
	return map[string]any{"received_amount": l.Amount.String(), "value_date": l.ValueDate.Format(time.DateOnly), "statement_line_id": l.ID}
}

// A deposit by bank goes from its draft to its audit by four people, and its merchant sees of it what is the merchant's.
func TestOTCDepositTakesFourPeople(t *testing.T) {
	d := newDesk(t)
	rival := d.person(exchange.RoleVendor)
	made := d.do(post, otcPath+"/draft", map[string]any{"requested_asset": "KES", "sender_account_name": "Amina"}, d.merchant.auth(), freshKey()).want(http.StatusCreated)
	draft := made.object()
	id, path := draft["id"], made.header.Get("Location")
	if draft["status"] != "draft" || draft["status_detail"] != "submit" || draft["method"] != nil || draft["fee_amount"] != "0.00" || path != otcPath+"/"+id.(string) {
		t.Errorf("drafted %v", draft)
	}
	d.step(d.merchant, id, "submit", nil).refused(exchange.CodeInvalid)
	edited := d.do(patch, path+"/draft", map[string]any{
		"method": "bank", "fiat_amount": "1500.50", "sender_account_number_last4": "4321", "sender_bank_name": "Equity", "sender_account_name": nil,
	}, d.merchant.auth()).want(http.StatusOK).object()
	if edited["fiat_amount"] != "1500.50" || edited["sender_account_name"] != nil || edited["sender_bank_name"] != "Equity" || edited["requested_asset"] != "KES" || edited["version"] != 2.0 {
		t.Errorf("edited %v", edited)
	}
	pending := d.step(d.merchant, id, "submit", nil).want(http.StatusOK).object()
	to, _ := pending["pay_to"].(map[string]any)
	if pending["status"] != "pending" || pending["status_detail"] != "money" || to["account_number"] != d.bank.AccountNumber || to["payment_reference"] != pending["payment_reference"] {
		t.Fatalf("submitted %v", pending)
	}
	d.do(patch, path+"/draft", map[string]any{"fiat_amount": "1"}, d.merchant.auth()).refused(exchange.CodeStateConflict)
	proven := d.prove(d.merchant, id, formPart{name: "receipt_number", value: "R-1"}, formPart{name: "transfer_date", value: "2026-01-31T12:00:00Z"})
	url := proven.text("proof_url")
	if o := proven.object(); o["receipt_number"] != "R-1" || o["proof_file_name"] != "receipt.pdf" || o["proof_mime_type"] != "application/pdf" || o["status"] != "pending" {
		t.Errorf("proven %v", o)
	}
	for _, reader := range []person{d.merchant, d.officer, d.treasury} {
		if got := d.do(get, url, nil, reader.auth()).want(http.StatusOK); got.header.Get("Content-Type") != "application/pdf" {
			t.Errorf("the proof is %s", got.header.Get("Content-Type"))
		}
	}
	d.do(get, url, nil, rival.auth()).refused(exchange.CodeNotFound)
	d.do(get, strings.Replace(url, url[len(url)-40:len(url)-4], d.file(d.merchant).String(), 1), nil, d.merchant.auth()).refused(exchange.CodeNotFound)
	d.do(get, url, nil).refused(exchange.CodeUnauthenticated)

	l := d.shows("payment "+pending["payment_reference"].(string), "1500.50")
	d.step(d.second, id, "confirm", confirmation(l)).refused(exchange.CodeStateConflict)
	d.step(d.officer, id, "claim", nil).want(http.StatusOK)
	wrong := confirmation(l)
	wrong["received_amount"] = "1500"
	d.step(d.officer, id, "confirm", wrong).blames("/received_amount mismatch")
	confirmed := d.step(d.officer, id, "confirm", confirmation(l)).want(http.StatusOK).object()
	if confirmed["status"] != "confirmed" || confirmed["confirmed_by"] != d.officer.ID.String() || confirmed["statement_line_id"] != l.ID.String() || confirmed["pay_to"] != nil {
		t.Errorf("confirmed %v", confirmed)
	}
	settled := d.step(d.treasury, id, "settle", map[string]any{"internal_note": "compared"}).want(http.StatusOK).object()
	if settled["status"] != "credited" || settled["internal_note"] != "compared" {
		t.Errorf("settled %v", settled)
	}
	d.step(d.treasury, id, "audit", nil).refused(exchange.CodeForbidden)
	d.step(d.boss, id, "audit", nil).want(http.StatusOK)
	seen := d.do(get, path, nil, d.merchant.auth()).want(http.StatusOK).object()
	for _, hidden := range []string{"internal_note", "flags", "assigned_to", "claimed_by", "confirmed_by", "credited_by", "audited_by", "bank_reference"} {
		if seen[hidden] != nil {
			t.Errorf("the merchant sees %s: %v", hidden, seen[hidden])
		}
	}
	var trail []any
	for after, pages := "", 0; pages == 0 || after != ""; pages++ {
		page := d.do(get, path+"/audit-trail?page_size=4"+after, nil, d.officer.auth()).want(http.StatusOK).object()
		if trail = append(trail, page["audit"].([]any)...); len(page["audit"].([]any)) > 4 || page["deposit_id"] != id {
			t.Fatalf("page %d is %v", pages, page)
		}
		if after = ""; page["has_more"] == true {
			after = "&after=" + page["next_after"].(string)
		}
	}
	if first := trail[0].(map[string]any); first["action"] != "otc_deposit.draft" || first["actor"] != "user:"+d.merchant.ID.String() || len(trail) < 10 {
		t.Errorf("%d records, the first is %v", len(trail), first)
	}
}

// The crypto of a deposit is a transfer of the settling officer, which other officers approve.
func TestOTCDepositForCrypto(t *testing.T) {
	d := newDesk(t)
	d.rate("129", "130")
	storetest.AgreeValuations(t, d.store)
	wallet, coffer := d.wallet(d.merchant), storetest.TreasuryWallet(t, d.store, exchange.Tron)
	storetest.Deposit(t, d.store, coffer.ID, money.Must(money.USDT, "1000"))
	body := map[string]any{"method": "bank", "requested_asset": "USDT", "requested_network": "tron", "fiat_amount": "13000"}
	open := func(change map[string]any) *reply {
		all := map[string]any{}
		for _, m := range []map[string]any{body, change} {
			for k, v := range m {
				all[k] = v
			}
		}
		return d.do(post, otcPath, all, d.merchant.auth(), freshKey())
	}
	open(map[string]any{"requested_network": nil}).blames("/requested_network required")
	open(map[string]any{"fiat_amount": "13000.50"}).blames("/fiat_amount precision")
	open(map[string]any{"fx_rate_quote_id": newID()}).blames("/fx_rate_quote_id not_found")
	open(map[string]any{"requested_asset": "KES"}).blames("/requested_network forbidden")
	draft := d.do(post, otcPath+"/draft", body, d.merchant.auth(), freshKey()).want(http.StatusCreated).object()
	d.step(d.merchant, draft["id"], "submit", nil).refused(exchange.CodeStateConflict)
	quoted := d.step(d.merchant, draft["id"], "quote", nil).want(http.StatusOK).object()
	if quoted["status"] != "quoted" || quoted["requested_crypto_amount"] != "100.000000" || quoted["quote_expires_at"] == nil {
		t.Errorf("quoted %v", quoted)
	}
	d.step(d.merchant, draft["id"], "quote", map[string]any{"fx_rate_quote_id": newID(), "take_kes": true}).blames("/fx_rate_quote_id forbidden")
	o := open(nil).want(http.StatusCreated).object()
	if o["status"] != "pending" || o["usdt_amount"] != "100.000000" || o["rate"] != "130" || o["credited_to_address"] != wallet.Address || o["fx_rate_quote_id"] == nil {
		t.Fatalf("opened %v", o)
	}
	id := o["id"]
	l := d.shows(o["payment_reference"].(string), "13000")
	d.step(d.officer, id, "claim", nil).want(http.StatusOK)
	d.step(d.officer, id, "confirm", confirmation(l)).want(http.StatusOK)
	// A settlement that is refused leaves no transfer behind that could still be opened.
	storetest.Exec(t, d.store, `UPDATE users SET is_active = false WHERE id = $1`, d.officer.ID)
	d.step(d.treasury, id, "settle", nil).refused(exchange.CodeStateConflict)
	var left int
	if err := storetest.Owner(t, d.store).QueryRowContext(t.Context(), `SELECT count(*) FROM intents WHERE kind = 'transfer.open' AND used_at IS NULL AND refused_at IS NULL`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d transfers wait for a refused settlement, %v", left, err)
	}
	d.step(d.second, id, "claim", nil).want(http.StatusOK)
	d.step(d.second, id, "confirm", confirmation(l)).want(http.StatusOK)
	if got := d.step(d.treasury, id, "settle", nil).want(http.StatusOK).object(); got["status"] != "settling" || got["status_detail"] != "transfer" || got["credited_by"] != d.treasury.ID.String() {
		t.Errorf("settled %v", got)
	}
	read, err := d.store.OTCDepositByID(t.Context(), uuid.MustParse(id.(string)))
	if err != nil {
		t.Fatal(err)
	}
	i, err := d.store.Intent(t.Context(), read.TransferIntentID)
	if err != nil || i.By.UserID != d.treasury.ID {
		t.Fatalf("the transfer is asked for by %s, %v", i.By.UserID, err)
	}
	r, err := exchange.TransferRequestOf(i)
	if err != nil || r.WalletID != coffer.ID || r.Recipient.WalletID != wallet.ID || !r.Amount.Equal(money.Must(money.USDT, "100")) {
		t.Errorf("the transfer is %+v, %v", r, err)
	}
}

// Officers name who reviews, ask, stop and reject; the queue shows what waits, to staff only.
func TestOTCOfficersRunTheQueue(t *testing.T) {
	d := newDesk(t)
	open := func() map[string]any {
		return d.do(post, otcPath, map[string]any{"method": "bank", "requested_asset": "KES", "fiat_amount": "100"}, d.merchant.auth(), freshKey()).want(http.StatusCreated).object()
	}
	first, second := open(), open()
	d.shows(second["payment_reference"].(string), "90")
	const queue = otcPath + "/queue/pending-bank"
	d.do(get, queue, nil, d.merchant.auth()).refused(exchange.CodeForbidden)
	list := d.do(get, queue+"?method=bank", nil, d.officer.auth()).want(http.StatusOK).object()["deposits"].([]any)
	if len(list) != 2 || list[0].(map[string]any)["id"] != second["id"] || !slices.Equal(list[0].(map[string]any)["flags"].([]any), []any{"amount_differs"}) {
		t.Fatalf("the queue is %v", list)
	}
	assigned := d.step(d.boss, first["id"], "assign", map[string]any{"officer_id": d.second.ID, "internal_note": "you know them"}).want(http.StatusOK).object()
	if assigned["status"] != "assigned" || assigned["assigned_to"] != d.second.ID.String() {
		t.Errorf("assigned %v", assigned)
	}
	if mine := d.do(get, queue+"?assigned_to="+d.second.ID.String(), nil, d.second.auth()).want(http.StatusOK).object(); mine["total"] != 1.0 {
		t.Errorf("the second officer's queue has %v", mine["total"])
	}
	d.step(d.officer, first["id"], "claim", nil).refused(exchange.CodeConflict)
	d.step(d.second, first["id"], "claim", nil).want(http.StatusOK)
	d.step(d.officer, first["id"], "release", nil).refused(exchange.CodeConflict)
	d.step(d.second, first["id"], "request-info", map[string]any{"info_request": "Which account paid?"}).want(http.StatusOK)
	d.step(d.merchant, first["id"], "provide-info", map[string]any{}).blames("/info_reply required")
	answered := d.step(d.merchant, first["id"], "provide-info", map[string]any{"info_reply": "Our own", "file_id": d.file(d.merchant)}).want(http.StatusOK).object()
	if answered["status"] != "claimed" || answered["info_reply"] != "Our own" || answered["claimed_by"] != nil {
		t.Errorf("answered %v", answered)
	}
	d.step(d.second, first["id"], "release", nil).want(http.StatusOK)
	if held := d.step(d.officer, first["id"], "hold", map[string]any{"reason": "odd"}).want(http.StatusOK).object(); held["status"] != "on_hold" || held["held_from"] != "assigned" {
		t.Errorf("held %v", held)
	}
	d.step(d.boss, first["id"], "unhold", nil).want(http.StatusOK)
	d.step(d.merchant, first["id"], "cancel", map[string]any{"reason": "Another bank"}).want(http.StatusOK)
	d.step(d.merchant, second["id"], "cancel", map[string]any{"reason": "Another bank"}).refused(exchange.CodeStateConflict)
	d.step(d.officer, second["id"], "reject", map[string]any{}).blames("/rejection_reason required")
	rejected := d.step(d.officer, second["id"], "reject", map[string]any{"rejection_reason": "Not yours"}).want(http.StatusOK).object()
	if rejected["status"] != "rejected" || rejected["rejection_reason"] != "Not yours" || rejected["status_detail"] != "money_returned" {
		t.Errorf("rejected %v", rejected)
	}
	x := d.do(get, "/api/v1/auth/payment-exceptions?otc_deposit_id="+second["id"].(string), nil, d.treasury.auth()).want(http.StatusOK).object()["payment_exceptions"].([]any)
	if len(x) != 1 || x[0].(map[string]any)["otc_deposit_id"] != second["id"] || x[0].(map[string]any)["amount"] != "90.00" {
		t.Errorf("its money is %v", x)
	}
	flagged := d.do(get, otcPath+"?flag=amount_differs&status=rejected", nil, d.officer.auth()).want(http.StatusOK).object()
	if flagged["total"] != 1.0 {
		t.Errorf("%v are flagged", flagged["total"])
	}
	d.do(get, otcPath+"?flag=amount_differs", nil, d.merchant.auth()).blames("query/flag forbidden")
	if all := d.do(get, otcPath, nil, d.merchant.auth()).want(http.StatusOK).object(); all["total"] != 2.0 {
		t.Errorf("the merchant has %v", all["total"])
	}
	if none := d.do(get, otcPath, nil, d.person(exchange.RoleVendor).auth()).want(http.StatusOK).object(); none["total"] != 0.0 {
		t.Errorf("another merchant sees %v", none["total"])
	}
}

// A request that is repeated with its key settles once, whatever the deposit is meanwhile.
func TestOTCSettlementIsRepeated(t *testing.T) {
	d := newDesk(t)
	o := d.do(post, otcPath, map[string]any{"method": "bank", "requested_asset": "KES", "fiat_amount": "100"}, d.merchant.auth(), freshKey()).want(http.StatusCreated).object()
	l := d.shows(o["payment_reference"].(string), "100")
	d.step(d.officer, o["id"], "claim", nil).want(http.StatusOK)
	d.step(d.officer, o["id"], "confirm", confirmation(l)).want(http.StatusOK)
	key, path := freshKey(), otcPath+"/"+o["id"].(string)+"/settle"
	d.flows.failWith(exchange.Errorf(exchange.CodeUnavailable, "Temporal is away."))
	d.do(post, path, nil, d.treasury.auth(), key).refused(exchange.CodeUnavailable)
	d.flows.failWith(nil)
	for range 2 {
		if got := d.do(post, path, nil, d.treasury.auth(), key).want(http.StatusOK).object(); got["status"] != "credited" {
			t.Errorf("settled %v", got)
		}
	}
	d.step(d.treasury, o["id"], "settle", nil).refused(exchange.CodeStateConflict)
	if a, err := d.store.Account(t.Context(), exchange.Owned(exchange.AccFiatBalance, d.merchant.ID, money.KES)); err != nil || a.Posted.String() != "100.00" {
		t.Errorf("the merchant has %s, %v", a.Posted, err)
	}
	if n, err := d.store.OTCDepositByID(t.Context(), uuid.MustParse(o["id"].(string))); err != nil || n.Status != exchange.OTCCredited {
		t.Errorf("it is %s, %v", n.Status, err)
	}
}

// A draft that comes by another method leaves behind what only the first one has.
func TestOTCDraftsChangeTheirMethod(t *testing.T) {
	d := newDesk(t)
	made := d.do(post, otcPath+"/draft", map[string]any{"method": "momo", "requested_asset": "KES", "fiat_amount": "100"}, d.merchant.auth(), freshKey()).want(http.StatusCreated)
	path := made.header.Get("Location") + "/draft"
	if made.object()["momo_phone_number"] == nil {
		t.Error("no phone would be prompted")
	}
	edited := d.do(patch, path, map[string]any{"method": "bank", "bank_account_id": d.bank.ID}, d.merchant.auth()).want(http.StatusOK).object()
	if edited["momo_phone_number"] != nil || edited["bank_account_id"] != d.bank.ID.String() {
		t.Errorf("edited %v", edited)
	}
	if edited = d.do(patch, path, map[string]any{"method": "c2b"}, d.merchant.auth()).want(http.StatusOK).object(); edited["bank_account_id"] != nil {
		t.Errorf("edited %v", edited)
	}
	d.do(patch, path, map[string]any{"method": "bank", "momo_phone_number": "254712345678"}, d.merchant.auth()).blames("/momo_phone_number forbidden")
}

// A deposit whose flow was lost is asked again when the flow runs: nothing is decided meanwhile.
func TestOTCFlowIsLost(t *testing.T) {
	d := newDesk(t)
	o := d.do(post, otcPath, map[string]any{"method": "bank", "requested_asset": "KES", "fiat_amount": "100"}, d.merchant.auth(), freshKey()).want(http.StatusCreated).object()
	key, path := freshKey(), otcPath+"/"+o["id"].(string)+"/cancel"
	d.flows.failWith(exchange.Errorf(exchange.CodeNotFound, "The flow has ended."))
	d.do(post, path, map[string]any{"reason": "changed my mind"}, d.merchant.auth(), key).refused(exchange.CodeUnavailable)
	d.flows.failWith(nil)
	d.do(post, path, map[string]any{"reason": "changed my mind"}, d.merchant.auth(), key).want(http.StatusOK)
	d.flows.failWith(exchange.Errorf(exchange.CodeNotFound, "The flow has ended."))
	d.step(d.merchant, o["id"], "cancel", map[string]any{"reason": "again"}).refused(exchange.CodeStateConflict)
	d.flows.failWith(nil)
}
