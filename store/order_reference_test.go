package store_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/pg"
	"kivuko/store/storetest"
)

// D16: two orders whose ids end alike had the same payment reference, so that money that named it went to whichever was
// found first. Now the second one draws another, also after the first one has ended; the database refuses it otherwise.
func TestD16_NoTwoOrdersHaveOneReference(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	buys, sells := storetest.NewMarket(t, s), storetest.NewSellers(t, s)
	by := storetest.PrincipalOf(buys.Customer)
	alike := func(id, other uuid.UUID) uuid.UUID {
		copy(id[11:], other[11:])
		return id
	}
	first := buys.Order(t, s, "10")
	if _, err := s.CloseOrder(ctx, first.ID, exchange.OrderCancelled, exchange.DetailExpired, exchange.Asked{}); err != nil {
		t.Fatal(err)
	}
	if first.PaymentReference != exchange.PaymentReferences(first.ID)[0] {
		t.Errorf("the first order has the reference %s", first.PaymentReference)
	}
	r := request(t, buys, buys.Customer, "")
	r.ID = alike(r.ID, first.ID)
	second := twice(t, sameOrder, func() (exchange.Order, error) { return storetest.OpenOrder(ctx, s, r, by) })
	sale := saleOf(t, sells)
	sale.ID = alike(sale.ID, first.ID)
	third, err := storetest.OpenOffRamp(ctx, s, sale, storetest.PrincipalOf(sells.Customer))
	if err != nil {
		t.Fatal(err)
	}
	if third.EscrowReference != third.PaymentReference {
		t.Errorf("the sale shows %s instead of %s", third.EscrowReference, third.PaymentReference)
	}
	if a, b, c := first.PaymentReference, second.PaymentReference, third.PaymentReference; a == b || b == c || a == c || !strings.HasPrefix(b, "KVK") || len(b) != len(a) {
		t.Errorf("the references are %s, %s and %s", a, b, c)
	}
	if a := storetest.Attempt(t, s, second); a.Reference != second.PaymentReference {
		t.Errorf("the payer reads %s", a.Reference)
	}
	owner := storetest.Owner(t, s)
	_, err = owner.ExecContext(ctx, `INSERT INTO orders SELECT (jsonb_populate_record(o, jsonb_build_object('id', gen_random_uuid(), 'hold_id', gen_random_uuid(),
		'status', 'pending'))).* FROM orders o WHERE id = $1`, second.ID)
	if !pg.Broke(err, "orders_payment_reference_key") {
		t.Errorf("the database gives a reference to another order: %v", err)
	}
	if _, err = owner.ExecContext(ctx, `UPDATE orders SET payment_reference = 'KVK000000001' WHERE id = $1`, second.ID); sqlState(err) != "KV002" {
		t.Errorf("the database changes a reference: %v", err)
	}
	if _, err = owner.ExecContext(ctx, `INSERT INTO payment_attempts (id, direction, object_type, object_id, provider, status, asset, amount, phone, reference, created_at)
		SELECT gen_random_uuid(), 'collection', 'order', id, 'daraja', 'created', 'KES', fiat_amount, payment_phone, $2, now() FROM orders WHERE id = $1`,
		second.ID, first.PaymentReference); sqlState(err) != "KV001" {
		t.Errorf("the database prompts under another order's reference: %v", err)
	}
}
