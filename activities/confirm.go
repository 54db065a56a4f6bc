package activities

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
	"kivuko/momo"
)

// PaymentState is the known state of a collection.
type PaymentState = momo.State

// The states that a check of a collection can find. A paid one is booked too.
const (
	PaymentClaimed  = momo.Claimed
	PaymentReceipt  = momo.Receipt
	PaymentDisputed = momo.Disputed
	PaymentPaid     = momo.Paid
	PaymentDeclined = momo.Declined
	PaymentFailed   = momo.Failed
)

// ConfirmInput asks for a check of an attempt. A thorough check also reads the operator's statement, which is too slow for
// every check.
type ConfirmInput struct {
	AttemptID uuid.UUID `json:"attempt_id"`
	Thorough  bool      `json:"thorough,omitempty"`
	// Attestation is a command whose note is the receipt that our operator found at the mobile money operator. It counts as a
	// source, but never as the only one.
	Attestation Proof `json:"attestation,omitzero"`
}

// Confirmed is the result of a check, and for a paid attempt the result of the payment.
type Confirmed struct {
	AttemptID uuid.UUID    `json:"attempt_id"`
	State     PaymentState `json:"state"`
	Soft      bool         `json:"soft,omitempty"` // failed, but a late success is still possible
	Code      string       `json:"code,omitempty"` // the operator's
	Order     OrderState   `json:"order"`          // or the state of the other object that the money is collected for
	Home      string       `json:"home,omitempty"` // the flow that waits for the attempt
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
	// statementWindow is what the operator's statement holds, less a margin.
	statementWindow = 47 * time.Hour
	maxPages        = 20
)

// ConfirmPayment checks the outcome of a collection and books it when two different sources say that it was paid, one of which we
// asked. A single source proves nothing, and neither does a source that can't be reached.
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
	e, want, err := m.gather(ctx, a)
	if err != nil {
		return Confirmed{}, err
	}
	e.Thorough = in.Thorough
	if in.Attestation.CommandID != uuid.Nil {
		c, err := m.Store.UseCommand(ctx, in.Attestation.CommandID, in.Attestation.Object.Type, in.Attestation.Object.ID)
		if err != nil {
			return Confirmed{}, err
		}
		e.Attested = exchange.ReceiptIn(c.Note)
	}
	v := momo.Judge(e)
	if v.WantsStatement {
		if err := m.readStatement(ctx, &e); err != nil {
			activity.GetLogger(ctx).Warn("the operator's statement could not be read", "attempt", a.ID, "code", exchange.CodeOf(err))
		}
		v = momo.Judge(e)
	}
	switch v.State {
	case momo.Paid:
		return m.acceptFirst(ctx, e.Attempt, want, v)
	case momo.Failed, momo.Declined:
		return m.fail(ctx, e.Attempt, want, v)
	default: // nothing is decided
		return m.unsettled(ctx, e.Attempt, want, v.State)
	}
}

// gather reads every source that answers at once.
func (m *Momo) gather(ctx context.Context, a exchange.PaymentAttempt) (momo.Evidence, exchange.Collectable, error) {
	var want exchange.Collectable
	stored, err := m.Store.Callbacks(ctx, a.ID)
	if err != nil {
		return momo.Evidence{}, want, err
	}
	e := momo.Evidence{Reports: reportsOf(ctx, m.Operator, a.ID, stored), Now: m.Now()}
	if e.Attempt, err = m.adopt(ctx, a, e.Reports); err != nil {
		return e, want, err
	}
	if want, err = m.Store.Collectable(ctx, a.Object); err != nil {
		return e, want, err
	}
	if err := m.siblings(ctx, &e); err != nil {
		return e, want, err
	}
	if e.Receipts, err = m.Store.ReceiptsFor(ctx, a.Reference); err != nil {
		return e, want, err
	}
	if momo.Judge(e).State != momo.Paid { // the statement may have proven it already
		e.Query = m.Operator.Resolve(ctx, e.Attempt)
	}
	return e, want, nil
}

// siblings reads the object's other prompts, which share the reference: the receipt of one prompt is no evidence for another.
func (m *Momo) siblings(ctx context.Context, e *momo.Evidence) error {
	for n := 1; ; n++ {
		id := CollectionID(e.Attempt.Object.ID, n)
		if id == e.Attempt.ID {
			continue
		}
		other, err := m.Store.Attempt(ctx, id)
		if exchange.CodeOf(err) == exchange.CodeNotFound {
			return nil
		}
		if err != nil {
			return err
		}
		switch other.Status {
		case exchange.AttemptSucceeded:
			e.Taken = append(e.Taken, other.Receipt)
		case exchange.AttemptFailed:
			e.Rivals = e.Rivals || other.Soft
		case exchange.AttemptCreated, exchange.AttemptAccepted, exchange.AttemptUnknown:
			e.Open = true
		case exchange.AttemptRefused:
		}
	}
}

// adopt takes the operator's ids of a prompt from a callback at the attempt's own address, when the response to the
// submission was lost. It skips the id of another attempt, which a forged callback could name, and reports from outside the
// operator's addresses.
func (m *Momo) adopt(ctx context.Context, a exchange.PaymentAttempt, reports []momo.Report) (exchange.PaymentAttempt, error) {
	if a.CheckoutRequestID != "" || (a.Status != exchange.AttemptCreated && a.Status != exchange.AttemptUnknown) {
		return a, nil
	}
	for _, o := range reports {
		if o.Kind != exchange.CallbackResult || o.OffRange || o.Refs.CheckoutRequestID == "" {
			continue
		}
		adopted, err := m.Store.RecordSubmission(ctx, a.ID, exchange.Submission{State: exchange.Accepted, Refs: o.Refs})
		if exchange.CodeOf(err) != exchange.CodeConflict {
			return adopted, err
		}
	}
	return a, nil
}

// readStatement reads the operator's statement since the prompt and stores the matching receipts.
func (m *Momo) readStatement(ctx context.Context, e *momo.Evidence) error {
	now := e.Now
	from := e.Attempt.CreatedAt.Add(-momo.StatementLead)
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
			if row.State != exchange.SeenSucceeded || !strings.EqualFold(strings.TrimSpace(row.Reference), e.Attempt.Reference) {
				continue
			}
			if err := m.Store.SaveReceipt(ctx, row); err != nil {
				return err
			}
			e.Receipts = append(e.Receipts, row)
		}
		if !more {
			e.StatementRead = true
			return nil
		}
	}
	return nil
}

// acceptFirst books the first proven receipt that no other attempt uses.
func (m *Momo) acceptFirst(ctx context.Context, a exchange.PaymentAttempt, want exchange.Collectable, v momo.Verdict) (Confirmed, error) {
	for _, o := range v.Receipts {
		c, err := m.accept(ctx, a, o)
		if exchange.CodeOf(err) == exchange.CodeConflict {
			continue // the receipt is another attempt's
		}
		return c, err
	}
	return m.unsettled(ctx, a, want, momo.Pending)
}

func (m *Momo) accept(ctx context.Context, a exchange.PaymentAttempt, o exchange.Observation) (Confirmed, error) {
	out, err := m.Store.AcceptPayment(ctx, a.ID, o, m.Now())
	if err != nil {
		return Confirmed{}, err
	}
	return Confirmed{
		AttemptID: a.ID, State: PaymentPaid, Order: collectedState(out.Object), Home: a.WorkflowID, Kind: string(out.Kind),
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

func (m *Momo) fail(ctx context.Context, a exchange.PaymentAttempt, want exchange.Collectable, v momo.Verdict) (Confirmed, error) {
	if a.Status != exchange.AttemptFailed && a.Status != exchange.AttemptRefused {
		if _, err := m.Store.RecordFailure(ctx, a.ID, v.Proof); err != nil {
			return Confirmed{}, err
		}
	}
	return Confirmed{
		AttemptID: a.ID, State: v.State, Soft: v.Proof.Soft, Code: v.Proof.Code, Order: collectedState(want), Home: a.WorkflowID,
	}, nil
}

// unsettled returns an undecided result. The object's detail shows a payment whose receipt is missing.
func (m *Momo) unsettled(ctx context.Context, a exchange.PaymentAttempt, want exchange.Collectable, state PaymentState) (Confirmed, error) {
	if state == momo.Receipt && want.Waits && want.Detail != exchange.WaitReceipt {
		if err := m.Store.SetCollectionDetail(ctx, want.Object, exchange.WaitReceipt); err != nil {
			return Confirmed{}, err
		}
		want.Detail = exchange.WaitReceipt
	}
	return Confirmed{AttemptID: a.ID, State: state, Order: collectedState(want), Home: a.WorkflowID}, nil
}

// collectedState is the state of an order, or of another object in its own words.
func collectedState(c exchange.Collectable) OrderState {
	return OrderState{OrderID: c.Object.ID, Status: exchange.OrderStatus(c.Status), Detail: c.Detail}
}
