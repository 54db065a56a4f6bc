package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
)

// feeSweepPayment brings the earned fees of a wallet to the treasury.
type feeSweepPayment struct{ sweep exchange.FeeSweep }

// parties are none: the fees are the house's, whoever owns the wallet.
func (o *feeSweepPayment) parties() (owner, vendor uuid.UUID) { return uuid.Nil, uuid.Nil }

func (o *feeSweepPayment) follow(ctx context.Context, t unitTx, to paymentStage, txID string) error {
	f := o.sweep
	switch to {
	case stageApproved:
		f.StatusDetail, f.TxHash = exchange.WaitSignature, ""
	case stageWaiting:
		f.StatusDetail = exchange.WaitWatch
	case stageFrozen:
		f.StatusDetail = exchange.WaitFrozen
	case stageSigned, stageVanished:
		f.Status, f.StatusDetail = exchange.FeeSweepProcessing, exchange.WaitBroadcast
	case stageBroadcast, stageIncluded:
		f.Status, f.StatusDetail, f.TxHash = exchange.FeeSweepProcessing, exchange.WaitFinality, txID
	case stageParked:
		f.StatusDetail = exchange.WaitOperator
	case stageCompleted:
		f.Status, f.StatusDetail, f.TxHash = exchange.FeeSweepCompleted, exchange.WaitNothing, txID
	case stageHandedOut, stageWithdrawn: // fees of a cold wallet are not swept
	}
	var err error
	o.sweep, err = t.saveFeeSweep(ctx, flow, o.sweep, f)
	return err
}

// spend takes the fees out of the wallet's custody. In the treasury they are the house's own coins like others there.
func (o *feeSweepPayment) spend(ctx context.Context, t unitTx, p exchange.ChainPayment) (exchange.Posting, []exchange.Line, error) {
	used := exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldCapture, Hold: exchange.Hold{ID: p.HoldID}}}}
	lines := []exchange.Line{
		exchange.Debit(exchange.Owned(exchange.AccWalletFees, p.WalletID, p.Amount.Asset()), p.Amount),
		exchange.Credit(exchange.Owned(exchange.AccCustody, p.WalletID, p.Amount.Asset()), p.Amount),
	}
	arrival, err := t.arrivalLines(ctx, p)
	return used, append(lines, arrival...), err
}

func (t unitTx) lockedFeeSweep(ctx context.Context, id uuid.UUID) (exchange.FeeSweep, error) {
	return readOne[exchange.FeeSweep](ctx, t, "fee sweep", lockFeeSweep, id)
}

const saveFeeSweep = `
UPDATE fee_sweeps SET status = $2, status_detail = $3, tx_hash = $4, completed_at = $5, updated_at = $6, version = version + 1
WHERE id = $1 AND version = $7 AND status = ANY ($8)`

// saveFeeSweep stores a sweep that differs from before. One that has ended, or did not change, stays as it is.
func (t unitTx) saveFeeSweep(ctx context.Context, by exchange.Principal, before, f exchange.FeeSweep) (exchange.FeeSweep, error) {
	if exchange.FeeSweepMachine.Terminal(before.Status) || f == before {
		return before, nil
	}
	from, name := []exchange.FeeSweepStatus{before.Status}, "fee_sweep.detail_changed"
	if f.Status != before.Status {
		if err := exchange.FeeSweepMachine.Allow(before.Status, f.Status); err != nil {
			return before, err
		}
		from, name = exchange.FeeSweepMachine.Sources(f.Status), "fee_sweep."+string(f.Status)
	}
	if f.UpdatedAt = t.s.now(); f.Status == exchange.FeeSweepCompleted {
		f.CompletedAt = f.UpdatedAt
	}
	if err := t.One(ctx, saveFeeSweep, f.ID, f.Status, f.StatusDetail, f.TxHash, nullTime(f.CompletedAt), f.UpdatedAt, before.Version, pq.Array(from)); err != nil {
		return before, err
	}
	f.Version++
	return f, t.record(ctx, auditEvent{by: by, object: "fee_sweep", id: f.ID, name: name, before: feeSweepSnapshot(before), after: feeSweepSnapshot(f)})
}

// ApproveFeeSweep lets the fees of a sweep leave their wallet, if those who agreed to it may still decide, and approves the payment
// that brings them to the treasury. A repeated call returns the existing payment.
func (s *Store) ApproveFeeSweep(ctx context.Context, id uuid.UUID) (exchange.ApprovedFeeSweep, error) {
	return change(ctx, s, "fee sweep", id, func(ctx context.Context, t unitTx) (exchange.ApprovedFeeSweep, exchange.Posting, error) {
		var none exchange.Posting
		f, err := t.lockedFeeSweep(ctx, id)
		if err != nil || f.Status == exchange.FeeSweepCancelled {
			return exchange.ApprovedFeeSweep{FeeSweep: f}, none, err
		}
		p, found, err := t.paymentOf(ctx, exchange.ForFeeSweep, id)
		if err != nil || found || f.Status == exchange.FeeSweepCompleted {
			return exchange.ApprovedFeeSweep{FeeSweep: f, PaymentID: p.ID}, none, err
		}
		v, err := t.judge(ctx, exchange.ReleaseFeeSweep, id)
		if err != nil {
			return exchange.ApprovedFeeSweep{FeeSweep: f}, none, err
		}
		if !v.Pass {
			waits := f
			waits.StatusDetail = exchange.WaitOfficers
			f, err = t.saveFeeSweep(ctx, flow, f, waits)
			return exchange.ApprovedFeeSweep{FeeSweep: f}, none, err
		}
		to, err := t.treasuryOn(ctx, f.Network)
		if err != nil {
			return exchange.ApprovedFeeSweep{FeeSweep: f}, none, err
		}
		object := &feeSweepPayment{f}
		p, err = t.addPayment(ctx, flow, object, exchange.ChainPayment{
			Purpose: exchange.ForFeeSweep, ObjectID: f.ID, Network: f.Network, Amount: f.Amount, WalletID: f.WalletID, ToAddress: to.Address, HoldID: f.HoldID,
			ApprovedBy: byPolicy,
		})
		if err == nil {
			err = object.follow(ctx, t, stageApproved, "")
		}
		return exchange.ApprovedFeeSweep{FeeSweep: object.sweep, PaymentID: p.ID}, none, err
	})
}

// GiveUpFeeSweep leaves the fees of a sweep where they are, by an operator's decision. CodeStateConflict while a transaction may still
// move them. A repeated call changes nothing.
func (s *Store) GiveUpFeeSweep(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.FeeSweep, error) {
	return change(ctx, s, "fee sweep", id, func(ctx context.Context, t unitTx) (exchange.FeeSweep, exchange.Posting, error) {
		var none exchange.Posting
		f, err := t.lockedFeeSweep(ctx, id)
		if err != nil || f.Status == exchange.FeeSweepCancelled {
			return f, none, err
		}
		if f.Status == exchange.FeeSweepCompleted {
			return f, none, exchange.Errorf(exchange.CodeStateConflict, "The fees are in the treasury already.")
		}
		p, found, err := t.paymentOf(ctx, exchange.ForFeeSweep, id)
		if err == nil && found {
			err = t.abandonPayment(ctx, p.ID, "given up", by)
		}
		if err != nil {
			return f, none, err
		}
		if f, err = t.lockedFeeSweep(ctx, id); err != nil {
			return f, none, err
		}
		if err := t.endRelease(ctx, exchange.ReleaseFeeSweep, id); err != nil {
			return f, none, err
		}
		ended := f
		ended.Status, ended.StatusDetail = exchange.FeeSweepCancelled, exchange.WaitNothing
		f, err = t.saveFeeSweep(ctx, by, f, ended)
		return f, exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldRelease, Hold: exchange.Hold{ID: f.HoldID}}}}, err
	})
}
