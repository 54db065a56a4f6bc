package activities

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
	"kivuko/momo"
)

// PayoutStore is the database interface of payouts.
type PayoutStore interface {
	submissionStore
	commandStore
	Payable(ctx context.Context, of exchange.MomoObject) (exchange.Payable, error)
	// BeginPayout stores an attempt before it is sent. The attempt has no id when nothing must be sent, because an officer has
	// to confirm the payee.
	BeginPayout(ctx context.Context, of exchange.MomoObject, a exchange.PaymentAttempt) (exchange.PaymentAttempt, error)
	Attempt(ctx context.Context, id uuid.UUID) (exchange.PaymentAttempt, error)
	RecordFailure(ctx context.Context, id uuid.UUID, o exchange.Observation) (exchange.PaymentAttempt, error)
	Callbacks(ctx context.Context, attemptID uuid.UUID) ([]exchange.MomoCallback, error)
	CompletePayout(ctx context.Context, of exchange.MomoObject, attemptID uuid.UUID, o exchange.Observation) (exchange.Payable, error)
	FailPayout(ctx context.Context, of exchange.MomoObject, code string) (exchange.Payable, error)
	// SettlePayout ends a payout by a receipt that an officer found: of the attempt, or of a payment by other means.
	SettlePayout(ctx context.Context, of exchange.MomoObject, attemptID uuid.UUID, o exchange.Observation, by exchange.Principal) error
	// BookLostPayout books a payout that was made before the database was put back, by the receipt that two officers attested.
	BookLostPayout(ctx context.Context, of exchange.MomoObject, a exchange.PaymentAttempt, receipt string) error
	// PayoutStopped reports whether nothing may be sent for an object now, not even a payout that was begun.
	PayoutStopped(ctx context.Context, of exchange.MomoObject, provider string) (bool, error)
	// DoubtPayout records that a source claims that a refused payout was made, so that no other begins, or that the operator
	// has denied it since.
	DoubtPayout(ctx context.Context, of exchange.MomoObject, claimed bool) error
	// PaidTwiceBy finds the exception about a payout that was made in addition to another payment of its object.
	PaidTwiceBy(ctx context.Context, attempt uuid.UUID) (exchange.PaymentException, bool, error)
	// CryptoIsHere reports whether the crypto of a failed order has not been returned yet.
	CryptoIsHere(ctx context.Context, orderID uuid.UUID) (bool, error)
	// KeepOrderPayout keeps a payout that was proven late instead of the refund.
	KeepOrderPayout(ctx context.Context, orderID uuid.UUID, by exchange.Principal) (exchange.OrderPayout, error)
	// DeclaredUnpaid reports whether two officers declared an attempt unpaid.
	DeclaredUnpaid(ctx context.Context, attemptID uuid.UUID) (bool, error)
	// ClaimDeclined returns when two officers last declared that the refused payouts of a refund or a withdrawal were not made.
	ClaimDeclined(ctx context.Context, attemptID uuid.UUID) (time.Time, error)
	// ReceiptNeedsSecond reports whether a second officer must confirm the receipt of a payout.
	ReceiptNeedsSecond(ctx context.Context, of exchange.MomoObject, receipt string) (bool, error)
	// PayoutsOf lists the attempts to pay out an object, newest first.
	PayoutsOf(ctx context.Context, of exchange.MomoObject) ([]exchange.PaymentAttempt, error)
	// SavePayoutQuery stores the ticket of a query about a payout, and PayoutQueries lists them.
	SavePayoutQuery(ctx context.Context, attemptID uuid.UUID, ticket string) error
	PayoutQueries(ctx context.Context, attemptID uuid.UUID) ([]string, error)
	// NoteCredential counts that the operator refuses our credential, before the payout is settled.
	NoteCredential(ctx context.Context, attempt uuid.UUID, code string) error
	Breaker(ctx context.Context, provider string) (exchange.Breaker, error)
}

// Payouts pays out orders, refunds and withdrawals by mobile money. It is registered on the momo queue.
type Payouts struct {
	Store    PayoutStore
	Operator MomoOperator
	Provider string
	// CallbackKey is the 32-byte key from which callback tokens are derived. It must not change while a payout is open: the
	// operator's answers would come to an unknown address.
	CallbackKey []byte
	Now         func() time.Time
}

// The states of a payout. Those from PayoutFloatShort on mean that nothing was sent.
const (
	PayoutAccepted   = "accepted"            // the operator accepted it, or may have: query its outcome
	PayoutPaid       = string(momo.Paid)     // proven and booked
	PayoutRefused    = string(momo.Refused)  // definitely not paid
	PayoutPending    = string(momo.Pending)  // nothing is proven
	PayoutDisputed   = string(momo.Disputed) // the sources contradict each other
	PayoutFloatShort = "float_short"         // there is not enough float to pay it from
	PayoutFrozen     = "frozen"              // nothing is paid out while an officer has frozen all outgoing payments
	PayoutInactive   = "inactive_account"    // a party was switched off
	PayoutSuspended  = "suspended"           // nothing is paid out while the operator refuses our credential, or the database is not released
	PayoutHeld       = "held"                // the mobile money operator names another payer: our operator must decide
	PayoutOfficers   = "officers"            // more officers have to decide, by what left meanwhile
	PayoutClaimed    = "claimed"             // a source claims that a refused payout of the object was made
	PayoutTomorrow   = "tomorrow"            // the payee has reached the operator's daily limit
	PayoutOverdue    = "overdue"             // the time for sending it was over
	PayoutUncleared  = "uncleared"           // the sender of the crypto must be screened again
)

// maxQuestions is the number of unanswered queries after which the declaration of two officers counts.
const maxQuestions = 5

// codeNotPaid is the result code of a payout that only status queries prove unpaid: their answers name no code of the
// payout.
const codeNotPaid = "not_paid"

// SubmitPayoutInput asks for the try-th attempt to pay out an object, 1 for the first. Where later ones were begun, the last
// counts. Home is the flow that its callbacks wake.
type SubmitPayoutInput struct {
	Object exchange.MomoObject `json:"object"`
	Try    int                 `json:"try"`
	Home   string              `json:"home"`
	// Until is when nothing is sent any more: a step that hung, or that came back with a database, must not pay what its flow has
	// given up. Zero sets no time.
	Until time.Time `json:"until,omitzero"`
}

// overdue reports whether nothing may be sent any more.
func (in SubmitPayoutInput) overdue(now time.Time) bool { return isOver(now, in.Until) }

// PayoutStep is the result of a step of a payout attempt.
type PayoutStep struct {
	AttemptID uuid.UUID             `json:"attempt_id,omitzero"`
	Try       int                   `json:"try,omitempty"` // that the attempt was sent for, which may be later than the one asked for
	State     string                `json:"state"`
	Code      string                `json:"code,omitempty"`  // of a definite refusal
	Class     exchange.OutcomeClass `json:"class,omitempty"` // of that code
	Asked     bool                  `json:"asked,omitempty"` // a query was sent, whose answer comes as a callback
}

// SubmitPayout reserves the float and sends the payout. The attempt's row is written before the call and the answer after
// it. Its id is the idempotency key at the operator, so a run after a crash sends the same payout again, or queries its
// outcome.
func (p *Payouts) SubmitPayout(ctx context.Context, in SubmitPayoutInput) (PayoutStep, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	owed, err := p.Store.Payable(ctx, in.Object)
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	if owed.Paid {
		return PayoutStep{State: PayoutPaid}, nil // by a late success of the previous try, for example
	}
	fresh := addressed(p.CallbackKey, exchange.PaymentAttempt{
		ID: PayoutID(in.Object.ID, in.Try), Direction: exchange.Payout, Object: in.Object, Provider: p.Provider, Status: exchange.AttemptCreated,
		Amount: owed.Amount, Phone: owed.Phone, Reference: owed.Reference, WorkflowID: in.Home, CreatedAt: p.Now(),
	})
	before, try, err := p.latest(ctx, in.Object.ID, in.Try)
	var step PayoutStep
	switch {
	case err != nil:
		return PayoutStep{}, Failure(ctx, err)
	case try > 0:
		step, err = p.resume(ctx, in, before)
	case owed.Claimed:
		return PayoutStep{State: PayoutClaimed}, nil // the database refuses it too
	case in.overdue(p.Now()):
		return PayoutStep{State: PayoutOverdue, Class: exchange.ClassOverdue}, nil
	default:
		step, err = p.begin(ctx, in, fresh)
	}
	if step.AttemptID != uuid.Nil {
		step.Try = max(try, in.Try)
	}
	return step, err
}

// latest returns the attempt of a try, or of the last try after it, and that try; 0 when there is none. A flow that was
// started again counts its tries from the first: it must find the payout that may have been made, not an earlier one that
// was refused.
func (p *Payouts) latest(ctx context.Context, object uuid.UUID, try int) (last exchange.PaymentAttempt, of int, err error) {
	for ; ; try++ {
		a, err := p.Store.Attempt(ctx, PayoutID(object, try))
		if exchange.CodeOf(err) == exchange.CodeNotFound {
			return last, of, nil
		}
		if err != nil {
			return last, of, err
		}
		last, of = a, try
	}
}

// begin stores an attempt and sends it, unless the database says why not now.
func (p *Payouts) begin(ctx context.Context, in SubmitPayoutInput, fresh exchange.PaymentAttempt) (PayoutStep, error) {
	stored, err := p.Store.BeginPayout(ctx, in.Object, fresh)
	switch code := exchange.CodeOf(err); {
	case code == exchange.CodeInsufficientFunds:
		return PayoutStep{State: PayoutFloatShort, Class: exchange.ClassFloat}, nil
	case errors.Is(err, exchange.ErrFrozen):
		return PayoutStep{State: PayoutFrozen, Class: exchange.ClassFrozen}, nil
	case errors.Is(err, exchange.ErrInactive):
		return PayoutStep{State: PayoutInactive}, nil
	case errors.Is(err, exchange.ErrOfficers):
		return PayoutStep{State: PayoutOfficers, Class: exchange.ClassOfficers}, nil
	case code == exchange.CodeSuspended:
		return p.suspended(ctx)
	case code == exchange.CodeLimitReached:
		return PayoutStep{State: PayoutTomorrow, Class: exchange.ClassPayeeDay}, nil
	case errors.Is(err, exchange.ErrUncleared):
		return PayoutStep{State: PayoutUncleared}, nil
	case err != nil:
		return PayoutStep{}, Failure(ctx, err)
	case stored.ID == uuid.Nil:
		return PayoutStep{State: PayoutHeld}, nil
	case stored.CallbackToken == "": // another run wrote it a moment ago, and may be sending it
		return p.resume(ctx, in, stored)
	case in.overdue(p.Now()): // this run hung after it wrote the row, and has sent nothing
		return p.kept(ctx, stored, notSent())
	}
	sending, cancel := bounded(ctx, p.Now(), in.Until)
	defer cancel()
	return p.kept(ctx, stored, p.Operator.SubmitPayout(sending, stored))
}

// suspended returns why nothing was sent: the database is not released, the breaker is open, or another payout is on trial.
func (p *Payouts) suspended(ctx context.Context) (PayoutStep, error) {
	b, err := p.Store.Breaker(ctx, p.Provider)
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	class := exchange.ClassTrial
	switch b.State() {
	case exchange.BreakerMoved:
		class = exchange.ClassDatabase
	case exchange.BreakerOpen:
		class = exchange.ClassCredential
	case exchange.BreakerTrial, exchange.BreakerClosed:
	}
	return PayoutStep{State: PayoutSuspended, Class: class}, nil
}

// resume continues an attempt whose row an earlier run wrote.
func (p *Payouts) resume(ctx context.Context, in SubmitPayoutInput, a exchange.PaymentAttempt) (PayoutStep, error) {
	switch a.Status {
	case exchange.AttemptSucceeded:
		return PayoutStep{AttemptID: a.ID, State: PayoutPaid}, nil
	case exchange.AttemptRefused, exchange.AttemptFailed:
		return p.refuse(ctx, a, a.ResultCode, a.ResultClass)
	case exchange.AttemptAccepted, exchange.AttemptUnknown:
		return PayoutStep{AttemptID: a.ID, State: PayoutAccepted}, nil
	case exchange.AttemptCreated: // it is unknown whether it was sent
	}
	sent, err := p.sentAgain(ctx, in, a)
	switch {
	case err != nil:
		return PayoutStep{}, Failure(ctx, err)
	case sent.spoken:
		return p.resume(ctx, in, sent.attempt)
	}
	return p.kept(ctx, a, sent.submission)
}

func (p *Payouts) kept(ctx context.Context, a exchange.PaymentAttempt, s exchange.Submission) (PayoutStep, error) {
	leave(ctx, s) // first, because without its ids the operator can't always query a payout
	done, err := keepSubmission(ctx, p.Store, a.ID, s)
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	if done.State == exchange.Refused {
		return p.refuse(ctx, a, done.Code, s.Class)
	}
	return PayoutStep{AttemptID: a.ID, State: PayoutAccepted}, nil
}

// refuse books a definite refusal: it releases the float and returns the refusal's class.
func (p *Payouts) refuse(ctx context.Context, a exchange.PaymentAttempt, code string, class exchange.OutcomeClass) (PayoutStep, error) {
	owed, err := p.Store.FailPayout(ctx, a.Object, code)
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	if owed.Paid {
		return PayoutStep{AttemptID: a.ID, State: PayoutPaid}, nil // by another attempt
	}
	return PayoutStep{AttemptID: a.ID, State: PayoutRefused, Code: code, Class: cmp.Or(class, exchange.ClassDenied)}, nil
}

// CheckPayoutInput asks for a check of an attempt. Questions is the number of status queries so far; Ask sends another one.
type CheckPayoutInput struct {
	AttemptID uuid.UUID `json:"attempt_id"`
	Ask       bool      `json:"ask,omitempty"`
	Questions int       `json:"questions,omitempty"`
}

// CheckPayout checks the outcome of an attempt. It books the attempt as paid or refused when its result and the answer to a
// query agree, or two answers do. A timeout of the operator's queue proves nothing. No number of unanswered queries makes an
// unknown outcome a refusal: the crypto would be returned while the money might still be paid.
func (p *Payouts) CheckPayout(ctx context.Context, in CheckPayoutInput) (PayoutStep, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	a, err := p.Store.Attempt(ctx, in.AttemptID)
	if exchange.CodeOf(err) == exchange.CodeNotFound { // the database was put back to before it began
		return PayoutStep{State: PayoutSuspended, Class: exchange.ClassDatabase}, nil
	}
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	switch a.Status {
	case exchange.AttemptSucceeded:
		return PayoutStep{AttemptID: a.ID, State: PayoutPaid}, nil
	case exchange.AttemptFailed, exchange.AttemptRefused:
		return p.refuse(ctx, a, a.ResultCode, a.ResultClass)
	case exchange.AttemptCreated, exchange.AttemptUnknown, exchange.AttemptAccepted: // still open
	}
	stored, err := p.Store.Callbacks(ctx, a.ID)
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	e := momo.Evidence{Attempt: a}
	if e.Reports, err = p.reports(ctx, a.ID, stored); err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	if err := p.countCredentialRefusal(ctx, e); err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	asked := false
	if in.Ask {
		if asked, err = p.ask(ctx, &e); err != nil {
			return PayoutStep{}, Failure(ctx, err)
		}
	}
	step, err := p.conclude(ctx, in, a, e)
	step.Asked = asked
	return step, Failure(ctx, err)
}

// countCredentialRefusal counts a result that refuses our credential as soon as it arrives, before a query would be refused
// too.
func (p *Payouts) countCredentialRefusal(ctx context.Context, e momo.Evidence) error {
	result := momo.Judge(e).Result
	if result.State != exchange.SeenFailed || !result.Class.StopsPayouts() {
		return nil
	}
	return p.Store.NoteCredential(ctx, e.Attempt.ID, result.Code)
}

// ask queries the outcome of an attempt, unless the operator refuses our credential: more queries would lock it. An attempt
// with an unknown outcome and no evidence may never have arrived, so it is first sent again under its own id while the
// operator certainly remembers the id.
func (p *Payouts) ask(ctx context.Context, e *momo.Evidence) (bool, error) {
	breaker, err := p.Store.Breaker(ctx, p.Provider)
	if err != nil || breaker.State() == exchange.BreakerOpen {
		return false, err
	}
	a := e.Attempt
	if a.Status == exchange.AttemptUnknown && momo.Judge(*e).Unheard {
		s, err := p.resend(ctx, a, time.Time{})
		if err == nil && s.State == exchange.Accepted {
			_, err = keepSubmission(ctx, p.Store, a.ID, s)
		}
		if err != nil {
			return false, err
		}
	}
	answer, err := p.query(ctx, a)
	if answer.State == exchange.SeenSucceeded || answer.State == exchange.SeenFailed {
		e.Reports = append(e.Reports, answer)
	}
	return answer.State != exchange.SeenNoAnswer, err
}

func (p *Payouts) conclude(ctx context.Context, in CheckPayoutInput, a exchange.PaymentAttempt, e momo.Evidence) (PayoutStep, error) {
	v := momo.Judge(e)
	if (v.State == momo.Pending || v.Denied) && in.Questions > maxQuestions {
		var err error
		if v, err = p.declared(ctx, a.ID, v); err != nil {
			return PayoutStep{}, err
		}
	}
	o := v.Proof
	switch v.State {
	case momo.Paid:
		if _, err := p.Store.CompletePayout(ctx, a.Object, a.ID, o); err != nil {
			return PayoutStep{}, err
		}
	case momo.Refused:
		if o.Source == exchange.SourceQuery {
			o.Code, o.Class = codeNotPaid, exchange.ClassDenied
		}
		if _, err := p.Store.RecordFailure(ctx, a.ID, o); err != nil {
			return PayoutStep{}, err
		}
		return p.refuse(ctx, a, o.Code, o.Class)
	case momo.Disputed:
		activity.GetLogger(ctx).Error("the sources of a payout contradict each other", "attempt", a.ID)
	default: // still open
	}
	return PayoutStep{AttemptID: a.ID, State: string(v.State), Code: o.Code}, nil
}

// declared accepts the attestation of two officers that an attempt was not paid. If a source claims that it was paid, and the
// operator has not denied that twice since, the attestation is a dispute and not a refusal.
func (p *Payouts) declared(ctx context.Context, attempt uuid.UUID, v momo.Verdict) (momo.Verdict, error) {
	said, err := p.Store.DeclaredUnpaid(ctx, attempt)
	switch {
	case err != nil || !said:
		return v, err
	case v.Claimed && !v.Denied:
		return momo.Verdict{State: momo.Disputed, Proof: v.Result}, nil
	}
	return momo.Verdict{State: momo.Refused, Proof: exchange.Observation{
		State: exchange.SeenFailed, Code: string(exchange.ClassDeclared), Class: exchange.ClassDeclared, Text: "two officers declared it unpaid", At: p.Now(),
	}}, nil
}
