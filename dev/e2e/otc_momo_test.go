package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/momo/sandbox"
)

// TestDepositsByMobileMoney has a merchant pay into the desk by a prompt, by a payment to our number, and by one that officers have to name.
func TestDepositsByMobileMoney(t *testing.T) {
	w := openBeside(t)
	t.Run("by a prompt", func(t *testing.T) { promptedDeposit(t, w) })
	t.Run("declined", func(t *testing.T) { declinedDeposit(t, w) })
	t.Run("by hand", func(t *testing.T) { depositByHand(t, w) })
	t.Run("by hand, named by an officer", func(t *testing.T) { namedDeposit(t, w) })
	t.Run("by hand, named by two officers", func(t *testing.T) { twiceNamedDeposit(t, w) })
	t.Run("by hand, after its end", func(t *testing.T) { depositPaidLate(t, w) })
	w.invariants(t)
	w.booksAgree(t)
}

// byMomo is a request for shillings that the merchant pays from a phone that we prompt.
func byMomo(shillings int64, phone string) map[string]any {
	return map[string]any{"method": "momo", "requested_asset": "KES", "fiat_amount": fmt.Sprint(shillings), "momo_phone_number": phone}
}

// byC2B is a request for shillings that the merchant pays to our number.
func byC2B(shillings int64) map[string]any {
	return map[string]any{"method": "c2b", "requested_asset": "KES", "fiat_amount": fmt.Sprint(shillings)}
}

// promptedDeposit is credited as soon as its prompt is paid, and then audited.
func promptedDeposit(t *testing.T, w *harness) otcDeposit {
	const shillings = 1200
	d := w.creditedOnce(t, w.payIntoDesk(t, otcPath, byMomo(shillings, newPhone())).ID, shillings)
	if n := w.promptsFor(t, d); n != 1 {
		t.Errorf("the merchant was prompted %d times", n)
	}
	return w.at(t, w.admin(t), d, "audit", nil)
}

// declinedDeposit takes no money any more when its merchant has declined the prompt and cancelled.
func declinedDeposit(t *testing.T, w *harness) {
	phone := newPhone()
	w.fault(t, "declined", "prompt", phone)
	d := w.payIntoDesk(t, otcPath, byMomo(900, phone))
	eventually(t, "the prompt has ended", func() error { return w.attemptIs(t, d, "failed") })
	if d = w.at(t, w.as(t, demo.VendorEmail), d, "cancel", map[string]any{"reason": "no money"}); d.Status != "cancelled" {
		t.Errorf("given up %+v", d)
	}
	w.notCredited(t, d)
}

// depositByHand is paid to our number under its reference, which the operator's notice and its list prove.
func depositByHand(t *testing.T, w *harness) otcDeposit {
	const shillings = 1300
	d := w.payIntoDesk(t, otcPath, byC2B(shillings))
	w.paysByHand(t, d.Reference, shillings)
	w.readStatement(t)
	d = w.creditedOnce(t, d.ID, shillings)
	return w.at(t, w.admin(t), d, "audit", nil)
}

// namedDeposit is paid under another reference. It was set aside, until an officer named it.
func namedDeposit(t *testing.T, w *harness) {
	const shillings = 1400
	d := w.payIntoDesk(t, otcPath, byC2B(shillings))
	w.names(t, w.as(t, demo.DeskEmail), w.strayFor(t, shillings), d)
	d = w.creditedOnce(t, d.ID, shillings)
	w.at(t, w.admin(t), d, "audit", nil)
}

// twiceNamedDeposit is of more than needs no officer: two name its payment, and the usual people carry it to its end.
func twiceNamedDeposit(t *testing.T, w *harness) {
	const shillings = 120_000
	d, desk := w.payIntoDesk(t, otcPath, byC2B(shillings)), w.as(t, demo.DeskEmail)
	stray := w.strayFor(t, shillings)
	w.names(t, desk, stray, d)
	if d = w.depositIs(t, d.ID, "waits for another officer", func(d otcDeposit) bool { return d.Detail == exchange.WaitSecond }); d.Receipt != nil {
		t.Errorf("one officer had it booked: %+v", d)
	}
	w.names(t, w.admin(t), stray, d)
	d = w.depositIs(t, d.ID, "has its money", func(d otcDeposit) bool { return d.Receipt != nil && d.Detail == exchange.WaitReview })
	w.at(t, desk, d, "claim", nil)
	w.at(t, desk, d, "confirm", map[string]any{"received_amount": fmt.Sprint(shillings), "value_date": d.Value})
	w.at(t, w.operator(t), d, "settle", nil)
	w.creditedOnce(t, d.ID, shillings)
	w.at(t, w.as(t, secondOfficer), d, "audit", nil)
}

// depositPaidLate is paid when its merchant has given it up: an officer decides about the money.
func depositPaidLate(t *testing.T, w *harness) {
	const shillings = 1500
	d := w.payIntoDesk(t, otcPath, byC2B(shillings))
	eventually(t, "the payment is awaited", func() error { return w.attemptIs(t, d, "accepted") })
	d = w.at(t, w.as(t, demo.VendorEmail), d, "cancel", map[string]any{"reason": "paid otherwise"})
	eventually(t, "it is awaited no longer", func() error { return w.attemptIs(t, d, "failed") })
	receipt := w.paysByHand(t, d.Reference, shillings)
	w.readStatement(t)
	var x struct {
		Exceptions []struct {
			ID      uuid.UUID `json:"id"`
			Receipt string    `json:"receipt"`
		} `json:"payment_exceptions"`
	}
	eventually(t, "the money is set aside", func() error {
		err := w.operator(t).Get(t.Context(), "/api/v1/auth/payment-exceptions?page_id=1&page_size=5&kind=late&otc_deposit_id="+d.ID.String(), &x)
		if err == nil && len(x.Exceptions) == 0 {
			err = errors.New("it is not")
		}
		return err
	})
	if len(x.Exceptions) != 1 || x.Exceptions[0].Receipt != receipt {
		t.Errorf("set aside is %+v", x.Exceptions)
	}
	w.notCredited(t, d)
	path := "/api/v1/auth/payment-exceptions/" + x.Exceptions[0].ID.String() + "/accept"
	eventually(t, "an officer's decision is taken", func() error {
		return w.operator(t).Post(t.Context(), path, uuid.NewString(), map[string]any{"note": "the payer is not known"}, nil)
	})
}

// paysByHand has a stranger's phone pay to our number under a reference.
func (w *harness) paysByHand(t *testing.T, reference string, shillings int64) (receipt string) {
	t.Helper()
	var out struct {
		Receipt string `json:"receipt"`
	}
	in := map[string]any{"phone": newPhone(), "reference": reference, "amount": shillings}
	if err := call(t.Context(), http.MethodPost, w.momo()+"/control/pay", in, &out); err != nil {
		t.Fatal(err)
	}
	return out.Receipt
}

// strayFor has the merchant pay under a reference that is nobody's, and returns the payment's id when the operator's list has shown it.
func (w *harness) strayFor(t *testing.T, shillings int64) uuid.UUID {
	t.Helper()
	merchant, err := w.store.UserByEmail(t.Context(), demo.VendorEmail)
	if err != nil {
		t.Fatal(err)
	}
	receipt := w.payWithoutOrderFrom(t, merchant.PhoneNumber.Digits(), shillings)
	w.readStatement(t)
	w.setAside(t, receipt, shillings)
	var page struct {
		Payments []struct {
			ID uuid.UUID `json:"id"`
		} `json:"payments"`
	}
	if err := w.as(t, demo.DeskEmail).Get(t.Context(), "/api/v1/auth/otc/c2b/payments?page_id=1&page_size=5&receipt="+receipt, &page); err != nil || len(page.Payments) != 1 {
		t.Fatalf("the payments with receipt %s are %+v, %v", receipt, page, err)
	}
	return page.Payments[0].ID
}

func matchPath(payment uuid.UUID) string {
	return "/api/v1/auth/otc/c2b/payments/" + payment.String() + "/match"
}

// names has an officer name a payment as the money of a deposit.
func (w *harness) names(t *testing.T, officer *client.Client, payment uuid.UUID, d otcDeposit) {
	t.Helper()
	if err := insist(t.Context(), officer, matchPath(payment), uuid.NewString(), map[string]any{"otc_deposit_id": d.ID}, nil); err != nil {
		t.Fatal(err)
	}
}

// attemptIs checks the state of the newest thing that collects a deposit's money.
func (w *harness) attemptIs(t *testing.T, d otcDeposit, want string) error {
	t.Helper()
	var status string
	err := w.db.QueryRowContext(t.Context(), `SELECT status FROM payment_attempts WHERE deposit_id = $1 AND direction = 'collection' ORDER BY created_at DESC LIMIT 1`, d.ID).Scan(&status)
	if err == nil && status != want {
		err = fmt.Errorf("it is %s", status)
	}
	return err
}

func (w *harness) promptsFor(t *testing.T, d otcDeposit) int {
	t.Helper()
	return len(slices.DeleteFunc(w.books(t).Prompts, func(p sandbox.Prompt) bool { return p.Reference != d.Reference }))
}

// creditedOnce waits until a deposit of shillings is credited, and compares it with the operator's books and with ours: one payment came,
// and went to the merchant once.
func (w *harness) creditedOnce(t *testing.T, id uuid.UUID, shillings int64) otcDeposit {
	t.Helper()
	d := w.depositIs(t, id, "is credited", func(d otcDeposit) bool { return d.Status == "credited" })
	if d.Receipt == nil {
		t.Fatalf("credited without a receipt: %+v", d)
	}
	came := slices.DeleteFunc(w.books(t).Effects, func(e sandbox.Effect) bool {
		return e.Direction != sandbox.Collection || e.Receipt != *d.Receipt && !strings.EqualFold(e.Reference, d.Reference)
	})
	if len(came) != 1 || came[0].Receipt != *d.Receipt || came[0].Amount != shillings {
		t.Errorf("the receipt is %s, and the operator knows of %+v", *d.Receipt, came)
	}
	var receipts int
	var flown, has string
	err := w.db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM collections WHERE object_id = $1),
		coalesce(sum(-l.amount) FILTER (WHERE a.kind = 'orders_in_flight' AND l.amount < 0), 0)::numeric(20, 2),
		coalesce(sum(-l.amount) FILTER (WHERE a.kind = 'fiat_balance'), 0)::numeric(20, 2)
		FROM ledger_lines l JOIN ledger_entries e ON e.id = l.entry_id JOIN ledger_accounts a ON a.id = l.account_id
		WHERE e.object_id = $1 OR e.object_id = (SELECT exception_id FROM c2b_payments WHERE receipt = $2)`, id, *d.Receipt).Scan(&receipts, &flown, &has)
	if want := fmt.Sprintf("%d.00", shillings); err != nil || receipts != 1 || flown != want || has != want {
		t.Errorf("%d payments are booked, %s came into flight and %s to the merchant, %v", receipts, flown, has, err)
	}
	return d
}

// notCredited checks that nothing was booked for a deposit.
func (w *harness) notCredited(t *testing.T, d otcDeposit) {
	t.Helper()
	var lines int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM ledger_lines l JOIN ledger_entries e ON e.id = l.entry_id JOIN ledger_accounts a ON a.id = l.account_id
		WHERE e.object_id = $1 AND a.kind IN ('orders_in_flight', 'fiat_balance')`, d.ID).Scan(&lines)
	if err != nil || lines != 0 {
		t.Errorf("a %s deposit has %d lines, %v", d.Status, lines, err)
	}
}
