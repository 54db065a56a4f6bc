package conformance

import (
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/chain/keys"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
	"kivuko/worker"
	"kivuko/workflows"
	"kivuko/workflows/workflowstest"
)

// office is what the product needs to create wallets and to sign.
type office struct {
	db     *store.Store
	vault  *keys.Vault
	signer *keys.PaymentSigner
	client chain.Client
	gas    activities.GasPolicy
}

func openOffice(t testing.TB, client chain.Client) office {
	t.Helper()
	o := office{db: storetest.New(t), client: client}
	var err error
	if o.vault, err = keys.Open(keys.Config{MasterKey: "file://" + filepath.Join(t.TempDir(), "master"), CreateLocal: true}); err != nil {
		t.Fatal(err)
	}
	o.signer, err = keys.NewPaymentSigner(keys.PaymentSignerConfig{
		Store: worker.SigningRows{Store: o.db}, Vault: o.vault, Clients: map[exchange.Network]chain.Client{client.Network(): client},
		Cold: worker.SigningRows{Store: o.db},
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// wallet makes a wallet with a key of its own.
func (o office) wallet(t testing.TB, r exchange.WalletRequest) exchange.Wallet {
	t.Helper()
	r.ID, r.Network, r.Asset, r.Type = storetest.NewID(t), o.client.Network(), money.USDT, exchange.Hot
	maker := keys.Maker{Vault: o.vault, Networks: map[exchange.Network]keys.Addresser{r.Network: o.client}}
	address, key, err := maker.CreateKey(t.Context(), r.ID, r.Network)
	if err != nil {
		t.Fatal(err)
	}
	w, err := storetest.CreateWallet(t.Context(), o.db, r, address, key)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// ownedWallet makes the wallet of a customer or a merchant.
func (o office) ownedWallet(t testing.TB, owner exchange.User) exchange.Wallet {
	t.Helper()
	r := exchange.WalletRequest{OwnerType: exchange.OwnerCustomer, OwnerID: owner.ID, VendorID: exchange.VendorOf(owner)}
	if owner.Role == exchange.RoleVendor {
		r.OwnerType = exchange.OwnerMerchant
	}
	return o.wallet(t, r)
}

// payment is an approved payment for an order of the market.
func (o office) payment(t testing.TB, m storetest.Market, amount string) exchange.ChainPayment {
	t.Helper()
	order := m.Order(t, o.db, amount)
	out, err := o.db.AcceptPayment(t.Context(), storetest.Attempt(t, o.db, order).ID, storetest.Paid(t, order.Price.Fiat), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return out.ChainPayment
}

// pay runs the flow of one payment until it ends, on a clock that skips its waits.
func (o office) pay(t *testing.T, p exchange.ChainPayment) (workflows.CryptoPayoutResult, error) {
	t.Helper()
	o.watched(t)
	env := workflowstest.NewEnvironment(workflowstest.Options{})
	env.SetStartTime(time.Now())
	env.RegisterWorkflowWithOptions(workflows.CryptoPayout, workflow.RegisterOptions{Name: workflows.TypeCryptoPayout})
	rows := o.db
	env.RegisterActivity(&activities.Signing{Signer: o.signer, Store: rows, Recipients: &activities.Recipients{Store: rows}})
	env.RegisterActivity(&activities.Chain{
		Store: o.db, Client: o.client, Poll: 30 * time.Second, StuckTimeout: 2 * time.Minute, Now: env.Now, Gas: o.gas,
	})
	env.RegisterWorkflow(asChild)
	env.ExecuteWorkflow(asChild, workflows.CryptoPayoutInput{PaymentID: p.ID, OrderID: p.ObjectID, Network: p.Network})
	var r workflows.CryptoPayoutResult
	if err := env.GetWorkflowError(); err != nil {
		return r, err
	}
	return r, env.GetWorkflowResult(&r)
}

// asChild runs the flow of a payment under its id, by which the flows of its top-ups signal it. The environment signals only children.
func asChild(ctx workflow.Context, in workflows.CryptoPayoutInput) (r workflows.CryptoPayoutResult, err error) {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: workflows.CryptoPayoutID(in.PaymentID)})
	err = workflow.ExecuteChildWorkflow(ctx, workflows.TypeCryptoPayout, in).Get(ctx, &r)
	return r, err
}

// payAll runs the flows of several payments at the same time; each must complete. The environment ends with a payment, and the
// flow of its top-up goes on: it is run to its end here.
func (o office) payAll(t *testing.T, payments []exchange.ChainPayment) {
	t.Helper()
	var work sync.WaitGroup
	for _, p := range payments {
		work.Go(func() {
			if r, err := o.pay(t, p); err != nil || !r.Completed {
				t.Errorf("payment %s ended %+v, %v", p.ID, r, err)
			}
		})
	}
	work.Wait()
	for _, id := range o.openTopUps(t) {
		if r, err := o.pay(t, exchange.ChainPayment{ID: id, Network: o.client.Network()}); err != nil || !r.Completed {
			t.Errorf("top-up %s ended %+v, %v", id, r, err)
		}
	}
}

// openTopUps are the top-ups that are not final.
func (o office) openTopUps(t *testing.T) (all []uuid.UUID) {
	t.Helper()
	rows, err := storetest.Owner(t, o.db).QueryContext(t.Context(), `SELECT id FROM chain_payments WHERE purpose = 'gas' AND status <> 'completed'`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var id uuid.UUID
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		all = append(all, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// holding is an asset in a wallet.
type holding struct {
	wallet exchange.Wallet
	asset  money.Asset
}

// balanced compares the books with the chain, to the smallest unit.
func (o office) balanced(t *testing.T, all ...holding) {
	t.Helper()
	for _, h := range all {
		b, err := o.client.Balance(t.Context(), h.wallet.Address, h.asset)
		if err != nil {
			t.Fatal(err)
		}
		a, err := o.db.Account(t.Context(), exchange.Owned(exchange.AccCustody, h.wallet.ID, h.asset))
		if err != nil || !a.Posted.Equal(b.Amount) {
			t.Errorf("the books have %s %s in %s and the chain %s (%v)", a.Posted, h.asset, h.wallet.Address, b.Amount, err)
		}
	}
}

// count returns the number that a database query returns.
func (o office) count(t *testing.T, query string) (n int) {
	t.Helper()
	if err := storetest.Owner(t, o.db).QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
