package store_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// inbound is one payment as each channel reports it.
type inbound struct {
	attempt exchange.PaymentAttempt
	seen    exchange.Observation
}

func (p inbound) by(w exchange.EvidenceSource) exchange.Observation {
	o := p.seen
	o.Source = w
	return o
}

// channels are the three channels that report a payment, each with its effect on the books.
func (p inbound) channels(t *testing.T, s *store.Store) map[string]func() error {
	t.Helper()
	take := func(w exchange.EvidenceSource) func() error {
		return func() error {
			_, err := s.TakeReceipt(t.Context(), p.by(w))
			return err
		}
	}
	return map[string]func() error{
		"callback": func() error {
			_, err := s.AcceptPayment(t.Context(), p.attempt.ID, p.by(exchange.SourceCallback), time.Time{})
			return err
		},
		"confirmation": take(exchange.SourceConfirmation), "statement": take(exchange.SourceStatement),
	}
}

func newInbound(t *testing.T, s *store.Store, m storetest.Market) inbound {
	t.Helper()
	a := storetest.Attempt(t, s, m.Order(t, s, "10"))
	seen := storetest.Paid(t, a.Amount)
	seen.Reference, seen.Phone, seen.At = " "+strings.ToLower(a.Reference)+" ", a.Phone, time.Now().Add(-time.Minute).UTC().Truncate(time.Second)
	return inbound{attempt: a, seen: seen}
}

// onlyC2B reads the one row of a receipt.
func onlyC2B(t *testing.T, s *store.Store, receipt string) exchange.C2BPayment {
	t.Helper()
	all, total, err := s.ListC2B(t.Context(), store.C2BFilter{Receipt: receipt}, store.Page{Number: 1, Size: 10})
	if err != nil || total != 1 || len(all) != 1 {
		t.Fatalf("%d rows of %d, %v", len(all), total, err)
	}
	return all[0]
}

func (p inbound) wantMatched(t *testing.T, s *store.Store) {
	t.Helper()
	got := onlyC2B(t, s, p.seen.Receipt)
	if got.Status != exchange.C2BMatched || got.AttemptID != p.attempt.ID || got.Object != p.attempt.Object || got.ExceptionID != uuid.Nil || got.Disputed {
		t.Errorf("the payment is %+v", got)
	}
	if got.NotifiedAt.IsZero() || got.ListedAt.IsZero() || got.BookedAt.IsZero() || got.Reference != p.attempt.Reference || got.PartyHash != p.attempt.Phone.Hash() {
		t.Errorf("a channel left no trace: %+v", got)
	}
	if _, total, err := s.ListExceptions(t.Context(), store.ExceptionFilter{}, store.Page{Number: 1, Size: 10}); err != nil || total != 0 {
		t.Errorf("%d exceptions, %v", total, err)
	}
}

func TestOneReceiptByThreeChannelsInAnyOrder(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	names := []string{"callback", "confirmation", "statement"}
	for i, first := range names {
		for _, second := range names {
			third := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == first || n == second })
			if len(third) != 1 {
				continue
			}
			p := newInbound(t, s, m)
			channels := p.channels(t, s)
			for _, n := range []string{first, second, third[0], first, second} { // and some of them again
				if err := channels[n](); err != nil {
					t.Fatalf("round %d, %s: %v", i, n, err)
				}
			}
			p.wantMatched(t, s)
		}
	}
}

func TestOneReceiptByThreeChannelsAtOnce(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	for range 5 {
		p := newInbound(t, s, m)
		var all sync.WaitGroup
		errs := make(chan error, 20)
		for range 3 {
			for name, tell := range p.channels(t, s) {
				all.Go(func() {
					if err := tell(); err != nil {
						errs <- fmt.Errorf("%s: %w", name, err)
					}
				})
			}
		}
		all.Wait()
		close(errs)
		for err := range errs {
			t.Error(err)
		}
		p.wantMatched(t, s)
	}
	wantBooks(t, s)
}

func TestAReceiptFindsWhatWaitsForIt(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	p := newInbound(t, s, m)
	for _, w := range []exchange.EvidenceSource{exchange.SourceConfirmation, exchange.SourceStatement} {
		taken, err := s.TakeReceipt(t.Context(), p.by(w))
		if err != nil || taken.Waiting.ID != p.attempt.ID || taken.New != (w == exchange.SourceConfirmation) {
			t.Errorf("by %s: %+v, %v", w, taken, err)
		}
	}
	// A wrong amount is reported to the same attempt, whose flow decides; the report books nothing.
	wrong := storetest.Paid(t, p.attempt.Amount.Add(kes("1")))
	wrong.Reference, wrong.Source, wrong.At = p.attempt.Reference, exchange.SourceStatement, time.Now()
	if taken, err := s.TakeReceipt(t.Context(), wrong); err != nil || taken.Waiting.ID != p.attempt.ID || taken.Payment.Status != exchange.C2BUnmatched {
		t.Errorf("a wrong amount: %+v, %v", taken, err)
	}
	if o, err := s.Order(t.Context(), store.Everything(), p.attempt.OrderID); err != nil || o.Status != exchange.OrderPending {
		t.Errorf("the order is %s, %v", o.Status, err)
	}
	if stray, err := s.StrayPayments(t.Context(), time.Now().Add(-time.Hour), 10); err != nil || len(stray) != 0 {
		t.Errorf("payments that something waits for are stray: %v, %v", stray, err)
	}
	// Once the order is paid nothing waits under its reference.
	if _, err := s.AcceptPayment(t.Context(), p.attempt.ID, p.by(exchange.SourceCallback), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if stray, err := s.StrayPayments(t.Context(), time.Now().Add(-time.Hour), 10); err != nil || len(stray) != 1 {
		t.Errorf("the second payment under one reference: %v, %v", stray, err)
	}
	for _, bad := range []exchange.Observation{{Receipt: "SKE1"}, {Amount: kes("1")}, {Receipt: "SKE1", Amount: money.Must(money.USDT, "1")}} {
		_, err := s.TakeReceipt(t.Context(), bad)
		wantFault(t, err, exchange.CodeInvalid)
	}
}

func TestTwoChannelsContradictEachOther(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	for name, change := range map[string]func(*exchange.Observation){
		"amount":    func(o *exchange.Observation) { o.Amount = o.Amount.Add(kes("1")) },
		"reference": func(o *exchange.Observation) { o.Reference = "OTHER" },
	} {
		p := newInbound(t, s, m)
		if _, err := s.TakeReceipt(t.Context(), p.by(exchange.SourceConfirmation)); err != nil {
			t.Fatal(err)
		}
		o := p.by(exchange.SourceStatement)
		change(&o)
		taken, err := s.TakeReceipt(t.Context(), o)
		if err != nil || !taken.Payment.Disputed || !taken.Payment.Amount.Equal(p.seen.Amount) || taken.Payment.Reference != p.attempt.Reference {
			t.Errorf("another %s: %+v, %v", name, taken.Payment, err)
		}
		wantFault(t, s.SaveReceipt(t.Context(), o), exchange.CodeConflict)
	}
}

func TestAnUnmatchedPaymentIsSetAsideOnce(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	stranger := storetest.Paid(t, kes("70"))
	stranger.Reference, stranger.At = "RENT", time.Now()
	stranger.Source = exchange.SourceConfirmation
	taken, err := s.TakeReceipt(t.Context(), stranger)
	if err != nil || taken.Waiting.ID != uuid.Nil {
		t.Fatalf("%+v, %v", taken, err)
	}
	// A notice is not signed: alone it books nothing.
	_, err = s.OpenUnmatched(t.Context(), taken.Payment.ID)
	wantFault(t, err, exchange.CodeStateConflict)
	if stray, err := s.StrayPayments(t.Context(), time.Now(), 10); err != nil || len(stray) != 0 {
		t.Errorf("a notice alone: %v, %v", stray, err)
	}
	stranger.Source = exchange.SourceStatement
	if _, err := s.TakeReceipt(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	stray, err := s.StrayPayments(t.Context(), time.Now().Add(-time.Hour), 10)
	if err != nil || len(stray) != 1 || stray[0] != taken.Payment.ID {
		t.Fatalf("stray payments %v, %v", stray, err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := s.OpenUnmatched(t.Context(), stray[0]); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	exceptions, total, err := s.ListExceptions(t.Context(), store.ExceptionFilter{Kind: exchange.ExcUnmatched}, store.Page{Number: 1, Size: 10})
	if err != nil || total != 1 || exceptions[0].Receipt != stranger.Receipt || !exceptions[0].Amount.Equal(kes("70")) {
		t.Fatalf("%d exceptions %+v, %v", total, exceptions, err)
	}
	if got := onlyC2B(t, s, stranger.Receipt); got.ExceptionID != exceptions[0].ID || got.Status != exchange.C2BUnmatched {
		t.Errorf("the payment is %+v", got)
	}
	// A payment set aside as an exception is not booked for an order too.
	a := storetest.Attempt(t, s, m.Order(t, s, "10"))
	stranger.Source = exchange.SourceCallback
	_, err = s.AcceptPayment(t.Context(), a.ID, stranger, time.Time{})
	wantFault(t, err, exchange.CodeConflict)
	wantBooks(t, s)
}

// TestMatchAndExceptionRace lets an order and suspense compete for the same money.
func TestMatchAndExceptionRace(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	for range 5 {
		p := newInbound(t, s, m)
		taken, err := s.TakeReceipt(t.Context(), p.by(exchange.SourceStatement))
		if err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		both.Go(func() {
			_, err := s.AcceptPayment(t.Context(), p.attempt.ID, p.by(exchange.SourceCallback), time.Time{})
			if err != nil && exchange.CodeOf(err) != exchange.CodeConflict {
				t.Error(err)
			}
		})
		both.Go(func() {
			if _, err := s.OpenUnmatched(t.Context(), taken.Payment.ID); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		got := onlyC2B(t, s, p.seen.Receipt)
		if (got.AttemptID == uuid.Nil) == (got.ExceptionID == uuid.Nil) {
			t.Errorf("the money has no place, or two: %+v", got)
		}
	}
	wantBooks(t, s)
}

func TestThePaymentsAreFiltered(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	matched, open := newInbound(t, s, m), newInbound(t, s, m)
	for _, tell := range matched.channels(t, s) {
		if err := tell(); err != nil {
			t.Fatal(err)
		}
	}
	open.seen.At, open.seen.Amount = open.seen.At.Add(-time.Hour), kes("20")
	if _, err := s.TakeReceipt(t.Context(), open.by(exchange.SourceConfirmation)); err != nil {
		t.Fatal(err)
	}
	yes, no, thirty := true, false, kes("30")
	for name, c := range map[string]struct {
		filter store.C2BFilter
		want   []string // receipts
	}{
		"all, the newest first": {store.C2BFilter{}, []string{matched.seen.Receipt, open.seen.Receipt}},
		"matched":               {store.C2BFilter{Status: exchange.C2BMatched}, []string{matched.seen.Receipt}},
		"unmatched":             {store.C2BFilter{Status: exchange.C2BUnmatched}, []string{open.seen.Receipt}},
		"order":                 {store.C2BFilter{Object: matched.attempt.Object}, []string{matched.seen.Receipt}},
		"reference":             {store.C2BFilter{Reference: strings.ToLower(open.attempt.Reference)}, []string{open.seen.Receipt}},
		"nobody's phone":        {store.C2BFilter{PartyHash: strings.Repeat("0", 64)}, nil},
		"at least":              {store.C2BFilter{Least: &thirty}, []string{matched.seen.Receipt}},
		"at most":               {store.C2BFilter{Most: &thirty}, []string{open.seen.Receipt}},
		"from":                  {store.C2BFilter{From: matched.seen.At}, []string{matched.seen.Receipt}},
		"to":                    {store.C2BFilter{To: matched.seen.At}, []string{open.seen.Receipt}},
		"listed":                {store.C2BFilter{Listed: &yes}, []string{matched.seen.Receipt}},
		"not listed":            {store.C2BFilter{Listed: &no}, []string{open.seen.Receipt}},
		"disputed":              {store.C2BFilter{Disputed: &yes}, nil},
	} {
		all, total, err := s.ListC2B(t.Context(), c.filter, store.Page{Number: 1, Size: 10})
		var got []string
		for _, p := range all {
			got = append(got, p.Receipt)
		}
		if err != nil || total != len(c.want) || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v of %d, want %v; %v", name, got, total, c.want, err)
		}
	}
	if n, err := s.UnlistedPayments(t.Context(), time.Now().Add(-2*time.Hour), time.Now()); err != nil || n != 1 {
		t.Errorf("%d payments are in no statement, %v", n, err)
	}
}

func TestALineIsQuarantinedOnce(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	line := exchange.Observation{Code: "b2c-payment", Receipt: strings.Repeat("R", 90), At: time.Now()}
	for i, want := range []bool{true, false} {
		if fresh, err := s.QuarantineLine(t.Context(), line, store.LineUnreadable); err != nil || fresh != want {
			t.Errorf("time %d: new is %v, %v", i, fresh, err)
		}
	}
	line.Code = "other"
	if fresh, err := s.QuarantineLine(t.Context(), line, store.LineRefused); err != nil || !fresh {
		t.Errorf("another line: %v, %v", fresh, err)
	}
}
