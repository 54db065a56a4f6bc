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
	payment uuid.UUID   // that opens or advances the nonce account
	until   time.Time   // when the nodes show it; zero: now
	asked   []time.Time // when they were asked and did not show it
	shown   time.Time   // when they showed it
}

// behind has the nodes show it after a time.
func (w *nonceHarness) behind() bool {
	if w.env.Now().Before(w.until) {
		w.asked = append(w.asked, w.env.Now())
		return true
	}
	if w.shown.IsZero() && !w.until.IsZero() {
		w.shown = w.env.Now()
	}
	return false
}

func newNonces(t *testing.T) *nonceHarness {
	t.Helper()
	w := &nonceHarness{proposalHarness: newProposal(t), payment: uuid.New()}
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
	return w
}

// grew checks that the nodes were asked again at once, then after a short pause, then less and less often, and in all no more often than that.
func (w *nonceHarness) grew(t *testing.T, most int) {
	t.Helper()
	if len(w.asked) < 4 || len(w.asked) > most {
		t.Fatalf("the nodes were asked %d times, want %d at most", len(w.asked), most)
	}
	if first := w.asked[1].Sub(w.asked[0]); first > 5*time.Second {
		t.Errorf("after what is final they were asked again after %s", first)
	}
	if second := w.asked[2].Sub(w.asked[1]); second < 10*time.Second || second > 30*time.Second {
		t.Errorf("then after %s", second)
	}
	last := w.asked[1]
	for i, at := range w.asked[2:] {
		pause, share := at.Sub(last), last.Sub(w.asked[0])/8
		if pause > max(share, 15*time.Second)+5*time.Second || pause > 30*time.Minute+5*time.Second {
			t.Errorf("the pause %d, %s after what is final, was %s", i+1, last.Sub(w.asked[0]), pause)
		}
		last = at
	}
	if long := w.shown.Sub(last); long < 20*time.Minute {
		t.Errorf("two days later it was still asked after %s", long)
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
	w.grew(t, 200)
	if late := w.env.Now().Sub(w.shown); late > 5*time.Second {
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
		w.grew(t, 200)
		w.asked, w.shown = nil, time.Time{}
		w.until = w.env.Now().Add(48 * time.Hour)
		w.cancels()
	})
	w.at(98*time.Hour, func() { w.watchReads(); w.net.expired = true })
	w.play(t, exchange.ProposalCancelled, exchange.DetailBySender)
	w.grew(t, 200)
	w.took(t, 9_000)
}
