package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/dev/supervisor"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/workflows"
)

// gasTraffic is what the chain has of a transfer from a wallet without coins for the fee.
type gasTraffic struct {
	topUp, payment       uint64 // their blocks; zero while they are in none
	topUpState, state    string
	expired, lackedGas   int    // transactions of the payment
	brought, burnt, left string // TRX
}

// dryWallet is a new wallet on TRON with USDT and without TRX.
func (w *harness) dryWallet(t *testing.T) exchange.Wallet {
	t.Helper()
	return w.fundedWallet(t, exchange.Tron, demo.SecondEmail, exchange.Hot, money.Must(money.USDT, "5"))
}

// sendsDry opens a transfer from such a wallet, and returns it with its recipient.
func (w *harness) sendsDry(t *testing.T, from exchange.Wallet) (f sent, to string) {
	t.Helper()
	to, err := stranger(exchange.Tron)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]any{"network": exchange.Tron, "asset": "USDT", "amount": small, "recipient": map[string]any{"address": to}, "from_wallet_id": from.ID}
	if err := insist(t.Context(), w.as(t, demo.SecondEmail), "/api/v1/auth/transfers", uuid.NewString(), in, &f); err != nil {
		t.Fatal(err)
	}
	return f, to
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

// trafficIs waits until the traffic is as described.
func (w *harness) trafficIs(t *testing.T, transfer uuid.UUID, what string, holds func(gasTraffic) bool) (g gasTraffic) {
	t.Helper()
	eventually(t, what, func() (err error) {
		if g, err = w.traffic(t, transfer); err == nil && !holds(g) {
			err = fmt.Errorf("there is %+v", g)
		}
		return err
	})
	return g
}

// gasInABlock sends from a wallet without TRX. To an address without the token, more stays than after
// a payment to a holder (TestGasAheadOfNeed).
func (w *harness) gasInABlock(t *testing.T) {
	f, to := w.sendsDry(t, w.dryWallet(t))
	f = w.arrives(t, w.as(t, demo.SecondEmail), f.ID, "completed")
	cameOnce(t, w.tronNode(), to, f.TxHash, money.Must(money.USDT, small))
	g := w.trafficIs(t, f.ID, "the top-up is final", func(g gasTraffic) bool { return g.topUpState == "completed" })
	if g.payment <= g.topUp {
		t.Errorf("the top-up is in block %d, its payment in block %d", g.topUp, g.payment)
	}
	if left, err := money.Parse(money.TRX, g.left); err != nil || left.Cmp(money.Must(money.TRX, "12.2")) > 0 {
		t.Errorf("%s TRX stay in the wallet: %v", g.left, err)
	}
	t.Logf("the top-up of %s TRX is in block %d and its payment in block %d; %s TRX were burnt, %s stay", g.brought, g.topUp, g.payment, g.burnt, g.left)
}

// gasIsUndone makes one block for a top-up and one for its payment, which is signed on the strength of the first: nothing is final.
// Then it takes both blocks away. Both transactions come again by themselves, once.
func (w *harness) gasIsUndone(t *testing.T) {
	n, from := w.tronNode(), w.dryWallet(t)
	heal(t, n)
	post(t, n, "/pause", nil)
	f, to := w.sendsDry(t, from)
	w.trafficIs(t, f.ID, "a node has the top-up", func(g gasTraffic) bool { return g.topUpState == "broadcast" })
	post(t, n, "/produce", map[string]any{"blocks": 1})
	w.trafficIs(t, f.ID, "a node has the payment", func(g gasTraffic) bool { return g.state == "broadcast" })
	post(t, n, "/produce", map[string]any{"blocks": 1})
	g := w.trafficIs(t, f.ID, "a block has the payment", func(g gasTraffic) bool { return g.state == "included" })
	if g.topUpState != "included" || g.payment != g.topUp+1 {
		t.Fatalf("the top-up and its payment are not in two blocks: %+v", g)
	}
	post(t, n, "/reorganise", map[string]any{"blocks": 2, "drop": true})
	post(t, n, "/resume", nil)
	f = w.arrives(t, w.as(t, demo.SecondEmail), f.ID, "completed")
	cameOnce(t, n, to, f.TxHash, money.Must(money.USDT, small))
	g = w.trafficIs(t, f.ID, "the top-up is final", func(g gasTraffic) bool { return g.topUpState == "completed" })
	t.Logf("in the end: %+v", g)
}

// TestGasAheadOfNeed lets the schedule bring gas to a customer's new wallet with coins, whose first payment then needs no top-up of its own.
// Only on TRON: the vendor who has no ether must keep none for other tests.
func TestGasAheadOfNeed(t *testing.T) {
	w := open(t)
	queue := workflows.QueueChain(exchange.Tron)
	usual := w.stack.Supervisor.Child(stack.ProcessWorker(queue))
	w.stack.SetEnvironment("SENDING_AHEAD_LIMIT", "20")
	second, err := w.stack.Supervisor.Start(t.Context(), supervisor.Spec{
		Name: "worker-gas-ahead", Path: w.stack.Product, Args: []string{"worker", "--queues", queue}, Dir: w.stack.Root,
		Env: w.stack.ProductEnvironment(stack.ProcessWorker(queue)),
	})
	w.stack.SetEnvironment("SENDING_AHEAD_LIMIT", "0")
	if err == nil {
		err = usual.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(second.Stop(), usual.Restart(context.Background())); err != nil {
			t.Error(err)
		}
	})
	from := w.fundedWallet(t, exchange.Tron, demo.SecondEmail, exchange.Hot, money.Must(money.USDT, "60"))
	w.trigger(t, "gas-ahead")
	var brought string
	eventually(t, "gas is there before it is needed", func() error {
		return w.db.QueryRowContext(t.Context(), `SELECT amount FROM chain_payments WHERE purpose = 'gas' AND object_id = $1 AND status IN ('included', 'completed')`, from.ID).Scan(&brought)
	})
	in := map[string]any{"network": exchange.Tron, "asset": "USDT", "amount": small, "recipient": map[string]any{"address": w.wallet.Address}, "from_wallet_id": from.ID}
	var f sent
	if err := insist(t.Context(), w.as(t, demo.SecondEmail), "/api/v1/auth/transfers", uuid.NewString(), in, &f); err != nil {
		t.Fatal(err)
	}
	f = w.arrives(t, w.as(t, demo.SecondEmail), f.ID, "completed")
	g := w.trafficIs(t, f.ID, "it is booked", func(g gasTraffic) bool { return g.state == "completed" })
	if g.topUpState != "" {
		t.Errorf("the payment got a top-up of its own: %+v", g)
	}
	if left, err := money.Parse(money.TRX, g.left); err != nil || left.Cmp(money.Must(money.TRX, "3.7")) > 0 {
		t.Errorf("%s TRX stay in the wallet: %v", g.left, err)
	}
	t.Logf("%s TRX were brought; %s were burnt, %s stay", brought, g.burnt, g.left)
}
