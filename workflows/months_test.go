package workflows_test

import (
	"context"
	"slices"
	"testing"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// calendar is a database whose months are due.
type calendar struct {
	activities.OrderStore
	kept  int
	fault func(string) error
}

func (c *calendar) KeepMonths(_ context.Context, kept int) (exchange.Months, error) {
	if err := c.fault("KeepMonths"); err != nil {
		return exchange.Months{}, err
	}
	c.kept = kept
	return exchange.Months{Made: []string{"2026-12"}, Ahead: exchange.MonthsAhead, Needed: true, Outside: true}, nil
}

// A run makes months as configured, whatever is away for a moment, and says what it did.
func TestKeepMonths(t *testing.T) {
	c := &calendar{fault: once("KeepMonths")}
	env := newEnvironment(nil)
	env.RegisterActivity(&activities.Orders{Store: c, EventsKept: 24})
	env.ExecuteWorkflow(workflows.KeepMonths)
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	var got exchange.Months
	if err := env.GetWorkflowResult(&got); err != nil || !slices.Equal(got.Made, []string{"2026-12"}) || c.kept != 24 || !got.Needed {
		t.Errorf("%+v of %d months, %v", got, c.kept, err)
	}
}
