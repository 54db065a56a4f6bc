package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// decidableProposal is a proposal as officers decide about it. They approve it until its release has passed; then only an admin may still reject it.
func (t unitTx) decidableProposal(p exchange.Proposal, action exchange.ApprovalAction) decidable {
	released := p.PaymentID != uuid.Nil
	return decidable{
		object: exchange.ApproveProposal, id: p.ID, requester: p.ProposerID, amount: p.Amount, digest: p.Digest, intent: p.Intent(),
		involved: func(ctx context.Context, officer uuid.UUID) error {
			if p.ProposerID == officer {
				return exchange.Errorf(exchange.CodeForbidden, "The proposer can't decide about a proposal.")
			}
			if action == exchange.Approve || !released {
				return nil
			}
			u, err := readOne[exchange.User](ctx, t, "officer", readUser, officer)
			if err == nil && u.Role != exchange.RoleAdmin {
				err = exchange.Errorf(exchange.CodeForbidden, "Only an admin can reject a proposal that enough officers have approved.")
			}
			return err
		},
		open: func() error {
			if p.Kind == exchange.ProposeCancel && !p.Status.Signable() {
				return exchange.Errorf(exchange.CodeStateConflict, "A proposal that makes another one impossible needs no officers; its owners sign it.")
			}
			if action == exchange.Approve && !p.SignableAt.IsZero() {
				return exchange.Errorf(exchange.CodeStateConflict, "Enough officers approved the change of the owners; it rests until %s.", p.SignableAt.UTC().Format(time.RFC3339))
			}
			if p.Ending != "" || action == exchange.Approve && released || p.Status != exchange.ProposalApproving && (action == exchange.Approve || !p.Status.Signable()) {
				return exchange.Errorf(exchange.CodeStateConflict, "The proposal is %s, and waits for no such decision.", p.Standing())
			}
			return nil
		},
	}
}

// IssueProposalTicket gives an officer the right to one decision about one proposal, see issueTicket.
func (s *Store) IssueProposalTicket(ctx context.Context, k exchange.ApprovalTicket, by exchange.Principal) (exchange.Proposal, error) {
	var about exchange.Proposal
	err := s.inTx(ctx, "proposal", func(t unitTx) (err error) {
		if about, err = readOne[exchange.Proposal](ctx, t, "proposal", readProposal, k.ObjectID); err != nil {
			return err
		}
		return t.issueTicket(ctx, t.decidableProposal(about, k.Action), k, by)
	})
	return about, err
}

// DecideProposal proves a token and applies its decision in one transaction. The payment is approved when that was the last approval needed. The
// proposal is rejected by an admin, or when too few officers are left who could approve it; with a payload it then is to end. The token alone
// identifies the officer. A repeated call with a counted token returns what the proposal needs. The codes are those of provenTicket.
func (s *Store) DecideProposal(ctx context.Context, id uuid.UUID, action exchange.ApprovalAction, token string) (exchange.ProposalStanding, error) {
	var out exchange.ProposalStanding
	_, err := s.workProposal(ctx, id, func(ctx context.Context, w *proposalWork) error {
		d := w.decidableProposal(w.p, action)
		k, counted, err := w.provenTicket(ctx, d, token, action)
		if err != nil {
			return err
		}
		if !counted {
			if w.by, err = w.countTicket(ctx, d, k); err != nil {
				return err
			}
		}
		var rejected bool
		if err := w.Get(ctx, &rejected, proposalRejected, id); err != nil {
			return err
		}
		if rejected && !counted && action == exchange.Reject {
			if err := w.want(ctx, exchange.ProposalRejected, exchange.DetailRejected); err != nil {
				return err
			}
		}
		out, err = w.advance(ctx)
		return err
	})
	return out, err
}

const pendingProposals = `SELECT ` + proposalColumns + ` FROM ` + fromProposals + `
WHERE s.status = 'approving' AND s.kind <> 'cancel' AND s.proposer_id <> $1 AND NOT EXISTS (SELECT FROM chain_payments p WHERE p.purpose = 'proposal' AND p.object_id = s.id)
    AND NOT EXISTS (SELECT FROM approvals a WHERE a.object_type = 'multisig_proposal' AND a.object_id = s.id AND a.officer_id = $1)
ORDER BY s.created_at, s.id LIMIT $2`

// PendingProposals lists the proposals that the officer may decide about, the oldest first, at most a hundred.
func (s *Store) PendingProposals(ctx context.Context, officer uuid.UUID) ([]exchange.Proposal, error) {
	return readAll[exchange.Proposal](ctx, s.db, "proposal", pendingProposals, officer, maxPendingSales)
}

const pendingPayloads = `SELECT ` + payloadColumns + ` FROM multisig_payloads y JOIN multisig_proposals s ON s.id = y.proposal_id
    JOIN multisig_owners o ON o.account_id = y.wallet_id AND o.user_id = $1 AND o.held AND o.standing = 'agreed'
WHERE y.status = 'open' AND s.status IN ('signing', 'ready') AND s.ending IS NULL AND (y.network <> 'solana' OR o.address = ANY (y.signers))
    AND NOT EXISTS (SELECT FROM multisig_signatures g WHERE g.payload_id = y.id AND g.owner = o.address)
ORDER BY y.created_at, y.id LIMIT $2`

// PendingPayloads lists the payloads that the officer may confirm, whose key our key store has, the oldest first, at most a hundred.
func (s *Store) PendingPayloads(ctx context.Context, officer uuid.UUID) ([]exchange.MultisigPayload, error) {
	rows, err := readAll[payloadRow](ctx, s.db, "payload", pendingPayloads, officer, maxPendingSales)
	return payloads(rows), err
}

const readOwnerOfUser = `SELECT n, coalesce(address, '') AS address, user_id, weight, label, held FROM multisig_owners WHERE account_id = $1 AND user_id = $2 AND held AND standing = 'agreed'`

const signedByOfficer = `SELECT EXISTS (SELECT FROM multisig_signatures WHERE payload_id = $1 AND user_id = $2 AND held)`

// decidablePayload is a payload as the officers confirm it whose keys our key store has. Whoever proposed the payment may be one of them: it is a
// key that signs, and no approval. An officer may confirm it again until the key has signed: what the first confirmation asked for may have been
// withheld.
func (t unitTx) decidablePayload(y exchange.MultisigPayload, p exchange.Proposal) decidable {
	return decidable{
		object: exchange.ApprovePayload, id: y.ID, amount: p.Amount, digest: y.Intent(), intent: y.Intent(),
		involved: func(ctx context.Context, officer uuid.UUID) error {
			o, found, err := readFound[exchange.MultisigOwner](ctx, t, readOwnerOfUser, y.WalletID, officer)
			if err == nil && (!found || !y.SignedBy(o.Address)) {
				err = exchange.Errorf(exchange.CodeForbidden, "Only an owner whose key is in our key store, and whose signature the payload takes, can confirm it.")
			}
			return err
		},
		again: func(ctx context.Context, officer uuid.UUID) (bool, error) {
			signed, err := readOne[bool](ctx, t, "signature", signedByOfficer, y.ID, officer)
			if err == nil && signed {
				err = exchange.Errorf(exchange.CodeConflict, "Your key has signed this payload. Other owners have to sign.")
			}
			return false, err
		},
		open: func() error {
			if !y.Open() || !p.Status.Signable() || p.Ending != "" {
				return exchange.Errorf(exchange.CodeStateConflict, "The payload is %s, and its proposal %s; it takes no signatures.", y.Status, p.Standing())
			}
			return nil
		},
	}
}

func (t unitTx) payloadToConfirm(ctx context.Context, id uuid.UUID) (exchange.MultisigPayload, exchange.Proposal, error) {
	y, err := t.payload(ctx, id)
	if err != nil {
		return y, exchange.Proposal{}, err
	}
	p, err := readOne[exchange.Proposal](ctx, t, "proposal", readProposal, y.ProposalID)
	return y, p, err
}

// IssuePayloadTicket gives an officer the right to have the own key sign one payload, see issueTicket. The digest is MultisigPayload.Intent, and the
// amount that of the proposal.
func (s *Store) IssuePayloadTicket(ctx context.Context, k exchange.ApprovalTicket, by exchange.Principal) (exchange.MultisigPayload, error) {
	var about exchange.MultisigPayload
	err := s.inTx(ctx, "payload", func(t unitTx) error {
		y, p, err := t.payloadToConfirm(ctx, k.ObjectID)
		if err == nil && k.Action != exchange.Approve {
			err = exchange.Errorf(exchange.CodeUnsupported, "A payload is confirmed or left alone; the proposal is what is rejected.")
		}
		if about = y; err != nil {
			return err
		}
		return t.issueTicket(ctx, t.decidablePayload(y, p), k, by)
	})
	return about, err
}

// ConfirmPayload proves the token of an officer for exactly a payload, and returns the owner whose key may sign it from now on. A repeated call
// returns the same. A second token of an officer counts for nothing more: the first confirmation holds. The codes are those of provenTicket.
func (s *Store) ConfirmPayload(ctx context.Context, payload uuid.UUID, token string) (exchange.MultisigOwner, error) {
	var owner exchange.MultisigOwner
	err := s.inTx(ctx, "payload", func(t unitTx) error {
		y, err := t.payload(ctx, payload)
		if err != nil {
			return err
		}
		w, err := t.startProposal(ctx, y.ProposalID)
		if err != nil {
			return err
		}
		if y, err = w.payload(ctx, payload); err != nil { // as it is under the lock
			return err
		}
		d := w.decidablePayload(y, w.p)
		k, counted, err := w.provenTicket(ctx, d, token, exchange.Approve)
		var before bool
		if err == nil && !counted {
			err = w.Get(ctx, &before, decidedBy, d.object, d.id, k.OfficerID, d.digest)
		}
		if err == nil && !counted && !before {
			_, err = w.countTicket(ctx, d, k)
		}
		if err != nil {
			return err
		}
		owner, err = readOne[exchange.MultisigOwner](ctx, w, "owner of an account", readOwnerOfUser, y.WalletID, k.OfficerID)
		return err
	})
	return owner, err
}
