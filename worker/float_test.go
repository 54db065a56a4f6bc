package worker_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo/daraja"
	"kivuko/momo/sandbox"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
	"kivuko/workflows/workflowstest"
)

const standingToken = "00000000000000000000000000000000000000000000000000000000000000ab"

// till is a store, an operator, and the flows about the float between them. What the operator posts is stored as the API
// stores it.
type till struct {
	t        *testing.T
	store    *store.Store
	operator *sandbox.Server
	part     *activities.Float
	lost     bool        // what the operator posts goes nowhere
	woken    []uuid.UUID // sales that were notified of float
	deaf     bool        // the flows of sales can't be reached
}

// WakeForFloat records which sales were notified.
func (w *till) WakeForFloat(_ context.Context, who exchange.FloatWaiter) error {
	if w.woken = append(w.woken, who.OrderID); w.deaf {
		return exchange.Errorf(exchange.CodeUnavailable, "deaf")
	}
	return nil
}

// notified returns the sales that were notified since the last call.
func (w *till) notified() []uuid.UUID {
	defer func() { w.woken = nil }()
	return w.woken
}

// patient asks the operator and waits until it has posted what it has to say: time is skipped here, and its posts are not.
type patient struct {
	*daraja.Client
	till *till
}

func (p patient) settle() {
	if err := p.till.operator.Settle(p.till.t.Context()); err != nil {
		p.till.t.Error(err)
	}
}

func (p patient) Balance(ctx context.Context) (string, error) {
	defer p.settle()
	return p.Client.Balance(ctx)
}

func (p patient) MoveFloat(ctx context.Context, m exchange.FloatMove) exchange.Submission {
	defer p.settle()
	return p.Client.MoveFloat(ctx, m)
}

func (p patient) QueryFloat(ctx context.Context, m exchange.FloatMove) exchange.Observation {
	defer p.settle()
	return p.Client.QueryFloat(ctx, m)
}

func newTill(t *testing.T) *till {
	t.Helper()
	w := &till{t: t, store: storetest.New(t)}
	receiver := httptest.NewServer(http.HandlerFunc(w.receive))
	t.Cleanup(receiver.Close)
	var err error
	if w.operator, err = sandbox.New(sandbox.Config{WorkingOpening: 400_000, UtilityOpening: 100_000}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.operator.Close() })
	client, err := daraja.New(daraja.Config{
		BaseURL: w.operator.URL(), ConsumerKey: sandbox.DefaultConsumerKey, ConsumerSecret: sandbox.DefaultConsumerSecret,
		Shortcode: sandbox.DefaultShortcode, Passkey: sandbox.DefaultPasskey, PayoutShortcode: sandbox.DefaultPayoutShortcode,
		InitiatorName: sandbox.DefaultInitiatorName, SecurityCredential: sandbox.DefaultSecurityCredential,
		CallbackBase: receiver.URL + "/cb", StandingToken: standingToken,
	})
	if err != nil {
		t.Fatal(err)
	}
	w.part = &activities.Float{
		Store: w.store, Operator: patient{client, w}, Waker: w, Provider: daraja.Name,
		CallbackKey: make([]byte, 32), Now: time.Now,
	}
	storetest.Float(t, w.store, money.Must(money.KES, "100000"))
	collected := money.Must(money.KES, "400000")
	err = w.store.Post(t.Context(), exchange.Posting{Entries: []exchange.Entry{{
		Key: "test:collected", Kind: "test", ObjectType: "test", Lines: []exchange.Line{
			exchange.Debit(exchange.House(exchange.AccMomoCollection, money.KES), collected), exchange.Credit(exchange.House(exchange.AccCapital, money.KES), collected),
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *till) receive(answer http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	token, kind := path.Base(path.Dir(r.URL.Path)), exchange.CallbackKind(path.Base(r.URL.Path))
	if w.lost {
		return
	}
	c := exchange.MomoCallback{ID: uuid.New(), Kind: kind, Standing: token == standingToken, RemoteIP: "127.0.0.1", Body: body, ReceivedAt: time.Now()}
	if !c.Standing {
		m, err := w.store.FloatMoveByToken(r.Context(), kind, token)
		if err != nil {
			w.t.Errorf("a post to an unknown address: %v", err)
			return
		}
		c.FloatMoveID = m.ID
	}
	if err := w.store.SaveCallback(r.Context(), c); err != nil {
		w.t.Error(err)
	}
	_, _ = io.WriteString(answer, `{"ResultCode":0}`)
}

func (w *till) env() *testsuite.TestWorkflowEnvironment {
	env := workflowstest.NewEnvironment(workflowstest.Options{})
	env.RegisterActivity(w.part)
	env.RegisterWorkflowWithOptions(workflows.MoveFloat, workflow.RegisterOptions{Name: workflows.TypeMoveFloat})
	env.RegisterWorkflowWithOptions(workflows.WatchFloat, workflow.RegisterOptions{Name: workflows.TypeWatchFloat})
	return env
}

func (w *till) begin() uuid.UUID {
	w.t.Helper()
	id := uuid.New()
	_, _, err := w.store.BeginFloatMove(w.t.Context(), id, money.Must(money.KES, "50000"), storetest.PrincipalOf(storetest.User(w.t, w.store, exchange.RoleTreasury)))
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func (w *till) move(id uuid.UUID) (workflows.MoveFloatResult, error) {
	env := w.env()
	env.ExecuteWorkflow(workflows.TypeMoveFloat, workflows.MoveFloatInput{MoveID: id})
	var out workflows.MoveFloatResult
	if err := env.GetWorkflowError(); err != nil {
		return out, err
	}
	return out, env.GetWorkflowResult(&out)
}

// holds compares both accounts of the ledger with the operator's.
func (w *till) holds() {
	w.t.Helper()
	b := w.operator.Books()
	for kind, want := range map[exchange.AccountKind]int64{exchange.AccMomoCollection: b.Working, exchange.AccMomoPayout: b.Utility} {
		a, err := w.store.Account(w.t.Context(), exchange.House(kind, money.KES))
		if err != nil || a.Posted.Decimal().IntPart() != want || !a.Held.IsZero() {
			w.t.Errorf("%s has %s and holds %s, %v; the operator says %d", kind, a.Posted, a.Held, err, want)
		}
	}
}

// A float movement is made once and booked as the operator made it, whatever happens to its acknowledgement.
func TestFloatIsMovedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		fault string
		want  exchange.FloatMoveStatus
		moved int64
	}{
		"smooth":          {"", exchange.FloatCompleted, 50_000},
		"connection lost": {"payout_accepted_drop", exchange.FloatCompleted, 50_000},
		"answered 5xx":    {"payout_accepted_5xx", exchange.FloatCompleted, 50_000},
		"result first":    {"result_first", exchange.FloatCompleted, 50_000},
		"result twice":    {"result_twice", exchange.FloatCompleted, 50_000},
		"queue timeout":   {"timeout_then_paid", exchange.FloatCompleted, 50_000},
		"refused":         {"payout_forbidden", exchange.FloatRefused, 0},
		"failed":          {"utility_short", exchange.FloatFailed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTill(t)
			if c.fault != "" {
				if err := w.operator.Set(sandbox.Fault{Behaviour: c.fault, Op: sandbox.OpFloat}); err != nil {
					t.Fatal(err)
				}
			}
			id := w.begin()
			got, err := w.move(id)
			if err != nil || got.Status != c.want {
				t.Fatalf("%+v, %v", got, err)
			}
			if again, err := w.move(id); err != nil || again.Status != c.want { // a flow that runs from its beginning again
				t.Errorf("again: %+v, %v", again, err)
			}
			if moved := w.operator.Books().Utility - 100_000; moved != c.moved {
				t.Errorf("the operator moved %d", moved)
			}
			w.holds()
		})
	}
}

// When every callback about a movement was lost, an officer settles it, and the flow ends.
func TestLostFloatMoveIsSettledByAnOfficer(t *testing.T) {
	w := newTill(t)
	w.lost = true
	id := w.begin()
	env := w.env()
	looked := 0
	env.SetOnActivityStartedListener(func(_ *activity.Info, _ context.Context, _ converter.EncodedValues) {
		if looked++; looked == 12 {
			other := storetest.PrincipalOf(storetest.User(t, w.store, exchange.RoleAdmin))
			o := exchange.Observation{Receipt: w.operator.Books().Effects[0].Receipt}
			if _, err := w.store.SettleFloatMove(t.Context(), id, exchange.FloatCompleted, o, "in the statement", other); err != nil {
				t.Error(err)
			}
		}
	})
	env.ExecuteWorkflow(workflows.TypeMoveFloat, workflows.MoveFloatInput{MoveID: id})
	var out workflows.MoveFloatResult
	if err := env.GetWorkflowError(); err != nil || env.GetWorkflowResult(&out) != nil || out.Status != exchange.FloatCompleted {
		t.Fatalf("%+v, %v", out, err)
	}
	w.holds()
}

// The float is compared with the operator's report, the missing flow of a movement is started, and nothing is asked while
// the operator refuses our credential.
func TestFloatIsWatched(t *testing.T) {
	w := newTill(t)
	watch := func() workflows.FloatWatched {
		t.Helper()
		env := w.env()
		env.ExecuteWorkflow(workflows.TypeWatchFloat)
		var found workflows.FloatWatched
		if err := env.GetWorkflowError(); err != nil || env.GetWorkflowResult(&found) != nil {
			t.Fatal(env.GetWorkflowError())
		}
		return found
	}
	if got := watch(); !got.Asked || !got.Notified || got.Disagrees || got.Moves != 0 {
		t.Errorf("at first: %+v", got)
	}
	if err := w.operator.Fund("utility", 700); err != nil {
		t.Fatal(err)
	}
	if got := watch(); got.Disagrees {
		t.Errorf("one report is enough: %+v", got)
	}
	if got := watch(); !got.Disagrees {
		t.Errorf("twice is nothing: %+v", got)
	}
	if err := w.operator.Fund("utility", -700); err != nil {
		t.Fatal(err)
	}
	w.begin()
	if got := watch(); got.Moves != 1 || got.Disagrees {
		t.Errorf("with a movement: %+v", got)
	}
	state, err := w.store.FloatState(t.Context(), daraja.Name)
	if err != nil || len(state.Reports) != 4 {
		t.Errorf("%d reports, %v", len(state.Reports), err)
	}
	w.lost = true
	if got := watch(); !got.Asked || got.Notified {
		t.Errorf("without an answer: %+v", got)
	}
}

// A run after a crash around the call does not ask for the movement again, and a result that no other source confirms is not
// booked.
func TestFloatIsNotMovedTwiceNorOnOneReport(t *testing.T) {
	w := newTill(t)
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(w.part)
	id := w.begin()
	token := strings.Repeat("d", 64)
	if _, _, err := w.store.ClaimFloatMove(t.Context(), exchange.FloatMove{ID: id, CallbackToken: token, StatusToken: strings.Repeat("e", 64)}); err != nil {
		t.Fatal(err)
	}
	if _, err := env.ExecuteActivity(w.part.SubmitFloatMove, id); err != nil {
		t.Fatal(err)
	}
	if moves := w.operator.Books().Moves; len(moves) != 0 {
		t.Errorf("the operator was asked: %+v", moves)
	}
	forged := `{"Result":{"ResultCode":0,"ResultDesc":"ok","ConversationID":"AG_1","OriginatorConversationID":"1-2-3","TransactionID":"UKL1234567",` +
		`"ResultParameters":{"ResultParameter":[{"Key":"Amount","Value":50000.00}]}}}`
	c := exchange.MomoCallback{ID: uuid.New(), Kind: exchange.CallbackResult, RemoteIP: "127.0.0.1", Body: []byte(forged), FloatMoveID: id, ReceivedAt: time.Now()}
	if err := w.store.SaveCallback(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := env.ExecuteActivity(w.part.CheckFloatMove, activities.CheckFloatMoveInput{MoveID: id}); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := w.store.FloatMove(t.Context(), id); err != nil || m.Status != exchange.FloatUnknown {
		t.Errorf("one source made it %s, %v", m.Status, err)
	}
}
