package exchange

import (
	"slices"

	"kivuko/exchange/money"
)

// Network is a blockchain on which Kivuko holds wallets.
type Network string

// The three networks.
const (
	Ethereum Network = "ethereum"
	Tron     Network = "tron"
	Solana   Network = "solana"
)

// Networks lists the networks in a fixed order.
func Networks() []Network { return []Network{Ethereum, Tron, Solana} }

// Valid reports whether n is a known network.
func (n Network) Valid() bool { return slices.Contains(Networks(), n) }

// NativeCoin is the asset in which the network's fees are paid.
func (n Network) NativeCoin() money.Asset {
	switch n {
	case Ethereum:
		return money.ETH
	case Tron:
		return money.TRX
	case Solana:
		return money.SOL
	}
	panic("exchange: unknown network " + string(n))
}

// WalletAssets lists what a wallet on the network can hold: the native coin and both stablecoins.
func (n Network) WalletAssets() []money.Asset {
	return []money.Asset{n.NativeCoin(), money.USDT, money.USDC}
}

// Sponsored reports whether the house's gas wallet signs other wallets' transactions on the network to pay their fees.
func (n Network) Sponsored() bool { return n == Solana }
