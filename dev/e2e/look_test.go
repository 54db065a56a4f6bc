package e2e

import (
	"context"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"testing"
)

// control calls a control endpoint of the TRON node.
func (w *harness) control(ctx context.Context, method, path string, in, out any) error {
	return call(ctx, method, "http://"+w.stack.Addresses.TronControl+path, in, out)
}

func (w *harness) tron(t *testing.T, path string, in any) {
	t.Helper()
	if err := w.control(t.Context(), http.MethodPost, path, in, nil); err != nil {
		t.Fatal(err)
	}
}

// movement is a transfer as the node itself recorded it.
type movement struct {
	Block       int64  `json:"block"`
	Transaction string `json:"transaction"`
	Token       string `json:"token"`
	From        string `json:"from"`
	To          string `json:"to"`
	Amount      string `json:"amount"`
	Solid       bool   `json:"solid"`
}

func (w *harness) movements(ctx context.Context, address string) ([]movement, error) {
	var all []movement
	err := w.control(ctx, http.MethodGet, "/movements?address="+url.QueryEscape(address), nil, &all)
	return all, err
}

// arrived returns the token transfers to an address.
func (w *harness) arrived(t *testing.T, address string) []movement {
	t.Helper()
	all, err := w.movements(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(m movement) bool { return m.To != address || m.Token == "" })
}

// holdings recomputes an address's balances at the newest final block from the movements and fees that the node
// recorded, and from no data of the product: sun, and units of USDT.
func (w *harness) holdings(ctx context.Context, address, token string) (sun, units *big.Int, err error) {
	all, err := w.movements(ctx, address)
	if err != nil {
		return nil, nil, err
	}
	sun, units = new(big.Int), new(big.Int)
	for _, m := range all {
		into, n := sun, new(big.Int)
		switch m.Token {
		case "":
		case token:
			into = units
		default:
			continue
		}
		if _, ok := n.SetString(m.Amount, 10); !ok || !m.Solid {
			continue
		}
		if m.To == address {
			into.Add(into, n)
		}
		if m.From == address {
			into.Sub(into, n)
		}
	}
	var transactions []struct {
		Owner string `json:"owner"`
		Fee   int64  `json:"fee"`
		Solid bool   `json:"solid"`
	}
	if err := w.control(ctx, http.MethodGet, "/transactions?address="+url.QueryEscape(address), nil, &transactions); err != nil {
		return nil, nil, err
	}
	for _, tx := range transactions {
		if tx.Owner == address && tx.Solid {
			sun.Sub(sun, big.NewInt(tx.Fee))
		}
	}
	return sun, units, nil
}
