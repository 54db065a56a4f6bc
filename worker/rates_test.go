package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
	"kivuko/workflows/workflowstest"
)

// The hourly pruning expires unused quotes.
func TestPruneEndsQuotes(t *testing.T) {
	t.Parallel()
	ctx, now := t.Context(), time.Now()
	s := storetest.Open(t, storetest.URL(t), store.Options{Now: func() time.Time { return now }})
	owner := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleCustomer))
	storetest.Rate(t, s, store.RateEntry{Base: money.USDT, Bid: decimal.New(129, 0), Ask: decimal.New(129, 0), Life: time.Hour})
	q, err := s.OpenQuote(ctx, store.QuoteRequest{
		ID: storetest.NewID(t), Purpose: exchange.QuoteForTransfer, Side: exchange.QuoteSell, Amount: money.Must(money.USDT, "1"),
	}, owner)
	if err != nil {
		t.Fatal(err)
	}
	orders := &activities.Orders{Store: s}
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

// feed is a rate source with a fixed answer.
type feed struct {
	said exchange.SourcedRates
	err  error
}

func (f *feed) Rates(context.Context) (exchange.SourcedRates, error) { return f.said, f.err }

// A rate of the source is entered once. A rate that is stale, far off, invalid or the first of its pair is refused and the
// last rate stays. The flow returns the counts.
func TestPullRates(t *testing.T) {
	t.Parallel()
	ctx, now := t.Context(), time.Now().UTC().Truncate(time.Millisecond)
	s := storetest.Open(t, storetest.URL(t), store.Options{Now: func() time.Time { return now }})
	source := &feed{}
	pull := func() (activities.PulledRates, error) {
		t.Helper()
		env := workflowstest.NewEnvironment(workflowstest.Options{})
		env.RegisterActivity(&activities.Rates{Store: s, Source: source, Name: "bank", Life: time.Hour})
		env.ExecuteWorkflow(workflows.PullRates)
		var out activities.PulledRates
		if err := env.GetWorkflowError(); err != nil {
			return out, err
		}
		return out, env.GetWorkflowResult(&out)
	}
	says := func(base money.Asset, bid, ask string, age time.Duration) exchange.FXRate {
		return exchange.FXRate{
			Base: base, Quote: money.KES, Bid: decimal.RequireFromString(bid), Ask: decimal.RequireFromString(ask), ValidFrom: now.Add(-age),
		}
	}
	storetest.Rate(t, s, store.RateEntry{Base: money.USDT, Bid: decimal.New(129, 0), Ask: decimal.New(129, 0)})
	now = now.Add(2 * time.Hour)
	for _, c := range []struct {
		name   string
		broken int
		rates  []exchange.FXRate
		want   activities.PulledRates
	}{
		{"new, and one without a beginning", 0, []exchange.FXRate{says(money.USDT, "129", "130", time.Minute), says(money.ETH, "400000", "401000", 0)}, activities.PulledRates{Entered: 1, Refused: 1}},
		{"again", 0, []exchange.FXRate{says(money.USDT, "129", "130", time.Minute)}, activities.PulledRates{Known: 1}},
		{"older", 0, []exchange.FXRate{says(money.USDT, "128", "129", 2*time.Minute)}, activities.PulledRates{Known: 1}},
		{"too far", 0, []exchange.FXRate{says(money.USDT, "12.9", "13", time.Second)}, activities.PulledRates{Refused: 1}},
		{"stale", 0, []exchange.FXRate{says(money.USDT, "129", "130", time.Hour)}, activities.PulledRates{Refused: 1}},
		{"ahead", 0, []exchange.FXRate{says(money.USDT, "129", "130", -time.Second)}, activities.PulledRates{Refused: 1}},
		{"crossed, and broken lines", 2, []exchange.FXRate{says(money.USDT, "130", "129", time.Second)}, activities.PulledRates{Refused: 3}},
		{"an unknown coin", 0, []exchange.FXRate{says("DOGE", "1", "1", time.Second)}, activities.PulledRates{Refused: 1}},
	} {
		source.said = exchange.SourcedRates{Rates: c.rates, Broken: c.broken}
		if got, err := pull(); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
	list, total, err := s.FXRates(ctx, store.RateFilter{}, store.Page{Number: 1, Size: 9})
	if err != nil || total != 2 || list[0].Source != "bank" || !list[0].InForce(now) || !list[0].StaleAt.Equal(list[0].ValidFrom.Add(time.Hour)) {
		t.Errorf("there are %+v, %v", list, err)
	}
	source.err = exchange.Errorf(exchange.CodeForbidden, "no")
	if got, err := pull(); err == nil {
		t.Errorf("without an answer: %+v", got)
	}
}
