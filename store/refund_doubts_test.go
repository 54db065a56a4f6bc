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

func receivable() exchange.AccountRef { return exchange.House(exchange.AccReceivable, money.KES) }
func float() exchange.AccountRef      { return exchange.House(exchange.AccMomoPayout, money.KES) }

// underpaid is the refund of a payment of 1000 shillings, with its receipt.
func underpaid(t *testing.T, s *store.Store) (exchange.Refund, string) {
	t.Helper()
	m := storetest.NewMarket(t, s)
	obs := storetest.Listed(t, s, storetest.Paid(t, kes("1000")))
	out, err := s.AcceptPayment(t.Context(), storetest.Attempt(t, s, m.Order(t, s, "10")).ID, obs, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return out.Refund, obs.Receipt
}

// Two payouts of a refund are proven, the second after the first had seemed to fail: the money is gone, and is booked.
func TestRefundPaidTwiceIsBooked(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	officer := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
	refund, _ := underpaid(t, s)
	first := payout(t, s, refund)
	if _, err := s.RecordFailure(ctx, first.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2001", Class: exchange.ClassCredential}); err != nil {
		t.Fatal(err)
	}
	if _, err := failRefund(t, s, refund.ID, "refused"); err != nil {
		t.Fatal(err)
	}
	second := payout(t, s, refund)
	one, two := storetest.Paid(t, kes("1000")), storetest.Paid(t, kes("1000"))
	if _, err := completeRefund(t, s, refund.ID, first.ID, one); err != nil {
		t.Fatal(err)
	}
	wantBalance(t, s, float(), "998987", "1013") // the provider charges 13 each time, and the second may still move money
	done := twice(t, sameRefund, func() (exchange.Refund, error) { return completeRefund(t, s, refund.ID, second.ID, two) })
	if done.Receipt != one.Receipt {
		t.Errorf("the refund was completed by %s, want %s", done.Receipt, one.Receipt)
	}
	wantBalance(t, s, float(), "997974", "0")
	wantBalance(t, s, receivable(), "1000", "0")
	wantBalance(t, s, refundsDue(), "0", "0")
	if x, found, err := s.PaidTwiceBy(ctx, second.ID); err != nil || !found || x.Receipt != two.Receipt {
		t.Errorf("the exception of the second is %+v, %v", x, err)
	}
	if _, found, err := s.PaidTwiceBy(ctx, first.ID); err != nil || found {
		t.Errorf("the first has an exception, %v", err)
	}
	if all, err := s.Payouts(ctx, refund.OrderID); err != nil || len(all) != 2 || all[0].Object != exchange.RefundObject(refund.ID) {
		t.Errorf("the payouts are %+v, %v", all, err)
	}
	for of, n := range map[exchange.MomoObject]int{exchange.RefundObject(refund.ID): 2, exchange.OrderObject(refund.OrderID): 0, exchange.OrderObject(refund.ID): 0} {
		if own, err := s.PayoutsOf(ctx, of); err != nil || len(own) != n {
			t.Errorf("%+v has the payouts %+v, %v; want %d", of, own, err, n)
		}
	}
	a, err := s.Attempt(ctx, second.ID)
	if err != nil || a.Status != exchange.AttemptSucceeded || a.Receipt != two.Receipt {
		t.Errorf("the second payout is %+v, %v", a, err)
	}
	all, _, err := s.ListExceptions(ctx, store.ExceptionFilter{Kind: exchange.ExcPaidTwice}, store.Page{Number: 1, Size: 10})
	if err != nil || len(all) != 1 || all[0].Receipt != two.Receipt || all[0].Status != exchange.ExcOpen || !all[0].Amount.Equal(kes("1000")) {
		t.Fatalf("exceptions %+v, %v", all, err)
	}
	_, err = s.RefundException(ctx, all[0].ID, officer)
	wantFault(t, err, exchange.CodeStateConflict) // nothing arrived that could go back
	if _, err := s.ResolveException(ctx, all[0].ID, exchange.ExcWrittenOff, "the payee is gone", officer); err != nil {
		t.Fatal(err)
	}
	wantBalance(t, s, receivable(), "0", "0")
	wantBalance(t, s, exchange.House(exchange.AccFees, money.KES), "-1000", "0")
	wantBooks(t, s)
}

// A payout that fails after another one completed the refund gives its float back.
func TestRefundFreesTheFloatOfAPayoutThatWasNotNeeded(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	refund, _ := underpaid(t, s)
	first := payout(t, s, refund)
	if _, err := s.RecordFailure(ctx, first.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2001", Class: exchange.ClassCredential}); err != nil {
		t.Fatal(err)
	}
	if _, err := failRefund(t, s, refund.ID, "refused"); err != nil {
		t.Fatal(err)
	}
	second := payout(t, s, refund)
	if _, err := completeRefund(t, s, refund.ID, first.ID, storetest.Paid(t, kes("1000"))); err != nil {
		t.Fatal(err)
	}
	_, err := failRefund(t, s, refund.ID, "refused")
	wantFault(t, err, exchange.CodeStateConflict) // it may still move money
	if _, err := s.RecordFailure(ctx, second.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2001", Class: exchange.ClassCredential}); err != nil {
		t.Fatal(err)
	}
	done := twice(t, sameRefund, func() (exchange.Refund, error) { return failRefund(t, s, refund.ID, "refused") })
	if done.Status != exchange.RefundCompleted {
		t.Errorf("the refund is %s", done.Status)
	}
	wantBalance(t, s, float(), "998987", "0")
	wantBooks(t, s)
}

// A payment that an officer entered before the provider's own proof counts as one payment.
func TestRefundResolvedAndThenProvenIsPaidOnce(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	officer := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
	refund, _ := underpaid(t, s)
	a := payout(t, s, refund)
	if _, err := s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "1", Class: exchange.ClassFloat}); err != nil {
		t.Fatal(err)
	}
	if _, err := failRefund(t, s, refund.ID, "refused"); err != nil {
		t.Fatal(err)
	}
	obs := storetest.Paid(t, kes("1000"))
	if _, err := s.ResolveRefund(ctx, refund.ID, obs.Receipt, officer); err != nil {
		t.Fatal(err)
	}
	twice(t, sameRefund, func() (exchange.Refund, error) { return completeRefund(t, s, refund.ID, a.ID, obs) })
	wantBalance(t, s, float(), "999000", "0")
	wantBalance(t, s, receivable(), "0", "0")
	if _, err := completeRefund(t, s, refund.ID, a.ID, storetest.Paid(t, kes("1000"))); err != nil {
		t.Fatal(err)
	}
	wantBalance(t, s, receivable(), "1000", "0") // the provider's receipt is another payment than the officer's
	wantBooks(t, s)
}

// A refund that no payout was begun for, as above its payee's daily limit, is ended by the receipt of another payment.
func TestRefundThatWasNeverSentIsResolved(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	officer := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
	refund, _ := underpaid(t, s)
	done := twice(t, sameRefund, func() (exchange.Refund, error) {
		err := s.SettlePayout(ctx, exchange.RefundObject(refund.ID), uuid.Nil, exchange.Observation{State: exchange.SeenSucceeded, Receipt: "UKLMANUAL1", Class: exchange.ClassAttested}, officer)
		if err != nil {
			return refund, err
		}
		return s.Refund(ctx, refund.ID)
	})
	if done.Status != exchange.RefundCompleted || done.Receipt != "UKLMANUAL1" {
		t.Errorf("the refund is %s with %q", done.Status, done.Receipt)
	}
	wantBalance(t, s, float(), "999000", "0")
	wantBalance(t, s, refundsDue(), "0", "0")
	_, err := s.BeginPayout(ctx, exchange.RefundObject(refund.ID), exchange.PaymentAttempt{ID: uuid.New()})
	if err == nil {
		t.Error("a payout of a refund that is paid was begun")
	}
	wantBooks(t, s)
}

// A refund goes to the phone that was prompted only while no source names another payer.
func TestRefundIsHeldWhenSomebodyElsePaid(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		hash func(exchange.Refund) string
		held bool
	}{
		"the prompted phone": {func(r exchange.Refund) string { return r.Phone.Hash() }, false},
		"somebody else":      {func(exchange.Refund) string { return exchange.Phone("254700000099").Hash() }, true},
		"not told":           {func(exchange.Refund) string { return "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, s := t.Context(), storetest.New(t)
			officer := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
			refund, receipt := underpaid(t, s)
			if err := s.SaveReceipt(ctx, exchange.Observation{
				State: exchange.SeenSucceeded, Receipt: receipt, Amount: kes("1000"), PhoneHash: c.hash(refund), Source: exchange.SourceConfirmation, At: time.Now(),
			}); err != nil {
				t.Fatal(err)
			}
			a := exchange.PaymentAttempt{ID: storetest.NewID(t), Provider: "daraja", Reference: "REFUND"}
			begun, err := s.BeginPayout(ctx, exchange.RefundObject(refund.ID), a)
			if err != nil || (begun.ID != a.ID) != c.held {
				t.Fatalf("begun %+v, %v", begun, err)
			}
			if !c.held {
				return
			}
			now, err := s.Refund(ctx, refund.ID)
			if err != nil || now.Status != exchange.RefundNeedsReview || now.Detail != exchange.RefundPayerDiffers {
				t.Errorf("held %+v, %v", now, err)
			}
			if begun, err := s.BeginPayout(ctx, exchange.RefundObject(refund.ID), a); err != nil || begun.ID == a.ID {
				t.Errorf("a repetition pays it: %+v, %v", begun, err)
			}
			wantBalance(t, s, float(), "1000000", "0")
			if _, err := s.ConfirmPayee(ctx, refund.ID, now.UpdatedAt, officer); exchange.CodeOf(err) != exchange.CodeStateConflict {
				t.Errorf("confirmed by a command from before the doubt: %v", err)
			}
			written := time.Now()
			twice(t, sameRefund, func() (exchange.Refund, error) { return s.ConfirmPayee(ctx, refund.ID, written, officer) })
			if begun, err := s.BeginPayout(ctx, exchange.RefundObject(refund.ID), a); err != nil || begun.ID != a.ID {
				t.Errorf("confirmed, %+v, %v", begun, err)
			}
			wantBooks(t, s)
		})
	}
}

// While a refused payout of a refund is claimed to have been made, no other one begins, past the code neither: the payee
// would be paid twice. A denial lets another begin, and a proven payment ends the claim.
func TestClaimStopsOtherPayoutsOfARefund(t *testing.T) {
	t.Parallel()
	for name, denied := range map[string]bool{"denied": true, "proven": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, x := t.Context(), &sale{s: storetest.New(t)}
			refund, _ := underpaid(t, x.s)
			of, first := exchange.RefundObject(refund.ID), payout(t, x.s, refund)
			if _, err := x.s.RecordFailure(ctx, first.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2001", Class: exchange.ClassCredential}); err != nil {
				t.Fatal(err)
			}
			if _, err := failRefund(t, x.s, refund.ID, "refused"); err != nil {
				t.Fatal(err)
			}
			doubt := func(claimed bool) {
				t.Helper()
				if err := x.s.DoubtPayout(ctx, of, claimed); err != nil {
					t.Fatal(err)
				}
				if p, err := x.s.Payable(ctx, of); err != nil || p.Claimed != (claimed && !p.Paid) {
					t.Errorf("the refund is %+v, %v", p, err)
				}
			}
			another := `INSERT INTO payment_attempts (id, direction, object_type, object_id, provider, status, asset, amount, phone, reference, created_at)
				SELECT gen_random_uuid(), 'payout', 'refund', id, 'daraja', 'created', asset, amount, phone, 'Refund', now() FROM refunds`
			doubt(true)
			_, err := x.s.BeginPayout(ctx, of, exchange.PaymentAttempt{ID: storetest.NewID(t), Provider: "daraja", Reference: "REFUND"})
			wantFault(t, err, exchange.CodeStateConflict)
			if state := x.past(ctx, t, another); state != "KV001" {
				t.Errorf("past the code: %s", state)
			}
			if denied {
				doubt(false)
				if state := x.past(ctx, t, another); state != "KV001" { // it is not under way
					t.Errorf("past the code after the denial: %s", state)
				}
				payout(t, x.s, refund)
				return
			}
			if _, err := completeRefund(t, x.s, refund.ID, first.ID, storetest.Paid(t, kes("1000"))); err != nil {
				t.Fatal(err)
			}
			doubt(true) // nothing is owed that could be paid again
			wantBooks(t, x.s)
		})
	}
}

// A missing rule or missing terms never make a payment easier.
func TestMissingRulesOfPayoutsAreStrict(t *testing.T) {
	t.Parallel()
	s, of, _, _, _ := largeRefund(t)
	storetest.Exec(t, s, `SET session_replication_role = replica; DELETE FROM approval_rules; DELETE FROM momo_terms; SET session_replication_role = origin`)
	if second, err := s.ReceiptNeedsSecond(t.Context(), of, "UKL0000001"); err != nil || !second {
		t.Errorf("without a rule one officer is enough: %t, %v", second, err)
	}
	var room *bool
	err := storetest.Owner(t, s).QueryRowContext(t.Context(), `SELECT payee_has_room('254700000001', 1, now())`).Scan(&room)
	if err != nil || room == nil || *room {
		t.Errorf("without terms there is room: %v, %v", room, err)
	}
}
