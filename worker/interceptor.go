package worker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"

	"kivuko/activities"
)

// interceptors log activities; they hold no business rules.
func interceptors(logger *slog.Logger) []interceptor.WorkerInterceptor {
	return []interceptor.WorkerInterceptor{&watcher{logger: logger}}
}

// watcher logs how activities end: the flow, the attempt and the type of the failure, never its message, which may contain
// personal data.
type watcher struct {
	interceptor.WorkerInterceptorBase
	logger *slog.Logger
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (w *watcher) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &watchedActivity{ActivityInboundInterceptorBase: interceptor.ActivityInboundInterceptorBase{Next: next}, logger: w.logger}
}

type watchedActivity struct {
	interceptor.ActivityInboundInterceptorBase
	logger *slog.Logger
}

// ExecuteActivity runs the activity and logs its failure. A pending poll is not a failure.
func (a *watchedActivity) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	began := time.Now()
	out, err := a.Next.ExecuteActivity(ctx, in)
	info := activity.GetInfo(ctx)
	fields := []any{
		"activity", info.ActivityType.Name, "workflow", info.WorkflowExecution.ID, "attempt", info.Attempt,
		"milliseconds", time.Since(began).Milliseconds(),
	}
	failure, known := errors.AsType[*temporal.ApplicationError](err)
	switch {
	case err == nil:
		a.logger.Debug("activity done", fields...)
	case known && failure.Type() == activities.TypePending:
		a.logger.Debug("activity waits", fields...)
	case known:
		a.logger.Warn("activity failed", append(fields, "type", failure.Type(), "final", failure.NonRetryable())...)
	default:
		a.logger.Warn("activity failed", append(fields, "type", "unknown")...)
	}
	return out, err
}
