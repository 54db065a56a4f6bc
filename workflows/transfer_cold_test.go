package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	sdk "go.temporal.io/sdk/activity"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// vault is what the stand-ins for the cold machine's side count.
type vault struct {
	handedOut int
	parts     int
	completed int
	signed    int
	refuses   exchange.Code // that nothing can be withdrawn
	asked     int           // to withdraw
}

// nonceAccount is the account that keeps the transactions of a cold wallet valid.
const nonceAccount = "NonceAccount1111111111111111111111"

// freeze makes the sender's wallet cold.
func (w *transferHarness) freeze() {
	w.chain.cold = true
	storetest.Exec(w.t, w.store.Store, `UPDATE wallets SET type = 'cold' WHERE id = $1`, w.wallet.ID)
}

// count counts in an activity.
func (w *transferHarness) count(n *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*n++
}

// counted is what an activity has counted.
func (w *transferHarness) counted(n *int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return *n
}

func (w *transferHarness) durable() bool { return w.ask.Network == exchange.Solana }

// registerCold registers stand-ins for the issue and the import of transactions, on the rows of the store. The transaction
// signed offline is the next one that the network makes.
func (w *transferHarness) registerCold() {
	for name, do := range map[string]any{
		"DraftColdPayment": w.draftCold, "ImportColdPayment": w.importCold, "CompleteColdPayment": w.completeCold, "CloseColdPayment": w.closeCold,
	} {
		w.env.RegisterActivityWithOptions(do, sdk.RegisterOptions{Name: name})
	}
}

func (w *transferHarness) draftCold(ctx context.Context, in activities.ColdInput) (activities.ColdDraft, error) {
	if w.durable() {
		opened, err := w.store.ChainPaymentOf(ctx, exchange.ForNonceAccount, w.wallet.ID)
		if err != nil || opened.Status != exchange.ChainCompleted {
			opened, err = w.store.ApproveNonceAccount(ctx, in.PaymentID, nonceAccount, money.Must(money.SOL, "0.0015"))
			return activities.ColdDraft{NoncePaymentID: opened.ID}, activities.Failure(ctx, err)
		}
	}
	d, err := w.draft(ctx, in.PaymentID)
	if err == nil {
		w.count(&w.vault.handedOut)
	}
	return activities.ColdDraft{DraftID: d.ID}, activities.Failure(ctx, err)
}

// draft stores the transaction for the cold machine; an open one is returned.
func (w *transferHarness) draft(ctx context.Context, payment uuid.UUID) (exchange.ColdDraft, error) {
	now := w.env.Now()
	d := exchange.ColdDraft{
		ID: uuid.New(), PaymentID: payment, Network: w.ask.Network, Body: []byte("body"), Payload: []byte("payload"), RefBlock: "value",
		FeeLimit: money.Zero(w.ask.Network.NativeCoin()), ClosesAt: now.Add(exchange.ColdLife), AskedBy: w.officer.UserID,
	}
	if w.durable() {
		d.NonceAccount, d.NonceBlock = nonceAccount, 7
	}
	return w.store.SaveColdDraft(ctx, d, w.officer)
}

func (w *transferHarness) importCold(ctx context.Context, in activities.ColdInput) (activities.SignedPayment, error) {
	asked, err := w.store.Intent(ctx, in.Behalf.IntentID)
	if err != nil {
		return activities.SignedPayment{}, activities.Failure(ctx, err)
	}
	signed, err := exchange.SignedOfflineOf(asked)
	if string(signed.Raw) == "too late" {
		w.awaitCancelled(ctx)
	}
	if err != nil || string(signed.Raw) != "good" {
		return activities.SignedPayment{}, activities.Failure(ctx, exchange.Invalid(exchange.FieldError{Pointer: "/signed_transaction", Code: "transaction", Message: "is another"}))
	}
	if !w.durable() {
		return w.signedElsewhere(ctx, in.PaymentID)
	}
	d, err := w.draft(ctx, in.PaymentID)
	if err == nil {
		err = w.store.SaveColdPart(ctx, d.ID, []byte("part"), w.officer)
	}
	if err == nil {
		w.count(&w.vault.parts)
	}
	return activities.SignedPayment{Incomplete: true}, activities.Failure(ctx, err)
}

// awaitCancelled waits until the sender has cancelled the transfer.
func (w *transferHarness) awaitCancelled(ctx context.Context) {
	for ctx.Err() == nil {
		if got, err := w.store.TransferByID(ctx, w.ask.ID); err == nil && got.Status == exchange.TransferCancelled {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (w *transferHarness) completeCold(ctx context.Context, in activities.SignInput) (activities.SignedPayment, error) {
	w.count(&w.vault.completed)
	return w.signedElsewhere(ctx, in.PaymentID)
}

func (w *transferHarness) closeCold(ctx context.Context, in activities.ColdInput) (activities.ColdClosed, error) {
	drafts, err := w.store.ColdDrafts(ctx, in.PaymentID)
	if err != nil || len(drafts) == 0 || (drafts[0].Status != exchange.ColdOpen && drafts[0].Status != exchange.ColdClosing) {
		return activities.ColdClosed{}, activities.Failure(ctx, err)
	}
	w.count(&w.vault.asked)
	if w.vault.refuses != "" {
		return activities.ColdClosed{}, activities.Failure(ctx, exchange.Errorf(w.vault.refuses, "It may still be included."))
	}
	advance, err := w.store.WithdrawColdDraft(ctx, drafts[0].ID, w.officer)
	return activities.ColdClosed{NoncePaymentID: advance.ID}, activities.Failure(ctx, err)
}

// signedElsewhere stores the transaction that was signed offline, once. Of two imports at once one may sign the payment before
// the other one asks for the draft, which is refused then.
func (w *transferHarness) signedElsewhere(ctx context.Context, payment uuid.UUID) (activities.SignedPayment, error) {
	p, err := w.store.ChainPayment(ctx, payment)
	if err != nil {
		return activities.SignedPayment{}, activities.Failure(ctx, err)
	}
	d, refused := w.draft(ctx, payment)
	if a, alive, err := w.store.LiveAttempt(ctx, payment); err != nil || alive {
		return activities.SignedPayment{TxID: a.TxID}, activities.Failure(ctx, err)
	}
	if refused != nil {
		return activities.SignedPayment{}, activities.Failure(ctx, refused)
	}
	a, _ := w.chain.build(p)
	if w.durable() {
		a.NonceAccount, a.NonceBlock, a.RefBlock, a.ExpiresAt = d.NonceAccount, d.NonceBlock, d.RefBlock, time.Time{}
	}
	a, err = w.store.SaveColdAttempt(ctx, d.ID, a, w.officer)
	if err == nil {
		w.count(&w.vault.signed)
	}
	return activities.SignedPayment{TxID: a.TxID}, activities.Failure(ctx, err)
}

// brings imports signed bytes under the name of a request.
func (w *transferHarness) brings(name, raw string) {
	w.env.UpdateWorkflow(workflows.UpdateImport, name, w.answer(name), w.asksOf(exchange.IntendColdImport, exchange.SignedOffline{Raw: []byte(raw)}.Terms()))
}

func (w *transferHarness) asksPayload(name string) {
	w.env.UpdateWorkflow(workflows.UpdatePayload, name, w.answer(name), w.asksOf(exchange.IntendColdPayload, nil))
}

func TestColdTransfers(t *testing.T) {
	t.Parallel()
	waits := workflows.ReasonColdWallet
	for _, s := range []passage{
		{
			name: "signed elsewhere", status: sent, detail: none, reasons: []workflows.Reason{waits},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.asksPayload("payload") })
				w.at(2*whenParked, func() { w.brings("import", "good") })
			},
			check: func(t *testing.T, w *transferHarness) {
				answered("payload", "")(t, w)
				answered("import", "")(t, w)
				if w.vault.handedOut != 1 {
					t.Errorf("handed out %d times", w.vault.handedOut)
				}
			},
		},
		{
			name: "foreign bytes first", status: sent, detail: none, reasons: []workflows.Reason{waits},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.brings("bad", "other") })
				w.at(2*whenParked, func() { w.brings("good", "good") })
			},
			check: answered("bad", exchange.CodeInvalid),
		},
		{
			name: "twice at once", status: sent, detail: none, reasons: []workflows.Reason{waits},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.brings("one", "good"); w.brings("two", "good") })
			},
			check: answered("two", ""),
		},
		{
			name: "never in a block, then signed again", status: sent, detail: none, outcomes: []outcome{{dropped: true}, {}},
			reasons: []workflows.Reason{waits, waits},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.brings("one", "good") })
				w.at(3*whenParked, func() { w.brings("two", "good") })
			},
		},
		{
			name: "failed on the chain, then signed again", status: sent, detail: none, outcomes: []outcome{{reverts: true}, {}},
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
			name: "cancelled while it is brought", status: exchange.TransferCancelled, detail: exchange.DetailBySender, reasons: []workflows.Reason{waits},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.brings("import", "too late"); w.order(activities.VerbRetry); w.cancel() })
			},
			check: func(t *testing.T, w *transferHarness) {
				answered("import", exchange.CodeInvalid)(t, w)
				answered("cancel", "")(t, w)
			},
		},
		{
			name: "given back and brought at once", status: sent, detail: none, reasons: []workflows.Reason{waits},
			people: func(w *transferHarness) {
				w.store.fault = func(call string) error { // so that the import is done before it
					if call == "GiveUpTransfer" && w.counted(&w.vault.signed) == 0 {
						return errAway
					}
					return nil
				}
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
			name: "signed elsewhere", status: sent, detail: none, reasons: []workflows.Reason{waits},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.asksPayload("payload") })
				w.at(2*whenParked, func() { w.brings("import", "good") })
			},
			check: func(t *testing.T, w *transferHarness) {
				answered("payload", "")(t, w)
				answered("import", "")(t, w)
				if v := w.vault; w.vault.handedOut != 1 || v.parts != 1 || v.completed != 1 || v.asked != 0 || w.chain.built != 2 {
					t.Errorf("handed out %d times, %+v, %d transactions", w.vault.handedOut, v, w.chain.built)
				}
			},
		},
		{
			name: "the account is not opened at first", status: sent, detail: none, outcomes: []outcome{{reverts: true}, {}}, reasons: []workflows.Reason{waits},
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
			name: "withdrawn", status: exchange.TransferCancelled, detail: exchange.DetailBySender, reasons: []workflows.Reason{waits},
			people: func(w *transferHarness) {
				w.at(whenParked, func() { w.asksPayload("payload") })
				w.at(2*whenParked, func() { w.cancel() })
			},
			check: func(t *testing.T, w *transferHarness) {
				answered("cancel", "")(t, w)
				if w.vault.asked != 1 {
					t.Errorf("withdrawn %d times", w.vault.asked)
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
			name: "it may still be included", status: sent, detail: none, reasons: []workflows.Reason{waits, waits},
			people: func(w *transferHarness) {
				w.vault.refuses = exchange.CodeStateConflict
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
		name: "not approved", required: 1, cold: true, status: exchange.TransferCancelled, detail: exchange.DetailBySender,
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
		name: "hot", required: 1, status: exchange.TransferCancelled, detail: exchange.DetailBySender,
		people: func(w *transferHarness) {
			w.at(time.Minute, func() { w.asksPayload("payload") })
			w.at(time.Hour, func() { w.cancel() })
		},
		check: answered("payload", exchange.CodeStateConflict),
	}.play(t)
}
