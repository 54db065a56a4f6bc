package conformance

import (
	"context"
	"sync"
	"testing"

	"kivuko/chain"
	"kivuko/chain/solana"
	solananode "kivuko/dev/nodes/solana"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

// passing is a network whose slots pass with each look at it. Some transactions are dropped or held until their
// blockhash is too old, and blocks are undone.
type passing struct {
	*solana.Client
	h     *solanaHarness
	t     *testing.T
	mu    sync.Mutex
	looks int
}

// The plan of trouble, in looks at the network.
const (
	slotsForLook = 12
	heldSlots    = 400 // slots, beyond the lifetime of a blockhash
	freedAt      = 30
	forkAt       = 32
	dropped      = 4
)

func (p *passing) Locate(ctx context.Context, txID string) (chain.Location, error) {
	p.mu.Lock()
	p.looks++
	if p.looks == freedAt {
		p.h.node.ResetFaults()
	}
	if p.looks == forkAt {
		if err := p.h.node.Reorganise(2, true); err != nil {
			p.t.Error(err)
		}
	}
	if _, err := p.h.node.ProduceBlocks(slotsForLook); err != nil {
		p.t.Error(err)
	}
	p.mu.Unlock()
	return p.Client.Locate(ctx, txID)
}

// Payments go out in parallel through the flow, the signer, the database and a node. The wallets hold no SOL: the
// house's gas wallet pays fees and rent. Transactions are dropped and blocks undone. Each recipient is paid once, and
// the books agree with the chain, to the last lamport.
func TestSolanaSending(t *testing.T) {
	t.Parallel()
	h := startSolana(t, solanaPrograms(t))
	net := &passing{Client: h.client, h: h, t: t}
	d := openOffice(t, net)
	gas := d.wallet(t, exchange.WalletRequest{OwnerType: exchange.OwnerTreasury, Purpose: exchange.HouseGas})
	funds := money.Must(money.SOL, "2")
	storetest.Gas(t, d.db, gas.ID, funds)
	h.Fund(t, gas.Address, funds)
	market := storetest.NewMarketWith(t, d.db, exchange.Solana, func(owner exchange.User) exchange.Wallet { return d.ownedWallet(t, owner) })
	h.Fund(t, market.VendorWallet.Address, money.Must(money.USDT, "1500"))
	const count = 5
	payments := make([]exchange.ChainPayment, count)
	for i := range payments {
		if payments[i] = d.payment(t, market, "10"); payments[i].FeePayer != gas.Address {
			t.Fatalf("the fee is paid by %q", payments[i].FeePayer)
		}
	}
	h.faults(t, solananode.Faults{DropNext: dropped, HoldSlots: heldSlots})
	d.payAll(t, payments)
	h.Finalise(t)
	d.balanced(t, holding{market.VendorWallet, money.USDT}, holding{market.CustomerWallet, money.USDT}, holding{gas, money.SOL})
	rebuilt := d.count(t, `SELECT count(*) - count(DISTINCT payment_id) FROM chain_attempts`)
	if rebuilt == 0 || net.looks < forkAt {
		t.Errorf("the plan is too easy: %d transactions were built anew, after %d looks", rebuilt, net.looks)
	}
	t.Logf("%d looks, %d transactions built anew", net.looks, rebuilt)
}
