package conformance

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/chain/keys"
	solananode "kivuko/dev/nodes/solana"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

// coldOffice is an office with a customer whose wallet is cold, and the machine that has its key.
type coldOffice struct {
	office
	cold     *activities.Cold
	machine  *keys.ColdVault
	customer exchange.User
	other    exchange.User
	wallet   exchange.Wallet
	officer  exchange.Principal
}

func openColdOffice(t *testing.T, client chain.Client) coldOffice {
	t.Helper()
	o := coldOffice{office: openOffice(t, client)}
	private, public := filepath.Join(t.TempDir(), "cold.json"), filepath.Join(t.TempDir(), "public.json")
	half, err := keys.CreateColdKey(private)
	if err == nil {
		err = os.WriteFile(public, half, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	sealer, err := keys.ReadColdSealer(public)
	if err != nil {
		t.Fatal(err)
	}
	if o.machine, err = keys.OpenColdVault(private); err != nil {
		t.Fatal(err)
	}
	o.customer, o.other = storetest.User(t, o.db, exchange.RoleCustomer), storetest.User(t, o.db, exchange.RoleCustomer)
	r := exchange.WalletRequest{
		ID: storetest.NewID(t), OwnerType: exchange.OwnerCustomer, OwnerID: o.customer.ID, Network: client.Network(), Asset: money.USDT, Type: exchange.Cold,
	}
	maker := keys.Maker{Vault: sealer, Networks: map[exchange.Network]keys.Addresser{r.Network: client}}
	address, key, err := maker.CreateKey(t.Context(), r.ID, r.Network)
	if err == nil {
		o.wallet, err = storetest.CreateWallet(t.Context(), o.db, r, address, key)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.cold = &activities.Cold{Store: storetest.Flowless{Store: o.db}, Client: client, Now: time.Now}
	o.officer = storetest.PrincipalOf(storetest.User(t, o.db, exchange.RoleTreasury))
	return o
}

// send opens a transfer of the customer and advances it to its approved payment.
func (o coldOffice) send(t *testing.T, amount string) exchange.Transfer {
	t.Helper()
	f, err := storetest.OpenTransfer(t.Context(), o.db, exchange.TransferRequest{
		ID: storetest.NewID(t), RequestedBy: o.customer.ID, Network: o.client.Network(), Amount: money.Must(money.USDT, amount), Recipient: exchange.Recipient{UserID: o.other.ID},
	}, storetest.PrincipalOf(o.customer))
	if err == nil {
		f, err = o.db.AdvanceTransfer(t.Context(), f.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (o coldOffice) completes(t *testing.T, payment uuid.UUID) {
	t.Helper()
	p, err := o.db.ChainPayment(t.Context(), payment)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := o.pay(t, p); err != nil || !r.Completed {
		t.Fatalf("the payment for %s ended %+v, %v", p.Purpose, r, err)
	}
}

// asks writes down what the officer asks about a transfer.
func (o coldOffice) asks(t *testing.T, f exchange.Transfer, kind exchange.IntentKind, terms exchange.Terms) activities.ColdInput {
	t.Helper()
	a, err := storetest.Ask(t.Context(), o.db, kind, uuid.New(), f.ID, terms, o.officer)
	if err != nil {
		t.Fatal(err)
	}
	return activities.ColdInput{PaymentID: f.PaymentID, Behalf: activities.Behalf{IntentID: a.IntentID}}
}

// brings is the import of a signed transaction.
func (o coldOffice) brings(t *testing.T, f exchange.Transfer, raw []byte) activities.ColdInput {
	t.Helper()
	return o.asks(t, f, exchange.IntendColdImport, exchange.SignedOffline{Raw: raw}.Terms())
}

// draft requests a payload until there is one, and completes the nonce account's payments that it needs first.
func (o coldOffice) draft(t *testing.T, f exchange.Transfer) exchange.ColdDraft {
	t.Helper()
	in := o.asks(t, f, exchange.IntendColdPayload, nil)
	for range 3 {
		out, err := o.cold.DraftColdPayment(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if out.NoncePaymentID == uuid.Nil {
			break
		}
		o.completes(t, out.NoncePaymentID)
	}
	drafts, err := o.db.ColdDrafts(t.Context(), f.PaymentID)
	if err != nil || len(drafts) == 0 || drafts[0].Status != exchange.ColdOpen {
		t.Fatalf("%+v, %v", drafts, err)
	}
	return drafts[0]
}

// sign signs a payload as the cold machine does.
func (o coldOffice) sign(t *testing.T, f exchange.Transfer, d exchange.ColdDraft) []byte {
	t.Helper()
	p, err := o.db.ChainPayment(t.Context(), f.PaymentID)
	if err != nil {
		t.Fatal(err)
	}
	key, found, err := o.db.ColdKey(t.Context(), o.wallet.ID)
	if err != nil || !found {
		t.Fatalf("%v, %v", found, err)
	}
	var raw []byte
	sealed := keys.Sealed{Ciphertext: key.Ciphertext, MasterKey: key.MasterKey, PublicKey: key.PublicKey, Algorithm: keys.Algorithm(key.Algorithm)}
	err = o.machine.Use(t.Context(), sealed, keys.Ref{WalletID: o.wallet.ID, Network: p.Network}, func(k chain.Key) error {
		var err error
		raw, err = o.client.(chain.Durable).SignPart(chain.Unsigned{
			Transfer: chain.Transfer{From: p.FromAddress, To: p.ToAddress, Amount: p.Amount}, FeePayer: p.FeePayer, Payload: d.Payload, Body: d.Body,
			RefBlock: d.RefBlock, NonceAccount: d.NonceAccount, NonceBlock: d.NonceBlock, FeeLimit: d.FeeLimit,
		}, k)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A cold wallet pays through the flow, the cold machine, the signer, the database and a node that drops transactions
// and undoes blocks. What it withdraws is never paid, and the books agree with the chain, to the lamport.
func TestSolanaColdWallet(t *testing.T) {
	t.Parallel()
	h := startSolana(t, solanaPrograms(t))
	o := openColdOffice(t, &passing{Client: h.client, h: h, t: t})
	gas := o.office.wallet(t, exchange.WalletRequest{OwnerType: exchange.OwnerTreasury, Purpose: exchange.HouseGas})
	theirs := o.ownedWallet(t, o.other)
	funds, coins := money.Must(money.SOL, "2"), money.Must(money.USDT, "100")
	storetest.Gas(t, o.db, gas.ID, funds)
	h.Fund(t, gas.Address, funds)
	storetest.Deposit(t, o.db, o.wallet.ID, coins)
	h.Fund(t, o.wallet.Address, coins)

	f := o.send(t, "10")
	d := o.draft(t, f)
	raw := o.sign(t, f, d)
	for range 4 { // far beyond the lifetime of a blockhash
		h.Mine(t, 100)
	}
	h.faults(t, solananode.Faults{DropNext: dropped})
	in := o.brings(t, f, raw)
	if out, err := o.cold.ImportColdPayment(t.Context(), in); err != nil || !out.Incomplete {
		t.Fatalf("%+v, %v", out, err)
	}
	o.watched(t)
	signing := &activities.Signing{Signer: o.signer, Cold: o.signer, Store: o.db}
	for range 2 {
		if out, err := signing.CompleteColdPayment(t.Context(), activities.SignInput{PaymentID: f.PaymentID}); err != nil || out.TxID == "" {
			t.Fatalf("%+v, %v", out, err)
		}
	}
	o.completes(t, f.PaymentID)

	second := o.send(t, "20")
	late := o.sign(t, second, o.draft(t, second))
	in = o.brings(t, second, late)
	if out, err := o.cold.ImportColdPayment(t.Context(), in); err != nil || !out.Incomplete {
		t.Fatalf("%+v, %v", out, err)
	}
	closed, err := o.cold.CloseColdPayment(t.Context(), o.asks(t, second, exchange.IntendTransferCancel, nil))
	if err != nil || closed.NoncePaymentID == uuid.Nil {
		t.Fatalf("%+v, %v", closed, err)
	}
	by := storetest.PrincipalOf(o.customer)
	if _, err := storetest.CancelTransfer(t.Context(), o.db, second.ID, by); exchange.CodeOf(err) != exchange.CodeStateConflict {
		t.Errorf("cancelled before the nonce account was advanced: %v", err)
	}
	if out, err := signing.CompleteColdPayment(t.Context(), activities.SignInput{PaymentID: second.PaymentID}); err == nil {
		t.Errorf("signed while it is withdrawn: %+v", out)
	}
	o.completes(t, closed.NoncePaymentID)
	if _, err := o.cold.ImportColdPayment(t.Context(), in); err == nil {
		t.Error("accepted after it was withdrawn")
	}
	if ended, err := storetest.CancelTransfer(t.Context(), o.db, second.ID, by); err != nil || ended.Status != exchange.TransferCancelled {
		t.Errorf("%s, %v", ended.Status, err)
	}

	third := o.send(t, "5") // valid by the nonce that the advance made
	in = o.brings(t, third, o.sign(t, third, o.draft(t, third)))
	if _, err := o.cold.ImportColdPayment(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if _, err := signing.CompleteColdPayment(t.Context(), activities.SignInput{PaymentID: third.PaymentID}); err != nil {
		t.Fatal(err)
	}
	o.completes(t, third.PaymentID)
	h.Finalise(t)
	o.balanced(t, holding{o.wallet, money.USDT}, holding{theirs, money.USDT}, holding{gas, money.SOL})
	if b, err := h.client.Balance(t.Context(), theirs.Address, money.USDT); err != nil || !b.Amount.Equal(money.Must(money.USDT, "15")) {
		t.Errorf("the recipient has %s, %v", b.Amount, err)
	}
	if n := o.count(t, `SELECT count(*) FROM chain_payments WHERE purpose IN ('nonce_account', 'nonce_advance') AND status = 'completed'`); n != 2 {
		t.Errorf("%d payments for the nonce account", n)
	}
}
