package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// swapPayment is a leg of a swap.
type swapPayment struct {
	*swapWork
	purpose exchange.ChainPurpose
}

func (t unitTx) lockedSwapLeg(ctx context.Context, purpose exchange.ChainPurpose, id uuid.UUID) (*swapPayment, error) {
	w, err := t.startSwap(ctx, id)
	return &swapPayment{w, purpose}, err
}

func (p *swapPayment) parties() (owner, vendor uuid.UUID) { return p.s.OwnerID, p.s.VendorID }

// follow shows where the leg is. A signed collection makes the swap collecting; what follows from final legs is done in spend.
func (p *swapPayment) follow(ctx context.Context, _ unitTx, to paymentStage, _ string) error {
	status, detail := p.s.Status, ""
	switch to {
	case stageApproved:
		if detail = exchange.WaitSignature; status == exchange.SwapReview && p.purpose == exchange.ForSwapPayout {
			status = exchange.SwapPayingOut // it is tried again
		}
	case stageWaiting:
		detail = exchange.WaitWatch
	case stageFrozen:
		detail = exchange.WaitFrozen
	case stageSigned, stageVanished:
		detail = exchange.WaitBroadcast
	case stageBroadcast, stageIncluded:
		detail = exchange.WaitFinality
	case stageParked:
		detail = exchange.WaitOperator
	case stageCompleted, stageHandedOut, stageWithdrawn: // wallets of swaps are hot
		return nil
	}
	if p.s.Over() {
		return nil
	}
	if status == exchange.SwapReserved && to != stageApproved && to != stageWaiting && to != stageFrozen && to != stageParked {
		status = exchange.SwapCollecting
	}
	if status == exchange.SwapReview {
		detail = p.s.StatusDetail // why it needs a review
	}
	return p.move(ctx, status, detail)
}

// spend books a final leg, and moves the swap on: money that is collected is held in the treasury until it is clear that it stays there.
func (p *swapPayment) spend(ctx context.Context, t unitTx, paid exchange.ChainPayment) (exchange.Posting, []exchange.Line, error) {
	posting, lines, err := t.spendReserved(ctx, paid)
	if err != nil {
		return posting, lines, err
	}
	switch p.purpose {
	case exchange.ForSwapPayout:
		p.free(p.s.ReturnHoldID)
		posting.Entries = append(posting.Entries, p.takeFee()...)
		err = p.move(ctx, exchange.SwapSyncing, exchange.WaitSync)
	case exchange.ForSwapRefund:
		p.s.CompletedAt = p.now
		err = p.move(ctx, exchange.SwapRefunded, exchange.WaitNothing)
	default:
		err = p.collected(ctx)
	}
	posting.Holds, p.post = append(posting.Holds, p.post.Holds...), exchange.Posting{}
	return posting, lines, err
}

// takeFee books the fee of a swap that is paid. It is earned in the treasury's wallet, where other fees are swept to, so it becomes the
// house's own coins there at once.
func (p *swapPayment) takeFee() []exchange.Entry {
	o, asset := p.s, p.s.Fee.Asset()
	if !o.Fee.Positive() {
		return nil
	}
	own, earned := exchange.Owned(exchange.AccWalletBalance, o.HouseWalletID, asset), exchange.Owned(exchange.AccWalletFees, o.HouseWalletID, asset)
	entry := func(what string, from, to exchange.AccountRef) exchange.Entry {
		return exchange.Entry{
			Key: "swap:" + o.ID.String() + ":" + what, Kind: "swap." + what, ObjectType: "swap", ObjectID: o.ID,
			Lines: []exchange.Line{exchange.Debit(from, o.Fee), exchange.Credit(to, o.Fee)},
		}
	}
	return []exchange.Entry{entry("fee", own, earned), entry("fee_kept", earned, own)}
}

// collected moves the swap on from its first leg. One that was found on the chain was never seen signed.
func (p *swapPayment) collected(ctx context.Context) error {
	if p.s.Status == exchange.SwapReserved {
		if err := p.move(ctx, exchange.SwapCollecting, exchange.WaitFinality); err != nil {
			return err
		}
	}
	var err error
	if p.s.ReturnHoldID, err = p.hold("return", p.s.HouseWalletID, p.s.From); err != nil {
		return err
	}
	p.s.CollectedAt = p.now
	return p.move(ctx, exchange.SwapCollected, exchange.WaitPayout)
}

const countLegs = `SELECT count(*) FROM chain_payments WHERE purpose = $1 AND object_id = $2`

// leg approves the payment of a leg, unless there is one that was not given up.
func (w *swapWork) leg(ctx context.Context, role exchange.SwapLegRole, approvedBy string) (exchange.ChainPayment, error) {
	purpose, o := role.Purpose(), w.s
	p, found, err := w.paymentOf(ctx, purpose, o.ID)
	if err != nil || found && p.Status != exchange.ChainCancelled {
		return p, err
	}
	p = exchange.ChainPayment{Purpose: purpose, ObjectID: o.ID, Network: o.Network, ApprovedBy: approvedBy}
	switch role {
	case exchange.LegCollect:
		p.Amount, p.WalletID, p.ToAddress, p.HoldID = o.From, o.WalletID, o.HouseAddress, o.HoldID
	case exchange.LegPayout:
		p.Amount, p.WalletID, p.ToAddress, p.HoldID = o.To, o.HouseWalletID, o.Address, o.ReservationID
	case exchange.LegRefund:
		p.Amount, p.WalletID, p.ToAddress, p.HoldID = o.From, o.HouseWalletID, o.Address, o.ReturnHoldID
	}
	if err := w.Get(ctx, &p.N, countLegs, purpose, o.ID); err != nil {
		return p, err
	}
	p.N++
	return w.addPayment(ctx, w.by, &swapPayment{w, purpose}, p)
}

// giveUp makes sure that a leg never moves anything. CodeStateConflict when a transaction of it may, or did.
func (w *swapWork) giveUp(ctx context.Context, role exchange.SwapLegRole) error {
	p, found, err := w.paymentOf(ctx, role.Purpose(), w.s.ID)
	if err != nil || !found || p.Status == exchange.ChainCancelled {
		return err
	}
	return w.abandonPayment(ctx, p.ID, "cancelled", w.by)
}
