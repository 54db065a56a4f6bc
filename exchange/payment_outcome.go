package exchange

// PaymentKind is how a received payment fits its object.
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

// PaymentOutcome is what Kivuko did with a received payment. Order is zero for another object. ChainPayment, Exception and
// Refund have a zero id where there is none.
type PaymentOutcome struct {
	Kind         PaymentKind
	Object       Collectable // as it is after the payment
	Attempt      PaymentAttempt
	Order        Order
	ChainPayment ChainPayment // of the crypto that the order buys
	Exception    PaymentException
	Refund       Refund
}
