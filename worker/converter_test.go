package worker

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"kivuko/activities"
	"kivuko/workflows"
)

var transferFlow = converter.WorkflowSerializationContext{Namespace: "kivuko", WorkflowID: "transfer:1"}

func at(dc converter.DataConverter, of converter.SerializationContext) converter.DataConverter {
	return converter.WithDataConverterSerializationContext(dc, of)
}

// D2, C3: a payload that is not encrypted starts and answers nothing. Only the operators' signals are read.
func TestClearPayloadsAreRefused(t *testing.T) {
	plain, dc := converter.GetDefaultDataConverter(), at(DataConverter(codec(t, key("k1", 1))), transferFlow)
	id := uuid.New()
	typed, err := plain.ToPayloads(map[string]any{"intent_id": id, "command_id": id, "token": "t", "requested_by": id})
	if err != nil {
		t.Fatal(err)
	}
	for what, into := range map[string]any{
		"a start": &workflows.TransferInput{}, "another start": &workflows.CreateWalletInput{}, "an update": &workflows.IntentRef{},
		"a command": &workflows.CommandRef{}, "an approval by the API": &workflows.ApprovalRef{}, "a callback": &workflows.CallbackRef{},
		"a deposit": &workflows.DepositRef{}, "a step": &activities.IntentInput{}, "an answer": &activities.Confirmed{}, "anything": new(any),
		"bytes": new([]byte), "a signal, by value of its pointer": new(*workflows.OperatorSignal),
	} {
		if err := dc.FromPayloads(typed, into); err == nil {
			t.Errorf("%s is read from a clear payload: %+v", what, into)
		}
		if err := dc.FromPayload(typed.Payloads[0], into); err == nil {
			t.Errorf("%s is read from one clear payload: %+v", what, into)
		}
	}
	var signal workflows.OperatorSignal
	if err := dc.FromPayloads(typed, &signal); err != nil || signal != (workflows.OperatorSignal{CommandID: id, Token: "t"}) {
		t.Errorf("a signal: %+v, %v", signal, err)
	}
	for _, text := range []string{`"yes"`, `7`, `null`, `[1]`, `{"command_id": 7, "token": {}}`, `{"command_id": "x"}`} {
		signal = workflows.OperatorSignal{Token: "before"}
		if err := dc.FromPayload(payload(text), &signal); err != nil || signal != (workflows.OperatorSignal{}) {
			t.Errorf("%s: %+v, %v", text, signal, err)
		}
	}
	if err := dc.FromPayloads(nil, &workflows.IntentRef{}); err != nil {
		t.Errorf("no argument: %v", err)
	}
}

// A copy of a payload is read only where it was written: by the same flow, or by the same step of it.
func TestCopiedPayloadsAreRefusedElsewhere(t *testing.T) {
	dc := DataConverter(codec(t, key("k1", 1)))
	step := converter.ActivitySerializationContext{Namespace: "kivuko", WorkflowID: "transfer:1", WorkflowType: "Transfer", ActivityType: "CancelTransfer", TaskQueue: "flows"}
	local, elsewhere, other := step, step, step
	local.IsLocal, local.TaskQueue = true, "other" // the queue is no part of the place: a step may move
	elsewhere.WorkflowID, other.ActivityType = "transfer:2", "GiveUpTransfer"
	for what, c := range map[string]struct {
		from, to converter.SerializationContext
		reads    bool
	}{
		"the same flow":        {transferFlow, transferFlow, true},
		"another flow":         {transferFlow, converter.WorkflowSerializationContext{WorkflowID: "transfer:2"}, false},
		"a step of the flow":   {transferFlow, step, false},
		"the same step":        {step, step, true},
		"the same step, local": {step, local, true},
		"another step":         {step, other, false},
		"another flow's step":  {step, elsewhere, false},
		"the flow of the step": {step, transferFlow, false},
		"nowhere":              {nil, transferFlow, false},
	} {
		from := dc
		if c.from != nil {
			from = at(dc, c.from)
		}
		in := activities.IntentInput{IntentID: uuid.New()}
		p, err := from.ToPayload(in)
		if err != nil {
			t.Fatal(err)
		}
		var got activities.IntentInput
		if err := at(dc, c.to).FromPayload(p, &got); (err == nil) != c.reads || c.reads && got != in {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
		moved := &commonpb.Payload{Metadata: map[string][]byte{}, Data: p.Data}
		for k, v := range p.Metadata {
			moved.Metadata[k] = v
		}
		moved.Metadata[metaPlace] = []byte(at(dc, c.to).(sealed).place())
		if err := at(dc, c.to).FromPayload(moved, &got); (err == nil) != c.reads {
			t.Errorf("%s, with the place rewritten: %v", what, err)
		}
		if err := DataConverter(codec(t, key("k1", 1))).FromPayload(p, &got); err != nil || got != in {
			t.Errorf("%s can't be shown: %+v, %v", what, got, err)
		}
	}
}

// place is that of the converter's codec, as it writes it.
func (s sealed) place() string {
	p, err := s.ToPayload("x")
	if err != nil {
		return err.Error()
	}
	return string(p.Metadata[metaPlace])
}

// What somebody types into the Web UI is not encrypted for it, so that it never looks like what a process wrote.
func TestTheCodecEndpointEncryptsNothing(t *testing.T) {
	h := CodecHandler(codec(t, key("k1", 1)), "http://127.0.0.1:8233", func(*http.Request) error { return nil })
	const body = `{"payloads":[{"metadata":{"encoding":"anNvbi9wbGFpbg=="},"data":"e30="}]}`
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/encode", strings.NewReader(body)))
	if w.Code != http.StatusOK || !bytes.Contains(w.Body.Bytes(), []byte("e30=")) || bytes.Contains(w.Body.Bytes(), []byte(metaKeyID)) {
		t.Errorf("answers %d %s", w.Code, w.Body)
	}
}
