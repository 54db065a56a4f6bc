package conformance

import (
	"context"
	"math/big"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/chain/ethereum"
	ethnode "kivuko/dev/nodes/ethereum"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

// moving is a network whose time passes with each look at it. When the first token transfer is broadcast, fees rise
// above its bid; later the pool is lost and a block is undone.
type moving struct {
	*ethereum.Client
	h     *ethereumHarness
	t     *testing.T
	mu    sync.Mutex
	looks int
	rose  int // the number of the look at which fees rose
}

// The plan of trouble, in looks at the network since fees rose.
const (
	feesFallAt = 40
	poolLostAt = 15
	undoneAt   = 60
)

func (m *moving) Broadcast(ctx context.Context, raw []byte) (chain.Broadcast, error) {
	var tx types.Transaction
	if err := tx.UnmarshalBinary(raw); err != nil {
		return chain.Broadcast{}, err
	}
	b, err := m.Client.Broadcast(ctx, raw)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rose == 0 && tx.To() != nil && *tx.To() == ethnode.USDTAddress() {
		m.rose = m.looks
		m.dear()
	}
	return b, err
}

// dear sets a base fee above every earlier bid.
func (m *moving) dear() {
	if err := m.h.node.SetBaseFee(big.NewInt(120_000_000_000)); err != nil {
		m.t.Error(err)
	}
}

func (m *moving) Locate(ctx context.Context, txID string) (chain.Location, error) {
	m.mu.Lock()
	m.pass()
	m.mu.Unlock()
	return m.Client.Locate(ctx, txID)
}

// pass makes a block with every third look.
func (m *moving) pass() {
	m.looks++
	since := m.looks - m.rose
	if m.rose > 0 && since == poolLostAt {
		m.h.node.Forget()
	}
	if m.rose > 0 && since == undoneAt {
		if err := m.h.node.Reorganise(1, true); err != nil {
			m.t.Error(err)
		}
	}
	if m.looks%3 == 0 {
		if _, err := m.h.node.MineBlock(); err != nil {
			m.t.Error(err)
		}
		if m.rose > 0 && since < feesFallAt {
			m.dear()
		}
	}
}

// Payments of one wallet go out in parallel through the flow, the signer, the database and a node. The wallet has no
// gas, the fees rise above every bid, and blocks are undone. Each recipient is paid once, nonces have no gap, and the
// books agree with the chain, to the last wei.
func TestEthereumSending(t *testing.T) {
	t.Parallel()
	h := startEthereum(t)
	net := &moving{Client: h.client, h: h, t: t}
	d := openOffice(t, net)
	d.gas = activities.GasPolicy{Floor: money.Must(money.ETH, "0.004"), Cap: money.Must(money.ETH, "0.05"), Limit: 5}
	gas := d.wallet(t, exchange.WalletRequest{OwnerType: exchange.OwnerTreasury, Purpose: exchange.HouseGas})
	funds := money.Must(money.ETH, "2")
	storetest.Gas(t, d.db, gas.ID, funds)
	h.Fund(t, gas.Address, funds)
	market := storetest.NewMarketWith(t, d.db, exchange.Ethereum, func(owner exchange.User) exchange.Wallet { return d.ownedWallet(t, owner) })
	h.Fund(t, market.VendorWallet.Address, money.Must(money.USDT, "1500"))
	const count = 5
	payments := make([]exchange.ChainPayment, count)
	for i := range payments {
		payments[i] = d.payment(t, market, "10")
	}
	d.payAll(t, payments)
	if n, err := h.client.Nonces(t.Context(), market.VendorWallet.Address); err != nil || n.Final != count {
		t.Errorf("the chain counts %+v, %v; want %d payments", n, err, count)
	}
	d.balanced(t, holding{market.VendorWallet, money.USDT}, holding{market.CustomerWallet, money.USDT},
		holding{market.VendorWallet, money.ETH}, holding{gas, money.ETH})
	replaced := d.count(t, `SELECT count(*) FROM (SELECT nonce_wallet, nonce FROM chain_attempts GROUP BY 1, 2 HAVING count(*) > 1) x`)
	topUps := d.count(t, `SELECT count(*) FROM chain_payments WHERE purpose = 'gas' AND status = 'completed'`)
	if replaced == 0 || topUps == 0 {
		t.Errorf("the plan is too easy: %d nonces were replaced with a higher fee, %d top-ups made", replaced, topUps)
	}
	t.Logf("%d looks, %d nonces replaced, %d top-ups", net.looks, replaced, topUps)
}
