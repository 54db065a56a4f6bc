package api

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"kivuko/exchange"
	"kivuko/workflows"
)

// signalled is a Temporal client that accepts signals, except to flows that have ended.
type signalled struct {
	client.Client
	over    map[string]error
	signals []string // flow and signal
	started []client.StartWorkflowOptions
	inputs  []any
}

func (s *signalled) SignalWorkflow(_ context.Context, flow, _, name string, _ any) error {
	s.signals = append(s.signals, flow+" "+name)
	return s.over[flow]
}

func (s *signalled) SignalWithStartWorkflow(_ context.Context, flow, name string, ref any, o client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	s.signals = append(s.signals, flow+" "+name)
	s.started, s.inputs = append(s.started, o), append(s.inputs, ref, args[0])
	return nil, nil
}

func TestCallbackWakesWhoWaitsForIt(t *testing.T) {
	over := serviceerror.NewNotFound("no such flow")
	const home = "on-ramp:1"
	for name, c := range map[string]struct {
		direction exchange.PaymentDirection
		status    exchange.AttemptStatus
		flow      error
		late      bool
		code      exchange.Code
	}{
		"the flow is at work":            {direction: exchange.Collection},
		"the flow is over":               {direction: exchange.Collection, flow: over, late: true},
		"the server is away":             {direction: exchange.Collection, flow: serviceerror.NewUnavailable("away"), code: exchange.CodeUnavailable},
		"a payout whose flow is at work": {direction: exchange.Payout},
		"a payout whose flow is over":    {direction: exchange.Payout, flow: over, late: true},
		"a payout that is on its way":    {direction: exchange.Payout, status: exchange.AttemptAccepted},
		"a payout that was refused":      {direction: exchange.Payout, status: exchange.AttemptFailed, late: true},
		"a payout that was made":         {direction: exchange.Payout, status: exchange.AttemptSucceeded, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			server := &signalled{over: map[string]error{home: c.flow}}
			a := exchange.PaymentAttempt{ID: uuid.New(), OrderID: uuid.New(), Object: exchange.RefundObject(uuid.New()), Direction: c.direction, Status: c.status, WorkflowID: home}
			notice := uuid.New()
			if err := NewFlows(server).Callback(t.Context(), a, notice); exchange.CodeOf(err) != c.code {
				t.Fatalf("answers %v, want %q", err, c.code)
			}
			if (len(server.started) == 1) != c.late {
				t.Fatalf("signals %v, started %v", server.signals, server.started)
			}
			if !c.late {
				return
			}
			if want := workflows.LatePaymentID(a.ID) + " " + workflows.SignalCallback; server.signals[1] != want {
				t.Errorf("signals %v, want %s", server.signals, want)
			}
			o := server.started[0]
			if o.TaskQueue != workflows.QueueFlows || o.WorkflowIDReusePolicy != enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE {
				t.Errorf("started with %+v", o)
			}
			if stage, ok := o.TypedSearchAttributes.GetKeyword(workflows.AttrStage); !ok || stage != workflows.StageWatch {
				t.Error("operators can't find the watch")
			}
			want := any(workflows.LatePaymentInput{AttemptID: a.ID, OrderID: a.OrderID, Object: a.Object})
			if c.direction == exchange.Payout {
				want = workflows.LatePayoutInput{AttemptID: a.ID, RefundID: a.Object.ID, OrderID: a.OrderID}
			}
			if server.inputs[1] != want {
				t.Errorf("started with %+v, want %+v", server.inputs[1], want)
			}
			if want := (workflows.CallbackRef{CallbackID: notice, AttemptID: a.ID}); server.inputs[0] != want {
				t.Errorf("signalled with %+v, want %+v", server.inputs[0], want)
			}
		})
	}
}

// updated is a Temporal client that keeps the outcome of each update under its id, as a server does.
type updated struct {
	client.Client
	outcomes map[string]error
	next     []error // of updates that run
	ids      []string
}

func (u *updated) UpdateWorkflow(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	if _, ran := u.outcomes[o.UpdateID]; !ran {
		u.ids = append(u.ids, o.UpdateID)
		u.outcomes[o.UpdateID], u.next = u.next[0], u.next[1:]
	}
	return outcome{err: u.outcomes[o.UpdateID]}, nil
}

type outcome struct {
	client.WorkflowUpdateHandle
	err error
}

func (o outcome) Get(context.Context, any) error { return o.err }

// A step that could not be carried out in its time leaves the request open: the same key tries again. A refusal is final.
func TestUpdatesThatDecidedNothingAreRepeated(t *testing.T) {
	away := temporal.NewNonRetryableApplicationError("The step can't be carried out now.", string(exchange.CodeUnavailable), nil)
	no := temporal.NewNonRetryableApplicationError("The transfer does not wait for a decision.", string(exchange.CodeStateConflict), nil)
	request, transfer := uuid.New(), uuid.New()
	server := &updated{outcomes: map[string]error{}, next: []error{away, away, nil}}
	for range 2 { // the second request meets what is kept of the first
		if err := NewFlows(server).CancelTransfer(t.Context(), transfer, request); err != nil {
			t.Fatal(err)
		}
	}
	if len(server.ids) != 3 || server.ids[0] != request.String() {
		t.Errorf("updates %v of %s", server.ids, request)
	}
	server = &updated{outcomes: map[string]error{}, next: []error{no, nil}}
	for range 2 {
		if err := NewFlows(server).CancelTransfer(t.Context(), transfer, request); exchange.CodeOf(err) != exchange.CodeStateConflict {
			t.Errorf("answers %v", err)
		}
	}
}

// scheduled is a Temporal client with schedules that were triggered.
type scheduled struct {
	client.Client
	answer    error
	triggered []string // id and overlap
}

func (s *scheduled) ScheduleClient() client.ScheduleClient { return schedules{called: s} }

type schedules struct {
	client.ScheduleClient
	called *scheduled
}

func (s schedules) GetHandle(_ context.Context, id string) client.ScheduleHandle {
	s.called.triggered = append(s.called.triggered, id)
	return schedule{called: s.called}
}

type schedule struct {
	client.ScheduleHandle
	called *scheduled
}

func (s schedule) Trigger(_ context.Context, o client.ScheduleTriggerOptions) error {
	s.called.triggered = append(s.called.triggered, o.Overlap.String())
	return s.called.answer
}

// Gas is asked for by the schedule of GasAhead, which keeps one run after the one under way, however many are asked for.
func TestGasIsAskedForOnce(t *testing.T) {
	for code, answer := range map[exchange.Code]error{"": nil, exchange.CodeUnavailable: serviceerror.NewUnavailable("away")} {
		server := &scheduled{answer: answer}
		if err := NewFlows(server).BringGas(t.Context()); exchange.CodeOf(err) != code {
			t.Errorf("answers %v, want %q", err, code)
		}
		if want := []string{workflows.ScheduleGasAhead, enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE.String()}; !slices.Equal(server.triggered, want) {
			t.Errorf("triggered %v, want %v", server.triggered, want)
		}
	}
}

// A swap's flow that two officers resolved is told to look again; one that has ended needs no telling, and a server that is away is
// reported.
func TestSwapsFlowLooksAgain(t *testing.T) {
	swap := uuid.New()
	for name, c := range map[string]struct {
		flow error
		code exchange.Code
	}{
		"the flow is at work": {},
		"the flow is over":    {flow: serviceerror.NewNotFound("no such flow")},
		"the server is away":  {flow: serviceerror.NewUnavailable("away"), code: exchange.CodeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			server := &signalled{over: map[string]error{workflows.SwapID(swap): c.flow}}
			if err := NewFlows(server).LookAtSwap(t.Context(), swap); exchange.CodeOf(err) != c.code {
				t.Errorf("answers %v, want %q", err, c.code)
			}
			if want := workflows.SwapID(swap) + " " + workflows.SignalResume; len(server.signals) != 1 || server.signals[0] != want {
				t.Errorf("sent %v, want %s", server.signals, want)
			}
		})
	}
}

// starting is a Temporal client that starts flows, or fails to.
type starting struct {
	client.Client
	fails   error
	started []client.StartWorkflowOptions
	types   []any
}

func (s *starting) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, flow any, _ ...any) (client.WorkflowRun, error) {
	s.started, s.types = append(s.started, o), append(s.types, flow)
	return nil, s.fails
}

// The flow of a stored row is started with what it was before when it is started again. One that runs is no error, and another failure is.
func TestStoredRowsGetTheirFlows(t *testing.T) {
	ctx, id := t.Context(), uuid.New()
	for _, c := range []struct {
		id, flow, summary string
		start             func(Flows) error
	}{
		{workflows.FeeSweepID(id), workflows.TypeFeeSweep, workflows.FeeSweepSummary, func(f Flows) error { return f.SweepFee(ctx, id, exchange.Tron) }},
		{workflows.OpenMultisigID(id), workflows.TypeOpenMultisig, workflows.OpenMultisigSummary, func(f Flows) error { return f.OpenMultisig(ctx, id, exchange.Solana) }},
		{workflows.BankRefundID(id), workflows.TypeBankRefund, workflows.BankRefundSummary, func(f Flows) error { return f.RefundByBank(ctx, id) }},
	} {
		server := &starting{}
		if err := c.start(NewFlows(server)); err != nil {
			t.Fatalf("%s: %v", c.flow, err)
		}
		o := server.started[0]
		if o.ID != c.id || server.types[0] != c.flow || o.StaticSummary != c.summary || o.TaskQueue != workflows.QueueFlows || !o.WorkflowExecutionErrorWhenAlreadyStarted ||
			o.WorkflowIDReusePolicy != enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE || o.TypedSearchAttributes.Size() == 0 {
			t.Errorf("the flow %s is started as %+v", server.types[0], o)
		}
		server.fails = serviceerror.NewWorkflowExecutionAlreadyStarted("it runs", "", "")
		if err := c.start(NewFlows(server)); err != nil {
			t.Errorf("%s that runs: %v", c.flow, err)
		}
		server.fails = serviceerror.NewUnavailable("away")
		if err := c.start(NewFlows(server)); exchange.CodeOf(err) != exchange.CodeUnavailable {
			t.Errorf("%s while the server is away: %v", c.flow, err)
		}
	}
}
