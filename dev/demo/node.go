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

	"kivuko/dev/solana"
	"kivuko/dev/tron"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// nodeTimeout bounds one question to a node.
const nodeTimeout = 15 * time.Second

// Node is a network's development node, asked past the product: its switches, and its own record of what
// moved.
type Node struct {
	Network exchange.Network
	Control string // http://host:port of its fault switches
}

// Change is what one transaction did to what an address holds.
type Change struct {
	Transaction string
	Amount      money.Amount // below zero when it left
	Fee         bool         // the network took it
	Final       bool
}

// Call speaks JSON to the node's switches. A nil in sends an empty request.
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

// Fund brings coins to an address from nobody of ours, in a block of their own.
func (n Node) Fund(ctx context.Context, address string, m money.Amount) error {
	in := map[string]any{"address": address, "token": m.Asset(), "amount": m.Units().String(), "mine": true}
	return n.Call(ctx, http.MethodPost, "/fund", in, nil)
}

// assetOf names what the node calls a token: TRON and Solana by the token's address, and nothing for the
// network's coin. Empty is a token that is none of ours.
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

// moved is a movement in the words of all three nodes; each uses some of them.
type moved struct {
	Transaction, Signature string
	Token                  string
	From, To, Amount       string
	Owner, Account, Change string
	Solid, Final           bool
}

// Changes are all changes to what an address holds in the network's coin and in our tokens, with the fees
// that it paid, oldest first, from the node's own record.
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

// changesOf are the movement's effects on an address, in units with their signs. Whoever pays himself has two.
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

// fees are what the network took from an address, where the record of movements does not have it.
func (n Node) fees(ctx context.Context, address string) ([]Change, error) {
	var all []struct {
		ID, Owner, From string
		Fee             json.RawMessage // TRON says a number, Ethereum a text
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

// Holds is what an address has at the newest final block, added up from the node's record.
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
