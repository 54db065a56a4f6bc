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

// tariff is a store with a daily TRX fee limit.
func tariff(t *testing.T, customer, merchant, house string, now *time.Time) *store.Store {
	t.Helper()
	of := func(trx string) map[money.Asset]money.Amount {
		return map[money.Asset]money.Amount{money.TRX: money.Must(money.TRX, trx)}
	}
	return storetest.Open(t, storetest.URL(t), store.Options{
		Limits: store.Limits{
			CustomerOrders: 100, UserOrders: 100, PromptsPerPhone: 100, UserFees: of(customer), CustomerFees: of(customer), MerchantFees: of(merchant), HouseFees: of(house),
		},
		Now: func() time.Time { return *now },
	})
}

func feesLeft(t *testing.T, s *store.Store, want string) {
	t.Helper()
	got, bounded, err := s.FeesLeft(t.Context(), exchange.ChainPayment{ID: storetest.NewID(t), Network: exchange.Tron})
	if err != nil || !bounded || !got.Equal(trx(want)) {
		t.Errorf("the budget has %s left, want %s: %v", got, want, err)
	}
}

func openOrder(t *testing.T, s *store.Store, m storetest.Market, customer exchange.User) error {
	t.Helper()
	_, err := storetest.OpenOrder(t.Context(), s, exchange.OrderRequest{
		ID: storetest.NewID(t), CustomerID: customer.ID, OfferID: m.Offer.ID, Crypto: usdt("10"),
	}, storetest.PrincipalOf(customer))
	return err
}

// The fees of orders count for the customer and the vendor, as the limit while a transaction is pending and as the
// actual fee after it, until the day ends.
func TestFeesOfOrders(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	s := tariff(t, "20", "25", "100", &now)
	m := storetest.NewMarket(t, s)
	other := storetest.User(t, s, exchange.RoleCustomer)
	storetest.Wallet(t, s, other)
	_, p := paid(t, s, m)
	feesLeft(t, s, "100") // nothing is known of the price yet
	a, err := signFor(t, s, p, "18")
	if err != nil {
		t.Fatal(err)
	}
	feesLeft(t, s, "82")
	if err := openOrder(t, s, m, m.Customer); err != nil {
		t.Error(err)
	}
	for range 2 {
		if _, err := s.RecordFinal(t.Context(), a.ID, true, 101, "a-101", trx("14"), "SUCCESS"); err != nil {
			t.Fatal(err)
		}
	}
	feesLeft(t, s, "86")
	_, q := paid(t, s, m) // expected to cost what the one before it did
	feesLeft(t, s, "86")
	wantFault(t, openOrder(t, s, m, m.Customer), exchange.CodeLimitReached)
	wantFault(t, openOrder(t, s, m, other), exchange.CodeLimitReached) // the vendor's 28 are above 25
	b, err := signFor(t, s, q, "10")
	if err != nil {
		t.Fatal(err)
	}
	wantFault(t, openOrder(t, s, m, m.Customer), exchange.CodeLimitReached)
	if err := openOrder(t, s, m, other); err != nil {
		t.Errorf("24 of 25 are taken: %v", err)
	}
	if _, err := s.RecordExpired(t.Context(), b.ID, "its time is over"); err != nil {
		t.Fatal(err)
	}
	if err := openOrder(t, s, m, m.Customer); err != nil {
		t.Errorf("a transaction that never was counts: %v", err)
	}
	if _, err := signFor(t, s, q, "50"); err != nil {
		t.Fatal(err)
	}
	wantFault(t, openOrder(t, s, m, other), exchange.CodeLimitReached)
	now = now.Add(24 * time.Hour)
	feesLeft(t, s, "100")
	if err := openOrder(t, s, m, other); err != nil {
		t.Errorf("on the next day: %v", err)
	}
	wantBooks(t, s)
}

// Transfers count for their sender, and top-ups for the party that they are for.
func TestFeesOfTransfersAndTheirGas(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	s := tariff(t, "20", "25", "1000", &now)
	sender, other := storetest.User(t, s, exchange.RoleCustomer), storetest.User(t, s, exchange.RoleCustomer)
	from, to := storetest.Wallet(t, s, sender), storetest.Wallet(t, s, other)
	gas := storetest.GasWallet(t, s, exchange.Tron)
	for _, w := range []exchange.Wallet{from, to} {
		storetest.Deposit(t, s, w.ID, usdt("100"))
	}
	storetest.Gas(t, s, gas.ID, trx("500"))
	send := func(w exchange.Wallet, by exchange.User, to exchange.Wallet) (exchange.Transfer, error) {
		return storetest.OpenTransfer(t.Context(), s, exchange.TransferRequest{
			ID: storetest.NewID(t), RequestedBy: by.ID, WalletID: w.ID, Network: exchange.Tron, Amount: usdt("1"), Recipient: exchange.Recipient{WalletID: to.ID},
		}, storetest.PrincipalOf(by))
	}
	f, err := send(from, sender, to)
	if err != nil {
		t.Fatal(err)
	}
	if f, err = s.AdvanceTransfer(t.Context(), f.ID); err != nil {
		t.Fatal(err)
	}
	p, err := s.ChainPayment(t.Context(), f.PaymentID)
	if err != nil {
		t.Fatal(err)
	}
	top, err := s.ApproveTopUp(t.Context(), p.ID, trx("40"), 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := signFor(t, s, top, "21"); err != nil {
		t.Fatal(err)
	}
	_, err = send(from, sender, to)
	wantFault(t, err, exchange.CodeLimitReached)
	if _, err := send(to, other, from); err != nil {
		t.Errorf("another user is held up: %v", err)
	}
	feesLeft(t, s, "979")
	var user uuid.UUID
	if err := storetest.Owner(t, s).QueryRowContext(t.Context(), `SELECT user_id FROM network_fees WHERE payment_id = $1`, top.ID).Scan(&user); err != nil || user != sender.ID {
		t.Errorf("the top-up counts for %s, %v", user, err)
	}
}

// Counted fees can't be edited.
func TestFeesAreCountedByTheDatabase(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	paid(t, s, m)
	for _, query := range []string{`UPDATE network_fees SET amount = 0`, `DELETE FROM network_fees`, `TRUNCATE network_fees`} {
		if _, err := storetest.Owner(t, s).ExecContext(t.Context(), query); err == nil {
			t.Errorf("%s was let through", query)
		}
	}
}
