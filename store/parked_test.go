package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// parkedIDs are the flows on the list that match a filter.
func parkedIDs(t *testing.T, s *store.Store, f exchange.ParkedFilter) []exchange.ParkedFlow {
	t.Helper()
	if f.Size == 0 {
		f.Size = 100
	}
	all, _, err := s.ListParked(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Every flow whose payout was never sent is notified that payouts resume, also one that found the breaker open and parked after it
// was closed; of those whose payout was refused, the ones that parked before. After a database was put back, one that parks later
// may have lost a payout that was made, and waits for an officer.
func TestSuspendedFlows(t *testing.T) {
	t.Parallel()
	s, closed := storetest.New(t), time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for id, p := range map[string]exchange.ParkedFlow{
		"a refused before": {Reason: "refund-credential", Since: closed.Add(-time.Hour)},
		"b sent nothing":   {Reason: "momo-suspended", Since: closed.Add(-time.Minute)},
		"c sent nothing":   {Reason: "withdrawal-suspended", Since: closed.Add(time.Second)},
		"d refused after":  {Reason: "momo-credential", Since: closed.Add(time.Minute)},
		"e lacks float":    {Reason: "momo-float", Since: closed.Add(-time.Hour)},
	} {
		p.WorkflowID, p.RunID, p.Type = id, "run", "OffRamp"
		if err := s.KeepParked(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		breaker exchange.Breaker
		want    []string
	}{
		"on trial": {exchange.Breaker{ClosedAt: closed, Trial: true}, []string{"b sent nothing"}},
		"closed":   {exchange.Breaker{ClosedAt: closed}, []string{"b sent nothing", "c sent nothing", "a refused before"}},
		"put back": {exchange.Breaker{ReleasedAt: closed}, []string{"b sent nothing", "a refused before"}},
	} {
		all, err := s.SuspendedFlows(t.Context(), c.breaker)
		got := []string{}
		for _, w := range all {
			got = append(got, w.WorkflowID)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
}

// A flow has one row while it is parked, however often it parks, and none afterwards.
func TestParkedRowsAreKeptOnce(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	p := exchange.ParkedFlow{WorkflowID: "transfer:1", RunID: "a", Type: "Transfer", Reason: "step-failed", Since: at}
	keep := func(p exchange.ParkedFlow) {
		t.Helper()
		if err := s.KeepParked(ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	keep(p)
	p.Since = at.Add(time.Hour)
	keep(p)
	if all := parkedIDs(t, s, exchange.ParkedFilter{}); len(all) != 1 || !all[0].Since.Equal(at) {
		t.Errorf("parked twice with the same reason: %+v", all)
	}
	p.Reason = "cold-wallet"
	keep(p)
	all := parkedIDs(t, s, exchange.ParkedFilter{Reason: "cold-wallet"})
	if len(all) != 1 || !all[0].Since.Equal(p.Since) {
		t.Fatalf("parked with another reason: %+v", all)
	}
	stale := all[0]
	p.RunID, p.Since = "b", at.Add(2*time.Hour)
	keep(p)
	if err := s.DropStaleParked(ctx, stale); err != nil || len(parkedIDs(t, s, exchange.ParkedFilter{})) != 1 {
		t.Errorf("a flow that parked again was taken off the list by what was read before: %v", err)
	}
	for range 2 {
		if err := s.DropParked(ctx, p.WorkflowID); err != nil || len(parkedIDs(t, s, exchange.ParkedFilter{})) != 0 {
			t.Errorf("taken off the list: %v", err)
		}
	}
}

// A parked transfer names its sender, and no merchant where it has none.
func TestParkedTransferNamesItsSender(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	f := p.open(t, "10", exchange.Recipient{Address: outside})
	row := exchange.ParkedFlow{WorkflowID: "transfer:" + f.ID.String(), RunID: "a", Type: "Transfer", ObjectType: "transfer", ObjectID: f.ID, Reason: "step-failed", Since: time.Now()}
	if err := p.store.KeepParked(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	all := parkedIDs(t, p.store, exchange.ParkedFilter{})
	if len(all) != 1 || all[0].MerchantID != f.VendorID || all[0].CustomerID != f.SenderID || all[0].OrderID != uuid.Nil || !all[0].Amount.Equal(f.Amount) || all[0].Network != f.Network {
		t.Errorf("the transfer %+v is shown as %+v", f, all)
	}
}

// Money that came after its order had expired is found from the prompt that the parked flow is about: the exception in which
// it lies, what came and not what was asked for, the order and its customer.
func TestParkedLateMoneyNamesItsException(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	o := storetest.NewMarket(t, s).Order(t, s, "10")
	a := storetest.Attempt(t, s, o)
	if _, err := s.CloseOrder(ctx, o.ID, exchange.OrderCancelled, exchange.DetailExpired, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	out, err := s.AcceptPayment(ctx, a.ID, storetest.Listed(t, s, storetest.Paid(t, kes("1000"))), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	row := exchange.ParkedFlow{WorkflowID: "late-payment:" + a.ID.String(), RunID: "a", Type: "LatePayment", ObjectType: "payment_attempt", ObjectID: a.ID, Reason: "late-money", Since: time.Now()}
	if err := s.KeepParked(ctx, row); err != nil {
		t.Fatal(err)
	}
	one, err := s.ParkedFlow(ctx, row.WorkflowID)
	if err != nil || one.ExceptionID != out.Exception.ID || one.OrderID != o.ID || one.CustomerID != o.CustomerID || !one.Amount.Equal(kes("1000")) {
		t.Errorf("money in %s is shown as %+v, %v", out.Exception.ID, one, err)
	}
	if all := parkedIDs(t, s, exchange.ParkedFilter{}); len(all) != 1 || all[0].ExceptionID != one.ExceptionID {
		t.Errorf("listed as %+v, alone %+v", all, one)
	}
	if _, err := s.ParkedFlow(ctx, "late-payment:x"); exchange.CodeOf(err) != exchange.CodeNotFound {
		t.Errorf("a flow that is not parked: %v", err)
	}
}

// The payout of a refund is found from its attempt: the refund, its amount, the order and its customer.
func TestParkedPayoutNamesItsRefund(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	refund, _ := underpaid(t, s)
	a := payout(t, s, refund)
	o, err := s.OrderByID(ctx, refund.OrderID)
	if err != nil {
		t.Fatal(err)
	}
	row := exchange.ParkedFlow{WorkflowID: "late-payment:" + a.ID.String(), RunID: "a", Type: "LatePayout", ObjectType: "payment_attempt", ObjectID: a.ID, Reason: "refund-late_claim", Since: time.Now()}
	if err := s.KeepParked(ctx, row); err != nil {
		t.Fatal(err)
	}
	one, err := s.ParkedFlow(ctx, row.WorkflowID)
	if err != nil || one.RefundID != refund.ID || one.OrderID != o.ID || one.CustomerID != o.CustomerID || !one.Amount.Equal(refund.Amount) {
		t.Errorf("a payout of the refund %s is shown as %+v, %v", refund.ID, one, err)
	}
}
