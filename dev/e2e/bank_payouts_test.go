package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// A sale that is worth more than one officer may confirm alone: 20 at 128.755, less the cents.
const (
	largeCrypto = "20"
	largeFiat   = 2575
	oneOfficer  = 1500 // shillings, up to which one officer is enough
)

// bankPayout is a payment by bank as the treasury's queue shows it.
type bankPayout struct {
	OrderID   uuid.UUID `json:"order_id"`
	Status    string    `json:"status"`
	Amount    string    `json:"amount"`
	Account   string    `json:"beneficiary_account_number"`
	Bank      string    `json:"beneficiary_bank_name"`
	Name      string    `json:"beneficiary_account_name"`
	Second    bool      `json:"second_person_required"`
	Reference *string   `json:"bank_reference"`
}

// TestPaymentsByBank pays sales by bank: with one officer, with two officers, and not at all.
func TestPaymentsByBank(t *testing.T) {
	w := openBeside(t)
	w.letSend(t)
	t.Run("one officer is enough", func(t *testing.T) { paidAtBank(t, w, w.tronNode()) })
	w.twoOfficersAbove(t, oneOfficer) // together with all that the bank pays in a day
	t.Run("all", func(t *testing.T) {
		for _, story := range []struct {
			name string
			on   exchange.Network
			play func(*testing.T, *harness, demo.Node) order
		}{
			{"two officers have to agree", exchange.Ethereum, paidAtBankByTwo},
			{"the bank refuses", exchange.Tron, refusedAtBank},
			{"the bank refuses, and pays in the end", exchange.Ethereum, paidAtBankAfterAll},
		} {
			n, runs := w.nodeOf(story.on)
			if !runs {
				t.Logf("%s: left out, because the stack runs no %s node", story.name, story.on)
				continue
			}
			t.Run(story.name, func(t *testing.T) {
				t.Parallel()
				story.play(t, w, n)
			})
		}
	})
	w.invariants(t)
	w.booksAgree(t)
}

// twoOfficersAbove lowers the value up to which one officer is enough. One admin alone may make that rule stricter.
func (w *harness) twoOfficersAbove(t *testing.T, shillings int64) {
	t.Helper()
	in := map[string]any{"approvals": map[string]any{"bank_payout": map[string]any{"two_above": fmt.Sprint(shillings)}}}
	if err := w.admin(t).Do(t.Context(), http.MethodPatch, "/api/v1/auth/limits", "", in, nil); err != nil {
		t.Fatal(err)
	}
}

// remitToBank opens a remittance to a bank account, brings its crypto, and waits until it is in the treasury's queue.
func (w *harness) remitToBank(t *testing.T, n demo.Node, crypto, back string) order {
	t.Helper()
	c, in := remittedToBank(t, w, n)
	in["crypto_amount"] = crypto
	if back != "" {
		in["refund_address"] = back
	}
	o, err := place(t.Context(), c, in, uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	w.payIn(t, n, o, crypto)
	eventually(t, "the payment is in the treasury's queue", func() error {
		p, err := w.atTheTreasury(t, o, "processing")
		if err == nil && (p.Account != "0123456789" || p.Bank != "Equity Bank" || p.Name != "John Kamau") {
			t.Errorf("the queue shows %+v", p)
		}
		return err
	})
	return o
}

func remittedToBank(t *testing.T, w *harness, n demo.Node) (*client.Client, map[string]any) {
	t.Helper()
	c, in := remitted(t, w, n)
	delete(in, "payment_phone_number")
	for name, text := range map[string]string{
		"payment_method": "bank", "beneficiary_bank_name": "Equity Bank", "beneficiary_account_number": "0123456789", "beneficiary_bank_code": "68",
	} {
		in[name] = text
	}
	return c, in
}

// atTheTreasury finds an order among the payments by bank with a status.
func (w *harness) atTheTreasury(t *testing.T, o order, status string) (bankPayout, error) {
	t.Helper()
	var page struct {
		All []bankPayout `json:"bank_payouts"`
	}
	if err := w.operator(t).Get(t.Context(), "/api/v1/auth/bank-payouts?status="+status, &page); err != nil {
		return bankPayout{}, err
	}
	for _, p := range page.All {
		if p.OrderID == o.ID {
			return p, nil
		}
	}
	return bankPayout{}, errors.New("it is not " + status)
}

// nairobi is the time zone of an officer's dates.
var nairobi = time.FixedZone("EAT", 3*60*60)

// bankConfirmation is an officer's confirmation that the bank has paid the given shillings.
func bankConfirmation(reference string, shillings int64) map[string]any {
	return map[string]any{"reference": reference, "paid_on": time.Now().In(nairobi).Format(time.DateOnly), "amount": fmt.Sprint(shillings)}
}

func newReference() string { return "FT" + strings.ToUpper(uuid.NewString()[:8]) }

func answerAsBank(t *testing.T, officer *client.Client, o order, verb string, in map[string]any) error {
	t.Helper()
	return officer.Post(t.Context(), "/api/v1/auth/orders/"+o.ID.String()+"/"+verb, uuid.NewString(), in, nil)
}

// boundToBank checks a sale that officers have paid by bank: it is completed with the bank's reference and booked
// against the bank, its crypto is with the vendor, and mobile money paid nothing.
func (w *harness) boundToBank(t *testing.T, n demo.Node, o order, crypto string, shillings int64) {
	t.Helper()
	o = w.untilFor(t, o.ID, "over", recovery, order.Over)
	if o.Status != "completed" || o.FiatAmount != fmt.Sprintf("%d.00", shillings) {
		t.Fatalf("a sale that was paid at the bank ended %s for KES %s", o, o.FiatAmount)
	}
	w.saleOver(t, o)
	cameOnce(t, n, w.walletOf(t, demo.VendorEmail, n.Network).Address, w.sentFor(t, "sweep", o.ID), money.Must(money.USDT, crypto))
	w.leftNothing(t, n, o)
	if paid := w.paidFor(t, o); len(paid) != 0 {
		t.Errorf("a sale that was paid at the bank was paid by mobile money too: %+v", paid)
	}
	owed := money.Must(money.USDT, crypto)
	if lines := w.lines(t, "order:"+o.ID.String()+":completed"); !equalAmounts(lines, bankLines[owed.String()]) {
		t.Errorf("%s is booked as %v", o.ID, lines)
	}
}

// bankLines is the booking of a sale that was paid by bank: the vendor pays what the crypto is worth, the bank pays
// the whole shillings of it, and the house keeps the cents.
var bankLines = map[string]map[string]string{
	"10.000000": {"fiat_balance": "1287.55", "bank": "-1287", "rounding": "0.55"},
	"20.000000": {"fiat_balance": "2575.10", "bank": "-2575", "rounding": "0.10"},
}

// paidAtBank has one officer confirm the payment.
func paidAtBank(t *testing.T, w *harness, n demo.Node) order {
	o := w.remitToBank(t, n, soldCrypto, "")
	reference := newReference()
	if err := answerAsBank(t, w.operator(t), o, "confirm-bank-payout", bankConfirmation(reference, soldFiat-1)); !is(err, http.StatusUnprocessableEntity) && !is(err, http.StatusConflict) {
		t.Errorf("the response to an amount that is not the order's: %v", err)
	}
	if err := answerAsBank(t, w.operator(t), o, "confirm-bank-payout", bankConfirmation(reference, soldFiat)); err != nil {
		t.Fatal(err)
	}
	w.boundToBank(t, n, o, soldCrypto, soldFiat)
	if p, err := w.atTheTreasury(t, o, "completed"); err != nil || p.Reference == nil || *p.Reference != reference {
		t.Errorf("the queue shows %+v: %v", p, err)
	}
	if err := answerAsBank(t, w.operator(t), o, "confirm-bank-payout", bankConfirmation(newReference(), soldFiat)); !is(err, http.StatusConflict) {
		t.Errorf("the response to a second payment of a paid order: %v", err)
	}
	return o
}

// paidAtBankByTwo has a second officer confirm, who must name the same payment.
func paidAtBankByTwo(t *testing.T, w *harness, n demo.Node) order {
	o := w.remitToBank(t, n, largeCrypto, "")
	first, second, word := w.operator(t), w.as(t, secondOfficer), bankConfirmation(newReference(), largeFiat)
	if p, err := w.atTheTreasury(t, o, "processing"); err != nil || !p.Second {
		t.Errorf("the queue asks for one officer: %+v, %v", p, err)
	}
	if err := answerAsBank(t, first, o, "confirm-bank-payout", word); err != nil {
		t.Fatal(err)
	}
	w.until(t, o.ID, "waiting for the second officer", detail("bank_second"))
	if err := answerAsBank(t, first, o, "confirm-bank-payout", word); !is(err, http.StatusConflict) {
		t.Errorf("the response to the same officer's second confirmation: %v", err)
	}
	if err := answerAsBank(t, second, o, "confirm-bank-payout", bankConfirmation(newReference(), largeFiat)); !is(err, http.StatusConflict) {
		t.Errorf("the response to a payment that is not the first officer's: %v", err)
	}
	if err := answerAsBank(t, second, o, "refuse-bank-payout", map[string]any{"note": "the account is closed"}); !is(err, http.StatusConflict) {
		t.Errorf("the response to a refusal after a confirmation: %v", err)
	}
	if now, err := w.read(t, o.ID); err != nil || now.Status != "processing" {
		t.Fatalf("after one officer's confirmation the sale is %s: %v", now, err)
	}
	if err := answerAsBank(t, second, o, "confirm-bank-payout", word); err != nil {
		t.Fatal(err)
	}
	w.boundToBank(t, n, o, largeCrypto, largeFiat)
	return o
}

// refusedByBank has two officers say that the bank refused, and waits until the sale's flow parks for a decision.
func (w *harness) refusedByBank(t *testing.T, o order) {
	t.Helper()
	var waits struct {
		ConfirmAt []string `json:"confirm_at"`
	}
	if err := w.operator(t).Post(t.Context(), "/api/v1/auth/orders/"+o.ID.String()+"/refuse-bank-payout", uuid.NewString(), map[string]any{"note": "the account is closed"}, &waits); err != nil {
		t.Fatal(err)
	}
	if p, err := w.atTheTreasury(t, o, "processing"); err != nil {
		t.Errorf("one officer took it out of the queue: %+v, %v", p, err)
	}
	for _, path := range waits.ConfirmAt {
		if err := w.as(t, secondOfficer).Decide(t.Context(), path, uuid.NewString(), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	w.parkedWith(t, workflows.OffRampID(o.ID), workflows.ReasonBankRefused)
}

// refusedAtBank gives the crypto back. That officers said that nothing was paid is no proof, so another one has to
// approve.
func refusedAtBank(t *testing.T, w *harness, n demo.Node) order {
	back, err := stranger(n.Network)
	if err != nil {
		t.Fatal(err)
	}
	o := w.remitToBank(t, n, soldCrypto, back)
	w.refusedByBank(t, o)
	w.sendCommand(t, w.operator(t), o.ID, "refund", map[string]any{"note": "the account is closed"})
	w.agreed(t, o)
	w.cryptoRefund(t, n, o, exchange.DetailRefundOpen, back, soldCrypto)
	if err := answerAsBank(t, w.operator(t), o, "confirm-bank-payout", bankConfirmation(newReference(), soldFiat)); !is(err, http.StatusConflict) {
		t.Errorf("the response to a payment of an order whose crypto went back: %v", err)
	}
	if p, err := w.atTheTreasury(t, o, "processing"); err == nil {
		t.Errorf("it still waits in the treasury's queue: %+v", p)
	}
	return o
}

// paidAtBankAfterAll has the payment made with corrected details after the bank refused it. It needs two officers, because what
// single ones confirm in a day counts together, and another story needs only one.
func paidAtBankAfterAll(t *testing.T, w *harness, n demo.Node) order {
	o := w.remitToBank(t, n, largeCrypto, "")
	w.refusedByBank(t, o)
	w.sendCommand(t, w.operator(t), o.ID, "retry", map[string]any{"note": "the bank takes it under the account's new number"})
	word := bankConfirmation(newReference(), largeFiat)
	eventually(t, "the officer's confirmation is accepted", func() error { return answerAsBank(t, w.operator(t), o, "confirm-bank-payout", word) })
	if err := answerAsBank(t, w.as(t, secondOfficer), o, "confirm-bank-payout", word); err != nil {
		t.Fatal(err)
	}
	w.boundToBank(t, n, o, largeCrypto, largeFiat)
	return o
}
