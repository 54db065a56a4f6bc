package workflows

import (
	"cmp"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// How executed withdrawals are paid: crypto that the house buys first comes to its treasury; then shillings leave by mobile money or by bank,
// or bought crypto by a transfer.

// sell has the crypto of a withdrawal brought to the treasury, which buys it. The database transaction that records the payment as final
// also books the sale. While the treasury has too few shillings, nothing is signed.
func (f *withdrawal) sell(ctx workflow.Context) {
	m := mustStep(ctx, &f.flow, database, "Take the shillings for the crypto", withdrawals.SellWithdrawal, f.named())
	f.learn(ctx, m.WithdrawalState)
	switch {
	case f.row.Status != exchange.WithdrawalExecuting || f.row.Sold:
		return
	case m.State != "":
		f.awaitMoney(ctx, m.State, exchange.WaitShillings)
		return
	}
	f.moneyThere(ctx)
	in := CryptoPayoutInput{PaymentID: m.PaymentID, WithdrawalID: f.withdrawalID, Network: m.Network}
	c := child{
		summary: "Bring " + f.row.Source.String() + " " + string(f.row.Source.Asset()) + " to the treasury", priority: fairness(priorityOrder, f.row.MerchantID),
		shown: attributes(StageSweep, WaitsForChain, AttrNetwork.ValueSet(string(m.Network)), AttrAsset.ValueSet(string(f.row.Source.Asset()))), resumed: &f.resumed,
	}
	result, err := carry(ctx, in, c, f.until)
	f.look(ctx)
	if f.row.Status != exchange.WithdrawalExecuting || f.row.Sold {
		return
	}
	reason := Reason(result.Reason)
	if err != nil || result.Completed { // paid, but not booked
		reason = ReasonStepFailed
	}
	if d, decided := f.parkedOrMoved(ctx, reason, err); decided {
		payment := m.PaymentID
		_ = approveAgain(ctx, &payment, d.proof) // the payment shows whether it was approved
	}
	f.mark(ctx, exchange.WaitCollection)
}

// awaitMoney shows why nothing leaves, and looks again after a while. Where the house has too little for long, the flow parks.
func (f *withdrawal) awaitMoney(ctx workflow.Context, why, short string) {
	f.short = since(ctx, f.short, true)
	switch why {
	case activities.PayoutInactive:
		f.parkedOrMoved(ctx, ReasonWithdrawalInactive, nil)
		return
	case activities.PayoutFrozen:
		f.mark(ctx, exchange.WaitFrozen)
	case activities.PayoutSuspended:
		f.mark(ctx, exchange.WaitSuspended)
	default:
		f.mark(ctx, short)
		if workflow.Now(ctx).Sub(f.short) >= floatQuestions {
			f.commands.park(ctx, ReasonWithdrawalFloat, nil)
		}
	}
	changed := f.changed()
	waiting(f.until).pause(ctx, slower(ctx, floatPause, f.short), "Look whether the money may leave", func() bool { return changed() || f.commands.hasDecision() })
	if f.commands.hasDecision() {
		f.commands.take()
	}
}

// moneyThere ends the wait for money of the house.
func (f *withdrawal) moneyThere(ctx workflow.Context) {
	f.short = time.Time{}
	f.commands.unpark(ctx, f.waitsFor())
}

// officerPause is how often the flow looks whether another officer has approved an executed withdrawal, at first.
const officerPause = 10 * time.Minute

// awaitOfficers waits until another officer has approved what may not leave by what left meanwhile, or the destination has rested.
func (f *withdrawal) awaitOfficers(ctx workflow.Context) {
	f.lacking = since(ctx, f.lacking, true)
	f.learn(ctx, mustStep(ctx, &f.flow, database, "Ask for another officer", withdrawals.AwaitOfficers, f.named()))
	changed := f.changed()
	pause := slower(ctx, officerPause, f.lacking)
	if rests := f.row.Due; !rests.IsZero() {
		pause = min(pause, max(rests.Sub(workflow.Now(ctx)), 0)+dueMargin)
	}
	waiting(f.until).pause(ctx, pause, "Look whether another officer has approved", changed)
}

// payOut pays the shillings to a phone. It ends when the withdrawal has.
func (f *withdrawal) payOut(ctx workflow.Context) {
	of := exchange.WithdrawalObject(f.withdrawalID)
	p := &momoTries{
		flow: &f.flow, in: MomoPayoutInput{Object: of, Try: 1, Home: f.id},
		child: child{
			id: MomoPayoutID(of), summary: "Pay out " + f.row.Payout.String() + " " + string(f.row.Payout.Asset()),
			priority: fairness(priorityOrder, f.row.MerchantID), shown: attributes(StagePayout, WaitsForMomo),
		},
		owed: func() bool {
			f.look(ctx)
			return !f.over()
		},
		card: f.payoutCard, own: f.payoutRefused,
	}
	if p.run(ctx) {
		f.look(ctx)
	}
}

// payoutRefused waits for another officer where one is missing by what left meanwhile, and ends a withdrawal whose payee can't be paid. It
// reports whether it did one of them.
func (f *withdrawal) payoutRefused(ctx workflow.Context, r MomoPayoutResult) bool {
	switch {
	case r.Class == exchange.ClassOfficers:
		f.awaitOfficers(ctx)
		return true
	case r.Refused && (r.Class == exchange.ClassPayee || r.Class == exchange.ClassDeclared):
		s, err := step(ctx, database, "End the withdrawal unpaid", withdrawals.FailWithdrawal, f.named())
		if err != nil { // something may still pay it: officers decide
			workflow.GetLogger(ctx).Error("the withdrawal could not be ended", "error", err)
			return false
		}
		f.learn(ctx, s)
		return f.over()
	}
	return false
}

// payByBank reserves the money at a bank of the house, and waits until officers have confirmed that it was paid there.
func (f *withdrawal) payByBank(ctx workflow.Context) {
	if f.row.Status == exchange.WithdrawalExecuting {
		m := mustStep(ctx, &f.flow, database, "Reserve the money at a bank", withdrawals.ReserveAtBank, f.named())
		f.learn(ctx, m.WithdrawalState)
		switch m.State {
		case "":
			f.moneyThere(ctx)
		case activities.PayoutOfficers:
			f.awaitOfficers(ctx)
		default:
			f.awaitMoney(ctx, m.State, exchange.WaitFloat)
		}
		return
	}
	f.banked = since(ctx, f.banked, true)
	if workflow.Now(ctx).Sub(f.banked) >= bankTimeout {
		f.commands.park(ctx, ReasonWithdrawalBank, nil)
	}
	changed := f.changed()
	waiting(f.until).pause(ctx, slower(ctx, bankTimeout, f.banked), "Wait for an officer at the bank", func() bool { return changed() || f.commands.hasDecision() })
	if f.commands.hasDecision() {
		f.commands.take()
		f.banked = time.Time{}
		f.commands.unpark(ctx, WaitsForBank)
	}
	f.look(ctx)
}

// transfer has bought crypto transferred, and waits until the transfer has ended. While the treasury's wallet has too little, nothing is
// opened. One that is refused at its opening never opens, and the withdrawal is executed anew.
func (f *withdrawal) transfer(ctx workflow.Context) {
	t := mustStep(ctx, &f.flow, database, "Look for the transfer", withdrawals.FollowWithdrawalTransfer, f.named())
	f.source = t.Source
	f.learn(ctx, t.WithdrawalState)
	f.describe(ctx) // also where only the source is another one
	f.short = since(ctx, f.short, t.Short)
	switch {
	case f.row.Status != exchange.WithdrawalExecuting && f.row.Status != exchange.WithdrawalConfirming:
		return
	case t.Short:
		await(ctx, slower(ctx, inventoryPause, f.short), "Look whether the treasury has enough", func() bool { return false })
		return
	}
	c := child{
		id: TransferID(t.TransferID), summary: "Transfer the crypto of withdrawal " + f.withdrawalID.String(), priority: fairness(priorityOrder, f.row.MerchantID),
		shown: attributes(StageScreening, WaitsForOfficer, AttrAsset.ValueSet(string(f.row.Payout.Asset()))), resumed: &f.resumed,
	}
	var result TransferResult
	f.must(ctx, c.summary, func() (err error) {
		result, err = run(ctx, c, Transfer, TransferInput{IntentID: t.IntentID}, looking("Look whether the transfer is open", f.transferred))
		return err
	})
	if result.Status != "" {
		return
	}
	code, _, _ := strings.Cut(result.Detail, ":")
	if exchange.Code(code) == exchange.CodeInsufficientFunds {
		await(ctx, inventoryPause, "Look whether the treasury has enough", func() bool { return false }) // somebody else took the coins
		return
	}
	in := activities.RefusedWithdrawalTransferInput{WithdrawalID: f.withdrawalID, Code: exchange.Code(cmp.Or(code, string(exchange.CodeInternal)))}
	f.learn(ctx, mustStep(ctx, &f.flow, database, "Give the refused transfer up", withdrawals.RefuseWithdrawalTransfer, in))
}

// transferred shows the transfer on the withdrawal, and reports whether it is open, or given up.
func (f *withdrawal) transferred(ctx workflow.Context) bool {
	t := mustStep(ctx, &f.flow, database, "Look whether the transfer is open", withdrawals.FollowWithdrawalTransfer, f.named())
	f.learn(ctx, t.WithdrawalState)
	return t.Opened || f.row.Status != exchange.WithdrawalExecuting
}
