package e2e

import (
	"testing"

	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/workflows"
)

// sales records the ways that a sale of crypto can go, on TRON.
func (r *recorder) sales(t *testing.T) {
	w, n := r.harness, r.harness.tronNode()
	keep := func(o order, name string) {
		t.Helper()
		r.keep(t, workflows.OffRampID(o.ID), name)
	}
	paid := w.sell(t, n, sale{})
	w.payIn(t, n, paid, soldCrypto)
	w.soldOnce(t, n, paid, soldCrypto, soldFiat)
	keep(paid, "off_ramp_paid")
	r.keep(t, workflows.CryptoPayoutID(r.paymentFor(t, "sweep", paid.ID)), "crypto_payout_sweep")

	less := w.sell(t, n, sale{})
	w.payIn(t, n, less, "9.5")
	w.decides(t, less.ID, "accept-deposit")
	w.soldOnce(t, n, less, "9.5", 1223)
	keep(less, "off_ramp_repriced")

	keep(r.notSold(t, n, func(o order) { w.sendCommand(t, w.amina(t), o.ID, "cancel", nil) }), "off_ramp_cancelled")
	r.salesUndone(t, n)
}

// notSold records a sale for which no crypto arrived.
func (r *recorder) notSold(t *testing.T, n demo.Node, end func(order)) order {
	t.Helper()
	o := r.harness.sell(t, n, sale{})
	end(o)
	r.harness.saleOver(t, r.harness.ends(t, o.ID, "cancelled", ""))
	return o
}

// salesUndone records sales whose crypto goes back, because the payee can't be paid or because too much arrived, and
// one whose deposit is first removed by a reorganisation.
func (r *recorder) salesUndone(t *testing.T, n demo.Node) {
	w, phone := r.harness, newPhone()
	back, err := stranger(n.Network)
	if err != nil {
		t.Fatal(err)
	}
	w.fault(t, "unregistered", "payout", phone)
	refused := w.sell(t, n, sale{phone: phone, back: back})
	w.payIn(t, n, refused, soldCrypto)
	w.cryptoRefund(t, n, refused, exchange.DetailRefundOpen, back, soldCrypto)
	r.keep(t, workflows.OffRampID(refused.ID), "off_ramp_refused_refunded")
	r.keep(t, workflows.CryptoPayoutID(r.paymentFor(t, "refund", r.refund(t, refused.ID))), "crypto_payout_refund")

	much := w.sell(t, n, sale{back: back})
	w.payIn(t, n, much, "1200")
	w.decides(t, much.ID, "return-deposit")
	w.cryptoRefund(t, n, much, exchange.DetailMismatch, back, "1200")
	r.keep(t, workflows.OffRampID(much.ID), "off_ramp_mismatch")

	again := w.sell(t, n, sale{})
	post(t, n, "/pause", nil)
	w.payIn(t, n, again, soldCrypto)
	w.until(t, again.ID, "seen", func(o order) bool { return o.Status == "confirming" })
	post(t, n, "/reorganise", map[string]any{"blocks": 1, "drop": true})
	post(t, n, "/resume", nil)
	w.until(t, again.ID, "waiting for the crypto again", func(o order) bool { return o.Status == "pending" })
	w.payIn(t, n, again, soldCrypto)
	w.soldOnce(t, n, again, soldCrypto, soldFiat)
	r.keep(t, workflows.OffRampID(again.ID), "off_ramp_reorganised")
}

// returned records crypto that arrived too late, and goes back by command.
func (r *recorder) returned(t *testing.T) {
	w, n := r.harness, r.harness.tronNode()
	back, err := stranger(n.Network)
	if err != nil {
		t.Fatal(err)
	}
	late := w.sell(t, n, sale{back: back})
	w.sendCommand(t, w.amina(t), late.ID, "cancel", nil)
	w.ends(t, late.ID, "cancelled", "")
	w.payIn(t, n, late, "4")
	w.exception(t, late.ID, "late", "open", "4.000000")
	w.sendBack(t, n, late, "late", back, "4")
	r.keep(t, workflows.ReturnDepositID(w.exceptionOf(t, late.ID, "late")), "return_deposit")
}

// replenished records a run of the flow that keeps the pools of addresses filled, which makes some.
func (r *recorder) replenished(t *testing.T) {
	w := r.harness
	if _, err := w.db.ExecContext(t.Context(), `UPDATE escrow_policy SET keep_free = keep_free + 2`); err != nil {
		t.Fatal(err)
	}
	var before int
	count := `SELECT count(*) FROM escrow_addresses`
	if err := w.db.QueryRowContext(t.Context(), count).Scan(&before); err != nil {
		t.Fatal(err)
	}
	w.replenishPool(t)
	var id string
	eventually(t, "a run that made addresses", func() (err error) {
		id, err = w.latest(t, workflows.TypeReplenishEscrow)
		return err
	})
	r.keep(t, id, "replenish_escrow")
}
