package store

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Decisions of two officers about large refunds by mobile money. One officer proposes a decision and another confirms it,
// as a kind of control change. The flow that owes the refund then acts on it; the database refuses to open a large refund,
// and to confirm its payee, without it.

// RefundDecision is what an officer may decide now about refunds by mobile money: to refund an order or a payment
// exception, to confirm the payee of a refund, or to let one go on that needs another officer by now.
type RefundDecision struct {
	ObjectType string       `db:"object_type"` // order, payment_exception, or refund for its payee
	ObjectID   uuid.UUID    `db:"object_id"`
	OrderID    uuid.UUID    `db:"order_id"`
	Amount     money.Amount // to pay back
	Status     string       // of the object
	Second     bool         // it needs another officer, whose confirmation is missing
}

// refundDecisionTerms is a proposed decision as officers and the database's guard read it.
type refundDecisionTerms struct {
	ObjectType string    `json:"object_type"`
	ObjectID   uuid.UUID `json:"object_id"`
	OrderID    uuid.UUID `json:"order_id"`
	Note       string    `json:"note"`
}

func (d RefundDecision) was() payoutTerms {
	return payoutTerms{OrderID: pointerTo(d.OrderID), Amount: d.Amount.String(), Currency: string(d.Amount.Asset()), Status: d.Status}
}

// Of the refunds that wait for officers, those are listed that need one more, or all of them ($2): a decision that is being
// confirmed counts already.
const refundDecisions = `
SELECT object_type, object_id, order_id, amount||' KES' AS amount, status, refund_needs_second(object_id, $3) AS second FROM (
    SELECT 1 AS nth, 'order' AS object_type, o.id AS object_id, o.id AS order_id, o.fiat_amount AS amount, o.status, o.created_at FROM orders o
    WHERE o.id = $1 AND o.order_type LIKE 'ON\_RAMP%' AND o.status IN ('processing', 'confirming')
        AND NOT EXISTS (SELECT FROM chain_payments p WHERE p.purpose = 'order' AND p.object_id = o.id AND (p.status NOT IN ('approved', 'parked', 'cancelled')
            OR EXISTS (SELECT FROM chain_attempts a WHERE a.payment_id = p.id AND a.status IN ('signed', 'broadcast', 'included'))))
    UNION ALL SELECT 2, 'refund', f.id, f.order_id, f.amount, f.status, f.created_at FROM refunds f
    WHERE $1 IN (f.id, f.order_id) AND f.rail = 'momo' AND (f.status = 'needs_review' AND f.detail = 'payer_differs' AND NOT f.payee_confirmed
        OR f.status IN ('pending', 'needs_review') AND ($2 OR refund_needs_second(f.id, $3)))
    UNION ALL SELECT 3, 'payment_exception', x.id, x.order_id, x.amount, x.status, x.created_at FROM payment_exceptions x
    WHERE $1 IN (x.id, x.order_id) AND x.status = 'open' AND x.asset = 'KES' AND x.attempt_id IS NOT NULL AND x.kind IN ('late', 'duplicate')) d
ORDER BY nth, created_at, object_id`

// RefundDecisions lists what an officer, who asks, may decide now about an object with refunds by mobile money: an order, and all that
// belongs to it, a payment exception, or a refund. An order whose crypto may be on its way is not among them.
func (s *Store) RefundDecisions(ctx context.Context, object, officer uuid.UUID) ([]RefundDecision, error) {
	var all []RefundDecision
	err := s.db.All(ctx, &all, refundDecisions, object, false, nullID(officer))
	return all, translate(err, "refund")
}

// ProposeRefund proposes a decision about a refund by mobile money that a second officer has to confirm. A repeated proposal
// by the same officer returns the waiting one.
func (s *Store) ProposeRefund(ctx context.Context, d RefundDecision, note string, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	err := s.inTx(ctx, "refund", func(t unitTx) error {
		var err error
		terms := refundDecisionTerms{ObjectType: d.ObjectType, ObjectID: d.ObjectID, OrderID: d.OrderID, Note: note}
		proposed, err = t.propose(ctx, exchange.ControlRefundDecision, uuid.Nil, d.was(), terms, by)
		return err
	})
	return proposed, err
}

// applyRefundDecision checks that a confirmed decision can still be carried out, which the flow of the refund does.
func (t unitTx) applyRefundDecision(ctx context.Context, c exchange.ControlChange, _ exchange.Principal) error {
	var terms refundDecisionTerms
	if err := json.Unmarshal(c.Change, &terms); err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "a stored decision about a refund can't be read")
	}
	var all []RefundDecision
	if err := t.All(ctx, &all, refundDecisions, terms.ObjectID, true, nil); err != nil {
		return err
	}
	for _, d := range all {
		if d.ObjectID == terms.ObjectID {
			return unchanged(c, d.was())
		}
	}
	return exchange.Errorf(exchange.CodeStateConflict, "The refund no longer waits for a decision.")
}
