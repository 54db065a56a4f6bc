package activities

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/momo"
)

// takenIDs is a database in which the operator's id "taken" is of another attempt.
type takenIDs struct{ AttemptStore }

func (takenIDs) RecordSubmission(_ context.Context, id uuid.UUID, s exchange.Submission) (exchange.PaymentAttempt, error) {
	if s.Refs.CheckoutRequestID == "taken" {
		return exchange.PaymentAttempt{}, exchange.Errorf(exchange.CodeConflict, "Such a payment attempt already exists.")
	}
	return exchange.PaymentAttempt{ID: id, Status: exchange.AttemptAccepted, CheckoutRequestID: s.Refs.CheckoutRequestID}, nil
}

// A prompt whose acknowledgement was lost takes its id from a callback. A forged callback that names another prompt's id is
// skipped, and the operator's own one counts.
func TestAdoptsOnlyFreeIDs(t *testing.T) {
	m := &Momo{Store: takenIDs{}}
	report := func(id string) momo.Report {
		return momo.Report{Kind: exchange.CallbackResult, Observation: exchange.Observation{Refs: exchange.Refs{CheckoutRequestID: id}}}
	}
	for want, reports := range map[string][]momo.Report{
		"own": {report("taken"), report("own")}, "": {report("taken")},
	} {
		a, err := m.adopt(t.Context(), exchange.PaymentAttempt{ID: uuid.New(), Status: exchange.AttemptUnknown}, reports)
		if err != nil || a.CheckoutRequestID != want || a.ID == uuid.Nil {
			t.Errorf("adopted %q, want %q: %v", a.CheckoutRequestID, want, err)
		}
	}
}
