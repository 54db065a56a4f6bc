package keys

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// safes is a driver of a network on which several owners sign. A signature of an owner is the owner's name.
type safes struct {
	*counter
	sent []chain.Execution // those that were signed
}

func (s *safes) CheckJoint(chain.Joint) error { return nil }

func (s *safes) Quorum(context.Context, string) (chain.Quorum, error) {
	return chain.Quorum{}, chain.Errorf(chain.ReasonUnsupported, "the signer compares rows")
}

func (s *safes) PrepareJoint(context.Context, chain.JointDraft) (chain.Joint, error) {
	return chain.Joint{}, chain.Errorf(chain.ReasonUnsupported, "the signer prepares nothing that owners sign")
}

func (s *safes) Outcome(context.Context, chain.Joint, ...string) (chain.JointOutcome, error) {
	return chain.JointOutcome{State: chain.JointOpen}, nil
}

func (s *safes) Signature(_ chain.Joint, signature []byte) (chain.OwnerSignature, error) {
	return chain.OwnerSignature{Owner: string(signature), Signature: signature}, nil
}

func (s *safes) PrepareExecution(ctx context.Context, j chain.Joint, with []chain.OwnerSignature, d chain.ExecutionDraft) (chain.Execution, error) {
	u, err := s.Prepare(ctx, chain.Draft{Transfer: chain.Transfer{From: d.Payer, To: j.Account, Amount: money.Zero(money.ETH)}, Nonce: d.Nonce, Bump: d.Bump})
	return chain.Execution{Unsigned: u, Joint: j, Signatures: with}, err
}

func (s *safes) SignExecution(x chain.Execution, payer ...chain.Key) (chain.Signed, error) {
	s.sent = append(s.sent, x)
	return s.Sign(x.Unsigned, payer...)
}

// jointRecords are the rows of a payment of a Safe that enough owners signed.
type jointRecords struct {
	*records
	JointStore
	in exchange.ExecutionSigning
}

func (r *jointRecords) PaymentForSigning(context.Context, uuid.UUID) (exchange.ChainPayment, []Sealed, error) {
	return r.in.Payment, nil, nil
}

func (r *jointRecords) ExecutionForSigning(context.Context, uuid.UUID) (exchange.ExecutionSigning, error) {
	return r.in, nil
}

func (r *jointRecords) MultisigAccountByID(context.Context, uuid.UUID) (exchange.MultisigAccount, error) {
	return r.account, nil
}

func (r *jointRecords) Payloads(context.Context, uuid.UUID) ([]exchange.MultisigPayload, error) {
	return []exchange.MultisigPayload{r.in.Payload}, nil
}

// signedBy has these owners have signed.
func (r *jointRecords) signedBy(owners ...string) {
	r.in.Signatures = nil
	for _, o := range owners {
		r.in.Signatures = append(r.in.Signatures, exchange.MultisigSignature{PayloadID: r.in.Payload.ID, Owner: o, Signature: []byte(o), Weight: 1})
	}
}

// owned has an account these owners, by their names.
func owned(a *exchange.MultisigAccount, threshold int, names ...string) {
	a.Threshold, a.Owners = threshold, nil
	for i, name := range names {
		a.Owners = append(a.Owners, exchange.MultisigOwner{N: i + 1, Address: name, Weight: 1})
	}
}

// executionOf is what Anna and Bob signed for a Safe of two of three, of a kind, and the gas wallet pays for it.
func executionOf(t *testing.T, v *Vault, kind exchange.ProposalKind) *jointRecords {
	t.Helper()
	gas := numberedRecords(t, v)
	paid := gas.payment
	account := exchange.MultisigAccount{
		MultisigRequest: exchange.MultisigRequest{ID: uuid.New(), Network: exchange.Ethereum, Address: "safe"}, Kind: exchange.MultisigSafe, Status: exchange.MultisigActive,
	}
	owned(&account, 2, "anna", "bob", "cara")
	quorum := chain.Quorum{Threshold: 2, Owners: []chain.Owner{{Address: "anna", Weight: 1}, {Address: "bob", Weight: 1}, {Address: "cara", Weight: 1}}}
	p := exchange.Proposal{ID: uuid.New(), Kind: kind, WalletID: account.ID, Network: exchange.Ethereum, Amount: money.Zero(money.ETH)}
	draft := chain.JointDraft{Account: "safe", Quorum: quorum, Sequence: 4}
	switch kind {
	case exchange.ProposePayment:
		draft.Transfer = &chain.Transfer{From: "safe", To: paid.ToAddress, Amount: paid.Amount}
	case exchange.ProposeOwners:
		change := exchange.OwnersChange{Threshold: 2, Owners: []exchange.MultisigOwner{{Address: "anna", Weight: 1}, {Address: "dora", Weight: 1}}}
		p.Change, p.After, draft.Owners = change.Encode(), change.Encode(), chain.ChangeOf(change)
	case exchange.ProposeCancel:
	}
	if !kind.Moves() {
		paid.Amount, paid.ToAddress = money.Zero(money.ETH), "safe"
	}
	p.Digest = p.Intent()
	paid.Purpose, paid.ObjectID, paid.FeeWalletID, paid.FeePayer = exchange.ForProposal, p.ID, paid.WalletID, paid.FromAddress
	paid.WalletID, paid.FromAddress = account.ID, "safe"
	paid.IntentHash = paid.Intent()
	digest := sha256.Sum256([]byte("what the owners sign"))
	j := chain.Joint{JointDraft: draft, Digest: digest[:], ID: "joint"}
	text, err := j.Encode()
	if err != nil {
		t.Fatal(err)
	}
	payload := exchange.MultisigPayload{
		ID: uuid.New(), ProposalID: p.ID, WalletID: account.ID, PaymentID: paid.ID, Network: exchange.Ethereum, Joint: text, Digest: j.Digest, JointID: j.ID, Sequence: 4,
		Status: exchange.PayloadOpen,
	}
	key := gas.sealed[0]
	gas.account = account
	r := &jointRecords{records: gas, in: exchange.ExecutionSigning{Proposal: p, Payment: paid, Payload: payload, Gas: exchange.SealedKey{
		WalletID: paid.FeeWalletID, Ciphertext: key.Ciphertext, MasterKey: key.MasterKey, PublicKey: key.PublicKey, Algorithm: string(key.Algorithm),
	}}}
	r.signedBy("anna", "bob")
	return r
}

func jointSigner(t *testing.T, v *Vault, r *jointRecords) (*PaymentSigner, *safes) {
	t.Helper()
	d := &safes{counter: &counter{latest: 5}}
	s, err := NewPaymentSigner(PaymentSignerConfig{Store: r, Joint: r, Vault: v, Clients: map[exchange.Network]chain.Client{exchange.Ethereum: d}})
	if err != nil {
		t.Fatal(err)
	}
	return s, d
}

// What becomes of the agreed owners after Anna and Bob have signed.
var ownersThatChange = map[string]func(*exchange.MultisigAccount){
	"one who signed leaves":      func(a *exchange.MultisigAccount) { owned(a, 2, "anna", "cara", "dora") },
	"all who signed leave":       func(a *exchange.MultisigAccount) { owned(a, 2, "cara", "dora") },
	"one who did not sign comes": func(a *exchange.MultisigAccount) { owned(a, 2, "anna", "bob", "cara", "dora") },
	"the threshold rises":        func(a *exchange.MultisigAccount) { owned(a, 3, "anna", "bob", "cara") },
	"the chain has other owners": func(a *exchange.MultisigAccount) { a.Status = exchange.MultisigDiffers },
}

// After the owners changed, what they signed before is not sent for the first time. What was sent gets a higher fee with the same signatures:
// its number holds up all later ones of the gas wallet.
func TestHigherFeeAfterTheOwnersChanged(t *testing.T) {
	v := localVault(t)
	for name, change := range ownersThatChange {
		t.Run(name, func(t *testing.T) {
			r := executionOf(t, v, exchange.ProposePayment)
			change(&r.account)
			s, d := jointSigner(t, v, r)
			if _, err := s.SignPayment(t.Context(), r.in.Payment.ID); exchange.CodeOf(err) != exchange.CodeStateConflict || len(d.sent) != 0 || r.saved != 0 {
				t.Fatalf("a first transaction: %v; %d signed, %d saved", err, len(d.sent), r.saved)
			}
			r = executionOf(t, v, exchange.ProposePayment)
			s, d = jointSigner(t, v, r)
			first, err := s.SignPayment(t.Context(), r.in.Payment.ID)
			if err != nil {
				t.Fatal(err)
			}
			change(&r.account)
			for _, status := range []exchange.ChainPaymentStatus{exchange.ChainSigned, exchange.ChainBroadcast} {
				r.in.Payment.Status = status
				before := *r.live
				a, err := s.BumpPaymentFee(t.Context(), r.in.Payment.ID, before.N)
				if err != nil || a.N != before.N+1 || a.Nonce != first.Nonce || a.NonceWallet != r.in.Payment.FeeWalletID || a.Bid.Cap.Cmp(before.Bid.Cap) <= 0 {
					t.Fatalf("a higher fee of what is %s: %+v, %v", status, a, err)
				}
			}
			for _, x := range d.sent {
				if x.Joint.ID != "joint" || fmt.Sprint(x.Signatures) != fmt.Sprint(d.sent[0].Signatures) || len(x.Signatures) != 2 {
					t.Errorf("sent %s with %v, first with %v", x.Joint.ID, x.Signatures, d.sent[0].Signatures)
				}
			}
		})
	}
}

// A change of the owners that was sent gets a higher fee too, with as many signatures as the owners of that time needed.
func TestHigherFeeOfAChangeOfTheOwners(t *testing.T) {
	v := localVault(t)
	r := executionOf(t, v, exchange.ProposeOwners)
	s, d := jointSigner(t, v, r)
	if _, err := s.SignPayment(t.Context(), r.in.Payment.ID); exchange.CodeOf(err) != exchange.CodeStateConflict || len(d.sent) != 0 {
		t.Fatalf("two of three signed a change of the owners: %v, %d signed", err, len(d.sent))
	}
	r.signedBy("anna", "bob", "cara")
	first, err := s.SignPayment(t.Context(), r.in.Payment.ID)
	if err != nil {
		t.Fatal(err)
	}
	owned(&r.account, 2, "anna", "dora") // the final chain had them for a while
	r.in.Payment.Status = exchange.ChainBroadcast
	if a, err := s.BumpPaymentFee(t.Context(), r.in.Payment.ID, first.N); err != nil || a.N != 2 || !slices.ContainsFunc(d.sent[1].Signatures, func(o chain.OwnerSignature) bool { return o.Owner == "bob" }) {
		t.Errorf("%+v, %v", a, err)
	}
	r.signedBy("anna", "bob") // as many as there are owners by now
	if _, err := s.BumpPaymentFee(t.Context(), r.in.Payment.ID, 2); exchange.CodeOf(err) != exchange.CodeStateConflict || len(d.sent) != 2 {
		t.Errorf("with fewer signatures than at first: %v, %d signed", err, len(d.sent))
	}
}

// A higher fee needs all else that the first one needed: only who are the owners by now is left out.
func TestHigherFeeThatIsRefused(t *testing.T) {
	v := localVault(t)
	for name, change := range map[string]func(*jointRecords){
		"one signature":                     func(r *jointRecords) { r.signedBy("anna") },
		"a signature of one who came later": func(r *jointRecords) { owned(&r.account, 2, "anna", "dora"); r.signedBy("anna", "dora") },
		"the row of another account":        func(r *jointRecords) { r.account.ID = uuid.New() },
		"an account at another address":     func(r *jointRecords) { r.account.Address = "elsewhere" },
		"an account of another network":     func(r *jointRecords) { r.account.Network = exchange.Tron },
		"a payload that is void":            func(r *jointRecords) { r.in.Payload.Status = exchange.PayloadVoid },
		"a payload of another number":       func(r *jointRecords) { r.in.Payload.Sequence++ },
		"another amount": func(r *jointRecords) {
			r.in.Payment.Amount = money.Must(money.USDT, "11")
			r.in.Payment.IntentHash = r.in.Payment.Intent()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := executionOf(t, v, exchange.ProposePayment)
			s, d := jointSigner(t, v, r)
			first, err := s.SignPayment(t.Context(), r.in.Payment.ID)
			if err != nil {
				t.Fatal(err)
			}
			r.in.Payment.Status = exchange.ChainBroadcast
			change(r)
			if _, err := s.BumpPaymentFee(t.Context(), r.in.Payment.ID, first.N); exchange.CodeOf(err) != exchange.CodeStateConflict || len(d.sent) != 1 || r.saved != 1 {
				t.Errorf("%v; %d signed, %d saved", err, len(d.sent), r.saved)
			}
		})
	}
}
