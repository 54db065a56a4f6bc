package exchange

import (
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// OrderRequest is a request to open an order. Exactly one of Crypto and Fiat is set. It is written down only as the terms
// of an intent, so that no payload of a flow has names or numbers of accounts.
type OrderRequest struct {
	ID            uuid.UUID
	CustomerID    uuid.UUID
	OfferID       uuid.UUID
	Crypto        money.Amount
	Fiat          money.Amount
	WalletAddress string // of a purchase; empty: the customer's default wallet
	Phone         string // digits of the number that pays or is paid; empty: the customer's own
	ExpiresAt     time.Time
	// ExpectedRate is the rate that the customer saw; zero accepts the offer's current rate.
	ExpectedRate decimal.Decimal
	// Seen is what the API read of the offer, so that the flow can be found by it from its start. The price comes
	// from the offer as it is when the order is opened.
	Seen SeenOffer

	Type     OrderType    // empty: ON_RAMP_BUY
	Subtype  OrderSubtype // empty: the standard one of the type
	OpenerID uuid.UUID    // who asks, if not the customer

	RefundAddress string    // of a sale: where its crypto is returned to
	FundWalletID  uuid.UUID // of a sale: the customer's wallet that funds it
	PayoutMethod  string    // of a sale; empty: mobile money
	Provider      string    // of a mobile money sale: who pays it out; set by the worker that opens it, and no term of the intent
	QuoteID       uuid.UUID // of an order without an offer: the quote that sets the rate
	Network       Network   // of a purchase without an offer, and of a sale without one that is sent from outside

	Sender      Sender      // of a remittance
	Beneficiary Beneficiary // of a remittance, and of every payout by bank
}

// Kind returns the request's row in the table of kinds.
func (r OrderRequest) Kind() (OrderKind, bool) { return KindOf(r.Type, r.Subtype) }

// Method is how the shillings of the request are paid.
func (r OrderRequest) Method() string {
	if r.PayoutMethod == "" {
		return PaymentMethodMomo
	}
	return r.PayoutMethod
}

// SeenOffer is the part of an offer that never changes and by which its orders are found.
type SeenOffer struct {
	Network    Network
	Asset      money.Asset
	MerchantID uuid.UUID
}

// Limits of the sender's and beneficiary's data.
const (
	MaxSenderName      = 120 // characters
	MinSenderPhone     = 7   // digits, with the country's prefix; E.164 has at most 15
	MaxSenderPhone     = 15
	MaxBeneficiaryText = 120 // characters of names, branches and addresses
	MaxAccountNumber   = 34  // letters and digits; the longest IBAN has as many
	MaxBankCode        = 20
)

// Check checks a request against the rules of its kind: required and forbidden fields, and the format of personal
// data. The store checks offers, wallets, quotes and countries. CodeInvalid lists every field at fault.
func (r OrderRequest) Check(k OrderKind) error {
	c := checker{}
	c.amounts(r, k)
	c.needs(k.Offer != "", r.OfferID != uuid.Nil, "/offer_id", k)
	c.needs(k.Quote, r.QuoteID != uuid.Nil, "/fx_rate_quote_id", k)
	c.rule(!k.VendorOpens || r.OpenerID != uuid.Nil && r.CustomerID != uuid.Nil, "/customer", "required", "is required for "+k.Name())
	c.rule(k.VendorOpens || k.Merchants || r.OpenerID == uuid.Nil, "/customer", "forbidden", "must be left out of "+k.Name())
	c.rule(!k.Custodial || r.FundWalletID != uuid.Nil, "/wallet_id", "required", "is required: this wallet of yours funds the order")
	c.rule(k.MayFund() || r.FundWalletID == uuid.Nil, "/wallet_id", "forbidden", "must be left out of "+k.Name())
	c.rule(!k.Quote || k.Custodial || r.FundWalletID != uuid.Nil || r.Network.Valid(), "/network", "required", "is required")
	c.rule(!k.OffRamp() || r.WalletAddress == "", "/wallet_address", "forbidden", "must be left out of a sale: the order names the address to pay to")
	c.rule(!k.VendorOpens || r.WalletAddress == "", "/wallet_address", "forbidden", "must be left out: the crypto goes to the customer's default wallet")
	c.rule(!k.VendorOpens || r.Phone == "", "/payment_phone_number", "forbidden", "must be left out: the customer's registered number is used")
	c.rule(k.OffRamp() || r.RefundAddress == "", "/refund_address", "forbidden", "must be left out of a purchase")
	c.rule(!k.VendorOpens || r.RefundAddress == "", "/refund_address", "forbidden", "must be left out: only the customer may name it")
	c.rule(!k.Custodial || r.RefundAddress == "", "/refund_address", "forbidden", "must be left out: the crypto returns to the wallet that funded the order")
	c.method(r, k)
	c.sender(k, r.Sender)
	c.beneficiary(r, k, r.Beneficiary)
	return Invalid(c.bad...)
}
