package activities

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// FloatOperator holds our accounts and moves money between them. momo.Client is one.
type FloatOperator interface {
	Balance(ctx context.Context) (ticket string, err error)
	ParseBalance(body []byte) (exchange.FloatReport, error)
	MoveFloat(ctx context.Context, m exchange.FloatMove) exchange.Submission
	QueryFloat(ctx context.Context, m exchange.FloatMove) exchange.Observation
	ParseCallback(kind exchange.CallbackKind, body []byte) ([]exchange.Observation, error)
}

// FloatStore is what watching over the float needs of the database.
type FloatStore interface {
	Breaker(ctx context.Context, provider string) (exchange.Breaker, error)
	BalanceCallbacks(ctx context.Context, since time.Time) ([]exchange.MomoCallback, error)
	RecordFloatReport(ctx context.Context, r exchange.FloatReport) (exchange.FloatCheck, error)
	FloatState(ctx context.Context, provider string) (exchange.FloatState, error)
	FixCharges(ctx context.Context) (int, error)
	OpenFloatMoves(ctx context.Context) ([]uuid.UUID, error)
	FloatMove(ctx context.Context, id uuid.UUID) (exchange.FloatMove, error)
	FloatCallbacks(ctx context.Context, id uuid.UUID) ([]exchange.MomoCallback, error)
	ClaimFloatMove(ctx context.Context, id uuid.UUID, token string) (exchange.FloatMove, bool, error)
	RecordFloatSubmission(ctx context.Context, id uuid.UUID, s exchange.Submission) (exchange.FloatMove, error)
	SuspendedBefore(ctx context.Context, closed time.Time, limit int) ([]exchange.FloatWaiter, error)
	WaitingForFloat(ctx context.Context, room money.Amount, limit int) ([]exchange.FloatWaiter, error)
	SettleFloatMove(ctx context.Context, id uuid.UUID, to exchange.FloatMoveStatus, o exchange.Observation, note string, by exchange.Principal) (exchange.FloatMove, error)
}

// Float watches over the money from which payouts are made. It is registered on the momo queue.
type Float struct {
	Store    FloatStore
	Operator FloatOperator
	Waker    FloatWaker
	Provider string
	// CallbackKey is what the tokens of the movements' addresses are derived from, as those of payouts are.
	CallbackKey []byte
	Now         func() time.Time
}

// FloatAsked is a question for our balances. Ticket is the operator's name of it; without one nothing was asked, because
// the operator refuses our credential and another question could lock it.
type FloatAsked struct {
	Ticket string    `json:"ticket,omitempty"`
	At     time.Time `json:"at"`
}

// AskBalance asks the operator for our balances. A second question does no harm: each has its own answer.
func (f *Float) AskBalance(ctx context.Context) (FloatAsked, error) {
	ctx, stop := beat(ctx)
	defer stop()
	asked := FloatAsked{At: f.Now()}
	b, err := f.Store.Breaker(ctx, f.Provider)
	if err != nil {
		return asked, Failure(ctx, err)
	}
	open := int64(0)
	if b.State() != exchange.BreakerClosed {
		open = 1
		activity.GetLogger(ctx).Error("ALERT payouts are suspended: the operator refuses our credential", "state", b.State(), "code", b.Code)
	}
	gauge(ctx, "kivuko_momo_breaker_open", open)
	if b.State() == exchange.BreakerOpen {
		return asked, nil
	}
	f.wakeSuspended(ctx, b)
	asked.Ticket, err = f.Operator.Balance(ctx)
	if exchange.CodeOf(err) == exchange.CodeInvalid {
		activity.GetLogger(ctx).Warn("balances are not asked for", "error", err) // payouts are not offered here
		return asked, nil
	}
	return asked, Failure(ctx, err)
}

// gauge tells a whole number to whoever watches.
func gauge(ctx context.Context, name string, n int64) {
	activity.GetMetricsHandler(ctx).Gauge(name).Update(float64(n)) //nolint:forbidigo // the library asks for one; it is a count
}

// clockLeeway is by how much the clocks of our machines may differ. The ticket tells whose answer it is.
const clockLeeway = time.Minute

// answerPatience is how long the operator's answer may take. It comes to the address to which every notice comes, so that
// its absence tells of an address that nobody reaches also while nobody buys and sells.
const answerPatience = 2 * time.Minute

// FloatTaken is what the operator's answer said.
type FloatTaken struct {
	Found     bool `json:"found"`
	Disagrees bool `json:"disagrees,omitempty"` // with the books, twice by the same and with nothing on its way
}

// TakeFloatReport looks for the answer to a question and holds it against the books. An answer to another question, or
// to none, is left: anybody may post to the address.
func (f *Float) TakeFloatReport(ctx context.Context, asked FloatAsked) (FloatTaken, error) {
	ctx, stop := beat(ctx)
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
		if report.Code != "0" {
			activity.GetLogger(ctx).Error("ALERT the operator does not tell our balances", "code", report.Code)
			return FloatTaken{Found: true}, nil
		}
		if _, err := f.Store.RecordFloatReport(ctx, report); err != nil {
			return FloatTaken{}, Failure(ctx, err)
		}
		state, err := f.Store.FloatState(ctx, f.Provider)
		if err != nil {
			return FloatTaken{}, Failure(ctx, err)
		}
		f.tell(ctx, state)
		if state.Grew() {
			f.wake(ctx, state, state.Reports[0].Room())
		}
		return FloatTaken{Found: true, Disagrees: state.Disagrees}, nil
	}
	if f.Now().Sub(asked.At) >= answerPatience {
		activity.GetLogger(ctx).Error("ALERT the operator took a question for our balances and its answer did not reach us; see whether its notices do")
		gauge(ctx, gaugeAnswered, 0)
	}
	return FloatTaken{}, nil
}

// gaugeAnswered is 1 when the last answer about our balances reached us and 0 when it did not.
const gaugeAnswered = "kivuko_momo_answered"

// tell gives the state of the float to whoever watches. Shillings are whole enough for that.
func (f *Float) tell(ctx context.Context, s exchange.FloatState) {
	gauge(ctx, "kivuko_momo_float_available_kes", s.Payout.Available().Decimal().IntPart())
	off := int64(0)
	if s.Disagrees {
		off = s.Reports[0].Difference.CeilWhole().Decimal().IntPart()
		activity.GetLogger(ctx).Error("ALERT the operator and our books disagree about the float", "difference", s.Reports[0].Difference.String())
	}
	gauge(ctx, "kivuko_momo_float_difference_kes", off)
}

// FixCharges books by how much the operator charged for payouts other than its terms say.
func (f *Float) FixCharges(ctx context.Context) (int, error) {
	ctx, stop := beat(ctx)
	defer stop()
	n, err := f.Store.FixCharges(ctx)
	return n, Failure(ctx, err)
}

// OpenFloatMoves lists the movements of float that may still move money.
func (f *Float) OpenFloatMoves(ctx context.Context) ([]uuid.UUID, error) {
	ids, err := f.Store.OpenFloatMoves(ctx)
	return ids, Failure(ctx, err)
}

// FloatMoveStep is where a movement of float stands.
type FloatMoveStep struct {
	Status exchange.FloatMoveStatus `json:"status"`
	Code   string                   `json:"code,omitempty"`
}

func stepOf(m exchange.FloatMove) FloatMoveStep { return FloatMoveStep{Status: m.Status, Code: m.Code} }

func (f *Float) token(move uuid.UUID) string {
	h := hmac.New(sha256.New, f.CallbackKey)
	h.Write([]byte("kivuko float callback " + move.String()))
	return hex.EncodeToString(h.Sum(nil))
}

// SubmitFloatMove asks the operator for a movement, at most once: the operator knows no id of ours here. The row says
// that the outcome is unknown before the call, so that a run that finds it so does not ask again.
func (f *Float) SubmitFloatMove(ctx context.Context, id uuid.UUID) (FloatMoveStep, error) {
	ctx, stop := beat(ctx)
	defer stop()
	m, first, err := f.Store.ClaimFloatMove(ctx, id, f.token(id))
	if err != nil {
		return FloatMoveStep{}, Failure(ctx, err)
	}
	var s exchange.Submission
	switch {
	case first:
		m.CallbackToken = f.token(id)
		s = f.Operator.MoveFloat(ctx, m)
		leave(ctx, s)
	case m.Status == exchange.FloatUnknown && activity.HasHeartbeatDetails(ctx):
		var h heard
		if activity.GetHeartbeatDetails(ctx, &h) != nil || h.State == "" {
			return stepOf(m), nil
		}
		s = h.submission()
	default:
		return stepOf(m), nil
	}
	m, err = f.Store.RecordFloatSubmission(ctx, id, s)
	return stepOf(m), Failure(ctx, err)
}

// CheckFloatMoveInput asks for a look at a movement; Ask asks the operator once more. Questions is how often it was asked.
type CheckFloatMoveInput struct {
	MoveID    uuid.UUID `json:"move_id"`
	Ask       bool      `json:"ask,omitempty"`
	Questions int       `json:"questions,omitempty"`
}

// floatPatience is after how many questions a person is told of a movement.
const floatPatience = 8

// CheckFloatMove looks for what became of a movement. Its result and the answer to a question must agree, because
// anybody who learns the address could post either; then it is booked.
func (f *Float) CheckFloatMove(ctx context.Context, in CheckFloatMoveInput) (FloatMoveStep, error) {
	ctx, stop := beat(ctx)
	defer stop()
	m, err := f.Store.FloatMove(ctx, in.MoveID)
	if err != nil {
		return FloatMoveStep{}, Failure(ctx, err)
	}
	if !m.Open() { // a person said so, or a run that died before it told those who wait
		f.arrived(ctx, m)
		return stepOf(m), nil
	}
	stored, err := f.Store.FloatCallbacks(ctx, m.ID)
	if err != nil {
		return FloatMoveStep{}, Failure(ctx, err)
	}
	result, answer := f.words(ctx, m, stored)
	agreed := result.State == answer.State && (result.State == exchange.SeenFailed ||
		(result.State == exchange.SeenSucceeded && result.Receipt != "" && result.Receipt == answer.Receipt))
	if agreed {
		to := exchange.FloatCompleted
		if result.State == exchange.SeenFailed {
			to, result.Receipt = exchange.FloatFailed, ""
		}
		if m, err = f.Store.SettleFloatMove(ctx, m.ID, to, result, "", exchange.System("float")); err != nil {
			return FloatMoveStep{}, Failure(ctx, err)
		}
		f.arrived(ctx, m)
		return stepOf(m), nil
	}
	if in.Ask {
		m.CallbackToken = f.token(m.ID)
		if m.Receipt = result.Receipt; m.OriginatorID == "" {
			m.OriginatorID = result.Refs.OriginatorConversationID // of one whose acknowledgement was lost
		}
		_ = f.Operator.QueryFloat(ctx, m) // its answer comes as a callback; a question that failed is put again
	}
	if in.Questions >= floatPatience {
		activity.GetLogger(ctx).Error("ALERT nobody says what became of a movement of float", "move", m.ID)
	}
	return stepOf(m), nil
}

// words reads what the operator posted about a movement: its result, and what it answered last.
func (f *Float) words(ctx context.Context, m exchange.FloatMove, stored []exchange.MomoCallback) (result, answer exchange.Observation) {
	for _, c := range stored {
		seen, err := f.Operator.ParseCallback(c.Kind, c.Body)
		if err != nil {
			activity.GetLogger(ctx).Warn("a stored callback can't be read", "move", m.ID, "callback", c.ID)
			continue
		}
		for _, o := range seen {
			switch {
			case o.State != exchange.SeenSucceeded && o.State != exchange.SeenFailed:
			case c.Kind == exchange.CallbackResult && result.State != exchange.SeenSucceeded: // nothing follows success
				result = o
			case c.Kind == exchange.CallbackStatus && answer.State != exchange.SeenSucceeded:
				answer = o
			}
		}
	}
	return result, answer
}
