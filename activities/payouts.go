package activities

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
)

// PayoutStore is what payouts of orders need of the database.
type PayoutStore interface {
	OrderPayout(ctx context.Context, orderID uuid.UUID) (exchange.OrderPayout, error)
	BeginOrderPayout(ctx context.Context, orderID uuid.UUID, a exchange.PaymentAttempt) (exchange.PaymentAttempt, error)
	Attempt(ctx context.Context, id uuid.UUID) (exchange.PaymentAttempt, error)
	RecordSubmission(ctx context.Context, id uuid.UUID, s exchange.Submission) (exchange.PaymentAttempt, error)
	RecordFailure(ctx context.Context, id uuid.UUID, o exchange.Observation) (exchange.PaymentAttempt, error)
	Callbacks(ctx context.Context, attemptID uuid.UUID) ([]exchange.MomoCallback, error)
	CompleteOrderPayout(ctx context.Context, orderID, attemptID uuid.UUID, o exchange.Observation) (exchange.OrderPayout, error)
	FailOrderPayout(ctx context.Context, orderID uuid.UUID, code string) (exchange.OrderPayout, error)
	// DoubtOrderPayout notes that a payout which was taken for refused is claimed to have been made, or no more.
	DoubtOrderPayout(ctx context.Context, orderID uuid.UUID, claimed bool) error
	PaidTwiceBy(ctx context.Context, attempt uuid.UUID) (exchange.PaymentException, bool, error)
	// CryptoIsHere tells whether the crypto of an order that was given up has not gone back yet.
	CryptoIsHere(ctx context.Context, orderID uuid.UUID) (bool, error)
	// KeepOrderPayout lets a payout that proved true late stand instead of the refund.
	KeepOrderPayout(ctx context.Context, orderID uuid.UUID, by exchange.Principal) (exchange.OrderPayout, error)
	// DeclaredUnpaid tells whether two persons declared that an attempt was not made.
	DeclaredUnpaid(ctx context.Context, attemptID uuid.UUID) (bool, error)
	// ReceiptNeedsSecond tells whether one person's word that the order's payout was made is not enough.
	ReceiptNeedsSecond(ctx context.Context, orderID uuid.UUID, receipt string) (bool, error)
	// Payouts are the attempts to pay an order, or its refunds, out, the newest first.
	Payouts(ctx context.Context, orderID uuid.UUID) ([]exchange.PaymentAttempt, error)
	UseCommand(ctx context.Context, id uuid.UUID, objectType string, objectID uuid.UUID) (exchange.OperatorCommand, error)
	// NoteCredential counts that the operator refuses our credential, before the payout is settled.
	NoteCredential(ctx context.Context, attempt uuid.UUID, code string) error
	Breaker(ctx context.Context, provider string) (exchange.Breaker, error)
}

// Payouts pays orders out by mobile money. It is registered on the momo queue.
type Payouts struct {
	Store    PayoutStore
	Operator MomoOperator
	Provider string
	// CallbackKey is what the callback tokens of payouts are derived from, as of Refunds.
	CallbackKey []byte
	Now         func() time.Time
}

// The classes of definite refusals: what may be done about one follows from its class.
const (
	ClassPayee      = "payee"       // this payee can't be paid, now or later
	ClassPayeeLimit = "payee_limit" // the payee's account has reached a limit of its own
	ClassFloat      = "float"       // our utility account is short
	ClassBusy       = "busy"        // the operator was busy or could not be reached
	ClassConfig     = "config"      // our own set-up
	ClassCredential = "credential"  // our credential: nothing more may be sent with it
	ClassTrial      = "trial"       // nothing was sent: another payout is on trial, after our credential was refused
	ClassDenied     = "denied"      // definitely not paid, for a reason that nobody tells
	ClassDeclared   = "declared"    // two persons say that it was not made, and nobody proves it
	ClassPayeeDay   = "payee_day"   // nothing was sent: the payee has got what the operator pays to one in a day
)

// PayoutClaimed says that nothing was sent, because a payout of the order that was refused is said to have been made.
const PayoutClaimed = "claimed"

// PayoutTomorrow says that nothing was sent, because the operator pays the payee no more today.
const PayoutTomorrow = "tomorrow"

// PayoutUncleared says that nothing was sent, because who sent the crypto has to be looked at again.
const PayoutUncleared = "uncleared"

// codeNotPaid is the result code of a payout that status questions alone prove not to be paid: their answers name no code
// of the payout.
const codeNotPaid = "not_paid"

// RefusalClass tells what a definite refusal with a result code means. Codes that the operator's catalogue does not hold
// are no refusals to begin with.
func RefusalClass(code string) string {
	for class, codes := range map[string][]string{
		ClassPayee:      {"2", "3", "2040", "SFC_IC0003"},
		ClassPayeeLimit: {"4", "8"},
		ClassFloat:      {exchange.CodeFloatShort},
		ClassBusy:       {"17", "26", "token", "not_sent"},
		ClassConfig:     {"11", "21", "2006", "2028", "invalid", "400.002.02", "400.002.05", "400.003.02", "404.001.01", "404.002.01", "404.003.01", "405.001"},
	} {
		if slices.Contains(codes, code) {
			return class
		}
	}
	switch {
	case exchange.CredentialCode(code):
		return ClassCredential
	case code == exchange.CodeDeclared:
		return ClassDeclared
	}
	return ClassDenied
}

// SubmitPayoutInput asks for the try-th attempt to pay an order out, 1 for the first. Home is the flow that its
// callbacks wake.
type SubmitPayoutInput struct {
	OrderID uuid.UUID `json:"order_id"`
	Try     int       `json:"try"`
	Home    string    `json:"home"`
}

// PayoutStep is what a step found of an attempt to pay an order out. Its states are those of refunds' payouts.
type PayoutStep struct {
	AttemptID uuid.UUID `json:"attempt_id,omitzero"`
	State     string    `json:"state"`
	Code      string    `json:"code,omitempty"`  // of a definite refusal
	Class     string    `json:"class,omitempty"` // of that code
	Asked     bool      `json:"asked,omitempty"` // a question is out whose answer comes as a callback
}

// SubmitPayout reserves the float and sends the payout. The row of the attempt is written before the call and the answer
// after it; its id is the operator's key of idempotency, so that a run after a crash sends the same payout again, or asks
// what became of it.
func (p *Payouts) SubmitPayout(ctx context.Context, in SubmitPayoutInput) (PayoutStep, error) {
	ctx, stop := beat(ctx)
	defer stop()
	payout, err := p.Store.OrderPayout(ctx, in.OrderID)
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	if payout.Status == exchange.PayoutCompleted {
		return PayoutStep{AttemptID: payout.PaidBy, State: RefundPaid}, nil // by a late success of the try before, for example
	}
	fresh := exchange.PaymentAttempt{
		ID: PayoutID(in.OrderID, in.Try), Direction: exchange.Payout, OrderID: in.OrderID, Provider: p.Provider, Status: exchange.AttemptCreated,
		Amount: payout.Amount, Phone: payout.Phone, Reference: exchange.Order{ID: in.OrderID}.PaymentReference(), WorkflowID: in.Home, CreatedAt: p.Now(),
	}
	fresh.CallbackToken = payoutToken(p.CallbackKey, fresh.ID)
	before, err := p.Store.Attempt(ctx, fresh.ID)
	if err == nil {
		return p.resume(ctx, before)
	}
	if exchange.CodeOf(err) != exchange.CodeNotFound {
		return PayoutStep{}, Failure(ctx, err)
	}
	if payout.Claimed {
		return PayoutStep{State: PayoutClaimed}, nil // the database refuses it too
	}
	stored, err := p.Store.BeginOrderPayout(ctx, in.OrderID, fresh)
	switch code := exchange.CodeOf(err); {
	case code == exchange.CodeInsufficientFunds:
		return PayoutStep{State: RefundFloatShort, Class: ClassFloat}, nil
	case code == exchange.CodeSuspended:
		return p.suspended(ctx)
	case code == exchange.CodeLimitReached:
		return PayoutStep{State: PayoutTomorrow, Class: ClassPayeeDay}, nil
	case errors.Is(err, exchange.ErrUncleared):
		return PayoutStep{State: PayoutUncleared}, nil
	case err != nil:
		return PayoutStep{}, Failure(ctx, err)
	}
	if stored.CallbackToken == "" { // another run wrote it a moment ago, and may be sending it
		return p.resume(ctx, stored)
	}
	return p.kept(ctx, stored, p.Operator.SubmitPayout(ctx, stored))
}

// suspended says whether nothing was sent because the breaker is open, or because another payout is on trial.
func (p *Payouts) suspended(ctx context.Context) (PayoutStep, error) {
	b, err := p.Store.Breaker(ctx, p.Provider)
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	if b.State() == exchange.BreakerOpen {
		return PayoutStep{State: RefundSuspended, Class: ClassCredential}, nil
	}
	return PayoutStep{State: RefundSuspended, Class: ClassTrial}, nil
}

// resume goes on with an attempt whose row an earlier run wrote.
func (p *Payouts) resume(ctx context.Context, a exchange.PaymentAttempt) (PayoutStep, error) {
	switch a.Status {
	case exchange.AttemptSucceeded:
		return PayoutStep{AttemptID: a.ID, State: RefundPaid}, nil
	case exchange.AttemptRefused, exchange.AttemptFailed:
		return p.refuse(ctx, a, a.ResultCode)
	case exchange.AttemptAccepted, exchange.AttemptUnknown:
		return PayoutStep{AttemptID: a.ID, State: RefundAccepted}, nil
	case exchange.AttemptCreated: // nobody knows whether it was sent
	}
	sent, err := sentAgain(ctx, p.Store, p.Operator, p.CallbackKey, p.Now(), a)
	switch {
	case err != nil:
		return PayoutStep{}, Failure(ctx, err)
	case sent.spoken:
		return p.resume(ctx, sent.attempt)
	}
	return p.kept(ctx, a, sent.submission)
}

func (p *Payouts) kept(ctx context.Context, a exchange.PaymentAttempt, s exchange.Submission) (PayoutStep, error) {
	leave(ctx, s) // first: of a payout without its names the operator can't always be asked
	done, err := keepSubmission(ctx, p.Store, a.ID, s)
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	if done.State == exchange.Refused {
		return p.refuse(ctx, a, done.Code)
	}
	return PayoutStep{AttemptID: a.ID, State: RefundAccepted}, nil
}

// refuse books a definite refusal: the float is free again, and what follows depends on the class.
func (p *Payouts) refuse(ctx context.Context, a exchange.PaymentAttempt, code string) (PayoutStep, error) {
	payout, err := p.Store.FailOrderPayout(ctx, a.OrderID, code)
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	if payout.Status == exchange.PayoutCompleted {
		return PayoutStep{AttemptID: a.ID, State: RefundPaid}, nil // by another attempt
	}
	return PayoutStep{AttemptID: a.ID, State: RefundRefused, Code: code, Class: RefusalClass(code)}, nil
}

// CheckPayoutInput asks for a look at an attempt. Questions is how often the operator was asked for its status so far;
// Ask asks once more.
type CheckPayoutInput struct {
	OrderID   uuid.UUID `json:"order_id"`
	AttemptID uuid.UUID `json:"attempt_id"`
	Ask       bool      `json:"ask,omitempty"`
	Questions int       `json:"questions,omitempty"`
}

// CheckPayout looks for what became of an attempt. Its result and the operator's answer to a question must agree, or two
// answers must; then it is booked as paid or as refused. A timeout of the operator's queue is neither, and no number of
// unanswered questions makes an unknown outcome a refusal: the crypto would go back, and the money might be paid still.
func (p *Payouts) CheckPayout(ctx context.Context, in CheckPayoutInput) (PayoutStep, error) {
	ctx, stop := beat(ctx)
	defer stop()
	a, err := p.Store.Attempt(ctx, in.AttemptID)
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	switch a.Status {
	case exchange.AttemptSucceeded:
		return PayoutStep{AttemptID: a.ID, State: RefundPaid}, nil
	case exchange.AttemptFailed, exchange.AttemptRefused:
		return p.refuse(ctx, a, a.ResultCode)
	case exchange.AttemptCreated, exchange.AttemptUnknown, exchange.AttemptAccepted: // still open
	}
	stored, err := p.Store.Callbacks(ctx, a.ID)
	if err != nil {
		return PayoutStep{}, Failure(ctx, err)
	}
	e := listen(ctx, p.Operator, a, stored)
	e.questions, e.strict = in.Questions, true
	if err := p.heedCredential(ctx, e); err != nil {
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

// heedCredential counts a result that says that our credential was refused as soon as it is heard, before any question
// that would be refused too.
func (p *Payouts) heedCredential(ctx context.Context, e payoutEvidence) error {
	if e.result.State != exchange.SeenFailed || !exchange.CredentialCode(e.result.Code) {
		return nil
	}
	return p.Store.NoteCredential(ctx, e.attempt.ID, e.result.Code)
}

// ask asks the operator what became of an attempt, unless it refuses our credential: more questions would lock it. One of
// unknown outcome about which nobody has said anything may never have arrived, so it is sent again under its own id while
// the operator is sure to remember that.
func (p *Payouts) ask(ctx context.Context, e *payoutEvidence) (bool, error) {
	breaker, err := p.Store.Breaker(ctx, p.Provider)
	if err != nil || breaker.State() == exchange.BreakerOpen {
		return false, err
	}
	a := e.attempt
	if a.Status == exchange.AttemptUnknown && e.silent() {
		if s := resend(ctx, p.Operator, p.CallbackKey, p.Now(), a); s.State == exchange.Accepted {
			if _, err := keepSubmission(ctx, p.Store, a.ID, s); err != nil {
				return false, err
			}
		}
	}
	a.CallbackToken = payoutToken(p.CallbackKey, a.ID)
	answer := p.Operator.Resolve(ctx, a)
	if answer.State == exchange.SeenSucceeded || answer.State == exchange.SeenFailed {
		e.answers = append(e.answers, answer)
	}
	return answer.State != exchange.SeenNoAnswer, nil
}

func (p *Payouts) conclude(ctx context.Context, in CheckPayoutInput, a exchange.PaymentAttempt, e payoutEvidence) (PayoutStep, error) {
	state, o := e.judge()
	if state == RefundPending && in.Questions > maxQuestions {
		var err error
		if state, o, err = p.declared(ctx, e); err != nil {
			return PayoutStep{}, err
		}
	}
	switch state {
	case RefundPaid:
		if _, err := p.Store.CompleteOrderPayout(ctx, in.OrderID, a.ID, o); err != nil {
			return PayoutStep{}, err
		}
	case RefundRefused:
		if o.Witness == exchange.WitnessQuery {
			o.Code = codeNotPaid
		}
		if _, err := p.Store.RecordFailure(ctx, a.ID, o); err != nil {
			return PayoutStep{}, err
		}
		return p.refuse(ctx, a, o.Code)
	case RefundDisputed:
		activity.GetLogger(ctx).Error("the witnesses of a payout contradict each other", "attempt", a.ID)
	}
	return PayoutStep{AttemptID: a.ID, State: state, Code: o.Code}, nil
}

// declared heeds two persons who say that an attempt of which the operator says nothing was not made. Against a voice
// that says that it was, their word is a contradiction and no refusal.
func (p *Payouts) declared(ctx context.Context, e payoutEvidence) (string, exchange.Observation, error) {
	said, err := p.Store.DeclaredUnpaid(ctx, e.attempt.ID)
	switch {
	case err != nil || !said:
		return RefundPending, exchange.Observation{}, err
	case e.claimed():
		return RefundDisputed, e.result, nil
	}
	return RefundRefused, exchange.Observation{State: exchange.SeenFailed, Code: exchange.CodeDeclared, Text: "two persons declared that it was not made", At: p.Now()}, nil
}

// SettlePayoutInput ends a payout that a person found at the operator.
type SettlePayoutInput struct {
	OrderID   uuid.UUID `json:"order_id"`
	AttemptID uuid.UUID `json:"attempt_id"`
	Proof     Proof     `json:"proof"`
}

// SettlePayout completes a payout by command. The command's note is the operator's receipt of it.
func (p *Payouts) SettlePayout(ctx context.Context, in SettlePayoutInput) error {
	ctx, stop := beat(ctx)
	defer stop()
	o, err := p.vouched(ctx, in.OrderID, in.Proof)
	if err == nil {
		_, err = p.Store.CompleteOrderPayout(ctx, in.OrderID, in.AttemptID, o)
	}
	return Failure(ctx, err)
}

// KeepPayoutInput lets a payout stand that proved true after the order was given up.
type KeepPayoutInput struct {
	OrderID uuid.UUID `json:"order_id"`
	Proof   Proof     `json:"proof"`
}

// KeepPayout lets a payout stand instead of the refund of its order. The command's note is the receipt: of the attempt
// that was proven, or of the newest one, which it proves.
func (p *Payouts) KeepPayout(ctx context.Context, in KeepPayoutInput) error {
	ctx, stop := beat(ctx)
	defer stop()
	o, err := p.vouched(ctx, in.OrderID, in.Proof)
	if err != nil {
		return Failure(ctx, err)
	}
	attempts, err := p.Store.Payouts(ctx, in.OrderID)
	if err != nil {
		return Failure(ctx, err)
	}
	own := slices.DeleteFunc(attempts, func(a exchange.PaymentAttempt) bool { return a.RefundID != uuid.Nil })
	if len(own) == 0 {
		return Failure(ctx, exchange.Errorf(exchange.CodeStateConflict, "Nothing of the order was ever paid out."))
	}
	if !slices.ContainsFunc(own, func(a exchange.PaymentAttempt) bool {
		return a.Status == exchange.AttemptSucceeded && a.Receipt == o.Receipt
	}) {
		if _, err := p.Store.CompleteOrderPayout(ctx, in.OrderID, own[0].ID, o); err != nil {
			return Failure(ctx, err)
		}
	}
	_, err = p.Store.KeepOrderPayout(ctx, in.OrderID, in.Proof.Principal())
	return Failure(ctx, err)
}

// vouched is a payout that a person found by its receipt. Above the value for one person a second one has to have
// confirmed the same receipt: CodeForbidden.
func (p *Payouts) vouched(ctx context.Context, order uuid.UUID, proof Proof) (exchange.Observation, error) {
	o, err := vouchedReceipt(ctx, p.Store, proof, p.Now())
	if err != nil {
		return o, err
	}
	second, err := p.Store.ReceiptNeedsSecond(ctx, order, o.Receipt)
	if err == nil && second {
		err = exchange.Errorf(exchange.CodeForbidden, "A payout as large as this one is settled by its receipt when a second person has confirmed it.")
	}
	return o, err
}

// commandStore uses an operator's command up.
type commandStore interface {
	UseCommand(ctx context.Context, id uuid.UUID, objectType string, objectID uuid.UUID) (exchange.OperatorCommand, error)
}

// vouchedReceipt is a payment that a person found by its receipt, which is the note of the command.
func vouchedReceipt(ctx context.Context, store commandStore, proof Proof, now time.Time) (exchange.Observation, error) {
	c, err := store.UseCommand(ctx, proof.CommandID, proof.Object.Type, proof.Object.ID)
	if err != nil {
		return exchange.Observation{}, err
	}
	receipt := exchange.ReceiptIn(c.Note)
	if receipt == "" {
		return exchange.Observation{}, exchange.Invalid(exchange.FieldError{Pointer: "/note", Code: "receipt", Message: "must be the receipt of the payment"})
	}
	return exchange.Observation{State: exchange.SeenSucceeded, Receipt: receipt, Text: "by command " + c.ID.String(), At: now}, nil
}
