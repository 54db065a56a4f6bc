package keys

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
)

// An account on TRON begins with a key of ours. This key signs one joint transaction, which gives the account to the owners to whom two officers
// agreed, and never a payment: payments are signed with the keys of wallets, and this key is sealed for something else.

// CreateOpeningKey creates and seals the key with which an account begins.
func (m Maker) CreateOpeningKey(ctx context.Context, account uuid.UUID, n exchange.Network) (string, exchange.SealedKey, error) {
	return m.create(ctx, OpeningRef(account, n))
}

// OpeningRef is the reference of the key with which an account begins.
func OpeningRef(account uuid.UUID, n exchange.Network) Ref {
	return Ref{WalletID: account, Network: n, Purpose: exchange.OpeningKeyPurpose}
}

// HandoverStore is the part of the database for giving accounts to their owners.
type HandoverStore interface {
	// HandoverForSigning reads the account, its key, the last transaction that gives it away and what withholds a signature.
	HandoverForSigning(ctx context.Context, account uuid.UUID) (exchange.HandoverSigning, error)
	// StoreHandover stores a signed transaction. While one may be executed or was, that one is returned and nothing is stored.
	StoreHandover(ctx context.Context, h exchange.MultisigHandover) (exchange.MultisigHandover, error)
}

// SignHandover returns the transaction that gives an account to its owners and may be executed or was, and signs one if there is none. It is safe to
// call again: the returned transaction is stored, and one that is not stored has not left the process. While something withholds the
// signature that is returned instead.
func (s *PaymentSigner) SignHandover(ctx context.Context, account uuid.UUID) (exchange.MultisigHandover, exchange.SigningHold, error) {
	var none exchange.MultisigHandover
	if s.handovers == nil {
		return none, "", exchange.Errorf(exchange.CodeUnsupported, "keys: this signer gives no accounts to owners")
	}
	in, err := s.handovers.HandoverForSigning(ctx, account)
	if err != nil {
		return none, "", err
	}
	if in.Last.AccountID == account && in.Last.Status != exchange.HandoverExpired {
		return in.Last, "", nil
	}
	if in.Hold != exchange.HoldNone {
		return none, in.Hold, nil
	}
	client, err := s.givable(in, account)
	if err != nil {
		return none, "", err
	}
	h, err := s.handover(ctx, client, in)
	if err != nil {
		return none, "", err
	}
	stored, err := s.handovers.StoreHandover(ctx, h)
	if err == nil && (stored.AccountID != account || len(stored.Raw) == 0 || stored.TxID == "") {
		err = notGiven(account, exchange.CodeInternal, "the stored transaction does not belong to it")
	}
	return stored, "", err
}

func notGiven(account uuid.UUID, code exchange.Code, what string) error {
	return exchange.Errorf(code, "keys: account %s is not given to its owners: %s", account, what)
}

// givable refuses an account that is not being opened as two officers agreed, and a key that is not the one that it begins with.
func (s *PaymentSigner) givable(in exchange.HandoverSigning, account uuid.UUID) (chain.Giver, error) {
	a := in.Account
	client, gives := s.clients[a.Network].(chain.Giver)
	switch {
	case a.ID != account:
		return nil, notGiven(account, exchange.CodeInternal, "the store gave another one")
	case !gives:
		return nil, notGiven(account, exchange.CodeUnsupported, "accounts on "+string(a.Network)+" don't begin with a key of ours")
	case !a.Given() || a.Status != exchange.MultisigOpening || a.ControlThreshold != a.Controlling():
		return nil, notGiven(account, exchange.CodeStateConflict, "it is not being opened")
	case a.Address == "" || a.Address != a.OpeningAddress:
		return nil, notGiven(account, exchange.CodeStateConflict, "it is not at the address of its key")
	}
	for _, o := range a.Owners {
		if o.Address == "" {
			return nil, notGiven(account, exchange.CodeStateConflict, "the key of an owner is not made")
		}
	}
	holder, err := client.Address(in.Key.PublicKey)
	if err == nil && holder != a.Address {
		err = notGiven(account, exchange.CodeStateConflict, "its key is of another address")
	}
	return client, err
}

// handover signs the transaction. What the driver prepares and what it sends must be just what was agreed: its bytes are checked against the owners
// before they are signed.
func (s *PaymentSigner) handover(ctx context.Context, client chain.Giver, in exchange.HandoverSigning) (exchange.MultisigHandover, error) {
	var none exchange.MultisigHandover
	a, draft := in.Account, chain.GivingDraft(in.Account)
	j, err := client.PrepareJoint(ctx, draft)
	if err != nil {
		return none, err
	}
	j.JointDraft = draft
	if err := client.CheckJoint(j); err != nil {
		return none, err
	}
	var own chain.OwnerSignature
	err = s.vault.Use(ctx, sealedOf(in.Key), OpeningRef(a.ID, a.Network), func(k chain.Key) error {
		raw, err := (&onceKey{Key: k}).Sign(j.Digest)
		if err == nil {
			own, err = client.Signature(j, raw)
		}
		return err
	})
	if err != nil {
		return none, err
	}
	if own.Owner != a.Address {
		return none, notGiven(a.ID, exchange.CodeInternal, "the signature is of "+own.Owner)
	}
	x, err := client.PrepareExecution(ctx, j, []chain.OwnerSignature{own}, chain.ExecutionDraft{})
	if err != nil {
		return none, err
	}
	x.Joint, x.Signatures = j, []chain.OwnerSignature{own}
	signed, err := client.SignExecution(x)
	if err != nil {
		return none, err
	}
	joint, err := json.Marshal(j)
	if err != nil {
		return none, err
	}
	return exchange.MultisigHandover{
		ID: uuid.Must(uuid.NewV7()), AccountID: a.ID, TxID: signed.TxID, Joint: joint, Body: j.Body, Raw: signed.Raw, ExpiresAt: j.ExpiresAt,
	}, nil
}
