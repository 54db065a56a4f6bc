package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
)

// Payments of orders by bank that end unpaid: two officers agree that the bank did not pay, and the order may be paid again or give its crypto
// back.

// bankPayoutRefusal is a payment of an order by bank that two officers end unpaid, and bankPayoutState what they see of it.
type (
	bankPayoutRefusal struct {
		OrderID uuid.UUID `json:"order_id"`
		Note    string    `json:"note"`
	}
	bankPayoutState struct {
		Status  exchange.PayoutStatus `json:"status"`
		Amount  string                `json:"amount"`
		Account string                `json:"account_number"`
		// HoldID is what the payment reserves at the bank: another try of the order reserves anew, and is another payment.
		HoldID uuid.UUID `json:"hold_id"`
		// References are those under which officers said that the bank paid the order, also the words that don't count and those taken back.
		References []string `json:"references,omitempty"`
	}
)

// saidPaid reports whether an officer says that the bank has paid an order who may confirm that, and is none of some officers.
const saidPaid = `SELECT EXISTS (SELECT` + wordsAbout + ` AND c.withdrawn_at IS NULL AND c.officer_id <> ALL ($2::uuid[]) AND NOT` + weightless + `)`

const (
	payoutShown         = `SELECT coalesce(payout_shown(p), '') FROM order_payouts p WHERE p.id = $1`
	referencesSaid      = `SELECT DISTINCT c.reference` + wordsAbout + ` ORDER BY c.reference`
	takeBackPayoutWords = `UPDATE bank_confirmations SET withdrawn_at = $2 WHERE order_id = $1 AND withdrawn_at IS NULL`
)

// refusable returns what officers see of the payment of a locked order by bank that they may end unpaid. It refuses one that is over, or that
// another officer than these or a statement says was made.
func (t unitTx) refusable(ctx context.Context, o exchange.Order, p exchange.OrderPayout, officers ...uuid.UUID) (bankPayoutState, error) {
	s := bankPayoutState{Status: p.Status, Amount: p.Amount.String(), Account: o.Beneficiary.AccountNumber, HoldID: p.HoldID}
	if p.Rail != exchange.PayoutByBank || p.Status != exchange.PayoutProcessing {
		return s, exchange.Errorf(exchange.CodeStateConflict, "The order does not wait for a payment by bank.")
	}
	for _, officer := range officers {
		if officer == o.CustomerID || officer == o.VendorID {
			return s, exchange.Errorf(exchange.CodeForbidden, "An officer who takes part in the order can't say that the bank did not pay it.")
		}
	}
	var said bool
	if err := t.Get(ctx, &said, saidPaid, o.ID, pq.Array(officers)); err != nil {
		return s, err
	}
	if said {
		return s, exchange.Errorf(exchange.CodeConflict, "Another officer has confirmed the payment.")
	}
	var shown string
	if err := t.Get(ctx, &shown, payoutShown, o.ID); err != nil {
		return s, err
	}
	if shown != "" {
		return s, exchange.Errorf(exchange.CodeConflict, "A statement of the bank shows this payment under the reference %s. Confirm the payment with it, or match the line first.", shown)
	}
	return s, t.All(ctx, &s.References, referencesSaid, o.ID)
}

// ProposeBankPayoutRefusal proposes to end the payment of an order by bank that the bank refused, or that will not be made. When a second
// officer confirms it, its money at the bank is free, and the order may be paid again or give its crypto back. A repeated proposal by the same
// officer returns the waiting one. CodeConflict when another officer has confirmed the payment, or a statement shows it; CodeStateConflict when
// the order waits for no payment by bank; CodeForbidden for a party of the order.
func (s *Store) ProposeBankPayoutRefusal(ctx context.Context, orderID uuid.UUID, note string, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	if err := require(note != "" && len([]rune(note)) <= exchange.MaxBankNote, "/note", "required", "must say why, in at most 500 characters"); err != nil {
		return proposed, err
	}
	err := s.inTx(ctx, "payment by bank", func(t unitTx) error {
		o, p, err := t.lockedOrderPayout(ctx, orderID)
		if err != nil {
			return err
		}
		was, err := t.refusable(ctx, o, p, by.UserID)
		if err != nil {
			return err
		}
		proposed, err = t.propose(ctx, exchange.ControlBankPayoutRefusal, uuid.Nil, was, bankPayoutRefusal{orderID, note}, by)
		return err
	})
	return proposed, err
}

// applyBankPayoutRefusal ends the payment of an order by bank that two officers say was not made. What they themselves said of it is taken
// back, and what officers said who may not confirm any more. Their agreement is no proof, so the payout stays doubted: a refund of the crypto
// needs another officer.
func (t unitTx) applyBankPayoutRefusal(ctx context.Context, c exchange.ControlChange, by exchange.Principal) (exchange.Posting, error) {
	var none exchange.Posting
	terms, err := termsFrom[bankPayoutRefusal](c)
	if err != nil {
		return none, err
	}
	o, before, err := t.lockedOrderPayout(ctx, terms.OrderID)
	if err != nil {
		return none, err
	}
	was, err := t.refusable(ctx, o, before, c.ProposedBy, by.UserID)
	if err == nil {
		err = unchanged(c, was)
	}
	if err != nil {
		return none, err
	}
	if _, err := t.Exec(ctx, takeBackPayoutWords, o.ID, t.s.now()); err != nil {
		return none, err
	}
	if _, err := t.Exec(ctx, doubtPayout, o.ID); err != nil {
		return none, err
	}
	p := before
	p.Status, p.RefusedCode = exchange.PayoutRefused, exchange.RefusedByBank
	if _, err := t.movePayout(ctx, o, before, p, by); err != nil {
		return none, err
	}
	return exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldRelease, Hold: exchange.Hold{ID: before.HoldID}}}},
		t.audit(ctx, by, "order_payout.refused_by_bank", "order_payout", o.ID, nil, map[string]any{"reason": terms.Note, "change_id": c.ID})
}
