package e2e

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/demo"
	"kivuko/exchange"
)

// withdrawalRows are those with withdrawals at the desk. The crypto is sold and bought on TRON.
func withdrawalRows() []row {
	return []row{
		{"OpenWithdrawal/*/*", "flows", always(withdrawalScenario{begin: withdrawalOpened, end: withdrawalOpenedOnce})},
		{"ScreenWithdrawal/*/*", "flows", always(withdrawalScenario{begin: withdrawalScreened, end: withdrawalOpenedOnce})},
		{"DecideWithdrawal/*/*", "flows", always(withdrawalScenario{begin: withdrawalApproved, end: withdrawalPaidOnce})},
		{"StepWithdrawal/*/*", "flows", always(withdrawalScenario{begin: withdrawalExecuted, end: withdrawalPaidOnce})},
		{"LookAtWithdrawal/*/*", "flows", always(withdrawalScenario{begin: withdrawalExecuted, end: withdrawalPaidOnce})},
		{"SellWithdrawal/*/*", "flows", always(withdrawalScenario{begin: withdrawalSold, end: withdrawalPaidOnce})},
		{"ReserveAtBank/*/*", "flows", always(withdrawalScenario{begin: withdrawalAtABank, end: withdrawalReservedOnce})},
		{"FollowWithdrawalTransfer/*/*", "flows", always(withdrawalScenario{begin: withdrawalBought, end: withdrawalBoughtOnce})},
	}
}

// withdrawalScenario is the scenario of a withdrawal.
type withdrawalScenario struct {
	begin transferScene
	end   func(t *testing.T, w *harness, tr *trial)
}

func (b withdrawalScenario) play(t *testing.T, w *harness, tr *trial, arm func()) {
	t.Helper()
	b.begin(t, w, tr, arm)
}

func (b withdrawalScenario) judge(t *testing.T, w *harness, tr *trial) {
	t.Helper()
	tr.answered(t)
	b.end(t, w, tr)
}

// withdrawalOpened requests a withdrawal while the process dies.
func withdrawalOpened(t *testing.T, w *harness, tr *trial, arm func()) {
	depositedShillings(t, w)
	in := shillings(w.phonePlace(t), "100")
	arm()
	tr.background(t, w.as(t, demo.VendorEmail), withdrawalsPath, "withdrawal-"+tr.point, in, &tr.taken)
}

// withdrawalScreened requests one whose address is screened.
func withdrawalScreened(t *testing.T, w *harness, tr *trial, arm func()) {
	w.rate(t)
	depositedShillings(t, w)
	in := w.buysCrypto(t)
	arm()
	tr.background(t, w.as(t, demo.VendorEmail), withdrawalsPath, "withdrawal-"+tr.point, in, &tr.taken)
}

// buysCrypto is a request for crypto of the treasury.
func (w *harness) buysCrypto(t *testing.T) map[string]any {
	t.Helper()
	to := w.place(t, map[string]any{"kind": "address", "network": w.tronNode().Network, "address": newAddress(t)})
	return map[string]any{
		"destination_id": to, "source_asset": "KES", "payout_asset": "USDT",
		"fx_rate_quote_id": w.deskQuote(t, map[string]any{"offer_type": "SELL", "amount": "3", "method": "chain"}),
	}
}

func withdrawalOpenedOnce(t *testing.T, w *harness, tr *trial) {
	w.withdrawalIsNow(t, tr.taken.ID, "pending_approval")
	var n int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM holds WHERE object_type = 'otc_withdrawal' AND object_id = $1 AND status = 'held'`, tr.taken.ID).Scan(&n)
	if err != nil || n != 1 {
		t.Errorf("one request holds money %d times: %v", n, err)
	}
	path := withdrawalsPath + "/" + tr.taken.ID.String() + "/cancel"
	if err := insist(t.Context(), w.as(t, demo.VendorEmail), path, uuid.NewString(), map[string]any{}, nil); err != nil {
		t.Fatal(err)
	}
}

// withdrawalApproved has the last officer approve while the process dies.
func withdrawalApproved(t *testing.T, w *harness, tr *trial, arm func()) {
	depositedShillings(t, w)
	tr.taken = w.takesOut(t, shillings(w.phonePlace(t), "100"))
	w.withdrawalIsNow(t, tr.taken.ID, "pending_approval")
	path := withdrawalsPath + "/" + tr.taken.ID.String()
	if err := w.admin(t).Decide(t.Context(), path+"/approve", uuid.NewString(), nil, nil); err != nil {
		t.Fatal(err)
	}
	in := seen(t, w.operator(t), path+"/approve")
	arm()
	tr.background(t, w.operator(t), path+"/approve", uuid.NewString(), in, nil)
	tr.answered(t)
	w.lets(t, tr)
}

// lets has the third officer execute an approved withdrawal.
func (w *harness) lets(t *testing.T, tr *trial) {
	t.Helper()
	path := withdrawalsPath + "/" + tr.taken.ID.String() + "/execute"
	tr.background(t, w.as(t, secondOfficer), path, uuid.NewString(), map[string]any{}, nil)
}

// withdrawalExecuted has an officer execute a withdrawal while the process dies.
func withdrawalExecuted(t *testing.T, w *harness, tr *trial, arm func()) {
	depositedShillings(t, w)
	tr.taken = w.takesOut(t, shillings(w.phonePlace(t), "100"))
	w.twoApprove(t, tr.taken)
	arm()
	w.lets(t, tr)
}

func withdrawalPaidOnce(t *testing.T, w *harness, tr *trial) {
	o := w.withdrawalIsNow(t, tr.taken.ID, "completed")
	w.takenOnce(t, o, o.Payout)
}

// withdrawalSold sells crypto while the process dies.
func withdrawalSold(t *testing.T, w *harness, tr *trial, arm func()) {
	w.rate(t)
	from := w.walletOf(t, demo.VendorEmail, exchange.Tron)
	q := w.deskQuote(t, map[string]any{"offer_type": "BUY", "amount": "3", "method": "momo"})
	tr.taken = w.takesOut(t, map[string]any{
		"destination_id": w.phonePlace(t), "source_asset": "USDT", "payout_asset": "KES", "source_wallet_id": from.ID, "fx_rate_quote_id": q,
	})
	w.twoApprove(t, tr.taken)
	arm()
	w.lets(t, tr)
}

// withdrawalAtABank reserves money at a bank while the process dies.
func withdrawalAtABank(t *testing.T, w *harness, tr *trial, arm func()) {
	depositedShillings(t, w)
	tr.taken = w.takesOut(t, shillings(w.bankPlace(t), "100"))
	w.twoApprove(t, tr.taken)
	arm()
	w.lets(t, tr)
}

func withdrawalReservedOnce(t *testing.T, w *harness, tr *trial) {
	w.withdrawalIsNow(t, tr.taken.ID, "confirming")
	var n int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM holds h JOIN ledger_accounts a ON a.id = h.account_id
		WHERE h.object_id = $1 AND h.status = 'held' AND a.kind = 'bank'`, tr.taken.ID).Scan(&n)
	if err != nil || n != 1 {
		t.Errorf("%d reservations at a bank: %v", n, err)
	}
	path := withdrawalsPath + "/" + tr.taken.ID.String() + "/confirm-bank-payout"
	word := bankConfirmation(newReference(), 100)
	if err := insist(t.Context(), w.operator(t), path, uuid.NewString(), word, nil); err != nil {
		t.Fatal(err)
	}
	w.withdrawalIsNow(t, tr.taken.ID, "completed")
}

// withdrawalBought buys crypto while the process dies.
func withdrawalBought(t *testing.T, w *harness, tr *trial, arm func()) {
	w.rate(t)
	depositedShillings(t, w)
	tr.taken = w.takesOut(t, w.buysCrypto(t))
	w.twoApprove(t, tr.taken)
	arm()
	w.lets(t, tr)
}

func withdrawalBoughtOnce(t *testing.T, w *harness, tr *trial) {
	o := w.withdrawalIsNow(t, tr.taken.ID, "completed")
	var n int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM transfers f JOIN intents i ON i.object_id = f.id JOIN otc_withdrawals o ON o.transfer_intent_id = i.id WHERE o.id = $1`, o.ID).Scan(&n)
	if err != nil || n != 1 {
		t.Errorf("%d transfers pay one withdrawal: %v", n, err)
	}
}
