package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// OTCLimit is an entry of how much of a merchant's mobile money needs no officer in 24 hours. The latest one of a merchant counts; the
// house's is for merchants without an own one.
type OTCLimit struct {
	MerchantID uuid.UUID // PlatformTreasury is the house
	Entry      int       // from 1
	Automatic  money.Amount
	ChangeID   uuid.UUID // by which two officers agreed; zero where one lowered it, and for the first one
	EnteredBy  uuid.UUID
	EnteredAt  time.Time
}
