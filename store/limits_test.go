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

// narrow is a store on a database with small limits, and the clock that it reads.
func narrow(t *testing.T, url string) (*store.Store, *clock) {
	t.Helper()
	c := newClock()
	return storetest.Open(t, url, store.Options{Now: c.now, Limits: store.Limits{
		CustomerOrders: 3, UserOrders: 1, PromptsPerPhone: 2, PromptWindow: time.Hour,
	}}), c
}

func request(t *testing.T, m storetest.Market, customer exchange.User, phone string) exchange.OrderRequest {
	t.Helper()
	return exchange.OrderRequest{
		ID: storetest.NewID(t), CustomerID: customer.ID, OfferID: m.Offer.ID, Crypto: usdt("10"), Phone: phone,
		WalletAddress: "Toutside00000000000000000000000000",
	}
}

func secondOffer(t *testing.T, s *store.Store, m storetest.Market) exchange.Offer {
	t.Helper()
	by := storetest.PrincipalOf(m.Vendor)
	o, err := s.CreateOffer(t.Context(), exchange.Offer{
		ID: storetest.NewID(t), VendorID: m.Vendor.ID, CreatedBy: m.Vendor.ID, Type: exchange.OfferSell, Network: exchange.Tron,
		Asset: money.USDT, Total: usdt("400"), Rate: m.Offer.Rate, MinOrder: usdt("5"), MaxOrder: usdt("100"),
	}, by)
	if err == nil {
		o, err = s.PublishOffer(t.Context(), store.ViewOf(by, exchange.ActWriteOffers), o.ID, by)
	}
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// Orders that come at the same moment, in two processes, can't pass the limit together.
func TestRacePendingOrdersAreLimited(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	one, _ := narrow(t, url)
	other, _ := narrow(t, url)
	stores := []*store.Store{one, other}
	m := storetest.NewMarket(t, one)
	// Against different offers, whose rows would otherwise queue them up.
	offers := []uuid.UUID{m.Offer.ID, secondOffer(t, one, m).ID}
	requests := make([]exchange.OrderRequest, 12)
	for i := range requests {
		requests[i] = request(t, m, m.Customer, "")
		requests[i].OfferID = offers[i%2]
	}
	codes := atOnce(len(requests), func(i int) error {
		_, err := stores[i%2].OpenOrder(t.Context(), requests[i], storetest.PrincipalOf(m.Customer))
		return err
	})
	if codes[""] != 3 || codes[exchange.CodeLimitReached] != 9 {
		t.Errorf("outcomes %v, want 3 orders and 9 refusals", codes)
	}
	wantBooks(t, one)
}

func TestPendingOrdersAreLimitedByRole(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, _ := narrow(t, storetest.URL(t))
	m := storetest.NewMarket(t, s)
	user := storetest.User(t, s, exchange.RoleUser)
	open := func(u exchange.User) (exchange.Order, error) {
		return s.OpenOrder(ctx, request(t, m, u, ""), storetest.PrincipalOf(u))
	}
	first, err := open(user)
	if err != nil {
		t.Fatal(err)
	}
	_, err = open(user)
	wantFault(t, err, exchange.CodeLimitReached)
	for range 3 { // another person's orders count for themselves
		if _, err := open(m.Customer); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.CloseOrder(ctx, first.ID, exchange.OrderCancelled, exchange.DetailCancelled, storetest.PrincipalOf(user)); err != nil {
		t.Fatal(err)
	}
	again, err := open(user)
	if err != nil {
		t.Fatalf("after one was cancelled: %v", err)
	}
	// A repeated request finds its order, however many there are.
	if _, err := s.OpenOrder(ctx, exchange.OrderRequest{ID: again.ID, CustomerID: user.ID, OfferID: m.Offer.ID, Crypto: usdt("10")}, storetest.PrincipalOf(user)); err != nil {
		t.Errorf("repeated: %v", err)
	}
}

func prompt(t *testing.T, s *store.Store, o exchange.Order, id uuid.UUID) (exchange.PaymentAttempt, bool, error) {
	t.Helper()
	return s.BeginAttempt(t.Context(), exchange.PaymentAttempt{
		ID: id, Direction: exchange.Collection, OrderID: o.ID, Provider: "daraja", Amount: o.Price.Fiat, Phone: o.PaymentPhone,
		Reference: o.PaymentReference(), CallbackToken: "token-" + id.String(),
	})
}

// Prompts of different customers to one phone, in two processes at the same moment: two ring it.
func TestRacePromptsToAPhoneAreLimited(t *testing.T) {
	t.Parallel()
	const phone = "254733000999"
	url := storetest.URL(t)
	one, time1 := narrow(t, url)
	other, _ := narrow(t, url)
	stores := []*store.Store{one, other}
	m := storetest.NewMarket(t, one)
	orders, ids := make([]exchange.Order, 8), make([]uuid.UUID, 8)
	for i := range orders {
		customer := storetest.User(t, one, exchange.RoleUser)
		o, err := one.OpenOrder(t.Context(), request(t, m, customer, phone), storetest.PrincipalOf(customer))
		if err != nil {
			t.Fatal(err)
		}
		orders[i], ids[i] = o, storetest.NewID(t)
	}
	attempts, created := make([]exchange.PaymentAttempt, len(orders)), make([]bool, len(orders))
	codes := atOnce(len(orders), func(i int) (err error) {
		attempts[i], created[i], err = prompt(t, stores[i%2], orders[i], ids[i])
		return err
	})
	rang := 0
	for i, a := range attempts {
		switch {
		case created[i] && a.Status == exchange.AttemptCreated:
			rang++
		case created[i] || a.Status != exchange.AttemptRefused || a.ResultCode != store.PromptLimit || a.CallbackToken != "":
			t.Errorf("attempt %+v, created %t", a, created[i])
		}
	}
	if rang != 2 || codes[""] != len(orders) {
		t.Errorf("%d prompts, outcomes %v", rang, codes)
	}
	stranger := storetest.User(t, one, exchange.RoleUser)
	_, err := one.OpenOrder(t.Context(), request(t, m, stranger, phone), storetest.PrincipalOf(stranger))
	wantFault(t, err, exchange.CodeLimitReached)
	time1.advance(2 * time.Hour)
	if _, err := one.OpenOrder(t.Context(), request(t, m, stranger, phone), storetest.PrincipalOf(stranger)); err != nil {
		t.Errorf("after the window: %v", err)
	}
}
