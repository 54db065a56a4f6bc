package e2e

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/demo"
	"kivuko/workflows"
)

// otcRows are those with deposits at the desk. The crypto comes on TRON.
func otcRows() []row {
	return []row{
		{"OpenOTC/*/*", "flows", always(otcScenario{begin: otcOpened, end: otcOpenedOnce})},
		{"StepOTC/*/*", "flows", always(otcScenario{begin: otcSettled, end: otcCreditedOnce})},
		{"FollowTransfer/*/*", "flows", always(otcScenario{begin: otcTransferred, end: otcSoldOnce})},
		{"CreditOTC/*/*", "flows", always(otcScenario{begin: otcPrompted, end: otcPromptedOnce})},
		{"PromptPayer/SetCollectionDetail#1/*", "momo", always(otcScenario{begin: otcPrompted, end: otcPromptedOnce})},
		{"AwaitPayer/*/*", "momo", always(otcScenario{begin: otcAwaited, end: otcPaidByHandOnce})},
		{"StopAwaiting/*/*", "momo", always(otcScenario{begin: otcGivenUp, end: otcAwaitedNoLonger})},
		{"TakeNamed/*/*", "momo", always(otcScenario{begin: otcNamed, end: otcNamedOnce})},
	}
}

// otcScenario is the scenario of a deposit at the desk.
type otcScenario struct {
	begin transferScene
	end   func(t *testing.T, w *harness, tr *trial)
}

func (b otcScenario) play(t *testing.T, w *harness, tr *trial, arm func()) {
	t.Helper()
	b.begin(t, w, tr, arm)
}

func (b otcScenario) judge(t *testing.T, w *harness, tr *trial) {
	t.Helper()
	tr.answered(t)
	b.end(t, w, tr)
}

// otcOpened opens a deposit while the process dies.
func otcOpened(t *testing.T, w *harness, tr *trial, arm func()) {
	arm()
	in := map[string]any{"method": "bank", "requested_asset": "KES", "fiat_amount": "100", "sender_bank_branch": tr.point}
	tr.background(t, w.as(t, demo.VendorEmail), otcPath, "deposit-"+tr.point, in, &tr.desk)
}

func otcOpenedOnce(t *testing.T, w *harness, tr *trial) {
	var n int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM otc_deposits WHERE sender_bank_branch = $1 AND status = 'pending'`, tr.point).Scan(&n)
	if err != nil || n != 1 {
		t.Errorf("one request made %d deposits: %v", n, err)
	}
	w.at(t, w.as(t, demo.VendorEmail), tr.desk, "cancel", map[string]any{"reason": "crash trial"})
}

// otcSettled settles a deposit of shillings while the process dies.
func otcSettled(t *testing.T, w *harness, tr *trial, arm func()) {
	tr.desk = w.payIntoDesk(t, otcPath, map[string]any{"requested_asset": "KES", "fiat_amount": "150"})
	tr.desk = w.reviewed(t, tr.desk, "150")
	arm()
	tr.background(t, w.operator(t), otcPath+"/"+tr.desk.ID.String()+"/settle", uuid.NewString(), map[string]any{}, &tr.desk)
}

func otcCreditedOnce(t *testing.T, w *harness, tr *trial) {
	w.depositIs(t, tr.desk.ID, "is credited", func(d otcDeposit) bool { return d.Status == "credited" })
	if lines := w.lines(t, "otc_deposit:"+tr.desk.ID.String()+":settled"); !equalAmounts(lines, map[string]string{"orders_in_flight": "150.00", "fiat_balance": "150.00"}) {
		t.Errorf("it is booked as %v", lines)
	}
	w.at(t, w.admin(t), tr.desk, "audit", nil)
}

// otcTransferred settles a deposit of crypto while the process dies.
func otcTransferred(t *testing.T, w *harness, tr *trial, arm func()) {
	w.rate(t)
	tr.desk = w.payIntoDesk(t, otcPath, map[string]any{"requested_asset": "USDT", "requested_network": w.tronNode().Network, "fiat_amount": "1300"})
	tr.desk = w.reviewed(t, tr.desk, "1300")
	arm()
	tr.background(t, w.operator(t), otcPath+"/"+tr.desk.ID.String()+"/settle", uuid.NewString(), map[string]any{}, &tr.desk)
}

func otcSoldOnce(t *testing.T, w *harness, tr *trial) {
	d := w.sold(t, tr.desk)
	var n int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM transfers f JOIN intents i ON i.object_id = f.id JOIN otc_deposits d ON d.transfer_intent_id = i.id WHERE d.id = $1`, d.ID).Scan(&n)
	if err != nil || n != 1 {
		t.Errorf("%d transfers pay one deposit: %v", n, err)
	}
	w.at(t, w.admin(t), d, "audit", nil)
}

// The shillings of the trials by mobile money.
const (
	promptedShillings = 160
	byHandShillings   = 170
	namedShillings    = 180
)

// otcPrompted opens a deposit whose merchant pays the prompt, while the process dies.
func otcPrompted(t *testing.T, w *harness, tr *trial, arm func()) {
	arm()
	tr.background(t, w.as(t, demo.VendorEmail), otcPath, "deposit-"+tr.point, byMomo(promptedShillings, newPhone()), &tr.desk)
}

func otcPromptedOnce(t *testing.T, w *harness, tr *trial) {
	d := w.creditedOnce(t, tr.desk.ID, promptedShillings)
	if n := w.promptsFor(t, d); n != 1 {
		t.Errorf("the merchant was prompted %d times", n)
	}
	w.at(t, w.admin(t), d, "audit", nil)
}

// otcAwaited opens a deposit that is paid to our number, while the process dies that waits for it.
func otcAwaited(t *testing.T, w *harness, tr *trial, arm func()) {
	arm()
	tr.background(t, w.as(t, demo.VendorEmail), otcPath, "deposit-"+tr.point, byC2B(byHandShillings), &tr.desk)
}

func otcPaidByHandOnce(t *testing.T, w *harness, tr *trial) {
	eventually(t, "the payment is awaited", func() error { return w.attemptIs(t, tr.desk, "accepted") })
	w.paysByHand(t, tr.desk.Reference, byHandShillings)
	w.readStatement(t)
	w.at(t, w.admin(t), w.creditedOnce(t, tr.desk.ID, byHandShillings), "audit", nil)
}

// otcGivenUp gives a deposit up that could be paid to our number, while the process dies.
func otcGivenUp(t *testing.T, w *harness, tr *trial, arm func()) {
	tr.desk = w.payIntoDesk(t, otcPath, byC2B(byHandShillings))
	eventually(t, "the payment is awaited", func() error { return w.attemptIs(t, tr.desk, "accepted") })
	arm()
	in := map[string]any{"reason": "crash trial"}
	tr.background(t, w.as(t, demo.VendorEmail), otcPath+"/"+tr.desk.ID.String()+"/cancel", uuid.NewString(), in, &tr.desk)
}

func otcAwaitedNoLonger(t *testing.T, w *harness, tr *trial) {
	eventually(t, "the payment is awaited no longer", func() error { return w.attemptIs(t, tr.desk, "failed") })
	w.notCredited(t, w.depositIs(t, tr.desk.ID, "is given up", func(d otcDeposit) bool { return d.Status == "cancelled" }))
}

// otcNamed has an officer name a payment under another reference, while the process dies.
func otcNamed(t *testing.T, w *harness, tr *trial, arm func()) {
	tr.desk = w.payIntoDesk(t, otcPath, byC2B(namedShillings))
	eventually(t, "the payment is awaited", func() error { return w.attemptIs(t, tr.desk, "accepted") })
	stray := w.strayFor(t, namedShillings)
	w.over(t, workflows.TypeReconcilePayments)
	arm()
	tr.background(t, w.as(t, demo.DeskEmail), matchPath(stray), uuid.NewString(), map[string]any{"otc_deposit_id": tr.desk.ID}, nil)
}

func otcNamedOnce(t *testing.T, w *harness, tr *trial) {
	w.at(t, w.admin(t), w.creditedOnce(t, tr.desk.ID, namedShillings), "audit", nil)
}
