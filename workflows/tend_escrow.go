package workflows

import (
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// How long a wallet of the pool may take to be made. A network whose signer is away must keep neither a customer who
// waits for an answer nor the pools of the other networks.
const (
	growBudget = 8 * time.Second
	tendBudget = 5 * time.Minute
)

// staleAfter is how long after its order an address may be borrowed before somebody looks after it.
const staleAfter = time.Hour

// EscrowTended is what a round did.
type EscrowTended struct {
	Made     int                `json:"made,omitempty"`
	Failed   []exchange.Network `json:"failed,omitempty"` // networks on which a wallet could not be made now
	Short    []exchange.Network `json:"short,omitempty"`  // networks whose pool is as large as it may be, and too small
	Released int                `json:"released,omitempty"`
	Stuck    int                `json:"stuck,omitempty"`
	Moved    int                `json:"moved,omitempty"` // what the house keeps and is on its way to the treasury now
}

// TendEscrow takes addresses that have rested back into use, makes the wallets that are lacking, and looks after
// addresses that their flows did not give back. A schedule starts it. What it can't make now, the next run makes: the
// wallets that are to be made stand in rows.
func TendEscrow(ctx workflow.Context) (EscrowTended, error) {
	var out EscrowTended
	demand, err := fetch(ctx, database, "See what the pools lack", escrow.EscrowDemand)
	if err != nil {
		return out, passOn(err)
	}
	wg := workflow.NewWaitGroup(ctx)
	for _, d := range demand {
		if d.Short > 0 {
			out.Short = append(out.Short, d.Network)
		}
		wg.Add(1)
		workflow.GoNamed(ctx, "grow "+string(d.Network), func(ctx workflow.Context) {
			defer wg.Done()
			for _, id := range d.Make {
				if err := makeEscrow(ctx, d.Network, id, tendBudget); err != nil {
					workflow.GetLogger(ctx).Warn("an escrow wallet could not be made", "network", d.Network, "error", err)
					out.Failed = append(out.Failed, d.Network)
					return
				}
				out.Made++
			}
		})
	}
	wg.Wait(ctx)
	in := activities.StaleInput{Before: workflow.Now(ctx).Add(-staleAfter)}
	stale, err := step(ctx, database, "Look after addresses that were not given back", escrow.ReleaseStale, in)
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

// bringKept starts the flow that brings crypto which the house keeps to its treasury. The API starts it with the
// decision; this is for decisions after which the API died.
func bringKept(ctx workflow.Context, k exchange.KeptDeposit) bool {
	c := child{id: ReturnDepositID(k.ExceptionID), summary: ReturnDepositSummary, shown: ReturnDepositAttributes(k.Network, true)}
	started, err := start(ctx, c, ReturnDeposit, ReturnDepositInput{ExceptionID: k.ExceptionID, Keep: true})
	if err != nil {
		workflow.GetLogger(ctx).Warn("crypto that the house keeps is not on its way to the treasury", "exception", k.ExceptionID, "error", err)
	}
	return started
}

// growEscrow makes room in a pool that has run dry for an order, and tells whether it is worth to try again. A pool
// that may not grow, or whose signer does not answer in time, leaves the order refused; the customer may come again.
func growEscrow(ctx workflow.Context, n exchange.Network, order uuid.UUID) bool {
	in := activities.EscrowRoomInput{Network: n, OrderID: order}
	room, err := step(ctx, database, "Make room in the escrow pool", escrow.EscrowRoom, in)
	if err != nil {
		return false
	}
	for _, id := range room.Make {
		if err := makeEscrow(ctx, n, id, growBudget); err != nil {
			return false
		}
	}
	return room.MayGrow
}

// makeEscrow makes a wallet of the pool. The id is the wallet's, so making it twice makes one.
func makeEscrow(ctx workflow.Context, n exchange.Network, id uuid.UUID, budget time.Duration) error {
	_, err := step(ctx, signer(n).within(budget), "Make an escrow wallet", wallets.MakeWallet, exchange.EscrowWallet(id, n))
	return err
}
