package catalogue

import (
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/momo/sandbox"
)

// Case 22: the address that the operator posts to is dead, and nothing fails: questions find every payment. The share of
// requests without a callback tells it.
func TestCatalogue22_TheCallbacksGoNowhere(t *testing.T) {
	t.Parallel()
	w := open(t)
	began := w.now()
	silence := func() exchange.CallbackSilence {
		t.Helper()
		c, err := w.store.CallbackSilence(t.Context(), began, w.now().Add(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	w.is(w.buy(w.request("00")), exchange.OrderCompleted, exchange.WaitNothing)
	for n := range exchange.MinSilent {
		if got, want := silence(), (exchange.CallbackSilence{Submitted: n + 1, Silent: n}); got != want || got.Alarming() {
			t.Errorf("after %d lost callbacks: %+v", n, got)
		}
		w.fault("callback_lost", sandbox.OpPrompt)
		r := w.request("00")
		r.Phone = r.Phone[:len(r.Phone)-3] + string(rune('1'+n)) + "00" // prompts to one number are limited
		w.is(w.buy(r), exchange.OrderCompleted, exchange.WaitNothing)
	}
	if got := silence(); !got.Alarming() {
		t.Errorf("nobody is told of %+v", got)
	}
	w.books()
}
