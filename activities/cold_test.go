package activities

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// coldHarness is the rows and the network of one cold wallet's payment. A signed transaction is its body with a mark.
type coldHarness struct {
	chain.Client
	now      time.Time
	payment  exchange.ChainPayment
	drafts   []exchange.ColdDraft // the last one first
	live     *exchange.ChainAttempt
	taken    bool // the number was taken when an attempt is stored
	sequence exchange.NonceSequence
	open     bool
	numbered bool
	counted  uint64
	found    map[string]chain.Stage
	prepared int
	refuses  chain.Reason
	head     chain.Block // the final one, whose time is the network's
	spent    string      // why the network can't include what was handed out
	raw      []byte      // the transaction of the intent to import
}

func newColdHarness() *coldHarness {
	d := &coldHarness{now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC), found: map[string]chain.Stage{}}
	d.payment = exchange.ChainPayment{
		ID: uuid.New(), Purpose: exchange.ForTransfer, ObjectID: uuid.New(), Network: exchange.Tron, Amount: money.Must(money.USDT, "10"), WalletID: uuid.New(),
		FromAddress: "from", ToAddress: "to", Status: exchange.ChainApproved, ApprovedBy: "policy",
	}
	d.payment.IntentHash = d.payment.Intent()
	return d
}

func (d *coldHarness) cold() *Cold {
	return &Cold{Store: d, Client: d, Now: func() time.Time { return d.now }}
}

func (d *coldHarness) ChainPayment(context.Context, uuid.UUID) (exchange.ChainPayment, error) {
	return d.payment, nil
}

func (d *coldHarness) LiveAttempt(context.Context, uuid.UUID) (exchange.ChainAttempt, bool, error) {
	if d.live == nil {
		return exchange.ChainAttempt{}, false, nil
	}
	return *d.live, true, nil
}

func (d *coldHarness) NonceSequence(context.Context, uuid.UUID) (exchange.NonceSequence, bool, error) {
	return d.sequence, d.open, nil
}

func (d *coldHarness) ColdDrafts(context.Context, uuid.UUID) ([]exchange.ColdDraft, error) {
	return slices.Clone(d.drafts), nil
}

func (d *coldHarness) SaveColdDraft(_ context.Context, c exchange.ColdDraft, _ exchange.Principal) (exchange.ColdDraft, error) {
	for i := range d.drafts {
		if d.drafts[i].Status == exchange.ColdOpen {
			d.drafts[i].Status = exchange.ColdLapsed
		}
	}
	c.Status = exchange.ColdOpen
	d.drafts = append([]exchange.ColdDraft{c}, d.drafts...)
	return c, nil
}

func (d *coldHarness) SaveColdAttempt(_ context.Context, draft uuid.UUID, a exchange.ChainAttempt, _ exchange.Principal) (exchange.ChainAttempt, error) {
	if d.taken {
		return a, exchange.Errorf(exchange.CodeConflict, "taken")
	}
	for i := range d.drafts {
		if d.drafts[i].ID == draft {
			d.drafts[i].Status = exchange.ColdSigned
		}
	}
	d.live = &a
	return a, nil
}

func (d *coldHarness) SaveColdPart(context.Context, uuid.UUID, []byte, exchange.Principal) error {
	return exchange.Errorf(exchange.CodeStateConflict, "the owner's signature is the last one")
}

func (d *coldHarness) DraftSpent(context.Context, exchange.ColdDraft) (string, error) {
	return d.spent, nil
}

func (d *coldHarness) LapseColdDraft(_ context.Context, draft uuid.UUID, evidence string, _ exchange.Principal) error {
	for i := range d.drafts {
		if d.drafts[i].ID == draft {
			d.drafts[i].Status, d.drafts[i].Evidence = exchange.ColdLapsed, evidence
		}
	}
	return nil
}

func (d *coldHarness) WithdrawColdDraft(context.Context, uuid.UUID, exchange.Principal) (exchange.ChainPayment, error) {
	return exchange.ChainPayment{}, exchange.Errorf(exchange.CodeStateConflict, "it lives by no nonce account")
}

func (d *coldHarness) ApproveNonceAccount(context.Context, uuid.UUID, string, money.Amount) (exchange.ChainPayment, error) {
	return exchange.ChainPayment{}, exchange.Errorf(exchange.CodeStateConflict, "it needs no nonce account")
}

// UseIntent is of an officer who asks about the payment's transfer.
func (d *coldHarness) UseIntent(_ context.Context, _ exchange.Asked, kind exchange.IntentKind) (exchange.Intent, error) {
	return exchange.Intent{Kind: kind, ObjectID: d.payment.ObjectID, Terms: exchange.SignedOffline{Raw: d.raw}.Terms()}, nil
}

func (d *coldHarness) Acting(context.Context, exchange.Asked) (exchange.Principal, error) {
	return exchange.System("test"), nil
}

func (d *coldHarness) close(t *testing.T, want exchange.Code) {
	t.Helper()
	_, err := d.cold().CloseColdPayment(t.Context(), ColdInput{PaymentID: d.payment.ID})
	if code := exchange.CodeOf(AsExchangeError(err)); code != want {
		t.Fatalf("closed with %q (%v), want %q", code, err, want)
	}
}

func (d *coldHarness) Network() exchange.Network { return exchange.Tron }

func (d *coldHarness) Traits() chain.Traits { return chain.Traits{Sequenced: d.numbered} }

func (d *coldHarness) Nonces(context.Context, string) (chain.Nonces, error) {
	return chain.Nonces{Latest: d.counted}, nil
}

func (d *coldHarness) Locate(_ context.Context, id string) (chain.Location, error) {
	if s, ok := d.found[id]; ok {
		return chain.Location{Stage: s}, nil
	}
	return chain.Location{Stage: chain.StageAbsent, Head: chain.Head{Final: d.head}}, nil
}

func (d *coldHarness) Prepare(_ context.Context, t chain.Draft) (chain.Unsigned, error) {
	if d.refuses != "" {
		return chain.Unsigned{}, chain.Errorf(d.refuses, "no")
	}
	d.prepared++
	body := []byte{byte(d.prepared)}
	u := chain.Unsigned{Transfer: t.Transfer, Body: body, Payload: body, Nonce: t.Nonce, FeeLimit: money.Must(money.TRX, "30")}
	if !d.numbered {
		u.ExpiresAt = d.now.Add(t.Life)
	}
	return u, nil
}

func (d *coldHarness) KnownID(u chain.Unsigned) string {
	if d.numbered {
		return ""
	}
	return "tx" + string(u.Body)
}

func (d *coldHarness) TakeSigned(u chain.Unsigned, raw []byte) (chain.Signed, error) {
	if string(raw) != string(u.Body)+"signed" {
		return chain.Signed{}, chain.Errorf(chain.ReasonForeign, "another transaction")
	}
	return chain.Signed{Unsigned: u, TxID: "tx" + string(u.Body), Raw: raw}, nil
}

func (d *coldHarness) handOut(t *testing.T, want exchange.Code) uuid.UUID {
	t.Helper()
	out, err := d.cold().DraftColdPayment(t.Context(), ColdInput{PaymentID: d.payment.ID})
	if code := exchange.CodeOf(AsExchangeError(err)); code != want {
		t.Fatalf("handed out with %q (%v), want %q", code, err, want)
	}
	return out.DraftID
}

func (d *coldHarness) bring(t *testing.T, raw string, want exchange.Code) SignedPayment {
	t.Helper()
	d.raw = []byte(raw)
	out, err := d.cold().ImportColdPayment(t.Context(), ColdInput{PaymentID: d.payment.ID})
	if code := exchange.CodeOf(AsExchangeError(err)); code != want {
		t.Fatalf("brought with %q (%v), want %q", code, err, want)
	}
	return out
}

func TestAColdPaymentIsHandedOutAndComesBack(t *testing.T) {
	t.Parallel()
	d := newColdHarness()
	first := d.handOut(t, "")
	if again := d.handOut(t, ""); again != first || d.prepared != 1 {
		t.Errorf("prepared %d times", d.prepared)
	}
	d.bring(t, "else", exchange.CodeInvalid)
	got := d.bring(t, "\x01signed", "")
	if again := d.bring(t, "\x01signed", ""); again != got || got.TxID != "tx\x01" {
		t.Errorf("%+v, then %+v", got, again)
	}
	d.payment.Status = exchange.ChainSigned
	d.handOut(t, exchange.CodeStateConflict)
}

// A second transaction is never built while the first may still pay, regardless of who sends the first.
func TestASecondTransactionWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	d := newColdHarness()
	d.handOut(t, "")
	d.now = d.now.Add(exchange.ColdLife)
	d.handOut(t, exchange.CodeStateConflict) // expired by our clock, but still includable
	d.bring(t, "\x01signed", exchange.CodeInvalid)
	d.now = d.now.Add(exchange.ColdMargin)
	d.found["tx\x01"] = chain.StageFinal // it was sent
	d.handOut(t, exchange.CodeStateConflict)
	d.close(t, exchange.CodeStateConflict)
	d.drafts[0].Status = exchange.ColdLapsed
	d.handOut(t, exchange.CodeStateConflict)
	if got := d.bring(t, "\x01signed", ""); got.TxID != "tx\x01" {
		t.Errorf("%+v", got)
	}

	d = newColdHarness()
	d.handOut(t, "")
	d.now = d.now.Add(exchange.ColdLife + exchange.ColdMargin)
	d.handOut(t, exchange.CodeStateConflict) // it is over by our clock only
	d.close(t, exchange.CodeStateConflict)
	d.head.Time = d.drafts[0].ExpiresAt.Add(-time.Second)
	d.close(t, exchange.CodeStateConflict)
	d.head.Time = d.drafts[0].ExpiresAt
	d.handOut(t, "")
	d.bring(t, "\x01signed", exchange.CodeInvalid) // the first one has expired
	d.bring(t, "\x02signed", "")
}

func TestNumbersOfColdWallets(t *testing.T) {
	t.Parallel()
	d := newColdHarness()
	d.numbered, d.counted = true, 4
	d.handOut(t, "")
	if d.drafts[0].Nonce != 4 || d.drafts[0].NonceWallet != d.payment.WalletID {
		t.Errorf("%+v", d.drafts[0])
	}
	d.now = d.now.Add(1000 * time.Hour)
	d.close(t, exchange.CodeStateConflict) // its bytes never expire
	d.handOut(t, "")                       // the same nonce again: only one of the two can be included
	d.now = d.now.Add(24 * time.Hour)
	d.counted = 5 // a foreign transaction used the nonce
	d.handOut(t, exchange.CodeStateConflict)
	d.counted, d.open, d.sequence.Next = 4, true, 5 // one of our transactions is under way
	d.handOut(t, exchange.CodeStateConflict)
	d.counted = 5 // it is in a block, which may be undone
	d.handOut(t, exchange.CodeStateConflict)
	d.close(t, exchange.CodeStateConflict)
	d.spent = "used" // and final
	d.close(t, "")
	if d.drafts[0].Status != exchange.ColdLapsed || d.drafts[0].Evidence != "used" {
		t.Errorf("%+v", d.drafts[0])
	}
	d.close(t, "")
	d.handOut(t, "")
	if d.drafts[0].Nonce != 5 {
		t.Errorf("number %d", d.drafts[0].Nonce)
	}
	d.taken = true
	d.bring(t, "\x03signed", exchange.CodeInvalid)
	d.sequence.Foreign = true
	d.handOut(t, exchange.CodeStateConflict)
}

func TestWhatIsNeverHandedOut(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*coldHarness){
		"changed after approval": func(d *coldHarness) { d.payment.ToAddress = "thief" },
		"not approved":           func(d *coldHarness) { d.payment.ApprovedBy = "" },
		"no gas":                 func(d *coldHarness) { d.refuses = chain.ReasonGas },
	} {
		d := newColdHarness()
		change(d)
		if d.handOut(t, exchange.CodeStateConflict); len(d.drafts) > 0 {
			t.Errorf("%s: handed out", name)
		}
	}
	d := newColdHarness()
	c := d.cold()
	c.Client = struct{ chain.Client }{d} // a driver without durable transactions
	_, err := c.DraftColdPayment(t.Context(), ColdInput{PaymentID: d.payment.ID})
	if exchange.CodeOf(AsExchangeError(err)) != exchange.CodeUnsupported {
		t.Errorf("%v", err)
	}
}

// keyBox makes keys under its own name.
type keyBox string

func (k keyBox) CreateKey(context.Context, uuid.UUID, exchange.Network) (string, exchange.SealedKey, error) {
	return "address", exchange.SealedKey{MasterKey: string(k)}, nil
}

type walletShelf struct {
	WalletStore // for the methods that are not called here
	asked       exchange.WalletRequest
	key         exchange.SealedKey
}

func (s *walletShelf) AskedWallet(context.Context, exchange.Asked) (exchange.WalletRequest, error) {
	return s.asked, nil
}

func (s *walletShelf) CreateWallet(_ context.Context, _ exchange.Asked, _ string, k exchange.SealedKey) (exchange.Wallet, error) {
	s.key = k
	return exchange.Wallet{ID: s.asked.ID}, nil
}

// The key of a cold wallet is sealed for the cold machine; the key of a hot wallet never is.
func TestColdWalletsHaveColdKeys(t *testing.T) {
	t.Parallel()
	shelf := &walletShelf{}
	w := &Wallets{Keys: keyBox("hot"), ColdKeys: keyBox("cold"), Store: shelf}
	for _, kind := range []exchange.WalletType{exchange.Hot, exchange.Cold} {
		shelf.asked = exchange.WalletRequest{ID: uuid.New(), Network: exchange.Tron, Type: kind}
		if _, err := w.MakeWallet(t.Context(), IntentInput{}); err != nil {
			t.Fatal(err)
		}
		if shelf.key.MasterKey != string(kind) {
			t.Errorf("the key of a %s wallet is sealed under %s", kind, shelf.key.MasterKey)
		}
	}
}
