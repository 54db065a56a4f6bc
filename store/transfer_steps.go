package store

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// AdvanceTransfer moves a transfer on: a new one that leaves our custody is to be screened, one that stays there, and one
// whose destination has rested, is queued when the rule about all that leaves allows it, and otherwise waits for officers.
// One that is further already is returned as it is.
func (s *Store) AdvanceTransfer(ctx context.Context, id uuid.UUID) (exchange.Transfer, error) {
	return s.stepTransfer(ctx, id, func(ctx context.Context, t unitTx, f exchange.Transfer) (exchange.Transfer, exchange.Posting, error) {
		var none exchange.Posting
		switch {
		case f.Status == exchange.TransferPending, f.Status == exchange.TransferCreated && f.Kind == exchange.InternalTransfer:
			return t.releaseTransfer(ctx, flow, f)
		case f.Status != exchange.TransferCreated:
			return f, none, nil
		}
		f, err := t.moveTransfer(ctx, flow, f, exchange.TransferScreening, exchange.WaitScreening)
		return f, none, err
	})
}

// RecordScreening stores the screening results of a transfer's counterparty and moves the transfer: one hit blocks it
// and keeps its money held, one unknown leaves it where it is, and only when all are clear it goes on to its approval
// or into the queue. Results for a transfer that is not being screened change nothing.
func (s *Store) RecordScreening(ctx context.Context, id uuid.UUID, said []exchange.Screening) (exchange.Transfer, error) {
	return s.stepTransfer(ctx, id, func(ctx context.Context, t unitTx, f exchange.Transfer) (exchange.Transfer, exchange.Posting, error) {
		var none exchange.Posting
		if f.Status != exchange.TransferScreening {
			return f, none, nil
		}
		if len(said) == 0 {
			return f, none, exchange.Errorf(exchange.CodeInternal, "transfer %s has no screening results", id)
		}
		// The worst result is stored last, because the database uses the last one.
		slices.SortStableFunc(said, func(a, b exchange.Screening) int { return severity(a.Verdict) - severity(b.Verdict) })
		for _, v := range said {
			v.TransferID = id
			if err := t.saveScreening(ctx, v); err != nil {
				return f, none, err
			}
		}
		var err error
		switch said[len(said)-1].Verdict {
		case exchange.VerdictHit:
			f, err = t.moveTransfer(ctx, flow, f, exchange.TransferBlocked, exchange.DetailHeld)
		case exchange.VerdictClear:
			return t.releaseTransfer(ctx, flow, f)
		case exchange.VerdictUnknown:
		}
		return f, none, err
	})
}

func severity(v exchange.Verdict) int {
	switch v {
	case exchange.VerdictClear:
		return 0
	case exchange.VerdictHit:
		return 2
	case exchange.VerdictUnknown:
	}
	return 1
}

// releaseTransfer queues a transfer when the rule about all that leaves allows it. Otherwise the transfer waits for officers,
// for the rest of its destination, or both.
func (t unitTx) releaseTransfer(ctx context.Context, by exchange.Principal, before exchange.Transfer) (exchange.Transfer, exchange.Posting, error) {
	var none exchange.Posting
	v, err := t.judge(ctx, exchange.ReleaseTransfer, before.ID)
	if err != nil {
		return before, none, err
	}
	f := before
	f.ApprovalsRequired, f.RestsUntil = v.Officers, v.Until
	if v.Pass {
		return t.queueTransfer(ctx, by, f)
	}
	detail := exchange.WaitApproval
	switch {
	case f.Approvals >= v.Officers:
		detail = exchange.WaitRest
	case f.Approvals > 0:
		detail = exchange.WaitSecond
	}
	name := "transfer." + string(exchange.TransferPending)
	switch {
	case before.Status == exchange.TransferPending && by.UserID != uuid.Nil:
		name = "transfer.approval_counted"
	case before.Status == exchange.TransferPending && detail == before.StatusDetail && v.Officers == before.ApprovalsRequired:
		return f, none, nil
	case before.Status == exchange.TransferPending:
		name = "transfer.detail_changed"
	}
	f.Status, f.StatusDetail = exchange.TransferPending, detail
	f, err = t.saveTransfer(ctx, name, by, before, f)
	return f, none, err
}

// Only approvals by officers who may still approve count and are listed.
const readApprovers = `
SELECT a.officer_id FROM approvals a JOIN users u ON u.id = a.officer_id AND u.is_active AND u.role IN ('admin', 'treasury')
WHERE a.action = 'approve' AND (a.object_type = 'transfer' AND a.object_id = $1 OR a.object_type = 'otc_withdrawal' AND a.object_id = (SELECT w.id FROM transfers f
    JOIN otc_withdrawals w ON w.transfer_intent_id = f.intent_id WHERE f.id = $1)) ORDER BY a.created_at, a.id`

// A deactivated account, or one that acts for a deactivated merchant, no longer controls money. An account whose owners on the chain are others
// than were agreed gets none.
const queueFacts = `
SELECT EXISTS (SELECT FROM users WHERE id IN ($1, $2) AND NOT is_active) AS gone,
    EXISTS (SELECT FROM multisig_accounts WHERE network = $3 AND address = $4 AND status = 'differs') AS differs`

// queueTransfer writes the approved payment of a transfer. Days may have passed since the request: the transfer is
// blocked if its address is now on the deny list, or an account whose owners are others now than were agreed, and cancelled if its requester or the requester's merchant is now
// deactivated.
func (t unitTx) queueTransfer(ctx context.Context, by exchange.Principal, f exchange.Transfer) (exchange.Transfer, exchange.Posting, error) {
	var none exchange.Posting
	denied := false
	if f.Kind == exchange.ExternalTransfer {
		if err := t.Get(ctx, &denied, isDenied, f.Network, f.ToAddress); err != nil {
			return f, none, err
		}
	}
	if denied {
		hit := exchange.Screening{TransferID: f.ID, Screener: DenyListScreener, Verdict: exchange.VerdictHit}
		if err := t.saveScreening(ctx, hit); err != nil {
			return f, none, err
		}
		f, err := t.moveTransfer(ctx, flow, f, exchange.TransferBlocked, exchange.DetailHeld)
		return f, none, err
	}
	var now struct{ Gone, Differs bool }
	if err := t.Get(ctx, &now, queueFacts, f.RequestedBy, nullID(f.VendorID), f.Network, f.ToAddress); err != nil {
		return f, none, err
	}
	if now.Differs {
		f, err := t.moveTransfer(ctx, flow, f, exchange.TransferBlocked, exchange.DetailHeld)
		return f, none, err
	}
	if now.Gone {
		return t.endTransfer(ctx, f, exchange.TransferCancelled, exchange.DetailInactive, flow)
	}
	f, err := t.payTransfer(ctx, by, f)
	return f, none, err
}

// approvers names who approved a transfer, for its payment.
func (t unitTx) approvers(ctx context.Context, f exchange.Transfer) (string, error) {
	if f.ApprovalsRequired == 0 {
		return byPolicy, nil
	}
	var officers []uuid.UUID
	if err := t.All(ctx, &officers, readApprovers, f.ID); err != nil {
		return "", err
	}
	names := make([]string, len(officers))
	for i, id := range officers {
		names[i] = "user:" + id.String()
	}
	return strings.Join(names, ","), nil
}

// payTransfer queues a transfer together with its approved payment.
func (t unitTx) payTransfer(ctx context.Context, by exchange.Principal, f exchange.Transfer) (exchange.Transfer, error) {
	approvedBy, err := t.approvers(ctx, f)
	if err != nil {
		return f, err
	}
	detail := exchange.WaitSignature
	if f.WalletType == exchange.Cold {
		detail = exchange.WaitExternal
	}
	if f, err = t.moveTransfer(ctx, by, f, exchange.TransferQueued, detail); err != nil {
		return f, err
	}
	p, err := t.addPayment(ctx, by, &transferPayment{transfer: f}, exchange.ChainPayment{
		Purpose: exchange.ForTransfer, ObjectID: f.ID, Network: f.Network, Amount: f.Amount, WalletID: f.WalletID, ToAddress: f.ToAddress,
		HoldID: f.HoldID, ApprovedBy: approvedBy,
	})
	f.PaymentID = p.ID
	return f, err
}

// SignTransfer hands a queued transfer to the signer. CodeStateConflict for a cold wallet's transfer, which is signed
// on the cold machine. One that is further already is returned as it is.
func (s *Store) SignTransfer(ctx context.Context, id uuid.UUID) (exchange.Transfer, error) {
	return s.stepTransfer(ctx, id, func(ctx context.Context, t unitTx, f exchange.Transfer) (exchange.Transfer, exchange.Posting, error) {
		var none exchange.Posting
		if f.Status != exchange.TransferQueued {
			return f, none, nil
		}
		if f.WalletType == exchange.Cold {
			return f, none, exchange.Errorf(exchange.CodeStateConflict, "Transfers of cold wallets are signed on the cold machine.")
		}
		f, err := t.moveTransfer(ctx, flow, f, exchange.TransferSigning, exchange.WaitSignature)
		return f, none, err
	})
}

// release frees the hold, the limits and the running sums of a transfer that moves nothing.
func (t unitTx) release(ctx context.Context, f exchange.Transfer) (exchange.Posting, error) {
	p := exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldRelease, Hold: exchange.Hold{ID: f.HoldID}}}}
	if f.FeeHoldID != uuid.Nil {
		p.Holds = append(p.Holds, exchange.HoldOp{Verb: exchange.HoldRelease, Hold: exchange.Hold{ID: f.FeeHoldID}})
	}
	if err := t.endRelease(ctx, exchange.ReleaseTransfer, f.ID); err != nil {
		return p, err
	}
	return p, t.releaseLimit(ctx, "transfer", f.ID)
}

// CancelTransfer carries out an intent to give a transfer up before anything is signed, and frees its money. A cancelled
// one is returned as it is; CodeStateConflict when a transaction of it may move money, or when it has ended. The errors of
// useIntent come before all others.
func (s *Store) CancelTransfer(ctx context.Context, id uuid.UUID, a exchange.Asked) (exchange.Transfer, error) {
	return s.stepTransfer(ctx, id, func(ctx context.Context, t unitTx, f exchange.Transfer) (exchange.Transfer, exchange.Posting, error) {
		var none exchange.Posting
		if a.IntentID == uuid.Nil {
			return f, none, exchange.Errorf(exchange.CodeNotFound, "There is no intent to cancel the transfer.")
		}
		by, done, err := t.act(ctx, a, id, exchange.IntendTransferCancel)
		if err != nil || done || f.Status == exchange.TransferCancelled {
			return f, none, err
		}
		if err := exchange.TransferMachine.Allow(f.Status, exchange.TransferCancelled); err != nil {
			return f, none, exchange.Errorf(exchange.CodeStateConflict, "A transfer that is %s can't be cancelled.", f.Status)
		}
		detail := exchange.DetailBySender
		if by.Role.Staff() {
			detail = exchange.DetailByStaff
		}
		return t.endTransfer(ctx, f, exchange.TransferCancelled, detail, by)
	})
}

func (t unitTx) endTransfer(ctx context.Context, f exchange.Transfer, to exchange.TransferStatus, detail string, by exchange.Principal) (exchange.Transfer, exchange.Posting, error) {
	var none exchange.Posting
	if err := t.giveUpPayment(ctx, f, by, detail); err != nil {
		return f, none, err
	}
	p, err := t.release(ctx, f)
	if err != nil {
		return f, none, err
	}
	f, err = t.moveTransfer(ctx, by, f, to, detail)
	return f, p, err
}

// LapseTransfer cancels a transfer that no officer decided in time. One that no longer waits for a decision is
// returned as it is.
func (s *Store) LapseTransfer(ctx context.Context, id uuid.UUID) (exchange.Transfer, error) {
	return s.stepTransfer(ctx, id, func(ctx context.Context, t unitTx, f exchange.Transfer) (exchange.Transfer, exchange.Posting, error) {
		if f.Status != exchange.TransferPending {
			return f, exchange.Posting{}, nil
		}
		return t.endTransfer(ctx, f, exchange.TransferCancelled, exchange.DetailLapsed, flow)
	})
}

// GiveUpTransfer carries out an operator's decision to give the money back: a transfer that never reached the signer
// is cancelled, one that did fails, and the held money of a blocked one is freed. CodeStateConflict while a
// transaction may still move the money. A repeated call changes nothing.
func (s *Store) GiveUpTransfer(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.Transfer, error) {
	return s.stepTransfer(ctx, id, func(ctx context.Context, t unitTx, f exchange.Transfer) (exchange.Transfer, exchange.Posting, error) {
		var none exchange.Posting
		switch f.Status {
		case exchange.TransferCreated, exchange.TransferScreening, exchange.TransferPending, exchange.TransferQueued:
			return t.endTransfer(ctx, f, exchange.TransferCancelled, exchange.DetailByStaff, by)
		case exchange.TransferSigning, exchange.TransferBroadcasting, exchange.TransferConfirming:
			return t.endTransfer(ctx, f, exchange.TransferFailed, exchange.DetailGivenUp, by)
		case exchange.TransferBlocked:
			if f.StatusDetail == exchange.DetailReleased {
				return f, none, nil
			}
			before := f
			f.StatusDetail = exchange.DetailReleased
			f, err := t.saveTransfer(ctx, "transfer.released", by, before, f)
			if err != nil {
				return f, none, err
			}
			p, err := t.release(ctx, f)
			return f, p, err
		case exchange.TransferCancelled, exchange.TransferFailed, exchange.TransferRejected:
			return f, none, nil // the money is already free
		case exchange.TransferCompleted:
		}
		return f, none, exchange.Errorf(exchange.CodeStateConflict, "A transfer that is %s can't be given up.", f.Status)
	})
}
