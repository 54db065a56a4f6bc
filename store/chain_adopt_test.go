package store_test

import (
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// The screening may be lost together with the transaction, and the recipient may be on the deny list by now: the
// payment can be adopted all the same.
func TestSendsToStrangersAreAdopted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, said := range map[string][]exchange.Screening{
		"never screened": nil,
		"refused since":  {{Screener: "deny_list", Verdict: exchange.VerdictHit}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := started(t)
			p := buyTo(t, s, storetest.NewMarket(t, s), outside)
			if len(said) > 0 {
				if err := s.RecordRecipient(ctx, p.ID, said); err != nil {
					t.Fatal(err)
				}
			}
			finalBlock(t, s, scanOf(blockOf("a", 101), moveOf("lost", p.FromAddress, p.ToAddress, p.Amount)))
			if err := adopted(t, s, alarmOf(t, s, exchange.QuarantineOutgoing).ID, p.ID); err != nil {
				t.Fatal(err)
			}
			live, found, err := s.LiveAttempt(ctx, p.ID)
			if err != nil || !found {
				t.Fatalf("no transaction: %v", err)
			}
			done, err := s.RecordFinal(ctx, live.ID, true, 101, "a-101", trx("1"), "SUCCESS")
			if err != nil || done.Status != exchange.ChainCompleted {
				t.Errorf("the payment is %+v, %v", done, err)
			}
			wantBooks(t, s)
		})
	}
}

// Where transactions have numbers, the number of the lost one is unknown. The payment completes by it all the same,
// and the sequence continues when it is reopened.
func TestNumberedSendsAreAdopted(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	if _, err := s.StartDeposits(ctx, exchange.Ethereum, blockOf("a", 100)); err != nil {
		t.Fatal(err)
	}
	m := storetest.NewMarketOn(t, s, exchange.Ethereum)
	_, before := paid(t, s, m)
	if err := ends(t, s, signNext(t, s, before), true); err != nil { // has the number 7
		t.Fatal(err)
	}
	_, p := paid(t, s, m)
	_, next := paid(t, s, m)
	_, err := storetest.Owner(t, s).ExecContext(ctx, `INSERT INTO chain_attempts (id, payment_id, network, n, tx_id, raw, adopted, status, created_at, updated_at)
		VALUES (gen_random_uuid(), $1, 'ethereum', 1, 'lost', 'x', true, 'signed', now(), now())`, p.ID)
	if err == nil || !strings.Contains(err.Error(), "not found on the final chain") {
		t.Errorf("an unseen transaction was adopted: %v", err)
	}
	b := scanOf(blockOf("a", 101), moveOf("lost", p.FromAddress, p.ToAddress, p.Amount))
	b.Network = exchange.Ethereum
	finalBlock(t, s, b)
	open, err := s.OpenQuarantine(ctx, exchange.Ethereum)
	if err != nil || len(open) != 1 {
		t.Fatalf("the alarms are %+v, %v", open, err)
	}
	admin := storetest.PrincipalOf(storetest.User(t, s, exchange.RoleAdmin))
	waits, err := s.ProposeSettlement(ctx, open[0].ID, p.ID, "compared on the explorer", admin)
	if err != nil {
		t.Fatal(err)
	}
	_, err = storetest.Owner(t, s).ExecContext(ctx, `INSERT INTO chain_attempts (id, payment_id, network, n, tx_id, raw, adopted, status, created_at, updated_at)
		VALUES (gen_random_uuid(), $1, 'ethereum', 1, 'lost', 'x', true, 'signed', now(), now())`, p.ID)
	if err == nil || !strings.Contains(err.Error(), "not found on the final chain") {
		t.Errorf("it was adopted without a second officer: %v", err)
	}
	if err := storetest.Agreed(t, s)(waits, nil); err != nil {
		t.Fatal(err)
	}
	live, found, err := s.LiveAttempt(ctx, p.ID)
	if err != nil || !found || !live.Adopted || live.TxID != "lost" {
		t.Fatalf("the transaction is %+v, %v", live, err)
	}
	if err := ends(t, s, live, true); err != nil {
		t.Fatal(err)
	}
	if done, err := s.ChainPayment(ctx, p.ID); err != nil || done.Status != exchange.ChainCompleted {
		t.Errorf("the payment is %+v, %v", done, err)
	}
	if err := storetest.Agreed(t, s)(s.ProposeReopening(ctx, storetest.NewID(t), m.VendorWallet.ID, "put back from a backup", counts(9, 9), admin)); err != nil {
		t.Fatal(err)
	}
	if a := signNext(t, s, next); a.Nonce != 9 {
		t.Errorf("the next number is %d", a.Nonce)
	}
	wantBooks(t, s)
}

// A cold wallet's payment is adopted when its draft is lost, but not while a draft is open: that could pay too, and
// blocks further drafts of the wallet.
func TestColdSendsAreAdopted(t *testing.T) {
	t.Parallel()
	for name, out := range map[string]bool{"lost": false, "handed out": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, v := t.Context(), newVault(t)
			if _, err := v.store.StartDeposits(ctx, exchange.Tron, blockOf("a", 100)); err != nil {
				t.Fatal(err)
			}
			p, err := v.store.ChainPayment(ctx, v.f.PaymentID)
			if err != nil {
				t.Fatal(err)
			}
			d := exchange.ColdDraft{TxID: "lost"}
			if out {
				d = v.handOut(t)
			}
			finalBlock(t, v.store, scanOf(blockOf("a", 101), moveOf(d.TxID, p.FromAddress, p.ToAddress, p.Amount)))
			err = adopted(t, v.store, alarmOf(t, v.store, exchange.QuarantineOutgoing).ID, p.ID)
			if !out {
				if p, readErr := v.store.ChainPayment(ctx, p.ID); err != nil || readErr != nil || p.Status != exchange.ChainIncluded {
					t.Errorf("it is %+v, %v, %v", p, err, readErr)
				}
				return
			}
			if wantFault(t, err, exchange.CodeStateConflict); !strings.Contains(err.Error(), "was handed out") {
				t.Error(err)
			}
			if a, err := v.store.SaveColdAttempt(ctx, d.ID, v.signed(t, d), v.officer()); err != nil || a.TxID != d.TxID {
				t.Errorf("it came back as %+v, %v", a, err)
			}
		})
	}
}
