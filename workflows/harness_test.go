package workflows_test

import (
	"context"
	"slices"
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
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
	"kivuko/workflows/workflowstest"
)

// harness is everything around the flows: our rows, a mobile money operator, a network, and users.
type harness struct {
	t        testing.TB
	env      *testsuite.TestWorkflowEnvironment
	store    *faultyStore
	market   storetest.Market
	officer  exchange.Principal
	operator *operator
	chain    *network
	keys     *keyRing
	request  exchange.OrderRequest
	start    time.Time
	answers  map[string]error // of updates, by their id
	rejected map[string]bool  // updates that never became part of the history
	signs    *signs
	unread   time.Duration // until when the watch over the chain reads nothing
}

// newEnvironment is an environment for one flow, which shows its signs to shown if that is not nil.
func newEnvironment(shown *signs) *testsuite.TestWorkflowEnvironment {
	if shown == nil {
		return workflowstest.NewEnvironment(workflowstest.Options{})
	}
	return workflowstest.NewEnvironment(workflowstest.Options{Interceptors: []interceptor.WorkerInterceptor{shown}})
}

// newHarness makes a harness in which every call succeeds, on a database of its own.
func newHarness(t testing.TB) *harness { return newHarnessOn(t, networkName) }

func newHarnessOn(t testing.TB, n exchange.Network) *harness {
	t.Helper()
	w := newStage(t, n)
	w.market = storetest.NewMarketOn(t, w.store.Store, n)
	if _, err := w.store.StartDeposits(t.Context(), n, exchange.ChainBlock{Number: watchedTo, ID: "start", Time: w.start}); err != nil {
		t.Fatal(err)
	}
	w.request = exchange.OrderRequest{
		ID: uuid.MustParse("0192f0a0-0000-7000-8000-000000000001"), CustomerID: w.market.Customer.ID, OfferID: w.market.Offer.ID,
		Crypto: money.Must(money.USDT, "10"), Phone: "254712345678", ExpiresAt: w.start.Add(exchange.OrderLife),
	}
	w.signs.order, w.signs.shillings = &w.request, price
	return w
}

// newStage makes everything but the market.
func newStage(t testing.TB, n exchange.Network) *harness {
	t.Helper()
	shown := newSigns()
	w := &harness{
		t: t, env: newEnvironment(shown), answers: map[string]error{}, rejected: map[string]bool{}, signs: shown,
		start: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC),
	}
	w.env.SetStartTime(w.start)
	w.operator = &operator{
		now: w.env.Now, later: func(d time.Duration, f func()) { w.env.RegisterDelayedCallback(f, max(d, time.Millisecond)) },
		deliver: w.deliver, confirm: w.confirm,
		script:    func(exchange.PaymentAttempt, int) payer { return payer{code: "0", after: 5 * time.Second} },
		submitted: map[uuid.UUID]int{}, counts: map[exchange.PaymentDirection]int{}, plans: map[uuid.UUID]payer{},
		attempts: map[uuid.UUID]exchange.PaymentAttempt{}, results: map[uuid.UUID]string{},
	}
	w.chain = &network{
		on: n, now: w.env.Now, script: func(int) outcome { return outcome{} }, signed: map[string]*entry{}, txs: map[string]*entry{},
	}
	w.keys = &keyRing{}
	w.store = &faultyStore{network: n, now: w.env.Now, Store: storetest.Open(t, storetest.URL(t), store.Options{Now: w.env.Now, MaxConns: 4})}
	w.store.watch = w.readOn
	w.officer = storetest.PrincipalOf(storetest.User(t, w.store.Store, exchange.RoleTreasury))
	w.chain.store = w.store
	w.register()
	return w
}

// readOn has the watch read all that is final, unless it reads nothing yet.
func (w *harness) readOn() {
	if w.env.Now().Sub(w.start) >= w.unread {
		to := w.env.Now().Add(-finalAfter).UTC().Format(time.RFC3339Nano)
		storetest.Exec(w.t, w.store.Store, `SET session_replication_role = replica; UPDATE deposit_cursors SET final_time = '`+to+`' WHERE final_time < '`+to+`'; SET session_replication_role = origin`)
	}
}

func (w *harness) register() {
	w.env.RegisterWorkflow(workflows.OnRamp)
	w.env.RegisterWorkflow(workflows.CryptoPayout)
	w.env.RegisterWorkflow(workflows.MomoPayout)
	w.env.RegisterWorkflow(workflows.LatePayment)
	w.env.RegisterWorkflow(workflows.LatePayout)
	w.env.RegisterWorkflow(workflows.CreateWallet)
	w.env.RegisterWorkflow(workflows.SealAudit)
	w.env.RegisterActivity(&activities.Orders{Store: w.store})
	w.env.RegisterActivity(&activities.Intents{Store: w.store})
	w.env.RegisterActivity(&activities.Momo{Store: w.store, Operator: w.operator, Provider: "daraja", Now: w.env.Now})
	w.env.RegisterActivity(&activities.Refunds{Store: w.store})
	w.env.RegisterActivity(&activities.Payouts{Store: w.store, Operator: w.operator, Provider: "daraja", Now: w.env.Now})
	w.env.RegisterActivity(&activities.Signing{Signer: w.chain, Store: w.store, Recipients: &activities.Recipients{Store: w.store}})
	w.env.RegisterActivity(&activities.Chain{Store: w.store, Client: w.chain, Poll: blockTime})
	w.env.RegisterActivity(&activities.Wallets{Keys: w.keys, Store: w.store})
}

// deliver stores a callback and wakes the flow that waits for it, as the API does.
func (w *harness) deliver(a exchange.PaymentAttempt, kind exchange.CallbackKind, body []byte) {
	c := exchange.MomoCallback{ID: uuid.New(), AttemptID: a.ID, Kind: kind, Body: body, ReceivedAt: w.env.Now()}
	if err := w.store.SaveCallback(context.Background(), c); err != nil {
		w.t.Error(err)
	}
	ref := workflows.CallbackRef{CallbackID: c.ID, AttemptID: a.ID}
	w.env.RegisterDelayedCallback(func() { // on the environment's own loop
		if err := w.env.SignalWorkflowByID(a.WorkflowID, workflows.SignalCallback, ref); err != nil {
			_ = w.env.SignalWorkflowByID(workflows.LatePaymentID(a.ID), workflows.SignalCallback, ref)
		}
	}, 0)
}

func (w *harness) confirm(o exchange.Observation) {
	if err := w.store.Store.SaveReceipt(w.t.Context(), o); err != nil {
		w.t.Error(err)
	}
}

// run runs the order's flow until it ends.
func (w *harness) run(t checker) workflows.OnRampResult {
	t.Helper()
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.OnRampID(w.request.ID), TaskQueue: workflows.QueueFlows})
	w.env.RegisterDelayedCallback(func() {
		w.env.UpdateWorkflow(workflows.UpdateOpen, w.request.ID.String(), w.answer("open"))
	}, 0)
	w.shows(workflows.OnRampAttributes(w.request))
	w.env.ExecuteWorkflow(workflows.OnRamp, workflows.OnRampInput{IntentID: w.asksForOrder(exchange.IntendPurchase)})
	if !w.env.IsWorkflowCompleted() {
		t.Fatal("the flow did not end")
	}
	if err := w.env.GetWorkflowError(); err != nil {
		t.Fatalf("the flow failed: %v", err)
	}
	var r workflows.OnRampResult
	if err := w.env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

func (w *harness) customer() exchange.Principal {
	return exchange.Principal{UserID: w.request.CustomerID, Role: exchange.RoleCustomer}
}

// asksForOrder writes down what the customer asks for, as the API does before it starts the flow.
func (w *harness) asksForOrder(kind exchange.IntentKind) uuid.UUID {
	return w.intends(kind, w.request.ID, w.request.ID, w.request.Terms(), w.customer()).IntentID
}

// asks writes down what the customer asks of the order's flow.
func (w *harness) asks(kind exchange.IntentKind) workflows.IntentRef {
	return w.intends(kind, uuid.New(), w.request.ID, nil, w.customer())
}

// intends writes down an intent. The request's id is the intent's.
func (w *harness) intends(kind exchange.IntentKind, request, object uuid.UUID, terms exchange.Terms, by exchange.Principal) workflows.IntentRef {
	a, err := storetest.Ask(w.t.Context(), w.store.Store, kind, request, object, terms, by)
	if err != nil {
		w.t.Errorf("write the intent %s: %v", kind, err)
	}
	return workflows.IntentRef{IntentID: a.IntentID}
}

// shows has the flow start with search attributes, as the API starts it.
func (w *harness) shows(a temporal.SearchAttributes) {
	if err := w.env.SetTypedSearchAttributesOnStart(a); err != nil {
		w.t.Error(err)
	}
}

// answer records the response to an update.
func (w *harness) answer(id string) *testsuite.TestUpdateCallback {
	return w.answerThen(id, func() {})
}

// answerThen is answer, and does something afterwards.
func (w *harness) answerThen(id string, then func()) *testsuite.TestUpdateCallback {
	return &testsuite.TestUpdateCallback{
		OnReject: func(err error) {
			w.answers[id], w.rejected[id] = err, true
			then()
		},
		OnAccept: func() {},
		OnComplete: func(_ any, err error) {
			w.answers[id] = err
			then()
		},
	}
}

// at schedules an action at a time after the flow's start.
func (w *harness) at(d time.Duration, do func()) { w.env.RegisterDelayedCallback(do, d) }

// command writes a command as the API does and sends it to the order's flow.
func (w *harness) command(verb string) {
	w.notifyFlow(w.decree(verb), verb)
}

// notifyFlow sends a command to the order's flow and records the response under the key.
func (w *harness) notifyFlow(id uuid.UUID, key string) {
	w.env.UpdateWorkflow(workflows.UpdateCommand, id.String(), w.answer(key), workflows.CommandRef{CommandID: id})
}

// decree writes a command about the order.
func (w *harness) decree(verb string) uuid.UUID {
	note := "UKLMANUAL1" // the receipt that our operator finds at the mobile money operator
	for _, m := range w.operator.collected(w.request.ID) {
		if !slices.ContainsFunc(w.attemptList(), func(a exchange.PaymentAttempt) bool { return a.Receipt == m.receipt }) {
			note = m.receipt
		}
	}
	return w.decreeWith(activities.ObjectOrder, w.request.ID, verb, note)
}

// decreeWith writes a command about an object, with a note.
func (w *harness) decreeWith(objectType string, object uuid.UUID, verb, note string) uuid.UUID {
	c := exchange.OperatorCommand{ID: uuid.New(), ObjectType: objectType, ObjectID: object, Verb: verb, Note: note, ActorID: w.officer.UserID}
	if err := w.store.SaveCommand(w.t.Context(), c, w.officer); err != nil {
		w.t.Errorf("save the command %s: %v", verb, err)
	}
	return c.ID
}

// order reads the order, which is empty when it was not opened.
func (w *harness) order() exchange.Order {
	o, err := w.store.Store.OrderByID(w.t.Context(), w.request.ID)
	if err != nil && exchange.CodeOf(err) != exchange.CodeNotFound {
		w.t.Error(err)
	}
	return o
}

// refunds reads the refunds.
func (w *harness) refunds() []exchange.Refund {
	all, _, err := w.store.ListRefunds(w.t.Context(), store.RefundFilter{}, everything)
	if err != nil {
		w.t.Error(err)
	}
	return all
}

// exceptions reads the payment exceptions.
func (w *harness) exceptions() []exchange.PaymentException {
	all, _, err := w.store.ListExceptions(w.t.Context(), store.ExceptionFilter{}, everything)
	if err != nil {
		w.t.Error(err)
	}
	return all
}

var everything = store.Page{Number: 1, Size: 50}

// payment reads the id of the order's chain payment.
func (w *harness) payment() (id uuid.UUID) {
	err := storetest.Owner(w.t, w.store.Store).QueryRowContext(w.t.Context(), `SELECT id FROM chain_payments WHERE purpose = 'order' AND object_id = $1`, w.request.ID).Scan(&id)
	if err != nil {
		w.t.Errorf("the order's chain payment: %v", err)
	}
	return id
}

// balance reads what an account holds.
func (w *harness) balance(account exchange.AccountRef) money.Amount {
	a, err := w.store.Account(w.t.Context(), account)
	if err != nil {
		w.t.Error(err)
	}
	return a.Posted
}

// setFloat leaves the house with this float for payouts.
func (w *harness) setFloat(left money.Amount) { w.setHouse(exchange.AccMomoPayout, left) }

// setHouse leaves the house with these shillings on one of its accounts.
func (w *harness) setHouse(kind exchange.AccountKind, left money.Amount) {
	account, capital := exchange.House(kind, money.KES), exchange.House(exchange.AccCapital, money.KES)
	more := left.Sub(w.balance(account))
	lines := []exchange.Line{exchange.Debit(account, more), exchange.Credit(capital, more)}
	if !more.Positive() {
		lines = []exchange.Line{exchange.Credit(account, more.Neg()), exchange.Debit(capital, more.Neg())}
	}
	if err := w.store.Post(w.t.Context(), exchange.Posting{Entries: []exchange.Entry{{Key: "test:" + uuid.NewString(), Kind: "seed.float", Lines: lines}}}); err != nil {
		w.t.Error(err)
	}
}

// sound checks what must hold after every scenario, against the books of the operator and the network.
func (w *harness) sound(t checker) {
	t.Helper()
	o := w.order()
	if o.ID == uuid.Nil {
		return
	}
	if n := w.chain.paid(o.ID); n > 1 {
		t.Errorf("the crypto was paid out %d times", n)
	}
	earned := money.Zero(money.KES)
	if o.Status == exchange.OrderCompleted {
		earned = o.Price.Vendor
	}
	if has := w.balance(exchange.Owned(exchange.AccFiatBalance, o.VendorID, money.KES)); !has.Equal(earned) {
		t.Errorf("the order is %s and the vendor was paid %s", o.Status, has)
	}
	for id, n := range w.operator.submitted {
		if n > 1 {
			t.Errorf("attempt %s was submitted %d times", id, n)
		}
	}
	in, out := w.operator.collected(o.ID), w.operator.paidOut(o.ID)
	sum := func(list []moved) money.Amount {
		total := money.Zero(money.KES)
		for _, m := range list {
			total = total.Add(m.amount)
		}
		return total
	}
	if sum(out).Cmp(sum(in)) > 0 {
		t.Errorf("%s was paid back of %s", sum(out), sum(in))
	}
	if w.chain.paid(o.ID) == 1 && len(in) == 0 {
		t.Error("crypto was paid out without a payment")
	}
	if o.Status == exchange.OrderCompleted && w.chain.paid(o.ID) != 1 {
		t.Error("the order is completed and the network does not know it")
	}
	if o.Status == exchange.OrderFailed && w.chain.paid(o.ID) > 0 {
		t.Error("the order failed and the crypto was paid out")
	}
	w.accounted(t, in)
}

// accounted checks that all collected money is accounted for: it paid the order or is an exception.
func (w *harness) accounted(t checker, in []moved) {
	t.Helper()
	for _, m := range in {
		placed := slices.ContainsFunc(w.attemptList(), func(a exchange.PaymentAttempt) bool { return a.Receipt == m.receipt })
		if !placed {
			t.Errorf("the payment %s of %s is not accounted for", m.receipt, m.amount)
		}
	}
}

func (w *harness) attemptList() []exchange.PaymentAttempt {
	prompts, err := w.store.Collections(w.t.Context(), exchange.OrderObject(w.request.ID))
	if err != nil {
		w.t.Error(err)
	}
	payouts, err := w.store.Payouts(w.t.Context(), w.request.ID)
	if err != nil {
		w.t.Error(err)
	}
	return append(prompts, payouts...)
}

func code(err error) exchange.Code { return exchange.CodeOf(workflows.AsExchangeError(err)) }

// lateCommand writes a command about the order and sends it to every watch for late money.
func (w *harness) lateCommand(verb string) {
	for _, a := range w.attemptList() {
		if a.Direction == exchange.Collection {
			id := w.decree(verb)
			_ = w.env.SignalWorkflowByID(workflows.LatePaymentID(a.ID), verb, workflows.CommandRef{CommandID: id})
		}
	}
}

// checker is what *testing.T and *rapid.T share.
type checker interface {
	Helper()
	Error(args ...any)
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}
