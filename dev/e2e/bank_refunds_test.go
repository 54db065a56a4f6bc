package e2e

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"kivuko/workflows"
)

const (
	exceptionsPath = "/api/v1/auth/payment-exceptions"
	refundsPath    = "/api/v1/auth/refunds"
)

// sentBack is a refund by bank as officers see it.
type sentBack struct {
	ID      uuid.UUID `json:"id"`
	Status  string    `json:"status"`
	Detail  string    `json:"status_detail"`
	Receipt *string   `json:"receipt"`
}

// TestMoneyOfNoOrderGoesBackByBank has payments to our number that nothing explains sent back by bank: one is paid, and one the bank refuses,
// so that it is paid to another account.
func TestMoneyOfNoOrderGoesBackByBank(t *testing.T) {
	w := openBeside(t)
	for name, play := range waysBack() {
		t.Run(name, func(t *testing.T) { play(t, w) })
	}
	w.invariants(t)
	w.booksAgree(t)
}

// waysBack are the ways that a refund by bank can go, by the names of their histories.
func waysBack() map[string]func(*testing.T, *harness) sentBack {
	return map[string]func(*testing.T, *harness) sentBack{"bank_refund": paidBackAtABank, "bank_refund_refused": refusedByABank}
}

// aside is the payment exception of a payment to our number that nothing explains.
func (w *harness) aside(t *testing.T) uuid.UUID {
	t.Helper()
	receipt := w.payWithoutOrder(t, strayShillings)
	w.readStatement(t)
	w.setAside(t, receipt, strayShillings)
	var id uuid.UUID
	if err := w.db.QueryRowContext(t.Context(), `SELECT id FROM payment_exceptions WHERE receipt = $1`, receipt).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

// payee is an account that a refund goes to.
func payee() map[string]any {
	return map[string]any{
		"note": "it is no payment of ours", "bank_name": "Bank of Examples", "account_name": "Jane Roe", "account_number": newReference(), "payee_reason": "her letter names it",
	}
}

// sendsBack has two officers agree to send the money of an exception to an account.
func (w *harness) sendsBack(t *testing.T, exception uuid.UUID) sentBack {
	t.Helper()
	w.twoAgree(t, w.as(t, secondOfficer), exceptionsPath+"/"+exception.String()+"/refund", payee())
	return w.sentBackIs(t, exception, "processing")
}

// sentBackIs waits until the newest refund of an exception has a status.
func (w *harness) sentBackIs(t *testing.T, exception uuid.UUID, status string) (f sentBack) {
	t.Helper()
	eventually(t, "the refund is "+status, func() error {
		var found struct {
			Refunds []sentBack `json:"refunds"`
		}
		if err := w.operator(t).Get(t.Context(), refundsPath+"?rail=bank&page_size=1&payment_exception_id="+exception.String(), &found); err != nil {
			return err
		}
		if len(found.Refunds) == 0 {
			return errors.New("there is none")
		}
		if f = found.Refunds[0]; f.Status != status {
			return fmt.Errorf("it is %s (%s)", f.Status, f.Detail)
		}
		return nil
	})
	return f
}

// saysPaid has an officer, who did not propose it, say that the bank has paid.
func (w *harness) saysPaid(t *testing.T, f sentBack) {
	t.Helper()
	word := bankConfirmation(newReference(), strayShillings)
	if err := insist(t.Context(), w.operator(t), refundsPath+"/"+f.ID.String()+"/confirm-bank-payout", uuid.NewString(), word, nil); err != nil {
		t.Fatal(err)
	}
}

// sentBackOnce checks that a refund left the bank once, and that its exception is over.
func (w *harness) sentBackOnce(t *testing.T, exception uuid.UUID) sentBack {
	t.Helper()
	f := w.sentBackIs(t, exception, "completed")
	amount := fmt.Sprintf("%d.00", strayShillings)
	if lines := w.lines(t, "refund:"+f.ID.String()+":paid"); !equalAmounts(lines, map[string]string{"refunds_due": amount, "bank": "-" + amount}) {
		t.Errorf("it is booked as %v", lines)
	}
	var status string
	var paid int
	err := w.db.QueryRowContext(t.Context(), `SELECT x.status, (SELECT count(*) FROM refunds f WHERE f.exception_id = x.id AND f.status = 'completed') FROM payment_exceptions x WHERE x.id = $1`,
		exception).Scan(&status, &paid)
	if err != nil || status != "refunded" || paid != 1 {
		t.Errorf("the exception is %s after %d refunds: %v", status, paid, err)
	}
	return f
}

func paidBackAtABank(t *testing.T, w *harness) sentBack {
	x := w.aside(t)
	w.saysPaid(t, w.sendsBack(t, x))
	return w.sentBackOnce(t, x)
}

func refusedByABank(t *testing.T, w *harness) sentBack {
	x := w.aside(t)
	f := w.sendsBack(t, x)
	w.twoAgree(t, w.as(t, secondOfficer), refundsPath+"/"+f.ID.String()+"/resolve", map[string]any{"outcome": "not_paid", "note": "the account is closed"})
	w.sentBackIs(t, x, "failed")
	w.saysPaid(t, w.sendsBack(t, x))
	w.sentBackOnce(t, x)
	return f
}

// sentBack records refunds by bank.
func (r *recorder) sentBack(t *testing.T) {
	for name, play := range waysBack() {
		if r.file(name) != "" {
			r.keep(t, workflows.BankRefundID(play(t, r.harness).ID), name)
		}
	}
}

// bankRefundRows are those with refunds by bank.
func bankRefundRows() []row {
	return []row{
		{"ReserveBankRefund/*/*", "flows", always(bankRefundScenario{agreed: true})},
		{"ConfirmBankRefund/*/*", "flows", always(bankRefundScenario{})},
	}
}

// bankRefundScenario is a refund by bank, during which the process dies: when its money is to be reserved, or when an officer says that it was
// paid.
type bankRefundScenario struct{ agreed bool }

func (b bankRefundScenario) play(t *testing.T, w *harness, tr *trial, arm func()) {
	t.Helper()
	x := w.aside(t)
	tr.taken.ID = x
	if b.agreed {
		arm()
	}
	w.twoAgree(t, w.as(t, secondOfficer), exceptionsPath+"/"+x.String()+"/refund", payee())
	f := w.sentBackIs(t, x, "processing")
	if !b.agreed {
		arm()
	}
	path := refundsPath + "/" + f.ID.String() + "/confirm-bank-payout"
	tr.background(t, w.operator(t), path, uuid.NewString(), bankConfirmation(newReference(), strayShillings), nil)
}

func (b bankRefundScenario) judge(t *testing.T, w *harness, tr *trial) {
	t.Helper()
	tr.answered(t)
	w.sentBackOnce(t, tr.taken.ID)
}
