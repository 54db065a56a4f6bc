package api

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// returnable is the exception of 100 shillings that came to the house's bank and that nothing explains.
func (e *env) returnable() exchange.PaymentException {
	e.t.Helper()
	bank := storetest.Bank(e.t, e.store, money.Must(money.KES, "300000")) // beside what other objects of a test need there
	l := storetest.Line(e.t, "IN"+newID().String()[28:], money.Must(money.KES, "100"))
	l.BankReference, l.PartyAccount = exchange.BankReference(l.BankReference), "0110 222 333"
	storetest.Statement(e.t, e.store, bank, l)
	x, err := e.store.Exception(e.t.Context(), lineWith(e.t, e, l.BankReference).ExceptionID)
	if err != nil {
		e.t.Fatal(err)
	}
	return x
}

// bankRefund is a refund by bank whose money is reserved.
func (e *env) bankRefund() uuid.UUID {
	e.t.Helper()
	x := e.returnable()
	c, err := e.store.ProposeBankRefund(e.t.Context(), exchange.BankRefundRequest{
		ID: newID(), ExceptionID: x.ID, Note: "not ours", Payee: exchange.BankPayee{BankName: "Equity Bank", AccountName: "Jane Roe", AccountNumber: "0110222333"},
	}, principalOf(e.person(exchange.RoleTreasury)))
	if err == nil {
		_, err = e.store.ConfirmChange(e.t.Context(), c.ID, "", principalOf(e.person(exchange.RoleTreasury)))
	}
	if err != nil {
		e.t.Fatal(err)
	}
	all, _, err := e.store.ListRefunds(e.t.Context(), store.RefundFilter{ExceptionID: x.ID}, store.Page{Number: 1, Size: 1})
	if err == nil && len(all) == 1 {
		_, err = e.store.BeginBankRefund(e.t.Context(), all[0].ID)
	}
	if err != nil || len(all) != 1 {
		e.t.Fatal(all, err)
	}
	return all[0].ID
}

// bankRefundCells are the rows of the matrix about refunds by bank.
func bankRefundCells() map[string]cell {
	of := func(s scene) uuid.UUID { return s.w.bankRefund() }
	return map[string]cell{
		"POST " + refundsPath + "/{id}/confirm-bank-payout": {id: of, shared: true, body: func(scene) any {
			return map[string]any{"reference": newID().String(), "paid_on": dayOf(time.Now()), "amount": "100"}
		}},
		"POST " + refundsPath + "/{id}/resolve": {id: of, shared: true, body: fixed(map[string]any{"outcome": "not_paid", "note": "because"})},
	}
}

// Shillings of no order go back to an account at a bank when two officers agree to it, and an officer confirms that they were paid.
func TestMoneyGoesBackByBank(t *testing.T) {
	e := start(t)
	one, two, three := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin), e.person(exchange.RoleTreasury)
	x := e.returnable()
	to := map[string]any{"note": "not ours", "bank_name": "Equity Bank", "bank_code": "68", "account_name": "Jane Roe", "account_number": "0110-222 333"}
	with := func(name string, value any) map[string]any {
		body := map[string]any{name: value}
		for k, v := range to {
			if k != name {
				body[k] = v
			}
		}
		return body
	}
	ask := func(body map[string]any) *reply { return e.do(post, verbOf(x, "refund"), body, one.auth(), freshKey()) }
	ask(map[string]any{"note": "not ours"}).blames("/bank_name required", "/account_name required", "/account_number required")
	ask(with("address", "T123")).blames("/address forbidden")
	ask(with("swift_code", "short")).blames("/swift_code format")
	ask(with("account_number", "999")).blames("/payee_reason required")
	waits := ask(to).want(http.StatusAccepted)
	change := waits.object()["changes"].([]any)[0].(map[string]any)
	was := change["was"].(map[string]any)
	if change["kind"] != "bank_refund" || was["sender_account"] != "0110222333" || was["sender_name"] != "Jane Roe" || was["amount"] != "100.00" ||
		change["change"].(map[string]any)["account_number"] != "0110222333" {
		t.Errorf("the second officer sees %v", change)
	}
	e.agree(waits, two)
	if now := ask(to).want(http.StatusOK).object(); now["status"] != "refunding" {
		t.Errorf("asked again: %v", now)
	}
	list := e.do(get, refundsPath+"?rail=bank&status=processing", nil, three.auth()).want(http.StatusOK).object()["refunds"].([]any)
	if len(list) != 1 {
		t.Fatalf("the queue has %v", list)
	}
	f := list[0].(map[string]any)
	payee := f["payee"].(map[string]any)
	if f["status_detail"] != "bank" || f["payment_exception_id"] != x.ID.String() || payee["account_number"] != "0110222333" || payee["bank_code"] != "68" || f["bank_account_id"] == nil {
		t.Errorf("the refund is %v", f)
	}
	path := refundsPath + "/" + f["id"].(string)
	paid := func(reference, amount string, by person) *reply {
		body := map[string]any{"reference": reference, "paid_on": dayOf(time.Now()), "amount": amount, "note": "by letter"}
		return e.do(post, path+"/confirm-bank-payout", body, by.auth(), freshKey())
	}
	paid("FT-1", "100", one).refused(exchange.CodeForbidden)
	paid("FT-1", "101", three).blames("/amount mismatch")
	paid("—", "100", three).blames("/reference format")
	e.do(post, path+"/resolve", map[string]any{"outcome": "retry"}, three.auth(), freshKey()).want(http.StatusOK)
	e.do(post, path+"/resolve", map[string]any{"outcome": "not_paid"}, three.auth(), freshKey()).blames("/note required")
	if done := paid("FT-1", "100", three).want(http.StatusOK).object(); done["status"] != "completed" || done["receipt"] != "FT1" {
		t.Errorf("confirmed %v", done)
	}
	paid("FT-1", "100", three).refused(exchange.CodeStateConflict)
	if now := e.do(get, "/api/v1/auth/payment-exceptions/"+x.ID.String(), nil, one.auth()).want(http.StatusOK).object(); now["status"] != "refunded" {
		t.Errorf("the exception is %v", now)
	}
}

// When two officers say that the bank did not pay, the exception is open again.
func TestRefundByBankIsNotPaid(t *testing.T) {
	e := start(t)
	id, officer, second := e.bankRefund(), e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin)
	storetest.Patch(t, e.store, store.LimitPatch{Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{
		exchange.ApproveBankPayout: {OneAbove: money.Must(money.KES, "10"), TwoAbove: money.Must(money.KES, "10")},
	}})
	path := refundsPath + "/" + id.String()
	body := map[string]any{"reference": "FT9", "paid_on": dayOf(time.Now()), "amount": "100"}
	first := e.do(post, path+"/confirm-bank-payout", body, officer.auth(), freshKey()).want(http.StatusAccepted).object()
	if first["confirm_at"].([]any)[0] != path+"/confirm-bank-payout" {
		t.Errorf("the first of two waits for %v", first)
	}
	for _, shown := range []map[string]any{
		e.do(get, path, nil, second.auth()).want(http.StatusOK).object(),
		e.do(get, refundsPath+"?rail=bank", nil, second.auth()).want(http.StatusOK).object()["refunds"].([]any)[0].(map[string]any),
	} {
		said, _ := shown["confirmations"].([]any)
		if len(said) != 1 || shown["begun_at"] == nil {
			t.Fatalf("the second officer sees %v", shown)
		}
		if word := said[0].(map[string]any); word["officer_id"] != officer.ID.String() || word["reference"] != "FT9" || word["amount"] != "100.00" || word["created_at"] == nil {
			t.Errorf("the second officer sees the confirmation %v", word)
		}
	}
	waits := e.do(post, path+"/resolve", map[string]any{"outcome": "not_paid", "note": "the bank refused it"}, officer.auth(), freshKey()).want(http.StatusAccepted)
	e.agree(waits, second) // the officer's own word is taken back
	f := e.do(get, path, nil, officer.auth()).want(http.StatusOK).object()
	x := e.do(get, "/api/v1/auth/payment-exceptions/"+f["payment_exception_id"].(string), nil, officer.auth()).want(http.StatusOK).object()
	if f["status"] != "failed" || f["status_detail"] != "none" || x["status"] != "open" || x["note"] != "the bank refused it" {
		t.Errorf("the refund is %v, the exception %v", f, x)
	}
	if n := e.flows.asked("look at refund " + id.String()); n != 1 {
		t.Errorf("the flow was told %d times", n)
	}
	e.do(post, path+"/resolve", map[string]any{"outcome": "not_paid", "note": "again"}, officer.auth(), freshKey()).refused(exchange.CodeStateConflict)
	if mine := e.do(get, path, nil, e.person(exchange.RoleVendor).auth()); mine.status != http.StatusNotFound {
		t.Errorf("a merchant reads %d", mine.status)
	}
}

// A confirmation to a flow that is not there starts the flow and is carried out: the officer's request is not lost.
func TestAConfirmationStartsTheFlowOfARefund(t *testing.T) {
	e := start(t)
	id, other, officer := e.bankRefund(), e.bankRefund(), e.person(exchange.RoleTreasury)
	e.flows.ended = []string{workflows.BankRefundID(id), workflows.BankRefundID(other)}
	body := map[string]any{"reference": "FT9", "paid_on": dayOf(time.Now()), "amount": "100"}
	done := e.do(post, refundsPath+"/"+id.String()+"/confirm-bank-payout", body, officer.auth(), freshKey()).want(http.StatusOK).object()
	if n := e.flows.asked("refund by bank " + id.String()); n != 1 || done["status"] != "completed" {
		t.Errorf("the flow was started %d times, the refund is %v", n, done)
	}
	e.do(post, refundsPath+"/"+other.String()+"/resolve", map[string]any{"outcome": "retry"}, officer.auth(), freshKey()).want(http.StatusOK)
	if n := e.flows.asked("refund by bank " + other.String()); n != 1 {
		t.Errorf("a retry started the flow %d times", n)
	}
	e.flows.ended = []string{workflows.BankRefundID(id)}
	e.do(post, refundsPath+"/"+id.String()+"/confirm-bank-payout", body, officer.auth(), freshKey()).refused(exchange.CodeStateConflict)
	e.do(post, refundsPath+"/"+id.String()+"/resolve", map[string]any{"outcome": "retry"}, officer.auth(), freshKey()).refused(exchange.CodeStateConflict)
	if n := e.flows.asked("refund by bank " + id.String()); n != 1 {
		t.Errorf("a refund that is over was started %d times", n)
	}
}
