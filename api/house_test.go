package api

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// houseCells are the rows of the matrix about house money.
func houseCells() map[string]cell {
	const accounts, entries = treasuryPath + "/bank-accounts", treasuryPath + "/journal-entries"
	return map[string]cell{
		"GET " + accounts + "/{id}":   {id: func(s scene) uuid.UUID { return storetest.BankAccount(s.w.t, s.w.store).ID }, shared: true},
		"PATCH " + accounts + "/{id}": {id: closedBankAccount, shared: true, body: fixed(map[string]any{"is_active": false})},
		"GET " + entries + "/{id}": {id: func(s scene) uuid.UUID {
			b := storetest.BankAccount(s.w.t, s.w.store)
			return storetest.Journal(s.w.t, s.w.store, exchange.JournalEntry{Kind: exchange.JournalCapitalIn, BankID: b.ID, Amount: money.Must(money.KES, "100")}).ID
		}, shared: true},
	}
}

// closedBankAccount is an account beside the one that everybody reads.
func closedBankAccount(s scene) uuid.UUID {
	first := storetest.BankAccount(s.w.t, s.w.store)
	all, _, err := s.w.store.BankAccounts(s.w.t.Context(), store.BankAccountFilter{}, store.Page{Number: 1, Size: 2})
	if err != nil {
		s.w.t.Fatal(err)
	}
	for _, b := range all {
		if b.ID != first.ID {
			return b.ID
		}
	}
	return storetest.AddBankAccount(s.w.t, s.w.store, "0100200301").ID
}

// confirmedBy has a colleague confirm the change that an answer says to wait.
func (e *env) confirmedBy(who person, answer *reply) *reply {
	e.t.Helper()
	return e.do(post, changesPath+"/"+waiting(answer)["id"].(string)+"/confirm", nil, who.auth(), freshKey())
}

// An admin proposes where others pay to, and a colleague confirms it. Merchants then see it, without what is in it.
func TestBankAccountsAreAgreedByTwo(t *testing.T) {
	e := start(t)
	const path = treasuryPath + "/bank-accounts"
	admin, officer, vendor, customer := e.person(exchange.RoleAdmin), e.person(exchange.RoleTreasury), e.person(exchange.RoleVendor), e.person(exchange.RoleCustomer)
	body := map[string]any{"bank_name": "Bank of Examples", "bank_code": "01", "branch": "Nairobi", "swift_code": "EXAMKENA", "account_name": "Kivuko Limited", "account_number": "0100-200 300", "currency": "KES"}
	propose := func(who person, change map[string]any) *reply {
		all := map[string]any{}
		for k, v := range body {
			all[k] = v
		}
		for k, v := range change {
			all[k] = v
		}
		return e.do(post, path, all, who.auth(), freshKey())
	}
	propose(officer, nil).refused(exchange.CodeForbidden)
	propose(admin, map[string]any{"bank_code": "a", "swift_code": "EXAM", "currency": "USD", "account_number": "- -"}).
		blames("/bank_code format", "/swift_code format", "/currency enum", "/account_number format")
	propose(admin, map[string]any{"bank_name": nil, "account_name": " "}).blames("/bank_name required", "/account_name required")
	waits := propose(admin, nil)
	id := waiting(waits)["change"].(map[string]any)["id"].(string)
	e.do(get, path+"/"+id, nil, admin.auth()).refused(exchange.CodeNotFound)
	e.confirmedBy(admin, waits).refused(exchange.CodeForbidden)
	e.confirmedBy(officer, waits).want(http.StatusOK)
	propose(admin, nil).refused(exchange.CodeConflict)

	seen := e.do(get, path+"/"+id, nil, vendor.auth()).want(http.StatusOK).object()
	if seen["account_number"] != "0100200300" || seen["is_active"] != true || seen["balance"] != nil || seen["held"] != nil {
		t.Errorf("a merchant sees %v", seen)
	}
	if staff := e.do(get, path+"/"+id, nil, officer.auth()).want(http.StatusOK).object(); staff["balance"] != "0.00" || staff["held"] != "0.00" {
		t.Errorf("staff see %v", staff)
	}
	e.do(get, path, nil, vendor.auth()).blames("query/currency required")
	e.do(get, path, nil, customer.auth()).refused(exchange.CodeForbidden)
	listed := func(who person, query string) float64 {
		return e.do(get, path+query, nil, who.auth()).want(http.StatusOK).object()["total"].(float64)
	}
	if n := listed(vendor, "?currency=KES"); n != 1 {
		t.Errorf("a merchant lists %v", n)
	}
	e.confirmedBy(officer, e.do(patch, path+"/"+id, map[string]any{"branch": "Mombasa", "bank_code": nil}, admin.auth()).want(http.StatusAccepted)).want(http.StatusOK)
	e.do(patch, path+"/"+id, map[string]any{"bank_name": "", "account_number": "1"}, admin.auth()).blames("/bank_name required", "/account_number unknown_field")
	closed := e.do(patch, path+"/"+id, map[string]any{"is_active": false}, admin.auth()).want(http.StatusOK).object()
	if closed["is_active"] != false || closed["branch"] != "Mombasa" || closed["bank_code"] != nil {
		t.Errorf("closed %v", closed)
	}
	if n, all := listed(vendor, "?currency=KES"), listed(officer, ""); n != 0 || all != 1 || listed(officer, "?is_active=true") != 0 {
		t.Errorf("a merchant lists %v, staff %v", n, all)
	}
	e.do(get, path+"/"+id, nil, vendor.auth()).refused(exchange.CodeNotFound)
}

// One treasury officer proposes an entry, and another confirms it by its digest.
func TestJournalEntriesAreBookedByTwo(t *testing.T) {
	e := start(t)
	const path = treasuryPath + "/journal-entries"
	one, two, admin := e.person(exchange.RoleTreasury), e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin)
	bank := storetest.BankAccount(t, e.store)
	propose := func(who person, body map[string]any) *reply { return e.do(post, path, body, who.auth(), freshKey()) }
	paidIn := map[string]any{"kind": "capital_in", "bank_account_id": bank.ID, "amount": "5000", "value_date": "2026-03-02", "note": "by letter of 2 March"}
	propose(admin, paidIn).refused(exchange.CodeForbidden)
	propose(one, map[string]any{"kind": "capital_in"}).blames("/value_date required", "/bank_account_id required", "/amount required", "/note required")
	propose(one, map[string]any{"kind": "operator_charge", "bank_account_id": bank.ID, "float_account": "till", "amount": "0", "corrects": bank.ID, "value_date": "2026-03-02", "note": "x"}).
		blames("/bank_account_id forbidden", "/corrects forbidden", "/float_account enum", "/amount out_of_range")
	propose(one, map[string]any{"kind": "capital_out", "bank_account_id": newID(), "float_account": "working", "amount": "1", "value_date": "2026-03-02", "note": "x"}).
		blames("/float_account forbidden")
	propose(one, map[string]any{"kind": "capital_out", "bank_account_id": newID(), "amount": "1", "value_date": "2026-03-02", "note": "x"}).blames("/bank_account_id not_found")
	propose(one, map[string]any{"kind": "correction", "corrects": newID(), "amount": "1", "value_date": "2026-03-02", "note": "x"}).blames("/amount forbidden")
	propose(one, map[string]any{"kind": "correction", "corrects": newID(), "value_date": "2026-03-02", "note": "x"}).blames("/corrects not_found")
	propose(one, map[string]any{"kind": "capital_in", "bank_account_id": bank.ID, "amount": "1", "value_date": "2199-01-01", "note": "x"}).blames("/value_date range")

	delete(paidIn, "note")
	paidIn["file_id"] = e.file(e.person(exchange.RoleVendor))
	propose(one, paidIn).blames("/file_id purpose")
	paidIn["file_id"] = e.upload(one, exchange.FileExceptionEvidence, "letter.pdf", receipt("letter")).want(http.StatusCreated).text("id")

	waits := propose(one, paidIn)
	id := waiting(waits)["change"].(map[string]any)["id"].(string)
	e.confirmedBy(one, waits).refused(exchange.CodeForbidden)
	e.confirmedBy(admin, waits).refused(exchange.CodeForbidden)
	e.confirmedBy(two, waits).want(http.StatusOK)
	booked := e.do(get, path+"/"+id, nil, admin.auth()).want(http.StatusOK).object()
	if booked["kind"] != "capital_in" || booked["amount"] != "5000.00" || booked["proposed_by"] != one.ID.String() || booked["confirmed_by"] != two.ID.String() || booked["corrected_by"] != nil || booked["file_id"] != paidIn["file_id"] {
		t.Errorf("booked %v", booked)
	}
	topUp := propose(one, map[string]any{"kind": "float_top_up", "bank_account_id": bank.ID, "float_account": "utility", "amount": "4000", "value_date": "2026-03-03", "note": "FT26062"})
	e.confirmedBy(two, topUp).want(http.StatusOK)
	undo := propose(two, map[string]any{"kind": "correction", "corrects": waiting(topUp)["change"].(map[string]any)["id"], "value_date": "2026-03-03", "note": "it went to the working account"})
	e.confirmedBy(one, undo).want(http.StatusOK)
	if list := e.do(get, path+"?kind=correction&bank_account_id="+bank.ID.String()+"&from_day=2026-03-03&to_day=2026-03-04", nil, one.auth()).want(http.StatusOK).object(); list["total"] != 1.0 {
		t.Errorf("listed %v", list)
	}
	if a, err := e.store.Account(t.Context(), bank.Ledger()); err != nil || a.Posted.String() != "5000.00" {
		t.Errorf("the bank has %s, %v", a.Posted, err)
	}
}
