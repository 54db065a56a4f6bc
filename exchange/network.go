package exchange

import (
	"slices"
	"strings"

	"kivuko/exchange/money"
)

// Network is a blockchain on which Kivuko holds wallets.
type Network string

// The networks.
const (
	Ethereum Network = "ethereum"
	Tron     Network = "tron"
	Solana   Network = "solana"
)

// traits are the facts about a network that the rest of Kivuko needs without its driver.
type traits struct {
	network      Network
	coin         money.Asset // in which fees are paid
	sponsored    bool        // the house's gas wallet signs other wallets' transactions to pay their fees
	counterparts bool        // its keys are accounts on another network too, where money may be sent by mistake
	anyCase      bool        // its addresses are compared without upper and lower case
}

// networks is the table of the networks, in a fixed order.
var networks = []traits{
	{network: Ethereum, coin: money.ETH, counterparts: true, anyCase: true},
	{network: Tron, coin: money.TRX, counterparts: true},
	{network: Solana, coin: money.SOL, sponsored: true},
}

// Networks lists the networks.
func Networks() []Network {
	names := make([]Network, len(networks))
	for i, t := range networks {
		names[i] = t.network
	}
	return names
}

func (n Network) traits() (traits, bool) {
	i := slices.IndexFunc(networks, func(t traits) bool { return t.network == n })
	if i < 0 {
		return traits{}, false
	}
	return networks[i], true
}

// Valid reports whether n is a known network.
func (n Network) Valid() bool {
	_, known := n.traits()
	return known
}

// NativeCoin is the asset in which the network's fees are paid.
func (n Network) NativeCoin() money.Asset {
	t, known := n.traits()
	if !known {
		panic("exchange: unknown network " + string(n))
	}
	return t.coin
}

// WalletAssets lists what a wallet on the network can hold: the native coin and both stablecoins.
func (n Network) WalletAssets() []money.Asset {
	return []money.Asset{n.NativeCoin(), money.USDT, money.USDC}
}

// Sponsored reports whether the house's gas wallet signs other wallets' transactions on the network to pay their fees.
func (n Network) Sponsored() bool {
	t, _ := n.traits()
	return t.sponsored
}

// Counterparts reports whether a key of the network is an account on another network too.
func (n Network) Counterparts() bool {
	t, _ := n.traits()
	return t.counterparts
}

// Compared is the form of an address for comparison with others.
func (n Network) Compared(address string) string {
	if t, _ := n.traits(); t.anyCase {
		return strings.ToLower(address)
	}
	return address
}
