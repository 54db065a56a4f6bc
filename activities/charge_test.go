package activities

import (
	"testing"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// What the operator charged is told by its answers alone, and travels with the proof that is booked.
func TestProofCarriesTheCharge(t *testing.T) {
	const receipt = "UKL1234567"
	result := said(exchange.WitnessCallback, exchange.SeenSucceeded, receipt, "1294")
	answer := said(exchange.WitnessQuery, exchange.SeenSucceeded, receipt, "1294")
	answer.Charge = money.Must(money.KES, "22.40")
	e := payoutEvidence{attempt: exchange.PaymentAttempt{Amount: asked}, result: result, answers: []exchange.Observation{answer}}
	state, o := e.judge()
	if state != RefundPaid || !o.Charge.Equal(answer.Charge) {
		t.Errorf("%s with a charge of %s", state, o.Charge)
	}
	e.answers[0].Charge = money.Amount{}
	if state, o = e.judge(); state != RefundPaid || o.Charge.Asset() != "" {
		t.Errorf("%s with a charge of %s that nobody told", state, o.Charge)
	}
}
