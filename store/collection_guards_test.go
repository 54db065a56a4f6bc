package store_test

import (
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// What was paid above or below the price goes back by rule, above every limit. The database itself bounds that: it is what
// was paid, and goes to who paid it.
func TestRefundsByRuleAreOfWhatWasPaid(t *testing.T) {
	t.Parallel()
	const open = `INSERT INTO payment_exceptions (id, kind, status, order_id, attempt_id, receipt, asset, amount, note, created_at, updated_at)
			SELECT gen_random_uuid(), $1, 'open', object_id, attempt_id, receipt, asset, amount, 'x', now(), now() FROM collections`
	const refunding = `UPDATE payment_exceptions SET status = 'refunding', version = version + 1`
	const refund = `INSERT INTO refunds (id, order_id, attempt_id, collection, exception_id, asset, amount, phone, reason, status, created_at, updated_at)
		SELECT gen_random_uuid(), x.order_id, x.attempt_id, x.receipt, x.id, x.asset, $1, coalesce(nullif($2, ''), a.phone), 'x', 'pending', now(), now()
		FROM payment_exceptions x JOIN payment_attempts a ON a.id = x.attempt_id`
	for name, c := range map[string]struct {
		kind, paid, amount string
		phone, payer       exchange.Phone
		state              string
	}{
		"a surplus that was not paid":       {kind: "over", paid: "1295", amount: "1295", state: "KV002"},
		"a payment that was not too little": {kind: "under", paid: "1295", amount: "1295", state: "KV002"},
		"the surplus":                       {kind: "over", paid: "2295", amount: "1000"},
		"the surplus and more":              {kind: "over", paid: "2295", amount: "1001", state: "KV002"},
		"the surplus, to a stranger":        {kind: "over", paid: "2295", amount: "1000", phone: otherPhone, state: "KV002"},
		"the surplus, to the proven payer":  {kind: "over", paid: "2295", amount: "1000", phone: otherPhone, payer: otherPhone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storetest.New(t)
			m := storetest.NewMarket(t, s)
			a := storetest.Attempt(t, s, m.Order(t, s, "10"))
			lowerRefundLimit(t, s)
			seen := storetest.Paid(t, kes(c.paid))
			seen.Phone = c.payer
			if _, err := s.AcceptPayment(t.Context(), a.ID, storetest.Listed(t, s, seen), time.Time{}); err != nil {
				t.Fatal(err)
			}
			db := storetest.Owner(t, s)
			storetest.Exec(t, s, `ALTER TABLE refunds DISABLE TRIGGER USER`)
			storetest.Exec(t, s, `ALTER TABLE payment_exceptions DISABLE TRIGGER USER`)
			for _, clear := range []string{`DELETE FROM refunds`, `DELETE FROM payment_exceptions`} {
				storetest.Exec(t, s, clear)
			}
			storetest.Exec(t, s, `ALTER TABLE refunds ENABLE TRIGGER USER`)
			storetest.Exec(t, s, `ALTER TABLE payment_exceptions ENABLE TRIGGER USER`)
			storetest.Exec(t, s, `ALTER TABLE refunds DISABLE TRIGGER refunds_counted`) // the deleted refund is counted
			storetest.Exec(t, s, open, c.kind)
			storetest.Exec(t, s, refunding)
			_, err := db.ExecContext(t.Context(), refund, c.amount, c.phone.Digits())
			if (err != nil) != (c.state != "") || (err != nil && sqlState(err) != c.state) {
				t.Errorf("the refund was answered with %v, want %q", err, c.state)
			}
		})
	}
}

// Crypto of a purchase is delivered only after its payment is booked.
func TestUnpaidPurchaseIsNotDelivered(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	m.Order(t, s, "10")
	_, err := storetest.Owner(t, s).ExecContext(t.Context(), `UPDATE orders SET status = 'processing', version = version + 1`)
	if sqlState(err) != "KV002" {
		t.Errorf("an unpaid purchase is delivered: %v", err)
	}
}

// The provider's id of a prompt names one prompt: its query would else prove another.
func TestPromptTakesNoIDOfAnother(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	small, err := s.Attempt(ctx, storetest.Attempt(t, s, m.Order(t, s, "5")).ID)
	if err != nil {
		t.Fatal(err)
	}
	large := m.Order(t, s, "100")
	id := storetest.NewID(t)
	if _, _, err := s.BeginCollection(ctx, exchange.OrderObject(large.ID), exchange.PaymentAttempt{
		ID: id, Provider: "daraja", CallbackToken: "token-" + id.String(), WorkflowID: "on-ramp:" + large.ID.String(),
	}); err != nil {
		t.Fatal(err)
	}
	refs := exchange.Refs{CheckoutRequestID: small.CheckoutRequestID}
	_, err = s.RecordSubmission(ctx, id, exchange.Submission{State: exchange.Accepted, Refs: refs})
	wantFault(t, err, exchange.CodeConflict)
}

// D11: a payment of another amount than was asked for is booked only when the operator's statement lists its receipt with that
// amount: the operator's answer names no amount, and what is beyond the price goes back. The database refuses it too.
func TestD11_AnotherAmountMustBeListed(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	m := storetest.NewMarket(t, s)
	for _, amount := range []string{"2295", "1000"} {
		a := storetest.Attempt(t, s, m.Order(t, s, "10"))
		seen := storetest.Paid(t, kes(amount))
		for name, row := range map[string]exchange.Observation{
			"a notice":                        {Source: exchange.SourceConfirmation, Amount: seen.Amount},
			"a statement over another amount": {Source: exchange.SourceStatement, Amount: a.Amount},
		} {
			row.State, row.Receipt = exchange.SeenSucceeded, seen.Receipt
			if name != "a notice" {
				row.Receipt = storetest.Receipt(t)
			}
			if err := s.SaveReceipt(ctx, row); err != nil {
				t.Fatal(err)
			}
			if _, err := s.AcceptPayment(ctx, a.ID, seen, time.Time{}); err == nil {
				t.Errorf("%s: KES %s was booked", name, amount)
			}
		}
		if _, err := s.AcceptPayment(ctx, a.ID, storetest.Listed(t, s, seen), time.Time{}); err != nil {
			t.Errorf("KES %s, listed: %v", amount, err)
		}
	}
}
