package workflows_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// bringers are the answers of BringGas by network, call by call; an error is the node's.
type bringers map[exchange.Network][]any

// runGasAhead runs the job with these answers, and returns the top-ups whose flows ran.
func (b bringers) run(t *testing.T) (workflows.GasAheadDone, []workflows.CryptoPayoutInput) {
	t.Helper()
	env := newEnvironment(nil)
	var ran []workflows.CryptoPayoutInput
	env.RegisterWorkflow(workflows.GasAhead)
	env.RegisterWorkflowWithOptions(func(ctx workflow.Context, in workflows.CryptoPayoutInput) (workflows.CryptoPayoutResult, error) {
		ran = append(ran, in)
		return workflows.CryptoPayoutResult{Completed: true}, workflow.Sleep(ctx, finalAfter)
	}, workflow.RegisterOptions{Name: workflows.TypeCryptoPayout})
	env.RegisterActivityWithOptions(func(context.Context) ([]exchange.Network, error) {
		return []exchange.Network{exchange.Ethereum, exchange.Solana, exchange.Tron}, nil
	}, activity.RegisterOptions{Name: "ReconciledNetworks"})
	env.RegisterActivityWithOptions(func(ctx context.Context) (activities.GasBrought, error) {
		n := workflows.ChainOf(activity.GetInfo(ctx).TaskQueue)
		answers := b[n]
		if len(answers) == 0 {
			t.Errorf("%s was asked", n)
			return activities.GasBrought{}, nil
		}
		if len(answers) > 1 {
			b[n] = answers[1:]
		}
		if err, failed := answers[0].(error); failed {
			return activities.GasBrought{}, err
		}
		return answers[0].(activities.GasBrought), nil
	}, activity.RegisterOptions{Name: "BringGas"})
	env.ExecuteWorkflow(workflows.GasAhead)
	var done workflows.GasAheadDone
	if err := errors.Join(env.GetWorkflowError(), env.GetWorkflowResult(&done)); err != nil {
		t.Fatal(err)
	}
	return done, ran
}

func broughtFor(topUps ...activities.GasTopUp) activities.GasBrought {
	return activities.GasBrought{Looked: 9, Approved: len(topUps), Start: topUps}
}

func newTopUp() activities.GasTopUp {
	return activities.GasTopUp{PaymentID: uuid.New(), WalletID: uuid.New()}
}

// TestGasAheadIsBrought starts the flow of each top-up, and none where there is nothing to do. Where the gas wallet pays the fees itself
// nothing is asked.
func TestGasAheadIsBrought(t *testing.T) {
	one, two := newTopUp(), newTopUp()
	done, ran := bringers{exchange.Ethereum: {broughtFor()}, exchange.Tron: {broughtFor(one, two)}}.run(t)
	if len(done.Networks) != 2 || done.Networks[0].Begun != 0 || done.Networks[1].Begun != 2 || done.Networks[1].Looked != 9 || done.Networks[1].Network != exchange.Tron {
		t.Errorf("done %+v", done)
	}
	want := []workflows.CryptoPayoutInput{
		{PaymentID: one.PaymentID, WalletID: one.WalletID, Network: exchange.Tron}, {PaymentID: two.PaymentID, WalletID: two.WalletID, Network: exchange.Tron},
	}
	if !slices.Equal(ran, want) {
		t.Errorf("ran %+v, want %+v", ran, want)
	}
}

// TestGasAheadAfterACrash begins what a run approved that died after it, and lets a flow alone that runs already: two runs at once begin it
// once.
func TestGasAheadAfterACrash(t *testing.T) {
	left := newTopUp()
	away := temporal.NewApplicationError("The node is away.", string(exchange.CodeUnavailable))
	done, ran := bringers{exchange.Ethereum: {away, broughtFor(left)}, exchange.Tron: {broughtFor(left)}}.run(t)
	if len(ran) != 1 || done.Networks[0].Begun+done.Networks[1].Begun != 1 || done.Networks[0].Failed || done.Networks[1].Failed {
		t.Errorf("done %+v, ran %+v", done, ran)
	}
}

// TestGasAheadOnOneNetwork brings gas on a network while the other can't be looked at.
func TestGasAheadOnOneNetwork(t *testing.T) {
	broken := temporal.NewNonRetryableApplicationError("No.", activities.TypeInternal, nil)
	done, ran := bringers{exchange.Ethereum: {broken}, exchange.Tron: {broughtFor(newTopUp())}}.run(t)
	if len(ran) != 1 || !done.Networks[0].Failed || done.Networks[1].Begun != 1 {
		t.Errorf("done %+v, ran %+v", done, ran)
	}
}

// TestGasThatIsOnItsWay waits for gas that was brought ahead of need, without a flow of its own.
func TestGasThatIsOnItsWay(t *testing.T) {
	id := uuid.New()
	s := &payoutScript{
		signs:    map[uuid.UUID][]activities.SignedPayment{id: {needsGas, needsGas, signedOnce}},
		delivers: map[uuid.UUID][]activities.Delivery{id: {completed}},
		topUps:   []activities.TopUp{{Waits: true}},
	}
	if r := s.runPayout(t, id); !r.Completed {
		t.Errorf("ended %+v", r)
	}
	if want := []string{"sign", "top up", "sign", "top up", "sign", "deliver"}; !slices.Equal(s.calls, want) {
		t.Errorf("called %v, want %v", s.calls, want)
	}
}

// TestGasAheadArrives has the arrival of a top-up ahead of need recorded, for a payment that comes before it is final.
func TestGasAheadArrives(t *testing.T) {
	id := uuid.New()
	s := &payoutScript{
		signs:    map[uuid.UUID][]activities.SignedPayment{id: {signedOnce}},
		delivers: map[uuid.UUID][]activities.Delivery{id: {{End: activities.DeliveryArrived, BlockID: "seven"}, completed}},
	}
	r := s.runInput(t, workflows.CryptoPayoutInput{PaymentID: id, WalletID: uuid.New(), Network: exchange.Ethereum})
	if !r.Completed || len(s.delivered) != 2 || !s.delivered[0].Arrival || s.delivered[1].Arrived != "seven" {
		t.Errorf("ended %+v after %+v", r, s.delivered)
	}
}
