package conformance

import (
	"path/filepath"
	"testing"
	"time"

	"kivuko/chain"
	"kivuko/chain/keys"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/worker"
)

// office is what the product needs to make wallets and to sign.
type office struct {
	db     *store.Store
	vault  *keys.Vault
	signer *keys.PaymentSigner
	client chain.Client
}

func openOffice(t testing.TB, client chain.Client) office {
	t.Helper()
	o := office{db: storetest.New(t), client: client}
	var err error
	if o.vault, err = keys.Open(keys.Config{MasterKey: "file://" + filepath.Join(t.TempDir(), "master"), CreateLocal: true}); err != nil {
		t.Fatal(err)
	}
	o.signer, err = keys.NewPaymentSigner(keys.PaymentSignerConfig{
		Store: worker.SigningRows{Store: o.db}, Vault: o.vault, Clients: map[exchange.Network]chain.Client{client.Network(): client},
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// wallet makes a wallet with a key of its own.
func (o office) wallet(t testing.TB, r exchange.WalletRequest) exchange.Wallet {
	t.Helper()
	r.ID, r.Network, r.Asset, r.Type = storetest.NewID(t), o.client.Network(), money.USDT, exchange.Hot
	maker := worker.KeyMaker{Vault: o.vault, Networks: map[exchange.Network]worker.AddressMaker{r.Network: o.client}}
	address, key, err := maker.CreateKey(t.Context(), r.ID, r.Network)
	if err != nil {
		t.Fatal(err)
	}
	w, err := o.db.CreateWallet(t.Context(), r, address, key)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// ownedWallet makes the wallet of a customer or a merchant.
func (o office) ownedWallet(t testing.TB, owner exchange.User) exchange.Wallet {
	t.Helper()
	r := exchange.WalletRequest{OwnerType: exchange.OwnerCustomer, OwnerID: owner.ID, VendorID: exchange.VendorOf(owner)}
	if owner.Role == exchange.RoleVendor {
		r.OwnerType = exchange.OwnerMerchant
	}
	return o.wallet(t, r)
}

// payment is an approved payment for an order of the market.
func (o office) payment(t testing.TB, m storetest.Market, amount string) exchange.ChainPayment {
	t.Helper()
	order := m.Order(t, o.db, amount)
	out, err := o.db.AcceptPayment(t.Context(), storetest.Attempt(t, o.db, order).ID, storetest.Paid(t, order.Price.Fiat), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return out.ChainPayment
}
