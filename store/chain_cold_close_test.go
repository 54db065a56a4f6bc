package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// safe is a customer whose wallet on a network is cold, with approved payments from it.
type safe struct {
	store         *store.Store
	network       exchange.Network
	sender, other exchange.User
	officer       exchange.Principal
	gas           exchange.Wallet // on Solana
	wallet        exchange.Wallet
	later         *time.Duration
}

func newSafe(t *testing.T, n exchange.Network) safe {
	t.Helper()
	later := time.Duration(0)
	s := storetest.Open(t, storetest.URL(t), store.Options{Now: func() time.Time { return time.Now().Add(later) }})
	v := safe{store: s, network: n, sender: storetest.User(t, s, exchange.RoleCustomer), other: storetest.User(t, s, exchange.RoleCustomer), later: &later}
	v.officer = storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury))
	if n == exchange.Solana {
		v.gas = storetest.GasWallet(t, s, n)
		storetest.Gas(t, s, v.gas.ID, money.Must(money.SOL, "5"))
	}
	v.wallet = storetest.WalletOn(t, s, v.sender, n)
	storetest.WalletOn(t, s, v.other, n)
	storetest.Deposit(t, s, v.wallet.ID, usdt("100"))
	storetest.Exec(t, s, `UPDATE wallets SET type = 'cold' WHERE id = $1`, v.wallet.ID)
	return v
}

// pay opens a transfer and returns its approved payment.
func (v safe) pay(t *testing.T) exchange.Transfer {
	t.Helper()
	f, err := storetest.OpenTransfer(t.Context(), v.store, exchange.TransferRequest{
		ID: storetest.NewID(t), RequestedBy: v.sender.ID, Network: v.network, Amount: usdt("1"), Recipient: exchange.Recipient{UserID: v.other.ID},
	}, storetest.PrincipalOf(v.sender))
	if err == nil {
		f, err = v.store.AdvanceTransfer(t.Context(), f.ID)
	}
	if err != nil || f.PaymentID == uuid.Nil {
		t.Fatalf("%+v, %v", f, err)
	}
	return f
}

const account = "NonceAccount1111111111111111111111"

func (v safe) draft(t *testing.T, f exchange.Transfer, edit func(*exchange.ColdDraft)) exchange.ColdDraft {
	t.Helper()
	now := time.Now().Add(*v.later)
	d := exchange.ColdDraft{
		ID: storetest.NewID(t), PaymentID: f.PaymentID, Network: v.network, Body: []byte("body"), Payload: []byte("payload"), RefBlock: "value",
		FeeLimit: money.Zero(v.network.NativeCoin()), ClosesAt: now.Add(time.Hour), AskedBy: v.officer.UserID,
	}
	if v.network == exchange.Solana {
		d.NonceAccount, d.NonceBlock = account, 7
	} else {
		d.NonceWallet, d.Nonce = v.wallet.ID, 4
	}
	edit(&d)
	return d
}

func (v safe) handOut(t *testing.T, f exchange.Transfer, edit func(*exchange.ColdDraft)) (exchange.ColdDraft, error) {
	t.Helper()
	return v.store.SaveColdDraft(t.Context(), v.draft(t, f, edit), v.officer)
}

func same(*exchange.ColdDraft) {}

func (v safe) attempt(t *testing.T, d exchange.ColdDraft) exchange.ChainAttempt {
	t.Helper()
	id := storetest.NewID(t)
	return exchange.ChainAttempt{
		ID: id, PaymentID: d.PaymentID, Network: d.Network, TxID: txID(id), Raw: []byte("signed"), NonceWallet: d.NonceWallet, Nonce: d.Nonce, RefBlock: d.RefBlock,
		NonceAccount: d.NonceAccount, NonceBlock: d.NonceBlock,
	}
}

func (v safe) cancel(t *testing.T, f exchange.Transfer) error {
	t.Helper()
	_, err := storetest.CancelTransfer(t.Context(), v.store, f.ID, storetest.PrincipalOf(v.sender))
	return err
}

func (v safe) wants(t *testing.T, f exchange.Transfer, status exchange.TransferStatus, detail string) {
	t.Helper()
	now, err := v.store.Transfer(t.Context(), store.Everything(), f.ID)
	if err != nil || now.Status != status || now.StatusDetail != detail {
		t.Errorf("the transfer is %s (%s), %v; want %s (%s)", now.Status, now.StatusDetail, err, status, detail)
	}
}

// settle brings a payment's transaction into a final block.
func (v safe) settle(t *testing.T, p exchange.ChainPayment, ok bool) exchange.ChainAttempt {
	t.Helper()
	id := storetest.NewID(t)
	a, err := v.store.SaveSignedAttempt(t.Context(), exchange.ChainAttempt{
		ID: id, PaymentID: p.ID, Network: p.Network, TxID: txID(id), Raw: []byte("x"), RefBlock: "block", LastValidHeight: 100,
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := v.store.RecordFinal(t.Context(), a.ID, ok, 9, "nine", money.Must(money.SOL, "0.000005"), "word"); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// Drafts never expire on Ethereum: a holder of the bytes may sign them. The money stays until a transaction of ours
// with their number is final, however long that takes.
func TestANumberThatWasHandedOutKeepsTheMoney(t *testing.T) {
	t.Parallel()
	v := newSafe(t, exchange.Ethereum)
	f, other := v.pay(t), v.pay(t)
	first, err := v.handOut(t, f, same)
	if err != nil {
		t.Fatal(err)
	}
	v.wants(t, f, exchange.TransferQueued, exchange.WaitHandedOut)
	rival, err := v.handOut(t, other, same) // another payment may be what uses the number
	if err != nil {
		t.Fatal(err)
	}
	*v.later = 1000 * time.Hour
	wantFault(t, v.cancel(t, f), exchange.CodeStateConflict)
	wantFault(t, v.store.LapseColdDraft(t.Context(), first.ID, "it is old", v.officer), exchange.CodeStateConflict)
	anew, err := v.handOut(t, f, same) // the same number with a new bid: one of the two can be included
	if err != nil || anew.ID == first.ID {
		t.Fatalf("%+v, %v", anew, err)
	}
	_, err = v.handOut(t, f, func(d *exchange.ColdDraft) { d.ClosesAt = d.ClosesAt.Add(time.Hour) })
	if err != nil {
		t.Fatal(err)
	}
	a, err := v.store.SaveColdAttempt(t.Context(), rival.ID, v.attempt(t, rival), v.officer)
	if err != nil {
		t.Fatal(err)
	}
	*v.later += 1000 * time.Hour
	wantFault(t, v.cancel(t, f), exchange.CodeStateConflict) // it is signed, and in no final block
	if _, err := v.handOut(t, f, func(d *exchange.ColdDraft) { d.Nonce = 5 }); exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("handed out with a second number while the first may be included: %v", err)
	}
	if _, err := v.store.RecordIncluded(t.Context(), a.ID, 9, "nine"); err != nil {
		t.Fatal(err)
	}
	wantFault(t, v.cancel(t, f), exchange.CodeStateConflict)
	if _, err := v.store.RecordFinal(t.Context(), a.ID, true, 9, "nine", eth("0.001"), "1"); err != nil {
		t.Fatal(err)
	}
	next, err := v.handOut(t, f, func(d *exchange.ColdDraft) { d.Nonce = 5 })
	if err != nil || next.Nonce != 5 {
		t.Fatalf("%+v, %v", next, err)
	}
	wantFault(t, v.cancel(t, f), exchange.CodeStateConflict)
	third := v.pay(t)
	d, err := v.handOut(t, third, func(d *exchange.ColdDraft) { d.Nonce = 5 })
	if err != nil {
		t.Fatal(err)
	}
	if a, err = v.store.SaveColdAttempt(t.Context(), d.ID, v.attempt(t, d), v.officer); err == nil {
		_, err = v.store.RecordFinal(t.Context(), a.ID, false, 10, "ten", eth("0.001"), "0") // failed uses the number too
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := v.cancel(t, f); err != nil {
		t.Errorf("the number is used: %v", err)
	}
	v.wants(t, f, exchange.TransferCancelled, exchange.DetailBySender)
	wantTransfers(t, v.store)
}

// The owner's signature comes first and the fee payer's after it, both over what was handed out.
func TestADurableDraftIsSignedTwice(t *testing.T) {
	t.Parallel()
	v := newSafe(t, exchange.Solana)
	f := v.pay(t)
	d, err := v.handOut(t, f, same)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := v.handOut(t, f, same); err != nil || again.ID != d.ID || again.NonceAccount != account || again.NonceBlock != 7 {
		t.Errorf("%+v, %v", again, err)
	}
	_, _, _, err = v.store.ColdForCompletion(t.Context(), f.PaymentID)
	wantFault(t, err, exchange.CodeStateConflict)
	if _, err := v.store.SaveColdAttempt(t.Context(), d.ID, v.attempt(t, d), v.officer); exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("stored without its owner's signature: %v", err)
	}
	for range 2 {
		if err := v.store.SaveColdPart(t.Context(), d.ID, []byte("part"), v.officer); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := storetest.Owner(t, v.store).ExecContext(t.Context(), `UPDATE cold_drafts SET part = 'other'`); sqlState(err) != "KV002" {
		t.Errorf("the signature was changed: %v", err)
	}
	p, got, key, err := v.store.ColdForCompletion(t.Context(), f.PaymentID)
	if err != nil || p.ID != f.PaymentID || string(got.Part) != "part" || key.WalletID != v.gas.ID {
		t.Errorf("%+v, %+v, %v", got, key.WalletID, err)
	}
	for name, edit := range map[string]func(*exchange.ChainAttempt){
		"another account": func(a *exchange.ChainAttempt) { a.NonceAccount = "other" },
		"another value":   func(a *exchange.ChainAttempt) { a.RefBlock = "other" },
		"another block":   func(a *exchange.ChainAttempt) { a.NonceBlock++ },
	} {
		bad := v.attempt(t, d)
		edit(&bad)
		if _, err := v.store.SaveColdAttempt(t.Context(), d.ID, bad, v.officer); exchange.CodeOf(err) != exchange.CodeStateConflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	a, err := v.store.SaveColdAttempt(t.Context(), d.ID, v.attempt(t, d), v.officer)
	if err != nil || a.NonceAccount != account || a.NonceBlock != 7 {
		t.Fatalf("%+v, %v", a, err)
	}
	v.wants(t, f, exchange.TransferBroadcasting, exchange.WaitBroadcast)
	if _, err := v.handOut(t, v.pay(t), same); exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("a second one lives by the account's value: %v", err)
	}
	_, err = v.store.WithdrawColdDraft(t.Context(), d.ID, v.officer)
	wantFault(t, err, exchange.CodeStateConflict)
	if _, err := v.store.RecordFinal(t.Context(), a.ID, false, 9, "nine", money.Must(money.SOL, "0.00001"), "failed"); err != nil {
		t.Fatal(err)
	}
	wantTransfers(t, v.store)
}

// Only a payment invalidates a draft, and only once it is final.
func TestADurableDraftIsWithdrawn(t *testing.T) {
	t.Parallel()
	v := newSafe(t, exchange.Solana)
	f := v.pay(t)
	d, err := v.handOut(t, f, same)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.store.SaveColdPart(t.Context(), d.ID, []byte("part"), v.officer); err != nil {
		t.Fatal(err)
	}
	*v.later = 1000 * time.Hour
	wantFault(t, v.cancel(t, f), exchange.CodeStateConflict)
	wantFault(t, v.store.LapseColdDraft(t.Context(), d.ID, "it is old", v.officer), exchange.CodeStateConflict)
	p, err := v.store.WithdrawColdDraft(t.Context(), d.ID, v.officer)
	if err != nil || p.Purpose != exchange.ForNonceAdvance || p.WalletID != v.gas.ID || p.ToAddress != account || p.FeePayer != "" || p.HoldID != uuid.Nil {
		t.Fatalf("%+v, %v", p, err)
	}
	v.wants(t, f, exchange.TransferQueued, exchange.WaitWithdrawal)
	wantFault(t, v.cancel(t, f), exchange.CodeStateConflict)
	wantFault(t, v.store.SaveColdPart(t.Context(), d.ID, []byte("part"), v.officer), exchange.CodeStateConflict)
	if _, err := v.store.SaveColdAttempt(t.Context(), d.ID, v.attempt(t, d), v.officer); exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("it became a transaction while it was withdrawn: %v", err)
	}
	if _, err := v.handOut(t, f, same); exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("another one was handed out beside it: %v", err)
	}
	for _, query := range []string{`UPDATE cold_drafts SET status = 'open'`, `UPDATE cold_drafts SET status = 'lapsed', evidence = 'x'`} {
		if _, err := storetest.Owner(t, v.store).ExecContext(t.Context(), query); sqlState(err) != "KV002" && sqlState(err) != "KV001" {
			t.Errorf("%s: %v", query, err)
		}
	}
	v.settle(t, p, false) // the advance failed
	again, err := v.store.WithdrawColdDraft(t.Context(), d.ID, v.officer)
	if err != nil || again.ID != p.ID || again.Status != exchange.ChainApproved {
		t.Fatalf("%+v, %v", again, err)
	}
	a := v.settle(t, again, true)
	drafts, err := v.store.ColdDrafts(t.Context(), f.PaymentID)
	if err != nil || drafts[0].Status != exchange.ColdLapsed || drafts[0].Evidence != "its nonce account was advanced by "+a.TxID {
		t.Errorf("%+v, %v", drafts, err)
	}
	v.wants(t, f, exchange.TransferQueued, exchange.WaitExternal)
	wantBalance(t, v.store, exchange.Owned(exchange.AccCustody, v.gas.ID, money.SOL), "4.999989999", "0") // two fees and what went into the account
	if again, err := v.store.WithdrawColdDraft(t.Context(), d.ID, v.officer); err != nil || again.Status != exchange.ChainCompleted {
		t.Errorf("%+v, %v", again, err)
	}
	if err := v.cancel(t, f); err != nil {
		t.Error(err)
	}
	wantTransfers(t, v.store)
}

// A cold wallet has one nonce account for each gas wallet, opened by one payment however many request it.
func TestANonceAccountIsOpenedOnce(t *testing.T) {
	t.Parallel()
	v := newSafe(t, exchange.Solana)
	rent := money.Must(money.SOL, "0.00144768")
	f, other := v.pay(t), v.pay(t)
	p, err := v.store.ApproveNonceAccount(t.Context(), f.PaymentID, account, rent)
	if err != nil || p.Purpose != exchange.ForNonceAccount || p.ObjectID != v.wallet.ID || p.WalletID != v.gas.ID || p.ToAddress != account || p.N != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	if again, err := v.store.ApproveNonceAccount(t.Context(), other.PaymentID, account, rent); err != nil || again.ID != p.ID {
		t.Errorf("%+v, %v", again, err)
	}
	v.settle(t, p, false)
	if p, err = v.store.ApproveNonceAccount(t.Context(), f.PaymentID, account, rent); err != nil || p.Status != exchange.ChainApproved || p.N != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	v.settle(t, p, true)
	wantBalance(t, v.store, exchange.Owned(exchange.AccCustody, v.gas.ID, money.SOL), "4.99854232", "0")
	if p, err = v.store.ApproveNonceAccount(t.Context(), f.PaymentID, "another", rent); err != nil || p.N != 2 {
		t.Errorf("%+v, %v", p, err)
	}
	_, err = v.store.ApproveNonceAccount(t.Context(), other.PaymentID, "third", money.Must(money.SOL, "0.02")) // beyond what one costs
	if err == nil {
		t.Error("a nonce account of a fortune was approved")
	}
	insert := `INSERT INTO chain_payments (id, purpose, object_id, n, network, asset, amount, wallet_id, from_address, to_address, intent_hash, status, approved_by, created_at, updated_at)
		SELECT gen_random_uuid(), $1, $2, 9, 'solana', 'SOL', 0.000000001, w.id, w.address, 'x', repeat('a', 64), 'approved', 'policy', now(), now() FROM wallets w WHERE w.id = $3`
	for name, q := range map[string][]any{
		"for a hot wallet":      {exchange.ForNonceAccount, v.gas.ID, v.gas.ID},
		"out of the wallet":     {exchange.ForNonceAccount, v.wallet.ID, v.wallet.ID},
		"an advance of nothing": {exchange.ForNonceAdvance, v.wallet.ID, v.gas.ID},
	} {
		if _, err := storetest.Owner(t, v.store).ExecContext(t.Context(), insert, q...); sqlState(err) != "KV002" && sqlState(err) != "23514" {
			t.Errorf("%s: %v", name, err)
		}
	}
}
