package catalogue

import (
	"slices"
	"sync"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/workflows"
)

// signs records the search attributes of flows: their park reasons, and whether they are still parked.
type signs struct {
	interceptor.WorkerInterceptorBase
	mu      sync.Mutex
	reasons map[string][]workflows.Reason // by flow, in their order
	calling map[string]bool
}

func newSigns() *signs {
	return &signs{reasons: map[string][]workflows.Reason{}, calling: map[string]bool{}}
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (s *signs) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	in := &showing{signs: s}
	in.Next = next
	return in
}

type showing struct {
	interceptor.WorkflowInboundInterceptorBase
	signs *signs
}

// Init implements interceptor.WorkflowInboundInterceptor.
func (i *showing) Init(out interceptor.WorkflowOutboundInterceptor) error {
	o := &shown{signs: i.signs}
	o.Next = out
	return i.Next.Init(o)
}

// ExecuteWorkflow implements interceptor.WorkflowInboundInterceptor. A flow that has ended is not parked.
func (i *showing) ExecuteWorkflow(ctx workflow.Context, in *interceptor.ExecuteWorkflowInput) (any, error) {
	out, err := i.Next.ExecuteWorkflow(ctx, in)
	i.signs.mu.Lock()
	defer i.signs.mu.Unlock()
	i.signs.calling[workflow.GetInfo(ctx).WorkflowExecution.ID] = false
	return out, err
}

type shown struct {
	interceptor.WorkflowOutboundInterceptorBase
	signs *signs
}

// UpsertTypedSearchAttributes implements interceptor.WorkflowOutboundInterceptor.
func (o *shown) UpsertTypedSearchAttributes(ctx workflow.Context, updates ...temporal.SearchAttributeUpdate) error {
	o.signs.note(workflow.GetInfo(ctx).WorkflowExecution.ID, temporal.NewSearchAttributes(updates...))
	return o.Next.UpsertTypedSearchAttributes(ctx, updates...)
}

func (s *signs) note(flow string, a temporal.SearchAttributes) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := a.GetKeyword(workflows.AttrReason); ok && r != "none" {
		s.reasons[flow] = append(s.reasons[flow], workflows.Reason(r))
	}
	if on, ok := a.GetBool(workflows.AttrNeedsAttention); ok {
		s.calling[flow] = on
	}
}

// parkedStill checks the reason of a flow that must stay parked.
func (w *harness) parkedStill(flow string, why workflows.Reason) {
	w.t.Helper()
	w.signs.mu.Lock()
	defer w.signs.mu.Unlock()
	all := w.signs.reasons[flow]
	if len(all) == 0 || all[len(all)-1] != why || !w.signs.calling[flow] {
		w.t.Errorf("%s was parked with %v and is still parked: %v; want %s", flow, all, w.signs.calling[flow], why)
	}
	w.signs.calling[flow] = false
}

// parked checks a flow's park reasons, in order, and that it is not parked any more.
func (w *harness) parked(flow string, want ...workflows.Reason) {
	w.t.Helper()
	w.signs.mu.Lock()
	defer w.signs.mu.Unlock()
	if !slices.Equal(w.signs.reasons[flow], want) {
		w.t.Errorf("%s was parked with %v, want %v", flow, w.signs.reasons[flow], want)
	}
	if w.signs.calling[flow] {
		w.t.Errorf("%s is still parked", flow)
	}
}
