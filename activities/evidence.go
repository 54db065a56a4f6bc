package activities

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"kivuko/exchange"
)

// evidence is what the sources report about one collection. The operator signs nothing, so no single source is enough: a
// callback could be forged, a query names no amount, and a statement row names only what the payer typed.
type evidence struct {
	attempt       exchange.PaymentAttempt
	order         exchange.Order
	claimed       []string               // receipts that paid for other prompts of the order
	rivals        bool                   // another prompt of the order may have been paid late
	callback      exchange.Observation   // the strongest one at the attempt's own address
	query         exchange.Observation   // the answer to our query
	receipts      []exchange.Observation // confirmations and statement rows with the attempt's reference
	statementRead bool                   // the statement was read to its end
	vouchedFor    string                 // the receipt that our operator found at the mobile money operator
}

// finding is the conclusion from the evidence.
type finding struct {
	state   PaymentState
	proven  []exchange.Observation // when paid: the receipts that are proven, best first
	failure exchange.Observation   // when failed or declined
}

// neverStarted is the finding for a prompt that the operator never acknowledged: it is too old to be accepted, and the whole
// statement does not list it. It is soft, so late money is still watched for.
var neverStarted = finding{state: PaymentFailed, failure: exchange.Observation{
	State: exchange.SeenFailed, Soft: true, Code: "not_found", Text: "not in the operator's statement", Source: exchange.SourceStatement,
}}

// judge returns the finding. It is a pure function of the evidence.
func (e evidence) judge() finding {
	if proven := e.proven(); len(proven) > 0 {
		return finding{state: PaymentPaid, proven: proven}
	}
	paidAnswer := e.callback.State == exchange.SeenSucceeded || len(e.receipts) > 0
	switch {
	case paidAnswer && e.query.State == exchange.SeenFailed:
		if e.callback.State != exchange.SeenSucceeded && e.rivals {
			return failed(e.query) // the rows are the other prompt's
		}
		return finding{state: PaymentDisputed}
	case e.callback.State == exchange.SeenFailed && e.query.State == exchange.SeenSucceeded:
		return finding{state: PaymentReceipt}
	case e.query.State == exchange.SeenSucceeded:
		if e.callback.State == exchange.SeenSucceeded {
			return finding{state: PaymentDisputed} // paid, but not as asked: amount or payer differ
		}
		return finding{state: PaymentReceipt}
	case paidAnswer:
		return finding{state: PaymentClaimed}
	case e.callback.State == exchange.SeenFailed:
		return failed(e.callback)
	case e.query.State == exchange.SeenFailed:
		return failed(e.query)
	}
	return finding{state: PaymentPending}
}

func failed(o exchange.Observation) finding {
	if o.Class == exchange.ClassDeclined {
		return finding{state: PaymentDeclined, failure: o}
	}
	return finding{state: PaymentFailed, failure: o}
}

// add adds rows that did not pay another prompt.
func (e *evidence) add(rows []exchange.Observation) {
	for _, r := range rows {
		if r.State == exchange.SeenSucceeded && !slices.Contains(e.claimed, r.Receipt) {
			e.receipts = append(e.receipts, r)
		}
	}
}

// proven lists the receipts that two different sources confirm: the callback's first, then the oldest first.
func (e evidence) proven() []exchange.Observation {
	list := e.byPerson()
	if c := e.callback; c.State == exchange.SeenSucceeded && c.Receipt != "" && c.Amount.Positive() && e.vouched(c) {
		list = append(list, c)
	}
	rest := slices.Clone(e.receipts)
	slices.SortStableFunc(rest, func(a, b exchange.Observation) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Receipt, b.Receipt))
	})
	for _, r := range rest {
		known := slices.ContainsFunc(list, func(o exchange.Observation) bool { return o.Receipt == r.Receipt })
		if !known && r.Receipt != "" && r.Amount.Positive() && e.vouched(r) {
			list = append(list, r)
		}
	}
	return list
}

// byPerson returns the payment whose receipt our operator found, if another source names that receipt or a receipt is
// missing.
func (e evidence) byPerson() []exchange.Observation {
	if e.vouchedFor == "" || slices.Contains(e.claimed, e.vouchedFor) {
		return nil
	}
	for _, o := range append([]exchange.Observation{e.callback}, e.receipts...) {
		if o.State == exchange.SeenSucceeded && o.Receipt == e.vouchedFor && o.Amount.Positive() {
			return []exchange.Observation{o}
		}
	}
	if e.query.State == exchange.SeenSucceeded && e.callback.Receipt == "" && len(e.receipts) == 0 {
		o := e.query
		o.Receipt, o.Amount = e.vouchedFor, e.attempt.Amount
		return []exchange.Observation{o}
	}
	return nil
}

// vouched reports whether another source confirms an observation of a payment. The query names neither receipt nor amount,
// so it confirms a callback only if that has our amount and payer, and another row only if it is from the time of the
// prompt.
//
// Two rows prove a payment without the prompt's own channels, unless the prompt is still open: then they are the payment of
// another prompt.
func (e evidence) vouched(o exchange.Observation) bool {
	for _, r := range e.receipts {
		if o.Source != exchange.SourceCallback && e.query.State == exchange.SeenPending {
			break
		}
		if r.Source != o.Source && r.Receipt == o.Receipt && r.Amount.Equal(o.Amount) {
			return true
		}
	}
	if e.query.State != exchange.SeenSucceeded {
		return false
	}
	if o.Source == exchange.SourceCallback {
		return o.Amount.Equal(e.attempt.Amount) && (o.Phone == "" || o.Phone == e.attempt.Phone)
	}
	return !o.At.Before(e.attempt.CreatedAt.Add(-statementLead))
}

// wantsStatement reports whether the operator's statement could decide what the quick sources left open.
func (e evidence) wantsStatement(s PaymentState, thorough bool, now time.Time) bool {
	switch s {
	case PaymentReceipt, PaymentDisputed:
		return true
	case PaymentPending, PaymentClaimed:
		return thorough || (e.unheardOf() && now.Sub(e.attempt.CreatedAt) > promptLife)
	case PaymentPaid, PaymentDeclined, PaymentFailed: // decided without it
	}
	return false
}

// unheardOf reports whether the operator never acknowledged the prompt.
func (e evidence) unheardOf() bool {
	return e.attempt.CheckoutRequestID == "" &&
		(e.attempt.Status == exchange.AttemptCreated || e.attempt.Status == exchange.AttemptUnknown)
}

// neverStarted reports whether the prompt can't have reached the payer, or can't have been paid.
func (e evidence) neverStarted(now time.Time) bool {
	return e.unheardOf() && e.statementRead && len(e.receipts) == 0 && e.callback.State == "" &&
		now.Sub(e.attempt.CreatedAt) > promptLife
}

// matching drops callbacks about another prompt.
func matching(a exchange.PaymentAttempt, said []exchange.Observation) []exchange.Observation {
	return slices.DeleteFunc(slices.Clone(said), func(o exchange.Observation) bool {
		foreign := o.Refs.CheckoutRequestID != "" && o.Refs.CheckoutRequestID != a.CheckoutRequestID
		return foreign || (o.Refs.MerchantRequestID != "" && a.MerchantRequestID != "" && o.Refs.MerchantRequestID != a.MerchantRequestID)
	})
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

// sameReference compares what a payer typed with what we asked for.
func sameReference(typed, ours string) bool {
	return strings.EqualFold(strings.TrimSpace(typed), ours)
}
