package store_test

import (
	"errors"
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// Money that a source disputes since officers agreed stays where it is, until two of them end its refund.
func TestDisputedMoneyIsNotReserved(t *testing.T) {
	t.Parallel()
	r := newReturns(t)
	ctx := t.Context()
	f := r.agreed(t, r.x, r.payee)
	storetest.Exec(t, r.s, `INSERT INTO c2b_payments (id, receipt, status, asset, amount, reference, party_hash, paid_at, listed_at, exception_id, disputed, created_at, updated_at)
		VALUES (gen_random_uuid(), 'SLK1', 'unmatched', 'KES', 300, '', '', now(), now(), $1, true, now(), now())`, r.x.ID)
	_, err := r.s.BeginBankRefund(ctx, f.ID)
	wantFault(t, err, exchange.CodeStateConflict)
	if !errors.Is(err, exchange.ErrOfficers) {
		t.Errorf("the flow does not learn that officers have to decide: %v", err)
	}
	r.is(t, r.x, exchange.ExcRefunding, exchange.RefundPending, exchange.WaitFunds)
	wantBalance(t, r.s, r.bank.Ledger(), "1300", "0")
	tx, err := storetest.As(t, r.s, store.RoleFlows).BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, statement := range []string{
		`UPDATE releases SET passed_at = now() WHERE purpose = 'refund' AND object_id = ` + quotedID(f.ID),
		`UPDATE refunds SET status = 'processing', bank_hold_id = gen_random_uuid(), begun_at = now(), version = version + 1 WHERE id = ` + quotedID(f.ID),
	} {
		if err == nil {
			_, err = tx.ExecContext(ctx, statement)
		}
	}
	if sqlState(err) != "KV006" || !strings.Contains(err.Error(), "disputed") {
		t.Errorf("the database begins it: %v", err)
	}
	if _, err := r.s.ConfirmChange(ctx, r.failure(t, f, r.two).ID, "", r.admin); err != nil {
		t.Fatal(err)
	}
	r.is(t, r.x, exchange.ExcOpen, exchange.RefundFailed, exchange.WaitNothing)
	wantBooks(t, r.s)
}

// What officers proposed before a refund was agreed to and failed is not revived by it.
func TestProposalsBeforeAFailedRefundAreOver(t *testing.T) {
	t.Parallel()
	r := newReturns(t)
	ctx := t.Context()
	other := r.payee
	other.BankName = "KCB"
	old, err := r.s.ProposeBankRefund(ctx, r.ask(r.x, other), r.two)
	if err != nil {
		t.Fatal(err)
	}
	decision, err := r.s.ProposeDecision(ctx, decide(t, r.x, exchange.ExcAccepted), r.two)
	if err != nil {
		t.Fatal(err)
	}
	failed := r.agreed(t, r.x, r.payee)
	if _, err := r.s.ConfirmChange(ctx, r.failure(t, failed, r.two).ID, "", r.admin); err != nil {
		t.Fatal(err)
	}
	for _, c := range []exchange.ControlChange{old, decision} {
		_, err := r.s.ConfirmChange(ctx, c.ID, "", r.third)
		wantFault(t, err, exchange.CodeStateConflict)
		if err != nil && !strings.Contains(err.Error(), "has changed since it was proposed") {
			t.Errorf("%s: %v", c.Kind, err)
		}
	}
	tx, err := storetest.Owner(t, r.s).BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, statement := range []string{
		`UPDATE control_changes SET status = 'confirmed', decided_by = ` + quotedID(r.third.UserID) + `, decided_at = now() WHERE id IN (` + quotedID(old.ID) + `, ` + quotedID(decision.ID) + `)`,
		`SAVEPOINT decided`,
		`UPDATE payment_exceptions SET status = 'refunding', version = version + 1 WHERE id = ` + quotedID(r.x.ID),
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO refunds (id, rail, exception_id, asset, amount, reason, status, bank_name, bank_code, account_name, account_number, requested_by, change_id, created_at, updated_at)
		SELECT (c.change ->> 'id')::uuid, 'bank', $2, 'KES', 300, c.change ->> 'note', 'pending', c.change ->> 'bank_name', c.change ->> 'bank_code', c.change ->> 'account_name',
			c.change ->> 'account_number', c.proposed_by, c.id, now(), now() FROM control_changes c WHERE c.id = $1`, old.ID, r.x.ID)
	if sqlState(err) != "KV006" || !strings.Contains(err.Error(), "has changed since") {
		t.Errorf("the database opens the old refund: %v", err)
	}
	for _, statement := range []string{`ROLLBACK TO decided`, `UPDATE payment_exceptions SET status = 'accepted', version = version + 1 WHERE id = ` + quotedID(r.x.ID)} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO exception_decisions (id, exception_id, verdict, reason, decided_by, decided_at, change_id)
		SELECT (c.change ->> 'id')::uuid, $2, 'accepted', c.change ->> 'note', c.proposed_by, now(), c.id FROM control_changes c WHERE c.id = $1`, decision.ID, r.x.ID)
	if sqlState(err) != "KV006" {
		t.Errorf("the database takes the old decision: %v", err)
	}
}
