package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// Inventory is the crypto of a treasury wallet that the house sells without an offer. Two officers set it aside in a hold, which
// orders split theirs off, as they do from an offer's.
type Inventory struct {
	ID        uuid.UUID
	WalletID  uuid.UUID
	Network   Network
	Asset     money.Asset
	HoldID    uuid.UUID
	Allocated money.Amount // all that officers set aside, less what they took back
	Available money.Amount // what is left to sell
	Reserved  money.Amount // for orders that are under way
	Sold      money.Amount // delivered to customers
	CreatedAt time.Time
}

// Account is the account that the crypto is held in.
func (i Inventory) Account() AccountRef { return Owned(AccWalletBalance, i.WalletID, i.Asset) }
