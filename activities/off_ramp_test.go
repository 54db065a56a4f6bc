package activities

import (
	"context"
	"testing"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"kivuko/exchange"
)

// opening is a store that records what it is asked to open.
type opening struct {
	OffRampStore // for the methods that are not called here
	operator     string
	asked        exchange.Asked
}

func (o *opening) OpenOffRamp(_ context.Context, a exchange.Asked, operator string) (exchange.Order, error) {
	o.asked, o.operator = a, operator
	return exchange.Order{}, nil
}

func (*opening) OffRampDeposits(context.Context, uuid.UUID) ([]uuid.UUID, error) { return nil, nil }

// A sale names the mobile money operator of this worker: its breaker is the one that counts. The intent is used for the flow
// that the server of flows names.
func TestSaleNamesItsOperator(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	store := &opening{}
	o := &OffRamps{Store: store, Provider: "ours"}
	env.RegisterActivity(o)
	in := IntentInput{IntentID: uuid.New()}
	if _, err := env.ExecuteActivity(o.OpenOffRamp, in); err != nil {
		t.Fatal(err)
	}
	if store.operator != "ours" || store.asked.IntentID != in.IntentID || store.asked.Flow == "" {
		t.Errorf("the sale of %+v names %q", store.asked, store.operator)
	}
}
