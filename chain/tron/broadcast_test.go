package tron

import (
	"bytes"
	"testing"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"

	"kivuko/chain"
)

func TestBroadcastCodes(t *testing.T) {
	s := &stub{}
	c := stubbed(t, []*stub{s}, []*stub{{}})
	_, encoded, _ := signedFixture(t, c)
	want := map[string]chain.BroadcastState{
		"SUCCESS": chain.BroadcastAccepted, "DUP_TRANSACTION_ERROR": chain.BroadcastKnown,
		"SERVER_BUSY": chain.BroadcastUnknown, "NO_CONNECTION": chain.BroadcastUnknown,
		"NOT_ENOUGH_EFFECTIVE_CONNECTION": chain.BroadcastUnknown, "BLOCK_UNSOLIDIFIED": chain.BroadcastUnknown,
		"OTHER_ERROR": chain.BroadcastUnknown, "SIGERROR": chain.BroadcastRejected,
		"CONTRACT_VALIDATE_ERROR": chain.BroadcastRejected, "CONTRACT_EXE_ERROR": chain.BroadcastRejected,
		"BANDWITH_ERROR": chain.BroadcastRejected, "TAPOS_ERROR": chain.BroadcastRejected,
		"TOO_BIG_TRANSACTION_ERROR": chain.BroadcastRejected, "TRANSACTION_EXPIRATION_ERROR": chain.BroadcastRejected,
	}
	for number, name := range api.ReturnResponseCode_name {
		s.set(func() {
			s.answer = &api.Return{Result: number == 0, Code: api.ReturnResponseCode(number), Message: []byte("text\nof the node")}
		})
		got, err := c.Broadcast(t.Context(), encoded)
		if err != nil || got.State != want[name] || got.Code != name || got.Text != `text\nof the node` {
			t.Errorf("%s: %+v, %v; want %q", name, got, err, want[name])
		}
	}
	for name, answer := range map[string]*api.Return{"an empty message": {}, "an unknown code": {Code: 99}, "success in words only": {Message: []byte("ok")}} {
		s.set(func() { s.answer = answer })
		if got, err := c.Broadcast(t.Context(), encoded); err != nil || got.State != chain.BroadcastUnknown {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	s.set(func() { s.down = true })
	if got, err := c.Broadcast(t.Context(), encoded); err != nil || got.State != chain.BroadcastUnknown {
		t.Errorf("no response: %+v, %v", got, err)
	}
}

func TestBroadcastGoesToEveryNodeAndTheBestAnswerCounts(t *testing.T) {
	busy := &stub{answer: &api.Return{Code: api.Return_SERVER_BUSY}}
	refusing := &stub{answer: &api.Return{Code: api.Return_TAPOS_ERROR}}
	known := &stub{answer: &api.Return{Code: api.Return_DUP_TRANSACTION_ERROR}}
	taking := &stub{answer: &api.Return{Result: true}}
	dead := &stub{down: true}
	for _, q := range []struct {
		nodes []*stub
		want  chain.BroadcastState
	}{
		{[]*stub{dead, refusing, taking, known}, chain.BroadcastAccepted},
		{[]*stub{refusing, dead, known}, chain.BroadcastKnown},
		{[]*stub{refusing, busy}, chain.BroadcastUnknown},
		{[]*stub{refusing, dead}, chain.BroadcastUnknown},
		{[]*stub{refusing, refusing}, chain.BroadcastRejected},
	} {
		c := stubbed(t, q.nodes, []*stub{{}})
		_, encoded, _ := signedFixture(t, c)
		for _, n := range q.nodes {
			n.set(func() { n.asked = 0 })
		}
		got, err := c.Broadcast(t.Context(), encoded)
		if err != nil || got.State != q.want {
			t.Errorf("%+v, %v; want %s", got, err, q.want)
		}
		for i, n := range q.nodes {
			if n.questions() == 0 {
				t.Errorf("node %d was not asked", i)
			}
		}
	}
}

func TestBroadcastRefusesBytesThatWouldChange(t *testing.T) {
	c := offline(t)
	_, encoded, tx := signedFixture(t, c)
	unsignedTx, err := deterministic.Marshal(&core.Transaction{RawData: tx.GetRawData()})
	if err != nil {
		t.Fatal(err)
	}
	signature, err := deterministic.Marshal(&core.Transaction{Signature: tx.GetSignature()})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "noise": []byte("noise"), "cut": encoded[:len(encoded)-1], "unsigned": unsignedTx,
		"reordered": append(bytes.Clone(signature), unsignedTx...),
	} {
		if got, err := c.Broadcast(t.Context(), b); chain.ReasonOf(err) != chain.ReasonProtocol {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
