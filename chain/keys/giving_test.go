package keys

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// giver is a network on which an account begins with a key of ours.
type giver struct {
	*driver
	owners  []*chain.OwnersChange // of each joint transaction that was prepared
	joints  func(*chain.Joint)    // changes what is prepared
	prepare error
	checks  int
}

func (g *giver) Quorum(context.Context, string) (chain.Quorum, error) {
	return chain.Quorum{}, errors.New("the signer does not ask for it")
}

func (g *giver) GivingCost(context.Context, string, chain.OwnersChange) (money.Amount, error) {
	return money.Amount{}, errors.New("nor for that")
}

func (g *giver) PrepareJoint(_ context.Context, d chain.JointDraft) (chain.Joint, error) {
	g.owners = append(g.owners, d.Owners)
	body := []byte("gives " + d.Account)
	digest := sha256.Sum256(body)
	j := chain.Joint{JointDraft: d, Digest: digest[:], Body: body, ID: "tx"}
	if g.joints != nil {
		g.joints(&j)
	}
	return j, g.prepare
}

func (g *giver) CheckJoint(j chain.Joint) error {
	g.checks++
	digest := sha256.Sum256([]byte("gives " + j.Account))
	if string(j.Body) != "gives "+j.Account || !slices.Equal(digest[:], j.Digest) || j.Transfer != nil {
		return errors.New("it says something else")
	}
	return nil
}

func (g *giver) Signature(j chain.Joint, signature []byte) (chain.OwnerSignature, error) {
	public, err := crypto.SigToPub(j.Digest, signature)
	if err != nil {
		return chain.OwnerSignature{}, err
	}
	g.signatures.Add(1)
	return chain.OwnerSignature{Owner: crypto.PubkeyToAddress(*public).Hex(), Signature: signature}, nil
}

func (g *giver) PrepareExecution(_ context.Context, j chain.Joint, s []chain.OwnerSignature, _ chain.ExecutionDraft) (chain.Execution, error) {
	return chain.Execution{Joint: j, Signatures: s, Unsigned: chain.Unsigned{Body: j.Body}}, nil
}

func (g *giver) SignExecution(x chain.Execution, payer ...chain.Key) (chain.Signed, error) {
	if len(payer) != 0 || len(x.Signatures) != 1 {
		return chain.Signed{}, errors.New("another one signs")
	}
	return chain.Signed{Unsigned: x.Unsigned, TxID: x.Joint.ID, Raw: append(slices.Clone(x.Body), x.Signatures[0].Signature...)}, nil
}

func (g *giver) Outcome(context.Context, chain.Joint, ...string) (chain.JointOutcome, error) {
	return chain.JointOutcome{}, errors.New("the signer does not judge")
}

// handovers are the rows of one account.
type handovers struct {
	in     exchange.HandoverSigning
	stored []exchange.MultisigHandover
	fail   error
}

func (h *handovers) HandoverForSigning(context.Context, uuid.UUID) (exchange.HandoverSigning, error) {
	return h.in, nil
}

func (h *handovers) StoreHandover(_ context.Context, x exchange.MultisigHandover) (exchange.MultisigHandover, error) {
	if h.fail != nil {
		return exchange.MultisigHandover{}, h.fail
	}
	x.Status = exchange.HandoverSigned
	h.stored, h.in.Last = append(h.stored, x), x
	return x, nil
}

// begun is an account that begins with a key of a vault, and is paid for.
func begun(t *testing.T, v *Vault) *handovers {
	t.Helper()
	id := uuid.New()
	address, key, err := Maker{Vault: v, Networks: map[exchange.Network]Addresser{exchange.Tron: &driver{}}}.CreateOpeningKey(t.Context(), id, exchange.Tron)
	if err != nil {
		t.Fatal(err)
	}
	return &handovers{in: exchange.HandoverSigning{Key: key, Account: exchange.MultisigAccount{
		MultisigRequest: exchange.MultisigRequest{ID: id, Network: exchange.Tron, Address: address, Threshold: 2, Owners: []exchange.MultisigOwner{
			{N: 1, Address: "anna", Weight: 1}, {N: 2, Address: "bob", Weight: 1, Held: true}, {N: 3, Address: "cara", Weight: 1},
		}},
		Kind: exchange.MultisigTron, Status: exchange.MultisigOpening, ControlThreshold: 3, OpeningAddress: address,
	}}}
}

func givingSigner(t *testing.T, v *Vault, g chain.Client, h *handovers) *PaymentSigner {
	t.Helper()
	s, err := NewPaymentSigner(PaymentSignerConfig{Store: &records{}, Vault: v, Clients: map[exchange.Network]chain.Client{exchange.Tron: g}, Handovers: h})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The key with which an account begins signs one thing once: what gives the account to the agreed owners.
func TestSignHandover(t *testing.T) {
	v := localVault(t)
	h, g := begun(t, v), &giver{driver: &driver{}}
	id := h.in.Account.ID
	for range 2 {
		out, hold, err := givingSigner(t, v, g, h).SignHandover(t.Context(), id)
		if err != nil || hold != "" || out.TxID != "tx" || string(out.Body) != "gives "+h.in.Account.Address || len(out.Raw) != len(out.Body)+65 || len(h.stored) != 1 || g.signatures.Load() != 1 || g.checks != 1 {
			t.Fatalf("%+v, %q, %v; %d stored, %d signatures", out, hold, err, len(h.stored), g.signatures.Load())
		}
	}
	owners := []chain.Owner{{Address: "anna", Weight: 1}, {Address: "bob", Weight: 1}, {Address: "cara", Weight: 1}}
	if want := (&chain.OwnersChange{Owners: owners, Threshold: 2, Control: &chain.OwnersChange{Owners: owners, Threshold: 3}}); len(g.owners) != 1 || !g.owners[0].Equal(want) {
		t.Errorf("it is given to %+v", g.owners)
	}
	h.in.Last.Status = exchange.HandoverExecuted
	if out, _, err := givingSigner(t, v, g, h).SignHandover(t.Context(), id); err != nil || out.Status != exchange.HandoverExecuted || g.signatures.Load() != 1 {
		t.Errorf("after it is executed: %+v, %v", out, err)
	}
	h.in.Last.Status = exchange.HandoverExpired
	if _, _, err := givingSigner(t, v, g, h).SignHandover(t.Context(), id); err != nil || len(h.stored) != 2 {
		t.Errorf("after it has expired, %d are stored: %v", len(h.stored), err)
	}
}

func TestSignHandoverRefuses(t *testing.T) {
	v := localVault(t)
	other := begun(t, v)
	for name, change := range map[string]func(*handovers, *giver){
		"an account that is adopted":         func(h *handovers, _ *giver) { h.in.Account.Adopted = true },
		"an account that is prepared":        func(h *handovers, _ *giver) { h.in.Account.Status = exchange.MultisigPreparing },
		"an account that is a wallet":        func(h *handovers, _ *giver) { h.in.Account.Status = exchange.MultisigActive },
		"an account that is given up":        func(h *handovers, _ *giver) { h.in.Account.Status = exchange.MultisigRefused },
		"an account of another kind":         func(h *handovers, _ *giver) { h.in.Account.Kind = exchange.MultisigSafe },
		"an account of another network":      func(h *handovers, _ *giver) { h.in.Account.Network = exchange.Ethereum },
		"another account":                    func(h *handovers, _ *giver) { h.in.Account.ID = uuid.New() },
		"an account elsewhere":               func(h *handovers, _ *giver) { h.in.Account.Address = other.in.Account.Address },
		"less for changes of the owners":     func(h *handovers, _ *giver) { h.in.Account.ControlThreshold = 2 },
		"an owner without a key":             func(h *handovers, _ *giver) { h.in.Account.Owners[1].Address = "" },
		"the key of another account":         func(h *handovers, _ *giver) { h.in.Key = other.in.Key },
		"a body that says something else":    func(_ *handovers, g *giver) { g.joints = func(j *chain.Joint) { j.Body = []byte("pays mallory") } },
		"the digest of something else":       func(_ *handovers, g *giver) { g.joints = func(j *chain.Joint) { j.Digest = make([]byte, 32) } },
		"what can't be prepared":             func(_ *handovers, g *giver) { g.prepare = chain.Errorf(chain.ReasonGas, "too little") },
		"a store that refuses what it signs": func(h *handovers, _ *giver) { h.fail = exchange.Errorf(exchange.CodeStateConflict, "other bytes") },
	} {
		h, g := begun(t, v), &giver{driver: &driver{}}
		id := h.in.Account.ID
		change(h, g)
		out, _, err := givingSigner(t, v, g, h).SignHandover(t.Context(), id)
		if err == nil || len(out.Raw) != 0 || len(h.stored) != 0 || g.signatures.Load() != 0 && h.fail == nil {
			t.Errorf("%s: %+v, %v; %d signatures", name, out, err, g.signatures.Load())
		}
	}
	h, g := begun(t, v), &giver{driver: &driver{}}
	h.in.Hold = exchange.HoldFrozen
	if out, hold, err := givingSigner(t, v, g, h).SignHandover(t.Context(), h.in.Account.ID); err != nil || hold != exchange.HoldFrozen || out.TxID != "" || g.signatures.Load() != 0 {
		t.Errorf("in a freeze: %+v, %q, %v", out, hold, err)
	}
	if _, _, err := givingSigner(t, v, &driver{}, begun(t, v)).SignHandover(t.Context(), h.in.Account.ID); err == nil {
		t.Error("a network whose accounts don't begin with a key gives one away")
	}
}

// The key with which an account begins opens for nothing else: not as a wallet's, which signs payments, nor as an owner's.
func TestOpeningKeyOpensForItsAccount(t *testing.T) {
	v := localVault(t)
	h := begun(t, v)
	id := h.in.Account.ID
	opens := func(r Ref) error {
		return v.Use(t.Context(), sealedOf(h.in.Key), r, func(chain.Key) error { return nil })
	}
	if err := opens(OpeningRef(id, exchange.Tron)); err != nil {
		t.Errorf("it does not open for its account: %v", err)
	}
	for name, r := range map[string]Ref{
		"a wallet": {WalletID: id, Network: exchange.Tron}, "an owner": OwnerRef(id, exchange.Tron, 1), "another account": OpeningRef(uuid.New(), exchange.Tron),
		"another network": OpeningRef(id, exchange.Ethereum),
	} {
		if opens(r) == nil {
			t.Errorf("it opens for %s", name)
		}
	}
}

// What pays for an account that begins with a key is a plain transfer.
func TestSignPaymentOfABegunAccount(t *testing.T) {
	v := localVault(t)
	s, g := openingOf(t, v), &giver{driver: &driver{}}
	s.payment.Amount = money.Must(money.TRX, "101")
	s.payment.IntentHash = s.payment.Intent()
	var built chain.Unsigned
	g.change = func(u *chain.Unsigned) { built = *u }
	signer, err := NewPaymentSigner(PaymentSignerConfig{Store: s, Vault: v, Clients: map[exchange.Network]chain.Client{exchange.Tron: g}})
	if err == nil {
		_, err = signer.SignPayment(t.Context(), s.payment.ID)
	}
	if err != nil || built.Owners != nil || built.Seed != "" || !built.Transfer.Amount.Equal(s.payment.Amount) {
		t.Errorf("it is paid for by %+v, %v", built, err)
	}
}
