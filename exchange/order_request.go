package exchange

import (
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// OrderRequest is a request to open an order. Exactly one of Crypto and Fiat is set. A field that was added later
// says by its zero value what requests before it meant.
type OrderRequest struct {
	ID            uuid.UUID    `json:"id"`
	CustomerID    uuid.UUID    `json:"customer_id"`
	OfferID       uuid.UUID    `json:"offer_id"`
	Crypto        money.Amount `json:"crypto,omitzero"`
	Fiat          money.Amount `json:"fiat,omitzero"`
	WalletAddress string       `json:"wallet_address"` // of a purchase; empty: the customer's default wallet
	Phone         string       `json:"phone"`          // digits of the number that pays or is paid; empty: the customer's own
	ExpiresAt     time.Time    `json:"expires_at"`
	// ExpectedRate is the price that the customer saw; zero takes the offer's, whatever it is by now.
	ExpectedRate decimal.Decimal `json:"expected_rate,omitzero"`
	// Seen is what the API read of the offer. The flow can be found by it from its first moment; what counts
	// is the offer as it is when the order is opened.
	Seen SeenOffer `json:"seen,omitzero"`

	Type     OrderType    `json:"type,omitempty"`     // empty: ON_RAMP_BUY
	Subtype  OrderSubtype `json:"subtype,omitempty"`  // empty: the standard one of the type
	OpenerID uuid.UUID    `json:"opener_id,omitzero"` // who asks, where that is not the customer

	RefundAddress string    `json:"refund_address,omitempty"` // of a sale: where its crypto goes back to
	FundWalletID  uuid.UUID `json:"fund_wallet_id,omitzero"`  // of a sale: the customer's wallet that its crypto comes from
	PayoutMethod  string    `json:"payout_method,omitempty"`  // of a sale; empty: mobile money
	QuoteID       uuid.UUID `json:"quote_id,omitzero"`        // of a sale without an offer: the quote whose rate it has
	Network       Network   `json:"network,omitempty"`        // of a sale without an offer that is not paid from a wallet of ours
	// HasParties says that who sends and who gets the money was stored beside the request, under its id: no
	// history holds names and account numbers.
	HasParties bool `json:"has_parties,omitempty"`
}

// Kind finds the request's line in the table of kinds.
func (r OrderRequest) Kind() (OrderKind, bool) { return KindOf(r.Type, r.Subtype) }

// Method is how the shillings of the request move.
func (r OrderRequest) Method() string {
	if r.PayoutMethod == "" {
		return PaymentMethodMomo
	}
	return r.PayoutMethod
}

// SeenOffer is the part of an offer that never changes and that its orders are found by.
type SeenOffer struct {
	Network    Network     `json:"network"`
	Asset      money.Asset `json:"asset"`
	MerchantID uuid.UUID   `json:"merchant_id"`
}

// Limits of what a request says about people.
const (
	MaxSenderName      = 120 // characters
	MinSenderPhone     = 7   // digits, with the country's prefix; E.164 has at most 15
	MaxSenderPhone     = 15
	MaxBeneficiaryText = 120 // characters of names, branches and addresses
	MaxAccountNumber   = 34  // letters and digits, as the longest IBAN has
	MaxBankCode        = 20
	MaxRefundAddress   = 128
)

// Check holds a request against the rules of its kind: which fields it needs, which it must not have, and which
// form those about people have. What depends on offers, wallets and quotes is for the store. CodeInvalid names
// all fields at fault.
func (r OrderRequest) Check(k OrderKind, s Sender, b Beneficiary) error {
	c := checker{}
	c.amounts(r, k)
	c.needs(k.Offer != "", r.OfferID != uuid.Nil, "/offer_id", k)
	c.needs(k.Quote, r.QuoteID != uuid.Nil, "/fx_rate_quote_id", k)
	c.rule(!k.VendorOpens || r.OpenerID != uuid.Nil && r.CustomerID != uuid.Nil, "/customer", "required", "is required for "+k.Name())
	c.rule(k.VendorOpens || k.Merchants || r.OpenerID == uuid.Nil, "/customer", "forbidden", "must be left out of "+k.Name())
	c.rule(!k.Custodial || r.FundWalletID != uuid.Nil, "/wallet_id", "required", "is required: the crypto comes from this wallet of yours")
	c.rule(k.MayFund() || r.FundWalletID == uuid.Nil, "/wallet_id", "forbidden", "must be left out of "+k.Name())
	c.rule(!k.Quote || k.Custodial || r.FundWalletID != uuid.Nil || r.Network.Valid(), "/network", "required", "is required")
	c.rule(!k.OffRamp() || r.WalletAddress == "", "/wallet_address", "forbidden", "must be left out of a sale: the order names the address to pay to")
	c.rule(!k.VendorOpens || r.WalletAddress == "", "/wallet_address", "forbidden", "must be left out: the crypto goes to the customer's default wallet")
	c.rule(!k.VendorOpens || r.Phone == "", "/payment_phone_number", "forbidden", "must be left out: it is the customer's registered number")
	c.rule(k.OffRamp() || r.RefundAddress == "", "/refund_address", "forbidden", "must be left out of a purchase")
	c.rule(!k.VendorOpens || r.RefundAddress == "", "/refund_address", "forbidden", "must be left out: only the customer says where its crypto goes back to")
	c.rule(!k.Custodial || r.RefundAddress == "", "/refund_address", "forbidden", "must be left out: the crypto goes back to the wallet that it came from")
	c.method(r, k)
	c.sender(k, s)
	c.beneficiary(r, k, b)
	return Invalid(c.bad...)
}
