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

// strayException is what the API shows of money that came on the wrong network.
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

// TestWrongNetwork has payers use the right account on the wrong network: USDT for the escrow address of an open sale on
// TRON comes on Ethereum, at the hexadecimal form of the address, and the other way round. It is noticed, an operator
// sends it back with another officer's consent, signed by the key of the address that was meant, and the sale goes on.
func TestWrongNetwork(t *testing.T) {
	w := open(t)
	tron, tronRuns := w.nodeOf(exchange.Tron)
	ethereum, ethereumRuns := w.nodeOf(exchange.Ethereum)
	if !tronRuns || !ethereumRuns {
		t.Skip("TRON and Ethereum have to run both")
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

func (w *world) stray(t *testing.T, meant, used demo.Node) {
	t.Helper()
	ctx, o := t.Context(), w.sell(t, meant, sale{})
	twin, brought := w.otherSpelling(t, o), money.Must(money.USDT, "7")
	if err := used.Fund(ctx, twin, brought); err != nil {
		t.Fatal(err)
	}
	w.exception(t, o.ID, "wrong_network", "open", brought.String())
	x := w.strayOf(t, o)
	if x.OrderID != o.ID || x.Asset != "USDT" || x.Network != string(used.Network) || !strings.EqualFold(x.Address, twin) {
		t.Errorf("the exception is %+v", x)
	}
	if x.MeantFor.Network != string(meant.Network) || x.MeantFor.Address != o.Escrow.String || x.MeantFor.WalletID == x.WalletID {
		t.Errorf("it says to have been meant for %+v", x.MeantFor)
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
		t.Errorf("an address of the sale's own network was answered with %v", err)
	}
	if err := ask(back); err != nil {
		t.Fatal(err)
	}
	w.parkedWith(t, workflows.ReturnDepositID(x.ID), workflows.ReasonRefundSecond)
	var refund uuid.UUID
	if err := w.db.QueryRowContext(ctx, `SELECT id FROM refunds WHERE exception_id = $1`, x.ID).Scan(&refund); err != nil {
		t.Fatal(err)
	}
	if err := insist(ctx, w.as(t, secondOfficer), "/api/v1/auth/refunds/"+refund.String()+"/approve", uuid.NewString(), map[string]any{}, nil); err != nil {
		t.Fatal(err)
	}
	w.exception(t, o.ID, "wrong_network", "refunded", brought.String())
	cameOnce(t, used, back, w.sentFor(t, "refund", refund), brought)
	eventually(t, "nothing is left at "+twin, func() error {
		holds, err := used.Holds(ctx, x.Address)
		if err == nil && !holds[money.USDT].IsZero() {
			err = errors.New(holds[money.USDT].String() + " USDT are there")
		}
		return err
	})
	// The sale has heard nothing of it, and takes what comes on its own network.
	w.payIn(t, meant, o, soldCrypto)
	w.soldOnce(t, meant, o, soldCrypto, soldFiat)
}

// otherSpelling is the escrow address of a sale as the other network writes it.
func (w *world) otherSpelling(t *testing.T, o order) string {
	t.Helper()
	var twin string
	if err := w.db.QueryRowContext(t.Context(), `SELECT twin FROM wallets WHERE address = $1`, o.Escrow.String).Scan(&twin); err != nil {
		t.Fatal(err)
	}
	return twin
}

// strayOf is the exception about money that came on the wrong network for a sale, as an operator finds it.
func (w *world) strayOf(t *testing.T, o order) strayException {
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
