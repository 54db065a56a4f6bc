package api

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// reconcile stores a run of TRON that finds one difference in a wallet.
func (e *env) reconcile(w exchange.Wallet) exchange.Reconciliation {
	e.t.Helper()
	ctx := e.t.Context()
	r, err := e.store.BeginReconciliation(ctx, newID(), exchange.Tron)
	if err != nil {
		e.t.Fatal(err)
	}
	c := exchange.Comparison{Ledger: money.Must(money.USDT, "7"), Fees: money.Zero(money.USDT)}
	c.WalletID, c.Amount, c.Block = w.ID, money.Must(money.USDT, "5"), exchange.ChainBlock{Number: 9, ID: "nine", Time: time.Unix(1_700_000_000, 0)}
	if _, err = e.store.RecordComparisons(ctx, exchange.ReconciledBatch{RunID: r.ID, Last: w.ID, Unread: 2, Comparisons: []exchange.Comparison{c}}); err == nil {
		r, err = e.store.FinishReconciliation(ctx, r.ID, exchange.ReconciliationCompleted, "")
	}
	if err != nil {
		e.t.Fatal(err)
	}
	return r
}

func TestReconciliationIsRead(t *testing.T) {
	e := start(t)
	w, other := e.wallet(e.person(exchange.RoleCustomer)), e.wallet(e.person(exchange.RoleCustomer))
	officer := e.person(exchange.RoleTreasury)
	run := e.reconcile(w)
	const path = "/api/v1/auth/reconciliation"
	list := func(path, name string) []any {
		t.Helper()
		return e.do(get, path, nil, officer.auth()).want(http.StatusOK).object()[name].([]any)
	}
	all := list(path, "differences")
	if len(all) != 1 {
		t.Fatalf("%d differences", len(all))
	}
	d := all[0].(map[string]any)
	if d["difference"] != "-2.000000" || d["ledger"] != "7.000000" || d["chain"] != "5.000000" || d["status"] != "open" || d["status_detail"] != "operator" ||
		d["wallet_id"] != w.ID.String() || d["network"] != "tron" || d["block"].(map[string]any)["id"] != "nine" {
		t.Errorf("the difference is %v", d)
	}
	for query, want := range map[string]int{
		"?status=open": 1, "?status=closed": 0, "?network=tron": 1, "?network=solana": 0, "?asset=USDT": 1, "?asset=TRX": 0,
		"?wallet_id=" + w.ID.String(): 1, "?wallet_id=" + other.ID.String(): 0, "?page_id=2&page_size=1": 0,
	} {
		if got := list(path+query, "differences"); len(got) != want {
			t.Errorf("%s: %d differences", query, len(got))
		}
	}
	e.do(get, path+"?asset=KES&status=gone&network=bitcoin&wallet_id=1", nil, officer.auth()).
		blames("query/network enum", "query/status enum", "query/asset enum", "query/wallet_id format")

	runs := list(path+"/runs?network=tron&status=completed", "runs")
	if len(runs) != 1 || runs[0].(map[string]any)["differences"] != 1.0 || runs[0].(map[string]any)["deferred"] != 2.0 {
		t.Errorf("the runs are %v", runs)
	}
	if got := list(path+"/runs?status=running", "runs"); len(got) != 0 {
		t.Errorf("running: %v", got)
	}
	items := list(path+"/runs/"+run.ID.String()+"/items", "items")
	if len(items) != 1 || items[0].(map[string]any)["difference_id"] != d["id"] {
		t.Errorf("the items are %v", items)
	}
	e.do(get, path+"/runs/"+uuid.NewString()+"/items", nil, officer.auth()).refused(exchange.CodeNotFound)
	if x := list("/api/v1/auth/payment-exceptions?kind=reconciliation", "payment_exceptions"); len(x) != 1 || x[0].(map[string]any)["id"] != d["payment_exception_id"] {
		t.Errorf("the exceptions are %v", x)
	}
}

func TestReservesAreRead(t *testing.T) {
	e := start(t)
	w := e.wallet(e.person(exchange.RoleCustomer))
	e.fund(w, "7")
	day := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	if _, err := e.store.StartDeposits(t.Context(), exchange.Tron, exchange.ChainBlock{Number: 1, ID: "one"}); err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if i == 1 {
			e.reconcile(w)
		}
		if _, err := e.store.WriteReserves(t.Context(), day.AddDate(0, 0, i)); err != nil {
			t.Fatal(err)
		}
	}
	admin := e.person(exchange.RoleAdmin)
	const path = "/api/v1/auth/reconciliation/reserves"
	read := func(query string) []any {
		t.Helper()
		return e.do(get, path+query, nil, admin.auth()).want(http.StatusOK).object()["reserves"].([]any)
	}
	if got := read("?asset=USDT"); len(got) != 2 || got[0].(map[string]any)["day"] != "2026-11-22" || got[0].(map[string]any)["surplus"] != "-2.000000" ||
		got[0].(map[string]any)["compared_at"] == nil || got[1].(map[string]any)["compared_at"] != nil || got[1].(map[string]any)["surplus"] != "0.000000" {
		t.Errorf("USDT: %v", got)
	}
	if got := read("?from_day=2026-11-21&to_day=2026-11-22"); len(got) != len(money.Assets()) {
		t.Errorf("one day has %d lines", len(got))
	}
	e.do(get, path+"?from_day=yesterday&asset=BTC", nil, admin.auth()).blames("query/asset enum", "query/from_day format")
}
