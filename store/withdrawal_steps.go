package store

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// withdrawalVerbs carry out the verbs on a withdrawal that exists.
var withdrawalVerbs map[exchange.IntentKind]func(context.Context, *outWork) error

func init() {
	withdrawalVerbs = map[exchange.IntentKind]func(context.Context, *outWork) error{
		exchange.IntendWithdrawalCancel: cancelWithdrawal, exchange.IntendWithdrawalHold: holdWithdrawal, exchange.IntendWithdrawalUnhold: unholdWithdrawal,
		exchange.IntendWithdrawalExecute: executeWithdrawal, exchange.IntendWithdrawalPaid: confirmWithdrawal,
	}
}

// StepWithdrawal carries out a verb on a withdrawal that somebody asked for by an intent, in the transaction that uses the intent. A
// repeated call returns the withdrawal as it is. The errors of useIntent come first, then those of Withdrawal.Admit and
// WithdrawalStep.Check, then the verb's own.
func (s *Store) StepWithdrawal(ctx context.Context, id uuid.UUID, a exchange.Asked) (exchange.Withdrawal, error) {
	kinds := make([]exchange.IntentKind, 0, len(withdrawalVerbs))
	for kind := range withdrawalVerbs {
		kinds = append(kinds, kind)
	}
	return s.workWithdrawal(ctx, id, func(ctx context.Context, w *outWork) error {
		i, used, err := w.useIntent(ctx, a, kinds...)
		if err == nil && i.ObjectID != id {
			err = exchange.Errorf(exchange.CodeNotFound, "There is no such intent for this object.")
		}
		if err != nil || used {
			return err
		}
		w.intent, w.by = i, i.By
		if err := w.w.Admit(i.Kind, i.By); err != nil {
			return err
		}
		if err := w.stillMay(ctx, i.By); err != nil {
			return err
		}
		if w.step, err = exchange.WithdrawalStepOf(i); err == nil {
			err = w.step.Check(i.Kind)
		}
		if err != nil {
			return err
		}
		return withdrawalVerbs[i.Kind](ctx, w)
	})
}

// cancelWithdrawal frees the money for its merchant.
func cancelWithdrawal(ctx context.Context, w *outWork) error {
	w.w.EndedBy, w.w.Reason = w.by.UserID, w.step.Text // an officer's words about a hold are not the merchant's
	return w.end(ctx, exchange.WithdrawalCancelled, exchange.DetailCancelled)
}

// holdWithdrawal stops a withdrawal until an officer lets it go on.
func holdWithdrawal(ctx context.Context, w *outWork) error {
	w.w.HeldFrom, w.w.Reason = w.w.Status, w.step.Text
	return w.move(ctx, exchange.WithdrawalHold, exchange.WaitOperator)
}

// unholdWithdrawal lets it go on: an approved one is looked at again.
func unholdWithdrawal(ctx context.Context, w *outWork) error {
	to, detail := exchange.WithdrawalPending, exchange.WaitApproval
	if w.w.HeldFrom == exchange.WithdrawalRequested {
		to, detail = exchange.WithdrawalRequested, exchange.WaitScreening
	}
	w.w.HeldFrom, w.w.Reason = "", ""
	return w.move(ctx, to, detail)
}

// end frees the money of a withdrawal of which nothing was executed, or nothing may be on its way.
func (w *outWork) end(ctx context.Context, to exchange.WithdrawalStatus, detail string) error {
	w.w.HeldFrom = ""
	if w.step.Text != "" {
		w.w.Reason = w.step.Text
	}
	w.settle(exchange.HoldRelease, w.w.HoldID)
	if !w.w.Sold() {
		w.settle(exchange.HoldRelease, w.w.HouseHoldID)
	}
	if w.w.Status == exchange.WithdrawalConfirming { // the money at a bank is held while it may leave
		w.settle(exchange.HoldRelease, w.w.BankHoldID)
	}
	if err := w.endRelease(ctx, exchange.ReleaseWithdrawal, w.w.ID); err != nil {
		return err
	}
	if err := w.releaseLimit(ctx, "otc_withdrawal", w.w.ID); err != nil {
		return err
	}
	w.w.TransferIntentID, w.w.TransferID = uuid.Nil, uuid.Nil
	return w.move(ctx, to, detail)
}

// standing is what the withdrawal needs before it may leave, by the rule about all that leaves, as things are.
func (w *outWork) standing(ctx context.Context) (exchange.WithdrawalStanding, error) {
	out := exchange.WithdrawalStanding{Withdrawal: w.w}
	var release uuid.UUID
	if err := w.Get(ctx, &release, lockRelease, exchange.ReleaseWithdrawal, w.w.ID); err != nil {
		return out, translate(err, "release")
	}
	if _, err := w.Exec(ctx, lockSums, release); err != nil {
		return out, err
	}
	var f exchange.ReleaseFacts
	if err := w.Get(ctx, &f, releaseFacts, release, w.now); err != nil {
		return out, err
	}
	v := exchange.JudgeRelease(f)
	out.Needed, out.Approvals, out.RestsUntil = v.Officers, f.Approved, v.Until
	if !f.PassedAt.IsZero() || v.Officers == f.Officers {
		return out, nil
	}
	return out, w.One(ctx, saveVerdict, release, v.Officers, nullTime(v.Until), nullTime(f.PassedAt))
}

const withdrawalCleared = `SELECT withdrawal_cleared(w) FROM otc_withdrawals w WHERE w.id = $1`

const withdrawalPartyGone = `SELECT withdrawal_party_gone(w) FROM otc_withdrawals w WHERE w.id = $1`

// AdvanceWithdrawal brings a withdrawal that was not executed to where it belongs: to its approval when its destination needs no
// screening or was cleared, to its execution when enough officers approved it and its destination has rested, and back when it needs more.
// One whose time is over, or whose merchant was switched off, is cancelled. It returns what the withdrawal needs.
func (s *Store) AdvanceWithdrawal(ctx context.Context, id uuid.UUID) (exchange.WithdrawalStanding, error) {
	var out exchange.WithdrawalStanding
	_, err := s.workWithdrawal(ctx, id, func(ctx context.Context, w *outWork) error {
		var err error
		out, err = w.advance(ctx)
		return err
	})
	return out, err
}

func (w *outWork) advance(ctx context.Context) (exchange.WithdrawalStanding, error) {
	out := exchange.WithdrawalStanding{Withdrawal: w.w}
	if w.w.Over() || w.w.Status == exchange.WithdrawalHold {
		return out, nil
	}
	if slices.Contains([]exchange.WithdrawalStatus{exchange.WithdrawalRequested, exchange.WithdrawalPending, exchange.WithdrawalApproved}, w.w.Status) {
		if done, err := w.lapse(ctx); err != nil || done {
			out.Withdrawal = w.w
			return out, err
		}
	}
	if w.w.Status == exchange.WithdrawalRequested {
		var cleared bool
		if err := w.Get(ctx, &cleared, withdrawalCleared, w.w.ID); err != nil || !cleared {
			return out, err
		}
	}
	var err error
	if out, err = w.standing(ctx); err != nil {
		return out, err
	}
	switch w.w.Status {
	case exchange.WithdrawalRequested:
		if err = w.move(ctx, exchange.WithdrawalPending, out.Waits()); err == nil && out.Ready() {
			err = w.move(ctx, exchange.WithdrawalApproved, exchange.WaitExecution)
		}
	case exchange.WithdrawalPending, exchange.WithdrawalApproved:
		to := exchange.WithdrawalPending
		if out.Ready() {
			to = exchange.WithdrawalApproved
		}
		err = w.move(ctx, to, out.Waits())
	default:
	}
	out.Withdrawal = w.w
	return out, err
}

// lapse cancels a withdrawal that nobody executed in time, or whose merchant was switched off.
func (w *outWork) lapse(ctx context.Context) (bool, error) {
	var gone bool
	if err := w.Get(ctx, &gone, withdrawalPartyGone, w.w.ID); err != nil {
		return false, err
	}
	detail := exchange.DetailUnexecuted
	switch {
	case gone:
		detail = exchange.DetailInactive
	case w.now.Before(w.w.CreatedAt.Add(exchange.WithdrawalLife)):
		return false, nil
	}
	return true, w.end(ctx, exchange.WithdrawalCancelled, detail)
}

const insertWithdrawalScreening = `INSERT INTO screenings (id, withdrawal_id, screener, verdict, reference, at) VALUES ($1, $2, $3, $4, $5, $6)`

// RecordWithdrawalScreening stores the screening results of a withdrawal's address: one hit rejects it, one unknown leaves it where it is,
// and only when all are clear it goes on. Results for a withdrawal that is not being screened change nothing.
func (s *Store) RecordWithdrawalScreening(ctx context.Context, id uuid.UUID, said []exchange.Screening) (exchange.WithdrawalStanding, error) {
	var out exchange.WithdrawalStanding
	_, err := s.workWithdrawal(ctx, id, func(ctx context.Context, w *outWork) error {
		out = exchange.WithdrawalStanding{Withdrawal: w.w}
		if w.w.Status != exchange.WithdrawalRequested {
			return nil
		}
		if len(said) == 0 {
			return exchange.Errorf(exchange.CodeInternal, "withdrawal %s has no screening results", id)
		}
		// The worst result is stored last, because the database uses the last one.
		slices.SortStableFunc(said, func(a, b exchange.Screening) int { return severity(a.Verdict) - severity(b.Verdict) })
		for _, v := range said {
			row, err := uuid.NewV7()
			if err == nil {
				err = w.One(ctx, insertWithdrawalScreening, row, id, clip(v.Screener, 80), v.Verdict, clip(v.Reference, 200), w.now)
			}
			if err != nil {
				return err
			}
		}
		var err error
		switch said[len(said)-1].Verdict {
		case exchange.VerdictHit:
			err = w.end(ctx, exchange.WithdrawalRejected, exchange.DetailHit)
			out.Withdrawal = w.w
		case exchange.VerdictClear:
			out, err = w.advance(ctx)
		case exchange.VerdictUnknown:
		}
		return err
	})
	return out, err
}

// SetWithdrawalDetail stores what a withdrawal that is being carried out waits for.
func (s *Store) SetWithdrawalDetail(ctx context.Context, id uuid.UUID, detail string) (exchange.Withdrawal, error) {
	return s.workWithdrawal(ctx, id, func(ctx context.Context, w *outWork) error {
		if w.w.Over() || w.w.Status == exchange.WithdrawalHold {
			return nil
		}
		return w.move(ctx, w.w.Status, detail)
	})
}

// executeWithdrawal lets a withdrawal leave, by an officer who did not decide about it.
func executeWithdrawal(ctx context.Context, w *outWork) error {
	var decided bool
	if err := w.Get(ctx, &decided, decidedBy, exchange.ApproveWithdrawal, w.w.ID, w.by.UserID, w.w.Digest); err != nil {
		return err
	}
	if decided {
		return exchange.Errorf(exchange.CodeForbidden, "Who decided about a withdrawal can't execute it. Another officer has to.")
	}
	v, err := w.releaseOwed(ctx, exchange.ReleaseWithdrawal, w.w.ID)
	if err != nil {
		return err
	}
	if !v.Pass {
		return exchange.Wrap(exchange.CodeStateConflict, exchange.ErrOfficers, "The withdrawal needs the approval of another officer by now, or its destination rests.")
	}
	w.w.ExecutedBy, w.w.ExecutedAt = w.by.UserID, w.now
	switch {
	case w.w.Buys():
		return w.beginTransfer(ctx)
	case w.w.Sells():
		return w.move(ctx, exchange.WithdrawalExecuting, exchange.WaitShillings)
	case w.w.Method == exchange.WithdrawByBank:
		return w.move(ctx, exchange.WithdrawalExecuting, exchange.WaitBank)
	}
	return w.move(ctx, exchange.WithdrawalExecuting, exchange.WaitPayout)
}
