package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// strayException is what the API shows of money that arrived on the wrong network.
type strayException struct {
	ID       uuid.UUID
	Kind     string
	Status   string
	OrderID  uuid.UUID `json:"order_id"`
	Asset    string
	Amount   string
	Network  string
	TxHash   string    `json:"tx_hash"`
	Address  string    `json:"address"`
	WalletID uuid.UUID `json:"wallet_id"`
	MeantFor struct {
		WalletID uuid.UUID `json:"wallet_id"`
		Network  string
		Address  string
	} `json:"meant_for"`
}

// TestWrongNetwork has payers use the right account on the wrong network: USDT for the escrow address of an open sale
// on TRON arrives on Ethereum, at the hexadecimal form of the address, and the other way round. The product detects
// it, an operator sends it back with a second officer's approval, signed by the key of the intended address, and the
// sale goes on.
func TestWrongNetwork(t *testing.T) {
	w := openBeside(t)
	tron, tronRuns := w.nodeOf(exchange.Tron)
	ethereum, ethereumRuns := w.nodeOf(exchange.Ethereum)
	if !tronRuns || !ethereumRuns {
		t.Skip("TRON and Ethereum must both run")
	}
	t.Run("all", func(t *testing.T) {
		for name, on := range map[string]struct{ meant, used demo.Node }{
			"for TRON on Ethereum": {tron, ethereum},
			"for Ethereum on TRON": {ethereum, tron},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w.stray(t, on.meant, on.used)
			})
		}
	})
	w.invariants(t)
	w.booksAgree(t)
}

func (w *harness) stray(t *testing.T, meant, used demo.Node) {
	t.Helper()
	ctx, o := t.Context(), w.sell(t, meant, sale{})
	counterpart, brought := w.otherSpelling(t, o), money.Must(money.USDT, "7")
	if err := used.Fund(ctx, counterpart, brought); err != nil {
		t.Fatal(err)
	}
	w.exception(t, o.ID, "wrong_network", "open", brought.String())
	x := w.strayOf(t, o)
	if x.OrderID != o.ID || x.Asset != "USDT" || x.Network != string(used.Network) || !strings.EqualFold(x.Address, counterpart) {
		t.Errorf("the exception is %+v", x)
	}
	if x.MeantFor.Network != string(meant.Network) || x.MeantFor.Address != o.Escrow.String || x.MeantFor.WalletID == x.WalletID {
		t.Errorf("the exception's intended payment is %+v", x.MeantFor)
	}
	cameOnce(t, used, x.Address, x.TxHash, brought)
	back, err := stranger(used.Network)
	if err != nil {
		t.Fatal(err)
	}
	path := "/api/v1/auth/payment-exceptions/" + x.ID.String() + "/refund"
	ask := func(address string) error {
		return insist(ctx, w.operator(t), path, uuid.NewString(), map[string]any{"note": "the payer mixed up networks", "address": address}, nil)
	}
	if err := ask(o.Escrow.String); !is(err, http.StatusUnprocessableEntity) {
		t.Errorf("the response to an address of the sale's own network: %v", err)
	}
	if err := ask(back); err != nil {
		t.Fatal(err)
	}
	w.parkedWith(t, workflows.ReturnDepositID(x.ID), workflows.ReasonRefundSecond)
	var refund uuid.UUID
	if err := w.db.QueryRowContext(ctx, `SELECT id FROM refunds WHERE exception_id = $1`, x.ID).Scan(&refund); err != nil {
		t.Fatal(err)
	}
	approve := "/api/v1/auth/refunds/" + refund.String() + "/approve"
	if err := insist(ctx, w.as(t, secondOfficer), approve, uuid.NewString(), seen(t, w.as(t, secondOfficer), approve), nil); err != nil {
		t.Fatal(err)
	}
	w.exception(t, o.ID, "wrong_network", "refunded", brought.String())
	cameOnce(t, used, back, w.sentFor(t, "refund", refund), brought)
	eventually(t, "nothing is left at "+counterpart, func() error {
		holds, err := used.Holds(ctx, x.Address)
		if err == nil && !holds[money.USDT].IsZero() {
			err = errors.New(holds[money.USDT].String() + " USDT are there")
		}
		return err
	})
	// The sale is not affected, and accepts a deposit on its own network.
	w.payIn(t, meant, o, soldCrypto)
	w.soldOnce(t, meant, o, soldCrypto, soldFiat)
}

// otherSpelling returns the escrow address of a sale as the other network writes it.
func (w *harness) otherSpelling(t *testing.T, o order) string {
	t.Helper()
	var counterpart string
	if err := w.db.QueryRowContext(t.Context(), `SELECT counterpart FROM wallets WHERE address = $1`, o.Escrow.String).Scan(&counterpart); err != nil {
		t.Fatal(err)
	}
	return counterpart
}

// strayOf returns the exception about a sale's money that arrived on the wrong network, as an operator finds it.
func (w *harness) strayOf(t *testing.T, o order) strayException {
	t.Helper()
	var out struct {
		Exceptions []strayException `json:"payment_exceptions"`
	}
	err := w.operator(t).Get(t.Context(), fmt.Sprintf("/api/v1/auth/payment-exceptions?kind=wrong_network&order_id=%s", o.ID), &out)
	if err != nil || len(out.Exceptions) != 1 {
		t.Fatalf("%d exceptions: %v", len(out.Exceptions), err)
	}
	return out.Exceptions[0]
}
