package store_test

import (
	"fmt"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// buyTo opens an order to be delivered to an address, and pays for it.
func buyTo(t *testing.T, s *store.Store, m storetest.Market, to string) exchange.ChainPayment {
	t.Helper()
	o, err := storetest.OpenOrder(t.Context(), s, exchange.OrderRequest{
		ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: usdt("5"), WalletAddress: to,
	}, storetest.PrincipalOf(m.Customer))
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.AcceptPayment(t.Context(), storetest.Attempt(t, s, o).ID, storetest.Paid(t, o.Price.Fiat), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return out.ChainPayment
}

// No external payment is stored as signed before a screening accepts its recipient.
func TestRecipientsOfOrdersAreCleared(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	ctx := t.Context()
	sign := func(p exchange.ChainPayment) error {
		id := storetest.NewID(t)
		_, err := s.SaveSignedAttempt(ctx, exchange.ChainAttempt{
			ID: id, PaymentID: p.ID, Network: p.Network, TxID: "tx-" + id.String(), Raw: []byte("signed"), Status: exchange.TxSigned,
		})
		return err
	}
	terms := func(p exchange.ChainPayment) exchange.SigningTerms {
		t.Helper()
		got, err := s.SigningTerms(ctx, p.ID)
		if err != nil || got.Payment.ID != p.ID {
			t.Fatalf("%+v, %v", got, err)
		}
		return got
	}
	home := buyTo(t, s, m, "")
	if got := terms(home); got.External || !got.Cleared {
		t.Errorf("a wallet in our custody: %+v", got)
	}
	if err := sign(home); err != nil {
		t.Errorf("a wallet in our custody: %v", err)
	}
	away := buyTo(t, s, m, outside)
	if got := terms(away); !got.External || got.Cleared || got.Denied || got.Cold {
		t.Errorf("a stranger: %+v", got)
	}
	wantFault(t, sign(away), exchange.CodeStateConflict)
	for _, said := range [][]exchange.Screening{
		{{Screener: "service", Verdict: exchange.VerdictUnknown}, clear1[0]}, {{Screener: "service", Verdict: exchange.VerdictHit}, clear1[0]},
	} {
		if err := s.RecordRecipient(ctx, away.ID, said); err != nil {
			t.Fatal(err)
		}
		if got := terms(away); got.Cleared {
			t.Errorf("cleared by %v", said)
		}
		wantFault(t, sign(away), exchange.CodeStateConflict)
	}
	if err := s.RecordRecipient(ctx, away.ID, clear1); err != nil {
		t.Fatal(err)
	}
	if got := terms(away); !got.Cleared {
		t.Errorf("cleared: %+v", got)
	}
	if _, err := s.Deny(ctx, exchange.DeniedAddress{ID: storetest.NewID(t), Network: exchange.Tron, Address: outside, Reason: "a court"},
		storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))); err != nil {
		t.Fatal(err)
	}
	if got := terms(away); !got.Denied {
		t.Errorf("denied since: %+v", got)
	}
	if err := sign(away); err != nil {
		t.Errorf("a cleared recipient: %v", err)
	}
}

// Nothing is sold from a cold wallet: no offer and no order is opened.
func TestNothingIsSoldOutOfAColdWallet(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	ctx, by := t.Context(), storetest.PrincipalOf(m.Vendor)
	view := store.ViewOf(by, exchange.ActWriteOffers)
	draft := func(kind exchange.OfferType) (exchange.Offer, error) {
		o := m.Offer
		o.ID, o.Type, o.WalletID, o.Status = storetest.NewID(t), kind, m.VendorWallet.ID, exchange.OfferDraft
		o.Total, o.MinOrder, o.MaxOrder = usdt("10"), usdt("5"), usdt("10")
		return s.CreateOffer(ctx, o, by)
	}
	before, err := draft(exchange.OfferSell)
	if err != nil {
		t.Fatal(err)
	}
	p := buyTo(t, s, m, outside)
	// As if the wallet had been cold from the beginning.
	storetest.Exec(t, s, `ALTER TABLE wallets DISABLE TRIGGER USER`)
	storetest.Exec(t, s, fmt.Sprintf(`UPDATE wallets SET type = 'cold' WHERE id = '%s'`, m.VendorWallet.ID))
	storetest.Exec(t, s, `ALTER TABLE wallets ENABLE TRIGGER USER`)
	if _, err := draft(exchange.OfferSell); exchange.CodeOf(err) != exchange.CodeInvalid || fieldOf(err) != "/wallet_id" {
		t.Errorf("a new offer: %v", err)
	}
	if _, err := draft(exchange.OfferBuy); err != nil {
		t.Errorf("an offer that buys: %v", err)
	}
	_, err = s.PublishOffer(ctx, view, before.ID, by)
	wantFault(t, err, exchange.CodeStateConflict)
	if _, err := storetest.Owner(t, s).ExecContext(ctx, `UPDATE offers SET status = 'active' WHERE id = $1`, before.ID); sqlState(err) != "KV001" {
		t.Errorf("published past the code: %v", err)
	}
	_, err = storetest.OpenOrder(ctx, s, exchange.OrderRequest{
		ID: storetest.NewID(t), CustomerID: m.Customer.ID, OfferID: m.Offer.ID, Crypto: money.Must(money.USDT, "5"),
	}, storetest.PrincipalOf(m.Customer))
	wantFault(t, err, exchange.CodeStateConflict)
	if got, err := s.SigningTerms(ctx, p.ID); err != nil || !got.Cold {
		t.Errorf("an order from before: %+v, %v", got, err)
	}
	if _, err := s.PauseOffer(ctx, view, m.Offer.ID, by); err != nil {
		t.Fatal(err)
	}
	_, err = s.ResumeOffer(ctx, view, m.Offer.ID, by)
	wantFault(t, err, exchange.CodeStateConflict)
	if _, err := s.CloseOffer(ctx, view, m.Offer.ID, by); err != nil {
		t.Errorf("an offer from before can't be closed: %v", err)
	}
}
