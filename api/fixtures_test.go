package api

import (
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// goodAddress is a TRON address with a valid checksum (the one of TRON's documentation).
const (
	goodAddress     = "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH"
	mistypedAddress = "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdJ"
	ethereumAddress = "0x52908400098527886E0F7030069857D2E4169EE7"
)

func principalOf(p person) exchange.Principal {
	return exchange.Principal{UserID: p.ID, Role: p.Role, VendorID: exchange.VendorOf(p.User), SessionID: p.session, RequestID: "test"}
}

// wallet stores a wallet for a user.
func (e *env) wallet(p person) exchange.Wallet {
	e.t.Helper()
	r := own(exchange.WalletRequest{ID: newID(), Network: exchange.Tron, Asset: money.USDT, Type: exchange.Hot, CreatedBy: p.ID}, p.User)
	a, err := storetest.Ask(e.t.Context(), e.store, exchange.IntendWallet, r.ID, r.ID, r.Terms(), principalOf(p))
	if err == nil {
		err = e.flows.CreateWallet(e.t.Context(), r.ID, a.IntentID)
	}
	if err != nil {
		e.t.Fatalf("wallet: %v", err)
	}
	w, err := e.store.Wallet(e.t.Context(), store.Everything(), r.ID)
	if err != nil {
		e.t.Fatal(err)
	}
	return w
}

// fund books a deposit into a wallet.
func (e *env) fund(w exchange.Wallet, amount string) {
	e.t.Helper()
	m := money.Must(money.USDT, amount)
	err := e.store.Post(e.t.Context(), exchange.Posting{Entries: []exchange.Entry{{
		Key: "test:" + newID().String(), Kind: "test.deposit", ObjectType: "wallet", ObjectID: w.ID,
		Lines: []exchange.Line{
			exchange.Debit(exchange.Owned(exchange.AccCustody, w.ID, money.USDT), m),
			exchange.Credit(exchange.Owned(exchange.AccWalletBalance, w.ID, money.USDT), m),
		},
	}}})
	if err != nil {
		e.t.Fatalf("fund: %v", err)
	}
}

// draft stores a draft of 100 USDT at 129.5, from 1 to 50.
func (e *env) draft(vendor person, w exchange.Wallet) exchange.Offer {
	e.t.Helper()
	o, err := e.store.CreateOffer(e.t.Context(), exchange.Offer{
		ID: newID(), VendorID: exchange.VendorOf(vendor.User), CreatedBy: vendor.ID, Type: exchange.OfferSell, Network: exchange.Tron, Asset: money.USDT,
		WalletID: w.ID, Total: money.Must(money.USDT, "100"), Available: money.Zero(money.USDT), Rate: decimal.RequireFromString("129.5"),
		MinOrder: money.Must(money.USDT, "1"), MaxOrder: money.Must(money.USDT, "50"), Status: exchange.OfferDraft,
	}, principalOf(vendor))
	if err != nil {
		e.t.Fatalf("offer: %v", err)
	}
	return o
}

// offer funds and publishes an offer.
func (e *env) offer(vendor person, w exchange.Wallet) exchange.Offer {
	e.t.Helper()
	e.fund(w, "100")
	o := e.draft(vendor, w)
	by := principalOf(vendor)
	o, err := e.store.PublishOffer(e.t.Context(), store.ViewOf(by, exchange.ActWriteOffers), o.ID, by)
	if err != nil {
		e.t.Fatalf("publish: %v", err)
	}
	return o
}

// order opens a purchase of 2 USDT.
func (e *env) order(customer person, offer uuid.UUID) exchange.Order {
	e.t.Helper()
	o, err := storetest.OpenOrder(e.t.Context(), e.store, exchange.OrderRequest{
		ID: newID(), CustomerID: customer.ID, OfferID: offer, Crypto: money.Must(money.USDT, "2"), WalletAddress: goodAddress,
		ExpiresAt: e.server.now().Add(exchange.OrderLife),
	}, principalOf(customer))
	if err != nil {
		e.t.Fatalf("order: %v", err)
	}
	return o
}

// asked is a purchase of 2 USDT that a merchant opens for a customer, whom it gives a wallet.
func (e *env) asked(vendor, customer person, offer uuid.UUID) exchange.Order {
	e.t.Helper()
	e.wallet(customer)
	o, err := storetest.OpenOrder(e.t.Context(), e.store, exchange.OrderRequest{
		ID: newID(), CustomerID: customer.ID, OpenerID: vendor.ID, OfferID: offer, Crypto: money.Must(money.USDT, "2"), Type: exchange.OnRampSell,
		ExpiresAt: e.server.now().Add(exchange.OrderLife),
	}, principalOf(vendor))
	if err != nil {
		e.t.Fatalf("order: %v", err)
	}
	return o
}

// buys publishes an offer of a vendor that buys 2000 USDT, with the shillings for it and addresses to pay to.
func (e *env) buys(vendor person) exchange.Offer {
	e.t.Helper()
	storetest.Shillings(e.t, e.store, vendor.ID, money.Must(money.KES, "300000"))
	storetest.EscrowPool(e.t, e.store, exchange.Tron, 20)
	return storetest.BuyOffer(e.t, e.store, vendor.User, exchange.Tron, "2000")
}

// sale opens a sale of 10 USDT without a refund address.
func (e *env) sale(customer person, offer uuid.UUID) exchange.Order {
	e.t.Helper()
	o, err := storetest.OpenOffRamp(e.t.Context(), e.store, exchange.OrderRequest{
		ID: newID(), CustomerID: customer.ID, OfferID: offer, Crypto: money.Must(money.USDT, "10"), Type: exchange.OffRampSell,
		ExpiresAt: e.server.now().Add(exchange.OffRampLife),
	}, principalOf(customer))
	if err != nil {
		e.t.Fatalf("sale: %v", err)
	}
	return o
}

// house makes a treasury wallet that buys, and sells out of an inventory of 5000 USDT.
func (e *env) house() {
	e.t.Helper()
	e.treasuries.Do(func() {
		w := storetest.TreasuryWallet(e.t, e.store, exchange.Tron)
		storetest.AgreeValuations(e.t, e.store)
		storetest.Deposit(e.t, e.store, w.ID, money.Must(money.USDT, "6000"))
		storetest.Inventory(e.t, e.store, w.ID, money.Must(money.USDT, "5000"))
	})
}

// boughtFromHouse opens a purchase of 10 USDT from the platform's treasury.
func (e *env) boughtFromHouse(buyer person) exchange.Order {
	e.t.Helper()
	e.house()
	o, err := storetest.OpenOrder(e.t.Context(), e.store, exchange.OrderRequest{
		ID: newID(), CustomerID: buyer.ID, Type: exchange.OnRampBuy, Subtype: exchange.TreasuryOnRamp, Network: exchange.Tron, Crypto: money.Must(money.USDT, "10"),
		QuoteID: e.quoteFor(buyer, exchange.QuoteForPurchase, "10").ID, WalletAddress: goodAddress, ExpiresAt: e.server.now().Add(exchange.OrderLife),
	}, principalOf(buyer))
	if err != nil {
		e.t.Fatalf("purchase from the house: %v", err)
	}
	return o
}

// soldToHouse opens a merchant's sale of 10 USDT to the platform's treasury.
func (e *env) soldToHouse(merchant person) exchange.Order {
	e.t.Helper()
	e.house()
	storetest.Shillings(e.t, e.store, exchange.PlatformTreasury, money.Must(money.KES, "2000"))
	o, err := storetest.OpenOffRamp(e.t.Context(), e.store, exchange.OrderRequest{
		ID: newID(), CustomerID: merchant.ID, Type: exchange.OffRampSell, Subtype: exchange.TreasuryOffRamp, Network: exchange.Tron, Crypto: money.Must(money.USDT, "10"),
		QuoteID: e.quoteFor(merchant, exchange.QuoteForSale, "10").ID, ExpiresAt: e.server.now().Add(exchange.OffRampLife),
	}, principalOf(merchant))
	if err != nil {
		e.t.Fatalf("sale to the house: %v", err)
	}
	return o
}

// transfer stores a transfer of 2 USDT from a funded wallet to an external address.
func (e *env) transfer(sender person, from exchange.Wallet) exchange.Transfer {
	e.t.Helper()
	e.fund(from, "2")
	t, err := storetest.OpenTransfer(e.t.Context(), e.store, exchange.TransferRequest{
		ID: newID(), RequestedBy: sender.ID, WalletID: from.ID, Network: exchange.Tron, Amount: money.Must(money.USDT, "2"),
		Recipient: exchange.Recipient{Address: goodAddress},
	}, principalOf(sender))
	if err != nil {
		e.t.Fatalf("transfer: %v", err)
	}
	return t
}

// denied stores an entry of the deny list.
func (e *env) denied() uuid.UUID {
	e.t.Helper()
	d, err := e.store.Deny(e.t.Context(), exchange.DeniedAddress{ID: newID(), Network: exchange.Tron, Address: fakeAddress(newID()), Reason: "test"},
		principalOf(e.person(exchange.RoleAdmin)))
	if err != nil {
		e.t.Fatalf("deny: %v", err)
	}
	return d.ID
}

// rate enters a rate of USDT by two officers, a moment after the last one.
func (e *env) rate(bid, ask string) {
	e.t.Helper()
	storetest.Rate(e.t, e.store, store.RateEntry{Base: money.USDT, Bid: decimal.RequireFromString(bid), Ask: decimal.RequireFromString(ask)})
}

// fed enters a rate of the source.
func (e *env) fed(bid, ask string) {
	e.t.Helper()
	now := e.server.now().UTC().Truncate(time.Millisecond)
	err := e.store.EnterSourcedRate(e.t.Context(), exchange.FXRate{
		Base: money.USDT, Quote: money.KES, Bid: decimal.RequireFromString(bid), Ask: decimal.RequireFromString(ask), Source: "feed", ValidFrom: now, StaleAt: now.Add(time.Hour),
	})
	if err != nil {
		e.t.Fatalf("rate: %v", err)
	}
}

// quote opens a quote for a transfer, entering a rate when there is none.
func (e *env) quote(owner person, amount string) exchange.FXQuote {
	e.t.Helper()
	return e.quoteFor(owner, exchange.QuoteForTransfer, amount)
}

func (e *env) quoteFor(owner person, purpose exchange.QuotePurpose, amount string) exchange.FXQuote {
	e.t.Helper()
	if _, total, err := e.store.FXRates(e.t.Context(), store.RateFilter{Base: money.USDT}, store.Page{Number: 1, Size: 1}); err != nil || total == 0 {
		e.rate("128.9", "129.1")
	}
	storetest.AgreeValuations(e.t, e.store)
	r := store.QuoteRequest{ID: newID(), Purpose: purpose, Side: exchange.QuoteSell, Amount: money.Must(money.USDT, amount)}
	if purpose == exchange.QuoteForPurchase {
		r.Side, r.Network = exchange.QuoteBuy, exchange.Tron
	}
	q, err := e.store.OpenQuote(e.t.Context(), r, principalOf(owner))
	if err != nil {
		e.t.Fatalf("quote: %v", err)
	}
	return q
}

// agree confirms the one change that an answer says waits, as another officer.
func (e *env) agree(waits *reply, by person) {
	e.t.Helper()
	id := waits.object()["changes"].([]any)[0].(map[string]any)["id"].(string)
	e.do(post, "/api/v1/auth/approvals/changes/"+id+"/confirm", map[string]any{}, by.auth(), freshKey()).want(http.StatusOK)
}
