package conformance

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/chain/keys"
	"kivuko/chain/solana"
	solananode "kivuko/dev/solana"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/worker"
	"kivuko/workflows"
)

// passing is a network on which slots pass while it is watched. Some of what is offered is dropped or
// held until its blockhash is too old, and blocks are undone.
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
	heldSlots    = 400 // slots, beyond the life of a blockhash
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

// solanaDesk is everything that sends: the flow with its activities, signer and database.
type solanaDesk struct {
	db     *store.Store
	vault  *keys.Vault
	signer *keys.PaymentSigner
	net    *passing
}

func (d *solanaDesk) wallet(t *testing.T, r exchange.WalletRequest) exchange.Wallet {
	t.Helper()
	r.ID, r.Network, r.Asset, r.Type = storetest.NewID(t), exchange.Solana, money.USDT, exchange.Hot
	maker := worker.KeyMaker{Vault: d.vault, Networks: map[exchange.Network]worker.AddressMaker{exchange.Solana: d.net}}
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

func (d *solanaDesk) pay(t *testing.T, p exchange.ChainPayment) (workflows.CryptoPayoutResult, error) {
	t.Helper()
	suite := testsuite.WorkflowTestSuite{}
	suite.SetLogger(quiet{})
	env := suite.NewTestWorkflowEnvironment()
	env.SetStartTime(time.Now())
	env.SetTestTimeout(2 * time.Minute)
	env.RegisterWorkflowWithOptions(workflows.CryptoPayout, workflow.RegisterOptions{Name: workflows.TypeCryptoPayout})
	env.RegisterActivity(&activities.Signing{Signer: d.signer, Store: worker.Rows{Store: d.db}})
	env.RegisterActivity(&activities.Chain{Store: worker.Rows{Store: d.db}, Client: d.net, Poll: 30 * time.Second, Patience: 2 * time.Minute, Now: env.Now})
	env.ExecuteWorkflow(workflows.TypeCryptoPayout, workflows.CryptoPayoutInput{PaymentID: p.ID, OrderID: p.ObjectID, Network: p.Network})
	var r workflows.CryptoPayoutResult
	if err := env.GetWorkflowError(); err != nil {
		return r, err
	}
	return r, env.GetWorkflowResult(&r)
}

// Payments go out at the same time through the flow, the signer, the database and a node. The wallets
// hold no SOL: the house's gas wallet pays fees and rent. Transactions are dropped and blocks undone.
// Each recipient is paid once, and the books say what the chain says, to the last lamport.
func TestSolanaSending(t *testing.T) {
	t.Parallel()
	h := startSolana(t, solanaPrograms(t))
	d := &solanaDesk{db: storetest.New(t), net: &passing{Client: h.client, h: h, t: t}}
	var err error
	if d.vault, err = keys.Open(keys.Config{MasterKey: "file://" + filepath.Join(t.TempDir(), "master"), CreateLocal: true}); err != nil {
		t.Fatal(err)
	}
	d.signer, err = keys.NewPaymentSigner(keys.PaymentSignerConfig{
		Store: worker.SigningRows{Store: d.db}, Vault: d.vault, Clients: map[exchange.Network]chain.Client{exchange.Solana: d.net},
	})
	if err != nil {
		t.Fatal(err)
	}
	gas := d.wallet(t, exchange.WalletRequest{OwnerType: exchange.OwnerTreasury, Purpose: exchange.HouseGas})
	funds := money.Must(money.SOL, "2")
	storetest.Gas(t, d.db, gas.ID, funds)
	h.Fund(t, gas.Address, funds)
	market := storetest.NewMarketWith(t, d.db, exchange.Solana, func(owner exchange.User) exchange.Wallet {
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
		if payments[i] = out.ChainPayment; payments[i].FeePayer != gas.Address {
			t.Fatalf("the fee is paid by %q", payments[i].FeePayer)
		}
	}
	h.faults(t, solananode.Faults{DropNext: dropped, HoldSlots: heldSlots})
	var work sync.WaitGroup
	for _, p := range payments {
		work.Go(func() {
			if r, err := d.pay(t, p); err != nil || !r.Completed {
				t.Errorf("payment %s ended %+v, %v", p.ID, r, err)
			}
		})
	}
	work.Wait()
	h.Finalise(t)
	d.check(t, h, market, gas)
}

func (d *solanaDesk) check(t *testing.T, h *solanaHarness, market storetest.Market, gas exchange.Wallet) {
	t.Helper()
	for _, c := range []struct {
		wallet uuid.UUID
		at     string
		asset  money.Asset
	}{
		{market.VendorWallet.ID, market.VendorWallet.Address, money.USDT},
		{market.CustomerWallet.ID, market.CustomerWallet.Address, money.USDT},
		{gas.ID, gas.Address, money.SOL},
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
	var rebuilt int
	const query = `SELECT count(*) - count(DISTINCT payment_id) FROM chain_attempts`
	if err := storetest.Owner(t, d.db).QueryRowContext(t.Context(), query).Scan(&rebuilt); err != nil {
		t.Fatal(err)
	}
	if rebuilt == 0 || d.net.looks < forkAt {
		t.Errorf("the plan is too kind: %d transactions were built anew, after %d looks", rebuilt, d.net.looks)
	}
	t.Logf("%d looks, %d transactions built anew", d.net.looks, rebuilt)
}
