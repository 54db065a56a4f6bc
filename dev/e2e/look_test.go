package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/momo/sandbox"
)

// call sends a JSON request to a control endpoint of the stack.
func call(ctx context.Context, method, address string, in, out any) error {
	var body bytes.Buffer
	if in == nil {
		in = struct{}{}
	}
	if err := json.NewEncoder(&body).Encode(in); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, &body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		var text bytes.Buffer
		_, _ = text.ReadFrom(resp.Body)
		return fmt.Errorf("%s %s: %s %s", method, address, resp.Status, text.String())
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

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

func (w *harness) momo() string { return "http://" + w.stack.Addresses.Momo }

// books returns the mobile money operator's own books.
func (w *harness) books(t *testing.T) sandbox.Books {
	t.Helper()
	var b sandbox.Books
	if err := call(t.Context(), http.MethodGet, w.momo()+"/control/books", nil, &b); err != nil {
		t.Fatal(err)
	}
	return b
}

// fault makes the mobile money operator show a behaviour once, for one phone.
func (w *harness) fault(t *testing.T, behaviour, op, phone string) {
	t.Helper()
	in := sandbox.Fault{Behaviour: behaviour, Op: op, Phone: phone, Times: 1}
	if err := call(t.Context(), http.MethodPost, w.momo()+"/control/faults", in, nil); err != nil {
		t.Fatal(err)
	}
}

// release lets the mobile money operator finish what it delayed.
func (w *harness) release(t *testing.T) {
	t.Helper()
	if err := call(t.Context(), http.MethodPost, w.momo()+"/control/release", nil, nil); err != nil {
		t.Fatal(err)
	}
}

// reference returns the reference that the payer of an order reads on the prompt, as long as no other order had it.
func reference(id uuid.UUID) string { return exchange.PaymentReferences(id)[0] }

// collected returns the operator's effects of an order's prompts.
func collected(b sandbox.Books, id uuid.UUID) []sandbox.Effect {
	return slices.DeleteFunc(slices.Clone(b.Effects), func(e sandbox.Effect) bool {
		return e.Direction != sandbox.Collection || e.Reference != reference(id)
	})
}

// prompted returns the prompts that the operator accepted for an order.
func prompted(b sandbox.Books, id uuid.UUID) []sandbox.Prompt {
	return slices.DeleteFunc(slices.Clone(b.Prompts), func(p sandbox.Prompt) bool { return p.Reference != reference(id) })
}

// paidBack returns the payouts that reached a phone.
func paidBack(b sandbox.Books, phone string) []sandbox.Effect {
	return slices.DeleteFunc(slices.Clone(b.Effects), func(e sandbox.Effect) bool {
		return e.Direction != sandbox.Payout || e.Phone != phone
	})
}
