package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// officers are two officers who may confirm.
func (x *sale) officers(t *testing.T) (one, two exchange.Principal) {
	t.Helper()
	return storetest.PrincipalOf(storetest.User(t, x.s, exchange.RoleTreasury)), storetest.PrincipalOf(storetest.User(t, x.s, exchange.RoleAdmin))
}

// unreported sends an attempt whose outcome no source reports.
func (x *sale) unreported(t *testing.T, state exchange.SubmissionState) exchange.PaymentAttempt {
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

// Two officers declare a payout without a report for long enough unpaid. It stays in doubt forever: its refund needs
// another officer, and a later success is booked as paid twice.
func TestTwoOfficersDeclareAPayoutNotMade(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), owing(t)
	one, two := x.officers(t)
	_, err := x.s.ProposeUnpaid(ctx, exchange.OrderObject(x.order.ID), "not in the portal", one)
	wantFault(t, err, exchange.CodeStateConflict) // nothing was sent
	a := x.unreported(t, exchange.Accepted)
	_, err = x.s.ProposeUnpaid(ctx, exchange.OrderObject(x.order.ID), "not in the portal", one)
	wantFault(t, err, exchange.CodeStateConflict) // too young
	x.old(t)
	_, err = x.s.ProposeUnpaid(ctx, exchange.OrderObject(x.order.ID), "", one)
	wantFault(t, err, exchange.CodeInvalid)
	c := twice(t, func(a, b exchange.ControlChange) bool { return a.ID == b.ID }, func() (exchange.ControlChange, error) {
		return x.s.ProposeUnpaid(ctx, exchange.OrderObject(x.order.ID), "not in the portal", one)
	})
	if c.Kind != exchange.ControlPayoutAttestation || c.Status != exchange.ControlPending {
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
	if _, err := x.s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Class: exchange.ClassDeclared}); err != nil {
		t.Fatal(err)
	}
	if _, err := failOrder(t, x.s, x.order.ID, string(exchange.ClassDeclared)); err != nil {
		t.Fatal(err)
	}
	x.noCoolOff(t)
	x.says(t)
	x.standing(t, x.backing(t), exchange.RefundWaitsOfficer)
	if _, err := completeOrder(t, x.s, x.order.ID, a.ID, storetest.Paid(t, a.Amount)); err != nil {
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

// The evidence at the confirmation decides: a payout that was paid, refused or claimed meanwhile is not declared.
func TestDeclarationComesTooLate(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(*sale, exchange.PaymentAttempt) error{
		"paid": func(x *sale, a exchange.PaymentAttempt) error {
			_, err := completeOrder(t, x.s, x.order.ID, a.ID, storetest.Paid(t, a.Amount))
			return err
		},
		"refused and another is under way": func(x *sale, a exchange.PaymentAttempt) error {
			x.refused(t, a)
			b := x.begun(t, 2)
			_, err := x.s.RecordSubmission(t.Context(), b.ID, exchange.Submission{State: exchange.Accepted})
			return err
		},
		"claimed": func(x *sale, _ exchange.PaymentAttempt) error {
			return x.s.DoubtPayout(t.Context(), exchange.OrderObject(x.order.ID), true)
		},
	} {
		x := owing(t)
		x.old(t)
		one, two := x.officers(t)
		a := x.unreported(t, exchange.Unknown)
		c, err := x.s.ProposeUnpaid(t.Context(), exchange.OrderObject(x.order.ID), "not in the portal", one)
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

// One officer's receipt settles a payout up to the value above which a bank payout needs two.
func TestReceiptOfALargePayoutTakesTwo(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), owing(t)
	needs := func(receipt string, want bool) {
		t.Helper()
		if got, err := x.s.ReceiptNeedsSecond(ctx, exchange.OrderObject(x.order.ID), receipt); err != nil || got != want {
			t.Errorf("the receipt %s needs a second officer: %t, %v", receipt, got, err)
		}
	}
	a := x.unreported(t, exchange.Unknown)
	needs("UKL0000001", false)
	x.alone(t)
	needs("UKL0000001", true)
	one, two := x.officers(t)
	c, err := x.s.ProposeReceipt(ctx, exchange.OrderObject(x.order.ID), "UKL0000001", one)
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
	if _, err := completeOrder(t, x.s, x.order.ID, a.ID, obs); err != nil {
		t.Fatal(err)
	}
	needs("UKL0000002", true) // it would say that the payout was paid twice
	needs(obs.Receipt, false)
}

// A second payment of a completed payout is booked by as many officers as settle one: above the value, by two.
func TestReceiptOfASecondPaymentTakesTwo(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), owing(t)
	one, two := x.officers(t)
	a := x.unreported(t, exchange.Unknown)
	x.refused(t, a)
	b := x.begun(t, 2)
	if _, err := completeOrder(t, x.s, x.order.ID, b.ID, storetest.Paid(t, b.Amount)); err != nil {
		t.Fatal(err)
	}
	x.alone(t)
	obs := exchange.Observation{State: exchange.SeenSucceeded, Class: exchange.ClassAttested, Receipt: "UKL0000009"}
	settle := func() error { return x.s.SettlePayout(ctx, exchange.OrderObject(x.order.ID), a.ID, obs, one) }
	wantFault(t, settle(), exchange.CodeForbidden)
	of, _, err := x.s.PayoutToSettle(ctx, x.order, obs.Receipt, uuid.Nil)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x.s.ProposeReceipt(ctx, of, obs.Receipt, one)
	if err == nil {
		_, err = x.s.ConfirmChange(ctx, c.ID, "", two)
	}
	if err == nil {
		err = settle()
	}
	if err != nil {
		t.Fatal(err)
	}
	if e, found, err := x.s.PaidTwiceBy(ctx, a.ID); err != nil || !found || e.Status != exchange.ExcOpen {
		t.Errorf("the exception is %+v, %t, %v", e, found, err)
	}
	wantBooks(t, x.s)
}

// largeRefund is a refund of 1000 KES, above the value for one officer, with a payout of unknown outcome, and two officers.
func largeRefund(t *testing.T) (s *store.Store, of exchange.MomoObject, a exchange.PaymentAttempt, one, two exchange.Principal) {
	t.Helper()
	return refundBeside(t, "900")
}

// refundBeside is a refund of 1000 KES with a payout of unknown outcome, and two officers, beside the value for one of them.
func refundBeside(t *testing.T, value string) (s *store.Store, of exchange.MomoObject, a exchange.PaymentAttempt, one, two exchange.Principal) {
	t.Helper()
	s = storetest.New(t)
	refund, _ := underpaid(t, s)
	a, err := s.RecordSubmission(t.Context(), payout(t, s, refund).ID, exchange.Submission{State: exchange.Unknown})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, s, `UPDATE approval_rules SET one_above = $1, two_above = $1 WHERE object_type = 'bank_payout'`, value)
	one, two = storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury)), storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	return s, exchange.RefundObject(refund.ID), a, one, two
}

// A receipt ends a large refund only when a second officer has confirmed the same receipt, whether it is of the open
// payout or of a payment by other means. The database refuses it too.
func TestReceiptOfALargeRefundTakesTwo(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"of the payout": false, "by other means": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s, of, a, one, two := largeRefund(t)
			if refused {
				if _, err := s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2040", Class: exchange.ClassPayee}); err != nil {
					t.Fatal(err)
				}
				if _, err := failRefund(t, s, of.ID, "2040"); err != nil {
					t.Fatal(err)
				}
			}
			settle := func(receipt string) error {
				obs := exchange.Observation{State: exchange.SeenSucceeded, Class: exchange.ClassAttested, Receipt: receipt}
				return s.SettlePayout(ctx, of, a.ID, obs, one)
			}
			wantFault(t, settle("UKL0000001"), exchange.CodeForbidden)
			c, err := s.ProposeReceipt(ctx, of, "UKL0000001", one)
			if err != nil {
				t.Fatal(err)
			}
			wantFault(t, settle("UKL0000001"), exchange.CodeForbidden)
			_, err = s.ConfirmChange(ctx, c.ID, "", one)
			wantFault(t, err, exchange.CodeForbidden)
			if _, err := s.ConfirmChange(ctx, c.ID, "", two); err != nil {
				t.Fatal(err)
			}
			wantFault(t, settle("UKL0000002"), exchange.CodeForbidden) // two officers named another receipt
			if second, err := s.ReceiptNeedsSecond(ctx, of, "UKL0000001"); err != nil || second {
				t.Errorf("the receipt still needs an officer: %t, %v", second, err)
			}
			if err := settle("UKL0000001"); err != nil {
				t.Fatal(err)
			}
			if r, err := s.Refund(ctx, of.ID); err != nil || r.Status != exchange.RefundCompleted || r.Receipt != "UKL0000001" {
				t.Errorf("the refund is %s by %s, %v", r.Status, r.Receipt, err)
			}
			wantBooks(t, s)
		})
	}
}

// A second receipt of a refund counts with the payment that is booked, by whatever proof: one officer alone can't say
// twice that a refund was paid which is just below the value for two. A receipt that is booked may be named again.
func TestSecondReceiptOfARefundCountsWithTheFirst(t *testing.T) {
	t.Parallel()
	for name, proven := range map[string]bool{"resolved by the officer": false, "proven by the operator": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s, of, first, one, two := refundBeside(t, "1999")
			fail := func(a exchange.PaymentAttempt) {
				t.Helper()
				if _, err := s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2040", Class: exchange.ClassPayee}); err != nil {
					t.Fatal(err)
				}
				if _, err := failRefund(t, s, of.ID, "2040"); err != nil {
					t.Fatal(err)
				}
			}
			attested := func(receipt string) exchange.Observation {
				return exchange.Observation{State: exchange.SeenSucceeded, Class: exchange.ClassAttested, Receipt: receipt}
			}
			fail(first)
			booked := "UKL0000001"
			if proven {
				r, err := s.Refund(ctx, of.ID)
				if err != nil {
					t.Fatal(err)
				}
				obs := storetest.Paid(t, r.Amount)
				booked = obs.Receipt
				if _, err := completeRefund(t, s, of.ID, payout(t, s, r).ID, obs); err != nil {
					t.Fatal(err)
				}
			} else if err := s.SettlePayout(ctx, of, first.ID, attested(booked), one); err != nil {
				t.Fatal(err)
			}
			for receipt, want := range map[string]bool{booked: false, "UKL0000002": true} {
				if second, err := s.ReceiptNeedsSecond(ctx, of, receipt); err != nil || second != want {
					t.Errorf("the receipt %s needs a second officer: %t, %v", receipt, second, err)
				}
			}
			again := func() error {
				_, err := s.CompletePayout(ctx, of, first.ID, attested("UKL0000002"))
				return err
			}
			wantFault(t, again(), exchange.CodeForbidden)
			c, err := s.ProposeReceipt(ctx, of, "UKL0000002", one)
			if err == nil {
				_, err = s.ConfirmChange(ctx, c.ID, "", two)
			}
			if err == nil {
				err = again()
			}
			if err != nil {
				t.Fatal(err)
			}
			if x, found, err := s.PaidTwiceBy(ctx, first.ID); err != nil || !found || x.Receipt != "UKL0000002" {
				t.Errorf("the exception is %+v, %t, %v", x, found, err)
			}
			wantBooks(t, s)
		})
	}
}

// Past the code, a refund gets no other receipt after its first one, and an attempt that has not paid ends no refund.
func TestReceiptOfARefundIsNotExchanged(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, of, a, one, two := largeRefund(t)
	past := func(want, query string) {
		t.Helper()
		if _, err := storetest.Owner(t, s).ExecContext(ctx, query, of.ID); sqlState(err) != want {
			t.Errorf("%s: %v", query, err)
		}
	}
	past("KV002", `UPDATE refunds SET status = 'completed', receipt = 'UKL0000001', paid_by = '`+a.ID.String()+`', completed_at = now() WHERE id = $1`)
	c, err := s.ProposeReceipt(ctx, of, "UKL0000001", one)
	if err == nil {
		_, err = s.ConfirmChange(ctx, c.ID, "", two)
	}
	if err == nil {
		err = s.SettlePayout(ctx, of, a.ID, exchange.Observation{State: exchange.SeenSucceeded, Class: exchange.ClassAttested, Receipt: "UKL0000001"}, one)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range []string{"receipt = 'UKL0000002'", "paid_by = NULL", "completed_at = now()"} {
		past("KV002", `UPDATE refunds SET `+change+` WHERE id = $1`)
	}
	wantBooks(t, s)
}

// Two officers declare the payout of a refund unpaid, and another one can be made.
func TestTwoOfficersDeclareARefundNotMade(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, of, a, one, two := largeRefund(t)
	_, err := s.ProposeUnpaid(ctx, exchange.OrderObject(a.OrderID), "not in the portal", one)
	wantFault(t, err, exchange.CodeStateConflict) // too young
	_, err = s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Class: exchange.ClassDeclared})
	wantFault(t, err, exchange.CodeForbidden)
	storetest.Exec(t, s, `UPDATE refund_policy SET unknown_seconds = 0`)
	for _, claimed := range []bool{true, false} {
		if err := s.DoubtPayout(ctx, of, claimed); err != nil {
			t.Fatal(err)
		}
		if claimed {
			_, err = s.ProposeUnpaid(ctx, exchange.OrderObject(a.OrderID), "not in the portal", one)
			wantFault(t, err, exchange.CodeStateConflict)
		}
	}
	c, err := s.ProposeUnpaid(ctx, exchange.OrderObject(a.OrderID), "not in the portal", one)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ConfirmChange(ctx, c.ID, "", two); err != nil {
		t.Fatal(err)
	}
	if declared, err := s.DeclaredUnpaid(ctx, a.ID); err != nil || !declared {
		t.Errorf("declared: %t, %v", declared, err)
	}
	if _, err := s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Class: exchange.ClassDeclared}); err != nil {
		t.Fatal(err)
	}
	r, err := failRefund(t, s, of.ID, string(exchange.ClassDeclared))
	if err != nil || r.Status != exchange.RefundNeedsReview {
		t.Errorf("the refund is %s, %v", r.Status, err)
	}
	if payout(t, s, r).ID == a.ID {
		t.Error("no other payout began")
	}
	wantBooks(t, s)
}

// Two officers deny a claim that a refused payout of a refund was made. A declaration about a payout of unknown outcome denies
// no claim that comes later.
func TestTwoOfficersDenyAClaimAboutARefund(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, of, a, one, two := largeRefund(t)
	declare := func() error {
		c, err := s.ProposeUnpaid(ctx, exchange.OrderObject(a.OrderID), "not in the portal", one)
		if err == nil {
			_, err = s.ConfirmChange(ctx, c.ID, "", two)
		}
		return err
	}
	denied := func(want bool) {
		t.Helper()
		if at, err := s.ClaimDeclined(ctx, a.ID); err != nil || at.IsZero() == want {
			t.Errorf("the claim was denied at %s, %v", at, err)
		}
	}
	storetest.Exec(t, s, `UPDATE refund_policy SET unknown_seconds = 0`)
	if err := declare(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Class: exchange.ClassDeclared}); err != nil {
		t.Fatal(err)
	}
	if _, err := failRefund(t, s, of.ID, string(exchange.ClassDeclared)); err != nil {
		t.Fatal(err)
	}
	denied(false)
	wantFault(t, declare(), exchange.CodeStateConflict) // no source claims it
	if err := s.DoubtPayout(ctx, of, true); err != nil {
		t.Fatal(err)
	}
	storetest.Exec(t, s, `UPDATE refund_policy SET unknown_seconds = 7200`)
	wantFault(t, declare(), exchange.CodeStateConflict) // too young
	storetest.Exec(t, s, `UPDATE refund_policy SET unknown_seconds = 0`)
	if err := declare(); err != nil {
		t.Fatal(err)
	}
	denied(true)
	wantBooks(t, s)
}

// Only attestations confirmed by two officers are stored.
func TestRefusedAttestationsOfPayouts(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), owing(t)
	one, two := x.officers(t)
	a := x.unreported(t, exchange.Unknown)
	word := func(id, attempt string) string {
		return `INSERT INTO payout_attestations (id, object_type, object_id, attempt_id, receipt, note, attested_by, agreed_by, said_at) VALUES ('` + id + `', 'order', '` + x.order.ID.String() + `', ` + attempt +
			`, '', 'not in the portal', '` + one.UserID.String() + `', '` + two.UserID.String() + `', now())`
	}
	if state := x.past(ctx, t, word(uuid.NewString(), "'"+a.ID.String()+"'")); state != "KV006" {
		t.Errorf("without a change: %s", state)
	}
	if state := x.past(ctx, t, `UPDATE payment_attempts SET status = 'failed', result_class = 'declared', settled_at = now()`); state != "KV006" {
		t.Errorf("failed without a message: %s", state)
	}
	x.old(t)
	c, err := x.s.ProposeUnpaid(ctx, exchange.OrderObject(x.order.ID), "not in the portal", one)
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
	for _, query := range []string{`UPDATE payout_attestations SET note = 'x'`, `DELETE FROM payout_attestations`, `TRUNCATE payout_attestations`} {
		if state := x.past(ctx, t, query); state != "KV002" {
			t.Errorf("%s: %s", query, state)
		}
	}
}

// The crypto of an order with a claim that it is paid out is refunded only after an officer's decision.
func TestRefundOfAClaimedPayoutBeginsStopped(t *testing.T) {
	t.Parallel()
	x := owing(t)
	x.noCoolOff(t)
	x.says(t)
	x.refused(t, x.begun(t, 1))
	if err := x.s.DoubtPayout(t.Context(), exchange.OrderObject(x.order.ID), true); err != nil {
		t.Fatal(err)
	}
	r := x.backing(t)
	if r.Status != exchange.RefundNeedsReview || r.Detail != string(exchange.RefundWaitsClaim) {
		t.Errorf("the refund begins %s (%s)", r.Status, r.Detail)
	}
	x.standing(t, r, exchange.RefundWaitsClaim)
	wantBooks(t, x.s)
}

// twoRefunds are two open refunds of one order with payouts of unknown outcome: 500 KES of too small a payment, which one
// officer may settle, and 1000 KES of a payment that came twice, above that value. The receipt is of a payment to the house.
func twoRefunds(t *testing.T) (s *store.Store, o exchange.Order, small, large exchange.PaymentAttempt, collection string) {
	t.Helper()
	s = storetest.New(t)
	officer := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	o = storetest.NewMarket(t, s).Order(t, s, "10")
	prompt := storetest.Attempt(t, s, o)
	obs := storetest.Listed(t, s, storetest.Paid(t, kes("500")))
	first, err := s.AcceptPayment(t.Context(), prompt.ID, obs, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.AcceptPayment(t.Context(), prompt.ID, storetest.Listed(t, s, storetest.Paid(t, kes("1000"))), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.RefundException(t.Context(), second.Exception.ID, officer)
	if err != nil {
		t.Fatal(err)
	}
	small, large = payout(t, s, first.Refund), payout(t, s, r)
	for _, a := range []exchange.PaymentAttempt{small, large} {
		if _, err := s.RecordSubmission(t.Context(), a.ID, exchange.Submission{State: exchange.Unknown}); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Exec(t, s, `UPDATE approval_rules SET one_above = 900, two_above = 900 WHERE object_type = 'bank_payout'`)
	return s, o, small, large, obs.Receipt
}

// A receipt that two officers attested for one refund settles no other refund, nor does the receipt of a payment to the
// house. The database refuses both, for a payout under way and for a refund that waits for an officer.
func TestReceiptOfAnotherPaymentSettlesNothing(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]bool{"under way": false, "in review": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			s, _, small, large, collection := twoRefunds(t)
			one, two := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury)), storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
			attest := func(of exchange.MomoObject, receipt string) error {
				c, err := s.ProposeReceipt(ctx, of, receipt, one)
				if err != nil {
					t.Fatal(err)
				}
				_, err = s.ConfirmChange(ctx, c.ID, "", two)
				return err
			}
			if err := attest(large.Object, "UKL0000001"); err != nil {
				t.Fatal(err)
			}
			if refused {
				if _, err := s.RecordFailure(ctx, small.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2040", Class: exchange.ClassPayee}); err != nil {
					t.Fatal(err)
				}
				if _, err := failRefund(t, s, small.Object.ID, "2040"); err != nil {
					t.Fatal(err)
				}
			}
			settle := func(a exchange.PaymentAttempt, receipt string) error {
				return s.SettlePayout(ctx, a.Object, a.ID, exchange.Observation{State: exchange.SeenSucceeded, Class: exchange.ClassAttested, Receipt: receipt}, one)
			}
			for receipt, code := range map[string]exchange.Code{"UKL0000001": exchange.CodeConflict, collection: exchange.CodeInvalid} {
				_, err := s.ReceiptNeedsSecond(ctx, small.Object, receipt)
				wantFault(t, err, code)
				wantFault(t, settle(small, receipt), exchange.CodeConflict)
				wantFault(t, attest(small.Object, receipt), exchange.CodeConflict)
			}
			if err := settle(large, "UKL0000001"); err != nil {
				t.Fatal(err)
			}
			if r, err := s.Refund(ctx, small.Object.ID); err != nil || r.Status == exchange.RefundCompleted {
				t.Errorf("the other refund is %s, %v", r.Status, err)
			}
			wantBooks(t, s)
		})
	}
}

// Of several open refunds, a receipt settles the one that is named, or that two officers attested it for.
func TestPayoutToSettleIsNotGuessed(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, o, small, large, _ := twoRefunds(t)
	one, two := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury)), storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	c, err := s.ProposeReceipt(ctx, large.Object, "UKL0000001", one)
	if err == nil {
		_, err = s.ConfirmChange(ctx, c.ID, "", two)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.PayoutToSettle(ctx, o, "UKL0000002", uuid.Nil)
	wantFault(t, err, exchange.CodeInvalid)
	_, _, err = s.PayoutToSettle(ctx, o, "UKL0000002", o.ID)
	wantFault(t, err, exchange.CodeInvalid)
	for named, want := range map[uuid.UUID]exchange.PaymentAttempt{small.Object.ID: small, large.Object.ID: large, uuid.Nil: large} {
		if of, sure, err := s.PayoutToSettle(ctx, o, "UKL0000001", named); err != nil || of != want.Object || !sure {
			t.Errorf("named %s: %+v, %t, %v", named, of, sure, err)
		}
	}
	if _, err := completeRefund(t, s, small.Object.ID, small.ID, storetest.Paid(t, small.Amount)); err != nil {
		t.Fatal(err)
	}
	if of, sure, err := s.PayoutToSettle(ctx, o, "UKL0000003", small.Object.ID); err != nil || of != small.Object || !sure {
		t.Errorf("a second payment of a completed refund: %+v, %t, %v", of, sure, err)
	}
	if of, sure, err := s.PayoutToSettle(ctx, o, "UKL0000003", uuid.Nil); err != nil || of != large.Object || sure {
		t.Errorf("the only open refund: %+v, %t, %v", of, sure, err)
	}
}

// An unknown attempt of a payout that is not under way any more does not hide that of another one.
func TestDeclarationIsAboutAPayoutUnderWay(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, o, small, large, _ := twoRefunds(t)
	for _, a := range []exchange.PaymentAttempt{small, large} {
		if _, err := s.RecordSubmission(ctx, a.ID, exchange.Submission{State: exchange.Unknown}); err != nil {
			t.Fatal(err)
		}
	}
	older, younger := small, large
	if large.CreatedAt.Before(small.CreatedAt) {
		older, younger = large, small
	}
	storetest.Exec(t, s, `BEGIN; ALTER TABLE refunds DISABLE TRIGGER USER; UPDATE refunds SET status = 'needs_review' WHERE id = '`+older.Object.ID.String()+`';
		ALTER TABLE refunds ENABLE TRIGGER USER; UPDATE refund_policy SET unknown_seconds = 0; COMMIT`)
	one, two := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury)), storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	c, err := s.ProposeUnpaid(ctx, exchange.OrderObject(o.ID), "not in the portal", one)
	if err == nil {
		_, err = s.ConfirmChange(ctx, c.ID, "", two)
	}
	if err != nil {
		t.Fatal(err)
	}
	for a, want := range map[uuid.UUID]bool{older.ID: false, younger.ID: true} {
		if declared, err := s.DeclaredUnpaid(ctx, a); err != nil || declared != want {
			t.Errorf("declared: %t, %v", declared, err)
		}
	}
}
