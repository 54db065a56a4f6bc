package workflows_test

import (
	"context"
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

func (s *faultyStore) BeginBankRefund(ctx context.Context, id uuid.UUID) (exchange.Refund, error) {
	return result(s, "BeginBankRefund", func() (exchange.Refund, error) { return s.Store.BeginBankRefund(ctx, id) })
}

func (s *faultyStore) ConfirmBankRefund(ctx context.Context, id uuid.UUID, a exchange.Asked) (exchange.Refund, error) {
	return result(s, "ConfirmBankRefund", func() (exchange.Refund, error) { return s.Store.ConfirmBankRefund(ctx, id, a) })
}

func (s *faultyStore) MarkBankRefund(ctx context.Context, id uuid.UUID, detail string) (exchange.Refund, error) {
	return result(s, "MarkBankRefund", func() (exchange.Refund, error) { return s.Store.MarkBankRefund(ctx, id, detail) })
}

// backHarness is a harness with 300 shillings that came to the house's bank and that nothing explains, whose refund two officers agreed to.
type backHarness struct {
	*harness
	bank                  exchange.HouseBankAccount
	one, two, three, four exchange.Principal // treasury officers; the first two agreed
	exception             uuid.UUID
	refund                uuid.UUID
}

func newBack(t testing.TB) *backHarness {
	t.Helper()
	w := &backHarness{harness: newStage(t, networkName)}
	s := w.store.Store
	who := func() exchange.Principal { return storetest.PrincipalOf(storetest.User(t, s, exchange.RoleTreasury)) }
	w.one, w.two, w.three, w.four = who(), who(), who(), who()
	w.bank = storetest.BankAccount(t, s)
	l := storetest.Line(t, "IN1", money.Must(money.KES, "300"))
	l.PartyAccount = "0110222333"
	storetest.Statement(t, s, w.bank, l)
	all, _, err := s.ListExceptions(t.Context(), store.ExceptionFilter{Rail: exchange.RailBank}, everything)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	w.exception = all[0].ID
	c, err := s.ProposeBankRefund(t.Context(), exchange.BankRefundRequest{
		ID: uuid.New(), ExceptionID: w.exception, Note: "not ours", Payee: exchange.BankPayee{BankName: "Equity Bank", AccountName: "Jane Roe", AccountNumber: "0110222333"},
	}, w.one)
	if err == nil {
		_, err = s.ConfirmChange(t.Context(), c.ID, "", w.two)
	}
	if err != nil {
		t.Fatal(err)
	}
	refunds, _, err := s.ListRefunds(t.Context(), store.RefundFilter{ExceptionID: w.exception}, everything)
	if err != nil || len(refunds) != 1 {
		t.Fatal(refunds, err)
	}
	w.refund = refunds[0].ID
	w.signs.order = nil
	w.signs.about = []string{"300.00 KES", "/api/v1/auth/refunds/" + w.refund.String()}
	w.env.RegisterWorkflow(workflows.BankRefund)
	w.env.RegisterActivity(&activities.BankRefunds{Store: w.store})
	return w
}

// says has an officer say that the bank has paid.
func (w *backHarness) says(name string, by exchange.Principal) {
	step := exchange.WithdrawalStep{Reference: "FT1", PaidOn: exchange.DateOf(w.env.Now()), Amount: money.Must(money.KES, "300")}
	ref := w.intends(exchange.IntendRefundPaid, uuid.New(), w.refund, step.Terms(), by)
	w.env.UpdateWorkflow(workflows.UpdateStep, ref.IntentID.String(), w.answer(name), ref)
}

// refused has two officers say that the bank did not pay, and the API notify the flow.
func (w *backHarness) refused() {
	c, err := w.store.ProposeBankRefundFailure(w.t.Context(), w.refund, "the bank refused it", w.three)
	if err == nil {
		_, err = w.store.ConfirmChange(w.t.Context(), c.ID, "", w.two)
	}
	if err != nil {
		w.t.Error(err)
	}
	w.env.SignalWorkflow(workflows.SignalResume, nil)
}

// takeOut takes shillings of the house out of the bank, and bringIn brings them back.
func (w *backHarness) takeOut() { w.moves(exchange.JournalCapitalOut) }

func (w *backHarness) bringIn() { w.moves(exchange.JournalCapitalIn) }

func (w *backHarness) moves(kind exchange.JournalKind) {
	storetest.Journal(w.t, w.store.Store, exchange.JournalEntry{Kind: kind, BankID: w.bank.ID, Amount: money.Must(money.KES, "200")})
}

func (w *backHarness) retries() {
	w.notifyFlow(w.decreeWith(activities.ObjectRefund, w.refund, activities.VerbRetry, "why"), "retry")
}

// play runs the flow to its end, and checks that the money and the exception are where its outcome says.
func (w *backHarness) play(t *testing.T) exchange.RefundStatus {
	t.Helper()
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: workflows.BankRefundID(w.refund), TaskQueue: workflows.QueueFlows})
	w.at(30*24*time.Hour, func() { t.Fatalf("it never ends; it was parked with %v, and answered %v", w.signs.reasons, w.answers) })
	w.shows(workflows.BankRefundAttributes())
	w.env.ExecuteWorkflow(workflows.BankRefund, workflows.BankRefundInput{})
	if !w.env.IsWorkflowCompleted() || w.env.GetWorkflowError() != nil {
		t.Fatalf("the flow ended: %t, %v", w.env.IsWorkflowCompleted(), w.env.GetWorkflowError())
	}
	var r workflows.BankRefundResult
	if err := w.env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	f, err := w.store.Refund(t.Context(), w.refund)
	x, readErr := w.store.Exception(t.Context(), w.exception)
	if err != nil || readErr != nil || f.Status != r.Status {
		t.Fatalf("the flow ended as %s, the refund is %s, %v, %v", r.Status, f.Status, err, readErr)
	}
	left, open := "0", exchange.ExcRefunded
	if r.Status == exchange.RefundFailed {
		left, open = "300", exchange.ExcOpen
	}
	if got := w.balance(exchange.House(exchange.AccSuspense, money.KES)); !got.Equal(money.Must(money.KES, left)) || x.Status != open {
		t.Errorf("%s are in suspense, and the exception is %s", got, x.Status)
	}
	if got := w.balance(exchange.House(exchange.AccRefundsDue, money.KES)); !got.IsZero() {
		t.Errorf("%s are due", got)
	}
	return r.Status
}

func TestBankRefund(t *testing.T) {
	t.Parallel()
	const done, failed = exchange.RefundCompleted, exchange.RefundFailed
	const reserve, confirm = workflows.ReasonBankRefundReserve, workflows.ReasonBankRefundConfirm
	for _, c := range []struct {
		name   string
		people func(w *backHarness)
		ends   exchange.RefundStatus
		parked []workflows.Reason
	}{
		{name: "an officer pays", ends: done, people: func(w *backHarness) { w.at(time.Hour, func() { w.says("paid", w.three) }) }},
		{name: "two officers pay", ends: done, people: func(w *backHarness) {
			storetest.Patch(w.t, w.store.Store, store.LimitPatch{Rules: map[exchange.ApprovalObject]exchange.ApprovalRule{
				exchange.ApproveBankPayout: {OneAbove: money.Must(money.KES, "100"), TwoAbove: money.Must(money.KES, "100")},
			}})
			w.at(time.Hour, func() { w.says("paid", w.three) })
			w.at(2*time.Hour, func() { w.says("paid too", w.four) })
		}},
		{name: "an officer pays late", ends: done, parked: []workflows.Reason{confirm}, people: func(w *backHarness) {
			w.at(9*time.Hour, func() { w.says("paid", w.three) })
		}},
		{name: "who proposed it says that it is paid", ends: done, people: func(w *backHarness) {
			w.at(time.Hour, func() { w.says("own", w.one) })
			w.at(2*time.Hour, func() {
				if w.answers["own"] == nil {
					w.t.Error("the proposer's word counts")
				}
				w.says("paid", w.three)
			})
		}},
		{name: "answers get lost", ends: done, people: func(w *backHarness) {
			calls := map[string]int{"BeginBankRefund": 2, "ConfirmBankRefund": 2}
			w.store.lost = func(call string) error {
				if calls[call] > 0 {
					calls[call]--
					return errAway
				}
				return nil
			}
			w.at(time.Hour, func() { w.says("paid", w.three) })
		}},
		{name: "the bank refuses", ends: failed, people: func(w *backHarness) { w.at(time.Hour, w.refused) }},
		{name: "the bank refuses late", ends: failed, parked: []workflows.Reason{confirm}, people: func(w *backHarness) { w.at(9*time.Hour, w.refused) }},
		{name: "too little at the bank", ends: done, parked: []workflows.Reason{reserve}, people: func(w *backHarness) {
			w.takeOut()
			w.at(3*time.Hour, w.bringIn)
			w.at(5*time.Hour, func() { w.says("paid", w.three) })
		}},
		{name: "too little at the bank, given up", ends: failed, parked: []workflows.Reason{reserve}, people: func(w *backHarness) {
			w.takeOut()
			w.at(3*time.Hour, w.refused)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newBack(t)
			c.people(w)
			if got := w.play(t); got != c.ends {
				t.Errorf("it ended as %s, want %s", got, c.ends)
			}
			w.signs.changed(t, workflows.BankRefundID(w.refund), c.parked...)
		})
	}
}

// A flow that is gone is started again for a refund that is not over.
func TestBankRefundIsALiveRow(t *testing.T) {
	t.Parallel()
	w := newBack(t)
	live, err := w.store.LiveRows(t.Context(), w.env.Now().Add(time.Hour), exchange.LivePlace{}, 10)
	if err != nil || len(live) != 1 || live[0].Kind != exchange.LiveBankRefund {
		t.Fatalf("live rows %+v, %v", live, err)
	}
	if f := workflows.LiveFlowOf(live[0]); f.ID != workflows.BankRefundID(w.refund) || f.Type != workflows.TypeBankRefund {
		t.Errorf("its flow is %+v", f)
	}
}

// backRehearsals are the reasons of refunds by bank.
func backRehearsals() map[workflows.Reason]rehearsal {
	play := func(set func(*parkedCommand, *backHarness)) func(*testing.T, *parkedCommand) {
		return func(t *testing.T, c *parkedCommand) {
			w := newBack(t)
			set(c, w)
			c.await(t, w.env, w.signs, workflows.BankRefundID(w.refund), w.retries)
			if got := w.play(t); got != exchange.RefundCompleted {
				t.Errorf("it ended as %s", got)
			}
		}
	}
	return map[workflows.Reason]rehearsal{
		workflows.ReasonBankRefundReserve: {onlyRetry, play(func(c *parkedCommand, w *backHarness) {
			w.takeOut()
			c.mend = w.bringIn
			w.at(3*time.Hour, func() { w.says("paid", w.three) })
		})},
		workflows.ReasonBankRefundConfirm: {onlyRetry, play(func(_ *parkedCommand, w *backHarness) {
			w.at(5*time.Hour, func() { w.says("paid", w.three) })
		})},
	}
}
