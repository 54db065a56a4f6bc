package activities

import (
	"context"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
)

// StatementOperator tells which payments to our number it knows of. momo.Client is one.
type StatementOperator interface {
	Pull(ctx context.Context, from, to time.Time, offset int) (seen []exchange.Observation, next int, more bool, err error)
}

// StatementStore is what holding our books against the operator's statement needs of the database.
type StatementStore interface {
	TakeReceipt(ctx context.Context, o exchange.Observation) (exchange.C2BTaken, error)
	QuarantineLine(ctx context.Context, o exchange.Observation, reason string) (fresh bool, err error)
	StrayPayments(ctx context.Context, before time.Time, limit int) ([]uuid.UUID, error)
	OpenUnmatched(ctx context.Context, id uuid.UUID) (exchange.C2BPayment, error)
	UnlistedPayments(ctx context.Context, from, to time.Time) (int, error)
	CallbackSilence(ctx context.Context, from, to time.Time) (exchange.CallbackSilence, error)
}

// Statement holds what we know of payments to our number against the operator's list. It is registered on the momo
// queue, whose processes know the operator's secrets.
type Statement struct {
	Store    StatementStore
	Operator StatementOperator
	Now      func() time.Time
}

// Limits of holding the books against the statement.
const (
	// strayPatience is how long a payment may wait for an attempt that failed and may still be paid late. After it
	// the operator's list holds the payment no longer, and a person decides.
	strayPatience = 49 * time.Hour
	strayBatch    = 200
	// listLag is how late the operator may list a payment.
	listLag = 15 * time.Minute
)

// StatementInput asks for a page of the operator's list of a time.
type StatementInput struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Offset int       `json:"offset"`
}

// StatementWaiting is an attempt that a payment may pay, and the flow that waits for it.
type StatementWaiting struct {
	AttemptID uuid.UUID `json:"attempt_id"`
	OrderID   uuid.UUID `json:"order_id"`
	Home      string    `json:"home"`
}

// StatementPage is what became of a page.
type StatementPage struct {
	Lines       int                `json:"lines"`
	Found       int                `json:"found"` // payments that we had not heard of
	Disputed    int                `json:"disputed,omitempty"`
	Quarantined int                `json:"quarantined,omitempty"`
	Waiting     []StatementWaiting `json:"waiting,omitempty"` // whom to wake
	Next        int                `json:"next"`
	More        bool               `json:"more,omitempty"`
}

// TakeStatementPage stores a page of the operator's list, each payment once by its receipt. A line that can't be taken
// for a payment is kept apart, and the lines around it are taken. Run again it finds its payments stored and says
// whom to wake once more, which does no harm.
func (m *Statement) TakeStatementPage(ctx context.Context, in StatementInput) (StatementPage, error) {
	ctx, stop := beat(ctx)
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
			page.Waiting = append(page.Waiting, StatementWaiting{AttemptID: a.ID, OrderID: a.OrderID, Home: a.WorkflowID})
		}
	}
	of := activity.GetMetricsHandler(ctx)
	of.Counter("kivuko_momo_statement_found").Inc(int64(page.Found))
	of.Counter("kivuko_momo_statement_quarantined").Inc(int64(page.Quarantined))
	return page, nil
}

// takeLine stores a line or sets it apart. The error is one after which the page has to be tried again.
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
		activity.GetLogger(ctx).Warn("ALERT a line of the operator's statement can't be taken for a payment", "reason", reason)
	}
	return exchange.C2BTaken{}, err
}

// SetAside is how many payments were set aside for a person because nothing waits for them.
type SetAside struct {
	Payments int  `json:"payments"`
	More     bool `json:"more,omitempty"`
}

// SetStrayPaymentsAside opens an exception for each payment of the operator's list that nothing waits for, once.
func (m *Statement) SetStrayPaymentsAside(ctx context.Context) (SetAside, error) {
	ctx, stop := beat(ctx)
	defer stop()
	ids, err := m.Store.StrayPayments(ctx, m.Now().Add(-strayPatience), strayBatch)
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

// CountUnlisted counts the payments of a time that we know of and the operator's list has not, and the requests about
// which the operator has posted nothing. The newest are left out, because the operator may list them, and post, yet. It
// says so for a person and changes nothing.
func (m *Statement) CountUnlisted(ctx context.Context, in StatementInput) (int, error) {
	n, err := m.Store.UnlistedPayments(ctx, in.From, in.To.Add(-listLag))
	if err != nil {
		return 0, Failure(ctx, err)
	}
	if n > 0 {
		activity.GetLogger(ctx).Error("ALERT the operator's statement lacks payments that we know of", "payments", n)
	}
	activity.GetMetricsHandler(ctx).Gauge("kivuko_momo_unlisted_payments").Update(float64(n)) //nolint:forbidigo // the library asks for one; it is a count
	return n, m.listen(ctx, in.From, in.To.Add(-listLag))
}

// listen sees whether the operator's callbacks arrive at all.
func (m *Statement) listen(ctx context.Context, from, to time.Time) error {
	silence, err := m.Store.CallbackSilence(ctx, from, to)
	if err != nil {
		return Failure(ctx, err)
	}
	if silence.Alarming() {
		activity.GetLogger(ctx).Error("ALERT the operator's callbacks don't arrive; see that its addresses of ours answer",
			"submitted", silence.Submitted, "without_callback", silence.Silent)
	}
	metrics := activity.GetMetricsHandler(ctx)
	metrics.Gauge("kivuko_momo_submitted").Update(float64(silence.Submitted))     //nolint:forbidigo // the library asks for one; it is a count
	metrics.Gauge("kivuko_momo_without_callback").Update(float64(silence.Silent)) //nolint:forbidigo // as above
	return nil
}
