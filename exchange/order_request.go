package exchange

import (
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// OrderRequest is a request to open an order. Exactly one of Crypto and Fiat is set. The zero value of a field that
// was added later means what requests before it meant.
type OrderRequest struct {
	ID            uuid.UUID    `json:"id"`
	CustomerID    uuid.UUID    `json:"customer_id"`
	OfferID       uuid.UUID    `json:"offer_id"`
	Crypto        money.Amount `json:"crypto,omitzero"`
	Fiat          money.Amount `json:"fiat,omitzero"`
	WalletAddress string       `json:"wallet_address"` // of a purchase; empty: the customer's default wallet
	Phone         string       `json:"phone"`          // digits of the number that pays or is paid; empty: the customer's own
	ExpiresAt     time.Time    `json:"expires_at"`
	// ExpectedRate is the rate that the customer saw; zero accepts the offer's current rate.
	ExpectedRate decimal.Decimal `json:"expected_rate,omitzero"`
	// Seen is what the API read of the offer, so that the flow can be found by it from its start. The price comes
	// from the offer as it is when the order is opened.
	Seen SeenOffer `json:"seen,omitzero"`

	Type     OrderType    `json:"type,omitempty"`     // empty: ON_RAMP_BUY
	Subtype  OrderSubtype `json:"subtype,omitempty"`  // empty: the standard one of the type
	OpenerID uuid.UUID    `json:"opener_id,omitzero"` // who asks, if not the customer

	RefundAddress string    `json:"refund_address,omitempty"` // of a sale: where its crypto is returned to
	FundWalletID  uuid.UUID `json:"fund_wallet_id,omitzero"`  // of a sale: the customer's wallet that funds it
	PayoutMethod  string    `json:"payout_method,omitempty"`  // of a sale; empty: mobile money
	Provider      string    `json:"provider,omitempty"`       // of a mobile money sale: who pays it out; set by the worker that opens it, and no term of the intent
	QuoteID       uuid.UUID `json:"quote_id,omitzero"`        // of a sale without an offer: the quote that sets the rate
	Network       Network   `json:"network,omitempty"`        // of a sale without an offer that is sent from outside
	// HasParties is set when the sender and the beneficiary are stored beside the request, under its id. This keeps
	// names and account numbers out of workflow histories.
	HasParties bool `json:"has_parties,omitempty"`
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
	Network    Network     `json:"network"`
	Asset      money.Asset `json:"asset"`
	MerchantID uuid.UUID   `json:"merchant_id"`
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
// data. The store checks offers, wallets and quotes. CodeInvalid lists every field at fault.
func (r OrderRequest) Check(k OrderKind, s Sender, b Beneficiary) error {
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
	c.sender(k, s)
	c.beneficiary(r, k, b)
	return Invalid(c.bad...)
}
