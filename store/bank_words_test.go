package store_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// switchOff makes an officer's words count no more.
func switchOff(t *testing.T, s *store.Store, officer uuid.UUID) {
	t.Helper()
	storetest.Exec(t, s, `UPDATE users SET is_active = false WHERE id = $1`, officer)
}

// What an officer said whose account was switched off since stands against nobody: two others agree, or end what was not paid.
func TestWordsOfOfficersWhoMayNotStopNoWithdrawal(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	c.takesTwoAtTheBank(t)
	paid, unpaid := c.reserved(t, "5000"), c.reserved(t, "4000")
	c.do(t, exchange.IntendWithdrawalPaid, paid, said(paid, "FT3"), c.one) // mistyped
	c.do(t, exchange.IntendWithdrawalPaid, unpaid, said(unpaid, "FT4"), c.one)
	early, err := c.s.ProposeWithdrawalFailure(t.Context(), unpaid.ID, "why", c.two)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.s.ConfirmChange(t.Context(), early.ID, "", c.boss)
	wantFault(t, err, exchange.CodeStateConflict) // an officer says that it was paid
	c.refuse(t, exchange.CodeConflict, exchange.IntendWithdrawalPaid, paid, said(paid, "FT2"), c.two)
	switchOff(t, c.s, c.one.UserID)
	_, err = c.s.ConfirmChange(t.Context(), early.ID, "", c.boss)
	wantFault(t, err, exchange.CodeStateConflict) // who proposed it did not see whose words count no more
	c.do(t, exchange.IntendWithdrawalPaid, paid, said(paid, "FT2"), c.two)
	c.refuse(t, exchange.CodeConflict, exchange.IntendWithdrawalPaid, paid, said(paid, "FT3"), c.boss) // a word that counts
	if paid = c.do(t, exchange.IntendWithdrawalPaid, paid, said(paid, "FT2"), c.boss); paid.Status != exchange.WithdrawalCompleted || paid.Receipt != "FT2" {
		t.Errorf("confirmed by two others it is %+v", paid)
	}
	if err := storetest.Agreed(t, c.s)(c.s.ProposeWithdrawalFailure(t.Context(), unpaid.ID, "not in the statement", c.two)); err != nil {
		t.Fatal(err)
	}
	c.is(t, unpaid, exchange.WithdrawalFailed, exchange.DetailReleased)
	wantBooks(t, c.s)
}

func TestWordsOfOfficersWhoMayNotStopNoRefund(t *testing.T) {
	t.Parallel()
	r := newReturns(t)
	ctx := t.Context()
	second := r.came(t, "1300", "IN2")
	storetest.Patch(t, r.s, store.LimitPatch{Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{exchange.ApproveBankPayout: {OneAbove: kes("100"), TwoAbove: kes("100")}}})
	paid, unpaid := r.reserved(t, r.x, r.payee), r.reserved(t, second, r.payee)
	for reference, f := range map[string]exchange.Refund{"FT3": paid, "FT4": unpaid} {
		if _, err := r.confirm(ctx, f, paidBack(f, reference), r.third); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Exec(t, r.s, `BEGIN; ALTER TABLE users DISABLE TRIGGER USER; UPDATE users SET role = 'otc_officer' WHERE id = `+quotedID(r.third.UserID)+`; ALTER TABLE users ENABLE TRIGGER USER; COMMIT`)
	for _, by := range []exchange.Principal{r.one, r.admin} {
		if _, err := r.confirm(ctx, paid, paidBack(paid, "FT2"), by); err != nil {
			t.Fatalf("another officer confirms: %v", err)
		}
	}
	r.is(t, r.x, exchange.ExcRefunded, exchange.RefundCompleted, exchange.WaitNothing)
	if f := r.refundOf(t, r.x); f.Receipt != "FT2" {
		t.Errorf("it was paid by %s", f.Receipt)
	}
	if _, err := r.s.ConfirmChange(ctx, r.failure(t, unpaid, r.two).ID, "", r.admin); err != nil {
		t.Fatalf("two officers end it: %v", err)
	}
	r.is(t, second, exchange.ExcOpen, exchange.RefundFailed, exchange.WaitNothing)
	wantBooks(t, r.s)
}

func TestWordsOfOfficersWhoMayNotStopNoPayout(t *testing.T) {
	t.Parallel()
	x := banking(t)
	x.alone(t)
	gone := storetest.User(t, x.s, exchange.RoleTreasury)
	if _, err := x.confirm(t, x.word(t, gone, "FT1")); err != nil {
		t.Fatal(err)
	}
	switchOff(t, x.s, gone.ID)
	for range 2 {
		if _, err := x.confirm(t, x.word(t, storetest.User(t, x.s, exchange.RoleTreasury), "FT2")); err != nil {
			t.Fatal(err)
		}
	}
	x.bankPayout(t, exchange.PayoutCompleted, exchange.WaitNothing, 2)
}

// An officer who says something else takes the words of one who may not confirm any more back, but does not hide them: who ends the payment
// with that officer sees them.
func TestWordsThatWereTakenBackAreSeen(t *testing.T) {
	t.Parallel()
	c, r := newOutlet(t), newReturns(t)
	ctx := t.Context()
	c.takesTwoAtTheBank(t)
	storetest.Patch(t, r.s, store.LimitPatch{Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{exchange.ApproveBankPayout: {OneAbove: kes("100"), TwoAbove: kes("100")}}})
	w, f := c.reserved(t, "5000"), r.reserved(t, r.x, r.payee)
	c.do(t, exchange.IntendWithdrawalPaid, w, said(w, "FT1"), c.one)
	if _, err := r.confirm(ctx, f, paidBack(f, "FT1"), r.third); err != nil {
		t.Fatal(err)
	}
	switchOff(t, c.s, c.one.UserID)
	switchOff(t, r.s, r.third.UserID)
	c.do(t, exchange.IntendWithdrawalPaid, w, said(w, "FT2"), c.two)
	if _, err := r.confirm(ctx, f, paidBack(f, "FT2"), r.admin); err != nil {
		t.Fatal(err)
	}
	ended, err := c.s.ProposeWithdrawalFailure(ctx, w.ID, "why", c.two)
	if err != nil {
		t.Fatal(err)
	}
	for _, proposed := range []exchange.ControlChange{ended, r.failure(t, f, r.admin)} {
		var was struct {
			References []string `json:"references_without_weight"`
		}
		if err := json.Unmarshal(proposed.Was, &was); err != nil || !slices.Equal(was.References, []string{"FT1"}) {
			t.Errorf("who confirms the %s sees %s (%v)", proposed.Kind, proposed.Was, err)
		}
	}
	if _, err := c.s.ConfirmChange(ctx, ended.ID, "", c.boss); err != nil {
		t.Fatal(err)
	}
	c.is(t, w, exchange.WithdrawalFailed, exchange.DetailReleased)
}

// No login takes back what an officer said who may still say it.
func TestTheDatabaseKeepsWordsThatCount(t *testing.T) {
	t.Parallel()
	c, r := newOutlet(t), newReturns(t)
	c.takesTwoAtTheBank(t)
	w := c.reserved(t, "5000")
	c.do(t, exchange.IntendWithdrawalPaid, w, said(w, "FT1"), c.one)
	storetest.Patch(t, r.s, store.LimitPatch{Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{exchange.ApproveBankPayout: {OneAbove: kes("100"), TwoAbove: kes("100")}}})
	f := r.reserved(t, r.x, r.payee)
	if _, err := r.confirm(t.Context(), f, paidBack(f, "FT1"), r.third); err != nil {
		t.Fatal(err)
	}
	for _, role := range []store.Role{store.RoleAPI, store.RoleFlows} {
		for name, s := range map[string]*store.Store{"a withdrawal": c.s, "a refund": r.s} {
			if _, err := storetest.As(t, s, role).ExecContext(t.Context(), `UPDATE bank_confirmations SET withdrawn_at = now()`); sqlState(err) != "KV006" {
				t.Errorf("%s took back a word about %s: %v", role, name, err)
			}
		}
	}
}
