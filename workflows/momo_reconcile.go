package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// How far back the operator's list is read, and how much of it in one run. The list reaches back 48 hours. The windows of
// successive runs overlap, so that a payment that is listed late is found.
const (
	reconcileWindow = 2 * time.Hour
	sweepWindow     = 47 * time.Hour
	maxListPages    = 500
	maxListWakes    = 500
	maxAsideBatches = 50
)

// PaymentsReconciled is what a run found. Absent counts the payments that we know and the operator's list lacks; it is only
// counted when the list was read to its end.
type PaymentsReconciled struct {
	Lines       int  `json:"lines"`
	Found       int  `json:"found"`
	Disputed    int  `json:"disputed,omitempty"`
	Quarantined int  `json:"quarantined,omitempty"`
	Woken       int  `json:"woken,omitempty"`
	SetAside    int  `json:"set_aside,omitempty"`
	Absent      int  `json:"absent,omitempty"`
	Whole       bool `json:"whole"` // the list was read to its end
}

// ReconcilePayments compares the payments of the last two hours with the operator's list. A schedule starts it.
func ReconcilePayments(ctx workflow.Context) (PaymentsReconciled, error) {
	return reconcilePayments(ctx, reconcileWindow)
}

// SweepPayments does so for everything that the operator's list still holds. A schedule starts it once a day.
func SweepPayments(ctx workflow.Context) (PaymentsReconciled, error) {
	return reconcilePayments(ctx, sweepWindow)
}

// reconcilePayments reads the list page by page, notifies the flows that wait for a payment, and opens an exception for
// each payment that no flow waits for. If the list can't be read now, the next run reads it, because its window holds the
// same payments; payments from earlier runs are still handled.
func reconcilePayments(ctx workflow.Context, window time.Duration) (PaymentsReconciled, error) {
	var out PaymentsReconciled
	to := workflow.Now(ctx).UTC()
	in := activities.StatementInput{From: to.Add(-window), To: to}
	for range maxListPages {
		page, err := step(ctx, look, "Read the operator's list", statement.TakeStatementPage, in)
		if err != nil {
			workflow.GetLogger(ctx).Warn("the operator's list could not be read; the next run tries again", "offset", in.Offset, "error", err)
			break
		}
		out.Lines += page.Lines
		out.Found += page.Found
		out.Disputed += page.Disputed
		out.Quarantined += page.Quarantined
		for _, w := range page.Waiting {
			if out.Woken < maxListWakes { // the next run wakes the rest
				wakeForPayment(ctx, w)
				out.Woken++
			}
		}
		if !page.More {
			out.Whole = true
			break
		}
		in.Offset = page.Next
	}
	for range maxAsideBatches {
		aside, err := fetch(ctx, rail, "Open exceptions for unassigned payments", statement.SetStrayPaymentsAside)
		if err != nil {
			return out, err
		}
		out.SetAside += aside.Payments
		if !aside.More {
			break
		}
	}
	if !out.Whole {
		return out, nil
	}
	in.Offset = 0
	absent, err := step(ctx, look, "Count payments that the list lacks", statement.CountUnlisted, in)
	out.Absent = absent
	return out, err
}

// wakeForPayment notifies the flow of an attempt that a payment with its reference was found. If that flow has ended, the
// watch for late money is notified or started.
func wakeForPayment(ctx workflow.Context, w activities.StatementWaiting) {
	ref := CallbackRef{AttemptID: w.AttemptID}
	for _, id := range []string{w.Home, LatePaymentID(w.AttemptID)} {
		if id != "" && workflow.SignalExternalWorkflow(ctx, id, "", SignalCallback, ref).Get(ctx, nil) == nil {
			return
		}
	}
	startWatch(ctx, LatePaymentInput{AttemptID: w.AttemptID, OrderID: w.OrderID, Object: w.Object})
}
