package workflows_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

const (
	freezeLength = 26 * time.Hour
	stillFrozen  = freezeLength - time.Minute
)

// frozen freezes all outgoing payments now. Two officers lift the freeze after freezeLength, and check looks just before.
func (w *harness) frozen(check func()) {
	w.t.Helper()
	by := storetest.PrincipalOf(storetest.User(w.t, w.store.Store, exchange.RoleAdmin))
	if _, err := w.store.Freeze(w.t.Context(), uuid.New(), "a key may have leaked", by); err != nil {
		w.t.Fatal(err)
	}
	w.at(stillFrozen, check)
	w.at(freezeLength, func() {
		if err := storetest.Agreed(w.t, w.store.Store)(w.store.ProposeLift(w.t.Context(), "it has not", by)); err != nil {
			w.t.Error(err)
		}
	})
}

// resumed checks that a flow went on by itself, soon after the freeze for as long as that was, and was never parked.
func (w *harness) resumed(t *testing.T, flow string) {
	t.Helper()
	w.signs.were(t, flow)
	if took := w.env.Now().Sub(w.start); took < freezeLength || took > freezeLength*5/4 {
		t.Errorf("it took %s, with a freeze of %s", took, freezeLength)
	}
}

// A purchase that is paid in a freeze shows what it waits for, and delivers its crypto by itself after the freeze.
func TestFreezeHoldsPurchases(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.frozen(func() {
		if o := w.order(); o.Status != exchange.OrderProcessing || o.StatusDetail != exchange.WaitFrozen || w.chain.built != 0 {
			t.Errorf("in the freeze the order is %s (%s), with %d transactions signed", o.Status, o.StatusDetail, w.chain.built)
		}
	})
	w.run(t)
	delivered(t, w)
	if all := w.signs.carried; len(all) != 1 || !all[0].Since.IsZero() { // the time of its delivery begins after the freeze
		t.Errorf("the payment was carried out by %+v", all)
	}
	w.resumed(t, workflows.OnRampID(w.request.ID))
	w.sound(t)
}

// A sale whose crypto comes in a freeze pays out by itself after it, once.
func TestFreezeHoldsSales(t *testing.T) {
	t.Parallel()
	w := newSale(t)
	w.deposit(time.Minute, 1, crypto("10"))
	w.frozen(func() {
		if o := w.order(); o.Status != exchange.OrderProcessing || o.StatusDetail != exchange.WaitFrozen || len(w.operator.attempts) != 0 {
			t.Errorf("in the freeze the order is %s (%s), with %d payouts begun", o.Status, o.StatusDetail, len(w.operator.attempts))
		}
	})
	w.run(t)
	w.endedAs(t, sold, 1, 1, 0)
	w.resumed(t, workflows.OffRampID(w.request.ID))
	w.sound(t)
}

// A payout whose worker died after it had stored the attempt does not leave in a freeze that began meanwhile. After a short
// freeze it goes on by itself, once.
func TestFreezeHoldsPayoutsThatWereBegun(t *testing.T) {
	t.Parallel()
	for _, kind := range []exchange.MomoObjectType{exchange.MomoOrder, exchange.MomoRefund} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := newPayoutHarness(t, kind, payer{code: "0", after: 5 * time.Second})
			dies := once("BeginPayout")
			w.store.lost = func(call string) error {
				err := dies(call)
				if err != nil {
					if _, err := w.store.Freeze(t.Context(), uuid.New(), "why", w.officer); err != nil {
						t.Error(err)
					}
				}
				return err
			}
			const short = 5 * time.Minute
			w.at(short, func() {
				if a := w.attempts(); len(w.operator.attempts) != 0 || len(a) != 1 || a[0].Status != exchange.AttemptUnknown {
					t.Errorf("in the freeze %d payouts were sent, and the attempts are %+v", len(w.operator.attempts), a)
				}
				if err := storetest.Agreed(t, w.store.Store)(w.store.ProposeLift(t.Context(), "why not", w.officer)); err != nil {
					t.Error(err)
				}
			})
			if got := w.pay(t); got != paidOut {
				t.Errorf("it ended %+v", got)
			}
			if n, took := w.operator.counts[exchange.Payout], w.env.Now().Sub(w.start); n != 1 || took < short || took > 2*short {
				t.Errorf("%d requests arrived, and it took %s", n, took)
			}
		})
	}
}

// A sale that a bank pays is not given to the officers at the bank in a freeze, and by itself after it. They have their time from
// then on.
func TestFreezeHoldsSalesByBank(t *testing.T) {
	t.Parallel()
	w := newSale(t)
	w.byBank()
	w.deposit(time.Minute, 1, crypto("10"))
	w.frozen(func() {
		if o := w.order(); o.Status != exchange.OrderProcessing || o.StatusDetail != exchange.WaitFrozen {
			t.Errorf("in the freeze the order is %s (%s)", o.Status, o.StatusDetail)
		}
	})
	w.at(freezeLength+5*time.Hour, w.atBank(true))
	w.run(t)
	w.endedAs(t, sold, 1, 1, 0)
	w.resumed(t, workflows.OffRampID(w.request.ID))
	w.sound(t)
}

// A transfer that is asked for in a freeze is sent by itself after it.
func TestFreezeHoldsTransfers(t *testing.T) {
	t.Parallel()
	w := newTransferHarness(t)
	w.frozen(func() {
		if f := w.row(); f.Status != exchange.TransferSigning || f.StatusDetail != exchange.WaitFrozen || w.chain.built != 0 {
			t.Errorf("in the freeze the transfer is %s (%s), with %d transactions signed", f.Status, f.StatusDetail, w.chain.built)
		}
	})
	if r := w.play(t); r.Status != exchange.TransferCompleted {
		t.Errorf("the transfer ended as %s (%s)", r.Status, r.Detail)
	}
	w.resumed(t, workflows.TransferID(w.ask.ID))
}

// A transfer to a new address goes on by itself when the address has rested, without any officer.
func TestTransferRestsWithItsDestination(t *testing.T) {
	t.Parallel()
	w := newTransferHarness(t)
	storetest.Exec(t, w.store.Store, `UPDATE release_policy SET rest_seconds = 93600, rest_above = 1000`) // freezeLength
	w.at(stillFrozen, func() {
		if f := w.row(); f.Status != exchange.TransferPending || f.StatusDetail != exchange.WaitRest || f.ApprovalsRequired != 0 {
			t.Errorf("the transfer is %s (%s) and needs %d officers", f.Status, f.StatusDetail, f.ApprovalsRequired)
		}
		storetest.Rested(t, w.store.Store)
	})
	if r := w.play(t); r.Status != exchange.TransferCompleted {
		t.Errorf("the transfer ended as %s (%s)", r.Status, r.Detail)
	}
	w.resumed(t, workflows.TransferID(w.ask.ID))
}
