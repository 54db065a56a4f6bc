package e2e

import (
	"fmt"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"kivuko/workflows"
)

// The budget of a purchase that succeeds. Events are what Temporal stores, bills and replays.
const (
	maxEvents     = 40
	maxActivities = 6
)

// On a busy machine two messages that usually come together come one after the other, and each costs a workflow task of three
// events. So the cheapest of a few purchases counts.
func TestEventBudget(t *testing.T) {
	w, spent := open(t), ""
	for range 5 {
		o := w.ends(t, w.buy(t, purchase{crypto: "5"}).ID, "completed", "")
		events := w.history(t, workflows.OnRampID(o.ID))
		activities := scheduled(events)
		t.Logf("a purchase takes %d events and %d activities", len(events), activities)
		if activities > maxActivities {
			t.Errorf("a purchase takes %d activities; the budget is %d", activities, maxActivities)
		}
		spent = fmt.Sprint(kinds(events))
		if len(events) <= maxEvents && kinds(events)[enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED.String()] == 0 {
			return
		}
	}
	t.Errorf("the order's flow has a child or more than %d events each time: %s", maxEvents, spent)
}

// history reads a flow's events as Temporal stores them, after the flow has ended.
func (w *harness) history(t *testing.T, flow string) []*historypb.HistoryEvent {
	t.Helper()
	if err := w.temporal.GetWorkflow(t.Context(), flow, "").Get(t.Context(), nil); err != nil {
		t.Fatalf("%s: %v", flow, err)
	}
	return w.events(t, flow, "")
}

func (w *harness) events(t *testing.T, flow, run string) []*historypb.HistoryEvent {
	t.Helper()
	var all []*historypb.HistoryEvent
	iterator := w.temporal.GetWorkflowHistory(t.Context(), flow, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for iterator.HasNext() {
		e, err := iterator.Next()
		if err != nil {
			t.Fatalf("history of %s: %v", flow, err)
		}
		all = append(all, e)
	}
	return all
}

func scheduled(events []*historypb.HistoryEvent) (n int) {
	for _, e := range events {
		if e.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED {
			n++
		}
	}
	return n
}

func kinds(events []*historypb.HistoryEvent) map[string]int {
	all := map[string]int{}
	for _, e := range events {
		all[e.GetEventType().String()]++
	}
	return all
}
