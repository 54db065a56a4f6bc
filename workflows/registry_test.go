package workflows_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/workflows"
)

// Every recorded activity was scheduled on the queue whose processes have it.
func TestStepsAreOnTheQueueOfTheirActivity(t *testing.T) {
	for _, f := range samples(t) {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var h struct {
			Events []struct {
				Scheduled *struct {
					Type  struct{ Name string } `json:"activityType"`
					Queue struct{ Name string } `json:"taskQueue"`
				} `json:"activityTaskScheduledEventAttributes"`
			} `json:"events"`
		}
		if err := json.Unmarshal(raw, &h); err != nil {
			t.Fatal(err)
		}
		for _, e := range h.Events {
			if s := e.Scheduled; s != nil && !has(s.Queue.Name, s.Type.Name) {
				t.Errorf("%s: %s was scheduled on the queue %s, which has no such activity", filepath.Base(f), s.Type.Name, s.Queue.Name)
			}
		}
	}
}

func has(queue, activity string) bool {
	for _, a := range workflows.Activities(queue) {
		if _, ok := reflect.TypeOf(a).MethodByName(activity); ok {
			return true
		}
	}
	return false
}

// A flow is registered under the name of its function, by which others start it, and only once. The database notifies
// the flow of a sale by an id that it composes itself.
func TestFlowsAreStartedByTheNameOfTheirFunction(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range workflows.Flows() {
		name := runtime.FuncForPC(reflect.ValueOf(f.Run).Pointer()).Name()
		if !strings.HasSuffix(name, "."+f.Type) || seen[f.Type] {
			t.Errorf("the flow %s runs %s", f.Type, name)
		}
		seen[f.Type] = true
	}
	if order := uuid.New(); workflows.OffRampID(order) != exchange.OffRampFlow(order) {
		t.Errorf("the flow of a sale is %s, and the database notifies %s", workflows.OffRampID(order), exchange.OffRampFlow(order))
	}
}
