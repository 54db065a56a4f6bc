package store_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

const betterAddress = "TBetterAddress0000000000000"

// undeliverable is a paid purchase whose address the network refuses.
func undeliverable(t *testing.T) (*store.Store, storetest.Market, exchange.Order, exchange.ChainPayment) {
	t.Helper()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	o, p := paid(t, s, m)
	p, err := s.ParkChainPayment(t.Context(), p.ID, "invalid_address")
	if err != nil {
		t.Fatal(err)
	}
	return s, m, o, p
}

func sameChange(a, b exchange.ControlChange) bool { return a.ID == b.ID && a.Status == b.Status }

// Two officers give a purchase another address: the first payment is given up, and another one pays there out of the same
// reservation, once.
func TestCorrectedAddressOfAPurchase(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, m, o, p := undeliverable(t)
	one, two := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury)), storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	c := twice(t, sameChange, func() (exchange.ControlChange, error) {
		return s.ProposeOrderAddress(ctx, o.ID, betterAddress, "the customer called back", one)
	})
	_, err := s.ConfirmChange(ctx, c.ID, "", one)
	wantFault(t, err, exchange.CodeForbidden)
	if now, err := s.Order(ctx, store.Everything(), o.ID); err != nil || now.WalletAddress != o.WalletAddress {
		t.Fatalf("one officer alone sends the crypto to %s, %v", now.WalletAddress, err)
	}
	twice(t, sameChange, func() (exchange.ControlChange, error) { return s.ConfirmChange(ctx, c.ID, "", two) })

	old, err := s.ChainPayment(ctx, p.ID)
	if err != nil || old.Status != exchange.ChainCancelled || old.ToAddress != o.WalletAddress {
		t.Errorf("the first payment is %+v, %v", old, err)
	}
	next, err := s.ChainPaymentOf(ctx, exchange.ForOrder, o.ID)
	if err != nil || next.N != 2 || next.Status != exchange.ChainApproved || next.ToAddress != betterAddress || next.HoldID != p.HoldID ||
		!next.Amount.Equal(p.Amount) || next.ApprovedBy != two.UserID.String() {
		t.Fatalf("the next payment is %+v, %v", next, err)
	}
	if now, err := s.Order(ctx, store.Everything(), o.ID); err != nil || now.WalletAddress != betterAddress || now.Status != exchange.OrderProcessing {
		t.Errorf("the order is %s and goes to %s, %v", now.Status, now.WalletAddress, err)
	}
	_, err = s.RetryChainPayment(ctx, p.ID, two)
	wantFault(t, err, exchange.CodeStateConflict) // given up for good
	_, err = s.ProposeOrderAddress(ctx, o.ID, o.WalletAddress, "back again", one)
	wantFault(t, err, exchange.CodeStateConflict) // the payment goes on
	balance := exchange.Owned(exchange.AccWalletBalance, m.VendorWallet.ID, money.USDT)
	wantBalance(t, s, balance, "1500", "1000")
	_, err = s.SaveSignedAttempt(ctx, exchange.ChainAttempt{
		ID: storetest.NewID(t), PaymentID: next.ID, Network: next.Network, TxID: txID(next.ID), Raw: []byte("signed"), ExpiresAt: time.Now().Add(time.Hour), FeeLimit: trx("50"),
	})
	wantFault(t, err, exchange.CodeStateConflict) // the new address is not screened
	if err := s.RecordRecipient(ctx, next.ID, []exchange.Screening{{Screener: "deny_list", Verdict: exchange.VerdictClear}}); err != nil {
		t.Fatal(err)
	}
	tx := sign(t, s, next)
	if _, err := s.RecordFinal(ctx, tx.ID, true, 9, "bb", trx("2"), ""); err != nil {
		t.Fatal(err)
	}
	done, err := s.CompleteOrder(ctx, o.ID)
	if err != nil || done.Status != exchange.OrderCompleted || done.TxHash != tx.TxID {
		t.Errorf("the order is %+v, %v", done, err)
	}
	wantBalance(t, s, balance, "1490", "990")
	wantBooks(t, s)
}

// An officer who gives the order up after its address was corrected gets the shillings back for the customer, and nothing
// of either payment can be signed.
func TestCorrectedPurchaseIsRefunded(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, _, o, _ := undeliverable(t)
	one, two := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury)), storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
	c, err := s.ProposeOrderAddress(ctx, o.ID, betterAddress, "asked by phone", one)
	if err == nil {
		_, err = s.ConfirmChange(ctx, c.ID, "", two)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.RefundOrder(ctx, o.ID, "the customer changed its mind", two); err != nil {
		t.Fatal(err)
	}
	next, err := s.ChainPaymentOf(ctx, exchange.ForOrder, o.ID)
	if err != nil || next.N != 2 || next.Status != exchange.ChainCancelled {
		t.Errorf("the payment is %+v, %v", next, err)
	}
	wantBalance(t, s, refundsDue(), "1295", "0")
	wantBooks(t, s)
}

// What no order could have as its address is refused, and so is a change of a purchase that went on meanwhile.
func TestAddressesThatAreNotCorrected(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, m, o, p := undeliverable(t)
	gas := storetest.GasWallet(t, s, exchange.Tron)
	one, two := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury)), storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	deny := func(address string) {
		storetest.Exec(t, s, `INSERT INTO deny_list (id, network, address, reason, added_by, added_at) VALUES (gen_random_uuid(), 'tron', $2, 'test', $1, now())`, m.Vendor.ID, address)
	}
	deny("TDeniedAddress000000000000")
	for address, blame := range map[string]string{
		o.WalletAddress:              "/wallet_address unchanged",
		gas.Address:                  "/wallet_address own_wallet",
		m.VendorWallet.Address:       "/wallet_address own_wallet",
		"TDeniedAddress000000000000": "/wallet_address denied",
	} {
		if _, err := s.ProposeOrderAddress(ctx, o.ID, address, "x", one); exchange.CodeOf(err) != exchange.CodeInvalid || blames(err) != blame {
			t.Errorf("%s: %v, want %s", address, err, blame)
		}
	}
	_, err := s.ProposeOrderAddress(ctx, o.ID, betterAddress, "x", storetest.PrincipalOf(m.Customer))
	wantFault(t, err, exchange.CodeForbidden)
	propose := func(address string) exchange.ControlChange {
		c, err := s.ProposeOrderAddress(ctx, o.ID, address, "x", one)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	denied, first, second := propose("TSoonDenied000000000000000"), propose(betterAddress), propose("TOtherAddress0000000000000")
	deny("TSoonDenied000000000000000")
	_, err = s.ConfirmChange(ctx, denied.ID, "", two)
	wantFault(t, err, exchange.CodeInvalid)

	if _, err := s.RetryChainPayment(ctx, p.ID, two); err != nil {
		t.Fatal(err)
	}
	_, err = s.ConfirmChange(ctx, first.ID, "", two)
	wantFault(t, err, exchange.CodeStateConflict) // approved again: it may be signed at any moment
	tx := sign(t, s, p)
	_, err = s.ConfirmChange(ctx, first.ID, "", two)
	wantFault(t, err, exchange.CodeStateConflict)
	if _, err := s.RecordFinal(ctx, tx.ID, false, 9, "bb", trx("2"), "REVERT"); err != nil {
		t.Fatal(err)
	}
	wantUnread(t, s, p, func() error {
		_, err := s.ConfirmChange(ctx, first.ID, "", two)
		return err
	})
	outlived(t, s)
	if _, err := s.ConfirmChange(ctx, first.ID, "", two); err != nil {
		t.Fatal(err)
	}
	next, err := s.ChainPaymentOf(ctx, exchange.ForOrder, o.ID)
	if err == nil {
		_, err = s.ParkChainPayment(ctx, next.ID, "blocked")
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.ConfirmChange(ctx, second.ID, "", two)
	wantFault(t, err, exchange.CodeStateConflict) // it replaces an address that the order no longer has
	wantBooks(t, s)
}

// The database changes the address of an order only as two officers confirmed in the same transaction, and while no
// payment to the old one can go on.
func TestDatabaseGuardsCorrectedAddresses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, m, o, p := undeliverable(t)
	one, two := storetest.User(t, s, exchange.RoleTreasury), storetest.User(t, s, exchange.RoleAdmin)
	change, err := json.Marshal(map[string]any{"order_id": o.ID, "wallet_address": betterAddress, "note": "x"})
	if err != nil {
		t.Fatal(err)
	}
	names := strings.NewReplacer("ORDER", o.ID.String(), "PAYMENT", p.ID.String(), "ONE", one.ID.String(), "TWO", two.ID.String(),
		"CHANGE", string(change), "WAS", o.WalletAddress, "BETTER", betterAddress, "VENDOR", m.Vendor.ID.String())
	const (
		proposed = `INSERT INTO control_changes (id, kind, was, change, proposed_by, proposed_at, expires_at, status)
			VALUES ('ORDER', 'order_address', '{"wallet_address": "WAS"}', 'CHANGE', 'ONE', now(), now() + interval '1 day', 'pending');`
		confirmed = `UPDATE control_changes SET status = 'confirmed', decided_by = 'TWO', decided_at = now() WHERE id = 'ORDER';`
		givenUp   = `UPDATE chain_payments SET status = 'cancelled', version = version + 1 WHERE id = 'PAYMENT';`
		moved     = `UPDATE orders SET wallet_address = 'BETTER', version = version + 1 WHERE id = 'ORDER';`
	)
	for what, c := range map[string]struct{ sql, want string }{
		"without a change":            {givenUp + moved, "does not change"},
		"with one officer":            {proposed + givenUp + moved, "does not change"},
		"while its payment may go on": {proposed + confirmed + moved, "does not change"},
		"to another address":          {proposed + confirmed + givenUp + strings.Replace(moved, "BETTER", "TElse", 1), "does not change"},
		"by the same officer twice":   {proposed + strings.Replace(confirmed, "TWO", "ONE", 1), "control_changes_apart"},
		"proposed by the vendor":      {strings.Replace(proposed, "'ONE'", "'VENDOR'", 1), "active proposer"},
		"as two officers confirmed":   {proposed + confirmed + givenUp + moved, ""},
	} {
		tx, err := storetest.Owner(t, s).BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tx.ExecContext(ctx, names.Replace(c.sql))
		_ = tx.Rollback()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("an address is changed %s: %v, want %q", what, err, c.want)
		}
	}
}
