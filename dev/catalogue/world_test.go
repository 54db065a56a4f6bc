// Package catalogue holds Kivuko against the catalogue of what is known to go wrong with mobile money: a test for each
// case, named after it. The operator is the sandbox, asked over HTTP by the client of production; rows, activities and
// flows are those of production too. Only time is not real: it passes when nobody does anything.
package catalogue

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo"
	"kivuko/momo/sandbox"
	"kivuko/store"
	"kivuko/store/storetest"
	rows "kivuko/worker"
	"kivuko/workflows"
)

const (
	standingToken = "00000000000000000000000000000000000000000000000000000000000000aa"
	provider      = "daraja"
	callbackKey   = "0123456789abcdef0123456789abcdef"

	// The stories' order: 10 USDT at 129.50.
	bought = "10"
	price  = 1295

	// answersAfter is how long the operator's notices are under way.
	answersAfter = 5 * time.Second
	longest      = 5 * 24 * time.Hour
	patience     = 30 * time.Second // of the real clock, for a flow that hangs
)

// world is Kivuko, its operator and a network, at the clock of whichever flow is played.
type world struct {
	t        *testing.T
	store    *store.Store
	market   storetest.Market
	operator *sandbox.Server
	client   *momo.Client
	line     *line
	chain    *network
	signs    *signs
	gauges   *gauges
	selling  bool   // the market buys crypto from customers
	block    uint64 // the newest one that the watch over the chain has booked

	mu    sync.Mutex
	owner *sql.DB
	env   *testsuite.TestWorkflowEnvironment // nil between flows
	at    time.Time                          // between flows

	// stopAfter ends the next flow after a while, for one that has no end yet.
	stopAfter time.Duration
	// dies has the worker that sends the next payout die when the operator has answered.
	dies atomic.Bool
	sent atomic.Int32 // requests for a payout
	// unwatched are attempts about which something came when no flow was there to hear it.
	unwatched []exchange.PaymentAttempt
	answers   map[string]error // of updates, by the test's name for them
}

// start is a Saturday noon in Nairobi.
var start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// open makes a world in which everything goes well.
func open(t *testing.T) *world {
	t.Helper()
	return openAt(t, start)
}

func openAt(t *testing.T, at time.Time) *world {
	t.Helper()
	return openWith(t, at, storetest.NewMarket)
}

func openWith(t *testing.T, at time.Time, market func(testing.TB, *store.Store) storetest.Market) *world {
	t.Helper()
	w := &world{t: t, at: at, answers: map[string]error{}, signs: newSigns(), gauges: newGauges()}
	w.store = storetest.Open(t, storetest.URL(t), store.Options{Now: w.now, MaxConns: 6})
	w.market = market(t, w.store)
	var err error
	if w.operator, err = sandbox.New(sandbox.Config{LateDelay: -1, Clock: w.now}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.operator.Close() })
	w.line = newLine(w)
	w.client = w.newClient()
	if err := w.client.RegisterC2B(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.chain = newNetwork(w)
	return w
}

// newClient is a client of the operator as a worker of production has it.
func (w *world) newClient() *momo.Client {
	c, err := momo.New(momo.Config{
		BaseURL: w.operator.URL(), ConsumerKey: sandbox.DefaultConsumerKey, ConsumerSecret: sandbox.DefaultConsumerSecret,
		Shortcode: sandbox.DefaultShortcode, Passkey: sandbox.DefaultPasskey, PayoutShortcode: sandbox.DefaultPayoutShortcode,
		InitiatorName: sandbox.DefaultInitiatorName, SecurityCredential: sandbox.DefaultSecurityCredential,
		CallbackBase: w.line.base(), StandingToken: standingToken, Clock: w.now,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// now is the time of the flow that is played, and between flows that of the last one's end.
func (w *world) now() time.Time {
	w.mu.Lock()
	env, at := w.env, w.at
	w.mu.Unlock()
	if env != nil {
		return env.Now().UTC()
	}
	return at
}

// playing is the environment of the flow that is played, nil between flows.
func (w *world) playing() *testsuite.TestWorkflowEnvironment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.env
}

// pass lets time go by between flows.
func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

// patient is the client of an operator that has done what it does about a call before the call returns. What it sends
// meanwhile is on the line, which delivers it in the story's time.
type patient struct {
	*momo.Client
	w *world
}

func (p patient) SubmitCollection(ctx context.Context, a exchange.PaymentAttempt) exchange.Submission {
	s := p.Client.SubmitCollection(ctx, a)
	_ = p.w.operator.Settle(ctx)
	return s
}

func (p patient) SubmitPayout(ctx context.Context, a exchange.PaymentAttempt) exchange.Submission {
	s := p.Client.SubmitPayout(ctx, a)
	_ = p.w.operator.Settle(ctx)
	p.w.sent.Add(1)
	if p.w.dies.CompareAndSwap(true, false) {
		panic("the worker dies before it has written down what the operator said")
	}
	return s
}

func (p patient) Resolve(ctx context.Context, a exchange.PaymentAttempt) exchange.Observation {
	o := p.Client.Resolve(ctx, a)
	_ = p.w.operator.Settle(ctx)
	return o
}

func (p patient) Balance(ctx context.Context) (string, error) {
	ticket, err := p.Client.Balance(ctx)
	_ = p.w.operator.Settle(ctx)
	return ticket, err
}

// WakeForFloat tells who waits for float, if it is the flow that is played.
func (p patient) WakeForFloat(_ context.Context, w exchange.FloatWaiter) error {
	var failed error
	for _, id := range workflows.FlowsForFloat(w) {
		failed = errors.Join(failed, p.w.env.SignalWorkflowByID(id, workflows.SignalFloat, nil))
	}
	return failed
}

// register puts everything on an environment that a deployment has on its queues.
func (w *world) register(env *testsuite.TestWorkflowEnvironment) {
	for _, flow := range []any{
		workflows.OnRamp, workflows.OffRamp, workflows.MomoPayout, workflows.CryptoPayout, workflows.Refund, workflows.LatePayment, workflows.LatePayout,
		workflows.ReconcilePayments, workflows.SweepPayments, workflows.WatchFloat,
	} {
		env.RegisterWorkflow(flow)
	}
	r := rows.Rows{Store: w.store}
	asked := patient{w.client, w}
	env.RegisterActivity(&activities.Orders{Store: r})
	env.RegisterActivity(&activities.Momo{Store: r, Operator: asked, Provider: provider, Now: w.now})
	env.RegisterActivity(&activities.Refunds{Store: r, Operator: asked, Provider: provider, CallbackKey: []byte(callbackKey), Now: w.now})
	env.RegisterActivity(&activities.Payouts{Store: r, Operator: asked, Provider: provider, CallbackKey: []byte(callbackKey), Now: w.now})
	env.RegisterActivity(&activities.OffRamps{Store: r})
	env.RegisterActivity(&activities.Escrow{Store: r})
	env.RegisterActivity(&activities.Sweeps{Store: r})
	env.RegisterActivity(&activities.ChainRefunds{Store: r})
	env.RegisterActivity(&activities.Float{Store: r, Operator: asked, Waker: asked, Provider: provider, CallbackKey: []byte(callbackKey), Now: w.now})
	env.RegisterActivity(&activities.Statement{Store: r, Operator: asked, Now: w.now})
	env.RegisterActivity(&activities.Signing{Signer: w.chain, Store: watched{r, w.chain}, Recipients: &activities.Recipients{Store: r}})
	env.RegisterActivity(&activities.Chain{Store: r, Client: w.chain, Poll: blockTime, Now: w.now})
}

// play runs a flow to its end, and everything that it leaves behind. What people and payers do meanwhile is told
// before, by w.after; begin is what starts it beside its input.
func (w *world) play(id string, flow, in any, script func(*testsuite.TestWorkflowEnvironment)) {
	w.t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(silent{})
	suite.SetMetricsHandler(w.gauges)
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(w.now())
	// A machine that is busy with other tests may let a flow's turn take longer than the SDK thinks a turn can.
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{w.signs}, DeadlockDetectionTimeout: patience})
	env.SetTestTimeout(patience)
	stops := w.stopAfter > 0
	env.SetWorkflowRunTimeout(cmp.Or(w.stopAfter, longest))
	env.SetDetachedChildWait(!stops)
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: id, TaskQueue: workflows.QueueFlows})
	w.register(env)
	w.mu.Lock()
	w.env = env
	w.mu.Unlock()
	if script != nil {
		script(env)
	}
	if in == nil {
		env.ExecuteWorkflow(flow)
	} else {
		env.ExecuteWorkflow(flow, in)
	}
	w.mu.Lock()
	w.at, w.env = env.Now().UTC(), nil
	w.mu.Unlock()
	w.stopAfter = 0
	err := env.GetWorkflowError()
	if _, stopped := errors.AsType[*temporal.TimeoutError](err); stopped && stops {
		err = nil
	}
	if !env.IsWorkflowCompleted() || err != nil {
		w.t.Fatalf("%s: completed %v, %v; flows were parked with %v", id, env.IsWorkflowCompleted(), err, w.signs.reasons)
	}
	w.line.rest()
}

// request asks for the stories' order, paid from the number that asks the operator for a behaviour.
func (w *world) request(magic string) exchange.OrderRequest {
	return exchange.OrderRequest{
		ID: storetest.NewID(w.t), CustomerID: w.market.Customer.ID, OfferID: w.market.Offer.ID, Crypto: money.Must(money.USDT, bought),
		Phone: phone(magic), ExpiresAt: w.now().Add(exchange.OrderLife),
	}
}

// phone is the number that asks the operator for a behaviour.
func phone(magic string) string { return "2547000000" + magic }

// buy plays an order to its end.
func (w *world) buy(r exchange.OrderRequest, script ...func(*testsuite.TestWorkflowEnvironment)) exchange.Order {
	w.t.Helper()
	in := workflows.OnRampInput{Request: r, Actor: workflows.Actor{UserID: r.CustomerID, Role: exchange.RoleCustomer}}
	w.play(workflows.OnRampID(r.ID), workflows.OnRamp, in, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() { env.UpdateWorkflow(workflows.UpdateOpen, r.ID.String(), w.answer("open")) }, 0)
		for _, s := range script {
			s(env)
		}
	})
	if err := w.answers["open"]; err != nil {
		w.t.Fatalf("the order was not opened: %v", err)
	}
	return w.order(r.ID)
}

// unfinished plays an order that has no end yet when so much time has passed.
func (w *world) unfinished(r exchange.OrderRequest, d time.Duration, script ...func(*testsuite.TestWorkflowEnvironment)) exchange.Order {
	w.t.Helper()
	w.stopAfter = d
	return w.buy(r, script...)
}

// answer collects what an update was answered with.
func (w *world) answer(name string) *testsuite.TestUpdateCallback {
	return &testsuite.TestUpdateCallback{
		OnReject:   func(err error) { w.answers[name] = err },
		OnAccept:   func() {},
		OnComplete: func(_ any, err error) { w.answers[name] = err },
	}
}

// after does something when the flow has run for a while.
func after(d time.Duration, do func(*testsuite.TestWorkflowEnvironment)) func(*testsuite.TestWorkflowEnvironment) {
	return func(env *testsuite.TestWorkflowEnvironment) { env.RegisterDelayedCallback(func() { do(env) }, d) }
}

// order reads an order.
func (w *world) order(id uuid.UUID) exchange.Order {
	w.t.Helper()
	o, err := w.store.Order(w.t.Context(), store.Everything(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

// attempts are the prompts of an order, the first one first.
func (w *world) attempts(order uuid.UUID) []exchange.PaymentAttempt {
	w.t.Helper()
	all, err := w.store.Collections(w.t.Context(), order)
	if err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b exchange.PaymentAttempt) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return all
}

// exceptions are the payments of an order, or of nobody, about which a person decides.
func (w *world) exceptions() []exchange.PaymentException {
	w.t.Helper()
	all, _, err := w.store.ListExceptions(w.t.Context(), store.ExceptionFilter{}, store.Page{Number: 1, Size: 50})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// command is a person's decision about an object, written as the API writes it.
func (w *world) command(objectType string, object uuid.UUID, verb, note string) workflows.CommandRef {
	w.t.Helper()
	officer := storetest.User(w.t, w.store, exchange.RoleOTCOfficer)
	c := exchange.OperatorCommand{ID: storetest.NewID(w.t), ObjectType: objectType, ObjectID: object, Verb: verb, Note: note, ActorID: officer.ID}
	if err := w.store.SaveCommand(w.t.Context(), c, storetest.PrincipalOf(officer)); err != nil {
		w.t.Error(err)
	}
	return workflows.CommandRef{CommandID: c.ID}
}

// tell hands a decision about the order to its flow; the answer is kept under the verb.
func (w *world) tell(env *testsuite.TestWorkflowEnvironment, order uuid.UUID, verb, note string) {
	ref := w.command(activities.ObjectOrder, order, verb, note)
	env.UpdateWorkflow(workflows.UpdateCommand, ref.CommandID.String(), w.answer(verb), ref)
}

// lateWatches plays the watches over money about which something came when nobody was there to hear it, as the API
// starts them.
func (w *world) lateWatches(script ...func(*testsuite.TestWorkflowEnvironment)) {
	w.t.Helper()
	todo := w.unwatched
	w.unwatched = nil
	for _, a := range todo {
		in := workflows.LatePaymentInput{AttemptID: a.ID, OrderID: a.OrderID}
		w.play(workflows.LatePaymentID(a.ID), workflows.LatePayment, in, func(env *testsuite.TestWorkflowEnvironment) {
			for _, s := range script {
				s(env)
			}
		})
	}
}

type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
