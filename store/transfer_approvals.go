package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const ticketColumns = `id, officer_id, object_type, object_id, action, asset, amount, digest, channel, note, created_at, expires_at, used_at`

// ticketRow is a row of approval_tokens.
type ticketRow struct {
	ID         uuid.UUID
	OfficerID  uuid.UUID
	ObjectType exchange.ApprovalObject
	ObjectID   uuid.UUID
	Action     exchange.ApprovalAction
	Asset      money.Asset
	Amount     decimal.Decimal
	Digest     string
	Channel    exchange.ApprovalChannel
	Note       string
	CreatedAt  time.Time
	ExpiresAt  time.Time
	UsedAt     sql.NullTime
}

const insertTicket = `
INSERT INTO approval_tokens (id, token_hash, officer_id, object_type, object_id, action, asset, amount, digest, channel, note, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

// IssueTicket gives an officer the right to one decision about one transfer. CodeInvalid when the digest or amount is
// not the transfer's, CodeForbidden when the officer requested the transfer, CodeStateConflict when the transfer waits
// for no decision, CodeConflict when the officer has already decided. A repeated call with the same ticket changes
// nothing, whatever its state.
func (s *Store) IssueTicket(ctx context.Context, k exchange.ApprovalTicket, by exchange.Principal) (exchange.Transfer, error) {
	var about exchange.Transfer
	err := s.inTx(ctx, "transfer", func(t unitTx) error {
		var f exchange.Transfer
		if err := t.Get(ctx, &f, readTransfer, k.ObjectID); err != nil {
			return err
		}
		if known, err := t.knownTicket(ctx, k); err != nil || known {
			about = f
			return err
		}
		if about = f; k.ObjectType != exchange.ApproveTransfer || !k.Action.Valid() {
			return exchange.Errorf(exchange.CodeInternal, "a %s has no approvals", k.ObjectType)
		}
		if err := t.mayDecide(ctx, f, k.OfficerID); err != nil {
			return err
		}
		if err := require(k.Digest == f.Digest, "/digest", "mismatch", "must be the transfer's current digest"); err != nil {
			return err
		}
		if err := require(k.Amount.Equal(f.Amount), "/amount", "mismatch", "must be the transfer's amount"); err != nil {
			return err
		}
		err := t.One(ctx, insertTicket, k.ID, k.TokenHash[:], k.OfficerID, k.ObjectType, k.ObjectID, k.Action, k.Amount.Asset(), k.Amount.Decimal(),
			k.Digest, k.Channel, k.Note, k.CreatedAt, k.ExpiresAt)
		if err != nil {
			return err
		}
		return t.audit(ctx, by, "transfer."+string(k.Action)+"_token_issued", "transfer", f.ID, nil,
			map[string]any{"token_id": k.ID, "channel": k.Channel, "expires_at": k.ExpiresAt})
	})
	return about, err
}

const readTicket = `SELECT token_hash, officer_id, object_id, action FROM approval_tokens WHERE id = $1`

// knownTicket reports whether exactly this ticket was issued before. Another ticket with its id is a conflict.
func (t unitTx) knownTicket(ctx context.Context, k exchange.ApprovalTicket) (bool, error) {
	var old []struct {
		TokenHash []byte
		OfficerID uuid.UUID
		ObjectID  uuid.UUID
		Action    exchange.ApprovalAction
	}
	if err := t.All(ctx, &old, readTicket, k.ID); err != nil || len(old) == 0 {
		return false, err
	}
	o := old[0]
	if !bytes.Equal(o.TokenHash, k.TokenHash[:]) || o.OfficerID != k.OfficerID || o.ObjectID != k.ObjectID || o.Action != k.Action {
		return false, exchange.Errorf(exchange.CodeConflict, "The id belongs to another approval token.")
	}
	return true, nil
}

// TicketCounted reports whether the decision of a ticket was counted.
func (s *Store) TicketCounted(ctx context.Context, id uuid.UUID) (bool, error) {
	var counted bool
	err := s.db.Get(ctx, &counted, readApprovalOfTicket, id)
	return counted, translate(err, "approval")
}

const decidedBy = `SELECT EXISTS (SELECT FROM approvals WHERE object_type = 'transfer' AND object_id = $1 AND officer_id = $2)`

// mayDecide refuses an officer who requested the transfer, may not decide about transfers, or has already decided.
func (t unitTx) mayDecide(ctx context.Context, f exchange.Transfer, officer uuid.UUID) error {
	var u exchange.User
	if err := t.Get(ctx, &u, readUser, officer); err != nil {
		return translate(err, "officer")
	}
	if !u.IsActive || exchange.ScopeOf(u.Role, exchange.ActApprove) != exchange.ScopeAny {
		return exchange.Errorf(exchange.CodeForbidden, "Only an active officer can decide about transfers.")
	}
	if f.RequestedBy == officer {
		return exchange.Errorf(exchange.CodeForbidden, "The requester of a transfer can't decide about it.")
	}
	var twice bool
	if err := t.Get(ctx, &twice, decidedBy, f.ID, officer); err != nil {
		return err
	}
	if twice {
		return exchange.Errorf(exchange.CodeConflict, "You have already decided about this transfer. Another officer has to decide.")
	}
	if f.Status != exchange.TransferPending {
		return exchange.Errorf(exchange.CodeStateConflict, "A transfer that is %s can't be decided.", f.Status)
	}
	return nil
}

const lockTicket = `SELECT ` + ticketColumns + ` FROM approval_tokens WHERE token_hash = $1 FOR UPDATE`

const useTicket = `UPDATE approval_tokens SET used_at = $2 WHERE id = $1 AND used_at IS NULL`

const readApprovalOfTicket = `SELECT EXISTS (SELECT FROM approvals WHERE token_id = $1)`

const insertApproval = `
INSERT INTO approvals (id, token_id, object_type, object_id, officer_id, requester_id, action, digest, created_at)
VALUES ($1, $2, 'transfer', $3, $4, $5, $6, $7, $8)`

// Decide proves a token and applies its decision in one transaction: it uses up the token, counts the decision, and
// moves the transfer when that was the last decision needed. The token alone identifies the officer. A repeated call
// with a counted token returns the current transfer. CodeNotFound for a token that is unknown or was issued for
// another object or action, CodeExpired for an expired one, otherwise the codes of IssueTicket.
func (s *Store) Decide(ctx context.Context, transferID uuid.UUID, token string, action exchange.ApprovalAction) (exchange.Transfer, error) {
	hash := sha256.Sum256([]byte(token))
	return s.stepTransfer(ctx, transferID, func(ctx context.Context, t unitTx, f exchange.Transfer) (exchange.Transfer, exchange.Posting, error) {
		var none exchange.Posting
		var found []ticketRow
		if err := t.All(ctx, &found, lockTicket, hash[:]); err != nil {
			return f, none, err
		}
		if len(found) == 0 || found[0].ObjectID != f.ID || found[0].ObjectType != exchange.ApproveTransfer || found[0].Action != action {
			return f, none, exchange.Errorf(exchange.CodeNotFound, "The approval token is unknown, or was issued for another transfer or action.")
		}
		k := found[0]
		if k.UsedAt.Valid {
			var counted bool
			if err := t.Get(ctx, &counted, readApprovalOfTicket, k.ID); err != nil || counted {
				return f, none, err
			}
			return f, none, exchange.Errorf(exchange.CodeStateConflict, "The approval token was already used.")
		}
		now := t.s.now()
		if !now.Before(k.ExpiresAt) {
			return f, none, exchange.Errorf(exchange.CodeExpired, "The approval token has expired. Request another one.")
		}
		if k.Digest != f.Digest || k.Digest != f.Intent() || k.Asset != f.Amount.Asset() || !k.Amount.Equal(f.Amount.Decimal()) {
			return f, none, exchange.Errorf(exchange.CodeNotFound, "The approval token is unknown, or was issued for another transfer or action.")
		}
		if err := t.mayDecide(ctx, f, k.OfficerID); err != nil {
			return f, none, err
		}
		return t.count(ctx, f, k)
	})
}

// count uses up a proven token and moves its transfer.
func (t unitTx) count(ctx context.Context, f exchange.Transfer, k ticketRow) (exchange.Transfer, exchange.Posting, error) {
	var none exchange.Posting
	now := t.s.now()
	if err := t.One(ctx, useTicket, k.ID, now); err != nil {
		return f, none, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return f, none, err
	}
	if err := t.One(ctx, insertApproval, id, k.ID, f.ID, k.OfficerID, f.RequestedBy, k.Action, f.Digest, now); err != nil {
		return f, none, err
	}
	var u exchange.User
	if err := t.Get(ctx, &u, readUser, k.OfficerID); err != nil {
		return f, none, translate(err, "officer")
	}
	by := exchange.Principal{UserID: u.ID, Role: u.Role, RequestID: "approval:" + id.String()}
	err = t.audit(ctx, by, "transfer."+k.Action.Done(), "transfer", f.ID, nil, map[string]any{
		"approval_id": id, "token_id": k.ID, "channel": k.Channel, "digest": f.Digest, "note": k.Note,
	})
	if err != nil {
		return f, none, err
	}
	if k.Action == exchange.Reject {
		return t.endTransfer(ctx, f, exchange.TransferRejected, exchange.DetailRejected, by)
	}
	if f.Approvals++; f.Approvals < f.ApprovalsRequired {
		before := f
		f.StatusDetail = exchange.WaitSecond
		f, err = t.saveTransfer(ctx, "transfer.approval_counted", by, before, f)
		return f, none, err
	}
	return t.queueTransfer(ctx, by, f)
}

// RecordRefusedDecision records an attempt to decide about a transfer without the right to: its action and the code it
// was refused with. It stores nothing else of the request.
func (s *Store) RecordRefusedDecision(ctx context.Context, transferID uuid.UUID, action exchange.ApprovalAction, channel exchange.ApprovalChannel, code exchange.Code) error {
	return s.inTx(ctx, "transfer", func(t unitTx) error {
		return t.audit(ctx, flow, "transfer.decision_refused", "transfer", transferID, nil, map[string]any{"action": action, "channel": channel, "code": code})
	})
}

// PendingApprovals pages through the transfers that the officer may decide about, oldest first, with their number:
// those requested by others that the officer has not decided yet.
func (s *Store) PendingApprovals(ctx context.Context, officer uuid.UUID, p Page) ([]exchange.Transfer, int, error) {
	var w where
	w.add(`f.status = 'pending_approval'`)
	w.add(`f.requested_by <> ?`, officer)
	w.add(`NOT EXISTS (SELECT FROM approvals a WHERE a.object_type = 'transfer' AND a.object_id = f.id AND a.officer_id = ?)`, officer)
	var rows []exchange.Transfer
	total, err := s.page(ctx, &rows, list{columns: transferColumns, from: "transfers f", where: w, order: "f.created_at, f.id"}, p)
	if err != nil {
		return nil, 0, translate(err, "transfer")
	}
	return rows, total, nil
}
