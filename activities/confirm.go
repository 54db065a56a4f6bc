package activities

import (
	"context"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
)

// PaymentState is the known state of a collection.
type PaymentState string

// The states that a check of a collection can find.
const (
	PaymentPending  PaymentState = "pending"  // nothing is proven either way
	PaymentClaimed  PaymentState = "claimed"  // one source says paid, and no other confirms or denies it
	PaymentReceipt  PaymentState = "receipt"  // the operator says paid, but no receipt is known
	PaymentDisputed PaymentState = "disputed" // the sources contradict each other
	PaymentPaid     PaymentState = "paid"     // proven and booked
	PaymentDeclined PaymentState = "declined" // the payer declined
	PaymentFailed   PaymentState = "failed"   // not paid
)

// ConfirmInput asks for a check of an attempt. A thorough check also reads the operator's statement, which is too slow for
// every check.
type ConfirmInput struct {
	AttemptID uuid.UUID `json:"attempt_id"`
	Thorough  bool      `json:"thorough,omitempty"`
	// Vouch is a command whose note is the receipt that our operator found at the mobile money operator. It counts as a
	// source, but never as the only one.
	Vouch Proof `json:"vouch,omitzero"`
}

// Confirmed is the result of a check, and for a paid attempt the result of the payment.
type Confirmed struct {
	AttemptID uuid.UUID    `json:"attempt_id"`
	State     PaymentState `json:"state"`
	Soft      bool         `json:"soft,omitempty"` // failed, but a late success is still possible
	Code      string       `json:"code,omitempty"` // the operator's
	Order     OrderState   `json:"order"`
	Kind      string       `json:"kind,omitempty"` // of the payment; "known" when it was booked before
	PaymentID uuid.UUID    `json:"payment_id,omitzero"`
	RefundID  uuid.UUID    `json:"refund_id,omitzero"`
	Exception uuid.UUID    `json:"exception_id,omitzero"`
	// Undecided is set while the exception waits for an operator's decision.
	Undecided bool `json:"undecided,omitempty"`
	// Owed is set while the refund of late or duplicate money is not completed. The flow that watches the attempt pays it;
	// the order's flow pays the refund of a payment that was too much or too little.
	Owed bool `json:"owed,omitempty"`
}

// Limits of reading the operator's statement.
const (
	// statementLead is how long before the prompt the statement is read, for clocks that differ.
	statementLead = 5 * time.Minute
	// statementWindow is what the operator's statement holds, less a margin.
	statementWindow = 47 * time.Hour
	maxPages        = 20
	// promptLife is the time after which a prompt can't be accepted any more: it stays on the phone for one to three minutes.
	promptLife = 5 * time.Minute
)

// ConfirmPayment checks the outcome of a collection and books it when two different sources say that it was paid. A single
// source proves nothing, and neither does a source that can't be reached.
func (m *Momo) ConfirmPayment(ctx context.Context, in ConfirmInput) (Confirmed, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	a, err := m.Store.Attempt(ctx, in.AttemptID)
	if err != nil {
		return Confirmed{}, Failure(ctx, err)
	}
	var c Confirmed
	if a.Status == exchange.AttemptSucceeded {
		c, err = m.accept(ctx, a, exchange.Observation{
			State: exchange.SeenSucceeded, Receipt: a.Receipt, Amount: a.Moved, At: a.SettledAt, Source: exchange.SourceCallback,
		})
	} else {
		c, err = m.examine(ctx, a, in)
	}
	return c, Failure(ctx, err)
}

func (m *Momo) examine(ctx context.Context, a exchange.PaymentAttempt, in ConfirmInput) (Confirmed, error) {
	e, err := m.gather(ctx, a)
	if err != nil {
		return Confirmed{}, err
	}
	if in.Vouch.CommandID != uuid.Nil {
		c, err := m.Store.UseCommand(ctx, in.Vouch.CommandID, in.Vouch.Object.Type, in.Vouch.Object.ID)
		if err != nil {
			return Confirmed{}, err
		}
		e.vouchedFor = exchange.ReceiptIn(c.Note)
	}
	found := e.judge()
	if found.state != PaymentPaid && e.wantsStatement(found.state, in.Thorough, m.Now()) {
		if err := m.readStatement(ctx, &e); err != nil {
			activity.GetLogger(ctx).Warn("the operator's statement could not be read", "attempt", a.ID, "code", exchange.CodeOf(err))
		}
		found = e.judge()
	}
	switch found.state {
	case PaymentPaid:
		return m.acceptFirst(ctx, e, found)
	case PaymentFailed, PaymentDeclined:
		return m.fail(ctx, e, found)
	case PaymentPending:
		if e.neverStarted(m.Now()) {
			return m.fail(ctx, e, neverStarted)
		}
		if failedBefore(e.attempt) {
			return m.fail(ctx, e, finding{state: PaymentFailed, failure: exchange.Observation{
				State: exchange.SeenFailed, Soft: e.attempt.Soft, Code: e.attempt.ResultCode,
			}})
		}
	case PaymentClaimed, PaymentReceipt, PaymentDisputed: // nothing is decided
	}
	return m.unsettled(ctx, e, found)
}

// gather reads every source that answers at once.
func (m *Momo) gather(ctx context.Context, a exchange.PaymentAttempt) (evidence, error) {
	stored, err := m.Store.Callbacks(ctx, a.ID)
	if err != nil {
		return evidence{}, err
	}
	said := m.read(ctx, a, stored)
	if a, err = m.adopt(ctx, a, said); err != nil {
		return evidence{}, err
	}
	e := evidence{attempt: a, callback: strongest(matching(a, said))}
	if e.order, err = m.Store.OrderByID(ctx, a.OrderID); err != nil {
		return evidence{}, err
	}
	if err := m.siblings(ctx, &e); err != nil {
		return evidence{}, err
	}
	rows, err := m.Store.ReceiptsFor(ctx, a.Reference)
	if err != nil {
		return evidence{}, err
	}
	e.add(rows)
	if e.judge().state != PaymentPaid {
		e.query = m.Operator.Resolve(ctx, a)
	}
	return e, nil
}

// siblings reads the order's other prompts, which share the reference: the receipt of one prompt is no evidence for another.
func (m *Momo) siblings(ctx context.Context, e *evidence) error {
	for n := 1; ; n++ {
		id := CollectionID(e.attempt.OrderID, n)
		if id == e.attempt.ID {
			continue
		}
		other, err := m.Store.Attempt(ctx, id)
		if exchange.CodeOf(err) == exchange.CodeNotFound {
			return nil
		}
		if err != nil {
			return err
		}
		if other.Status == exchange.AttemptSucceeded {
			e.claimed = append(e.claimed, other.Receipt)
		}
		e.rivals = e.rivals || (other.Status == exchange.AttemptFailed && other.Soft)
	}
}

// read parses stored callbacks. It skips a callback that can't be read; other sources decide then.
func (m *Momo) read(ctx context.Context, a exchange.PaymentAttempt, stored []exchange.MomoCallback) []exchange.Observation {
	var said []exchange.Observation
	for _, c := range stored {
		if c.Kind != exchange.CallbackResult {
			continue
		}
		seen, err := m.Operator.ParseCallback(c.Kind, c.Body)
		if err != nil {
			activity.GetLogger(ctx).Warn("a stored callback can't be read", "attempt", a.ID, "callback", c.ID)
			continue
		}
		said = append(said, seen...)
	}
	return said
}

// adopt takes the operator's ids of a prompt from a callback at the attempt's own address, when the response to the
// submission was lost.
func (m *Momo) adopt(ctx context.Context, a exchange.PaymentAttempt, said []exchange.Observation) (exchange.PaymentAttempt, error) {
	if a.CheckoutRequestID != "" || (a.Status != exchange.AttemptCreated && a.Status != exchange.AttemptUnknown) {
		return a, nil
	}
	for _, o := range said {
		if o.Refs.CheckoutRequestID != "" {
			return m.Store.RecordSubmission(ctx, a.ID, exchange.Submission{State: exchange.Accepted, Refs: o.Refs})
		}
	}
	return a, nil
}

// readStatement reads the operator's statement since the prompt and stores the matching receipts.
func (m *Momo) readStatement(ctx context.Context, e *evidence) error {
	now := m.Now()
	from := e.attempt.CreatedAt.Add(-statementLead)
	if oldest := now.Add(-statementWindow); from.Before(oldest) {
		from = oldest
	}
	for page, offset := 0, 0; page < maxPages; page++ {
		rows, next, more, err := m.Operator.Pull(ctx, from, now, offset)
		if err != nil {
			return err
		}
		offset = next
		for _, row := range rows {
			if row.State != exchange.SeenSucceeded || !sameReference(row.Reference, e.attempt.Reference) {
				continue
			}
			if err := m.Store.SaveReceipt(ctx, row); err != nil {
				return err
			}
			e.add([]exchange.Observation{row})
		}
		if !more {
			e.statementRead = true
			return nil
		}
	}
	return nil
}

// acceptFirst books the first proven receipt that no other attempt uses.
func (m *Momo) acceptFirst(ctx context.Context, e evidence, found finding) (Confirmed, error) {
	for _, o := range found.proven {
		c, err := m.accept(ctx, e.attempt, o)
		if exchange.CodeOf(err) == exchange.CodeConflict {
			continue // the receipt is another attempt's
		}
		return c, err
	}
	return m.unsettled(ctx, e, finding{state: PaymentPending})
}

func (m *Momo) accept(ctx context.Context, a exchange.PaymentAttempt, o exchange.Observation) (Confirmed, error) {
	out, err := m.Store.AcceptPayment(ctx, a.ID, o, m.Now())
	if err != nil {
		return Confirmed{}, err
	}
	return Confirmed{
		AttemptID: a.ID, State: PaymentPaid, Order: stateOf(out.Order), Kind: string(out.Kind),
		PaymentID: out.ChainPayment.ID, RefundID: out.Refund.ID, Exception: out.Exception.ID,
		Undecided: out.Exception.Status == exchange.ExcOpen, Owed: owed(out),
	}, nil
}

// owed reports whether the flow that watches the attempt has to pay the refund. One that an earlier run of that flow left
// behind counts too.
func owed(out exchange.PaymentOutcome) bool {
	late := out.Exception.Kind == exchange.ExcLate || out.Exception.Kind == exchange.ExcDuplicate
	return late && out.Refund.ID != uuid.Nil && out.Refund.Status != exchange.RefundCompleted
}

func (m *Momo) fail(ctx context.Context, e evidence, found finding) (Confirmed, error) {
	if !failedBefore(e.attempt) {
		if _, err := m.Store.RecordFailure(ctx, e.attempt.ID, found.failure); err != nil {
			return Confirmed{}, err
		}
	}
	return Confirmed{
		AttemptID: e.attempt.ID, State: found.state, Soft: found.failure.Soft, Code: found.failure.Code, Order: stateOf(e.order),
	}, nil
}

func failedBefore(a exchange.PaymentAttempt) bool {
	return a.Status == exchange.AttemptFailed || a.Status == exchange.AttemptRefused
}

// unsettled returns an undecided result. The order's detail shows a payment whose receipt is missing.
func (m *Momo) unsettled(ctx context.Context, e evidence, found finding) (Confirmed, error) {
	order := e.order
	if found.state == PaymentReceipt && order.Status == exchange.OrderPending && order.StatusDetail != exchange.WaitReceipt {
		if err := m.Store.SetOrderDetail(ctx, order.ID, exchange.WaitReceipt); err != nil {
			return Confirmed{}, err
		}
		order.StatusDetail = exchange.WaitReceipt
	}
	return Confirmed{AttemptID: e.attempt.ID, State: found.state, Order: stateOf(order)}, nil
}
