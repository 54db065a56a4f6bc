package workflows_test

import (
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// A withdrawal goes to a phone when one officer has approved it and another executed it. A decision without a token is recorded.
func TestWithdrawalIsPaidToAPhone(t *testing.T) {
	t.Parallel()
	w := newWithdrawalHarness(t)
	w.at(30*time.Second, func() { w.execute("too early", w.two) })
	w.at(40*time.Second, func() {
		w.env.UpdateWorkflow(workflows.UpdateApprove, "guessed", w.answer("guessed"), workflows.ApprovalRef{Token: "guessed"})
	})
	w.at(time.Minute, func() { w.approve("approve", w.one) })
	w.at(2*time.Minute, func() { w.execute("by the approver", w.one) })
	w.at(3*time.Minute, func() { w.execute("execute", w.two) })
	w.at(time.Hour, func() { w.step("too late", exchange.IntendWithdrawalCancel, exchange.WithdrawalStep{}, w.merchant) })
	w.wantEnd(w.play(), exchange.WithdrawalCompleted, exchange.WaitNothing)
	w.wantAnswers(map[string]exchange.Code{
		"open": "", "too early": exchange.CodeStateConflict, "guessed": exchange.CodeNotFound, "approve": "", "by the approver": exchange.CodeForbidden, "execute": "",
	})
	w.has("99000")
	if len(w.store.noted) != 0 && w.store.noted[0] != exchange.CodeNotFound {
		t.Errorf("noted were %v", w.store.noted)
	}
	w.signs.were(t, workflows.WithdrawalID(w.ask.ID))
}

// Crypto that is sold comes to the treasury first, and its shillings then leave like any others.
func TestWithdrawalSellsCrypto(t *testing.T) {
	t.Parallel()
	w := newWithdrawalHarness(t)
	w.sells()
	w.executed()
	w.wantEnd(w.play(), exchange.WithdrawalCompleted, exchange.WaitNothing)
	w.has("100000")
	o := w.row()
	if has := w.balance(exchange.Owned(exchange.AccWalletBalance, w.market.VendorWallet.ID, money.USDT)); !has.Equal(crypto("1490")) {
		t.Errorf("the wallet has %s", has)
	}
	if paid := w.paidOut(); len(paid) != 1 || !paid[0].amount.Equal(o.Payout) || o.Payout.String() != "1290.00" || o.TxHash == "" {
		t.Errorf("paid %v of %s by %q", paid, o.Payout, o.TxHash)
	}
}

// Crypto that is bought leaves by the executing officer's transfer, which asks no other officers.
func TestWithdrawalBuysCrypto(t *testing.T) {
	t.Parallel()
	w := newWithdrawalHarness(t)
	w.buys()
	w.executed()
	w.wantEnd(w.play(), exchange.WithdrawalCompleted, exchange.WaitNothing)
	w.has("98700")
	o := w.row()
	if f, err := w.store.Store.TransferByID(t.Context(), o.TransferID); err != nil || f.Status != exchange.TransferCompleted || f.ToAddress != stranger || !f.Amount.Equal(crypto("10")) {
		t.Errorf("the transfer is %+v, %v", f, err)
	}
	if n := w.chain.paid(o.TransferID); n != 1 {
		t.Errorf("the network paid %d times", n)
	}
}

// A transfer that is refused at its opening gives the withdrawal back to whoever executes it anew.
func TestWithdrawalIsExecutedAnewAfterARefusedTransfer(t *testing.T) {
	t.Parallel()
	w := newWithdrawalHarness(t)
	w.buys()
	w.at(time.Minute, func() { w.approve("approve", w.one) })
	w.at(2*time.Minute, func() {
		w.openings.refuse = func() error { return exchange.Errorf(exchange.CodeLimitReached, "no") }
		w.execute("execute", w.two)
	})
	w.at(time.Hour, func() {
		if o := w.row(); o.Status != exchange.WithdrawalApproved || !o.ExecutedAt.IsZero() {
			t.Errorf("after the refusal it is %s (%s)", o.Status, o.Detail)
		}
		w.openings.refuse = nil
		w.execute("again", w.three)
	})
	w.wantEnd(w.play(), exchange.WithdrawalCompleted, exchange.WaitNothing)
	w.wantAnswers(map[string]exchange.Code{"execute": "", "again": ""})
	w.has("98700")
}

// The bank's payment is reserved, and confirmed by an officer.
func TestWithdrawalIsPaidByBank(t *testing.T) {
	t.Parallel()
	w := newWithdrawalHarness(t)
	w.byBank()
	w.executed()
	w.at(time.Hour, func() { w.confirm("confirm", w.two) })
	w.wantEnd(w.play(), exchange.WithdrawalCompleted, exchange.WaitNothing)
	w.wantAnswers(map[string]exchange.Code{"confirm": ""})
	w.has("99000")
	w.signs.were(t, workflows.WithdrawalID(w.ask.ID))
}

// Two officers end what no bank paid, and what can't be sold.
func TestWithdrawalIsEndedByTwo(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*withdrawalHarness){
		"at a bank": (*withdrawalHarness).byBank,
		"before its crypto left": func(w *withdrawalHarness) {
			w.sells()
			w.chain.script = func(int) outcome { return outcome{trouble: errBug} }
		},
		"while the float is short": func(w *withdrawalHarness) { w.setFloat(money.Must(money.KES, "10")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWithdrawalHarness(t)
			set(w)
			w.executed()
			w.at(2*time.Hour, w.ended)
			w.wantEnd(w.play(), exchange.WithdrawalFailed, exchange.DetailReleased)
			w.has("100000")
		})
	}
}

// Until it is executed a withdrawal ends by its merchant's word, by an officer's, by the screening, or by time.
func TestWithdrawalEndsBeforeItsExecution(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set    func(*withdrawalHarness)
		status exchange.WithdrawalStatus
		detail string
	}{
		"cancelled": {func(w *withdrawalHarness) {
			w.at(time.Minute, func() { w.step("hold", exchange.IntendWithdrawalHold, exchange.WithdrawalStep{Text: "odd"}, w.one) })
			w.at(time.Hour, func() {
				w.step("cancel", exchange.IntendWithdrawalCancel, exchange.WithdrawalStep{Text: "no"}, w.merchant)
			})
		}, exchange.WithdrawalCancelled, exchange.DetailCancelled},
		"rejected": {func(w *withdrawalHarness) {
			w.at(time.Hour, func() {
				w.env.UpdateWorkflow(workflows.UpdateReject, "reject", w.answer("reject"), workflows.ApprovalRef{Token: w.token(exchange.Reject, w.one)})
			})
		}, exchange.WithdrawalRejected, exchange.DetailRejected},
		"not executed": {func(w *withdrawalHarness) { w.at(time.Hour, func() { w.approve("approve", w.one) }) }, exchange.WithdrawalCancelled, exchange.DetailUnexecuted},
		"to an address that is denied": {func(w *withdrawalHarness) {
			w.buys()
			w.screener.replies(answer{verdict: exchange.VerdictHit})
		}, exchange.WithdrawalRejected, exchange.DetailHit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWithdrawalHarness(t)
			c.set(w)
			w.wantEnd(w.play(), c.status, c.detail)
			w.has("100000")
		})
	}
}

// A destination that was confirmed just now rests for a day; then the approved withdrawal goes on by itself.
func TestWithdrawalWaitsUntilItsDestinationHasRested(t *testing.T) {
	t.Parallel()
	w := newWithdrawalHarness(t)
	d := exchange.Destination{ID: storetest.NewID(t), MerchantID: w.merchant.UserID, Kind: exchange.DestinationPhone, Phone: storetest.NewPhone()}
	if _, err := w.store.AddDestination(t.Context(), d, w.merchant); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.ConfirmDestination(t.Context(), store.ViewOf(w.merchant, exchange.ActConfirmDestinations), d.ID, w.merchant); err != nil {
		t.Fatal(err)
	}
	w.known(w.start)
	w.ask.DestinationID = d.ID
	w.at(time.Minute, func() { w.approve("approve", w.one) })
	w.at(23*time.Hour, func() {
		if o := w.row(); o.Status != exchange.WithdrawalPending || o.Detail != exchange.WaitRest {
			t.Errorf("while it rests it is %s (%s)", o.Status, o.Detail)
		}
	})
	w.at(25*time.Hour, func() { w.execute("execute", w.two) })
	w.wantEnd(w.play(), exchange.WithdrawalCompleted, exchange.WaitNothing)
	w.wantAnswers(map[string]exchange.Code{"execute": ""})
}

// What left meanwhile asks for another officer when the payout is to begin. Its approval lets the payout go on.
func TestWithdrawalWaitsForAnotherOfficer(t *testing.T) {
	t.Parallel()
	w := newWithdrawalHarness(t)
	w.setFloat(money.Must(money.KES, "10"))
	w.executed()
	w.at(3*time.Minute, func() {
		storetest.Patch(t, w.store.Store, store.LimitPatch{Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{
			exchange.ApproveTransfer: {OneAbove: money.Must(money.KES, "100"), TwoAbove: money.Must(money.KES, "500")},
		}})
		w.setFloat(money.Must(money.KES, "100000"))
	})
	w.at(time.Hour, func() {
		if o := w.row(); o.Status != exchange.WithdrawalExecuting || o.Detail != exchange.WaitSecond {
			t.Errorf("it is %s (%s)", o.Status, o.Detail)
		}
		w.approve("second", w.three)
	})
	w.wantEnd(w.play(), exchange.WithdrawalCompleted, exchange.WaitNothing)
	w.wantAnswers(map[string]exchange.Code{"second": ""})
	w.signs.were(t, workflows.WithdrawalID(w.ask.ID))
}

// A payee that can't be paid ends the withdrawal; its shillings are free, those of sold crypto too.
func TestWithdrawalFailsAtItsPayee(t *testing.T) {
	t.Parallel()
	w := newWithdrawalHarness(t)
	w.plans(refuses("2040"))
	w.executed()
	w.wantEnd(w.play(), exchange.WithdrawalFailed, exchange.DetailReleased)
	w.has("100000")

	w = newWithdrawalHarness(t)
	w.sells()
	w.plans(refuses("2040"))
	w.executed()
	w.wantEnd(w.play(), exchange.WithdrawalFailed, exchange.DetailKept)
	w.has("101290")
}

// A refused request opens nothing.
func TestWithdrawalRefused(t *testing.T) {
	t.Parallel()
	w := newWithdrawalHarness(t)
	w.ask.Amount = money.Must(money.KES, "100001")
	if r := w.play(); r.Status != "" {
		t.Errorf("the flow ended with %+v", r)
	}
	w.wantAnswers(map[string]exchange.Code{"open": exchange.CodeInsufficientFunds})
}
