package exchange

import (
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// OrderType says what is exchanged and who opened the order: the suffix is the opener's side.
type OrderType string

// Customers open ON_RAMP_BUY and OFF_RAMP_SELL; vendors open ON_RAMP_SELL and OFF_RAMP_BUY for a
// named customer.
const (
	OnRampBuy   OrderType = "ON_RAMP_BUY"
	OnRampSell  OrderType = "ON_RAMP_SELL"
	OffRampBuy  OrderType = "OFF_RAMP_BUY"
	OffRampSell OrderType = "OFF_RAMP_SELL"
)

// Valid tells whether t is a known order type.
func (t OrderType) Valid() bool {
	return t == OnRampBuy || t == OnRampSell || t == OffRampBuy || t == OffRampSell
}

// OrderSubtype tells marketplace, remittance, custodial remittance and treasury flows apart.
type OrderSubtype string

// The subtypes.
const (
	StandardOnRamp             OrderSubtype = "standard_onramp"
	StandardOffRamp            OrderSubtype = "standard_offramp"
	RemittanceOffRamp          OrderSubtype = "remittance_offramp"
	CustodialRemittanceOffRamp OrderSubtype = "custodial_remittance_offramp"
	TreasuryOffRamp            OrderSubtype = "treasury_offramp"
)

// OrderStatus is the state of an order, the same six names for both directions.
type OrderStatus string

// The states of an order.
const (
	OrderPending    OrderStatus = "pending"
	OrderProcessing OrderStatus = "processing"
	OrderConfirming OrderStatus = "confirming"
	OrderCompleted  OrderStatus = "completed"
	OrderCancelled  OrderStatus = "cancelled"
	OrderFailed     OrderStatus = "failed"
)

// OnRampMachine governs orders that buy crypto.
var OnRampMachine = Machine[OrderStatus]{
	Name: "on_ramp_order", Initial: OrderPending,
	Transitions: []Transition[OrderStatus]{
		{OrderPending, OrderProcessing, ByFlow, "the payment is proven by two witnesses"},
		{OrderPending, OrderCancelled, string(RoleCustomer), "cancelled with no debit proven"},
		{OrderPending, OrderCancelled, ByFlow, "expired with no debit proven"},
		{OrderPending, OrderFailed, ByFlow, "the payer declined, or paid too little and is refunded"},
		{OrderProcessing, OrderConfirming, ByFlow, "the crypto was broadcast"},
		{OrderConfirming, OrderProcessing, ByFlow, "the transaction was dropped or reorganised away"},
		{OrderConfirming, OrderCompleted, ByFlow, "the transfer is final"},
		{OrderProcessing, OrderCompleted, ByFlow, "the transfer was final before its broadcast was recorded"},
		{OrderProcessing, OrderFailed, ByOperator, "a refund is opened"},
		{OrderConfirming, OrderFailed, ByOperator, "a refund is opened"},
	},
	Final: []OrderStatus{OrderCompleted, OrderCancelled, OrderFailed},
}

// OffRampMachine governs orders that sell crypto.
var OffRampMachine = Machine[OrderStatus]{
	Name: "off_ramp_order", Initial: OrderPending,
	Transitions: []Transition[OrderStatus]{
		{OrderPending, OrderConfirming, ByFlow, "a deposit is seen"},
		{OrderPending, OrderCancelled, string(RoleCustomer), "cancelled before a deposit"},
		{OrderPending, OrderCancelled, ByFlow, "expired before a deposit"},
		{OrderConfirming, OrderPending, ByFlow, "the deposit was reorganised away"},
		{OrderConfirming, OrderProcessing, ByFlow, "the deposit is final, the payout is under way"},
		{OrderProcessing, OrderCompleted, ByFlow, "the payout is proven"},
		{OrderProcessing, OrderFailed, ByFlow, "a definite refusal, with a refund of the crypto opened"},
	},
	Final: []OrderStatus{OrderCompleted, OrderCancelled, OrderFailed},
}

// The values of an order's StatusDetail: what it waits for, in one word.
const (
	WaitPrompt       = "prompt"        // the prompt is on its way to the payer
	WaitPayment      = "payment"       // the payer has the prompt
	WaitRetry        = "payment_retry" // the last prompt failed; the customer may ask for another
	WaitOutcome      = "outcome"       // the operator has not said what became of the prompt
	WaitReceipt      = "receipt"       // paid, but the operator's receipt is not known yet
	WaitSignature    = "signature"
	WaitWatch        = "chain_watch" // nothing is signed before the chain was read up to now
	WaitBroadcast    = "broadcast"
	WaitFinality     = "finality"
	WaitOperator     = "operator" // parked
	WaitNothing      = "none"
	DetailDeclined   = "declined"
	DetailExpired    = "expired"
	DetailCancelled  = "cancelled_by_customer"
	DetailUnderpaid  = "underpaid"
	DetailRefundOpen = "refund_opened"
)

// OrderLife is how long a customer has to pay.
const OrderLife = 15 * time.Minute

// PaymentMethodMomo is the payment method of orders paid by mobile money.
const PaymentMethodMomo = "momo"

// Order is a customer's purchase or sale. Optional texts are empty and optional times zero; the API
// gives them their nullable form.
type Order struct {
	ID              uuid.UUID
	CustomerID      uuid.UUID
	VendorID        uuid.UUID
	OfferID         uuid.UUID
	Type            OrderType
	Subtype         OrderSubtype
	Network         Network
	Asset           money.Asset
	Rate            decimal.Decimal
	Price           Price
	WalletID        uuid.UUID // the vendor's wallet that pays or receives the crypto
	WalletAddress   string    // where the customer's crypto goes
	RefundAddress   string
	Status          OrderStatus
	StatusDetail    string
	PaymentMethod   string
	PaymentPhone    Phone
	HoldID          uuid.UUID
	PaymentTxnID    string // the receipt of the winning attempt
	TxHash          string // of the crypto leg
	MerchantRequest string
	CheckoutRequest string
	MomoReceipt     string
	SenderName      string
	SenderCountry   string
	SenderPhone     string
	Beneficiary     Beneficiary
	EscrowAddress   string
	EscrowNetwork   string
	EscrowReference string
	DepositTxHash   string
	DepositConfirms int
	DepositAt       time.Time
	ExpiresAt       time.Time
	CompletedAt     time.Time
	CreatedAt       time.Time
	UpdatedAt       time.Time
	DeletedAt       time.Time
	Version         int64
}

// Beneficiary is who is paid by bank at the end of a remittance.
type Beneficiary struct {
	BankName, BankCode, BankBranch, BankAddress string
	AccountName, AccountNumber, SwiftCode       string
}

// Machine is the state machine that governs the order.
func (o Order) Machine() Machine[OrderStatus] {
	if o.Type == OnRampBuy || o.Type == OnRampSell {
		return OnRampMachine
	}
	return OffRampMachine
}

// PaymentReference is what the payer reads on the prompt: "KVK" and nine characters of the order's
// id that come from its random part, twelve in all, the operator's limit.
func (o Order) PaymentReference() string {
	hex := o.ID.String()
	return "KVK" + upper(hex[len(hex)-9:])
}

func upper(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'a' && c <= 'f' {
			b[i] = c - 32
		}
	}
	return string(b)
}

// OrderRequest is a checked request to open an on-ramp order. Exactly one of Crypto and Fiat is set.
type OrderRequest struct {
	ID            uuid.UUID    `json:"id"`
	CustomerID    uuid.UUID    `json:"customer_id"`
	OfferID       uuid.UUID    `json:"offer_id"`
	Crypto        money.Amount `json:"crypto,omitzero"`
	Fiat          money.Amount `json:"fiat,omitzero"`
	WalletAddress string       `json:"wallet_address"` // empty: the customer's default wallet
	Phone         string       `json:"phone"`          // digits of the payer's number; empty: the customer's own
	ExpiresAt     time.Time    `json:"expires_at"`
	// ExpectedRate is the price that the customer saw; zero takes the offer's, whatever it is by now.
	ExpectedRate decimal.Decimal `json:"expected_rate,omitzero"`
	// Seen is what the API read of the offer. The flow can be found by it from its first moment; what counts
	// is the offer as it is when the order is opened.
	Seen SeenOffer `json:"seen,omitzero"`
}

// SeenOffer is the part of an offer that never changes and that its orders are found by.
type SeenOffer struct {
	Network    Network     `json:"network"`
	Asset      money.Asset `json:"asset"`
	MerchantID uuid.UUID   `json:"merchant_id"`
}
