package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// shop is a house that sells: it has 1000 USDT in a wallet of its treasury, of which 300 are set aside, and a customer with a wallet.
type shop struct {
	*store.Store
	treasury, wallet exchange.Wallet
	customer         exchange.User
}

func openShop(t *testing.T) shop {
	t.Helper()
	return openShopAt(t, store.Options{})
}

func openShopAt(t *testing.T, o store.Options) shop {
	t.Helper()
	h := shop{Store: storetest.Open(t, storetest.URL(t), o)}
	storetest.Rate(t, h.Store, store.RateEntry{Base: money.USDT, Bid: decimal.NewFromInt(129), Ask: decimal.NewFromInt(130), Life: exchange.MaxRateLife})
	storetest.AgreeValuations(t, h.Store)
	storetest.Float(t, h.Store, kes("100000"))
	h.treasury = storetest.TreasuryWallet(t, h.Store, exchange.Tron)
	storetest.Deposit(t, h.Store, h.treasury.ID, usdt("1000"))
	storetest.Gas(t, h.Store, h.treasury.ID, trx("100"))
	storetest.Inventory(t, h.Store, h.treasury.ID, usdt("300"))
	h.customer = storetest.User(t, h.Store, exchange.RoleCustomer)
	h.wallet = storetest.Wallet(t, h.Store, h.customer)
	return h
}

func (h shop) ask(t *testing.T, who exchange.User, m money.Amount) (exchange.FXQuote, error) {
	t.Helper()
	return h.OpenQuote(t.Context(), store.QuoteRequest{
		ID: storetest.NewID(t), Purpose: exchange.QuoteForPurchase, Side: exchange.QuoteBuy, Amount: m, Asset: money.USDT, Network: exchange.Tron,
	}, storetest.PrincipalOf(who))
}

// promised is a quote of the price of an amount.
func (h shop) promised(t *testing.T, who exchange.User, m money.Amount) exchange.FXQuote {
	t.Helper()
	q, err := h.ask(t, who, m)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func (h shop) request(t *testing.T, q exchange.FXQuote) exchange.OrderRequest {
	return exchange.OrderRequest{
		ID: storetest.NewID(t), CustomerID: h.customer.ID, Type: exchange.OnRampBuy, Subtype: exchange.TreasuryOnRamp, QuoteID: q.ID,
		Network: exchange.Tron, Crypto: q.Price.Crypto,
	}
}

// bought is an order of the customer for an amount.
func (h shop) bought(t *testing.T, m money.Amount) exchange.Order {
	t.Helper()
	o, err := storetest.OpenOrder(t.Context(), h.Store, h.request(t, h.promised(t, h.customer, m)), storetest.PrincipalOf(h.customer))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (h shop) coffer() exchange.AccountRef {
	return exchange.Owned(exchange.AccWalletBalance, h.treasury.ID, money.USDT)
}

// wants checks the only inventory: what is left, reserved and delivered.
func (h shop) wants(t *testing.T, available, reserved, sold string) {
	t.Helper()
	all, err := h.Inventories(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("the inventories are %+v, %v", all, err)
	}
	if i := all[0]; !i.Available.Equal(usdt(available)) || !i.Reserved.Equal(usdt(reserved)) || !i.Sold.Equal(usdt(sold)) || i.WalletID != h.treasury.ID || i.Network != exchange.Tron ||
		!i.Allocated.Equal(i.Available.Add(i.Reserved).Add(i.Sold)) {
		t.Errorf("the inventory is %+v, want %s, %s and %s", i, available, reserved, sold)
	}
}

// The house sells at the quoted price out of its inventory: the customer pays the fee, the shillings become the treasury's.
func TestPurchasesFromTheHouse(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), openShop(t)
	fees := charged(t, h.Store, exchange.FeeLine{Scope: exchange.FeePurchase}, "5", 150)
	by := storetest.PrincipalOf(h.customer)
	q := h.promised(t, h.customer, usdt("10.123456"))
	r := h.request(t, q)
	o := twice(t, sameOrder, func() (exchange.Order, error) { return storetest.OpenOrder(ctx, h.Store, r, by) })
	if o.VendorID != exchange.PlatformTreasury || o.OfferID != uuid.Nil || o.WalletID != h.treasury.ID || o.QuoteID != q.ID || o.ProfileID != fees.ID ||
		o.WalletAddress != h.wallet.Address || o.Status != exchange.OrderPending {
		t.Errorf("the purchase is %+v", o)
	}
	// 10.123456 at 130 are 1316.05; of 1342, five shillings and 1.5 % are 25.13.
	if p := o.Price; p.Fiat.String() != "1342.00" || p.Fee.String() != "25.13" || p.Vendor.String() != "1316.04" || p.Rounding.String() != "0.83" || !p.Fiat.Equal(q.Price.Fiat) || !p.Fee.Equal(q.Price.Fee) {
		t.Errorf("it costs %+v, promised were %+v", p, q.Price)
	}
	h.wants(t, "289.876544", "10.123456", "0")
	wantBalance(t, h.Store, h.coffer(), "1000", "300")
	used, err := h.Quote(ctx, store.Everything(), q.ID)
	if err != nil || used.Status != exchange.QuoteConsumed || used.ObjectType != "order" || used.ObjectID != o.ID {
		t.Errorf("the quote is %s by %s %s, %v", used.Status, used.ObjectType, used.ObjectID, err)
	}
	r.ID = storetest.NewID(t)
	_, err = storetest.OpenOrder(ctx, h.Store, r, by)
	wantFault(t, err, exchange.CodeStateConflict) // a quote is used once

	out, err := h.AcceptPayment(ctx, storetest.Attempt(t, h.Store, o).ID, storetest.Paid(t, o.Price.Fiat), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.RecordFinal(ctx, sign(t, h.Store, out.ChainPayment).ID, true, 9, "bb", trx("13.5"), "SUCCESS"); err != nil {
		t.Fatal(err)
	}
	if o, err = h.CompleteOrder(ctx, o.ID); err != nil || o.Status != exchange.OrderCompleted {
		t.Fatalf("the order is %s, %v", o.Status, err)
	}
	h.wants(t, "289.876544", "0", "10.123456")
	wantBalance(t, h.Store, h.coffer(), "989.876544", "289.876544")
	wantBalance(t, h.Store, exchange.Owned(exchange.AccWalletBalance, h.wallet.ID, money.USDT), "10.123456", "0")
	wantBalance(t, h.Store, exchange.Owned(exchange.AccFiatBalance, exchange.PlatformTreasury, money.KES), "1316.04", "0")
	wantBalance(t, h.Store, exchange.House(exchange.AccFees, money.KES), "25.13", "0")
	wantBalance(t, h.Store, exchange.House(exchange.AccRounding, money.KES), "0.83", "0")
	wantBalance(t, h.Store, exchange.House(exchange.AccOrdersInFlight, money.KES), "0", "0")
	wantBooks(t, h.Store)
}

// What is not delivered goes back to the inventory: an unpaid order's crypto, and a refunded one's.
func TestPurchasesFromTheHouseThatEnd(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), openShop(t)
	unpaid, refunded := h.bought(t, kes("1300")), h.bought(t, usdt("20"))
	h.wants(t, "270", "30", "0")
	if _, err := h.CloseOrder(ctx, unpaid.ID, exchange.OrderCancelled, exchange.DetailExpired, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	h.wants(t, "280", "20", "0")
	out, err := h.AcceptPayment(ctx, storetest.Attempt(t, h.Store, refunded).ID, storetest.Paid(t, refunded.Price.Fiat), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.ParkChainPayment(ctx, out.ChainPayment.ID, "no"); err != nil {
		t.Fatal(err)
	}
	o, _, err := h.RefundOrder(ctx, refunded.ID, "it can't be sent", storetest.PrincipalOf(storetest.User(t, h.Store, exchange.RoleTreasury)))
	if err != nil || o.Status != exchange.OrderFailed {
		t.Fatalf("the order is %s, %v", o.Status, err)
	}
	h.wants(t, "300", "0", "0")
	wantBalance(t, h.Store, h.coffer(), "1000", "300")
	wantBooks(t, h.Store)
}

// A quote is for its requester, its amount, its network and its purpose, and expires.
func TestQuotesOfPurchasesAreHeldToTheirTerms(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ctx, h := t.Context(), openShopAt(t, store.Options{Now: func() time.Time { return now }})
	other := storetest.User(t, h.Store, exchange.RoleCustomer)
	sale, err := h.OpenQuote(ctx, store.QuoteRequest{ID: storetest.NewID(t), Purpose: exchange.QuoteForSale, Side: exchange.QuoteSell, Amount: usdt("10")}, storetest.PrincipalOf(h.customer))
	if err != nil {
		t.Fatal(err)
	}
	for want, r := range map[string]store.QuoteRequest{
		"/side enum":        {Side: exchange.QuoteSell, Network: exchange.Tron},
		"/network required": {Side: exchange.QuoteBuy},
		"/method enum":      {Side: exchange.QuoteBuy, Network: exchange.Tron, Method: exchange.FeeByBank},
	} {
		r.ID, r.Purpose, r.Amount = storetest.NewID(t), exchange.QuoteForPurchase, usdt("10")
		if _, err := h.OpenQuote(ctx, r, storetest.PrincipalOf(h.customer)); blames(err) != want {
			t.Errorf("a quote: %v, want %s", err, want)
		}
	}
	theirs := h.promised(t, other, usdt("10"))
	for name, c := range map[string]struct {
		change func(*exchange.OrderRequest)
		want   string
	}{
		"somebody else's": {func(r *exchange.OrderRequest) { r.QuoteID = theirs.ID }, "/fx_rate_quote_id not_found"},
		"of a sale":       {func(r *exchange.OrderRequest) { r.QuoteID = sale.ID }, "/fx_rate_quote_id mismatch"},
		"another amount":  {func(r *exchange.OrderRequest) { r.Crypto = usdt("10.000001") }, "/crypto_amount mismatch"},
		"another asset":   {func(r *exchange.OrderRequest) { r.Crypto = money.Must(money.USDC, "10") }, "/asset mismatch"},
		"another network": {func(r *exchange.OrderRequest) { r.Network = exchange.Ethereum }, "/network mismatch"},
		"no network":      {func(r *exchange.OrderRequest) { r.Network = "" }, "/network required"},
		"no quote":        {func(r *exchange.OrderRequest) { r.QuoteID = uuid.Nil }, "/fx_rate_quote_id required"},
		"an offer":        {func(r *exchange.OrderRequest) { r.OfferID = storetest.NewID(t) }, "/offer_id forbidden"},
		"a rate":          {func(r *exchange.OrderRequest) { r.ExpectedRate = decimal.NewFromInt(130) }, "/expected_rate forbidden"},
		"to the treasury": {func(r *exchange.OrderRequest) { r.WalletAddress = h.treasury.Address }, "/wallet_address own_wallet"},
	} {
		r := h.request(t, h.promised(t, h.customer, usdt("10")))
		c.change(&r)
		if _, err := storetest.OpenOrder(ctx, h.Store, r, storetest.PrincipalOf(h.customer)); blames(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	late := h.promised(t, h.customer, usdt("10"))
	now = now.Add(exchange.QuoteLife)
	_, err = storetest.OpenOrder(ctx, h.Store, h.request(t, late), storetest.PrincipalOf(h.customer))
	wantFault(t, err, exchange.CodeExpired)
	h.wants(t, "300", "0", "0")
}

// The house sells no more than was set aside, whatever else its wallet has. Of many who want the last of it, as many get it as there is.
func TestTheHouseSellsOnlyItsInventory(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), openShop(t)
	_, err := h.ask(t, h.customer, usdt("300.000001"))
	wantFault(t, err, exchange.CodeInsufficientFunds)
	_, err = h.OpenQuote(ctx, store.QuoteRequest{
		ID: storetest.NewID(t), Purpose: exchange.QuoteForPurchase, Side: exchange.QuoteBuy, Amount: usdt("10"), Network: exchange.Ethereum,
	}, storetest.PrincipalOf(h.customer))
	wantFault(t, err, exchange.CodeInsufficientFunds)
	const buyers = 6
	requests, by := make([]exchange.OrderRequest, buyers), make([]exchange.Principal, buyers)
	for n := range requests {
		u := storetest.User(t, h.Store, exchange.RoleCustomer)
		w := storetest.Wallet(t, h.Store, u)
		requests[n], by[n] = h.request(t, h.promised(t, u, usdt("140"))), storetest.PrincipalOf(u)
		requests[n].CustomerID, requests[n].WalletAddress = u.ID, w.Address
	}
	opened := atOnce(buyers, func(n int) error { _, err := storetest.OpenOrder(ctx, h.Store, requests[n], by[n]); return err })
	if opened[""] != 2 || opened[exchange.CodeInsufficientFunds] != buyers-2 {
		t.Errorf("orders of 140 were opened and refused: %v", opened)
	}
	h.wants(t, "20", "280", "0")
	wantBooks(t, h.Store)
}

// A merchant buys from the house like a customer, also through its subvendor.
func TestMerchantsBuyFromTheHouse(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), openShop(t)
	vendor := storetest.User(t, h.Store, exchange.RoleVendor)
	wallet, sub := storetest.Wallet(t, h.Store, vendor), storetest.Subvendor(t, h.Store, vendor)
	r := h.request(t, h.promised(t, sub, usdt("10")))
	r.CustomerID, r.OpenerID = vendor.ID, sub.ID
	o, err := storetest.OpenOrder(ctx, h.Store, r, storetest.PrincipalOf(sub))
	if err != nil {
		t.Fatal(err)
	}
	if o.CustomerID != vendor.ID || o.OpenedBy != sub.ID || o.PaymentPhone != vendor.PhoneNumber || o.WalletAddress != wallet.Address {
		t.Errorf("the purchase is of %s, opened by %s, paid by %s, to %s", o.CustomerID, o.OpenedBy, o.PaymentPhone, o.WalletAddress)
	}
	for _, p := range []exchange.User{vendor, sub} {
		if got, err := h.Order(ctx, store.ViewOf(storetest.PrincipalOf(p), exchange.ActReadOrders), o.ID); err != nil || got.ID != o.ID {
			t.Errorf("a %s reads %s, %v", p.Role, got.ID, err)
		}
	}
	rival := store.ViewOf(storetest.PrincipalOf(storetest.User(t, h.Store, exchange.RoleVendor)), exchange.ActReadOrders)
	_, err = h.Order(ctx, rival, o.ID)
	wantFault(t, err, exchange.CodeNotFound)
}
