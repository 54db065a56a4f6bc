package workflows_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/workflows"
)

// shore is a network without movements and the rows of its watch, for what the flow itself does.
type shore struct {
	mu     sync.Mutex
	cursor exchange.DepositCursor
	due    []exchange.DepositWakeup
	woken  []uuid.UUID
	set    int             // movements in quarantine
	fault  func(int) error // of the nth look
	looks  int
}

func (s *shore) Network() exchange.Network { return exchange.Tron }

func (s *shore) Head(context.Context) (chain.Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	if s.fault != nil {
		if err := s.fault(s.looks); err != nil {
			return chain.Head{}, err
		}
	}
	b := chain.Block{Number: s.cursor.Final.Number, ID: s.cursor.Final.ID}
	return chain.Head{Latest: b, Final: b}, nil
}

func (s *shore) Transfers(context.Context, uint64) (chain.BlockTransfers, error) {
	return chain.BlockTransfers{}, errors.New("there is nothing to read")
}

func (s *shore) WatchAlive(context.Context, exchange.Network) error { return nil }

func (s *shore) RecordLook(context.Context, exchange.WatchLook) error { return nil }

func (s *shore) DepositCursor(context.Context, exchange.Network) (exchange.DepositCursor, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cursor, true, nil
}

func (s *shore) StartDeposits(context.Context, exchange.Network, exchange.ChainBlock) (exchange.DepositCursor, error) {
	return s.cursor, nil
}

func (s *shore) RecordFinalBlock(context.Context, exchange.BlockScan) (exchange.DepositCursor, error) {
	return s.cursor, nil
}

func (s *shore) RecordSeenBlock(context.Context, exchange.BlockScan) (exchange.DepositCursor, error) {
	return s.cursor, nil
}

func (s *shore) DropSeenBlock(context.Context, exchange.Network, exchange.ChainBlock) error {
	return nil
}

func (s *shore) DueWakeups(context.Context, exchange.Network) ([]exchange.DepositWakeup, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.due, nil
}

func (s *shore) OpenQuarantine(context.Context, exchange.Network) ([]exchange.QuarantinedMovement, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return make([]exchange.QuarantinedMovement, s.set), nil
}

func (s *shore) AwaitDeposits(context.Context, exchange.Network, string, string, time.Time) (exchange.DepositWait, error) {
	return exchange.DepositWait{}, nil
}

func (s *shore) EndDepositWait(context.Context, exchange.Network, string, string) error { return nil }

func (s *shore) ChainDeposit(context.Context, uuid.UUID) (exchange.ChainDeposit, error) {
	return exchange.ChainDeposit{}, nil
}

func (s *shore) RecordWoken(_ context.Context, ids []uuid.UUID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.woken, s.due = append(s.woken, ids...), nil
	return nil
}

// newShore is an environment in which the watch runs. Every call looks once and takes no time.
func newShore() (*testsuite.TestWorkflowEnvironment, *shore, *signs) {
	shown := newSigns()
	env := newEnvironment(shown)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.DepositWatchID(exchange.Tron), TaskQueue: workflows.QueueFlows})
	s := &shore{cursor: exchange.DepositCursor{Network: exchange.Tron, Final: exchange.ChainBlock{Number: 7, ID: "seven"}}}
	s.cursor.Tip = s.cursor.Final
	env.RegisterWorkflowWithOptions(workflows.DepositWatch, workflow.RegisterOptions{Name: workflows.TypeDepositWatch})
	env.RegisterActivity(&activities.Deposits{Store: s, Client: s})
	env.RegisterActivity(&activities.DepositWaits{Store: s})
	env.RegisterActivityWithOptions(listed, activity.RegisterOptions{Name: "ListParked"})
	return env, s, shown
}

var watchTron = workflows.DepositWatchInput{Network: exchange.Tron, Status: workflows.WatchFollowing}

// The watch knows its network by its id, continues as a new run, on the newest build, and passes on what it has shown.
func TestDepositWatchGoesOn(t *testing.T) {
	t.Parallel()
	env, s, _ := newShore()
	env.ExecuteWorkflow(workflows.DepositWatch, workflows.DepositWatchInput{})
	next, ok := errors.AsType[*workflow.ContinueAsNewError](env.GetWorkflowError())
	if !ok || next.WorkflowType.Name != workflows.TypeDepositWatch || next.InitialVersioningBehavior != workflow.ContinueAsNewVersioningBehaviorAutoUpgrade {
		t.Fatalf("it ended with %v", env.GetWorkflowError())
	}
	var in workflows.DepositWatchInput
	if err := converter.GetDefaultDataConverter().FromPayloads(next.Input, &in); err != nil || in != watchTron {
		t.Errorf("it goes on with %+v, %v", in, err)
	}
	if s.looks < 100 {
		t.Errorf("it looked %d times", s.looks)
	}
}

// Cancelling the execution has no effect: deposits must still be recorded.
func TestDepositWatchIsNotCancelled(t *testing.T) {
	t.Parallel()
	env, _, _ := newShore()
	env.RegisterDelayedCallback(env.CancelWorkflow, 0)
	env.ExecuteWorkflow(workflows.DepositWatch, watchTron)
	if !workflow.IsContinueAsNewError(env.GetWorkflowError()) {
		t.Errorf("it ended with %v", env.GetWorkflowError())
	}
}

// A chain that can't be read parks the watch, which goes on by itself later.
func TestDepositWatchParksAndGoesOn(t *testing.T) {
	t.Parallel()
	env, s, shown := newShore()
	s.fault = func(n int) error {
		if n > 5 && n < 20 {
			return chain.Errorf(chain.ReasonProtocol, "final block 8 follows from nothing")
		}
		return nil
	}
	env.ExecuteWorkflow(workflows.DepositWatch, watchTron)
	if !workflow.IsContinueAsNewError(env.GetWorkflowError()) {
		t.Fatalf("it ended with %v", env.GetWorkflowError())
	}
	shown.were(t, workflows.DepositWatchID(exchange.Tron), workflows.ReasonDepositsStalled)
}

// A quarantined movement parks the watch until it is settled.
func TestDepositWatchShowsQuarantine(t *testing.T) {
	t.Parallel()
	env, s, shown := newShore()
	s.fault = func(n int) error {
		s.set = 0
		if n > 5 && n < 20 {
			s.set = 2
		}
		return nil
	}
	env.ExecuteWorkflow(workflows.DepositWatch, watchTron)
	shown.were(t, workflows.DepositWatchID(exchange.Tron), workflows.ReasonDepositQuarantine)
}

// A waiting flow receives the row's id and nothing else; one that waits for no deposit looks again. A flow that has ended causes no error.
func TestDepositWatchWakes(t *testing.T) {
	t.Parallel()
	env, s, _ := newShore()
	deposit := uuid.New()
	s.due = []exchange.DepositWakeup{{ID: id(1), WorkflowID: "waiter", DepositID: deposit}, {ID: id(2), WorkflowID: "gone", DepositID: deposit}, {ID: id(3), WorkflowID: "proposal"}}
	got := map[string]workflows.DepositRef{}
	for flow, answer := range map[string]error{"waiter": nil, "gone": errors.New("there is no such flow")} {
		ref := workflows.DepositRef{DepositID: deposit}
		env.OnSignalExternalWorkflow("default-test-namespace", flow, "", workflows.SignalDeposit, ref).
			Return(func(_, to, _, _ string, arg any) error {
				sent, _ := arg.(workflows.DepositRef)
				s.mu.Lock()
				got[to] = sent
				s.mu.Unlock()
				return answer
			})
	}
	looks := 0
	env.OnSignalExternalWorkflow("default-test-namespace", "proposal", "", workflows.SignalResume, nil).
		Return(func(_, _, _, _ string, _ any) error {
			looks++
			return nil
		})
	env.ExecuteWorkflow(workflows.DepositWatch, watchTron)
	if !workflow.IsContinueAsNewError(env.GetWorkflowError()) {
		t.Fatalf("it ended with %v", env.GetWorkflowError())
	}
	if len(got) != 2 || got["waiter"].DepositID != deposit {
		t.Errorf("the flows got %+v", got)
	}
	if looks != 1 {
		t.Errorf("what waits for no deposit was notified %d times", looks)
	}
	if len(s.woken) != 3 {
		t.Errorf("%v were recorded as notified", s.woken)
	}
}
