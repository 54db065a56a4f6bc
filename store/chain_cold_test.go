package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// vault is a customer whose wallet is cold, with an approved payment from it, and a clock.
type vault struct {
	purse
	mu    sync.Mutex
	later time.Duration
	f     exchange.Transfer
}

func newVault(t *testing.T) *vault {
	t.Helper()
	v := &vault{}
	v.purse = newPurseIn(t, storetest.Open(t, storetest.URL(t), store.Options{Now: func() time.Time {
		v.mu.Lock()
		defer v.mu.Unlock()
		return time.Now().Add(v.later)
	}}), "100")
	storetest.Exec(t, v.store, `UPDATE wallets SET type = 'cold' WHERE id = $1`, v.wallet.ID)
	f, err := v.store.AdvanceTransfer(t.Context(), v.open(t, "1", exchange.Recipient{UserID: v.other.ID}).ID)
	if err != nil || f.PaymentID == uuid.Nil {
		t.Fatalf("%+v, %v", f, err)
	}
	v.f = f
	return v
}

func (v *vault) pass(d time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.later += d
}

func (v *vault) handOut(t *testing.T) exchange.ColdDraft {
	t.Helper()
	id := storetest.NewID(t)
	v.mu.Lock()
	now := time.Now().Add(v.later)
	v.mu.Unlock()
	d, err := v.store.SaveColdDraft(t.Context(), exchange.ColdDraft{
		ID: id, PaymentID: v.f.PaymentID, Network: exchange.Tron, Body: []byte("body"), Payload: []byte("payload"), TxID: txID(id),
		ExpiresAt: now.Add(time.Hour), ClosesAt: now.Add(2 * time.Hour), RefBlock: "aa", FeeLimit: trx("50"), AskedBy: v.officers[0].ID,
	}, storetest.PrincipalOf(v.officers[0]))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (v *vault) signed(t *testing.T, d exchange.ColdDraft) exchange.ChainAttempt {
	t.Helper()
	return exchange.ChainAttempt{
		ID: storetest.NewID(t), PaymentID: d.PaymentID, Network: d.Network, TxID: d.TxID, Raw: []byte("signed"), ExpiresAt: d.ExpiresAt, FeeLimit: d.FeeLimit,
	}
}

func (v *vault) officer() exchange.Principal { return storetest.PrincipalOf(v.officers[0]) }

// An open draft is handed out again, and its payment can't be given up before the draft has ended.
func TestOneTransactionIsHandedOut(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	first := v.handOut(t)
	if again := v.handOut(t); again.ID != first.ID || again.TxID != first.TxID || string(again.Body) != "body" {
		t.Errorf("another one was handed out: %+v", again)
	}
	_, err := storetest.CancelTransfer(t.Context(), v.store, v.f.ID, storetest.PrincipalOf(v.sender))
	wantFault(t, err, exchange.CodeStateConflict)
	_, err = v.store.GiveUpTransfer(t.Context(), v.f.ID, v.officer())
	wantFault(t, err, exchange.CodeStateConflict)
	// Not even the tables' owner can bypass that.
	for _, query := range []string{
		`UPDATE cold_drafts SET closes_at = now()`, `UPDATE cold_drafts SET body = 'x'`, `DELETE FROM cold_drafts`, `TRUNCATE cold_drafts`,
	} {
		if _, err := storetest.Owner(t, v.store).ExecContext(t.Context(), query); sqlState(err) != "KV002" {
			t.Errorf("%s: %v", query, err)
		}
	}
	// Our clock does not end it, nor does any caller without evidence or before the network does.
	v.pass(3 * time.Hour)
	if again := v.handOut(t); again.ID != first.ID {
		t.Error("another one was handed out although the first may be in a block")
	}
	_, err = storetest.CancelTransfer(t.Context(), v.store, v.f.ID, storetest.PrincipalOf(v.sender))
	wantFault(t, err, exchange.CodeStateConflict)
	wantFault(t, v.store.LapseColdDraft(t.Context(), first.ID, "too early", v.officer()), exchange.CodeStateConflict)
	if _, err := storetest.Owner(t, v.store).ExecContext(t.Context(), `UPDATE cold_drafts SET status = 'lapsed', evidence = 'x'`); sqlState(err) != "KV001" {
		t.Errorf("it ended before its life: %v", err)
	}
	wantTransfers(t, v.store)
}

// A draft proven invalid makes room for another one, and for giving the payment up.
func TestWhatIsOverIsProven(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	v.pass(-3 * time.Hour) // so that the transaction has expired by now
	first := v.handOut(t)
	v.pass(3 * time.Hour)
	if f, err := v.store.Transfer(t.Context(), store.Everything(), v.f.ID); err != nil || f.StatusDetail != exchange.WaitHandedOut {
		t.Errorf("the transfer waits for %q, %v", f.StatusDetail, err)
	}
	wantFault(t, v.store.LapseColdDraft(t.Context(), first.ID, "", v.officer()), exchange.CodeStateConflict)
	for range 2 {
		if err := v.store.LapseColdDraft(t.Context(), first.ID, "absent after block 9", v.officer()); err != nil {
			t.Fatal(err)
		}
	}
	if f, err := v.store.Transfer(t.Context(), store.Everything(), v.f.ID); err != nil || f.StatusDetail != exchange.WaitExternal {
		t.Errorf("the transfer waits for %q, %v", f.StatusDetail, err)
	}
	v.pass(-3 * time.Hour)
	second := v.handOut(t)
	v.pass(3 * time.Hour)
	drafts, err := v.store.ColdDrafts(t.Context(), v.f.PaymentID)
	if err != nil || len(drafts) != 2 || drafts[0].ID != second.ID || drafts[1].Status != exchange.ColdLapsed || drafts[1].Evidence == "" {
		t.Errorf("%+v, %v", drafts, err)
	}
	if err := v.store.LapseColdDraft(t.Context(), second.ID, "absent after block 9", v.officer()); err != nil {
		t.Fatal(err)
	}
	if f, err := storetest.CancelTransfer(t.Context(), v.store, v.f.ID, storetest.PrincipalOf(v.sender)); err != nil || f.Status != exchange.TransferCancelled {
		t.Errorf("%s, %v", f.Status, err)
	}
	wantTransfers(t, v.store)
}

// Of many concurrent imports of a transaction one succeeds, and the transfer continues.
func TestColdTransactionsComeBackOnce(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	d := v.handOut(t)
	var all sync.WaitGroup
	got := make([]exchange.ChainAttempt, 6)
	for i := range got {
		all.Go(func() {
			var err error
			if got[i], err = v.store.SaveColdAttempt(t.Context(), d.ID, v.signed(t, d), v.officer()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, a := range got {
		if a.ID != got[0].ID || a.TxID != d.TxID {
			t.Errorf("%s and %s are both there", a.ID, got[0].ID)
		}
	}
	f, err := v.store.Transfer(t.Context(), store.Everything(), v.f.ID)
	if err != nil || f.Status != exchange.TransferBroadcasting {
		t.Errorf("the transfer is %s, %v", f.Status, err)
	}
	drafts, err := v.store.ColdDrafts(t.Context(), v.f.PaymentID)
	if err != nil || len(drafts) != 1 || drafts[0].Status != exchange.ColdSigned || drafts[0].AttemptID != got[0].ID {
		t.Errorf("%+v, %v", drafts, err)
	}
	if _, err := v.store.SaveColdDraft(t.Context(), d, v.officer()); exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("another one was handed out beside a live one: %v", err)
	}
	// Proven impossible, it makes room for another one.
	if _, err := v.store.RecordExpired(t.Context(), got[0].ID, "expired"); err != nil {
		t.Fatal(err)
	}
	next := v.handOut(t)
	if _, err := v.store.SaveColdAttempt(t.Context(), next.ID, v.signed(t, next), v.officer()); err != nil {
		t.Error(err)
	}
	wantTransfers(t, v.store)
}

// The database accepts only bytes of a cold wallet that match its draft.
func TestOnlyWhatWasHandedOutComesBack(t *testing.T) {
	t.Parallel()
	v := newVault(t)
	d := v.handOut(t)
	_, err := v.store.SaveSignedAttempt(t.Context(), v.signed(t, d))
	wantFault(t, err, exchange.CodeStateConflict)
	other := v.signed(t, d)
	other.TxID = txID(other.ID)
	_, err = v.store.SaveColdAttempt(t.Context(), d.ID, other, v.officer())
	wantFault(t, err, exchange.CodeStateConflict)
	if _, alive, err := v.store.LiveAttempt(t.Context(), v.f.PaymentID); alive || err != nil {
		t.Errorf("it was stored: %v", err)
	}
	if drafts, err := v.store.ColdDrafts(t.Context(), v.f.PaymentID); err != nil || drafts[0].Status != exchange.ColdOpen {
		t.Errorf("%+v, %v", drafts, err)
	}
	wantTransfers(t, v.store)
}

// A hot wallet's payment is never handed out, and a key sealed for the signer is never returned.
func TestHotWalletsAreNotHandedOut(t *testing.T) {
	t.Parallel()
	p := newPurse(t, "100")
	f, err := p.store.AdvanceTransfer(t.Context(), p.open(t, "1", exchange.Recipient{UserID: p.other.ID}).ID)
	if err != nil {
		t.Fatal(err)
	}
	id := storetest.NewID(t)
	_, err = p.store.SaveColdDraft(t.Context(), exchange.ColdDraft{
		ID: id, PaymentID: f.PaymentID, Network: exchange.Tron, Body: []byte("b"), Payload: []byte("p"), FeeLimit: trx("1"),
		ClosesAt: time.Now().Add(time.Hour), AskedBy: p.officers[0].ID,
	}, storetest.PrincipalOf(p.officers[0]))
	wantFault(t, err, exchange.CodeStateConflict)
	storetest.Exec(t, p.store, `UPDATE wallets SET type = 'cold' WHERE id = $1`, p.wallet.ID)
	if _, given, err := p.store.ColdKey(t.Context(), p.wallet.ID); given || err != nil {
		t.Errorf("a key of the signer's was given away: %v", err)
	}
}
