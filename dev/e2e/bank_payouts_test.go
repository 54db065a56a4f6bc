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

// bankPayout is a payment by bank as its desk shows it.
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

// TestPaymentsByBank pays sales at a bank: with one officer, with two, and not at all.
func TestPaymentsByBank(t *testing.T) {
	w := open(t)
	w.letSend(t)
	w.twoOfficersAbove(t, oneOfficer)
	t.Run("all", func(t *testing.T) {
		for _, story := range []struct {
			name string
			on   exchange.Network
			play func(*testing.T, *world, demo.Node) order
		}{
			{"one officer is enough", exchange.Tron, paidAtBank},
			{"two officers have to agree", exchange.Ethereum, paidAtBankByTwo},
			{"the bank refuses", exchange.Tron, refusedAtBank},
			{"the bank refuses, and pays in the end", exchange.Ethereum, paidAtBankAfterAll},
		} {
			n, runs := w.nodeOf(story.on)
			if !runs {
				t.Logf("%s: left out, because %s does not run", story.name, story.on)
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

// twoOfficersAbove lowers the value up to which one officer is enough. To ask for more decisions takes one person.
func (w *world) twoOfficersAbove(t *testing.T, shillings int64) {
	t.Helper()
	in := map[string]any{"approvals": map[string]any{"bank_payout": map[string]any{"two_above": fmt.Sprint(shillings)}}}
	if err := w.admin(t).Do(t.Context(), http.MethodPatch, "/api/v1/auth/limits", "", in, nil); err != nil {
		t.Fatal(err)
	}
}

// remitToBank opens a remittance to a bank account, brings its crypto, and waits until it is on the officers' desk.
func (w *world) remitToBank(t *testing.T, n demo.Node, crypto, back string) order {
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
	eventually(t, "the payment is on the desk", func() error {
		p, err := w.onDesk(t, o, "waiting")
		if err == nil && (p.Account != "0123456789" || p.Bank != "Equity Bank" || p.Name != "John Kamau") {
			t.Errorf("the desk shows %+v", p)
		}
		return err
	})
	return o
}

func remittedToBank(t *testing.T, w *world, n demo.Node) (*client.Client, map[string]any) {
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

// onDesk finds an order among the payments by bank that are in a state.
func (w *world) onDesk(t *testing.T, o order, status string) (bankPayout, error) {
	t.Helper()
	var desk struct {
		All []bankPayout `json:"bank_payouts"`
	}
	if err := w.operator(t).Get(t.Context(), "/api/v1/auth/bank-payouts?status="+status, &desk); err != nil {
		return bankPayout{}, err
	}
	for _, p := range desk.All {
		if p.OrderID == o.ID {
			return p, nil
		}
	}
	return bankPayout{}, errors.New("it is not " + status)
}

// nairobi is where an officer's days begin and end.
var nairobi = time.FixedZone("EAT", 3*60*60)

// bankWord is an officer's word that the bank has paid so many shillings.
func bankWord(reference string, shillings int64) map[string]any {
	return map[string]any{"reference": reference, "paid_on": time.Now().In(nairobi).Format(time.DateOnly), "amount": fmt.Sprint(shillings)}
}

func newReference() string { return "FT" + strings.ToUpper(uuid.NewString()[:13]) }

func sayOfBank(t *testing.T, officer *client.Client, o order, verb string, in map[string]any) error {
	t.Helper()
	return officer.Post(t.Context(), "/api/v1/auth/orders/"+o.ID.String()+"/"+verb, uuid.NewString(), in, nil)
}

// boundToBank checks a sale that officers have paid at the bank: completed by the bank's reference, booked against the
// bank, its crypto with the vendor, and nothing left by mobile money.
func (w *world) boundToBank(t *testing.T, n demo.Node, o order, crypto string, shillings int64) {
	t.Helper()
	o = w.untilFor(t, o.ID, "over", recovery, order.over)
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

// bankLines are what a sale that was paid at the bank is booked as: the vendor pays what the crypto is worth, the bank the
// whole shillings of it, and the cents stay with the house.
var bankLines = map[string]map[string]string{
	"10.000000": {"fiat_balance": "1287.55", "bank": "-1287", "rounding": "0.55"},
	"20.000000": {"fiat_balance": "2575.10", "bank": "-2575", "rounding": "0.10"},
}

// paidAtBank has one officer pay.
func paidAtBank(t *testing.T, w *world, n demo.Node) order {
	o := w.remitToBank(t, n, soldCrypto, "")
	reference := newReference()
	if err := sayOfBank(t, w.operator(t), o, "confirm-bank-payout", bankWord(reference, soldFiat-1)); !is(err, http.StatusUnprocessableEntity) && !is(err, http.StatusConflict) {
		t.Errorf("another amount than the order's was answered with %v", err)
	}
	if err := sayOfBank(t, w.operator(t), o, "confirm-bank-payout", bankWord(reference, soldFiat)); err != nil {
		t.Fatal(err)
	}
	w.boundToBank(t, n, o, soldCrypto, soldFiat)
	if p, err := w.onDesk(t, o, "done"); err != nil || p.Reference == nil || *p.Reference != reference {
		t.Errorf("the desk shows %+v: %v", p, err)
	}
	if err := sayOfBank(t, w.operator(t), o, "confirm-bank-payout", bankWord(newReference(), soldFiat)); !is(err, http.StatusConflict) {
		t.Errorf("a second payment of an order that is paid was answered with %v", err)
	}
	return o
}

// paidAtBankByTwo has a second officer agree, who must name the same payment.
func paidAtBankByTwo(t *testing.T, w *world, n demo.Node) order {
	o := w.remitToBank(t, n, largeCrypto, "")
	first, second, word := w.operator(t), w.as(t, secondOfficer), bankWord(newReference(), largeFiat)
	if p, err := w.onDesk(t, o, "waiting"); err != nil || !p.Second {
		t.Errorf("the desk asks for one officer: %+v, %v", p, err)
	}
	if err := sayOfBank(t, first, o, "confirm-bank-payout", word); err != nil {
		t.Fatal(err)
	}
	w.until(t, o.ID, "waiting for the second officer", detail("bank_second"))
	if err := sayOfBank(t, first, o, "confirm-bank-payout", word); !is(err, http.StatusConflict) {
		t.Errorf("the same officer's second word was answered with %v", err)
	}
	if err := sayOfBank(t, second, o, "confirm-bank-payout", bankWord(newReference(), largeFiat)); !is(err, http.StatusConflict) {
		t.Errorf("another payment than the first officer's was answered with %v", err)
	}
	if err := sayOfBank(t, second, o, "refuse-bank-payout", map[string]any{"note": "the account is closed"}); !is(err, http.StatusConflict) {
		t.Errorf("a refusal beside a confirmation was answered with %v", err)
	}
	if now, err := w.read(t, o.ID); err != nil || now.Status != "processing" {
		t.Fatalf("one officer's word made the sale %s: %v", now, err)
	}
	if err := sayOfBank(t, second, o, "confirm-bank-payout", word); err != nil {
		t.Fatal(err)
	}
	w.boundToBank(t, n, o, largeCrypto, largeFiat)
	return o
}

// refusedByBank has an officer post that the bank refuses, and waits until the sale's flow asks what becomes of it.
func (w *world) refusedByBank(t *testing.T, o order) {
	t.Helper()
	if err := sayOfBank(t, w.operator(t), o, "refuse-bank-payout", map[string]any{"note": "the account is closed"}); err != nil {
		t.Fatal(err)
	}
	w.parkedWith(t, workflows.OffRampID(o.ID), workflows.ReasonBankRefused)
}

// refusedAtBank gives the crypto back. That nothing was paid is one officer's word, so another one has to agree.
func refusedAtBank(t *testing.T, w *world, n demo.Node) order {
	back, err := stranger(n.Network)
	if err != nil {
		t.Fatal(err)
	}
	o := w.remitToBank(t, n, soldCrypto, back)
	w.refusedByBank(t, o)
	w.tell(t, w.operator(t), o.ID, "refund", map[string]any{"note": "the account is closed"})
	w.agreed(t, o)
	w.cryptoBack(t, n, o, exchange.DetailRefundOpen, back, soldCrypto)
	if err := sayOfBank(t, w.operator(t), o, "confirm-bank-payout", bankWord(newReference(), soldFiat)); !is(err, http.StatusConflict) {
		t.Errorf("a payment of an order whose crypto went back was answered with %v", err)
	}
	if p, err := w.onDesk(t, o, "waiting"); err == nil {
		t.Errorf("it still waits on the desk: %+v", p)
	}
	return o
}

// paidAtBankAfterAll has the payment made with better details after the bank had refused it.
func paidAtBankAfterAll(t *testing.T, w *world, n demo.Node) order {
	o := w.remitToBank(t, n, soldCrypto, "")
	w.refusedByBank(t, o)
	w.tell(t, w.operator(t), o.ID, "retry", map[string]any{"note": "the bank takes it under the account's new number"})
	word := bankWord(newReference(), soldFiat)
	eventually(t, "the officer's word is taken", func() error { return sayOfBank(t, w.operator(t), o, "confirm-bank-payout", word) })
	w.boundToBank(t, n, o, soldCrypto, soldFiat)
	return o
}
