package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
)

// The goals of one on-ramp.
const (
	maxActivities = 6
	maxEvents     = 40
)

// count is the content of the histories of a flow and its children.
type count struct {
	events, bytes     int
	activities, local int
	polled            int // the most tries of one activity
}

// histories counts the history events of an on-ramp and its floors, from one flow of each kind.
func (w *harness) histories(ctx context.Context, t *table) error {
	if err := w.login(ctx); err != nil {
		return err
	}
	for _, k := range w.kinds() {
		if err := w.once(ctx, k); err != nil { // warms every cache
			return err
		}
		id, err := k.start(ctx)
		if err != nil {
			return err
		}
		if err := w.temporal.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil {
			return err
		}
		c := count{}
		if err := w.countFlow(ctx, k.name, id, &c); err != nil {
			return err
		}
		if k.name != onRamp {
			continue
		}
		t.add(figure{
			name: "activities of one on-ramp", unit: "activities", ratio: float64(c.activities + c.local), goal: atMost(maxActivities),
			note: fmt.Sprintf("%d regular and %d local; the delivery was tried %d times, and on TRON it is tried every 3 s for a minute",
				c.activities, c.local, c.polled),
		})
		t.add(figure{
			name: "history events of one on-ramp", unit: "events", ratio: float64(c.events), goal: atMost(maxEvents),
			note: fmt.Sprintf("%d bytes", c.bytes),
		})
	}
	return nil
}

// countFlow adds a flow's history to the count and follows its children.
func (w *harness) countFlow(ctx context.Context, what, id string, c *count) error {
	var children []string
	before := *c
	kinds := map[string]int{}
	events := w.temporal.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return err
		}
		kinds[e.GetEventType().String()]++
		c.add(e)
		if a := e.GetChildWorkflowExecutionStartedEventAttributes(); a != nil {
			children = append(children, a.GetWorkflowExecution().GetWorkflowId())
		}
	}
	w.say("  %s: %d events, %d activities, %d local: %s", what, c.events-before.events, c.activities-before.activities,
		c.local-before.local, spell(kinds))
	for _, child := range children {
		if err := w.countFlow(ctx, what+", child", child, c); err != nil {
			return err
		}
	}
	return nil
}

func (c *count) add(e *history.HistoryEvent) {
	c.events++
	c.bytes += e.Size()
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		c.activities++
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_STARTED:
		c.polled = max(c.polled, int(e.GetActivityTaskStartedEventAttributes().GetAttempt()))
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		if e.GetMarkerRecordedEventAttributes().GetMarkerName() == "LocalActivity" {
			c.local++
		}
	}
}

func spell(kinds map[string]int) string {
	var parts []string
	for kind, n := range kinds {
		parts = append(parts, fmt.Sprintf("%d %s", n, kind))
	}
	slices.SortFunc(parts, func(a, b string) int {
		_, a, _ = strings.Cut(a, " ")
		_, b, _ = strings.Cut(b, " ")
		return strings.Compare(a, b)
	})
	return strings.Join(parts, ", ")
}
