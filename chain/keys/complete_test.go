package keys

import (
	"bytes"
	"context"
	"encoding/hex"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// twoSigners is a network where the fee payer signs after the owner. Only the methods for completing exist.
type twoSigners struct {
	chain.Durable
	completed int
}

func (d *twoSigners) Network() exchange.Network { return exchange.Solana }
func (d *twoSigners) Traits() chain.Traits      { return chain.Traits{Sponsored: true} }

func (d *twoSigners) Address(public []byte) (string, error) { return hex.EncodeToString(public), nil }

func (d *twoSigners) Complete(u chain.Unsigned, part []byte, payer chain.Key) (chain.Signed, error) {
	d.completed++
	signature, err := payer.Sign(u.Payload)
	if err != nil {
		return chain.Signed{}, err
	}
	if _, err := payer.Sign(u.Payload); err == nil {
		return chain.Signed{}, chain.Errorf(chain.ReasonProtocol, "the key signed twice")
	}
	return chain.Signed{Unsigned: u, TxID: hex.EncodeToString(signature), Raw: append(append(signature, part...), u.Body...)}, nil
}

// returned is the store's data of a payment whose owner has signed.
type returned struct {
	payment exchange.ChainPayment
	draft   exchange.ColdDraft
	key     Sealed
	live    *exchange.ChainAttempt
	lost    error // error of the next save, after it was stored
}

func (r *returned) LiveAttempt(context.Context, uuid.UUID) (exchange.ChainAttempt, bool, error) {
	if r.live == nil {
		return exchange.ChainAttempt{}, false, nil
	}
	return *r.live, true, nil
}

func (r *returned) ColdForCompletion(context.Context, uuid.UUID) (exchange.ChainPayment, exchange.ColdDraft, Sealed, error) {
	return r.payment, r.draft, r.key, nil
}

func (r *returned) SaveColdAttempt(_ context.Context, draft uuid.UUID, a exchange.ChainAttempt, _ exchange.Principal) (exchange.ChainAttempt, error) {
	if draft != r.draft.ID {
		return a, exchange.Errorf(exchange.CodeInternal, "another draft")
	}
	r.live = &a
	return a, r.lost
}

func newReturned(t *testing.T) (*returned, *twoSigners, *PaymentSigner) {
	t.Helper()
	vault, err := Open(Config{MasterKey: "file://" + filepath.Join(t.TempDir(), "master"), CreateLocal: true})
	if err != nil {
		t.Fatal(err)
	}
	r, d := &returned{}, &twoSigners{}
	r.payment = exchange.ChainPayment{
		ID: uuid.New(), Purpose: exchange.ForTransfer, ObjectID: uuid.New(), Network: exchange.Solana, Amount: money.Must(money.USDT, "10"),
		WalletID: uuid.New(), FeeWalletID: uuid.New(), FromAddress: "owner", ToAddress: "to", Status: exchange.ChainApproved, ApprovedBy: "policy",
	}
	if r.key, err = vault.Create(t.Context(), Ref{WalletID: r.payment.FeeWalletID, Network: exchange.Solana}); err != nil {
		t.Fatal(err)
	}
	r.payment.FeePayer = hex.EncodeToString(r.key.PublicKey)
	r.payment.IntentHash = r.payment.Intent()
	r.draft = exchange.ColdDraft{
		ID: uuid.New(), PaymentID: r.payment.ID, Body: []byte("message"), Payload: []byte("message"), RefBlock: "value", NonceAccount: "account", NonceBlock: 7,
		Part: []byte("part"), FeeLimit: money.Must(money.SOL, "0.003"),
	}
	s, err := NewPaymentSigner(PaymentSignerConfig{
		Store: &records{}, Vault: vault, Clients: map[exchange.Network]chain.Client{exchange.Solana: d}, Cold: r,
		Ceilings: map[money.Asset]money.Amount{money.USDT: money.Must(money.USDT, "100")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r, d, s
}

// The fee payer's key alone signs exactly what was handed out, and the result is stored before it is returned.
func TestWhatItsOwnerSignedIsCompleted(t *testing.T) {
	t.Parallel()
	r, d, s := newReturned(t)
	r.lost = exchange.Errorf(exchange.CodeUnavailable, "away")
	if _, err := s.CompletePayment(t.Context(), r.payment.ID); err == nil {
		t.Error("returned before it was stored")
	}
	first := *r.live
	r.live, r.lost = nil, nil
	for range 2 {
		a, err := s.CompletePayment(t.Context(), r.payment.ID)
		if err != nil || a.TxID != first.TxID || !bytes.Equal(a.Raw, first.Raw) || !bytes.HasSuffix(a.Raw, []byte("partmessage")) ||
			a.PaymentID != r.payment.ID || a.RefBlock != "value" || a.NonceAccount != "account" || a.NonceBlock != 7 || a.LastValidHeight != 0 || a.NonceWallet != uuid.Nil {
			t.Errorf("%+v, %v", a, err)
		}
	}
	if d.completed != 2 {
		t.Errorf("signed %d times", d.completed)
	}
}

func TestWhatIsNeverCompleted(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*returned){
		"changed after approval": func(r *returned) { r.payment.ToAddress = "thief" },
		"not approved":           func(r *returned) { r.payment.ApprovedBy = "" },
		"signed already":         func(r *returned) { r.payment.Status = exchange.ChainSigned },
		"above the ceiling": func(r *returned) {
			r.payment.Amount = money.Must(money.USDT, "101")
			r.payment.IntentHash = r.payment.Intent()
		},
		"no fee payer": func(r *returned) {
			r.payment.FeePayer, r.payment.FeeWalletID = "", uuid.Nil
			r.payment.IntentHash = r.payment.Intent()
		},
		"another fee payer": func(r *returned) {
			r.payment.FeePayer = "00"
			r.payment.IntentHash = r.payment.Intent()
		},
		"another payment":            func(r *returned) { r.payment.ID = uuid.New() },
		"a draft of another":         func(r *returned) { r.draft.PaymentID = uuid.New() },
		"a draft that lives shortly": func(r *returned) { r.draft.NonceAccount = "" },
		"a live one of another":      func(r *returned) { r.live = &exchange.ChainAttempt{PaymentID: uuid.New(), Raw: []byte("x"), TxID: "x"} },
	} {
		r, d, s := newReturned(t)
		id := r.payment.ID
		change(r)
		if a, err := s.CompletePayment(t.Context(), id); err == nil || d.completed > 0 {
			t.Errorf("%s: %+v", name, a)
		}
	}
	r, _, s := newReturned(t)
	s.cold = nil
	if _, err := s.CompletePayment(t.Context(), r.payment.ID); exchange.CodeOf(err) != exchange.CodeUnsupported {
		t.Errorf("%v", err)
	}
}

// The gas wallet's payments for nonce accounts tell the driver so, by the approved row alone.
func TestStepsOfNonceAccounts(t *testing.T) {
	t.Parallel()
	id := uuid.MustParse("0f8fad5b-d9cb-469f-a165-70867728950e")
	for purpose, want := range map[exchange.ChainPurpose]chain.Draft{
		exchange.ForNonceAccount: {Step: chain.NonceOpen, Seed: "0f8fad5bd9cb469fa16570867728950e"},
		exchange.ForNonceAdvance: {Step: chain.NonceAdvance},
		exchange.ForTransfer:     {}, exchange.ForGas: {}, exchange.ForOrder: {},
	} {
		if got := (order{payment: exchange.ChainPayment{Purpose: purpose, ObjectID: id}}).draft(); got.Step != want.Step || got.Seed != want.Seed {
			t.Errorf("%s: %+v", purpose, got)
		}
	}
}
