package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// OrderType is the direction of an order and who opened it: the suffix is the opener's side.
type OrderType string

// Customers open ON_RAMP_BUY and OFF_RAMP_SELL; vendors open ON_RAMP_SELL and OFF_RAMP_BUY for a
// named customer.
const (
	OnRampBuy   OrderType = "ON_RAMP_BUY"
	OnRampSell  OrderType = "ON_RAMP_SELL"
	OffRampBuy  OrderType = "OFF_RAMP_BUY"
	OffRampSell OrderType = "OFF_RAMP_SELL"
)

// Valid reports whether t is a known order type.
func (t OrderType) Valid() bool {
	return t == OnRampBuy || t == OnRampSell || t == OffRampBuy || t == OffRampSell
}

// OffRamp reports whether orders of the type sell crypto for shillings.
func (t OrderType) OffRamp() bool { return t == OffRampBuy || t == OffRampSell }

// OrderSubtype distinguishes marketplace, remittance, custodial remittance and treasury orders.
type OrderSubtype string

// The subtypes.
const (
	StandardOnRamp             OrderSubtype = "standard_onramp"
	StandardOffRamp            OrderSubtype = "standard_offramp"
	RemittanceOffRamp          OrderSubtype = "remittance_offramp"
	CustodialRemittanceOffRamp OrderSubtype = "custodial_remittance_offramp"
	TreasuryOffRamp            OrderSubtype = "treasury_offramp" // the house buys
	TreasuryOnRamp             OrderSubtype = "treasury_onramp"  // the house sells
)

// OrderSubtypes lists the subtypes.
func OrderSubtypes() []OrderSubtype {
	return []OrderSubtype{StandardOnRamp, StandardOffRamp, RemittanceOffRamp, CustodialRemittanceOffRamp, TreasuryOffRamp, TreasuryOnRamp}
}

// Treasury reports whether orders of the subtype are with the house, and have no offer by their nature.
func (s OrderSubtype) Treasury() bool { return s == TreasuryOffRamp || s == TreasuryOnRamp }

// OrderStatus is the state of an order. Both directions use the same six names.
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
		{OrderPending, OrderProcessing, ByFlow, "the payment is proven by two sources"},
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
		{OrderConfirming, OrderFailed, ByFlow, "the deposit does not fit the offer and goes back"},
		{OrderProcessing, OrderCompleted, ByFlow, "the payout is proven"},
		{OrderProcessing, OrderFailed, ByFlow, "a definite refusal, with a refund of the crypto opened"},
		{OrderProcessing, OrderFailed, ByOperator, "a refund of the crypto is opened"},
	},
	Final: []OrderStatus{OrderCompleted, OrderCancelled, OrderFailed},
}

// The values of an order's StatusDetail: what it waits for, or why it ended.
const (
	WaitPrompt       = "prompt"        // the prompt is on its way to the payer
	WaitPayment      = "payment"       // the payer has the prompt
	WaitRetry        = "payment_retry" // the last prompt failed; the customer may ask for another
	WaitOutcome      = "outcome"       // the outcome of the prompt is unknown
	WaitReceipt      = "receipt"       // paid, but the operator's receipt is missing
	WaitSignature    = "signature"
	WaitWatch        = "chain_watch" // the chain must be read up to its newest block before anything is signed
	WaitFrozen       = "frozen"      // an officer has frozen all outgoing payments
	WaitBroadcast    = "broadcast"
	WaitFinality     = "finality"
	WaitOperator     = "operator" // parked
	WaitNothing      = "none"
	DetailDeclined   = "declined"
	DetailExpired    = "expired"
	DetailCancelled  = "cancelled_by_customer"
	DetailUnderpaid  = "underpaid"
	DetailRefundOpen = "refund_opened"

	WaitDeposit         = "deposit"          // the seller's crypto has not been seen yet
	WaitOtherAmount     = "other_amount"     // crypto of another amount came: the seller may be paid for it or have it back
	WaitDepositFinality = "deposit_finality" // it was seen in a block that may still be undone
	WaitPayout          = "payout"           // the payout is on its way
	WaitFloat           = "float"            // the float at the operator is too small for the payout
	WaitSuspended       = "payout_suspended" // the operator refuses our credentials, or the database is not released: all payouts are suspended
	WaitPayeeDay        = "payee_day"        // the payee has reached the operator's daily limit
	WaitBank            = "bank"             // an officer must pay by bank
	WaitBankSecond      = "bank_second"      // a second officer must confirm the bank payment
	DetailMismatch      = "deposit_mismatch"
)

// OrderLife is how long a customer has to pay. OffRampLife is how long a seller has to send the crypto. It is longer
// because a chain may be busy, and an exchange may take time to process a withdrawal.
const (
	OrderLife   = 15 * time.Minute
	OffRampLife = 30 * time.Minute
)

// How the shillings of an order are paid.
const (
	PaymentMethodMomo = "momo" // by mobile money
	PaymentMethodBank = "bank" // by an officer at a bank
)

// Order is a customer's purchase or sale. Absent texts are empty and absent times are zero; the API shows both as
// null.
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
	WalletID        uuid.UUID    // the vendor's wallet that pays or receives the crypto
	WalletAddress   string       // where the crypto is sent: the customer's wallet, or the escrow address of a sale
	RefundAddress   string       // of a sale: where its crypto is returned to; empty until the customer names it
	AskedAmount     money.Amount // the crypto that was requested; a sale may be repriced by the amount that arrives
	OpenedBy        uuid.UUID    // the merchant that opened it for a customer; zero where the customer did
	QuoteID         uuid.UUID    // the quote that its rate comes from; zero when the rate is an offer's
	ProfileID       uuid.UUID    // the version of the fees, frozen at opening; zero without one
	NetworkFee      money.Amount // what the networks took from the house for its payments, in the network's coin
	FundWalletID    uuid.UUID    // of a sale: the customer's custodial wallet that funds it; zero when the crypto comes from outside
	Status          OrderStatus
	StatusDetail    string
	PaymentMethod   string
	PaymentPhone    Phone
	HoldID          uuid.UUID
	PaymentTxnID    string // the receipt of the winning attempt
	TxHash          string // of the crypto transfer
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
	WaitsUntil      time.Time // of a sale whose deposit a reorganisation removed: it waits at least so long again
	CompletedAt     time.Time
	CreatedAt       time.Time
	UpdatedAt       time.Time
	DeletedAt       time.Time
	Version         int64

	Other            OtherDeposit // of a sale: the largest final deposit of another amount, while nothing was decided
	PaymentReference string       // what the payer reads on the prompt, and officers put on a payment by bank
}

// Charged is the order's price, which has no fee yet, with the fee of a profile: on what is paid for a purchase, or on the value of
// the crypto of a sale. The vendor bears it, except at a quote.
func (o Order) Charged(f FeeProfile) Price {
	switch {
	case !o.OffRamp() && o.QuoteID != uuid.Nil:
		return o.Price.PurchaseFeeInside(f.Fee(o.Price.Fiat))
	case !o.OffRamp():
		return o.Price.PurchaseFee(f.Fee(o.Price.Fiat))
	}
	return o.soldFor(o.Price, f.Fee(o.Price.Vendor))
}

func (o Order) soldFor(p Price, fee money.Amount) Price {
	switch {
	case !fee.Positive():
		return p
	case o.QuoteID == uuid.Nil:
		return p.SaleFee(fee)
	}
	return p.SaleFeeInside(fee)
}

// DecidedAt is when crypto of another amount than a sale's decides it without its seller's word.
func (o Order) DecidedAt() time.Time {
	if o.WaitsUntil.After(o.ExpiresAt) {
		return o.WaitsUntil
	}
	return o.ExpiresAt
}

// Beneficiary is the final payee of a remittance, by bank or by mobile money.
type Beneficiary struct {
	BankName, BankCode, BankBranch, BankAddress string
	AccountName, AccountNumber, SwiftCode       string
}

// Machine is the state machine that governs the order.
func (o Order) Machine() Machine[OrderStatus] {
	if o.OffRamp() {
		return OffRampMachine
	}
	return OnRampMachine
}

// OffRamp reports whether the order sells crypto for shillings.
func (o Order) OffRamp() bool { return o.Type.OffRamp() }

// Kind returns the order's row in the table of kinds.
func (o Order) Kind() OrderKind {
	k, _ := KindOf(o.Type, o.Subtype)
	return k
}

// PaymentReferences are the references that an order may get, in their order: "KVK" and nine hexadecimal digits. The first
// are the last digits of the order's id, which are random; the others derive from the id. Twelve characters are the
// operator's limit, and 36 bits are few enough that two orders may meet, so an order takes the first that no other has.
func PaymentReferences(order uuid.UUID) []string {
	const draws = 8
	all := make([]string, draws)
	for n := range all {
		digits := order.String()
		if n > 0 {
			sum := sha256.Sum256(fmt.Appendf(nil, "kivuko payment reference %s %d", order, n))
			digits = hex.EncodeToString(sum[:])
		}
		all[n] = "KVK" + upper(digits[len(digits)-9:])
	}
	return all
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
