package activities

import (
	"context"
	"testing"

	"go.temporal.io/sdk/testsuite"

	"kivuko/exchange"
)

// opening is a store that records what it is asked to open.
type opening struct {
	OffRampStore // for the methods that are not called here
	asked        exchange.OrderRequest
}

func (o *opening) OpenOffRamp(_ context.Context, r exchange.OrderRequest, _ exchange.Principal) (exchange.Order, error) {
	o.asked = r
	return exchange.Order{}, nil
}

// A sale names the mobile money operator of this worker, regardless of the request: its breaker is the one that
// counts.
func TestSaleNamesItsOperator(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	store := &opening{}
	o := &OffRamps{Store: store, Provider: "ours"}
	env.RegisterActivity(o)
	if _, err := env.ExecuteActivity(o.OpenOffRamp, OpenOffRampInput{Request: exchange.OrderRequest{Provider: "another"}}); err != nil {
		t.Fatal(err)
	}
	if store.asked.Provider != "ours" {
		t.Errorf("the sale names %q", store.asked.Provider)
	}
}
