package storetest

import (
	"testing"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// EscrowPool adds count addresses to the escrow pool of a network.
func EscrowPool(t testing.TB, s *store.Store, n exchange.Network, count int) []exchange.Wallet {
	t.Helper()
	pool := make([]exchange.Wallet, count)
	for i := range pool {
		pool[i] = addWallet(t, s, exchange.WalletRequest{
			OwnerType: exchange.OwnerTreasury, Purpose: exchange.HouseEscrow, Network: n, Asset: money.USDT, Type: exchange.Hot,
		})
	}
	return pool
}

// TreasuryWallet adds the house's treasury wallet of a network.
func TreasuryWallet(t testing.TB, s *store.Store, n exchange.Network) exchange.Wallet {
	t.Helper()
	return addWallet(t, s, exchange.WalletRequest{
		OwnerType: exchange.OwnerTreasury, Purpose: exchange.HouseTreasury, Network: n, Asset: money.USDT, Type: exchange.Hot,
	})
}

// Shillings gives a merchant, or the platform's treasury, a balance in KES.
func Shillings(t testing.TB, s *store.Store, owner uuid.UUID, m money.Amount) {
	t.Helper()
	book(t, s, "shillings", exchange.Debit(exchange.House(exchange.AccCapital, m.Asset()), m), exchange.Credit(exchange.Owned(exchange.AccFiatBalance, owner, m.Asset()), m))
}

// NewSellers seeds an active BUY offer of 2000 USDT on TRON at 129.355 KES, for orders of 5 to 500 USDT, a vendor with
// 300,000 KES, payout float, and an escrow pool of four addresses.
func NewSellers(t testing.TB, s *store.Store) Market {
	t.Helper()
	return NewSellersOn(t, s, exchange.Tron)
}

// NewSellersOn is NewSellers on any network.
func NewSellersOn(t testing.TB, s *store.Store, n exchange.Network) Market {
	t.Helper()
	m := Market{Vendor: User(t, s, exchange.RoleVendor), Customer: User(t, s, exchange.RoleCustomer)}
	m.VendorWallet, m.CustomerWallet = WalletOn(t, s, m.Vendor, n), WalletOn(t, s, m.Customer, n)
	Shillings(t, s, m.Vendor.ID, money.Must(money.KES, "300000"))
	Float(t, s, money.Must(money.KES, "1000000"))
	EscrowPool(t, s, n, 4)
	m.Offer = BuyOffer(t, s, m.Vendor, n, "2000")
	return m
}

// BuyOffer publishes an offer of a vendor that buys USDT at 129.355 KES, in orders of 5 to 500 USDT.
func BuyOffer(t testing.TB, s *store.Store, vendor exchange.User, n exchange.Network, total string) exchange.Offer {
	t.Helper()
	by := PrincipalOf(vendor)
	offer, err := s.CreateOffer(t.Context(), exchange.Offer{
		ID: NewID(t), VendorID: vendor.ID, CreatedBy: vendor.ID, Type: exchange.OfferBuy, Network: n, Asset: money.USDT,
		Total: money.Must(money.USDT, total), Rate: decimal.RequireFromString("129.355"), MinOrder: money.Must(money.USDT, "5"),
		MaxOrder: money.Must(money.USDT, "500"),
	}, by)
	if err == nil {
		offer, err = s.PublishOffer(t.Context(), store.ViewOf(by, exchange.ActWriteOffers), offer.ID, by)
	}
	if err != nil {
		t.Fatalf("seed a BUY offer: %v", err)
	}
	return offer
}

// Sale opens a sale of crypto against the market's BUY offer.
func (m Market) Sale(t testing.TB, s *store.Store, crypto string) exchange.Order {
	t.Helper()
	o, err := OpenOffRamp(t.Context(), s, exchange.OrderRequest{
		ID: NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: money.Must(money.USDT, crypto), Type: exchange.OffRampSell,
	}, PrincipalOf(m.Customer))
	if err != nil {
		t.Fatalf("seed a sale: %v", err)
	}
	return o
}

// Inventory sets crypto of a treasury wallet aside for purchases without an offer, as two officers agree. A negative amount takes
// some back.
func Inventory(t testing.TB, s *store.Store, wallet uuid.UUID, m money.Amount) {
	t.Helper()
	if err := Agreed(t, s)(s.ProposeInventory(t.Context(), wallet, m, "to sell", PrincipalOf(User(t, s, exchange.RoleTreasury)))); err != nil {
		t.Fatalf("seed an inventory: %v", err)
	}
}
