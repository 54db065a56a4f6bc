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

// What payouts of refunds and of orders have in common: their ids, their addresses, and how their witnesses are judged.

// PayoutID is the id of the try-th payout of a refund or of an order, and so the operator's key of idempotency. It
// follows from what is paid, so that no repetition of any kind can send a second one.
func PayoutID(paid uuid.UUID, try int) uuid.UUID {
	return uuid.NewSHA1(paid, fmt.Appendf(nil, "kivuko payout %d", try))
}

// payoutToken is the unguessable part of a payout's callback addresses. It can be made again, unlike that of a
// prompt, because a payout is asked about by later steps, and sent again by the run after a crash: the
// answers must come to the same address.
func payoutToken(key []byte, attempt uuid.UUID) string {
	h := hmac.New(sha256.New, key)
	h.Write([]byte("kivuko payout callback " + attempt.String()))
	return hex.EncodeToString(h.Sum(nil))
}

// resubmitFor is how long after its row was written a payout may be sent again under its own id. The
// operator does not say how long it remembers ids, so an older one is asked for and never sent.
const resubmitFor = 10 * time.Minute

// again is what became of a payout whose row an earlier run wrote.
type again struct {
	submission exchange.Submission
	// spoken says that the earlier run has stored its answer meanwhile, which is in the attempt.
	spoken  bool
	attempt exchange.PaymentAttempt
}

// sentAgain goes on with a payout whose row an earlier run wrote and whose answer nobody stored. The run before may still
// be at work, cut off from everything but the database. So the outcome is stored as unknown before anything is sent: from
// then on a refusal that the other run got for its own sending proves nothing, and is not taken for one.
func sentAgain(ctx context.Context, store submissionStore, operator MomoOperator, key []byte, now time.Time, a exchange.PaymentAttempt) (again, error) {
	var h heard
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

// resend sends a payout of unknown outcome again under its own id, while the operator is sure to remember it. All but an
// acceptance is unknown still: a refusal proves nothing here, because it is of the repetition, and the first sending may
// have been taken.
func resend(ctx context.Context, operator MomoOperator, key []byte, now time.Time, a exchange.PaymentAttempt) exchange.Submission {
	if operator.Capabilities().PayoutIdempotent && now.Sub(a.CreatedAt) < resubmitFor {
		a.CallbackToken = payoutToken(key, a.ID)
		if s := operator.SubmitPayout(ctx, a); s.State == exchange.Accepted {
			return s
		}
	}
	return exchange.Submission{State: exchange.Unknown}
}

// payoutEvidence is what the witnesses say of one payout.
type payoutEvidence struct {
	attempt   exchange.PaymentAttempt
	result    exchange.Observation   // the result callback
	answers   []exchange.Observation // answers to status questions
	timedOut  bool                   // the operator's queue gave up waiting, which says nothing
	questions int
	// strict says that something is sent on the strength of a refusal, so that one voice is never enough for it.
	strict bool
}

// listen reads what was stored of a payout's callbacks.
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
			case exchange.CallbackConfirmation, exchange.CallbackValidation, exchange.CallbackReversal, exchange.CallbackBalance: // these say nothing of a payout
			}
		}
	}
	e.result = strongest(results)
	return e
}

// silent tells whether nobody has said anything of the payout, not even that it is being looked at.
func (e payoutEvidence) silent() bool {
	for _, o := range e.answers {
		if o.State != exchange.SeenNoAnswer {
			return false
		}
	}
	return e.result.State == "" && !e.timedOut
}

// claimed tells whether anybody says that the payout was made.
func (e payoutEvidence) claimed() bool {
	return e.result.State == exchange.SeenSucceeded || slices.ContainsFunc(e.answers, func(o exchange.Observation) bool { return o.State == exchange.SeenSucceeded })
}

// credentialStore keeps whether the operator refuses our credential.
type credentialStore interface {
	// NoteCredential counts that the operator refuses our credential, before the payout is settled.
	NoteCredential(ctx context.Context, attempt uuid.UUID, code string) error
	Breaker(ctx context.Context, provider string) (exchange.Breaker, error)
}

// mayAsk counts a result that says that our credential was refused as soon as it is heard, and tells whether a question
// that is due may be put: not while the breaker is open, because more questions would lock the credential.
func (e payoutEvidence) mayAsk(ctx context.Context, store credentialStore, provider string, due bool) (bool, error) {
	if e.result.State == exchange.SeenFailed && exchange.CredentialCode(e.result.Code) {
		if err := store.NoteCredential(ctx, e.attempt.ID, e.result.Code); err != nil {
			return false, err
		}
	}
	if !due {
		return false, nil
	}
	breaker, err := store.Breaker(ctx, provider)
	return err == nil && breaker.State() != exchange.BreakerOpen, err
}

// maxQuestions is after how many unanswered questions a result that says "failed" is believed alone, where
// nothing is sent on the strength of it: a person decides.
const maxQuestions = 5

// judge weighs the evidence of a payout: paid, refused, disputed or pending, with the observation that
// tells most.
func (e payoutEvidence) judge() (string, exchange.Observation) {
	var yes, no []exchange.Observation
	tickets := map[string]bool{}
	for _, o := range e.answers {
		switch o.State {
		case exchange.SeenSucceeded:
			yes, tickets[o.Ticket] = append(yes, o), true
		case exchange.SeenFailed:
			no, tickets[o.Ticket] = append(no, o), true
		case exchange.SeenPending, exchange.SeenUnknown, exchange.SeenNoAnswer: // these say nothing
		}
	}
	paid, failed := e.result.State == exchange.SeenSucceeded, e.result.State == exchange.SeenFailed
	switch {
	case len(yes) > 0 && (len(no) > 0 || failed), paid && len(no) > 0:
		return RefundDisputed, e.result
	case paid && len(yes) > 0:
		if !e.agrees(e.result, yes[0]) {
			return RefundDisputed, e.result
		}
		return proven(e.result, yes[0])
	case len(yes) > 1 && len(tickets) > 1:
		if !e.agrees(yes[0], yes[1]) {
			return RefundDisputed, yes[0]
		}
		return proven(yes[0], yes[1])
	case failed && (len(no) > 0 || (e.questions >= maxQuestions && !e.strict)):
		return RefundRefused, e.result
	case len(no) > 1 && len(tickets) > 1:
		return RefundRefused, no[0]
	}
	return RefundPending, exchange.Observation{}
}

// proven is what two voices say together. A success that neither names a receipt for can't be booked yet.
func proven(o, second exchange.Observation) (string, exchange.Observation) {
	if o.Receipt == "" {
		o.Receipt = second.Receipt
	}
	if o.Receipt == "" {
		return RefundPending, exchange.Observation{}
	}
	if o.Charge.Asset() == "" {
		o.Charge = second.Charge // results don't tell it, answers do
	}
	return RefundPaid, o
}

// agrees tells whether two witnesses speak of the same payment of our amount to our payee. What one of them does not
// tell is no contradiction.
func (e payoutEvidence) agrees(a, b exchange.Observation) bool {
	sameReceipt := a.Receipt == "" || b.Receipt == "" || a.Receipt == b.Receipt
	ours := func(o exchange.Observation) bool {
		return (!o.Amount.Positive() || o.Amount.Equal(e.attempt.Amount)) && (o.Phone == "" || o.Phone == e.attempt.Phone)
	}
	return sameReceipt && ours(a) && ours(b)
}
