package exchange

// PaymentKind is how a received payment fits its order.
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

// PaymentOutcome is what Kivuko did with a received payment. ChainPayment, Exception and Refund have a zero id where
// there is none.
type PaymentOutcome struct {
	Kind         PaymentKind
	Order        Order
	Attempt      PaymentAttempt
	ChainPayment ChainPayment
	Exception    PaymentException
	Refund       Refund
}
