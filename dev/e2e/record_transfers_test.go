package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// transfers records the ways that a transfer can go, on TRON.
func (r *recorder) transfers(t *testing.T) {
	w, vendor := r.harness, r.harness.as(t, demo.VendorEmail)
	node := w.seed().Nodes()[0]
	inside := w.send(t, vendor, "3", map[string]any{"email": demo.CustomerEmail})
	w.arrives(t, vendor, inside.ID, "completed")
	r.keep(t, workflows.TransferID(inside.ID), "transfer_inside")
	outside := w.sendAway(t, node, vendor, func() {})
	r.keep(t, workflows.TransferID(outside.ID), "transfer_outside")
	r.parkedTransfers(t)
	r.unknown(t)
	r.blocked(t)
}

// paymentFor returns the chain payment for a purpose of an object.
func (r *recorder) paymentFor(t *testing.T, purpose string, object uuid.UUID) (id uuid.UUID) {
	t.Helper()
	query := `SELECT id FROM chain_payments WHERE purpose = $1 AND object_id = $2`
	if err := r.harness.db.QueryRowContext(t.Context(), query, purpose, object).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// say sends a command about a transfer.
func (r *recorder) say(t *testing.T, email string, id uuid.UUID, verb string, in any) {
	t.Helper()
	path := "/api/v1/auth/transfers/" + id.String() + "/" + verb
	if err := r.harness.as(t, email).Post(t.Context(), path, uuid.NewString(), in, nil); err != nil {
		t.Fatal(err)
	}
}

// parkedTransfers fail on the chain. One is retried; the money of the other goes back.
func (r *recorder) parkedTransfers(t *testing.T) {
	w, vendor := r.harness, r.harness.as(t, demo.VendorEmail)
	w.mend(t)
	for name, verb := range map[string]string{"transfer_retried": "retry", "transfer_refunded": "refund"} {
		w.tron(t, "/faults", map[string]any{"fail_next": 1, "fail_with": "REVERT"})
		f := w.send(t, vendor, "5", map[string]any{"address": newAddress(t)})
		w.parked(t, workflows.TransferID(f.ID))
		w.tron(t, "/reset", nil)
		r.say(t, demo.TreasuryEmail, f.ID, verb, map[string]any{"note": "it failed on the chain"})
		w.arrives(t, vendor, f.ID, map[string]string{"retry": "completed", "refund": "failed"}[verb])
		r.keep(t, workflows.TransferID(f.ID), name)
	}
}

// decided records transfers that an officer approves by a signal, approves through the API and rejects, and one that
// its sender cancels meanwhile.
func (r *recorder) decided(t *testing.T) {
	w, vendor, officer := r.harness, r.harness.as(t, demo.VendorEmail), r.harness.operator(t)
	w.approvalRule(t, "0.01", ruleTwo)
	defer w.approvalRule(t, usualOne, ruleTwo)
	pending := func() sent {
		t.Helper()
		f := w.send(t, vendor, "4", map[string]any{"address": newAddress(t)})
		return w.arrives(t, officer, f.ID, "pending_approval")
	}
	for _, story := range []struct {
		name, end string
		decide    func(sent)
	}{
		{"transfer_approved_by_signal", "completed", func(f sent) { w.signalApproval(t, officer, f) }},
		{"transfer_approved", "completed", func(f sent) { r.say(t, demo.TreasuryEmail, f.ID, "approve", map[string]any{"digest": f.Digest}) }},
		{"transfer_rejected", "rejected", func(f sent) {
			r.say(t, demo.TreasuryEmail, f.ID, "reject", map[string]any{"note": "nobody knows why", "digest": f.Digest})
		}},
		{"transfer_cancelled", "cancelled", func(f sent) { r.say(t, demo.VendorEmail, f.ID, "cancel", nil) }},
	} {
		f := pending()
		story.decide(f)
		w.arrives(t, vendor, f.ID, story.end)
		r.keep(t, workflows.TransferID(f.ID), story.name)
	}
}

// unknown records a transfer for whose recipient the screening has no verdict until it is asked again.
func (r *recorder) unknown(t *testing.T) {
	w, vendor, to := r.harness, r.harness.as(t, demo.VendorEmail), newAddress(t)
	w.screening.say(to, exchange.VerdictUnknown)
	f := w.send(t, vendor, "5", map[string]any{"address": to})
	w.parked(t, workflows.TransferID(f.ID))
	w.screening.say(to, exchange.VerdictClear)
	r.say(t, demo.TreasuryEmail, f.ID, "retry", map[string]any{"note": "the service answers again"})
	w.arrives(t, vendor, f.ID, "completed")
	r.keep(t, workflows.TransferID(f.ID), "transfer_screened_again")
}

// cold records transfers of cold wallets: one that comes back signed, and one that is cancelled after it was handed
// out.
func (r *recorder) cold(t *testing.T, n demo.Node) {
	w, owner := r.harness, r.harness.as(t, demo.VendorEmail)
	all := []money.Amount{money.Must(money.USDT, "20")}
	if !n.Network.Sponsored() {
		all = append(all, money.Must(n.Network.NativeCoin(), "50"))
	}
	wallet := w.fundedWallet(t, n.Network, demo.VendorEmail, exchange.Cold, all...)
	for _, end := range []string{"completed", "cancelled"} {
		if end == "cancelled" && !n.Network.Sponsored() {
			return // a payload that was handed out there stays valid for half a day
		}
		to, err := stranger(n.Network)
		if err != nil {
			t.Fatal(err)
		}
		in := map[string]any{
			"network": n.Network, "asset": "USDT", "amount": "4", "recipient": map[string]any{"address": to}, "from_wallet_id": wallet.ID,
		}
		var f sent
		if err := owner.Post(t.Context(), "/api/v1/auth/transfers", uuid.NewString(), in, &f); err != nil {
			t.Fatal(err)
		}
		w.parked(t, workflows.TransferID(f.ID))
		var payload json.RawMessage
		if err := insist(t.Context(), w.operator(t), ofTransfer(f.ID, "payload"), uuid.NewString(), nil, &payload); err != nil {
			t.Fatal(err)
		}
		if end == "cancelled" {
			if err := insist(t.Context(), owner, ofTransfer(f.ID, "cancel"), uuid.NewString(), nil, nil); err != nil {
				t.Fatal(err)
			}
		} else {
			signed, err := w.coldSign(t, payload)
			if err != nil {
				t.Fatal(err)
			}
			r.say(t, demo.TreasuryEmail, f.ID, "signed-transaction", map[string]any{"signed_transaction": signed})
		}
		w.arrives(t, owner, f.ID, end)
		r.keep(t, workflows.TransferID(f.ID), "transfer_cold_"+string(n.Network)+"_"+end)
	}
}

// blocked records a transfer to an address on the deny list. An operator releases the money.
func (r *recorder) blocked(t *testing.T) {
	w, vendor, to := r.harness, r.harness.as(t, demo.VendorEmail), newAddress(t)
	admin, err := w.adminLogin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]any{"network": "tron", "address": to, "note": "an example"}
	if err := admin.Post(t.Context(), "/api/v1/auth/deny-list", uuid.NewString(), in, nil); err != nil {
		t.Fatal(err)
	}
	f := w.send(t, vendor, "5", map[string]any{"address": to})
	w.arrives(t, vendor, f.ID, "blocked")
	w.parked(t, workflows.TransferID(f.ID))
	r.say(t, demo.TreasuryEmail, f.ID, "refund", map[string]any{"note": "the sender may have it back"})
	r.keep(t, workflows.TransferID(f.ID), "transfer_blocked")
}

// networks records the flows that only some networks have: gas for a sender without any, and a transaction that is
// replaced with a higher fee.
func (r *recorder) networks(t *testing.T) {
	w := r.harness
	made := w.ownWallet(t, exchange.Ethereum)
	r.keep(t, workflows.WalletID(made.ID), "create_wallet")
	for _, n := range w.seed().Nodes() {
		r.cold(t, n)
		if n.Network != exchange.Ethereum {
			continue
		}
		exhausted := w.sendAway(t, n, w.as(t, demo.ExhaustedVendorEmail), func() {})
		payment := r.paymentFor(t, "transfer", exhausted.ID)
		r.keep(t, workflows.CryptoPayoutID(payment), "crypto_payout_without_gas")
		r.keep(t, workflows.CryptoPayoutID(r.paymentFor(t, "gas", payment)), "crypto_payout_gas")
		r.keep(t, workflows.CryptoPayoutID(r.paymentFor(t, "transfer", w.bump(t, n).ID)), "crypto_payout_outbid")
	}
}

// scheduled records the flows that schedules start.
func (r *recorder) scheduled(t *testing.T) {
	w := r.harness
	w.reconcile(t)
	r.keep(t, workflows.ReconciliationID(exchange.Tron), "reconcile_network")
	for schedule, flow := range map[string]string{
		"reconcile": workflows.TypeReconcile, "reserve-report": workflows.TypeReserveReport, "seal-audit": workflows.TypeSealAudit, "prune": workflows.TypePrune, "keep-months": workflows.TypeKeepMonths, "repair-parked": workflows.TypeRepairParked,
		"pull-rates": workflows.TypePullRates, "watch-float": workflows.TypeWatchFloat, "sweep-files": workflows.TypeSweepFiles, "watch-inventory": workflows.TypeWatchInventory, "gas-ahead": workflows.TypeGasAhead, "match-statements": workflows.TypeMatchStatements,
	} {
		if schedule != "reconcile" {
			if err := w.temporal.ScheduleClient().GetHandle(t.Context(), schedule).Trigger(t.Context(), client.ScheduleTriggerOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		var id string
		eventually(t, "a run of "+flow, func() (err error) {
			id, err = w.latest(t, flow)
			return err
		})
		r.keep(t, id, snake(flow))
	}
}

// feeSweeps records the ways of a sweep of earned fees, on TRON: one by the schedule, one that fails on the chain and is retried, and
// one that is given up.
func (r *recorder) feeSweeps(t *testing.T) {
	w, n := r.harness, r.harness.tronNode()
	coins := money.Must(money.TRX, "200")
	w.mend(t)
	due := w.earning(t, n.Network, money.Must(money.USDT, "2"), coins)
	w.sweepRule(t, n.Network, "2")
	w.trigger(t, "sweep-fees")
	f := w.sweptOnce(t, n, due.ID, "2")
	r.keep(t, workflows.FeeSweepID(f.ID), "fee_sweep")
	id, err := w.latest(t, workflows.TypeSweepFees)
	if err != nil {
		t.Fatal(err)
	}
	r.keep(t, id, "sweep_fees")
	for _, story := range []struct {
		verb, name string
		status     exchange.FeeSweepStatus
	}{{"retry", "fee_sweep_retried", exchange.FeeSweepCompleted}, {"refund", "fee_sweep_given_up", exchange.FeeSweepCancelled}} {
		failing := w.earning(t, n.Network, money.Must(money.USDT, "1"), coins)
		w.tron(t, "/faults", map[string]any{"fail_next": 1, "fail_with": "REVERT"})
		w.sweepFees(t, n.Network, "1")
		f := w.sweepParked(t, failing.ID)
		w.tron(t, "/reset", nil)
		if err := w.operator(t).Post(t.Context(), ofSweep(f.ID, story.verb), uuid.NewString(), map[string]any{"note": "it failed on the chain"}, nil); err != nil {
			t.Fatal(err)
		}
		w.sweepIs(t, failing.ID, story.status)
		r.keep(t, workflows.FeeSweepID(f.ID), story.name)
	}
}

// latest returns the id of the flow of a type that was completed last.
func (w *harness) latest(t *testing.T, flow string) (string, error) {
	t.Helper()
	list, err := w.temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Completed'", flow),
	})
	if err != nil || len(list.GetExecutions()) == 0 {
		return "", errors.Join(err, errors.New("there is none"))
	}
	return list.GetExecutions()[0].GetExecution().GetWorkflowId(), nil
}

// continued records a deposit watch whose history grew long, and the run that continued it.
func (r *recorder) continued(t *testing.T) {
	const long = 3 * time.Minute // the watch reports once a minute
	w, id := r.harness, workflows.DepositWatchID(exchange.Tron)
	ended, anew := r.file("deposit_watch_long"), r.file("deposit_watch_anew")
	if ended == "" || anew == "" {
		return
	}
	w.shortHistories(t)
	now := func() (string, error) {
		d, err := w.temporal.DescribeWorkflowExecution(t.Context(), id, "")
		return d.GetWorkflowExecutionInfo().GetExecution().GetRunId(), err
	}
	old, err := now()
	if err != nil {
		t.Fatal(err)
	}
	if err := await(t.Context(), long, func() error {
		run, err := now()
		if err == nil && run == old {
			err = errors.New("it is the same run")
		}
		return err
	}); err != nil {
		t.Fatalf("%s did not continue as a new run: %v", id, err)
	}
	if err := recordHistory(t.Context(), w.temporal, r.codec, id, old, ended); err != nil {
		t.Fatal(err)
	}
	if err := await(t.Context(), long, func() error {
		h, err := readHistory(t.Context(), w.temporal, r.codec, id, "")
		for _, e := range h.GetEvents() {
			if e.GetEventType() == enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED {
				return nil
			}
		}
		return errors.Join(err, errors.New("the new run has not reported yet"))
	}); err != nil {
		t.Fatal(err)
	}
	if err := recordHistory(t.Context(), w.temporal, r.codec, id, "", anew); err != nil {
		t.Fatal(err)
	}
}

// shortHistories makes Temporal suggest a new run after a few events.
func (w *harness) shortHistories(t *testing.T) {
	t.Helper()
	before := regexp.MustCompile(`(limit\.historyCount\.suggestContinueAsNew:\n  - value: )\d+`)
	content, err := os.ReadFile(w.stack.DynamicConfig)
	if err != nil || !before.Match(content) {
		t.Fatalf("the settings name no length of a history: %v", err)
	}
	if err := os.WriteFile(w.stack.DynamicConfig, before.ReplaceAll(content, []byte("${1}10")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// snake returns the name of a flow's type as the name of a file: "pull_rates" for PullRates.
func snake(flow string) string {
	return strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(flow, "${1}_$2"))
}
