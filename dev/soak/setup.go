package soak

import (
	"context"
	"fmt"
	"net/http"

	"github.com/google/uuid"
	temporal "go.temporal.io/sdk/client"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The house's settings for the soak. The plan has orders on both sides of each limit.
const (
	bankSecond   = 350     // shillings above which a payment by bank needs two officers
	refundSecond = 100_000 // shillings above which crypto goes back only when another officer agrees
	coolOff      = 5       // seconds after a refused payout until crypto goes back
	rest         = 86_400  // seconds until an address is lent again: longer than a run, so that an address identifies its order
	rate         = "128.755"
	valuation    = "149"  // lower than the first one, so that a second officer must confirm it
	inHand       = "3000" // USDT and USDC in the wallet from which sales are paid and swaps are made
)

// setUp adds to the demo's data: a rate, a country to send from, a wallet to sell from on each network, and limits that
// are low enough for a run of minutes to reach them.
func (w *harness) setUp(ctx context.Context) (err error) {
	for _, rule := range []struct {
		words string
		value int
	}{
		{`UPDATE refund_policy SET cool_off_seconds = $1`, coolOff},
		{`UPDATE approval_rules SET one_above = $1, two_above = $1 WHERE object_type = 'bank_payout'`, bankSecond},
		{`UPDATE approval_rules SET one_above = $1 WHERE object_type = 'refund'`, refundSecond},
	} {
		if _, err := w.db.ExecContext(ctx, rule.words, rule.value); err != nil {
			return fmt.Errorf("%s: %w", rule.words, err)
		}
	}
	words := fmt.Sprintf(`ALTER TABLE escrow_policy DISABLE TRIGGER escrow_policy_guarded; UPDATE escrow_policy SET rest_seconds = %d;
		ALTER TABLE escrow_policy ENABLE TRIGGER escrow_policy_guarded`, rest) // two officers would have to agree
	if _, err := w.db.ExecContext(ctx, words); err != nil {
		return fmt.Errorf("%s: %w", words, err)
	}
	vendor, err := w.store.UserByEmail(ctx, demo.VendorEmail)
	if err != nil {
		return err
	}
	w.vendor = vendor.ID
	if err := w.priced(ctx); err != nil {
		return err
	}
	for _, n := range w.nodes {
		if err := w.stocked(ctx, n); err != nil {
			return fmt.Errorf("the wallet to sell from on %s: %w", n.Network, err)
		}
	}
	if err := w.openClubs(ctx); err != nil {
		return fmt.Errorf("the wallets of several owners: %w", err)
	}
	overTLS, err := stack.TLS(w.stack.Tools())
	if err != nil {
		return err
	}
	w.temporal, err = temporal.DialContext(ctx, temporal.Options{
		HostPort: w.stack.Addresses.Temporal, Namespace: "kivuko", Logger: quietLog{}, ConnectionOptions: temporal.ConnectionOptions{TLS: overTLS},
	})
	return err
}

// priced enters the valuation of USDT, which two officers confirm, and enables remittances from abroad.
func (w *harness) priced(ctx context.Context) error {
	var country uuid.UUID
	if err := w.db.QueryRowContext(ctx, `SELECT id FROM countries WHERE alpha2_code = $1`, senderCountry).Scan(&country); err != nil {
		return err
	}
	type pending struct {
		Changes []struct {
			ID uuid.UUID `json:"id"`
		} `json:"changes"`
	}
	var worths, rates pending
	err := w.insist(ctx, stack.AdminEmail, func(ctx context.Context, c *client.Client) error {
		worth := map[string]any{"valuations": map[string]any{"USDT": valuation, "USDC": valuation}}
		if err := c.Do(ctx, http.MethodPatch, "/api/v1/auth/limits", "", worth, &worths); err != nil {
			return err
		}
		for _, base := range []money.Asset{money.USDT, money.USDC} {
			var waits pending
			in := map[string]any{"base": base, "quote": money.KES, "mid": rate}
			if err := c.Post(ctx, "/api/v1/auth/pricing/fx-rates", newKey(), in, &waits); err != nil {
				return err
			}
			rates.Changes = append(rates.Changes, waits.Changes...)
		}
		return c.Do(ctx, http.MethodPatch, "/api/v1/auth/countries/"+country.String(), "", map[string]any{"is_active": true}, nil)
	})
	if err != nil {
		return err
	}
	return w.insist(ctx, secondEmail, func(ctx context.Context, c *client.Client) error {
		for _, change := range append(worths.Changes, rates.Changes...) {
			if err := c.Decide(ctx, "/api/v1/auth/approvals/changes/"+change.ID.String()+"/confirm", newKey(), nil, nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// swappers are the customers who swap: in a plan of swaps alone all three, because an owner may have so many open.
func (w *harness) swappers() []string {
	if w.Only == Swap {
		return []string{demo.SecondEmail, demo.CustomerEmail, demo.ThirdEmail}
	}
	return []string{demo.SecondEmail}
}

// stocked sends crypto to the wallets of the customers who sell and swap, and coins for fees where the sender pays them.
func (w *harness) stocked(ctx context.Context, n demo.Node) error {
	for _, email := range w.swappers() {
		owner, err := w.store.UserByEmail(ctx, email)
		if err != nil {
			return err
		}
		wallet, err := w.store.DefaultWallet(ctx, owner.ID, n.Network)
		if err != nil {
			return err
		}
		w.wallets[purse{email, n.Network}] = wallet
		if err := w.endow(ctx, n, wallet); err != nil {
			return err
		}
	}
	return nil
}

func (w *harness) endow(ctx context.Context, n demo.Node, wallet exchange.Wallet) error {
	brings := []money.Amount{money.Must(money.USDT, inHand), money.Must(money.USDC, inHand)}
	switch n.Network {
	case exchange.Tron:
		brings = append(brings, money.Must(money.TRX, "2000"))
	case exchange.Ethereum: // the house brings it coins for fees, by top-ups
	case exchange.Solana: // the house pays its fees
	}
	for _, m := range brings {
		if err := n.Fund(ctx, wallet.Address, m); err != nil {
			return err
		}
	}
	for _, m := range brings {
		if err := demo.Booked(ctx, w.store, wallet, m); err != nil {
			return err
		}
	}
	return demo.ForFees(ctx, w.store, wallet)
}

// quietLog drops the log of Temporal's client, because the server is stopped on purpose.
type quietLog struct{}

func (quietLog) Debug(string, ...any) {}
func (quietLog) Info(string, ...any)  {}
func (quietLog) Warn(string, ...any)  {}
func (quietLog) Error(string, ...any) {}
