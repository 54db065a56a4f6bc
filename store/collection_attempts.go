package store

import (
	"context"
	"crypto/sha256"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/store/pg"
)

// An attempt that pays a refund belongs to the refund's order.
const attemptColumns = `id, direction, object_type AS "object.type", object_id AS "object.id",
	coalesce(order_id, (SELECT r.order_id FROM refunds r WHERE r.id = refund_id)) AS order_id, provider, status, soft, amount||' '||asset AS amount, '' AS callback_token, '' AS status_token, phone, reference, merchant_request_id,
	checkout_request_id, conversation_id, result_code, result_class, result_text, receipt, moved||' '||asset AS moved, workflow_id, created_at, submitted_at, settled_at, version`

func attemptSnapshot(a exchange.PaymentAttempt) map[string]any {
	return map[string]any{
		"id": a.ID, "direction": a.Direction, "object_type": a.Object.Type, "object_id": a.Object.ID,
		"order_id": nullID(a.OrderID), "refund_id": nullID(a.Object.RefundID()), "provider": a.Provider,
		"status": a.Status, "amount": a.Amount.String(), "currency": a.Amount.Asset(), "phone_number": a.Phone.String(),
		"result_code": a.ResultCode, "result_class": a.ResultClass, "receipt": a.Receipt, "moved": a.Moved.String(), "version": a.Version,
	}
}

// momoObject is a locked object that mobile money is collected or paid out for.
type momoObject interface {
	// parties are the owner and the master merchant who may read the events of its attempts; zero for none.
	parties() (owner, vendor uuid.UUID)
}

// recordAttempt appends an event of an attempt, visible to the parties of its object.
func (t unitTx) recordAttempt(ctx context.Context, name string, x momoObject, a exchange.PaymentAttempt) error {
	owner, vendor := x.parties()
	return t.record(ctx, auditEvent{by: flow, object: "payment_attempt", id: a.ID, name: "payment_attempt." + name, owner: owner, vendor: vendor, after: attemptSnapshot(a)})
}

const readAttempt = `SELECT ` + attemptColumns + ` FROM payment_attempts WHERE id = $1`

const insertAttempt = `
INSERT INTO payment_attempts (id, direction, object_type, object_id, provider, status, asset, amount, phone, reference, token_hash, status_token_hash, workflow_id, hold_id, created_at)
VALUES ($1, $2, $3, $4, $5, 'created', $6, $7, $8, $9, $10, $11, $12, $13, $14) RETURNING ` + attemptColumns

// begun is what BeginCollection returns.
type begun struct {
	attempt exchange.PaymentAttempt
	created bool
}

// BeginCollection stores an attempt to collect what an object wants before the request to the provider. A repeated call
// with the same id returns the existing attempt. CodeStateConflict when the object does not wait for a payment,
// CodeConflict while another attempt of it may still move money. A phone that has reached its limit of prompts gets none,
// and neither does any while the database is not released: the attempt is stored as refused with the code PromptLimit or
// PromptMoved, and counts as not created by this call. The callback token
// is stored as a hash, so only the creating call returns it.
func (s *Store) BeginCollection(ctx context.Context, of exchange.MomoObject, a exchange.PaymentAttempt) (exchange.PaymentAttempt, bool, error) {
	b, err := change(ctx, s, "payment attempt", of.ID, func(ctx context.Context, t unitTx) (begun, exchange.Posting, error) {
		var none exchange.Posting
		x, err := t.lockedCollectionObject(ctx, of)
		if err != nil {
			return begun{}, none, err
		}
		want := x.wants()
		a.Direction, a.Object, a.Amount, a.Phone, a.Reference = exchange.Collection, of, want.Amount, want.Phone, want.Reference
		old, found, err := t.beganBefore(ctx, a)
		if err != nil || found {
			return begun{attempt: old}, none, err
		}
		if !want.Waits {
			return begun{}, none, exchange.Errorf(exchange.CodeStateConflict, "The %s is %s and can't take a payment.", of.Type, want.Status)
		}
		if want.ByHand {
			awaited, err := t.awaitPayer(ctx, x, a)
			return begun{awaited, true}, none, err
		}
		n, err := t.prompts(ctx, a.Phone)
		if err != nil {
			return begun{}, none, err
		}
		created, err := t.insertAttempt(ctx, a, uuid.Nil)
		if err != nil {
			return begun{}, none, err
		}
		released, err := t.released(ctx)
		switch {
		case err != nil:
			return begun{}, none, err
		case !released:
			refused, err := t.unsent(ctx, x, created, PromptMoved, "the database is another one than before")
			return begun{attempt: refused}, none, err
		case n >= s.limits.PromptsPerPhone:
			refused, err := t.unsent(ctx, x, created, PromptLimit, "the phone has reached the limit of prompts")
			return begun{attempt: refused}, none, err
		}
		return begun{created, true}, none, t.recordAttempt(ctx, "created", x, created)
	})
	return b.attempt, b.created, err
}

// beganBefore finds the attempt that an earlier identical call stored.
func (t unitTx) beganBefore(ctx context.Context, a exchange.PaymentAttempt) (exchange.PaymentAttempt, bool, error) {
	var rows []exchange.PaymentAttempt
	if err := t.All(ctx, &rows, readAttempt, a.ID); err != nil || len(rows) == 0 {
		return exchange.PaymentAttempt{}, false, err
	}
	old := rows[0]
	var err error
	if old.Object != a.Object || old.Direction != a.Direction || !old.Amount.Equal(a.Amount) {
		err = exchange.Errorf(exchange.CodeConflict, "The id belongs to another payment attempt.")
	}
	return old, true, err
}

func (t unitTx) insertAttempt(ctx context.Context, a exchange.PaymentAttempt, hold uuid.UUID) (exchange.PaymentAttempt, error) {
	var r exchange.PaymentAttempt
	err := t.Get(ctx, &r, insertAttempt, a.ID, a.Direction, a.Object.Type, a.Object.ID, a.Provider, a.Amount.Asset(), a.Amount.Decimal(),
		a.Phone.Digits(), a.Reference, tokenHash(a.CallbackToken), tokenHash(a.StatusToken), a.WorkflowID, nullID(hold), t.s.now())
	if err != nil {
		if pg.Broke(err, "payment_attempts_open_key") {
			err = exchange.Wrap(exchange.CodeConflict, err, "Another payment attempt may still move money.")
		}
		return exchange.PaymentAttempt{}, err
	}
	r.CallbackToken, r.StatusToken = a.CallbackToken, a.StatusToken
	return r, nil
}

// tokenHash is what is stored of the token of a callback address; nil without one.
func tokenHash(token string) []byte {
	if token == "" {
		return nil
	}
	h := sha256.Sum256([]byte(token))
	return h[:]
}

// Attempt reads an attempt.
func (s *Store) Attempt(ctx context.Context, id uuid.UUID) (exchange.PaymentAttempt, error) {
	return s.oneAttempt(ctx, readAttempt, id)
}

const (
	readAttemptByToken       = `SELECT ` + attemptColumns + ` FROM payment_attempts WHERE token_hash = $1`
	readAttemptByStatusToken = `SELECT ` + attemptColumns + ` FROM payment_attempts WHERE status_token_hash = $1`
)

// AttemptByToken reads the attempt that has a callback address of that kind with the token. The answers to our queries have a
// token of their own.
func (s *Store) AttemptByToken(ctx context.Context, kind exchange.CallbackKind, token string) (exchange.PaymentAttempt, error) {
	if kind == exchange.CallbackStatus {
		return s.oneAttempt(ctx, readAttemptByStatusToken, tokenHash(token))
	}
	return s.oneAttempt(ctx, readAttemptByToken, tokenHash(token))
}

func (s *Store) oneAttempt(ctx context.Context, query string, key any) (exchange.PaymentAttempt, error) {
	var r exchange.PaymentAttempt
	if err := s.db.Get(ctx, &r, query, key); err != nil {
		return exchange.PaymentAttempt{}, translate(err, "payment attempt")
	}
	return r, nil
}

const readOpenAttempt = `SELECT ` + attemptColumns + ` FROM payment_attempts
WHERE object_type = 'order' AND object_id = $1 AND direction = 'collection' AND status IN ('created', 'unknown', 'accepted')`

// OpenAttempt finds the collection of an order that may still move money.
func (s *Store) OpenAttempt(ctx context.Context, orderID uuid.UUID) (exchange.PaymentAttempt, bool, error) {
	a, err := s.oneAttempt(ctx, readOpenAttempt, orderID)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return exchange.PaymentAttempt{}, false, nil
	}
	return a, err == nil, err
}

const lockAttempt = `SELECT ` + attemptColumns + ` FROM payment_attempts WHERE id = $1 FOR NO KEY UPDATE`

// lockedAttempt locks an attempt.
func (t unitTx) lockedAttempt(ctx context.Context, id uuid.UUID) (exchange.PaymentAttempt, error) {
	var r exchange.PaymentAttempt
	if err := t.Get(ctx, &r, lockAttempt, id); err != nil {
		return exchange.PaymentAttempt{}, translate(err, "payment attempt")
	}
	return r, nil
}

// objectOfAttempt reads an attempt, which never changes its object, and locks the object. Objects are always locked
// before their attempts.
func (t unitTx) objectOfAttempt(ctx context.Context, id uuid.UUID) (momoObject, error) {
	var a exchange.PaymentAttempt
	if err := t.Get(ctx, &a, readAttempt, id); err != nil {
		return nil, translate(err, "payment attempt")
	}
	if a.Direction == exchange.Payout {
		return t.lockedPayoutObject(ctx, a.Object)
	}
	return t.lockedCollectionObject(ctx, a.Object)
}

const saveAttempt = `
UPDATE payment_attempts SET status = $2, soft = $3, merchant_request_id = $4, checkout_request_id = $5, conversation_id = $6, result_code = $7,
    result_text = $8, receipt = $9, moved = $10, submitted_at = $11, settled_at = $12, result_class = $13, version = version + 1
WHERE id = $1 AND version = $14 AND status = ANY ($15)`

// saveAttempt stores an attempt that differs from before, with its event and audit row.
func (t unitTx) saveAttempt(ctx context.Context, x momoObject, before, a exchange.PaymentAttempt) (exchange.PaymentAttempt, error) {
	if a == before {
		return a, nil
	}
	from, name := []exchange.AttemptStatus{before.Status}, "changed"
	if a.Status != before.Status {
		if err := exchange.AttemptMachine.Allow(before.Status, a.Status); err != nil {
			return before, err
		}
		from, name = exchange.AttemptMachine.Sources(a.Status), string(a.Status)
	}
	err := t.One(ctx, saveAttempt, a.ID, a.Status, a.Soft, a.MerchantRequestID, a.CheckoutRequestID, a.ConversationID, a.ResultCode, clip(a.ResultText, 500),
		a.Receipt, a.Moved.Decimal(), nullTime(a.SubmittedAt), nullTime(a.SettledAt), a.ResultClass, before.Version, pq.Array(from))
	if err != nil {
		return before, err
	}
	a.Version++
	return a, t.recordAttempt(ctx, name, x, a)
}

// changeAttempt locks an attempt, applies fn and stores the result.
func (s *Store) changeAttempt(ctx context.Context, id uuid.UUID, fn func(exchange.PaymentAttempt, time.Time) exchange.PaymentAttempt) (exchange.PaymentAttempt, error) {
	return change(ctx, s, "payment attempt", id, func(ctx context.Context, t unitTx) (exchange.PaymentAttempt, exchange.Posting, error) {
		x, err := t.objectOfAttempt(ctx, id)
		if err != nil {
			return exchange.PaymentAttempt{}, exchange.Posting{}, err
		}
		before, err := t.lockedAttempt(ctx, id)
		if err != nil {
			return before, exchange.Posting{}, err
		}
		a, err := t.saveAttempt(ctx, x, before, fn(before, t.s.now()))
		return a, exchange.Posting{}, err
	})
}

// RecordSubmission stores the provider's response to the request. A result that arrived earlier stays, and only the
// provider's ids are added. A payout of unknown outcome stays unknown even when the response is a refusal: two runs of
// a step may send it, and the response to one says nothing about the other.
func (s *Store) RecordSubmission(ctx context.Context, attemptID uuid.UUID, sub exchange.Submission) (exchange.PaymentAttempt, error) {
	return s.changeAttempt(ctx, attemptID, func(a exchange.PaymentAttempt, now time.Time) exchange.PaymentAttempt {
		keep := func(field *string, v string) {
			if *field == "" {
				*field = v
			}
		}
		keep(&a.MerchantRequestID, sub.Refs.MerchantRequestID)
		keep(&a.CheckoutRequestID, sub.Refs.CheckoutRequestID)
		keep(&a.ConversationID, sub.Refs.ConversationID)
		to := map[exchange.SubmissionState]exchange.AttemptStatus{
			exchange.Accepted: exchange.AttemptAccepted, exchange.Refused: exchange.AttemptRefused, exchange.Unknown: exchange.AttemptUnknown,
		}[sub.State]
		sentTwice := a.Direction == exchange.Payout && a.Status == exchange.AttemptUnknown && to == exchange.AttemptRefused
		if sentTwice || exchange.AttemptMachine.Allow(a.Status, to) != nil {
			return a
		}
		a.Status = to
		if a.SubmittedAt.IsZero() {
			a.SubmittedAt = now
		}
		if to == exchange.AttemptRefused {
			a.ResultCode, a.ResultClass, a.ResultText, a.SettledAt = sub.Code, sub.Class, clip(sub.Text, 500), now
		}
		return a
	})
}

// RecordFailure stores a failure that the provider reports. Success is final: an attempt that succeeded, or was
// refused, is returned as it is. A later definite failure replaces an indefinite one.
func (s *Store) RecordFailure(ctx context.Context, attemptID uuid.UUID, o exchange.Observation) (exchange.PaymentAttempt, error) {
	return s.changeAttempt(ctx, attemptID, func(a exchange.PaymentAttempt, now time.Time) exchange.PaymentAttempt {
		if a.Status == exchange.AttemptFailed {
			a.Soft = a.Soft && o.Soft
			return a
		}
		if exchange.AttemptMachine.Allow(a.Status, exchange.AttemptFailed) != nil {
			return a
		}
		a.Status, a.Soft, a.ResultCode, a.ResultClass = exchange.AttemptFailed, o.Soft, o.Code, o.Class
		a.ResultText, a.SettledAt = clip(o.Text, 500), now
		return a
	})
}
