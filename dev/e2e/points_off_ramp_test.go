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

// saleScenario is the scenario of a sale of crypto, on TRON.
type saleScenario struct {
	fault string // of the operator, on the payout
	scene saleScene
	then  func(t *testing.T, w *harness, tr *trial) // when the process is back
	judgement
	back string
}

// saleScene opens the trial's order and arms the point; the usual one arms it when the order is open and then sends the
// crypto.
type saleScene func(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func())

// judgement waits for a sale's end and compares it with the operator's and the chain's records.
type judgement func(t *testing.T, w *harness, b *saleScenario, tr *trial)

// saleRows are those with sales. They follow TRON's other rows, when no transfer fails any more; the one that reorganises
// the chain comes last.
func saleRows() []row {
	paid := saleScenario{scene: saleBrought, judgement: salePaid}.scenario
	refused := saleScenario{scene: saleBrought, fault: "unregistered", judgement: saleGivenBack}.scenario
	return slices.Concat([]row{
		{"OpenOffRamp/*/*", "flows", saleScenario{scene: saleOpened, judgement: salePaid}.scenario},
		{"CloseOffRamp/*/*", "flows", saleScenario{scene: saleCancelled, judgement: saleGivenUp}.scenario},
		{"ApplyDeposit/SeeDeposit#?/*", "flows", saleScenario{scene: saleSeen, then: tronOn, judgement: salePaid}.scenario},
		{"ApplyDeposit/TakeDeposit#?/*", "flows", paid},
		{"DecideDeposit/*/*", "flows", saleScenario{scene: saleDecided, judgement: saleRepriced}.scenario},
		{"ScreenDeposit/*/*", "flows", paid},
		{"SubmitPayout/*/*", "momo", paid},
		{"CheckPayout/SavePayoutQuery#?/*", "momo", paid},
		{"CheckPayout/CompletePayout#?/*", "momo", paid},
		{"ApproveSweep/*/*", "flows", paid},
		{"ReleaseEscrow/*/*", "flows", paid},
		{"CheckPayout/RecordFailure#?/*", "momo", refused},
		{"CheckPayout/FailPayout#?/*", "momo", refused},
		{"OpenChainRefund/*/*", "flows", refused},
		{"ApproveRefundPayment/*/*", "flows", refused},
		{"ApproveKeptSweep/*/*", "flows", saleScenario{scene: saleKept, judgement: saleSweptUp}.scenario},
		{"LookAtBank/*/*", "flows", saleScenario{scene: saleToBank, judgement: salePaidByBank}.scenario},
	}, decisionRows(), []row{
		{"EscrowDemand/*/*", "flows", saleScenario{scene: poolReplenished, then: poolWasReplenished, judgement: poolAsWanted}.scenario},
		{"MakeEscrowWallet/*/*", "signer-tron", saleScenario{scene: poolReplenished, then: poolWasReplenished, judgement: poolAsWanted}.scenario},
		{"EscrowRoom/*/*", "flows", saleScenario{scene: poolExhausted, then: poolOpen, judgement: salePaid}.scenario},
		{"ApplyDeposit/LoseDeposit#?/*", "flows", saleScenario{scene: saleLost, then: saleFound, judgement: salePaid}.scenario},
	})
}

// scenario makes a new scenario for each trial.
func (b saleScenario) scenario() scenario { return &b }

func (w *harness) tronNode() demo.Node { return w.seed().Nodes()[0] }

func (b *saleScenario) play(t *testing.T, w *harness, tr *trial, arm func()) {
	t.Helper()
	var err error
	if b.back, err = stranger(exchange.Tron); err != nil {
		t.Fatal(err)
	}
	b.scene(t, w, b, tr, arm)
}

func (b *saleScenario) restarted(t *testing.T, w *harness, tr *trial) {
	t.Helper()
	if b.then != nil {
		b.then(t, w, tr)
	}
}

func (b *saleScenario) judge(t *testing.T, w *harness, tr *trial) {
	t.Helper()
	tr.answered(t)
	b.judgement(t, w, b, tr)
}

// open opens the trial's order.
func (b *saleScenario) open(t *testing.T, w *harness, tr *trial) {
	t.Helper()
	phone := newPhone()
	if b.fault != "" {
		w.fault(t, b.fault, "payout", phone)
	}
	tr.order = w.sell(t, w.tronNode(), sale{phone: phone, back: b.back})
}

func saleBrought(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func()) {
	b.open(t, w, tr)
	arm()
	w.payIn(t, w.tronNode(), tr.order, soldCrypto)
}

// saleSeen keeps the crypto in a block that is not final until the process has died.
func saleSeen(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func()) {
	b.open(t, w, tr)
	w.tron(t, "/pause", nil)
	arm()
	w.payIn(t, w.tronNode(), tr.order, soldCrypto)
}

func tronOn(t *testing.T, w *harness, _ *trial) { w.tron(t, "/resume", nil) }

func saleOpened(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func()) {
	arm()
	b.open(t, w, tr)
	w.payIn(t, w.tronNode(), tr.order, soldCrypto)
}

func saleCancelled(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func()) {
	b.open(t, w, tr)
	arm()
	tr.background(t, w.amina(t), "/api/v1/auth/orders/"+tr.order.ID.String()+"/cancel", uuid.NewString(), nil, nil)
}

// saleDecided brings less than was asked for, and the seller wants to be paid for it.
func saleDecided(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func()) {
	b.open(t, w, tr)
	w.payIn(t, w.tronNode(), tr.order, "9.5")
	o := w.until(t, tr.order.ID, "asking for the seller's word", func(o order) bool { return o.Other != nil })
	arm()
	path := "/api/v1/auth/orders/" + tr.order.ID.String() + "/accept-deposit"
	tr.background(t, w.amina(t), path, uuid.NewString(), map[string]any{"digest": o.Other.Digest}, nil)
}

func saleRepriced(t *testing.T, w *harness, _ *saleScenario, tr *trial) {
	w.soldOnce(t, w.tronNode(), tr.order, "9.5", 1223)
}

// saleLost removes the block in which the crypto was seen by a reorganisation.
func saleLost(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func()) {
	n := w.tronNode()
	b.open(t, w, tr)
	post(t, n, "/pause", nil)
	w.payIn(t, n, tr.order, soldCrypto)
	w.until(t, tr.order.ID, "seen", func(o order) bool { return o.Status == "confirming" && o.Deposit.String != "" })
	arm()
	post(t, n, "/reorganise", map[string]any{"blocks": 1, "drop": true})
}

func saleFound(t *testing.T, w *harness, tr *trial) {
	post(t, w.tronNode(), "/resume", nil)
	w.payIn(t, w.tronNode(), tr.order, soldCrypto)
}

// saleKept makes the house keep a deposit to a cancelled order.
func saleKept(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func()) {
	b.open(t, w, tr)
	w.sendCommand(t, w.amina(t), tr.order.ID, "cancel", nil)
	w.ends(t, tr.order.ID, "cancelled", "cancelled_by_customer")
	w.payIn(t, w.tronNode(), tr.order, "4")
	w.exception(t, tr.order.ID, "late", "open", "4.000000")
	arm()
	path := "/api/v1/auth/payment-exceptions/" + w.exceptionOf(t, tr.order.ID, "late").String() + "/accept"
	tr.background(t, w.operator(t), path, uuid.NewString(), map[string]any{"note": "crash trial"}, nil)
}

func (w *harness) exceptionOf(t *testing.T, orderID uuid.UUID, kind string) (id uuid.UUID) {
	t.Helper()
	err := w.db.QueryRowContext(t.Context(), `SELECT id FROM payment_exceptions WHERE order_id = $1 AND kind = $2`, orderID, kind).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// saleFunded sells crypto of the customer's custodial wallet.
func saleFunded(t *testing.T, w *harness, b *saleScenario, tr *trial, arm func()) {
	b.funded(t, w, tr, demo.CustomerEmail, arm)
}

// funded opens a sale from a new custodial wallet of a customer.
func (b *saleScenario) funded(t *testing.T, w *harness, tr *trial, email string, arm func()) {
	t.Helper()
	n := w.tronNode()
	s := sale{phone: newPhone(), back: b.back}
	wallet := w.fundedWallet(t, n.Network, email, exchange.Hot, money.Must(money.USDT, "15"), money.Must(money.TRX, "200"))
	in := w.saleForm(t, n, &s)
	in["wallet_id"] = wallet.ID
	delete(in, "refund_address")
	arm()
	var err error
	if tr.order, err = place(t.Context(), w.as(t, email), in, s.key); err != nil {
		t.Fatal(err)
	}
}

func salePaid(t *testing.T, w *harness, _ *saleScenario, tr *trial) {
	w.soldOnce(t, w.tronNode(), tr.order, soldCrypto, soldFiat)
}

func saleGivenBack(t *testing.T, w *harness, b *saleScenario, tr *trial) {
	w.cryptoRefund(t, w.tronNode(), tr.order, exchange.DetailRefundOpen, b.back, soldCrypto)
}

func saleGivenUp(t *testing.T, w *harness, _ *saleScenario, tr *trial) {
	w.saleOver(t, w.ends(t, tr.order.ID, "cancelled", "cancelled_by_customer"))
}

// saleSweptUp waits until the kept crypto is in the house's treasury wallet, once.
func saleSweptUp(t *testing.T, w *harness, _ *saleScenario, tr *trial) {
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
