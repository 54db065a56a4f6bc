package activities

import (
	"context"

	"kivuko/chain"
	"kivuko/exchange"
)

// DeliverySuperseded is the end of a payment that owners signed, when another transaction of their account took its number.
const DeliverySuperseded = "superseded"

// deliverProposal advances a payment that the owners of an account signed. What counts is what became of the payload, whoever sent it:
// our transaction may fail because another one carried the payload out, or be undone while another one takes its place. Ours is followed
// to its own end all the same, because it uses a number of the wallet that pays for it.
func (c *Chain) deliverProposal(ctx context.Context, p exchange.ChainPayment, live []exchange.ChainAttempt, in DeliverInput) (Delivery, error) {
	reader, ok := c.Client.(outcomeReader)
	if !ok || c.Proposals == nil {
		return Delivery{}, exchange.Errorf(exchange.CodeUnsupported, "Payments that several owners sign are not delivered on %s.", p.Network)
	}
	judge := proposals{c.Proposals, reader}
	if len(live) > 0 && live[0].Status == exchange.TxSigned {
		if err := c.offerUnlessFrozen(ctx, live[0]); err != nil {
			return Delivery{}, err
		}
	}
	ids := make([]string, len(live))
	for i, a := range live {
		ids[i] = a.TxID
	}
	o, err := judge.look(ctx, p.ObjectID, ids)
	if err != nil {
		return Delivery{}, err
	}
	for _, a := range live {
		if d, ours, err := c.byUs(ctx, judge, p, a, o, in); ours || err != nil {
			return d, err
		}
	}
	if len(live) > 0 {
		var d Delivery
		if p, d, err = c.follow(ctx, p, live, in); err != nil || d.End != "" {
			return d, err
		}
	}
	return c.withoutUs(ctx, judge, p, o)
}

// byUs records that a transaction of ours carried the payload out, or did not do what it says; false when it is not the one.
func (c *Chain) byUs(ctx context.Context, judge proposals, p exchange.ChainPayment, a exchange.ChainAttempt, o judged, in DeliverInput) (d Delivery, ours bool, err error) {
	if a.TxID != o.TxID {
		return d, false, nil
	}
	switch l := o.Location; o.State {
	case chain.JointExecuted:
		_, err = c.Store.RecordFinal(ctx, a.ID, true, l.Block.Number, l.Block.ID, l.Fee, l.Code)
		return Delivery{End: DeliveryCompleted, TxID: a.TxID, Code: l.Code}, true, err
	case chain.JointFailed:
		if _, err = c.Store.RecordFinal(ctx, a.ID, false, l.Block.Number, l.Block.ID, l.Fee, l.Code); err == nil {
			_, err = judge.conclude(ctx, p, o)
		}
		return Delivery{End: DeliveryFailed, TxID: a.TxID, Code: l.Code}, true, err
	case chain.JointIncluded:
		d, err = c.included(ctx, a, chain.Facts{Location: l}, in)
		return d, true, err
	case chain.JointOpen, chain.JointSuperseded, chain.JointExpired: // these name no transaction of ours
	}
	return d, false, nil
}

// follow advances transactions of ours that have not carried the payload out. It returns NotYet until they have ended, and then the
// payment: as far as they are concerned it may be signed again. A delivery with an end asks for a higher fee.
func (c *Chain) follow(ctx context.Context, p exchange.ChainPayment, live []exchange.ChainAttempt, in DeliverInput) (exchange.ChainPayment, Delivery, error) {
	sender := p.FeePayer
	if sender == "" {
		sender = p.FromAddress
	}
	var first chain.Facts // about the leader
	dead := 0
	for i, a := range live {
		facts, err := chain.Inquire(ctx, c.Client, a, chain.Transfer{From: sender})
		if err != nil {
			return p, Delivery{}, err
		}
		if i == 0 {
			first = facts
		}
		switch l := facts.Location; {
		case l.Stage == chain.StageFinal && l.OK: // it may be the one, and the node that was asked about the payload is behind
			return p, Delivery{}, NotYet("The transaction is final, and what became of the payload is not known yet.", c.Poll)
		case l.Stage == chain.StageFinal: // undone by the network: it moved nothing
			p, err = c.Store.RecordOutOfGas(ctx, a.ID, l.Block.Number, l.Block.ID, l.Fee, l.Code, maxOutOfGas)
			return p, Delivery{}, err
		case l.Stage == chain.StageIncluded:
			d, err := c.included(ctx, a, facts, in)
			return p, d, err
		case chain.Judge(facts) == chain.VerdictRebuild:
			dead++
		}
	}
	if dead < len(live) {
		d, err := c.outside(ctx, live[0], first, in)
		return p, d, err
	}
	p, err := c.Store.RecordExpired(ctx, live[0].ID, "absent from every node after final block "+first.Location.Head.Final.ID)
	return p, Delivery{}, err
}

// withoutUs ends the delivery of a payment that has no transaction of ours any more, by what became of its payload.
func (c *Chain) withoutUs(ctx context.Context, judge proposals, p exchange.ChainPayment, o judged) (Delivery, error) {
	if o.State == chain.JointIncluded {
		return Delivery{}, NotYet("Another transaction carried it out, in a block that is not final yet.", c.untilFinal(o.Location))
	}
	p, err := judge.conclude(ctx, p, o)
	if err != nil {
		return Delivery{}, err
	}
	switch o.State {
	case chain.JointExecuted: // what was found is the payment's transaction now, and completes it
		return Delivery{}, NotYet("The transaction that carried it out is the payment's.", c.Poll)
	case chain.JointSuperseded:
		return Delivery{End: DeliverySuperseded, TxID: o.TxID}, nil
	case chain.JointFailed:
		if p.Status == exchange.ChainIncluded {
			return Delivery{}, NotYet("The transaction that failed is the payment's.", c.Poll)
		}
		return Delivery{End: DeliveryFailed, TxID: o.TxID, Code: o.Location.Code}, nil
	case chain.JointExpired:
		return Delivery{End: DeliveryExpired}, nil
	case chain.JointOpen, chain.JointIncluded: // our transaction is over, and what the owners signed is not
	}
	return c.before(ctx, judge, p)
}

// before is a delivery that an earlier step ended, but whose response was lost.
func (c *Chain) before(ctx context.Context, judge proposals, p exchange.ChainPayment) (Delivery, error) {
	proposal, err := judge.store.ProposalByID(ctx, p.ObjectID)
	if err != nil {
		return Delivery{}, err
	}
	end := proposal.Status
	if proposal.Ending != "" {
		end = proposal.Ending
	}
	switch end {
	case exchange.ProposalSuperseded:
		return Delivery{End: DeliverySuperseded, TxID: proposal.TxHash}, nil
	case exchange.ProposalFailed:
		return Delivery{End: DeliveryFailed, TxID: proposal.TxHash, Code: proposal.StatusDetail}, nil
	default:
		return ended(p)
	}
}
