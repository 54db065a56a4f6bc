package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// narrow is a store on a database with small limits, and its clock.
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

// Concurrent orders in two processes can't exceed the limit together.
func TestRacePendingOrdersAreLimited(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	one, _ := narrow(t, url)
	other, _ := narrow(t, url)
	stores := []*store.Store{one, other}
	m := storetest.NewMarket(t, one)
	// Against different offers, whose rows would otherwise serialise them.
	offers := []uuid.UUID{m.Offer.ID, secondOffer(t, one, m).ID}
	requests := make([]exchange.OrderRequest, 12)
	for i := range requests {
		requests[i] = request(t, m, m.Customer, "")
		requests[i].OfferID = offers[i%2]
	}
	codes := atOnce(len(requests), func(i int) error {
		_, err := storetest.OpenOrder(t.Context(), stores[i%2], requests[i], storetest.PrincipalOf(m.Customer))
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
	var last exchange.OrderRequest
	open := func(u exchange.User) (exchange.Order, error) {
		last = request(t, m, u, "")
		return storetest.OpenOrder(ctx, s, last, storetest.PrincipalOf(u))
	}
	first, err := open(user)
	if err != nil {
		t.Fatal(err)
	}
	_, err = open(user)
	wantFault(t, err, exchange.CodeLimitReached)
	for range 3 { // another customer's orders count separately
		if _, err := open(m.Customer); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.CloseOrder(ctx, first.ID, exchange.OrderCancelled, exchange.DetailCancelled, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	again, err := open(user)
	if err != nil {
		t.Fatalf("after one was cancelled: %v", err)
	}
	// A repeated request finds its order, however many there are.
	if o, err := storetest.OpenOrder(ctx, s, last, storetest.PrincipalOf(user)); err != nil || o.ID != again.ID {
		t.Errorf("repeated: %s, %v", o.ID, err)
	}
}

func prompt(t *testing.T, s *store.Store, o exchange.Order, id uuid.UUID) (exchange.PaymentAttempt, bool, error) {
	t.Helper()
	return s.BeginCollection(t.Context(), exchange.OrderObject(o.ID), exchange.PaymentAttempt{
		ID: id, Provider: "daraja", CallbackToken: "token-" + id.String(),
	})
}

// Concurrent prompts of different customers to one phone, in two processes: only two are sent.
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
		o, err := storetest.OpenOrder(t.Context(), one, request(t, m, customer, phone), storetest.PrincipalOf(customer))
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
	_, err := storetest.OpenOrder(t.Context(), one, request(t, m, stranger, phone), storetest.PrincipalOf(stranger))
	wantFault(t, err, exchange.CodeLimitReached)
	time1.advance(2 * time.Hour)
	if _, err := storetest.OpenOrder(t.Context(), one, request(t, m, stranger, phone), storetest.PrincipalOf(stranger)); err != nil {
		t.Errorf("after the window: %v", err)
	}
}

// An order is opened at the rate that its customer saw, or not at all.
func TestOrdersAskForTheRateTheyExpect(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	for rate, want := range map[string]exchange.Code{"": "", "129.5": "", "129.500000": "", "129.51": exchange.CodeRateChanged} {
		r := request(t, m, m.Customer, "")
		if rate != "" {
			r.ExpectedRate = decimal.RequireFromString(rate)
		}
		if _, err := storetest.OpenOrder(t.Context(), s, r, storetest.PrincipalOf(m.Customer)); exchange.CodeOf(err) != want {
			t.Errorf("expecting %q: %v", rate, err)
		}
	}
	wantBooks(t, s)
}

func TestOffersOfDeactivatedVendorsAreNotOpen(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	for _, active := range []bool{false, true} {
		if _, err := s.UpdateUser(ctx, m.Vendor.ID, store.UserPatch{IsActive: &active}, storetest.By); err != nil {
			t.Fatal(err)
		}
		_, err := storetest.OpenOrder(ctx, s, request(t, m, m.Customer, ""), storetest.PrincipalOf(m.Customer))
		if active != (err == nil) || (!active && exchange.CodeOf(err) != exchange.CodeStateConflict) {
			t.Errorf("active %t: %v", active, err)
		}
	}
}

// The last allowed wallet and subvendor of an account go to one of two requests.
func TestRaceAccountsOwnOnlySoMuch(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	vendor := storetest.User(t, s, exchange.RoleVendor)
	for range store.MaxWalletsPerOwner - 1 {
		storetest.Wallet(t, s, vendor)
	}
	codes := atOnce(4, func(i int) error {
		id := uuid.New()
		_, err := storetest.CreateWallet(ctx, s, exchange.WalletRequest{
			ID: id, OwnerType: exchange.OwnerMerchant, OwnerID: vendor.ID, VendorID: vendor.ID, Network: exchange.Tron, Asset: money.USDT, Type: exchange.Hot,
		}, fmt.Sprintf("Trace%028d", i), exchange.SealedKey{WalletID: id, Ciphertext: []byte("sealed"), MasterKey: "test", PublicKey: []byte{byte(i)}, Algorithm: "secp256k1"})
		return err
	})
	if codes[""] != 1 || codes[exchange.CodeLimitReached] != 3 {
		t.Errorf("wallets: %v", codes)
	}
	for range store.MaxSubvendorsPerVendor - 1 {
		storetest.Subvendor(t, s, vendor)
	}
	codes = atOnce(4, func(i int) error {
		_, err := s.CreateUser(ctx, exchange.User{
			ID: uuid.New(), Email: fmt.Sprintf("race%d@kivuko.example", i), PhoneNumber: exchange.Phone(fmt.Sprintf("2547990000%02d", i)), FirstName: "A", LastName: "B",
			Role: exchange.RoleSubvendor, VendorID: vendor.ID, IsActive: true,
		}, exchange.Credentials{PasswordHash: "hash"}, storetest.By)
		return err
	})
	if codes[""] != 1 || codes[exchange.CodeLimitReached] != 3 {
		t.Errorf("subvendors: %v", codes)
	}
}

// A decision that was not used in time has expired; a used one is found again.
func TestCommandsExpireUnused(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClock()
	s := storetest.Open(t, storetest.URL(t), store.Options{Now: c.now})
	admin := storetest.User(t, s, exchange.RoleAdmin)
	save := func() exchange.OperatorCommand {
		command := exchange.OperatorCommand{ID: uuid.New(), ObjectType: "order", ObjectID: uuid.New(), Verb: "refund", Note: "why", ActorID: admin.ID}
		if err := s.SaveCommand(ctx, command, storetest.PrincipalOf(admin)); err != nil {
			t.Fatal(err)
		}
		return command
	}
	use := func(x exchange.OperatorCommand) error {
		_, err := s.UseCommand(ctx, x.ID, "order", x.ObjectID)
		return err
	}
	used, unused := save(), save()
	c.advance(store.CommandLife - time.Minute)
	if err := use(used); err != nil {
		t.Fatal(err)
	}
	c.advance(2 * time.Minute)
	if err := use(used); err != nil {
		t.Errorf("used again: %v", err)
	}
	wantFault(t, use(unused), exchange.CodeExpired)
	unused.ObjectID = uuid.New()
	wantFault(t, use(unused), exchange.CodeNotFound) // not the object's
}
