package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// gasTraffic is what the chain has of a transfer from a wallet without coins for the fee.
type gasTraffic struct {
	topUp, payment       uint64 // their blocks; zero while they are in none
	topUpState, state    string
	expired, lackedGas   int    // transactions of the payment
	brought, burnt, left string // TRX
}

// sendsDry opens a transfer from a new wallet on TRON without TRX, and returns it with its recipient.
func (w *harness) sendsDry(t *testing.T) (f sent, wallet exchange.Wallet, to string) {
	t.Helper()
	wallet = w.fundedWallet(t, exchange.Tron, demo.SecondEmail, exchange.Hot, money.Must(money.USDT, "5"))
	to, err := stranger(exchange.Tron)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]any{"network": exchange.Tron, "asset": "USDT", "amount": small, "recipient": map[string]any{"address": to}, "from_wallet_id": wallet.ID}
	if err := insist(t.Context(), w.as(t, demo.SecondEmail), "/api/v1/auth/transfers", uuid.NewString(), in, &f); err != nil {
		t.Fatal(err)
	}
	return f, wallet, to
}

func (w *harness) traffic(t *testing.T, transfer uuid.UUID) (g gasTraffic, err error) {
	t.Helper()
	err = w.db.QueryRowContext(t.Context(), `SELECT coalesce(g.block, 0), p.block, coalesce(g.status, ''), p.status,
		(SELECT count(*) FROM chain_attempts a WHERE a.payment_id = p.id AND a.status = 'expired'),
		(SELECT count(*) FROM chain_attempts a WHERE a.payment_id = p.id AND a.status = 'failed' AND a.last_code = 'OUT_OF_ENERGY'),
		coalesce(g.amount, 0), p.fee, (SELECT coalesce(sum(posted), 0) FROM ledger_accounts WHERE code = 'custody:' || p.wallet_id || ':TRX')
		FROM chain_payments p LEFT JOIN chain_payments g ON g.purpose = 'gas' AND g.object_id = p.id WHERE p.purpose = 'transfer' AND p.object_id = $1`,
		transfer).Scan(&g.topUp, &g.payment, &g.topUpState, &g.state, &g.expired, &g.lackedGas, &g.brought, &g.burnt, &g.left)
	return g, err
}

// gasInABlock sends from a wallet without TRX. The payment is in a block soon after its top-up, and little TRX stays in the wallet.
func (w *harness) gasInABlock(t *testing.T) {
	f, _, to := w.sendsDry(t)
	f = w.arrives(t, w.as(t, demo.SecondEmail), f.ID, "completed")
	cameOnce(t, w.tronNode(), to, f.TxHash, money.Must(money.USDT, small))
	var g gasTraffic
	eventually(t, "the top-up is final", func() (err error) {
		if g, err = w.traffic(t, f.ID); err == nil && g.topUpState != "completed" {
			err = fmt.Errorf("it is %s", g.topUpState)
		}
		return err
	})
	const finality = 19 // blocks
	if g.payment <= g.topUp || g.payment-g.topUp >= finality {
		t.Errorf("the top-up is in block %d, its payment in block %d", g.topUp, g.payment)
	}
	if left, err := money.Parse(money.TRX, g.left); err != nil || left.Cmp(money.Must(money.TRX, "3.7")) > 0 {
		t.Errorf("%s TRX stay in the wallet: %v", g.left, err)
	}
	t.Logf("the top-up of %s TRX is in block %d and its payment in block %d; %s TRX were burnt, %s stay", g.brought, g.topUp, g.payment, g.burnt, g.left)
}

// gasIsUndone takes the blocks of a top-up and of its payment away, after the payment was signed on the strength of them. Both come
// again by themselves, once.
func (w *harness) gasIsUndone(t *testing.T) {
	n := w.tronNode()
	heal(t, n)
	f, _, to := w.sendsDry(t)
	post(t, n, "/pause", nil)
	is := func(what string, holds func(gasTraffic) bool) {
		t.Helper()
		eventually(t, what, func() error {
			g, err := w.traffic(t, f.ID)
			if err == nil && !holds(g) {
				post(t, n, "/produce", map[string]any{"blocks": 1})
				err = fmt.Errorf("there is %+v", g)
			}
			return err
		})
	}
	is("a block has the payment", func(g gasTraffic) bool { return g.state == "included" })
	g, err := w.traffic(t, f.ID)
	if err != nil || g.topUpState != "included" {
		t.Fatalf("the top-up is final already: %+v, %v", g, err)
	}
	var state struct{ Head struct{ Number uint64 } }
	if err := n.Call(t.Context(), http.MethodGet, "/state", nil, &state); err != nil {
		t.Fatal(err)
	}
	post(t, n, "/reorganise", map[string]any{"blocks": state.Head.Number - g.topUp + 1, "drop": true})
	post(t, n, "/resume", nil)
	f = w.arrives(t, w.as(t, demo.SecondEmail), f.ID, "completed")
	cameOnce(t, n, to, f.TxHash, money.Must(money.USDT, small))
	is("the top-up is final", func(g gasTraffic) bool { return g.topUpState == "completed" })
	if g, err = w.traffic(t, f.ID); err != nil || g.topUp == 0 {
		t.Errorf("%+v, %v", g, err)
	}
	t.Logf("in the end: %+v", g)
}
