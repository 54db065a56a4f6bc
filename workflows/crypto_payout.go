package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// Limits of a payout.
const (
	maxSignatures = 10               // transactions of one payment, each after the one before was proven impossible
	troublePause  = 10 * time.Minute // between tries after reading the chain failed
	ceilingPause  = 10 * time.Minute // until the fee is raised again after a refusal
	leastDelivery = time.Minute      // even if the flow that owes the payment waited long for it
	watchPause    = 15 * time.Second // between checks whether the deposit watch has caught up
)

// CryptoPayout carries out one approved payment on a chain. It signs once, broadcasts the same bytes until they are final
// or proven impossible, and signs again only in the second case, or when one is final and moved nothing for lack of gas. A stuck
// transaction is replaced by one with the same nonce and a higher fee. A sender without native coin for the fee gets a top-up first,
// and the payment is signed as soon as a block has the top-up. No timer of ours ends the payment. The flow returns a reason when no
// transaction is pending and none can be made.
func CryptoPayout(ctx workflow.Context, in CryptoPayoutInput) (CryptoPayoutResult, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	about := "chain payment " + in.PaymentID.String() + " of " + in.about()
	f := &cryptoPayout{in: in, about: subject{flow: CryptoPayoutID(in.PaymentID), about: about}}
	hears := listens(ctx)
	hears.woken("signal retry", SignalRetry, func(workflow.Context) { f.retried = true }) // which only ends a pause
	hears.woken("gas", SignalGas, func(workflow.Context) { f.arrived = true })
	return f.run(ctx)
}

// carry carries out a chain payment. One that is signed, broadcast and final without trouble needs no flow of its own, which would cost
// half the events again. All else gets one: it finds in the rows what was done.
func carry(ctx workflow.Context, in CryptoPayoutInput, c child, until waiting) (result CryptoPayoutResult, err error) {
	c.id = CryptoPayoutID(in.PaymentID)
	until.beside(ctx, "chain payment", func(ctx workflow.Context) {
		if in.GasFor == uuid.Nil {
			result = in.directly(ctx, c.priority)
		}
		if result == (CryptoPayoutResult{}) {
			result, err = run(ctx, c, CryptoPayout, in, patiently)
		}
	})
	return result, err
}

// directly signs and delivers the payment once. The result is empty where more has to be done.
func (in *CryptoPayoutInput) directly(ctx workflow.Context, rank temporal.Priority) CryptoPayoutResult {
	sign := activities.SignInput{PaymentID: in.PaymentID, ReportGas: true}
	signed, err := step(ctx, signer(in.Network).ranked(rank), signSummary, signing.SignPayment, sign)
	switch {
	case err != nil:
		return refusedToSign(ctx, err)
	case signed.Waits != "" && in.Watched:
		return CryptoPayoutResult{Waits: signed.Waits}
	case signed.Waits != "" || signed.Gas != nil:
		return CryptoPayoutResult{}
	case signed.Completed || signed.Parked != "":
		return signedResult(signed)
	}
	in.Since = workflow.Now(ctx)
	send := activities.DeliverInput{PaymentID: in.PaymentID, BumpAfter: in.Since}
	d, err := step(ctx, delivery(in.Network).ranked(rank), deliverSummary, chains.DeliverPayment, send)
	if err != nil {
		return CryptoPayoutResult{}
	}
	return delivered(d)
}

// delivered is how a payment ends with the delivery of its transaction; empty where another may follow.
func delivered(d activities.Delivery) CryptoPayoutResult {
	switch d.End {
	case activities.DeliveryCompleted:
		return CryptoPayoutResult{Completed: true, TxID: d.TxID}
	case activities.DeliverySuperseded:
		return CryptoPayoutResult{Superseded: true, TxID: d.TxID}
	case activities.DeliveryFailed:
		return CryptoPayoutResult{Reason: string(payoutReason(d.Code))}
	}
	return CryptoPayoutResult{}
}

// refusedToSign is how a payment ends that the signer refuses. Nothing was signed.
func refusedToSign(ctx workflow.Context, why error) CryptoPayoutResult {
	workflow.GetLogger(ctx).Error("the payment could not be signed", "error", why)
	return CryptoPayoutResult{Reason: string(ReasonPayoutSigning)}
}

// signedResult is how a payment ends that needs no transaction, or may not have one.
func signedResult(s activities.SignedPayment) CryptoPayoutResult {
	if s.Completed {
		return CryptoPayoutResult{Completed: true, TxID: s.TxID}
	}
	return CryptoPayoutResult{Reason: string(payoutReason(s.Parked))}
}

// What operators read of the steps of a payment.
const (
	signSummary    = "Sign the payment"
	deliverSummary = "Deliver the transaction"
)

type cryptoPayout struct {
	in      CryptoPayoutInput
	about   subject
	retried bool
	alerted bool
	gas     *gasTopUp // that the sender waits for; nil for none
	arrived bool      // a signal came that gas has arrived
	looks   int       // that are left for gas that has arrived
	waiting time.Time // since when it waits for gas that was brought ahead of need
}

func (f *cryptoPayout) run(ctx workflow.Context) (CryptoPayoutResult, error) {
	for range maxSignatures {
		signed, err := f.sign(ctx)
		switch {
		case err != nil:
			return refusedToSign(ctx, err), nil
		case signed.Waits != "":
			return CryptoPayoutResult{Waits: signed.Waits}, nil
		case signed.Completed || signed.Parked != "":
			return signedResult(signed), nil
		}
		describe(ctx, f.card(signed.TxID))
		result := delivered(f.deliver(ctx))
		f.calm(ctx)
		if result != (CryptoPayoutResult{}) {
			return result, nil
		}
	}
	return CryptoPayoutResult{Reason: string(ReasonPayoutExpiring)}, nil
}

// sign returns the pending transaction, or why the signer refused. If only gas is missing, it
// tops up the sending wallet; if that fails, the payment is parked with the reason. While the deposit watch is behind, sign
// waits.
func (f *cryptoPayout) sign(ctx workflow.Context) (activities.SignedPayment, error) {
	in := activities.SignInput{PaymentID: f.in.PaymentID, ReportGas: true}
	began := workflow.Now(ctx)
	for {
		signed, err := step(ctx, signer(f.in.Network), signSummary, signing.SignPayment, in)
		if err != nil {
			return signed, err
		}
		if signed.Waits != "" && f.in.Watched {
			return signed, nil
		}
		if signed.Waits != "" {
			f.waitToSign(ctx, signed.Waits, began)
			continue
		}
		if signed.Gas == nil {
			return signed, nil
		}
		if reason := f.topUp(ctx, *signed.Gas); reason != "" {
			in.ReportGas, in.GasReason = false, reason
		}
	}
}

// waitToSign shows that the signature waits until the deposit watch has read the chain up to now, a freeze is lifted or a
// database that was put back is released.
// If the watch needs an operator, it parks itself.
func (f *cryptoPayout) waitToSign(ctx workflow.Context, why string, began time.Time) {
	c := card{title: "Payment waits to be signed"}
	c.add("Payment", f.in.PaymentID.String())
	c.add("For", f.in.about())
	switch exchange.SigningHold(why) {
	case exchange.HoldFrozen:
		c.add("Waits for", "two officers to lift the freeze of all outgoing payments")
	case exchange.HoldPutBack:
		c.add("Waits for", "two officers to release the database, which was put back from a backup")
	default:
		c.add("Waits for", "the deposit watch of "+string(f.in.Network)+" ("+DepositWatchID(f.in.Network)+"), which has not read the newest blocks yet")
	}
	c.add("Since", moment(began))
	describe(ctx, c)
	f.retried = false
	await(ctx, slower(ctx, watchPause, began), "Check whether the payment may be signed", func() bool { return f.retried })
}

// deliver watches a transaction until it is final or proven impossible, however long that takes. When it takes too long,
// the flow is shown as parked and deliver keeps watching: a pending transaction allows nothing else.
func (f *cryptoPayout) deliver(ctx workflow.Context) activities.Delivery {
	began := workflow.Now(ctx)
	in := activities.DeliverInput{PaymentID: f.in.PaymentID, BumpAfter: began, Arrival: f.in.GasFor != uuid.Nil || f.in.WalletID != uuid.Nil}
	for k := f.delivery(began); ; k = delivery(f.in.Network) {
		d, err := step(ctx, k, deliverSummary, chains.DeliverPayment, in)
		if err == nil && d.End == activities.DeliveryArrived {
			in.Arrived = d.BlockID
			if f.in.GasFor != uuid.Nil {
				f.tellArrival(ctx)
			}
			continue
		}
		if err == nil && d.End == activities.DeliveryStuck {
			in.BumpAfter = f.bump(ctx, d, began)
			continue
		}
		if err == nil {
			return d
		}
		f.alert(ctx, err)
		if !passing(err) {
			f.retried = false
			await(ctx, slower(ctx, troublePause, began), "Check the transaction again", func() bool { return f.retried })
		}
	}
}

// delivery is how the transaction is delivered at first: what its flow has waited for it already counts too.
func (f *cryptoPayout) delivery(now time.Time) kind {
	k := delivery(f.in.Network)
	if f.in.Since.IsZero() {
		return k
	}
	waited := now.Sub(f.in.Since)
	f.in.Since = time.Time{} // for the first transaction
	return k.within(max(k.limits.Budget-waited, leastDelivery))
}

// bump replaces the stuck transaction by one with a higher fee, and returns when the next replacement may follow. If no
// higher fee is possible, the existing transaction is broadcast further.
func (f *cryptoPayout) bump(ctx workflow.Context, stuck activities.Delivery, began time.Time) time.Time {
	in := activities.BumpInput{PaymentID: f.in.PaymentID, N: stuck.N}
	out, err := step(ctx, signer(f.in.Network), "Replace the transaction with a higher fee", signing.BumpPaymentFee, in)
	if err != nil {
		workflow.GetLogger(ctx).Error("the transaction's fee could not be raised", "error", err)
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
	describe(ctx, parkedCard(f.about, ReasonPayoutOverdue, cause))
	if f.alerted {
		return
	}
	f.alerted = true
	f.about.object = markParked(ctx, ReasonPayoutOverdue)
	describe(ctx, parkedCard(f.about, ReasonPayoutOverdue, cause))
}

func (f *cryptoPayout) calm(ctx workflow.Context) {
	if f.alerted {
		f.alerted = false
		markParked(ctx, "")
	}
}

func (f *cryptoPayout) card(tx string) card {
	c := card{title: "Payment is pending on the chain"}
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
	if in.WithdrawalID != uuid.Nil {
		return "withdrawal " + in.WithdrawalID.String()
	}
	if in.RefundID != uuid.Nil {
		return "refund " + in.RefundID.String()
	}
	if in.ExceptionID != uuid.Nil {
		return "payment exception " + in.ExceptionID.String()
	}
	if in.FeeSweepID != uuid.Nil {
		return "fee sweep " + in.FeeSweepID.String()
	}
	if in.SwapID != uuid.Nil {
		return "swap " + in.SwapID.String()
	}
	if in.ProposalID != uuid.Nil {
		return "proposal " + in.ProposalID.String()
	}
	if in.MultisigID != uuid.Nil {
		return "account of several owners " + in.MultisigID.String()
	}
	if in.WalletID != uuid.Nil {
		return "the next payment of wallet " + in.WalletID.String()
	}
	if in.OrderID == uuid.Nil {
		return "the fee of another payment" // a top-up that was started again
	}
	return "order " + in.OrderID.String()
}
