package workflows_test

import (
	"context"
	"testing"
	"time"

	sdk "go.temporal.io/sdk/activity"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// registerCold lets transactions be handed out and taken back. What is signed elsewhere is what the network's
// book makes next.
func (w *transferWorld) registerCold() {
	w.env.RegisterActivityWithOptions(func(_ context.Context, in activities.ColdInput) (activities.ColdDraft, error) {
		w.book.mu.Lock()
		defer w.book.mu.Unlock()
		w.send.handedOut = append(w.send.handedOut, in.Actor.UserID)
		return activities.ColdDraft{}, nil
	}, sdk.RegisterOptions{Name: "DraftColdPayment"})
	w.env.RegisterActivityWithOptions(func(ctx context.Context, in activities.ColdImport) (activities.SignedPayment, error) {
		if string(in.Raw) != "good" {
			return activities.SignedPayment{}, activities.Failure(ctx, exchange.Invalid(exchange.FieldError{Pointer: "/signed_transaction", Code: "transaction", Message: "is another"}))
		}
		if a, alive, err := w.book.LiveAttempt(ctx, in.PaymentID); err != nil || alive {
			return activities.SignedPayment{TxID: a.TxID}, activities.Failure(ctx, err)
		}
		a, err := w.chain.sign(ctx, in.PaymentID)
		return activities.SignedPayment{TxID: a.TxID}, activities.Failure(ctx, err)
	}, sdk.RegisterOptions{Name: "ImportColdPayment"})
}

// brings imports bytes under the name of a request.
func (w *transferWorld) brings(name, raw string) {
	w.env.UpdateWorkflow(workflows.UpdateImport, name, w.answer(name), workflows.SignedElsewhere{Raw: []byte(raw), Actor: w.sender()})
}

func (w *transferWorld) asksPayload(name string) {
	w.env.UpdateWorkflow(workflows.UpdatePayload, name, w.answer(name), w.sender())
}

func TestColdTransfers(t *testing.T) {
	t.Parallel()
	waits := workflows.ReasonColdWallet
	for _, s := range []passage{
		{
			name: "signed elsewhere", status: sent, detail: nought, reasons: []workflows.Reason{waits},
			people: func(w *transferWorld) {
				w.at(whenParked, func() { w.asksPayload("payload") })
				w.at(2*whenParked, func() { w.brings("import", "good") })
			},
			check: func(t *testing.T, w *transferWorld) {
				answered("payload", "")(t, w)
				answered("import", "")(t, w)
				if len(w.send.handedOut) != 1 {
					t.Errorf("handed out %d times", len(w.send.handedOut))
				}
			},
		},
		{
			name: "foreign bytes first", status: sent, detail: nought, reasons: []workflows.Reason{waits},
			people: func(w *transferWorld) {
				w.at(whenParked, func() { w.brings("bad", "other") })
				w.at(2*whenParked, func() { w.brings("good", "good") })
			},
			check: answered("bad", exchange.CodeInvalid),
		},
		{
			name: "twice at once", status: sent, detail: nought, reasons: []workflows.Reason{waits},
			people: func(w *transferWorld) {
				w.at(whenParked, func() { w.brings("one", "good"); w.brings("two", "good") })
			},
			check: answered("two", ""),
		},
		{
			name: "never in a block, then signed again", status: sent, detail: nought, fates: []fate{{dropped: true}, {}},
			reasons: []workflows.Reason{waits, waits},
			people: func(w *transferWorld) {
				w.at(whenParked, func() { w.brings("one", "good") })
				w.at(3*whenParked, func() { w.brings("two", "good") })
			},
		},
		{
			name: "failed on the chain, then signed again", status: sent, detail: nought, fates: []fate{{reverts: true}, {}},
			reasons: []workflows.Reason{waits, workflows.ReasonPayoutFailed, waits},
			people: func(w *transferWorld) {
				w.at(whenParked, func() { w.brings("one", "good") })
				w.at(2*whenParked, func() { w.order(activities.VerbRetry) })
				w.at(3*whenParked, func() { w.brings("two", "good") })
			},
		},
		{
			name: "looked at, then given back", status: exchange.TransferCancelled, detail: exchange.DetailByStaff, reasons: []workflows.Reason{waits, waits},
			people: func(w *transferWorld) {
				w.at(whenParked, func() { w.order(activities.VerbRetry) })
				w.at(2*whenParked, func() { w.order(activities.VerbRefund) })
			},
		},
		{
			name: "given back and brought at once", status: sent, detail: nought, reasons: []workflows.Reason{waits},
			people: func(w *transferWorld) {
				w.at(whenParked, func() { w.order(activities.VerbRefund); w.brings("import", "good") })
			},
			check: answered("import", ""),
		},
	} {
		s.cold = true
		t.Run(s.name, func(t *testing.T) { t.Parallel(); s.play(t) })
	}
}

// What nobody approved yet, or what the signer signs itself, is not handed out.
func TestNothingElseIsHandedOut(t *testing.T) {
	t.Parallel()
	passage{
		name: "not approved", required: 1, cold: true, status: exchange.TransferCancelled, detail: exchange.DetailByPerson,
		people: func(w *transferWorld) {
			w.at(time.Minute, func() { w.asksPayload("payload"); w.brings("import", "good") })
			w.at(time.Hour, func() { w.cancel() })
		},
		check: func(t *testing.T, w *transferWorld) {
			answered("payload", exchange.CodeStateConflict)(t, w)
			answered("import", exchange.CodeStateConflict)(t, w)
		},
	}.play(t)
	passage{
		name: "hot", required: 1, status: exchange.TransferCancelled, detail: exchange.DetailByPerson,
		people: func(w *transferWorld) {
			w.at(time.Minute, func() { w.asksPayload("payload") })
			w.at(time.Hour, func() { w.cancel() })
		},
		check: answered("payload", exchange.CodeStateConflict),
	}.play(t)
}
