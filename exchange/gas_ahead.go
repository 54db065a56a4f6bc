package exchange

import (
	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// GasKind is why a wallet gets gas ahead of need. The database decides it (gas_ahead_kind).
type GasKind string

// The kinds of wallets that get gas ahead of need.
const (
	GasForVendor GasKind = "vendor" // an active offer sells from it
	GasForEscrow GasKind = "escrow" // lent to a sale, or among the next to be lent
	GasForCoins  GasKind = "coins"  // a customer's, with stablecoins that came from outside
)

// GasRefusal is why no gas is brought to a wallet ahead of need.
type GasRefusal string

// The refusals. Those of the database are answers of gas_ahead_fault.
const (
	GasNotEligible GasRefusal = "not_eligible" // its kind, custody or owner
	GasFrozen      GasRefusal = "frozen"       // outgoing payments are frozen
	GasPutBack     GasRefusal = "put_back"     // the database was put back and is not released
	GasUnderWay    GasRefusal = "under_way"    // another top-up of the wallet is on its way
	GasWalletCap   GasRefusal = "wallet_cap"   // the house would have too much in the wallet
	GasWalletDay   GasRefusal = "wallet_day"   // the wallet has had its top-ups of 24 hours
	GasDayBudget   GasRefusal = "day_budget"   // all wallets together have had what they may in 24 hours
	GasReserve     GasRefusal = "gas_wallet"   // what the gas wallet has is kept for payments that lack gas
	GasFeeBudget   GasRefusal = "fee_budget"   // half of the house's daily fee budget is used up: the rest is for payments
	GasEnough      GasRefusal = "enough"       // its next payment costs less than others, as with energy that was delegated to it
	GasTooDear     GasRefusal = "too_dear"     // one payment costs more than a top-up may bring
	GasCostUnknown GasRefusal = "cost_unknown" // the network refuses to simulate a payment of it
)

// LowWallet is a wallet in which the house has less native coin than its next payment may cost.
type LowWallet struct {
	ID      uuid.UUID
	Address string
	Kind    GasKind
	Asset   money.Asset  // the stablecoin that it has most of; empty for none
	Share   money.Amount // the house's native coin in it, below zero when the house owes some
}

// TokenHolder is an address of ours and a stablecoin that it has.
type TokenHolder struct {
	Address string
	Asset   money.Asset
}
