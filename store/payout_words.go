package store

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// What persons say of a payout by mobile money of which the operator says too little. One proposes it and another
// confirms it, as a change of the controls of its own kind; the word is written in the transaction of the confirmation,
// and the flow that waits acts on its row.

// wordTerms is a proposed word as officers and the database's guard read it.
type wordTerms struct {
	OrderID   uuid.UUID  `json:"order_id"`
	AttemptID *uuid.UUID `json:"attempt_id"`
	Receipt   string     `json:"receipt"`
	Note      string     `json:"note"`
}

// payoutTerms is what the word is about.
type payoutTerms struct {
	OrderID  uuid.UUID             `json:"order_id"`
	Amount   string                `json:"amount"`
	Currency string                `json:"currency"`
	Status   exchange.PayoutStatus `json:"status"`
}

func termsOfPayout(p exchange.OrderPayout) payoutTerms {
	return payoutTerms{OrderID: p.OrderID, Amount: p.Amount.String(), Currency: string(p.Amount.Asset()), Status: p.Status}
}

// openUnknown is the attempt of an order's payout whose outcome is open, whether it is old enough to be declared not
// made, and how many minutes old it has to be.
const openUnknown = `
SELECT a.id, a.created_at + make_interval(secs => y.unknown_seconds) <= clock_timestamp() AS old, y.unknown_seconds / 60 AS minutes
FROM payment_attempts a, refund_policy y
WHERE a.order_id = $1 AND a.direction = 'payout' AND a.refund_id IS NULL AND a.status IN ('unknown', 'accepted')`

// ProposeUnpaid proposes that an order's payout, of which nobody says what became of it, was not made. It takes effect
// when a second person confirms it. CodeStateConflict while the outcome is not open, or not for long enough, and when
// somebody claims that it was made.
func (s *Store) ProposeUnpaid(ctx context.Context, orderID uuid.UUID, note string, by exchange.Principal) (exchange.ControlChange, error) {
	return s.proposeWord(ctx, exchange.PayoutWord{OrderID: orderID, Note: note}, by)
}

// ProposeReceipt proposes that an order's payout was made, with its receipt. It takes effect when a second person
// confirms it.
func (s *Store) ProposeReceipt(ctx context.Context, orderID uuid.UUID, receipt string, by exchange.Principal) (exchange.ControlChange, error) {
	return s.proposeWord(ctx, exchange.PayoutWord{OrderID: orderID, Receipt: receipt, Note: receipt}, by)
}

func (s *Store) proposeWord(ctx context.Context, w exchange.PayoutWord, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	if err := require(w.Note != "" && len([]rune(w.Note)) <= exchange.MaxPayoutNote, "/note", "required", "must say how it was found out, in at most 500 characters"); err != nil {
		return proposed, err
	}
	err := s.inTx(ctx, "payout of the order", func(t unitTx) error {
		_, p, err := t.lockedOrderPayout(ctx, w.OrderID)
		if err != nil {
			return err
		}
		if w.Receipt == "" {
			if w.AttemptID, err = t.undecided(ctx, p); err != nil {
				return err
			}
		}
		terms := wordTerms{OrderID: w.OrderID, AttemptID: pointerTo(w.AttemptID), Receipt: w.Receipt, Note: w.Note}
		proposed, err = t.propose(ctx, exchange.ControlPayoutWord, uuid.Nil, termsOfPayout(p), terms, by)
		return err
	})
	return proposed, err
}

// undecided is the attempt of a payout that may be declared not made.
func (t unitTx) undecided(ctx context.Context, p exchange.OrderPayout) (uuid.UUID, error) {
	if p.Rail != exchange.PayoutByMomo || p.Status != exchange.PayoutProcessing {
		return uuid.Nil, exchange.Errorf(exchange.CodeStateConflict, "A %s payout that is %s can't be declared unpaid.", p.Rail, p.Status)
	}
	var rows []struct {
		ID      uuid.UUID
		Old     bool
		Minutes int
	}
	if err := t.all(ctx, &rows, openUnknown, p.OrderID); err != nil {
		return uuid.Nil, err
	}
	switch {
	case len(rows) == 0:
		return uuid.Nil, exchange.Errorf(exchange.CodeStateConflict, "No payout of the order is of unknown outcome.")
	case p.Claimed:
		return uuid.Nil, exchange.Errorf(exchange.CodeStateConflict, "A payout of the order is said to have been made.")
	case !rows[0].Old:
		return uuid.Nil, exchange.Errorf(exchange.CodeStateConflict,
			"The operator may still say what became of the payout. It can be declared not made when it is %d minutes old.", rows[0].Minutes)
	}
	return rows[0].ID, nil
}

const insertWord = `
INSERT INTO payout_words (id, order_id, attempt_id, receipt, note, said_by, agreed_by, said_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

// applyWord writes a confirmed word down. The flow of the payout acts on it. CodeStateConflict when the outcome is not
// what it was.
func (t unitTx) applyWord(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	var terms wordTerms
	if err := json.Unmarshal(c.Change, &terms); err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "a stored word about a payout can't be read")
	}
	_, p, err := t.lockedOrderPayout(ctx, terms.OrderID)
	if err != nil {
		return err
	}
	if terms.AttemptID != nil {
		attempt, err := t.undecided(ctx, p)
		if err != nil {
			return err
		}
		if attempt != *terms.AttemptID {
			return exchange.Errorf(exchange.CodeStateConflict, "Another payout of the order is under way since. Look at that one.")
		}
	}
	attempt := uuid.Nil
	if terms.AttemptID != nil {
		attempt = *terms.AttemptID
	}
	_, err = t.exec(ctx, insertWord, c.ID, terms.OrderID, nullID(attempt), terms.Receipt, terms.Note, c.ProposedBy, by.UserID, t.s.now())
	return err
}

const declaredUnpaid = `SELECT EXISTS (SELECT FROM payout_words WHERE attempt_id = $1)`

// DeclaredUnpaid tells whether two persons declared that an attempt to pay an order out was not made.
func (s *Store) DeclaredUnpaid(ctx context.Context, attemptID uuid.UUID) (bool, error) {
	var declared bool
	err := s.read(ctx, &declared, declaredUnpaid, attemptID)
	return declared, translate(err, "payout of the order")
}

// A receipt that was proven needs nobody, and neither does what two persons have said already. By bank officers confirm.
const needsSecond = `
SELECT p.rail = 'momo' AND p.status <> 'completed'
    AND p.amount > (SELECT r.one_above FROM approval_rules r WHERE r.object_type = 'bank_payout')
    AND NOT EXISTS (SELECT FROM payout_words w WHERE w.order_id = p.id AND w.receipt = $2)
    AND NOT EXISTS (SELECT FROM payment_attempts a WHERE a.order_id = p.id AND a.direction = 'payout' AND a.receipt = $2)
FROM order_payouts p WHERE p.id = $1`

// ReceiptNeedsSecond tells whether one person's word that an order's payout was made, with its receipt, is not enough:
// above the value above which a payment by bank takes two officers.
func (s *Store) ReceiptNeedsSecond(ctx context.Context, orderID uuid.UUID, receipt string) (bool, error) {
	var rows []bool
	if err := s.readAll(ctx, &rows, needsSecond, orderID, receipt); err != nil {
		return false, translate(err, "payout of the order")
	}
	return len(rows) == 1 && rows[0], nil
}
