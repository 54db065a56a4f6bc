package conformance

import (
	"context"
	"math/big"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/chain/ethereum"
	"kivuko/chain/keys"
	ethnode "kivuko/dev/ethereum"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/worker"
	"kivuko/workflows"
)

// moving is a network on which time passes while it is watched. When the first token is on its way, fees
// rise above what was bid for it; later the pool is lost and a block undone.
type moving struct {
	*ethereum.Client
	h     *ethereumHarness
	t     *testing.T
	mu    sync.Mutex
	looks int
	rose  int // the look at which fees rose
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

// dear sets a base fee above every bid made before.
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

// pass lets a block come with every third look.
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

// desk is everything that sends: the flow with its activities, signer and database.
type desk struct {
	db     *store.Store
	vault  *keys.Vault
	signer *keys.PaymentSigner
	net    *moving
}

// wallet makes a wallet with a key of its own.
func (d *desk) wallet(t *testing.T, r exchange.WalletRequest) exchange.Wallet {
	t.Helper()
	r.ID, r.Network, r.Asset, r.Type = storetest.NewID(t), exchange.Ethereum, money.USDT, exchange.Hot
	maker := worker.KeyMaker{Vault: d.vault, Networks: map[exchange.Network]worker.AddressMaker{exchange.Ethereum: d.net}}
	address, key, err := maker.CreateKey(t.Context(), r.ID, r.Network)
	if err != nil {
		t.Fatal(err)
	}
	w, err := d.db.CreateWallet(t.Context(), r, address, key)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// pay runs the flow of one payment to its end, on a clock that skips its waits.
func (d *desk) pay(t *testing.T, p exchange.ChainPayment) (workflows.CryptoPayoutResult, error) {
	t.Helper()
	suite := testsuite.WorkflowTestSuite{}
	suite.SetLogger(quiet{})
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(time.Now())
	env.SetTestTimeout(2 * time.Minute)
	env.RegisterWorkflowWithOptions(workflows.CryptoPayout, workflow.RegisterOptions{Name: workflows.TypeCryptoPayout})
	env.RegisterActivity(&activities.Signing{Signer: d.signer, Store: worker.Rows{Store: d.db}})
	env.RegisterActivity(&activities.Chain{
		Store: worker.Rows{Store: d.db}, Client: d.net, Poll: 30 * time.Second, Patience: 2 * time.Minute, Now: env.Now,
		Gas: activities.GasPolicy{Floor: money.Must(money.ETH, "0.004"), Cap: money.Must(money.ETH, "0.05"), Limit: 5},
	})
	env.ExecuteWorkflow(workflows.TypeCryptoPayout, workflows.CryptoPayoutInput{PaymentID: p.ID, OrderID: p.ObjectID, Network: p.Network})
	var r workflows.CryptoPayoutResult
	if err := env.GetWorkflowError(); err != nil {
		return r, err
	}
	return r, env.GetWorkflowResult(&r)
}

type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

// Payments of one wallet go out at the same time through the flow, the signer, the database and a node.
// The wallet has no gas, the fees rise above every bid, and blocks are undone. Each recipient is paid
// once, numbers have no gap, and the books say what the chain says, to the last wei.
func TestEthereumSending(t *testing.T) {
	t.Parallel()
	h := startEthereum(t)
	d := &desk{db: storetest.New(t), net: &moving{Client: h.client, h: h, t: t}}
	var err error
	if d.vault, err = keys.Open(keys.Config{MasterKey: "file://" + filepath.Join(t.TempDir(), "master"), CreateLocal: true}); err != nil {
		t.Fatal(err)
	}
	d.signer, err = keys.NewPaymentSigner(keys.PaymentSignerConfig{
		Store: worker.SigningRows{Store: d.db}, Vault: d.vault, Clients: map[exchange.Network]chain.Client{exchange.Ethereum: d.net},
	})
	if err != nil {
		t.Fatal(err)
	}
	gas := d.wallet(t, exchange.WalletRequest{OwnerType: exchange.OwnerTreasury, Purpose: exchange.HouseGas})
	funds := money.Must(money.ETH, "2")
	storetest.Gas(t, d.db, gas.ID, funds)
	h.Fund(t, gas.Address, funds)
	market := storetest.NewMarketWith(t, d.db, exchange.Ethereum, func(owner exchange.User) exchange.Wallet {
		r := exchange.WalletRequest{OwnerType: exchange.OwnerCustomer, OwnerID: owner.ID, VendorID: exchange.VendorOf(owner)}
		if owner.Role == exchange.RoleVendor {
			r.OwnerType = exchange.OwnerMerchant
		}
		return d.wallet(t, r)
	})
	h.Fund(t, market.VendorWallet.Address, money.Must(money.USDT, "1500"))
	const count = 5
	payments := make([]exchange.ChainPayment, count)
	for i := range payments {
		o := market.Order(t, d.db, "10")
		out, err := d.db.AcceptPayment(t.Context(), storetest.Attempt(t, d.db, o).ID, storetest.Paid(t, o.Price.Fiat), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		payments[i] = out.ChainPayment
	}
	var work sync.WaitGroup
	for _, p := range payments {
		work.Go(func() {
			if r, err := d.pay(t, p); err != nil || !r.Completed {
				t.Errorf("payment %s ended %+v, %v", p.ID, r, err)
			}
		})
	}
	work.Wait()
	d.check(t, h, market, gas, count)
}

func (d *desk) check(t *testing.T, h *ethereumHarness, market storetest.Market, gas exchange.Wallet, count uint64) {
	t.Helper()
	n, err := h.client.Nonces(t.Context(), market.VendorWallet.Address)
	if err != nil || n.Final != count {
		t.Errorf("the chain counts %+v, %v; want %d payments", n, err, count)
	}
	for _, c := range []struct {
		wallet uuid.UUID
		at     string
		asset  money.Asset
	}{
		{market.VendorWallet.ID, market.VendorWallet.Address, money.USDT},
		{market.CustomerWallet.ID, market.CustomerWallet.Address, money.USDT},
		{market.VendorWallet.ID, market.VendorWallet.Address, money.ETH},
		{gas.ID, gas.Address, money.ETH},
	} {
		b, err := h.client.Balance(t.Context(), c.at, c.asset)
		if err != nil {
			t.Fatal(err)
		}
		a, err := d.db.Account(t.Context(), exchange.Owned(exchange.AccCustody, c.wallet, c.asset))
		if err != nil || !a.Posted.Equal(b.Amount) {
			t.Errorf("the books have %s %s in %s and the chain %s (%v)", a.Posted, c.asset, c.at, b.Amount, err)
		}
	}
	var replaced, topUps int
	for query, to := range map[string]*int{
		`SELECT count(*) FROM (SELECT lane, nonce FROM chain_attempts GROUP BY 1, 2 HAVING count(*) > 1) x`: &replaced,
		`SELECT count(*) FROM chain_payments WHERE purpose = 'gas' AND status = 'completed'`:                &topUps,
	} {
		if err := storetest.Owner(t, d.db).QueryRowContext(t.Context(), query).Scan(to); err != nil {
			t.Fatal(err)
		}
	}
	if replaced == 0 || topUps == 0 {
		t.Errorf("the plan is too kind: %d numbers were outbid, %d top-ups made", replaced, topUps)
	}
	t.Logf("%d looks, %d numbers outbid, %d top-ups", d.net.looks, replaced, topUps)
}
