package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// How long the creation of a pool wallet may take. A network whose signer is down must delay neither a customer who waits
// for an answer nor the pools of the other networks.
const (
	provisionBudget = 8 * time.Second
	replenishBudget = 5 * time.Minute
)

// staleAfter is how long after its order an address may stay leased before this flow releases it.
const staleAfter = time.Hour

// EscrowReplenished is the result of a run.
type EscrowReplenished struct {
	Made     int                `json:"made,omitempty"`
	Failed   []exchange.Network `json:"failed,omitempty"` // networks on which a wallet could not be created now
	Short    []exchange.Network `json:"short,omitempty"`  // networks whose pool has its maximum size and is too small
	Released int                `json:"released,omitempty"`
	Stuck    int                `json:"stuck,omitempty"`
	Moved    int                `json:"moved,omitempty"` // deposits that we keep and whose way to the treasury was started
}

// ReplenishEscrow takes rested addresses back into use, creates missing wallets, and releases addresses that their flows
// did not release. A schedule starts it. The wallets to create are in rows, so the next run creates what this one can't.
func ReplenishEscrow(ctx workflow.Context) (EscrowReplenished, error) {
	var out EscrowReplenished
	demand, err := fetch(ctx, database, "Read the demand of the escrow pools", escrow.EscrowDemand)
	if err != nil {
		return out, passOn(err)
	}
	wg := workflow.NewWaitGroup(ctx)
	for _, d := range demand {
		if d.Short > 0 {
			out.Short = append(out.Short, d.Network)
		}
		wg.Add(1)
		workflow.GoNamed(ctx, "replenish "+string(d.Network), func(ctx workflow.Context) {
			defer wg.Done()
			for _, id := range d.Make {
				if err := makeEscrow(ctx, d.Network, id, replenishBudget); err != nil {
					workflow.GetLogger(ctx).Warn("an escrow wallet could not be created", "network", d.Network, "error", err)
					out.Failed = append(out.Failed, d.Network)
					return
				}
				out.Made++
			}
		})
	}
	wg.Wait(ctx)
	in := activities.StaleInput{Before: workflow.Now(ctx).Add(-staleAfter)}
	stale, err := step(ctx, database, "Release stale escrow addresses", escrow.ReleaseStale, in)
	if err != nil {
		return out, passOn(err)
	}
	out.Released, out.Stuck = stale.Released, stale.Stuck
	for _, k := range stale.Kept {
		if bringKept(ctx, k) {
			out.Moved++
		}
	}
	return out, nil
}

// bringKept starts the flow that moves crypto which we keep to the treasury. The API starts it with the decision; this is
// for the case that the API crashed after the decision.
func bringKept(ctx workflow.Context, k exchange.KeptDeposit) bool {
	c := child{id: ReturnDepositID(k.ExceptionID), summary: ReturnDepositSummary, shown: ReturnDepositAttributes(k.Network, true)}
	started, err := start(ctx, c, ReturnDeposit, ReturnDepositInput{})
	if err != nil {
		workflow.GetLogger(ctx).Warn("the flow that moves kept crypto to the treasury could not be started", "exception", k.ExceptionID, "error", err)
	}
	return started
}

// provisionEscrow adds addresses to an exhausted pool for the order that an intent asks for, and reports whether to try again. If the pool may not
// be extended, or its signer does not answer in time, the order stays refused; the customer may try later.
func provisionEscrow(ctx workflow.Context, intent uuid.UUID) bool {
	in := activities.IntentInput{IntentID: intent}
	room, err := step(ctx, database, "Extend the escrow pool", escrow.EscrowRoom, in)
	if err != nil {
		return false
	}
	for _, id := range room.Make {
		if err := makeEscrow(ctx, room.Network, id, provisionBudget); err != nil {
			return false
		}
	}
	return room.MayProvision
}

// makeEscrow creates the wallet that a row asks for. It is idempotent by the row's id, which is the wallet's.
func makeEscrow(ctx workflow.Context, n exchange.Network, request uuid.UUID, budget time.Duration) error {
	in := activities.EscrowWalletInput{RequestID: request}
	_, err := step(ctx, signer(n).within(budget), "Create an escrow wallet", wallets.MakeEscrowWallet, in)
	return err
}
