package workflows_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// TestSignatureWaitsForTheWatch retries the signature until the watch has read the chain; the wait is no failure.
func TestSignatureWaitsForTheWatch(t *testing.T) {
	t.Parallel()
	id := uuid.New()
	behind := activities.SignedPayment{Waits: string(exchange.HoldWatch)}
	s := &payoutScript{
		signs:    map[uuid.UUID][]activities.SignedPayment{id: {behind, behind, behind, signedOnce}},
		delivers: map[uuid.UUID][]activities.Delivery{id: {completed}},
	}
	if r := s.runPayout(t, id); !r.Completed {
		t.Errorf("ended %+v", r)
	}
	if want := []string{"sign", "sign", "sign", "sign", "deliver"}; !slices.Equal(s.calls, want) {
		t.Errorf("called %v, want %v", s.calls, want)
	}
}

// TestPaymentThatWasCarriedOutOtherwise parks with the specific reason, not with "failed".
func TestPaymentThatWasCarriedOutOtherwise(t *testing.T) {
	t.Parallel()
	id := uuid.New()
	s := &payoutScript{
		signs:    map[uuid.UUID][]activities.SignedPayment{id: {signedOnce}},
		delivers: map[uuid.UUID][]activities.Delivery{id: {{End: activities.DeliveryFailed, Code: "SUCCESS"}}},
	}
	if r := s.runPayout(t, id); r.Reason != string(workflows.ReasonPayoutUnexpected) {
		t.Errorf("ended %+v", r)
	}
}

// TestForeignSendParksTheOrder parks the order with the reason, and continues after an officer has settled the
// movement.
func TestForeignSendParksTheOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		hold   exchange.SigningHold
		reason workflows.Reason
	}{
		{exchange.HoldForeign, workflows.ReasonPayoutForeignSend},
		{exchange.HoldSentBefore, workflows.ReasonPayoutSentBefore},
	} {
		t.Run(string(c.hold), func(t *testing.T) {
			t.Parallel()
			w := newHarness(t)
			settled := w.start.Add(time.Hour)
			w.store.hold = func() exchange.SigningHold {
				if w.env.Now().Before(settled) {
					return c.hold
				}
				return exchange.HoldNone
			}
			for _, after := range []time.Duration{30 * time.Minute, 61 * time.Minute} {
				w.at(after, func() { w.command(activities.VerbRetry) })
			}
			w.run(t)
			if o := w.order(); o.Status != exchange.OrderCompleted {
				t.Errorf("the order is %s", o.Status)
			}
			w.signs.were(t, workflows.OnRampID(w.request.ID), c.reason, c.reason)
			w.sound(t)
		})
	}
}

// TestOrderWaitsForTheWatch shows what the order waits for and does not park.
func TestOrderWaitsForTheWatch(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	ready := w.start.Add(20 * time.Minute)
	w.store.hold = func() exchange.SigningHold {
		if w.env.Now().Before(ready) {
			return exchange.HoldWatch
		}
		return exchange.HoldNone
	}
	w.run(t)
	if o := w.order(); o.Status != exchange.OrderCompleted || w.store.waited == 0 {
		t.Errorf("the order is %s and was shown to wait %d times", o.Status, w.store.waited)
	}
	w.signs.were(t, workflows.OnRampID(w.request.ID))
	w.sound(t)
}
