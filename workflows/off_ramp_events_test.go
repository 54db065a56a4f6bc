package workflows_test

import (
	"testing"
	"time"

	"kivuko/workflows"
)

// How many events each command of a flow leaves in its history, with the task that handles its result.
var eventsOf = map[string]int{
	"activity":       6, // scheduled, started, completed, and a task of three events
	"local activity": 1,
	"child":          9, // initiated, started, completed, and two tasks
	"timer":          2, // started, fired or cancelled
	"signal":         5, // initiated, delivered, and a task
	"upsert":         1,
}

// maxSaleEvents is how many events a smooth sale may write, including the two signals about its deposit and two about its payout.
const maxSaleEvents = 80

// A smooth sale is one flow: nothing of it needs a child.
func TestSmoothSaleIsCheap(t *testing.T) {
	t.Parallel()
	w := newSale(t)
	w.deposit(time.Minute, 1, crypto("10"))
	w.run(t)
	w.sound(t)
	home := workflows.OffRampID(w.request.ID)
	if len(w.signs.payouts) != 1 || w.signs.payouts[0].Home != home {
		t.Errorf("callbacks of the payout go to %v, want %s", w.signs.payouts, home)
	}
	steps := w.signs.steps[home]
	steps["upsert"] = w.signs.shown[home]
	events := 1 + 3 + 2 + 1 + 4*4 // started, its first task, the update that opens it, its end, and four signals with a task each
	for kind, n := range steps {
		events += n * eventsOf[kind]
	}
	if events > maxSaleEvents || steps["activity"] == 0 || steps["child"] != 0 {
		t.Errorf("a smooth sale writes about %d events, at most %d are allowed: %v", events, maxSaleEvents, steps)
	}
}
