package activities

import (
	"testing"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Only the operator's responses name its charge, which is part of the proof that is booked.
func TestProofCarriesTheCharge(t *testing.T) {
	const receipt = "UKL1234567"
	result := said(exchange.SourceCallback, exchange.SeenSucceeded, receipt, "1294")
	answer := said(exchange.SourceQuery, exchange.SeenSucceeded, receipt, "1294")
	answer.Charge = money.Must(money.KES, "22.40")
	e := payoutEvidence{attempt: exchange.PaymentAttempt{Amount: asked}, result: result, answers: []exchange.Observation{answer}}
	state, o := e.judge()
	if state != PayoutPaid || !o.Charge.Equal(answer.Charge) {
		t.Errorf("%s with a charge of %s", state, o.Charge)
	}
	e.answers[0].Charge = money.Amount{}
	if state, o = e.judge(); state != PayoutPaid || o.Charge.Asset() != "" {
		t.Errorf("%s with a charge of %s from no source", state, o.Charge)
	}
}
