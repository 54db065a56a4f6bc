package workflows_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"kivuko/workflows"
	"kivuko/workflows/workflowstest"
)

// flows are all flows that may be under way when a new build is deployed.
func flows() map[string]any {
	all := map[string]any{}
	for _, f := range workflows.Flows() {
		all[f.Type] = f.Run
	}
	return all
}

func replayer() worker.WorkflowReplayer {
	r := worker.NewWorkflowReplayer()
	for name, flow := range flows() {
		r.RegisterWorkflowWithOptions(flow, workflow.RegisterOptions{Name: name})
	}
	return r
}

// TestRecordedHistoriesReplay runs flows that were recorded on a real server through today's code. With a difference,
// flows that are under way could not continue.
func TestRecordedHistoriesReplay(t *testing.T) {
	for _, f := range samples(t) {
		t.Run(filepath.Base(f), func(t *testing.T) {
			if err := replay(f); err != nil {
				t.Error(err)
			}
		})
	}
}

// replay runs a recorded history under the id of its flow, which names the flow's object.
func replay(file string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	h, err := client.HistoryFromJSON(bytes.NewReader(raw), client.HistoryJSONOptions{})
	if err != nil {
		return err
	}
	id := h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetWorkflowId()
	return replayer().ReplayWorkflowHistoryWithOptions(workflowstest.Silent(), h, worker.ReplayWorkflowHistoryOptions{OriginalExecution: workflow.Execution{ID: id}})
}

// samples returns the files of the recorded histories.
func samples(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "histories", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("the recorded histories are missing: run the end-to-end tests with KIVUKO_RECORD=1")
	}
	return files
}

// sample is the part of a recorded history that the tests read.
type sample struct {
	text     string // all of it, and every payload decoded
	flow     string
	events   map[string]int
	payloads int
}

func readSample(t *testing.T, file string) sample {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var h struct {
		Events []struct {
			Type    string `json:"eventType"`
			Started struct {
				Flow struct {
					Name string `json:"name"`
				} `json:"workflowType"`
			} `json:"workflowExecutionStartedEventAttributes"`
		} `json:"events"`
	}
	if err := json.Unmarshal(raw, &h); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	s := sample{text: string(raw), flow: h.Events[0].Started.Flow.Name, events: map[string]int{}}
	for _, e := range h.Events {
		s.events[e.Type]++
	}
	for _, data := range payloadData.FindAllStringSubmatch(s.text, -1) {
		decoded, err := base64.StdEncoding.DecodeString(data[1])
		if err != nil {
			t.Fatalf("%s: a payload of %q: %v", file, data[1], err)
		}
		s.text += string(decoded) + "\n"
		s.payloads++
	}
	return s
}

var payloadData = regexp.MustCompile(`"data":\s*"([^"]*)"`)

// unfit matches what a public file must not contain: secrets, and names of the machine that made it.
var unfit = map[string]*regexp.Regexp{
	"a path of a machine":  regexp.MustCompile(`(^|[^A-Za-z0-9+/=])/(tmp|root|home|work|usr|var|etc|opt|Users)/[^" ]*`),
	"a token of ours":      regexp.MustCompile(`v4\.(local|public)\.[A-Za-z0-9_-]+`),
	"a secret":             regexp.MustCompile(`"[a-z_]*(password|passkey|secret|credential|private_key|pin|token)":\s*"[^"]*"`),
	"who ran a step":       regexp.MustCompile(`"identity":\s*"[^"]*"`),
	"the host of a worker": regexp.MustCompile(`"name":\s*"[^"]+:[0-9a-f]{8}-[0-9a-f-]{27}"`),
}

// harmless is what the recorder writes instead.
var harmless = []string{`"token":"left out"`, `"identity":"kivuko"`}

var spaces = regexp.MustCompile(`":\s*"`)

// TestRecordedHistoriesHoldNoSecrets reads the samples as anyone with the sources can.
func TestRecordedHistoriesHoldNoSecrets(t *testing.T) {
	for _, f := range samples(t) {
		s := readSample(t, f)
		if s.payloads == 0 {
			t.Errorf("%s: no payload was read", f)
		}
		for what, form := range unfit {
			for _, found := range form.FindAllString(s.text, -1) {
				if !slices.Contains(harmless, spaces.ReplaceAllString(found, `":"`)) {
					t.Errorf("%s holds %s: %s", f, what, found)
				}
			}
		}
	}
}

// TestEveryFlowHasASample makes sure that no flow can change unnoticed: every flow has a history, and every
// long-lived flow has one that continues as a new run.
func TestEveryFlowHasASample(t *testing.T) {
	recorded, anew := map[string]bool{}, map[string]bool{}
	for _, f := range samples(t) {
		s := readSample(t, f)
		recorded[s.flow] = true
		anew[s.flow] = anew[s.flow] || s.events["EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW"] > 0
	}
	for name := range flows() {
		if !recorded[name] {
			t.Errorf("no history of %s is recorded: run the end-to-end tests with KIVUKO_RECORD=1", name)
		}
	}
	for _, name := range []string{workflows.TypeDepositWatch, workflows.TypeRelayEvents} {
		if !anew[name] {
			t.Errorf("no history shows how %s continues as a new run", name)
		}
	}
}

// TestNoClosedFlowNeedsAttention checks that no recorded flow ended while it was parked.
func TestNoClosedFlowNeedsAttention(t *testing.T) {
	type fields struct {
		Fields map[string]struct {
			Data []byte `json:"data"`
		} `json:"indexedFields"`
	}
	for _, f := range samples(t) {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var h struct {
			Events []struct {
				Type    string `json:"eventType"`
				Started struct {
					Attributes fields `json:"searchAttributes"`
				} `json:"workflowExecutionStartedEventAttributes"`
				Shown struct {
					Attributes fields `json:"searchAttributes"`
				} `json:"upsertWorkflowSearchAttributesEventAttributes"`
			} `json:"events"`
		}
		if err := json.Unmarshal(raw, &h); err != nil {
			t.Fatal(err)
		}
		calls, over := false, false
		for _, e := range h.Events {
			for _, at := range []fields{e.Started.Attributes, e.Shown.Attributes} {
				if v, shown := at.Fields[workflows.AttrNeedsAttention.GetName()]; shown {
					calls = string(v.Data) == "true"
				}
			}
			over = e.Type == "EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED"
		}
		if over && calls {
			t.Errorf("%s ended while it was parked", filepath.Base(f))
		}
	}
}

// maxOrderEvents is the limit for a smooth order, so that a change that makes each order more expensive is noticed: the budget, and one
// task of three events, because the operator's two notices may come one after the other.
const maxOrderEvents = 40 + 3

func TestSmoothOrderIsCheap(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "histories", "on_ramp_paid.json"))
	if os.IsNotExist(err) {
		t.Fatal("the recorded histories are missing: run the end-to-end tests with KIVUKO_RECORD=1")
	}
	if err != nil {
		t.Fatal(err)
	}
	if n := countEvents(t, raw); n > maxOrderEvents {
		t.Errorf("a smooth order has %d events, at most %d are allowed", n, maxOrderEvents)
	}
}
