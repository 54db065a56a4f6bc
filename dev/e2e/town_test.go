package e2e

import (
	"context"
	"testing"

	"github.com/google/uuid"
	temporal "go.temporal.io/sdk/client"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/dev/town"
	"kivuko/exchange"
	"kivuko/momo/sandbox"
)

// The names in this package of what other tests of the stack use too.
type (
	order      = town.Order
	sent       = town.Transfer
	transcript = town.Transcript
)

const (
	timeout         = town.Timeout
	tronPoll        = town.TronPoll
	transactionLife = town.TransactionLife
	secondOfficer   = town.SecondOfficer
)

var (
	eventually = town.Eventually
	await      = town.Await
	call       = town.Call
	insist     = town.Insist
	passing    = town.Passing
	is         = town.Is
	seen       = town.Seen
	place      = town.Place
	cameOnce   = town.CameOnce
	newAddress = town.NewAddress
	newPhone   = town.NewPhone
	collected  = town.Collected
	prompted   = town.Prompted
	paidBack   = town.PaidOut
	stranger   = demo.Stranger // an address whose key is not kept
)

func (w *harness) api() string          { return w.town.API() }
func (w *harness) momo() string         { return w.town.Momo() }
func (w *harness) seed() demo.Stack     { return w.town.Seed() }
func (w *harness) release(t *testing.T) { t.Helper(); w.town.Release(t) }

func (w *harness) books(t *testing.T) sandbox.Books { t.Helper(); return w.town.Books(t) }

func (w *harness) fault(t *testing.T, behaviour, op, phone string) {
	t.Helper()
	w.town.Fault(t, behaviour, op, phone)
}

func (w *harness) login(ctx context.Context, email, password string) (*client.Client, error) {
	return w.town.Login(ctx, email, password)
}

func (w *harness) as(t *testing.T, email string) *client.Client {
	t.Helper()
	return w.town.As(t, email)
}
func (w *harness) admin(t *testing.T) *client.Client    { t.Helper(); return w.town.Admin(t) }
func (w *harness) amina(t *testing.T) *client.Client    { t.Helper(); return w.town.Amina(t) }
func (w *harness) operator(t *testing.T) *client.Client { t.Helper(); return w.town.Officer(t) }

func (w *harness) inbox(t *testing.T, to, pattern string) string {
	t.Helper()
	return w.town.Inbox(t, to, pattern)
}

func (w *harness) webUI(t *testing.T) temporal.Client { t.Helper(); return w.town.WebUI(t) }

func (w *harness) dial() (temporal.Client, error) { return stack.Dial(w.stack.Tools(), "e2e") }

func (w *harness) trigger(t *testing.T, schedule string) { t.Helper(); w.town.Trigger(t, schedule) }

func (w *harness) houseLimits(t *testing.T, in map[string]any) {
	t.Helper()
	w.town.HouseLimits(t, in)
}

func (w *harness) send(t *testing.T, c *client.Client, amount string, recipient map[string]any) sent {
	t.Helper()
	return town.Send(t, c, amount, recipient)
}

func (w *harness) arrives(t *testing.T, c *client.Client, id uuid.UUID, status string) sent {
	t.Helper()
	return town.Arrives(t, c, id, status)
}

func (w *harness) walletOf(t *testing.T, email string, n exchange.Network) exchange.Wallet {
	t.Helper()
	return w.town.WalletOf(t, email, n)
}

// buyerOn is the vendor's offer to buy on a network, offerOn a vendor's offer to sell.
func (w *harness) buyerOn(t *testing.T, n exchange.Network) uuid.UUID {
	t.Helper()
	return w.town.Offer(t, demo.VendorEmail, exchange.OfferBuy, n)
}

func (w *harness) offerOn(t *testing.T, vendor string, n exchange.Network) uuid.UUID {
	t.Helper()
	return w.town.Offer(t, vendor, exchange.OfferSell, n)
}

func (w *harness) sentFor(t *testing.T, purpose string, object uuid.UUID) string {
	t.Helper()
	return w.town.PaidFor(t, purpose, object)
}
