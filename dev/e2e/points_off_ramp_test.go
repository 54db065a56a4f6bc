package e2e

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// saleTale is the tale of a sale of crypto, on TRON.
type saleTale struct {
	fault string // of the operator, on the payout
	scene saleScene
	then  func(t *testing.T, w *world, tr *trial) // when the process is back
	judgement
	back string
}

// saleScene opens the trial's order and arms the point where it belongs; the usual one arms it when the order is open
// and brings the crypto.
type saleScene func(t *testing.T, w *world, b *saleTale, tr *trial, arm func())

// judgement waits for a sale's end and holds it against the world outside.
type judgement func(t *testing.T, w *world, b *saleTale, tr *trial)

// offRampTrials are those with sales. They follow the others of TRON, where nothing fails any more; the one that
// reorganises the chain comes last.
func offRampTrials() []*trial {
	var all []*trial
	add := func(worker, name string, tale saleTale) {
		before, after := tale, tale
		all = append(all, both(worker, name, &before, &after)...)
	}
	paid, refused := saleTale{scene: saleBrought, judgement: salePaid}, saleTale{scene: saleBrought, fault: "unregistered", judgement: saleGivenBack}
	add("flows", "OpenOffRamp", saleTale{scene: saleOpened, judgement: salePaid})
	add("flows", "CloseOffRamp", saleTale{scene: saleCancelled, judgement: saleGivenUp})
	add("flows", "SeeDeposit", paid)
	add("flows", "TakeDeposit", paid)
	add("flows", "RecordDepositScreening", paid)
	add("momo", "BeginOrderPayout", paid)
	add("momo", "SubmitOrderPayout", paid)
	add("momo", "RecordOrderPayoutSubmission", paid)
	add("momo", "CompleteOrderPayout", paid)
	add("flows", "ApproveSweep", paid)
	add("flows", "ReleaseEscrow", paid)
	add("momo", "RecordOrderPayoutFailure", refused)
	add("momo", "FailOrderPayout", refused)
	add("flows", "OpenChainRefund", refused)
	add("flows", "ApproveRefundPayment", refused)
	all = append(all, both("momo", "ClaimFloatMove", &floatTale{}, &floatTale{unsent: true})...)
	all = append(all, both("momo", "MoveFloat", &floatTale{unsent: true}, &floatTale{})...)
	all = append(all, both("momo", "RecordFloatSubmission", &floatTale{}, &floatTale{})...)
	all = append(all, both("momo", "SettleFloatMove", &floatTale{}, &floatTale{})...)
	add("flows", "ApproveFunding", saleTale{scene: saleFunded, judgement: salePaid})
	add("flows", "ApproveKeptSweep", saleTale{scene: saleKept, judgement: saleSweptUp})
	add("flows", "EscrowDemand", saleTale{scene: poolTended, judgement: poolAsWanted})
	add("flows", "EscrowRoom", saleTale{scene: poolDry, then: poolOpen, judgement: salePaid})
	add("flows", "LoseDeposit", saleTale{scene: saleLost, then: saleFound, judgement: salePaid})
	return all
}

func (w *world) tronNode() demo.Node { return w.seed().Nodes()[0] }

func (b *saleTale) play(t *testing.T, w *world, tr *trial, arm func()) {
	t.Helper()
	var err error
	if b.back, err = stranger(exchange.Tron); err != nil {
		t.Fatal(err)
	}
	b.scene(t, w, b, tr, arm)
}

func (b *saleTale) restarted(t *testing.T, w *world, tr *trial) {
	t.Helper()
	if b.then != nil {
		b.then(t, w, tr)
	}
}

func (b *saleTale) judge(t *testing.T, w *world, tr *trial) {
	t.Helper()
	tr.answered(t)
	b.judgement(t, w, b, tr)
}

// open opens the trial's order.
func (b *saleTale) open(t *testing.T, w *world, tr *trial) {
	t.Helper()
	phone := newPhone()
	if b.fault != "" {
		w.fault(t, b.fault, "payout", phone)
	}
	tr.order = w.sell(t, w.tronNode(), sale{phone: phone, back: b.back})
}

func saleBrought(t *testing.T, w *world, b *saleTale, tr *trial, arm func()) {
	b.open(t, w, tr)
	arm()
	w.payIn(t, w.tronNode(), tr.order, soldCrypto)
}

func saleOpened(t *testing.T, w *world, b *saleTale, tr *trial, arm func()) {
	arm()
	b.open(t, w, tr)
	w.payIn(t, w.tronNode(), tr.order, soldCrypto)
}

func saleCancelled(t *testing.T, w *world, b *saleTale, tr *trial, arm func()) {
	b.open(t, w, tr)
	arm()
	tr.background(t, w.amina(t), "/api/v1/auth/orders/"+tr.order.ID.String()+"/cancel", uuid.NewString(), nil, nil)
}

// saleLost has the block reorganised away in which the crypto was seen.
func saleLost(t *testing.T, w *world, b *saleTale, tr *trial, arm func()) {
	n := w.tronNode()
	b.open(t, w, tr)
	post(t, n, "/pause", nil)
	w.payIn(t, n, tr.order, soldCrypto)
	w.until(t, tr.order.ID, "seen", func(o order) bool { return o.Status == "confirming" && o.Deposit.String != "" })
	arm()
	post(t, n, "/reorganise", map[string]any{"blocks": 1, "drop": true})
}

func saleFound(t *testing.T, w *world, tr *trial) {
	post(t, w.tronNode(), "/resume", nil)
	w.payIn(t, w.tronNode(), tr.order, soldCrypto)
}

// saleKept has the house keep what came when the order was cancelled.
func saleKept(t *testing.T, w *world, b *saleTale, tr *trial, arm func()) {
	b.open(t, w, tr)
	w.tell(t, w.amina(t), tr.order.ID, "cancel", nil)
	w.ends(t, tr.order.ID, "cancelled", "cancelled_by_customer")
	w.payIn(t, w.tronNode(), tr.order, "4")
	w.exception(t, tr.order.ID, "late", "open", "4.000000")
	arm()
	path := "/api/v1/auth/payment-exceptions/" + w.exceptionOf(t, tr.order.ID, "late").String() + "/accept"
	tr.background(t, w.operator(t), path, uuid.NewString(), map[string]any{"note": "crash trial"}, nil)
}

func (w *world) exceptionOf(t *testing.T, orderID uuid.UUID, kind string) (id uuid.UUID) {
	t.Helper()
	err := w.db.QueryRowContext(t.Context(), `SELECT id FROM payment_exceptions WHERE order_id = $1 AND kind = $2`, orderID, kind).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// saleFunded sells what lies in a wallet of the customer's here.
func saleFunded(t *testing.T, w *world, b *saleTale, tr *trial, arm func()) {
	n := w.tronNode()
	s := sale{phone: newPhone(), back: b.back}
	wallet := w.fundedWallet(t, n.Network, demo.CustomerEmail, exchange.Hot, money.Must(money.USDT, "15"), money.Must(money.TRX, "200"))
	in := w.saleForm(t, n, &s)
	in["wallet_id"] = wallet.ID
	delete(in, "refund_address")
	arm()
	var err error
	if tr.order, err = place(t.Context(), w.amina(t), in, s.key); err != nil {
		t.Fatal(err)
	}
}

// tendPool has the pools be tended now, by a run that begins now.
func (w *world) tendPool(t *testing.T) {
	t.Helper()
	if err := w.temporal.ScheduleClient().GetHandle(t.Context(), "tend-escrow").Trigger(t.Context(), client.ScheduleTriggerOptions{}); err != nil {
		t.Fatal(err)
	}
}

// poolTended asks for more free addresses than there are.
func poolTended(t *testing.T, w *world, _ *saleTale, _ *trial, arm func()) {
	if _, err := w.db.ExecContext(t.Context(), `UPDATE escrow_policy SET keep_free = keep_free + 1 WHERE network = 'tron'`); err != nil {
		t.Fatal(err)
	}
	arm()
	w.tendPool(t)
}

// poolAsWanted holds that addresses were made until there were enough. Sales take and give back meanwhile, so that
// there may be more; no wallet was made twice for the same place.
func poolAsWanted(t *testing.T, w *world, _ *saleTale, _ *trial) {
	err := await(t.Context(), recovery, func() error {
		var free, want int
		err := w.db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM escrow_addresses WHERE network = 'tron' AND status = 'free'),
			(SELECT keep_free FROM escrow_policy WHERE network = 'tron')`).Scan(&free, &want)
		if err == nil && free < want {
			err = fmt.Errorf("%d of %d", free, want)
		}
		return err
	})
	if err != nil {
		t.Errorf("addresses are free: %v", err)
	}
}

// poolDry opens a sale when no address is free: one is made for it.
func poolDry(t *testing.T, w *world, b *saleTale, tr *trial, arm func()) {
	if _, err := w.db.ExecContext(t.Context(), `UPDATE escrow_addresses SET status = 'disabled', reason = 'crash trial' WHERE network = 'tron' AND status = 'free'`); err != nil {
		t.Fatal(err)
	}
	arm()
	b.open(t, w, tr)
	w.payIn(t, w.tronNode(), tr.order, soldCrypto)
}

func poolOpen(t *testing.T, w *world, _ *trial) {
	if _, err := w.db.ExecContext(t.Context(), `UPDATE escrow_addresses SET status = 'free', reason = '' WHERE network = 'tron' AND status = 'disabled'`); err != nil {
		t.Fatal(err)
	}
}

func salePaid(t *testing.T, w *world, _ *saleTale, tr *trial) {
	w.soldOnce(t, w.tronNode(), tr.order, soldCrypto, soldFiat)
}

func saleGivenBack(t *testing.T, w *world, b *saleTale, tr *trial) {
	w.cryptoBack(t, w.tronNode(), tr.order, exchange.DetailRefundOpen, b.back, soldCrypto)
}

func saleGivenUp(t *testing.T, w *world, _ *saleTale, tr *trial) {
	w.saleOver(t, w.ends(t, tr.order.ID, "cancelled", "cancelled_by_customer"))
}

// saleSweptUp waits until what was kept lies in the house's treasury wallet, once.
func saleSweptUp(t *testing.T, w *world, _ *saleTale, tr *trial) {
	id := w.exceptionOf(t, tr.order.ID, "late")
	err := await(t.Context(), recovery, func() error {
		var done int
		err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM chain_payments WHERE purpose = 'sweep' AND object_id = $1 AND status = 'completed'`, id).Scan(&done)
		if err == nil && done != 1 {
			err = errors.New("it is not")
		}
		return err
	})
	if err != nil {
		t.Fatalf("what was kept of %s is in the treasury: %v", tr.order.ID, err)
	}
	w.leftNothing(t, w.tronNode(), tr.order)
}
