package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	temporal "go.temporal.io/sdk/client"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/nodes/tron"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
	"kivuko/workflows"
)

const usdt = tron.USDTAddress

// TestFlows runs the on-ramp scenarios through the public API alone. The first ones change settings of the whole
// chain, so they run one after the other; the rest run in parallel.
func TestFlows(t *testing.T) {
	w := open(t)
	t.Run("stories", func(t *testing.T) {
		for _, story := range []struct {
			name string
			play func(*testing.T, *harness)
		}{
			{"reverted payouts wait for an operator", reverted},
			{"a dropped transaction is rebuilt only after it expired", dropped},
			{"a reorganised block takes no money", reorganised},
			{"happy", happy},
			{"by shillings", byFiat},
			{"declined", declined},
			{"insufficient, then paid", retried},
			{"no answer, then given up", unanswered},
			{"lost callback", lostCallback},
			{"lost callback and lost answer", lostAnswer},
			{"doubled callback", doubledCallback},
			{"paid less", paidLess},
			{"paid less, and the refund's answer is lost", refundUnreported},
			{"paid less, and the refund's result comes twice", refundTwice},
			{"paid more", paidMore},
			{"paid after it had ended", paidLate},
			{"cancelled", cancelled},
			{"refused", refused},
		} {
			t.Run(story.name, func(t *testing.T) {
				story.play(t, w)
				w.invariants(t)
			})
		}
	})
	w.agree(t) // the group has ended, so nothing is under way
}

func happy(t *testing.T, w *harness) {
	t.Parallel()
	phone := newPhone()
	o := w.buy(t, purchase{crypto: "10", phone: phone})
	if o.Status != "pending" || o.CustomerID != w.customer || o.VendorID != w.vendor || o.Phone.String != phone || o.Receipt.Valid || o.TxHash.Valid {
		t.Errorf("a new order is %+v", o)
	}
	o = w.ends(t, o.ID, "completed", "none")
	if o.FiatAmount != "1294.00" || o.CryptoAmount != "10.000000" || o.Rate != "129.355" {
		t.Errorf("10 USDT at 129.355 cost KES %s, %s USDT at %s", o.FiatAmount, o.CryptoAmount, o.Rate)
	}
	if !o.CompletedAt.Valid || o.PaymentTxnID != o.Receipt {
		t.Errorf("a completed order is %+v", o)
	}
	b := w.books(t)
	w.paidOnce(t, b, o)
	if e := collected(b, o.ID); len(e) == 1 && (e[0].Amount != 1294 || e[0].Phone != phone) {
		t.Errorf("collected was %+v", e[0])
	}
	if n := len(prompted(b, o.ID)); n != 1 {
		t.Errorf("the payer was prompted %d times", n)
	}
	want := []string{
		"order.opened", "payment_attempt.created", "payment_attempt.succeeded", "order.processing", "chain_payment.approved",
		"chain_payment.signed", "chain_payment.broadcast", "order.confirming", "chain_payment.completed", "order.completed",
	}
	got := slices.DeleteFunc(w.timeline(t, o.ID), func(e string) bool { return !slices.Contains(want, e) })
	if !slices.Equal(got, want) {
		t.Errorf("the timeline is %v, not %v", got, want)
	}
	for key, times := range w.entries(t, o) {
		if times != 1 {
			t.Errorf("%s was booked %d times", key, times)
		}
	}
}

// entries counts the bookings that a completed order must have.
func (w *harness) entries(t *testing.T, o order) map[string]int {
	t.Helper()
	keys := map[string]int{"momo:" + o.Receipt.String: 0, "chain_payment:" + w.paymentOf(t, o.ID).String() + ":completed": 0, "order:" + o.ID.String() + ":completed": 0}
	for key := range keys {
		var n int
		if err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM ledger_entries WHERE key = $1`, key).Scan(&n); err != nil {
			t.Fatal(err)
		}
		keys[key] = n
	}
	return keys
}

func byFiat(t *testing.T, w *harness) {
	t.Parallel()
	o := w.ends(t, w.buy(t, purchase{fiat: "1000"}).ID, "completed", "")
	if o.FiatAmount != "1000.00" || o.CryptoAmount != "7.730663" { // 1000 / 129.355, rounded down
		t.Errorf("KES 1000 bought %s USDT for KES %s", o.CryptoAmount, o.FiatAmount)
	}
	b := w.books(t)
	w.paidOnce(t, b, o)
	if e := collected(b, o.ID); len(e) == 1 && e[0].Amount != 1000 {
		t.Errorf("collected was %+v", e[0])
	}
}

func declined(t *testing.T, w *harness) {
	t.Parallel()
	phone := newPhone()
	w.fault(t, "declined", "prompt", phone)
	o := w.ends(t, w.buy(t, purchase{crypto: "5", phone: phone}).ID, "failed", "declined")
	w.notPaidOut(t, o)
	if e := collected(w.books(t), o.ID); len(e) != 0 {
		t.Errorf("collected was %+v", e)
	}
}

func retried(t *testing.T, w *harness) {
	t.Parallel()
	phone := newPhone()
	w.fault(t, "insufficient", "prompt", phone)
	o := w.buy(t, purchase{crypto: "5", phone: phone})
	w.until(t, o.ID, "waiting for another prompt", detail("payment_retry"))
	w.sendCommand(t, w.amina(t), o.ID, "retry-payment", nil)
	o = w.ends(t, o.ID, "completed", "")
	b := w.books(t)
	w.paidOnce(t, b, o)
	if n := len(prompted(b, o.ID)); n != 2 {
		t.Errorf("the payer was prompted %d times, not twice", n)
	}
}

func unanswered(t *testing.T, w *harness) {
	t.Parallel()
	phone := newPhone()
	w.fault(t, "no_response", "prompt", phone)
	o := w.buy(t, purchase{crypto: "5", phone: phone})
	w.until(t, o.ID, "waiting for another prompt", detail("payment_retry"))
	w.sendCommand(t, w.amina(t), o.ID, "cancel", nil)
	w.notPaidOut(t, w.ends(t, o.ID, "cancelled", "cancelled_by_customer"))
}

func lostCallback(t *testing.T, w *harness) {
	t.Parallel()
	phone := newPhone()
	w.fault(t, "callback_lost", "prompt", phone)
	o := w.ends(t, w.buy(t, purchase{crypto: "5", phone: phone}).ID, "completed", "")
	w.paidOnce(t, w.books(t), o)
}

// lostAnswer is the operator's worst failure: it accepted the prompt, the payer paid, the connection broke before the
// response, and the only callback is lost too.
func lostAnswer(t *testing.T, w *harness) {
	t.Parallel()
	phone := newPhone()
	w.fault(t, "accepted_drop", "prompt", phone)
	o := w.ends(t, w.buy(t, purchase{crypto: "5", phone: phone}).ID, "completed", "")
	b := w.books(t)
	w.paidOnce(t, b, o)
	if n := len(prompted(b, o.ID)); n != 1 {
		t.Errorf("the payer was prompted %d times", n)
	}
}

func doubledCallback(t *testing.T, w *harness) {
	t.Parallel()
	phone := newPhone()
	w.fault(t, "callback_twice", "prompt", phone)
	o := w.ends(t, w.buy(t, purchase{crypto: "5", phone: phone}).ID, "completed", "")
	w.paidOnce(t, w.books(t), o)
	for key, times := range w.entries(t, o) {
		if times != 1 {
			t.Errorf("%s was booked %d times", key, times)
		}
	}
}

func paidLess(t *testing.T, w *harness) {
	t.Parallel()
	phone := newPhone()
	w.fault(t, "pays_less", "prompt", phone)
	o := w.ends(t, w.buy(t, purchase{fiat: "1000", phone: phone}).ID, "failed", "underpaid")
	w.refunded(t, o, 999)
	w.notPaidOut(t, o)
	w.exception(t, o.ID, "under", "refunded", "999.00")
}

// refundUnreported breaks the connection after the operator accepted the payout: no second payout may be sent.
func refundUnreported(t *testing.T, w *harness) {
	t.Parallel()
	phone := newPhone()
	w.fault(t, "pays_less", "prompt", phone)
	w.fault(t, "payout_accepted_drop", "payout", phone)
	o := w.ends(t, w.buy(t, purchase{fiat: "600", phone: phone}).ID, "failed", "underpaid")
	w.refunded(t, o, 599)
}

func refundTwice(t *testing.T, w *harness) {
	t.Parallel()
	phone := newPhone()
	w.fault(t, "pays_less", "prompt", phone)
	w.fault(t, "result_twice", "payout", phone)
	o := w.ends(t, w.buy(t, purchase{fiat: "600", phone: phone}).ID, "failed", "underpaid")
	w.refunded(t, o, 599)
}

// paidMore by a shilling is delivered. The shilling is below the operator's payout minimum, so it is kept until the
// payer asks for it, and needs no operator.
func paidMore(t *testing.T, w *harness) {
	t.Parallel()
	phone := newPhone()
	w.fault(t, "pays_more", "prompt", phone)
	o := w.ends(t, w.buy(t, purchase{fiat: "1000", phone: phone}).ID, "completed", "none")
	w.paidOnce(t, w.books(t), o)
	w.exception(t, o.ID, "over", "accepted", "1.00")
	if back := paidBack(w.books(t), phone); len(back) != 0 {
		t.Errorf("the operator paid out %+v", back)
	}
}

// exception waits until the order's only payment exception is as given.
func (w *harness) exception(t *testing.T, orderID uuid.UUID, kind, status, amount string) {
	t.Helper()
	eventually(t, "exception "+kind+" "+status, func() error {
		var out struct {
			Exceptions []struct{ Kind, Status, Amount string } `json:"payment_exceptions"`
		}
		if err := w.operator(t).Get(t.Context(), "/api/v1/auth/payment-exceptions?order_id="+orderID.String(), &out); err != nil {
			return err
		}
		if len(out.Exceptions) != 1 || out.Exceptions[0].Kind != kind || out.Exceptions[0].Status != status || out.Exceptions[0].Amount != amount {
			return fmt.Errorf("the exceptions are %+v", out.Exceptions)
		}
		return nil
	})
}

// paidLate pays orders that have ended, one after the other: each releases all late results.
func paidLate(t *testing.T, w *harness) {
	t.Parallel()
	w.paidAfterCancelling(t)
	w.paidAfterDeclining(t)
}

// paidAfterCancelling returns an order whose money came after its customer had cancelled it, and went back by rule.
func (w *harness) paidAfterCancelling(t *testing.T) order {
	t.Helper()
	phone := newPhone()
	w.fault(t, "late_success_1037", "prompt", phone)
	o := w.buy(t, purchase{fiat: "1000", phone: phone})
	w.until(t, o.ID, "waiting for another prompt", detail("payment_retry"))
	w.sendCommand(t, w.amina(t), o.ID, "cancel", nil)
	o = w.ends(t, o.ID, "cancelled", "cancelled_by_customer")
	w.release(t)
	w.exception(t, o.ID, "late", "refunded", "1000.00")
	w.refunded(t, o, 1000)
	w.notPaidOut(t, o)
	return o
}

// paidAfterDeclining returns an order whose money came after its payer had declined, and went back by command.
func (w *harness) paidAfterDeclining(t *testing.T) order {
	t.Helper()
	phone := newPhone()
	w.fault(t, "late_success_1032", "prompt", phone)
	o := w.ends(t, w.buy(t, purchase{fiat: "1000", phone: phone}).ID, "failed", "declined")
	w.release(t)
	w.exception(t, o.ID, "late", "open", "1000.00")
	w.parked(t, workflows.LatePaymentID(w.collection(t, o.ID)))
	w.sendCommand(t, w.operator(t), o.ID, "refund", map[string]string{"note": "paid after the order had failed"})
	w.refunded(t, o, 1000)
	w.notPaidOut(t, o)
	w.exception(t, o.ID, "late", "refunded", "1000.00")
	return o
}

// collection returns the id of an order's first prompt.
func (w *harness) collection(t *testing.T, orderID uuid.UUID) (id uuid.UUID) {
	t.Helper()
	err := w.db.QueryRowContext(t.Context(),
		`SELECT id FROM payment_attempts WHERE order_id = $1 AND direction = 'collection' ORDER BY created_at LIMIT 1`, orderID).Scan(&id)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func cancelled(t *testing.T, w *harness) {
	t.Parallel()
	phone := newPhone()
	w.fault(t, "never", "prompt", phone)
	o := w.buy(t, purchase{crypto: "5", phone: phone})
	w.until(t, o.ID, "waiting for the payer", detail("payment"))
	w.sendCommand(t, w.amina(t), o.ID, "cancel", nil)
	w.notPaidOut(t, w.ends(t, o.ID, "cancelled", "cancelled_by_customer"))
	err := w.amina(t).Post(t.Context(), "/api/v1/auth/orders/"+o.ID.String()+"/retry-payment", uuid.NewString(), nil, nil)
	if p, ok := errors.AsType[*client.Problem](err); !ok || p.Status != http.StatusConflict {
		t.Errorf("the response to another prompt for a cancelled order: %v", err)
	}
}

// TestOrdersExpire has a purchase, and a sale on each network, end because nothing comes.
func TestOrdersExpire(t *testing.T) {
	w := openBeside(t)
	t.Run("all", func(t *testing.T) {
		t.Run("a purchase", func(t *testing.T) { expired(t, w) })
		w.eachNetwork(t, func(t *testing.T, n demo.Node) {
			t.Parallel()
			w.unsold(t, n)
		})
	})
	w.invariants(t)
}

// expired starts the order's flow as the API does. Its time is shorter than the API's, but long enough to open the
// order: an order that has already expired is refused.
func expired(t *testing.T, w *harness) {
	t.Parallel()
	phone := newPhone()
	w.fault(t, "no_response", "prompt", phone)
	id := uuid.Must(uuid.NewV7())
	request := exchange.OrderRequest{
		ID: id, CustomerID: w.customer, OfferID: w.offer, Crypto: money.Must(money.USDT, "5"), WalletAddress: newAddress(t), Phone: phone,
		ExpiresAt: time.Now().UTC().Add(30 * time.Second),
	}
	by := exchange.Principal{UserID: w.customer, Role: exchange.RoleCustomer}
	_, err := storetest.Ask(t.Context(), w.store, exchange.IntendPurchase, id, id, request.Terms(), by)
	if err == nil {
		_, err = w.temporal.ExecuteWorkflow(t.Context(), temporal.StartWorkflowOptions{ID: workflows.OnRampID(id), TaskQueue: workflows.QueueFlows},
			workflows.TypeOnRamp, workflows.OnRampInput{IntentID: id})
	}
	if err != nil {
		t.Fatal(err)
	}
	w.notPaidOut(t, w.ends(t, id, "cancelled", "expired"))
}

// refused orders leave nothing behind.
func refused(t *testing.T, w *harness) {
	t.Parallel()
	for name, p := range map[string]purchase{
		"above the offer's maximum": {crypto: "1000.5"},
		"below the offer's minimum": {crypto: "0.5"},
		"not an address":            {crypto: "5", to: "T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwX"},
	} {
		_, err := w.tryBuy(t, p, uuid.NewString())
		if problem, ok := errors.AsType[*client.Problem](err); !ok || problem.Status != http.StatusUnprocessableEntity || len(problem.Errors) == 0 {
			t.Errorf("the response to an order %s: %v", name, err)
		}
	}
}
