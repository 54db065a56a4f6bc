package store_test

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// officers are two persons who may agree.
func (x *sale) officers(t *testing.T) (one, two exchange.Principal) {
	t.Helper()
	return storetest.PrincipalOf(storetest.User(t, x.s, exchange.RoleTreasury)), storetest.PrincipalOf(storetest.User(t, x.s, exchange.RoleAdmin))
}

// unheard has an attempt sent of which nobody says what became of it.
func (x *sale) unheard(t *testing.T, state exchange.SubmissionState) exchange.PaymentAttempt {
	t.Helper()
	a := x.begun(t, 1)
	a, err := x.s.RecordSubmission(t.Context(), a.ID, exchange.Submission{State: state})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (x *sale) old(t *testing.T) {
	t.Helper()
	storetest.Exec(t, x.s, `UPDATE refund_policy SET unknown_seconds = 0`)
}

// A payout of which the operator says nothing for long enough is declared not made by two persons, and is in doubt for
// ever: its refund needs another person, and a success after that is booked as paid twice.
func TestTwoPersonsDeclareAPayoutNotMade(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), owing(t)
	one, two := x.officers(t)
	_, err := x.s.ProposeUnpaid(ctx, x.order.ID, "not in the portal", one)
	wantFault(t, err, exchange.CodeStateConflict) // nothing was sent
	a := x.unheard(t, exchange.Accepted)
	_, err = x.s.ProposeUnpaid(ctx, x.order.ID, "not in the portal", one)
	wantFault(t, err, exchange.CodeStateConflict) // too young
	x.old(t)
	_, err = x.s.ProposeUnpaid(ctx, x.order.ID, "", one)
	wantFault(t, err, exchange.CodeInvalid)
	c := twice(t, func(a, b exchange.ControlChange) bool { return a.ID == b.ID }, func() (exchange.ControlChange, error) {
		return x.s.ProposeUnpaid(ctx, x.order.ID, "not in the portal", one)
	})
	if c.Kind != exchange.ControlPayoutWord || c.Status != exchange.ControlPending {
		t.Errorf("proposed %+v", c)
	}
	x.declared(t, a, false)
	_, err = x.s.ConfirmChange(ctx, c.ID, "", one)
	wantFault(t, err, exchange.CodeForbidden)
	twice(t, func(a, b exchange.ControlChange) bool { return a.ID == b.ID }, func() (exchange.ControlChange, error) {
		return x.s.ConfirmChange(ctx, c.ID, "looked too", two)
	})
	x.declared(t, a, true)
	if p := x.payout(t); p.Status != exchange.PayoutProcessing || !p.Doubted {
		t.Errorf("the payout is %s, doubted %t", p.Status, p.Doubted)
	}
	if _, err := x.s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Code: exchange.CodeDeclared}); err != nil {
		t.Fatal(err)
	}
	if _, err := x.s.FailOrderPayout(ctx, x.order.ID, exchange.CodeDeclared); err != nil {
		t.Fatal(err)
	}
	x.noCoolOff(t)
	x.says(t)
	x.standing(t, x.backing(t), exchange.RefundWaitsOfficer)
	if _, err := x.s.CompleteOrderPayout(ctx, x.order.ID, a.ID, storetest.Paid(t, a.Amount)); err != nil {
		t.Fatal(err)
	}
	if e, found, err := x.s.PaidTwiceBy(ctx, a.ID); err != nil || !found || e.Status != exchange.ExcOpen {
		t.Errorf("the exception is %+v, %t, %v", e, found, err)
	}
	wantBooks(t, x.s)
}

func (x *sale) declared(t *testing.T, a exchange.PaymentAttempt, want bool) {
	t.Helper()
	if got, err := x.s.DeclaredUnpaid(t.Context(), a.ID); err != nil || got != want {
		t.Errorf("declared not made: %t, %v", got, err)
	}
}

// What is known by the time of the confirmation decides: a payout that was paid, refused or is claimed meanwhile is not
// declared.
func TestDeclarationComesTooLate(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(*sale, exchange.PaymentAttempt) error{
		"paid": func(x *sale, a exchange.PaymentAttempt) error {
			_, err := x.s.CompleteOrderPayout(t.Context(), x.order.ID, a.ID, storetest.Paid(t, a.Amount))
			return err
		},
		"refused and another is under way": func(x *sale, a exchange.PaymentAttempt) error {
			x.refused(t, a)
			b := x.begun(t, 2)
			_, err := x.s.RecordSubmission(t.Context(), b.ID, exchange.Submission{State: exchange.Accepted})
			return err
		},
		"claimed": func(x *sale, _ exchange.PaymentAttempt) error {
			return x.s.DoubtOrderPayout(t.Context(), x.order.ID, true)
		},
	} {
		x := owing(t)
		x.old(t)
		one, two := x.officers(t)
		a := x.unheard(t, exchange.Unknown)
		c, err := x.s.ProposeUnpaid(t.Context(), x.order.ID, "not in the portal", one)
		if err != nil {
			t.Fatal(err)
		}
		if err := meanwhile(x, a); err != nil {
			t.Fatal(err)
		}
		if _, err := x.s.ConfirmChange(t.Context(), c.ID, "", two); exchange.CodeOf(err) != exchange.CodeStateConflict {
			t.Errorf("%s: confirmed with %v", name, err)
		}
		x.declared(t, a, false)
	}
}

// One person's receipt settles a payout up to the value above which a payment by bank takes two.
func TestReceiptOfALargePayoutTakesTwo(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), owing(t)
	needs := func(receipt string, want bool) {
		t.Helper()
		if got, err := x.s.ReceiptNeedsSecond(ctx, x.order.ID, receipt); err != nil || got != want {
			t.Errorf("the receipt %s needs a second person: %t, %v", receipt, got, err)
		}
	}
	a := x.unheard(t, exchange.Unknown)
	needs("UKL0000001", false)
	x.alone(t)
	needs("UKL0000001", true)
	one, two := x.officers(t)
	c, err := x.s.ProposeReceipt(ctx, x.order.ID, "UKL0000001", one)
	if err != nil {
		t.Fatal(err)
	}
	needs("UKL0000001", true)
	if _, err := x.s.ConfirmChange(ctx, c.ID, "", two); err != nil {
		t.Fatal(err)
	}
	needs("UKL0000001", false)
	needs("UKL0000002", true)
	obs := storetest.Paid(t, a.Amount)
	if _, err := x.s.CompleteOrderPayout(ctx, x.order.ID, a.ID, obs); err != nil {
		t.Fatal(err)
	}
	needs("UKL0000002", false) // there is nothing to settle any more
}

// Nothing is said of a payout but what two persons agreed to, whoever writes the rows.
func TestForbiddenWordsAboutPayouts(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), owing(t)
	one, two := x.officers(t)
	a := x.unheard(t, exchange.Unknown)
	word := func(id, attempt string) string {
		return `INSERT INTO payout_words (id, order_id, attempt_id, receipt, note, said_by, agreed_by, said_at) VALUES ('` + id + `', '` + x.order.ID.String() + `', ` + attempt +
			`, '', 'not in the portal', '` + one.UserID.String() + `', '` + two.UserID.String() + `', now())`
	}
	if state := x.past(ctx, t, word(uuid.NewString(), "'"+a.ID.String()+"'")); state != "KV006" {
		t.Errorf("without a change: %s", state)
	}
	if state := x.past(ctx, t, `UPDATE payment_attempts SET status = 'failed', result_code = 'declared', settled_at = now()`); state != "KV006" {
		t.Errorf("failed without a word: %s", state)
	}
	x.old(t)
	c, err := x.s.ProposeUnpaid(ctx, x.order.ID, "not in the portal", one)
	if err != nil {
		t.Fatal(err)
	}
	if state := x.past(ctx, t, word(c.ID.String(), "'"+a.ID.String()+"'")); state != "KV006" {
		t.Errorf("before it is confirmed: %s", state)
	}
	storetest.Exec(t, x.s, `UPDATE refund_policy SET unknown_seconds = 7200`)
	_, err = x.s.ConfirmChange(ctx, c.ID, "", two)
	wantFault(t, err, exchange.CodeStateConflict)
	x.old(t)
	if _, err := x.s.ConfirmChange(ctx, c.ID, "", two); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{`UPDATE payout_words SET note = 'x'`, `DELETE FROM payout_words`, `TRUNCATE payout_words`} {
		if state := x.past(ctx, t, query); state != "KV002" {
			t.Errorf("%s: %s", query, state)
		}
	}
}

// Crypto of an order that somebody claims is paid out goes back only when a person has decided.
func TestRefundOfAClaimedPayoutBeginsStopped(t *testing.T) {
	t.Parallel()
	x := owing(t)
	x.noCoolOff(t)
	x.says(t)
	x.refused(t, x.begun(t, 1))
	if err := x.s.DoubtOrderPayout(t.Context(), x.order.ID, true); err != nil {
		t.Fatal(err)
	}
	r := x.backing(t)
	if r.Status != exchange.RefundNeedsReview || r.Detail != string(exchange.RefundWaitsClaim) {
		t.Errorf("the refund begins %s (%s)", r.Status, r.Detail)
	}
	x.standing(t, r, exchange.RefundWaitsClaim)
	wantBooks(t, x.s)
}
