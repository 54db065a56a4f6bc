package workflows_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// payoutScript is the responses of a payout's activities, call by call; the last one repeats.
type payoutScript struct {
	now      func() time.Time
	signs    map[uuid.UUID][]activities.SignedPayment
	delivers map[uuid.UUID][]activities.Delivery
	bumps    []activities.Bump
	topUps   []activities.TopUp
	calls    []string
	inputs   []activities.SignInput
	waits    []time.Duration // how long a higher bid is postponed

	delivered []activities.DeliverInput
}

func nextOf[T any](list *[]T) T {
	var none T
	if len(*list) == 0 {
		return none
	}
	v := (*list)[0]
	if len(*list) > 1 {
		*list = (*list)[1:]
	}
	return v
}

func (s *payoutScript) sign(_ context.Context, in activities.SignInput) (activities.SignedPayment, error) {
	s.calls, s.inputs = append(s.calls, "sign"), append(s.inputs, in)
	list := s.signs[in.PaymentID]
	defer func() { s.signs[in.PaymentID] = list }()
	return nextOf(&list), nil
}

func (s *payoutScript) deliver(_ context.Context, in activities.DeliverInput) (activities.Delivery, error) {
	s.calls, s.delivered = append(s.calls, "deliver"), append(s.delivered, in)
	s.waits = append(s.waits, in.BumpAfter.Sub(s.now()))
	list := s.delivers[in.PaymentID]
	defer func() { s.delivers[in.PaymentID] = list }()
	return nextOf(&list), nil
}

func (s *payoutScript) bump(_ context.Context, in activities.BumpInput) (activities.Bump, error) {
	s.calls = append(s.calls, "bump")
	return nextOf(&s.bumps), nil
}

func (s *payoutScript) topUp(context.Context, activities.TopUpInput) (activities.TopUp, error) {
	s.calls = append(s.calls, "top up")
	return nextOf(&s.topUps), nil
}

// runPayout runs a payout on Ethereum with these responses.
func (s *payoutScript) runPayout(t *testing.T, id uuid.UUID) workflows.CryptoPayoutResult {
	t.Helper()
	return s.runInput(t, workflows.CryptoPayoutInput{PaymentID: id, OrderID: uuid.New(), Network: exchange.Ethereum})
}

func (s *payoutScript) runInput(t *testing.T, in workflows.CryptoPayoutInput) workflows.CryptoPayoutResult {
	t.Helper()
	env := newEnvironment(nil)
	s.now = env.Now
	env.RegisterWorkflowWithOptions(workflows.CryptoPayout, workflow.RegisterOptions{Name: workflows.TypeCryptoPayout})
	for name, f := range map[string]any{
		"SignPayment": s.sign, "DeliverPayment": s.deliver, "BumpPaymentFee": s.bump, "ApproveTopUp": s.topUp, "ListParked": listed,
	} {
		env.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	env.ExecuteWorkflow(workflows.TypeCryptoPayout, in)
	var result workflows.CryptoPayoutResult
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if err := env.GetWorkflowResult(&result); err != nil {
		t.Fatal(err)
	}
	return result
}

var (
	signedOnce = activities.SignedPayment{AttemptID: uuid.New(), TxID: "first"}
	completed  = activities.Delivery{End: activities.DeliveryCompleted, TxID: "second"}
	stuckFirst = activities.Delivery{End: activities.DeliveryStuck, TxID: "first", N: 1}
	needsGas   = activities.SignedPayment{Gas: &activities.NeedGas{Missing: "0.01"}}
)

// TestStuckTransactionIsBumped replaces a stuck transaction with a higher fee, and leaves the rest to the delivery that
// watches both.
func TestStuckTransactionIsBumped(t *testing.T) {
	id := uuid.New()
	s := &payoutScript{
		signs:    map[uuid.UUID][]activities.SignedPayment{id: {signedOnce}},
		delivers: map[uuid.UUID][]activities.Delivery{id: {stuckFirst, completed}},
		bumps:    []activities.Bump{{TxID: "second", N: 2}},
	}
	if r := s.runPayout(t, id); !r.Completed || r.TxID != "second" {
		t.Errorf("ended %+v", r)
	}
	if want := []string{"sign", "deliver", "bump", "deliver"}; !slices.Equal(s.calls, want) {
		t.Errorf("called %v, want %v", s.calls, want)
	}
}

// TestBumpAtTheCeiling keeps broadcasting the existing transaction, and tries a higher fee again only after a pause.
func TestBumpAtTheCeiling(t *testing.T) {
	id := uuid.New()
	s := &payoutScript{
		signs:    map[uuid.UUID][]activities.SignedPayment{id: {signedOnce}},
		delivers: map[uuid.UUID][]activities.Delivery{id: {stuckFirst, completed}},
		bumps:    []activities.Bump{{Kept: "fee_too_high"}},
	}
	if r := s.runPayout(t, id); !r.Completed {
		t.Errorf("ended %+v", r)
	}
	if len(s.waits) != 2 || s.waits[0] > 0 || s.waits[1] < 5*time.Minute {
		t.Errorf("a higher bid was postponed by %v", s.waits)
	}
}

// TestGasIsBroughtFirst tops the sender up by a separate payment and then signs.
func TestGasIsBroughtFirst(t *testing.T) {
	id, gas := uuid.New(), uuid.New()
	s := &payoutScript{
		signs:    map[uuid.UUID][]activities.SignedPayment{id: {needsGas, signedOnce}, gas: {signedOnce}},
		delivers: map[uuid.UUID][]activities.Delivery{id: {completed}, gas: {completed}},
		topUps:   []activities.TopUp{{PaymentID: gas}},
	}
	if r := s.runPayout(t, id); !r.Completed {
		t.Errorf("ended %+v", r)
	}
	if want := []string{"sign", "top up", "sign", "deliver", "sign", "deliver"}; !slices.Equal(s.calls, want) {
		t.Errorf("called %v, want %v", s.calls, want)
	}
	if s.inputs[1].PaymentID != gas || s.inputs[2].PaymentID != id {
		t.Errorf("signed %+v", s.inputs)
	}
}

// TestGasThatCanNotBeHad parks the payment with the code of the reason.
func TestGasThatCanNotBeHad(t *testing.T) {
	gas := uuid.New()
	for name, c := range map[string]struct {
		topUp activities.TopUp
		gas   activities.SignedPayment
		word  string
	}{
		"the limit":               {topUp: activities.TopUp{Refused: activities.GasLimit}, word: activities.GasLimit},
		"the gas wallet is short": {topUp: activities.TopUp{PaymentID: gas}, gas: activities.SignedPayment{Parked: "insufficient_funds"}, word: activities.GasWalletShort},
		"gas for the gas wallet":  {topUp: activities.TopUp{PaymentID: gas}, gas: activities.SignedPayment{Parked: "insufficient_gas"}, word: activities.GasWalletShort},
		"the top-up is refused":   {topUp: activities.TopUp{PaymentID: gas}, gas: activities.SignedPayment{Parked: "blocked"}, word: activities.GasFailed},
	} {
		t.Run(name, func(t *testing.T) {
			id := uuid.New()
			s := &payoutScript{
				signs:  map[uuid.UUID][]activities.SignedPayment{id: {needsGas, {Parked: c.word}}, gas: {c.gas}},
				topUps: []activities.TopUp{c.topUp},
			}
			if r := s.runPayout(t, id); r.Completed || r.Reason != "payout-"+c.word {
				t.Errorf("ended %+v", r)
			}
			last := s.inputs[len(s.inputs)-1]
			if last.PaymentID != id || last.ReportGas || last.GasReason != c.word {
				t.Errorf("signed %+v", s.inputs)
			}
		})
	}
}

// TestGasThatIsNotNeededAnyMore signs again when the top-up finds the payment signed or funded meanwhile.
func TestGasThatIsNotNeededAnyMore(t *testing.T) {
	id := uuid.New()
	s := &payoutScript{
		signs:    map[uuid.UUID][]activities.SignedPayment{id: {needsGas, signedOnce}},
		delivers: map[uuid.UUID][]activities.Delivery{id: {completed}},
		topUps:   []activities.TopUp{{}},
	}
	if r := s.runPayout(t, id); !r.Completed {
		t.Errorf("ended %+v", r)
	}
}
