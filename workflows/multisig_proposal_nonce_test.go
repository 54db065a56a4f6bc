package workflows_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/mock"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
)

// nonceHarness plays a proposal on a network whose nodes don't show for a time what our gas wallet did to the nonce account, though that is final.
type nonceHarness struct {
	*proposalHarness
	payment uuid.UUID               // that opens or advances the nonce account
	until   time.Time               // when the nodes show it; zero: now
	asked   int                     // how often they were asked and did not show it
	shown   time.Time               // when they showed it
	pauses  map[int][]time.Duration // that began after so many questions
}

// behind has the nodes show it after a time.
func (w *nonceHarness) behind() bool {
	if w.env.Now().Before(w.until) {
		w.asked++
		return true
	}
	if w.shown.IsZero() && !w.until.IsZero() {
		w.shown = w.env.Now()
	}
	return false
}

func newNonces(t *testing.T) *nonceHarness {
	t.Helper()
	w := &nonceHarness{proposalHarness: newProposal(t), payment: uuid.New(), pauses: map[int][]time.Duration{}}
	payloads := &activities.MultisigPayloads{Store: w.store, Client: w.net, Poll: time.Nanosecond}
	signing := &activities.Signing{Signer: w.net, Store: w.store, Recipients: &activities.Recipients{Store: w.store, Screener: w.screens}}
	w.env.OnActivity(payloads.PreparePayload, mock.Anything, mock.Anything).Return(func(ctx context.Context, in activities.PayloadInput) (activities.PreparedPayload, error) {
		if w.behind() {
			return activities.PreparedPayload{NoncePaymentID: w.payment}, nil
		}
		return payloads.PreparePayload(ctx, in)
	})
	w.env.OnActivity(payloads.LookAtPayload, mock.Anything, mock.Anything).Return(func(ctx context.Context, in activities.PayloadInput) (activities.ProposalLook, error) {
		if w.behind() {
			return activities.ProposalLook{State: string(chain.JointOpen), NoncePaymentID: w.payment}, nil
		}
		return payloads.LookAtPayload(ctx, in)
	})
	w.env.OnActivity(signing.SignPayment, mock.Anything, mock.Anything).Return(func(ctx context.Context, in activities.SignInput) (activities.SignedPayment, error) {
		if in.PaymentID == w.payment {
			return activities.SignedPayment{Completed: true}, nil
		}
		return signing.SignPayment(ctx, in)
	})
	w.env.SetOnTimerScheduledListener(func(_ string, d time.Duration) {
		if w.shown.IsZero() {
			w.pauses[w.asked] = append(w.pauses[w.asked], d)
		}
	})
	return w
}

// grew checks that the nodes were asked again at once, then after a short pause, and then less and less often.
func (w *nonceHarness) grew(t *testing.T) {
	t.Helper()
	if w.asked < 100 || w.asked > 200 {
		t.Fatalf("the nodes were asked %d times in two days", w.asked)
	}
	if at := w.pauses[1]; len(at) != 0 {
		t.Errorf("after what is final they were asked again after %v", at)
	}
	last := 15 * time.Second
	for n := 2; n <= w.asked; n++ {
		at := w.pauses[n]
		if len(at) != 1 || at[0] < last || n == 2 && at[0] > last || at[0] > 30*time.Minute {
			t.Fatalf("after the question %d there were the pauses %v; the one before was %s", n, at, last)
		}
		last = at[0]
	}
	if last != 30*time.Minute {
		t.Errorf("two days later the pause was %s", last)
	}
}

// An advance that proves nothing yet, because nodes are behind, is looked at again at once, and then less and less often. The proof ends the
// proposal without a further wait.
func TestAnAdvanceThatProvesNothingYet(t *testing.T) {
	t.Parallel()
	w := newNonces(t)
	w.agreed()
	w.at(2*time.Hour, func() { w.until = w.env.Now().Add(48 * time.Hour); w.cancels() })
	w.at(49*time.Hour, func() { w.watchReads(); w.net.expired = true }) // the proof, which no node shows before
	w.play(t, exchange.ProposalCancelled, exchange.DetailBySender)
	w.grew(t)
	if late := w.env.Now().Sub(w.shown); late > time.Minute {
		t.Errorf("it ended %s after its proof", late)
	}
	w.took(t, 4_000)
}

// So is a nonce account that was opened, before the owners sign. Its pauses begin anew with the next one.
func TestANonceAccountThatIsNotShownYet(t *testing.T) {
	t.Parallel()
	w := newNonces(t)
	w.until = w.start.Add(48 * time.Hour)
	w.approved()
	w.at(50*time.Hour, func() { w.signed(w.account.Owners[0].Address) })
	w.at(51*time.Hour, func() {
		w.grew(t)
		w.asked, w.pauses, w.shown = 0, map[int][]time.Duration{}, time.Time{}
		w.until = w.env.Now().Add(48 * time.Hour)
		w.cancels()
	})
	w.at(98*time.Hour, func() { w.watchReads(); w.net.expired = true })
	w.play(t, exchange.ProposalCancelled, exchange.DetailBySender)
	w.grew(t)
	w.took(t, 9_000)
}
