package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// FloatFlows is what the API does with the flows of the float.
type FloatFlows interface {
	// MoveFloat starts the flow of a stored movement. A movement has at most one flow at a time.
	MoveFloat(ctx context.Context, move uuid.UUID) error
	// WakeForFloat notifies the flow of a sale or a refund that there may be float. It is no error when the flow has ended.
	WakeForFloat(ctx context.Context, w exchange.FloatWaiter) error
}

func (t temporalFlows) WakeForFloat(ctx context.Context, w exchange.FloatWaiter) error {
	var failed error
	for _, id := range workflows.FlowsForFloat(w) {
		err := fromTemporal(t.client.SignalWorkflow(ctx, id, "", workflows.SignalFloat, nil))
		if err != nil && exchange.CodeOf(err) != exchange.CodeNotFound {
			failed = err
		}
	}
	return failed
}

func (t temporalFlows) MoveFloat(ctx context.Context, move uuid.UUID) error {
	_, err := t.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: workflows.MoveFloatID(move), TaskQueue: workflows.QueueFlows,
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            workflows.MoveFloatSummary, TypedSearchAttributes: workflows.MoveFloatAttributes(),
	}, workflows.TypeMoveFloat, workflows.MoveFloatInput{MoveID: move})
	if _, ran := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); ran {
		return nil
	}
	return fromTemporal(err)
}

// wireFloatAccount is an account of the ledger as the float shows it.
type wireFloatAccount struct {
	Posted    string `json:"posted"`
	Held      string `json:"held"`
	Available string `json:"available"`
}

type wireFloatReport struct {
	Ticket     string    `json:"ticket"`
	Utility    string    `json:"utility"`
	Working    string    `json:"working"`
	Posted     string    `json:"posted"`
	Held       string    `json:"held"`
	Open       int       `json:"open_payouts"`
	Difference string    `json:"difference"`
	NotifiedAt timestamp `json:"notified_at"`
	ReceivedAt timestamp `json:"received_at"`
}

type wireBreaker struct {
	State    string     `json:"state"`
	Code     *string    `json:"code"`
	OpenedAt *timestamp `json:"opened_at"`
	ClosedAt *timestamp `json:"closed_at"`
	ClosedBy *uuid.UUID `json:"closed_by"`
	Note     *string    `json:"note"`
}

type wireFloatMove struct {
	ID           uuid.UUID  `json:"id"`
	Amount       string     `json:"amount"`
	Currency     string     `json:"currency"`
	Status       string     `json:"status"`
	StatusDetail string     `json:"status_detail"`
	Code         *string    `json:"code"`
	Receipt      *string    `json:"receipt"`
	Note         *string    `json:"note"`
	ChangeID     *uuid.UUID `json:"change_id"`
	AskedBy      uuid.UUID  `json:"requested_by"`
	SettledBy    *uuid.UUID `json:"settled_by"`
	CreatedAt    timestamp  `json:"created_at"`
	SettledAt    *timestamp `json:"settled_at"`
}

type wireFloat struct {
	Currency   string            `json:"currency"`
	Payout     wireFloatAccount  `json:"payout"`
	Collection wireFloatAccount  `json:"collection"`
	Open       int               `json:"open_payouts"`
	Disagrees  bool              `json:"disagrees"`
	Breaker    wireBreaker       `json:"breaker"`
	Reports    []wireFloatReport `json:"reports"`
	Moves      []wireFloatMove   `json:"open_moves"`
}

func floatAccountWire(a exchange.Account) wireFloatAccount {
	return wireFloatAccount{a.Posted.String(), a.Held.String(), a.Available().String()}
}

func floatReportWire(r exchange.FloatCheck) wireFloatReport {
	return wireFloatReport{
		r.Ticket, r.Utility.String(), r.Working.String(), r.Booked.String(), r.Held.String(), r.Open, r.Difference.String(),
		stamp(r.NotifiedAt), stamp(r.ReceivedAt),
	}
}

func breakerWire(b exchange.Breaker) wireBreaker {
	w := wireBreaker{State: string(b.State()), OpenedAt: optTime(b.OpenedAt), ClosedAt: optTime(b.ClosedAt), ClosedBy: optID(b.ClosedBy), Note: optText(b.Note)}
	if b.Hits > 0 {
		w.Code = optText(b.Code)
	}
	return w
}

func floatMoveWire(m exchange.FloatMove) wireFloatMove {
	return wireFloatMove{
		ID: m.ID, Amount: m.Amount.String(), Currency: string(m.Amount.Asset()), Status: string(m.Status), StatusDetail: m.WaitsFor(),
		Code:    optText(m.Code),
		Receipt: optText(m.Receipt), Note: optText(m.Note), ChangeID: optID(m.ChangeID), AskedBy: m.AskedBy, SettledBy: optID(m.SettledBy),
		CreatedAt: stamp(m.CreatedAt), SettledAt: optTime(m.SettledAt),
	}
}

// getFloat shows what can be paid out to phones, and what prevents payouts.
func (s *server) getFloat(c *call) error {
	f, err := s.Store.FloatState(c.ctx, s.Config.Operator)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, wireFloat{
		Currency: string(money.KES), Payout: floatAccountWire(f.Payout), Collection: floatAccountWire(f.Collection), Open: f.Open, Disagrees: f.Disagrees,
		Breaker: breakerWire(f.Breaker), Reports: each(f.Reports, floatReportWire), Moves: each(f.Moves, floatMoveWire),
	})
}

// proposeBreakerClosed proposes to resume payouts, after an operator's check.
func (s *server) proposeBreakerClosed(ctx context.Context, note string, by exchange.Principal) (exchange.ControlChange, error) {
	return s.Store.ProposeBreakerClosed(ctx, s.Config.Operator, note, by)
}

// wakePayouts notifies the flows that the breaker parked, or that waited for the release of the database, when two officers have
// agreed.
func (s *server) wakePayouts(ctx context.Context, change exchange.ControlChange) {
	if change.Kind != exchange.ControlBreakerClosed && change.Kind != exchange.ControlDatabaseRelease || change.Status != exchange.ControlConfirmed {
		return
	}
	b, err := s.Store.Breaker(ctx, s.Config.Operator)
	if err != nil {
		s.log.Warn("the flows that wait for payouts were not notified; the next check of the float notifies them", "error", err)
		return
	}
	s.wakeSuspended(ctx, b)
}

// wakeSuspended notifies the first of the flows that the breaker parked to try again. The others are notified when its
// payout was accepted. WatchFloat repeats lost notifications.
func (s *server) wakeSuspended(ctx context.Context, b exchange.Breaker) {
	waiting, err := s.Store.SuspendedFlows(ctx, b)
	if err != nil {
		s.log.Warn("the flows that the breaker parked could not be listed", "error", err)
	}
	for _, w := range waiting {
		if err := s.Flows.WakeForFloat(ctx, w); err != nil {
			s.log.Warn("a flow was not notified that the breaker is closed", "flow", w.WorkflowID, "error", err)
		}
	}
}

// moveFloat moves money to the account that pays out. A large movement waits for a second officer.
func (s *server) moveFloat(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	amount := f.amount("amount", money.KES, true)
	if err := f.done(); err != nil {
		return err
	}
	m, waits, err := s.Store.BeginFloatMove(c.ctx, c.objectID, amount, c.who)
	if err != nil {
		return err
	}
	if waits.ID != uuid.Nil {
		return answerPending(c, waits)
	}
	if err := s.Flows.MoveFloat(c.ctx, m.ID); err != nil {
		return err
	}
	c.fc.Set(fiber.HeaderLocation, floatMovesPath+"/"+m.ID.String())
	return c.json(http.StatusCreated, floatMoveWire(m))
}

const floatMovesPath = "/api/v1/auth/momo/float/moves"

func (s *server) listFloatMoves(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "moves", page, floatMoveWire)(s.Store.ListFloatMoves(c.ctx, page))
}

// settleFloatMove stores an officer's attestation about a movement whose outcome the mobile money operator does not report.
func (s *server) settleFloatMove(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	outcome := f.oneOf("outcome", true, string(exchange.FloatCompleted), string(exchange.FloatFailed))
	receipt := f.line("receipt", outcome == string(exchange.FloatCompleted), maxMoveReceipt)
	note := f.line("note", true, maxNoteLength)
	if outcome == string(exchange.FloatFailed) && receipt != "" {
		f.fail("receipt", "forbidden", "must be left out: a movement that failed has no receipt")
	}
	if err := f.done(); err != nil {
		return err
	}
	m, err := s.Store.SettleFloatMove(c.ctx, id, exchange.FloatMoveStatus(outcome), exchange.Observation{Receipt: receipt}, note, c.who)
	if err != nil {
		return hideAbsence(err)
	}
	if m.Status == exchange.FloatCompleted {
		s.wakeForFloat(c.ctx)
	}
	return c.json(http.StatusOK, floatMoveWire(m))
}

// wakeForFloat notifies sales and refunds that wait for float that there is some, unless payouts are suspended. A lost
// notification does no harm: the movement's own flow repeats it at its next check.
func (s *server) wakeForFloat(ctx context.Context) {
	var waiting []exchange.FloatWaiter
	state, err := s.Store.FloatState(ctx, s.Config.Operator)
	if err == nil && state.Breaker.State() == exchange.BreakerClosed {
		waiting, err = s.Store.WaitingForFloat(ctx, state.Payout.Available(), exchange.FloatWakeups)
	}
	if err != nil {
		s.log.Warn("the flows that wait for float could not be listed", "error", err)
	}
	for _, w := range waiting {
		if err := s.Flows.WakeForFloat(ctx, w); err != nil {
			s.log.Warn("a flow that waits for float was not notified", "order", w.OrderID, "error", err)
		}
	}
}

const maxMoveReceipt = 20 // the operator's have ten characters

// wireTerms is the operator's terms.
type wireTerms struct {
	ID        uuid.UUID  `json:"id"`
	ValidFrom timestamp  `json:"valid_from"`
	Currency  string     `json:"currency"`
	MinPrompt string     `json:"min_prompt"`
	MaxPrompt string     `json:"max_prompt"`
	MinPayout string     `json:"min_payout"`
	MaxPayout string     `json:"max_payout"`
	PayeeDay  string     `json:"payee_day"`
	Tariff    []wireBand `json:"tariff"`
	ChangeID  *uuid.UUID `json:"change_id"`
}

type wireBand struct {
	UpTo   string `json:"up_to"`
	Charge string `json:"charge"`
}

func termsWire(t exchange.MomoTerms) wireTerms {
	return wireTerms{
		ID: t.ID, ValidFrom: stamp(t.ValidFrom), Currency: string(money.KES), MinPrompt: t.MinPrompt.String(), MaxPrompt: t.MaxPrompt.String(),
		MinPayout: t.MinPayout.String(), MaxPayout: t.MaxPayout.String(), PayeeDay: t.PayeeDay.String(),
		Tariff: each(t.Tariff, func(b exchange.TariffBand) wireBand { return wireBand{b.UpTo.String(), b.Charge.String()} }), ChangeID: optID(t.ChangeID),
	}
}

func (s *server) listTerms(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "terms", page, termsWire)(s.Store.ListTerms(c.ctx, page))
}

// proposeTerms proposes other terms from a time on. They wait for a second officer.
func (s *server) proposeTerms(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	t := exchange.MomoTerms{
		ValidFrom: f.time("valid_from", true), MinPrompt: f.amount("min_prompt", money.KES, true), MaxPrompt: f.amount("max_prompt", money.KES, true),
		MinPayout: f.amount("min_payout", money.KES, true), MaxPayout: f.amount("max_payout", money.KES, true),
		PayeeDay: f.amount("payee_day", money.KES, true), Tariff: f.tariff("tariff"),
	}
	if err := f.done(); err != nil {
		return err
	}
	waits, err := s.Store.ProposeTerms(c.ctx, t, c.who)
	if err != nil {
		return err
	}
	return answerPending(c, waits)
}

// tariff reads the bands of a tariff.
func (f *form) tariff(name string) []exchange.TariffBand {
	var bands []exchange.TariffBand
	var err error
	for _, in := range f.objects(name, true, "bands", exchange.MaxTariffBands) {
		b := exchange.TariffBand{UpTo: in.amount("up_to", money.KES, true)}
		if s, ok := in.decimalText("charge", true); ok { // a payout may cost nothing
			b.Charge, err = money.Parse(money.KES, s)
			in.failDecimal("charge", err)
		}
		bands = append(bands, b)
	}
	return bands
}

func (s *server) momoRoutes() []route {
	const auth = "/api/v1/auth"
	return []route{
		{method: get, path: auth + "/momo/float", one: true, action: exchange.ActReadFloat, limit: limitGeneral, handle: s.getFloat},
		{method: get, path: floatMovesPath, action: exchange.ActReadFloat, limit: limitGeneral, handle: s.listFloatMoves},
		{method: get, path: floatMovesPath + "/{id}", action: exchange.ActReadFloat, limit: limitGeneral, handle: showOne(s.Store.FloatMove, floatMoveWire)},
		{
			method: post, path: floatMovesPath, action: exchange.ActMoveFloat, limit: limitGeneral, key: keyRequired,
			timeout: flowTimeout, handle: s.moveFloat,
		},
		{method: post, path: floatMovesPath + "/{id}/settle", action: exchange.ActMoveFloat, limit: limitGeneral, key: keyRequired, handle: s.settleFloatMove},
		{method: post, path: auth + "/momo/breaker/close", action: exchange.ActCloseBreaker, limit: limitGeneral, key: keyOptional, handle: s.proposal(maxNoteLength, s.proposeBreakerClosed)},
		{method: post, path: auth + "/momo/release", action: exchange.ActReleaseDatabase, limit: limitGeneral, key: keyOptional, handle: s.proposal(maxNoteLength, s.Store.ProposeRelease)},
		{method: get, path: auth + "/momo/terms", one: true, action: exchange.ActReadFloat, limit: limitGeneral, handle: s.listTerms},
		{method: post, path: auth + "/momo/terms", action: exchange.ActWriteMomoTerms, limit: limitGeneral, key: keyOptional, handle: s.proposeTerms},
	}
}
