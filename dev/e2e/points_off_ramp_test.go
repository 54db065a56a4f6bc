package e2e

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
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

// saleRows are those with sales. They follow the others of TRON, where nothing fails any more; the one that reorganises the
// chain comes last.
func saleRows() []row {
	paid := saleTale{scene: saleBrought, judgement: salePaid}.tale
	refused := saleTale{scene: saleBrought, fault: "unregistered", judgement: saleGivenBack}.tale
	return slices.Concat([]row{
		{"OpenOffRamp/*/*", "flows", saleTale{scene: saleOpened, judgement: salePaid}.tale},
		{"CloseOffRamp/*/*", "flows", saleTale{scene: saleCancelled, judgement: saleGivenUp}.tale},
		{"HeedDeposit/SeeDeposit#?/*", "flows", saleTale{scene: saleSeen, then: tronOn, judgement: salePaid}.tale},
		{"HeedDeposit/TakeDeposit#?/*", "flows", paid},
		{"ScreenDeposit/*/*", "flows", paid},
		{"SubmitPayout/*/*", "momo", paid},
		{"CheckPayout/CompleteOrderPayout#?/*", "momo", paid},
		{"ApproveSweep/*/*", "flows", paid},
		{"ReleaseEscrow/*/*", "flows", paid},
		{"CheckPayout/RecordFailure#?/*", "momo", refused},
		{"CheckPayout/FailOrderPayout#?/*", "momo", refused},
		{"OpenChainRefund/*/*", "flows", refused},
		{"ApproveRefundPayment/*/*", "flows", refused},
		{"ApproveFunding/*/*", "flows", saleTale{scene: saleFunded, judgement: salePaid}.tale},
		{"ApproveKeptSweep/*/*", "flows", saleTale{scene: saleKept, judgement: saleSweptUp}.tale},
		{"LookAtBank/*/*", "flows", saleTale{scene: saleToBank, judgement: salePaidByBank}.tale},
	}, decisionRows(), []row{
		{"EscrowDemand/*/*", "flows", saleTale{scene: poolTended, then: poolWasTended, judgement: poolAsWanted}.tale},
		{"EscrowRoom/*/*", "flows", saleTale{scene: poolDry, then: poolOpen, judgement: salePaid}.tale},
		{"HeedDeposit/LoseDeposit#?/*", "flows", saleTale{scene: saleLost, then: saleFound, judgement: salePaid}.tale},
	})
}

// tale makes a tale of its own for each trial.
func (b saleTale) tale() tale { return &b }

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

// saleSeen has the crypto be in a block that is not final until the process has died.
func saleSeen(t *testing.T, w *world, b *saleTale, tr *trial, arm func()) {
	b.open(t, w, tr)
	w.tron(t, "/pause", nil)
	arm()
	w.payIn(t, w.tronNode(), tr.order, soldCrypto)
}

func tronOn(t *testing.T, w *world, _ *trial) { w.tron(t, "/resume", nil) }

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
