package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/momo/daraja"
	"kivuko/store/storetest"
)

// The oldest waiting sales that the float can pay together are notified. 20 USDT need 2587 KES and 56, 10 USDT need
// 1293 and 23.
func TestSalesThatWaitForFloat(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewSellers(t, s)
	sale := func(crypto string) uuid.UUID { return storetest.TakeCrypto(t, s, m.Sale(t, s, crypto)).ID }
	large, one, two := sale("20"), sale("10"), sale("10")
	bank := storetest.TakeCrypto(t, s, m.RemittanceToBank(t, s)).ID
	names := map[uuid.UUID]string{large: "large", one: "one", two: "two", bank: "bank"}
	want := func(room string, limit int, want ...string) {
		t.Helper()
		all, err := s.WaitingForFloat(ctx, kes(room), limit)
		var got []string
		for _, w := range all {
			if w.RefundID != uuid.Nil || w.AttemptID != uuid.Nil {
				t.Errorf("a sale is shown as the refund %s", w.RefundID)
			}
			got = append(got, names[w.OrderID])
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("from %s KES, %d at most: %v, %v; want %v", room, limit, got, err, want)
		}
	}
	want("1000000", 10)
	for id := range names {
		if err := s.SetOrderDetail(ctx, id, exchange.WaitFloat); err != nil {
			t.Fatal(err)
		}
	}
	want("0", 10)
	want("1315", 10)
	want("1316", 1, "one")
	want("2632", 10, "one", "two")
	want("3958", 10, "large")
	want("3959", 10, "large", "one")
	want("1000000", 10, "large", "one", "two")
	want("1000000", 2, "large", "one")
	if ids, err := s.WaitingForFloat(ctx, kes("1").Neg(), 10); err != nil || len(ids) > 0 {
		t.Errorf("of no room: %v, %v", ids, err)
	}
	refused := func(try int, code string) {
		t.Helper()
		id := uuid.NewSHA1(one, fmt.Appendf(nil, "try %d", try))
		a, err := s.BeginPayout(ctx, exchange.OrderObject(one), exchange.PaymentAttempt{
			ID: id, Provider: operator, Reference: exchange.PaymentReferences(one)[0], CallbackToken: id.String(), WorkflowID: exchange.OffRampFlow(one),
		})
		if err != nil {
			t.Fatal(err)
		}
		want("1000000", 10, "large", "two") // a payout of the other is under way
		if _, err := s.RecordFailure(ctx, a.ID, exchange.Observation{State: exchange.SeenFailed, Code: code, Class: daraja.Classify(exchange.Payout, code)}); err != nil {
			t.Fatal(err)
		}
		if _, err := failOrder(t, s, one, code); err != nil {
			t.Fatal(err)
		}
	}
	refused(1, "2040")
	want("1000000", 10, "large", "two")
	refused(2, "1")
	want("1000000", 10, "large", "one", "two")
}

// A refund waits for float until an attempt to pay it begins. Either flow may be notified: its order's, or that of its
// late payment.
func TestRefundsThatWaitForFloat(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	refund, _ := underpaid(t, s) // of 1,000, for which 13 are charged
	want := func(room string, want ...exchange.FloatWaiter) {
		t.Helper()
		if got, err := s.WaitingForFloat(ctx, kes(room), 10); err != nil || !slices.Equal(got, want) {
			t.Errorf("from %s KES: %+v, %v; want %+v", room, got, err, want)
		}
	}
	want("1012")
	want("1013", exchange.FloatWaiter{OrderID: refund.OrderID, RefundID: refund.ID, AttemptID: refund.AttemptID})
	payout(t, s, refund)
	want("1000000")
}
