package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kivuko/dev/client"
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

// inLine is how long a swap may be asked for again while its owner has too many open, or the house too little.
const inLine = 15 * time.Minute

// swap changes USDT for USDC, or back, in the wallet of a customer. A limit of open swaps passes, and so does a shortage of the house,
// which swaps the other way fill again: it is asked for again.
func (w *harness) swap(ctx context.Context, d *action) error {
	all := w.swappers()
	d.email = all[d.step.Number%len(all)]
	in := map[string]any{
		"wallet_id": w.wallets[purse{d.email, d.node.Network}].ID, "from_asset": money.USDT, "to_asset": money.USDC, "amount": d.amount.String(), "amount_side": "from",
	}
	if d.step.Inside {
		in["from_asset"], in["to_asset"] = money.USDC, money.USDT
	}
	for deadline := time.Now().Add(inLine); ; {
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
		if p, said := errors.AsType[*client.Problem](err); said && passes(p.Code) && time.Now().Before(deadline) {
			w.counted("a swap was refused with " + p.Code)
			if err := pause(ctx, time.Second); err != nil {
				return err
			}
			continue
		}
		d.id = o.ID
		w.opened(*d)
		return err
	}
}

// passes reports whether a swap that was refused with a code may be opened later.
func passes(code string) bool {
	switch exchange.Code(code) { //nolint:exhaustive // all others are final
	case exchange.CodeExpired, exchange.CodeLimitReached, exchange.CodeInsufficientFunds:
		return true
	}
	return false
}

// legsOf reads from the chain what the legs of a swap moved at its wallet.
func (w *harness) legsOf(ctx context.Context, d action, s swapped) ([]leg, error) {
	changes, err := d.node.Changes(ctx, w.wallets[purse{d.email, d.node.Network}].Address)
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

// judgeSwap checks that a swap ended with one side for the other, with what it collected brought back, or with nothing, by the chain:
// never with both or with neither of payout and refund.
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
	if got := fmt.Sprint(roles); !ended || got != want { // all its troubles have passed, so none is parked either
		say("it is %s with the final legs %s", e.status, got)
	}
}
