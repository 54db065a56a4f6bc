package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	sdk "go.temporal.io/sdk/activity"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// vault is a cold wallet's nonce account and its issued payloads. All is under the book's lock.
type vault struct {
	opened, advanced uuid.UUID // the payments
	parts            int
	completed        int
	refuses          exchange.Code // that nothing can be withdrawn
	asked            int           // to withdraw
}

// move is a payment of the gas wallet, which every query returns until it is completed.
func (w *transferHarness) move(id *uuid.UUID, purpose exchange.ChainPurpose) (uuid.UUID, bool) {
	b := w.book
	if *id == uuid.Nil {
		*id = uuid.New()
		b.payments[*id] = exchange.ChainPayment{
			ID: *id, Purpose: purpose, ObjectID: *id, Network: w.ask.Network, Amount: w.ask.Amount, FromAddress: "TGas", ToAddress: "TNonce", Status: exchange.ChainApproved,
		}
		b.orders[*id] = exchange.Order{ID: *id, Type: exchange.OnRampBuy, Status: exchange.OrderProcessing}
	}
	p := b.payments[*id]
	if p.Status == exchange.ChainParked {
		p.Status = exchange.ChainApproved
		b.payments[*id] = p
	}
	return *id, p.Status == exchange.ChainCompleted
}

// registerCold registers the issue and the import of transactions. The transaction signed offline is the next one that the
// network's book makes.
func (w *transferHarness) registerCold() {
	name := func(s string) sdk.RegisterOptions { return sdk.RegisterOptions{Name: s} }
	w.env.RegisterActivityWithOptions(func(_ context.Context, in activities.ColdInput) (activities.ColdDraft, error) {
		w.book.mu.Lock()
		defer w.book.mu.Unlock()
		if v := w.send.vault; v != nil {
			if id, done := w.move(&v.opened, exchange.ForNonceAccount); !done {
				return activities.ColdDraft{NoncePaymentID: id}, nil
			}
		}
		w.send.handedOut = append(w.send.handedOut, in.Actor.UserID)
		return activities.ColdDraft{}, nil
	}, name("DraftColdPayment"))
	w.env.RegisterActivityWithOptions(func(ctx context.Context, in activities.ColdImport) (activities.SignedPayment, error) {
		if v := w.send.vault; v != nil && string(in.Raw) == "good" {
			v.parts++
			return activities.SignedPayment{Incomplete: true}, nil
		}
		if string(in.Raw) != "good" {
			return activities.SignedPayment{}, activities.Failure(ctx, exchange.Invalid(exchange.FieldError{Pointer: "/signed_transaction", Code: "transaction", Message: "is another"}))
		}
		return w.signedElsewhere(ctx, in.PaymentID)
	}, name("ImportColdPayment"))
	w.env.RegisterActivityWithOptions(func(ctx context.Context, in activities.SignInput) (activities.SignedPayment, error) {
		w.send.vault.completed++
		return w.signedElsewhere(ctx, in.PaymentID)
	}, name("CompleteColdPayment"))
	w.env.RegisterActivityWithOptions(func(ctx context.Context, _ activities.ColdInput) (activities.ColdClosed, error) {
		w.book.mu.Lock()
		defer w.book.mu.Unlock()
		v := w.send.vault
		if v == nil || len(w.send.handedOut) == 0 {
			return activities.ColdClosed{}, nil
		}
		v.asked++
		if v.refuses != "" {
			return activities.ColdClosed{}, activities.Failure(ctx, exchange.Errorf(v.refuses, "It may still be included."))
		}
		id, done := w.move(&v.advanced, exchange.ForNonceAdvance)
		if done {
			id = uuid.Nil
		}
		return activities.ColdClosed{NoncePaymentID: id}, nil
	}, name("CloseColdPayment"))
}

func (w *transferHarness) signedElsewhere(ctx context.Context, payment uuid.UUID) (activities.SignedPayment, error) {
	if a, alive, err := w.book.LiveAttempt(ctx, payment); err != nil || alive {
		return activities.SignedPayment{TxID: a.TxID}, activities.Failure(ctx, err)
	}
	p, err := w.book.ChainPayment(ctx, payment)
	if err != nil {
		return activities.SignedPayment{}, activities.Failure(ctx, err)
	}
	a, err := w.chain.sign(ctx, p)
	return activities.SignedPayment{TxID: a.TxID}, activities.Failure(ctx, err)
}

// brings imports signed bytes under the name of a request.
func (w *transferHarness) brings(name, raw string) {
	w.env.UpdateWorkflow(workflows.UpdateImport, name, w.answer(name), workflows.SignedElsewhere{Raw: []byte(raw), Actor: w.sender()})
}

func (w *transferHarness) asksPayload(name string) {
	w.env.UpdateWorkflow(workflows.UpdatePayload, name, w.answer(name), w.sender())
}

func TestColdTransfers(t *testing.T) {
	t.Parallel()
	waits := workflows.ReasonColdWallet
	for _, s := range []passage{
		{
			name: "signed elsewhere", status: sent, detail: nought, reasons: []workflows.Reason{waits},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.asksPayload("payload") })
				w.at(2*whenParked, func() { w.brings("import", "good") })
			},
			check: func(t *testing.T, w *transferHarness) {
				answered("payload", "")(t, w)
				answered("import", "")(t, w)
				if len(w.send.handedOut) != 1 {
					t.Errorf("handed out %d times", len(w.send.handedOut))
				}
			},
		},
		{
			name: "foreign bytes first", status: sent, detail: nought, reasons: []workflows.Reason{waits},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.brings("bad", "other") })
				w.at(2*whenParked, func() { w.brings("good", "good") })
			},
			check: answered("bad", exchange.CodeInvalid),
		},
		{
			name: "twice at once", status: sent, detail: nought, reasons: []workflows.Reason{waits},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.brings("one", "good"); w.brings("two", "good") })
			},
			check: answered("two", ""),
		},
		{
			name: "never in a block, then signed again", status: sent, detail: nought, outcomes: []outcome{{dropped: true}, {}},
			reasons: []workflows.Reason{waits, waits},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.brings("one", "good") })
				w.at(3*whenParked, func() { w.brings("two", "good") })
			},
		},
		{
			name: "failed on the chain, then signed again", status: sent, detail: nought, outcomes: []outcome{{reverts: true}, {}},
			reasons: []workflows.Reason{waits, workflows.ReasonPayoutFailed, waits},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.brings("one", "good") })
				w.at(2*whenParked, func() { w.order(activities.VerbRetry) })
				w.at(3*whenParked, func() { w.brings("two", "good") })
			},
		},
		{
			name: "looked at, then given back", status: exchange.TransferCancelled, detail: exchange.DetailByStaff, reasons: []workflows.Reason{waits, waits},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.order(activities.VerbRetry) })
				w.at(2*whenParked, func() { w.order(activities.VerbRefund) })
			},
		},
		{
			name: "given back and brought at once", status: sent, detail: nought, reasons: []workflows.Reason{waits},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.order(activities.VerbRefund); w.brings("import", "good") })
			},
			check: answered("import", ""),
		},
	} {
		s.cold = true
		t.Run(s.name, func(t *testing.T) { t.Parallel(); s.play(t) })
	}
}

// On a network of nonce accounts the gas wallet goes before and after the owner: it opens the account, signs what the
// owner signed, and makes impossible what is withdrawn before any money is given back.
func TestColdTransfersOfNonceAccounts(t *testing.T) {
	t.Parallel()
	waits := workflows.ReasonColdWallet
	for _, s := range []passage{
		{
			name: "signed elsewhere", status: sent, detail: nought, reasons: []workflows.Reason{waits},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.asksPayload("payload") })
				w.at(2*whenParked, func() { w.brings("import", "good") })
			},
			check: func(t *testing.T, w *transferHarness) {
				answered("payload", "")(t, w)
				answered("import", "")(t, w)
				if v := w.send.vault; len(w.send.handedOut) != 1 || v.parts != 1 || v.completed != 1 || v.asked != 0 || w.chain.built != 2 {
					t.Errorf("handed out %d times, %+v, %d transactions", len(w.send.handedOut), v, w.chain.built)
				}
			},
		},
		{
			name: "the account is not opened at first", status: sent, detail: nought, outcomes: []outcome{{reverts: true}, {}}, reasons: []workflows.Reason{waits},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.asksPayload("first") })
				w.at(2*whenParked, func() { w.asksPayload("second") })
				w.at(3*whenParked, func() { w.brings("import", "good") })
			},
			check: func(t *testing.T, w *transferHarness) {
				answered("first", exchange.CodeStateConflict)(t, w)
				answered("second", "")(t, w)
			},
		},
		{
			name: "withdrawn", status: exchange.TransferCancelled, detail: exchange.DetailByPerson, reasons: []workflows.Reason{waits},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.asksPayload("payload") })
				w.at(2*whenParked, func() { w.cancel() })
			},
			check: func(t *testing.T, w *transferHarness) {
				answered("cancel", "")(t, w)
				if p := w.book.payments[w.send.vault.advanced]; p.Status != exchange.ChainCompleted {
					t.Errorf("the money was given back before the advance, which is %s", p.Status)
				}
			},
		},
		{
			name: "withdrawn at the second try", status: exchange.TransferCancelled, detail: exchange.DetailByStaff, outcomes: []outcome{{}, {reverts: true}, {}},
			reasons: []workflows.Reason{waits, waits},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.asksPayload("payload") })
				w.at(2*whenParked, func() { w.order(activities.VerbRefund) })
				w.at(3*whenParked, func() { w.order(activities.VerbRefund) })
			},
		},
		{
			name: "it may still be included", status: sent, detail: nought, reasons: []workflows.Reason{waits, waits},
			people: func(w *transferHarness) {
				w.send.vault.refuses = exchange.CodeStateConflict
				w.at(whenParked, func() { w.asksPayload("payload") })
				w.at(2*whenParked, func() { w.cancel() })
				w.at(3*whenParked, func() { w.order(activities.VerbRefund) })
				w.at(4*whenParked, func() { w.brings("import", "good") })
			},
			check: answered("cancel", exchange.CodeStateConflict),
		},
	} {
		s.cold, s.durable = true, true
		t.Run(s.name, func(t *testing.T) { t.Parallel(); s.play(t) })
	}
}

// A transfer that is not approved, or that the signer signs itself, gets no payload.
func TestNothingElseIsHandedOut(t *testing.T) {
	t.Parallel()
	passage{
		name: "not approved", required: 1, cold: true, status: exchange.TransferCancelled, detail: exchange.DetailByPerson,
		people: func(w *transferHarness) {
			w.at(time.Minute, func() { w.asksPayload("payload"); w.brings("import", "good") })
			w.at(time.Hour, func() { w.cancel() })
		},
		check: func(t *testing.T, w *transferHarness) {
			answered("payload", exchange.CodeStateConflict)(t, w)
			answered("import", exchange.CodeStateConflict)(t, w)
		},
	}.play(t)
	passage{
		name: "hot", required: 1, status: exchange.TransferCancelled, detail: exchange.DetailByPerson,
		people: func(w *transferHarness) {
			w.at(time.Minute, func() { w.asksPayload("payload") })
			w.at(time.Hour, func() { w.cancel() })
		},
		check: answered("payload", exchange.CodeStateConflict),
	}.play(t)
}
