package store_test

import (
	"strings"
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
	o, err := storetest.OpenOffRamp(t.Context(), s, fromWallet(t, m), storetest.PrincipalOf(m.Customer))
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

// fromWallet asks for a sale of 10 USDT out of the customer's wallet.
func fromWallet(t *testing.T, m storetest.Market) exchange.OrderRequest {
	t.Helper()
	return exchange.OrderRequest{
		ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("10"), Type: exchange.OffRampSell, FundWalletID: m.CustomerWallet.ID,
	}
}

// funding is the payment of the sale out of the customer's wallet.
func (x *sale) funding(t *testing.T) exchange.ChainPayment {
	t.Helper()
	p, err := x.s.ChainPaymentOf(t.Context(), exchange.ForFunding, x.order.ID)
	if err != nil {
		t.Fatal(err)
	}
	return p
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
	p := x.funding(t)
	if p.Purpose != exchange.ForFunding || p.ToAddress != x.e.Address || p.WalletID != x.m.CustomerWallet.ID {
		t.Fatalf("the payment is %+v", p)
	}
	x.wantPurse(t, "25", "10")
	_, err := x.s.CloseOffRamp(ctx, x.order.ID, exchange.DetailExpired, exchange.Asked{})
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
	tx := sign(t, x.s, x.funding(t))
	err := x.s.CancelFunding(ctx, x.order.ID, byFlow)
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
	if o, err := x.s.CloseOffRamp(ctx, x.order.ID, exchange.DetailExpired, exchange.Asked{}); err != nil || o.Status != exchange.OrderCancelled {
		t.Errorf("the order is %+v, %v", o, err)
	}
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
	cancelled := `UPDATE orders SET status = 'cancelled', status_detail = 'expired', version = version + 1 WHERE id = 'ORDER'`
	id := uuid.New()
	intent := storetest.CopyIntent(t, x.s, "orders", x.order.ID, id)
	for what, sql := range map[string]string{
		"cancelled while its payment may leave": cancelled,
		"cancelled while its crypto is held": `UPDATE chain_payments SET status = 'parked', version = version + 1 WHERE object_id = 'ORDER';
			UPDATE chain_payments SET status = 'cancelled', version = version + 1 WHERE object_id = 'ORDER';` + cancelled,
		"opened without its payment": `INSERT INTO orders SELECT (jsonb_populate_record(o, jsonb_build_object('id', '` + id.String() + `'::uuid, 'intent_id', '` + intent.String() + `'::uuid,
			'hold_id', gen_random_uuid(), 'payment_reference', 'KVK000000001'))).* FROM orders o WHERE id = 'ORDER'`,
	} {
		tx, err := storetest.Owner(t, x.s).BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tx.ExecContext(ctx, `SET CONSTRAINTS orders_sale_funded IMMEDIATE`)
		if err == nil {
			_, err = tx.ExecContext(ctx, strings.ReplaceAll(sql, "ORDER", x.order.ID.String()))
		}
		_ = tx.Rollback()
		if err == nil || !strings.Contains(err.Error(), "the hold of the crypto in its wallet does not match") {
			t.Errorf("a sale was %s: %v", what, err)
		}
	}
}

// The crypto is held from the moment a sale is opened, so that a wallet's coins are promised once; a sale that is given
// up frees them.
func TestCoinsOfAWalletAreSoldOnce(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), funded(t)
	x.wantPurse(t, "25", "10")
	same := fromWallet(t, x.m)
	for range 2 { // the same request again reserves nothing
		if _, err := storetest.OpenOffRamp(ctx, x.s, same, storetest.PrincipalOf(x.m.Customer)); err != nil {
			t.Fatal(err)
		}
	}
	x.wantPurse(t, "25", "20")
	_, err := storetest.OpenOffRamp(ctx, x.s, fromWallet(t, x.m), storetest.PrincipalOf(x.m.Customer))
	wantFault(t, err, exchange.CodeInsufficientFunds)
	if !strings.Contains(err.Error(), "/wallet_id") {
		t.Errorf("the refusal names no field: %v", err)
	}
	_, err = storetest.OpenTransfer(ctx, x.s, exchange.TransferRequest{
		ID: storetest.NewID(t), RequestedBy: x.m.Customer.ID, Network: exchange.Tron, Amount: usdt("10"), WalletID: x.m.CustomerWallet.ID,
		Recipient: exchange.Recipient{WalletID: x.m.VendorWallet.ID},
	}, storetest.PrincipalOf(x.m.Customer))
	wantFault(t, err, exchange.CodeInsufficientFunds)
	x.wantPurse(t, "25", "20")
	if err := x.s.CancelFunding(ctx, same.ID, byFlow); err != nil {
		t.Fatal(err)
	}
	if _, err := x.s.CloseOffRamp(ctx, same.ID, exchange.DetailCancelled, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	x.wantPurse(t, "25", "10")
	wantBooks(t, x.s)
}

// Of two sales at the same moment that both want the last coins of a wallet one is opened.
func TestOnlyOneOfTwoSalesTakesTheLastCoins(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), funded(t)
	requests := []exchange.OrderRequest{fromWallet(t, x.m), fromWallet(t, x.m), fromWallet(t, x.m)}
	faults := make(chan error, len(requests))
	for _, r := range requests {
		go func() {
			_, err := storetest.OpenOffRamp(ctx, x.s, r, storetest.PrincipalOf(x.m.Customer))
			faults <- err
		}()
	}
	opened := 0
	for range requests {
		if err := <-faults; err == nil {
			opened++
		} else {
			wantFault(t, err, exchange.CodeInsufficientFunds)
		}
	}
	if opened != 1 {
		t.Errorf("%d sales were opened for the last 15 coins, want 1", opened)
	}
	x.wantPurse(t, "25", "20")
	wantBooks(t, x.s)
}
