package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"time"

	"kivuko/dev/nodes/solana"
	"kivuko/dev/nodes/tron"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// nodeTimeout bounds one request to a node.
const nodeTimeout = 15 * time.Second

// Node calls a network's development node directly: its fault switches, and its own record of movements.
type Node struct {
	Network exchange.Network
	Control string // http://host:port of its fault switches
}

// Change is the effect of one transaction on an address's balance.
type Change struct {
	Transaction string
	Amount      money.Amount // below zero when it left
	Fee         bool         // the network took it
	Final       bool
}

// Call sends a JSON request to the node's fault switches. A nil in sends an empty request.
func (n Node) Call(ctx context.Context, method, path string, in, out any) error {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, n.Control+path, &body)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // the answer was read
	if resp.StatusCode != http.StatusOK {
		var refused struct {
			Error string `json:"error"`
		}
		_ = json.NewDecoder(resp.Body).Decode(&refused) // the status alone says enough
		return fmt.Errorf("%s node: %s %s: %s %s", n.Network, method, path, resp.Status, refused.Error)
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

// Fund sends coins to an address from outside of our custody, in a separate block.
func (n Node) Fund(ctx context.Context, address string, m money.Amount) error {
	in := map[string]any{"address": address, "token": m.Asset(), "amount": m.Units().String(), "mine": true}
	return n.Call(ctx, http.MethodPost, "/fund", in, nil)
}

// assetOf returns the asset of a node's token: a symbol, an address on TRON and Solana, or empty for the network's
// coin. It returns an empty asset for a token that Kivuko does not have.
func (n Node) assetOf(token string) money.Asset {
	switch token {
	case "", string(n.Network.NativeCoin()):
		return n.Network.NativeCoin()
	case string(money.USDT), tron.USDTAddress, solana.USDTAddress:
		return money.USDT
	case string(money.USDC), tron.USDCAddress, solana.USDCAddress:
		return money.USDC
	}
	return ""
}

// moved has the fields of a movement of all three nodes; each node uses some of them.
type moved struct {
	Transaction, Signature string
	Token                  string
	From, To, Amount       string
	Owner, Account, Change string
	Solid, Final           bool
}

// Changes returns all changes to an address's balances of the network's coin and our tokens, oldest first, and its
// fees, from the node's own record.
func (n Node) Changes(ctx context.Context, address string) ([]Change, error) {
	var all []moved
	if err := n.Call(ctx, http.MethodGet, "/movements?address="+url.QueryEscape(address), nil, &all); err != nil {
		return nil, err
	}
	var out []Change
	for _, m := range all {
		asset := n.assetOf(m.Token)
		if asset == "" {
			continue
		}
		for _, text := range m.changesOf(address) {
			units, ok := new(big.Int).SetString(text, 10)
			if !ok {
				return nil, fmt.Errorf("%s node: %q is no amount", n.Network, text)
			}
			out = append(out, Change{Transaction: m.Transaction + m.Signature, Amount: money.FromUnits(asset, units), Final: m.Solid || m.Final})
		}
	}
	if n.Network.Sponsored() {
		return out, nil // its changes have the fees in them
	}
	fees, err := n.fees(ctx, address)
	return append(out, fees...), err
}

// changesOf returns the movement's effects on an address, in signed units. A payment to itself has two.
func (m moved) changesOf(address string) (units []string) {
	if m.Change != "" { // Solana; what an account of the owner's holds in rent is not the owner's own
		if m.Owner == address {
			units = append(units, m.Change)
		}
		return units
	}
	if strings.EqualFold(m.To, address) {
		units = append(units, m.Amount)
	}
	if strings.EqualFold(m.From, address) {
		units = append(units, "-"+m.Amount)
	}
	return units
}

// fees returns an address's network fees, where the record of movements lacks them.
func (n Node) fees(ctx context.Context, address string) ([]Change, error) {
	var all []struct {
		ID, Owner, From string
		Fee             json.RawMessage // a number on TRON, a string on Ethereum
		Solid, Final    bool
	}
	if err := n.Call(ctx, http.MethodGet, "/transactions?address="+url.QueryEscape(address), nil, &all); err != nil {
		return nil, err
	}
	var out []Change
	for _, tx := range all {
		if !strings.EqualFold(tx.Owner+tx.From, address) {
			continue
		}
		units, ok := new(big.Int).SetString(strings.Trim(string(tx.Fee), `"`), 10)
		if !ok {
			return nil, fmt.Errorf("%s node: %s is no fee", n.Network, tx.Fee)
		}
		if units.Sign() > 0 {
			out = append(out, Change{
				Transaction: tx.ID, Amount: money.FromUnits(n.Network.NativeCoin(), units.Neg(units)), Fee: true, Final: tx.Solid || tx.Final,
			})
		}
	}
	return out, nil
}

// Holds returns an address's balances at the newest final block, summed from the node's record.
func (n Node) Holds(ctx context.Context, address string) (map[money.Asset]money.Amount, error) {
	changes, err := n.Changes(ctx, address)
	if err != nil {
		return nil, err
	}
	sums := map[money.Asset]money.Amount{}
	for _, a := range n.Network.WalletAssets() {
		sums[a] = money.Zero(a)
	}
	for _, c := range changes {
		if c.Final {
			sums[c.Amount.Asset()] = sums[c.Amount.Asset()].Add(c.Amount)
		}
	}
	return sums, nil
}
