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

// kinds are sales that are opened otherwise, or paid for otherwise, than the usual one; and one whose time passes.
func (r *recorder) kinds(t *testing.T) {
	w, n := r.world, r.world.tronNode()
	w.rate(t, "128.755")
	w.letSend(t)
	for name, k := range map[string]saleKind{
		"off_ramp_by_vendor": {form: boughtByVendor},
		"off_ramp_treasury":  {form: toTreasury, treasury: true},
		"off_ramp_custodial": {form: custodialRemitted, funded: true, treasury: true},
	} {
		o := k.play(t, w, n)
		r.keepSale(t, o, name)
		if k.funded {
			r.keep(t, workflows.CryptoPayoutID(r.paymentFor(t, "funding", o.ID)), "crypto_payout_funding")
		}
	}
	r.keepSale(t, w.unsold(t, n), "off_ramp_expired")
}

// banked are sales that officers pay at a bank, or can't.
func (r *recorder) banked(t *testing.T) {
	w, n := r.world, r.world.tronNode()
	w.letSend(t)
	w.twoOfficersAbove(t, oneOfficer)
	r.keepSale(t, paidAtBankByTwo(t, w, n), "off_ramp_bank")
	r.keepSale(t, refusedAtBank(t, w, n), "off_ramp_bank_refused")
	r.keepSale(t, paidAtBankAfterAll(t, w, n), "off_ramp_bank_again")
}

// paidLate are sales whose payouts are made after they were refused.
func (r *recorder) paidLate(t *testing.T) {
	w, n := r.world, r.world.tronNode()
	here, gone, back := w.refusedForNow(t, n)
	w.release(t)
	w.keepsPayout(t, n, here)
	w.booksLoss(t, n, gone, back)
	r.keepSale(t, here, "off_ramp_payout_kept")
	r.keep(t, w.latePayout(t, here), "late_payout_kept")
	r.keep(t, w.latePayout(t, gone), "late_payout_twice")
}

// stranded are sales whose crypto can't go back until somebody says where to.
func (r *recorder) stranded(t *testing.T) {
	w, n := r.world, r.world.tronNode()
	r.keepSale(t, addressedByCustomer(t, w, n), "off_ramp_addressed")
	r.keepSale(t, addressedByOfficer(t, w, n), "off_ramp_addressed_by_officer")
}

// unanswered is a sale whose payout is made while the operator answers no question about it, until a person finds the
// receipt. Beside it there is too little to pay another one from, which looks for more every five minutes.
func (r *recorder) unanswered(t *testing.T) {
	const asked = 15 * time.Minute // until a person is called
	if r.file("momo_payout_unknown") == "" && r.file("off_ramp_float") == "" {
		return
	}
	w, n, phone := r.world, r.world.tronNode(), newPhone()
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
	flow := workflows.MomoPayoutID(o.ID)
	if err := await(t.Context(), asked, func() error {
		parked, err := w.needsAttention(t.Context(), flow)
		if err == nil && !parked {
			err = errors.New("visibility does not show it")
		}
		return err
	}); err != nil {
		t.Fatalf("%s asks for a person: %v", flow, err)
	}
	w.parkedWith(t, flow, workflows.ReasonMomoUnknown)
	w.tell(t, w.operator(t), o.ID, "resolve", map[string]any{"note": w.paidFor(t, o)[0].Receipt})
	w.soldOnce(t, n, o, soldCrypto, soldFiat)
	w.floatAgrees(t)
	r.keepSale(t, o, "off_ramp_resolved")
	r.keep(t, flow, "momo_payout_unknown")
}

// short is a sale that waits because there is too little to pay it from.
func (r *recorder) short(t *testing.T) {
	w, n := r.world, r.world.tronNode()
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
		t.Fatalf("it was paid from nothing: %+v", paid)
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
	w.untilFor(t, o.ID, "over", 2*recovery, order.over) // it looks for itself after five minutes
	w.book(t, exchange.Debit(float, most), exchange.Credit(capital, most))
	w.soldOnce(t, n, o, soldCrypto, soldFiat)
	r.keepSale(t, o, "off_ramp_float")
}

// book writes an entry past every flow, as the house's accountant would.
func (w *world) book(t *testing.T, lines ...exchange.Line) {
	t.Helper()
	p := exchange.Posting{Entries: []exchange.Entry{{Key: "test:" + uuid.NewString(), Kind: "float.moved", Lines: lines}}}
	if err := w.store.Post(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}
