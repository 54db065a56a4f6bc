package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
)

// purchase is one order that a test opens.
type purchase struct {
	crypto, fiat string // one of them
	phone, to    string // empty: fresh ones
}

// buy opens an order as the customer would. While the service is unavailable it repeats the request with the same
// key, as a client should.
func (w *harness) buy(t *testing.T, p purchase) order {
	t.Helper()
	o, err := w.tryBuy(t, p, uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (w *harness) tryBuy(t *testing.T, p purchase, key string) (order, error) {
	t.Helper()
	return place(t.Context(), w.amina(t), w.form(t, p), key)
}

// form returns the request body for an order.
func (w *harness) form(t *testing.T, p purchase) map[string]any {
	t.Helper()
	in := map[string]any{"offer_id": w.offer, "wallet_address": p.to, "payment_phone_number": "+" + p.phone}
	if p.to == "" {
		in["wallet_address"] = newAddress(t)
	}
	if p.phone == "" {
		in["payment_phone_number"] = "+" + newPhone()
	}
	if p.fiat != "" {
		in["fiat_amount"] = p.fiat
	} else {
		in["crypto_amount"] = p.crypto
	}
	return in
}

// read returns an order as its customer sees it now.
func (w *harness) read(t *testing.T, id uuid.UUID) (o order, err error) {
	t.Helper()
	var customer string
	const read = `SELECT u.email FROM orders o JOIN users u ON u.id = o.customer_id WHERE o.id = $1`
	if err := w.db.QueryRowContext(t.Context(), read, id).Scan(&customer); err != nil {
		return o, err
	}
	return o, w.as(t, customer).Get(t.Context(), "/api/v1/auth/orders/"+id.String(), &o)
}

// until waits until an order satisfies a condition.
func (w *harness) until(t *testing.T, id uuid.UUID, what string, is func(order) bool) order {
	t.Helper()
	return w.untilFor(t, id, what, timeout, is)
}

func (w *harness) untilFor(t *testing.T, id uuid.UUID, what string, limit time.Duration, is func(order) bool) order {
	t.Helper()
	var o order
	err := await(t.Context(), limit, func() (err error) {
		if o, err = w.read(t, id); err != nil {
			return err
		}
		if !is(o) {
			return fmt.Errorf("the order is %s", o)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("order %s should be %s: %v", id, what, err)
	}
	return o
}

// ends waits for the order's end, which must have the given status and detail.
func (w *harness) ends(t *testing.T, id uuid.UUID, status, detail string) order {
	t.Helper()
	o := w.until(t, id, "over", order.Over)
	if o.Status != status || (detail != "" && o.StatusDetail != detail) {
		t.Fatalf("order %s ended %s, not %s/%s", id, o, status, detail)
	}
	return o
}

func detail(d string) func(order) bool { return func(o order) bool { return o.StatusDetail == d } }

// sendCommand sends a command about an order.
func (w *harness) sendCommand(t *testing.T, c *client.Client, id uuid.UUID, verb string, in any) {
	t.Helper()
	key := uuid.NewString()
	eventually(t, verb, func() error {
		return c.Post(t.Context(), "/api/v1/auth/orders/"+id.String()+"/"+verb, key, in, nil)
	})
}
