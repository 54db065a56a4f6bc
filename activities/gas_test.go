package activities

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"kivuko/chain"
	"kivuko/exchange"
)

// TestArrivalIsReported reports a top-up once for each block that has it, if it made its transfer and a payment waits for it.
func TestArrivalIsReported(t *testing.T) {
	in, elsewhere, final, pending := seen(chain.StageIncluded, signedAt), seen(chain.StageIncluded, signedAt), seen(chain.StageFinal, signedAt), seen(chain.StagePending, signedAt)
	elsewhere.at.Transfers = []chain.Movement{{TxID: "tx", From: "TFrom", To: "TOther", Amount: tenUSDT}}
	failed := seen(chain.StageIncluded, signedAt)
	failed.at.OK = false
	for name, c := range map[string]struct {
		sight    sight
		in       DeliverInput
		known    bool // that it is in the block
		recorded []string
		end      string
	}{
		"in a block":                {sight: in, in: DeliverInput{Arrival: true}, recorded: []string{"included", "arrived in seven"}, end: DeliveryArrived},
		"in a block, lost answer":   {sight: in, in: DeliverInput{Arrival: true}, known: true, recorded: []string{"arrived in seven"}, end: DeliveryArrived},
		"in another block":          {sight: in, in: DeliverInput{Arrival: true, Arrived: "six"}, known: true, recorded: []string{"arrived in seven"}, end: DeliveryArrived},
		"reported before":           {sight: in, in: DeliverInput{Arrival: true, Arrived: "seven"}, known: true},
		"no payment waits":          {sight: in, recorded: []string{"included"}},
		"it failed":                 {sight: failed, in: DeliverInput{Arrival: true}, recorded: []string{"included"}},
		"it pays another recipient": {sight: elsewhere, in: DeliverInput{Arrival: true}, recorded: []string{"included"}},
		"not in a block":            {sight: pending, in: DeliverInput{Arrival: true}},
		"final at once":             {sight: final, in: DeliverInput{Arrival: true}, recorded: []string{"completed"}, end: DeliveryCompleted},
	} {
		t.Run(name, func(t *testing.T) {
			rows := delivered()
			if c.known {
				rows.attempt.Status, rows.attempt.BlockID = exchange.TxIncluded, "seven"
			}
			d, err := deliverWith(t, rows, c.sight, c.in)
			if !slices.Equal(rows.recorded, c.recorded) || d.End != c.end || (err == nil) != (c.end != "") || (d.BlockID == "seven") != (c.end == DeliveryArrived) {
				t.Errorf("recorded %v and ended %+v (%v), want %v and %q", rows.recorded, d, err, c.recorded, c.end)
			}
		})
	}
}

// TestLackOfGasIsRepaired lets a payment be signed again whose final transaction lacked gas, until the store parks it. Every other
// failure parks it at once.
func TestLackOfGasIsRepaired(t *testing.T) {
	for name, c := range map[string]struct {
		lacked   bool
		after    exchange.ChainPaymentStatus
		recorded string
		end      string
	}{
		"lacked gas":            {lacked: true, after: exchange.ChainApproved, recorded: "out of gas", end: DeliveryExpired},
		"lacked gas once again": {lacked: true, after: exchange.ChainParked, recorded: "out of gas", end: DeliveryFailed},
		"another failure":       {after: exchange.ChainParked, recorded: "failed", end: DeliveryFailed},
	} {
		t.Run(name, func(t *testing.T) {
			rows, at := delivered(), seen(chain.StageFinal, signedAt)
			rows.payment.Status = c.after
			at.at.OK, at.at.Transfers, at.at.OutOfGas, at.at.Code = false, nil, c.lacked, "OUT_OF_ENERGY"
			d, err := deliverWith(t, rows, at, DeliverInput{})
			if err != nil || !slices.Equal(rows.recorded, []string{c.recorded}) || d.End != c.end || d.Code != "OUT_OF_ENERGY" {
				t.Errorf("recorded %v and ended %+v, %v", rows.recorded, d, err)
			}
		})
	}
}

// delivered is a payment whose transaction a node has accepted.
func delivered() *chainRows {
	return &chainRows{
		payment: exchange.ChainPayment{ID: uuid.New(), FromAddress: "TFrom", ToAddress: "TTo", Amount: tenUSDT},
		attempt: exchange.ChainAttempt{ID: uuid.New(), TxID: "tx", Raw: []byte("tx"), ExpiresAt: lifeEnds, Status: exchange.TxBroadcast},
	}
}

func deliverWith(t *testing.T, rows *chainRows, s sight, in DeliverInput) (Delivery, error) {
	t.Helper()
	suite := testsuite.WorkflowTestSuite{}
	env := suite.NewTestActivityEnvironment()
	c := &Chain{Store: rows, Client: &reader{sights: []sight{s}}, Poll: time.Second}
	env.RegisterActivity(c)
	in.PaymentID = rows.payment.ID
	value, err := env.ExecuteActivity(c.DeliverPayment, in)
	if err != nil {
		return Delivery{}, err
	}
	var d Delivery
	return d, value.Get(&d)
}
