package api

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// withdrawal is one of 100 shillings to a phone, which waits for approval.
func (e *env) withdrawal(of person) exchange.Withdrawal {
	e.t.Helper()
	by := principalOf(of)
	storetest.Shillings(e.t, e.store, of.ID, money.Must(money.KES, "1000"))
	to := storetest.Destination(e.t, e.store, exchange.Destination{Kind: exchange.DestinationPhone, Phone: storetest.NewPhone()}, by)
	w, err := storetest.OpenWithdrawal(e.t.Context(), e.store, exchange.WithdrawalRequest{
		ID: newID(), DestinationID: to.ID, Source: money.KES, Payout: money.KES, Amount: money.Must(money.KES, "100"),
	}, by)
	if err == nil {
		_, err = e.store.AdvanceWithdrawal(e.t.Context(), w.ID)
	}
	if err != nil {
		e.t.Fatal(err)
	}
	return w
}

func withdrawalCells() map[string]cell {
	of := func(s scene) uuid.UUID { return s.w.withdrawal(s.merchant()).ID }
	note := fixed(map[string]any{"note": "because"})
	all := map[string]cell{
		"GET " + withdrawalsPath + "/{id}":       {id: of},
		"POST " + withdrawalsPath + "/{id}/hold": {id: of, body: fixed(map[string]any{"reason": "odd"})},
		"POST " + withdrawalsPath + "/{id}/confirm-bank-payout": {id: of, body: fixed(map[string]any{
			"reference": "FT1", "paid_on": "2026-01-31", "amount": "100",
		})},
		"POST " + withdrawalsPath + "/{id}/resolve": {id: of, body: fixed(map[string]any{"outcome": "not_paid", "note": "because"})},
	}
	for _, verb := range []string{"approve", "reject"} {
		all["POST "+withdrawalsPath+"/{id}/"+verb] = cell{id: of, body: fixed(map[string]any{"note": "because", "digest": strings.Repeat("0", 64)})}
	}
	for _, verb := range []string{"unhold", "execute"} {
		all["POST "+withdrawalsPath+"/{id}/"+verb] = cell{id: of, body: note}
	}
	all["POST "+withdrawalsPath+"/{id}/cancel"] = cell{id: of, body: fixed(map[string]any{"reason": "no"})}
	return all
}

// takers are who takes part in withdrawals: a merchant with a subvendor, and officers.
type takers struct {
	*env
	master, agent, rival, boss, treasury, second, desk person
	phone, account, chain                              exchange.Destination
}

func newTakers(t *testing.T) takers {
	t.Helper()
	e := start(t)
	w := takers{env: e, master: e.person(exchange.RoleVendor), rival: e.person(exchange.RoleVendor), boss: e.person(exchange.RoleAdmin)}
	w.agent, w.treasury, w.second, w.desk = e.person(exchange.RoleSubvendor, w.master.ID), e.person(exchange.RoleTreasury), e.person(exchange.RoleTreasury), e.person(exchange.RoleOTCOfficer)
	by := principalOf(w.master)
	storetest.Shillings(t, e.store, w.master.ID, money.Must(money.KES, "100000"))
	storetest.Float(t, e.store, money.Must(money.KES, "100000"))
	storetest.Bank(t, e.store, money.Must(money.KES, "100000"))
	w.phone = storetest.Destination(t, e.store, exchange.Destination{Kind: exchange.DestinationPhone, Phone: storetest.NewPhone()}, by)
	w.account = storetest.Destination(t, e.store, exchange.Destination{
		Kind: exchange.DestinationBank, BankName: "Bank of Examples", AccountName: "Landlord Limited", AccountNumber: "0100200300",
	}, by)
	w.chain = storetest.Destination(t, e.store, exchange.Destination{Kind: exchange.DestinationAddress, Network: exchange.Tron, Address: goodAddress}, by)
	return w
}

// asks requests a withdrawal of shillings.
func (w takers) asks(to exchange.Destination, amount string) *reply {
	w.t.Helper()
	return w.do(post, withdrawalsPath, map[string]any{"destination_id": to.ID, "source_asset": "KES", "payout_asset": "KES", "payout_amount": amount}, w.agent.auth(), freshKey())
}

// verb carries out a verb on a withdrawal.
func (w takers) verb(path, verb string, body map[string]any, by person) *reply {
	w.t.Helper()
	if body == nil {
		body = map[string]any{}
	}
	return w.do(post, path+"/"+verb, body, by.auth(), freshKey())
}

func (w takers) status(path string) string {
	w.t.Helper()
	return w.do(get, path, nil, w.agent.auth()).want(http.StatusOK).text("status")
}

// executed is the path of a withdrawal that one officer approved and another executed.
func (w takers) executed(to exchange.Destination, amount string) string {
	w.t.Helper()
	path := w.asks(to, amount).want(http.StatusCreated).header.Get("Location")
	w.verb(path, "approve", nil, w.boss).want(http.StatusOK)
	w.verb(path, "execute", nil, w.treasury).want(http.StatusOK)
	return path
}

// A merchant requests a withdrawal, one officer approves it and another executes it. Merchants see their own, without who decided.
func TestWithdrawalsTakeThreePeople(t *testing.T) {
	w := newTakers(t)
	w.asks(w.phone, "0").blames("/payout_amount out_of_range")
	w.asks(w.phone, "10.5").blames("/payout_amount precision")
	w.do(post, withdrawalsPath, map[string]any{"destination_id": w.chain.ID, "source_asset": "USDT", "payout_asset": "USDC"}, w.agent.auth(), freshKey()).
		blames("/payout_asset use_transfers", "/source_wallet_id required", "/fx_rate_quote_id required")
	w.do(post, withdrawalsPath, map[string]any{}, w.agent.auth(), freshKey()).blames("/destination_id required", "/source_asset required", "/payout_asset required")
	asked := w.asks(w.phone, "1000").want(http.StatusCreated)
	path, o := asked.header.Get("Location"), asked.object()
	if path != withdrawalsPath+"/"+asked.text("id") || o["status"] != "pending_approval" || o["status_detail"] != "approval" || o["payout_method"] != "momo" ||
		o["payout_amount"] != "1000.00" || o["destination"].(map[string]any)["phone_number"] != w.phone.Phone.Digits() || o["approval_digest"] != nil {
		t.Errorf("requested %v", o)
	}
	for who, code := range map[*person]exchange.Code{&w.agent: exchange.CodeForbidden, &w.master: exchange.CodeForbidden, &w.desk: exchange.CodeForbidden} {
		w.verb(path, "approve", nil, *who).refused(code)
		w.verb(path, "execute", nil, *who).refused(code)
	}
	w.verb(path, "execute", nil, w.treasury).refused(exchange.CodeStateConflict)
	w.do(get, path, nil, w.rival.auth()).refused(exchange.CodeNotFound)
	w.verb(path, "cancel", nil, w.rival).refused(exchange.CodeNotFound)
	pending := w.do(get, "/api/v1/auth/approvals/pending", nil, w.boss.auth()).want(http.StatusOK).object()["withdrawals"].([]any)
	if len(pending) != 1 || pending[0].(map[string]any)["workflow_id"] != workflows.WithdrawalID(uuid.MustParse(asked.text("id"))) {
		t.Errorf("what waits is %v", pending)
	}
	o = w.verb(path, "approve", map[string]any{"note": "known"}, w.boss).want(http.StatusOK).object()
	if said := o["approvals"].([]any); o["status"] != "approved" || len(said) != 1 || said[0].(map[string]any)["officer_id"] != w.boss.ID.String() {
		t.Errorf("approved %v", o)
	}
	w.verb(path, "execute", nil, w.boss).refused(exchange.CodeForbidden)
	if o = w.verb(path, "execute", nil, w.treasury).want(http.StatusOK).object(); o["status"] != "executing" || o["executed_by"] != w.treasury.ID.String() {
		t.Errorf("executed %v", o)
	}
	w.verb(path, "cancel", nil, w.agent).refused(exchange.CodeStateConflict)
	mine := w.do(get, path, nil, w.agent.auth()).want(http.StatusOK).object()
	if mine["executed_by"] != nil || mine["confirmations"] != nil || mine["approvals"].([]any)[0].(map[string]any)["officer_id"] != nil || mine["approvals_given"] != 1.0 {
		t.Errorf("the merchant sees %v", mine)
	}
	count := func(by person, query string) float64 {
		return w.do(get, withdrawalsPath+query, nil, by.auth()).want(http.StatusOK).object()["total"].(float64)
	}
	if count(w.agent, "?status=executing&payout_method=momo") != 1 || count(w.rival, "") != 0 || count(w.desk, "?merchant_id="+w.master.ID.String()) != 1 || count(w.desk, "?payout_method=bank") != 0 {
		t.Error("the lists differ")
	}
}

// Officers stop a withdrawal and let it go on; a token for a signal is for one of them; the merchant gives up what was not executed.
func TestWithdrawalsAreHeldAndCancelled(t *testing.T) {
	w := newTakers(t)
	path := w.asks(w.account, "500.50").want(http.StatusCreated).header.Get("Location")
	w.verb(path, "hold", nil, w.desk).blames("/reason required")
	w.verb(path, "hold", map[string]any{"reason": "call them"}, w.agent).refused(exchange.CodeForbidden)
	w.verb(path, "hold", map[string]any{"reason": "call them"}, w.desk).want(http.StatusOK)
	w.verb(path, "unhold", nil, w.desk).refused(exchange.CodeForbidden)
	w.verb(path, "unhold", map[string]any{"note": "called"}, w.second).want(http.StatusOK)
	o := w.do(get, path, nil, w.boss.auth()).want(http.StatusOK).object()
	token := w.do(post, "/api/v1/auth/approvals/tokens", map[string]any{
		"object_type": "otc_withdrawal", "object_id": o["id"], "action": "approve", "amount": "500.50", "digest": o["approval_digest"],
	}, w.boss.auth()).want(http.StatusCreated).object()
	if token["asset"] != "KES" || token["signal"] != workflows.SignalApprove || token["workflow_id"] != workflows.WithdrawalID(uuid.MustParse(o["id"].(string))) {
		t.Errorf("the token is %v", token)
	}
	w.verb(path, "reject", map[string]any{"note": "not theirs"}, w.treasury).want(http.StatusOK)
	if got := w.status(path); got != "rejected" {
		t.Errorf("rejected it is %s", got)
	}
	path = w.asks(w.account, "500.50").want(http.StatusCreated).header.Get("Location")
	w.verb(path, "hold", map[string]any{"reason": "suspected fraud"}, w.desk).want(http.StatusOK)
	seen := func(by person, want any) {
		t.Helper()
		if got := w.do(get, path, nil, by.auth()).want(http.StatusOK).object()["reason"]; got != want {
			t.Errorf("of the hold %s reads %v, want %v", by.Role, got, want)
		}
	}
	seen(w.desk, "suspected fraud")
	seen(w.agent, nil)
	if o := w.verb(path, "cancel", nil, w.master).want(http.StatusOK).object(); o["status"] != "cancelled" || o["reason"] != nil {
		t.Errorf("cancelled %v", o)
	}
	path = w.asks(w.account, "500.50").want(http.StatusCreated).header.Get("Location")
	if o := w.verb(path, "cancel", map[string]any{"reason": "changed our mind"}, w.master).want(http.StatusOK).object(); o["status"] != "cancelled" || o["reason"] != "changed our mind" {
		t.Errorf("cancelled %v", o)
	}
}

// What the bank has paid one officer confirms, and above a value two.
func TestWithdrawalsAreConfirmedAtTheBank(t *testing.T) {
	w := newTakers(t)
	storetest.Patch(t, w.store, store.LimitPatch{Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{
		exchange.ApproveBankPayout: {OneAbove: money.Must(money.KES, "1000"), TwoAbove: money.Must(money.KES, "1000")},
	}})
	reserve := func(path string) {
		if _, err := w.store.BeginWithdrawalBank(t.Context(), uuid.MustParse(path[len(withdrawalsPath)+1:])); err != nil {
			t.Fatal(err)
		}
	}
	day := exchange.DateOf(w.server.now()).Format("2006-01-02")
	said := func(reference, amount string) map[string]any {
		return map[string]any{"reference": reference, "paid_on": day, "amount": amount}
	}
	small := w.executed(w.account, "900")
	w.verb(small, "confirm-bank-payout", said("FT-1", "900"), w.treasury).refused(exchange.CodeStateConflict) // nothing is reserved yet
	reserve(small)
	w.verb(small, "confirm-bank-payout", said("FT-1", "901"), w.treasury).blames("/amount mismatch")
	w.verb(small, "confirm-bank-payout", said("—", "900"), w.treasury).blames("/reference format")
	if o := w.verb(small, "confirm-bank-payout", said("FT-1", "900"), w.treasury).want(http.StatusOK).object(); o["status"] != "completed" || o["bank_reference"] != "FT1" {
		t.Errorf("confirmed %v", o)
	}
	large := w.executed(w.account, "5000")
	reserve(large)
	w.verb(large, "confirm-bank-payout", said("FT-1", "5000"), w.treasury).refused(exchange.CodeConflict) // it paid the other one
	w.verb(large, "confirm-bank-payout", said("FT-2", "5000"), w.treasury).want(http.StatusAccepted)
	w.verb(large, "confirm-bank-payout", said("FT-2", "5000"), w.treasury).refused(exchange.CodeConflict)
	w.verb(large, "confirm-bank-payout", said("FT-3", "5000"), w.second).refused(exchange.CodeConflict)
	if o := w.verb(large, "confirm-bank-payout", said("ft 2", "5000"), w.second).want(http.StatusOK).object(); o["status"] != "completed" || len(o["confirmations"].([]any)) != 2 {
		t.Errorf("confirmed by two %v", o)
	}
	w.verb(large, "resolve", map[string]any{"outcome": "paid", "receipt": "UKL0000001"}, w.second).refused(exchange.CodeStateConflict)
}

// What became of a payout without an answer two officers say: that it was paid, or that it was not. Each takes effect with the second.
func TestWithdrawalsWithoutAnAnswerAreResolvedByTwo(t *testing.T) {
	w := newTakers(t)
	storetest.Exec(t, w.store, `UPDATE refund_policy SET unknown_seconds = 0`)
	unheard := func() (string, uuid.UUID) {
		path := w.executed(w.phone, "1000")
		id := uuid.MustParse(path[len(withdrawalsPath)+1:])
		a, err := w.store.BeginPayout(t.Context(), exchange.WithdrawalObject(id), exchange.PaymentAttempt{
			ID: newID(), Provider: "daraja", CallbackToken: id.String(), WorkflowID: workflows.MomoPayoutID(exchange.WithdrawalObject(id)),
		})
		if err == nil {
			_, err = w.store.RecordSubmission(t.Context(), a.ID, exchange.Submission{State: exchange.Accepted})
		}
		if err != nil {
			t.Fatal(err)
		}
		return path, id
	}
	decide := func(waits *reply, flow string) {
		t.Helper()
		change := waits.want(http.StatusAccepted).object()["changes"].([]any)[0].(map[string]any)["id"].(string)
		w.flows.reset()
		w.do(post, "/api/v1/auth/approvals/changes/"+change+"/confirm", map[string]any{}, w.treasury.auth(), freshKey()).refused(exchange.CodeForbidden)
		w.do(post, "/api/v1/auth/approvals/changes/"+change+"/confirm", map[string]any{}, w.boss.auth(), freshKey()).want(http.StatusOK)
		if !slices.Contains(w.flows.calls, flow) {
			t.Errorf("flows were notified: %v, want %s", w.flows.calls, flow)
		}
	}
	path, id := unheard()
	w.verb(path, "resolve", map[string]any{"outcome": "paid"}, w.treasury).blames("/receipt required")
	w.verb(path, "resolve", map[string]any{"outcome": "paid", "receipt": "no"}, w.treasury).blames("/receipt receipt")
	w.verb(path, "resolve", map[string]any{"outcome": "not_paid"}, w.treasury).blames("/note required")
	w.verb(path, "resolve", map[string]any{"outcome": "retry"}, w.desk).refused(exchange.CodeForbidden)
	w.verb(path, "resolve", map[string]any{"outcome": "retry"}, w.treasury).want(http.StatusOK)
	decide(w.verb(path, "resolve", map[string]any{"outcome": "paid", "receipt": "UKL0000001"}, w.treasury), "command flow "+workflows.WithdrawalID(id))

	path, id = unheard()
	decide(w.verb(path, "resolve", map[string]any{"outcome": "not_paid", "note": "not in the portal"}, w.treasury), "command flow "+workflows.WithdrawalID(id))

	path = w.executed(w.phone, "1000") // nothing was begun
	id = uuid.MustParse(path[len(withdrawalsPath)+1:])
	decide(w.verb(path, "resolve", map[string]any{"outcome": "not_paid", "note": "they don't want it"}, w.treasury), "look at "+id.String())
	if got := w.status(path); got != "failed" {
		t.Errorf("ended by two it is %s", got)
	}
}

// Shillings for crypto of the treasury: the executing treasury officer's transfer carries them out.
func TestWithdrawalsBuyCryptoByATransfer(t *testing.T) {
	w := newTakers(t)
	coffer := storetest.TreasuryWallet(t, w.store, exchange.Tron)
	storetest.Deposit(t, w.store, coffer.ID, money.Must(money.USDT, "1000"))
	storetest.Rate(t, w.store, store.RateEntry{Base: money.USDT, Bid: decimal.NewFromInt(129), Ask: decimal.NewFromInt(130)})
	storetest.AgreeValuations(t, w.store)
	fees := exchange.FeeProfile{ID: newID(), FeeLine: exchange.FeeLine{Scope: exchange.FeeWithdrawal}, Fixed: money.Zero(money.KES), Minimum: money.Zero(money.KES)}
	if err := storetest.Agreed(t, w.store)(w.store.ProposeProfile(t.Context(), fees, principalOf(w.boss))); err != nil {
		t.Fatal(err)
	}
	q, err := w.store.OpenQuote(t.Context(), store.QuoteRequest{
		ID: newID(), Purpose: exchange.QuoteForWithdrawal, Side: exchange.QuoteBuy, Amount: money.Must(money.KES, "1300"), Asset: money.USDT, Network: exchange.Tron, Method: exchange.FeeByChain,
	}, principalOf(w.agent))
	if err != nil {
		t.Fatal(err)
	}
	asked := w.do(post, withdrawalsPath, map[string]any{"destination_id": w.chain.ID, "source_asset": "KES", "payout_asset": "USDT", "fx_rate_quote_id": q.ID}, w.agent.auth(), freshKey()).
		want(http.StatusCreated)
	path, o := asked.header.Get("Location"), asked.object()
	if o["fee_profile_id"] != fees.ID.String() || o["pricing_profile_id"] != fees.ID.String() {
		t.Errorf("its fees are %v, an alias of %v", o["fee_profile_id"], o["pricing_profile_id"])
	}
	if o["payout_amount"] != "10.000000" || o["source_amount"] != "1300.00" || o["rate"] != "130" || o["status"] != "pending_approval" {
		t.Errorf("requested %v", o)
	}
	w.verb(path, "approve", nil, w.second).want(http.StatusOK)
	w.verb(path, "execute", nil, w.boss).refused(exchange.CodeForbidden)   // an admin sends no crypto of the treasury
	w.verb(path, "execute", nil, w.second).refused(exchange.CodeForbidden) // who approved it; the transfer beside it is refused with it
	var open int
	if err := storetest.Owner(t, w.store).QueryRow(`SELECT count(*) FROM intents WHERE kind = 'transfer.open' AND refused_at IS NULL`).Scan(&open); err != nil || open != 0 {
		t.Errorf("%d transfers may still be opened, %v", open, err)
	}
	if o := w.verb(path, "execute", nil, w.treasury).want(http.StatusOK).object(); o["status"] != "executing" || o["status_detail"] != "transfer" {
		t.Errorf("executed %v", o)
	}
}
