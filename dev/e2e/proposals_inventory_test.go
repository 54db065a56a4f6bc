package e2e

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// stocked is the inventory of USDT on a network, as the API shows it.
type stocked struct {
	Network   string `json:"network"`
	Asset     string `json:"asset"`
	Available string `json:"available"`
	Sources   []struct {
		WalletID    uuid.UUID `json:"wallet_id"`
		Available   string    `json:"available"`
		Destination string    `json:"destination"`
	} `json:"sources"`
}

// TestInventoryComesFromSeveralOwners settles a deposit for crypto while the treasury's wallet has too little. Owners of another wallet of the
// house bring it, and the settlement goes on by itself. It is played alone, because nothing else may bring or take what is missing.
func TestInventoryComesFromSeveralOwners(t *testing.T) {
	w := open(t)
	w.rate(t)
	n := w.tronNode()
	coffer, err := w.store.HouseWallet(t.Context(), n.Network)
	if err != nil {
		t.Fatal(err)
	}
	c := w.committeeOn(t, n)
	c.to = coffer.Address
	d := w.payIntoDesk(t, otcPath, map[string]any{"requested_asset": "USDT", "requested_network": n.Network, "fiat_amount": "1300"})
	if d = w.reviewed(t, d, "1300"); d.Status != "confirmed" || d.Crypto == nil {
		t.Fatalf("confirmed %+v", d)
	}
	defer w.leaves(t, n, money.Must(money.USDT, *d.Crypto).Sub(money.Must(money.USDT, "2")))()
	w.at(t, w.operator(t), d, "settle", nil)
	w.depositIs(t, d.ID, "waits for inventory", func(d otcDeposit) bool { return d.Status == "settling" && d.Detail == exchange.WaitInventory })
	w.isSource(t, c)

	id, _ := w.signedProposal(t, c)
	if now := w.depositIs(t, d.ID, "is settling", func(d otcDeposit) bool { return d.Status == "settling" }); now.Transfer != nil {
		t.Errorf("it is paid before anything was brought: %+v", now)
	}
	w.executesProposal(t, id)
	p := w.paidByOwners(t, c, id)
	w.broughtHome(t, c, coffer, p)
	w.at(t, w.admin(t), w.sold(t, d), "audit", nil)
	w.oneTransferPaid(t, d)
	w.reconcile(t)
	for _, wallet := range []uuid.UUID{c.id, coffer.ID} {
		if all := w.standing(t, wallet); len(all) != 0 {
			t.Errorf("wallet %s differs from the chain: %+v", wallet, all)
		}
	}
	w.invariants(t)
	w.booksAgree(t)
}

// stock is what the treasury's wallet of a network has of USDT.
func (w *harness) stock(t *testing.T, n demo.Node) stocked {
	t.Helper()
	var all struct{ Inventory []stocked }
	if err := w.operator(t).Get(t.Context(), "/api/v1/auth/swaps/inventory", &all); err != nil {
		t.Fatal(err)
	}
	for _, s := range all.Inventory {
		if s.Network == string(n.Network) && s.Asset == "USDT" {
			return s
		}
	}
	t.Fatalf("%s has no inventory: %+v", n.Network, all)
	return stocked{}
}

// leaves sets aside all of the treasury's USDT but an amount. What it returns takes that back.
func (w *harness) leaves(t *testing.T, n demo.Node, left money.Amount) func() {
	t.Helper()
	has, err := money.Parse(money.USDT, w.stock(t, n).Available)
	if err != nil || has.Cmp(left) <= 0 {
		t.Fatalf("the treasury has %s, %v", has, err)
	}
	aside := has.Sub(left).String()
	w.allocateInventory(t, n, aside)
	return func() { w.inventoryMoves(t, n, aside, "out") }
}

// isSource checks that the inventory names a wallet of several owners, and where it may pay.
func (w *harness) isSource(t *testing.T, c *committee) {
	t.Helper()
	for _, s := range w.stock(t, c.node).Sources {
		if s.WalletID == c.id && s.Available == "20.000000" && s.Destination == c.to {
			return
		}
	}
	t.Errorf("wallet %s of several owners is no source of %+v", c.id, w.stock(t, c.node))
}

// broughtHome checks that a payment of owners to the treasury is booked once, from one wallet of the house to the other.
func (w *harness) broughtHome(t *testing.T, c *committee, coffer exchange.Wallet, p proposed) {
	t.Helper()
	var kind string
	eventually(t, "the watch has read "+p.TxHash, func() error {
		return w.db.QueryRowContext(t.Context(), `SELECT kind FROM chain_deposits WHERE to_address = $1 AND tx_id = $2 AND asset = 'USDT' AND status = 'final'`, coffer.Address, p.TxHash).Scan(&kind)
	})
	if kind != string(exchange.DepositOwn) {
		t.Errorf("the watch booked it as %s", kind)
	}
	const amount = proposedAmount + ".000000"
	booked, want := map[string]string{}, map[string]string{
		"custody:" + coffer.ID.String() + ":USDT": amount, "custody:" + c.id.String() + ":USDT": "-" + amount,
		"wallet_balance:" + c.id.String() + ":USDT": amount, "wallet_balance:" + coffer.ID.String() + ":USDT": "-" + amount,
	}
	rows, err := w.db.QueryContext(t.Context(), `SELECT a.code, l.amount::numeric(38, 6)::text FROM ledger_lines l JOIN ledger_entries e ON e.id = l.entry_id
		JOIN ledger_accounts a ON a.id = l.account_id WHERE e.key = $1 AND a.asset = 'USDT'`, "chain_payment:"+p.PaymentID.String()+":completed")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var code, m string
		if err := rows.Scan(&code, &m); err != nil {
			t.Fatal(err)
		}
		booked[code] = m
	}
	if err := rows.Err(); err != nil || !equalAmounts(booked, want) {
		t.Errorf("it is booked as %v, not %v: %v", booked, want, err)
	}
}

// oneTransferPaid checks that one transfer paid a deposit, and that no other one was asked for.
func (w *harness) oneTransferPaid(t *testing.T, d otcDeposit) {
	t.Helper()
	eventually(t, "one transfer paid the deposit", func() error {
		var asked, paid int
		err := w.db.QueryRowContext(t.Context(), `SELECT count(*), count(*) FILTER (WHERE f.status = 'completed') FROM otc_deposits d
			JOIN transfers f ON f.to_wallet_id = d.to_wallet_id AND f.created_at >= d.created_at WHERE d.id = $1`, d.ID).Scan(&asked, &paid)
		if err == nil && (asked != 1 || paid != 1) {
			err = fmt.Errorf("%d of %d transfers are completed", paid, asked)
		}
		return err
	})
}
