package store_test

import (
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

func receivable() exchange.AccountRef { return exchange.House(exchange.AccReceivable, money.KES) }
func float() exchange.AccountRef      { return exchange.House(exchange.AccMomoPayout, money.KES) }

// underpaid is the refund of a payment of 1000 shillings, with the receipt that is to go back.
func underpaid(t *testing.T, s *store.Store) (exchange.Refund, string) {
	t.Helper()
	m := storetest.NewMarket(t, s)
	obs := storetest.Paid(t, kes("1000"))
	out, err := s.AcceptPayment(t.Context(), storetest.Attempt(t, s, m.Order(t, s, "10")).ID, obs, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return out.Refund, obs.Receipt
}

// Two payouts of a refund prove true, the second after the first had seemed to fail: the money is gone,
// and the books say so.
func TestRefundPaidTwiceIsBooked(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	officer := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
	refund, _ := underpaid(t, s)
	first := payout(t, s, refund)
	if _, err := s.RecordFailure(ctx, first.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2001"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FailRefund(ctx, refund.ID, "refused"); err != nil {
		t.Fatal(err)
	}
	second := payout(t, s, refund)
	one, two := storetest.Paid(t, kes("1000")), storetest.Paid(t, kes("1000"))
	if _, err := s.CompleteRefund(ctx, refund.ID, first.ID, one); err != nil {
		t.Fatal(err)
	}
	wantBalance(t, s, float(), "998987", "1013") // the operator takes 13 each time, and the second may still move money
	done := twice(t, sameRefund, func() (exchange.Refund, error) { return s.CompleteRefund(ctx, refund.ID, second.ID, two) })
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
	if all, err := s.Payouts(ctx, refund.OrderID); err != nil || len(all) != 2 || all[0].RefundID != refund.ID {
		t.Errorf("the payouts are %+v, %v", all, err)
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
	if _, err := s.RecordFailure(ctx, first.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2001"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FailRefund(ctx, refund.ID, "refused"); err != nil {
		t.Fatal(err)
	}
	second := payout(t, s, refund)
	if _, err := s.CompleteRefund(ctx, refund.ID, first.ID, storetest.Paid(t, kes("1000"))); err != nil {
		t.Fatal(err)
	}
	_, err := s.FailRefund(ctx, refund.ID, "refused")
	wantFault(t, err, exchange.CodeStateConflict) // it may still move money
	if _, err := s.RecordFailure(ctx, second.ID, exchange.Observation{State: exchange.SeenFailed, Code: "2001"}); err != nil {
		t.Fatal(err)
	}
	done := twice(t, sameRefund, func() (exchange.Refund, error) { return s.FailRefund(ctx, refund.ID, "refused") })
	if done.Status != exchange.RefundCompleted {
		t.Errorf("the refund is %s", done.Status)
	}
	wantBalance(t, s, float(), "998987", "0")
	wantBooks(t, s)
}

// A payment that a person named before the operator's own proof came is one payment.
func TestRefundResolvedAndThenProvenIsPaidOnce(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	officer := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
	refund, _ := underpaid(t, s)
	a := payout(t, s, refund)
	if _, err := s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Code: "1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.FailRefund(ctx, refund.ID, "refused"); err != nil {
		t.Fatal(err)
	}
	obs := storetest.Paid(t, kes("1000"))
	if _, err := s.ResolveRefund(ctx, refund.ID, obs.Receipt, officer); err != nil {
		t.Fatal(err)
	}
	twice(t, sameRefund, func() (exchange.Refund, error) { return s.CompleteRefund(ctx, refund.ID, a.ID, obs) })
	wantBalance(t, s, float(), "999000", "0")
	wantBalance(t, s, receivable(), "0", "0")
	if _, err := s.CompleteRefund(ctx, refund.ID, a.ID, storetest.Paid(t, kes("1000"))); err != nil {
		t.Fatal(err)
	}
	wantBalance(t, s, receivable(), "1000", "0") // the operator's receipt is another payment than the person's
	wantBooks(t, s)
}

// A refund goes to the phone that was prompted only while no witness names another payer.
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
				State: exchange.SeenSucceeded, Receipt: receipt, Amount: kes("1000"), PhoneHash: c.hash(refund), Witness: exchange.WitnessConfirmation, At: time.Now(),
			}); err != nil {
				t.Fatal(err)
			}
			a := exchange.PaymentAttempt{ID: storetest.NewID(t), Provider: "daraja", Reference: "REFUND"}
			begun, err := s.BeginRefundPayout(ctx, refund.ID, a)
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
			if begun, err := s.BeginRefundPayout(ctx, refund.ID, a); err != nil || begun.ID == a.ID {
				t.Errorf("a repetition pays it: %+v, %v", begun, err)
			}
			wantBalance(t, s, float(), "1000000", "0")
			twice(t, sameRefund, func() (exchange.Refund, error) { return s.ConfirmPayee(ctx, refund.ID, officer) })
			if begun, err := s.BeginRefundPayout(ctx, refund.ID, a); err != nil || begun.ID != a.ID {
				t.Errorf("confirmed, %+v, %v", begun, err)
			}
			wantBooks(t, s)
		})
	}
}
