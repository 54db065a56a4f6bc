package main

import (
	"context"
	"fmt"
	"sync"

	"kivuko/api"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// balances reads the balances of addresses for the API, which shows them with the ledger's, and what owners of an account sign. A
// network's driver is opened at its first use; if that fails, the next read tries again.
type balances struct {
	mu   sync.Mutex
	open drivers
}

func newBalances(c Config) *balances {
	return &balances{open: drivers{config: c, open: map[exchange.Network]driver{}}}
}

func (b *balances) driver(n exchange.Network) (driver, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open.of(n)
}

// readers returns the balance readers of the networks that are on.
func (b *balances) readers() map[exchange.Network]func(context.Context, string, money.Asset) (exchange.ChainBalance, error) {
	out := map[exchange.Network]func(context.Context, string, money.Asset) (exchange.ChainBalance, error){}
	for _, n := range b.open.config.networks() {
		if !n.on {
			continue
		}
		out[n.name] = func(ctx context.Context, address string, a money.Asset) (exchange.ChainBalance, error) {
			d, err := b.driver(n.name)
			if err != nil {
				return exchange.ChainBalance{}, err
			}
			held, err := d.Balance(ctx, address, a)
			return exchange.ChainBalance{Amount: held.Amount, Block: chainBlock(held.At)}, err
		}
	}
	return out
}

// counters returns the readers of transaction counts of the networks that are on.
func (b *balances) counters() map[exchange.Network]func(context.Context, string) (exchange.SenderCount, error) {
	out := map[exchange.Network]func(context.Context, string) (exchange.SenderCount, error){}
	for _, n := range b.open.config.networks() {
		if !n.on {
			continue
		}
		out[n.name] = func(ctx context.Context, address string) (exchange.SenderCount, error) {
			d, err := b.driver(n.name)
			if err != nil {
				return exchange.SenderCount{}, err
			}
			return count(ctx, d, address)
		}
	}
	return out
}

func count(ctx context.Context, d driver, address string) (exchange.SenderCount, error) {
	counter, ok := d.(chain.Sequenced)
	if !ok {
		return exchange.SenderCount{}, exchange.Errorf(exchange.CodeUnsupported, "The network %s does not number transactions.", d.Network())
	}
	n, err := counter.Nonces(ctx, address)
	return exchange.SenderCount{Latest: n.Latest, Final: n.Final, Block: chainBlock(n.Head.Final)}, err
}

// joints returns the readers of what owners of an account sign, on the networks that are on. They need no node.
func (b *balances) joints() map[exchange.Network]func([]byte) (api.JointView, error) {
	out := map[exchange.Network]func([]byte) (api.JointView, error){}
	for _, n := range b.open.config.networks() {
		if !n.on {
			continue
		}
		out[n.name] = func(stored []byte) (api.JointView, error) {
			d, err := b.driver(n.name)
			if err != nil {
				return api.JointView{}, err
			}
			return jointView(d, stored)
		}
	}
	return out
}

// jointView reads what owners sign, after the driver has built it again from its parts: what is shown is what the bytes say.
func jointView(d chain.Multisig, stored []byte) (api.JointView, error) {
	j, err := chain.DecodeJoint(stored)
	if err != nil {
		return api.JointView{}, err
	}
	if err := d.CheckJoint(j); err != nil {
		return api.JointView{}, err
	}
	v := api.JointView{
		Kind: exchange.ProposeCancel, Account: j.Account, To: j.Account, Amount: money.Zero(j.FeeLimit.Asset()), Digest: j.Digest, Body: j.Body, ID: j.ID, FeeLimit: j.FeeLimit,
	}
	switch {
	case j.Transfer != nil:
		v.Kind, v.To, v.Amount = exchange.ProposePayment, j.Transfer.To, j.Transfer.Amount
	case j.Owners != nil:
		v.Kind, v.Owners = exchange.ProposeOwners, j.Owners.Agreed()
	}
	return v, nil
}

// signatures returns the checks of owners' signatures, on the networks that are on. They need no node.
func (b *balances) signatures() map[exchange.Network]func(stored, signature []byte) (string, error) {
	out := map[exchange.Network]func(stored, signature []byte) (string, error){}
	for _, n := range b.open.config.networks() {
		if !n.on {
			continue
		}
		out[n.name] = func(stored, signature []byte) (string, error) {
			d, err := b.driver(n.name)
			if err != nil {
				return "", err
			}
			return signerOf(d, stored, signature)
		}
	}
	return out
}

// signerOf is the owner who made a signature of what is stored.
func signerOf(d chain.Multisig, stored, signature []byte) (string, error) {
	j, err := chain.DecodeJoint(stored)
	if err != nil {
		return "", err
	}
	own, err := d.Signature(j, signature)
	if chain.ReasonOf(err) == chain.ReasonForeign {
		return "", exchange.Invalid(exchange.FieldError{Pointer: "/signature", Code: "signature", Message: "is refused: " + chain.DetailOf(err)})
	}
	return own.Owner, err
}

func chainBlock(b chain.Block) exchange.ChainBlock {
	return exchange.ChainBlock{Number: b.Number, ID: b.ID, Parent: b.Parent, Time: b.Time}
}

func (b *balances) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open.close()
}

// refuses returns why an asset is not offered on a network, as the rest of a sentence. It returns "" when the asset is
// offered, and for a network that is off, which is refused as a whole.
func (c Config) refuses(name exchange.Network, a money.Asset) string {
	n := c.network(name)
	if !n.on || a == name.NativeCoin() {
		return ""
	}
	if why := n.stopped[a]; why != "" {
		return why
	}
	known := false // without any configured contract, the API leaves this check to the workers
	for _, address := range n.tokens {
		known = known || address != ""
	}
	if known && n.tokens[a] == "" {
		return fmt.Sprintf("the contract of %s is not configured", a)
	}
	return ""
}
