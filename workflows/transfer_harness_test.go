package workflows_test

import (
	"context"
	"crypto/sha256"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// answer is a response of the screener.
type answer struct {
	verdict exchange.Verdict
	err     error
}

var noAnswer = answer{err: exchange.Errorf(exchange.CodeUnavailable, "no answer")}

// screener screens recipients outside our custody.
type screener struct {
	mu      sync.Mutex
	answers []answer // in order; the last one repeats
	asked   int
}

func (s *screener) Screen(context.Context, exchange.Counterparty) (exchange.Screening, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	a := pick(s.answers, s.asked, answer{verdict: exchange.VerdictClear})
	return exchange.Screening{Screener: "service", Verdict: a.verdict}, a.err
}

// replies replaces the responses.
func (s *screener) replies(answers ...answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = answers
}

// transferHarness is a harness with one transfer of a customer with 100 USDT, whom three officers may stop.
type transferHarness struct {
	*harness
	screener *screener
	ask      exchange.TransferRequest
	wallet   exchange.Wallet // the sender's
	officers []exchange.User
	judged   func() // runs between the write by which officers must decide and its response

	mu    sync.Mutex
	noted []exchange.Code // decisions without proof
	vault vault           // of a cold wallet
}

// stranger is an address outside of our custody.
const stranger = "Tstranger0000000000000000000000000"

func newTransferHarness(t testing.TB) *transferHarness { return newTransferHarnessOn(t, exchange.Tron) }

func newTransferHarnessOn(t testing.TB, n exchange.Network) *transferHarness {
	t.Helper()
	w := &transferHarness{harness: newHarnessOn(t, n), screener: &screener{}}
	w.wallet = w.market.CustomerWallet
	storetest.Deposit(t, w.store.Store, w.wallet.ID, money.Must(money.USDT, "100"))
	if n == exchange.Solana { // the house pays the fees
		storetest.Gas(t, w.store.Store, storetest.GasWallet(t, w.store.Store, n).ID, money.Must(money.SOL, "5"))
	} else {
		storetest.Gas(t, w.store.Store, w.wallet.ID, money.Must(n.NativeCoin(), "1000"))
	}
	for range 3 {
		w.officers = append(w.officers, storetest.User(t, w.store.Store, exchange.RoleTreasury))
	}
	w.ask = exchange.TransferRequest{
		ID: uuid.MustParse("0192f0a0-0000-7000-8000-0000000000f1"), RequestedBy: w.market.Customer.ID,
		Network: n, Amount: money.Must(money.USDT, "10"), Recipient: exchange.Recipient{Address: stranger},
	}
	w.signs.order, w.signs.transfer = nil, &w.ask
	w.needs(0)
	rows := transferRows{w}
	w.env.RegisterWorkflow(workflows.Transfer)
	w.env.RegisterActivity(&activities.Transfers{Store: rows, Screener: w.screener})
	w.env.RegisterActivity(&activities.Approvals{Store: rows})
	w.registerCold()
	return w
}

// needs has transfers to strangers approved by a number of officers.
func (w *transferHarness) needs(officers int) {
	w.t.Helper()
	all := money.Must(money.KES, "100000000")
	r := exchange.ApprovalRule{OneAbove: all, TwoAbove: all}
	if officers > 0 {
		r.OneAbove = money.Zero(money.KES)
	}
	if officers > 1 {
		r.TwoAbove = money.Must(money.KES, "1")
	}
	storetest.Patch(w.t, w.store.Store, store.LimitPatch{
		Roles: map[exchange.Role]exchange.SpendingLimits{exchange.RoleCustomer: {}},
		Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{exchange.ApproveTransfer: r},
	})
}

// inside sends the money to another customer.
func (w *transferHarness) inside() {
	other := storetest.User(w.t, w.store.Store, exchange.RoleCustomer)
	storetest.WalletOn(w.t, w.store.Store, other, w.ask.Network)
	w.ask.Recipient = exchange.Recipient{UserID: other.ID}
}

// deny puts the recipient on the deny list.
func (w *transferHarness) deny() {
	d := exchange.DeniedAddress{ID: uuid.New(), Network: w.ask.Network, Address: stranger, Reason: "why"}
	if _, err := w.store.Deny(w.t.Context(), d, w.officer); err != nil {
		w.t.Error(err)
	}
}

// row reads the transfer, which is empty when it was not opened.
func (w *transferHarness) row() exchange.Transfer {
	f, err := w.store.Store.TransferByID(w.t.Context(), w.ask.ID)
	if err != nil && exchange.CodeOf(err) != exchange.CodeNotFound {
		w.t.Error(err)
	}
	return f
}

// held reports whether the sender's money is reserved.
func (w *transferHarness) held() bool {
	a, err := w.store.Account(w.t.Context(), exchange.Owned(exchange.AccWalletBalance, w.wallet.ID, w.ask.Amount.Asset()))
	if err != nil {
		w.t.Error(err)
	}
	return a.Held.Positive()
}

// play runs the transfer's flow until it ends.
func (w *transferHarness) play(t checker) workflows.TransferResult {
	t.Helper()
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.TransferID(w.ask.ID), TaskQueue: workflows.QueueFlows})
	w.env.RegisterDelayedCallback(func() { w.env.UpdateWorkflow(workflows.UpdateOpen, w.ask.ID.String(), w.answer("open")) }, 0)
	w.env.ExecuteWorkflow(workflows.Transfer, workflows.TransferInput{IntentID: w.intends(exchange.IntendTransfer, w.ask.ID, w.ask.ID, w.ask.Terms(), w.sender()).IntentID})
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
	w.checkConsistent(t, r)
	return r
}

// checkConsistent checks what must hold after every scenario, against the network's own book.
func (w *transferHarness) checkConsistent(t checker, r workflows.TransferResult) {
	t.Helper()
	row := w.row()
	paid := w.chain.paid(w.ask.ID)
	if paid > 1 || (paid == 1) != (row.Status == exchange.TransferCompleted) {
		t.Errorf("the network paid %d times and the transfer is %s", paid, row.Status)
	}
	if w.held() {
		t.Error("the money is still held")
	}
	if r.Status != row.Status || r.Detail != row.StatusDetail && r.Status != "" {
		t.Errorf("the flow ended as %s (%s), the row is %s (%s)", r.Status, r.Detail, row.Status, row.StatusDetail)
	}
	if row.PaymentID != uuid.Nil && row.Status != exchange.TransferCompleted {
		if p, err := w.store.Store.ChainPayment(w.t.Context(), row.PaymentID); err != nil || p.Status != exchange.ChainCancelled {
			t.Errorf("the transfer is %s and its payment %s, %v", row.Status, p.Status, err)
		}
	}
	if paid == 1 && row.Approvals < row.ApprovalsRequired {
		t.Errorf("paid with %d of %d approvals", row.Approvals, row.ApprovalsRequired)
	}
}

func (w *transferHarness) sender() exchange.Principal {
	return exchange.Principal{UserID: w.ask.RequestedBy, Role: exchange.RoleCustomer}
}

// asksOf writes down what the sender asks of the transfer's flow.
func (w *transferHarness) asksOf(kind exchange.IntentKind, terms exchange.Terms) workflows.IntentRef {
	return w.intends(kind, uuid.New(), w.ask.ID, terms, w.sender())
}

// whenAsked does something once the flow waits for officers. The clock of the test runs on while a step does, so no time of it says
// that the transfer is open.
func (w *transferHarness) whenAsked(do func()) {
	w.at(time.Second, func() {
		if !strings.Contains(detailsOf(w.t, w.env, workflows.TransferID(w.ask.ID)), "Transfer "+string(exchange.TransferPending)) {
			w.whenAsked(do)
			return
		}
		do()
	})
}

// token gives an officer, identified by a number from 1, the right to one decision.
func (w *transferHarness) token(officer int, action exchange.ApprovalAction) string {
	name, who, f, now := uuid.NewString(), w.officers[officer-1], w.row(), w.env.Now()
	_, err := w.store.IssueTicket(w.t.Context(), exchange.ApprovalTicket{
		ID: uuid.New(), OfficerID: who.ID, ObjectType: exchange.ApproveTransfer, ObjectID: f.ID, Action: action, Amount: f.Amount, Digest: f.Digest,
		Channel: exchange.ChannelSignal, TokenHash: sha256.Sum256([]byte(name)), CreatedAt: now, ExpiresAt: now.Add(exchange.ApprovalTokenTTL),
	}, storetest.PrincipalOf(who))
	if err != nil {
		w.t.Errorf("a token for officer %d: %v", officer, err)
	}
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
	w.env.UpdateWorkflow(workflows.UpdateCancel, "cancel", w.answer("cancel"), w.asksOf(exchange.IntendTransferCancel, nil))
}

// order gives an operator's command about the transfer.
func (w *transferHarness) order(verb string) {
	w.notifyFlow(w.decreeWith(activities.ObjectTransfer, w.ask.ID, verb, "why"), verb)
}
