package workflows_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// signs records what the flows show to operators: the reasons they were parked with, by flow, and who needs attention
// now.
type signs struct {
	interceptor.WorkerInterceptorBase
	// The object whose flows show its own rows, or what they show of it; with neither they show aboutParked.
	order     *exchange.OrderRequest
	shillings string // of the order's mobile money
	transfer  *exchange.TransferRequest
	about     []string

	mu      sync.Mutex
	reasons map[string][]string
	alarmed map[string]bool
	shown   map[string]int                 // upserts by flow
	steps   map[string]map[string]int      // a flow's requests to the server, by flow and kind
	parks   []func(flow, reason string)    // called with every reason that a flow is parked with
	payouts []activities.SubmitPayoutInput // of flows that owe them, in order
	carried []workflows.CryptoPayoutInput  // of children that were started for chain payments
	started []string                       // ids of children that were started
	passed  []string                       // signals to other flows
}

func newSigns() *signs {
	return &signs{reasons: map[string][]string{}, alarmed: map[string]bool{}, shown: map[string]int{}, steps: map[string]map[string]int{}}
}

// step counts a flow's request to the server.
func (s *signs) step(ctx workflow.Context, kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	if s.steps[id] == nil {
		s.steps[id] = map[string]int{}
	}
	s.steps[id][kind]++
}

func (s *signs) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	i := &signsInbound{signs: s}
	i.Next = next
	return i
}

type signsInbound struct {
	interceptor.WorkflowInboundInterceptorBase
	signs *signs
}

func (i *signsInbound) Init(out interceptor.WorkflowOutboundInterceptor) error {
	o := &signsOutbound{signs: i.signs}
	o.Next = out
	return i.Next.Init(o)
}

// ExecuteWorkflow fails a flow that ends while it is parked: no operator could help it any more.
func (i *signsInbound) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	out, err := i.Next.ExecuteWorkflow(ctx, in)
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	i.signs.mu.Lock()
	defer i.signs.mu.Unlock()
	if i.signs.alarmed[id] && !workflow.IsContinueAsNewError(err) {
		return nil, errors.Join(fmt.Errorf("%s has ended and is still parked", id), err)
	}
	return out, err
}

type signsOutbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	signs *signs
}

func (o *signsOutbound) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	o.signs.step(ctx, "activity")
	for _, arg := range args {
		if in, ok := arg.(activities.SubmitPayoutInput); ok && workflow.GetInfo(ctx).WorkflowType.Name != workflows.TypeMomoPayout {
			o.signs.mu.Lock()
			o.signs.payouts = append(o.signs.payouts, in)
			o.signs.mu.Unlock()
		}
	}
	return o.Next.ExecuteActivity(ctx, name, args...)
}

func (o *signsOutbound) ExecuteLocalActivity(ctx workflow.Context, activity string, args ...any) workflow.Future {
	o.signs.step(ctx, "local activity")
	return o.Next.ExecuteLocalActivity(ctx, activity, args...)
}

func (o *signsOutbound) ExecuteChildWorkflow(ctx workflow.Context, flow string, args ...any) workflow.ChildWorkflowFuture {
	o.signs.step(ctx, "child")
	o.signs.mu.Lock()
	o.signs.started = append(o.signs.started, workflow.GetChildWorkflowOptions(ctx).WorkflowID)
	for _, arg := range args {
		if in, ok := arg.(workflows.CryptoPayoutInput); ok {
			o.signs.carried = append(o.signs.carried, in)
		}
	}
	o.signs.mu.Unlock()
	return o.Next.ExecuteChildWorkflow(ctx, flow, args...)
}

func (o *signsOutbound) NewTimerWithOptions(ctx workflow.Context, d time.Duration, options workflow.TimerOptions) workflow.Future {
	o.signs.step(ctx, "timer")
	return o.Next.NewTimerWithOptions(ctx, d, options)
}

func (o *signsOutbound) SignalExternalWorkflow(ctx workflow.Context, flow, run, signal string, arg any) workflow.Future {
	o.signs.step(ctx, "signal")
	o.signs.mu.Lock()
	o.signs.passed = append(o.signs.passed, signal)
	o.signs.mu.Unlock()
	return o.Next.SignalExternalWorkflow(ctx, flow, run, signal, arg)
}

func (o *signsOutbound) UpsertTypedSearchAttributes(ctx workflow.Context, updates ...temporal.SearchAttributeUpdate) error {
	shown := temporal.NewSearchAttributes(updates...)
	o.signs.mu.Lock()
	id := workflow.GetInfo(ctx).WorkflowExecution.ID
	o.signs.shown[id]++
	parked := ""
	if r, ok := shown.GetKeyword(workflows.AttrReason); ok && r != "none" {
		o.signs.reasons[id] = append(o.signs.reasons[id], r)
		parked = r
	}
	if on, ok := shown.GetBool(workflows.AttrNeedsAttention); ok {
		o.signs.alarmed[id] = on
	}
	o.signs.mu.Unlock()
	if parked != "" {
		for _, tell := range o.signs.parks {
			tell(id, parked)
		}
	}
	return o.Next.UpsertTypedSearchAttributes(ctx, updates...)
}

// were checks the reasons with which a flow was parked, in order, and that it is no longer parked.
func (s *signs) were(t *testing.T, flow string, want ...workflows.Reason) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compare(t, flow, s.reasons[flow], want)
}

// changed is were for a flow that checks by itself and may be parked again with the same reason.
func (s *signs) changed(t *testing.T, flow string, want ...workflows.Reason) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.compare(t, flow, slices.Compact(slices.Clone(s.reasons[flow])), want)
}

func (s *signs) compare(t *testing.T, flow string, got []string, want []workflows.Reason) {
	t.Helper()
	var names []string
	for _, r := range want {
		names = append(names, string(r))
	}
	if !slices.Equal(got, names) {
		t.Errorf("%s was parked with %v, want %v", flow, got, names)
	}
	if s.alarmed[flow] {
		t.Errorf("%s is still parked", flow)
	}
}
