package exchange

import (
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// OfferType is the side that the vendor takes.
type OfferType string

// A SELL offer sells crypto for KES; a BUY offer buys crypto for KES.
const (
	OfferSell OfferType = "SELL"
	OfferBuy  OfferType = "BUY"
)

// Valid reports whether t is a known offer type.
func (t OfferType) Valid() bool { return t == OfferSell || t == OfferBuy }

// OfferStatus is the state of an offer.
type OfferStatus string

// The states of an offer.
const (
	OfferDraft     OfferStatus = "draft"
	OfferActive    OfferStatus = "active"
	OfferPaused    OfferStatus = "paused"
	OfferExhausted OfferStatus = "exhausted" // less left than the minimum order
	OfferSuspended OfferStatus = "suspended" // by an admin
	OfferClosed    OfferStatus = "closed"
)

// OfferMachine governs offers.
var OfferMachine = Machine[OfferStatus]{
	Name: "offer", Initial: OfferDraft,
	Transitions: []Transition[OfferStatus]{
		{OfferDraft, OfferActive, string(RoleVendor), "published, and its funds are held"},
		{OfferDraft, OfferClosed, string(RoleVendor), "given up before publishing"},
		{OfferActive, OfferPaused, string(RoleVendor), "paused"},
		{OfferPaused, OfferActive, string(RoleVendor), "resumed"},
		{OfferActive, OfferExhausted, ByFlow, "the amount left fell below the minimum order"},
		{OfferExhausted, OfferActive, ByFlow, "an order returned its reservation"},
		{OfferActive, OfferSuspended, string(RoleAdmin), "suspended"},
		{OfferPaused, OfferSuspended, string(RoleAdmin), "suspended"},
		{OfferExhausted, OfferSuspended, string(RoleAdmin), "suspended"},
		{OfferSuspended, OfferPaused, string(RoleAdmin), "the suspension is lifted, and the vendor may resume it"},
		{OfferActive, OfferClosed, string(RoleVendor), "closed, and the rest of its funds is released"},
		{OfferPaused, OfferClosed, string(RoleVendor), "closed, and the rest of its funds is released"},
		{OfferExhausted, OfferClosed, string(RoleVendor), "closed, and the rest of its funds is released"},
		{OfferSuspended, OfferClosed, string(RoleAdmin), "closed, and the rest of its funds is released"},
	},
	Final: []OfferStatus{OfferClosed},
}

// MinRate and MaxRate bound the price of a unit of a stablecoin, in KES. They are far outside the market and catch a
// misplaced decimal point.
var (
	MinRate = decimal.New(1, 0)
	MaxRate = decimal.New(10_000, 0)
)

// RateCollar is how many basis points an offer's rate may lie from the market's: beyond it an offer is a way to give money
// away under another name. The database has the same value.
const RateCollar = 2000

// WithinCollar reports whether a rate lies within the collar around a reference.
func WithinCollar(rate, reference decimal.Decimal) bool {
	return rate.Sub(reference).Abs().Mul(decimal.New(basisPoints, 0)).LessThanOrEqual(reference.Mul(decimal.New(RateCollar, 0)))
}

// RatePlaces is the number of decimal places of a rate in KES per unit of the stablecoin.
const RatePlaces = 6

// MaxOfferDescription bounds the description, in characters.
const MaxOfferDescription = 500

// Offer is a vendor's standing offer to trade. Total, Available, MinOrder and MaxOrder are in its asset.
type Offer struct {
	ID          uuid.UUID
	VendorID    uuid.UUID // the master merchant
	CreatedBy   uuid.UUID
	Type        OfferType
	Network     Network
	Asset       money.Asset
	WalletID    uuid.UUID // the vendor's wallet that pays out (SELL) or receives (BUY)
	Total       money.Amount
	Available   money.Amount // the part that is left, in its asset; zero while draft or closed
	Reserved    money.Amount // the amount of its hold, in the asset of FundingAccount
	Rate        decimal.Decimal
	MinOrder    money.Amount
	MaxOrder    money.Amount
	Status      OfferStatus
	Description string
	HoldID      uuid.UUID
	CreatedAt   time.Time
	UpdatedAt   time.Time
	DeletedAt   time.Time
	Version     int64
}

// Validate checks an offer as a vendor sent it.
func (o Offer) Validate() error {
	var bad []FieldError
	rule := func(ok bool, pointer, code, message string) {
		if !ok {
			bad = append(bad, FieldError{pointer, code, message})
		}
	}
	rule(o.Type.Valid(), "/offer_type", "enum", "must be SELL or BUY")
	rule(o.Network.Valid(), "/network", "enum", "must be ethereum, tron or solana")
	rule(o.Asset.Stablecoin(), "/asset", "enum", "must be USDT or USDC")
	rule(o.Rate.Cmp(MinRate) >= 0 && o.Rate.Cmp(MaxRate) <= 0, "/rate", "range", "must be from "+MinRate.String()+" to "+MaxRate.String()+" KES")
	rule(o.Total.Positive(), "/usdt_amount", "range", "must be above zero")
	rule(o.MinOrder.Positive(), "/min_order", "range", "must be above zero")
	rule(o.MaxOrder.Cmp(o.MinOrder) >= 0, "/max_order", "range", "must not be below min_order")
	rule(o.Total.Cmp(o.MinOrder) >= 0, "/usdt_amount", "range", "must not be below min_order")
	rule(len([]rune(o.Description)) <= MaxOfferDescription, "/description", "too_long", "must have at most 500 characters")
	return Invalid(bad...)
}

// FundingAccount is the account whose balance the offer holds.
func (o Offer) FundingAccount() AccountRef {
	if o.Type == OfferSell {
		return Owned(AccWalletBalance, o.WalletID, o.Asset)
	}
	return Owned(AccFiatBalance, o.VendorID, money.KES)
}

// After converts the amount of the offer's hold into what the offer has left in its asset: a BUY offer holds
// shillings.
func (o Offer) After(reserved money.Amount) money.Amount {
	if o.Type == OfferSell {
		return reserved
	}
	return reserved.DivFloor(o.Asset, o.Rate)
}

// StatusFor returns the state of an open offer with the given amount left.
func (o Offer) StatusFor(available money.Amount) OfferStatus {
	low := available.Cmp(o.MinOrder) < 0
	switch {
	case o.Status == OfferActive && low:
		return OfferExhausted
	case o.Status == OfferExhausted && !low:
		return OfferActive
	}
	return o.Status
}
