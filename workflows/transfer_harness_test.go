package workflows_test

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// ticket is an officer's token for one decision.
type ticket struct {
	officer uuid.UUID
	action  exchange.ApprovalAction
	expires time.Time
	used    bool
}

// sending is the database of one transfer: the rules of the real store, in memory, over the payments of the book that
// the network writes to.
type sending struct {
	*book
	row      exchange.Transfer
	kind     exchange.TransferKind
	required int
	cold     bool
	refusal  error // of the request

	handedOut []uuid.UUID // to whom
	vault     *vault      // of a cold wallet whose transactions live by a nonce account
	denied    bool
	held      bool
	tickets   map[string]*ticket
	deciders  []uuid.UUID
	noted     []exchange.Code // decisions without proof
	answers   []answer        // of the screener, in order; the last one repeats
	asked     int
	screened  func() // between the screening's write and its response
}

// answer is a response of the screener.
type answer struct {
	verdict exchange.Verdict
	err     error
}

var noAnswer = answer{err: exchange.Errorf(exchange.CodeUnavailable, "no answer")}

func (s *sending) Screen(context.Context, exchange.Counterparty) (exchange.Screening, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	a := pick(s.answers, s.asked, answer{verdict: exchange.VerdictClear})
	return exchange.Screening{Screener: "service", Verdict: a.verdict}, a.err
}

// move changes the row where the state machine allows it.
func (s *sending) to(status exchange.TransferStatus, detail string) error {
	if status == s.row.Status && detail == s.row.StatusDetail {
		return nil
	}
	if status != s.row.Status {
		if err := exchange.TransferMachine.Allow(s.row.Status, status); err != nil {
			return err
		}
	}
	s.row.Status, s.row.StatusDetail = status, detail
	s.row.Version++
	return nil
}

// follow updates the transfer with its payment, as the store does in the payment's own transaction.
func (s *sending) follow() {
	p, ok := s.payments[s.row.PaymentID]
	if !ok || s.row.Over() {
		return
	}
	switch p.Status {
	case exchange.ChainApproved:
		if s.row.Status == exchange.TransferBroadcasting || s.row.Status == exchange.TransferConfirming {
			_ = s.to(exchange.TransferSigning, exchange.WaitSignature)
		}
	case exchange.ChainSigned:
		if s.row.Status == exchange.TransferQueued { // of a cold wallet
			_ = s.to(exchange.TransferSigning, exchange.WaitSignature)
		}
		_ = s.to(exchange.TransferBroadcasting, exchange.WaitBroadcast)
	case exchange.ChainBroadcast, exchange.ChainIncluded:
		_ = s.to(exchange.TransferConfirming, exchange.WaitFinality)
	case exchange.ChainCompleted:
		if s.row.Status == exchange.TransferSigning {
			_ = s.to(exchange.TransferConfirming, exchange.WaitFinality)
		}
		_ = s.to(exchange.TransferCompleted, exchange.WaitNothing)
		s.held = false
	case exchange.ChainParked, exchange.ChainCancelled:
	}
}

// step is one transaction about the transfer.
func (s *sending) step(call string, do func() error) (exchange.Transfer, error) {
	return tx(s.book, call, func() (exchange.Transfer, error) {
		s.follow()
		err := do()
		return s.row, err
	})
}

func (s *sending) OpenTransfer(_ context.Context, r exchange.TransferRequest, _ exchange.Principal) (exchange.Transfer, error) {
	return tx(s.book, "OpenTransfer", func() (exchange.Transfer, error) {
		if s.refusal != nil {
			return exchange.Transfer{}, s.refusal
		}
		if s.row.ID == uuid.Nil {
			s.row = exchange.Transfer{
				ID: r.ID, Kind: s.kind, RequestedBy: r.RequestedBy, Network: r.Network, Amount: r.Amount, WalletType: exchange.Hot,
				ToAddress: "TStranger", ApprovalsRequired: s.required, Status: exchange.TransferCreated, Version: 1,
			}
			if s.cold {
				s.row.WalletType = exchange.Cold
			}
			s.held = true
		}
		return s.row, nil
	})
}

func (s *sending) TransferByID(context.Context, uuid.UUID) (exchange.Transfer, error) {
	return s.step("TransferByID", func() error { return nil })
}

func (s *sending) AdvanceTransfer(context.Context, uuid.UUID) (exchange.Transfer, error) {
	return s.step("AdvanceTransfer", func() error {
		switch {
		case s.row.Status != exchange.TransferCreated:
			return nil
		case s.row.Kind == exchange.InternalTransfer:
			return s.queue()
		}
		return s.to(exchange.TransferScreening, exchange.WaitScreening)
	})
}

func (s *sending) queue() error {
	p := exchange.ChainPayment{
		ID: uuid.NewSHA1(s.row.ID, []byte("payment")), Purpose: exchange.ForTransfer, ObjectID: s.row.ID, Network: s.row.Network, Amount: s.row.Amount,
		FromAddress: "TSender", ToAddress: s.row.ToAddress, Status: exchange.ChainApproved,
	}
	s.payments[p.ID] = p
	// The book updates the order of a payment; this order stands for the transfer there.
	s.orders[s.row.ID] = exchange.Order{ID: s.row.ID, Type: exchange.OnRampBuy, Status: exchange.OrderProcessing}
	s.row.PaymentID = p.ID
	if s.cold {
		return s.to(exchange.TransferQueued, exchange.WaitExternal)
	}
	return s.to(exchange.TransferQueued, exchange.WaitSignature)
}

func (s *sending) Denied(context.Context, exchange.Network, string) (bool, error) {
	return tx(s.book, "Denied", func() (bool, error) { return s.denied, nil })
}

func (s *sending) RecordScreening(_ context.Context, _ uuid.UUID, said []exchange.Screening) (exchange.Transfer, error) {
	if s.screened != nil {
		defer s.screened()
	}
	return s.step("RecordScreening", func() error {
		is := func(v exchange.Verdict) bool {
			return slices.ContainsFunc(said, func(a exchange.Screening) bool { return a.Verdict == v })
		}
		switch {
		case s.row.Status != exchange.TransferScreening:
			return nil
		case is(exchange.VerdictHit):
			return s.to(exchange.TransferBlocked, exchange.DetailHeld)
		case is(exchange.VerdictUnknown):
			return nil
		case s.required > 0:
			return s.to(exchange.TransferPending, exchange.WaitApproval)
		}
		return s.queue()
	})
}

func (s *sending) SignTransfer(context.Context, uuid.UUID) (exchange.Transfer, error) {
	return s.step("SignTransfer", func() error {
		switch {
		case s.row.Status != exchange.TransferQueued:
			return nil
		case s.cold:
			return conflict("a cold wallet signs elsewhere")
		}
		return s.to(exchange.TransferSigning, exchange.WaitSignature)
	})
}

func (s *sending) SetTransferDetail(_ context.Context, _ uuid.UUID, detail string) (exchange.Transfer, error) {
	return s.step("SetTransferDetail", func() error {
		if s.row.Over() {
			return nil
		}
		return s.to(s.row.Status, detail)
	})
}

// end cancels the payment where it can no longer move money, and releases the hold.
func (s *sending) end(status exchange.TransferStatus, detail string) error {
	if p, ok := s.payments[s.row.PaymentID]; ok {
		_, alive := s.live(p.ID)
		if alive || (p.Status != exchange.ChainApproved && p.Status != exchange.ChainParked) {
			return conflict("a transaction may still move money")
		}
		p.Status = exchange.ChainCancelled
		s.payments[p.ID] = p
	}
	s.held = false
	return s.to(status, detail)
}

func (s *sending) CancelTransfer(_ context.Context, _ uuid.UUID, detail string, _ exchange.Principal) (exchange.Transfer, error) {
	return s.step("CancelTransfer", func() error {
		if s.row.Status == exchange.TransferCancelled {
			return nil
		}
		if err := exchange.TransferMachine.Allow(s.row.Status, exchange.TransferCancelled); err != nil {
			return err
		}
		return s.end(exchange.TransferCancelled, detail)
	})
}

func (s *sending) LapseTransfer(context.Context, uuid.UUID) (exchange.Transfer, error) {
	return s.step("LapseTransfer", func() error {
		if s.row.Status != exchange.TransferPending {
			return nil
		}
		return s.end(exchange.TransferCancelled, exchange.DetailLapsed)
	})
}

func (s *sending) GiveUpTransfer(context.Context, uuid.UUID, exchange.Principal) (exchange.Transfer, error) {
	return s.step("GiveUpTransfer", func() error {
		switch s.row.Status {
		case exchange.TransferCreated, exchange.TransferScreening, exchange.TransferPending, exchange.TransferQueued:
			return s.end(exchange.TransferCancelled, exchange.DetailByStaff)
		case exchange.TransferSigning, exchange.TransferBroadcasting, exchange.TransferConfirming:
			return s.end(exchange.TransferFailed, exchange.DetailGivenUp)
		case exchange.TransferBlocked:
			s.held = false
			return s.to(exchange.TransferBlocked, exchange.DetailReleased)
		case exchange.TransferCompleted, exchange.TransferCancelled, exchange.TransferRejected, exchange.TransferFailed:
		}
		return nil
	})
}

func (s *sending) Decide(_ context.Context, _ uuid.UUID, token string, action exchange.ApprovalAction) (exchange.Transfer, error) {
	return s.step("Decide", func() error {
		k := s.tickets[token]
		switch {
		case k == nil || k.action != action:
			return notFound("token")
		case k.used && slices.Contains(s.deciders, k.officer):
			return nil
		case !s.now().Before(k.expires):
			return exchange.Errorf(exchange.CodeExpired, "expired")
		case slices.Contains(s.deciders, k.officer):
			return exchange.Errorf(exchange.CodeConflict, "decided already")
		case s.row.Status != exchange.TransferPending:
			return conflict("nothing waits")
		}
		k.used = true
		s.deciders = append(s.deciders, k.officer)
		if action == exchange.Reject {
			return s.end(exchange.TransferRejected, exchange.DetailRejected)
		}
		if s.row.Approvals++; s.row.Approvals < s.required {
			return s.to(exchange.TransferPending, exchange.WaitSecond)
		}
		return s.queue()
	})
}

func (s *sending) RecordRefusedDecision(_ context.Context, _ uuid.UUID, _ exchange.ApprovalAction, _ exchange.ApprovalChannel, code exchange.Code) error {
	return run(s.book, "RecordRefusedDecision", func() error {
		s.noted = append(s.noted, code)
		return nil
	})
}

// transferHarness is a harness with one transfer.
type transferHarness struct {
	*harness
	send *sending
	ask  exchange.TransferRequest
}

func newTransferHarness() *transferHarness {
	w := &transferHarness{harness: newBookHarness()}
	w.send = &sending{book: w.book, kind: exchange.ExternalTransfer, tickets: map[string]*ticket{}}
	w.ask = exchange.TransferRequest{
		ID: uuid.MustParse("0192f0a0-0000-7000-8000-0000000000f1"), RequestedBy: uuid.MustParse("0192f0a0-0000-7000-8000-0000000000c1"),
		Network: exchange.Tron, Amount: money.Must(money.USDT, "10"), Recipient: exchange.Recipient{Address: "TStranger"},
	}
	w.env.RegisterWorkflow(workflows.Transfer)
	w.env.RegisterActivity(&activities.Transfers{Store: w.send, Screener: w.send})
	w.env.RegisterActivity(&activities.Approvals{Store: w.send})
	w.registerCold()
	return w
}

// play runs the transfer's flow until it ends.
func (w *transferHarness) play(t checker) workflows.TransferResult {
	t.Helper()
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.TransferID(w.ask.ID), TaskQueue: workflows.QueueFlows})
	w.env.RegisterDelayedCallback(func() { w.env.UpdateWorkflow(workflows.UpdateOpen, w.ask.ID.String(), w.answer("open")) }, 0)
	w.env.ExecuteWorkflow(workflows.Transfer, workflows.TransferInput{Request: w.ask, Actor: w.sender()})
	if !w.env.IsWorkflowCompleted() {
		t.Fatal("the flow did not end")
	}
	if err := w.env.GetWorkflowError(); err != nil {
		t.Fatalf("the flow failed: %v", err)
	}
	var r workflows.TransferResult
	if err := w.env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	w.honest(t, r)
	return r
}

// honest checks what must hold after every scenario, against the network's own book.
func (w *transferHarness) honest(t checker, r workflows.TransferResult) {
	t.Helper()
	paid := w.chain.paid(w.ask.ID)
	if paid > 1 || (paid == 1) != (w.send.row.Status == exchange.TransferCompleted) {
		t.Errorf("the network paid %d times and the transfer is %s", paid, w.send.row.Status)
	}
	if w.send.held {
		t.Error("the money is still held")
	}
	if r.Status != w.send.row.Status || r.Detail != w.send.row.StatusDetail && r.Status != "" {
		t.Errorf("the flow ended as %s (%s), the row is %s (%s)", r.Status, r.Detail, w.send.row.Status, w.send.row.StatusDetail)
	}
	if p, ok := w.book.payments[w.send.row.PaymentID]; ok && w.send.row.Status != exchange.TransferCompleted && p.Status != exchange.ChainCancelled {
		t.Errorf("the transfer is %s and its payment %s", w.send.row.Status, p.Status)
	}
	if paid == 1 && len(w.send.deciders) < w.send.required {
		t.Errorf("paid with %d of %d approvals", len(w.send.deciders), w.send.required)
	}
}

func (w *transferHarness) sender() workflows.Actor {
	return workflows.Actor{UserID: w.ask.RequestedBy, Role: exchange.RoleCustomer}
}

// token gives an officer, identified by a number, the right to one decision.
func (w *transferHarness) token(officer byte, action exchange.ApprovalAction) string {
	w.book.mu.Lock()
	defer w.book.mu.Unlock()
	name := uuid.NewString()
	w.send.tickets[name] = &ticket{officer: uuid.UUID{15: officer}, action: action, expires: w.env.Now().Add(exchange.ApprovalTokenTTL)}
	return name
}

// decide sends a token as the API does.
func (w *transferHarness) decide(name, update, token string) {
	w.env.UpdateWorkflow(update, name, w.answer(name), workflows.ApprovalRef{Token: token})
}

// knock sends a token as the Web UI does.
func (w *transferHarness) knock(signal, token string) {
	w.env.SignalWorkflow(signal, workflows.ApprovalRef{Token: token})
}

func (w *transferHarness) cancel() {
	w.env.UpdateWorkflow(workflows.UpdateCancel, "cancel", w.answer("cancel"), w.sender())
}

// order gives an operator's command about the transfer.
func (w *transferHarness) order(verb string) {
	id := uuid.New()
	w.book.mu.Lock()
	w.book.commands[id] = exchange.OperatorCommand{ID: id, ObjectType: activities.ObjectTransfer, ObjectID: w.ask.ID, Verb: verb, Note: "why", ActorID: uuid.New()}
	w.book.mu.Unlock()
	w.env.UpdateWorkflow(workflows.UpdateCommand, id.String(), w.answer(verb), workflows.CommandRef{CommandID: id})
}
