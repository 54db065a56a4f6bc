package e2e

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// keepSale records the flow of a sale.
func (r *recorder) keepSale(t *testing.T, o order, name string) {
	t.Helper()
	r.keep(t, workflows.OffRampID(o.ID), name)
}

// kinds records sales that are opened or paid for in other ways than the usual one, and one that expires. One has its address made
// for it.
func (r *recorder) kinds(t *testing.T) {
	w, n := r.harness, r.harness.tronNode()
	w.rate(t)
	w.letSend(t)
	for name, k := range map[string]saleKind{
		"off_ramp_by_vendor": {form: boughtByVendor},
		"off_ramp_treasury":  {form: toTreasury, treasury: true},
		"off_ramp_custodial": {form: custodialRemitted, funded: true, treasury: true},
	} {
		if k.funded {
			w.emptyPool(t)
		}
		o := k.play(t, w, n)
		if k.funded {
			w.fillPool(t)
		}
		r.keepSale(t, o, name)
	}
	r.keepSale(t, w.unsold(t, n), "off_ramp_expired")
}

// banked records sales that officers pay by bank, or can't pay.
func (r *recorder) banked(t *testing.T) {
	w, n := r.harness, r.harness.tronNode()
	w.letSend(t)
	w.twoOfficersAbove(t, oneOfficer)
	r.keepSale(t, paidAtBankByTwo(t, w, n), "off_ramp_bank")
	r.keepSale(t, refusedAtBank(t, w, n), "off_ramp_bank_refused")
	r.keepSale(t, paidAtBankAfterAll(t, w, n), "off_ramp_bank_again")
}

// paidLate records sales whose payouts are made after they were refused.
func (r *recorder) paidLate(t *testing.T) {
	w, n := r.harness, r.harness.tronNode()
	here, gone, back := w.refusedForNow(t, n)
	w.release(t)
	w.keepsPayout(t, n, here)
	w.booksLoss(t, n, gone, back)
	r.keepSale(t, here, "off_ramp_payout_kept")
	r.keep(t, w.latePayout(t, here), "late_payout_kept")
	r.keep(t, w.latePayout(t, gone), "late_payout_twice")
}

// stranded records sales whose crypto can't go back until the customer or an officer names an address.
func (r *recorder) stranded(t *testing.T) {
	w, n := r.harness, r.harness.tronNode()
	r.keepSale(t, addressedByCustomer(t, w, n), "off_ramp_addressed")
	r.keepSale(t, addressedByOfficer(t, w, n), "off_ramp_addressed_by_officer")
}

// unanswered records a sale whose payout is made while the operator does not respond to status queries, until an
// officer finds the receipt. Meanwhile another sale waits for float, which it checks every five minutes.
func (r *recorder) unanswered(t *testing.T) {
	const asked = 15 * time.Minute // until the flow parks
	if r.file("momo_payout_unknown") == "" && r.file("off_ramp_float") == "" {
		return
	}
	w, n, phone := r.harness, r.harness.tronNode(), newPhone()
	w.fault(t, "status_silent", "payout", phone)
	o := w.sell(t, n, sale{phone: phone})
	w.payIn(t, n, o, soldCrypto)
	eventually(t, "the operator has paid", func() error {
		if len(w.paidFor(t, o)) == 0 {
			return errors.New("it has not")
		}
		return nil
	})
	r.short(t)
	flow := workflows.MomoPayoutID(exchange.OrderObject(o.ID))
	if err := await(t.Context(), asked, func() error {
		parked, err := w.needsAttention(t.Context(), flow)
		if err == nil && !parked {
			err = errors.New("visibility does not show it")
		}
		return err
	}); err != nil {
		t.Fatalf("%s is not parked: %v", flow, err)
	}
	w.parkedWith(t, flow, workflows.ReasonMomoUnknown)
	w.sendCommand(t, w.operator(t), o.ID, "resolve", map[string]any{"note": w.paidFor(t, o)[0].Receipt})
	w.soldOnce(t, n, o, soldCrypto, soldFiat)
	w.floatAgrees(t)
	r.keepSale(t, o, "off_ramp_resolved")
	r.keep(t, flow, "momo_payout_unknown")
}

// short records a sale that waits because the float is too low to pay it.
func (r *recorder) short(t *testing.T) {
	w, n := r.harness, r.harness.tronNode()
	const left, refill = "500", "2000"
	float := exchange.House(exchange.AccMomoPayout, money.KES)
	all, err := w.store.Account(t.Context(), float)
	if err != nil {
		t.Fatal(err)
	}
	most := all.Available().Sub(money.Must(money.KES, left))
	capital := exchange.House(exchange.AccCapital, money.KES)
	w.book(t, exchange.Debit(capital, most), exchange.Credit(float, most))
	o := w.sell(t, n, sale{})
	w.payIn(t, n, o, soldCrypto)
	w.until(t, o.ID, "waiting for float", detail(exchange.WaitFloat))
	if paid := w.paidFor(t, o); len(paid) != 0 {
		t.Fatalf("it was paid without float: %+v", paid)
	}
	var made struct {
		ID uuid.UUID `json:"id"`
	}
	if err := insist(t.Context(), w.operator(t), "/api/v1/auth/momo/float/moves", uuid.NewString(), map[string]any{"amount": refill}, &made); err != nil {
		t.Fatal(err)
	}
	if _, err := w.floatSettled(t, made.ID); err != nil {
		t.Fatal(err)
	}
	w.untilFor(t, o.ID, "over", 2*recovery, order.Over) // the flow checks the float every five minutes
	w.book(t, exchange.Debit(float, most), exchange.Credit(capital, most))
	w.soldOnce(t, n, o, soldCrypto, soldFiat)
	r.keepSale(t, o, "off_ramp_float")
	r.keep(t, workflows.MoveFloatID(made.ID), "move_float")
}

// book writes an entry without a flow, as the house's accountant would.
func (w *harness) book(t *testing.T, lines ...exchange.Line) {
	t.Helper()
	p := exchange.Posting{Entries: []exchange.Entry{{Key: "test:" + uuid.NewString(), Kind: "float.moved", Lines: lines}}}
	if err := w.store.Post(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}
