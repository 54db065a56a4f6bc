package demo

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/exchange/money"
)

// swapped is how much USDT each buyer swaps for USDC.
const swapped = "2"

// swap has the fields of a swap that the demo reads.
type swap struct {
	ID         uuid.UUID `json:"id"`
	Status     string    `json:"status"`
	Detail     string    `json:"status_detail"`
	FromAmount string    `json:"from_amount"`
	ToAmount   string    `json:"to_amount"`
	Rate       string    `json:"rate"`
	Legs       []struct {
		Role   string  `json:"role"`
		TxHash *string `json:"tx_hash"`
	} `json:"legs"`
}

// hash is the transaction of a leg.
func (s swap) hash(role string) string {
	for _, l := range s.Legs {
		if l.Role == role && l.TxHash != nil {
			return *l.TxHash
		}
	}
	return ""
}

// swapTerms are what a swap needs: two people's word on what a USDT and a USDC are worth, and a rate of each.
func (w Stack) swapTerms(ctx context.Context) (err error) {
	d := desk{Stack: w}
	if d.treasury, err = d.caller().Login(ctx, TreasuryEmail, Password); err != nil {
		return err
	}
	if d.admin, err = d.caller().Login(ctx, d.AdminEmail, d.AdminPass); err != nil {
		return err
	}
	values := map[string]any{"USDT": deskRate, "USDC": deskRate}
	if _, err := d.agreed(ctx, http.MethodPatch, limitsPath, map[string]any{"valuations": values}); err != nil {
		return fmt.Errorf("what a USDT and a USDC are worth: %w", err)
	}
	for asset, mid := range values {
		if _, err := d.agreed(ctx, http.MethodPost, ratesPath, map[string]any{"base": asset, "quote": "KES", "mid": mid}); err != nil {
			return fmt.Errorf("the rate of %s: %w", asset, err)
		}
	}
	return nil
}

// swapWords describes each state of a swap.
var swapWords = map[string]string{
	"reserved":   "the money of both sides is held",
	"collecting": "the USDT are on their way to the treasury",
	"collected":  "the USDT are final in the treasury",
	"paying_out": "the USDC are on their way to the wallet",
	"syncing":    "both legs are final; chain and ledger are compared",
}

// swap changes some USDT for USDC, and checks with the chain's node that one left the wallet and the other came.
func (j job) swap(ctx context.Context, c *client.Client, address string) error {
	w, err := j.ownWallet(ctx, c, address)
	if err != nil {
		return err
	}
	var quote account
	in := map[string]any{"wallet_id": w.ID, "from_asset": money.USDT, "to_asset": money.USDC, "amount": swapped, "amount_side": "from"}
	if err := c.Post(ctx, "/api/v1/auth/swaps/quote", "demo-swap-quote-"+uuid.NewString(), in, &quote); err != nil {
		return fmt.Errorf("the price of the swap: %w", err)
	}
	var s swap
	if err := c.Post(ctx, "/api/v1/auth/swaps", "demo-swap-"+uuid.NewString(), map[string]any{"quote_id": quote.ID}, &s); err != nil {
		return fmt.Errorf("opening the swap: %w", err)
	}
	j.say("%s opens swap %s: %s USDT for %s USDC, at %s", j.buyer.First, s.ID, s.FromAmount, s.ToAmount, s.Rate)
	if s, err = j.followSwap(ctx, c, s); err != nil {
		return err
	}
	given, err := money.Parse(money.USDT, s.FromAmount)
	if err != nil {
		return err
	}
	got, err := money.Parse(money.USDC, s.ToAmount)
	if err != nil {
		return err
	}
	for role, want := range map[string]money.Amount{"collect": given.Neg(), "payout": got} {
		if err := j.moved(ctx, s.hash(role), address, want); err != nil {
			return err
		}
	}
	j.say("the chain confirms it: %s USDT left %s, and %s USDC came", s.FromAmount, address, s.ToAmount)
	return nil
}

// followSwap prints every change of the swap until it ends.
func (j job) followSwap(ctx context.Context, c *client.Client, s swap) (swap, error) {
	last := ""
	for {
		if s.Status != last {
			last = s.Status
			if text := swapWords[s.Status]; text != "" {
				j.say("swap %s: %s", s.Status, text)
			}
		}
		switch s.Status {
		case "completed":
			j.say("swap completed")
			return s, nil
		case "cancelled", "expired", "failed", "refunded", "needs_review":
			return s, fmt.Errorf("the swap ended %s (%s)", s.Status, s.Detail)
		}
		if err := j.again(ctx, c, "/api/v1/auth/swaps/"+s.ID.String(), &s); err != nil {
			return s, fmt.Errorf("the swap is still %s (%s): %w", s.Status, s.Detail, err)
		}
	}
}

// moved checks with the chain's node that a transaction moved exactly this at an address.
func (j job) moved(ctx context.Context, tx, address string, want money.Amount) error {
	a := want.Asset()
	changes, err := j.changes(ctx, address)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if tx != "" && strings.EqualFold(c.Transaction, tx) && c.Amount.Asset() == a {
			if !c.Amount.Equal(want) {
				return fmt.Errorf("%s %s moved on the chain, not %s", c.Amount, a, want)
			}
			return nil
		}
	}
	return fmt.Errorf("transaction %q moves no %s at %s on the chain", tx, a, address)
}
