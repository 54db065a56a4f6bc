package e2e

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/dev/testbed"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// gas is the TRX that the vendor's wallet gets besides the seed: each new address costs some.
const gas = "100000"

// harness is the running stack and the clients that use and check it.
type harness struct {
	testbed  *testbed.Testbed
	stack    *stack.Stack // these five are the testbed's
	product  string       // its binary
	temporal client.Client
	db       *sql.DB
	store    *store.Store
	crash    string // the directory in which crash points are armed
	coldKey  string // the file with the private half, which no process of the stack gets
	customer uuid.UUID
	vendor   uuid.UUID
	offer    uuid.UUID
	wallet   exchange.Wallet // the vendor's
	watched  exchange.Wallet // of the customer whose every transfer an officer decides, for the crash trials

	screening *screening
}

var (
	theDir     string
	theOnce    sync.Once
	theHarness *harness
	theError   error
)

// open returns the only harness of this test binary and starts it at the first call.
func open(t *testing.T) *harness {
	t.Helper()
	if testing.Short() {
		t.Skip("the whole stack is not for -short")
	}
	theOnce.Do(func() {
		began := time.Now()
		theHarness, theError = start(theDir)
		if theError == nil {
			t.Logf("the stack was up after %s:\n%s", time.Since(began).Round(time.Second), theHarness.testbed.Said)
			usual := map[string]any{"one_above": usualOne, "two_above": ruleTwo}
			theHarness.houseLimits(t, map[string]any{"approvals": map[string]any{"transfer": usual, "refund": usual}})
		}
	})
	if theError != nil {
		t.Fatal(theError)
	}
	return theHarness
}

// openBeside is open for a test that changes nothing that others share: no node, no process, no rule that others meet. It
// waits until the tests that do are over, and then runs beside all others of its kind.
func openBeside(t *testing.T) *harness {
	t.Helper()
	w := open(t)
	t.Parallel()
	return w
}

func closeHarness() error {
	if theHarness == nil {
		return nil
	}
	defer theHarness.screening.server.Close()
	return theHarness.testbed.Close()
}

// start starts the stack with a screener, a cold key and crash points.
func start(dir string) (*harness, error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return nil, err
	}
	w := &harness{crash: filepath.Join(dir, "crash"), screening: newScreening()}
	for _, name := range []string{"armed", "killed", "passed"} {
		if err := os.MkdirAll(filepath.Join(w.crash, name), 0o700); err != nil {
			return nil, err
		}
	}
	settings, err := copySettings(dir, root)
	if err != nil {
		return nil, err
	}
	w.testbed, err = testbed.Start(testbed.Options{
		Root: root, Dir: dir, DynamicConfig: settings,
		Environment: map[string]string{
			"SENDING_STUCK_TIMEOUT": timeoutToBump.String(), "SCREENING_URL": w.screening.server.URL, "CRASH_DIR": w.crash, "LOG_LEVEL": "debug",
		},
		Before: func(ctx context.Context, s *testbed.Testbed) error {
			w.stack, w.product = s.Stack, s.Product
			return w.makeColdKey(ctx, dir, s.Product)
		},
	})
	if err != nil {
		return nil, err
	}
	w.temporal, w.db, w.store = w.testbed.Temporal, w.testbed.DB, w.testbed.Store
	if err := w.meet(context.Background()); err != nil {
		return nil, errors.Join(err, w.testbed.Close())
	}
	return w, nil
}

// copySettings makes a file of Temporal's settings that a test may change.
func copySettings(dir, root string) (string, error) {
	content, err := os.ReadFile(filepath.Join(root, "docker", "dynamicconfig.yaml"))
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "dynamicconfig.yaml")
	return file, os.WriteFile(file, content, 0o600)
}

// meet finds the users of the seed, the vendor's wallet and its offer, and tops up the wallet's gas.
func (w *harness) meet(ctx context.Context) error {
	customer, err := w.store.UserByEmail(ctx, demo.CustomerEmail)
	if err != nil {
		return err
	}
	vendor, err := w.store.UserByEmail(ctx, demo.VendorEmail)
	if err != nil {
		return err
	}
	w.customer, w.vendor = customer.ID, vendor.ID
	if w.wallet, err = w.store.DefaultWallet(ctx, vendor.ID, exchange.Tron); err != nil {
		return err
	}
	offers, _, err := w.store.ListOffers(ctx, store.Everything(),
		store.OfferFilter{VendorID: vendor.ID, Type: exchange.OfferSell, Network: exchange.Tron, Status: exchange.OfferActive}, store.Page{Number: 1, Size: 1})
	if err != nil {
		return err
	}
	if len(offers) == 0 {
		return errors.New("the seed made no offer of " + demo.VendorEmail)
	}
	w.offer = offers[0].ID
	if err := w.deposit(ctx, money.Must(money.TRX, gas)); err != nil {
		return err
	}
	return w.coins(ctx)
}

// coins brings the vendors' wallets coins for the networks' fees, so that most payments need no gas from the house. One vendor gets no ether.
func (w *harness) coins(ctx context.Context) error {
	brings := map[exchange.Network]money.Amount{exchange.Tron: money.Must(money.TRX, "2000"), exchange.Ethereum: money.Must(money.ETH, "5")}
	for _, n := range w.seed().Nodes() {
		for _, email := range []string{demo.VendorEmail, demo.ExhaustedVendorEmail} {
			m, some := brings[n.Network]
			if !some || n.Network == exchange.Ethereum && email == demo.ExhaustedVendorEmail {
				continue
			}
			of, err := w.store.UserByEmail(ctx, email)
			if err != nil {
				return err
			}
			wallet, err := w.store.DefaultWallet(ctx, of.ID, n.Network)
			if err != nil {
				return err
			}
			held, err := demo.Held(ctx, w.store, wallet, m.Asset())
			if err != nil {
				return err
			}
			if held.Cmp(m) >= 0 { // there from an earlier run on the same state directory
				continue
			}
			if err := n.Fund(ctx, wallet.Address, m); err != nil {
				return err
			}
			if err := errors.Join(demo.Booked(ctx, w.store, wallet, m), demo.ForFees(ctx, w.store, wallet)); err != nil {
				return err
			}
		}
	}
	return nil
}

// deposit sends coins to the vendor's wallet and waits until the product has booked them.
func (w *harness) deposit(ctx context.Context, m money.Amount) error {
	held, err := demo.Held(ctx, w.store, w.wallet, m.Asset())
	if err != nil || held.Cmp(m) >= 0 { // there from an earlier run on the same state directory
		return err
	}
	in := map[string]any{"address": w.wallet.Address, "token": m.Asset(), "amount": m.Units().String(), "mine": true}
	if err := w.control(ctx, "POST", "/fund", in, nil); err != nil {
		return err
	}
	if err := demo.Booked(ctx, w.store, w.wallet, held.Add(m)); err != nil {
		return err
	}
	return demo.ForFees(ctx, w.store, w.wallet)
}
