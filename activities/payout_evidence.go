package activities

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
)

// This file has the ids, addresses and evidence of payouts.

// PayoutID is the id of the try-th payout of a refund or an order, and the idempotency key at the operator. It is derived
// from the id of the paid object, so that no repeated step can send a second payout.
func PayoutID(paid uuid.UUID, try int) uuid.UUID {
	return uuid.NewSHA1(paid, fmt.Appendf(nil, "kivuko payout %d", try))
}

// payoutToken is the unguessable part of a payout's callback addresses. Unlike that of a prompt it is derived from a key,
// because later steps query the payout, and the run after a crash sends it again: the answers must come to the same address.
func payoutToken(key []byte, attempt uuid.UUID) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("kivuko payout callback " + attempt.String()))
	return hex.EncodeToString(h.Sum(nil))
}

// resubmitFor is how long after its row was written a payout may be sent again under its own id. The operator does not
// document how long it remembers ids, so an older payout is only queried.
const resubmitFor = 10 * time.Minute

// again is the outcome of a payout whose row an earlier run wrote.
type again struct {
	submission exchange.Submission
	// spoken is set when the earlier run has stored its answer meanwhile, which is in the attempt.
	spoken  bool
	attempt exchange.PaymentAttempt
}

// sentAgain continues a payout whose row an earlier run wrote without storing an answer. That run may still be active. So
// the outcome is stored as unknown before anything is sent: from then on a refusal of the other run's request proves
// nothing and is not recorded as one.
func sentAgain(ctx context.Context, store submissionStore, operator MomoOperator, key []byte, now time.Time, a exchange.PaymentAttempt) (again, error) {
	var h submissionDetails
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &h) == nil && h.State != "" {
		return again{submission: h.submission()}, nil
	}
	unknown := exchange.Submission{State: exchange.Unknown, Text: "the step broke off around the call"}
	marked, err := store.RecordSubmission(ctx, a.ID, unknown)
	if err != nil {
		return again{}, err
	}
	if marked.Status != exchange.AttemptUnknown {
		return again{spoken: true, attempt: marked}, nil
	}
	if s := resend(ctx, operator, key, now, a); s.State == exchange.Accepted {
		return again{submission: s}, nil
	}
	return again{submission: unknown}, nil
}

// resend sends a payout with an unknown outcome again under its own id, while the operator certainly remembers the id. Any
// answer but an acceptance leaves the outcome unknown: a refusal may be of the repetition only, after the first request was
// accepted.
func resend(ctx context.Context, operator MomoOperator, key []byte, now time.Time, a exchange.PaymentAttempt) exchange.Submission {
	if operator.Capabilities().PayoutIdempotent && now.Sub(a.CreatedAt) < resubmitFor {
		a.CallbackToken = payoutToken(key, a.ID)
		if s := operator.SubmitPayout(ctx, a); s.State == exchange.Accepted {
			return s
		}
	}
	return exchange.Submission{State: exchange.Unknown}
}

// payoutEvidence is what the sources report about one payout.
type payoutEvidence struct {
	attempt  exchange.PaymentAttempt
	result   exchange.Observation   // the result callback
	answers  []exchange.Observation // answers to status queries
	timedOut bool                   // the operator's queue timed out, which proves nothing
}

// listen reads the stored callbacks of a payout.
func listen(ctx context.Context, operator MomoOperator, a exchange.PaymentAttempt, stored []exchange.MomoCallback) payoutEvidence {
	e := payoutEvidence{attempt: a}
	var results []exchange.Observation
	for _, c := range stored {
		seen, err := operator.ParseCallback(c.Kind, c.Body)
		if err != nil {
			activity.GetLogger(ctx).Warn("a stored callback can't be read", "attempt", a.ID, "callback", c.ID)
			continue
		}
		for _, o := range seen {
			if id := o.Refs.OriginatorConversationID; id != "" && id != a.ID.String() {
				continue // about another payout
			}
			switch c.Kind {
			case exchange.CallbackResult:
				results = append(results, o)
			case exchange.CallbackStatus:
				e.answers = append(e.answers, o)
			case exchange.CallbackTimeout:
				e.timedOut = true
			case exchange.CallbackConfirmation, exchange.CallbackValidation, exchange.CallbackReversal, exchange.CallbackBalance: // not about payouts
			}
		}
	}
	e.result = strongest(results)
	return e
}

// silent reports whether there is no evidence about the payout at all, not even a pending answer.
func (e payoutEvidence) silent() bool {
	for _, o := range e.answers {
		if o.State != exchange.SeenNoAnswer {
			return false
		}
	}
	return e.result.State == "" && !e.timedOut
}

// claimed reports whether any source says that the payout was made.
func (e payoutEvidence) claimed() bool {
	return e.result.State == exchange.SeenSucceeded || slices.ContainsFunc(e.answers, func(o exchange.Observation) bool { return o.State == exchange.SeenSucceeded })
}

// maxQuestions is the number of unanswered queries after which the declaration of two officers counts.
const maxQuestions = 5

// judge returns the state of a payout: paid, refused, disputed or pending, with the strongest observation. A refusal by one
// source is never enough, because other money may be sent on its account.
func (e payoutEvidence) judge() (string, exchange.Observation) {
	var yes, no []exchange.Observation
	tickets := map[string]bool{}
	for _, o := range e.answers {
		switch o.State {
		case exchange.SeenSucceeded:
			yes, tickets[o.Ticket] = append(yes, o), true
		case exchange.SeenFailed:
			no, tickets[o.Ticket] = append(no, o), true
		case exchange.SeenPending, exchange.SeenUnknown, exchange.SeenNoAnswer: // no evidence
		}
	}
	paid, failed := e.result.State == exchange.SeenSucceeded, e.result.State == exchange.SeenFailed
	switch {
	case len(yes) > 0 && (len(no) > 0 || failed), paid && len(no) > 0:
		return PayoutDisputed, e.result
	case paid && len(yes) > 0:
		if !e.agrees(e.result, yes[0]) {
			return PayoutDisputed, e.result
		}
		return proven(e.result, yes[0])
	case len(yes) > 1 && len(tickets) > 1:
		if !e.agrees(yes[0], yes[1]) {
			return PayoutDisputed, yes[0]
		}
		return proven(yes[0], yes[1])
	case failed && len(no) > 0:
		return PayoutRefused, e.result
	case len(no) > 1 && len(tickets) > 1:
		return PayoutRefused, no[0]
	}
	return PayoutPending, exchange.Observation{}
}

// proven merges two observations that confirm each other. A success without a receipt can't be booked yet.
func proven(o, second exchange.Observation) (string, exchange.Observation) {
	if o.Receipt == "" {
		o.Receipt = second.Receipt
	}
	if o.Receipt == "" {
		return PayoutPending, exchange.Observation{}
	}
	if o.Charge.Asset() == "" {
		o.Charge = second.Charge // answers have the charge, results don't
	}
	return PayoutPaid, o
}

// agrees reports whether two sources describe the same payment of our amount to our payee. A missing value is no
// contradiction.
func (e payoutEvidence) agrees(a, b exchange.Observation) bool {
	sameReceipt := a.Receipt == "" || b.Receipt == "" || a.Receipt == b.Receipt
	ours := func(o exchange.Observation) bool {
		return (!o.Amount.Positive() || o.Amount.Equal(e.attempt.Amount)) && (o.Phone == "" || o.Phone == e.attempt.Phone)
	}
	return sameReceipt && ours(a) && ours(b)
}
