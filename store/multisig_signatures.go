package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Signatures of owners. The signer writes those of keys that we hold, each after its officer confirmed exactly the payload; the chain's worker those
// of owners outside, after it verified them.

const signatureColumns = `g.payload_id, g.owner, g.signature, g.held, g.user_id, g.approval_id, g.intent_id, o.weight, g.at`

const (
	fromSignatures   = ` FROM multisig_signatures g JOIN multisig_payloads y ON y.id = g.payload_id JOIN multisig_owners o ON o.account_id = y.wallet_id AND o.address = g.owner AND o.standing = 'agreed' `
	readSignatures   = `SELECT ` + signatureColumns + fromSignatures + `WHERE g.payload_id = $1 ORDER BY g.owner`
	readSignaturesOf = `SELECT ` + signatureColumns + fromSignatures + `WHERE y.proposal_id = ANY ($1::uuid[]) ORDER BY g.payload_id, g.owner`
	readSignature    = `SELECT ` + signatureColumns + fromSignatures + `WHERE g.payload_id = $1 AND g.owner = $2`
	// Also those of owners who have left, with the weight that they had.
	readSignaturesEver = `SELECT ` + signatureColumns + ` FROM multisig_signatures g JOIN multisig_payloads y ON y.id = g.payload_id
JOIN LATERAL (SELECT weight FROM multisig_owners WHERE account_id = y.wallet_id AND address = g.owner AND standing <> 'coming' ORDER BY standing = 'agreed' DESC, n DESC LIMIT 1) o ON true
WHERE g.payload_id = $1 ORDER BY g.owner`
	readPayloadSigned = `SELECT payload_signed($1)`
)

// Signatures reads the signatures of a payload, ordered by owner.
func (s *Store) Signatures(ctx context.Context, payload uuid.UUID) ([]exchange.MultisigSignature, error) {
	return readAll[exchange.MultisigSignature](ctx, s.db, "signature", readSignatures, payload)
}

const readKeyConfirmation = `
SELECT a.id AS approval, a.officer_id AS user_id FROM approvals a
WHERE a.object_type = 'multisig_payload' AND a.object_id = $1 AND a.officer_id = $2 AND a.action = 'approve' AND a.digest = $3`

const readOwnerAt = `SELECT n, coalesce(address, '') AS address, user_id, weight, label, held FROM multisig_owners WHERE account_id = $1 AND address = $2 AND standing = 'agreed'`

// OwnerKeyForSigning reads what the signer needs to sign a payload with the key of an owner, who confirmed it: the payment that the payload must
// make, and the sealed key. CodeForbidden when the officer did not confirm exactly this payload, when the key is not in our key store, and when the
// recipient is now on the deny list; CodeStateConflict when the payload takes no signatures, or something withholds one (see SigningHold). When
// the signature is stored already it is returned, whatever has become of the payload.
func (s *Store) OwnerKeyForSigning(ctx context.Context, payload uuid.UUID, owner string) (exchange.OwnerSigning, error) {
	var out exchange.OwnerSigning
	err := s.inTx(ctx, "payload", func(t unitTx) error {
		out = exchange.OwnerSigning{}
		y, p, err := t.payloadToConfirm(ctx, payload)
		if err != nil {
			return err
		}
		out.Payload, out.Proposal = y, p
		if out.Owner, err = readOne[exchange.MultisigOwner](ctx, t, "owner of an account", readOwnerAt, y.WalletID, owner); err != nil {
			return err
		}
		if out.Payment, err = readOne[exchange.ChainPayment](ctx, t, "chain payment", readPayment, y.PaymentID); err != nil {
			return err
		}
		if out.Signed, _, err = readFound[exchange.MultisigSignature](ctx, t, readSignature, payload, owner); err != nil || out.Signed.PayloadID != uuid.Nil {
			return err
		}
		w := &proposalWork{unitTx: t, before: p, p: p, now: s.now()}
		if err := w.mayUseKey(ctx, &out); err != nil {
			return err
		}
		out.Key, err = readOne[exchange.SealedKey](ctx, t, "key of an owner", readOwnerKey, y.WalletID, out.Owner.N)
		return err
	})
	return out, err
}

// mayUseKey refuses the key of an owner unless its officer confirmed the payload, and the payload may be signed.
func (w *proposalWork) mayUseKey(ctx context.Context, out *exchange.OwnerSigning) error {
	c, found, err := readFound[struct{ Approval, UserID uuid.UUID }](ctx, w, readKeyConfirmation, out.Payload.ID, out.Owner.UserID, out.Payload.Intent())
	if err != nil {
		return err
	}
	if !found || !out.Owner.Held || !out.Payload.SignedBy(out.Owner.Address) {
		return exchange.Errorf(exchange.CodeForbidden, "The officer of owner %s has not confirmed payload %s.", out.Owner.Address, out.Payload.ID)
	}
	out.Approval, out.UserID = c.Approval, c.UserID
	if !out.Payload.Open() || !w.p.Status.Signable() || w.p.Ending != "" {
		return exchange.Errorf(exchange.CodeStateConflict, "The payload is %s, and its proposal %s; it takes no signatures.", out.Payload.Status, w.p.Standing())
	}
	var denied bool
	if err := w.Get(ctx, &denied, isDeniedOutside, w.p.Network, w.p.Destination); err != nil {
		return err
	}
	if denied {
		return exchange.Errorf(exchange.CodeForbidden, "The recipient of proposal %s is on the deny list.", w.p.ID)
	}
	return w.unwithheld(ctx)
}

const insertSignature = `
INSERT INTO multisig_signatures (payload_id, owner, signature, held, user_id, approval_id, intent_id, at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

// StoreSignature stores the signature of an owner, which the driver of the network has verified: of a key that we hold with the approval of its
// officer, or of an owner outside by the intent that brought it. The first signature of an owner stays; a repeated call returns it. CodeForbidden for an address that is not such an
// owner, CodeStateConflict when the payload takes no signatures. For one from outside the errors of useIntent come before all others, and
// CodeInvalid says that the intent is about another payload.
func (s *Store) StoreSignature(ctx context.Context, g exchange.MultisigSignature, a exchange.Asked) (exchange.MultisigSignature, error) {
	var stored exchange.MultisigSignature
	y, err := s.Payload(ctx, g.PayloadID)
	if err != nil {
		return stored, err
	}
	_, err = s.workProposal(ctx, y.ProposalID, func(ctx context.Context, w *proposalWork) error {
		if err := w.broughtBy(ctx, &g, a); err != nil {
			return err
		}
		var err error
		var found bool
		if stored, found, err = readFound[exchange.MultisigSignature](ctx, w, readSignature, g.PayloadID, g.Owner); err != nil || found {
			return err
		}
		if y, err = w.payload(ctx, g.PayloadID); err != nil {
			return err
		}
		if !y.Open() || !w.p.Status.Signable() || w.p.Ending != "" {
			return exchange.Errorf(exchange.CodeStateConflict, "The payload is %s, and its proposal %s; it takes no signatures.", y.Status, w.p.Standing())
		}
		o, found, err := readFound[exchange.MultisigOwner](ctx, w, readOwnerAt, y.WalletID, g.Owner)
		if err == nil && (!found || o.Held != g.Held || !y.SignedBy(g.Owner)) {
			err = exchange.Errorf(exchange.CodeForbidden, "The payload takes no such signature of %s.", g.Owner)
		}
		if err != nil {
			return err
		}
		stored, err = w.addSignature(ctx, g)
		return err
	})
	return stored, err
}

// broughtBy finds who brought a signature from outside. One of a key that we hold is the officer's who confirmed it.
func (w *proposalWork) broughtBy(ctx context.Context, g *exchange.MultisigSignature, a exchange.Asked) error {
	if g.Held {
		w.by = exchange.Principal{UserID: g.UserID, RequestID: "approval:" + g.ApprovalID.String()}
		return nil
	}
	by, _, err := w.act(ctx, a, w.p.ID, exchange.IntendProposalSign)
	if err != nil {
		return err
	}
	i, err := readOneIntent(ctx, w, a.IntentID)
	if err != nil {
		return err
	}
	said, err := exchange.OutsideSignatureOf(i)
	if err != nil {
		return err
	}
	w.by, g.UserID, g.IntentID, g.ApprovalID = by, by.UserID, a.IntentID, uuid.Nil
	return require(said.PayloadID == g.PayloadID, "/payload_id", "mismatch", "must be the payload that was signed")
}

func (w *proposalWork) addSignature(ctx context.Context, g exchange.MultisigSignature) (exchange.MultisigSignature, error) {
	err := w.One(ctx, insertSignature, g.PayloadID, g.Owner, g.Signature, g.Held, g.UserID, nullID(g.ApprovalID), nullID(g.IntentID), w.now)
	if err != nil {
		return g, err
	}
	if err := w.report(ctx, "signed", map[string]any{"payload_id": g.PayloadID, "owner": g.Owner, "held": g.Held}); err != nil {
		return g, err
	}
	return readOne[exchange.MultisigSignature](ctx, w, "signature", readSignature, g.PayloadID, g.Owner)
}
