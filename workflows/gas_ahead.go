package workflows

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// ScheduleGasAhead is the id of the schedule that starts GasAhead.
const ScheduleGasAhead = "gas-ahead"

// GasAheadDone is what a run brought, by network.
type GasAheadDone struct {
	Networks []GasOnNetwork `json:"networks,omitempty"`
}

// GasOnNetwork is what a run brought on one network. Failed is set where it could not be looked; the next run looks again.
type GasOnNetwork struct {
	Network  exchange.Network            `json:"network"`
	Looked   int                         `json:"looked,omitempty"`
	Approved int                         `json:"approved,omitempty"`
	Begun    int                         `json:"begun,omitempty"` // flows of top-ups, also of those that an earlier run approved
	Refused  map[exchange.GasRefusal]int `json:"refused,omitempty"`
	Failed   bool                        `json:"failed,omitempty"`
}

// GasAhead brings native coin to the wallets that will soon pay, so that their payments need not wait for it. A schedule starts it. Top-ups
// are rows before their flows begin, so the next run begins what this one can't. It never parks: a payment that lacks gas gets some by itself.
func GasAhead(ctx workflow.Context) (GasAheadDone, error) {
	networks, err := fetch(ctx, database, "List the networks", reconciliation.ReconciledNetworks)
	if err != nil {
		return GasAheadDone{}, err
	}
	networks = slices.DeleteFunc(networks, exchange.Network.Sponsored)
	out := GasAheadDone{Networks: make([]GasOnNetwork, len(networks))}
	wg := workflow.NewWaitGroup(ctx)
	for i, n := range networks {
		out.Networks[i].Network = n
		wg.Add(1)
		workflow.GoNamed(ctx, "gas on "+string(n), func(ctx workflow.Context) {
			defer wg.Done()
			out.Networks[i].bring(ctx)
			describe(ctx, out.card())
		})
	}
	wg.Wait(ctx)
	return out, nil
}

func (g *GasOnNetwork) bring(ctx workflow.Context) {
	brought, err := fetch(ctx, gasAhead(g.Network), "Approve gas for wallets on "+string(g.Network), ahead.BringGas)
	if err != nil {
		workflow.GetLogger(ctx).Warn("gas could not be brought ahead of need", "network", g.Network, "error", err)
		g.Failed = true
		return
	}
	g.Looked, g.Approved, g.Refused = brought.Looked, brought.Approved, brought.Refused
	for _, t := range brought.Start {
		if g.begin(ctx, t) {
			g.Begun++
		}
	}
}

// begin starts the flow of a top-up, and reports whether it did. One that runs already is left alone.
func (g *GasOnNetwork) begin(ctx workflow.Context, t activities.GasTopUp) bool {
	c := child{
		id: CryptoPayoutID(t.PaymentID), summary: "Gas ahead of need for wallet " + t.WalletID.String(), priority: fairness(priorityAhead, uuid.Nil),
		shown: attributes(StagePayout, WaitsForChain, AttrNetwork.ValueSet(string(g.Network)), AttrAsset.ValueSet(string(g.Network.NativeCoin()))),
	}
	started, err := start(ctx, c, CryptoPayout, CryptoPayoutInput{PaymentID: t.PaymentID, WalletID: t.WalletID, Network: g.Network})
	if err != nil {
		workflow.GetLogger(ctx).Warn("the flow of a gas top-up could not be started", "payment", t.PaymentID, "error", err)
	}
	return started
}

// card has a line for each network.
func (d GasAheadDone) card() card {
	c := card{title: "Gas ahead of need"}
	for _, g := range d.Networks {
		said := fmt.Sprintf("%d wallets looked at, %d topped up, %d flows begun", g.Looked, g.Approved, g.Begun)
		var why []string
		for _, r := range workflow.DeterministicKeys(g.Refused) {
			why = append(why, fmt.Sprintf("%s %d", r, g.Refused[r]))
		}
		if len(why) > 0 {
			said += "; refused: " + strings.Join(why, ", ")
		}
		if g.Failed {
			said = "could not be looked at; the next run tries again"
		}
		c.add(string(g.Network), said)
	}
	return c
}
