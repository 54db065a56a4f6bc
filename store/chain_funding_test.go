package store_test

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// funded is a sale of 10 USDT that is to be paid out of the customer's wallet of 25 USDT.
func funded(t *testing.T) *sale {
	t.Helper()
	s := started(t)
	m := storetest.NewSellers(t, s)
	storetest.Deposit(t, s, m.CustomerWallet.ID, usdt("25"))
	storetest.Gas(t, s, m.CustomerWallet.ID, trx("60"))
	o, err := s.OpenOffRamp(t.Context(), exchange.OrderRequest{
		ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("10"), Type: exchange.OffRampSell, FundWalletID: m.CustomerWallet.ID,
	}, storetest.PrincipalOf(m.Customer))
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.EscrowLease(t.Context(), o.ID)
	if err != nil {
		t.Fatal(err)
	}
	w, err := s.Wallet(t.Context(), store.Everything(), l.WalletID)
	if err != nil {
		t.Fatal(err)
	}
	return &sale{s: s, m: m, order: o, e: w, block: 100}
}

func (x *sale) wantPurse(t *testing.T, posted, held string) {
	t.Helper()
	wantBalance(t, x.s, owed(x.m.CustomerWallet, "USDT"), posted, held)
}

// The crypto of a customer with a custodial wallet comes from that wallet, is held for the order, and is refunded to
// it when the payout is refused.
func TestSaleIsFundedOutOfAWallet(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), funded(t)
	p := twice(t, samePayment, func() (exchange.ChainPayment, error) { return x.s.ApproveFunding(ctx, x.order.ID) })
	if p.Purpose != exchange.ForFunding || p.ToAddress != x.e.Address || p.WalletID != x.m.CustomerWallet.ID {
		t.Fatalf("the payment is %+v", p)
	}
	x.wantPurse(t, "25", "10")
	_, err := x.s.CloseOffRamp(ctx, x.order.ID, exchange.DetailExpired, byFlow)
	wantFault(t, err, exchange.CodeStateConflict)
	x.carriedOut(t, p)
	x.wantPurse(t, "15", "0")
	x.wantMoney(t, "10", "0", "10", "10")
	x.order = x.now(t)
	if x.order.Status != exchange.OrderProcessing || x.order.DepositTxHash == "" {
		t.Fatalf("the order is %+v", x.order)
	}
	err = x.s.CancelFunding(ctx, x.order.ID, byFlow)
	wantFault(t, err, exchange.CodeStateConflict)
	x.noCoolOff(t)
	x.refuses(t, false)
	r := x.opensRefund(t)
	if r.Address != x.m.CustomerWallet.Address || r.DepositID != uuid.Nil {
		t.Fatalf("the refund is %+v", r)
	}
	back := x.standing(t, r, exchange.RefundReady).Payment
	x.carriedOut(t, back)
	x.wantPurse(t, "25", "0")
	x.wantMoney(t, "0", "0", "0", "0")
}

// Before anything is signed the customer may cancel; the crypto is free again, and the order can be closed.
func TestFundingIsTakenBack(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), funded(t)
	if err := x.s.CancelFunding(ctx, x.order.ID, byFlow); err != nil {
		t.Fatal(err)
	}
	p, err := x.s.ApproveFunding(ctx, x.order.ID)
	if err != nil {
		t.Fatal(err)
	}
	tx := sign(t, x.s, p)
	err = x.s.CancelFunding(ctx, x.order.ID, byFlow)
	wantFault(t, err, exchange.CodeStateConflict)
	if _, err := x.s.RecordExpired(ctx, tx.ID, "too old"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := x.s.CancelFunding(ctx, x.order.ID, byFlow); err != nil {
			t.Fatal(err)
		}
	}
	x.wantPurse(t, "25", "0")
	if o, err := x.s.CloseOffRamp(ctx, x.order.ID, exchange.DetailExpired, byFlow); err != nil || o.Status != exchange.OrderCancelled {
		t.Errorf("the order is %+v, %v", o, err)
	}
	_, err = x.s.ApproveFunding(ctx, sold(t).order.ID)
	wantFault(t, err, exchange.CodeNotFound) // of another database
	wantBooks(t, x.s)
}

// The service's own role can't fund an order from money reserved for something else, or from another wallet.
func TestDatabaseGuardsFunding(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), funded(t)
	insert := func(wallet, hold, amount string) error {
		return exec(t, x, `INSERT INTO chain_payments (id, purpose, object_id, network, asset, amount, wallet_id, from_address, to_address, hold_id, intent_hash, status, approved_by, created_at, updated_at)
			SELECT gen_random_uuid(), 'funding', o.id, 'tron', 'USDT', `+amount+`, w.id, w.address, o.escrow_address, `+hold+`, repeat('0', 64), 'approved', 'test', now(), now()
			FROM orders o JOIN wallets w ON w.id = `+wallet+` WHERE o.id = '`+x.order.ID.String()+`'`)
	}
	vendor := "'" + x.m.VendorWallet.ID.String() + "'"
	for what, err := range map[string]error{
		"with the vendor's shillings":   insert("o.fund_wallet_id", "o.hold_id", "o.crypto_amount"),
		"out of the vendor's wallet":    insert(vendor, "o.hold_id", "o.crypto_amount"),
		"of more than it asks for":      insert("o.fund_wallet_id", "o.hold_id", "o.crypto_amount + 1"),
		"with nothing that is held":     insert("o.fund_wallet_id", "NULL", "o.crypto_amount"),
		"with a hold that is not there": insert("o.fund_wallet_id", "gen_random_uuid()", "o.crypto_amount"),
	} {
		if err == nil {
			t.Errorf("a payment %s was taken", what)
		}
	}
	if _, err := x.s.ApproveFunding(ctx, x.order.ID); err != nil {
		t.Fatal(err)
	}
}
