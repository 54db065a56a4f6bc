package momo

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"kivuko/exchange"
)

// StatementLead is how long before a prompt its payment may be dated, because clocks differ.
const StatementLead = 5 * time.Minute

// promptLife is the time after which a prompt can't be accepted any more: it stays on the phone for one to three minutes.
const promptLife = 5 * time.Minute

// collection is the evidence about a collection, sorted by source.
type collection struct {
	Evidence
	callback exchange.Observation // the strongest one at the attempt's own address
}

func judgeCollection(e Evidence) Verdict {
	c := collection{Evidence: e, callback: strongest(matching(e.Attempt, results(e.Reports)))}
	c.Receipts = slices.DeleteFunc(slices.Clone(e.Receipts), func(o exchange.Observation) bool {
		return o.State != exchange.SeenSucceeded || e.isTaken(o.Receipt) || e.isStrangers(o)
	})
	v := c.weigh()
	v.WantsStatement = c.wantsStatement(v.State)
	switch {
	case v.State != Pending:
	case c.neverStarted():
		v.State, v.Proof = Failed, neverStarted
	case e.Attempt.Status == exchange.AttemptFailed, e.Attempt.Status == exchange.AttemptRefused: // as it was recorded
		v.State, v.Proof = Failed, exchange.Observation{
			State: exchange.SeenFailed, Soft: e.Attempt.Soft, Code: e.Attempt.ResultCode, Class: e.Attempt.ResultClass,
		}
	}
	return v
}

// isTaken reports whether a receipt paid for another prompt of the order.
func (e Evidence) isTaken(receipt string) bool { return slices.Contains(e.Taken, receipt) }

// isStrangers reports whether a row is of another amount by another payer than the prompt's. It is no evidence about the prompt:
// otherwise anybody who learns the reference could end somebody's order with a shilling. Unless our operator names it, it is set
// aside as a payment that fits nothing.
func (e Evidence) isStrangers(o exchange.Observation) bool {
	payer := o.PhoneHash
	if payer == "" && o.Phone != "" {
		payer = o.Phone.Hash()
	}
	return payer != "" && payer != e.Attempt.Phone.Hash() && !o.Amount.Equal(e.Attempt.Amount) && o.Receipt != e.Attested
}

// weigh compares the sources.
func (c collection) weigh() Verdict {
	if proven := c.proven(); len(proven) > 0 {
		return Verdict{State: Paid, Proof: proven[0], Receipts: proven}
	}
	paidAnswer := c.callback.State == exchange.SeenSucceeded || len(c.Receipts) > 0
	switch {
	case paidAnswer && c.Query.State == exchange.SeenFailed:
		if c.callback.State != exchange.SeenSucceeded && (c.Rivals || c.Open) {
			return failed(c.Query) // the rows are the other prompt's
		}
		return Verdict{State: Disputed}
	case c.callback.State == exchange.SeenFailed && c.Query.State == exchange.SeenSucceeded:
		return Verdict{State: Receipt}
	case c.Query.State == exchange.SeenSucceeded:
		if c.callback.State == exchange.SeenSucceeded {
			return Verdict{State: Disputed} // paid, but not as asked: amount or payer differ
		}
		return Verdict{State: Receipt}
	case paidAnswer:
		return Verdict{State: Claimed}
	case c.Query.State == exchange.SeenFailed:
		return failed(c.Query)
	case c.refusalListed():
		return failed(c.callback)
	}
	return Verdict{State: Pending}
}

// refusalListed reports whether the statement stands behind a result that says not paid: the prompt can't be accepted any more,
// and the whole statement lacks it. The result alone ends nothing, because anybody who learns the address could post it.
func (c collection) refusalListed() bool {
	return c.callback.State == exchange.SeenFailed && c.StatementRead && c.overdue()
}

func failed(o exchange.Observation) Verdict {
	if o.Class == exchange.ClassDeclined {
		return Verdict{State: Declined, Proof: o}
	}
	return Verdict{State: Failed, Proof: o}
}

// proven lists the receipts that two different sources confirm, one of which was asked by us: the callback's first, then those
// over the prompt's amount, then the oldest first.
func (c collection) proven() []exchange.Observation {
	list := c.byOfficer()
	if o := c.callback; o.State == exchange.SeenSucceeded && o.Receipt != "" && o.Amount.Positive() && c.confirmed(o) {
		list = append(list, o)
	}
	rest := slices.Clone(c.Receipts)
	slices.SortStableFunc(rest, func(a, b exchange.Observation) int {
		return cmp.Or(cmp.Compare(c.deviation(a), c.deviation(b)), a.At.Compare(b.At), strings.Compare(a.Receipt, b.Receipt))
	})
	for _, r := range rest {
		known := slices.ContainsFunc(list, func(o exchange.Observation) bool { return o.Receipt == r.Receipt })
		if !known && r.Receipt != "" && r.Amount.Positive() && c.confirmed(r) {
			list = append(list, r)
		}
	}
	return list
}

// byOfficer returns the payment whose receipt our operator found, if another source names that receipt or a receipt is
// missing. Our operator looked for it where we would ask. For another amount than the prompt's the statement must list it: what
// is beyond the price goes back.
func (c collection) byOfficer() []exchange.Observation {
	if c.Attested == "" || c.isTaken(c.Attested) {
		return nil
	}
	for _, o := range append([]exchange.Observation{c.callback}, c.Receipts...) {
		if o.State == exchange.SeenSucceeded && o.Receipt == c.Attested && o.Amount.Positive() && (c.deviation(o) == 0 || c.listed(o)) {
			return []exchange.Observation{o}
		}
	}
	if c.Query.State == exchange.SeenSucceeded && c.callback.Receipt == "" && len(c.Receipts) == 0 {
		o := c.Query
		o.Receipt, o.Amount = c.Attested, c.Attempt.Amount
		return []exchange.Observation{o}
	}
	return nil
}

// deviation is 1 for a payment of another amount than the prompt's, else 0.
func (c collection) deviation(o exchange.Observation) int {
	if o.Amount.Equal(c.Attempt.Amount) {
		return 0
	}
	return 1
}

// listed reports whether the statement lists a payment with its amount.
func (c collection) listed(o exchange.Observation) bool {
	return slices.ContainsFunc(c.Receipts, func(r exchange.Observation) bool {
		return r.Source == exchange.SourceStatement && r.Receipt == o.Receipt && r.Amount.Equal(o.Amount)
	})
}

// confirmed reports whether another source confirms an observation of a payment, and one of the two was asked. The query names
// neither receipt nor amount, so it confirms only a payment of the prompt's amount: a callback with our payer, or a row from the
// time of the prompt. Of another amount the statement must list the receipt.
//
// Two rows prove a payment without the prompt's own channels, except one that belongs elsewhere (see elsewhere).
func (c collection) confirmed(o exchange.Observation) bool {
	if o.Source == exchange.SourceCallback || !c.elsewhere(o) {
		for _, r := range c.agreeing(o) {
			if weAsked(r.Source) || weAsked(o.Source) {
				return true
			}
		}
	}
	if c.Query.State != exchange.SeenSucceeded || c.deviation(o) != 0 {
		return false
	}
	if o.Source == exchange.SourceCallback {
		return o.Phone == "" || o.Phone == c.Attempt.Phone
	}
	return !o.At.Before(c.Attempt.CreatedAt.Add(-StatementLead))
}

// agreeing are the rows of other sources about the same payment.
func (c collection) agreeing(o exchange.Observation) []exchange.Observation {
	return slices.DeleteFunc(slices.Clone(c.Receipts), func(r exchange.Observation) bool {
		return r.Source == o.Source || r.Receipt != o.Receipt || !r.Amount.Equal(o.Amount)
	})
}

// elsewhere reports whether a row is not of this prompt's payment. While the prompt is open, it is that of another prompt, and so
// it is when the operator says that this one failed and another is open. A paid prompt moved its own amount, so a row over another
// amount is of a payment by hand, which would end the order as underpaid or overpaid; so it does while the prompt may still be paid.
func (c collection) elsewhere(row exchange.Observation) bool {
	switch {
	case c.Query.State == exchange.SeenPending, c.Query.State == exchange.SeenFailed && c.Open:
		return true
	case c.deviation(row) == 0, c.Query.State == exchange.SeenFailed, c.callback.State == exchange.SeenFailed && c.Query.State != exchange.SeenSucceeded:
		return false
	}
	return c.Query.State == exchange.SeenSucceeded || !c.overdue()
}

// wantsStatement reports whether the operator's statement could decide what the quick sources left open.
func (c collection) wantsStatement(s State) bool {
	switch s {
	case Receipt, Disputed:
		return true
	case Pending, Claimed:
		return c.Thorough || c.reported() || (c.overdue() && (c.unacknowledged() || c.callback.State == exchange.SeenFailed))
	default: // decided without it
		return false
	}
}

// reported reports whether two sources that came to us agree on a payment, which only lacks one that we ask.
func (c collection) reported() bool {
	return c.callback.State == exchange.SeenSucceeded && len(c.agreeing(c.callback)) > 0
}

// unacknowledged reports whether the operator never acknowledged the prompt.
func (c collection) unacknowledged() bool {
	return c.Attempt.CheckoutRequestID == "" &&
		(c.Attempt.Status == exchange.AttemptCreated || c.Attempt.Status == exchange.AttemptUnknown)
}

// overdue reports whether the prompt can't be accepted any more.
func (c collection) overdue() bool { return c.Now.Sub(c.Attempt.CreatedAt) > promptLife }

// neverStarted is the failure of a prompt that the operator never acknowledged: it is too old to be accepted, and the whole
// statement does not list it. It is soft, so late money is still watched for.
var neverStarted = exchange.Observation{
	State: exchange.SeenFailed, Soft: true, Code: "not_found", Class: exchange.ClassUnanswered, Text: "not in the operator's statement",
	Source: exchange.SourceStatement,
}

// neverStarted reports whether the prompt can't have reached the payer, or can't have been paid.
func (c collection) neverStarted() bool {
	return c.unacknowledged() && c.StatementRead && len(c.Receipts) == 0 && c.callback.State == "" && c.overdue()
}

// matching drops callbacks about another prompt.
func matching(a exchange.PaymentAttempt, said []exchange.Observation) []exchange.Observation {
	return slices.DeleteFunc(said, func(o exchange.Observation) bool {
		foreign := o.Refs.CheckoutRequestID != "" && o.Refs.CheckoutRequestID != a.CheckoutRequestID
		return foreign || (o.Refs.MerchantRequestID != "" && a.MerchantRequestID != "" && o.Refs.MerchantRequestID != a.MerchantRequestID)
	})
}
