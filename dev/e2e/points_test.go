package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kivuko/dev/client"
	"kivuko/dev/stack"
)

// trial is one order during which a process kills itself at one point, once.
type trial struct {
	point  string // "before:Broadcast"
	worker string // the queue whose process dies
	tale   tale
	order  order
	told   chan error // the answer to the operator's command, where the tale has one
}

// tale is what happens to the order of a trial, crash or no crash.
type tale struct {
	fault  string // of the operator, on the order's prompt
	verb   string // an operator's command that the trial sends, after the transfer was reverted
	scene  scene  // sets the chain up, with nothing else under way; nil for the most
	wallet bool   // a wallet is made, and no order
	cancel bool   // the prompt can't have been sent, so the customer gives up
	status string
	detail string
	refund bool // all that was collected goes back
}

// scene opens the trial's order, arms the point when the order is where the chain is to play its trick, and plays it.
type scene func(t *testing.T, w *world, tr *trial, arm func())

var (
	lapsed    = tale{scene: lapse, status: "completed"}
	vanished  = tale{scene: vanish, status: "completed"}
	walleted  = tale{wallet: true}
	bought    = tale{status: "completed"}
	silent    = tale{fault: "callback_lost", status: "completed"}
	turned    = tale{fault: "declined", status: "failed", detail: "declined"}
	underpaid = tale{fault: "pays_less", status: "failed", detail: "underpaid", refund: true}
	unsent    = tale{cancel: true, status: "cancelled"}
	redone    = tale{verb: "retry", status: "completed"}
	undone    = tale{verb: "refund", status: "failed", detail: "refund_opened", refund: true}
)

// price of the orders here. What is paid too little goes back, which must be more than the operator's minimum.
const trialPrice = 500

// trials lists the points before and after every side effect. Where the process dies between writing that a
// prompt is to be sent and hearing that it was, nobody may send it again, so that such an order ends unpaid.
func trials() []*trial {
	var all []*trial
	add := func(worker, name string, before, after tale) {
		all = append(all, &trial{point: "before:" + name, worker: worker, tale: before}, &trial{point: "after:" + name, worker: worker, tale: after})
	}
	add("flows", "UseCommand", redone, undone)
	add("flows", "RetryChainPayment", redone, redone)
	add("flows", "RefundOrder", undone, undone)
	all = append(all, &trial{point: "after:RecordExpired", worker: "chain-tron", tale: lapsed})
	add("chain-tron", "RecordVanished", vanished, vanished)
	add("signer-tron", "CreateKey", walleted, walleted)
	add("signer-tron", "CreateWallet", walleted, walleted)
	add("momo", "BeginAttempt", bought, unsent)
	add("momo", "SubmitCollection", unsent, bought)
	add("momo", "RecordSubmission", bought, bought)
	add("momo", "SetOrderDetail", bought, bought)
	add("momo", "Resolve", bought, bought)
	add("momo", "AcceptPayment", bought, bought)
	add("momo", "SaveReceipt", silent, silent)
	add("momo", "RecordFailure", turned, turned)
	add("momo", "BeginRefundPayout", underpaid, underpaid)
	add("momo", "SubmitPayout", underpaid, underpaid)
	add("momo", "RecordPayoutSubmission", underpaid, underpaid)
	add("momo", "CompleteRefund", underpaid, underpaid)
	add("signer-tron", "SignPayment", bought, bought)
	add("signer-tron", "SaveSignedAttempt", bought, bought)
	add("chain-tron", "Broadcast", bought, bought)
	add("chain-tron", "RecordBroadcast", bought, bought)
	add("chain-tron", "Locate", bought, bought)
	add("chain-tron", "RecordIncluded", bought, bought)
	add("chain-tron", "RecordFinal", bought, bought)
	add("flows", "CloseOrder", turned, turned)
	add("flows", "OpenOrder", bought, bought)
	add("flows", "CompleteOrder", bought, bought)
	return all
}

// TestCrashPoints kills the process in charge before and after every side effect. However that falls, every
// order ends as if nothing had happened: collected once, paid out once or not at all, and booked so.
func TestCrashPoints(t *testing.T) {
	w := open(t)
	all := trials()
	w.revert(t, all)
	for _, tr := range all {
		w.crashAt(t, tr)
	}
	if t.Failed() {
		return
	}
	// Temporal learns of a dead process by its time limits, of up to two minutes. Other tests run meanwhile.
	t.Parallel()
	for _, tr := range all {
		t.Run(strings.ReplaceAll(tr.point, ":", " "), func(t *testing.T) { w.judge(t, tr) })
	}
	w.invariants(t)
	w.agree(t)
}

// revert opens the orders whose transfers fail on the chain, and waits until they ask for an operator.
func (w *world) revert(t *testing.T, all []*trial) {
	t.Helper()
	var parked []*trial
	for _, tr := range all {
		if tr.tale.verb != "" {
			parked = append(parked, tr)
		}
	}
	w.mend(t)
	w.tron(t, "/faults", map[string]any{"fail_next": len(parked), "fail_with": "REVERT"})
	for _, tr := range parked {
		tr.order = w.buy(t, purchase{fiat: fmt.Sprint(trialPrice)})
	}
	for _, tr := range parked {
		w.until(t, tr.order.ID, "parked", detail("operator"))
	}
	w.tron(t, "/reset", nil)
}

// crashAt arms a point, sends an order its way, and restarts the process that died there.
func (w *world) crashAt(t *testing.T, tr *trial) {
	t.Helper()
	armed := filepath.Join(w.crash, tr.point)
	arm := func() {
		if err := os.WriteFile(armed, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if tr.tale.scene == nil {
		arm()
	}
	switch {
	case tr.tale.scene != nil:
		tr.tale.scene(t, w, tr, arm)
	case tr.tale.verb != "":
		w.command(t, tr)
	case tr.tale.wallet:
		w.makeWallet(t, tr)
	default:
		tr.order = w.buyWith(t, tr.tale.fault)
	}
	err := await(t.Context(), patience, func() error {
		if _, err := os.Stat(armed); !errors.Is(err, fs.ErrNotExist) {
			return errors.New("it was not reached")
		}
		return nil
	})
	if err != nil {
		t.Errorf("point %s: %v", tr.point, err)
		_ = os.Remove(armed)
		return
	}
	if tr.tale.scene != nil {
		w.tron(t, "/reset", nil)
	}
	// The supervisor would restart it too, after a pause that grows with every death.
	if err := w.stack.Supervisor.Child(stack.ProcessWorker(tr.worker)).Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// lapse drops all transactions until the order's one is proven impossible.
func lapse(t *testing.T, w *world, tr *trial, arm func()) {
	w.tron(t, "/faults", map[string]any{"drop_next": 1000})
	tr.order = w.buy(t, purchase{fiat: fmt.Sprint(trialPrice)})
	w.until(t, tr.order.ID, "confirming", confirming)
	arm()
	w.tron(t, "/time", map[string]any{"advance_ms": timeStep.Milliseconds()})
}

// vanish takes the order's transaction out of the chain.
func vanish(t *testing.T, w *world, tr *trial, arm func()) {
	tr.order = w.buy(t, purchase{fiat: fmt.Sprint(trialPrice)})
	w.attemptsAre(t, tr.order.ID, "included")
	arm()
	w.takeAway(t, tr.order)
}

// makeWallet asks for another wallet of the customer, again with the same key until it is there.
func (w *world) makeWallet(t *testing.T, tr *trial) {
	t.Helper()
	c, err := w.login(t.Context(), stack.AdminEmail, stack.AdminPassword)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]any{"user_id": w.customer, "network": "tron", "asset": "USDT", "label": tr.point}
	tr.told = make(chan error, 1)
	go func() {
		tr.told <- insist(t.Context(), c, "/api/v1/auth/wallets", "wallet-"+tr.point, in)
	}()
}

// insist repeats a request with its key until it is answered.
func insist(ctx context.Context, c *client.Client, path, key string, in any) error {
	var final error
	err := await(ctx, 2*patience, func() error {
		err := c.Post(ctx, path, key, in, nil)
		if passing(err) {
			return err
		}
		final = err
		return nil
	})
	return errors.Join(err, final)
}

// buyWith opens an order whose prompt meets a fault. The answer may come only after a crash, so it is not
// waited for longer than a client would, and asked for again with the same key.
func (w *world) buyWith(t *testing.T, fault string) order {
	t.Helper()
	phone := newPhone()
	if fault != "" {
		w.fault(t, fault, "prompt", phone)
	}
	return w.buy(t, purchase{fiat: fmt.Sprint(trialPrice), phone: phone})
}

// command sends the operator's decision beside the test: its answer comes after the crash.
func (w *world) command(t *testing.T, tr *trial) {
	t.Helper()
	operator, key := w.operator(t), tr.order.ID.String()
	tr.told = make(chan error, 1)
	in := map[string]string{"note": "crash trial"}
	go func() {
		tr.told <- insist(t.Context(), operator, "/api/v1/auth/orders/"+tr.order.ID.String()+"/"+tr.tale.verb, key, in)
	}()
}

// judge waits for the order's end and compares it with what the operator and the chain recorded.
func (w *world) judge(t *testing.T, tr *trial) {
	const recovery = 4 * time.Minute
	if tr.told != nil {
		if err := <-tr.told; err != nil {
			t.Error(err)
		}
	}
	if tr.tale.wallet {
		var n int
		err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM wallets WHERE label = $1`, tr.point).Scan(&n)
		if err != nil || n != 1 {
			t.Errorf("one request made %d wallets: %v", n, err)
		}
		return
	}
	if tr.tale.cancel {
		w.untilFor(t, tr.order.ID, "of unknown outcome", recovery, detail("outcome"))
		w.tell(t, w.amina(t), tr.order.ID, "cancel", nil)
	}
	o := w.untilFor(t, tr.order.ID, "over", recovery, order.over)
	if o.Status != tr.tale.status || (tr.tale.detail != "" && o.StatusDetail != tr.tale.detail) {
		t.Fatalf("it ended %s, not %s/%s", o, tr.tale.status, tr.tale.detail)
	}
	b := w.books(t)
	if n := len(prompted(b, o.ID)); n > 1 {
		t.Errorf("the payer was prompted %d times", n)
	}
	if o.Status == "completed" {
		w.paidOnce(t, b, o)
		return
	}
	w.notPaidOut(t, o)
	effects := collected(b, o.ID)
	switch {
	case !tr.tale.refund && len(effects) != 0:
		t.Errorf("nothing should have been collected: %+v", effects)
	case tr.tale.refund && len(effects) != 1:
		t.Errorf("it was collected %d times: %+v", len(effects), effects)
	case tr.tale.refund:
		w.refunded(t, o, effects[0].Amount)
	}
}
