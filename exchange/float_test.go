package exchange_test

import (
	"testing"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// A report grew when the operator or the books leave more room than in the previous report.
func TestFloatGrew(t *testing.T) {
	t.Parallel()
	check := func(utility, booked, held string) exchange.FloatCheck {
		return exchange.FloatCheck{Utility: shillings(utility), Booked: shillings(booked), Held: shillings(held)}
	}
	before := check("500", "600", "200")
	for name, c := range map[string]struct {
		reports []exchange.FloatCheck
		grew    bool
		room    money.Amount
	}{
		"none":                      {nil, false, shillings("0")},
		"the first":                 {[]exchange.FloatCheck{before}, true, shillings("400")},
		"the same":                  {[]exchange.FloatCheck{before, before}, false, shillings("400")},
		"the operator alone":        {[]exchange.FloatCheck{check("900", "600", "200"), before}, false, shillings("400")},
		"a hold is free":            {[]exchange.FloatCheck{check("500", "600", "0"), before}, true, shillings("500")},
		"both":                      {[]exchange.FloatCheck{check("900", "900", "0"), before}, true, shillings("900")},
		"the operator was the less": {[]exchange.FloatCheck{check("401", "600", "100"), check("100", "600", "100")}, true, shillings("401")},
		"less":                      {[]exchange.FloatCheck{check("500", "600", "201"), before}, false, shillings("399")},
	} {
		if got := (exchange.FloatState{Reports: c.reports}).Grew(); got != c.grew {
			t.Errorf("%s: grew is %t", name, got)
		}
		if len(c.reports) > 0 && !c.reports[0].Room().Equal(c.room) {
			t.Errorf("%s: the room is %s", name, c.reports[0].Room())
		}
	}
}
