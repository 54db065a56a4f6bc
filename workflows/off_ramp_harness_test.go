package workflows_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// market is everything around the flow of a sale: our rows, deposits on the chain, the flows that pay out shillings and
// crypto, and users.
type market struct {
	env      *testsuite.TestWorkflowEnvironment
	mu       sync.Mutex
	signs    *signs
	request  exchange.OrderRequest
	start    time.Time
	answers  map[string]error
	rejected map[string]bool

	order       exchange.Order
	lease       bool // the order holds an address
	exhausted   int  // how often no address is free
	full        bool // the pool has its maximum size
	provisioned int
	deposits    map[uuid.UUID]exchange.ChainDeposit
	claims      map[uuid.UUID]exchange.DepositVerdict
	said        []exchange.Verdict // by the screener, one for each query; the last one repeats
	asked       int
	fault       func(call string) error // called before the effect
	lost        func(call string) error // called after it
	commands    map[uuid.UUID]activities.Proof

	payouts  []momoOutcome // by try; the last one repeats
	tries    []int
	paid     int
	home     string   // where a payout's callbacks go
	verbs    []string // that a payout's flow received
	sweeps   []string // reasons of the sweep's tries; the last one repeats, empty completes
	swept    int
	refunded int
	refusals int                 // how often a refund can't be opened
	waits    exchange.RefundWait // what the refund waits for
	settle   func() error        // settles the receipt of a payout that was recorded as refused
	kept     bool                // the payout stands instead of the refund
	funding  []string            // reasons of the tries to take the crypto from a wallet; the last one repeats, empty completes
	signed   bool                // its crypto may be on its way
	givenUp  bool                // its payment was given up
	funded   bool                // its crypto arrived
}

// momoOutcome is the outcome of one payout.
type momoOutcome struct {
	after  time.Duration
	result workflows.MomoPayoutResult
	until  string // a verb, or "callback": what it waits for before it ends
}

var rate = decimal.RequireFromString("129.35")

var wasPaid = momoOutcome{after: 10 * time.Second, result: workflows.MomoPayoutResult{Completed: true}}

func wasRefused(class exchange.OutcomeClass, reason, code string) momoOutcome {
	return momoOutcome{after: 10 * time.Second, result: workflows.MomoPayoutResult{Reason: reason, Refused: true, Class: class, Code: code}}
}

func newMarket() *market {
	shown := newSigns()
	m := &market{
		env: newEnvironment(shown), answers: map[string]error{}, rejected: map[string]bool{}, signs: shown,
		start: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC), deposits: map[uuid.UUID]exchange.ChainDeposit{},
		claims: map[uuid.UUID]exchange.DepositVerdict{}, commands: map[uuid.UUID]activities.Proof{},
	}
	m.env.SetStartTime(m.start)
	m.request = exchange.OrderRequest{
		ID: uuid.MustParse("0192f0a0-0000-7000-8000-000000000001"), CustomerID: uuid.MustParse("0192f0a0-0000-7000-8000-0000000000c1"),
		Type: exchange.OffRampSell, Crypto: money.Must(money.USDT, "10"), Phone: "254712345678", ExpiresAt: m.start.Add(exchange.OffRampLife),
		Seen: exchange.SeenOffer{Network: exchange.Tron, Asset: money.USDT, MerchantID: uuid.MustParse("0192f0a0-0000-7000-8000-0000000000d1")},
	}
	m.register()
	return m
}

func (m *market) register() {
	m.env.RegisterWorkflow(workflows.OffRamp)
	m.env.RegisterWorkflowWithOptions(m.momoPayout, workflow.RegisterOptions{Name: workflows.TypeMomoPayout})
	m.env.RegisterWorkflowWithOptions(m.cryptoPayout, workflow.RegisterOptions{Name: workflows.TypeCryptoPayout})
	m.env.RegisterActivity(&activities.OffRamps{Store: m, Screener: m})
	for name, do := range map[string]any{
		"EscrowRoom": m.escrowRoom, "MakeWallet": m.makeWallet, "ReleaseEscrow": m.releaseEscrow, "ApproveSweep": m.approveSweep,
		"OpenChainRefund": m.openRefund, "MarkOrder": m.markOrder, "ProveCommand": m.prove, "RetryPayout": m.retryPayout,
		"ApproveRefundPayment": m.approveRefund, "KeepPayout": m.keepPayout, "SettlePayout": m.settlePayout,
		"ApproveFunding": m.approveFunding, "CancelFunding": m.cancelFunding, "ListParked": listed,
	} {
		m.env.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: name})
	}
}

// step runs one transaction with its faults.
func step[T any](m *market, call string, do func() (T, error)) (T, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var zero T
	if m.fault != nil {
		if err := m.fault(call); err != nil {
			return zero, err
		}
	}
	out, err := do()
	if err == nil && m.lost != nil {
		if err := m.lost(call); err != nil {
			return zero, err
		}
	}
	return out, err
}

// keepPayout keeps a payout that was recorded as refused.
func (m *market) keepPayout(ctx context.Context, _ activities.KeepPayoutInput) error {
	_, err := step(m, "KeepPayout", func() (struct{}, error) {
		m.kept = true
		m.paid++
		return struct{}{}, nil
	})
	return activities.Failure(ctx, err)
}

// settlePayout accepts the receipt of a payout that was recorded as refused. The next try finds it paid.
func (m *market) settlePayout(ctx context.Context, _ activities.SettlePayoutInput) error {
	_, err := step(m, "SettlePayout", func() (struct{}, error) { return struct{}{}, m.settle() })
	return activities.Failure(ctx, err)
}

func (m *market) markOrder(ctx context.Context, in activities.MarkOrderInput) error {
	_, err := step(m, "MarkOrder", func() (struct{}, error) {
		if !exchange.OffRampMachine.Terminal(m.order.Status) {
			m.order.StatusDetail = in.Detail
		}
		return struct{}{}, nil
	})
	return activities.Failure(ctx, err)
}

func (m *market) prove(ctx context.Context, in activities.ProveInput) (activities.Proof, error) {
	out, err := step(m, "ProveCommand", func() (activities.Proof, error) {
		p, ok := m.commands[in.CommandID]
		if !ok || p.Object != in.Objects[0] {
			return p, notFound("command")
		}
		return p, nil
	})
	return out, activities.Failure(ctx, err)
}

func (m *market) retryPayout(ctx context.Context, _ activities.RetryPayoutInput) error {
	_, err := step(m, "RetryPayout", func() (struct{}, error) { return struct{}{}, nil })
	return activities.Failure(ctx, err)
}

// momoPayout stands for the flow that pays the shillings out, as its parent sees it.
func (m *market) momoPayout(ctx workflow.Context, in workflows.MomoPayoutInput) (workflows.MomoPayoutResult, error) {
	heard := map[string]bool{}
	for _, name := range []string{workflows.SignalRetry, workflows.SignalRefund, workflows.SignalResolve} {
		workflow.Go(ctx, func(ctx workflow.Context) {
			for {
				workflow.GetSignalChannel(ctx, name).Receive(ctx, nil)
				heard[name] = true
				m.mu.Lock()
				m.verbs = append(m.verbs, name)
				m.mu.Unlock()
			}
		})
	}
	m.mu.Lock()
	outcome := pick(m.payouts, len(m.tries)+1, wasPaid)
	m.tries, m.home = append(m.tries, in.Try), in.Home
	m.mu.Unlock()
	if err := workflow.Sleep(ctx, outcome.after); err != nil {
		return workflows.MomoPayoutResult{}, err
	}
	if outcome.until != "" {
		if err := workflow.Await(ctx, func() bool { return heard[outcome.until] }); err != nil {
			return workflows.MomoPayoutResult{}, err
		}
	}
	if outcome.result.Completed {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.paid++
		return outcome.result, m.move(exchange.OrderCompleted, exchange.WaitNothing)
	}
	return outcome.result, nil
}

// cryptoPayout stands for the flow that sends the crypto to the vendor or back, as its parent sees it.
func (m *market) cryptoPayout(ctx workflow.Context, in workflows.CryptoPayoutInput) (workflows.CryptoPayoutResult, error) {
	if err := workflow.Sleep(ctx, 20*time.Second); err != nil {
		return workflows.CryptoPayoutResult{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if in.PaymentID == fundingPayment {
		return m.fundOrder(), nil
	}
	if in.PaymentID != sweepPayment {
		m.refunded++
		return workflows.CryptoPayoutResult{Completed: true, TxID: "cd"}, nil
	}
	reason := pick(m.sweeps, 1, "")
	if len(m.sweeps) > 0 {
		m.sweeps = m.sweeps[1:]
	}
	if reason == "" {
		m.swept++
		return workflows.CryptoPayoutResult{Completed: true, TxID: "ab"}, nil
	}
	return workflows.CryptoPayoutResult{Reason: reason}, nil
}

// comes moves a deposit to a state, and signals the flow unless the signal is lost.
func (m *market) comes(n byte, status exchange.ChainDepositStatus, amount money.Amount, notified bool) func() {
	return func() {
		d := exchange.ChainDeposit{
			ID: id(100 + n), Network: exchange.Tron, TxID: "tx", Index: uint32(n), Amount: amount, Kind: exchange.DepositAwaited, Status: status, Block: 7,
		}
		m.mu.Lock()
		m.deposits[d.ID] = d
		m.mu.Unlock()
		if notified {
			m.env.SignalWorkflow(workflows.SignalDeposit, workflows.DepositRef{DepositID: d.ID})
		}
	}
}

// crypto returns an amount of USDT.
func crypto(amount string) money.Amount { return money.Must(money.USDT, amount) }

// deposit makes crypto seen after the given time and final a minute later.
func (m *market) deposit(after time.Duration, n byte, amount money.Amount) {
	m.at(after, m.comes(n, exchange.DepositSeen, amount, true))
	m.at(after+time.Minute, m.comes(n, exchange.DepositFinal, amount, true))
}

func (m *market) at(d time.Duration, do func()) { m.env.RegisterDelayedCallback(do, d) }

func (m *market) answer(id string) *testsuite.TestUpdateCallback {
	return &testsuite.TestUpdateCallback{
		OnReject:   func(err error) { m.answers[id], m.rejected[id] = err, true },
		OnAccept:   func() {},
		OnComplete: func(_ any, err error) { m.answers[id] = err },
	}
}

// command writes a command as the API does and sends it to the flow.
func (m *market) command(verb string) func() {
	return func() {
		cmd := uuid.New()
		m.mu.Lock()
		m.commands[cmd] = activities.Proof{
			CommandID: cmd, Object: activities.ObjectRef{Type: activities.ObjectOrder, ID: m.request.ID}, Verb: verb, ActorID: uuid.New(),
		}
		m.mu.Unlock()
		m.env.UpdateWorkflow(workflows.UpdateCommand, cmd.String(), m.answer(verb), workflows.CommandRef{CommandID: cmd})
	}
}

func (m *market) cancel() {
	m.env.UpdateWorkflow(workflows.UpdateCancel, "cancel", m.answer("cancel"), workflows.Actor{UserID: m.request.CustomerID, Role: exchange.RoleCustomer})
}

// run runs the order's flow until it ends.
func (m *market) run(t *testing.T) {
	t.Helper()
	m.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.OffRampID(m.request.ID), TaskQueue: workflows.QueueFlows})
	m.env.RegisterDelayedCallback(func() { m.env.UpdateWorkflow(workflows.UpdateOpen, m.request.ID.String(), m.answer("open")) }, 0)
	m.env.ExecuteWorkflow(workflows.OffRamp, workflows.OffRampInput{Request: m.request, Actor: workflows.Actor{UserID: m.request.CustomerID}})
	if !m.env.IsWorkflowCompleted() {
		t.Fatal("the flow did not end")
	}
	exhausted := code(m.answers["open"]) == exchange.CodeEscrowExhausted
	if err := m.env.GetWorkflowError(); exhausted != (code(err) == exchange.CodeEscrowExhausted) || err != nil && m.order.ID != uuid.Nil {
		t.Fatalf("the flow failed: %v", err) // it must fail only for want of an address: the request may then be repeated
	}
	if exhausted {
		return
	}
	var r workflows.OffRampResult
	if err := m.env.GetWorkflowResult(&r); err != nil || r.OrderID != m.request.ID || r.Status != m.order.Status {
		t.Errorf("the flow ended with %+v, %v; the order is %s", r, err, m.order.Status)
	}
}

// sound checks what must hold after every scenario.
func (m *market) sound(t *testing.T) {
	t.Helper()
	paying := 0
	if m.funded {
		paying++
	}
	for id, v := range m.claims {
		if v == exchange.TakenExact || v == exchange.TakenRepriced {
			paying++
			if m.deposits[id].Status != exchange.DepositFinal {
				t.Error("a deposit was taken that is not final")
			}
		}
	}
	switch {
	case m.paid > 1 || m.swept > 1 || m.refunded > 1:
		t.Errorf("paid %d times, swept %d times, refunded %d times", m.paid, m.swept, m.refunded)
	case m.paid > 0 && (paying != 1 || m.refunded > 0):
		t.Errorf("paid out for %d deposits, of which %d went back", paying, m.refunded)
	case m.swept != m.paid:
		t.Errorf("swept %d times, paid %d times", m.swept, m.paid)
	case m.order.Status == exchange.OrderFailed && m.refunded+m.swept != 1:
		t.Error("the order failed and its crypto did not go back")
	case m.order.ID != uuid.Nil && m.lease:
		t.Error("the address was not given back")
	}
	for id, d := range m.deposits {
		if d.Status == exchange.DepositFinal && m.claims[id] == "" {
			t.Errorf("the deposit %d is not accounted for", d.Index)
		}
	}
	for try := range slices.Values(m.tries) {
		if try > len(m.tries) {
			t.Errorf("the tries were %v", m.tries)
		}
	}
}
