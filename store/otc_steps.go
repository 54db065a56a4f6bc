package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/pg"
)

// otcWork is one change of a deposit within its transaction: the row before, the row as it becomes, and who asked for what.
type otcWork struct {
	unitTx
	before exchange.OTCDeposit // as it is stored
	d      exchange.OTCDeposit
	by     exchange.Principal
	intent exchange.Intent // zero when the flow acts by a rule
	step   exchange.OTCStep
	now    time.Time
	post   exchange.Posting
	anew   bool // its price is made anew, by the fees in force
}

// otcSteps carry out the verbs on a deposit that exists.
var otcSteps map[exchange.IntentKind]func(context.Context, *otcWork) error

func init() {
	otcSteps = map[exchange.IntentKind]func(context.Context, *otcWork) error{
		exchange.IntendOTCEdit: editOTC, exchange.IntendOTCQuote: quoteOTC, exchange.IntendOTCSubmit: submitOTC, exchange.IntendOTCProof: proveOTC,
		exchange.IntendOTCAnswer: answerOTC, exchange.IntendOTCCancel: cancelOTC, exchange.IntendOTCAssign: assignOTC, exchange.IntendOTCClaim: claimOTC,
		exchange.IntendOTCRelease: releaseOTC, exchange.IntendOTCAsk: askOTC, exchange.IntendOTCConfirm: confirmOTC, exchange.IntendOTCHold: holdOTC,
		exchange.IntendOTCUnhold: unholdOTC, exchange.IntendOTCReject: rejectOTC, exchange.IntendOTCSettle: settleOTC, exchange.IntendOTCAudit: auditOTC,
		exchange.IntendOTCMatch: matchOTC,
	}
}

// StepOTC carries out a verb on a deposit that somebody asked for by an intent, in the transaction that uses the intent. A repeated call
// returns the deposit as it is. The errors of useIntent come first, then those of OTCDeposit.Admit and OTCStep.Check, then the verb's own.
func (s *Store) StepOTC(ctx context.Context, id uuid.UUID, a exchange.Asked) (exchange.OTCDeposit, error) {
	kinds := make([]exchange.IntentKind, 0, len(otcSteps))
	for kind := range otcSteps {
		kinds = append(kinds, kind)
	}
	return s.workOTC(ctx, id, func(ctx context.Context, w *otcWork) error {
		i, used, err := w.useIntent(ctx, a, kinds...)
		if err == nil && i.ObjectID != id {
			err = exchange.Errorf(exchange.CodeNotFound, "There is no such intent for this object.")
		}
		if err != nil || used {
			return err
		}
		w.intent, w.by = i, i.By
		if err := w.d.Admit(i.Kind, i.By); err != nil {
			return err
		}
		if err := w.stillMay(ctx, i.By); err != nil {
			return err
		}
		if i.Kind != exchange.IntendOTCEdit {
			if w.step, err = exchange.OTCStepOf(i); err == nil {
				err = w.step.Check(i.Kind)
			}
			if err != nil {
				return err
			}
		}
		return otcSteps[i.Kind](ctx, w)
	})
}

// stillMay refuses somebody who was switched off, or has another role, since the intent was written. The row stays locked.
func (t unitTx) stillMay(ctx context.Context, by exchange.Principal) error {
	var u exchange.User
	if err := t.Get(ctx, &u, lockCustomer, by.UserID); err != nil {
		return translate(err, "user")
	}
	if !u.IsActive || u.Role != by.Role {
		return exchange.Errorf(exchange.CodeForbidden, "Only an active account with the right role can do this.")
	}
	return nil
}

// workOTC runs a change of a deposit under its lock.
func (s *Store) workOTC(ctx context.Context, id uuid.UUID, do func(context.Context, *otcWork) error) (exchange.OTCDeposit, error) {
	return change(ctx, s, "OTC deposit", id, func(ctx context.Context, t unitTx) (exchange.OTCDeposit, exchange.Posting, error) {
		w, err := t.startOTC(ctx, id)
		if err == nil {
			err = do(ctx, w)
		}
		if err != nil {
			return exchange.OTCDeposit{}, exchange.Posting{}, err
		}
		return w.d, w.post, nil
	})
}

// startOTC locks a deposit to change it.
func (t unitTx) startOTC(ctx context.Context, id uuid.UUID) (*otcWork, error) {
	d, err := t.lockedOTC(ctx, id)
	return &otcWork{unitTx: t, before: d, d: d, by: flow, now: t.s.now()}, err
}

// move stores the deposit in a status, which may be the one that it has.
func (w *otcWork) move(ctx context.Context, to exchange.OTCStatus, detail string) error {
	if to != w.before.Status {
		if err := exchange.OTCMachine.Allow(w.before.Status, to); err != nil {
			return err
		}
	}
	w.d.Status, w.d.Detail = to, detail
	name := "otc_deposit." + string(to)
	if to == w.before.Status {
		name = "otc_deposit.changed"
	}
	return w.save(ctx, name)
}

// save stores the deposit as it becomes, with its event, and what only staff may see of the change in the audit log alone. The next
// change of the same transaction begins with it.
func (w *otcWork) save(ctx context.Context, name string) error {
	before, err := w.store(ctx)
	if err != nil {
		return err
	}
	event := w.event(name)
	event.before = otcSnapshot(before)
	if err := w.record(ctx, event); err != nil {
		return err
	}
	return w.reviewed(ctx, before)
}

// store stores the deposit as it becomes, and returns it as it was.
func (w *otcWork) store(ctx context.Context) (exchange.OTCDeposit, error) {
	w.d.UpdatedAt = w.now
	n, err := w.Exec(ctx, updateOTC, append([]any{w.d.ID, w.before.Version, w.before.Status}, otcValues(w.d)...)...)
	if err == nil && n == 0 {
		err = pg.ErrChangedMeanwhile
	}
	if err != nil {
		return w.before, err
	}
	before := w.before
	w.d, err = readOne[exchange.OTCDeposit](ctx, w, "OTC deposit", readOTC, w.d.ID)
	w.before = w.d
	return before, err
}

// reviewed records what only staff see of a change.
func (w *otcWork) reviewed(ctx context.Context, before exchange.OTCDeposit) error {
	was, is := otcReview(before), otcReview(w.d)
	if same(was, is) {
		return nil
	}
	return w.audit(ctx, w.by, "otc_deposit.reviewed", "otc_deposit", w.d.ID, was, is)
}

// event is an event of the deposit as it is, for its merchant.
func (w *otcWork) event(name string) auditEvent {
	return auditEvent{by: w.by, object: "otc_deposit", id: w.d.ID, name: name, owner: w.d.MerchantID, vendor: w.d.MerchantID, after: otcSnapshot(w.d)}
}

// same reports whether two documents are equal.
func same(a, b map[string]any) bool {
	one, err := document(a)
	if err != nil {
		return false
	}
	other, err := document(b)
	return err == nil && one == other
}

// flag adds flags, each new one with an event that only staff may read. The next save stores them.
func (w *otcWork) flag(ctx context.Context, flags ...exchange.OTCFlag) error {
	for _, f := range w.d.AddFlags(flags...) {
		err := w.record(ctx, auditEvent{by: w.by, object: "otc_deposit", id: w.d.ID, name: "otc_deposit.flagged", after: map[string]any{"id": w.d.ID, "flag": f}})
		if err != nil {
			return err
		}
	}
	return nil
}

// waiting is the state of a deposit that waits for an officer: assigned where one is named.
func (w *otcWork) waiting() exchange.OTCStatus {
	if w.d.AssignedTo != uuid.Nil {
		return exchange.OTCAssigned
	}
	return exchange.OTCPending
}

// waitsFor is what a deposit in the queue waits for.
func (w *otcWork) waitsFor() string {
	if w.d.HasMoney() || w.d.ProofID != uuid.Nil {
		return exchange.WaitReview
	}
	return exchange.WaitMoney
}

// LapseOTC does what is due by time: it ends a lease, a quote that was not submitted, a draft, and a deposit without money. What is not
// due stays as it is, and so does a deposit while mobile money of it may be on its way.
func (s *Store) LapseOTC(ctx context.Context, id uuid.UUID) (exchange.OTCDeposit, error) {
	return s.workOTC(ctx, id, func(ctx context.Context, w *otcWork) error {
		if due := w.d.Due(); due.IsZero() || w.now.Before(due) {
			return nil
		}
		if w.d.Collects() != "" && w.d.Status.WaitsForOfficer() {
			if may, err := w.mayBePaid(ctx); err != nil || may {
				return err
			}
		}
		switch {
		case w.d.Status == exchange.OTCClaimed:
			return w.endClaim(ctx)
		case w.d.Status == exchange.OTCQuoted && w.now.Before(w.d.ExpiresAt):
			w.clearPrice()
			return w.move(ctx, exchange.OTCDraft, exchange.DetailQuoteEnd)
		case w.d.Status == exchange.OTCDraft, w.d.Status == exchange.OTCQuoted:
			return w.move(ctx, exchange.OTCExpired, exchange.DetailStale)
		}
		return w.move(ctx, exchange.OTCExpired, exchange.DetailNoMoney)
	})
}

const depositMayBePaid = `SELECT deposit_may_be_paid(d, $2) FROM otc_deposits d WHERE d.id = $1`

// mayBePaid reports whether mobile money of the deposit may be on its way.
func (w *otcWork) mayBePaid(ctx context.Context) (may bool, err error) {
	return may, w.Get(ctx, &may, depositMayBePaid, w.d.ID, w.now)
}

// CreditOTC credits shillings that came by mobile money and needed no officer. Any other deposit stays as it is.
func (s *Store) CreditOTC(ctx context.Context, id uuid.UUID) (exchange.OTCDeposit, error) {
	return s.workOTC(ctx, id, func(ctx context.Context, w *otcWork) error {
		if !w.d.SettlesItself() {
			return nil
		}
		if automatic, err := w.automatic(ctx); err != nil || w.d.Received.Cmp(automatic) > 0 {
			return err // the limit is lower by now: a treasury officer settles it
		}
		return w.creditShillings(ctx)
	})
}
