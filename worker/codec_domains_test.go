package worker

import (
	"context"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"kivuko/workflows"
)

// All processes shared one ring: the worker that calls the mobile money operator could read what signers and customers were given. Now
// it can read only what is sealed for its own domain.
func TestAWorkerReadsOnlyWhatIsSealedForIt(t *testing.T) {
	t.Parallel()
	flows := DataConverter(codec(t, key("flows.1", 1), key("momo.2", 4), key("momo.1", 2), key("signer.1", 3)))
	own := DataConverter(codec(t, key("momo.2", 4)))
	for queue, reads := range map[string]bool{workflows.QueueMomo: true, "signer-tron": false, workflows.QueueFlows: false, workflows.QueueWebhooks: false} {
		step := converter.ActivitySerializationContext{WorkflowID: "order:1", ActivityType: "SendPrompt", TaskQueue: queue}
		sealed, err := at(flows, step).ToPayloads("+254700000001")
		if err != nil {
			t.Fatal(err)
		}
		var out string
		if err := at(own, step).FromPayloads(sealed, &out); (err == nil) != reads {
			t.Errorf("the momo worker reads what the queue %s is given: %q, %v", queue, out, err)
		}
	}
}

// What a worker writes counts only as an answer of its own queue: with the key of a worker that was taken over, nobody starts a
// flow, sends it a message with a content or answers for a signer.
func TestAWorkerWritesOnlyAnswersOfItsQueue(t *testing.T) {
	t.Parallel()
	flows := DataConverter(codec(t, key("flows.1", 1), key("momo.1", 2), key("signer.1", 3), key("old", 4)))
	step := func(queue string) converter.SerializationContext {
		return converter.ActivitySerializationContext{WorkflowID: "order:1", ActivityType: "SendPrompt", TaskQueue: queue}
	}
	flow := converter.WorkflowSerializationContext{WorkflowID: "order:1"}
	for what, c := range map[string]struct {
		key   Key
		at    converter.SerializationContext
		reads bool
	}{
		"an answer of its queue":            {key("momo.1", 2), step(workflows.QueueMomo), true},
		"an answer of a signer":             {key("momo.1", 2), step("signer-tron"), false},
		"an answer of the flows":            {key("momo.1", 2), step(workflows.QueueFlows), false},
		"a start or a message":              {key("momo.1", 2), flow, false},
		"a signer's start":                  {key("signer.1", 3), flow, false},
		"the flows' own":                    {key("flows.1", 1), flow, true},
		"what the flows hand out":           {key("flows.1", 1), step(workflows.QueueMomo), true},
		"written before there were domains": {key("old", 4), flow, true},
	} {
		written, err := at(DataConverter(codec(t, c.key)), c.at).ToPayloads("paid")
		if err != nil {
			t.Fatal(err)
		}
		var out string
		if err := at(flows, c.at).FromPayloads(written, &out); (err == nil) != c.reads {
			t.Errorf("%s is read: %q, %v", what, out, err)
		}
	}
}

// keysUsed is a codec that notes which key seals what is given to a step.
type keysUsed struct {
	converter.PayloadCodec
	step string
	seen *sync.Map // the steps and their keys
}

func (k keysUsed) WithSerializationContext(of converter.SerializationContext) converter.PayloadCodec {
	k.PayloadCodec = k.PayloadCodec.(converter.PayloadCodecWithSerializationContext).WithSerializationContext(of)
	if step, ok := of.(converter.ActivitySerializationContext); ok {
		k.step = step.ActivityType
	}
	return k
}

func (k keysUsed) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out, err := k.PayloadCodec.Encode(payloads)
	if err == nil && len(out) == 1 {
		k.seen.Store(k.step, string(out[0].Metadata[metaKeyID]))
	}
	return out, err
}

// A flow seals what it hands to a step for the queue on which the step runs.
func TestFlowsSealWhatTheyHandOut(t *testing.T) {
	t.Parallel()
	seen := &sync.Map{}
	ring := codec(t, key("flows.1", 1), key("momo.1", 2), key("signer.1", 3), key("chain.1", 4))
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	env.SetDataConverter(converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), keysUsed{PayloadCodec: ring, seen: seen}))
	want := map[string]string{workflows.QueueMomo: "momo.1", "signer-tron": "signer.1", "chain-solana": "chain.1", workflows.QueueFlows: "flows.1"}
	for queue := range want {
		env.RegisterActivityWithOptions(func(context.Context, string) error { return nil }, activity.RegisterOptions{Name: "on " + queue})
	}
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		for _, queue := range workflow.DeterministicKeys(want) {
			o := workflow.ActivityOptions{TaskQueue: queue, StartToCloseTimeout: time.Minute}
			if err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, o), "on "+queue, "+254700000001").Get(ctx, nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	for queue, id := range want {
		if got, _ := seen.Load("on " + queue); got != id {
			t.Errorf("what the queue %s is given is sealed with %v, not %s", queue, got, id)
		}
	}
}

func TestDomainsOfQueues(t *testing.T) {
	t.Parallel()
	for queue, want := range map[string]string{
		workflows.QueueFlows: DomainFlows, workflows.QueueMomo: DomainMomo, "chain-tron": DomainChain, "signer-solana": DomainSigner,
		workflows.QueueWebhooks: DomainWebhooks, "api": DomainFlows,
	} {
		if got := DomainOf(queue); got != want {
			t.Errorf("the domain of %s is %s, not %s", queue, got, want)
		}
	}
}
