package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// threeOfficers are two who may say that the bank did not pay, and a third one.
func (x *sale) threeOfficers(t *testing.T) (one, two, three exchange.User) {
	t.Helper()
	return storetest.User(t, x.s, exchange.RoleTreasury), storetest.User(t, x.s, exchange.RoleAdmin), storetest.User(t, x.s, exchange.RoleTreasury)
}

// proposes has an officer propose that the bank did not pay.
func (x *sale) proposes(t *testing.T, by exchange.User) exchange.ControlChange {
	t.Helper()
	c, err := x.s.ProposeBankPayoutRefusal(t.Context(), x.order.ID, "the account is closed", storetest.PrincipalOf(by))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (x *sale) agreesTo(t *testing.T, c exchange.ControlChange, by exchange.User) error {
	t.Helper()
	_, err := x.s.ConfirmChange(t.Context(), c.ID, "", storetest.PrincipalOf(by))
	return err
}

// unpaid has two officers say that the bank did not pay.
func (x *sale) unpaid(t *testing.T) {
	t.Helper()
	one, two, _ := x.threeOfficers(t)
	if err := x.agreesTo(t, x.proposes(t, one), two); err != nil {
		t.Fatal(err)
	}
}

// A payment that the bank did not make is over when two officers say so, one of whom may be the one who named its reference. Then it can be
// queued again, or the crypto is refunded.
func TestBankPayoutIsRefused(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), banking(t)
	x.alone(t)
	one, two, _ := x.threeOfficers(t)
	if _, err := x.confirm(t, x.word(t, one, "FT1")); err != nil {
		t.Fatal(err)
	}
	c := twice(t, func(a, b exchange.ControlChange) bool { return a.ID == b.ID }, func() (exchange.ControlChange, error) {
		return x.s.ProposeBankPayoutRefusal(ctx, x.order.ID, "the account is closed", storetest.PrincipalOf(one))
	})
	if !strings.Contains(string(c.Was), `"FT1"`) {
		t.Errorf("the second officer does not see under which reference it is said to be paid: %s", c.Was)
	}
	x.bankPayout(t, exchange.PayoutProcessing, exchange.WaitBankSecond, 1)
	x.wantBank(t, "300000", "1293")
	wantFault(t, x.agreesTo(t, c, one), exchange.CodeForbidden)
	for range 2 {
		if err := x.agreesTo(t, c, two); err != nil {
			t.Fatal(err)
		}
	}
	if p := x.payout(t); p.Status != exchange.PayoutRefused || p.RefusedCode != exchange.RefusedByBank || !p.Doubted {
		t.Errorf("refused %+v", p)
	}
	x.bankPayout(t, exchange.PayoutRefused, exchange.WaitOperator, 0)
	x.wantBank(t, "300000", "0")
	if _, err := x.s.BeginBankPayout(ctx, x.order.ID); err != nil {
		t.Fatal(err)
	}
	x.wantBank(t, "300000", "1293")
	x.unpaid(t)
	r := x.backing(t)
	x.wantBank(t, "300000", "0")
	_, err := x.s.BeginBankPayout(ctx, x.order.ID)
	wantFault(t, err, exchange.CodeStateConflict)
	// Officers' statement that the bank paid nothing is no proof: the refund of the crypto needs another one.
	if got, err := x.s.ApproveRefundPayment(ctx, r.ID); err != nil || got.Needed != 1 || got.Payment.ID != uuid.Nil {
		t.Errorf("the refund needs %d officers and has payment %s, %v", got.Needed, got.Payment.ID, err)
	}
}

// What officers agree to is one payment as they saw it: not the next try of the order, not one that was made since, and none by an officer who
// takes part in the order.
func TestARefusalIsOfOnePayment(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), banking(t)
	one, two, three := x.threeOfficers(t)
	first, second, late := x.proposes(t, one), x.proposes(t, two), x.proposes(t, three)
	if err := x.agreesTo(t, first, two); err != nil {
		t.Fatal(err)
	}
	wantFault(t, x.agreesTo(t, second, one), exchange.CodeStateConflict)
	if _, err := x.s.BeginBankPayout(ctx, x.order.ID); err != nil {
		t.Fatal(err)
	}
	wantFault(t, x.agreesTo(t, second, one), exchange.CodeStateConflict) // it reserves other money
	wantFault(t, x.agreesTo(t, late, two), exchange.CodeStateConflict)
	again := x.proposes(t, one)
	if done, err := x.confirm(t, x.word(t, three, "FT1")); err != nil || !done {
		t.Fatalf("confirmed: %t, %v", done, err)
	}
	wantFault(t, x.agreesTo(t, again, two), exchange.CodeStateConflict)
	x.bankPayout(t, exchange.PayoutCompleted, exchange.WaitNothing, 1)
	x.wantBank(t, "298707", "0")

	of := banking(t)
	storetest.Exec(t, of.s, `ALTER TABLE users DISABLE TRIGGER USER`) // two officers agreed to it
	storetest.Exec(t, of.s, `UPDATE users SET role = 'treasury' WHERE id = $1`, of.m.Customer.ID)
	storetest.Exec(t, of.s, `ALTER TABLE users ENABLE TRIGGER USER`)
	_, err := of.s.ProposeBankPayoutRefusal(ctx, of.order.ID, "why", storetest.PrincipalOf(of.m.Customer))
	wantFault(t, err, exchange.CodeForbidden)
	c := of.proposes(t, storetest.User(t, of.s, exchange.RoleTreasury))
	wantFault(t, of.agreesTo(t, c, of.m.Customer), exchange.CodeForbidden)
}

// An officer's word that the bank paid stands against the refusal, also when the officer is switched off: it counts no more then, and the two
// who end the payment see its reference. Naming another one does not hide it.
func TestWordsOfWhoIsSwitchedOffAreSeen(t *testing.T) {
	t.Parallel()
	x := banking(t)
	x.alone(t)
	one, two, three := x.threeOfficers(t)
	if _, err := x.confirm(t, x.word(t, one, "FT1")); err != nil {
		t.Fatal(err)
	}
	_, err := x.s.ProposeBankPayoutRefusal(t.Context(), x.order.ID, "why", storetest.PrincipalOf(two))
	wantFault(t, err, exchange.CodeConflict)
	storetest.Exec(t, x.s, `UPDATE users SET is_active = false WHERE id = $1`, one.ID)
	if err := x.ends(t, store.RoleFlows); !refused(err) {
		t.Errorf("it is ended against the word of who was switched off: %v", err)
	}
	early := x.proposes(t, three)
	if _, err := x.confirm(t, x.word(t, two, "FT2")); err != nil { // who takes the place of the first one
		t.Fatal(err)
	}
	wantFault(t, x.agreesTo(t, early, two), exchange.CodeStateConflict) // there is a reference that it does not show
	if c := x.proposes(t, two); !strings.Contains(string(c.Was), `"references": ["FT1", "FT2"]`) {
		t.Errorf("the other officer sees %s", c.Was)
	} else if err := x.agreesTo(t, c, three); err != nil {
		t.Fatal(err)
	}
	x.bankPayout(t, exchange.PayoutRefused, exchange.WaitOperator, 0)
	x.wantBank(t, "300000", "0")
}

// Two officers don't end a payment that a statement of the bank shows: who made it may be away.
func TestAPaymentThatAStatementShowsIsNotRefused(t *testing.T) {
	t.Parallel()
	x := banking(t)
	one, two, three := x.threeOfficers(t)
	c := x.proposes(t, one)
	l := moved("FT8", "-1293")
	l.ValueDate, l.PartyAccount = exchange.DateOf(time.Now()), "0011-223 344"
	l.BookedOn = l.ValueDate
	bank := desk{s: x.s, bank: storetest.BankAccount(t, x.s), one: storetest.PrincipalOf(three)}
	bank.imports(t, "300000", l)
	wantFault(t, x.agreesTo(t, c, two), exchange.CodeConflict)
	_, err := x.s.ProposeBankPayoutRefusal(t.Context(), x.order.ID, "why", storetest.PrincipalOf(two))
	wantFault(t, err, exchange.CodeConflict)
	if done, err := x.confirm(t, x.word(t, two, "FT8")); err != nil || !done {
		t.Fatalf("confirmed: %t, %v", done, err)
	}
}

// Of a confirmation and two agreements at the same moment, the payment ends once.
func TestRaceARefusalAndAConfirmation(t *testing.T) {
	t.Parallel()
	x := banking(t)
	one, two, three := x.threeOfficers(t)
	c, other, said := x.proposes(t, one), x.proposes(t, two), x.word(t, three, "FT1")
	codes := atOnce(3, func(i int) error {
		switch i {
		case 0:
			return x.agreesTo(t, c, two)
		case 1:
			return x.agreesTo(t, other, one)
		}
		_, err := x.confirm(t, said)
		return err
	})
	if codes[""] != 1 || codes[exchange.CodeStateConflict] != 2 {
		t.Errorf("outcomes %v", codes)
	}
	if p := x.payout(t); p.Status != exchange.PayoutRefused && p.Status != exchange.PayoutCompleted {
		t.Errorf("the payout is %s", p.Status)
	}
	wantBooks(t, x.s)
}

// ends tries to end the payment of an order by bank as refused, past the code and with the login of a process.
func (x *sale) ends(t *testing.T, role store.Role, before ...string) error {
	t.Helper()
	tx, err := storetest.As(t, x.s, role).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, s := range append(before, `UPDATE order_payouts SET status = 'refused', refused_code = 'bank', version = version + 1`) {
		if _, err := tx.ExecContext(t.Context(), s); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// Whoever has one login, past the code, does not end a payment by bank as refused, nor takes back an officer's word that it was made, nor frees
// its money. What one officer proposed is not enough, nor what two agreed about another payment, or before.
func TestTheDatabaseRefusesToEndABankPayment(t *testing.T) {
	t.Parallel()
	x := banking(t)
	x.alone(t)
	one, two, three := x.threeOfficers(t)
	x.proposes(t, two)
	x.unpaid(t)
	if _, err := x.s.BeginBankPayout(t.Context(), x.order.ID); err != nil {
		t.Fatal(err)
	}
	x.proposes(t, three)
	agreed := func(order, hold string) string {
		return `INSERT INTO control_changes (id, kind, was, change, proposed_by, proposed_at, expires_at, status) SELECT gen_random_uuid(), 'bank_payout_refusal',
			jsonb_build_object('hold_id', ` + hold + `), jsonb_build_object('order_id', ` + order + `), '` + three.ID.String() + `', now(), now() + interval '1 day', 'pending' FROM order_payouts p`
	}
	by := func(officer exchange.User) string {
		return `UPDATE control_changes SET status = 'confirmed', decided_by = '` + officer.ID.String() + `', decided_at = now() WHERE status = 'pending' AND change ->> 'note' IS NULL`
	}
	forged := map[string][]string{
		"agreed by no one":         nil,
		"proposed only":            {agreed("p.id", "p.hold_id")},
		"by one":                   {agreed("p.id", "p.hold_id"), by(three)},
		"of another order":         {agreed("gen_random_uuid()", "p.hold_id"), by(two)},
		"of another try":           {agreed("p.id", "gen_random_uuid()"), by(two)},
		"with the customer":        {agreed("p.id", "p.hold_id"), by(x.m.Customer)},
		"by what was agreed early": {`UPDATE control_changes SET applied_in = pg_current_xact_id() WHERE status = 'confirmed'`},
		"its money freed first":    {`UPDATE holds SET status = 'released', updated_at = now() WHERE id = (SELECT hold_id FROM order_payouts)`},
	}
	for name, before := range forged {
		for _, role := range loginsOfSwaps {
			if err := x.ends(t, role, before...); !refused(err) {
				t.Errorf("%s, %s: %v", role, name, err)
			}
		}
	}
	if _, err := x.confirm(t, x.word(t, one, "FT1")); err != nil {
		t.Fatal(err)
	}
	for _, role := range loginsOfSwaps {
		if _, err := storetest.As(t, x.s, role).ExecContext(t.Context(), `UPDATE bank_confirmations SET withdrawn_at = now() WHERE withdrawn_at IS NULL`); !refused(err) {
			t.Errorf("%s takes back an officer's word: %v", role, err)
		}
		if err := x.ends(t, role, agreed("p.id", "p.hold_id"), by(two)); !refused(err) {
			t.Errorf("%s ends it against an officer's word: %v", role, err)
		}
	}
	x.bankPayout(t, exchange.PayoutProcessing, exchange.WaitBankSecond, 1)
	x.wantBank(t, "300000", "1293")
}
