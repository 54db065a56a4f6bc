package store

import (
	"time"

	"github.com/google/uuid"

	"github.com/shopspring/decimal"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// UserFilter narrows a list of users. Query matches the beginning of a name, an e-mail address or a
// phone number.
type UserFilter struct {
	Role  exchange.Role
	Query string
}

// UserPatch changes what is set. Deactivation kills every session; Verified turns a user into a
// customer and back.
type UserPatch struct {
	IsActive *bool
	Verified *bool
}

// Session is one refresh token of a family. Only the hash of the token is stored.
type Session struct {
	ID        uuid.UUID
	FamilyID  uuid.UUID
	UserID    uuid.UUID
	TokenHash [32]byte
	IP        string
	UserAgent string
	CreatedAt time.Time
	ExpiresAt time.Time
}

// AuthState is what each request checks of its token.
type AuthState struct {
	User        exchange.User
	AuthVersion int64
	SessionLive bool
}

// IdempotencyState says what to do with a request that carries an idempotency key.
type IdempotencyState string

// The states. New: do it. Replay: answer with what is stored. InFlight: another request is doing it.
// Reused: the key belongs to another body.
const (
	IdempotencyNew      IdempotencyState = "new"
	IdempotencyReplay   IdempotencyState = "replay"
	IdempotencyInFlight IdempotencyState = "in_flight"
	IdempotencyReused   IdempotencyState = "reused"
)

// IdempotencyRecord is the answer to a claim of a key.
type IdempotencyRecord struct {
	State    IdempotencyState
	ObjectID uuid.UUID // the id for the object to create, stable over retries
	Status   int
	Header   map[string]string
	Body     []byte
}

// OfferFilter narrows a list of offers; Amount keeps those whose bounds and availability allow it.
type OfferFilter struct {
	Type     exchange.OfferType
	Asset    money.Asset
	Network  exchange.Network
	Status   exchange.OfferStatus
	VendorID uuid.UUID
	Amount   *money.Amount
}

// OfferPatch changes what is set.
type OfferPatch struct {
	Rate        *decimal.Decimal
	MinOrder    *money.Amount
	MaxOrder    *money.Amount
	Description *string
	Total       *money.Amount // of drafts only
}

// OrderFilter narrows a list of orders; the interval is half open.
type OrderFilter struct {
	Status      exchange.OrderStatus
	Type        exchange.OrderType
	Subtype     exchange.OrderSubtype
	OfferID     uuid.UUID
	CreatedFrom time.Time
	CreatedTo   time.Time
}

// PaymentKind says how a payment that arrived fits its order.
type PaymentKind string

// The kinds.
const (
	PaidExact     PaymentKind = "exact"
	PaidOver      PaymentKind = "over"
	PaidUnder     PaymentKind = "under"
	PaidLate      PaymentKind = "late"
	PaidDuplicate PaymentKind = "duplicate"
	PaidKnown     PaymentKind = "known" // booked before
)

// PaymentOutcome is what became of money that arrived. ChainPayment, Exception and Refund have a zero
// id where there is none.
type PaymentOutcome struct {
	Kind         PaymentKind
	Order        exchange.Order
	Attempt      exchange.PaymentAttempt
	ChainPayment exchange.ChainPayment
	Exception    exchange.PaymentException
	Refund       exchange.Refund
}

// RefundFilter narrows a list of refunds.
type RefundFilter struct {
	Status  exchange.RefundStatus
	OrderID uuid.UUID
}

// ExceptionFilter narrows a list of payment exceptions.
type ExceptionFilter struct {
	Status  exchange.ExceptionStatus
	Kind    exchange.ExceptionKind
	OrderID uuid.UUID
}

// WalletFilter narrows a list of wallets.
type WalletFilter struct {
	OwnerID uuid.UUID
	Network exchange.Network
	Purpose exchange.HousePurpose
}

// AccountFilter narrows a list of accounts.
type AccountFilter struct {
	Kind  exchange.AccountKind
	Owner uuid.UUID
	Asset money.Asset
}

// EntryFilter narrows a list of ledger entries.
type EntryFilter struct {
	ObjectType string
	ObjectID   uuid.UUID
	Account    *exchange.AccountRef
}

// EntryRecord is an entry as it was booked.
type EntryRecord struct {
	ID int64
	exchange.Entry
	At time.Time
}

// AuditFilter narrows a list of audit records; the interval is half open.
type AuditFilter struct {
	Actor      string
	Action     string
	ObjectType string
	ObjectID   uuid.UUID
	From, To   time.Time
}
