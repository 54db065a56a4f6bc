package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

const (
	withdrawalsPath  = "/api/v1/auth/otc/withdrawals"
	destinationsPath = "/api/v1/auth/otc/destinations"
)

// takenOut is a withdrawal as its readers see it.
type takenOut struct {
	ID       uuid.UUID  `json:"id"`
	Status   string     `json:"status"`
	Detail   string     `json:"status_detail"`
	Payout   string     `json:"payout_amount"`
	Source   string     `json:"source_amount"`
	Receipt  *string    `json:"momo_receipt_number"`
	Bank     *string    `json:"bank_reference"`
	TxHash   *string    `json:"tx_hash"`
	Transfer *uuid.UUID `json:"transfer_id"`
}

// TestWithdrawalsAtTheDesk has a merchant take shillings out to a phone and at a bank, sell crypto, buy crypto, and give one up. Each new
// destination takes two officers, and a third executes.
func TestWithdrawalsAtTheDesk(t *testing.T) {
	w := openBeside(t)
	w.rate(t)
	depositedShillings(t, w)
	for name, play := range waysOut() {
		t.Run(name, func(t *testing.T) { play(t, w) })
	}
	w.invariants(t)
	w.booksAgree(t)
}

// waysOut are the ways that a withdrawal can go, by the names of their histories.
func waysOut() map[string]func(*testing.T, *harness) takenOut {
	return map[string]func(*testing.T, *harness) takenOut{
		"otc_withdrawal_phone": takenToAPhone, "otc_withdrawal_bank": takenAtABank, "otc_withdrawal_sold": takenForCrypto, "otc_withdrawal_bought": takenAsCrypto,
		"otc_withdrawal_given_up": takenBack,
	}
}

// place is a destination of the vendor's, which it has confirmed.
func (w *harness) place(t *testing.T, in map[string]any) (id uuid.UUID) {
	t.Helper()
	var d struct {
		ID uuid.UUID `json:"id"`
	}
	vendor := w.as(t, demo.VendorEmail)
	err := insist(t.Context(), vendor, destinationsPath, uuid.NewString(), in, &d)
	if err == nil {
		err = insist(t.Context(), vendor, destinationsPath+"/"+d.ID.String()+"/confirm", uuid.NewString(), nil, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d.ID
}

func (w *harness) phonePlace(t *testing.T) uuid.UUID {
	t.Helper()
	return w.place(t, map[string]any{"kind": "phone", "phone_number": newPhone()})
}

func (w *harness) bankPlace(t *testing.T) uuid.UUID {
	t.Helper()
	return w.place(t, map[string]any{"kind": "bank", "bank_name": "Bank of Examples", "account_name": "Landlord Limited", "account_number": newReference()})
}

// takesOut requests a withdrawal of the vendor's.
func (w *harness) takesOut(t *testing.T, in map[string]any) (o takenOut) {
	t.Helper()
	if err := insist(t.Context(), w.as(t, demo.VendorEmail), withdrawalsPath, uuid.NewString(), in, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func shillings(to uuid.UUID, amount string) map[string]any {
	return map[string]any{"destination_id": to, "source_asset": "KES", "payout_asset": "KES", "payout_amount": amount}
}

// deskQuote locks the price of a withdrawal.
func (w *harness) deskQuote(t *testing.T, in map[string]any) uuid.UUID {
	t.Helper()
	var made struct {
		ID uuid.UUID `json:"id"`
	}
	in["purpose"], in["asset"], in["network"] = "otc_withdrawal", "USDT", w.tronNode().Network
	if err := insist(t.Context(), w.as(t, demo.VendorEmail), "/api/v1/auth/pricing/quotes", uuid.NewString(), in, &made); err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// withdrawalIs waits until a withdrawal is as wanted.
func (w *harness) withdrawalIs(t *testing.T, id uuid.UUID, what string, is func(takenOut) bool) (o takenOut) {
	t.Helper()
	eventually(t, "the withdrawal "+what, func() error {
		if err := w.operator(t).Get(t.Context(), withdrawalsPath+"/"+id.String(), &o); err != nil {
			return err
		}
		if !is(o) {
			return fmt.Errorf("it is %s (%s)", o.Status, o.Detail)
		}
		return nil
	})
	return o
}

func (w *harness) withdrawalIsNow(t *testing.T, id uuid.UUID, status string) takenOut {
	t.Helper()
	return w.withdrawalIs(t, id, "is "+status, func(o takenOut) bool { return o.Status == status })
}

// twoApprove has two officers approve a withdrawal, whose destination is new.
func (w *harness) twoApprove(t *testing.T, o takenOut) {
	t.Helper()
	w.withdrawalIsNow(t, o.ID, "pending_approval")
	for _, officer := range []*client.Client{w.admin(t), w.operator(t)} {
		if err := officer.Decide(t.Context(), withdrawalsPath+"/"+o.ID.String()+"/approve", uuid.NewString(), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// executes has a third officer execute a withdrawal.
func (w *harness) executes(t *testing.T, o takenOut) takenOut {
	t.Helper()
	w.twoApprove(t, o)
	if err := insist(t.Context(), w.as(t, secondOfficer), withdrawalsPath+"/"+o.ID.String()+"/execute", uuid.NewString(), map[string]any{}, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func takenToAPhone(t *testing.T, w *harness) takenOut {
	o := w.executes(t, w.takesOut(t, shillings(w.phonePlace(t), "1000")))
	if o = w.withdrawalIsNow(t, o.ID, "completed"); o.Receipt == nil {
		t.Errorf("completed %+v", o)
	}
	w.takenOnce(t, o, "1000.00")
	return o
}

// takenOnce checks that mobile money paid a withdrawal once.
func (w *harness) takenOnce(t *testing.T, o takenOut, amount string) {
	t.Helper()
	if lines := w.lines(t, "otc_withdrawal:"+o.ID.String()+":paid"); !equalAmounts(lines, map[string]string{"fiat_balance": amount, "momo_payout": "-" + amount}) {
		t.Errorf("it is booked as %v", lines)
	}
	var n int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM payment_attempts WHERE object_id = $1 AND status = 'succeeded'`, o.ID).Scan(&n)
	if err != nil || n != 1 {
		t.Errorf("%d payouts of one withdrawal: %v", n, err)
	}
}

func takenAtABank(t *testing.T, w *harness) takenOut {
	o := w.executes(t, w.takesOut(t, shillings(w.bankPlace(t), "500")))
	w.withdrawalIsNow(t, o.ID, "confirming")
	word := map[string]any{"reference": newReference(), "paid_on": time.Now().In(nairobi).Format(time.DateOnly), "amount": "500"}
	if err := insist(t.Context(), w.operator(t), withdrawalsPath+"/"+o.ID.String()+"/confirm-bank-payout", uuid.NewString(), word, &o); err != nil {
		t.Fatal(err)
	}
	return w.withdrawalIsNow(t, o.ID, "completed")
}

// takenForCrypto sells crypto of the vendor's wallet, which comes to the treasury before the shillings leave.
func takenForCrypto(t *testing.T, w *harness) takenOut {
	n := w.tronNode()
	from := w.walletOf(t, demo.VendorEmail, n.Network)
	q := w.deskQuote(t, map[string]any{"offer_type": "BUY", "amount": "5", "method": "momo"})
	o := w.executes(t, w.takesOut(t, map[string]any{
		"destination_id": w.phonePlace(t), "source_asset": "USDT", "payout_asset": "KES", "source_wallet_id": from.ID, "fx_rate_quote_id": q,
	}))
	o = w.withdrawalIsNow(t, o.ID, "completed")
	cameOnce(t, n, w.treasuryOn(t, n.Network), *o.TxHash, money.Must(money.USDT, "5"))
	w.takenOnce(t, o, o.Payout)
	return o
}

// takenAsCrypto buys crypto of the treasury, which comes to an address outside.
func takenAsCrypto(t *testing.T, w *harness) takenOut {
	n := w.tronNode()
	to := newAddress(t)
	q := w.deskQuote(t, map[string]any{"offer_type": "SELL", "amount": "5", "method": "chain"})
	o := w.executes(t, w.takesOut(t, map[string]any{
		"destination_id": w.place(t, map[string]any{"kind": "address", "network": n.Network, "address": to}), "source_asset": "KES", "payout_asset": "USDT", "fx_rate_quote_id": q,
	}))
	o = w.withdrawalIsNow(t, o.ID, "completed")
	cameOnce(t, n, to, *o.TxHash, money.Must(money.USDT, "5"))
	return o
}

func takenBack(t *testing.T, w *harness) takenOut {
	o := w.takesOut(t, shillings(w.phonePlace(t), "10"))
	w.withdrawalIsNow(t, o.ID, "pending_approval")
	path := withdrawalsPath + "/" + o.ID.String()
	if err := insist(t.Context(), w.as(t, demo.VendorEmail), path+"/cancel", uuid.NewString(), map[string]any{"reason": "not needed"}, &o); err != nil {
		t.Fatal(err)
	}
	return w.withdrawalIsNow(t, o.ID, "cancelled")
}

// withdrawals records withdrawals at the desk.
func (r *recorder) withdrawals(t *testing.T) {
	w, funded := r.harness, false
	for name, play := range waysOut() {
		if r.file(name) == "" {
			continue
		}
		if !funded {
			w.rate(t)
			depositedShillings(t, w)
			funded = true
		}
		o := play(t, w)
		r.keep(t, workflows.WithdrawalID(o.ID), name)
	}
}
