package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/nodes/tron"
)

const (
	// timeout bounds a wait for something that should happen soon. It only decides how long a test waits for a broken
	// product, so it is generous for slow machines.
	timeout  = 3 * time.Minute
	pollEach = 100 * time.Millisecond
	// loginLife is well below the lifetime of an access token.
	loginLife = 8 * time.Minute
)

type nullable struct {
	String string
	Valid  bool
}

// order is what an app sees of an order.
type order struct {
	ID            uuid.UUID `json:"id"`
	CustomerID    uuid.UUID `json:"customer_id"`
	VendorID      uuid.UUID `json:"vendor_id"`
	Status        string    `json:"status"`
	StatusDetail  string    `json:"status_detail"`
	CryptoAmount  string    `json:"crypto_amount"`
	FiatAmount    string    `json:"fiat_amount"`
	Rate          string    `json:"rate"`
	WalletAddress string    `json:"wallet_address"`
	PaymentTxnID  nullable  `json:"payment_txn_id"`
	Receipt       nullable  `json:"momo_receipt_number"`
	TxHash        nullable  `json:"blockchain_txn_hash"`
	Phone         nullable  `json:"payment_phone_number"`
	Escrow        nullable  `json:"escrow_wallet_address"`
	Deposit       nullable  `json:"deposit_tx_hash"`
	Other         *struct {
		Digest string `json:"digest"`
	} `json:"other_deposit"`
	CompletedAt struct {
		Time  time.Time
		Valid bool
	} `json:"completed_at"`
}

// over reports whether the order is in a final state.
func (o order) over() bool {
	return slices.Contains([]string{"completed", "cancelled", "failed"}, o.Status)
}

func (o order) String() string { return o.Status + "/" + o.StatusDetail }

// people logs in as the accounts of the seed, again and again in a long run.
type people struct {
	mu     sync.Mutex
	logins map[string]*client.Client
	since  map[string]time.Time
}

func (w *harness) login(ctx context.Context, email, password string) (*client.Client, error) {
	p := &w.people
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.logins[email]; c != nil && time.Since(p.since[email]) < loginLife {
		return c, nil
	}
	c, err := client.New(w.api()).Login(ctx, email, password)
	if err != nil {
		return nil, err
	}
	if p.logins == nil {
		p.logins, p.since = map[string]*client.Client{}, map[string]time.Time{}
	}
	p.logins[email], p.since[email] = c, time.Now()
	return c, nil
}

// as returns a client with the account's login. The API may be down for a moment.
func (w *harness) as(t *testing.T, email string) *client.Client {
	t.Helper()
	var c *client.Client
	eventually(t, "login of "+email, func() (err error) {
		c, err = w.login(t.Context(), email, demo.Password)
		return err
	})
	return c
}

func (w *harness) amina(t *testing.T) *client.Client { t.Helper(); return w.as(t, demo.CustomerEmail) }

func (w *harness) operator(t *testing.T) *client.Client {
	t.Helper()
	return w.as(t, demo.TreasuryEmail)
}

// eventually waits until check succeeds.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := await(t.Context(), timeout, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func await(ctx context.Context, limit time.Duration, check func() error) error {
	for deadline := time.Now().Add(limit); ; {
		err := check()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s: %w", limit, err)
		}
		time.Sleep(pollEach)
	}
}

// newAddress returns a TRON address whose key is discarded.
func newAddress(t *testing.T) string {
	t.Helper()
	address, err := freshTron()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

func freshTron() (string, error) {
	key, err := crypto.GenerateKey()
	if err != nil {
		return "", err
	}
	return tron.AddressOfKey(key).String(), nil
}

// newPhone returns a phone number that no other test uses, and none of the sandbox's magic numbers.
func newPhone() string { return fmt.Sprintf("2547%d", firstPhone+phones.Add(1)) }

var (
	firstPhone = 10_000_000 + rand.Int64N(80_000_000) // drawn, so that no other text has the digits by chance
	phones     atomic.Int64                           // how many were given out
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

// place posts an order, and repeats the request with the same key until it gets a response.
func place(ctx context.Context, c *client.Client, in map[string]any, key string) (order, error) {
	var o order
	var final error
	err := await(ctx, timeout, func() error {
		err := c.Post(ctx, "/api/v1/auth/orders", key, in, &o)
		if passing(err) {
			return err
		}
		final = err
		return nil
	})
	return o, errors.Join(err, final)
}

// passing reports whether a request should be repeated with the same key: the connection broke, or the service
// responds that it is unavailable or still processing the first request.
func passing(err error) bool {
	p, ok := errors.AsType[*client.Problem](err)
	if !ok {
		return err != nil
	}
	return p.Status >= http.StatusInternalServerError || p.Code == "idempotency_in_flight" || p.Status == http.StatusTooManyRequests
}

// read returns an order as its customer sees it now.
func (w *harness) read(t *testing.T, id uuid.UUID) (o order, err error) {
	t.Helper()
	return o, w.amina(t).Get(t.Context(), "/api/v1/auth/orders/"+id.String(), &o)
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
	o := w.until(t, id, "over", order.over)
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
