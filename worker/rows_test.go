package worker_test

import (
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/worker"
)

// The hourly clearing ends the quotes that nobody used.
func TestPruneEndsQuotes(t *testing.T) {
	t.Parallel()
	ctx, now := t.Context(), time.Now()
	s := storetest.Open(t, storetest.URL(t), store.Options{Now: func() time.Time { return now }})
	owner := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleCustomer))
	_, err := s.EnterRate(ctx, store.RateEntry{
		ID: storetest.NewID(t), Base: money.USDT, Quote: money.KES, Bid: decimal.New(129, 0), Ask: decimal.New(129, 0), Source: exchange.RateSourceAdmin,
		Life: time.Hour,
	}, owner)
	if err != nil {
		t.Fatal(err)
	}
	q, err := s.OpenQuote(ctx, store.QuoteRequest{
		ID: storetest.NewID(t), Purpose: exchange.QuoteForTransfer, Side: exchange.QuoteSell, Amount: money.Must(money.USDT, "1"),
	}, owner)
	if err != nil {
		t.Fatal(err)
	}
	orders := &activities.Orders{Store: worker.Rows{Store: s}}
	for _, want := range []int{0, 1, 0} {
		if got, err := orders.Prune(ctx); err != nil || got.ExpiredQuotes != want || got.More {
			t.Errorf("cleared %+v, %v; want %d quotes", got, err, want)
		}
		now = q.ExpiresAt
	}
	if got, err := s.Quote(ctx, store.Everything(), q.ID); err != nil || got.Version != 2 || got.Status != exchange.QuoteExpired {
		t.Errorf("the quote is %s, %v", got.Status, err)
	}
}
