package keys

import (
	"bytes"
	"context"
	"crypto/subtle"
	"slices"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
)

// Owners of an account of several owners sign what the chain will do, and enough of their signatures are sent as one transaction. The
// signatures are the authority: whoever has enough of them can move the money. So each is made by the rules of a payment.

// JointStore is the part of the database for payments that several owners sign.
type JointStore interface {
	// MultisigAccountByID reads an account and its owners, as two officers agreed to them.
	MultisigAccountByID(ctx context.Context, id uuid.UUID) (exchange.MultisigAccount, error)
	// Payloads are all payloads of a proposal, whatever became of them.
	Payloads(ctx context.Context, proposalID uuid.UUID) ([]exchange.MultisigPayload, error)
	// OwnerKeyForSigning reads a payload and the sealed key of one of its owners, with the approval of the officer whose key it is.
	OwnerKeyForSigning(ctx context.Context, payloadID uuid.UUID, owner string) (exchange.OwnerSigning, error)
	// StoreSignature stores a signature of our key store. Of several for one owner and payload, the first stays.
	StoreSignature(ctx context.Context, s exchange.MultisigSignature, a exchange.Asked) (exchange.MultisigSignature, error)
	// ExecutionForSigning reads a payment with the payload that enough owners signed, and the sealed key of the wallet that pays for it.
	ExecutionForSigning(ctx context.Context, paymentID uuid.UUID) (exchange.ExecutionSigning, error)
}

// SignPayload signs a payload with the key of one owner, and returns the signature, which is stored. It signs only what the approved
// payment says, with the key of the officer who confirmed that payload, and it is safe to call again: the same key makes the same
// signature, and one that is not stored has not left the process.
func (s *PaymentSigner) SignPayload(ctx context.Context, payloadID uuid.UUID, owner string) (exchange.MultisigSignature, error) {
	var none exchange.MultisigSignature
	if s.joint == nil {
		return none, exchange.Errorf(exchange.CodeUnsupported, "keys: this signer has no store of joint transactions")
	}
	in, err := s.joint.OwnerKeyForSigning(ctx, payloadID, owner)
	if err != nil {
		return none, err
	}
	if in.Payload.ID != payloadID {
		return none, exchange.Errorf(exchange.CodeInternal, "keys: the store gave another payload than %s", payloadID)
	}
	if in.Signed.PayloadID == payloadID && in.Signed.Owner == owner {
		return in.Signed, nil
	}
	o, err := s.approved(in.Payment, in.Payload.PaymentID, exchange.ChainApproved)
	if err != nil {
		return none, err
	}
	o.joint, err = s.jointOf(ctx, o, in.Proposal, in.Payload)
	if err != nil {
		return none, err
	}
	who, err := o.joint.confirmed(o, in, owner)
	if err != nil {
		return none, err
	}
	signature, err := s.signAsOwner(ctx, o, who, in.Key)
	if err != nil {
		return none, err
	}
	stored, err := s.joint.StoreSignature(ctx, exchange.MultisigSignature{
		PayloadID: payloadID, Owner: owner, Signature: signature, Held: true, UserID: in.UserID, ApprovalID: in.Approval,
	}, exchange.Asked{})
	if err != nil {
		return none, err
	}
	if stored.PayloadID != payloadID || stored.Owner != owner || !bytes.Equal(stored.Signature, signature) {
		return none, refuse(o.payment.ID, exchange.CodeInternal, "the stored signature of %s is another one", owner)
	}
	return stored, nil
}

// signAsOwner makes one signature. The driver says whose it is.
func (s *PaymentSigner) signAsOwner(ctx context.Context, o order, who exchange.MultisigOwner, key exchange.SealedKey) ([]byte, error) {
	sealed := sealedOf(key)
	if err := holds(o.client, o.payment.ID, sealed, who.Address); err != nil {
		return nil, err
	}
	var made chain.OwnerSignature
	err := s.vault.Use(ctx, sealed, OwnerRef(o.payment.WalletID, o.payment.Network, who.N), func(k chain.Key) error {
		raw, err := (&onceKey{Key: k}).Sign(o.joint.Digest)
		if err == nil {
			made, err = o.joint.client.Signature(o.joint.Joint, raw)
		}
		return err
	})
	if err == nil && made.Owner != who.Address {
		err = refuse(o.payment.ID, exchange.CodeInternal, "the signature is of %s and not of %s", made.Owner, who.Address)
	}
	return made.Signature, err
}

func sealedOf(k exchange.SealedKey) Sealed {
	return Sealed{Ciphertext: k.Ciphertext, MasterKey: k.MasterKey, PublicKey: k.PublicKey, Algorithm: Algorithm(k.Algorithm)}
}

// joint is what the owners of an account sign for a payment, and may sign it.
type joint struct {
	chain.Joint
	client     chain.Multisig
	proposal   exchange.Proposal
	account    exchange.MultisigAccount
	signatures []chain.OwnerSignature // for an execution
}

// confirmed is the owner whose key signs, when exactly that officer confirmed the payload.
func (j *joint) confirmed(o order, in exchange.OwnerSigning, owner string) (exchange.MultisigOwner, error) {
	i := slices.IndexFunc(j.account.Owners, func(w exchange.MultisigOwner) bool { return w.Address == owner })
	if i < 0 || owner == "" {
		return exchange.MultisigOwner{}, refuse(o.payment.ID, exchange.CodeStateConflict, "%q is no owner of %s", owner, j.Account)
	}
	who := j.account.Owners[i]
	switch {
	case !who.Held:
		return who, refuse(o.payment.ID, exchange.CodeStateConflict, "the owner %s holds the key itself", owner)
	case who.UserID == uuid.Nil || in.UserID != who.UserID || in.Approval == uuid.Nil:
		return who, refuse(o.payment.ID, exchange.CodeForbidden, "the officer whose key %s is did not confirm it", owner)
	case in.Owner.N != who.N || in.Owner.Address != who.Address:
		return who, refuse(o.payment.ID, exchange.CodeInternal, "the store gave the key of another owner than %s", owner)
	}
	return who, nil
}

// jointOf reads what the owners sign for a payment, and refuses all that is not just the approved payment.
func (s *PaymentSigner) jointOf(ctx context.Context, o order, proposal exchange.Proposal, payload exchange.MultisigPayload) (*joint, error) {
	p := o.payment
	client, several := o.client.(chain.Multisig)
	if !several || s.joint == nil || p.Purpose != exchange.ForProposal {
		return nil, refuse(p.ID, exchange.CodeUnsupported, "several owners don't sign a payment for %s on %s", p.Purpose, p.Network)
	}
	if payload.PaymentID != p.ID || payload.ProposalID != p.ObjectID || payload.WalletID != p.WalletID || payload.Network != p.Network || !payload.Open() {
		return nil, refuse(p.ID, exchange.CodeStateConflict, "the payload %s (%s) is not one of it", payload.ID, payload.Status)
	}
	if !proposal.Kind.Moves() && (proposal.ID != p.ObjectID || !proposal.Resolved() || subtle.ConstantTimeCompare([]byte(proposal.Digest), []byte(proposal.Intent())) != 1) {
		return nil, refuse(p.ID, exchange.CodeStateConflict, "its proposal differs from what officers approved")
	}
	j := &joint{client: client, proposal: proposal}
	var err error
	if j.Joint, err = chain.DecodeJoint(payload.Joint); err != nil {
		return nil, err
	}
	if err := client.CheckJoint(j.Joint); err != nil {
		return nil, err
	}
	if what := j.differs(o, payload); what != "" {
		return nil, refuse(p.ID, exchange.CodeStateConflict, "the payload %s is not the approved payment: %s", payload.ID, what)
	}
	if j.account, err = s.joint.MultisigAccountByID(ctx, p.WalletID); err != nil {
		return nil, err
	}
	if what := j.foreign(p); what != "" {
		return nil, refuse(p.ID, exchange.CodeStateConflict, "the payload %s is not for the agreed owners: %s", payload.ID, what)
	}
	if sent(p) {
		j.asPrepared()
	}
	return j, s.alone(ctx, o, j, payload)
}

// sent reports whether a payment has a transaction. That one may need a higher fee, to free its number, whoever are the owners by now.
func sent(p exchange.ChainPayment) bool { return p.Status != exchange.ChainApproved }

// asPrepared takes the owners, weights and thresholds of the joint transaction, which were compared with the agreed ones when it was first sent.
func (j *joint) asPrepared() {
	q := j.Quorum.Read(j.account)
	j.account.Owners, j.account.Threshold, j.account.ControlThreshold = q.Owners, q.Threshold, q.ControlThreshold
}

// differs says in what way a joint transaction is not the approved payment, or not that of its payload; empty when it is.
func (j *joint) differs(o order, payload exchange.MultisigPayload) string {
	p := o.payment
	if what := j.Carries(j.proposal, p); what != "" {
		return what
	}
	traits, payer, nonce := o.client.Traits(), "", ""
	if traits.Sponsored {
		payer = p.FeePayer
		durable, ok := o.client.(chain.Durable)
		if !ok {
			return "its network has no nonce accounts"
		}
		var err error
		// The account follows from the proposal: so no two payloads of it can both be executed.
		if nonce, err = durable.NonceAccount(p.FeePayer, exchange.NonceSeed(p.ObjectID)); err != nil {
			return err.Error()
		}
	}
	for _, rule := range []struct {
		ok   bool
		what string
	}{
		{j.FeePayer == payer && j.NonceAccount == nonce, "fee payer or nonce account"},
		{(traits.Sequenced || traits.Sponsored) == (p.FeePayer != "" && p.FeeWalletID != uuid.Nil), "who pays for it"},
		{j.ID == payload.JointID && subtle.ConstantTimeCompare(j.Digest, payload.Digest) == 1, "id or digest"},
		{j.Sequence == payload.Sequence && j.RefBlock == payload.RefBlock && j.NonceAccount == payload.NonceAccount, "number, reference block or nonce account"},
		{slices.Equal(j.Signers, payload.Signers), "signers"},
	} {
		if !rule.ok {
			return rule.what
		}
	}
	return ""
}

// foreign says in what way a joint transaction is for other owners than are agreed; empty when it is for them. One that was sent for those who were
// agreed by then may need a higher fee, to free its number.
func (j *joint) foreign(p exchange.ChainPayment) string {
	a := j.account
	switch {
	case a.ID != p.WalletID || a.Network != p.Network || a.Address != p.FromAddress || a.Address != j.Account:
		return "the account " + a.Address + " is another one"
	case sent(p):
		return ""
	case a.Status != exchange.MultisigActive:
		return "the account is " + string(a.Status)
	}
	return a.Difference(j.Quorum.Read(a))
}

// alone refuses a payload while another one of its proposal could be executed as well: then the money could leave twice. That a row
// calls the other one over is not enough.
func (s *PaymentSigner) alone(ctx context.Context, o order, j *joint, payload exchange.MultisigPayload) error {
	all, err := s.joint.Payloads(ctx, payload.ProposalID)
	if err != nil {
		return err
	}
	for _, other := range all {
		if other.ID == payload.ID {
			continue
		}
		rival, err := chain.DecodeJoint(other.Joint)
		if err != nil {
			return err
		}
		if j.excludes(o, rival) {
			continue
		}
		out, err := j.client.Outcome(ctx, rival)
		if err != nil {
			return err
		}
		if out.State != chain.JointSuperseded && out.State != chain.JointExpired {
			return refuse(o.payment.ID, exchange.CodeStateConflict, "the payload %s of it is %s on the chain, so that both could be executed", other.ID, out.State)
		}
	}
	return nil
}

// excludes reports whether the network executes at most one of two joint transactions.
func (j *joint) excludes(o order, rival chain.Joint) bool {
	if j.Account != rival.Account {
		return false
	}
	traits := o.client.Traits()
	return traits.Sequenced && j.Sequence == rival.Sequence ||
		traits.Sponsored && j.NonceAccount == rival.NonceAccount && j.RefBlock == rival.RefBlock
}

// execution is an approved payment whose payload enough owners signed.
func (s *PaymentSigner) execution(ctx context.Context, id uuid.UUID, states ...exchange.ChainPaymentStatus) (order, error) {
	if s.joint == nil {
		return order{}, refuse(id, exchange.CodeUnsupported, "this signer has no store of joint transactions")
	}
	in, err := s.joint.ExecutionForSigning(ctx, id)
	if err != nil {
		return order{}, err
	}
	o, err := s.approved(in.Payment, id, states...)
	if err != nil {
		return order{}, err
	}
	if o.joint, err = s.jointOf(ctx, o, in.Proposal, in.Payload); err != nil {
		return order{}, err
	}
	if err := o.joint.collect(o, in.Signatures); err != nil {
		return order{}, err
	}
	if o.payment.FeePayer != "" {
		o.sealed = []Sealed{sealedOf(in.Gas)}
		return o, holds(o.client, id, o.sealed[0], o.payment.FeePayer)
	}
	return o, nil
}

// collect takes the owners' signatures, whose weight must be what was agreed when they are sent for the first time, whatever the chain asks for now. The
// driver verifies each.
func (j *joint) collect(o order, stored []exchange.MultisigSignature) error {
	weight := 0
	for _, s := range stored {
		j.signatures = append(j.signatures, chain.OwnerSignature{Owner: s.Owner, Signature: s.Signature})
		own, err := j.client.Signature(j.Joint, s.Signature)
		if err != nil {
			return err
		}
		for _, w := range j.account.Owners {
			if w.Address == own.Owner {
				weight += w.Weight
			}
		}
	}
	if needed := j.needed(); weight < needed {
		return refuse(o.payment.ID, exchange.CodeStateConflict, "its owners signed with a weight of %d, and %d is needed", weight, needed)
	}
	return nil
}

// needed is the weight of owners that it needs: the database computes the same (proposal_quorum). The chain itself would take the threshold of a
// Safe for a change of its owners too.
func (j *joint) needed() int {
	a := j.account
	switch {
	case j.proposal.Kind != exchange.ProposeOwners:
		return a.Threshold
	case a.Kind == exchange.MultisigTron:
		return max(a.ControlThreshold, a.Threshold)
	}
	return min(a.Threshold+1, len(a.Owners))
}

// prepareExecution builds the transaction that carries out what the owners signed.
func (s *PaymentSigner) prepareExecution(ctx context.Context, o order, d chain.Draft) (chain.Execution, error) {
	x, err := o.joint.client.PrepareExecution(ctx, o.joint.Joint, o.joint.signatures,
		chain.ExecutionDraft{Payer: o.payment.FeePayer, Nonce: d.Nonce, Bump: d.Bump, Limit: o.limit})
	if err != nil {
		return x, err
	}
	if x.Nonce != d.Nonce {
		return x, exchange.Errorf(exchange.CodeInternal, "keys: the driver prepared another number for payment %s", o.payment.ID)
	}
	x.Joint = o.joint.Joint // whose bytes were checked; the driver compares its own with them
	return x, nil
}

// signExecution signs it with the key of the wallet that pays, if there is one.
func (s *PaymentSigner) signExecution(ctx context.Context, o order, x chain.Execution) (signed chain.Signed, err error) {
	if len(o.sealed) == 0 {
		return o.joint.client.SignExecution(x)
	}
	err = s.vault.Use(ctx, o.sealed[0], Ref{WalletID: o.payment.FeeWalletID, Network: o.payment.Network}, func(payer chain.Key) error {
		var signErr error
		signed, signErr = o.joint.client.SignExecution(x, &onceKey{Key: payer})
		return signErr
	})
	return signed, err
}
