// Package catalogue tests Kivuko against a catalogue of known mobile money failures, with one test for each case. The
// operator is the sandbox, called over HTTP by the production client; rows, activities and flows are those of production
// too. Only time is simulated: it is skipped while nothing happens.
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

const (
	standingToken = "00000000000000000000000000000000000000000000000000000000000000aa"
	provider      = "daraja"
	callbackKey   = "0123456789abcdef0123456789abcdef"

	// The order of the cases: 10 USDT at 129.50.
	bought = "10"
	price  = 1295

	// answersAfter is the delay of the operator's notices.
	answersAfter = 5 * time.Second
	longest      = 5 * 24 * time.Hour
)

// harness is Kivuko, its operator and a network, at the clock of the flow that is played.
type harness struct {
	t        *testing.T
	store    *store.Store
	market   storetest.Market
	operator *sandbox.Server
	client   *daraja.Client
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

	// stopAfter ends the next flow after this time, for a flow without an end.
	stopAfter time.Duration
	// dies makes the worker that sends the next payout die after the operator's answer.
	dies atomic.Bool
	sent atomic.Int32 // requests for a payout
	// unwatched are attempts that got a notice when no flow was running for them.
	unwatched []exchange.PaymentAttempt
	answers   map[string]error // of updates, by the test's name for them
}

// start is a Saturday noon in Nairobi.
var start = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// open makes a harness without faults.
func open(t *testing.T) *harness {
	t.Helper()
	return openAt(t, start)
}

func openAt(t *testing.T, at time.Time) *harness {
	t.Helper()
	return openWith(t, at, storetest.NewMarket)
}

func openWith(t *testing.T, at time.Time, market func(testing.TB, *store.Store) storetest.Market) *harness {
	t.Helper()
	w := &harness{t: t, at: at, answers: map[string]error{}, signs: newSigns(), gauges: newGauges()}
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

// newClient returns a client of the operator like that of a production worker.
func (w *harness) newClient() *daraja.Client {
	c, err := daraja.New(daraja.Config{
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

// now returns the time of the flow that is played, and between flows the time at which the last one ended.
func (w *harness) now() time.Time {
	w.mu.Lock()
	env, at := w.env, w.at
	w.mu.Unlock()
	if env != nil {
		return env.Now().UTC()
	}
	return at
}

// playing returns the environment of the flow that is played, nil between flows.
func (w *harness) playing() *testsuite.TestWorkflowEnvironment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.env
}

// pass advances the clock between flows.
func (w *harness) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

// patient is a client of an operator that finishes its work for a call before the call returns. Its notices go to the
// line, which delivers them in simulated time.
type patient struct {
	*daraja.Client
	w *harness
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

// WakeForFloat notifies a flow that waits for float, if it is the one that is played.
func (p patient) WakeForFloat(_ context.Context, w exchange.FloatWaiter) error {
	var failed error
	for _, id := range workflows.FlowsForFloat(w) {
		failed = errors.Join(failed, p.w.env.SignalWorkflowByID(id, workflows.SignalFloat, nil))
	}
	return failed
}

// register registers in an environment everything that a deployment has on its queues.
func (w *harness) register(env *testsuite.TestWorkflowEnvironment) {
	for _, flow := range []any{
		workflows.OnRamp, workflows.OffRamp, workflows.MomoPayout, workflows.CryptoPayout, workflows.LatePayment, workflows.LatePayout,
		workflows.ReconcilePayments, workflows.SweepPayments, workflows.WatchFloat,
	} {
		env.RegisterWorkflow(flow)
	}
	r := w.store
	asked := patient{w.client, w}
	env.RegisterActivity(&activities.Orders{Store: r})
	env.RegisterActivity(&activities.Intents{Store: r})
	env.RegisterActivity(&activities.Momo{Store: r, Operator: asked, Provider: provider, Now: w.now})
	env.RegisterActivity(&activities.Refunds{Store: r})
	env.RegisterActivity(&activities.Payouts{Store: r, Operator: asked, Provider: provider, CallbackKey: []byte(callbackKey), Now: w.now})
	env.RegisterActivity(&activities.OffRamps{Store: r, Provider: provider})
	env.RegisterActivity(&activities.Escrow{Store: r})
	env.RegisterActivity(&activities.Sweeps{Store: r})
	env.RegisterActivity(&activities.ChainRefunds{Store: r})
	env.RegisterActivity(&activities.Float{Store: r, Operator: asked, Waker: asked, Provider: provider, CallbackKey: []byte(callbackKey), Now: w.now})
	env.RegisterActivity(&activities.Statement{Store: r, Operator: asked, Now: w.now})
	env.RegisterActivity(&activities.Signing{Signer: w.chain, Store: watched{r, w.chain}, Recipients: &activities.Recipients{Store: r}})
	env.RegisterActivity(&activities.Chain{Store: r, Client: w.chain, Poll: blockTime, Now: w.now})
}

// play runs a flow to its end, and the flows that it leaves behind. Calls of w.after before it schedule the actions of
// users and payers; begin is called when the flow starts.
func (w *harness) play(id string, flow, in any, script func(*testsuite.TestWorkflowEnvironment)) {
	w.t.Helper()
	env := workflowstest.NewEnvironment(workflowstest.Options{Metrics: w.gauges, Interceptors: []interceptor.WorkerInterceptor{w.signs}})
	env.SetStartTime(w.now())
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

// request returns the request of the cases' order, paid from the number with a fault of the operator.
func (w *harness) request(magic string) exchange.OrderRequest {
	return exchange.OrderRequest{
		ID: storetest.NewID(w.t), CustomerID: w.market.Customer.ID, OfferID: w.market.Offer.ID, Crypto: money.Must(money.USDT, bought),
		Phone: phone(magic), ExpiresAt: w.now().Add(exchange.OrderLife),
	}
}

// phone returns the number with a fault of the operator.
func phone(magic string) string { return "2547000000" + magic }

// intends writes down a request as the API does. The intent has the id of the order.
func (w *harness) intends(r exchange.OrderRequest, kind exchange.IntentKind) uuid.UUID {
	w.t.Helper()
	return w.ask(r, kind, r.ID, r.Terms())
}

// asks writes down what the customer asks of the flow of an order.
func (w *harness) asks(r exchange.OrderRequest, kind exchange.IntentKind) workflows.IntentRef {
	w.t.Helper()
	return workflows.IntentRef{IntentID: w.ask(r, kind, uuid.New(), nil)}
}

func (w *harness) ask(r exchange.OrderRequest, kind exchange.IntentKind, request uuid.UUID, terms exchange.Terms) uuid.UUID {
	w.t.Helper()
	by := exchange.Principal{UserID: r.CustomerID, Role: exchange.RoleCustomer}
	a, err := storetest.Ask(w.t.Context(), w.store, kind, request, r.ID, terms, by)
	if err != nil {
		w.t.Errorf("write the intent %s: %v", kind, err)
	}
	return a.IntentID
}

// buy plays an order to its end.
func (w *harness) buy(r exchange.OrderRequest, script ...func(*testsuite.TestWorkflowEnvironment)) exchange.Order {
	w.t.Helper()
	in := workflows.OnRampInput{IntentID: w.intends(r, exchange.IntendPurchase)}
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

// unfinished plays an order for a time after which it has not ended.
func (w *harness) unfinished(r exchange.OrderRequest, d time.Duration, script ...func(*testsuite.TestWorkflowEnvironment)) exchange.Order {
	w.t.Helper()
	w.stopAfter = d
	return w.buy(r, script...)
}

// answer collects the answers to updates.
func (w *harness) answer(name string) *testsuite.TestUpdateCallback {
	return &testsuite.TestUpdateCallback{
		OnReject:   func(err error) { w.answers[name] = err },
		OnAccept:   func() {},
		OnComplete: func(_ any, err error) { w.answers[name] = err },
	}
}

// after calls a function when the flow has run for a while.
func after(d time.Duration, do func(*testsuite.TestWorkflowEnvironment)) func(*testsuite.TestWorkflowEnvironment) {
	return func(env *testsuite.TestWorkflowEnvironment) { env.RegisterDelayedCallback(func() { do(env) }, d) }
}

// order reads an order.
func (w *harness) order(id uuid.UUID) exchange.Order {
	w.t.Helper()
	o, err := w.store.Order(w.t.Context(), store.Everything(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	return o
}

// attempts returns the prompts of an order, the first one first.
func (w *harness) attempts(order uuid.UUID) []exchange.PaymentAttempt {
	w.t.Helper()
	all, err := w.store.Collections(w.t.Context(), exchange.OrderObject(order))
	if err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b exchange.PaymentAttempt) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return all
}

// exceptions returns the payment exceptions of an order, or those without an order.
func (w *harness) exceptions() []exchange.PaymentException {
	w.t.Helper()
	all, _, err := w.store.ListExceptions(w.t.Context(), store.ExceptionFilter{}, store.Page{Number: 1, Size: 50})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// command writes an operator's decision about an object, as the API does.
func (w *harness) command(objectType string, object uuid.UUID, verb, note string) workflows.CommandRef {
	w.t.Helper()
	officer := storetest.User(w.t, w.store, exchange.RoleOTCOfficer)
	c := exchange.OperatorCommand{ID: storetest.NewID(w.t), ObjectType: objectType, ObjectID: object, Verb: verb, Note: note, ActorID: officer.ID}
	if err := w.store.SaveCommand(w.t.Context(), c, storetest.PrincipalOf(officer)); err != nil {
		w.t.Error(err)
	}
	return workflows.CommandRef{CommandID: c.ID}
}

// sendCommand sends a decision about the order to its flow and stores the answer under the verb.
func (w *harness) sendCommand(env *testsuite.TestWorkflowEnvironment, order uuid.UUID, verb, note string) {
	ref := w.command(activities.ObjectOrder, order, verb, note)
	env.UpdateWorkflow(workflows.UpdateCommand, ref.CommandID.String(), w.answer(verb), ref)
}

// lateWatches plays the flows for late money whose notices came when no flow was running, as the API starts them.
func (w *harness) lateWatches(script ...func(*testsuite.TestWorkflowEnvironment)) {
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
