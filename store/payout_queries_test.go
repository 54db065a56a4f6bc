package store_test

import (
	"slices"
	"testing"

	"kivuko/store/storetest"
)

// The id of a query about a payout is stored once, for its own attempt, and never changed.
func TestPayoutQueries(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	a, other := storetest.Attempt(t, s, m.Order(t, s, "10")), storetest.Attempt(t, s, m.Order(t, s, "5"))
	for _, ticket := range []string{"AG_1", "AG_2", "AG_1"} {
		if err := s.SavePayoutQuery(ctx, a.ID, ticket); err != nil {
			t.Fatal(err)
		}
	}
	tickets, err := s.PayoutQueries(ctx, a.ID)
	if slices.Sort(tickets); err != nil || !slices.Equal(tickets, []string{"AG_1", "AG_2"}) {
		t.Errorf("stored %v, %v", tickets, err)
	}
	if tickets, err := s.PayoutQueries(ctx, other.ID); err != nil || len(tickets) != 0 {
		t.Errorf("another attempt has %v, %v", tickets, err)
	}
	if _, err := storetest.Owner(t, s).ExecContext(ctx, `UPDATE payout_queries SET ticket = 'AG_3'`); err == nil {
		t.Error("a query is changed")
	}
}
