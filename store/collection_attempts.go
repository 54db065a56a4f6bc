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

const attemptColumns = `id, direction, order_id, refund_id, provider, status, soft, amount||' '||asset AS amount, '' AS callback_token, phone, reference, merchant_request_id,
	checkout_request_id, conversation_id, result_code, result_class, result_text, receipt, moved||' '||asset AS moved, workflow_id, created_at, submitted_at, settled_at, version`

func attemptSnapshot(a exchange.PaymentAttempt) map[string]any {
	return map[string]any{
		"id": a.ID, "direction": a.Direction, "order_id": a.OrderID, "refund_id": nullID(a.RefundID), "provider": a.Provider,
		"status": a.Status, "amount": a.Amount.String(), "currency": a.Amount.Asset(), "phone_number": a.Phone.String(),
		"result_code": a.ResultCode, "result_class": a.ResultClass, "receipt": a.Receipt, "moved": a.Moved.String(), "version": a.Version,
	}
}

// recordAttempt appends an event of an attempt, visible to those who may see its order.
func (t unitTx) recordAttempt(ctx context.Context, name string, o exchange.Order, a exchange.PaymentAttempt) error {
	return t.record(ctx, auditEvent{by: flow, object: "payment_attempt", id: a.ID, name: "payment_attempt." + name, owner: o.CustomerID, vendor: o.VendorID, after: attemptSnapshot(a)})
}

const readAttempt = `SELECT ` + attemptColumns + ` FROM payment_attempts WHERE id = $1`

const insertAttempt = `
INSERT INTO payment_attempts (id, direction, order_id, refund_id, provider, status, asset, amount, phone, reference, token_hash, workflow_id, hold_id, created_at)
VALUES ($1, $2, $3, $4, $5, 'created', $6, $7, $8, $9, $10, $11, $12, $13) RETURNING ` + attemptColumns

// begun is what BeginAttempt returns.
type begun struct {
	attempt exchange.PaymentAttempt
	created bool
}

// BeginAttempt stores a collection before the request to the provider. A repeated call with the same id returns the
// existing attempt. CodeStateConflict when the order does not wait for a payment, CodeConflict while another attempt
// of it may still move money. A phone that has reached its limit of prompts gets none: the attempt is stored as
// refused with the code PromptLimit, and counts as not created by this call. The callback token is stored as a hash,
// so only the creating call returns it.
func (s *Store) BeginAttempt(ctx context.Context, a exchange.PaymentAttempt) (exchange.PaymentAttempt, bool, error) {
	b, err := change(ctx, s, "payment attempt", a.OrderID, func(ctx context.Context, t unitTx) (begun, exchange.Posting, error) {
		var none exchange.Posting
		old, found, err := t.beganBefore(ctx, a)
		if err != nil || found {
			return begun{attempt: old}, none, err
		}
		if a.Direction != exchange.Collection || a.RefundID != uuid.Nil {
			return begun{}, none, exchange.Errorf(exchange.CodeInternal, "a payout attempt can't begin as a collection")
		}
		o, err := t.lockedOrder(ctx, a.OrderID)
		if err != nil {
			return begun{}, none, err
		}
		if o.Status != exchange.OrderPending {
			return begun{}, none, exchange.Errorf(exchange.CodeStateConflict, "An order that is %s can't take a payment.", o.Status)
		}
		n, err := t.prompts(ctx, a.Phone)
		if err != nil {
			return begun{}, none, err
		}
		created, err := t.insertAttempt(ctx, a, uuid.Nil)
		if err != nil {
			return begun{}, none, err
		}
		if n >= s.limits.PromptsPerPhone {
			refused, err := t.overPrompted(ctx, o, created)
			return begun{attempt: refused}, none, err
		}
		return begun{created, true}, none, t.recordAttempt(ctx, "created", o, created)
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
	if old.OrderID != a.OrderID || old.Direction != a.Direction || old.RefundID != a.RefundID || !old.Amount.Equal(a.Amount) {
		err = exchange.Errorf(exchange.CodeConflict, "The id belongs to another payment attempt.")
	}
	return old, true, err
}

func (t unitTx) insertAttempt(ctx context.Context, a exchange.PaymentAttempt, hold uuid.UUID) (exchange.PaymentAttempt, error) {
	var token []byte
	if a.CallbackToken != "" {
		h := sha256.Sum256([]byte(a.CallbackToken))
		token = h[:]
	}
	var r exchange.PaymentAttempt
	err := t.Get(ctx, &r, insertAttempt, a.ID, a.Direction, a.OrderID, nullID(a.RefundID), a.Provider, a.Amount.Asset(), a.Amount.Decimal(),
		a.Phone.Digits(), a.Reference, token, a.WorkflowID, nullID(hold), t.s.now())
	if err != nil {
		if pg.Broke(err, "payment_attempts_open_key") {
			err = exchange.Wrap(exchange.CodeConflict, err, "Another payment attempt may still move money.")
		}
		return exchange.PaymentAttempt{}, err
	}
	r.CallbackToken = a.CallbackToken
	return r, nil
}

// Attempt reads an attempt.
func (s *Store) Attempt(ctx context.Context, id uuid.UUID) (exchange.PaymentAttempt, error) {
	return s.oneAttempt(ctx, readAttempt, id)
}

const readAttemptByToken = `SELECT ` + attemptColumns + ` FROM payment_attempts WHERE token_hash = $1`

// AttemptByToken reads the attempt whose callback address ends in the token.
func (s *Store) AttemptByToken(ctx context.Context, token string) (exchange.PaymentAttempt, error) {
	h := sha256.Sum256([]byte(token))
	return s.oneAttempt(ctx, readAttemptByToken, h[:])
}

func (s *Store) oneAttempt(ctx context.Context, query string, key any) (exchange.PaymentAttempt, error) {
	var r exchange.PaymentAttempt
	if err := s.db.Get(ctx, &r, query, key); err != nil {
		return exchange.PaymentAttempt{}, translate(err, "payment attempt")
	}
	return r, nil
}

const readOpenAttempt = `SELECT ` + attemptColumns + ` FROM payment_attempts
WHERE order_id = $1 AND direction = 'collection' AND status IN ('created', 'unknown', 'accepted')`

// OpenAttempt finds the collection of an order that may still move money.
func (s *Store) OpenAttempt(ctx context.Context, orderID uuid.UUID) (exchange.PaymentAttempt, bool, error) {
	a, err := s.oneAttempt(ctx, readOpenAttempt, orderID)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return exchange.PaymentAttempt{}, false, nil
	}
	return a, err == nil, err
}

const lockAttempt = `SELECT ` + attemptColumns + ` FROM payment_attempts WHERE id = $1 FOR NO KEY UPDATE`

// lockOrderOf comes first, because orders are always locked before their attempts.
var lockOrderOf = `SELECT ` + orderColumns + ` FROM orders o WHERE o.id = (SELECT order_id FROM payment_attempts WHERE id = $1) FOR NO KEY UPDATE`

// lockedAttempt reads and locks an attempt and its order.
func (t unitTx) lockedAttempt(ctx context.Context, id uuid.UUID) (exchange.Order, exchange.PaymentAttempt, error) {
	var o exchange.Order
	if err := t.Get(ctx, &o, lockOrderOf, id); err != nil {
		return exchange.Order{}, exchange.PaymentAttempt{}, translate(err, "payment attempt")
	}
	var r exchange.PaymentAttempt
	if err := t.Get(ctx, &r, lockAttempt, id); err != nil {
		return o, exchange.PaymentAttempt{}, translate(err, "payment attempt")
	}
	return o, r, nil
}

const saveAttempt = `
UPDATE payment_attempts SET status = $2, soft = $3, merchant_request_id = $4, checkout_request_id = $5, conversation_id = $6, result_code = $7,
    result_text = $8, receipt = $9, moved = $10, submitted_at = $11, settled_at = $12, result_class = $13, version = version + 1
WHERE id = $1 AND version = $14 AND status = ANY ($15)`

// saveAttempt stores an attempt that differs from before, with its event and audit row.
func (t unitTx) saveAttempt(ctx context.Context, o exchange.Order, before, a exchange.PaymentAttempt) (exchange.PaymentAttempt, error) {
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
	return a, t.recordAttempt(ctx, name, o, a)
}

// changeAttempt locks an attempt, applies fn and stores the result.
func (s *Store) changeAttempt(ctx context.Context, id uuid.UUID, fn func(exchange.PaymentAttempt, time.Time) exchange.PaymentAttempt) (exchange.PaymentAttempt, error) {
	return change(ctx, s, "payment attempt", id, func(ctx context.Context, t unitTx) (exchange.PaymentAttempt, exchange.Posting, error) {
		o, before, err := t.lockedAttempt(ctx, id)
		if err != nil {
			return before, exchange.Posting{}, err
		}
		a, err := t.saveAttempt(ctx, o, before, fn(before, t.s.now()))
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
