package worker

import (
	"os"
	"slices"
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/workflows"
)

func ours(t *testing.T) TemporalConfig {
	t.Helper()
	raw, err := os.ReadFile("../temporal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e, err := ParseTemporalConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestTemporalConfigNamesWhatTheFlowsUse fails when a flow names a search attribute or a queue that
// temporal.yaml does not have, which would show only on a running server.
func TestTemporalConfigNamesWhatTheFlowsUse(t *testing.T) {
	e := ours(t)
	for name, kind := range map[string]string{
		workflows.AttrStatus.GetName(): "keyword", workflows.AttrStage.GetName(): "keyword",
		workflows.AttrNetwork.GetName(): "keyword", workflows.AttrAsset.GetName(): "keyword",
		workflows.AttrMerchantID.GetName(): "keyword", workflows.AttrOrderType.GetName(): "keyword",
		workflows.AttrNeedsAttention.GetName(): "bool", workflows.AttrWaitingFor.GetName(): "keyword",
		workflows.AttrDeadline.GetName(): "datetime", workflows.AttrReason.GetName(): "keyword", workflows.AttrLag.GetName(): "int",
	} {
		if e.SearchAttributes[name] != kind {
			t.Errorf("search attribute %s: temporal.yaml says %q, the flows use it as %s", name, e.SearchAttributes[name], kind)
		}
	}
	queues := []string{workflows.QueueFlows, workflows.QueueMomo, workflows.QueueWebhooks}
	for _, n := range exchange.Networks() {
		queues = append(queues, workflows.QueueChain(n), workflows.QueueSigner(n))
	}
	for _, q := range queues {
		if _, ok := e.Queues[q]; !ok {
			t.Errorf("temporal.yaml has no queue %s", q)
		}
	}
	if !e.Queues[workflows.QueueFlows].Flows {
		t.Error("the queue flows must run workflow code")
	}
	if s := e.Schedules[workflows.ScheduleGasAhead]; s.Workflow != workflows.TypeGasAhead {
		t.Errorf("the schedule %s, which the API triggers, starts %q", workflows.ScheduleGasAhead, s.Workflow)
	}
}

func TestParseTemporalConfigRefuses(t *testing.T) {
	raw, err := os.ReadFile("../temporal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"unknown field":     {"namespace: kivuko", "namespace: kivuko\nnamespce: x"},
		"no namespace":      {"namespace: kivuko", "namespace: ''"},
		"short retention":   {"retention: 720h", "retention: 1h"},
		"type of attribute": {"KivukoStatus: keyword", "KivukoStatus: txt"},
		"no concurrency":    {"concurrent_activities: 4", "concurrent_activities: 0"},
		"schedule":          {"every: 1m", "every: 0s"},
		"timeout":           {"timeout: 2h", "timeout: 2s"},
	} {
		if !strings.Contains(string(raw), change[0]) {
			t.Fatalf("%s: temporal.yaml does not say %q any more", name, change[0])
		}
		if _, err := ParseTemporalConfig([]byte(strings.Replace(string(raw), change[0], change[1], 1))); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestAQueueWithoutItsPartsDoesNotStart(t *testing.T) {
	for _, name := range queueNames(ours(t)) {
		all := workflows.Activities(name)
		for what, have := range map[string][]any{"none": nil, "one too few": all[1:], "one too many": append(slices.Clone(all), &registry{}), "one twice": append(slices.Clone(all), all[0])} {
			if err := register(nil, name, have); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("queue %s with %s: got %v", name, what, err)
			}
		}
	}
}
