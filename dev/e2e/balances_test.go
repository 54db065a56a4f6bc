package e2e

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/serviceerror"

	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/workflows"
)

// reconcile has the schedule compare the ledger with every chain, and returns the run of TRON after all runs have
// ended.
func (w *harness) reconcile(t *testing.T) exchange.Reconciliation {
	t.Helper()
	ctx := t.Context()
	networks, err := w.store.ReconciledNetworks(ctx)
	if err != nil || len(networks) == 0 {
		t.Fatalf("the networks %v, %v", networks, err)
	}
	// While the flow of the run before is still ending, no other one is started.
	for _, n := range networks {
		err := w.temporal.GetWorkflow(ctx, workflows.ReconciliationID(n), "").Get(ctx, nil)
		if _, none := errors.AsType[*serviceerror.NotFound](err); err != nil && !none {
			t.Fatalf("the comparison of %s before: %v", n, err)
		}
	}
	began := time.Now().UTC()
	w.trigger(t, "reconcile")
	var tron exchange.Reconciliation
	for _, n := range networks {
		eventually(t, "the ledger was held against "+string(n), func() error {
			runs, _, err := w.store.ListReconciliations(ctx, store.ReconciliationFilter{Network: n}, store.Page{Number: 1, Size: 1})
			switch {
			case err != nil:
				return err
			case len(runs) == 0 || runs[0].StartedAt.Before(began.Truncate(time.Millisecond)):
				return errors.New("no run has begun")
			case runs[0].Status != exchange.ReconciliationCompleted:
				return fmt.Errorf("the run is %s (%s)", runs[0].Status, runs[0].Detail)
			}
			if n == exchange.Tron {
				tron = runs[0]
			}
			t.Logf("%s: %d compared, %d deferred, %d differ", n, runs[0].Compared, runs[0].Deferred, runs[0].Differences)
			return nil
		})
	}
	return tron
}

// standing returns the open differences of a wallet.
func (w *harness) standing(t *testing.T, wallet uuid.UUID) []exchange.ReconciliationDifference {
	t.Helper()
	all, _, err := w.store.ListDifferences(t.Context(), store.DifferenceFilter{WalletID: wallet, Status: exchange.DifferenceOpen}, store.Page{Number: 1, Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// walletOn has an admin provision a wallet of a customer on a network, and funds it without the product.
func (w *harness) walletOn(t *testing.T, n exchange.Network, all ...money.Amount) string {
	t.Helper()
	admin, err := w.adminLogin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var made struct{ ID, Address string }
	in := map[string]any{"network": n, "asset": "USDT", "user_id": w.customer}
	if err := admin.Post(t.Context(), "/api/v1/auth/wallets/provision", "reconciliation-"+string(n), in, &made); err != nil {
		t.Fatalf("a wallet on %s: %v", n, err)
	}
	node := demo.Node{Network: n, Control: "http://" + map[exchange.Network]string{
		exchange.Tron: w.stack.Addresses.TronControl, exchange.Ethereum: w.stack.Addresses.EthereumControl, exchange.Solana: w.stack.Addresses.SolanaControl,
	}[n]}
	for _, m := range all {
		if err := node.Fund(t.Context(), made.Address, m); err != nil {
			t.Fatalf("%s for %s: %v", m, made.Address, err)
		}
	}
	return made.ID
}

// balance is one asset of a wallet as the API shows it.
type balance struct {
	Asset, Posted, Custody string
	Chain                  struct {
		Status string
		Amount *string
		Block  *struct {
			Number uint64
			ID     string
		}
	}
}

// TestBalancesStandSideBySide funds wallets on all networks without the product. The API then shows the same balance
// from the ledger and from the chain, each at a final block, and reconciliation agrees.
func TestBalancesStandSideBySide(t *testing.T) {
	w := open(t)
	networks, err := w.store.ReconciledNetworks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, ids := map[exchange.Network]map[string]money.Amount{}, map[exchange.Network]string{}
	for _, n := range networks { // all funded first: the product reads each some seconds later
		want[n] = map[string]money.Amount{}
		for _, a := range n.WalletAssets() {
			want[n][string(a)] = money.Must(a, "2.5")
		}
		ids[n] = w.walletOn(t, n, slices.Collect(maps.Values(want[n]))...)
	}
	for _, n := range networks {
		eventually(t, "ledger and chain agree about wallet "+ids[n]+" on "+string(n), func() error {
			var got struct{ Balances []balance }
			if err := w.amina(t).Get(t.Context(), "/api/v1/auth/wallet/id/"+ids[n]+"/balances", &got); err != nil {
				return err
			}
			for _, b := range got.Balances {
				m := want[n][b.Asset].String()
				if b.Posted != m || b.Custody != m || b.Chain.Status != "read" || b.Chain.Amount == nil || *b.Chain.Amount != m || b.Chain.Block.ID == "" {
					return fmt.Errorf("%+v, want %s", b, m)
				}
			}
			if len(got.Balances) != len(want[n]) {
				return fmt.Errorf("%d balances", len(got.Balances))
			}
			return nil
		})
	}
	w.reconcile(t)
	all, _, err := w.store.ListDifferences(t.Context(), store.DifferenceFilter{Status: exchange.DifferenceOpen}, store.Page{Number: 1, Size: 100})
	if err != nil || len(all) != 0 {
		t.Errorf("the differences are %+v, %v", all, err)
	}
	for _, n := range networks {
		runs, _, err := w.store.ListReconciliations(t.Context(), store.ReconciliationFilter{Network: n}, store.Page{Number: 1, Size: 1})
		if err != nil || len(runs) != 1 || runs[0].Compared < len(n.WalletAssets()) {
			t.Errorf("the run of %s is %+v, %v", n, runs, err)
		}
	}
}

// TestLedgerIsHeldAgainstTheChains has the schedule's flow find no difference, then an entry that no chain has,
// reported once however often it is found, and then no difference again.
func TestLedgerIsHeldAgainstTheChains(t *testing.T) {
	w := open(t)
	// A wallet that pays nothing: a fee of another test's pending payment could be booked against a wallet that pays.
	quiet := uuid.MustParse(w.walletOn(t, exchange.Tron))
	if run := w.reconcile(t); run.Compared == 0 || len(w.standing(t, quiet)) != 0 {
		t.Errorf("the first run %+v leaves %+v", run, w.standing(t, quiet))
	}
	wrong := money.Must(money.TRX, "3")
	book := func(key string, m money.Amount) {
		t.Helper()
		err := w.store.Post(t.Context(), exchange.Posting{Entries: []exchange.Entry{{
			Key: "e2e:reconciliation:" + key, Kind: "e2e.mistake", Lines: []exchange.Line{
				exchange.Debit(exchange.Owned(exchange.AccCustody, quiet, money.TRX), m), exchange.Credit(exchange.House(exchange.AccCapital, money.TRX), m),
			},
		}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	book("made", wrong)
	for range 2 {
		w.reconcile(t)
		if all := w.standing(t, quiet); len(all) != 1 || !all[0].Latest.Difference().Equal(wrong.Neg()) {
			t.Errorf("the mistake is reported as %+v", all)
		}
	}
	book("mended", wrong.Neg())
	w.reconcile(t)
	if all := w.standing(t, quiet); len(all) != 0 {
		t.Errorf("the mistake is corrected, and there is %+v", all)
	}
}
