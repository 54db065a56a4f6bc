package e2e

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	api "kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// transferTale is the tale of a transfer out of our custody, on Ethereum where nothing else is said.
type transferTale struct {
	on     exchange.Network
	begin  transferScene
	then   func(t *testing.T, w *world, tr *trial) // what a person has to do for its end
	after  func(t *testing.T, w *world, tr *trial) // as soon as the process is back
	status string
}

// transferScene opens the trial's transfer and arms the point where it belongs.
type transferScene func(t *testing.T, w *world, tr *trial, arm func())

// What the transfers of trials send. The rule of the lane wants one officer's decision for the large ones.
const (
	small     = "1.5"
	large     = "10"
	ruleOne   = "1000"    // in shillings, which the small are below and the large above
	ruleTwo   = "5000000" // nothing of the lane is above
	seededOne = "200000"  // as the migrations have it
)

// transferRows are those with transfers and deposits. Those whose transfers are to fail come first, when no other transfer can
// be hit; the deposits come last, because they stop the chain.
func transferRows() []row {
	sent := always(transferTale{begin: plain, status: "completed"})
	return slices.Concat([]row{
		{"GiveUpTransfer/*/*", "flows", always(transferTale{begin: givenUp, status: "failed"})},
		{"SignPayment/ParkChainPayment#?/*", "signer-ethereum", always(transferTale{begin: toBlocked, then: unblock, status: "completed"})},
		{"ApproveTopUp/*/*", "chain-ethereum", always(transferTale{begin: withoutGas, after: watchOn, then: gotGasOnce, status: "completed"})},
		{"DraftColdPayment/*/*", "chain-ethereum", always(transferTale{begin: coldAsked, after: watchOn, then: signElsewhere, status: "completed"})},
		{"ImportColdPayment/*/*", "chain-ethereum", always(transferTale{begin: coldBrought, after: watchOn, status: "completed"})},
		{"CloseColdPayment/*/*", "chain-ethereum", always(transferTale{begin: coldOvertaken, after: watchOn, status: "cancelled"})},
		{"MarkTransfer/*/*", "flows", always(transferTale{begin: unscreened, then: screenedNow, status: "completed"})},
		{"OpenTransfer/*/*", "flows", sent},
		{"AdvanceTransfer/*/*", "flows", sent},
		{"ScreenTransfer/*/*", "flows", sent},
		{"HandToSigner/*/*", "flows", sent},
		{"DecideTransfer/*/*", "flows", always(transferTale{begin: decided, then: countedOnce, status: "completed"})},
		{"RecordRefusedDecision/*/*", "flows", always(transferTale{begin: pretended, then: decideNow, status: "completed"})},
		{"CancelTransfer/*/*", "flows", always(transferTale{begin: withdrawn, status: "cancelled"})},
		{"LapseTransfer/*/*", "flows", always(transferTale{begin: lapsed, then: wake, status: "cancelled"})},
		{"OutbidPayment/*/*", "signer-ethereum", always(transferTale{begin: stuck, after: outbidSoon, status: "completed"})},
	}, depositRows())
}

// solanaRows are those with what only happens on Solana. They go in Ethereum's lane, since both have cold wallets.
func solanaRows() []row {
	brought := transferTale{on: exchange.Solana, begin: coldBrought, status: "completed"}
	carried, asked, withdrawn := brought, brought, brought
	carried.after = watchOn
	asked.begin, asked.after, asked.then = coldAsked, watchOn, signElsewhere
	withdrawn.begin, withdrawn.after, withdrawn.status = coldWithdrawn, watchOn, "cancelled"
	return []row{
		{"DraftColdPayment/ApproveNonceAccount#?/*", "chain-solana", always(asked)},
		{"ImportColdPayment/SaveColdPart#?/*", "chain-solana", always(carried)},
		{"CompleteColdPayment/*/*", "signer-solana", always(brought)},
		{"CloseColdPayment/WithdrawColdDraft#?/*", "chain-solana", always(withdrawn)},
	}
}

// node is that of the network on which the trial plays.
func (tr *trial) node(w *world) demo.Node {
	if b, ok := tr.tale.(transferTale); ok && b.on == exchange.Solana {
		return demo.Node{Network: b.on, Control: "http://" + w.stack.Addresses.SolanaControl}
	}
	return w.ethereum()
}

func (w *world) ethereum() demo.Node {
	return demo.Node{Network: exchange.Ethereum, Control: "http://" + w.stack.Addresses.EthereumControl}
}

// approvalRule says above which values one and two officers decide, in shillings. To ask for fewer decisions takes a
// second person.
func (w *world) approvalRule(t *testing.T, one, two string) {
	t.Helper()
	w.houseLimits(t, map[string]any{"approvals": map[string]any{"transfer": map[string]any{"one_above": one, "two_above": two}}})
}

// houseLimits patches what the house allows, and has a second person confirm what waits for one.
func (w *world) houseLimits(t *testing.T, in map[string]any) {
	t.Helper()
	admin, err := w.login(t.Context(), stack.AdminEmail, stack.AdminPassword)
	if err != nil {
		t.Fatal(err)
	}
	var waits struct {
		Changes []struct {
			ID uuid.UUID `json:"id"`
		} `json:"changes"`
	}
	if err := admin.Do(t.Context(), http.MethodPatch, "/api/v1/auth/limits", "", in, &waits); err != nil {
		t.Fatal(err)
	}
	for _, c := range waits.Changes {
		path := "/api/v1/auth/approvals/changes/" + c.ID.String() + "/confirm"
		if err := insist(t.Context(), w.operator(t), path, uuid.NewString(), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func (b transferTale) play(t *testing.T, w *world, tr *trial, arm func()) {
	t.Helper()
	b.begin(t, w, tr, arm)
}

func (b transferTale) restarted(t *testing.T, w *world, tr *trial) {
	t.Helper()
	if b.after != nil {
		b.after(t, w, tr)
		return
	}
	post(t, tr.node(w), "/reset", nil)
}

func (b transferTale) judge(t *testing.T, w *world, tr *trial) {
	t.Helper()
	tr.answered(t)
	if b.then != nil {
		b.then(t, w, tr)
	}
	f := w.transferIs(t, tr, b.status)
	if b.status == "completed" {
		cameOnce(t, tr.node(w), tr.address, f.TxHash, tr.amount)
	}
	changes, err := tr.node(w).Changes(t.Context(), tr.address)
	if want := map[bool]int{true: 1}[b.status == "completed"]; err != nil || len(changes) != want {
		t.Errorf("a transfer that is %s moved %+v: %v", f.Status, changes, err)
	}
	var held int
	err = w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM holds WHERE object_id = $1 AND status = 'held' AND amount > 0`, f.ID).Scan(&held)
	if err != nil || held != 0 {
		t.Errorf("a transfer that is %s has %d holds: %v", f.Status, held, err)
	}
}

// transferIs waits for a trial's transfer to have a status.
func (w *world) transferIs(t *testing.T, tr *trial, status string) sent {
	t.Helper()
	var f sent
	err := await(t.Context(), recovery, func() error {
		if err := w.operator(t).Get(t.Context(), "/api/v1/auth/transfers/"+tr.transfer.ID.String(), &f); err != nil {
			return err
		}
		if f.Status != status {
			return fmt.Errorf("it is %s (%s)", f.Status, f.Detail)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("transfer %s should be %s: %v", tr.transfer.ID, status, err)
	}
	return f
}

// waits waits for a trial's transfer to wait for something.
func (w *world) waits(t *testing.T, tr *trial, what string) {
	t.Helper()
	var f sent
	err := await(t.Context(), recovery, func() error {
		if err := w.operator(t).Get(t.Context(), "/api/v1/auth/transfers/"+tr.transfer.ID.String(), &f); err != nil {
			return err
		}
		if f.Detail != what {
			return fmt.Errorf("it is %s (%s)", f.Status, f.Detail)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("transfer %s should wait for %s: %v", tr.transfer.ID, what, err)
	}
}

// sendFor opens the trial's transfer to a stranger, from the vendor's wallet or a given one.
func (w *world) sendFor(t *testing.T, tr *trial, c *api.Client, m money.Amount, from uuid.UUID) {
	t.Helper()
	to, err := stranger(tr.node(w).Network)
	if err != nil {
		t.Fatal(err)
	}
	w.sendTo(t, tr, c, m, from, to)
}

func (w *world) sendTo(t *testing.T, tr *trial, c *api.Client, m money.Amount, from uuid.UUID, to string) {
	t.Helper()
	tr.address, tr.amount = to, m
	in := map[string]any{"network": tr.node(w).Network, "asset": m.Asset(), "amount": m.String(), "recipient": map[string]any{"address": to}}
	if from != uuid.Nil {
		in["from_wallet_id"] = from
	}
	if err := insist(t.Context(), c, "/api/v1/auth/transfers", uuid.NewString(), in, &tr.transfer); err != nil {
		t.Fatal(err)
	}
}

// pays opens a transfer of the vendor's.
func (w *world) pays(t *testing.T, tr *trial, amount string) {
	t.Helper()
	w.sendFor(t, tr, w.as(t, demo.VendorEmail), money.Must(money.USDT, amount), uuid.Nil)
}

// verb sends a command about the trial's transfer beside the test.
func (tr *trial) verb(t *testing.T, c *api.Client, verb string, in any) {
	t.Helper()
	tr.background(t, c, "/api/v1/auth/transfers/"+tr.transfer.ID.String()+"/"+verb, uuid.NewString(), in, nil)
}

// plain is a transfer that nobody has to decide about.
func plain(t *testing.T, w *world, tr *trial, arm func()) {
	arm()
	w.pays(t, tr, small)
}

// unscreened pays somebody of whom the screening service does not know what to say.
func unscreened(t *testing.T, w *world, tr *trial, arm func()) {
	to, err := stranger(exchange.Ethereum)
	if err != nil {
		t.Fatal(err)
	}
	w.screening.say(to, exchange.VerdictUnknown)
	arm()
	w.sendTo(t, tr, w.as(t, demo.VendorEmail), money.Must(money.USDT, small), uuid.Nil, to)
}

func screenedNow(t *testing.T, w *world, tr *trial) {
	w.waits(t, tr, exchange.WaitOperator)
	w.parked(t, workflows.TransferID(tr.transfer.ID))
	w.screening.say(tr.address, exchange.VerdictClear)
	tr.verb(t, w.operator(t), "retry", nil)
	tr.answered(t)
}

// givenUp has an operator give a failed transfer's money back.
func givenUp(t *testing.T, w *world, tr *trial, arm func()) {
	post(t, w.ethereum(), "/faults", map[string]any{"fail_next": 1})
	w.pays(t, tr, small)
	w.waits(t, tr, exchange.WaitOperator)
	w.parked(t, workflows.TransferID(tr.transfer.ID))
	post(t, w.ethereum(), "/reset", nil)
	arm()
	tr.verb(t, w.operator(t), "refund", map[string]any{"note": "crash trial"})
}

// toBlocked pays somebody whom the token's issuer has blocked: no transaction can be built.
func toBlocked(t *testing.T, w *world, tr *trial, arm func()) {
	to, err := stranger(exchange.Ethereum)
	if err != nil {
		t.Fatal(err)
	}
	post(t, w.ethereum(), "/token/block", map[string]any{"token": "USDC", "address": to, "blocked": true})
	arm()
	w.sendTo(t, tr, w.as(t, demo.VendorEmail), money.Must(money.USDC, small), uuid.Nil, to)
}

func unblock(t *testing.T, w *world, tr *trial) {
	w.waits(t, tr, exchange.WaitOperator)
	w.parked(t, workflows.TransferID(tr.transfer.ID))
	post(t, w.ethereum(), "/token/block", map[string]any{"token": "USDC", "address": tr.address, "blocked": false})
	tr.verb(t, w.operator(t), "retry", nil)
	tr.answered(t)
}

// watchOn lets the watch over deposits go on, which the process that died had in hand.
func watchOn(t *testing.T, w *world, tr *trial) {
	w.hasten(t, workflows.DepositWatchID(tr.node(w).Network))
}

// withoutGas sends from a wallet that has no coin for the fee.
func withoutGas(t *testing.T, w *world, tr *trial, arm func()) {
	wallet := w.fundedWallet(t, exchange.Ethereum, demo.SecondEmail, exchange.Hot, money.Must(money.USDT, "5"))
	arm()
	w.sendFor(t, tr, w.as(t, demo.SecondEmail), money.Must(money.USDT, small), wallet.ID)
}

func gotGasOnce(t *testing.T, w *world, tr *trial) {
	w.transferIs(t, tr, "completed")
	var n int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM chain_payments g JOIN chain_payments p ON p.id = g.object_id
		WHERE g.purpose = 'gas' AND g.status = 'completed' AND p.purpose = 'transfer' AND p.object_id = $1`, tr.transfer.ID).Scan(&n)
	if err != nil || n != 1 {
		t.Errorf("the payment got gas %d times: %v", n, err)
	}
}

// pending opens a transfer about which an officer has to decide.
func (w *world) pending(t *testing.T, tr *trial) {
	t.Helper()
	w.approvalRule(t, ruleOne, ruleTwo)
	defer w.approvalRule(t, seededOne, ruleTwo)
	w.pays(t, tr, large)
	w.transferIs(t, tr, "pending_approval")
}

// decided has an officer agree.
func decided(t *testing.T, w *world, tr *trial, arm func()) {
	w.pending(t, tr)
	arm()
	tr.verb(t, w.operator(t), "approve", map[string]any{})
}

func countedOnce(t *testing.T, w *world, tr *trial) {
	if f := w.transferIs(t, tr, "completed"); f.Given != 1 || f.Required != 1 {
		t.Errorf("%d of %d decisions were counted", f.Given, f.Required)
	}
}

// pretended has somebody decide without a right to.
func pretended(t *testing.T, w *world, tr *trial, arm func()) {
	w.pending(t, tr)
	arm()
	in := map[string]any{"token": "made up"}
	if err := w.temporal.SignalWorkflow(t.Context(), workflows.TransferID(tr.transfer.ID), "", workflows.SignalApprove, in); err != nil {
		t.Fatal(err)
	}
}

func decideNow(t *testing.T, w *world, tr *trial) {
	w.refusals(t, tr.transfer.ID, 1)
	if f := w.transferIs(t, tr, "pending_approval"); f.Given != 0 {
		t.Errorf("%d decisions were counted", f.Given)
	}
	tr.verb(t, w.operator(t), "approve", map[string]any{})
	tr.answered(t)
}

// withdrawn has the sender give the transfer up.
func withdrawn(t *testing.T, w *world, tr *trial, arm func()) {
	w.pending(t, tr)
	arm()
	tr.verb(t, w.as(t, demo.VendorEmail), "cancel", nil)
}

// lapsed lets the time for a decision be over. Nobody can wait that long, so the step of that day is asked for
// by a flow of the test's own.
func lapsed(t *testing.T, w *world, tr *trial, arm func()) {
	w.pending(t, tr)
	arm()
	const queue, flow = "e2e", "lapse"
	own := sdk.New(w.temporal, queue, sdk.Options{})
	own.RegisterWorkflowWithOptions(func(ctx workflow.Context, in activities.TransferInput) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{TaskQueue: workflows.QueueFlows, StartToCloseTimeout: 10 * time.Second})
		return workflow.ExecuteActivity(ctx, "LapseTransfer", in).Get(ctx, nil)
	}, workflow.RegisterOptions{Name: flow})
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	run, err := w.temporal.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{TaskQueue: queue}, flow, activities.TransferInput{TransferID: tr.transfer.ID})
	if err != nil {
		t.Fatal(err)
	}
	tr.told = make(chan error, 1)
	ctx := context.WithoutCancel(t.Context())
	go func() {
		defer own.Stop()
		ctx, cancel := context.WithTimeout(ctx, recovery)
		defer cancel()
		tr.told <- run.Get(ctx, nil)
	}()
}

// wake tells the transfer's own flow, which sleeps for days yet.
func wake(t *testing.T, w *world, tr *trial) {
	if f := w.transferIs(t, tr, "cancelled"); f.Detail != exchange.DetailLapsed {
		t.Errorf("it is cancelled as %s", f.Detail)
	}
	tr.verb(t, w.as(t, demo.VendorEmail), "cancel", nil)
	tr.answered(t)
}

// stuck keeps the blocks empty, so that the transaction has to be outbid. It has a wallet of its own: in another
// one it could have to wait for one with a lower number.
func stuck(t *testing.T, w *world, tr *trial, arm func()) {
	wallet := w.fundedWallet(t, exchange.Ethereum, demo.SecondEmail, exchange.Hot, money.Must(money.USDT, "5"), money.Must(money.ETH, "0.5"))
	if err := demo.ForFees(t.Context(), w.store, wallet); err != nil { // else it would be given gas first
		t.Fatal(err)
	}
	post(t, w.ethereum(), "/faults", map[string]any{"hold_blocks": 100_000})
	arm()
	w.sendFor(t, tr, w.as(t, demo.SecondEmail), money.Must(money.USDT, small), wallet.ID)
}

// outbidSoon has blocks taken only when the transaction was outbid, so that whichever of the two comes into one, the
// other is in the way.
func outbidSoon(t *testing.T, w *world, tr *trial) {
	var payment uuid.UUID
	err := w.db.QueryRowContext(t.Context(), `SELECT id FROM chain_payments WHERE purpose = 'transfer' AND object_id = $1`, tr.transfer.ID).Scan(&payment)
	if err != nil {
		t.Fatal(err)
	}
	w.hasten(t, workflows.CryptoPayoutID(payment))
	eventually(t, "the transaction is outbid", func() error {
		var attempts, numbers int
		err := w.db.QueryRowContext(t.Context(), `SELECT count(*), count(DISTINCT nonce) FROM chain_attempts WHERE payment_id = $1`, payment).
			Scan(&attempts, &numbers)
		if err == nil && (attempts < 2 || numbers != 1) {
			err = fmt.Errorf("there are %d transactions with %d numbers", attempts, numbers)
		}
		return err
	})
	post(t, w.ethereum(), "/reset", nil)
}

// refusals waits for decisions without proof to be noted, of which each is noted once at least.
func (w *world) refusals(t *testing.T, transfer uuid.UUID, least int) {
	t.Helper()
	err := await(t.Context(), recovery, func() error {
		var n int
		err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM audit_log WHERE object_id = $1 AND action = 'transfer.decision_refused'`, transfer).Scan(&n)
		if err == nil && n < least {
			err = fmt.Errorf("%d are noted", n)
		}
		return err
	})
	if err != nil {
		t.Fatalf("refusals of %s: %v", transfer, err)
	}
}
