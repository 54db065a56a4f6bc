package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// swapped has the fields of a swap that the soak reads.
type swapped struct {
	FromAsset  string `json:"from_asset"`
	FromAmount string `json:"from_amount"`
	ToAsset    string `json:"to_asset"`
	ToAmount   string `json:"to_amount"`
	Legs       []struct {
		Role   string  `json:"role"`
		Status string  `json:"status"`
		TxHash *string `json:"tx_hash"`
	} `json:"legs"`
}

// leg is a completed payment of a swap, and what its transaction moved at the wallet by the chain.
type leg struct {
	role exchange.SwapLegRole
	want money.Amount // below zero: it leaves the wallet
	got  []money.Amount
}

// swap changes USDT for USDC, or back, in the wallet of the customer who sells. A limit of open swaps passes: it is asked for again.
func (w *harness) swap(ctx context.Context, d *action) error {
	d.email = demo.SecondEmail
	in := map[string]any{"wallet_id": w.wallets[d.node.Network], "from_asset": money.USDT, "to_asset": money.USDC, "amount": d.amount.String(), "amount_side": "from"}
	if d.step.Inside {
		in["from_asset"], in["to_asset"] = money.USDC, money.USDT
	}
	for {
		var quote, o object
		key := newKey()
		err := w.insist(ctx, d.email, func(ctx context.Context, c *client.Client) error {
			return c.Post(ctx, "/api/v1/auth/swaps/quote", key, in, &quote)
		})
		if err == nil {
			err = w.insist(ctx, d.email, func(ctx context.Context, c *client.Client) error {
				return c.Post(ctx, "/api/v1/auth/swaps", key, map[string]any{"quote_id": quote.ID}, &o)
			})
		}
		if p, said := errors.AsType[*client.Problem](err); said && p.Code == string(exchange.CodeExpired) {
			continue // while something was dead
		}
		d.id = o.ID
		w.opened(*d)
		return err
	}
}

// legsOf reads from the chain what the legs of a swap moved at its wallet.
func (w *harness) legsOf(ctx context.Context, d action, s swapped) ([]leg, error) {
	wallet, err := w.store.DefaultWallet(ctx, w.seller, d.node.Network)
	if err != nil {
		return nil, err
	}
	changes, err := d.node.Changes(ctx, wallet.Address)
	if err != nil {
		return nil, err
	}
	from, err := money.Parse(money.Asset(s.FromAsset), s.FromAmount)
	if err != nil {
		return nil, err
	}
	to, err := money.Parse(money.Asset(s.ToAsset), s.ToAmount)
	if err != nil {
		return nil, err
	}
	moves := map[exchange.SwapLegRole]money.Amount{exchange.LegCollect: from.Neg(), exchange.LegPayout: to, exchange.LegRefund: from}
	var legs []leg
	for _, l := range s.Legs {
		if l.Status != string(exchange.ChainCompleted) {
			continue
		}
		one := leg{role: exchange.SwapLegRole(l.Role), want: moves[exchange.SwapLegRole(l.Role)]}
		for _, c := range changes {
			if l.TxHash != nil && strings.EqualFold(c.Transaction, *l.TxHash) && (c.Amount.Asset() == money.USDT || c.Amount.Asset() == money.USDC) {
				one.got = append(one.got, c.Amount)
			}
		}
		legs = append(legs, one)
	}
	return legs, nil
}

// judgeSwap checks that a swap ended with one side for the other, with what it collected brought back, or with nothing, by the chain.
func (e evidence) judgeSwap(say sayer) {
	var roles []string
	for _, l := range e.legs {
		roles = append(roles, string(l.role))
		if len(l.got) != 1 || !l.got[0].Equal(l.want) {
			say("its %s should have moved %s, and moved %v", l.role, l.want, l.got)
		}
	}
	slices.Sort(roles)
	wants := map[string]string{
		string(exchange.SwapCompleted): "[collect payout]", string(exchange.SwapRefunded): "[collect refund]",
		string(exchange.SwapCancelled): "[]", string(exchange.SwapExpired): "[]", string(exchange.SwapFailed): "[]",
	}
	want, ended := wants[e.status]
	if got := fmt.Sprint(roles); len(e.why) == 0 && (!ended || got != want) {
		say("it is %s with the final legs %s", e.status, got)
	}
}
