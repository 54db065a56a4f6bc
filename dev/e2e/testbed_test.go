package e2e

import (
	"context"
	"testing"

	"github.com/google/uuid"
	temporal "go.temporal.io/sdk/client"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/dev/testbed"
	"kivuko/exchange"
	"kivuko/momo/sandbox"
)

// The names in this package of what other tests of the stack use too.
type (
	order      = testbed.Order
	sent       = testbed.Transfer
	transcript = testbed.Transcript
)

const (
	timeout         = testbed.Timeout
	tronPoll        = testbed.TronPoll
	transactionLife = testbed.TransactionLife
	secondOfficer   = testbed.SecondOfficer
)

var (
	eventually = testbed.Eventually
	await      = testbed.Await
	call       = testbed.Call
	insist     = testbed.Insist
	passing    = testbed.Passing
	is         = testbed.Is
	seen       = testbed.Seen
	place      = testbed.Place
	cameOnce   = testbed.CameOnce
	newAddress = testbed.NewAddress
	newPhone   = testbed.NewPhone
	collected  = testbed.Collected
	prompted   = testbed.Prompted
	paidBack   = testbed.PaidOut
	stranger   = demo.Stranger // an address whose key is not kept
)

func (w *harness) momo() string         { return w.testbed.Momo() }
func (w *harness) seed() demo.Stack     { return w.testbed.Seed() }
func (w *harness) release(t *testing.T) { t.Helper(); w.testbed.Release(t) }

func (w *harness) books(t *testing.T) sandbox.Books { t.Helper(); return w.testbed.Books(t) }

func (w *harness) fault(t *testing.T, behaviour, op, phone string) {
	t.Helper()
	w.testbed.Fault(t, behaviour, op, phone)
}

func (w *harness) adminLogin(ctx context.Context) (*client.Client, error) {
	return w.testbed.Login(ctx, stack.AdminEmail, stack.AdminPassword)
}

func (w *harness) as(t *testing.T, email string) *client.Client {
	t.Helper()
	return w.testbed.As(t, email)
}
func (w *harness) admin(t *testing.T) *client.Client    { t.Helper(); return w.testbed.Admin(t) }
func (w *harness) amina(t *testing.T) *client.Client    { t.Helper(); return w.testbed.Amina(t) }
func (w *harness) operator(t *testing.T) *client.Client { t.Helper(); return w.testbed.Officer(t) }

func (w *harness) inbox(t *testing.T, to, pattern string) string {
	t.Helper()
	return w.testbed.Inbox(t, to, pattern)
}

func (w *harness) webUI(t *testing.T) temporal.Client { t.Helper(); return w.testbed.WebUI(t) }

func (w *harness) trigger(t *testing.T, schedule string) { t.Helper(); w.testbed.Trigger(t, schedule) }

func (w *harness) houseLimits(t *testing.T, in map[string]any) {
	t.Helper()
	w.testbed.HouseLimits(t, in)
}

func (w *harness) send(t *testing.T, c *client.Client, amount string, recipient map[string]any) sent {
	t.Helper()
	return testbed.Send(t, c, amount, recipient)
}

func (w *harness) arrives(t *testing.T, c *client.Client, id uuid.UUID, status string) sent {
	t.Helper()
	return testbed.Arrives(t, c, id, status)
}

func (w *harness) walletOf(t *testing.T, email string, n exchange.Network) exchange.Wallet {
	t.Helper()
	return w.testbed.WalletOf(t, email, n)
}

// buyerOn is the vendor's offer to buy on a network, offerOn a vendor's offer to sell.
func (w *harness) buyerOn(t *testing.T, n exchange.Network) uuid.UUID {
	t.Helper()
	return w.testbed.Offer(t, demo.VendorEmail, exchange.OfferBuy, n)
}

func (w *harness) offerOn(t *testing.T, vendor string, n exchange.Network) uuid.UUID {
	t.Helper()
	return w.testbed.Offer(t, vendor, exchange.OfferSell, n)
}

func (w *harness) sentFor(t *testing.T, purpose string, object uuid.UUID) string {
	t.Helper()
	return w.testbed.PaidFor(t, purpose, object)
}
