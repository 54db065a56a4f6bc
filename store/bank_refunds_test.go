package store_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// returns is a desk to whose bank 300 shillings came that nothing explains, in a statement that the first treasury officer brought in.
type returns struct {
	desk
	third exchange.Principal // a treasury officer
	x     exchange.PaymentException
	payee exchange.BankPayee // the account that the money came from
}

func newReturns(t *testing.T) returns {
	t.Helper()
	r := returns{desk: newDesk(t), payee: exchange.BankPayee{BankName: "Equity Bank", BankCode: "68", AccountName: "Jane Roe", AccountNumber: "0110222333"}}
	r.third = storetest.PrincipalOf(storetest.User(t, r.s, exchange.RoleTreasury))
	r.x = r.came(t, "1000", "IN1")
	return r
}

// came is the exception of 300 shillings that came in on a statement.
func (r returns) came(t *testing.T, opening, reference string) exchange.PaymentException {
	t.Helper()
	l := moved(reference, "300")
	l.PartyAccount = "0110-222 333"
	r.imports(t, opening, l)
	r.settle(t)
	x, err := r.s.Exception(t.Context(), r.line(t, reference).ExceptionID)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func (r returns) ask(x exchange.PaymentException, to exchange.BankPayee) exchange.BankRefundRequest {
	return exchange.BankRefundRequest{ID: uuid.New(), ExceptionID: x.ID, Payee: to, Note: "not ours"}
}

// agreed is the refund that two officers agreed to.
func (r returns) agreed(t *testing.T, x exchange.PaymentException, to exchange.BankPayee) exchange.Refund {
	t.Helper()
	c, err := r.s.ProposeBankRefund(t.Context(), r.ask(x, to), r.two)
	if err == nil {
		_, err = r.s.ConfirmChange(t.Context(), c.ID, "", r.admin)
	}
	if err != nil {
		t.Fatalf("agree to a refund by bank: %v", err)
	}
	return r.refundOf(t, x)
}

// refundOf is the newest refund of an exception.
func (r returns) refundOf(t *testing.T, x exchange.PaymentException) exchange.Refund {
	t.Helper()
	all, _, err := r.s.ListRefunds(t.Context(), store.RefundFilter{ExceptionID: x.ID, Rail: exchange.RefundByBank}, store.Page{Number: 1, Size: 5})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d refunds, %v", len(all), err)
	}
	return all[0]
}

func (r returns) reserved(t *testing.T, x exchange.PaymentException, to exchange.BankPayee) exchange.Refund {
	t.Helper()
	f := r.agreed(t, x, to)
	for range 2 {
		if _, err := r.s.BeginBankRefund(t.Context(), f.ID); err != nil {
			t.Fatalf("reserve at the bank: %v", err)
		}
	}
	return r.refundOf(t, x)
}

func (r returns) confirm(ctx context.Context, f exchange.Refund, step exchange.WithdrawalStep, by exchange.Principal) (exchange.Refund, error) {
	request, err := uuid.NewV7()
	if err != nil {
		return f, err
	}
	a, err := storetest.Ask(ctx, r.s, exchange.IntendRefundPaid, request, f.ID, step.Terms(), by)
	if err != nil {
		return f, err
	}
	done, err := r.s.ConfirmBankRefund(ctx, f.ID, a)
	if err == nil {
		_, err = r.s.ConfirmBankRefund(ctx, f.ID, a) // again
	}
	return done, err
}

func paidBack(f exchange.Refund, reference string) exchange.WithdrawalStep {
	return exchange.WithdrawalStep{Reference: reference, PaidOn: exchange.DateOf(time.Now()), Amount: f.Amount}
}

func (r returns) is(t *testing.T, x exchange.PaymentException, status exchange.ExceptionStatus, refund exchange.RefundStatus, waits string) {
	t.Helper()
	now, err := r.s.Exception(t.Context(), x.ID)
	f := r.refundOf(t, x)
	if err != nil || now.Status != status || f.Status != refund || f.WaitsFor() != waits {
		t.Errorf("the exception is %s, its refund %s, which waits for %s, %v; want %s, %s, %s", now.Status, f.Status, f.WaitsFor(), err, status, refund, waits)
	}
}

// Two officers send money back where it came from, an officer pays it, and confirms with the bank's reference. Each step is booked once.
func TestMoneyGoesBackByBank(t *testing.T) {
	t.Parallel()
	r := newReturns(t)
	ctx := t.Context()
	suspense := exchange.House(exchange.AccSuspense, money.KES)
	_, err := r.s.ProposeBankRefund(ctx, r.ask(r.x, r.payee), r.one)
	wantFault(t, err, exchange.CodeForbidden) // who brought the statement in
	c, err := r.s.ProposeBankRefund(ctx, r.ask(r.x, r.payee), r.two)
	if err != nil || !strings.Contains(string(c.Was), `"sender_account": "0110222333"`) && !strings.Contains(string(c.Was), `"sender_account":"0110222333"`) {
		t.Fatalf("the second officer sees %s, %v", c.Was, err)
	}
	if again, err := r.s.ProposeBankRefund(ctx, r.ask(r.x, r.payee), r.two); err != nil || again.ID != c.ID {
		t.Errorf("proposed again it is %s, %v", again.ID, err)
	}
	for _, by := range []exchange.Principal{r.one, r.two} {
		_, err = r.s.ConfirmChange(ctx, c.ID, "", by)
		wantFault(t, err, exchange.CodeForbidden)
	}
	wantBalance(t, r.s, suspense, "300", "0")
	if _, err = r.s.ConfirmChange(ctx, c.ID, "", r.admin); err != nil {
		t.Fatal(err)
	}
	r.is(t, r.x, exchange.ExcRefunding, exchange.RefundPending, exchange.WaitFunds)
	wantBalance(t, r.s, suspense, "0", "0")
	wantBalance(t, r.s, refundsDue(), "300", "0")
	_, err = r.s.ProposeBankRefund(ctx, r.ask(r.x, r.payee), r.two)
	wantFault(t, err, exchange.CodeStateConflict)
	f := r.refundOf(t, r.x)
	_, err = r.confirm(ctx, f, paidBack(f, "FT1"), r.third)
	wantFault(t, err, exchange.CodeStateConflict) // nothing is reserved yet
	for range 2 {
		if f, err = r.s.BeginBankRefund(ctx, f.ID); err != nil || f.BankID != r.bank.ID {
			t.Fatalf("reserved at %s, %v", f.BankID, err)
		}
	}
	r.is(t, r.x, exchange.ExcRefunding, exchange.RefundProcessing, exchange.WaitBank)
	wantBalance(t, r.s, r.bank.Ledger(), "1300", "300")
	_, err = r.confirm(ctx, f, paidBack(f, "FT1"), r.two)
	wantFault(t, err, exchange.CodeForbidden) // who chose the payee
	more := paidBack(f, "FT1")
	more.Amount = kes("301")
	_, err = r.confirm(ctx, f, more, r.third)
	wantFault(t, err, exchange.CodeInvalid)
	if f, err = r.confirm(ctx, f, paidBack(f, "ft-1"), r.third); err != nil || f.Receipt != "FT1" {
		t.Fatalf("confirmed %+v, %v", f, err)
	}
	r.is(t, r.x, exchange.ExcRefunded, exchange.RefundCompleted, exchange.WaitNothing)
	wantBalance(t, r.s, r.bank.Ledger(), "1000", "0")
	wantBalance(t, r.s, refundsDue(), "0", "0")
	_, err = r.s.ProposeBankRefundFailure(ctx, f.ID, "why", r.two)
	wantFault(t, err, exchange.CodeStateConflict)
	// The bank's statement has the payment: it is found by its reference.
	l := moved("FT1", "-300")
	l.ValueDate = exchange.DateOf(time.Now())
	l.BookedOn = l.ValueDate
	r.imports(t, "1300", l)
	r.settle(t)
	r.wantLine(t, "FT1", exchange.LineMatched, exchange.LineOfRefund, f.ID)
	wantBooks(t, r.s)
}

// Above a value two officers confirm the same, or a line of the bank's statement is the second witness. One reference is that of one payment.
func TestTwoWitnessesOfARefundByBank(t *testing.T) {
	t.Parallel()
	r := newReturns(t)
	ctx := t.Context()
	second := r.came(t, "1300", "IN2")
	storetest.Patch(t, r.s, store.LimitPatch{Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{exchange.ApproveBankPayout: {OneAbove: kes("100"), TwoAbove: kes("100")}}})
	f := r.reserved(t, r.x, r.payee)
	if _, err := r.confirm(ctx, f, paidBack(f, "FT1"), r.third); err != nil {
		t.Fatal(err)
	}
	r.is(t, r.x, exchange.ExcRefunding, exchange.RefundProcessing, exchange.WaitBankSecond)
	_, err := r.confirm(ctx, f, paidBack(f, "FT2"), r.one)
	wantFault(t, err, exchange.CodeConflict)
	_, err = r.confirm(ctx, f, paidBack(f, "FT1"), r.third)
	wantFault(t, err, exchange.CodeConflict)
	_, err = r.s.ConfirmChange(ctx, r.failure(t, f, r.two).ID, "", r.admin)
	wantFault(t, err, exchange.CodeConflict) // another officer says that it was paid
	if _, err = r.confirm(ctx, f, paidBack(f, "FT1"), r.one); err != nil {
		t.Fatal(err)
	}
	r.is(t, r.x, exchange.ExcRefunded, exchange.RefundCompleted, exchange.WaitNothing)

	f = r.reserved(t, second, r.payee)
	_, err = r.confirm(ctx, f, paidBack(f, "FT1"), r.third)
	wantFault(t, err, exchange.CodeConflict) // that reference paid the first
	l := moved("FT9", "-300")
	l.ValueDate = exchange.DateOf(time.Now())
	l.BookedOn = l.ValueDate
	r.imports(t, "1600", l)
	step := paidBack(f, "FT9")
	step.LineID = r.line(t, "FT9").ID
	_, err = r.confirm(ctx, f, step, r.one)
	wantFault(t, err, exchange.CodeForbidden) // who brought it in
	if f, err = r.confirm(ctx, f, step, r.third); err != nil || f.Status != exchange.RefundCompleted || f.LineID != step.LineID {
		t.Fatalf("with a line it is %+v, %v", f, err)
	}
	r.wantLine(t, "FT9", exchange.LineMatched, exchange.LineOfRefund, f.ID)
	_, err = r.s.ProposeFreeLine(ctx, step.LineID, "why", r.two)
	wantFault(t, err, exchange.CodeStateConflict)
	wantBooks(t, r.s)
}

func (r returns) failure(t *testing.T, f exchange.Refund, by exchange.Principal) exchange.ControlChange {
	t.Helper()
	c, err := r.s.ProposeBankRefundFailure(t.Context(), f.ID, "the bank refused it", by)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// What the bank did not pay is in suspense again, and the exception is open for another refund, or for what explains its line.
func TestARefundThatTheBankRefused(t *testing.T) {
	t.Parallel()
	r := newReturns(t)
	ctx := t.Context()
	first := r.reserved(t, r.x, r.payee)
	c := r.failure(t, first, r.third)
	_, err := r.s.ConfirmChange(ctx, c.ID, "", r.third)
	wantFault(t, err, exchange.CodeForbidden)
	if _, err := r.s.ConfirmChange(ctx, c.ID, "", r.admin); err != nil {
		t.Fatal(err)
	}
	r.is(t, r.x, exchange.ExcOpen, exchange.RefundFailed, exchange.WaitNothing)
	wantBalance(t, r.s, exchange.House(exchange.AccSuspense, money.KES), "300", "0")
	wantBalance(t, r.s, r.bank.Ledger(), "1300", "0")
	if f, err := r.s.BeginBankRefund(ctx, first.ID); err != nil || f.Status != exchange.RefundFailed {
		t.Errorf("begun again it is %s, %v", f.Status, err)
	}
	// Another account than the statement names has a reason, which the second officer sees.
	elsewhere := r.payee
	elsewhere.AccountNumber = "999"
	_, err = r.s.ProposeBankRefund(ctx, r.ask(r.x, elsewhere), r.two)
	wantFault(t, err, exchange.CodeInvalid)
	elsewhere.Reason = "the account is closed; a letter of Jane Roe names this one"
	pending := r.agreed(t, r.x, elsewhere)
	if pending.ID == first.ID || pending.Payee != elsewhere {
		t.Errorf("the second refund is %+v", pending)
	}
	if _, err := r.s.ConfirmChange(ctx, r.failure(t, pending, r.two).ID, "", r.admin); err != nil { // before anything was reserved
		t.Fatal(err)
	}
	last := r.reserved(t, r.x, elsewhere)
	if _, err := r.confirm(ctx, last, paidBack(last, "FT3"), r.third); err != nil {
		t.Fatal(err)
	}
	r.is(t, r.x, exchange.ExcRefunded, exchange.RefundCompleted, exchange.WaitNothing)
	wantBalance(t, r.s, exchange.House(exchange.AccSuspense, money.KES), "0", "0")
	wantBalance(t, r.s, r.bank.Ledger(), "1000", "0")
	wantBooks(t, r.s)
}

// Two officers don't end a refund whose payment a statement of the bank shows: who paid it may be away.
func TestARefundThatAStatementShowsIsNotEnded(t *testing.T) {
	t.Parallel()
	r := newReturns(t)
	ctx := t.Context()
	f := r.reserved(t, r.x, r.payee)
	c := r.failure(t, f, r.two)
	l := moved("FT8", "-300")
	l.ValueDate, l.PartyAccount = exchange.DateOf(time.Now()), "0110-222 333"
	l.BookedOn = l.ValueDate
	r.imports(t, "1300", l)
	_, err := r.s.ConfirmChange(ctx, c.ID, "", r.admin)
	wantFault(t, err, exchange.CodeConflict)
	if _, err := storetest.As(t, r.s, store.RoleFlows).ExecContext(ctx, `UPDATE refunds SET status = 'failed', failure_id = $2, version = version + 1 WHERE id = $1`, f.ID, c.ID); err == nil {
		t.Error("the database ended it")
	}
	step := paidBack(f, "FT8")
	step.LineID = r.line(t, "FT8").ID
	if f, err = r.confirm(ctx, f, step, r.third); err != nil || f.Status != exchange.RefundCompleted {
		t.Fatalf("confirmed by the line it is %+v, %v", f, err)
	}
	r.is(t, r.x, exchange.ExcRefunded, exchange.RefundCompleted, exchange.WaitNothing)
	wantBooks(t, r.s)
}

// Money that no source knows to have come goes nowhere, whoever writes that it did.
func TestMoneyThatNeverCameGoesNowhere(t *testing.T) {
	t.Parallel()
	r := newReturns(t)
	for _, role := range []store.Role{store.RoleFlows, store.RoleMomo, store.RoleChain} {
		invented := r.x
		invented.ID = uuid.New()
		_, err := storetest.As(t, r.s, role).ExecContext(t.Context(), `INSERT INTO payment_exceptions SELECT (jsonb_populate_record(x, jsonb_build_object('id', $2::uuid, 'receipt', $3::text, 'line_id', NULL))).*
			FROM payment_exceptions x WHERE x.id = $1`, r.x.ID, invented.ID, "INVENTED"+string(role))
		if err != nil {
			t.Fatalf("%s: %v", role, err)
		}
		_, err = r.s.ProposeBankRefund(t.Context(), r.ask(invented, exchange.BankPayee{BankName: "B", AccountName: "N", AccountNumber: "1", Reason: "why"}), r.two)
		wantFault(t, err, exchange.CodeStateConflict)
	}
}

// Money that proves to be another object's, or about which officers decide otherwise, does not go back; and while it goes back, nothing else
// takes it.
func TestMoneyIsNotRefundedBesideAnotherUse(t *testing.T) {
	t.Parallel()
	r := newReturns(t)
	ctx := t.Context()
	c, err := r.s.ProposeBankRefund(ctx, r.ask(r.x, r.payee), r.two)
	if err != nil {
		t.Fatal(err)
	}
	r.book(t, r.entry(t, exchange.JournalCapitalIn, "300"))
	r.settle(t) // which explains the line
	_, err = r.s.ConfirmChange(ctx, c.ID, "", r.admin)
	wantFault(t, err, exchange.CodeStateConflict)

	other := r.came(t, "1300", "IN2")
	f := r.reserved(t, other, r.payee)
	_, _, err = r.s.DecideException(ctx, decide(t, other, exchange.ExcAccepted), r.two)
	wantFault(t, err, exchange.CodeStateConflict)
	e := r.book(t, r.entry(t, exchange.JournalCapitalIn, "300"))
	_, err = r.s.MatchLine(ctx, r.line(t, "IN2").ID, exchange.LineOfJournal, e.ID, r.two)
	wantFault(t, err, exchange.CodeStateConflict)
	if _, err := r.confirm(ctx, f, paidBack(f, "FT1"), r.third); err != nil {
		t.Fatal(err)
	}
	out := moved("OUT1", "-40")
	r.imports(t, "1600", out)
	r.settle(t)
	gone, err := r.s.Exception(ctx, r.line(t, "OUT1").ExceptionID)
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.s.ProposeBankRefund(ctx, r.ask(gone, exchange.BankPayee{BankName: "B", AccountName: "A", AccountNumber: "1", Reason: "why"}), r.two)
	wantFault(t, err, exchange.CodeStateConflict) // it left
	wantBooks(t, r.s)
}

// Of two officers who confirm at the same moment, and of two refunds of one exception, one succeeds.
func TestRefundsByBankAtTheSameMoment(t *testing.T) {
	t.Parallel()
	r := newReturns(t)
	ctx := t.Context()
	other := r.payee
	other.BankName = "KCB"
	var changes []uuid.UUID
	for _, to := range []exchange.BankPayee{r.payee, other} {
		c, err := r.s.ProposeBankRefund(ctx, r.ask(r.x, to), r.two)
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, c.ID)
	}
	codes := atOnce(4, func(i int) error {
		_, err := r.s.ConfirmChange(ctx, changes[i%2], "", []exchange.Principal{r.admin, r.third}[i/2])
		return err
	})
	if codes[""] != 1 {
		t.Errorf("outcomes %v, want one refund", codes)
	}
	f := r.refundOf(t, r.x)
	if codes = atOnce(4, func(int) error { _, err := r.s.BeginBankRefund(ctx, f.ID); return err }); codes[""] != 4 {
		t.Errorf("begun with %v", codes)
	}
	wantBalance(t, r.s, r.bank.Ledger(), "1300", "300")
	if codes = atOnce(4, func(i int) error {
		_, err := r.confirm(ctx, f, paidBack(f, "FT"+string(rune('1'+i))), []exchange.Principal{r.third, r.admin, r.one, r.third}[i])
		return err
	}); codes[""] != 1 {
		t.Errorf("confirmed with %v", codes)
	}
	wantBalance(t, r.s, r.bank.Ledger(), "1000", "0")
	wantBooks(t, r.s)
}

// A freeze and a database that was put back keep the money where it is. Officers who agreed and may not decide any more are none.
func TestRefundsByBankThatMayNotLeave(t *testing.T) {
	t.Parallel()
	r := newReturns(t)
	ctx := t.Context()
	f := r.agreed(t, r.x, r.payee)
	storetest.Exec(t, r.s, `UPDATE users SET is_active = false WHERE id = $1`, r.admin.UserID)
	storetest.Patch(t, r.s, store.LimitPatch{Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{exchange.ApproveRefund: {OneAbove: kes("100"), TwoAbove: kes("200")}}})
	_, err := r.s.BeginBankRefund(ctx, f.ID)
	wantFault(t, err, exchange.CodeForbidden)
	if _, err := r.s.ConfirmChange(ctx, r.failure(t, f, r.two).ID, "", r.third); err != nil {
		t.Fatal(err)
	}
	r.admin = r.third
	f = r.agreed(t, r.x, r.payee)
	if _, err := r.s.Freeze(ctx, storetest.NewID(t), "why", r.two); err != nil {
		t.Fatal(err)
	}
	_, err = r.s.BeginBankRefund(ctx, f.ID)
	wantFault(t, err, exchange.CodeSuspended)
	r.is(t, r.x, exchange.ExcRefunding, exchange.RefundPending, exchange.WaitFunds)
	wantBalance(t, r.s, r.bank.Ledger(), "1300", "0")
}

// Whoever has one login, past the code, neither refunds money twice, nor more than came, nor to another account than two officers saw.
func TestTheDatabaseRefusesInventedRefundsByBank(t *testing.T) {
	t.Parallel()
	r := newReturns(t)
	pending := r.agreed(t, r.x, r.payee)
	second := r.came(t, "1300", "IN2")
	processing := r.reserved(t, second, r.payee)
	open := r.came(t, "1600", "IN3")
	done := r.reserved(t, r.came(t, "1900", "IN4"), r.payee)
	if _, err := r.confirm(t.Context(), done, paidBack(done, "FT1"), r.third); err != nil {
		t.Fatal(err)
	}
	id := func(u uuid.UUID) string { return "'" + u.String() + "'" }
	set := func(f exchange.Refund, fields string) string {
		return `UPDATE refunds SET version = version + 1, ` + fields + ` WHERE id = ` + id(f.ID)
	}
	exception := func(x exchange.PaymentException, status string) string {
		return `UPDATE payment_exceptions SET status = '` + status + `', version = version + 1 WHERE id = ` + id(x.ID)
	}
	invented := `INSERT INTO refunds (id, rail, exception_id, asset, amount, reason, status, bank_name, account_name, account_number, payee_reason, requested_by, change_id, created_at, updated_at)
		SELECT gen_random_uuid(), 'bank', ` + id(open.ID) + `, 'KES', 300, 'x', 'pending', 'B', 'N', '1', 'why', requested_by, change_id, now(), now() FROM refunds WHERE id = ` + id(done.ID)
	entry := func(f exchange.Refund, what string) string {
		return `INSERT INTO ledger_entries (key, kind, object_type, object_id, digest, at) VALUES ('refund:` + f.ID.String() + `:` + what + `', 'bank_refund.` + what +
			`', 'refund', ` + id(f.ID) + `, decode(repeat('00', 16), 'hex'), now())`
	}
	crypto := exchange.PaymentException{ID: uuid.New()}
	storetest.Exec(t, r.s, `BEGIN; SET LOCAL session_replication_role = replica; INSERT INTO payment_exceptions SELECT (jsonb_populate_record(x, jsonb_build_object(
		'id', '`+crypto.ID.String()+`', 'receipt', 'ON CHAIN', 'line_id', NULL, 'asset', 'USDT', 'status', 'refunding'))).* FROM payment_exceptions x WHERE x.id = `+id(open.ID)+`; COMMIT`)
	for name, statement := range map[string]string{
		"crypto that is open again":        exception(crypto, "open"),
		"a refund by nobody":               exception(open, "refunding") + `; ` + invented,
		"an exception that is refunded":    exception(open, "refunding"),
		"an exception that was refunded":   exception(second, "refunded"),
		"an exception that is open again":  exception(second, "open"),
		"money that is taken meanwhile":    exception(second, "credited"),
		"more than came":                   set(pending, `amount = 3000`),
		"another account":                  set(pending, `account_number = '666'`),
		"another payee":                    set(pending, `account_name = 'Me'`),
		"another exception":                set(pending, `exception_id = `+id(open.ID)),
		"a step without a release":         set(pending, `status = 'processing', bank_hold_id = `+id(done.BankHoldID)+`, begun_at = now()`),
		"a payment that nobody confirmed":  set(processing, `status = 'completed', receipt = 'FT5', completed_at = now()`),
		"an end by nobody":                 set(processing, `status = 'failed', failure_id = change_id`),
		"an end of what was paid":          set(done, `status = 'failed', receipt = '', completed_at = NULL, failure_id = change_id`),
		"another reference":                set(done, `receipt = 'FT7'`),
		"a review":                         set(processing, `status = 'needs_review'`),
		"money that is freed":              `UPDATE holds SET status = 'released' WHERE id = ` + id(processing.BankHoldID),
		"money that is used up":            `UPDATE holds SET status = 'captured' WHERE id = ` + id(processing.BankHoldID),
		"money that is less":               `UPDATE holds SET amount = 1 WHERE id = ` + id(processing.BankHoldID),
		"an entry of a payment":            entry(processing, "paid"),
		"an entry of money that came back": entry(processing, "returned"),
		"a deletion":                       `DELETE FROM refunds WHERE id = ` + id(pending.ID),
		"a line that is its own witness":   `UPDATE bank_lines SET status = 'matched', object_type = 'bank_refund', object_id = ` + id(done.ID) + `, matched_at = now(), version = version + 1 WHERE id = ` + id(open.LineID),
		"a release that counts no more":    `UPDATE releases SET ended_at = now() WHERE purpose = 'refund' AND object_id = ` + id(processing.ID),
		"a word that the officer did not say": `INSERT INTO bank_confirmations (id, refund_id, officer_id, reference, paid_on, amount, note, created_at)
			VALUES (gen_random_uuid(), ` + id(processing.ID) + `, ` + id(r.third.UserID) + `, 'FT5', now(), 300, '', now())`,
		"a payment by phone": `INSERT INTO payment_attempts (id, direction, object_type, object_id, provider, status, asset, amount, phone, reference, hold_id, created_at)
			VALUES (gen_random_uuid(), 'payout', 'refund', ` + id(processing.ID) + `, 'daraja', 'created', 'KES', 300, '254712345678', 'x', gen_random_uuid(), now())`,
	} {
		for _, role := range []store.Role{store.RoleAPI, store.RoleFlows, store.RoleMomo, store.RoleChain, store.RoleSigner} {
			tx, err := storetest.As(t, r.s, role).BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = tx.ExecContext(t.Context(), statement); err == nil {
				err = tx.Commit()
			}
			_ = tx.Rollback()
			if err == nil {
				t.Errorf("%s was stored by %s", name, role)
			} else if strings.Contains(err.Error(), "syntax") || strings.Contains(err.Error(), "column \"") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	wantBooks(t, r.s)
}

// The login of the API opens a refund, and does not have it paid: that is its flow's.
func TestTheAPIPaysNoRefundByBank(t *testing.T) {
	t.Parallel()
	r := newReturns(t)
	f := r.agreed(t, r.x, r.payee)
	for _, role := range []store.Role{store.RoleAPI, store.RoleMomo} {
		tx, err := storetest.As(t, r.s, role).BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			`UPDATE releases SET passed_at = now() WHERE purpose = 'refund' AND object_id = ` + quotedID(f.ID),
			`UPDATE refunds SET status = 'processing', bank_hold_id = gen_random_uuid(), begun_at = now(), version = version + 1 WHERE id = ` + quotedID(f.ID),
		} {
			if err == nil {
				_, err = tx.ExecContext(t.Context(), statement)
			}
		}
		if sqlState(err) != "42501" {
			t.Errorf("%s: %v", role, err)
		}
		_ = tx.Rollback()
	}
}
