package workflows_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// payoutRows is the database of these tests: a book that owes one order its shillings.
type payoutRows struct {
	*book
	payout    exchange.OrderPayout
	booked    int // how often the payout completed its order
	doubles   map[uuid.UUID]exchange.PaymentException
	suspended bool
	hits      []string // codes that say that our credential was refused
	here      bool     // the crypto has not gone back
}

func (r *payoutRows) payable() exchange.Payable {
	return exchange.Payable{
		OrderID: r.payout.OrderID, Amount: r.payout.Amount, Phone: r.payout.Phone, Paid: r.payout.Status == exchange.PayoutCompleted, Claimed: r.payout.Claimed,
	}
}

func (r *payoutRows) Payable(context.Context, exchange.MomoObject) (exchange.Payable, error) {
	return tx(r.book, "Payable", func() (exchange.Payable, error) { return r.payable(), nil })
}

func (r *payoutRows) BeginPayout(_ context.Context, of exchange.MomoObject, a exchange.PaymentAttempt) (exchange.PaymentAttempt, error) {
	return tx(r.book, "BeginPayout", func() (exchange.PaymentAttempt, error) {
		if old, ok := r.attempts[a.ID]; ok {
			return old, nil
		}
		switch {
		case r.suspended:
			return a, exchange.Errorf(exchange.CodeSuspended, "suspended")
		case r.float.Cmp(r.payout.Amount) < 0:
			return a, exchange.Errorf(exchange.CodeInsufficientFunds, "short")
		}
		if err := exchange.OrderPayoutMachine.Allow(r.payout.Status, exchange.PayoutProcessing); err != nil {
			return a, err
		}
		r.payout.Status = exchange.PayoutProcessing
		a.CreatedAt, a.Object, a.OrderID = r.now(), of, r.payout.OrderID
		stored := a
		stored.CallbackToken = ""
		r.attempts[a.ID] = stored
		return a, nil
	})
}

func (r *payoutRows) CompletePayout(_ context.Context, _ exchange.MomoObject, attempt uuid.UUID, o exchange.Observation) (exchange.Payable, error) {
	return tx(r.book, "CompletePayout", func() (exchange.Payable, error) {
		a := r.attempts[attempt]
		switch {
		case o.Receipt == "":
			return r.payable(), exchange.Errorf(exchange.CodeInvalid, "no receipt")
		case o.Amount.Positive() && !o.Amount.Equal(r.payout.Amount):
			return r.payable(), exchange.Errorf(exchange.CodeConflict, "another amount")
		case a.Status == exchange.AttemptSucceeded:
			return r.payable(), nil
		}
		a.Status, a.Receipt = exchange.AttemptSucceeded, o.Receipt
		r.attempts[attempt] = a
		if r.payout.Status == exchange.PayoutCompleted || r.payout.Status == exchange.PayoutCancelled {
			r.doubles[attempt] = exchange.PaymentException{ID: uuid.New(), Status: exchange.ExcOpen, Receipt: o.Receipt}
			return r.payable(), nil
		}
		r.payout.Status, r.payout.PaidBy, r.payout.Receipt = exchange.PayoutCompleted, attempt, o.Receipt
		r.booked++
		return r.payable(), nil
	})
}

func (r *payoutRows) FailPayout(_ context.Context, _ exchange.MomoObject, code string) (exchange.Payable, error) {
	return tx(r.book, "FailPayout", func() (exchange.Payable, error) {
		for _, a := range r.attempts {
			if a.Status == exchange.AttemptCreated || a.Status == exchange.AttemptUnknown || a.Status == exchange.AttemptAccepted {
				return r.payable(), conflict("an attempt is open")
			}
		}
		if r.payout.Status == exchange.PayoutProcessing {
			r.payout.Status, r.payout.RefusedCode = exchange.PayoutRefused, code
		}
		return r.payable(), nil
	})
}

func (r *payoutRows) SettlePayout(ctx context.Context, of exchange.MomoObject, attempt uuid.UUID, o exchange.Observation, _ exchange.Principal) error {
	_, err := r.CompletePayout(ctx, of, attempt, o)
	return err
}

func (r *payoutRows) DoubtPayout(_ context.Context, _ exchange.MomoObject, claimed bool) error {
	return run(r.book, "DoubtPayout", func() error {
		r.payout.Doubted, r.payout.Claimed = r.payout.Doubted || claimed, claimed
		return nil
	})
}

func (r *payoutRows) CryptoIsHere(context.Context, uuid.UUID) (bool, error) {
	return tx(r.book, "CryptoIsHere", func() (bool, error) { return r.here, nil })
}

func (r *payoutRows) KeepOrderPayout(context.Context, uuid.UUID, exchange.Principal) (exchange.OrderPayout, error) {
	return tx(r.book, "KeepOrderPayout", func() (exchange.OrderPayout, error) {
		r.payout.Status = exchange.PayoutCompleted
		return r.payout, nil
	})
}

func (r *payoutRows) PaidTwiceBy(_ context.Context, attempt uuid.UUID) (exchange.PaymentException, bool, error) {
	x, err := tx(r.book, "PaidTwiceBy", func() (exchange.PaymentException, error) { return r.doubles[attempt], nil })
	return x, x.ID != uuid.Nil, err
}

func (r *payoutRows) NoteCredential(_ context.Context, _ uuid.UUID, code string) error {
	return run(r.book, "NoteCredential", func() error {
		if !slices.Contains(r.hits, code) {
			r.hits = append(r.hits, code)
		}
		return nil
	})
}

func (r *payoutRows) Breaker(_ context.Context, provider string) (exchange.Breaker, error) {
	return tx(r.book, "Breaker", func() (exchange.Breaker, error) {
		b := exchange.Breaker{Provider: provider}
		if r.suspended {
			b.OpenedAt = r.now()
		}
		return b, nil
	})
}

// payoutHarness is an order that owes its customer 1293 KES, an operator, and users.
type payoutHarness struct {
	*harness
	rows *payoutRows
	of   exchange.MomoObject
}

func newPayoutHarness(plans ...payer) *payoutHarness {
	w := newStage(nil)
	w.book = newBook()
	w.book.now = w.env.Now
	w.request.ID = uuid.MustParse("0192f0a0-0000-7000-8000-000000000001")
	w.operator.script = func(_ exchange.PaymentAttempt, n int) payer { return pick(plans, n, payer{}) }
	p := &payoutHarness{harness: w, of: exchange.OrderObject(w.request.ID), rows: &payoutRows{
		book: w.book, doubles: map[uuid.UUID]exchange.PaymentException{},
		payout: exchange.OrderPayout{OrderID: w.request.ID, Rail: exchange.PayoutByMomo, Amount: money.Must(money.KES, "1293"), Phone: "254712345678", Status: exchange.PayoutPending},
	}}
	w.env.RegisterWorkflow(workflows.MomoPayout)
	w.env.RegisterWorkflow(workflows.LatePayout)
	w.env.RegisterActivity(&activities.Orders{Store: w.book})
	w.env.RegisterActivity(&activities.Payouts{Store: p.rows, Operator: w.operator, Provider: "daraja", CallbackKey: make([]byte, 32), Now: w.env.Now})
	return p
}

// pay makes one attempt to pay the order's shillings.
func (w *payoutHarness) pay(t *testing.T) workflows.MomoPayoutResult {
	t.Helper()
	id := workflows.MomoPayoutID(w.of)
	w.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: id, TaskQueue: workflows.QueueFlows})
	w.env.ExecuteWorkflow(workflows.MomoPayout, workflows.MomoPayoutInput{Object: w.of, OrderID: w.request.ID, Try: 1, Home: id})
	if err := w.env.GetWorkflowError(); err != nil {
		t.Fatalf("the flow failed: %v", err)
	}
	var r workflows.MomoPayoutResult
	if err := w.env.GetWorkflowResult(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// sound checks that the operator's book and ours agree, and that nothing was paid twice.
func (w *payoutHarness) sound(t *testing.T) {
	t.Helper()
	for id, n := range w.operator.submitted {
		if n > 1 {
			t.Errorf("attempt %s was accepted %d times", id, n)
		}
	}
	if n := len(w.rows.attempts); n > 1 {
		t.Errorf("%d attempts", n)
	}
	out := w.operator.paidOut(w.request.ID)
	if len(out) > 1 || w.rows.booked > 1 || (w.rows.booked == 1 && len(out) == 0) {
		t.Errorf("%d payments of the operator, booked %d times", len(out), w.rows.booked)
	}
	if w.rows.payout.Status == exchange.PayoutRefused && len(out) > 0 {
		t.Error("the payout is recorded as refused, and the operator has paid it")
	}
}
