package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/invariants"
	"kivuko/dev/stack"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/workflows"
)

// timeoutToBump is how long a transaction on Ethereum waits for a block before it is replaced with a higher fee.
const timeoutToBump = 5 * time.Second

// eachNetwork plays a scenario on every running network.
func (w *harness) eachNetwork(t *testing.T, play func(t *testing.T, n demo.Node)) {
	t.Helper()
	for _, n := range w.seed().Nodes() {
		t.Run(string(n.Network), func(t *testing.T) { play(t, n) })
	}
	if !w.stack.Solana() {
		t.Run("solana", func(t *testing.T) { t.Skip("Solana's token programs could not be had") })
	}
}

// post sets a fault switch of a network's node.
func post(t *testing.T, n demo.Node, path string, in any) {
	t.Helper()
	if err := n.Call(t.Context(), http.MethodPost, path, in, nil); err != nil {
		t.Fatal(err)
	}
}

// heal ends a node's faults when the test is over, also when it failed in the middle.
func heal(t *testing.T, n demo.Node) {
	t.Helper()
	t.Cleanup(func() {
		for _, path := range []string{"/reset", "/resume"} {
			if err := n.Call(context.Background(), http.MethodPost, path, nil, nil); err != nil {
				t.Error(err)
			}
		}
	})
}

// booksAgree waits until ledger and chains agree about every custodial wallet.
func (w *harness) booksAgree(t *testing.T) {
	t.Helper()
	const settling = 2 * time.Minute
	if err := await(t.Context(), settling, func() error { return w.compareAll(t.Context()) }); err != nil {
		t.Errorf("ledger and chains: %v", err)
	}
}

func (w *harness) compareAll(ctx context.Context) error {
	return invariants.Chains(ctx, w.store, w.seed().Nodes())
}

// TestNetworks plays the basic scenarios on every network: buy, see deposits, send inside and outside. The chains are
// independent, so the scenarios run in parallel.
func TestNetworks(t *testing.T) {
	w := open(t)
	t.Run("all", func(t *testing.T) {
		w.eachNetwork(t, func(t *testing.T, n demo.Node) {
			t.Parallel()
			t.Run("a deposit is booked once though the watch dies", func(t *testing.T) { w.depositSeen(t, n) })
			t.Run("a deposit that a reorganisation takes away is orphaned", func(t *testing.T) { w.depositOrphaned(t, n) })
			t.Run("a purchase arrives", func(t *testing.T) { w.buyOn(t, n) })
			t.Run("a transfer inside", func(t *testing.T) { w.sendInside(t, n) })
			t.Run("a transfer outside", func(t *testing.T) { w.sendOutside(t, n) })
			if n.Network == exchange.Tron {
				t.Run("gas that a block has lets a payment go", w.gasInABlock)
				t.Run("gas that a reorganisation takes away comes again", w.gasIsUndone)
			}
			if n.Network == exchange.Ethereum { // before a sweep brings gas to the same wallet
				t.Run("gas comes to a wallet without any", func(t *testing.T) { w.gasComes(t, n) })
			}
			t.Run("earned fees come to the treasury", func(t *testing.T) { w.feesComeHome(t, n) })
			if n.Network == exchange.Ethereum {
				t.Run("a stuck transaction is replaced with a higher fee", func(t *testing.T) { w.bump(t, n) })
			}
		})
	})
	w.invariants(t)
	w.booksAgree(t)
}

// deposits returns the rows of deposits to an address.
func (w *harness) deposits(ctx context.Context, address string) (all []struct{ status, amount string }, err error) {
	rows, err := w.db.QueryContext(ctx, `SELECT status, amount FROM chain_deposits WHERE to_address = $1 AND kind = 'credit' ORDER BY created_at`, address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var d struct{ status, amount string }
		if err := rows.Scan(&d.status, &d.amount); err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, rows.Err()
}

// ownWallet makes another wallet of a customer, which no other test pays to.
func (w *harness) ownWallet(t *testing.T, n exchange.Network) exchange.Wallet {
	t.Helper()
	admin, err := w.adminLogin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	u, err := w.store.UserByEmail(t.Context(), demo.SecondEmail)
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		ID uuid.UUID `json:"id"`
	}
	in := map[string]any{"user_id": u.ID, "network": n, "asset": "USDT", "label": t.Name()[:min(len(t.Name()), 50)]}
	if err := admin.Post(t.Context(), "/api/v1/auth/wallets/provision", uuid.NewString(), in, &made); err != nil {
		t.Fatal(err)
	}
	wallet, err := w.store.Wallet(t.Context(), store.Everything(), made.ID)
	if err != nil {
		t.Fatal(err)
	}
	return wallet
}

// depositSeen pays from outside and kills the watching process before the deposit can be final.
func (w *harness) depositSeen(t *testing.T, n demo.Node) {
	wallet, m := w.ownWallet(t, n.Network), money.Must(money.USDT, "12.345678")
	if err := n.Fund(t.Context(), wallet.Address, m); err != nil {
		t.Fatal(err)
	}
	w.kill(t, stack.ProcessWorker("chain-"+string(n.Network)), 0)
	w.hasten(t, workflows.DepositWatchID(n.Network)) // otherwise trials wait for Temporal's timeouts
	eventually(t, "the deposit is booked", func() error {
		held, err := demo.Held(t.Context(), w.store, wallet, money.USDT)
		if err == nil && !held.Equal(m) {
			err = fmt.Errorf("the wallet holds %s", held)
		}
		return err
	})
	all, err := w.deposits(t.Context(), wallet.Address)
	if err != nil || len(all) != 1 || all[0].status != "final" {
		t.Errorf("the deposit has the rows %+v: %v", all, err)
	}
}

// depositOrphaned removes the block in which a deposit was seen, with its transaction.
func (w *harness) depositOrphaned(t *testing.T, n demo.Node) {
	heal(t, n)
	wallet := w.ownWallet(t, n.Network)
	post(t, n, "/pause", nil)
	if err := n.Fund(t.Context(), wallet.Address, money.Must(money.USDT, "7")); err != nil {
		t.Fatal(err)
	}
	is := func(status string) {
		t.Helper()
		eventually(t, "the deposit is "+status, func() error {
			all, err := w.deposits(t.Context(), wallet.Address)
			if err == nil && (len(all) != 1 || all[0].status != status) {
				err = fmt.Errorf("the rows are %+v", all)
			}
			return err
		})
	}
	depth := 1
	if n.Network == exchange.Solana { // a block is seen when it is confirmed, by the next ones
		post(t, n, "/produce", map[string]any{"blocks": 2})
		depth = 3
	}
	is("seen")
	post(t, n, "/reorganise", map[string]any{"blocks": depth, "drop": true})
	post(t, n, "/resume", nil)
	is("orphaned")
	if held, err := demo.Held(t.Context(), w.store, wallet, money.USDT); err != nil && exchange.CodeOf(err) != exchange.CodeNotFound || held.Positive() {
		t.Errorf("an orphaned deposit was booked: %s, %v", held, err)
	}
}

// purchaseFrom buys from a vendor, to a stranger's address, and checks that it came.
func (w *harness) purchaseFrom(t *testing.T, vendor string, n demo.Node) order {
	t.Helper()
	to, err := stranger(n.Network)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]any{
		"offer_id": w.offerOn(t, vendor, n.Network), "crypto_amount": "5", "wallet_address": to, "payment_phone_number": "+" + newPhone(),
	}
	o, err := place(t.Context(), w.amina(t), in, uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	o = w.ends(t, o.ID, "completed", "")
	cameOnce(t, n, to, o.TxHash.String, money.Must(money.USDT, "5"))
	return o
}

func (w *harness) buyOn(t *testing.T, n demo.Node) { w.purchaseFrom(t, demo.VendorEmail, n) }

// gasComes buys from the vendor who has no ether.
func (w *harness) gasComes(t *testing.T, n demo.Node) {
	o := w.purchaseFrom(t, demo.ExhaustedVendorEmail, n)
	payment := w.paymentOf(t, o.ID)
	eventually(t, "the payment got gas once", func() error { return w.gotGas(t.Context(), payment, 1) })
}

// gotGas checks how many top-ups of a payment are final. They may be so a moment after the payment.
func (w *harness) gotGas(ctx context.Context, payment uuid.UUID, times int) error {
	var topUps, all int
	err := w.db.QueryRowContext(ctx, `SELECT count(*) FILTER (WHERE status = 'completed'), count(*) FROM chain_payments WHERE purpose = 'gas' AND object_id = $1`,
		payment).Scan(&topUps, &all)
	if err == nil && (topUps != times || all != times) {
		err = fmt.Errorf("%d of %d top-ups are final, not %d", topUps, all, times)
	}
	return err
}

// transferOn opens a transfer like a correct client, which repeats the request with the same key.
func transferOn(ctx context.Context, c *client.Client, n exchange.Network, amount string, to map[string]any, key string) (sent, error) {
	var out sent
	var final error
	in := map[string]any{"network": n, "asset": "USDT", "amount": amount, "recipient": to}
	err := await(ctx, 2*timeout, func() error {
		err := c.Post(ctx, "/api/v1/auth/transfers", key, in, &out)
		if passing(err) {
			return err
		}
		final = err
		return nil
	})
	return out, errors.Join(err, final)
}

func (w *harness) sendInside(t *testing.T, n demo.Node) {
	vendor := w.as(t, demo.VendorEmail)
	f, err := transferOn(t.Context(), vendor, n.Network, "3.25", map[string]any{"email": demo.CustomerEmail}, uuid.NewString())
	if err != nil || f.Kind != "internal" {
		t.Fatalf("sent %+v, %v", f, err)
	}
	f = w.arrives(t, vendor, f.ID, "completed")
	cameOnce(t, n, w.walletOf(t, demo.CustomerEmail, n.Network).Address, f.TxHash, money.Must(money.USDT, "3.25"))
}

func (w *harness) sendOutside(t *testing.T, n demo.Node) {
	w.sendAway(t, n, w.as(t, demo.VendorEmail), func() {})
}

// sendAway sends to a stranger's address. meanwhile is called while the transfer is pending.
func (w *harness) sendAway(t *testing.T, n demo.Node, c *client.Client, meanwhile func()) sent {
	t.Helper()
	to, err := stranger(n.Network)
	if err != nil {
		t.Fatal(err)
	}
	f, err := transferOn(t.Context(), c, n.Network, "4.5", map[string]any{"address": to}, uuid.NewString())
	if err != nil || f.Kind != "external" {
		t.Fatalf("sent %+v, %v", f, err)
	}
	meanwhile()
	f = w.arrives(t, c, f.ID, "completed")
	cameOnce(t, n, to, f.TxHash, money.Must(money.USDT, "4.5"))
	return f
}

// bump keeps the blocks empty until the waiting transaction was replaced with a higher fee. Both have the same nonce, so
// that the chain includes only one of them.
func (w *harness) bump(t *testing.T, n demo.Node) sent {
	heal(t, n)
	post(t, n, "/faults", map[string]any{"hold_blocks": 100_000})
	vendor := w.as(t, demo.VendorEmail)
	var before int
	replaced := `SELECT count(*) FROM chain_attempts a WHERE a.network = 'ethereum' AND a.status = 'replaced'`
	if err := w.db.QueryRowContext(t.Context(), replaced).Scan(&before); err != nil {
		t.Fatal(err)
	}
	f := w.sendAway(t, n, vendor, func() {
		eventually(t, "the transaction is replaced with a higher fee", func() error {
			var now int
			if err := w.db.QueryRowContext(t.Context(), replaced).Scan(&now); err != nil {
				return err
			}
			if now == before {
				return errors.New("it is not")
			}
			return nil
		})
		post(t, n, "/reset", nil)
	})
	var attempts, numbers int
	err := w.db.QueryRowContext(t.Context(), `SELECT count(*), count(DISTINCT a.nonce) FROM chain_attempts a JOIN chain_payments p ON p.id = a.payment_id
		WHERE p.purpose = 'transfer' AND p.object_id = $1`, f.ID).Scan(&attempts, &numbers)
	if err != nil || attempts < 2 || numbers != 1 {
		t.Errorf("%d transactions with %d numbers: %v", attempts, numbers, err)
	}
	return f
}
