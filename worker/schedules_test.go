package worker

import (
	"cmp"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"kivuko/workflows"
	"kivuko/workflows/workflowstest"
)

// busy is the answer of an activity with the most that a flow may be given to do: there is always more.
func busy(answer reflect.Value) {
	if answer.Kind() != reflect.Struct {
		return
	}
	for _, name := range []string{"More", "Wanted"} {
		if f := answer.FieldByName(name); f.IsValid() {
			f.SetBool(true)
		}
	}
	if f := answer.FieldByName("Ticket"); f.IsValid() {
		f.SetString("ticket")
	}
}

// mockAll has every activity of the service take a time, and then answer that there is more.
func mockAll(env *testsuite.TestWorkflowEnvironment, takes time.Duration) {
	all := append(workflows.Activities(workflows.QueueFlows), workflows.Activities(workflows.QueueMomo)...)
	for _, a := range all {
		env.RegisterActivity(a)
	}
	for _, a := range all {
		for i := range reflect.TypeOf(a).NumMethod() {
			shape := reflect.ValueOf(a).Method(i).Type()
			answer := reflect.MakeFunc(shape, func([]reflect.Value) []reflect.Value {
				out := make([]reflect.Value, shape.NumOut())
				for n := range out {
					out[n] = reflect.New(shape.Out(n)).Elem()
					busy(out[n])
				}
				return out
			})
			args := make([]any, shape.NumIn())
			for n := range args {
				args[n] = mock.Anything
			}
			env.OnActivity(reflect.TypeOf(a).Method(i).Name, args...).After(takes).Return(answer.Interface())
		}
	}
}

// noInput is what a flow reads from the input of a schedule, which is none.
func noInput(flow any) []any {
	var in []any
	for i := 1; i < reflect.TypeOf(flow).NumIn(); i++ {
		in = append(in, reflect.Zero(reflect.TypeOf(flow).In(i)).Interface())
	}
	return in
}

// A scheduled flow ends by itself in half of its timeout, however much work there is: only a run that hangs reaches the
// timeout, and no other run begins until then.
func TestScheduledFlowsEndBeforeTheirTimeout(t *testing.T) {
	t.Parallel()
	flows := map[string]any{}
	for _, f := range workflows.Flows() {
		flows[f.Type] = f.Run
	}
	for id, s := range ours(t).Schedules {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			if want := map[string]time.Duration{"relay-events": 2 * time.Hour, "reserve-report": 12 * time.Hour, "sweep-payments": 6 * time.Hour, "sweep-files": 6 * time.Hour}; s.Timeout != cmp.Or(want[id], 30*time.Minute) {
				t.Errorf("its timeout is %s", s.Timeout)
			}
			if a := s.scheduled(id); a.WorkflowRunTimeout != s.Timeout || a.WorkflowExecutionTimeout != 0 {
				t.Errorf("a run is ended after %s, all of them after %s", a.WorkflowRunTimeout, a.WorkflowExecutionTimeout)
			}
			env := workflowstest.NewEnvironment(workflowstest.Options{})
			mockAll(env, time.Second)
			began := env.Now()
			env.ExecuteWorkflow(flows[s.Workflow], noInput(flows[s.Workflow])...)
			if err := env.GetWorkflowError(); err != nil && !workflow.IsContinueAsNewError(err) {
				t.Fatal(err)
			}
			if took := env.Now().Sub(began); took > s.Timeout/2 {
				t.Errorf("a run takes %s of %s", took, s.Timeout)
			}
		})
	}
}
