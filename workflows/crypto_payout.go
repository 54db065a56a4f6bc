package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// Limits of a payout.
const (
	maxSignatures = 10               // transactions of one payment, each after the one before was proven impossible
	troublePause  = 10 * time.Minute // between tries when looking at the chain fails
	ceilingPause  = 10 * time.Minute // until a higher bid is tried again after one was refused
	watchPause    = 15 * time.Second // between looks whether the chain was read up to now
)

// CryptoPayout carries out one approved payment on a chain: sign once, offer the same bytes until they
// are final or proven impossible, and sign anew only in the second case. A transaction whose turn has come
// and that no block takes is outbid by one with the same number. A sender without native coin for the fee
// is given some first. No timer of ours ends it. It hands back a reason when no transaction is alive and
// none can be made.
func CryptoPayout(ctx workflow.Context, in CryptoPayoutInput) (CryptoPayoutResult, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	f := &cryptoPayout{in: in, id: CryptoPayoutID(in.PaymentID)}
	workflow.GoNamed(ctx, "signal retry", f.listen)
	return f.run(ctx)
}

type cryptoPayout struct {
	in      CryptoPayoutInput
	id      string
	nudged  bool
	alerted bool
}

// listen takes the Web UI's nudge, which ends a pause and nothing else.
func (f *cryptoPayout) listen(ctx workflow.Context) {
	for {
		workflow.GetSignalChannel(ctx, SignalRetry).Receive(ctx, nil)
		f.nudged = true
	}
}

func (f *cryptoPayout) run(ctx workflow.Context) (CryptoPayoutResult, error) {
	for range maxSignatures {
		signed, ok := f.sign(ctx)
		switch {
		case !ok:
			return CryptoPayoutResult{Reason: string(ReasonPayoutSigning)}, nil
		case signed.Completed:
			return CryptoPayoutResult{Completed: true, TxID: signed.TxID}, nil
		case signed.Parked != "":
			return CryptoPayoutResult{Reason: string(payoutReason(signed.Parked))}, nil
		}
		describe(ctx, f.card(signed.TxID))
		delivery := f.deliver(ctx)
		f.calm(ctx)
		switch delivery.End {
		case activities.DeliveryCompleted:
			return CryptoPayoutResult{Completed: true, TxID: delivery.TxID}, nil
		case activities.DeliveryFailed:
			return CryptoPayoutResult{Reason: string(payoutReason(delivery.Code))}, nil
		}
	}
	return CryptoPayoutResult{Reason: string(ReasonPayoutExpiring)}, nil
}

// sign gives the live transaction, or reports that the signer refuses: then nothing was signed. It brings
// gas first where that is what is missing; a word then says why there is none, and parks the payment. While the
// watch over the chain is behind, it waits.
func (f *cryptoPayout) sign(ctx workflow.Context) (activities.SignedPayment, bool) {
	in := activities.SignInput{PaymentID: f.in.PaymentID, ReportGas: true}
	began := workflow.Now(ctx)
	for {
		signed, err := step(ctx, signer(f.in.Network), "Sign the payment", signing.SignPayment, in)
		if err != nil {
			workflow.GetLogger(ctx).Error("the payment was not signed", "error", err)
			return signed, false
		}
		if signed.Waits != "" {
			f.waitForWatch(ctx, began)
			continue
		}
		if signed.Gas == nil {
			return signed, true
		}
		if word := f.topUp(ctx, *signed.Gas); word != "" {
			in.ReportGas, in.GasWord = false, word
		}
	}
}

// waitForWatch shows that the signature waits until the chain was read up to now. The watch says by itself when it
// needs a person.
func (f *cryptoPayout) waitForWatch(ctx workflow.Context, began time.Time) {
	c := card{title: "Crypto waits to be signed"}
	c.add("Payment", f.in.PaymentID.String())
	c.add("For", f.in.about())
	c.add("Waits for", "the watch over "+string(f.in.Network)+" ("+DepositWatchID(f.in.Network)+"), which has not read the chain up to now")
	c.add("Since", moment(began))
	describe(ctx, c)
	f.nudged = false
	await(ctx, slower(ctx, watchPause, began), "See whether the chain was read", func() bool { return f.nudged })
}

// deliver watches a transaction to its end, however long that takes. When it takes unusually long, a
// person is told and the watch goes on: the transaction is alive, so nothing else may be done.
func (f *cryptoPayout) deliver(ctx workflow.Context) activities.Delivery {
	began := workflow.Now(ctx)
	in := activities.DeliverInput{PaymentID: f.in.PaymentID, OutbidAfter: began}
	for {
		d, err := step(ctx, delivery(f.in.Network), "Bring the transaction to its end", chains.DeliverPayment, in)
		if err == nil && d.End == activities.DeliveryStuck {
			in.OutbidAfter = f.outbid(ctx, d, began)
			continue
		}
		if err == nil {
			return d
		}
		f.alert(ctx, err)
		if !passing(err) {
			f.nudged = false
			await(ctx, slower(ctx, troublePause, began), "Look at the transaction again", func() bool { return f.nudged })
		}
	}
}

// outbid has a higher bid made for the place in a block, and tells when the next one may be. Where none can
// be had, what exists goes on being offered.
func (f *cryptoPayout) outbid(ctx workflow.Context, stuck activities.Delivery, began time.Time) time.Time {
	in := activities.OutbidInput{PaymentID: f.in.PaymentID, N: stuck.N}
	out, err := step(ctx, signer(f.in.Network), "Bid more for a place in a block", signing.OutbidPayment, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the transaction was not outbid", "error", err)
	}
	if err != nil || out.Kept != "" {
		return workflow.Now(ctx).Add(slower(ctx, ceilingPause, began))
	}
	if out.TxID != "" && out.TxID != stuck.TxID {
		describe(ctx, f.card(out.TxID))
	}
	return workflow.Now(ctx)
}

func (f *cryptoPayout) alert(ctx workflow.Context, cause error) {
	describe(ctx, parkedCard("chain payment "+f.in.PaymentID.String()+" of "+f.in.about(), f.id, ReasonPayoutOverdue, cause))
	if f.alerted {
		return
	}
	f.alerted = true
	markParked(ctx, ReasonPayoutOverdue)
}

func (f *cryptoPayout) calm(ctx workflow.Context) {
	if f.alerted {
		f.alerted = false
		markParked(ctx, "")
	}
}

func (f *cryptoPayout) card(tx string) card {
	c := card{title: "Crypto on its way"}
	c.add("Payment", f.in.PaymentID.String())
	c.add("For", f.in.about())
	c.add("Transaction", "`"+tx+"` on "+string(f.in.Network))
	c.add("Waits for", "finality on the network")
	return c
}

// about names the object that the payment carries out.
func (in CryptoPayoutInput) about() string {
	if in.TransferID != uuid.Nil {
		return "transfer " + in.TransferID.String()
	}
	if in.RefundID != uuid.Nil {
		return "refund " + in.RefundID.String()
	}
	if in.ExceptionID != uuid.Nil {
		return "payment exception " + in.ExceptionID.String()
	}
	return "order " + in.OrderID.String()
}
