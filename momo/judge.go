package momo

import (
	"time"

	"kivuko/exchange"
)

// Report is what a source reported to one of the addresses of an attempt. An answer that a query got at once has the kind of
// answers, CallbackStatus.
type Report struct {
	Kind exchange.CallbackKind
	exchange.Observation
	// Asked is set for the answer to a query of ours: other answers count for nothing.
	Asked bool
	// OffRange is set for a report from outside the operator's addresses. It is a reason to ask, and never evidence.
	OffRange bool
}

// Evidence is what is known about one attempt.
type Evidence struct {
	Attempt exchange.PaymentAttempt
	Reports []Report // in the order in which they came

	// Late is set for a payout that has ended: evidence about it may come after its flow ended or an officer settled it.
	Late bool

	// The rest is about collections.

	Query         exchange.Observation   // the answer to our query
	Receipts      []exchange.Observation // confirmations and rows of the statement with the attempt's reference
	Taken         []string               // receipts that paid for other prompts of the order
	Rivals        bool                   // another prompt of the order may have been paid late
	Open          bool                   // another prompt of the order has not ended
	Attested      string                 // the receipt that our operator found at the mobile money operator
	Thorough      bool                   // the statement is worth reading although nothing is in doubt
	StatementRead bool                   // the statement was read to its end, into Receipts
	Now           time.Time
}

// State is what is known about an attempt.
type State string

// The states. Claimed, Receipt, Declined and Failed are of collections; Refused, NoClaim and Denied of payouts.
const (
	Pending  State = "pending"  // nothing is proven either way
	Claimed  State = "claimed"  // one source says paid, and no other confirms or denies it
	Receipt  State = "receipt"  // the operator says paid, but no receipt is known
	Disputed State = "disputed" // the sources contradict each other
	Paid     State = "paid"     // proven
	Declined State = "declined" // the payer declined
	Failed   State = "failed"   // not paid
	Refused  State = "refused"  // definitely not paid
	NoClaim  State = "no_claim" // late: no source claims that the payout was made
	Denied   State = "denied"   // late: a source claimed it, and the operator has denied it twice since
)

// Verdict is the conclusion from the evidence.
type Verdict struct {
	State State
	// Proof is what the state rests on: the payment, or the failure.
	Proof exchange.Observation
	// Receipts are the proven receipts of a paid collection, best first.
	Receipts []exchange.Observation
	// WantsStatement is set when the statement of a collection's operator could decide more.
	WantsStatement bool
	// Result is the strongest result of a payout that came as a callback.
	Result exchange.Observation
	// Claimed is set when any source says that a payout was made, Unheard when there is no evidence about it at all.
	Claimed, Unheard bool
	// Denied is set when a source claimed that an open payout was made, and the operator has denied it twice since.
	Denied bool
}

// weAsked reports whether a source is one that we asked ourselves, over a connection that we opened. What is posted to an address
// of ours is not signed: anybody who learns the address can post it. So no number of such reports proves anything without a
// source that was asked.
func weAsked(s exchange.EvidenceSource) bool {
	return s == exchange.SourceQuery || s == exchange.SourceStatement
}

// Judge returns the verdict on an attempt. It is a pure function of the evidence.
func Judge(e Evidence) Verdict {
	switch {
	case e.Attempt.Direction != exchange.Payout:
		return judgeCollection(e)
	case e.Late:
		return judgeLatePayout(e)
	}
	return judgePayout(e)
}

// strongest returns the observation with the most evidence: a success before a failure before the rest.
func strongest(said []exchange.Observation) exchange.Observation {
	rank := map[exchange.ObservationState]int{exchange.SeenSucceeded: 3, exchange.SeenFailed: 2, exchange.SeenPending: 1}
	var best exchange.Observation
	for i, o := range said {
		if i == 0 || rank[o.State] > rank[best.State] {
			best = o
		}
	}
	return best
}

// results returns the results that came as callbacks from the operator's addresses.
func results(reports []Report) []exchange.Observation {
	var list []exchange.Observation
	for _, r := range reports {
		if r.Kind == exchange.CallbackResult && !r.OffRange {
			list = append(list, r.Observation)
		}
	}
	return list
}

// JudgeFloat returns the verdict on a movement of our own float: paid or refused when its result and the answer to a query of
// ours agree, because anybody who learns the address could post a result. Result is the last decisive result.
func JudgeFloat(reports []Report) Verdict {
	var result, answer exchange.Observation
	for _, r := range reports {
		switch {
		case r.OffRange, r.State != exchange.SeenSucceeded && r.State != exchange.SeenFailed:
		case r.Kind == exchange.CallbackResult && result.State != exchange.SeenSucceeded: // a success is final
			result = r.Observation
		case r.Kind == exchange.CallbackStatus && r.Asked && answer.State != exchange.SeenSucceeded:
			answer = r.Observation
		}
	}
	v := Verdict{State: Pending, Result: result}
	switch {
	case result.State != answer.State:
	case result.State == exchange.SeenFailed:
		v.State, v.Proof = Refused, result
	case result.State == exchange.SeenSucceeded && result.Receipt != "" && result.Receipt == answer.Receipt:
		v.State, v.Proof = Paid, result
	}
	return v
}
