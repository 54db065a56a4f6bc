package attacks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/dev/testbed"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo/sandbox"
)

const (
	auth   = "/api/v1/auth"
	orders = auth + "/orders/"

	// simba is a vendor whose wallet and offers only some attacks use, because sums of a day count there.
	simba = demo.ExhaustedVendorEmail
	// sold is what the usual sale brings, and paid what its payee gets: the shillings of 10 USDT at 128.755, less the cents.
	sold = "10"
	paid = 1287
)

// chain is the node of the network.
func (w *harness) chain() demo.Node { return w.Seed().Nodes()[0] }

// pause stops the chain's blocks until resume is called, or the test is over.
func (w *harness) pause(t *testing.T) (resume func()) {
	t.Helper()
	post := func(ctx context.Context, path string) {
		if err := w.chain().Call(ctx, http.MethodPost, path, nil, nil); err != nil {
			t.Error(err)
		}
	}
	w.hasGas(t)
	post(t.Context(), "/pause")
	t.Cleanup(func() { post(context.Background(), "/resume") })
	return func() { post(t.Context(), "/resume") }
}

// hasGas brings coins for fees to the wallet of the vendor, whose payments would need a block with a top-up otherwise.
func (w *harness) hasGas(t *testing.T) {
	t.Helper()
	wallet, coins := w.WalletOf(t, demo.VendorEmail, exchange.Tron), money.Must(money.TRX, "200")
	err := w.chain().Fund(t.Context(), wallet.Address, coins)
	if err == nil {
		err = demo.Booked(t.Context(), w.Store, wallet, coins)
	}
	if err == nil {
		err = demo.ForFees(t.Context(), w.Store, wallet)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// came is all USDT that came to an address, as the chain has it, in whatever number of transactions.
func (w *harness) came(t *testing.T, address string) money.Amount {
	t.Helper()
	changes, err := w.chain().Changes(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	sum := money.Zero(money.USDT)
	for _, c := range changes {
		if c.Amount.Asset() == money.USDT && c.Amount.Positive() {
			sum = sum.Add(c.Amount)
		}
	}
	return sum
}

// got checks how much USDT an address was sent.
func (w *harness) got(t *testing.T, address, usdt string) {
	t.Helper()
	if came := w.came(t, address); !came.Equal(money.Must(money.USDT, usdt)) {
		t.Errorf("%s USDT came to %s, not %s", came, address, usdt)
	}
}

// paidTo checks what the operator paid out to a phone, each in one payout.
func (w *harness) paidTo(t *testing.T, phone string, shillings ...int64) {
	t.Helper()
	var out []int64
	for _, e := range testbed.PaidOut(w.Books(t), phone) {
		out = append(out, e.Amount)
	}
	if fmt.Sprint(out) != fmt.Sprint(shillings) {
		t.Errorf("the operator paid %v to %s, not %v", out, phone, shillings)
	}
}

// count is a number that a query finds in the database.
func (w *harness) count(t *testing.T, query string, args ...any) (n int) {
	t.Helper()
	if err := w.DB.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// order reads an order as a caller sees it.
func (w *harness) order(t *testing.T, c *client.Client, id uuid.UUID) (o testbed.Order) {
	t.Helper()
	if err := c.Get(t.Context(), orders+id.String(), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// until waits until an order is as said.
func (w *harness) until(t *testing.T, c *client.Client, id uuid.UUID, what string, is func(testbed.Order) bool) (o testbed.Order) {
	t.Helper()
	testbed.Eventually(t, "order "+id.String()+" is "+what, func() error {
		if err := c.Get(t.Context(), orders+id.String(), &o); err != nil {
			return err
		}
		if !is(o) {
			return fmt.Errorf("it is %s", o)
		}
		return nil
	})
	return o
}

// completes waits until an order is over, and completed.
func (w *harness) completes(t *testing.T, c *client.Client, id uuid.UUID) testbed.Order {
	t.Helper()
	o := w.until(t, c, id, "over", testbed.Order.Over)
	if o.Status != "completed" {
		t.Fatalf("order %s ended %s", id, o)
	}
	return o
}

// buys opens a purchase of 5 USDT to an address, paid by a phone.
func (w *harness) buys(t *testing.T, c *client.Client, phone, to string) testbed.Order {
	t.Helper()
	in := map[string]any{
		"offer_id": w.Offer(t, demo.VendorEmail, exchange.OfferSell, exchange.Tron), "crypto_amount": "5", "wallet_address": to, "payment_phone_number": "+" + phone,
	}
	o, err := testbed.Place(t.Context(), c, in, testbed.Key())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// saleOf is the body of a request that sells 10 USDT to a vendor, paid to a phone.
func (w *harness) saleOf(t *testing.T, vendor, phone string) map[string]any {
	t.Helper()
	return map[string]any{
		"order_type": "OFF_RAMP_SELL", "order_subtype": "standard_offramp", "offer_id": w.Offer(t, vendor, exchange.OfferBuy, exchange.Tron), "crypto_amount": sold,
		"payment_phone_number": "+" + phone, "refund_address": testbed.NewAddress(t),
	}
}

// sells opens the usual sale.
func (w *harness) sells(t *testing.T, c *client.Client, phone string) testbed.Order {
	t.Helper()
	o, err := testbed.Place(t.Context(), c, w.saleOf(t, demo.VendorEmail, phone), testbed.Key())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// pays sends USDT to the address of an order from outside.
func (w *harness) pays(t *testing.T, o testbed.Order, usdt string) {
	t.Helper()
	if err := w.chain().Fund(t.Context(), o.Escrow.String, money.Must(money.USDT, usdt)); err != nil {
		t.Fatal(err)
	}
}

// variable is one of the API's variables, which an attacker may have read.
func (w *harness) variable(name string) string {
	for _, kv := range w.Stack.ProductEnvironment(stack.ProcessAPI) {
		if value, is := strings.CutPrefix(kv, "KIVUKO_"+name+"="); is {
			return value
		}
	}
	return ""
}

// prompt is the only prompt of an order.
func (w *harness) prompt(t *testing.T, o testbed.Order) (p sandbox.Prompt) {
	t.Helper()
	testbed.Eventually(t, "a prompt", func() error {
		all := testbed.Prompted(w.Books(t), o.ID)
		if len(all) != 1 {
			return fmt.Errorf("there are %d", len(all))
		}
		p = all[0]
		return nil
	})
	return p
}

// parked waits until a flow of an object waits for an officer for a reason.
func (w *harness) parked(t *testing.T, object uuid.UUID, reason string) {
	t.Helper()
	testbed.Eventually(t, object.String()+" is parked with "+reason, func() error {
		if n := w.count(t, `SELECT count(*) FROM parked_flows WHERE object_id = $1 AND reason = $2`, object, reason); n == 0 {
			return errors.New("it is not")
		}
		return nil
	})
}

// login is a new login of an account of the demo.
func (w *harness) login(t *testing.T, email string) *client.Client {
	t.Helper()
	c, err := client.New(w.API()).Login(t.Context(), email, demo.Password)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// register makes an account of a stranger. Each of what it proves costs it a code.
func (w *harness) register(t *testing.T, phone, email string, proves ...string) error {
	t.Helper()
	in := map[string]any{"email": email, "phone_number": "+" + phone, "first_name": "Mwizi", "last_name": "Mgeni", "password": demo.Password, "pin": pin}
	for _, what := range proves {
		var sent struct {
			ID uuid.UUID `json:"id"`
		}
		field, to := what, email
		if what == "phone" {
			field, to = "phone_number", phone
		}
		if err := client.New(w.API()).Post(t.Context(), "/api/v1/users/verifications", "", map[string]any{field: to}, &sent); err != nil {
			return err
		}
		in[what+"_verification"] = map[string]any{"id": sent.ID, "code": w.Inbox(t, to, `\b[0-9]{6}\b`)}
	}
	return client.New(w.API()).Post(t.Context(), "/api/v1/users/register", "", in, nil)
}

// pin is a good one for accounts of strangers.
const pin = "73915"

// stranger registers an account that proves a new phone, and logs it in.
func (w *harness) stranger(t *testing.T, proves ...string) (c *client.Client, phone string) {
	t.Helper()
	phone = testbed.NewPhone()
	email := phone + "@strangers.example"
	if err := w.register(t, phone, email, proves...); err != nil {
		t.Fatal(err)
	}
	return w.login(t, email), phone
}

// knock posts a request as somebody on another device, and returns the status and the code of the refusal.
func (w *harness) knock(t *testing.T, path string, in map[string]any) (status int, code string) {
	t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.API()+path, bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "a stranger's")
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }() // everything of worth was read before
	var problem client.Problem
	if err := json.NewDecoder(got.Body).Decode(&problem); err != nil {
		t.Fatal(err)
	}
	return got.StatusCode, problem.Code
}

// refused checks that a request was refused with a status, and a code or the place of what was wrong.
func refused(t *testing.T, what string, err error, status int, code string) {
	t.Helper()
	p, _ := errors.AsType[*client.Problem](err)
	if p == nil || p.Status != status || !strings.Contains(p.Error(), code) {
		t.Errorf("%s: %v, and not %d %s", what, err, status, code)
	}
}
