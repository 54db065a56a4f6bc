package workflows_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

// returnHarness is a harness with crypto that its order could not take: 10 USDC at the escrow address of a sale of USDT,
// which was cancelled then.
type returnHarness struct {
	*saleHarness
	exception uuid.UUID
	asked     uuid.UUID // the officer's request to return it
}

func newReturn(t testing.TB) *returnHarness {
	t.Helper()
	w := &returnHarness{saleHarness: newSale(t)}
	w.request.RefundAddress = ""
	if _, err := storetest.OpenOffRamp(t.Context(), w.store.Store, w.request, storetest.PrincipalOf(w.market.Customer)); err != nil {
		t.Fatal(err)
	}
	w.record(true, exchange.ChainMovement{TxID: txOf(1), From: depositor, To: w.order().EscrowAddress, Amount: money.Must(money.USDC, "10")})
	for _, d := range w.deposits(1) {
		taken, err := w.store.Store.TakeDeposit(t.Context(), w.request.ID, d.ID)
		if w.exception = taken.Exception.ID; err != nil || taken.Verdict != exchange.TakenWrongAsset {
			t.Fatalf("the deposit was taken as %q, %v", taken.Verdict, err)
		}
	}
	if _, err := w.store.Store.CloseOffRamp(t.Context(), w.request.ID, exchange.DetailExpired, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	w.asked = w.asks(elsewhere)
	w.signs.about = []string{
		"10.000000 USDC", w.request.CustomerID.String(), "/api/v1/auth/payment-exceptions/" + w.exception.String(), "/api/v1/auth/orders/" + w.request.ID.String(),
	}
	w.env.RegisterWorkflow(workflows.ReturnDeposit)
	return w
}

// asks stores an officer's request to return the crypto to an address.
func (w *returnHarness) asks(address string) uuid.UUID {
	r := exchange.RefundRequest{ID: uuid.New(), ExceptionID: w.exception, Address: address, Reason: "the customer wrote"}
	if err := w.store.SaveRefundRequest(w.t.Context(), r, w.officer); err != nil {
		w.t.Error(err)
	}
	return r.ID
}

// instruct gives an operator's command; an address names where the refund goes.
func (w *returnHarness) instruct(verb, address string) {
	c := exchange.OperatorCommand{
		ID: uuid.New(), ObjectType: activities.ObjectException, ObjectID: w.exception, Verb: verb, Note: "why", ActorID: w.officer.UserID,
	}
	if address != "" {
		c.ID = w.asks(address)
	}
	if err := w.store.SaveCommand(w.t.Context(), c, w.officer); err != nil {
		w.t.Errorf("save the command %s: %v", verb, err)
	}
	w.notifyFlow(c.ID, verb)
}

func (w *returnHarness) approve(name, token string) {
	w.env.UpdateWorkflow(workflows.UpdateApprove, name, w.answer(name), workflows.ApprovalRef{Token: token})
}

// signalled has another officer approve by the Web UI's signal.
func (w *returnHarness) signalled() {
	for _, r := range w.refunds() {
		w.env.SignalWorkflow(workflows.SignalApprove, map[string]any{"token": w.ticket(r)})
	}
}

// paid lists the addresses that the network brought the crypto to.
func (w *returnHarness) paid() (list []string) {
	for _, purpose := range []exchange.ChainPurpose{exchange.ForRefund, exchange.ForSweep} {
		for _, p := range w.chain.sent(purpose) {
			list = append(list, p.ToAddress)
		}
	}
	return list
}

func (w *returnHarness) play(t *testing.T, keep bool) workflows.ReturnDepositResult {
	t.Helper()
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.ReturnDepositID(w.exception), TaskQueue: workflows.QueueFlows})
	w.ends()
	w.at(0, func() { w.env.UpdateWorkflow(workflows.UpdateOpen, "open", w.answer("open")) })
	in := workflows.ReturnDepositInput{RequestID: w.asked}
	if keep {
		in.RequestID = uuid.Nil
	}
	w.env.ExecuteWorkflow(workflows.ReturnDeposit, in)
	if !w.env.IsWorkflowCompleted() || w.env.GetWorkflowError() != nil {
		t.Fatalf("the flow ended: %t, %v", w.env.IsWorkflowCompleted(), w.env.GetWorkflowError())
	}
	var r workflows.ReturnDepositResult
	if err := w.env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// settledAs checks the exception, and that its crypto is where the outcome says.
func (w *returnHarness) settledAs(t *testing.T, status exchange.ExceptionStatus, gone bool) {
	t.Helper()
	if x, err := w.store.Exception(t.Context(), w.exception); err != nil || x.Status != status {
		t.Errorf("the exception is %s, want %s; %v", x.Status, status, err)
	}
	lease, err := w.store.EscrowLease(t.Context(), w.request.ID)
	if err != nil {
		t.Error(err)
	}
	left := w.balance(exchange.Owned(exchange.AccCustody, lease.WalletID, money.USDC))
	if gone != (left.Sign() == 0) {
		t.Errorf("%s USDC is left on the escrow address", left)
	}
}

// returning is a scenario of crypto that its order could not take: what users do, where it is paid, and the reasons with
// which the flow parked.
type returning struct {
	name    string
	people  func(w *returnHarness)
	paid    []string
	reasons []workflows.Reason
	code    exchange.Code // with which the update "open" was refused
}

func returnings() []returning {
	return []returning{
		{
			name: "another officer agrees", paid: []string{elsewhere}, reasons: []workflows.Reason{workflows.ReasonRefundSecond},
			people: func(w *returnHarness) {
				w.at(time.Hour, func() { w.approve("wrong", "bad") })
				w.at(2*time.Hour, w.agree("right"))
			},
		},
		{
			name: "the decision comes by a signal", paid: []string{elsewhere}, reasons: []workflows.Reason{workflows.ReasonRefundSecond},
			people: func(w *returnHarness) { w.at(time.Hour, w.signalled) },
		},
		{
			name: "no address was given", paid: []string{elsewhere}, reasons: []workflows.Reason{workflows.ReasonRefundAddress, workflows.ReasonRefundSecond},
			people: func(w *returnHarness) {
				w.asked = w.asks("")
				w.at(time.Hour, func() { w.instruct(activities.VerbRetry, "") })
				w.at(2*time.Hour, func() { w.instruct(activities.VerbRefund, "") }) // names none
				w.at(3*time.Hour, func() { w.instruct(activities.VerbRefund, elsewhere) })
				w.at(4*time.Hour, w.agree("right"))
			},
		},
		{
			name: "the customer says it by itself, and the flow finds out", paid: []string{homeward}, reasons: []workflows.Reason{workflows.ReasonRefundAddress},
			people: func(w *returnHarness) {
				w.asked = w.asks("")
				w.at(time.Hour, w.names)
			},
		},
		{
			name: "the address can't be paid", paid: []string{elsewhere},
			reasons: []workflows.Reason{workflows.ReasonPayoutDenied, workflows.ReasonRefundSecond},
			people: func(w *returnHarness) {
				w.toHome()
				d := exchange.DeniedAddress{ID: uuid.New(), Network: exchange.Tron, Address: homeward, Reason: "why"}
				if _, err := w.store.Deny(w.t.Context(), d, w.officer); err != nil {
					w.t.Error(err)
				}
				w.at(time.Hour, func() { w.instruct(activities.VerbRefund, elsewhere) })
				w.at(2*time.Hour, w.agree("right"))
			},
		},
		{
			name: "the payment is tried again", paid: []string{homeward}, reasons: []workflows.Reason{workflows.ReasonPayoutGasShort},
			people: func(w *returnHarness) {
				w.toHome()
				w.shortOfGas(48*time.Hour, func() { w.instruct(activities.VerbRetry, "") })
			},
		},
		{
			name: "answers get lost", paid: []string{homeward},
			people: func(w *returnHarness) {
				w.toHome()
				w.lose(map[string]int{"OpenChainRefund": 1, "ApproveRefundPayment": 2})
			},
		},
		{
			name: "it is refused", code: exchange.CodeStateConflict,
			people: func(w *returnHarness) { w.settled(w.t.(*testing.T), exchange.ExcWrittenOff) },
		},
	}
}

// toHome returns the crypto to the address that the customer set, which needs no officer.
func (w *returnHarness) toHome() {
	w.names()
	w.asked = w.asks("")
}

// lose has the responses to calls get lost, once for each count.
func (w *returnHarness) lose(calls map[string]int) {
	w.store.lost = func(call string) error {
		if calls[call] > 0 {
			calls[call]--
			return errAway
		}
		return nil
	}
}

func TestReturnDeposit(t *testing.T) {
	t.Parallel()
	for _, c := range returnings() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newReturn(t)
			c.people(w)
			out := w.play(t, false)
			if !slices.Equal(w.paid(), c.paid) {
				t.Errorf("the network paid %v, want %v", w.paid(), c.paid)
			}
			want, status := workflows.OutcomeReturned, exchange.ExcRefunded
			if c.code != "" {
				want, status = workflows.OutcomeRefused, exchange.ExcWrittenOff
			}
			if out.Outcome != want {
				t.Errorf("it ended as %q, want %q", out.Outcome, want)
			}
			w.settledAs(t, status, c.code == "")
			wants("open", c.code)(t, w.harness)
			w.signs.were(t, workflows.ReturnDepositID(w.exception), c.reasons...)
			if wrong := w.answers["wrong"]; wrong != nil && !slices.Equal(w.store.noted, []exchange.Code{exchange.CodeNotFound}) {
				t.Errorf("a decision without proof was noted as %v", w.store.noted)
			}
		})
	}
}

// What the house keeps goes to its treasury.
func TestKeepDeposit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		people  func(w *returnHarness)
		outcome string
		kept    bool
	}{
		{name: "smooth", people: func(*returnHarness) {}, outcome: workflows.OutcomeKept, kept: true},
		{name: "the answer gets lost", people: func(w *returnHarness) { w.lose(map[string]int{"ApproveKeptSweep": 1}) }, outcome: workflows.OutcomeKept, kept: true},
		{name: "nothing lies there", outcome: workflows.OutcomeNothing},
		{name: "there is no treasury", people: func(*returnHarness) {}, outcome: workflows.OutcomeRefused},
		{
			name: "no gas, a retry", outcome: workflows.OutcomeKept, kept: true,
			people: func(w *returnHarness) { w.shortOfGas(time.Hour, func() { w.instruct(activities.VerbRetry, "") }) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w, status := newReturn(t), exchange.ExcOpen
			var treasury exchange.Wallet
			if c.outcome != workflows.OutcomeRefused {
				treasury = storetest.TreasuryWallet(t, w.store.Store, exchange.Tron)
			}
			if c.people != nil {
				w.settled(t, exchange.ExcAccepted)
				c.people(w)
				status = exchange.ExcAccepted
			}
			out := w.play(t, true)
			w.settledAs(t, status, c.kept)
			if to := w.paid(); out.Outcome != c.outcome || c.kept != (len(to) == 1) || c.kept && to[0] != treasury.Address {
				t.Errorf("it ended as %q and was brought to %v", out.Outcome, to)
			}
		})
	}
}
