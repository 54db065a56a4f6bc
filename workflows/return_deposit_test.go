package workflows_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

var (
	strayException = uuid.MustParse("0192f0a0-0000-7000-8000-00000000fa01")
	strayRefund    = uuid.MustParse("0192f0a0-0000-7000-8000-00000000fa02")
	strayKept      = uuid.MustParse("0192f0a0-0000-7000-8000-00000000fa03")
)

// stray is unmatched money on a chain, by the rules of the real store in memory, and a network that executes approved
// payments.
type stray struct {
	mu    sync.Mutex
	env   *testsuite.TestWorkflowEnvironment
	signs *signs

	refusal  error // of the request
	status   exchange.RefundStatus
	address  string
	coolOff  time.Time
	needed   int
	agreed   int
	claimed  bool
	payments int
	payment  uuid.UUID // that is approved
	parked   string    // why no transaction of the payment can be made
	paid     []string  // the addresses that the network paid
	noted    []exchange.Code
	commands map[uuid.UUID]activities.Proof
	requests map[uuid.UUID]string // addresses by the id of a command
	lost     map[string]int       // calls whose response gets lost, once for each count
	nothing  bool                 // nothing is kept
	kept     bool
	answers  map[string]error
}

func newStray() *stray {
	shown := newSigns()
	s := &stray{
		env: newEnvironment(shown), signs: shown, status: exchange.RefundPending, address: "TGiven", needed: 1,
		commands: map[uuid.UUID]activities.Proof{}, requests: map[uuid.UUID]string{}, lost: map[string]int{}, answers: map[string]error{},
	}
	s.env.RegisterWorkflow(workflows.ReturnDeposit)
	s.env.RegisterWorkflowWithOptions(s.cryptoPayout, workflow.RegisterOptions{Name: workflows.TypeCryptoPayout})
	s.env.RegisterActivity(&activities.ChainRefunds{Store: s})
	s.env.RegisterActivity(&activities.Sweeps{Store: s})
	for name, do := range map[string]any{"ProveCommand": s.prove, "RetryPayout": s.retry, "ListParked": listed} {
		s.env.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: name})
	}
	return s
}

// did runs one transaction, whose response may get lost.
func did[T any](s *stray, call string, do func() (T, error)) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out, err := do()
	if err == nil && s.lost[call] > 0 {
		s.lost[call]--
		return out, exchange.Errorf(exchange.CodeUnavailable, "the answer got lost")
	}
	return out, err
}

func (s *stray) standing() exchange.RefundStanding {
	out := exchange.RefundStanding{
		Refund: exchange.Refund{ID: strayRefund, Rail: exchange.RefundOnChain, Network: exchange.Tron, Status: s.status, Address: s.address},
		Needed: s.needed, Agreed: s.agreed, Payment: exchange.ChainPayment{ID: s.payment},
	}
	switch {
	case s.status == exchange.RefundCompleted, s.status == exchange.RefundProcessing:
	case s.claimed:
		out.Wait = exchange.RefundWaitsClaim
	case s.address == "":
		out.Wait = exchange.RefundWaitsAddress
	case s.env.Now().Before(s.coolOff):
		out.Wait, out.Until = exchange.RefundWaitsCoolOff, s.coolOff
	case s.agreed < s.needed:
		out.Wait = exchange.RefundWaitsOfficer
	}
	return out
}

func (s *stray) OpenChainRefund(_ context.Context, r exchange.ChainRefundRequest, _ exchange.Principal) (exchange.Order, exchange.Refund, error) {
	refund, err := did(s, "OpenChainRefund", func() (exchange.Refund, error) { return s.standing().Refund, s.refusal })
	if r.ExceptionID != strayException {
		panic("another exception")
	}
	return exchange.Order{}, refund, err
}

func (s *stray) ApproveRefundPayment(context.Context, uuid.UUID) (exchange.RefundStanding, error) {
	return did(s, "ApproveRefundPayment", func() (exchange.RefundStanding, error) {
		out := s.standing()
		if out.Wait == exchange.RefundReady && (s.status == exchange.RefundPending || s.status == exchange.RefundNeedsReview) {
			s.payments++
			s.payment, s.status = uuid.NewSHA1(strayRefund, []byte{byte(s.payments)}), exchange.RefundProcessing
		}
		return s.standing(), nil
	})
}

func (s *stray) AddressRefund(_ context.Context, _, request uuid.UUID, _ exchange.Principal) (exchange.RefundStanding, error) {
	return did(s, "AddressRefund", func() (exchange.RefundStanding, error) {
		address, known := s.requests[request]
		if !known {
			return exchange.RefundStanding{}, notFound("request")
		}
		if s.address != address {
			s.address, s.agreed, s.needed = address, 0, 1
			if s.status == exchange.RefundProcessing {
				s.status, s.payment, s.parked = exchange.RefundNeedsReview, uuid.Nil, ""
			}
		}
		return s.standing(), nil
	})
}

func (s *stray) DismissClaim(context.Context, uuid.UUID, exchange.Principal) (exchange.RefundStanding, error) {
	return did(s, "DismissClaim", func() (exchange.RefundStanding, error) {
		s.claimed = false
		return s.standing(), nil
	})
}

func (s *stray) DecideRefund(_ context.Context, _ uuid.UUID, token string, action exchange.ApprovalAction) (exchange.RefundStanding, error) {
	return did(s, "DecideRefund", func() (exchange.RefundStanding, error) {
		if token != "good" || action != exchange.Approve {
			return exchange.RefundStanding{}, notFound("token")
		}
		s.agreed = 1
		return s.standing(), nil
	})
}

func (s *stray) RecordRefusedDecision(
	_ context.Context, _ exchange.ApprovalObject, _ uuid.UUID, _ exchange.ApprovalAction, _ exchange.ApprovalChannel, code exchange.Code,
) error {
	_, err := did(s, "RecordRefusedDecision", func() (struct{}, error) {
		s.noted = append(s.noted, code)
		return struct{}{}, nil
	})
	return err
}

func (s *stray) ApproveSweep(context.Context, uuid.UUID) (exchange.ChainPayment, error) {
	panic("no order is swept here")
}

func (s *stray) ChainPaymentOf(context.Context, exchange.ChainPurpose, uuid.UUID) (exchange.ChainPayment, error) {
	panic("no order is funded here")
}

func (s *stray) CancelFunding(context.Context, uuid.UUID, exchange.Principal) error {
	panic("no order is funded here")
}

func (s *stray) ApproveKeptSweep(context.Context, uuid.UUID) (exchange.ChainPayment, error) {
	return did(s, "ApproveKeptSweep", func() (exchange.ChainPayment, error) {
		if s.refusal != nil || s.nothing {
			return exchange.ChainPayment{}, s.refusal
		}
		s.address = "TTreasury"
		return exchange.ChainPayment{ID: strayKept, Network: exchange.Tron}, nil
	})
}

// cryptoPayout executes the approved payment, unless it is parked.
func (s *stray) cryptoPayout(ctx workflow.Context, in workflows.CryptoPayoutInput) (workflows.CryptoPayoutResult, error) {
	if err := workflow.Sleep(ctx, time.Minute); err != nil {
		return workflows.CryptoPayoutResult{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parked != "" {
		return workflows.CryptoPayoutResult{Reason: s.parked}, nil
	}
	s.paid = append(s.paid, s.address)
	if in.PaymentID == strayKept {
		s.kept = true
	} else {
		s.status = exchange.RefundCompleted
	}
	return workflows.CryptoPayoutResult{Completed: true, TxID: "ab"}, nil
}

func (s *stray) prove(_ context.Context, in activities.ProveInput) (activities.Proof, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commands[in.CommandID], nil
}

func (s *stray) retry(context.Context, activities.RetryPayoutInput) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parked = ""
	return nil
}

// at schedules an action at a time after the flow's start.
func (s *stray) at(d time.Duration, do func()) { s.env.RegisterDelayedCallback(do, d) }

// order gives an operator's command; an address names where the refund goes.
func (s *stray) order(verb, address string) {
	id := uuid.New()
	s.mu.Lock()
	s.commands[id] = activities.Proof{CommandID: id, Verb: verb, Object: activities.ObjectRef{Type: activities.ObjectException, ID: strayException}}
	if address != "" {
		s.requests[id] = address
	}
	s.mu.Unlock()
	s.env.UpdateWorkflow(workflows.UpdateCommand, id.String(), s.answer(verb), workflows.CommandRef{CommandID: id})
}

func (s *stray) approve(name, token string) {
	s.env.UpdateWorkflow(workflows.UpdateApprove, name, s.answer(name), workflows.ApprovalRef{Token: token})
}

func (s *stray) answer(name string) *testsuite.TestUpdateCallback {
	keep := func(err error) { s.answers[name] = err }
	return &testsuite.TestUpdateCallback{OnAccept: func() {}, OnReject: keep, OnComplete: func(_ any, err error) { keep(err) }}
}

func (s *stray) play(t *testing.T, keep bool) workflows.ReturnDepositResult {
	t.Helper()
	s.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.ReturnDepositID(strayException), TaskQueue: workflows.QueueFlows})
	s.at(0, func() { s.env.UpdateWorkflow(workflows.UpdateOpen, "open", s.answer("open")) })
	s.env.ExecuteWorkflow(workflows.ReturnDeposit, workflows.ReturnDepositInput{ExceptionID: strayException, Keep: keep})
	if !s.env.IsWorkflowCompleted() || s.env.GetWorkflowError() != nil {
		t.Fatalf("the flow ended: %t, %v", s.env.IsWorkflowCompleted(), s.env.GetWorkflowError())
	}
	var r workflows.ReturnDepositResult
	if err := s.env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// A scenario of unmatched crypto: what users do, where it is paid, and the reasons with which the flow parked.
func TestReturnDeposit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		people  func(s *stray)
		paid    []string
		reasons []workflows.Reason
		code    exchange.Code // with which the update "open" was refused
	}{
		{
			name: "another officer agrees", paid: []string{"TGiven"}, reasons: []workflows.Reason{workflows.ReasonRefundSecond},
			people: func(s *stray) {
				s.at(time.Hour, func() { s.approve("wrong", "bad") })
				s.at(2*time.Hour, func() { s.approve("right", "good") })
			},
		},
		{
			name: "the decision comes by a signal", paid: []string{"TGiven"}, reasons: []workflows.Reason{workflows.ReasonRefundSecond},
			people: func(s *stray) {
				s.at(time.Hour, func() { s.env.SignalWorkflow(workflows.SignalApprove, map[string]any{"token": "good"}) })
			},
		},
		{
			name: "no address was given", paid: []string{"TSaid"}, reasons: []workflows.Reason{workflows.ReasonRefundAddress, workflows.ReasonRefundSecond},
			people: func(s *stray) {
				s.address = ""
				s.at(time.Hour, func() { s.order(activities.VerbRetry, "") })
				s.at(2*time.Hour, func() { s.order(activities.VerbRefund, "") }) // names none
				s.at(3*time.Hour, func() { s.order(activities.VerbRefund, "TSaid") })
				s.at(4*time.Hour, func() { s.approve("right", "good") })
			},
		},
		{
			name: "the customer says it by itself, and the flow finds out", paid: []string{"TOwn"}, reasons: []workflows.Reason{workflows.ReasonRefundAddress},
			people: func(s *stray) {
				s.address, s.needed = "", 0
				s.at(time.Hour, func() {
					s.mu.Lock()
					defer s.mu.Unlock()
					s.address = "TOwn"
				})
			},
		},
		{
			name: "the last payout has to cool off", paid: []string{"TGiven"},
			people: func(s *stray) { s.needed, s.coolOff = 0, s.env.Now().Add(exchange.RefundCoolOff) },
		},
		{
			name: "the address can't be paid", paid: []string{"TOther"},
			reasons: []workflows.Reason{workflows.ReasonPayoutDenied, workflows.ReasonRefundSecond},
			people: func(s *stray) {
				s.needed, s.parked = 0, string(workflows.ReasonPayoutDenied)
				s.at(time.Hour, func() { s.order(activities.VerbRefund, "TOther") })
				s.at(2*time.Hour, func() { s.approve("right", "good") })
			},
		},
		{
			name: "the payment is tried again", paid: []string{"TGiven"}, reasons: []workflows.Reason{workflows.ReasonPayoutGasShort},
			people: func(s *stray) {
				s.needed, s.parked = 0, string(workflows.ReasonPayoutGasShort)
				s.at(48*time.Hour, func() { s.order(activities.VerbRetry, "") })
			},
		},
		{
			name: "one source claimed that it was paid, without proof", paid: []string{"TGiven"},
			reasons: []workflows.Reason{workflows.ReasonRefundClaimed, workflows.ReasonRefundSecond},
			people: func(s *stray) {
				s.claimed = true
				s.at(time.Hour, func() { s.order(activities.VerbRetry, "") })
				s.at(2*time.Hour, func() { s.approve("right", "good") })
			},
		},
		{
			name: "a payout proves true while the payment waits for its signature", paid: []string{"TGiven"},
			reasons: []workflows.Reason{workflows.ReasonPayoutSigning, workflows.ReasonRefundClaimed},
			people: func(s *stray) {
				s.needed, s.parked = 0, string(workflows.ReasonPayoutSigning)
				s.at(time.Hour, func() {
					s.mu.Lock()
					defer s.mu.Unlock()
					s.status, s.claimed, s.payment, s.parked = exchange.RefundNeedsReview, true, uuid.Nil, ""
				})
				s.at(48*time.Hour, func() { s.order(activities.VerbRetry, "") })
			},
		},
		{
			name: "answers get lost", paid: []string{"TGiven"},
			people: func(s *stray) {
				s.needed = 0
				s.lost = map[string]int{"OpenChainRefund": 1, "ApproveRefundPayment": 2}
			},
		},
		{
			name: "it is refused", code: exchange.CodeStateConflict,
			people: func(s *stray) { s.refusal = conflict("the exception is settled") },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStray()
			c.people(s)
			out := s.play(t, false)
			if !slices.Equal(s.paid, c.paid) {
				t.Errorf("the network paid %v, want %v", s.paid, c.paid)
			}
			want := workflows.OutcomeReturned
			if c.code != "" {
				want = workflows.OutcomeRefused
			}
			if out.Outcome != want {
				t.Errorf("it ended as %q, want %q", out.Outcome, want)
			}
			if got := exchange.CodeOf(workflows.AsExchangeError(s.answers["open"])); got != c.code {
				t.Errorf("the response to open is %q, want %q", got, c.code)
			}
			s.signs.were(t, workflows.ReturnDepositID(strayException), c.reasons...)
			if s.signs.alarmed[workflows.ReturnDepositID(strayException)] {
				t.Error("it still needs attention")
			}
			if wrong := s.answers["wrong"]; wrong != nil && (len(s.noted) != 1 || s.noted[0] != exchange.CodeNotFound) {
				t.Errorf("a decision without proof was noted as %v", s.noted)
			}
		})
	}
}

// What the house keeps goes to its treasury.
func TestKeepDeposit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		people  func(s *stray)
		outcome string
		kept    bool
	}{
		{name: "smooth", people: func(*stray) {}, outcome: workflows.OutcomeKept, kept: true},
		{name: "the answer gets lost", people: func(s *stray) { s.lost["ApproveKeptSweep"] = 1 }, outcome: workflows.OutcomeKept, kept: true},
		{name: "nothing lies there", people: func(s *stray) { s.nothing = true }, outcome: workflows.OutcomeNothing},
		{name: "there is no treasury", people: func(s *stray) { s.refusal = conflict("none") }, outcome: workflows.OutcomeRefused},
		{
			name: "no gas, a retry", outcome: workflows.OutcomeKept, kept: true,
			people: func(s *stray) {
				s.parked = string(workflows.ReasonPayoutGasShort)
				s.at(time.Hour, func() { s.order(activities.VerbRetry, "") })
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStray()
			c.people(s)
			if out := s.play(t, true); out.Outcome != c.outcome || s.kept != c.kept {
				t.Errorf("it ended as %q and is kept: %t", out.Outcome, s.kept)
			}
		})
	}
}
