package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// OpenMultisigInput starts the flow, whose id names the account.
type OpenMultisigInput struct{}

// OpenMultisigResult is how the account ended, or that it is a wallet now.
type OpenMultisigResult struct {
	Status exchange.MultisigStatus `json:"status"`
	Detail string                  `json:"detail,omitempty"`
}

// OpenMultisig makes an account of several owners a wallet of the treasury, as two officers agreed: it opens one, or adopts one that
// exists. Its row decides what is done: a flow that is started again goes on where the one before stopped.
func OpenMultisig(ctx workflow.Context, _ OpenMultisigInput) (OpenMultisigResult, error) {
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	id, err := multisigForm.object(ctx)
	if err != nil {
		return OpenMultisigResult{}, err
	}
	f := &openMultisig{account: id}
	if err := f.reach(ctx, OpenMultisigID(id), "account of several owners "+id.String(), of(activities.ObjectMultisig, id)); err != nil {
		return OpenMultisigResult{}, err
	}
	return attended(ctx, f.commands, func(ctx workflow.Context) (OpenMultisigResult, error) {
		out := f.run(ctx)
		return out, lastHandlers(ctx)
	})
}

type openMultisig struct {
	flow
	account uuid.UUID
	kept    error // why an operator's decision to give it up was not carried out
}

func (f *openMultisig) run(ctx workflow.Context) OpenMultisigResult {
	for {
		a := quickly(ctx, &f.flow, "Read the account", multisigRows.ReadMultisig, f.input())
		switch {
		case a.Status == exchange.MultisigPreparing && a.Adopted:
			f.verify(ctx, a, false)
		case a.Status == exchange.MultisigPreparing:
			f.approve(ctx, a)
		case a.Status == exchange.MultisigOpening:
			f.pay(ctx, a)
		default:
			return OpenMultisigResult{Status: a.Status, Detail: a.Detail}
		}
	}
}

func (f *openMultisig) input() activities.MultisigInput {
	return activities.MultisigInput{AccountID: f.account}
}

// approve has the account's opening prepared. What can't be prepared, perhaps never, an operator tries again or gives up.
func (f *openMultisig) approve(ctx workflow.Context, a activities.MultisigState) {
	if err := f.prepare(ctx, a); err != nil {
		f.decided(ctx, uuid.Nil, f.parked(ctx, ReasonMultisigUnopened, err))
	}
}

// prepare makes the keys of owners whose keys we hold, and then approves the payment that opens the account: its address follows from the
// owners.
func (f *openMultisig) prepare(ctx workflow.Context, a activities.MultisigState) error {
	if err := do(ctx, signer(a.Network), "Make the owners' keys", multisigKeys.MakeOwnerKeys, f.input()); err != nil {
		return err
	}
	place, err := step(ctx, topUp(a.Network), "Compute the account's address", multisigs.PlaceMultisig, f.input())
	if err != nil {
		return err
	}
	in := activities.OpenMultisigInput{AccountID: f.account, Place: place}
	_, err = step(ctx, database, "Approve the payment that opens the account", multisigRows.ApproveOpening, in)
	return err
}

// pay has the payment carried out that opens the account, the account given to its owners where it begins with a key of ours, and the account read then.
// Where anyone can open it, another one may have,
// for the same owners: then our payment fails and the account is there all the same.
func (f *openMultisig) pay(ctx workflow.Context, a activities.MultisigState) {
	f.commands.unpark(ctx, WaitsForChain)
	in := CryptoPayoutInput{PaymentID: a.PaymentID, MultisigID: f.account, Network: a.Network}
	c := child{
		summary: "Open the account", priority: fairness(priorityOrder, uuid.Nil), shown: OpenMultisigAttributes(a.Network), resumed: &f.resumed,
	}
	result, err := carry(ctx, in, c, patiently)
	if err == nil && result.Completed {
		if a.Network != exchange.Tron || f.give(ctx, a) {
			f.verify(ctx, a, true)
		}
		return
	}
	if f.isThere(ctx, a) {
		return
	}
	reason := Reason(result.Reason)
	if err != nil {
		reason = ReasonStepFailed
	}
	f.decided(ctx, a.PaymentID, f.parked(ctx, reason, err))
}

// verify has the owners read on the chain, and waits for an operator where that does not end the account's opening. paid is set when the
// payment that opens it is final.
func (f *openMultisig) verify(ctx workflow.Context, a activities.MultisigState, paid bool) {
	f.commands.unpark(ctx, WaitsForChain)
	in := activities.VerifyMultisigInput{AccountID: f.account, Paid: paid}
	_, err := step(ctx, watch(a.Network), "Read the owners from the chain", multisigs.VerifyMultisig, in)
	if err == nil {
		return
	}
	f.decided(ctx, uuid.Nil, f.parked(ctx, ReasonMultisigUnverified, err))
}

// isThere reports whether the account is on the chain although our payment did not open it.
func (f *openMultisig) isThere(ctx workflow.Context, a activities.MultisigState) bool {
	in := activities.VerifyMultisigInput{AccountID: f.account}
	_, err := step(ctx, delivery(a.Network), "Look whether the account is there", multisigs.VerifyMultisig, in)
	if err != nil {
		workflow.GetLogger(ctx).Info("the account is not there", "error", err)
	}
	return err == nil
}

// decided carries out an operator's decision. One that can't be carried out changes nothing, and the row shows what to do next.
func (f *openMultisig) decided(ctx workflow.Context, payment uuid.UUID, d decision) {
	f.commands.unpark(ctx, WaitsForNothing)
	if d.verb != activities.VerbRefund {
		if payment != uuid.Nil {
			_ = approveAgain(ctx, &payment, d.proof) // the next try finds the payment as it is
		}
		return
	}
	in := activities.GiveUpMultisigInput{AccountID: f.account, Proof: d.proof}
	err := f.commands.carryOut(ctx, func(k kind) error { return do(ctx, k, "Give the account up", multisigRows.GiveUpMultisig, in) })
	if err != nil {
		workflow.GetLogger(ctx).Error("the account could not be given up", "error", err)
	}
	f.kept = err
}

// OpenMultisigSummary is the summary of the flow in the Web UI.
const OpenMultisigSummary = "Open a wallet of several owners"

// OpenMultisigAttributes are the search attributes with which the flow starts.
func OpenMultisigAttributes(n exchange.Network) temporal.SearchAttributes {
	return attributes(StageOpening, WaitsForChain, AttrNetwork.ValueSet(string(n)))
}
