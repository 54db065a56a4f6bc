package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const claimDismissedBy = `SELECT coalesce(dismissed_by = $2, false) FROM refunds WHERE id = $1`

// decidableRefund is a locked refund in crypto as officers decide about it.
func (t unitTx) decidableRefund(o exchange.Order, f exchange.Refund) decidable {
	return decidable{
		object: exchange.ApproveRefund, id: f.ID, requester: f.RequestedBy, amount: f.Amount, digest: f.Digest, intent: f.Intent(),
		involved: func(ctx context.Context, officer uuid.UUID) error {
			switch officer {
			case f.RequestedBy, f.AddressedBy:
				return exchange.Errorf(exchange.CodeForbidden, "An officer who requested a refund or gave its address can't decide about it.")
			case o.CustomerID, o.VendorID:
				return exchange.Errorf(exchange.CodeForbidden, "You can't decide about your own order.")
			}
			var dismissed bool
			err := t.Get(ctx, &dismissed, claimDismissedBy, f.ID, officer)
			if err == nil && dismissed {
				err = exchange.Errorf(exchange.CodeForbidden, "The officer who dismissed the claim that the payee was paid can't decide about the refund.")
			}
			return err
		},
		open: func() error {
			if (f.Status != exchange.RefundPending && f.Status != exchange.RefundNeedsReview) || f.Address == "" {
				return exchange.Errorf(exchange.CodeStateConflict, "A refund that is %s, or has no address yet, can't be decided.", f.Status)
			}
			return nil
		},
	}
}

// IssueRefundTicket gives an officer the right to one decision about one refund in crypto, see issueTicket.
func (s *Store) IssueRefundTicket(ctx context.Context, k exchange.ApprovalTicket, by exchange.Principal) (exchange.Refund, error) {
	var about exchange.Refund
	err := s.inTx(ctx, "refund", func(t unitTx) error {
		o, f, err := t.lockedCryptoRefund(ctx, k.ObjectID)
		if err != nil {
			return err
		}
		about = f
		return t.issueTicket(ctx, t.decidableRefund(o, f), k, by)
	})
	return about, err
}

// DecideRefund proves a token and counts its decision about a refund in crypto. The token alone identifies the officer. One
// refusal stops the refund; it may then go to another address. A repeated call with a counted token returns the refund's
// standing. The codes are those of provenTicket.
func (s *Store) DecideRefund(ctx context.Context, refundID uuid.UUID, token string, action exchange.ApprovalAction) (exchange.RefundStanding, error) {
	return change(ctx, s, "refund", refundID, func(ctx context.Context, t unitTx) (exchange.RefundStanding, exchange.Posting, error) {
		out, err := t.decideRefund(ctx, refundID, token, action)
		return out, exchange.Posting{}, err
	})
}

func (t unitTx) decideRefund(ctx context.Context, refundID uuid.UUID, token string, action exchange.ApprovalAction) (exchange.RefundStanding, error) {
	var none exchange.RefundStanding
	o, f, err := t.lockedCryptoRefund(ctx, refundID)
	if err != nil {
		return none, err
	}
	d := t.decidableRefund(o, f)
	k, counted, err := t.provenTicket(ctx, d, token, action)
	if err != nil {
		return none, err
	}
	if counted {
		return t.standing(ctx, f)
	}
	if _, err := t.countTicket(ctx, d, k); err != nil {
		return none, err
	}
	if action == exchange.Reject && f.Status == exchange.RefundPending {
		if f, err = t.moveRefund(ctx, o, f, exchange.RefundNeedsReview, exchange.RefundRejected, "", uuid.Nil, flow); err != nil {
			return none, err
		}
	}
	return t.standing(ctx, f)
}

const clearClaim = `
UPDATE refunds SET detail = '', dismissed_by = $4, updated_at = $2, version = version + 1
WHERE id = $1 AND version = $3 AND status = 'needs_review' AND detail = 'payout_claimed' RETURNING ` + refundColumns

// DismissClaim lets a refund continue despite an unproven claim that the payee was paid. The payout stays doubted:
// another officer has to approve. If a payout did pay, the refund still waits.
func (s *Store) DismissClaim(ctx context.Context, refundID uuid.UUID, by exchange.Principal) (exchange.RefundStanding, error) {
	return change(ctx, s, "refund", refundID, func(ctx context.Context, t unitTx) (exchange.RefundStanding, exchange.Posting, error) {
		var none exchange.Posting
		o, before, err := t.lockedCryptoRefund(ctx, refundID)
		if err != nil {
			return exchange.RefundStanding{}, none, err
		}
		f := before
		if before.Status == exchange.RefundNeedsReview && before.Detail == string(exchange.RefundWaitsClaim) {
			var r exchange.Refund
			if err := t.Get(ctx, &r, clearClaim, refundID, t.s.now(), before.Version, nullID(by.UserID)); err != nil {
				return exchange.RefundStanding{}, none, err
			}
			f = r
			err = t.record(ctx, auditEvent{
				by: by, object: "refund", id: f.ID, name: "refund.claim_dismissed", owner: o.CustomerID, vendor: o.VendorID,
				before: refundSnapshot(before, before.Detail), after: refundSnapshot(f, f.Detail),
			})
			if err != nil {
				return exchange.RefundStanding{}, none, err
			}
		}
		out, err := t.standing(ctx, f)
		return out, none, err
	})
}
