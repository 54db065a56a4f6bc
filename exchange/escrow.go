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
	EscrowFree     EscrowStatus = "free"     // may be lent to an order, unless there is trouble with it
	EscrowLeased   EscrowStatus = "leased"   // lent to one order
	EscrowResting  EscrowStatus = "resting"  // given back; what comes now is late money of its last order
	EscrowDisabled EscrowStatus = "disabled" // an admin took it out of use
)

// EscrowMachine governs the addresses of the pool. A leased one can't be disabled: its order shows it to a customer.
var EscrowMachine = Machine[EscrowStatus]{
	Name: "escrow_address", Initial: EscrowFree,
	Transitions: []Transition[EscrowStatus]{
		{EscrowFree, EscrowLeased, ByFlow, "an order borrows it: it is empty and has rested"},
		{EscrowLeased, EscrowResting, ByFlow, "the order is over, its crypto has left, and all that came is accounted for"},
		{EscrowResting, EscrowFree, ByFlow, "it has rested and is empty"},
		{EscrowFree, EscrowDisabled, string(RoleAdmin), "it shall not be used"},
		{EscrowResting, EscrowDisabled, string(RoleAdmin), "it shall not be used again"},
		{EscrowDisabled, EscrowFree, string(RoleAdmin), "it may be used again: it has rested and is empty"},
	},
}

// Limits of the pool. The database holds the same ones.
const (
	MaxEscrowKept   = 1000                // free addresses of a network that are kept ready
	MaxEscrowPool   = 10000               // addresses of a network
	MaxEscrowBatch  = 50                  // addresses that an admin asks for at a time
	MaxEscrowText   = 200                 // characters of a label, or of a reason
	MinEscrowRest   = 10 * time.Minute    // between two orders
	MaxEscrowRest   = 90 * 24 * time.Hour // between two orders
	EscrowClockSkew = 10 * time.Minute    // that the time of a block may be off; not more than the shortest rest
)

// EscrowTrouble says in a word why a free address can't be lent now.
type EscrowTrouble string

// What keeps an address from being lent.
const (
	EscrowNoTrouble  EscrowTrouble = ""
	EscrowMoney      EscrowTrouble = "money"      // somebody's stablecoins are on it
	EscrowSeen       EscrowTrouble = "seen"       // something comes that is not final yet
	EscrowException  EscrowTrouble = "exception"  // a payment exception of it is not settled
	EscrowQuarantine EscrowTrouble = "quarantine" // a movement of it waits for a person
)

// EscrowAddress is one address of the pool. Its id is its wallet's.
type EscrowAddress struct {
	ID         uuid.UUID
	Network    Network
	Address    string
	Status     EscrowStatus
	Trouble    EscrowTrouble
	OrderID    uuid.UUID // of the lease that is open; zero without one
	LeasedAt   time.Time // of the lease that is open
	RestUntil  time.Time // zero while it is leased, and before its first lease
	LastUsedAt time.Time
	Label      string
	Reason     string         // for which it is disabled
	Balances   []money.Amount // on the address by the ledger, of each asset that the network's wallets hold
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

// ClaimKind says what an arrival at an escrow address is to the order that borrows it.
type ClaimKind string

// The kinds of claim. The first four decide over the order, which has at most one of them, and hold the crypto; the
// last three leave it in suspense for a payment exception.
const (
	ClaimExact      ClaimKind = "exact"       // what the order asked for
	ClaimRepriced   ClaimKind = "repriced"    // another amount, which the order is priced by now
	ClaimUnder      ClaimKind = "under"       // too little for the offer: goes back
	ClaimOver       ClaimKind = "over"        // too much for the offer: goes back, all of it
	ClaimWrongAsset ClaimKind = "wrong_asset" // of another asset
	ClaimDuplicate  ClaimKind = "duplicate"   // after another one has decided over the order
	ClaimLate       ClaimKind = "late"        // after the order was closed without any
)

// Pays tells whether the order is paid out for it.
func (k ClaimKind) Pays() bool { return k == ClaimExact || k == ClaimRepriced }

// Holds tells whether the crypto becomes the address's balance, held for the order. Otherwise it stays in suspense.
func (k ClaimKind) Holds() bool { return k.Pays() || k == ClaimUnder || k == ClaimOver }

// Exception is the kind of payment exception that a claim of the kind opens; empty for one that pays.
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

// EscrowClaim is what became of one arrival at an escrow address. Of its amount, no more than all of it is taken by
// the vendor, refunded, or kept by the house.
type EscrowClaim struct {
	ID          uuid.UUID
	DepositID   uuid.UUID // the movement on the chain; zero for a payment of ours
	PaymentID   uuid.UUID // the payment that funded the order from a custodial wallet; zero for a movement
	OrderID     uuid.UUID
	WalletID    uuid.UUID // the escrow wallet
	Kind        ClaimKind
	Amount      money.Amount
	HoldID      uuid.UUID // of the crypto on the escrow wallet's balance; zero for kinds that hold nothing
	ExceptionID uuid.UUID // that it opened; zero for a claim that pays
	Taken       money.Amount
	Refunded    money.Amount
	Kept        money.Amount
	CreatedAt   time.Time
}

// EscrowPolicy is how large the pool of a network is, and for how long its addresses rest.
type EscrowPolicy struct {
	Network   Network
	KeepFree  int           // addresses that are kept ready
	Most      int           // addresses, without the disabled ones
	Rest      time.Duration // between two orders
	UpdatedBy uuid.UUID
	UpdatedAt time.Time
	Version   int64
}

// EscrowDemand is what the pool of a network has and what it lacks.
type EscrowDemand struct {
	Network Network     `json:"network"`
	Free    int         `json:"free"` // that could be lent now
	Total   int         `json:"total"`
	Most    int         `json:"most"`
	Short   int         `json:"short,omitempty"` // that are wanted and may not be made
	Make    []uuid.UUID `json:"make,omitempty"`  // ids of wallets that are to be made
}

// EscrowWallet is the request for a wallet of the pool.
func EscrowWallet(id uuid.UUID, n Network) WalletRequest {
	return WalletRequest{ID: id, OwnerType: OwnerTreasury, Purpose: HouseEscrow, Network: n, Asset: money.USDT, Type: Hot}
}

// KeptDeposit is crypto on an escrow address that the house keeps, by the exception that it came with.
type KeptDeposit struct {
	ExceptionID uuid.UUID `json:"exception_id"`
	Network     Network   `json:"network"`
}
