package soak

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/workflows"
)

// Troubles of swaps that last for a while, beside the plan's next steps. Each one ends before the plan is over.

// lasts is how long a trouble of swaps lasts, for each of its count.
const lasts = 20 * time.Second

// mostMoved is the most that the treasury's officers send at once.
const mostMoved = "5000"

const (
	misbooked = "1" // by how much the books of the treasury are wrong
	speck     = "1" // less than this is not worth a transfer
)

// lasting returns what a trouble of swaps does, and what it is about; nil for a trouble that is over at once.
func (w *harness) lasting(s Step) (does func(context.Context, time.Duration) error, about string) {
	n, asset := w.nodes[s.Network], money.USDC
	if s.Inside {
		asset = money.USDT
	}
	about = fmt.Sprintf("%s on %s", asset, n.Network)
	switch s.Fault { //nolint:exhaustive // the others are over at once
	case faultDrained:
		return func(ctx context.Context, long time.Duration) error { return w.drain(ctx, n, asset, long) }, about
	case faultFrozen:
		all := w.swappers()
		owner := all[s.Number%len(all)]
		return func(ctx context.Context, long time.Duration) error {
			return w.freeze(ctx, n, w.wallets[purse{owner, n.Network}].Address, asset, long)
		}, about + " of " + owner
	case faultBooks:
		return func(ctx context.Context, long time.Duration) error { return w.misbook(ctx, n, asset, long) }, about
	}
	return nil, ""
}

// begins notes that a trouble about something begins. It reports false while the same one lasts.
func (w *harness) begins(s Step, about string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := string(s.Fault) + ", " + about
	if w.under[key] {
		return false
	}
	w.under[key] = true
	return true
}

func (w *harness) ended(s Step, about string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.under, string(s.Fault)+", "+about)
}

// counted counts what happened to swaps, for the report.
func (w *harness) counted(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[what]++
}

// stock is what the treasury has of an asset on a network for swaps.
type stock struct {
	Network   string    `json:"network"`
	Asset     string    `json:"asset"`
	WalletID  uuid.UUID `json:"wallet_id"`
	Address   string    `json:"address"`
	Posted    string    `json:"posted"`
	Available string    `json:"available"`
}

func (w *harness) stockOf(ctx context.Context, n demo.Node, a money.Asset) (s stock, posted, available money.Amount, err error) {
	var page struct {
		All []stock `json:"inventory"`
	}
	err = w.insist(ctx, officerEmail, func(ctx context.Context, c *client.Client) error {
		return c.Get(ctx, "/api/v1/auth/swaps/inventory", &page)
	})
	if err != nil {
		return s, posted, available, err
	}
	for _, s = range page.All {
		if s.Network == string(n.Network) && s.Asset == string(a) {
			if posted, err = money.Parse(a, s.Posted); err == nil {
				available, err = money.Parse(a, s.Available)
			}
			return s, posted, available, err
		}
	}
	return s, posted, available, fmt.Errorf("the treasury has no %s on %s", a, n.Network)
}

// drain has treasury officers send away all that the treasury has for swaps, again and again: swaps the other way bring some. In the end as
// much comes from outside.
func (w *harness) drain(ctx context.Context, n demo.Node, a money.Asset, long time.Duration) error {
	gone := money.Zero(a)
	var failed error
	for until := time.Now().Add(long); failed == nil && time.Now().Before(until); {
		taken, err := w.takesAll(ctx, n, a)
		gone, failed = gone.Add(taken), errors.Join(err, pause(ctx, time.Second))
	}
	return errors.Join(failed, w.refill(ctx, n, a, gone))
}

// takesAll has officers send away what no swap has reserved, and returns how much that is. A swap may reserve it at the same moment.
func (w *harness) takesAll(ctx context.Context, n demo.Node, a money.Asset) (taken money.Amount, err error) {
	taken = money.Zero(a)
	s, _, available, err := w.stockOf(ctx, n, a)
	if err != nil || available.Cmp(money.Must(a, speck)) < 0 {
		return taken, err
	}
	if most := money.Must(a, mostMoved); available.Cmp(most) > 0 {
		available = most
	}
	err = w.takesOut(ctx, n, s.WalletID, available)
	if p, said := errors.AsType[*client.Problem](err); said && p.Code == string(exchange.CodeInsufficientFunds) {
		return taken, nil
	}
	if err == nil {
		taken = available
	}
	return taken, err
}

// takesOut has a treasury officer send from the treasury to the vendor. Others approve it in the office.
func (w *harness) takesOut(ctx context.Context, n demo.Node, from uuid.UUID, m money.Amount) error {
	d := action{step: Step{Kind: Transfer, Inside: true}, node: n, email: officerEmail, amount: m}
	key := newKey()
	err := w.insist(ctx, officerEmail, func(ctx context.Context, c *client.Client) error {
		var o object
		err := c.Post(ctx, "/api/v1/auth/transfers", key, map[string]any{
			"network": n.Network, "asset": m.Asset(), "amount": m.String(), "from_wallet_id": from, "recipient": map[string]any{"email": demo.VendorEmail},
		}, &o)
		d.id = o.ID
		return err
	})
	if err != nil {
		return err
	}
	w.opened(d) // the office answers it when it parks
	w.counted("transfers out of the treasury")
	return nil
}

// refill sends from outside what was taken out, once more when a reorganised chain has lost it.
func (w *harness) refill(ctx context.Context, n demo.Node, a money.Asset, m money.Amount) error {
	if !m.Positive() {
		return nil
	}
	const tries, coming = 3, 40 * time.Second
	half := money.FromUnits(a, new(big.Int).Rsh(m.Units(), 1)) // meanwhile swaps are paid
	var err error
	for range tries {
		s, before, _, readErr := w.stockOf(ctx, n, a)
		if err = readErr; err == nil {
			err = until(ctx, time.Minute, func() error { return n.Fund(ctx, s.Address, m) })
		}
		if err != nil {
			continue
		}
		err = until(ctx, coming, func() error {
			_, posted, _, err := w.stockOf(ctx, n, a)
			if err == nil && posted.Sub(before).Cmp(half) < 0 {
				err = fmt.Errorf("of %s %s that were sent to the treasury on %s, %s came", m, a, n.Network, posted.Sub(before))
			}
			return err
		})
		if err == nil {
			return nil
		}
	}
	return err
}

// freeze has the issuer of an asset freeze a wallet for a while.
func (w *harness) freeze(ctx context.Context, n demo.Node, address string, a money.Asset, long time.Duration) error {
	if err := issuer(ctx, n, address, a, true); err != nil {
		return err
	}
	return errors.Join(pause(ctx, long), until(ctx, time.Minute, func() error { return issuer(ctx, n, address, a, false) }))
}

// issuer freezes a wallet for a token, or not.
func issuer(ctx context.Context, n demo.Node, address string, a money.Asset, frozen bool) error {
	path, in := "/token/block", map[string]any{"token": a, "address": address, "blocked": frozen}
	if n.Network == exchange.Solana {
		path, in = "/freeze", map[string]any{"token": a, "address": address, "frozen": frozen, "mine": true}
	}
	return n.Call(ctx, http.MethodPost, path, in, nil)
}

// thaw takes every wallet off every issuer's list: a reorganised chain may have lost that. Solana thaws only what is frozen.
func (w *harness) thaw(ctx context.Context) error {
	for p, wallet := range w.wallets {
		for _, n := range w.nodes {
			if n.Network != p.network {
				continue
			}
			for _, a := range []money.Asset{money.USDT, money.USDC} {
				err := until(ctx, time.Minute, func() error {
					_ = issuer(ctx, n, wallet.Address, a, true) // it may be frozen
					return issuer(ctx, n, wallet.Address, a, false)
				})
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// misbook makes the books of the treasury's wallet wrong for a while, so that swaps which end meanwhile find a difference.
func (w *harness) misbook(ctx context.Context, n demo.Node, a money.Asset, long time.Duration) error {
	s, _, _, err := w.stockOf(ctx, n, a)
	if err != nil {
		return err
	}
	m, id := money.Must(a, misbooked), newKey()
	custody, capital := exchange.Owned(exchange.AccCustody, s.WalletID, a), exchange.House(exchange.AccCapital, a)
	book := func(kind string, lines ...exchange.Line) error {
		return until(ctx, time.Minute, func() error {
			return w.store.Post(ctx, exchange.Posting{Entries: []exchange.Entry{{Key: "soak:" + kind + ":" + id, Kind: "soak." + kind, Lines: lines}}})
		})
	}
	if err := book("misbooked", exchange.Debit(custody, m), exchange.Credit(capital, m)); err != nil {
		return err
	}
	return errors.Join(pause(ctx, long), book("corrected", exchange.Debit(capital, m), exchange.Credit(custody, m)))
}

// attends answers a parked swap by the runbook. Where the plan says so, half an hour passes for a payout that the issuer refuses, and two
// officers accept a difference.
func (o *office) attends(ctx context.Context, d action, reason workflows.Reason) error {
	path := "swaps/" + d.id.String() + "/resolve"
	switch {
	case reason == workflows.ReasonSwapStuck:
		return o.says(ctx, operatorEmail, path, "swap-stuck: an officer proposes to refund", map[string]any{"outcome": exchange.SwapRefund, "note": "the payout can't be made"})
	case reason == workflows.ReasonSwapDiffers && d.step.Returns:
		return o.says(ctx, operatorEmail, path, "swap-differs: an officer proposes to accept it", map[string]any{"outcome": exchange.SwapAccept, "note": "the books were wrong"})
	case reason == workflows.ReasonPayoutBlocked && d.step.Returns && !o.passed[d.id]:
		now, err := o.read(ctx, d)
		if err != nil {
			return err
		}
		if now.Status == string(exchange.SwapPayingOut) {
			if err := o.halfAnHour(ctx, d); err != nil {
				return err
			}
			o.passed[d.id] = true
			o.note("payout-blocked: half an hour passes for a swap")
			return nil
		}
	}
	if reason == workflows.ReasonPayoutGasLimit {
		if err := o.fills(ctx, d); err != nil {
			return err
		}
		o.note("payout-top_up_limit: an officer fills the wallet")
	}
	return o.command(ctx, d, string(reason), "retry", "")
}

// forFees is what an officer brings by hand to a wallet whose payment has had all its top-ups.
var forFees = map[exchange.Network]money.Amount{exchange.Tron: money.Must(money.TRX, "200"), exchange.Ethereum: money.Must(money.ETH, "0.5")}

// fills brings coins for fees to the wallet that pays the leg of a swap: other payments of the same wallet have used them.
func (o *office) fills(ctx context.Context, d action) error {
	now, err := o.read(ctx, d)
	if err != nil {
		return err
	}
	wallet := o.wallets[purse{d.email, d.node.Network}]
	if now.Status != string(exchange.SwapReserved) && now.Status != string(exchange.SwapCollecting) {
		s, _, _, err := o.stockOf(ctx, d.node, money.USDT)
		if err != nil {
			return err
		}
		if wallet, err = o.store.Wallet(ctx, store.Everything(), s.WalletID); err != nil {
			return err
		}
	}
	m := forFees[d.node.Network]
	if err := d.node.Fund(ctx, wallet.Address, m); err != nil {
		return err
	}
	if err := demo.Booked(ctx, o.store, wallet, m); err != nil {
		return err
	}
	return demo.ForFees(ctx, o.store, wallet)
}

// halfAnHour lets the time pass that a payout of a swap has, and has the swap's flow look. Only the owner of the database can do that.
func (o *office) halfAnHour(ctx context.Context, d action) error {
	const passes = `UPDATE swaps SET created_at = created_at - interval '31 minutes', expires_at = expires_at - interval '31 minutes',
		collected_at = collected_at - interval '31 minutes', version = version + 1 WHERE id = $1 AND status = 'paying_out'`
	tx, err := o.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after an error
	if _, err = tx.ExecContext(ctx, `SET LOCAL session_replication_role = 'replica'`); err == nil {
		_, err = tx.ExecContext(ctx, passes, d.id)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return err
	}
	return o.temporal.SignalWorkflow(ctx, workflows.SwapID(d.id), "", workflows.SignalResume, nil)
}
