package store_test

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// The steps of payouts, with the object's row after the step.

func completeOrder(t *testing.T, s *store.Store, order, attempt uuid.UUID, obs exchange.Observation) (exchange.OrderPayout, error) {
	t.Helper()
	if _, err := s.CompletePayout(t.Context(), exchange.OrderObject(order), attempt, obs); err != nil {
		return exchange.OrderPayout{}, err
	}
	return s.OrderPayout(t.Context(), order)
}

func failOrder(t *testing.T, s *store.Store, order uuid.UUID, code string) (exchange.OrderPayout, error) {
	t.Helper()
	if _, err := s.FailPayout(t.Context(), exchange.OrderObject(order), code); err != nil {
		return exchange.OrderPayout{}, err
	}
	return s.OrderPayout(t.Context(), order)
}

func completeRefund(t *testing.T, s *store.Store, refund, attempt uuid.UUID, obs exchange.Observation) (exchange.Refund, error) {
	t.Helper()
	if _, err := s.CompletePayout(t.Context(), exchange.RefundObject(refund), attempt, obs); err != nil {
		return exchange.Refund{}, err
	}
	return s.Refund(t.Context(), refund)
}

func failRefund(t *testing.T, s *store.Store, refund uuid.UUID, code string) (exchange.Refund, error) {
	t.Helper()
	if _, err := s.FailPayout(t.Context(), exchange.RefundObject(refund), code); err != nil {
		return exchange.Refund{}, err
	}
	return s.Refund(t.Context(), refund)
}

// An attempt that is proven has one receipt. Another one is a mistake of the officer who entered one of them, and no
// second payment: nothing is booked for it.
func TestAnOfficersWrongReceiptIsNoSecondPayment(t *testing.T) {
	t.Parallel()
	x := taken(t)
	a := x.tries(t)
	proven := storetest.Paid(t, x.order.Price.Fiat)
	if _, err := completeOrder(t, x.s, x.order.ID, a.ID, proven); err != nil {
		t.Fatal(err)
	}
	for _, class := range []exchange.OutcomeClass{exchange.ClassAttested, ""} {
		other := storetest.Paid(t, x.order.Price.Fiat)
		other.Class = class
		_, err := completeOrder(t, x.s, x.order.ID, a.ID, other)
		wantFault(t, err, exchange.CodeConflict)
	}
	if _, found, err := x.s.PaidTwiceBy(t.Context(), a.ID); err != nil || found {
		t.Errorf("an exception was opened: %t, %v", found, err)
	}
	if p, err := completeOrder(t, x.s, x.order.ID, a.ID, proven); err != nil || p.Receipt != proven.Receipt {
		t.Errorf("the payout has the receipt %q, %v", p.Receipt, err)
	}
	wantBooks(t, x.s)

	s := storetest.New(t)
	refund, _ := underpaid(t, s)
	b := payout(t, s, refund)
	if _, err := completeRefund(t, s, refund.ID, b.ID, storetest.Paid(t, refund.Amount)); err != nil {
		t.Fatal(err)
	}
	attested := storetest.Paid(t, refund.Amount)
	attested.Class = exchange.ClassAttested
	_, err := completeRefund(t, s, refund.ID, b.ID, attested)
	wantFault(t, err, exchange.CodeConflict)
	wantBooks(t, s)
}

// Whether a receipt needs a second officer is found without reading the attempts for other objects.
func TestReceiptIsJudgedByItsOwnAttempts(t *testing.T) {
	t.Parallel()
	s, of, _, _, _ := largeRefund(t)
	storetest.Exec(t, s, `SET session_replication_role = replica;
		INSERT INTO payment_attempts (id, direction, object_type, object_id, provider, status, asset, amount, phone, reference, created_at)
			SELECT gen_random_uuid(), 'payout', 'order', gen_random_uuid(), 'daraja', 'failed', 'KES', 100, '254712345678', 'X', now() FROM generate_series(1, 5000);
		SET session_replication_role = origin; ANALYZE payment_attempts`)
	tx, err := storetest.Owner(t, s).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	const reads = `SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'payment_attempts'`
	var before, after int // what the session read just before is counted too
	if err := tx.QueryRowContext(t.Context(), reads).Scan(&before); err != nil {
		t.Fatal(err)
	}
	var second bool
	if err := tx.QueryRowContext(t.Context(), `SELECT receipt_needs_second($1, 'UKL0000009')`, of.ID).Scan(&second); err != nil || !second {
		t.Fatalf("needs a second officer: %t, %v", second, err)
	}
	if err := tx.QueryRowContext(t.Context(), reads).Scan(&after); err != nil || after == before || after > before+10 {
		t.Errorf("%d attempts were read of %s %s, %v", after-before, of.Type, of.ID, err)
	}
}
