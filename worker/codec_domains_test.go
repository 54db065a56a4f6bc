package worker

import (
	"testing"

	"go.temporal.io/sdk/converter"

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
