package momo

import (
	"slices"

	"kivuko/exchange"
)

// payout is the evidence about a payout, sorted by source.
type payout struct {
	attempt exchange.PaymentAttempt
	result  exchange.Observation   // the strongest result
	yes, no []exchange.Observation // answers that say paid and not paid
	tickets map[string]bool        // of those answers
	unheard bool
	rumour  bool // a report from outside the operator's addresses says paid: no evidence, but a reason to ask

	claim   exchange.Observation // the newest result that says paid
	denials map[string]bool      // tickets of answers that say not paid, since the last report that says paid
}

// sortPayout sorts the reports about a payout. It drops those about another payout, and answers to queries that we did not
// send: results and answers come to one address, so anyone who learns it could post both.
func sortPayout(e Evidence) payout {
	p := payout{attempt: e.Attempt, tickets: map[string]bool{}, denials: map[string]bool{}, unheard: true}
	own := slices.DeleteFunc(slices.Clone(e.Reports), func(r Report) bool {
		id := r.Refs.OriginatorConversationID
		return (id != "" && id != e.Attempt.ID.String()) || (r.Kind == exchange.CallbackStatus && !r.Asked)
	})
	p.result = strongest(results(slices.DeleteFunc(slices.Clone(own), p.offRange)))
	for _, r := range own {
		if !p.offRange(r) {
			p.take(r)
		} else if r.State == exchange.SeenSucceeded {
			p.rumour, p.unheard = true, false
			clear(p.denials) // the operator is asked again
		}
	}
	return p
}

// offRange reports whether a report came from outside the operator's addresses. What is booked already is taken from anywhere.
func (p payout) offRange(r Report) bool {
	return r.OffRange && (p.attempt.Status != exchange.AttemptSucceeded || r.Receipt != p.attempt.Receipt)
}

// take adds a report.
func (p *payout) take(r Report) {
	switch r.Kind {
	case exchange.CallbackResult:
		p.unheard = p.unheard && r.State == ""
		if r.State == exchange.SeenSucceeded {
			p.claim = r.Observation
			clear(p.denials)
		}
	case exchange.CallbackStatus:
		p.unheard = p.unheard && r.State == exchange.SeenNoAnswer
		p.answer(r.Observation)
	case exchange.CallbackTimeout: // proves nothing
		p.unheard = false
	case exchange.CallbackConfirmation, exchange.CallbackValidation, exchange.CallbackReversal, exchange.CallbackBalance: // not about payouts
	}
}

// answer adds the answer to a status query.
func (p *payout) answer(o exchange.Observation) {
	switch o.State {
	case exchange.SeenSucceeded:
		p.yes = append(p.yes, o)
		p.tickets[o.Ticket] = true
		clear(p.denials)
	case exchange.SeenFailed:
		p.no = append(p.no, o)
		p.tickets[o.Ticket], p.denials[o.Ticket] = true, true
	case exchange.SeenPending, exchange.SeenUnknown, exchange.SeenNoAnswer: // no evidence
	}
}

// judgePayout judges an open payout: paid, refused, disputed or pending. A refusal by one source is never enough, because
// other money may be sent on its account.
func judgePayout(e Evidence) Verdict {
	p := sortPayout(e)
	v := p.weigh()
	v.Result, v.Unheard = p.result, p.unheard
	v.Claimed = p.result.State == exchange.SeenSucceeded || len(p.yes) > 0 || p.rumour
	v.Denied = v.State == Disputed && v.Claimed && p.denied()
	return v
}

func (p payout) weigh() Verdict {
	paid, failed := p.result.State == exchange.SeenSucceeded, p.result.State == exchange.SeenFailed
	switch {
	case len(p.yes) > 0 && (len(p.no) > 0 || failed), paid && len(p.no) > 0:
		return Verdict{State: Disputed, Proof: p.result}
	case paid && len(p.yes) > 0:
		return p.both(p.result, p.yes[0])
	case len(p.yes) > 1 && len(p.tickets) > 1:
		return p.both(p.yes[0], p.yes[1])
	case failed && len(p.no) > 0:
		return Verdict{State: Refused, Proof: p.result}
	case len(p.no) > 1 && len(p.tickets) > 1:
		return Verdict{State: Refused, Proof: p.no[0]}
	}
	return Verdict{State: Pending}
}

// denied reports whether the operator has denied a claim twice since it was made.
func (p payout) denied() bool { return len(p.denials) > 1 }

// both merges two sources that say paid. A success without a receipt can't be booked yet.
func (p payout) both(o, second exchange.Observation) Verdict {
	if !p.agree(o, second) {
		return Verdict{State: Disputed, Proof: o}
	}
	if o.Receipt == "" {
		o.Receipt = second.Receipt
	}
	if o.Receipt == "" {
		return Verdict{State: Pending}
	}
	if o.Charge.Asset() == "" {
		o.Charge = second.Charge // answers have the charge, results don't
	}
	return Verdict{State: Paid, Proof: o}
}

// agree reports whether two sources describe the same payment of our amount to our payee. A missing value is no
// contradiction.
func (p payout) agree(a, b exchange.Observation) bool {
	sameReceipt := a.Receipt == "" || b.Receipt == "" || a.Receipt == b.Receipt
	ours := func(o exchange.Observation) bool {
		return (!o.Amount.Positive() || o.Amount.Equal(p.attempt.Amount)) && (o.Phone == "" || o.Phone == p.attempt.Phone)
	}
	return sameReceipt && ours(a) && ours(b)
}

// judgeLatePayout judges a payout that has ended: paid, denied, without a claim, or pending. A success counts when two sources confirm
// it, whatever else was reported; a denial only if it is newer than the claim. One that is pending without being claimed was
// only reported from outside the operator's addresses: the operator is asked.
func judgeLatePayout(e Evidence) Verdict {
	p := sortPayout(e)
	v := Verdict{State: Pending, Claimed: p.claim.State != "" || len(p.yes) > 0}
	o, proven := p.provenLate()
	switch {
	case proven:
		v.State, v.Proof = Paid, o
	case !v.Claimed && !p.rumour:
		v.State = NoClaim
	case p.denied():
		v.State = Denied
	}
	return v
}

// provenLate returns a payment that is booked already, or that the newest result and an answer prove, or two answers.
func (p payout) provenLate() (exchange.Observation, bool) {
	if p.claim.State != "" && p.attempt.Status == exchange.AttemptSucceeded && p.claim.Receipt == p.attempt.Receipt {
		return p.claim, true
	}
	answers := newestOf(p.yes)
	if p.claim.Receipt != "" && slices.ContainsFunc(answers, func(o exchange.Observation) bool { return p.agree(p.claim, o) }) {
		return p.claim, true
	}
	for i, o := range answers {
		for _, other := range answers[i+1:] {
			switch {
			case !p.agree(o, other):
			case o.Receipt != "":
				return o, true
			case other.Receipt != "":
				return other, true
			}
		}
	}
	return exchange.Observation{}, false
}

// newestOf keeps the newest answer to each query.
func newestOf(answers []exchange.Observation) []exchange.Observation {
	var list []exchange.Observation
	for _, o := range answers {
		if i := slices.IndexFunc(list, func(known exchange.Observation) bool { return known.Ticket == o.Ticket }); i >= 0 {
			list[i] = o
		} else {
			list = append(list, o)
		}
	}
	return list
}
