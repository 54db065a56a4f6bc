package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

// strayLine is a line of a statement that nothing explains.
func strayLine(t testing.TB, e *env) exchange.StatementLine {
	t.Helper()
	bank := storetest.BankAccount(t, e.store)
	l := storetest.Line(t, strings.ToUpper(newID().String()[26:]), money.Must(money.KES, "100"))
	storetest.Statement(t, e.store, bank, l)
	return lineWith(t, e, l.BankReference)
}

func lineWith(t testing.TB, e *env, reference string) exchange.StatementLine {
	t.Helper()
	var all []exchange.StatementLine
	rows := e.do(get, treasuryPath+"/statement-lines?reference="+reference, nil, e.person(exchange.RoleOTCOfficer).auth()).want(http.StatusOK).object()["statement_lines"].([]any)
	for _, r := range rows {
		id := uuid.MustParse(r.(map[string]any)["id"].(string))
		l, err := e.store.StatementLine(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	if len(all) != 1 {
		t.Fatalf("%d lines have the reference %s", len(all), reference)
	}
	return all[0]
}

// Staff read statements and their lines; an officer says what explains one.
func TestStatementLinesAreMatchedByHand(t *testing.T) {
	e := start(t)
	const path = treasuryPath + "/statement-lines"
	officer, merchant := e.person(exchange.RoleTreasury), e.person(exchange.RoleVendor)
	l := strayLine(t, e)
	statement := e.do(get, treasuryPath+"/bank-statements/"+l.StatementID.String(), nil, officer.auth()).want(http.StatusOK).object()
	if statement["status"] != "compared" || statement["closing_balance"] != "100.00" || statement["difference"] != "0.00" || statement["unmatched_lines"] != 1.0 {
		t.Errorf("the statement is %v", statement)
	}
	if list := e.do(get, treasuryPath+"/bank-statements?bank_account_id="+l.BankID.String()+"&status=compared", nil, officer.auth()).want(http.StatusOK).object(); list["total"] != 1.0 {
		t.Errorf("listed %v", list)
	}
	e.do(get, path, nil, merchant.auth()).refused(exchange.CodeForbidden)
	seen := e.do(get, path+"/"+l.ID.String(), nil, officer.auth()).want(http.StatusOK).object()
	if seen["status"] != "aside" || seen["status_detail"] != "operator" || seen["payment_exception_id"] != l.ExceptionID.String() || seen["side"] != "credit" {
		t.Errorf("the line is %v", seen)
	}
	x := e.do(get, "/api/v1/auth/payment-exceptions?rail=bank&statement_line_id="+l.ID.String(), nil, officer.auth()).want(http.StatusOK).object()["payment_exceptions"].([]any)
	if len(x) != 1 || x[0].(map[string]any)["rail"] != "bank" || x[0].(map[string]any)["statement_line_id"] != l.ID.String() {
		t.Errorf("its exception is %v", x)
	}
	entry := storetest.Journal(t, e.store, exchange.JournalEntry{Kind: exchange.JournalCapitalIn, BankID: l.BankID, Amount: l.Amount, ValueDate: l.ValueDate.AddDate(0, 0, -1)})
	match := func(who person, body map[string]any) *reply {
		return e.do(post, path+"/"+l.ID.String()+"/match", body, who.auth(), freshKey())
	}
	match(e.person(exchange.RoleOTCOfficer), map[string]any{"object_type": "journal_entry", "object_id": entry.ID}).refused(exchange.CodeForbidden)
	match(officer, map[string]any{"object_type": "order"}).blames("/object_type enum", "/object_id required")
	match(officer, map[string]any{"object_type": "bank_payout", "object_id": entry.ID}).blames("/object_id mismatch")
	done := match(officer, map[string]any{"object_type": "journal_entry", "object_id": entry.ID}).want(http.StatusOK).object()
	if done["status"] != "matched" || done["object_id"] != entry.ID.String() || done["matched_by"] != officer.ID.String() || done["payment_exception_id"] != nil {
		t.Errorf("matched %v", done)
	}
	for query, want := range map[string]float64{"?status=matched&side=credit": 1, "?status=aside": 0, "?from_day=2026-03-02&to_day=2026-03-03": 1, "?from_day=2026-03-03": 0, "?statement_id=" + newID().String(): 0} {
		if list := e.do(get, path+query, nil, officer.auth()).want(http.StatusOK).object(); list["total"] != want {
			t.Errorf("%s: %v", query, list["total"])
		}
	}
	if a, err := e.store.Account(t.Context(), exchange.House(exchange.AccSuspense, money.KES)); err != nil || !a.Posted.IsZero() {
		t.Errorf("suspense has %s, %v", a.Posted, err)
	}
}

// statementCells are the rows of the matrix about statements.
func statementCells() map[string]cell {
	const lines = treasuryPath + "/statement-lines"
	line := func(s scene) uuid.UUID { return strayLine(s.w.t, s.w.env).ID }
	return map[string]cell{
		"GET " + treasuryPath + "/bank-statements/{id}": {id: func(s scene) uuid.UUID { return strayLine(s.w.t, s.w.env).StatementID }, shared: true},
		"GET " + lines + "/{id}":                        {id: line, shared: true},
		"POST " + lines + "/{id}/match":                 {id: line, shared: true, body: fixed(map[string]any{"object_type": "journal_entry", "object_id": uuid.Nil})},
	}
}
