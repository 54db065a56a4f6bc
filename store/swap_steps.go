package store

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const swapPartyGone = `SELECT swap_party_gone(s) FROM swaps s WHERE s.id = $1`

// CollectSwap lets a swap begin when the rule about all that leaves allows it, and approves the payment of its first leg. It returns what
// the swap waits for: officers, or its payment. One of an account that was switched off is cancelled, and one whose time is over expires. A
// repeated call returns the payment that there is.
func (s *Store) CollectSwap(ctx context.Context, id uuid.UUID) (exchange.SwapStanding, error) {
	var out exchange.SwapStanding
	_, err := s.workSwap(ctx, id, func(ctx context.Context, w *swapWork) (err error) {
		out, err = w.collect(ctx)
		return err
	})
	return out, err
}

func (w *swapWork) collect(ctx context.Context) (exchange.SwapStanding, error) {
	out := exchange.SwapStanding{Swap: w.s}
	p, found, err := w.paymentOf(ctx, exchange.ForSwapCollect, w.s.ID)
	if err != nil || found || w.s.Status != exchange.SwapReserved {
		out.PaymentID = p.ID
		return out, err
	}
	err = w.lapse(ctx)
	if out.Swap = w.s; err != nil || w.s.Over() {
		return out, err
	}
	v, err := w.judge(ctx, exchange.ReleaseSwap, w.s.ID)
	if err != nil {
		return out, err
	}
	approvers, err := readAll[uuid.UUID](ctx, w, "approval", readSwapVoices, w.s.ID)
	if err != nil {
		return out, err
	}
	out.Needed, out.Approvals = v.Officers, len(approvers)
	if v.Pass {
		if p, err = w.leg(ctx, exchange.LegCollect, approvedBy(approvers)); err == nil {
			err = w.move(ctx, exchange.SwapReserved, exchange.WaitSignature)
		}
		out.Swap, out.PaymentID = w.s, p.ID
		return out, err
	}
	detail := exchange.WaitApproval
	if out.Approvals > 0 {
		detail = exchange.WaitSecond
	}
	err = w.move(ctx, exchange.SwapReserved, detail)
	out.Swap = w.s
	return out, err
}

// lapse ends a swap that can't begin any more: one of an account that was switched off, or whose time is over.
func (w *swapWork) lapse(ctx context.Context) error {
	var gone bool
	if err := w.Get(ctx, &gone, swapPartyGone, w.s.ID); err != nil {
		return err
	}
	if gone {
		return w.end(ctx, exchange.SwapCancelled, exchange.DetailInactive)
	}
	if w.now.Before(w.s.ExpiresAt) {
		return nil
	}
	return w.end(ctx, exchange.SwapExpired, exchange.DetailExpired)
}

// Only approvals by officers who may still approve count.
const readSwapVoices = `SELECT v FROM releases r, release_voices(r) v WHERE r.purpose = 'swap' AND r.object_id = $1 AND r.ended_at IS NULL ORDER BY v`

// approvedBy names who approved a payment.
func approvedBy(officers []uuid.UUID) string {
	if len(officers) == 0 {
		return byPolicy
	}
	names := make([]string, len(officers))
	for i, id := range officers {
		names[i] = "user:" + id.String()
	}
	return strings.Join(names, ",")
}

// end frees all money of a swap that moves nothing. CodeStateConflict when a transaction of its first leg may move the money.
func (w *swapWork) end(ctx context.Context, to exchange.SwapStatus, detail string) error {
	if err := w.giveUp(ctx, exchange.LegCollect); err != nil {
		return err
	}
	w.free(w.s.HoldID)
	w.free(w.s.ReservationID)
	if err := w.endRelease(ctx, exchange.ReleaseSwap, w.s.ID); err != nil {
		return err
	}
	if err := w.releaseLimit(ctx, "swap", w.s.ID); err != nil {
		return err
	}
	return w.move(ctx, to, detail)
}

// CancelSwap carries out an intent to give a swap up while nothing is signed. A cancelled one is returned as it is; CodeStateConflict when
// the first leg may be on its way. The errors of useIntent come before all others.
func (s *Store) CancelSwap(ctx context.Context, id uuid.UUID, a exchange.Asked) (exchange.Swap, error) {
	return s.workSwap(ctx, id, func(ctx context.Context, w *swapWork) error {
		if a.IntentID == uuid.Nil {
			return exchange.Errorf(exchange.CodeNotFound, "There is no intent to cancel the swap.")
		}
		by, done, err := w.act(ctx, a, id, exchange.IntendSwapCancel)
		if err != nil || done || w.s.Status == exchange.SwapCancelled {
			return err
		}
		if err := w.stillMay(ctx, by); err != nil {
			return err
		}
		if w.s.Status != exchange.SwapReserved {
			return exchange.Errorf(exchange.CodeStateConflict, "A swap that is %s can't be cancelled.", w.s.Status)
		}
		w.by = by
		detail := exchange.DetailBySender
		if by.UserID != w.s.RequestedBy && by.Role.Staff() {
			detail = exchange.DetailByStaff
		}
		return w.end(ctx, exchange.SwapCancelled, detail)
	})
}

// ExpireSwap ends a swap of which nothing was signed in time. One that is further, or has time left, is returned as it is.
func (s *Store) ExpireSwap(ctx context.Context, id uuid.UUID) (exchange.Swap, error) {
	return s.workSwap(ctx, id, func(ctx context.Context, w *swapWork) error {
		if w.s.Status != exchange.SwapReserved || w.now.Before(w.s.ExpiresAt) {
			return nil
		}
		return w.end(ctx, exchange.SwapExpired, exchange.DetailExpired)
	})
}

// GiveUpSwap carries out an operator's decision to end a swap whose first leg can't be carried out. CodeStateConflict while a transaction
// of it may move the money. A repeated call changes nothing.
func (s *Store) GiveUpSwap(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.Swap, error) {
	return s.workSwap(ctx, id, func(ctx context.Context, w *swapWork) error {
		switch w.s.Status {
		case exchange.SwapFailed:
			return nil
		case exchange.SwapCollecting:
			w.by = by
			return w.end(ctx, exchange.SwapFailed, exchange.DetailGivenUp)
		default:
			return exchange.Errorf(exchange.CodeStateConflict, "A swap that is %s can't be given up.", w.s.Status)
		}
	})
}

// PayOutSwap approves the payment of the second leg of a swap whose first is final. A repeated call returns the payment that there is.
func (s *Store) PayOutSwap(ctx context.Context, id uuid.UUID) (exchange.SwapStanding, error) {
	var out exchange.SwapStanding
	_, err := s.workSwap(ctx, id, func(ctx context.Context, w *swapWork) error {
		if w.s.Status == exchange.SwapCollected {
			if err := w.payOut(ctx); err != nil {
				return err
			}
		}
		p, _, err := w.paymentOf(ctx, exchange.ForSwapPayout, id)
		out = exchange.SwapStanding{Swap: w.s, PaymentID: p.ID}
		return err
	})
	return out, err
}

func (w *swapWork) payOut(ctx context.Context) error {
	if err := w.move(ctx, exchange.SwapPayingOut, exchange.WaitSignature); err != nil {
		return err
	}
	_, err := w.leg(ctx, exchange.LegPayout, byPolicy)
	return err
}

// StallSwap has officers look at a swap whose second leg can't be carried out and can't be given up. One that is not being paid out is
// returned as it is, and so is one whose payout is on its way, or may be known later (payoutKnown): that is waited for.
func (s *Store) StallSwap(ctx context.Context, id uuid.UUID) (exchange.Swap, error) {
	return s.workSwap(ctx, id, func(ctx context.Context, w *swapWork) error {
		if w.s.Status != exchange.SwapPayingOut {
			return nil
		}
		p, _, err := w.paymentOf(ctx, exchange.ForSwapPayout, id)
		if err != nil {
			return err
		}
		_, alive, err := w.liveAttempt(ctx, p.ID)
		if err != nil || alive || p.Status != exchange.ChainParked && p.Status != exchange.ChainApproved {
			return err
		}
		if err := w.payoutKnown(ctx); exchange.CodeOf(err) == exchange.CodeStateConflict {
			return nil
		} else if err != nil {
			return err
		}
		return w.move(ctx, exchange.SwapReview, exchange.DetailStuck)
	})
}

// RefundSwap brings back what a swap collected, when its second leg can't happen any more: half an hour after the first was final, by a rule,
// or when two officers have decided so. It gives up the second leg for ever before it approves the payment of the refund, and returns that
// payment. CodeStateConflict while the second leg may move money or may have moved some unseen (payoutKnown), or before its time is over. A
// repeated call returns the payment that there is.
func (s *Store) RefundSwap(ctx context.Context, id uuid.UUID) (exchange.SwapStanding, error) {
	var out exchange.SwapStanding
	_, err := s.workSwap(ctx, id, func(ctx context.Context, w *swapWork) error {
		switch w.s.Status {
		case exchange.SwapCollected, exchange.SwapPayingOut:
			if w.now.Before(w.s.PayoutDue()) {
				return exchange.Errorf(exchange.CodeStateConflict, "The swap may still be paid out. It is not refunded before %s.", w.s.PayoutDue().Format(stampForm))
			}
			if err := w.giveBack(ctx); err != nil {
				return err
			}
		case exchange.SwapRefunding, exchange.SwapRefunded:
		default:
			return exchange.Errorf(exchange.CodeStateConflict, "A swap that is %s is not refunded.", w.s.Status)
		}
		p, err := w.refundLeg(ctx)
		out = exchange.SwapStanding{Swap: w.s, PaymentID: p.ID}
		return err
	})
	return out, err
}

// stampForm is how a moment is told to users.
const stampForm = "2006-01-02T15:04:05Z"

func (w *swapWork) refundLeg(ctx context.Context) (exchange.ChainPayment, error) {
	if w.s.Status == exchange.SwapRefunded {
		p, _, err := w.paymentOf(ctx, exchange.ForSwapRefund, w.s.ID)
		return p, err
	}
	return w.leg(ctx, exchange.LegRefund, byPolicy)
}

// payoutKnown refuses to give a swap back while its payout may have been made unseen: in a database that was put back, or before the watch
// has read the chain. Without a payment of the payout only the first counts. A freeze doesn't matter: nothing is signed by giving back.
func (w *swapWork) payoutKnown(ctx context.Context) error {
	p, found, err := w.paymentOf(ctx, exchange.ForSwapPayout, w.s.ID)
	if err != nil {
		return err
	}
	hold := exchange.HoldNone
	if found {
		hold, err = w.unknown(ctx, p.ID)
	} else {
		var back bool
		if err = w.Get(ctx, &back, `SELECT put_back()`); back {
			hold = exchange.HoldPutBack
		}
	}
	if err == nil && hold != exchange.HoldNone {
		err = exchange.Errorf(exchange.CodeStateConflict, "The payout may have been made unseen (%s). The swap is not refunded before that is known.", hold)
	}
	return err
}

// giveBack decides that a swap goes back: its second leg never moves anything from now on, and what was reserved for it is free.
func (w *swapWork) giveBack(ctx context.Context) error {
	if err := w.payoutKnown(ctx); err != nil {
		return err
	}
	if err := w.giveUp(ctx, exchange.LegPayout); err != nil {
		return err
	}
	w.free(w.s.ReservationID)
	w.s.Difference = ""
	return w.move(ctx, exchange.SwapRefunding, exchange.WaitSignature)
}

// SyncSwap compares chain and ledger for a swap whose second leg is final: the balances of both assets of both wallets at one final block,
// with other traffic in flight accounted for. The swap is completed when all agree, and needs a review otherwise. One that is not there
// yet, or has ended, is returned as it is, and so is any when the block is older than the payout's.
func (s *Store) SyncSwap(ctx context.Context, id uuid.UUID, read []exchange.SwapBalance) (exchange.Swap, error) {
	return s.workSwap(ctx, id, func(ctx context.Context, w *swapWork) error {
		synced := w.s.Status == exchange.SwapReview && w.s.StatusDetail == exchange.DetailDiffers
		if w.s.Status != exchange.SwapSyncing && !synced {
			return nil
		}
		if err := w.complete(read); err != nil {
			return err
		}
		if p, _, err := w.paymentOf(ctx, exchange.ForSwapPayout, id); err != nil || read[0].Block < p.Block {
			return err // a node that lags has seen less than the payout
		}
		var off []exchange.SwapBalance
		for _, b := range read {
			if b.Ledger != b.Chain {
				off = append(off, b)
			}
		}
		if len(off) == 0 {
			return w.agree(ctx)
		}
		text, err := json.Marshal(off)
		if err != nil {
			return err
		}
		w.s.Difference = string(text)
		if synced && sameBalances(w.before.Difference, off) {
			w.s.Difference = w.before.Difference
		}
		return w.move(ctx, exchange.SwapReview, exchange.DetailDiffers)
	})
}

// complete refuses a reading that leaves out a balance of the swap, or is of several blocks.
func (w *swapWork) complete(read []exchange.SwapBalance) error {
	seen := map[string]bool{}
	for _, b := range read {
		if b.Block == read[0].Block && (b.WalletID == w.s.WalletID || b.WalletID == w.s.HouseWalletID) && (b.Asset == w.s.From.Asset() || b.Asset == w.s.To.Asset()) {
			seen[b.WalletID.String()+string(b.Asset)] = true
		}
	}
	if len(read) != 4 || len(seen) != 4 {
		return exchange.Errorf(exchange.CodeInternal, "swap %s has four balances at one block", w.s.ID)
	}
	return nil
}

func (w *swapWork) agree(ctx context.Context) error {
	if w.s.Difference = ""; w.s.Status == exchange.SwapReview {
		if err := w.move(ctx, exchange.SwapSyncing, exchange.WaitSync); err != nil {
			return err
		}
	}
	w.s.CompletedAt = w.now
	return w.move(ctx, exchange.SwapCompleted, exchange.WaitNothing)
}

// sameBalances reports whether a stored difference is the one that was read, wherever both sides have moved to since.
func sameBalances(stored string, read []exchange.SwapBalance) bool {
	var old []exchange.SwapBalance
	return json.Unmarshal([]byte(stored), &old) == nil && slices.Equal(gapsOf(old), gapsOf(read))
}

// swapGap is by how much the chain has more of an asset in a wallet than the ledger. It stays when other traffic moves both.
type swapGap struct {
	WalletID uuid.UUID   `json:"wallet_id"`
	Asset    money.Asset `json:"asset"`
	Gap      string      `json:"chain_minus_ledger"`
}

// gapsOf are the gaps of balances, in one order whatever theirs is.
func gapsOf(all []exchange.SwapBalance) []swapGap {
	gaps := make([]swapGap, len(all))
	for i, b := range all {
		gaps[i] = swapGap{b.WalletID, b.Asset, "from " + b.Ledger + " to " + b.Chain} // of what is not a number
		chain, err := decimal.NewFromString(b.Chain)
		ledger, err2 := decimal.NewFromString(b.Ledger)
		if err == nil && err2 == nil {
			gaps[i].Gap = chain.Sub(ledger).String()
		}
	}
	slices.SortFunc(gaps, func(a, b swapGap) int {
		return cmp.Or(cmp.Compare(a.WalletID.String(), b.WalletID.String()), cmp.Compare(a.Asset, b.Asset))
	})
	return gaps
}
