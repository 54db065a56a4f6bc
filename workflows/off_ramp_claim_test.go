package workflows_test

import (
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// claiming are payouts that a source claims to be made after they were refused.
func claiming() []sell {
	const min = time.Minute
	return []sell{
		{
			name: "a refused payout that a source claims: waits until that is settled", status: sold, detail: none, check: tried(1, 2, 2, 2),
			parked: []workflows.Reason{workflows.ReasonMomoClaimed, workflows.ReasonMomoClaimed},
			set: func(w *saleHarness) {
				w.payouts(refuses("17"), pays)
				w.deposit(min, 1, crypto("10"))
				w.at(4*min, w.claim(true))
				w.at(30*min, w.claim(false))
			},
		},
		{
			name: "a refused payout that a source claims, and a receipt of another payment", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonMomoClaimed, workflows.ReasonRefundClaimed, workflows.ReasonRefundSecond},
			check:  every(tried(1, 2), responded("refund", ""), responded("agree", "")),
			set: func(w *saleHarness) {
				w.payouts(refuses("17"))
				w.deposit(min, 1, crypto("10"))
				w.at(4*min, func() { w.another(); w.anotherPaid(); w.claim(true)() })
				w.at(10*min, w.resolveByAnother)
				w.at(12*min, w.tell("refund"))
				w.at(20*min, w.tell("retry"))
				w.at(time.Hour, w.agree("agree"))
			},
		},
		{
			name: "the payee gets no more today: paid tomorrow", status: sold, detail: none,
			check: func(t *testing.T, w *saleHarness) {
				tried(1, 1)(t, w)
				if len(w.answers) != 1 { // to the opening
					t.Errorf("it did not wait for the next day, or for longer: %v", w.answers)
				}
			},
			set: func(w *saleHarness) {
				w.deposit(min, 1, crypto("10"))
				w.at(30*time.Second, func() { w.another(); w.anotherPaid(); w.payeeDay("2000") })
				w.at(11*time.Hour+58*min, func() { // 23:58 in Kenya
					if w.order().StatusDetail != exchange.WaitPayeeDay || len(w.signs.payouts) != 1 {
						w.answers["waits"] = errBug
					}
				})
				w.at(12*time.Hour+2*min, func() { w.answers["paid"] = errBug }) // the flow is over by then
			},
		},
		{
			name: "the payee gets no more tomorrow either: given back", status: exchange.OrderFailed, detail: exchange.DetailRefundOpen,
			parked: []workflows.Reason{workflows.ReasonMomoPayeeLimit}, check: tried(1, 1),
			set: func(w *saleHarness) {
				w.deposit(min, 1, crypto("10"))
				w.at(30*time.Second, func() { w.another(); w.payeeDay("2000") }) // an open payout counts every day
				w.at(24*time.Hour, w.tell("refund"))
			},
		},
	}
}

// payeeDay sets the mobile money operator's daily limit for one payee.
func (w *saleHarness) payeeDay(most string) {
	for _, q := range []string{
		`ALTER TABLE momo_terms DISABLE TRIGGER USER`, `UPDATE momo_terms SET max_payout = ` + most + `, payee_day = ` + most, `ALTER TABLE momo_terms ENABLE TRIGGER USER`,
	} {
		storetest.Exec(w.t, w.store.Store, q)
	}
}
