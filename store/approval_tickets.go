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

// Officers decide about an object with tokens. The API issues a token to one officer for one decision about exactly the
// object's terms. Proving it uses it up and counts the decision. What follows from a decision is the object's own.

// decidable is a locked object that officers decide about.
type decidable struct {
	object    exchange.ApprovalObject
	id        uuid.UUID
	requester uuid.UUID // zero where the house itself asks
	amount    money.Amount
	digest    string // of its terms, as stored
	intent    string // the digest as it follows from its other fields
	// involved refuses an officer who takes part in the object, and open a decision that it does not wait for.
	involved func(ctx context.Context, officer uuid.UUID) error
	open     func() error
	// again reports whether the decision of an officer who made it already is one too many, or refuses it. Nil: it is.
	again func(ctx context.Context, officer uuid.UUID) (bool, error)
}

// matches reports whether a ticket is for the object's present terms.
func (d decidable) matches(k ticketRow) bool {
	return k.Digest == d.digest && k.Digest == d.intent && k.Asset == d.amount.Asset() && k.Amount.Equal(d.amount.Decimal())
}

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

// issueTicket gives an officer the right to one decision. CodeInvalid when the digest or amount is not the object's,
// otherwise the codes of mayDecide. A repeated call with the same ticket changes nothing, whatever the object's state.
func (t unitTx) issueTicket(ctx context.Context, d decidable, k exchange.ApprovalTicket, by exchange.Principal) error {
	if known, err := t.knownTicket(ctx, k); err != nil || known {
		return err
	}
	if k.ObjectType != d.object || !k.Action.Valid() {
		return exchange.Errorf(exchange.CodeInternal, "a ticket about a %s is not for a %s", k.ObjectType, d.object)
	}
	if err := t.mayDecide(ctx, d, k.OfficerID); err != nil {
		return err
	}
	if err := require(k.Digest == d.digest, "/digest", "mismatch", d.digestWanted()); err != nil {
		return err
	}
	if err := require(k.Amount.Equal(d.amount), "/amount", "mismatch", "must be the "+string(d.object)+"'s amount"); err != nil {
		return err
	}
	err := t.One(ctx, insertTicket, k.ID, k.TokenHash[:], k.OfficerID, k.ObjectType, k.ObjectID, k.Action, k.Amount.Asset(), k.Amount.Decimal(),
		k.Digest, k.Channel, k.Note, k.CreatedAt, k.ExpiresAt)
	if err != nil {
		return err
	}
	return t.audit(ctx, by, string(d.object)+"."+string(k.Action)+"_token_issued", string(d.object), d.id, nil,
		map[string]any{"token_id": k.ID, "channel": k.Channel, "expires_at": k.ExpiresAt})
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

// digestWanted is the rule of the digest in a request. That of a payload has a name of its own, because owners sign another one.
func (d decidable) digestWanted() string {
	if d.object == exchange.ApprovePayload {
		return "must be the confirmation_digest of the payload"
	}
	return "must be the " + string(d.object) + "'s current digest"
}

// TicketCounted reports whether the decision of a ticket was counted.
func (s *Store) TicketCounted(ctx context.Context, id uuid.UUID) (bool, error) {
	return readOne[bool](ctx, s.db, "approval", readApprovalOfTicket, id)
}

const decidedBy = `SELECT EXISTS (SELECT FROM approvals WHERE object_type = $1 AND object_id = $2 AND officer_id = $3 AND digest = $4)`

// mayDecide refuses an officer with CodeForbidden who may not decide at all or is involved in the object, with CodeConflict
// who has already decided about its present terms, and every officer while it waits for no decision.
func (t unitTx) mayDecide(ctx context.Context, d decidable, officer uuid.UUID) error {
	u, err := readOne[exchange.User](ctx, t, "officer", readUser, officer)
	if err != nil {
		return err
	}
	if !u.IsActive || exchange.ScopeOf(u.Role, exchange.ActApprove) != exchange.ScopeAny {
		return exchange.Errorf(exchange.CodeForbidden, "Only an active officer can decide about %ss.", d.object)
	}
	if err := d.involved(ctx, officer); err != nil {
		return err
	}
	var twice bool
	if err := t.Get(ctx, &twice, decidedBy, d.object, d.id, officer, d.digest); err != nil {
		return err
	}
	if twice && d.again != nil {
		if twice, err = d.again(ctx, officer); err != nil {
			return err
		}
	}
	if twice {
		return exchange.Errorf(exchange.CodeConflict, "You have already decided about this %s. Another officer has to decide.", d.object)
	}
	return d.open()
}

const lockTicket = `SELECT ` + ticketColumns + ` FROM approval_tokens WHERE token_hash = $1 FOR UPDATE`

// provenTicket finds the ticket of a token and checks it against the object. counted reports that its decision counts
// already. CodeNotFound for a token that is unknown or was issued for another object, action or terms, CodeExpired for an
// expired one, otherwise the codes of mayDecide.
func (t unitTx) provenTicket(ctx context.Context, d decidable, token string, action exchange.ApprovalAction) (k ticketRow, counted bool, err error) {
	hash := sha256.Sum256([]byte(token))
	k, found, err := readFound[ticketRow](ctx, t, lockTicket, hash[:])
	if err != nil {
		return k, false, err
	}
	unknown := exchange.Errorf(exchange.CodeNotFound, "The approval token is unknown, or was issued for another %s or action.", d.object)
	if !found || k.ObjectID != d.id || k.ObjectType != d.object || k.Action != action {
		return k, false, unknown
	}
	if k.UsedAt.Valid {
		if err := t.Get(ctx, &counted, readApprovalOfTicket, k.ID); err != nil || counted {
			return k, counted, err
		}
		return k, false, exchange.Errorf(exchange.CodeStateConflict, "The approval token was already used.")
	}
	if !t.s.now().Before(k.ExpiresAt) {
		return k, false, exchange.Errorf(exchange.CodeExpired, "The approval token has expired. Request another one.")
	}
	if !d.matches(k) {
		return k, false, unknown
	}
	return k, false, t.mayDecide(ctx, d, k.OfficerID)
}

const useTicket = `UPDATE approval_tokens SET used_at = $2 WHERE id = $1 AND used_at IS NULL`

const readApprovalOfTicket = `SELECT EXISTS (SELECT FROM approvals WHERE token_id = $1)`

const insertApproval = `
INSERT INTO approvals (id, token_id, object_type, object_id, officer_id, requester_id, action, digest, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

// countTicket uses up a proven ticket and stores its decision. It returns the officer.
func (t unitTx) countTicket(ctx context.Context, d decidable, k ticketRow) (exchange.Principal, error) {
	now := t.s.now()
	if err := t.One(ctx, useTicket, k.ID, now); err != nil {
		return exchange.Principal{}, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return exchange.Principal{}, err
	}
	if err := t.One(ctx, insertApproval, id, k.ID, d.object, d.id, k.OfficerID, nullID(d.requester), k.Action, d.digest, now); err != nil {
		return exchange.Principal{}, err
	}
	u, err := readOne[exchange.User](ctx, t, "officer", readUser, k.OfficerID)
	if err != nil {
		return exchange.Principal{}, err
	}
	by := exchange.Principal{UserID: u.ID, Role: u.Role, RequestID: "approval:" + id.String()}
	return by, t.audit(ctx, by, string(d.object)+"."+k.Action.Done(), string(d.object), d.id, nil, map[string]any{
		"approval_id": id, "token_id": k.ID, "channel": k.Channel, "digest": d.digest, "note": k.Note,
	})
}

// RecordRefusedDecision records an attempt to decide about an object without the right to: its action and the code it was
// refused with. It stores nothing else of the request.
func (s *Store) RecordRefusedDecision(
	ctx context.Context, object exchange.ApprovalObject, id uuid.UUID, action exchange.ApprovalAction, channel exchange.ApprovalChannel, code exchange.Code,
) error {
	return s.inTx(ctx, string(object), func(t unitTx) error {
		return t.audit(ctx, flow, string(object)+".decision_refused", string(object), id, nil, map[string]any{"action": action, "channel": channel, "code": code})
	})
}
