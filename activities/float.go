package activities

import (
	"context"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo"
)

// FloatOperator is the mobile money operator's interface to our accounts. Its methods are those of momo.Operator.
type FloatOperator interface {
	Balance(ctx context.Context) (ticket string, err error)
	ParseBalance(body []byte) (exchange.FloatReport, error)
	MoveFloat(ctx context.Context, m exchange.FloatMove) exchange.Submission
	QueryFloat(ctx context.Context, m exchange.FloatMove) exchange.Observation
	ParseCallback(kind exchange.CallbackKind, body []byte) ([]exchange.Observation, error)
}

// FloatStore is the database interface of Float.
type FloatStore interface {
	Breaker(ctx context.Context, provider string) (exchange.Breaker, error)
	BalanceCallbacks(ctx context.Context, since time.Time) ([]exchange.MomoCallback, error)
	RecordFloatReport(ctx context.Context, r exchange.FloatReport) (exchange.FloatCheck, error)
	FloatState(ctx context.Context, provider string) (exchange.FloatState, error)
	FixCharges(ctx context.Context) (int, error)
	OpenFloatMoves(ctx context.Context) ([]uuid.UUID, error)
	FloatMove(ctx context.Context, id uuid.UUID) (exchange.FloatMove, error)
	FloatCallbacks(ctx context.Context, id uuid.UUID) ([]exchange.MomoCallback, error)
	// ClaimFloatMove lets one caller send a movement, whose tokens it stores. SaveFloatQuery stores the ticket of a query about
	// it, and FloatQueries lists them.
	ClaimFloatMove(ctx context.Context, m exchange.FloatMove) (exchange.FloatMove, bool, error)
	SaveFloatQuery(ctx context.Context, id uuid.UUID, ticket string) error
	FloatQueries(ctx context.Context, id uuid.UUID) ([]string, error)
	RecordFloatSubmission(ctx context.Context, id uuid.UUID, s exchange.Submission) (exchange.FloatMove, error)
	SuspendedFlows(ctx context.Context, b exchange.Breaker) ([]exchange.FloatWaiter, error)
	WaitingForFloat(ctx context.Context, room money.Amount, limit int) ([]exchange.FloatWaiter, error)
	SettleFloatMove(ctx context.Context, id uuid.UUID, to exchange.FloatMoveStatus, o exchange.Observation, note string, by exchange.Principal) (exchange.FloatMove, error)
}

// Float watches and moves the money from which payouts are made. It is registered on the momo queue.
type Float struct {
	Store    FloatStore
	Operator FloatOperator
	Waker    FloatWaker
	Provider string
	// CallbackKey is the key from which the tokens in the movements' callback addresses are derived, as for payouts.
	CallbackKey []byte
	Now         func() time.Time
}

// FloatAsked is a query for our balances. Ticket is the operator's id of it. It is empty when nothing was asked, because the
// operator refuses our credential and another query could lock it.
type FloatAsked struct {
	Ticket string    `json:"ticket,omitempty"`
	At     time.Time `json:"at"`
}

// AskBalance asks the operator for our balances. A second query does no harm: each has its own answer.
func (f *Float) AskBalance(ctx context.Context) (FloatAsked, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	asked := FloatAsked{At: f.Now()}
	b, err := f.Store.Breaker(ctx, f.Provider)
	if err != nil {
		return asked, Failure(ctx, err)
	}
	f.exportBreaker(ctx, b)
	switch b.State() {
	case exchange.BreakerOpen:
		return asked, nil
	case exchange.BreakerMoved: // the report is what a release is compared with
	case exchange.BreakerTrial, exchange.BreakerClosed:
		f.wakeSuspended(ctx, b)
	}
	asked.Ticket, err = f.Operator.Balance(ctx)
	if exchange.CodeOf(err) == exchange.CodeInvalid {
		activity.GetLogger(ctx).Warn("the balances can't be queried", "error", err) // payouts are not configured here
		return asked, nil
	}
	return asked, Failure(ctx, err)
}

// exportBreaker sets the metrics of what stops payouts.
func (f *Float) exportBreaker(ctx context.Context, b exchange.Breaker) {
	open, moved := int64(0), int64(0)
	switch b.State() {
	case exchange.BreakerMoved:
		moved = 1
		activity.GetLogger(ctx).Error("ALERT nothing is requested of the mobile money operator: the database is another one than before, and two officers have to release it")
	case exchange.BreakerOpen, exchange.BreakerTrial:
		open = 1
		activity.GetLogger(ctx).Error("ALERT payouts are suspended: the mobile money operator refuses our credential", "state", b.State(), "code", b.Code)
	case exchange.BreakerClosed:
	}
	gauge(ctx, "kivuko_momo_breaker_open", open)
	gauge(ctx, "kivuko_database_moved", moved)
}

// gauge exports a whole number.
func gauge(ctx context.Context, name string, n int64) {
	activity.GetMetricsHandler(ctx).Gauge(name).Update(float64(n)) //nolint:forbidigo // the library asks for one; it is a count
}

// clockLeeway is how much the clocks of our machines may differ. The ticket identifies the answer.
const clockLeeway = time.Minute

// answerTimeout is how long the operator's answer may take. It comes to the same host as all callbacks, so a missing answer
// reveals an unreachable callback address even while there are no orders.
const answerTimeout = 2 * time.Minute

// FloatTaken is the result of the operator's answer.
type FloatTaken struct {
	Found     bool `json:"found"`
	Disagrees bool `json:"disagrees,omitempty"` // with the books, twice by the same amount and with no pending movement
}

// TakeFloatReport finds the answer to a query and compares it with the books. It ignores answers to other queries, because
// anybody may post to the address.
func (f *Float) TakeFloatReport(ctx context.Context, asked FloatAsked) (FloatTaken, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	stored, err := f.Store.BalanceCallbacks(ctx, asked.At.Add(-clockLeeway))
	if err != nil {
		return FloatTaken{}, Failure(ctx, err)
	}
	for _, c := range stored {
		report, err := f.Operator.ParseBalance(c.Body)
		if err != nil || report.Ticket != asked.Ticket {
			continue
		}
		gauge(ctx, gaugeAnswered, 1)
		if len(report.Accounts) == 0 {
			activity.GetLogger(ctx).Error("ALERT the mobile money operator refuses to report our balances", "code", report.Code)
			return FloatTaken{Found: true}, nil
		}
		if _, err := f.Store.RecordFloatReport(ctx, report); err != nil {
			return FloatTaken{}, Failure(ctx, err)
		}
		state, err := f.Store.FloatState(ctx, f.Provider)
		if err != nil {
			return FloatTaken{}, Failure(ctx, err)
		}
		f.export(ctx, state)
		if state.Grew() {
			f.wake(ctx, state, state.Reports[0].Room())
		}
		return FloatTaken{Found: true, Disagrees: state.Disagrees}, nil
	}
	if f.Now().Sub(asked.At) >= answerTimeout {
		activity.GetLogger(ctx).Error("ALERT the mobile money operator accepted a balance query but its answer did not arrive; check that its callbacks arrive")
		gauge(ctx, gaugeAnswered, 0)
	}
	return FloatTaken{}, nil
}

// gaugeAnswered is 1 when the last answer about our balances reached us and 0 when it did not.
const gaugeAnswered = "kivuko_momo_answered"

// export sets the metrics of the state of the float, in whole shillings.
func (f *Float) export(ctx context.Context, s exchange.FloatState) {
	gauge(ctx, "kivuko_momo_float_available_kes", s.Payout.Available().Decimal().IntPart())
	off := int64(0)
	if s.Disagrees {
		off = s.Reports[0].Difference.CeilWhole().Decimal().IntPart()
		activity.GetLogger(ctx).Error("ALERT the mobile money operator's balances and our books disagree about the float", "difference", s.Reports[0].Difference.String())
	}
	gauge(ctx, "kivuko_momo_float_difference_kes", off)
}

// FixCharges books the differences between the operator's charges for payouts and its terms.
func (f *Float) FixCharges(ctx context.Context) (int, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	n, err := f.Store.FixCharges(ctx)
	return n, Failure(ctx, err)
}

// OpenFloatMoves lists the float movements that may still move money.
func (f *Float) OpenFloatMoves(ctx context.Context) ([]uuid.UUID, error) {
	ids, err := f.Store.OpenFloatMoves(ctx)
	return ids, Failure(ctx, err)
}

// FloatMoveStep is the state of a float movement.
type FloatMoveStep struct {
	Status exchange.FloatMoveStatus `json:"status"`
	Code   string                   `json:"code,omitempty"`
}

func stepOf(m exchange.FloatMove) FloatMoveStep { return FloatMoveStep{Status: m.Status, Code: m.Code} }

// addressed returns a movement with the tokens of its callback addresses.
func (f *Float) addressed(m exchange.FloatMove) exchange.FloatMove {
	m.CallbackToken, m.StatusToken = derivedToken(f.CallbackKey, "float result", m.ID), derivedToken(f.CallbackKey, "float answer", m.ID)
	return m
}

// moveWithin is how long after a step began to claim a movement it may be asked for. It ends before an officer may declare that
// the movement failed (exchange.FloatSending).
const moveWithin = 2 * time.Minute

// SubmitFloatMove asks the operator for a movement, at most once, because the operator accepts no id of ours here. Before the
// call the row is set to unknown, so that a later run does not ask again. The status stays created, and nothing is asked, while
// the database is not released. A run that hung after it claimed the movement asks for nothing.
func (f *Float) SubmitFloatMove(ctx context.Context, id uuid.UUID) (FloatMoveStep, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	until := f.Now().Add(moveWithin)
	m, first, err := f.Store.ClaimFloatMove(ctx, f.addressed(exchange.FloatMove{ID: id}))
	if exchange.CodeOf(err) == exchange.CodeSuspended { // another run asks when the database is released
		m, err = f.Store.FloatMove(ctx, id)
		return stepOf(m), Failure(ctx, err)
	}
	if err != nil {
		return FloatMoveStep{}, Failure(ctx, err)
	}
	var s exchange.Submission
	switch {
	case first:
		s = f.move(ctx, m, until)
		leave(ctx, s)
	case m.Status == exchange.FloatUnknown && activity.HasHeartbeatDetails(ctx):
		var h submissionDetails
		if activity.GetHeartbeatDetails(ctx, &h) != nil || h.State == "" {
			return stepOf(m), nil
		}
		s = h.submission()
	default:
		return stepOf(m), nil
	}
	m, err = keep(ctx, f.Store.RecordFloatSubmission, id, s)
	return stepOf(m), Failure(ctx, err)
}

// move asks for a movement, unless its time is over.
func (f *Float) move(ctx context.Context, m exchange.FloatMove, until time.Time) exchange.Submission {
	if isOver(f.Now(), until) {
		return notSent()
	}
	ctx, cancel := bounded(ctx, f.Now(), until)
	defer cancel()
	return f.Operator.MoveFloat(ctx, f.addressed(m))
}

// CheckFloatMoveInput asks for a check of a movement. Ask also queries the operator. Questions is the number of queries.
type CheckFloatMoveInput struct {
	MoveID    uuid.UUID `json:"move_id"`
	Ask       bool      `json:"ask,omitempty"`
	Questions int       `json:"questions,omitempty"`
}

// floatQuestions is the number of queries after which an alert about a movement is logged.
const floatQuestions = 8

// CheckFloatMove checks the outcome of a movement. It is booked when its result and the answer to a query of ours agree, because
// anybody who learns the address could post a result.
func (f *Float) CheckFloatMove(ctx context.Context, in CheckFloatMoveInput) (FloatMoveStep, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	m, err := f.Store.FloatMove(ctx, in.MoveID)
	if err != nil {
		return FloatMoveStep{}, Failure(ctx, err)
	}
	if !m.Open() { // settled by an officer, or by a run that crashed before it woke the waiting flows
		f.arrived(ctx, m)
		return stepOf(m), nil
	}
	v, err := f.judge(ctx, m.ID)
	if err != nil {
		return FloatMoveStep{}, Failure(ctx, err)
	}
	if v.State != momo.Pending {
		to := exchange.FloatCompleted
		if v.State == momo.Refused {
			to, v.Proof.Receipt = exchange.FloatFailed, ""
		}
		if m, err = f.Store.SettleFloatMove(ctx, m.ID, to, v.Proof, "", exchange.System("float")); err != nil {
			return FloatMoveStep{}, Failure(ctx, err)
		}
		f.arrived(ctx, m)
		return stepOf(m), nil
	}
	if in.Ask {
		if m.Receipt = v.Result.Receipt; m.OriginatorID == "" {
			m.OriginatorID = v.Result.Refs.OriginatorConversationID // its acknowledgement was lost
		}
		if answer := f.Operator.QueryFloat(ctx, f.addressed(m)); answer.Ticket != "" { // a failed query is repeated
			if err := f.Store.SaveFloatQuery(ctx, m.ID, answer.Ticket); err != nil {
				return FloatMoveStep{}, Failure(ctx, err)
			}
		}
	}
	if in.Questions >= floatQuestions {
		activity.GetLogger(ctx).Error("ALERT the outcome of a float movement is unknown", "move", m.ID)
	}
	return stepOf(m), nil
}

// judge weighs the operator's reports about a movement.
func (f *Float) judge(ctx context.Context, move uuid.UUID) (momo.Verdict, error) {
	stored, err := f.Store.FloatCallbacks(ctx, move)
	if err != nil {
		return momo.Verdict{}, err
	}
	tickets, err := f.Store.FloatQueries(ctx, move)
	if err != nil {
		return momo.Verdict{}, err
	}
	return momo.JudgeFloat(answering(tickets, reportsOf(ctx, f.Operator, move, stored))), nil
}
