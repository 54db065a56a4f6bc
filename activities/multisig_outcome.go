package activities

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
)

// ProposalStore records what became of what the owners of an account signed. Every method is one transaction and may be called again.
type ProposalStore interface {
	ProposalByID(ctx context.Context, id uuid.UUID) (exchange.Proposal, error)
	// Payloads are all payloads of a proposal, whatever became of them.
	Payloads(ctx context.Context, proposalID uuid.UUID) ([]exchange.MultisigPayload, error)
	MultisigAccountByID(ctx context.Context, id uuid.UUID) (exchange.MultisigAccount, error)
	// AdoptExecution makes a transaction on the final chain that carried out a payload its payment's live one; it completes by RecordFinal.
	// The payment has no other: ours, if there was one, has ended.
	AdoptExecution(ctx context.Context, payloadID uuid.UUID, txID string, block uint64, blockID, evidence string) (exchange.ChainPayment, error)
	// AdoptFailure makes a transaction on the final chain that used a payload up and moved nothing its payment's live one, where the account
	// itself paid for it: RecordFinal books the fee and ends the transaction, and FailProposal the proposal. It changes no payment that has it.
	AdoptFailure(ctx context.Context, payloadID uuid.UUID, txID string, block uint64, blockID, evidence string) (exchange.ChainPayment, error)
	// SupersedeProposal ends a proposal whose number another transaction took, final.
	SupersedeProposal(ctx context.Context, id uuid.UUID, txID, evidence string) (exchange.Proposal, error)
	// FailProposal ends a proposal whose transaction is final, moved nothing, and can never be executed again.
	FailProposal(ctx context.Context, id uuid.UUID, txID, evidence string) (exchange.Proposal, error)
	// VoidPayload ends a payload that is proven impossible.
	VoidPayload(ctx context.Context, payloadID uuid.UUID, evidence string) (exchange.Proposal, error)
}

// outcomeReader is the part of a driver that says what became of a joint transaction.
type outcomeReader interface {
	Outcome(ctx context.Context, j chain.Joint, executions ...string) (chain.JointOutcome, error)
}

// judged is what became of the payloads of a proposal. State is empty when none is open.
type judged struct {
	chain.JointOutcome
	payload uuid.UUID                  // of which that is the outcome
	open    []exchange.MultisigPayload // all that are open
}

// nonce is an open payload that lives by a nonce account; zero for none.
func (o judged) nonce() uuid.UUID {
	for _, p := range o.open {
		if p.NonceAccount != "" {
			return p.ID
		}
	}
	return uuid.Nil
}

// proposals judges the payloads of proposals on one network. Anyone may send what the owners signed, so that the chain is asked about the
// payloads themselves, and not only about our transactions.
type proposals struct {
	store  ProposalStore
	client outcomeReader
}

// look asks the chain what became of the open payloads of a proposal. ids are those of our transactions that are alive. With a failure it
// returns what is open; what one payload did is known also while the chain doesn't answer about another.
func (j proposals) look(ctx context.Context, proposalID uuid.UUID, ids []string) (judged, error) {
	var out judged
	all, err := j.store.Payloads(ctx, proposalID)
	if err != nil {
		return out, err
	}
	var failure error
	for _, p := range all {
		if !p.Open() {
			continue
		}
		out.open = append(out.open, p)
		joint, err := chain.DecodeJoint(p.Joint)
		if err != nil {
			return out, err
		}
		o, err := j.client.Outcome(ctx, joint, ids...)
		switch {
		case err != nil:
			failure = err
		case out.State == "" || decides(o.State) > decides(out.State):
			out.JointOutcome, out.payload = o, p.ID
		}
	}
	if decides(out.State) == decides(chain.JointExecuted) {
		failure = nil
	}
	if failure == nil && out.State == chain.JointExecuted {
		out.State, failure = j.settled(ctx, proposalID, out)
	}
	return out, failure
}

// settled is the state of what was carried out: of other owners, it counts as not final until the final chain shows exactly them, or others that came
// after them. So the owners who are agreed are never others than the chain has, unless another tool changed them again before they were read: then the
// account differs from the next reading on.
func (j proposals) settled(ctx context.Context, id uuid.UUID, o judged) (chain.JointState, error) {
	p, err := j.store.ProposalByID(ctx, id)
	if err != nil || p.Kind != exchange.ProposeOwners {
		return o.State, err
	}
	account, err := j.store.MultisigAccountByID(ctx, p.WalletID)
	if err != nil {
		return o.State, err
	}
	change, err := exchange.OwnersChangeOf(p.After)
	if err != nil {
		return o.State, err
	}
	reader, ok := j.client.(interface {
		Quorum(ctx context.Context, address string) (chain.Quorum, error)
	})
	if !ok {
		return o.State, exchange.Errorf(exchange.CodeUnsupported, "The owners of accounts on %s can't be read.", p.Network)
	}
	q, err := reader.Quorum(ctx, account.Address)
	if chain.ReasonOf(err) == chain.ReasonForeign { // by now it has what officers can't agree to, so it differs
		return o.State, nil
	}
	if err != nil {
		return o.State, err
	}
	if q.Moving || q.Head.Final.Number < o.Location.Block.Number || !change.Fits(account, q.Read(account)) && !o.outlived(q) {
		return chain.JointIncluded, nil
	}
	return o.State, nil
}

// laterBlocks is how many final blocks after an executed change its owners on TRON must show: other ones by then came by a later change.
const laterBlocks = 20

// outlived reports whether the account has gone on since what was executed: a Safe has used a later number up, and TRON has many more final blocks.
func (o judged) outlived(q chain.Quorum) bool {
	i := slices.IndexFunc(o.open, func(y exchange.MultisigPayload) bool { return y.ID == o.payload })
	if i >= 0 && o.open[i].Network == exchange.Ethereum {
		return q.Sequence > o.open[i].Sequence+1
	}
	return i >= 0 && q.Head.Final.Number >= o.Location.Block.Number+laterBlocks
}

// decides orders what became of several payloads of a proposal, of which the network executes at most one: what happened to one of them
// goes before what can still happen, and that before what can't.
func decides(s chain.JointState) int {
	switch s {
	case chain.JointExecuted, chain.JointFailed:
		return 4
	case chain.JointIncluded:
		return 3
	case chain.JointOpen:
		return 2
	case chain.JointSuperseded, chain.JointExpired:
		return 1
	}
	return 0
}

// evidence is why a state is proven, for the row that it ends.
func (o judged) evidence() string {
	switch o.State {
	case chain.JointExpired:
		return "expired: absent from every node after final block " + o.Location.Head.Final.ID
	case chain.JointOpen, chain.JointIncluded, chain.JointExecuted, chain.JointFailed, chain.JointSuperseded:
	}
	return fmt.Sprintf("%s by %s in final block %d (%s)", o.State, o.TxID, o.Location.Block.Number, o.Location.Block.ID)
}

// conclude records what became of the payloads of a proposal whose payment has no transaction of ours that is alive. Only what the final
// chain says is recorded.
func (j proposals) conclude(ctx context.Context, p exchange.ChainPayment, o judged) (exchange.ChainPayment, error) {
	var err error
	switch o.State {
	case chain.JointExecuted:
		return j.store.AdoptExecution(ctx, o.payload, o.TxID, o.Location.Block.Number, o.Location.Block.ID, o.evidence())
	case chain.JointFailed:
		if p.FeePayer == "" { // whoever sent it, the account paid the fee, which is in the books before the proposal ends
			p, err = j.store.AdoptFailure(ctx, o.payload, o.TxID, o.Location.Block.Number, o.Location.Block.ID, o.evidence())
			if err != nil || p.Status == exchange.ChainIncluded {
				break
			}
		}
		_, err = j.store.FailProposal(ctx, p.ObjectID, o.TxID, o.evidence())
	case chain.JointSuperseded:
		var proposal exchange.Proposal
		if proposal, err = j.store.ProposalByID(ctx, p.ObjectID); err == nil && proposal.Ending == "" {
			_, err = j.store.SupersedeProposal(ctx, p.ObjectID, o.TxID, o.evidence())
			break
		}
		err = j.void(ctx, o, err) // it was to end: what used the number up is the proof
	case chain.JointExpired:
		err = j.void(ctx, o, nil)
	case chain.JointOpen, chain.JointIncluded: // nothing is final
	}
	return p, err
}

func (j proposals) void(ctx context.Context, o judged, err error) error {
	for _, p := range o.open {
		if err == nil {
			_, err = j.store.VoidPayload(ctx, p.ID, o.evidence())
		}
	}
	return err
}
