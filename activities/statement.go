package activities

import (
	"context"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
)

// StatementOperator lists the payments to our number. Its method is that of momo.Operator.
type StatementOperator interface {
	Pull(ctx context.Context, from, to time.Time, offset int) (seen []exchange.Observation, next int, more bool, err error)
}

// StatementStore is the database interface of Statement.
type StatementStore interface {
	TakeReceipt(ctx context.Context, o exchange.Observation) (exchange.C2BTaken, error)
	QuarantineLine(ctx context.Context, o exchange.Observation, reason string) (fresh bool, err error)
	StrayPayments(ctx context.Context, before time.Time, limit int) ([]uuid.UUID, error)
	OpenUnmatched(ctx context.Context, id uuid.UUID) (exchange.C2BPayment, error)
	UnlistedPayments(ctx context.Context, from, to time.Time) (int, error)
	MissingCallbacks(ctx context.Context, from, to time.Time) (exchange.MissingCallbacks, error)
}

// Statement compares the payments to our number with the operator's list. It is registered on the momo queue, whose
// processes know the operator's secrets.
type Statement struct {
	Store    StatementStore
	Operator StatementOperator
	Now      func() time.Time
}

// Limits of comparing the books with the statement.
const (
	// strayTimeout is how long a payment may wait for an attempt that failed but may still be paid late. After that the
	// operator's list no longer holds the payment, and our operator decides.
	strayTimeout = 49 * time.Hour
	strayBatch   = 200
	// listLag is how late the operator may list a payment.
	listLag = 15 * time.Minute
)

// StatementInput asks for a page of the operator's list for a period.
type StatementInput struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Offset int       `json:"offset"`
}

// StatementWaiting is an attempt that a payment may pay, and the flow that waits for it.
type StatementWaiting struct {
	AttemptID uuid.UUID           `json:"attempt_id"`
	OrderID   uuid.UUID           `json:"order_id"` // zero for another object
	Object    exchange.MomoObject `json:"object,omitzero"`
	Home      string              `json:"home"`
}

// StatementPage is the result of a page.
type StatementPage struct {
	Lines       int                `json:"lines"`
	Found       int                `json:"found"` // payments that were new to us
	Disputed    int                `json:"disputed,omitempty"`
	Quarantined int                `json:"quarantined,omitempty"`
	Waiting     []StatementWaiting `json:"waiting,omitempty"` // the flows to wake
	Next        int                `json:"next"`
	More        bool               `json:"more,omitempty"`
}

// TakeStatementPage stores a page of the operator's list, each payment once by its receipt. A line that is not a valid
// payment is quarantined, and the other lines are stored. A repeated run returns the flows to wake again, which does no
// harm.
func (m *Statement) TakeStatementPage(ctx context.Context, in StatementInput) (StatementPage, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	seen, next, more, err := m.Operator.Pull(ctx, in.From, in.To, in.Offset)
	if err != nil {
		return StatementPage{}, Failure(ctx, err)
	}
	page := StatementPage{Lines: len(seen), Next: next, More: more}
	woken := map[uuid.UUID]bool{}
	for _, o := range seen {
		taken, err := m.takeLine(ctx, o, &page)
		if err != nil {
			return StatementPage{}, Failure(ctx, err)
		}
		if taken.New {
			page.Found++
		}
		if taken.Payment.Disputed {
			page.Disputed++
		}
		if a := taken.Waiting; a.ID != uuid.Nil && !woken[a.ID] {
			woken[a.ID] = true
			page.Waiting = append(page.Waiting, StatementWaiting{AttemptID: a.ID, OrderID: a.OrderID, Object: a.Object, Home: a.WorkflowID})
		}
	}
	of := activity.GetMetricsHandler(ctx)
	of.Counter("kivuko_momo_statement_found").Inc(int64(page.Found))
	of.Counter("kivuko_momo_statement_quarantined").Inc(int64(page.Quarantined))
	return page, nil
}

// takeLine stores or quarantines a line. After an error the page must be retried.
func (m *Statement) takeLine(ctx context.Context, o exchange.Observation, page *StatementPage) (exchange.C2BTaken, error) {
	reason := "unreadable"
	if o.State == exchange.SeenSucceeded {
		taken, err := m.Store.TakeReceipt(ctx, o)
		if err == nil || exchange.CodeOf(err) != exchange.CodeInvalid {
			return taken, err
		}
		reason = "refused"
	}
	fresh, err := m.Store.QuarantineLine(ctx, o, reason)
	if fresh {
		page.Quarantined++
		activity.GetLogger(ctx).Warn("ALERT a line of the mobile money operator's statement can't be read as a payment", "reason", reason)
	}
	return exchange.C2BTaken{}, err
}

// SetAside is how many payments became exceptions because no order waits for them.
type SetAside struct {
	Payments int  `json:"payments"`
	More     bool `json:"more,omitempty"`
}

// SetStrayPaymentsAside opens one exception for each payment of the operator's list that no order waits for.
func (m *Statement) SetStrayPaymentsAside(ctx context.Context) (SetAside, error) {
	ctx, stop := heartbeat(ctx)
	defer stop()
	ids, err := m.Store.StrayPayments(ctx, m.Now().Add(-strayTimeout), strayBatch)
	if err != nil {
		return SetAside{}, Failure(ctx, err)
	}
	out := SetAside{More: len(ids) == strayBatch}
	for _, id := range ids {
		p, err := m.Store.OpenUnmatched(ctx, id)
		if err != nil {
			return SetAside{}, Failure(ctx, err)
		}
		if p.ExceptionID != uuid.Nil {
			out.Payments++
		}
	}
	activity.GetMetricsHandler(ctx).Counter("kivuko_momo_unmatched_payments").Inc(int64(out.Payments))
	return out, nil
}

// CountUnlisted counts the payments of a period that we know and the operator's list lacks, and the requests without a
// callback. It leaves out the newest, because the operator may still list them or call back. It logs alerts and changes
// nothing.
func (m *Statement) CountUnlisted(ctx context.Context, in StatementInput) (int, error) {
	n, err := m.Store.UnlistedPayments(ctx, in.From, in.To.Add(-listLag))
	if err != nil {
		return 0, Failure(ctx, err)
	}
	if n > 0 {
		activity.GetLogger(ctx).Error("ALERT the mobile money operator's statement lacks payments that we have booked", "payments", n)
	}
	activity.GetMetricsHandler(ctx).Gauge("kivuko_momo_unlisted_payments").Update(float64(n)) //nolint:forbidigo // the library asks for one; it is a count
	return n, m.listen(ctx, in.From, in.To.Add(-listLag))
}

// listen checks whether the operator's callbacks arrive at all.
func (m *Statement) listen(ctx context.Context, from, to time.Time) error {
	missing, err := m.Store.MissingCallbacks(ctx, from, to)
	if err != nil {
		return Failure(ctx, err)
	}
	if missing.Alarming() {
		activity.GetLogger(ctx).Error("ALERT the mobile money operator's callbacks don't arrive; check that our callback addresses can be reached",
			"submitted", missing.Submitted, "without_callback", missing.Missing)
	}
	metrics := activity.GetMetricsHandler(ctx)
	metrics.Gauge("kivuko_momo_submitted").Update(float64(missing.Submitted))      //nolint:forbidigo // the library asks for one; it is a count
	metrics.Gauge("kivuko_momo_without_callback").Update(float64(missing.Missing)) //nolint:forbidigo // as above
	return nil
}
