package workflows

import (
	"testing"
	"time"
)

func TestLimitsThatWouldStopAFlowAreRefused(t *testing.T) {
	if err := calls.check(); err != nil {
		t.Fatalf("the built-in limits are refused: %v", err)
	}
	for name, spoil := range map[string]func(*Calls){
		"no timeout":                   func(c *Calls) { c.Look.Timeout = 0 },
		"no end of a look":             func(c *Calls) { c.Look.Budget = 0 },
		"a transaction that gives up":  func(c *Calls) { c.Database.Tries = 5 },
		"a signature that gives up":    func(c *Calls) { c.Signer.Budget = time.Minute },
		"pauses that shrink":           func(c *Calls) { c.Rail.LastRetry = time.Millisecond },
		"negative":                     func(c *Calls) { c.Delivery.Heartbeat = -1 },
		"a delivery that never alerts": func(c *Calls) { c.Delivery.Budget = 0 },
	} {
		c := calls
		spoil(&c)
		if UseCalls(c) == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
