package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/durationpb"

	"kivuko/workflows"
)

// indexedTypes are the types of search attribute that temporal.yaml may name.
var indexedTypes = map[string]enumspb.IndexedValueType{
	"keyword":  enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	"bool":     enumspb.INDEXED_VALUE_TYPE_BOOL,
	"int":      enumspb.INDEXED_VALUE_TYPE_INT,
	"datetime": enumspb.INDEXED_VALUE_TYPE_DATETIME,
}

// applyPause is the wait between checks whether a change has reached the whole server.
const applyPause = 250 * time.Millisecond

// Apply applies temporal.yaml to a Temporal server: namespace, retention, search attributes, schedules. It adds and changes
// but never removes, because flows of older builds may still use what it would remove.
func Apply(ctx context.Context, c client.Client, e TemporalConfig, log *slog.Logger) error {
	for _, step := range []struct {
		name string
		run  func(context.Context, client.Client, TemporalConfig) error
	}{
		{"namespace", applyNamespace}, {"search attributes", applyAttributes}, {"schedules", applySchedules},
	} {
		if err := step.run(ctx, c, e); err != nil {
			return fmt.Errorf("apply %s: %w", step.name, err)
		}
		log.Info("applied", "part", step.name)
	}
	return nil
}

func applyNamespace(ctx context.Context, c client.Client, e TemporalConfig) error {
	service := c.WorkflowService()
	retention := durationpb.New(e.Retention)
	_, err := service.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: e.Namespace, Description: "Kivuko", WorkflowExecutionRetentionPeriod: retention,
	})
	if _, exists := errors.AsType[*serviceerror.NamespaceAlreadyExists](err); exists {
		_, err = service.UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
			Namespace: e.Namespace, Config: &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: retention},
		})
	}
	if err != nil {
		return err
	}
	// A new namespace reaches the server's caches within seconds; until then everything in it is "not found".
	return until(ctx, func() error {
		_, err := service.DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace: e.Namespace, TaskQueue: taskQueue(workflows.QueueFlows), TaskQueueType: enumspb.TASK_QUEUE_TYPE_WORKFLOW,
		})
		return err
	})
}

func applyAttributes(ctx context.Context, c client.Client, e TemporalConfig) error {
	operator := c.OperatorService()
	missing := func() (map[string]enumspb.IndexedValueType, error) {
		have, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: e.Namespace})
		if err != nil {
			return nil, err
		}
		add := map[string]enumspb.IndexedValueType{}
		for name, kind := range e.SearchAttributes {
			switch got, ok := have.GetCustomAttributes()[name]; {
			case !ok:
				add[name] = indexedTypes[kind]
			case got != indexedTypes[kind]:
				return nil, fmt.Errorf("search attribute %s is %s on the server and %s in temporal.yaml; a type can't be changed", name, got, kind)
			}
		}
		return add, nil
	}
	add, err := missing()
	if err != nil || len(add) == 0 {
		return err
	}
	if _, err := operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: e.Namespace, SearchAttributes: add}); err != nil {
		return err
	}
	return until(ctx, func() error {
		still, err := missing()
		if err == nil && len(still) > 0 {
			err = errors.New("the new search attributes are not visible yet")
		}
		return err
	})
}

func applySchedules(ctx context.Context, c client.Client, e TemporalConfig) error {
	for id, s := range e.Schedules {
		spec := client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: s.Every}}}
		action := s.scheduled(id)
		_, err := c.ScheduleClient().Create(ctx, client.ScheduleOptions{
			ID: id, Spec: spec, Action: action, Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, CatchupWindow: s.CatchUp,
		})
		if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
			err = c.ScheduleClient().GetHandle(ctx, id).Update(ctx, client.ScheduleUpdateOptions{
				DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
					was := in.Description.Schedule
					was.Spec, was.Action = &spec, action
					was.Policy.Overlap, was.Policy.CatchupWindow = enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, s.CatchUp
					return &client.ScheduleUpdate{Schedule: &was}, nil
				},
			})
		}
		if err != nil {
			return fmt.Errorf("%s: %w", id, err)
		}
	}
	return nil
}

// scheduled returns what a schedule starts. The timeout bounds one run, because RelayEvents continues as new.
func (s Schedule) scheduled(id string) *client.ScheduleWorkflowAction {
	return &client.ScheduleWorkflowAction{ID: id, Workflow: s.Workflow, TaskQueue: workflows.QueueFlows, WorkflowRunTimeout: s.Timeout}
}

// until repeats look until it succeeds or ctx ends; then it returns the last error.
func until(ctx context.Context, look func() error) error {
	for {
		err := look()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(applyPause):
		}
	}
}
