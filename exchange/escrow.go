package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// EscrowStatus is the state of an address of the escrow pool.
type EscrowStatus string

// The states of an address of the pool.
const (
	EscrowFree     EscrowStatus = "free"     // can be leased to an order, unless it has trouble
	EscrowLeased   EscrowStatus = "leased"   // leased to one order
	EscrowResting  EscrowStatus = "resting"  // given back; money that arrives now is late money of its last order
	EscrowDisabled EscrowStatus = "disabled" // an admin disabled it
)

// EscrowMachine governs the addresses of the pool. A leased address can't be disabled, because its order shows it to a
// customer.
var EscrowMachine = Machine[EscrowStatus]{
	Name: "escrow_address", Initial: EscrowFree,
	Transitions: []Transition[EscrowStatus]{
		{EscrowFree, EscrowLeased, ByFlow, "an order leases it, as it is empty and has rested"},
		{EscrowLeased, EscrowResting, ByFlow, "the order is closed, its crypto has left, and every arrival is accounted for"},
		{EscrowResting, EscrowFree, ByFlow, "it has rested and is empty"},
		{EscrowFree, EscrowDisabled, string(RoleAdmin), "it must not be used"},
		{EscrowResting, EscrowDisabled, string(RoleAdmin), "it must not be used again"},
		{EscrowDisabled, EscrowFree, string(RoleAdmin), "it may be used again, as it has rested and is empty"},
	},
}

// Limits of the pool. The database has the same values.
const (
	MaxEscrowKept   = 1000                // free addresses of a network that are kept ready
	MaxEscrowPool   = 10000               // addresses of a network
	MaxEscrowBatch  = 50                  // addresses that an admin requests at a time
	MaxEscrowText   = 200                 // characters of a label, or of a reason
	MinEscrowRest   = 10 * time.Minute    // between two orders
	MaxEscrowRest   = 90 * 24 * time.Hour // between two orders
	EscrowClockSkew = 10 * time.Minute    // by which the time of a block may be off; not more than the shortest rest
)

// EscrowTrouble is the reason why a free address can't be leased now.
type EscrowTrouble string

// The reasons.
const (
	EscrowNoTrouble  EscrowTrouble = ""
	EscrowMoney      EscrowTrouble = "money"      // stablecoins are on it
	EscrowSeen       EscrowTrouble = "seen"       // a movement to it is not final yet
	EscrowException  EscrowTrouble = "exception"  // it has an open payment exception
	EscrowQuarantine EscrowTrouble = "quarantine" // a quarantined movement of it waits for an officer
)

// EscrowAddress is one address of the pool. It has the same id as its wallet.
type EscrowAddress struct {
	ID         uuid.UUID
	Network    Network
	Address    string
	Status     EscrowStatus
	Trouble    EscrowTrouble
	OrderID    uuid.UUID // of the open lease; zero without one
	LeasedAt   time.Time // of the open lease
	RestUntil  time.Time // zero while it is leased, and before its first lease
	LastUsedAt time.Time
	Label      string
	Reason     string         // why it is disabled
	Balances   []money.Amount // the ledger's balance of each asset that the network's wallets hold
	UpdatedBy  uuid.UUID
	CreatedAt  time.Time
	UpdatedAt  time.Time
	Version    int64
}

// EscrowLease lends an address to an order.
type EscrowLease struct {
	ID        uuid.UUID
	WalletID  uuid.UUID
	OrderID   uuid.UUID
	LeasedAt  time.Time
	EndedAt   time.Time // zero while it is open
	RestUntil time.Time // zero while it is open
}

// ClaimKind is how an arrival at an escrow address fits the order that leases it.
type ClaimKind string

// The kinds of claim. The first four settle the order, which has at most one of them, and hold the crypto. The last three
// leave the crypto in suspense for a payment exception.
const (
	ClaimExact      ClaimKind = "exact"       // the amount that the order asked for
	ClaimRepriced   ClaimKind = "repriced"    // another amount, at which the order is priced now
	ClaimUnder      ClaimKind = "under"       // too little for the offer: returned
	ClaimOver       ClaimKind = "over"        // too much for the offer: all of it is returned
	ClaimWrongAsset ClaimKind = "wrong_asset" // in another asset
	ClaimDuplicate  ClaimKind = "duplicate"   // after another claim settled the order
	ClaimLate       ClaimKind = "late"        // after the order was closed without one
)

// Pays reports whether the order is paid out for the claim.
func (k ClaimKind) Pays() bool { return k == ClaimExact || k == ClaimRepriced }

// Holds reports whether the crypto becomes the wallet's balance, held for the order. Otherwise it stays in suspense.
func (k ClaimKind) Holds() bool { return k.Pays() || k == ClaimUnder || k == ClaimOver }

// Exception returns the kind of payment exception that the claim opens; empty for a claim that pays.
func (k ClaimKind) Exception() ExceptionKind {
	switch k {
	case ClaimUnder:
		return ExcUnder
	case ClaimOver:
		return ExcOver
	case ClaimWrongAsset:
		return ExcWrongAsset
	case ClaimDuplicate:
		return ExcDuplicate
	case ClaimLate:
		return ExcLate
	case ClaimExact, ClaimRepriced:
	}
	return ""
}

// EscrowClaim records how one arrival at an escrow address was used. Taken by the vendor, refunded, and kept by the house
// never exceed its amount together.
type EscrowClaim struct {
	ID          uuid.UUID
	DepositID   uuid.UUID // the movement on the chain; zero for our own payment
	PaymentID   uuid.UUID // the payment that funded the order from a custodial wallet; zero for a movement
	OrderID     uuid.UUID
	WalletID    uuid.UUID // the escrow wallet
	Kind        ClaimKind
	Amount      money.Amount
	HoldID      uuid.UUID // of the crypto on the escrow wallet's balance; zero for kinds that hold nothing
	ExceptionID uuid.UUID // the exception that it opened; zero for a claim that pays
	Taken       money.Amount
	Refunded    money.Amount
	Kept        money.Amount
	CreatedAt   time.Time
}

// EscrowPolicy is the size of a network's pool and how long its addresses rest.
type EscrowPolicy struct {
	Network  Network
	KeepFree int           // addresses that are kept ready
	Most     int           // addresses, without the disabled ones
	Rest     time.Duration // between two orders
	// IdleRest is the rest after an order to which nothing came, if it is less.
	IdleRest time.Duration
	// UserPercent is how much of the pool the sales of unverified users may use.
	UserPercent int
	UpdatedBy   uuid.UUID
	UpdatedAt   time.Time
	Version     int64
}

// Looser reports whether the policy lends addresses again sooner than another one, or lets unverified users use more of them.
func (p EscrowPolicy) Looser(now EscrowPolicy) bool {
	return p.Rest < now.Rest || p.IdleRest < now.IdleRest || p.UserPercent > now.UserPercent
}

// EscrowDemand is what the pool of a network has and needs.
type EscrowDemand struct {
	Network Network     `json:"network"`
	Free    int         `json:"free"` // can be leased now
	Total   int         `json:"total"`
	Most    int         `json:"most"`
	Short   int         `json:"short,omitempty"` // needed, but the pool has its full size
	Make    []uuid.UUID `json:"make,omitempty"`  // ids of wallets to make
}

// EscrowWallet returns the request for a wallet of the pool.
func EscrowWallet(id uuid.UUID, n Network) WalletRequest {
	return WalletRequest{ID: id, OwnerType: OwnerTreasury, Purpose: HouseEscrow, Network: n, Asset: money.USDT, Type: Hot}
}

// KeptDeposit is crypto on an escrow address that the house keeps, and the exception that it belongs to.
type KeptDeposit struct {
	ExceptionID uuid.UUID `json:"exception_id"`
	Network     Network   `json:"network"`
}
