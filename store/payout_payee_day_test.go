package store_test

import (
	"errors"
	"testing"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// payeeDay sets the mobile money operator's daily limit for one payee.
func (x *sale) payeeDay(t *testing.T, most string) {
	t.Helper()
	storetest.Exec(t, x.s, `ALTER TABLE momo_terms DISABLE TRIGGER USER`)
	storetest.Exec(t, x.s, `UPDATE momo_terms SET max_payout = $1, payee_day = $1`, most)
	storetest.Exec(t, x.s, `ALTER TABLE momo_terms ENABLE TRIGGER USER`)
}

// opens requests another sale of the same customer.
func (x *sale) opens(t *testing.T) (exchange.Order, error) {
	return storetest.OpenOffRamp(t.Context(), x.s, exchange.OrderRequest{
		ID: storetest.NewID(t), CustomerID: x.m.Customer.ID, OfferID: x.m.Offer.ID, Crypto: usdt("10"), Type: exchange.OffRampSell,
	}, storetest.PrincipalOf(x.m.Customer))
}

// another is a second sale of the same customer whose crypto was taken.
func (x *sale) another(t *testing.T) *sale {
	t.Helper()
	o, err := x.opens(t)
	if err != nil {
		t.Fatal(err)
	}
	l, err := x.s.EscrowLease(t.Context(), o.ID)
	if err != nil {
		t.Fatal(err)
	}
	y := &sale{s: x.s, m: x.m, order: o, block: x.block}
	if y.e, err = x.s.Wallet(t.Context(), store.Everything(), l.WalletID); err != nil {
		t.Fatal(err)
	}
	d := y.final(t, y.to("tx2", o.Price.Crypto))
	if _, err := x.s.TakeDeposit(t.Context(), o.ID, d.ID); err != nil {
		t.Fatal(err)
	}
	if err := x.s.RecordDepositScreening(t.Context(), d.ID, clear1); err != nil {
		t.Fatal(err)
	}
	return y
}

// A payee is promised no more per day than the provider's limit, even by concurrent requests. Given-up sales don't
// count.
func TestPayeeIsPromisedWhatADayPays(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), sold(t) // 1293 KES
	x.payeeDay(t, "2600")
	if _, err := x.s.CloseOffRamp(ctx, x.order.ID, exchange.DetailExpired, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	codes := atOnce(8, func(int) error { _, err := x.opens(t); return err })
	if codes[""] != 2 || codes[exchange.CodeInvalid] != 6 {
		t.Errorf("of 8 sales at once: %v", codes)
	}
	_, err := x.opens(t)
	wantFault(t, err, exchange.CodeInvalid)
	if e, ok := errors.AsType[*exchange.Error](err); !ok || len(e.Fields) != 1 || e.Fields[0].Pointer != "/crypto_amount" || e.Fields[0].Code != "payee_day" {
		t.Errorf("it is refused as %v", err)
	}
}

// A refund keeps to its payee's daily limit like an order, together with the orders' payouts, also in the database.
func TestRefundKeepsThePayeesDailyLimit(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), owing(t) // 1293 KES
	refund, _ := underpaid(t, x.s)  // 1000 KES
	setPhone(t, x.s, refund, x.order.PaymentPhone.Digits())
	x.payeeDay(t, "2000")
	begin := func() error {
		_, err := x.s.BeginPayout(ctx, exchange.RefundObject(refund.ID), exchange.PaymentAttempt{ID: storetest.NewID(t), Provider: "daraja", Reference: "Refund"})
		return err
	}
	x.begun(t, 1)
	wantFault(t, begin(), exchange.CodeLimitReached)
	if r, err := x.s.Refund(ctx, refund.ID); err != nil || r.Status != exchange.RefundPending {
		t.Errorf("the refund is %s, %v", r.Status, err)
	}
	state := x.past(ctx, t, `UPDATE refunds SET status = 'processing', version = version + 1;
		INSERT INTO payment_attempts (id, direction, object_type, object_id, provider, status, asset, amount, phone, reference, hold_id, created_at)
		SELECT gen_random_uuid(), 'payout', 'refund', id, 'daraja', 'created', asset, amount, phone, 'Refund', gen_random_uuid(), now() FROM refunds`)
	if state != "KV056" {
		t.Errorf("past the code: %s", state)
	}
	x.payeeDay(t, "3000")
	if err := begin(); err != nil {
		t.Error(err)
	}
	wantBooks(t, x.s)
}

// A refund that an officer paid and settled by its receipt counts into the day of its payee like one that we paid.
func TestRefundPaidByAnOfficerCountsIntoThePayeesDay(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), owing(t) // 1293 KES
	refund, _ := underpaid(t, x.s)  // 1000 KES
	setPhone(t, x.s, refund, x.order.PaymentPhone.Digits())
	officer := storetest.PrincipalOf(storetest.User(t, x.s, exchange.RoleTreasury))
	if _, err := x.s.ResolveRefund(ctx, refund.ID, "UKLMANUAL1", officer); err != nil {
		t.Fatal(err)
	}
	begin := func() error {
		_, err := x.s.BeginPayout(ctx, exchange.OrderObject(x.order.ID), exchange.PaymentAttempt{ID: storetest.NewID(t), Provider: "daraja"})
		return err
	}
	x.payeeDay(t, "2292")
	wantFault(t, begin(), exchange.CodeLimitReached)
	x.payeeDay(t, "3500") // 1000, 1293 and another 1293
	_, err := x.opens(t)
	wantFault(t, err, exchange.CodeInvalid)
	x.payeeDay(t, "2293")
	if err := begin(); err != nil {
		t.Error(err)
	}
	wantBooks(t, x.s)
}

// A payee who was promised more, under other terms or on another day, gets as much as the day allows, and the rest
// tomorrow.
func TestPayeeIsPaidWhatADayPays(t *testing.T) {
	t.Parallel()
	ctx, x := t.Context(), owing(t)
	y := x.another(t)
	x.payeeDay(t, "2000")
	codes := atOnce(2, func(i int) error {
		_, err := []*sale{x, y}[i].begin(ctx, x.s, 1)
		return err
	})
	if codes[""] != 1 || codes[exchange.CodeLimitReached] != 1 {
		t.Fatalf("two payouts at once: %v", codes)
	}
	if x.payout(t).Status == exchange.PayoutPending {
		x, y = y, x
	}
	a := x.begun(t, 1)
	if _, err := completeOrder(t, x.s, x.order.ID, a.ID, storetest.Paid(t, a.Amount)); err != nil {
		t.Fatal(err)
	}
	_, err := y.begin(ctx, y.s, 1)
	wantFault(t, err, exchange.CodeLimitReached)
	if p := y.payout(t); p.Status != exchange.PayoutPending {
		t.Errorf("the payout is %s", p.Status)
	}
	storetest.Exec(t, x.s, `ALTER TABLE payment_attempts DISABLE TRIGGER USER`)
	storetest.Exec(t, x.s, `UPDATE payment_attempts SET settled_at = settled_at - interval '1 day' WHERE status = 'succeeded'`)
	storetest.Exec(t, x.s, `ALTER TABLE payment_attempts ENABLE TRIGGER USER`)
	y.begun(t, 1)
	wantBooks(t, x.s)
}
