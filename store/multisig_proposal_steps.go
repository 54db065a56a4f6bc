package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const (
	proposalGone     = `SELECT proposal_party_gone(s) FROM multisig_proposals s WHERE s.id = $1`
	proposalHit      = `SELECT proposal_hit(s) FROM multisig_proposals s WHERE s.id = $1`
	proposalRejected = `SELECT proposal_rejected(s) FROM multisig_proposals s WHERE s.id = $1`
)

// Only approvals by officers who may still approve count.
const readProposalApprovers = `SELECT v FROM releases r, release_voices(r) v WHERE r.purpose = 'proposal' AND r.object_id = $1 AND r.ended_at IS NULL ORDER BY v`

// AdvanceProposal moves a proposal on: it approves the payment when the rule about all that leaves and the wallet's policy allow it, and ends a
// proposal whose end is wanted once no payload of it can be executed. It returns what the proposal waits for. One of an account that was switched
// off, whose recipient is not accepted any more, or whose time is over, is ended, or is to end. A repeated call changes nothing.
func (s *Store) AdvanceProposal(ctx context.Context, id uuid.UUID) (exchange.ProposalStanding, error) {
	var out exchange.ProposalStanding
	_, err := s.workProposal(ctx, id, func(ctx context.Context, w *proposalWork) (err error) {
		out, err = w.advance(ctx)
		return err
	})
	return out, err
}

func (w *proposalWork) advance(ctx context.Context) (exchange.ProposalStanding, error) {
	err := w.lapse(ctx)
	if err == nil && w.p.Status == exchange.ProposalProposed {
		err = w.move(ctx, exchange.ProposalApproving, exchange.WaitApproval)
	}
	if err == nil && w.p.Status == exchange.ProposalApproving && w.p.Kind.Moves() {
		return w.approve(ctx)
	}
	if err == nil && w.p.Status == exchange.ProposalApproving {
		return w.approveUnmoved(ctx)
	}
	if err == nil && !w.p.Kind.Moves() && !w.p.Over() {
		return w.standing(ctx)
	}
	if err != nil || w.p.Over() {
		return exchange.ProposalStanding{Proposal: w.p, PaymentID: w.p.PaymentID}, err
	}
	v, approvers, err := w.judged(ctx)
	return exchange.ProposalStanding{Proposal: w.p, Needed: v.Officers, Approvals: len(approvers), PaymentID: w.p.PaymentID}, err
}

// judged asks the rule about all that leaves, and who approved.
func (w *proposalWork) judged(ctx context.Context) (exchange.ReleaseVerdict, []uuid.UUID, error) {
	v, err := w.judge(ctx, exchange.ReleaseProposal, w.p.ID)
	if err != nil {
		return v, nil, err
	}
	approvers, err := readAll[uuid.UUID](ctx, w, "approval", readProposalApprovers, w.p.ID)
	return v, approvers, err
}

// approve approves the payment of a proposal when enough officers approved the proposal.
func (w *proposalWork) approve(ctx context.Context) (exchange.ProposalStanding, error) {
	v, approvers, err := w.judged(ctx)
	if err != nil {
		return exchange.ProposalStanding{}, err
	}
	detail := exchange.WaitApproval
	switch {
	case w.p.PaymentID != uuid.Nil:
		detail = w.p.StatusDetail // what its payment waits for
	case v.Pass:
		detail = exchange.WaitPayload
		err = w.pay(ctx, byOfficers)
	case len(approvers) >= v.Officers:
		detail = exchange.WaitRest
	case len(approvers) > 0:
		detail = exchange.WaitSecond
	}
	if err == nil {
		err = w.move(ctx, exchange.ProposalApproving, detail)
	}
	if err == nil && w.p.PaymentID == uuid.Nil && v.Pass { // approved just now, and the row did not change
		w.p, err = readOne[exchange.Proposal](ctx, w, "proposal", readProposal, w.p.ID)
	}
	return exchange.ProposalStanding{Proposal: w.p, Needed: v.Officers, Approvals: len(approvers), PaymentID: w.p.PaymentID}, err
}

// byOfficers approves the payments of proposals. Who they are is in the approvals: a merchant gets the payment's events, and not their ids.
const byOfficers = "officers"

// pay approves the payment. The house's gas wallet pays for it where the wallet does not itself.
func (w *proposalWork) pay(ctx context.Context, approvedBy string) error {
	if w.p.Network != exchange.Tron {
		if _, found, err := w.gasWallet(ctx, w.p.Network); err != nil || !found {
			if err == nil {
				err = exchange.Errorf(exchange.CodeUnsupported, "The house has no gas wallet on %s that sends what owners sign.", w.p.Network)
			}
			return err
		}
	}
	_, err := w.addPayment(ctx, w.by, &proposalPayment{w}, exchange.ChainPayment{
		Purpose: exchange.ForProposal, ObjectID: w.p.ID, Network: w.p.Network, Amount: w.p.Amount, WalletID: w.p.WalletID, ToAddress: w.p.Destination, HoldID: w.p.HoldID,
		ApprovedBy: approvedBy,
	})
	return err
}

// lapse ends what can't go on, or has it end: what is wanted to end and can, what a switched-off account proposed, what goes to a recipient who is
// not accepted any more, and what is too old. What was sent goes on.
func (w *proposalWork) lapse(ctx context.Context) error {
	if w.p.Ending != "" {
		open, err := w.openPayloads(ctx)
		if err != nil || len(open) > 0 {
			return err
		}
		return w.end(ctx, w.p.Ending, w.p.EndingDetail)
	}
	if w.p.Over() || w.p.Sent() {
		return nil
	}
	var gone, hit bool
	if err := w.Get(ctx, &gone, proposalGone, w.p.ID); err != nil {
		return err
	}
	if err := w.Get(ctx, &hit, proposalHit, w.p.ID); err != nil {
		return err
	}
	pointless, err := w.pointless(ctx)
	if err != nil {
		return err
	}
	switch {
	case pointless:
		return w.want(ctx, exchange.ProposalSuperseded, exchange.DetailPointless)
	case gone:
		return w.want(ctx, exchange.ProposalCancelled, exchange.DetailInactive)
	case hit:
		return w.want(ctx, exchange.ProposalRejected, exchange.DetailHit)
	case !w.now.Before(w.p.ExpiresAt):
		return w.want(ctx, exchange.ProposalExpired, exchange.DetailExpired)
	}
	return nil
}

// want ends a proposal, or has it end as soon as none of its payloads can be executed any more: from now on it takes no signature, no payload and
// no execution by us. CodeStateConflict for one that was sent.
func (w *proposalWork) want(ctx context.Context, to exchange.ProposalStatus, detail string) error {
	open, err := w.openPayloads(ctx)
	if err != nil {
		return err
	}
	if w.p.Sent() {
		return exchange.Errorf(exchange.CodeStateConflict, "The proposal is %s: its transaction may be on the way, so it can't be given up.", w.p.Standing())
	}
	if len(open) == 0 {
		if w.p.Status == exchange.ProposalProposed && to != exchange.ProposalCancelled {
			if err := w.move(ctx, exchange.ProposalApproving, exchange.WaitApproval); err != nil {
				return err
			}
		}
		return w.end(ctx, to, detail)
	}
	if w.p.Ending != "" {
		return nil
	}
	w.p.Ending, w.p.EndingDetail = to, detail
	return w.move(ctx, w.p.Status, exchange.WaitImpossible)
}

// end frees all money of a proposal that moves nothing. CodeStateConflict when a transaction of it may move the money, and the codes of mayGiveUp.
func (w *proposalWork) end(ctx context.Context, to exchange.ProposalStatus, detail string) error {
	if w.p.PaymentID != uuid.Nil {
		p, _, err := w.paymentOf(ctx, exchange.ForProposal, w.p.ID)
		if err == nil && p.Status != exchange.ChainCancelled {
			err = w.abandonPayment(ctx, p.ID, detail, w.by)
		}
		if err != nil {
			return err
		}
	}
	if w.p.HoldID != uuid.Nil {
		w.post.Holds = append(w.post.Holds, exchange.HoldOp{Verb: exchange.HoldRelease, Hold: exchange.Hold{ID: w.p.HoldID}})
	}
	if err := w.endRelease(ctx, exchange.ReleaseProposal, w.p.ID); err != nil {
		return err
	}
	if err := w.releaseLimit(ctx, "multisig_proposal", w.p.ID); err != nil {
		return err
	}
	return w.move(ctx, to, detail)
}

// CancelProposal carries out an intent to give a proposal up, of its proposer or of an officer. Without a payload it is cancelled at once; with one
// it is to end, and ends when the chain proves that no payload can be executed. A cancelled one is returned as it is; CodeStateConflict for one
// that was sent or has ended. The errors of useIntent come before all others.
func (s *Store) CancelProposal(ctx context.Context, id uuid.UUID, a exchange.Asked) (exchange.Proposal, error) {
	return s.workProposal(ctx, id, func(ctx context.Context, w *proposalWork) error {
		if a.IntentID == uuid.Nil {
			return exchange.Errorf(exchange.CodeNotFound, "There is no intent to cancel the proposal.")
		}
		by, done, err := w.act(ctx, a, id, exchange.IntendProposalCancel)
		if err != nil || done || w.p.Status == exchange.ProposalCancelled || w.p.Ending == exchange.ProposalCancelled {
			return err
		}
		if err := w.stillMay(ctx, by); err != nil {
			return err
		}
		detail := exchange.DetailBySender
		if by.UserID != w.p.ProposerID {
			if detail = exchange.DetailByStaff; by.Role != exchange.RoleAdmin && by.Role != exchange.RoleTreasury {
				return exchange.Errorf(exchange.CodeForbidden, "Only its proposer and officers can cancel a proposal.")
			}
		}
		if w.p.Over() || w.p.Ending != "" {
			return exchange.Errorf(exchange.CodeStateConflict, "The proposal has ended, or is to end otherwise.")
		}
		w.by = by
		return w.want(ctx, exchange.ProposalCancelled, detail)
	})
}

// LapseProposal ends a proposal that was not executed within seven days, or has it end when the chain proves that no payload of it can be
// executed. One that has time left, was sent, or is to end already, is returned as it is.
func (s *Store) LapseProposal(ctx context.Context, id uuid.UUID) (exchange.Proposal, error) {
	return s.workProposal(ctx, id, func(ctx context.Context, w *proposalWork) error {
		if w.p.Over() || w.p.Sent() || w.p.Ending != "" || w.now.Before(w.p.ExpiresAt) {
			return nil
		}
		return w.want(ctx, exchange.ProposalExpired, exchange.DetailExpired)
	})
}

// SignProposal calls a proposal ready when enough owners have signed one of its payloads. Every other is returned as it is.
func (s *Store) SignProposal(ctx context.Context, id uuid.UUID) (exchange.Proposal, error) {
	return s.workProposal(ctx, id, func(ctx context.Context, w *proposalWork) error {
		if w.p.Status != exchange.ProposalSigning || w.p.Ending != "" {
			return nil
		}
		y, err := w.signedPayload(ctx)
		if err != nil || y == uuid.Nil {
			return err
		}
		return w.move(ctx, exchange.ProposalReady, exchange.WaitExecution)
	})
}

const readSignedPayload = `SELECT y.id FROM multisig_payloads y WHERE y.proposal_id = $1 AND y.status = 'open' AND payload_signed(y.id) ORDER BY y.n LIMIT 1`

// signedPayload is the first open payload that enough owners signed; zero for none.
func (w *proposalWork) signedPayload(ctx context.Context) (uuid.UUID, error) {
	id, _, err := readFound[uuid.UUID](ctx, w, readSignedPayload, w.p.ID)
	return id, err
}
