package testbed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	temporal "go.temporal.io/sdk/client"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/nodes/tron"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// Nullable is a text that may be absent.
type Nullable struct {
	String string
	Valid  bool
}

// Order is what an app sees of an order.
type Order struct {
	ID            uuid.UUID `json:"id"`
	CustomerID    uuid.UUID `json:"customer_id"`
	VendorID      uuid.UUID `json:"vendor_id"`
	Status        string    `json:"status"`
	StatusDetail  string    `json:"status_detail"`
	CryptoAmount  string    `json:"crypto_amount"`
	FiatAmount    string    `json:"fiat_amount"`
	Rate          string    `json:"rate"`
	WalletAddress string    `json:"wallet_address"`
	PaymentTxnID  Nullable  `json:"payment_txn_id"`
	Receipt       Nullable  `json:"momo_receipt_number"`
	TxHash        Nullable  `json:"blockchain_txn_hash"`
	Phone         Nullable  `json:"payment_phone_number"`
	Escrow        Nullable  `json:"escrow_wallet_address"`
	Deposit       Nullable  `json:"deposit_tx_hash"`
	Other         *struct {
		Digest string `json:"digest"`
	} `json:"other_deposit"`
	CompletedAt struct {
		Time  time.Time
		Valid bool
	} `json:"completed_at"`
}

// Over reports whether the order is in a final state.
func (o Order) Over() bool {
	return slices.Contains([]string{"completed", "cancelled", "failed"}, o.Status)
}

func (o Order) String() string { return o.Status + "/" + o.StatusDetail }

// Place posts an order, and repeats the request with the same key until it gets a response.
func Place(ctx context.Context, c *client.Client, in map[string]any, key string) (Order, error) {
	var o Order
	return o, Insist(ctx, c, "/api/v1/auth/orders", key, in, &o)
}

// Transfer is a transfer as the API returns it.
type Transfer struct {
	ID       uuid.UUID `json:"id"`
	Kind     string    `json:"kind"`
	Status   string    `json:"status"`
	Detail   string    `json:"status_detail"`
	Amount   string    `json:"amount"`
	Digest   string    `json:"approval_digest"`
	TxHash   string    `json:"tx_hash"`
	Required int       `json:"approvals_required"`
	Given    int       `json:"approvals_given"`
}

// Send sends USDT on TRON out of the sender's default wallet.
func Send(t *testing.T, c *client.Client, amount string, recipient map[string]any) Transfer {
	t.Helper()
	var out Transfer
	in := map[string]any{"network": "tron", "asset": "USDT", "amount": amount, "recipient": recipient}
	if err := c.Post(t.Context(), "/api/v1/auth/transfers", Key(), in, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Arrives waits until a transfer has a status.
func Arrives(t *testing.T, c *client.Client, id uuid.UUID, status string) Transfer {
	t.Helper()
	var now Transfer
	Eventually(t, "transfer "+id.String()+" is "+status, func() error {
		if err := c.Get(t.Context(), "/api/v1/auth/transfers/"+id.String(), &now); err != nil {
			return err
		}
		if now.Status != status {
			return fmt.Errorf("it is %s (%s)", now.Status, now.Detail)
		}
		return nil
	})
	return now
}

// Approve has an officer approve a transfer as it is.
func Approve(t *testing.T, officer *client.Client, f Transfer) error {
	t.Helper()
	return Insist(t.Context(), officer, "/api/v1/auth/transfers/"+f.ID.String()+"/approve", Key(), map[string]any{"digest": f.Digest}, nil)
}

// Offer returns a vendor's offer of USDT on a network.
func (s *Testbed) Offer(t *testing.T, vendor string, kind exchange.OfferType, n exchange.Network) uuid.UUID {
	t.Helper()
	offers, _, err := s.Store.ListOffers(t.Context(), store.Everything(), store.OfferFilter{
		VendorID: s.ID(t, vendor), Type: kind, Network: n, Asset: money.USDT, Status: exchange.OfferActive,
	}, store.Page{Number: 1, Size: 1})
	if err != nil || len(offers) == 0 {
		t.Fatalf("%s has no %s offer on %s: %v", vendor, kind, n, err)
	}
	return offers[0].ID
}

// ID returns the id of an account.
func (s *Testbed) ID(t *testing.T, email string) uuid.UUID {
	t.Helper()
	u, err := s.Store.UserByEmail(t.Context(), email)
	if err != nil {
		t.Fatal(err)
	}
	return u.ID
}

// WalletOf returns the default wallet of an account.
func (s *Testbed) WalletOf(t *testing.T, email string, n exchange.Network) exchange.Wallet {
	t.Helper()
	wallet, err := s.Store.DefaultWallet(t.Context(), s.ID(t, email), n)
	if err != nil {
		t.Fatal(err)
	}
	return wallet
}

// PaidFor returns the only transaction that paid for a purpose of an object.
func (s *Testbed) PaidFor(t *testing.T, purpose string, object uuid.UUID) string {
	t.Helper()
	var tx string
	err := s.DB.QueryRowContext(t.Context(), `SELECT a.tx_id FROM chain_attempts a JOIN chain_payments p ON p.id = a.payment_id
		WHERE p.purpose = $1 AND p.object_id = $2 AND a.status = 'succeeded'`, purpose, object).Scan(&tx)
	if err != nil {
		t.Fatalf("the %s of %s: %v", purpose, object, err)
	}
	return tx
}

// CameOnce checks with the chain's node that an address got an asset in exactly one transaction.
func CameOnce(t *testing.T, n demo.Node, address, tx string, m money.Amount) {
	t.Helper()
	changes, err := n.Changes(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	times := 0
	for _, c := range changes {
		if !strings.EqualFold(c.Transaction, tx) || c.Amount.Asset() != m.Asset() || c.Fee {
			continue
		}
		times++
		if !c.Amount.Equal(m) || !c.Final {
			t.Errorf("%s brought %+v to %s, not %s", tx, c, address, m)
		}
	}
	if times != 1 {
		t.Errorf("%s came to %s %d times by %s: %+v", m, address, times, tx, changes)
	}
}

// NewAddress returns a TRON address whose key is discarded.
func NewAddress(t *testing.T) string {
	t.Helper()
	address, err := FreshTron()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// FreshTron is NewAddress outside of a test.
func FreshTron() (string, error) {
	key, err := crypto.GenerateKey()
	if err != nil {
		return "", err
	}
	return tron.AddressOfKey(key).String(), nil
}

// NewPhone returns a phone number that no other test uses, and none of the sandbox's magic numbers.
func NewPhone() string { return fmt.Sprintf("2547%d", firstPhone+phones.Add(1)) }

var (
	firstPhone = 10_000_000 + rand.Int64N(80_000_000) //nolint:gosec // G404: a number of a test is no secret; drawn, so that no other text has the digits by chance
	phones     atomic.Int64                           // how many were given out
)

// HouseLimits patches the house's limits, and makes a second officer confirm changes that wait for one.
func (s *Testbed) HouseLimits(t *testing.T, in map[string]any) {
	t.Helper()
	var waits Waits
	if err := s.Admin(t).Do(t.Context(), http.MethodPatch, "/api/v1/auth/limits", "", in, &waits); err != nil {
		t.Fatal(err)
	}
	s.Agree(t, waits)
}

// Trigger has a schedule start its flow, now or when the current run ends.
func (s *Testbed) Trigger(t *testing.T, schedule string) {
	t.Helper()
	o := temporal.ScheduleTriggerOptions{Overlap: enums.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE}
	if err := s.Temporal.ScheduleClient().GetHandle(t.Context(), schedule).Trigger(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}
