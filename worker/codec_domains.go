package worker

import (
	"slices"
	"strings"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"kivuko/workflows"
)

// Domains are the circles of processes that trust each other with payloads: the flows with the API, and each kind of worker that has
// a way out. A key's name begins with its domain and a dot.
const (
	DomainFlows    = "flows"
	DomainMomo     = "momo"
	DomainChain    = "chain"
	DomainSigner   = "signer"
	DomainWebhooks = "webhooks"
)

// Domains lists them, that of the flows first.
func Domains() []string {
	return []string{DomainFlows, DomainMomo, DomainChain, DomainSigner, DomainWebhooks}
}

// DomainOf is the domain of a queue.
func DomainOf(queue string) string {
	name, _, _ := strings.Cut(queue, "-")
	if !slices.Contains(Domains(), name) {
		return DomainFlows
	}
	return name
}

// InDomain reports whether a key is one of a domain.
func (k Key) InDomain(domain string) bool { return strings.HasPrefix(k.ID, domain+".") }

// For returns a codec that encrypts with the first key of a domain and decrypts like c. Where no key is of that domain, as on a
// developer's machine, it is c.
func (c *Codec) For(domain string) *Codec {
	for _, id := range c.order {
		if (Key{ID: id}).InDomain(domain) {
			return &Codec{current: id, order: c.order, aeads: c.aeads}
		}
	}
	return c
}

// sealer encrypts what a flow hands to an activity with a key of the activity's queue. A worker that was taken over then reads what it
// was given, and neither what customers asked for nor what other workers are given.
type sealer struct {
	interceptor.WorkerInterceptorBase
	converters map[string]converter.DataConverter // by domain
}

func newSealer(codec *Codec) *sealer {
	s := &sealer{converters: map[string]converter.DataConverter{}}
	for _, d := range Domains() {
		s.converters[d] = DataConverter(codec.For(d))
	}
	return s
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (s *sealer) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	return &sealedFlow{WorkflowInboundInterceptorBase: interceptor.WorkflowInboundInterceptorBase{Next: next}, sealer: s}
}

type sealedFlow struct {
	interceptor.WorkflowInboundInterceptorBase
	sealer *sealer
}

// Init implements interceptor.WorkflowInboundInterceptor.
func (f *sealedFlow) Init(out interceptor.WorkflowOutboundInterceptor) error {
	return f.Next.Init(&sealedCalls{WorkflowOutboundInterceptorBase: interceptor.WorkflowOutboundInterceptorBase{Next: out}, sealer: f.sealer})
}

type sealedCalls struct {
	interceptor.WorkflowOutboundInterceptorBase
	sealer *sealer
}

// ExecuteActivity implements interceptor.WorkflowOutboundInterceptor.
func (c *sealedCalls) ExecuteActivity(ctx workflow.Context, activityType string, args ...any) workflow.Future {
	queue := workflow.GetActivityOptions(ctx).TaskQueue
	if queue == "" {
		queue = workflows.QueueFlows
	}
	return c.Next.ExecuteActivity(workflow.WithDataConverter(ctx, c.sealer.converters[DomainOf(queue)]), activityType, args...)
}
