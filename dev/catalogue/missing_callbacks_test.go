package catalogue

import (
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/momo/sandbox"
	"kivuko/workflows"
)

// missing returns the store's count of requests without a callback since a time.
func (w *harness) missing(since time.Time) exchange.MissingCallbacks {
	w.t.Helper()
	c, err := w.store.MissingCallbacks(w.t.Context(), since, w.now().Add(time.Second))
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// Case 22: the callback address is dead, and nothing fails: queries and the statement find every payment. The share of
// requests without a callback shows the fault.
func TestCatalogue22_TheCallbacksGoNowhere(t *testing.T) {
	t.Parallel()
	w := open(t)
	began := w.now()
	w.is(w.buy(w.request("00")), exchange.OrderCompleted, exchange.WaitNothing)
	w.line.dies(true)
	for n := range exchange.MinMissing {
		if got, want := w.missing(began), (exchange.MissingCallbacks{Submitted: n + 1, Missing: n}); got != want || got.Alarming() {
			t.Errorf("after %d lost callbacks: %+v", n, got)
		}
		r := w.request("00")
		r.Phone = r.Phone[:len(r.Phone)-3] + string(rune('1'+n)) + "00" // prompts to one number are limited
		w.is(w.buy(r), exchange.OrderCompleted, exchange.WaitNothing)
	}
	if got := w.missing(began); !got.Alarming() {
		t.Errorf("no alert for %+v", got)
	}
	w.books()
}

// Case 22, without any orders: the operator's answer about our balances comes to the same address, so that every balance
// query tests it.
func TestCatalogue22_TheAddressIsTested(t *testing.T) {
	t.Parallel()
	w := open(t)
	for _, s := range []struct {
		name     string
		dead     bool
		answered int
	}{{"as it should be", false, 1}, {"dead", true, 0}, {"mended", false, 1}} {
		w.line.dies(s.dead)
		w.pass(time.Hour)
		w.play("watch-float", workflows.WatchFloat, nil, nil)
		if got, found := w.gauges.value("kivuko_momo_answered"); !found || got != s.answered {
			t.Errorf("%s: the gauge says %d (%v), want %d", s.name, got, found, s.answered)
		}
	}
	if n := len(w.line.of(exchange.CallbackBalance)); n != 2 {
		t.Errorf("%d answers came", n)
	}
	if n := len(w.effects(sandbox.Collection)) + len(w.effects(sandbox.Payout)); n != 0 {
		t.Errorf("a question moved money, %d times", n)
	}
	w.books()
}
