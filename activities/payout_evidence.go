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
	"kivuko/momo"
)

// This file has the ids, addresses and evidence of attempts.

// PayoutID is the id of the try-th payout of a refund or an order, and the idempotency key at the operator. It is derived
// from the id of the paid object, so that no repeated step can send a second payout.
func PayoutID(paid uuid.UUID, try int) uuid.UUID {
	return uuid.NewSHA1(paid, fmt.Appendf(nil, "kivuko payout %d", try))
}

// derivedToken is the unguessable part of a callback address of a payout or a movement of float. Unlike that of a prompt it is
// derived from a key, because later steps query the payout, and the run after a crash sends it again: the answers must come to
// the same address. Results and answers have addresses of their own: who learns one can't post both.
func derivedToken(key []byte, purpose string, id uuid.UUID) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("kivuko " + purpose + " " + id.String()))
	return hex.EncodeToString(h.Sum(nil))
}

// addressed returns a payout with the tokens of its callback addresses.
func addressed(key []byte, a exchange.PaymentAttempt) exchange.PaymentAttempt {
	a.CallbackToken, a.StatusToken = derivedToken(key, "payout result", a.ID), derivedToken(key, "payout answer", a.ID)
	return a
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
func (p *Payouts) sentAgain(ctx context.Context, in SubmitPayoutInput, a exchange.PaymentAttempt) (again, error) {
	var h submissionDetails
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &h) == nil && h.State != "" {
		return again{submission: h.submission()}, nil
	}
	unknown := exchange.Submission{State: exchange.Unknown, Text: "the step broke off around the call"}
	marked, err := p.Store.RecordSubmission(ctx, a.ID, unknown)
	if err != nil {
		return again{}, err
	}
	if marked.Status != exchange.AttemptUnknown {
		return again{spoken: true, attempt: marked}, nil
	}
	if in.overdue(p.Now()) {
		return again{submission: unknown}, nil
	}
	s, err := p.resend(ctx, a, in.Until)
	if err != nil || s.State != exchange.Accepted {
		return again{submission: unknown}, err
	}
	return again{submission: s}, nil
}

// resend sends a payout with an unknown outcome again under its own id, while the operator certainly remembers the id. Any
// answer but an acceptance leaves the outcome unknown: a refusal may be of the repetition only, after the first request was
// accepted. What stops a first request stops this one too, which may be the first that arrives: the payout is then only
// queried. Once nothing stops it, a check sends it, or proves it unpaid, so that another try begins. It is not sent after a
// time, if one is given.
func (p *Payouts) resend(ctx context.Context, a exchange.PaymentAttempt, until time.Time) (exchange.Submission, error) {
	unknown := exchange.Submission{State: exchange.Unknown}
	if forgets := a.CreatedAt.Add(resubmitFor); until.IsZero() || forgets.Before(until) {
		until = forgets
	}
	if !p.Operator.Capabilities().PayoutIdempotent || !p.Now().Before(until) {
		return unknown, nil
	}
	if stopped, err := p.Store.PayoutStopped(ctx, a.Object, p.Provider); err != nil || stopped {
		return unknown, err
	}
	ctx, cancel := bounded(ctx, p.Now(), until)
	defer cancel()
	if s := p.Operator.SubmitPayout(ctx, addressed(p.CallbackKey, a)); s.State == exchange.Accepted {
		return s, nil
	}
	return unknown, nil
}

// reportsOf reads the stored callbacks of an attempt or a movement of float, in the order in which they came. It skips a
// callback that can't be read; other sources decide then.
func reportsOf(ctx context.Context, operator callbackReader, of uuid.UUID, stored []exchange.MomoCallback) []momo.Report {
	var reports []momo.Report
	for _, c := range stored {
		seen, err := operator.ParseCallback(c.Kind, c.Body)
		if err != nil {
			activity.GetLogger(ctx).Warn("a stored callback can't be read", "of", of, "callback", c.ID)
			continue
		}
		for _, o := range seen {
			reports = append(reports, momo.Report{Kind: c.Kind, Observation: o, OffRange: c.OffRange})
		}
	}
	return reports
}

// reports reads the stored callbacks of a payout, and marks the answers to our own queries.
func (p *Payouts) reports(ctx context.Context, attempt uuid.UUID, stored []exchange.MomoCallback) ([]momo.Report, error) {
	tickets, err := p.Store.PayoutQueries(ctx, attempt)
	if err != nil {
		return nil, err
	}
	return answering(tickets, reportsOf(ctx, p.Operator, attempt, stored)), nil
}

// answering marks the reports that answer one of our own queries.
func answering(tickets []string, list []momo.Report) []momo.Report {
	for i := range list {
		list[i].Asked = list[i].Kind == exchange.CallbackStatus && slices.Contains(tickets, list[i].Ticket)
	}
	return list
}

// query asks the operator for the outcome of a payout. It stores the ticket of a query whose answer comes later: if that
// fails, the answer counts for nothing, and another query is sent.
func (p *Payouts) query(ctx context.Context, a exchange.PaymentAttempt) (momo.Report, error) {
	a = addressed(p.CallbackKey, a)
	answer := momo.Report{Kind: exchange.CallbackStatus, Asked: true, Observation: p.Operator.Resolve(ctx, a)}
	if answer.State != exchange.SeenPending || answer.Ticket == "" {
		return answer, nil
	}
	return answer, p.Store.SavePayoutQuery(ctx, a.ID, answer.Ticket)
}

// callbackReader reads what the operator posted to an address of a kind.
type callbackReader interface {
	ParseCallback(kind exchange.CallbackKind, body []byte) ([]exchange.Observation, error)
}
