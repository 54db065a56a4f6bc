package e2e

import (
	"testing"

	"kivuko/dev/tron"
)

const usdt = tron.USDTAddress

func TestHappy(t *testing.T) {
	w := open(t)
	o := w.buy(t, purchase{crypto: "10"})
	o = w.ends(t, o.ID, "completed", "")
	w.paidOnce(t, w.books(t), o)
	t.Log(w.timeline(t, o.ID))
	w.invariants(t)
	w.agree(t)
}
