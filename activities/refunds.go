package activities

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// RefundStore is what refunds need of the database.
type RefundStore interface {
	credentialStore
	Refund(ctx context.Context, id uuid.UUID) (exchange.Refund, error)
	BeginRefundPayout(ctx context.Context, refundID uuid.UUID, a exchange.PaymentAttempt) (exchange.PaymentAttempt, error)
	Attempt(ctx context.Context, id uuid.UUID) (exchange.PaymentAttempt, error)
	RecordSubmission(ctx context.Context, id uuid.UUID, s exchange.Submission) (exchange.PaymentAttempt, error)
	RecordFailure(ctx context.Context, id uuid.UUID, o exchange.Observation) (exchange.PaymentAttempt, error)
	Callbacks(ctx context.Context, attemptID uuid.UUID) ([]exchange.MomoCallback, error)
	CompleteRefund(ctx context.Context, refundID, attemptID uuid.UUID, o exchange.Observation) error
	ConfirmPayee(ctx context.Context, refundID uuid.UUID, by exchange.Principal) error
	FailRefund(ctx context.Context, refundID uuid.UUID, detail string) error
	ResolveRefund(ctx context.Context, refundID uuid.UUID, reference string, by exchange.Principal) error
	RefundException(ctx context.Context, exceptionID uuid.UUID, by exchange.Principal) (exchange.Refund, error)
	// PaidTwiceBy finds the exception about a payout that was made beside another payment of its refund.
	PaidTwiceBy(ctx context.Context, attempt uuid.UUID) (exchange.PaymentException, bool, error)
	ResolveException(ctx context.Context, id uuid.UUID, to exchange.ExceptionStatus, note string, by exchange.Principal) error
	UseCommand(ctx context.Context, id uuid.UUID, objectType string, objectID uuid.UUID) (exchange.OperatorCommand, error)
}

// Refunds gives mobile money back. It is registered on the momo queue.
type Refunds struct {
	Store    RefundStore
	Operator MomoOperator
	Provider string
	// CallbackKey is what the callback tokens of payouts are derived from, 32 bytes. It must not change
	// while a payout is open: the operator's answers would come to an address that is nobody's.
	CallbackKey []byte
	Now         func() time.Time
}

// token is the unguessable part of a payout's callback addresses.
func (r *Refunds) token(attempt uuid.UUID) string { return payoutToken(r.CallbackKey, attempt) }

// The states of a refund's payout.
const (
	RefundAccepted   = "accepted"    // the operator took it, or may have: ask what became of it
	RefundPaid       = "paid"        // proven and booked
	RefundRefused    = "refused"     // definitely not paid
	RefundHeld       = "held"        // the operator names another payer: a person must decide
	RefundFloatShort = "float_short" // there is not enough float to pay it from
	RefundPending    = "pending"     // nothing is proven
	RefundDisputed   = "disputed"    // the witnesses contradict each other
	RefundSuspended  = "suspended"   // nothing is paid out while the operator refuses our credential
)

// SubmitRefundInput asks for the try-th payout of a refund, 1 for the first.
type SubmitRefundInput struct {
	RefundID uuid.UUID `json:"refund_id"`
	Try      int       `json:"try"`
	Home     string    `json:"home"`
}

// SubmitRefund reserves the float and sends the payout.
func (r *Refunds) SubmitRefund(ctx context.Context, in SubmitRefundInput) (PayoutStep, error) {
	ctx, stop := beat(ctx)
	defer stop()
	refund, err := r.Store.Refund(ctx, in.RefundID)
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	if refund.Status == exchange.RefundCompleted {
		return PayoutStep{State: RefundPaid}, nil
	}
	id := PayoutID(refund.ID, in.Try)
	fresh := exchange.PaymentAttempt{
		ID: id, Direction: exchange.Payout, OrderID: refund.OrderID, RefundID: refund.ID,
		Provider: r.Provider, Status: exchange.AttemptCreated, Amount: refund.Amount, Phone: refund.Phone,
		Reference: "Refund", CallbackToken: r.token(id), WorkflowID: in.Home, CreatedAt: r.Now(),
	}
	before, err := r.Store.Attempt(ctx, fresh.ID)
	if err == nil {
		return r.resume(ctx, refund, before)
	}
	if exchange.CodeOf(err) != exchange.CodeNotFound {
		return PayoutStep{}, Failure(ctx, err)
	}
	stored, err := r.Store.BeginRefundPayout(ctx, refund.ID, fresh)
	if exchange.CodeOf(err) == exchange.CodeInsufficientFunds {
		return PayoutStep{State: RefundFloatShort}, nil
	}
	if exchange.CodeOf(err) == exchange.CodeSuspended {
		return PayoutStep{State: RefundSuspended}, nil
	}
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	if stored.ID == uuid.Nil {
		return PayoutStep{State: RefundHeld}, nil
	}
	if stored.CallbackToken == "" { // another run wrote it a moment ago, and may be sending it
		return r.resume(ctx, refund, stored)
	}
	return r.kept(ctx, refund, stored, r.Operator.SubmitPayout(ctx, stored))
}

// resume goes on with a payout whose row an earlier run wrote.
func (r *Refunds) resume(ctx context.Context, refund exchange.Refund, a exchange.PaymentAttempt) (PayoutStep, error) {
	switch a.Status {
	case exchange.AttemptSucceeded:
		return PayoutStep{AttemptID: a.ID, State: RefundPaid}, nil
	case exchange.AttemptRefused, exchange.AttemptFailed:
		return r.refuse(ctx, refund.ID, a, a.ResultCode)
	case exchange.AttemptAccepted, exchange.AttemptUnknown:
		return PayoutStep{AttemptID: a.ID, State: RefundAccepted}, nil
	case exchange.AttemptCreated: // nobody knows whether it was sent
	}
	sent, err := sentAgain(ctx, r.Store, r.Operator, r.CallbackKey, r.Now(), a)
	switch {
	case err != nil:
		return PayoutStep{}, Failure(ctx, err)
	case sent.spoken:
		return r.resume(ctx, refund, sent.attempt)
	}
	return r.kept(ctx, refund, a, sent.submission)
}

func (r *Refunds) kept(ctx context.Context, refund exchange.Refund, a exchange.PaymentAttempt, s exchange.Submission) (PayoutStep, error) {
	leave(ctx, s) // first: of a payout without its names the operator can't always be asked
	done, err := keepSubmission(ctx, r.Store, a.ID, s)
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	if done.State == exchange.Refused {
		return r.refuse(ctx, refund.ID, a, done.Code)
	}
	return PayoutStep{AttemptID: a.ID, State: RefundAccepted}, nil
}

// refuse books a definite refusal: the float is free again and a person decides.
func (r *Refunds) refuse(ctx context.Context, refundID uuid.UUID, a exchange.PaymentAttempt, code string) (PayoutStep, error) {
	refund, err := r.Store.Refund(ctx, refundID)
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	if refund.Status == exchange.RefundProcessing || refund.Status == exchange.RefundCompleted {
		if err := r.Store.FailRefund(ctx, refundID, "refused: "+code); err != nil {
			return PayoutStep{}, Failure(ctx, err)
		}
	}
	if refund.Status == exchange.RefundCompleted {
		return PayoutStep{AttemptID: a.ID, State: RefundPaid}, nil // by another payout
	}
	return PayoutStep{AttemptID: a.ID, State: RefundRefused, Code: code}, nil
}

// CheckRefundInput asks for a look at a payout. Questions is how often the operator was asked for its
// status so far; Ask asks once more.
type CheckRefundInput struct {
	RefundID  uuid.UUID `json:"refund_id"`
	AttemptID uuid.UUID `json:"attempt_id"`
	Ask       bool      `json:"ask,omitempty"`
	Questions int       `json:"questions,omitempty"`
}

// CheckRefund looks for what became of a payout. Its result and the operator's answer to a question must
// agree, or two answers must; then it is booked as paid or as refused. A timeout of the operator's
// queue is neither.
func (r *Refunds) CheckRefund(ctx context.Context, in CheckRefundInput) (PayoutStep, error) {
	ctx, stop := beat(ctx)
	defer stop()
	a, err := r.Store.Attempt(ctx, in.AttemptID)
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	switch a.Status {
	case exchange.AttemptSucceeded:
		return PayoutStep{AttemptID: a.ID, State: RefundPaid}, nil
	case exchange.AttemptFailed, exchange.AttemptRefused:
		return r.refuse(ctx, in.RefundID, a, a.ResultCode)
	case exchange.AttemptCreated, exchange.AttemptUnknown, exchange.AttemptAccepted: // still open
	}
	stored, err := r.Store.Callbacks(ctx, a.ID)
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	e := listen(ctx, r.Operator, a, stored)
	e.questions = in.Questions
	ask, err := e.mayAsk(ctx, r.Store, r.Provider, in.Ask)
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	if ask {
		a.CallbackToken = r.token(a.ID)
		answer := r.Operator.Resolve(ctx, a)
		if answer.State == exchange.SeenSucceeded || answer.State == exchange.SeenFailed {
			e.answers = append(e.answers, answer)
		}
	}
	step, err := r.conclude(ctx, in.RefundID, a, e)
	step.Asked = in.Ask
	return step, Failure(ctx, err)
}

func (r *Refunds) conclude(ctx context.Context, refundID uuid.UUID, a exchange.PaymentAttempt, e payoutEvidence) (PayoutStep, error) {
	state, o := e.judge()
	switch state {
	case RefundPaid:
		if err := r.Store.CompleteRefund(ctx, refundID, a.ID, o); err != nil {
			return PayoutStep{}, err
		}
	case RefundRefused:
		if _, err := r.Store.RecordFailure(ctx, a.ID, o); err != nil {
			return PayoutStep{}, err
		}
		return r.refuse(ctx, refundID, a, o.Code)
	}
	return PayoutStep{AttemptID: a.ID, State: state, Code: o.Code}, nil
}

// SettleRefundInput ends a refund that was paid by other means.
type SettleRefundInput struct {
	RefundID  uuid.UUID `json:"refund_id"`
	AttemptID uuid.UUID `json:"attempt_id,omitzero"`
	Proof     Proof     `json:"proof"`
}

// SettleRefund completes a refund by command. The command's note is the receipt: of the payout that
// nobody else could prove, or, after a definite refusal, of a payment by other means.
func (r *Refunds) SettleRefund(ctx context.Context, in SettleRefundInput) error {
	ctx, stop := beat(ctx)
	defer stop()
	c, err := r.Store.UseCommand(ctx, in.Proof.CommandID, in.Proof.Object.Type, in.Proof.Object.ID)
	if err != nil {
		return Failure(ctx, err)
	}
	receipt := exchange.ReceiptIn(c.Note)
	if receipt == "" {
		return Failure(ctx, exchange.Invalid(exchange.FieldError{Pointer: "/note", Code: "receipt", Message: "must be the receipt of the payment"}))
	}
	refund, err := r.Store.Refund(ctx, in.RefundID)
	if err != nil {
		return Failure(ctx, err)
	}
	if refund.Status == exchange.RefundProcessing {
		return Failure(ctx, r.Store.CompleteRefund(ctx, in.RefundID, in.AttemptID, exchange.Observation{
			State: exchange.SeenSucceeded, Receipt: receipt, Text: "by command " + c.ID.String(), At: r.Now(),
		}))
	}
	return Failure(ctx, r.Store.ResolveRefund(ctx, in.RefundID, receipt, in.Proof.Principal()))
}

// ConfirmPayeeInput lets a refund go to the phone that was prompted, although the operator names another
// payer.
type ConfirmPayeeInput struct {
	RefundID uuid.UUID `json:"refund_id"`
	Proof    Proof     `json:"proof"`
}

// ConfirmPayee writes an operator's decision about a doubtful payee. One that was given about an exception asks for a
// refund and says nothing of the payee: of two persons who ask at once, the second must not confirm it.
func (r *Refunds) ConfirmPayee(ctx context.Context, in ConfirmPayeeInput) error {
	ctx, stop := beat(ctx)
	defer stop()
	if in.Proof.Object.Type == ObjectException {
		return Failure(ctx, exchange.Errorf(exchange.CodeStateConflict, "The refund is open already. Its payee is confirmed at the order."))
	}
	return Failure(ctx, r.Store.ConfirmPayee(ctx, in.RefundID, in.Proof.Principal()))
}

// ExceptionInput decides about money that does not fit.
type ExceptionInput struct {
	ExceptionID uuid.UUID `json:"exception_id"`
	Proof       Proof     `json:"proof"`
}

// RefundException opens the refund of money that does not fit.
func (r *Refunds) RefundException(ctx context.Context, in ExceptionInput) (RefundOpened, error) {
	ctx, stop := beat(ctx)
	defer stop()
	refund, err := r.Store.RefundException(ctx, in.ExceptionID, in.Proof.Principal())
	return RefundOpened{RefundID: refund.ID, OrderState: OrderState{OrderID: refund.OrderID}}, Failure(ctx, err)
}

// ResolveException accepts money that does not fit as it is, with the command's note as the reason.
func (r *Refunds) ResolveException(ctx context.Context, in ExceptionInput) error {
	ctx, stop := beat(ctx)
	defer stop()
	c, err := r.Store.UseCommand(ctx, in.Proof.CommandID, in.Proof.Object.Type, in.Proof.Object.ID)
	if err != nil {
		return Failure(ctx, err)
	}
	return Failure(ctx, r.Store.ResolveException(ctx, in.ExceptionID, exchange.ExcAccepted, c.Note, in.Proof.Principal()))
}
