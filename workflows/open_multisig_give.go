package workflows

import (
	"errors"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// How an account on TRON gets its owners, after a payment has brought it what that costs: the key with which it begins signs one transaction. Its row
// decides what is done, so that a flow that is started again sends the same bytes.

var errHandoversExpire = errors.New("every transaction that gives the account to its owners expired before a block had it")

// give has the account given to its owners, and reports whether it was. If not, its row shows what to do next.
func (f *openMultisig) give(ctx workflow.Context, a activities.MultisigState) bool {
	for range maxSignatures {
		signed, err := f.signHandover(ctx, a)
		if err == nil && signed.Lacks {
			err = f.fund(ctx, a)
			if err == nil {
				return false
			}
		}
		if err != nil {
			return f.ungiven(ctx, err)
		}
		given, err := step(ctx, delivery(a.Network), "Give the account to its owners", multisigs.DeliverHandover, f.input())
		if err != nil {
			return f.ungiven(ctx, err)
		}
		if given.Executed {
			return true
		}
	}
	return f.ungiven(ctx, errHandoversExpire)
}

// ungiven has an operator decide. When that was to give up what can't be given up, it says so.
func (f *openMultisig) ungiven(ctx workflow.Context, cause error) bool {
	if f.kept != nil {
		cause = refuse(exchange.CodeStateConflict, words(f.kept)+" "+words(cause))
		f.kept = nil
	}
	f.decided(ctx, uuid.Nil, f.parked(ctx, ReasonMultisigUngiven, cause))
	return false
}

// signHandover returns the transaction that gives the account to its owners, or that the account lacks coins for it. It waits while a freeze
// withholds the signature.
func (f *openMultisig) signHandover(ctx workflow.Context, a activities.MultisigState) (activities.SignedHandover, error) {
	began := workflow.Now(ctx)
	for {
		signed, err := step(ctx, signer(a.Network), "Sign what gives the account to its owners", multisigGiven.SignHandover, f.input())
		if err != nil || signed.Waits == "" {
			return signed, err
		}
		f.rest(ctx, slower(ctx, watchPause, began), "Check whether anything may be signed")
	}
}

// fund approves a further payment for what the account lacks on the final chain, after the network's fees rose. Where that has enough, the signer's
// node is behind.
func (f *openMultisig) fund(ctx workflow.Context, a activities.MultisigState) error {
	lack, err := step(ctx, topUp(a.Network), "Read what the account lacks", multisigs.ReadLack, f.input())
	if err != nil {
		return err
	}
	if !lack.Missing.Positive() {
		f.rest(ctx, watchPause, "Wait until every node shows what the account has")
		return nil
	}
	in := activities.FundMultisigInput{AccountID: f.account, Missing: lack.Missing}
	_, err = step(ctx, database, "Approve a further payment to the account", multisigRows.FundMultisig, in)
	return err
}

// rest waits, at most until a signal comes to look again.
func (f *openMultisig) rest(ctx workflow.Context, d time.Duration, summary string) {
	f.resumed = false
	await(ctx, d, summary, func() bool { return f.resumed })
}
