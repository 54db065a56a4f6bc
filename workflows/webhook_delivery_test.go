package workflows_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

func hookEnv() *testsuite.TestWorkflowEnvironment {
	env := newEnvironment(nil)
	env.SetStartTime(time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC))
	return env
}

// mailbox is the rows of one endpoint with one delivery, as the store keeps them.
type mailbox struct {
	now      func() time.Time
	tries    int
	next     time.Time
	accepts  int // the attempt that is accepted; 0: none
	attempts []time.Time
	ended    exchange.WebhookDeliveryStatus
	trouble  int // calls that fail for an internal reason
}

func (m *mailbox) DeliverWebhooks(context.Context, activities.WebhookInput) (activities.WebhooksSent, error) {
	if m.trouble > 0 {
		m.trouble--
		return activities.WebhooksSent{}, activities.Failure(context.Background(), exchange.Errorf(exchange.CodeStateConflict, "no key"))
	}
	var out activities.WebhooksSent
	if m.ended == "" && !m.next.After(m.now()) {
		m.tries++
		m.attempts = append(m.attempts, m.now())
		out.Attempts = 1
		pause, again := exchange.WebhookPause(m.tries)
		switch {
		case m.tries == m.accepts:
			m.ended, out.Delivered = exchange.WebhookDelivered, 1
		case !again:
			m.ended = exchange.WebhookFailed
		default:
			m.next = m.now().Add(pause)
		}
	}
	if m.ended == "" {
		out.Next = m.next
	}
	return out, nil
}

func deliverTo(t *testing.T, m *mailbox, during func(*testsuite.TestWorkflowEnvironment)) {
	t.Helper()
	env := hookEnv()
	m.now = env.Now
	env.RegisterActivity(m)
	if during != nil {
		during(env)
	}
	env.ExecuteWorkflow(workflows.DeliverWebhooks, activities.WebhookInput{EndpointID: uuid.New()})
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
}

// An endpoint that is down for three days gets every attempt at its time, and no further one.
func TestWebhooksAreTriedForThreeDays(t *testing.T) {
	m := &mailbox{}
	deliverTo(t, m, nil)
	if len(m.attempts) != exchange.WebhookAttempts || m.ended != exchange.WebhookFailed {
		t.Fatalf("%d attempts, %s", len(m.attempts), m.ended)
	}
	for i := 1; i < len(m.attempts); i++ {
		want, _ := exchange.WebhookPause(i)
		if got := m.attempts[i].Sub(m.attempts[i-1]); got < want || got > want+time.Minute {
			t.Errorf("attempt %d came %s after the previous one, want %s", i+1, got, want)
		}
	}
	if span := m.attempts[len(m.attempts)-1].Sub(m.attempts[0]); span < 72*time.Hour {
		t.Errorf("all within %s", span)
	}
}

// An event that comes while the flow waits for an attempt is sent at once, and an internal failure ends nothing.
func TestWebhooksAreWokenAndSurviveTrouble(t *testing.T) {
	m := &mailbox{accepts: 6, trouble: 2}
	woken := 0
	deliverTo(t, m, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() { // a replay, in the middle of the pause before the fifth attempt
			woken, m.next = len(m.attempts), env.Now()
			env.SignalWorkflow(workflows.SignalWebhooks, nil)
		}, time.Hour)
	})
	if m.ended != exchange.WebhookDelivered || woken != 4 {
		t.Fatalf("%s after %d attempts, resumed after %d", m.ended, len(m.attempts), woken)
	}
	if wait := m.attempts[4].Sub(m.attempts[3]); wait > 2*time.Hour-time.Second {
		t.Errorf("it kept sleeping for %s", wait)
	}
}

// logReader is the relay's rows.
type logReader struct {
	steps []activities.RelayedEvents
	calls int
	err   error
}

func (l *logReader) RelayEvents(context.Context) (activities.RelayedEvents, error) {
	l.calls++
	if l.calls > len(l.steps) {
		return activities.RelayedEvents{Wanted: true}, l.err
	}
	return l.steps[l.calls-1], nil
}

// The relay ends without an active endpoint, and continues as a new run with one.
func TestTheRelayRunsWhileItIsWanted(t *testing.T) {
	env, idle := hookEnv(), &logReader{steps: []activities.RelayedEvents{{More: true, Wanted: true}, {Wanted: true}, {}}}
	env.RegisterActivity(idle)
	begun := env.Now()
	env.ExecuteWorkflow(workflows.RelayEvents)
	if err := env.GetWorkflowError(); err != nil || idle.calls != 3 || env.Now().Sub(begun) > time.Minute {
		t.Errorf("%d checks in %s, %v", idle.calls, env.Now().Sub(begun), err)
	}
	env, busy := hookEnv(), &logReader{}
	env.RegisterActivity(busy)
	env.ExecuteWorkflow(workflows.RelayEvents)
	if _, anew := errors.AsType[*workflow.ContinueAsNewError](env.GetWorkflowError()); !anew {
		t.Errorf("ended with %v", env.GetWorkflowError())
	}
}
