package store_test

import (
	"sync"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// Concurrent requests in several processes can't exceed a limit together.
func TestLimitsHoldAgainstParallelRequests(t *testing.T) {
	t.Parallel()
	url := storetest.URL(t)
	o := store.Options{Now: newClock().now} // one day
	p := newPurseIn(t, storetest.Open(t, url, o), "1000")
	others := []*store.Store{p.store, storetest.Open(t, url, o), storetest.Open(t, url, o)}
	storetest.Patch(t, p.store, store.LimitPatch{Roles: map[exchange.Role]exchange.SpendingLimits{
		exchange.RoleCustomer: {PerTransaction: kes("1500"), PerDay: kes("4500"), PerMonth: kes("6000")},
	}})
	const tries = 12
	results := make([]error, tries)
	var wg sync.WaitGroup
	for i := range tries {
		r := p.request(t, "10", exchange.Recipient{Address: outside}) // 1500 KES each at the first valuation
		wg.Go(func() {
			_, results[i] = storetest.OpenTransfer(t.Context(), others[i%len(others)], r, storetest.PrincipalOf(p.sender))
		})
	}
	wg.Wait()
	opened := 0
	for _, err := range results {
		if err == nil {
			opened++
			continue
		}
		wantFault(t, err, exchange.CodeLimitReached)
	}
	if opened != 3 {
		t.Errorf("%d of %d were opened, the day has room for 3", opened, tries)
	}
	wantBalance(t, p.store, p.balance(), "1000", "30")
	_, err := storetest.OpenTransfer(t.Context(), p.store, p.request(t, "10.01", exchange.Recipient{Address: outside}), storetest.PrincipalOf(p.sender))
	wantFault(t, err, exchange.CodeLimitReached)
	// An object that moves nothing counts nothing, and transfers between own wallets are no spending.
	list, _, err := p.store.ListTransfers(t.Context(), store.Everything(), store.TransferFilter{}, store.Page{Number: 1, Size: 10})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.CancelTransfer(t.Context(), p.store, list[0].ID, storetest.PrincipalOf(p.sender)); err != nil {
		t.Fatal(err)
	}
	p.open(t, "10", exchange.Recipient{Address: outside})
	second := storetest.Wallet(t, p.store, p.sender)
	p.open(t, "500", exchange.Recipient{WalletID: second.ID})
	wantTransfers(t, p.store)
}

// An admin's own limit for a user replaces the role's, field by field.
func TestLimitsOfOneUser(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "1000")
	admin := storetest.PrincipalOf(storetest.User(t, p.store, exchange.RoleAdmin))
	set := func(l exchange.SpendingLimits) {
		t.Helper()
		if _, err := p.store.UpdateUser(t.Context(), p.sender.ID, store.UserPatch{Limits: &l}, admin); err != nil {
			t.Fatal(err)
		}
	}
	try := func(amount string) exchange.Code {
		t.Helper()
		_, err := storetest.OpenTransfer(t.Context(), p.store, p.request(t, amount, exchange.Recipient{Address: outside}), storetest.PrincipalOf(p.sender))
		return exchange.CodeOf(err)
	}
	set(exchange.SpendingLimits{PerTransaction: kes("150")})
	if got := try("1.000001"); got != exchange.CodeLimitReached {
		t.Errorf("above the user's limit: %q", got)
	}
	if got := try("1"); got != "" {
		t.Errorf("at the user's limit: %q", got)
	}
	l, err := p.store.LimitsOf(t.Context(), p.sender)
	if err != nil || l.Own.PerTransaction.String() != "150.00" || l.Own.PerDay.Asset() != "" || l.Effective.PerDay.String() != "500000.00" {
		t.Errorf("limits %+v, %v", l, err)
	}
	set(exchange.SpendingLimits{})
	if got := try("2"); got != "" {
		t.Errorf("back at the role's limit: %q", got)
	}
}

// atNoon opens a store whose clock stands at noon in Kenya, so that no day of a limit ends during a test.
func atNoon(t *testing.T) *store.Store {
	t.Helper()
	noon := time.Now().UTC().Truncate(24 * time.Hour).Add(9 * time.Hour)
	return storetest.Open(t, storetest.URL(t), store.Options{Now: func() time.Time { return noon }})
}

// A merchant and its subvendors share the merchant's limits, and a subvendor may have lower ones of its own.
func TestSubvendorsShareTheirMerchantsLimits(t *testing.T) {
	t.Parallel()
	p := newPurseIn(t, atNoon(t), "0.1")
	s, ctx := p.store, t.Context()
	merchant := storetest.User(t, s, exchange.RoleVendor)
	people := []exchange.User{merchant, storetest.Subvendor(t, s, merchant), storetest.Subvendor(t, s, merchant)}
	wallet := storetest.Wallet(t, s, merchant)
	storetest.Deposit(t, s, wallet.ID, usdt("1000"))
	small := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	set := func(u exchange.User, l exchange.SpendingLimits) {
		t.Helper()
		if _, err := s.UpdateUser(ctx, u.ID, store.UserPatch{Limits: &l}, small); err != nil {
			t.Fatal(err)
		}
	}
	send := func(who exchange.User, amount string) error {
		_, err := storetest.OpenTransfer(ctx, s, exchange.TransferRequest{
			ID: storetest.NewID(t), RequestedBy: who.ID, WalletID: wallet.ID, Network: exchange.Tron, Amount: usdt(amount),
			Recipient: exchange.Recipient{Address: outside},
		}, storetest.PrincipalOf(who))
		return err
	}
	set(merchant, exchange.SpendingLimits{PerTransaction: kes("3000"), PerDay: kes("6000")}) // 20 and 40 USDT
	set(people[1], exchange.SpendingLimits{PerDay: kes("1500")})
	if l, err := s.LimitsOf(ctx, people[1]); err != nil || l.Effective.PerDay.String() != "1500.00" || l.Effective.PerTransaction.String() != "3000.00" {
		t.Errorf("a subvendor's limits %+v, %v", l, err)
	}
	wantFault(t, send(people[2], "20.000001"), exchange.CodeLimitReached)
	if err := send(people[1], "10"); err != nil {
		t.Fatal(err)
	}
	wantFault(t, send(people[1], "0.01"), exchange.CodeLimitReached)
	if err := send(people[2], "20"); err != nil {
		t.Fatal(err)
	}
	wantFault(t, send(merchant, "10.01"), exchange.CodeLimitReached)
	if err := send(merchant, "10"); err != nil {
		t.Fatal(err)
	}
	wantFault(t, send(people[2], "0.01"), exchange.CodeLimitReached)
	// Concurrently too.
	codes := atOnce(6, func(i int) error { return send(people[i%3], "1") })
	if codes[exchange.CodeLimitReached] != 6 {
		t.Errorf("outcomes %v", codes)
	}
}

// Orders count against their customer's limits from their opening, by the higher of their price and their crypto's
// value. Orders without a payout count nothing.
func TestOrdersCountAgainstLimits(t *testing.T) {
	t.Parallel()
	s := atNoon(t)
	m := storetest.NewMarket(t, s)
	ctx := t.Context()
	storetest.Patch(t, s, store.LimitPatch{Roles: map[exchange.Role]exchange.SpendingLimits{
		exchange.RoleCustomer: {PerTransaction: kes("1500"), PerDay: kes("3000")},
	}})
	buy := func(crypto string) (exchange.Order, error) {
		return storetest.OpenOrder(ctx, s, exchange.OrderRequest{
			ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt(crypto),
		}, storetest.PrincipalOf(m.Customer))
	}
	_, err := buy("10.000001") // 1500.00015 by the first valuation, 1296 shillings at the offer's rate
	wantFault(t, err, exchange.CodeLimitReached)
	one, err := buy("10")
	if err != nil {
		t.Fatal(err)
	}
	two, err := buy("10")
	if err != nil {
		t.Fatal(err)
	}
	_, err = buy("5")
	wantFault(t, err, exchange.CodeLimitReached)
	// A transfer of the same user has no room either.
	storetest.Deposit(t, s, m.CustomerWallet.ID, usdt("50"))
	_, err = storetest.OpenTransfer(ctx, s, exchange.TransferRequest{
		ID: storetest.NewID(t), RequestedBy: m.Customer.ID, Network: exchange.Tron, Amount: usdt("5"), Recipient: exchange.Recipient{Address: outside},
	}, storetest.PrincipalOf(m.Customer))
	wantFault(t, err, exchange.CodeLimitReached)

	if _, err := s.CloseOrder(ctx, one.ID, exchange.OrderCancelled, exchange.DetailCancelled, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	three, err := buy("10")
	if err != nil {
		t.Errorf("after one was cancelled: %v", err)
	}
	// Too little money ends an order without a payout, and a refund gives it up.
	if _, err := s.AcceptPayment(ctx, storetest.Attempt(t, s, two).ID, storetest.Listed(t, s, storetest.Paid(t, kes("50"))), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AcceptPayment(ctx, storetest.Attempt(t, s, three).ID, storetest.Paid(t, three.Price.Fiat), time.Time{}); err != nil {
		t.Fatal(err)
	}
	if _, err := buy("10"); err != nil {
		t.Errorf("after too little was paid for one: %v", err)
	}
	_, err = buy("5")
	wantFault(t, err, exchange.CodeLimitReached)
	if _, _, err := s.RefundOrder(ctx, three.ID, "x", storetest.By); err != nil {
		t.Fatal(err)
	}
	if _, err := buy("10"); err != nil {
		t.Errorf("after one was refunded: %v", err)
	}
	wantBooks(t, s)
}
