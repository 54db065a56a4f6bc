package e2e

import (
	"context"
	"fmt"
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
	"kivuko/dev/testbed"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// transferScenario is the scenario of a transfer out of our custody, on Ethereum by default.
type transferScenario struct {
	on     exchange.Network
	begin  transferScene
	then   func(t *testing.T, w *harness, tr *trial) // the commands that its end needs
	after  func(t *testing.T, w *harness, tr *trial) // as soon as the process is back
	status string
}

// transferScene opens the trial's transfer and arms the point where it belongs.
type transferScene func(t *testing.T, w *harness, tr *trial, arm func())

// The amount of the trials' transfers, and above which sum of a day, in shillings, one and two officers decide. Every customer stays below
// the first, and everybody below the second, but for who is to wait for an officer: she sends that much before.
const (
	small    = "1.5"
	usualOne = "5000000"
	ruleTwo  = "50000000"
	much     = "45000"
)

// transferRows are those with transfers, sweeps of fees and deposits. Those whose payments must fail come first, so that no other one
// fails; the deposits come last, because they stop the chain.
func transferRows() []row {
	sent := always(transferScenario{begin: plain, status: "completed"})
	return slices.Concat([]row{
		{"GiveUpTransfer/*/*", "flows", always(transferScenario{begin: givenUp, status: "failed"})},
	}, feeRows(), []row{
		{"SignPayment/ParkChainPayment#?/*", "signer-ethereum", always(transferScenario{begin: toBlocked, then: unblock, status: "completed"})},
		{"ApproveTopUp/*/*", "chain-ethereum", always(transferScenario{begin: withoutGas, after: watchOn, then: gotGasOnce, status: "completed"})},
		// The top-up may be final when the process is back, and then it is not recorded again that it arrived.
		{"DeliverPayment/RecordGasArrival#1/before", "chain-ethereum", always(transferScenario{begin: withoutGas, after: watchOn, then: gotGasOnce, status: "completed"})},
		{"DeliverPayment/RecordGasArrival#1/after", "chain-ethereum", always(transferScenario{begin: withoutGas, after: watchOn, then: gotGasOnce, status: "completed"})},
		{"DraftColdPayment/*/*", "chain-ethereum", always(transferScenario{begin: coldAsked, after: watchOn, then: signElsewhere, status: "completed"})},
		{"ImportColdPayment/*/*", "chain-ethereum", always(transferScenario{begin: coldBrought, after: watchOn, status: "completed"})},
		{"CloseColdPayment/*/*", "chain-ethereum", always(transferScenario{begin: coldOvertaken, after: watchOn, status: "cancelled"})},
		{"MarkTransfer/*/*", "flows", always(transferScenario{begin: unscreened, then: screenedNow, status: "completed"})},
		{"OpenTransfer/*/*", "flows", sent},
		{"AdvanceTransfer/*/*", "flows", sent},
		{"ScreenTransfer/*/*", "flows", sent},
		{"HandToSigner/*/*", "flows", sent},
		{"DecideTransfer/*/*", "flows", always(transferScenario{begin: decided, then: countedOnce, status: "completed"})},
		{"RecordRefusedDecision/*/*", "flows", always(transferScenario{begin: pretended, then: decideNow, status: "completed"})},
		{"CancelTransfer/*/*", "flows", always(transferScenario{begin: withdrawn, status: "cancelled"})},
		{"LapseTransfer/*/*", "flows", always(transferScenario{begin: lapsed, then: wake, status: "cancelled"})},
		{"BumpPaymentFee/*/*", "signer-ethereum", always(transferScenario{begin: stuck, after: bumpSoon, status: "completed"})},
	}, depositRows())
}

// solanaRows are those that exist only on Solana. They are in Ethereum's track, since both have cold wallets.
func solanaRows() []row {
	brought := transferScenario{on: exchange.Solana, begin: coldBrought, status: "completed"}
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

// node returns the node of the trial's network.
func (tr *trial) node(w *harness) demo.Node {
	if b, ok := tr.scenario.(transferScenario); ok && b.on == exchange.Solana {
		return demo.Node{Network: b.on, Control: "http://" + w.stack.Addresses.SolanaControl}
	}
	return w.ethereum()
}

func (w *harness) ethereum() demo.Node {
	return demo.Node{Network: exchange.Ethereum, Control: "http://" + w.stack.Addresses.EthereumControl}
}

// approvalRule sets the values in shillings above which one and two officers decide. Requiring fewer decisions needs a
// second officer.
func (w *harness) approvalRule(t *testing.T, one, two string) {
	t.Helper()
	w.houseLimits(t, map[string]any{"approvals": map[string]any{"transfer": map[string]any{"one_above": one, "two_above": two}}})
}

func (b transferScenario) play(t *testing.T, w *harness, tr *trial, arm func()) {
	t.Helper()
	b.begin(t, w, tr, arm)
}

func (b transferScenario) restarted(t *testing.T, w *harness, tr *trial) {
	t.Helper()
	if b.after != nil {
		b.after(t, w, tr)
		return
	}
	post(t, tr.node(w), "/reset", nil)
}

func (b transferScenario) judge(t *testing.T, w *harness, tr *trial) {
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
func (w *harness) transferIs(t *testing.T, tr *trial, status string) sent {
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

// waits waits until a trial's transfer has a status detail.
func (w *harness) waits(t *testing.T, tr *trial, what string) {
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
func (w *harness) sendFor(t *testing.T, tr *trial, c *api.Client, m money.Amount, from uuid.UUID) {
	t.Helper()
	to, err := stranger(tr.node(w).Network)
	if err != nil {
		t.Fatal(err)
	}
	w.sendTo(t, tr, c, m, from, to)
}

func (w *harness) sendTo(t *testing.T, tr *trial, c *api.Client, m money.Amount, from uuid.UUID, to string) {
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
func (w *harness) pays(t *testing.T, tr *trial) {
	t.Helper()
	w.sendFor(t, tr, w.as(t, demo.VendorEmail), money.Must(money.USDT, small), uuid.Nil)
}

// verb sends a command about the trial's transfer in the background.
func (tr *trial) verb(t *testing.T, c *api.Client, verb string, in any) {
	t.Helper()
	tr.background(t, c, "/api/v1/auth/transfers/"+tr.transfer.ID.String()+"/"+verb, uuid.NewString(), in, nil)
}

// plain is a transfer that needs no decision.
func plain(t *testing.T, w *harness, tr *trial, arm func()) {
	arm()
	w.pays(t, tr)
}

// unscreened pays a recipient for whom the screening service answers "unknown".
func unscreened(t *testing.T, w *harness, tr *trial, arm func()) {
	to, err := stranger(exchange.Ethereum)
	if err != nil {
		t.Fatal(err)
	}
	w.screening.say(to, exchange.VerdictUnknown)
	arm()
	w.sendTo(t, tr, w.as(t, demo.VendorEmail), money.Must(money.USDT, small), uuid.Nil, to)
}

func screenedNow(t *testing.T, w *harness, tr *trial) {
	w.waits(t, tr, exchange.WaitOperator)
	w.parked(t, workflows.TransferID(tr.transfer.ID))
	w.screening.say(tr.address, exchange.VerdictClear)
	tr.verb(t, w.operator(t), "retry", nil)
	tr.answered(t)
}

// givenUp makes an operator refund a failed transfer.
func givenUp(t *testing.T, w *harness, tr *trial, arm func()) {
	post(t, w.ethereum(), "/faults", map[string]any{"fail_next": 1})
	w.pays(t, tr)
	w.waits(t, tr, exchange.WaitOperator)
	w.parked(t, workflows.TransferID(tr.transfer.ID))
	post(t, w.ethereum(), "/reset", nil)
	arm()
	tr.verb(t, w.operator(t), "refund", map[string]any{"note": "crash trial"})
}

// toBlocked pays a recipient whom the token's issuer has blocked: no transaction can be built.
func toBlocked(t *testing.T, w *harness, tr *trial, arm func()) {
	to, err := stranger(exchange.Ethereum)
	if err != nil {
		t.Fatal(err)
	}
	post(t, w.ethereum(), "/token/block", map[string]any{"token": "USDC", "address": to, "blocked": true})
	arm()
	w.sendTo(t, tr, w.as(t, demo.VendorEmail), money.Must(money.USDC, small), uuid.Nil, to)
}

func unblock(t *testing.T, w *harness, tr *trial) {
	w.waits(t, tr, exchange.WaitOperator)
	w.parked(t, workflows.TransferID(tr.transfer.ID))
	post(t, w.ethereum(), "/token/block", map[string]any{"token": "USDC", "address": tr.address, "blocked": false})
	tr.verb(t, w.operator(t), "retry", nil)
	tr.answered(t)
}

// watchOn restarts the watch over deposits, which the dead process ran.
func watchOn(t *testing.T, w *harness, tr *trial) {
	w.hasten(t, workflows.DepositWatchID(tr.node(w).Network))
}

// withoutGas sends from a wallet without coin for the fee.
func withoutGas(t *testing.T, w *harness, tr *trial, arm func()) {
	wallet := w.fundedWallet(t, exchange.Ethereum, demo.SecondEmail, exchange.Hot, money.Must(money.USDT, "5"))
	arm()
	w.sendFor(t, tr, w.as(t, demo.SecondEmail), money.Must(money.USDT, small), wallet.ID)
}

func gotGasOnce(t *testing.T, w *harness, tr *trial) {
	w.transferIs(t, tr, "completed")
	var payment uuid.UUID
	if err := w.db.QueryRowContext(t.Context(), `SELECT id FROM chain_payments WHERE purpose = 'transfer' AND object_id = $1`, tr.transfer.ID).Scan(&payment); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the payment got gas once", func() error { return w.gotGas(t.Context(), payment, 1) })
}

// watchedEmail is the customer whose every transfer and sale an officer decides.
const watchedEmail = demo.ThirdEmail

// watch has her send so much that the rest of her day needs an officer. A rule that is changed for a while would be met by the trials of
// the other tracks.
func (w *harness) watch(t *testing.T) {
	t.Helper()
	w.watched = w.fundedWallet(t, exchange.Ethereum, watchedEmail, exchange.Hot, money.Must(money.USDT, "46000"), money.Must(money.ETH, "5"))
	if err := demo.ForFees(t.Context(), w.store, w.watched); err != nil {
		t.Fatal(err)
	}
	sends := map[string]any{
		"network": exchange.Ethereum, "asset": money.USDT, "amount": much, "recipient": map[string]any{"email": demo.ExhaustedVendorEmail}, "from_wallet_id": w.watched.ID,
	}
	var f sent
	if err := insist(t.Context(), w.as(t, watchedEmail), "/api/v1/auth/transfers", uuid.NewString(), sends, &f); err != nil {
		t.Fatal(err)
	}
	if err := testbed.Approve(t, w.operator(t), w.arrives(t, w.operator(t), f.ID, "pending_approval")); err != nil {
		t.Fatal(err)
	}
	w.arrives(t, w.operator(t), f.ID, "completed")
}

// pending opens a transfer that needs an officer's decision.
func (w *harness) pending(t *testing.T, tr *trial) {
	t.Helper()
	w.sendFor(t, tr, w.as(t, watchedEmail), money.Must(money.USDT, small), w.watched.ID)
	w.transferIs(t, tr, "pending_approval")
}

// decided makes an officer approve.
func decided(t *testing.T, w *harness, tr *trial, arm func()) {
	w.pending(t, tr)
	asSeen := seen(t, w.operator(t), "/api/v1/auth/transfers/"+tr.transfer.ID.String()+"/approve")
	arm()
	tr.verb(t, w.operator(t), "approve", asSeen)
}

func countedOnce(t *testing.T, w *harness, tr *trial) {
	if f := w.transferIs(t, tr, "completed"); f.Given != 1 {
		t.Errorf("%d decisions were counted", f.Given)
	}
}

// pretended sends a decision without a valid token.
func pretended(t *testing.T, w *harness, tr *trial, arm func()) {
	w.pending(t, tr)
	arm()
	in := map[string]any{"token": "made up"}
	if err := w.temporal.SignalWorkflow(t.Context(), workflows.TransferID(tr.transfer.ID), "", workflows.SignalApprove, in); err != nil {
		t.Fatal(err)
	}
}

func decideNow(t *testing.T, w *harness, tr *trial) {
	w.refusals(t, tr.transfer.ID, 1)
	if f := w.transferIs(t, tr, "pending_approval"); f.Given != 0 {
		t.Errorf("%d decisions were counted", f.Given)
	}
	tr.verb(t, w.operator(t), "approve", seen(t, w.operator(t), "/api/v1/auth/transfers/"+tr.transfer.ID.String()+"/approve"))
	tr.answered(t)
}

// withdrawn makes the sender cancel the transfer.
func withdrawn(t *testing.T, w *harness, tr *trial, arm func()) {
	w.pending(t, tr)
	arm()
	tr.verb(t, w.as(t, watchedEmail), "cancel", nil)
}

// lapsed ends the time for a decision. That takes days, so a flow of the test calls the step of that day.
func lapsed(t *testing.T, w *harness, tr *trial, arm func()) {
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
	tr.answer = make(chan error, 1)
	ctx := context.WithoutCancel(t.Context())
	go func() {
		defer own.Stop()
		ctx, cancel := context.WithTimeout(ctx, recovery)
		defer cancel()
		tr.answer <- run.Get(ctx, nil)
	}()
}

// wake notifies the transfer's own flow, which would sleep for days.
func wake(t *testing.T, w *harness, tr *trial) {
	if f := w.transferIs(t, tr, "cancelled"); f.Detail != exchange.DetailLapsed {
		t.Errorf("it is cancelled as %s", f.Detail)
	}
	tr.verb(t, w.as(t, watchedEmail), "cancel", nil)
	tr.answered(t)
}

// stuck keeps the blocks empty, so that the transaction has to be replaced with a higher fee. It uses a separate wallet: in
// another one it could have to wait for a lower nonce.
func stuck(t *testing.T, w *harness, tr *trial, arm func()) {
	wallet := w.fundedWallet(t, exchange.Ethereum, demo.SecondEmail, exchange.Hot, money.Must(money.USDT, "5"), money.Must(money.ETH, "0.5"))
	if err := demo.ForFees(t.Context(), w.store, wallet); err != nil { // otherwise it would get gas first
		t.Fatal(err)
	}
	post(t, w.ethereum(), "/faults", map[string]any{"hold_blocks": 100_000})
	arm()
	w.sendFor(t, tr, w.as(t, demo.SecondEmail), money.Must(money.USDT, small), wallet.ID)
}

// bumpSoon keeps the blocks empty until the transaction was replaced with a higher fee, so that both transactions compete
// for the nonce.
func bumpSoon(t *testing.T, w *harness, tr *trial) {
	var payment uuid.UUID
	err := w.db.QueryRowContext(t.Context(), `SELECT id FROM chain_payments WHERE purpose = 'transfer' AND object_id = $1`, tr.transfer.ID).Scan(&payment)
	if err != nil {
		t.Fatal(err)
	}
	w.hasten(t, workflows.CryptoPayoutID(payment))
	eventually(t, "the transaction is replaced with a higher fee", func() error {
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

// refusals waits until decisions without proof are recorded, each at least once.
func (w *harness) refusals(t *testing.T, transfer uuid.UUID, least int) {
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
