package activities

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"

	"kivuko/chain"
	"kivuko/exchange"
)

// The node is asked about a transaction when the deposit watch leaves something to ask: it reads each block anyway.
func TestTheWatchTellsWhenToAskANode(t *testing.T) {
	at := func(number uint64, after time.Duration) exchange.ChainBlock {
		return exchange.ChainBlock{Number: number, Time: signedAt.Add(after)}
	}
	seven := exchange.ChainBlock{Number: 7, ID: "seven"}
	// Twenty blocks are not final yet, one each second.
	read := exchange.TxSighting{Current: true, Final: at(6, 0), Newest: at(26, 20*time.Second)}
	early := exchange.TxSighting{Current: true, Final: at(1, 0), Newest: at(7, 6*time.Second), TxID: "tx", Block: seven}
	with := func(s exchange.TxSighting, change func(*exchange.TxSighting)) exchange.TxSighting {
		change(&s)
		return s
	}
	in, final := seen(chain.StageIncluded, signedAt), seen(chain.StageFinal, signedAt)
	for name, c := range map[string]struct {
		status   exchange.ChainAttemptStatus
		block    string // in which it was before
		sighting exchange.TxSighting
		node     sight
		looks    int
		recorded []string
		wait     time.Duration
		end      string
	}{
		"it was just sent":       {status: exchange.TxSigned, sighting: read, recorded: []string{"broadcast"}, wait: time.Second},
		"it is in no block":      {sighting: read, wait: time.Second},
		"it is in a block":       {sighting: early, recorded: []string{"included"}, wait: 6 * time.Second},
		"it is still there":      {status: exchange.TxIncluded, block: "seven", sighting: early, wait: 6 * time.Second},
		"it is in another block": {status: exchange.TxIncluded, block: "six", sighting: early, recorded: []string{"included"}, wait: 6 * time.Second},
		"its block is nearly final": {
			status: exchange.TxIncluded, block: "seven", sighting: with(early, func(s *exchange.TxSighting) { s.Final = at(6, 0) }), node: final, looks: 1,
			recorded: []string{"completed"}, end: DeliveryCompleted,
		},
		"its block is final": {
			status: exchange.TxBroadcast, sighting: with(early, func(s *exchange.TxSighting) { s.Settled = true }), node: final, looks: 1,
			recorded: []string{"completed"}, end: DeliveryCompleted,
		},
		"its block was undone":     {status: exchange.TxIncluded, block: "seven", sighting: read, node: seen(chain.StageAbsent, signedAt), looks: 1, recorded: []string{"vanished", "broadcast"}, wait: time.Second},
		"the watch is behind":      {sighting: with(early, func(s *exchange.TxSighting) { s.Current = false }), node: in, looks: 1, recorded: []string{"included"}, wait: time.Second},
		"the watch has never been": {node: in, looks: 1, recorded: []string{"included"}, wait: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			status := exchange.TxBroadcast
			if c.status != "" {
				status = c.status
			}
			rows := &chainRows{
				payment:  exchange.ChainPayment{ID: uuid.New(), FromAddress: "TFrom", ToAddress: "TTo", Amount: tenUSDT},
				attempt:  exchange.ChainAttempt{ID: uuid.New(), TxID: "tx", Raw: []byte("tx"), ExpiresAt: lifeEnds, Status: status, BlockID: c.block},
				sighting: c.sighting,
			}
			network := &reader{sights: []sight{c.node}}
			d, err := deliver(t, rows, network)
			if network.looks != c.looks || !slices.Equal(rows.recorded, c.recorded) || d.End != c.end {
				t.Errorf("the node was asked %d times, recorded %v, ended %q; want %d, %v, %q", network.looks, rows.recorded, d.End, c.looks, c.recorded, c.end)
			}
			if c.end != "" {
				return
			}
			if later, ok := errors.AsType[*temporal.ApplicationError](err); !ok || later.Type() != TypePending || later.NextRetryDelay() != c.wait {
				t.Errorf("got %v, want a wait of %s", err, c.wait)
			}
		})
	}
}
