package activities

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
)

// MomoOperator is the mobile money operator. Its methods are those of momo.Operator.
type MomoOperator interface {
	Capabilities() exchange.Capabilities
	SubmitCollection(ctx context.Context, a exchange.PaymentAttempt) exchange.Submission
	SubmitPayout(ctx context.Context, a exchange.PaymentAttempt) exchange.Submission
	Resolve(ctx context.Context, a exchange.PaymentAttempt) exchange.Observation
	ParseCallback(kind exchange.CallbackKind, body []byte) ([]exchange.Observation, error)
	Pull(ctx context.Context, from, to time.Time, offset int) (seen []exchange.Observation, next int, more bool, err error)
}

// AttemptStore is the database interface of mobile money steps.
type AttemptStore interface {
	Collectable(ctx context.Context, of exchange.MomoObject) (exchange.Collectable, error)
	SetCollectionDetail(ctx context.Context, of exchange.MomoObject, detail string) error
	BeginCollection(ctx context.Context, of exchange.MomoObject, a exchange.PaymentAttempt) (stored exchange.PaymentAttempt, created bool, err error)
	StopAwaiting(ctx context.Context, of exchange.MomoObject) error
	TakeNamed(ctx context.Context, deposit uuid.UUID) (exchange.OTCDeposit, error)
	Attempt(ctx context.Context, id uuid.UUID) (exchange.PaymentAttempt, error)
	RecordSubmission(ctx context.Context, id uuid.UUID, s exchange.Submission) (exchange.PaymentAttempt, error)
	RecordFailure(ctx context.Context, id uuid.UUID, o exchange.Observation) (exchange.PaymentAttempt, error)
	Callbacks(ctx context.Context, attemptID uuid.UUID) ([]exchange.MomoCallback, error)
	SaveReceipt(ctx context.Context, o exchange.Observation) error
	ReceiptsFor(ctx context.Context, reference string) ([]exchange.Observation, error)
	AcceptPayment(ctx context.Context, id uuid.UUID, o exchange.Observation, now time.Time) (exchange.PaymentOutcome, error)
	UseCommand(ctx context.Context, id uuid.UUID, objectType string, objectID uuid.UUID) (exchange.OperatorCommand, error)
}

// Momo collects money. It is registered on the momo queue, whose processes know the operator's secrets.
type Momo struct {
	Store    AttemptStore
	Operator MomoOperator
	Provider string // the operator's name on attempt rows
	Now      func() time.Time
}

// PromptInput asks for the n-th prompt of an order or another object, 1 for the first. Home is the flow that its callbacks
// wake. Nothing is sent after Until, if it is set: a step that hung must not ask for money that its flow has given up.
type PromptInput struct {
	OrderID uuid.UUID           `json:"order_id,omitzero"`
	Object  exchange.MomoObject `json:"object,omitzero"` // instead of an order
	N       int                 `json:"n"`
	Home    string              `json:"home"`
	Until   time.Time           `json:"until,omitzero"`
}

// of is what the money is collected for.
func (in PromptInput) of() exchange.MomoObject { return momoObject(in.Object, in.OrderID) }

// momoObject is the object of an input that names an order or another object.
func momoObject(of exchange.MomoObject, order uuid.UUID) exchange.MomoObject {
	if of.Type == "" {
		return exchange.OrderObject(order)
	}
	return of
}

// Submitted is the outcome of a request to the operator.
type Submitted struct {
	AttemptID uuid.UUID                `json:"attempt_id"`
	State     exchange.SubmissionState `json:"state"`
	Code      string                   `json:"code,omitempty"`
	Transient bool                     `json:"transient,omitempty"` // refused for now
	Config    bool                     `json:"config,omitempty"`    // refused because of our configuration
}

// CollectionID is the id of the n-th prompt of an object. It is derived from the object's id, so that a repeated step, even in
// a new run of the flow, finds its row.
func CollectionID(object uuid.UUID, n int) uuid.UUID {
	return uuid.NewSHA1(object, fmt.Appendf(nil, "kivuko collection %d", n))
}

// PromptPayer sends a prompt to the payer's phone, at most once per attempt row, because the operator has no idempotency
// here. The row is written before the call and the answer after it. A run that finds the row without an answer does not send
// again: the outcome is unknown.
func (m *Momo) PromptPayer(ctx context.Context, in PromptInput) (Submitted, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	of := in.of()
	token, err := newToken()
	if err != nil {
		return Submitted{}, Failure(ctx, err)
	}
	stored, created, err := m.Store.BeginCollection(ctx, of, exchange.PaymentAttempt{
		ID: CollectionID(of.ID, in.N), Provider: m.Provider, CallbackToken: token, WorkflowID: in.Home,
	})
	if err != nil {
		return Submitted{}, Failure(ctx, err)
	}
	var s Submitted
	if created {
		stored.CallbackToken = token
		s, err = keepSubmission(ctx, m.Store, stored.ID, m.send(ctx, stored, in.Until))
	} else {
		s, err = m.remembered(ctx, stored)
	}
	if err != nil {
		return Submitted{}, Failure(ctx, err)
	}
	return s, Failure(ctx, m.Store.SetCollectionDetail(ctx, of, waitsFor(s)))
}

// AwaitPayer stores that a payer may pay our number by hand, under the reference of an object. Nothing is sent.
func (m *Momo) AwaitPayer(ctx context.Context, in PromptInput) (Submitted, error) {
	of := in.of()
	a, _, err := m.Store.BeginCollection(ctx, of, exchange.PaymentAttempt{ID: CollectionID(of.ID, in.N), Provider: m.Provider, WorkflowID: in.Home})
	return Submitted{AttemptID: a.ID, State: exchange.Accepted}, Failure(ctx, err)
}

// StopInput names an object that takes no payment by hand any more.
type StopInput struct {
	Object exchange.MomoObject `json:"object"`
}

// StopAwaiting ends the wait for payments by hand. What comes nevertheless is late money.
func (m *Momo) StopAwaiting(ctx context.Context, in StopInput) error {
	return Failure(ctx, m.Store.StopAwaiting(ctx, in.Object))
}

// TakeNamed books the payment that officers named as the money of an OTC deposit, and returns the deposit as it is.
func (m *Momo) TakeNamed(ctx context.Context, in OTCInput) (OTCState, error) {
	d, err := m.Store.TakeNamed(ctx, in.DepositID)
	return otcState(d), Failure(ctx, err)
}

// send sends a prompt, unless its time is over.
func (m *Momo) send(ctx context.Context, a exchange.PaymentAttempt, until time.Time) exchange.Submission {
	if isOver(m.Now(), until) {
		return notSent()
	}
	ctx, cancel := bounded(ctx, m.Now(), until)
	defer cancel()
	return m.Operator.SubmitCollection(ctx, a)
}

// isOver reports whether the time in which something may be sent is over; a zero time never is.
func isOver(now, until time.Time) bool { return !until.IsZero() && now.After(until) }

// notSent is the outcome of a request whose time was over before it was sent.
func notSent() exchange.Submission {
	return exchange.Submission{State: exchange.Refused, Code: string(exchange.ClassOverdue), Class: exchange.ClassBusy, Text: "not sent in time"}
}

// bounded ends a request to the operator at a time that was fixed before, if it is not zero: the process may be suspended
// after it has looked at the clock, and the driver sends nothing when the context has ended.
func bounded(ctx context.Context, now, until time.Time) (context.Context, context.CancelFunc) {
	if until.IsZero() {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, until.Sub(now))
}

// waitsFor returns what an object waits for after its payer was prompted.
func waitsFor(s Submitted) string {
	switch {
	case s.State == exchange.Accepted:
		return exchange.WaitPayment
	case s.State == exchange.Unknown:
		return exchange.WaitOutcome
	case s.Transient:
		return exchange.WaitPrompt
	}
	return exchange.WaitRetry
}

// remembered returns the outcome for a row that an earlier run wrote. That run may have left the operator's answer in the
// heartbeat details if it could not store it.
func (m *Momo) remembered(ctx context.Context, a exchange.PaymentAttempt) (Submitted, error) {
	switch a.Status {
	case exchange.AttemptCreated:
		var s submissionDetails
		if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &s) == nil && s.State != "" {
			return keepSubmission(ctx, m.Store, a.ID, s.submission())
		}
		return keepSubmission(ctx, m.Store, a.ID, exchange.Submission{
			State: exchange.Unknown, Text: "the step broke off around the call",
		})
	case exchange.AttemptRefused:
		return Submitted{AttemptID: a.ID, State: exchange.Refused, Code: a.ResultCode}, nil
	case exchange.AttemptUnknown:
		return Submitted{AttemptID: a.ID, State: exchange.Unknown}, nil
	case exchange.AttemptAccepted, exchange.AttemptFailed, exchange.AttemptSucceeded: // the operator accepted it
	}
	return Submitted{AttemptID: a.ID, State: exchange.Accepted}, nil
}

// submissionDetails is the operator's answer as heartbeat details.
type submissionDetails struct {
	State     exchange.SubmissionState `json:"state"`
	Refs      exchange.Refs            `json:"refs"`
	Code      string                   `json:"code,omitempty"`
	Class     exchange.OutcomeClass    `json:"class,omitempty"`
	Transient bool                     `json:"transient,omitempty"`
	Config    bool                     `json:"config,omitempty"`
}

func (h submissionDetails) submission() exchange.Submission {
	return exchange.Submission{State: h.State, Refs: h.Refs, Code: h.Code, Class: h.Class, Transient: h.Transient, Config: h.Config}
}

// leave records the operator's answer as heartbeat details, which costs the server a write.
func leave(ctx context.Context, s exchange.Submission) {
	recordHeartbeat(ctx, submissionDetails{State: s.State, Refs: s.Refs, Code: s.Code, Class: s.Class, Transient: s.Transient, Config: s.Config})
}

// Limits of storing an answer that can't be had a second time.
const (
	keepTries = 5
	keepPause = 200 * time.Millisecond
	keepLimit = 30 * time.Second
)

// keep stores the operator's answer. It retries for a while, also when the server has given the step to another process
// meanwhile, because only this run knows the answer, and leaves it in the heartbeat details for the next run when the first
// try fails. After a crash in between the outcome is unknown, which the callback and the operator's statement resolve.
func keep[R any](ctx context.Context, store func(context.Context, uuid.UUID, exchange.Submission) (R, error), id uuid.UUID, s exchange.Submission) (stored R, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepLimit)
	defer cancel()
	for try := range keepTries {
		if stored, err = store(ctx, id, s); err == nil {
			return stored, nil
		}
		if try == 0 {
			leave(ctx, s)
		}
		if code := exchange.CodeOf(err); code != exchange.CodeUnavailable && code != exchange.CodeInternal {
			return stored, err
		}
		if !pause(ctx, keepPause<<try) {
			break
		}
	}
	return stored, err
}

type submissionStore interface {
	RecordSubmission(ctx context.Context, id uuid.UUID, s exchange.Submission) (exchange.PaymentAttempt, error)
}

// keepSubmission stores the operator's answer about a payment attempt.
func keepSubmission(ctx context.Context, store submissionStore, id uuid.UUID, s exchange.Submission) (Submitted, error) {
	stored, err := keep(ctx, store.RecordSubmission, id, s)
	if err != nil {
		return Submitted{}, err
	}
	if s.State == exchange.Refused && stored.Status != exchange.AttemptRefused { // another run of the step has sent it too
		return Submitted{AttemptID: id, State: exchange.Unknown}, nil
	}
	return Submitted{AttemptID: id, State: s.State, Code: s.Code, Transient: s.Transient, Config: s.Config}, nil
}

// pause waits, and returns false when the context ends first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// newToken returns the unguessable part of an attempt's callback addresses: 256 bits in hexadecimal, which can't contain the
// words that the operator refuses in addresses.
func newToken() (string, error) {
	b := make([]byte, 32)
	if _, err := rand.Read(b); err != nil {
		return "", exchange.Wrap(exchange.CodeInternal, err, "no randomness")
	}
	return hex.EncodeToString(b), nil
}
