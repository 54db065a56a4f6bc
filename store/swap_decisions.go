package store

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// decidableSwap is a swap as officers decide about it.
func decidableSwap(s exchange.Swap) decidable {
	return decidable{
		object: exchange.ApproveSwap, id: s.ID, requester: s.RequestedBy, amount: s.From, digest: s.Digest, intent: s.Intent(),
		involved: func(_ context.Context, officer uuid.UUID) error {
			if s.RequestedBy == officer {
				return exchange.Errorf(exchange.CodeForbidden, "The requester of a swap can't decide about it.")
			}
			return nil
		},
		open: func() error {
			if s.Status != exchange.SwapReserved || s.StatusDetail != exchange.WaitApproval && s.StatusDetail != exchange.WaitSecond {
				return exchange.Errorf(exchange.CodeStateConflict, "The swap is %s and waits for no officer.", s.Status)
			}
			return nil
		},
	}
}

// IssueSwapTicket gives an officer the right to one decision about one swap, see issueTicket.
func (s *Store) IssueSwapTicket(ctx context.Context, k exchange.ApprovalTicket, by exchange.Principal) (exchange.Swap, error) {
	var about exchange.Swap
	err := s.inTx(ctx, "swap", func(t unitTx) (err error) {
		if about, err = readOne[exchange.Swap](ctx, t, "swap", readSwap, k.ObjectID); err != nil {
			return err
		}
		return t.issueTicket(ctx, decidableSwap(about), k, by)
	})
	return about, err
}

// DecideSwap proves a token, applies its decision in one transaction, and lets the swap begin when that was the last decision needed. One
// rejection ends it, and one whose time is over expires. The token alone identifies the officer. A repeated call with a counted token returns what the swap needs. The codes
// are those of provenTicket.
func (s *Store) DecideSwap(ctx context.Context, id uuid.UUID, token string, action exchange.ApprovalAction) (exchange.SwapStanding, error) {
	var out exchange.SwapStanding
	_, err := s.workSwap(ctx, id, func(ctx context.Context, w *swapWork) error {
		out = exchange.SwapStanding{Swap: w.s}
		d := decidableSwap(w.s)
		k, counted, err := w.provenTicket(ctx, d, token, action)
		if err != nil {
			return err
		}
		if !counted {
			if w.by, err = w.countTicket(ctx, d, k); err != nil {
				return err
			}
			if action == exchange.Reject {
				err = w.end(ctx, exchange.SwapCancelled, exchange.DetailRejected)
				out.Swap = w.s
				return err
			}
		}
		out, err = w.collect(ctx)
		return err
	})
	return out, err
}

const pendingSwaps = `SELECT ` + swapColumns + ` FROM ` + fromSwaps + `
WHERE s.status = 'reserved' AND s.status_detail IN ('approval', 'second_approval') AND s.requested_by <> $1
    AND NOT EXISTS (SELECT FROM approvals a WHERE a.object_type = 'swap' AND a.object_id = s.id AND a.officer_id = $1)
ORDER BY s.created_at, s.id LIMIT $2`

// PendingSwaps lists the swaps that the officer may decide about, the oldest first, at most a hundred.
func (s *Store) PendingSwaps(ctx context.Context, officer uuid.UUID) ([]exchange.Swap, error) {
	return readAll[exchange.Swap](ctx, s.db, "swap", pendingSwaps, officer, maxPendingSales)
}

// RetrySwapPayout tries the second leg of a swap again that stands still, by an operator's decision. CodeStateConflict when a transaction
// of it moved something else, until an officer has settled that. One that is being paid out is returned as it is.
func (s *Store) RetrySwapPayout(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.SwapStanding, error) {
	var out exchange.SwapStanding
	_, err := s.workSwap(ctx, id, func(ctx context.Context, w *swapWork) error {
		w.by = by
		if w.s.Status != exchange.SwapPayingOut && (w.s.Status != exchange.SwapReview || w.s.StatusDetail != exchange.DetailStuck) {
			return exchange.Errorf(exchange.CodeStateConflict, "A swap that is %s is not paid out again.", w.s.Status)
		}
		if w.s.Status == exchange.SwapReview {
			if err := w.payOut(ctx); err != nil {
				return err
			}
		}
		p, err := w.unpark(ctx)
		out = exchange.SwapStanding{Swap: w.s, PaymentID: p.ID}
		return err
	})
	return out, err
}

// unpark lets a parked payment of the second leg be signed again.
func (w *swapWork) unpark(ctx context.Context) (exchange.ChainPayment, error) {
	p, _, err := w.paymentOf(ctx, exchange.ForSwapPayout, w.s.ID)
	if err != nil || p.Status != exchange.ChainParked {
		return p, err
	}
	if hold, err := w.unitTx.hold(ctx, p.ID); err != nil || hold == exchange.HoldUnexpected {
		if err == nil {
			err = exchange.Errorf(exchange.CodeStateConflict, "A transaction of the payout moved something else than it should have. An officer has to settle that before it is retried.")
		}
		return p, err
	}
	again := p
	again.Status, again.Detail = exchange.ChainApproved, ""
	if p, err = w.savePayment(ctx, w.by, &swapPayment{w, exchange.ForSwapPayout}, p, again); err != nil {
		return p, err
	}
	return p, w.move(ctx, exchange.SwapPayingOut, exchange.WaitSignature)
}

// resolutionTerms are what two officers decide about a swap.
type resolutionTerms struct {
	SwapID  uuid.UUID            `json:"swap_id"`
	Outcome exchange.SwapOutcome `json:"outcome"`
	Note    string               `json:"note"`
}

// swapStands is what they see of it.
type swapStands struct {
	Status     exchange.SwapStatus `json:"status"`
	Detail     string              `json:"status_detail"`
	From       string              `json:"from_amount"`
	To         string              `json:"to_amount"`
	Difference []swapGap           `json:"differences,omitempty"`
}

func standsOf(s exchange.Swap) swapStands {
	stands := swapStands{s.Status, s.StatusDetail, s.From.String() + " " + string(s.From.Asset()), s.To.String() + " " + string(s.To.Asset()), nil}
	var off []exchange.SwapBalance
	if json.Unmarshal([]byte(s.Difference), &off) == nil { // there may be none
		stands.Difference = gapsOf(off)
	}
	return stands
}

// ProposeSwapResolution proposes to refund a swap that needs a review, or to accept the difference that it left. It happens when a second
// officer confirms it. CodeStateConflict for a swap that can't be resolved so.
func (s *Store) ProposeSwapResolution(ctx context.Context, id uuid.UUID, outcome exchange.SwapOutcome, note string, by exchange.Principal) (exchange.ControlChange, error) {
	var waits exchange.ControlChange
	if err := require(note != "" && len([]rune(note)) <= exchange.MaxSwapText, "/note", "required", "must say how this was found out, in at most 500 characters"); err != nil {
		return waits, err
	}
	err := s.inTx(ctx, "swap", func(t unitTx) error {
		w, err := t.startSwap(ctx, id)
		if err == nil {
			err = w.resolvable(outcome, by)
		}
		if err != nil {
			return err
		}
		waits, err = t.propose(ctx, exchange.ControlSwapResolution, uuid.Nil, standsOf(w.s), resolutionTerms{id, outcome, note}, by)
		return err
	})
	return waits, err
}

// resolvable refuses a swap that two officers can't resolve so: one whose second leg is final is not refunded, and only such a one leaves
// a difference.
func (w *swapWork) resolvable(outcome exchange.SwapOutcome, by exchange.Principal) error {
	if by.UserID == w.s.RequestedBy {
		return exchange.Errorf(exchange.CodeForbidden, "The requester of a swap can't decide about it.")
	}
	want := exchange.DetailStuck
	if outcome == exchange.SwapAccept {
		want = exchange.DetailDiffers
	}
	if w.s.Status != exchange.SwapReview || w.s.StatusDetail != want || outcome.ByOne() {
		return exchange.Errorf(exchange.CodeStateConflict, "A swap that is %s (%s) can't be resolved by %s.", w.s.Status, w.s.StatusDetail, outcome)
	}
	return nil
}

// applySwapResolution carries out what two officers decided. The payment of a refund is approved by the swap's flow.
func (t unitTx) applySwapResolution(ctx context.Context, c exchange.ControlChange, by exchange.Principal) (exchange.Posting, error) {
	var none exchange.Posting
	terms, err := termsFrom[resolutionTerms](c)
	if err != nil {
		return none, err
	}
	w, err := t.startSwap(ctx, terms.SwapID)
	if err != nil {
		return none, err
	}
	if err := unchanged(c, standsOf(w.s)); err != nil {
		return none, err
	}
	if err := w.resolvable(terms.Outcome, by); err != nil {
		return none, err
	}
	w.by, w.s.ResolutionID = by, c.ID
	if terms.Outcome == exchange.SwapRefund {
		err = w.giveBack(ctx)
	} else {
		w.s.CompletedAt = w.now
		err = w.move(ctx, exchange.SwapCompleted, exchange.DetailAccepted)
	}
	return w.post, err
}
