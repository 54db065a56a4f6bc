package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// reconcile has the schedule compare the ledger with every chain, and returns the run of TRON when all have
// ended.
func (w *world) reconcile(t *testing.T) exchange.Reconciliation {
	t.Helper()
	ctx, began := t.Context(), time.Now().UTC()
	if err := w.temporal.ScheduleClient().GetHandle(ctx, "reconcile").Trigger(ctx, client.ScheduleTriggerOptions{}); err != nil {
		t.Fatal(err)
	}
	networks, err := w.store.ReconciledNetworks(ctx)
	if err != nil || len(networks) == 0 {
		t.Fatalf("the networks %v, %v", networks, err)
	}
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

// standing lists the differences of the vendor's wallet that stand.
func (w *world) standing(t *testing.T) []exchange.ReconciliationDifference {
	t.Helper()
	all, _, err := w.store.ListDifferences(t.Context(), store.DifferenceFilter{WalletID: w.wallet.ID, Status: exchange.DifferenceOpen}, store.Page{Number: 1, Size: 100})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestLedgerIsHeldAgainstTheChains has the schedule's flow find nothing, then an entry that no chain knows,
// told once however often it is found, and then nothing again.
func TestLedgerIsHeldAgainstTheChains(t *testing.T) {
	w := open(t)
	if run := w.reconcile(t); run.Compared == 0 || len(w.standing(t)) != 0 {
		t.Errorf("the first run %+v leaves %+v", run, w.standing(t))
	}
	wrong := money.Must(money.TRX, "3")
	book := func(key string, m money.Amount) {
		t.Helper()
		err := w.store.Post(t.Context(), exchange.Posting{Entries: []exchange.Entry{{
			Key: "e2e:reconciliation:" + key, Kind: "e2e.mistake", Lines: []exchange.Line{
				exchange.Debit(exchange.Owned(exchange.AccCustody, w.wallet.ID, money.TRX), m), exchange.Credit(exchange.House(exchange.AccCapital, money.TRX), m),
			},
		}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	book("made", wrong)
	for range 2 {
		w.reconcile(t)
		if all := w.standing(t); len(all) != 1 || !all[0].Latest.Difference().Equal(wrong.Neg()) {
			t.Errorf("the mistake is told as %+v", all)
		}
	}
	book("mended", wrong.Neg())
	w.reconcile(t)
	if all := w.standing(t); len(all) != 0 {
		t.Errorf("the mistake is mended, and there is %+v", all)
	}
}
