package worker

import (
	"bytes"
	"testing"

	"kivuko/workflows"
)

// All processes shared one ring: the worker that calls the mobile money operator could read what signers and customers were given. Now
// it can read only what is sealed for its own domain.
func TestAWorkerReadsOnlyWhatIsSealedForIt(t *testing.T) {
	t.Parallel()
	key := func(id string, b byte) Key { return Key{ID: id, Secret: bytes.Repeat([]byte{b}, KeySize)} }
	all, err := NewCodec([]Key{key("flows.1", 1), key("momo.2", 4), key("momo.1", 2), key("signer.1", 3)})
	if err != nil {
		t.Fatal(err)
	}
	own, err := NewCodec([]Key{key("momo.2", 4)})
	if err != nil {
		t.Fatal(err)
	}
	flows := newSealer(all)
	for queue, reads := range map[string]bool{workflows.QueueMomo: true, "signer-tron": false, workflows.QueueFlows: false, workflows.QueueWebhooks: false} {
		sealed, err := flows.converters[DomainOf(queue)].ToPayloads("+254700000001")
		if err != nil {
			t.Fatal(err)
		}
		var out string
		if err := DataConverter(own).FromPayloads(sealed, &out); (err == nil) != reads {
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
