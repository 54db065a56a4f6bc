package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/tron"
)

const (
	// patience bounds a wait for something that should happen soon. It only decides how long a broken
	// product is waited for, so that it leaves room for slow machines.
	patience = 3 * time.Minute
	pollEach = 100 * time.Millisecond
	// loginLife is well below the life of an access token.
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
	CompletedAt   struct {
		Time  time.Time
		Valid bool
	} `json:"completed_at"`
}

// over tells whether nothing more happens to the order.
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

func (w *world) login(ctx context.Context, email, password string) (*client.Client, error) {
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

// as is a caller with the account's login. The API may be down for a moment.
func (w *world) as(t *testing.T, email string) *client.Client {
	t.Helper()
	var c *client.Client
	eventually(t, "login of "+email, func() (err error) {
		c, err = w.login(t.Context(), email, demo.Password)
		return err
	})
	return c
}

func (w *world) amina(t *testing.T) *client.Client { t.Helper(); return w.as(t, demo.CustomerEmail) }

func (w *world) operator(t *testing.T) *client.Client { t.Helper(); return w.as(t, demo.TreasuryEmail) }

// eventually waits until check succeeds.
func eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := await(t.Context(), patience, check); err != nil {
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

// newAddress is an address on TRON of a key that nobody keeps.
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

// newPhone is a payer that no other test has, and none of the sandbox's magic numbers.
func newPhone() string { return fmt.Sprintf("2547%08d", 10_000_000+rand.IntN(89_999_999)) }

// purchase is one order that a test opens.
type purchase struct {
	crypto, fiat string // one of them
	phone, to    string // empty: fresh ones
}

// buy opens an order as the customer would. While the service is away it repeats the request with the same
// key, as a client should.
func (w *world) buy(t *testing.T, p purchase) order {
	t.Helper()
	o, err := w.tryBuy(t, p, uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (w *world) tryBuy(t *testing.T, p purchase, key string) (order, error) {
	t.Helper()
	return place(t.Context(), w.amina(t), w.form(t, p), key)
}

// form is the body of a request for an order.
func (w *world) form(t *testing.T, p purchase) map[string]any {
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

// place posts an order, and repeats the request with the same key for as long as the answer is none.
func place(ctx context.Context, c *client.Client, in map[string]any, key string) (order, error) {
	var o order
	var final error
	err := await(ctx, patience, func() error {
		err := c.Post(ctx, "/api/v1/auth/orders", key, in, &o)
		if passing(err) {
			return err
		}
		final = err
		return nil
	})
	return o, errors.Join(err, final)
}

// passing tells whether a request should be repeated with the same key: the connection broke, or the service
// says that it is away or at work on the first one.
func passing(err error) bool {
	p, ok := errors.AsType[*client.Problem](err)
	if !ok {
		return err != nil
	}
	return p.Status >= http.StatusInternalServerError || p.Code == "idempotency_in_flight" || p.Status == http.StatusTooManyRequests
}

// read gives an order as its customer sees it now.
func (w *world) read(t *testing.T, id uuid.UUID) (o order, err error) {
	t.Helper()
	return o, w.amina(t).Get(t.Context(), "/api/v1/auth/orders/"+id.String(), &o)
}

// until waits for an order to be as wanted.
func (w *world) until(t *testing.T, id uuid.UUID, what string, is func(order) bool) order {
	t.Helper()
	return w.untilFor(t, id, what, patience, is)
}

func (w *world) untilFor(t *testing.T, id uuid.UUID, what string, limit time.Duration, is func(order) bool) order {
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

// ends waits for the order's end, which must be the given one.
func (w *world) ends(t *testing.T, id uuid.UUID, status, detail string) order {
	t.Helper()
	o := w.until(t, id, "over", order.over)
	if o.Status != status || (detail != "" && o.StatusDetail != detail) {
		t.Fatalf("order %s ended %s, not %s/%s", id, o, status, detail)
	}
	return o
}

func detail(d string) func(order) bool { return func(o order) bool { return o.StatusDetail == d } }

// tell sends a command about an order.
func (w *world) tell(t *testing.T, c *client.Client, id uuid.UUID, verb string, in any) {
	t.Helper()
	key := uuid.NewString()
	eventually(t, verb, func() error {
		return c.Post(t.Context(), "/api/v1/auth/orders/"+id.String()+"/"+verb, key, in, nil)
	})
}
