package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// reserved is an executed withdrawal whose money is reserved at the bank.
func (c *outlet) reserved(t *testing.T, amount string) exchange.Withdrawal {
	t.Helper()
	w := c.executed(t, c.asks(t, amount, c.account))
	for range 2 {
		if _, err := c.s.BeginWithdrawalBank(t.Context(), w.ID); err != nil {
			t.Fatalf("reserve at the bank: %v", err)
		}
	}
	return c.is(t, w, exchange.WithdrawalConfirming, exchange.WaitBank)
}

// said is what an officer says of the payment of a withdrawal by bank.
func said(w exchange.Withdrawal, reference string) exchange.WithdrawalStep {
	return exchange.WithdrawalStep{Reference: reference, PaidOn: exchange.DateOf(time.Now()), Amount: w.Payout}
}

// takesTwoAtTheBank makes payments by bank above 1,000 shillings take two officers.
func (c *outlet) takesTwoAtTheBank(t *testing.T) {
	t.Helper()
	storetest.Patch(t, c.s, store.LimitPatch{Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{
		exchange.ApproveBankPayout: {OneAbove: kes("1000"), TwoAbove: kes("1000")},
	}})
}

// Shillings are paid at a bank of the house by an officer, who confirms with the bank's reference; above a value a second officer confirms the
// same, and one reference is that of one payment.
func TestShillingsAreWithdrawnAtABank(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	c.takesTwoAtTheBank(t)
	w := c.executed(t, c.asks(t, "900.50", c.account))
	c.is(t, w, exchange.WithdrawalExecuting, exchange.WaitBank)
	c.refuse(t, exchange.CodeStateConflict, exchange.IntendWithdrawalPaid, w, said(w, "FT1"), c.one)
	small, large := c.reserved(t, "900.50"), c.reserved(t, "5000")
	wantBalance(t, c.s, c.bank.Ledger(), "400000", "5900.50")
	wrong := said(small, "FT1")
	wrong.Amount = kes("900")
	c.refuse(t, exchange.CodeInvalid, exchange.IntendWithdrawalPaid, small, wrong, c.one)
	wrong = said(small, "FT1")
	wrong.PaidOn = wrong.PaidOn.AddDate(0, 0, 1)
	c.refuse(t, exchange.CodeInvalid, exchange.IntendWithdrawalPaid, small, wrong, c.one)
	c.refuse(t, exchange.CodeForbidden, exchange.IntendWithdrawalPaid, small, said(small, "FT1"), c.agent)
	small = c.do(t, exchange.IntendWithdrawalPaid, small, said(small, "ft-1"), c.one)
	if small.Status != exchange.WithdrawalCompleted || small.Receipt != "FT1" {
		t.Fatalf("confirmed %+v", small)
	}
	c.refuse(t, exchange.CodeConflict, exchange.IntendWithdrawalPaid, large, said(large, "FT1"), c.one)
	large = c.do(t, exchange.IntendWithdrawalPaid, large, said(large, "FT3"), c.one) // mistyped
	c.do(t, exchange.IntendWithdrawalPaid, large, said(large, "FT2"), c.one)
	c.is(t, large, exchange.WithdrawalConfirming, exchange.WaitBankSecond)
	c.refuse(t, exchange.CodeConflict, exchange.IntendWithdrawalPaid, large, said(large, "FT2"), c.one)
	c.refuse(t, exchange.CodeConflict, exchange.IntendWithdrawalPaid, large, said(large, "FT3"), c.two)
	storetest.Exec(t, c.s, `UPDATE users SET is_active = false WHERE id = $1`, c.one.UserID) // whose word counts no more
	c.do(t, exchange.IntendWithdrawalPaid, large, said(large, "FT2"), c.two)
	c.is(t, large, exchange.WithdrawalConfirming, exchange.WaitBankSecond)
	if large = c.do(t, exchange.IntendWithdrawalPaid, large, said(large, "FT2"), c.boss); large.Status != exchange.WithdrawalCompleted {
		t.Fatalf("confirmed by two it is %+v", large)
	}
	c.wantShillings(t, "94099.50", "900.50")
	wantBalance(t, c.s, c.bank.Ledger(), "394099.50", "0")
}

// statement brings in a statement with one payment that left the bank.
func (c *outlet) statement(t *testing.T, reference string, m money.Amount) exchange.StatementLine {
	t.Helper()
	l := storetest.Line(t, reference, m)
	l.Side, l.ValueDate = exchange.SideDebit, exchange.DateOf(time.Now())
	l.BookedOn = l.ValueDate
	b := storetest.Statement(t, c.s, c.bank, l)
	lines, _, err := c.s.StatementLines(t.Context(), store.LineFilter{StatementID: b.ID}, store.Page{Number: 1, Size: 1})
	if err != nil || len(lines) != 1 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	return lines[0]
}

// A line of the bank's statement is the second witness, which another officer brought in. It explains one payment.
func TestALineOfAStatementWitnessesAWithdrawal(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	c.takesTwoAtTheBank(t)
	w, twin := c.reserved(t, "5000"), c.reserved(t, "5000")
	l, other := c.statement(t, "FT7", kes("5000")), c.statement(t, "FT8", kes("4999"))
	b, err := c.s.BankStatement(t.Context(), l.StatementID)
	if err != nil {
		t.Fatal(err)
	}
	named := func(w exchange.Withdrawal, reference string, line uuid.UUID) exchange.WithdrawalStep {
		step := said(w, reference)
		step.LineID = line
		return step
	}
	importer := exchange.Principal{UserID: b.ImportedBy, Role: exchange.RoleTreasury}
	c.refuse(t, exchange.CodeForbidden, exchange.IntendWithdrawalPaid, w, named(w, "FT7", l.ID), importer)
	c.refuse(t, exchange.CodeInvalid, exchange.IntendWithdrawalPaid, w, named(w, "FT8", l.ID), c.one)
	c.refuse(t, exchange.CodeInvalid, exchange.IntendWithdrawalPaid, w, named(w, "FT8", other.ID), c.one)
	if w = c.do(t, exchange.IntendWithdrawalPaid, w, named(w, "FT7", l.ID), c.one); w.Status != exchange.WithdrawalCompleted || w.LineID != l.ID {
		t.Fatalf("witnessed %+v", w)
	}
	if l, err = c.s.StatementLine(t.Context(), l.ID); err != nil || l.Status != exchange.LineMatched || l.ObjectID != w.ID {
		t.Errorf("the line is %+v, %v", l, err)
	}
	c.refuse(t, exchange.CodeConflict, exchange.IntendWithdrawalPaid, twin, named(twin, "FT7", l.ID), c.one)
	wantBooks(t, c.s)
}

// The bank's statement later shows what officers confirmed: its line is explained by the withdrawal.
func TestLinesOfPaidWithdrawalsAreMatched(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	w := c.reserved(t, "5000")
	c.do(t, exchange.IntendWithdrawalPaid, w, said(w, "FT9"), c.one)
	if l := c.statement(t, "FT9", kes("5000")); l.Status != exchange.LineMatched || l.ObjectType != exchange.LineOfWithdrawal || l.ObjectID != w.ID {
		t.Errorf("the line is %+v", l)
	}
	wantBooks(t, c.s)
}

// Two officers end what was not paid. Words of others about its payment stand against that.
func TestUnpaidWithdrawalsByBankAreEndedByTwo(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	c.takesTwoAtTheBank(t)
	w := c.reserved(t, "5000")
	c.do(t, exchange.IntendWithdrawalPaid, w, said(w, "FT1"), c.two)
	end := func() error {
		return storetest.Agreed(t, c.s)(c.s.ProposeWithdrawalFailure(t.Context(), w.ID, "not in the statement", c.one))
	}
	wantFault(t, end(), exchange.CodeStateConflict)
	change, err := c.s.ProposeWithdrawalFailure(t.Context(), w.ID, "mistyped", c.one)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.s.ConfirmChange(t.Context(), change.ID, "", c.one); exchange.CodeOf(err) != exchange.CodeForbidden {
		t.Errorf("confirmed by its proposer: %v", err)
	}
	if _, err := c.s.ConfirmChange(t.Context(), change.ID, "", c.two); err != nil { // who takes its own word back
		t.Fatal(err)
	}
	c.is(t, w, exchange.WithdrawalFailed, exchange.DetailReleased)
	c.wantShillings(t, "100000", "0")
	wantBalance(t, c.s, c.bank.Ledger(), "400000", "0")
}

// Nothing is reserved at a bank while payments are frozen, in a database that was put back, or without the money.
func TestWithdrawalsAtABankWait(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	w := c.executed(t, c.asks(t, "5000", c.account))
	begin := func() error {
		_, err := c.s.BeginWithdrawalBank(t.Context(), w.ID)
		return err
	}
	if _, err := c.s.Freeze(t.Context(), storetest.NewID(t), "a drill", c.boss); err != nil {
		t.Fatal(err)
	}
	wantFault(t, begin(), exchange.CodeSuspended)
	if err := storetest.Agreed(t, c.s)(c.s.ProposeLift(t.Context(), "over", c.boss)); err != nil {
		t.Fatal(err)
	}
	storetest.Journal(t, c.s, exchange.JournalEntry{Kind: exchange.JournalCapitalOut, BankID: c.bank.ID, Amount: kes("396000")})
	wantFault(t, begin(), exchange.CodeInsufficientFunds)
	storetest.Journal(t, c.s, exchange.JournalEntry{Kind: exchange.JournalCapitalIn, BankID: c.bank.ID, Amount: kes("1000")})
	storetest.Exec(t, c.s, `UPDATE users SET is_active = false WHERE id = $1`, c.agent.UserID)
	wantFault(t, begin(), exchange.CodeStateConflict)
	storetest.Exec(t, c.s, `UPDATE users SET is_active = true WHERE id = $1`, c.agent.UserID)
	if err := begin(); err != nil {
		t.Fatal(err)
	}
}

// A merchant that removes a destination stops what has not begun: one that waits for officers is cancelled, and one that was executed is not
// paid.
func TestNothingBeginsToRemovedDestinations(t *testing.T) {
	t.Parallel()
	c := newOutlet(t)
	waits, byPhone, atBank := c.open(t, c.asks(t, "100", c.phone)), c.executed(t, c.asks(t, "200", c.phone)), c.executed(t, c.asks(t, "300", c.account))
	for _, d := range []exchange.Destination{c.phone, c.account} {
		if _, err := c.remove(t, d, c.master); err != nil {
			t.Fatal(err)
		}
	}
	if out := c.advance(t, waits); out.Withdrawal.Status != exchange.WithdrawalCancelled || out.Withdrawal.Detail != exchange.DetailInactive {
		t.Errorf("what waits is %s, %s", out.Withdrawal.Status, out.Withdrawal.Detail)
	}
	if stopped, err := c.s.PayoutStopped(t.Context(), exchange.WithdrawalObject(byPhone.ID), "daraja"); err != nil || !stopped {
		t.Errorf("the payout to a phone goes on: %t, %v", stopped, err)
	}
	_, err := c.s.BeginWithdrawalBank(t.Context(), atBank.ID)
	wantFault(t, err, exchange.CodeStateConflict)
}
