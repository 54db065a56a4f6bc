package store

import (
	"context"
	"crypto/sha256"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Decisions about refunds in crypto. They are proven like those about transfers: by a token that the API issued to one
// officer for one decision about exactly the refund's terms.

// IssueRefundTicket gives an officer the right to one decision about one refund in crypto. CodeInvalid when the digest
// or amount is not the refund's, CodeForbidden when the officer requested it, gave its address or is a party to its
// order, CodeStateConflict when the refund waits for no decision, CodeConflict when the officer has already decided
// about its present terms. A repeated call with the same ticket changes nothing.
func (s *Store) IssueRefundTicket(ctx context.Context, k exchange.ApprovalTicket, by exchange.Principal) (exchange.Refund, error) {
	var about exchange.Refund
	err := s.inTx(ctx, "refund", func(t unitTx) error {
		if k.ObjectType != exchange.ApproveRefund || !k.Action.Valid() {
			return exchange.Errorf(exchange.CodeInternal, "a %s has no refund approvals", k.ObjectType)
		}
		o, f, err := t.lockedCryptoRefund(ctx, k.ObjectID)
		if err != nil {
			return err
		}
		about = f
		if known, err := t.knownTicket(ctx, k); err != nil || known {
			return err
		}
		if err := t.mayDecideRefund(ctx, o, f, k.OfficerID); err != nil {
			return err
		}
		if err := require(k.Digest == f.Digest, "/digest", "mismatch", "must be the refund's current digest"); err != nil {
			return err
		}
		if err := require(k.Amount.Equal(f.Amount), "/amount", "mismatch", "must be the refund's amount"); err != nil {
			return err
		}
		err = t.One(ctx, insertTicket, k.ID, k.TokenHash[:], k.OfficerID, k.ObjectType, k.ObjectID, k.Action, k.Amount.Asset(), k.Amount.Decimal(),
			k.Digest, k.Channel, k.Note, k.CreatedAt, k.ExpiresAt)
		if err != nil {
			return err
		}
		return t.audit(ctx, by, "refund."+string(k.Action)+"_token_issued", "refund", f.ID, nil,
			map[string]any{"token_id": k.ID, "channel": k.Channel, "expires_at": k.ExpiresAt})
	})
	return about, err
}

const claimDismissedBy = `SELECT coalesce(dismissed_by = $2, false) FROM refunds WHERE id = $1`

const refundDecidedBy = `SELECT EXISTS (SELECT FROM approvals WHERE object_type = 'refund' AND object_id = $1 AND officer_id = $2 AND digest = $3)`

// mayDecideRefund refuses an officer who is involved in the refund, may not decide about refunds, or has already
// decided.
func (t unitTx) mayDecideRefund(ctx context.Context, o exchange.Order, f exchange.Refund, officer uuid.UUID) error {
	var u exchange.User
	if err := t.Get(ctx, &u, readUser, officer); err != nil {
		return translate(err, "officer")
	}
	switch {
	case !u.IsActive || exchange.ScopeOf(u.Role, exchange.ActApprove) != exchange.ScopeAny:
		return exchange.Errorf(exchange.CodeForbidden, "Only an active officer can decide about refunds.")
	case officer == f.RequestedBy, officer == f.AddressedBy:
		return exchange.Errorf(exchange.CodeForbidden, "An officer who requested a refund or gave its address can't decide about it.")
	case officer == o.CustomerID, officer == o.VendorID:
		return exchange.Errorf(exchange.CodeForbidden, "You can't decide about your own order.")
	}
	var dismissed, twice bool
	if err := t.Get(ctx, &dismissed, claimDismissedBy, f.ID, officer); err != nil {
		return err
	}
	if dismissed {
		return exchange.Errorf(exchange.CodeForbidden, "The officer who dismissed the claim that the payee was paid can't decide about the refund.")
	}
	if err := t.Get(ctx, &twice, refundDecidedBy, f.ID, officer, f.Digest); err != nil {
		return err
	}
	if twice {
		return exchange.Errorf(exchange.CodeConflict, "You have already decided about this refund. Another officer has to decide.")
	}
	open := f.Status == exchange.RefundPending || f.Status == exchange.RefundNeedsReview
	if !open || f.Address == "" {
		return exchange.Errorf(exchange.CodeStateConflict, "A refund that is %s, or has no address yet, can't be decided.", f.Status)
	}
	return nil
}

const insertRefundApproval = `
INSERT INTO approvals (id, token_id, object_type, object_id, officer_id, requester_id, action, digest, created_at)
VALUES ($1, $2, 'refund', $3, $4, $5, $6, $7, $8)`

// DecideRefund proves a token, uses it up, and counts its decision about a refund in crypto. The token alone
// identifies the officer. One refusal stops the refund; it may then go to another address. A repeated call with a
// counted token returns the refund's standing. CodeNotFound for a token that is unknown or was issued for another
// object, action or address, CodeExpired for an expired one, otherwise the codes of IssueRefundTicket.
func (s *Store) DecideRefund(ctx context.Context, refundID uuid.UUID, token string, action exchange.ApprovalAction) (exchange.RefundStanding, error) {
	hash := sha256.Sum256([]byte(token))
	return change(ctx, s, "refund", refundID, func(ctx context.Context, t unitTx) (exchange.RefundStanding, exchange.Posting, error) {
		out, err := t.decideRefund(ctx, refundID, hash[:], action)
		return out, exchange.Posting{}, err
	})
}

func (t unitTx) decideRefund(ctx context.Context, refundID uuid.UUID, hash []byte, action exchange.ApprovalAction) (exchange.RefundStanding, error) {
	var none exchange.RefundStanding
	o, f, err := t.lockedCryptoRefund(ctx, refundID)
	if err != nil {
		return none, err
	}
	var found []ticketRow
	if err := t.All(ctx, &found, lockTicket, hash); err != nil {
		return none, err
	}
	if len(found) == 0 || found[0].ObjectID != f.ID || found[0].ObjectType != exchange.ApproveRefund || found[0].Action != action {
		return none, exchange.Errorf(exchange.CodeNotFound, "The approval token is unknown, or was issued for another refund or action.")
	}
	k := found[0]
	if k.UsedAt.Valid {
		var counted bool
		if err := t.Get(ctx, &counted, readApprovalOfTicket, k.ID); err != nil {
			return none, err
		}
		if !counted {
			return none, exchange.Errorf(exchange.CodeStateConflict, "The approval token was already used.")
		}
		return t.standing(ctx, f)
	}
	if !t.s.now().Before(k.ExpiresAt) {
		return none, exchange.Errorf(exchange.CodeExpired, "The approval token has expired. Request another one.")
	}
	if k.Digest != f.Digest || k.Digest != f.Intent() || k.Asset != f.Amount.Asset() || !k.Amount.Equal(f.Amount.Decimal()) {
		return none, exchange.Errorf(exchange.CodeNotFound, "The approval token is unknown, or was issued for another refund or action.")
	}
	if err := t.mayDecideRefund(ctx, o, f, k.OfficerID); err != nil {
		return none, err
	}
	if err := t.countRefund(ctx, f, k); err != nil {
		return none, err
	}
	if action == exchange.Reject && f.Status == exchange.RefundPending {
		if f, err = t.moveRefund(ctx, o, f, exchange.RefundNeedsReview, exchange.RefundRejected, "", uuid.Nil, flow); err != nil {
			return none, err
		}
	}
	return t.standing(ctx, f)
}

// countRefund uses up a proven token.
func (t unitTx) countRefund(ctx context.Context, f exchange.Refund, k ticketRow) error {
	now := t.s.now()
	if err := t.One(ctx, useTicket, k.ID, now); err != nil {
		return err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	if err := t.One(ctx, insertRefundApproval, id, k.ID, f.ID, k.OfficerID, nullID(f.RequestedBy), k.Action, f.Digest, now); err != nil {
		return err
	}
	var u exchange.User
	if err := t.Get(ctx, &u, readUser, k.OfficerID); err != nil {
		return translate(err, "officer")
	}
	by := exchange.Principal{UserID: u.ID, Role: u.Role, RequestID: "approval:" + id.String()}
	return t.audit(ctx, by, "refund."+k.Action.Done(), "refund", f.ID, nil, map[string]any{
		"approval_id": id, "token_id": k.ID, "channel": k.Channel, "digest": f.Digest, "note": k.Note,
	})
}

// RecordRefusedRefundDecision records an attempt to decide about a refund without the right to. It stores nothing else
// of the request.
func (s *Store) RecordRefusedRefundDecision(ctx context.Context, refundID uuid.UUID, action exchange.ApprovalAction, channel exchange.ApprovalChannel, code exchange.Code) error {
	return s.inTx(ctx, "refund", func(t unitTx) error {
		return t.audit(ctx, flow, "refund.decision_refused", "refund", refundID, nil, map[string]any{"action": action, "channel": channel, "code": code})
	})
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
