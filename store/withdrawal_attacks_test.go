package store_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// Whoever writes with the login of the flows, past the code, is refused by the database.
func TestTheDatabaseRefusesInventedWithdrawals(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	pending := c.open(t, c.asks(t, "1000", c.phone))
	c.advance(t, pending)
	approved, executed, bank := c.approved(t, c.asks(t, "1000", c.phone)), c.executed(t, c.asks(t, "1000", c.phone)), c.reserved(t, "1000")
	sale, bought := c.executed(t, c.sells(t, "10", c.phone)), c.approved(t, c.buys(t, "1300"))
	paying := c.executed(t, c.asks(t, "1000", c.phone))
	c.begun(t, paying)
	done := c.executed(t, c.asks(t, "1000", c.phone))
	done = c.paid(t, done, c.begun(t, done))
	id := func(u uuid.UUID) string { return "'" + u.String() + "'" }
	set := func(of exchange.Withdrawal, fields string) string {
		return `UPDATE otc_withdrawals SET version = version + 1, ` + fields + ` WHERE id = ` + id(of.ID)
	}
	by := func(p exchange.Principal) string { return `executed_by = ` + id(p.UserID) + `, executed_at = now()` }
	for name, statement := range map[string]string{
		"an approval by nobody":             set(pending, `status = 'approved'`),
		"an execution without approval":     set(pending, `status = 'executing', `+by(c.one)),
		"an execution that nobody asked":    set(approved, `status = 'executing', `+by(c.one)),
		"an execution by the approver":      set(approved, `status = 'executing', `+by(c.boss)),
		"an execution by the requester":     set(approved, `status = 'executing', `+by(c.agent)),
		"another executor":                  set(executed, by(c.two)),
		"an end that nobody asked":          set(approved, `status = 'cancelled'`),
		"a rejection by nobody":             set(approved, `status = 'rejected', ended_by = `+id(c.two.UserID)),
		"a hold by nobody":                  set(approved, `status = 'on_hold', held_from = 'approved'`),
		"a failure of one":                  set(executed, `status = 'failed'`),
		"a failure while it may be paid":    set(paying, `status = 'failed'`),
		"a payment without an attempt":      set(executed, `status = 'completed', completed_at = now(), receipt = 'R', paid_by = `+id(done.PaidBy)),
		"a payment by bank by nobody":       set(bank, `status = 'completed', completed_at = now(), receipt = 'FT1'`),
		"crypto that did not arrive":        set(bought, `status = 'executing', `+by(c.one)+`, transfer_intent_id = `+id(done.IntentID)),
		"a sale that was not paid":          set(sale, `sold_at = now()`),
		"shillings of another house":        set(sale, `house_hold_id = `+id(done.HoldID)),
		"other money":                       set(executed, `hold_id = `+id(bank.HoldID)),
		"another amount":                    set(approved, `payout_amount = 100000`),
		"another destination":               set(approved, `destination_id = `+id(c.account.ID)),
		"another merchant":                  set(approved, `merchant_id = `+id(c.rival.UserID)),
		"another requester":                 set(approved, `requested_by = `+id(c.master.UserID)),
		"a way back":                        set(executed, `status = 'approved', executed_by = NULL, executed_at = NULL`),
		"a second payment of what was paid": set(done, `status = 'executing', receipt = '', completed_at = NULL, paid_by = NULL`),
		"a deletion":                        `DELETE FROM otc_withdrawals WHERE id = ` + id(pending.ID),
		"an entry without its withdrawal": `INSERT INTO ledger_entries (key, kind, object_type, object_id, digest, at) VALUES ('otc_withdrawal:` + approved.ID.String() +
			`:paid', 'otc_withdrawal.paid', 'otc_withdrawal', ` + id(approved.ID) + `, decode(repeat('00', 16), 'hex'), now())`,
		"a payout of what nobody let go": `INSERT INTO payment_attempts (id, direction, object_type, object_id, provider, status, asset, amount, phone, reference, hold_id, created_at)
			SELECT gen_random_uuid(), 'payout', 'otc_withdrawal', ` + id(approved.ID) + `, 'daraja', 'created', asset, amount, phone, reference, gen_random_uuid(), now() FROM payment_attempts LIMIT 1`,
		"a second payout at a time": `INSERT INTO payment_attempts (id, direction, object_type, object_id, provider, status, asset, amount, phone, reference, hold_id, created_at)
			SELECT gen_random_uuid(), 'payout', 'otc_withdrawal', ` + id(paying.ID) + `, 'daraja', 'created', asset, amount, phone, reference, gen_random_uuid(), now() FROM payment_attempts WHERE object_id = ` + id(paying.ID),
		"a word of an officer who did not give it": `INSERT INTO bank_confirmations (id, withdrawal_id, officer_id, reference, paid_on, amount, note, created_at)
			VALUES (gen_random_uuid(), ` + id(bank.ID) + `, ` + id(c.two.UserID) + `, 'FT1', now(), 1000, '', now())`,
		"a release of its own": `UPDATE releases SET passed_at = now() WHERE purpose = 'withdrawal' AND object_id = ` + id(pending.ID),
		"a screening of its own": `INSERT INTO approvals (id, token_id, object_type, object_id, officer_id, requester_id, action, digest, created_at)
			SELECT gen_random_uuid(), token_id, 'otc_withdrawal', ` + id(pending.ID) + `, officer_id, requester_id, 'approve', ` + `'` + pending.Digest + `', now() FROM approvals LIMIT 1`,
	} {
		db := storetest.As(t, c.s, store.RoleFlows)
		if _, err := db.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("%s was stored", name)
		} else if strings.Contains(err.Error(), "syntax") || strings.Contains(err.Error(), "column \"") {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantBooks(t, c.s)
}

// Each role is refused each verb that is not its own.
func TestVerbsOfWithdrawalsByRole(t *testing.T) {
	t.Parallel()
	merchant := exchange.Principal{UserID: uuid.New(), VendorID: uuid.New(), Role: exchange.RoleVendor}
	w := exchange.Withdrawal{MerchantID: merchant.VendorID, Status: exchange.WithdrawalApproved, Method: exchange.WithdrawByMomo, Source: kes("1"), Payout: kes("1")}
	officers := []exchange.Role{exchange.RoleAdmin, exchange.RoleTreasury}
	for verb, roles := range map[exchange.IntentKind][]exchange.Role{
		exchange.IntendWithdrawalCancel: {exchange.RoleVendor, exchange.RoleSubvendor}, exchange.IntendWithdrawalHold: append(officers, exchange.RoleOTCOfficer),
		exchange.IntendWithdrawalUnhold: officers, exchange.IntendWithdrawalExecute: officers, exchange.IntendWithdrawalPaid: officers,
	} {
		for _, role := range exchange.Roles() {
			by := exchange.Principal{UserID: uuid.New(), VendorID: merchant.VendorID, Role: role}
			if err := w.Admit(verb, by); slices.Contains(roles, role) == (exchange.CodeOf(err) == exchange.CodeForbidden) {
				t.Errorf("%s by %s: %v", verb, role, err)
			}
		}
	}
}

// A payout without an answer is declared not made by two officers; one that a source claims stops every other, until it is denied.
func TestWithdrawalsInDoubt(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	storetest.Exec(t, c.s, `UPDATE refund_policy SET unknown_seconds = 0`)
	of := func(w exchange.Withdrawal) exchange.MomoObject { return exchange.WithdrawalObject(w.ID) }
	declare := func(w exchange.Withdrawal) error {
		return storetest.Agreed(t, c.s)(c.s.ProposeUnpaid(t.Context(), of(w), "not in the portal", c.one))
	}
	unheard := c.executed(t, c.asks(t, "1000", c.phone))
	wantFault(t, declare(unheard), exchange.CodeStateConflict) // nothing was begun
	a := c.begun(t, unheard)
	if _, err := c.s.RecordSubmission(t.Context(), a.ID, exchange.Submission{State: exchange.Accepted}); err != nil {
		t.Fatal(err)
	}
	wantFault(t, storetest.Agreed(t, c.s)(c.s.ProposeWithdrawalFailure(t.Context(), unheard.ID, "why", c.one)), exchange.CodeStateConflict)
	if err := declare(unheard); err != nil {
		t.Fatal(err)
	}
	if said, err := c.s.DeclaredUnpaid(t.Context(), a.ID); err != nil || !said {
		t.Fatalf("declared: %t, %v", said, err)
	}
	if _, err := c.s.RecordFailure(t.Context(), a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "declared", Class: exchange.ClassDeclared}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.s.FailPayout(t.Context(), of(unheard), "declared"); err != nil {
		t.Fatal(err)
	}
	if w, err := c.s.FailWithdrawal(t.Context(), unheard.ID); err != nil || w.Status != exchange.WithdrawalFailed {
		t.Errorf("declared it is %s, %v", w.Status, err)
	}

	claimed := c.executed(t, c.asks(t, "1000", c.phone))
	first := c.begun(t, claimed)
	c.refused(t, claimed, first, exchange.ClassAccount)
	doubt := func(made bool) {
		t.Helper()
		if err := c.s.DoubtPayout(t.Context(), of(claimed), made); err != nil {
			t.Fatal(err)
		}
	}
	doubt(true)
	_, err := c.begin(t.Context(), claimed)
	wantFault(t, err, exchange.CodeStateConflict)
	wantFault(t, storetest.Agreed(t, c.s)(c.s.ProposeWithdrawalFailure(t.Context(), claimed.ID, "why", c.one)), exchange.CodeStateConflict)
	if err := declare(claimed); err != nil {
		t.Fatal(err)
	}
	if at, err := c.s.ClaimDeclined(t.Context(), first.ID); err != nil || at.IsZero() {
		t.Errorf("declined %s, %v", at, err)
	}
	doubt(false)
	c.paid(t, claimed, c.begun(t, claimed))
	wantBooks(t, c.s)
}

// A payout that is proven after its withdrawal failed is booked as paid twice: its merchant owes it, and reads so.
func TestLatePayoutsOfWithdrawals(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	late := c.executed(t, c.asks(t, "1000", c.phone))
	a := c.begun(t, late)
	c.refused(t, late, a, exchange.ClassAccount)
	proof := exchange.Observation{State: exchange.SeenSucceeded, Amount: a.Amount, Receipt: "LATE000001"}
	if _, err := c.s.CompletePayout(t.Context(), exchange.WithdrawalObject(late.ID), a.ID, proof); err != nil {
		t.Fatal(err)
	}
	c.is(t, late, exchange.WithdrawalCompleted, exchange.WaitNothing)

	failed := c.executed(t, c.asks(t, "1000", c.phone))
	a = c.begun(t, failed)
	c.refused(t, failed, a, exchange.ClassAccount)
	if err := storetest.Agreed(t, c.s)(c.s.ProposeWithdrawalFailure(t.Context(), failed.ID, "the account is closed", c.one)); err != nil {
		t.Fatal(err)
	}
	c.is(t, failed, exchange.WithdrawalFailed, exchange.DetailReleased)
	proof.Receipt = "LATE000002"
	if _, err := c.s.CompletePayout(t.Context(), exchange.WithdrawalObject(failed.ID), a.ID, proof); err != nil {
		t.Fatal(err)
	}
	view := store.ViewOf(c.agent, exchange.ActReadExceptions)
	mine, total, err := c.s.ListExceptions(t.Context(), store.ExceptionFilter{View: &view}, store.Page{Number: 1, Size: 10})
	if err != nil || total != 1 || mine[0].Kind != exchange.ExcPaidTwice || mine[0].Receipt != "LATE000002" {
		t.Errorf("the merchant reads %+v, %v", mine, err)
	}
	view = store.ViewOf(c.rival, exchange.ActReadExceptions)
	if _, total, err = c.s.ListExceptions(t.Context(), store.ExceptionFilter{View: &view}, store.Page{Number: 1, Size: 10}); err != nil || total != 0 {
		t.Errorf("another merchant reads %d, %v", total, err)
	}
	if second, err := c.s.ReceiptNeedsSecond(t.Context(), exchange.WithdrawalObject(failed.ID), "OTHER00001"); err != nil || !second {
		t.Errorf("a receipt of one officer is enough: %v", err)
	}
	c.wantShillings(t, "99000", "0")
}
