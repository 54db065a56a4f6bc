package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// RefundRail says on which way a refund goes back.
type RefundRail string

// The rails.
const (
	RefundByMomo  RefundRail = "momo"  // shillings, to the payer's phone
	RefundOnChain RefundRail = "chain" // crypto, to an address that somebody gave
)

// The details of a refund in crypto that waits for a person.
const (
	RefundRejected = "rejected"        // an officer refused it as it is
	RefundReturned = "address_refused" // it could not be sent to its address, and has another one
)

// RefundCoolOff is how long a refund in crypto waits after the last payout of its order was refused, because operators
// report successes after failures. The database holds the value that counts.
const RefundCoolOff = 10 * time.Minute

// RefundWait is what a refund in crypto waits for before it may be sent, in one word.
type RefundWait string

// What a refund in crypto waits for.
const (
	RefundReady        RefundWait = ""               // nothing
	RefundWaitsAddress RefundWait = "refund_address" // nobody has said where it goes
	RefundWaitsPayout  RefundWait = "payout"         // a payout of its order may have paid, or has
	RefundWaitsCoolOff RefundWait = "cool_off"       // the last payout was refused a moment ago
	RefundWaitsClaim   RefundWait = "payout_claimed" // somebody says that the payee was paid after all
	RefundWaitsOfficer RefundWait = "officer"        // somebody else has to agree
	RefundWaitsRefused RefundWait = "rejected"       // an officer refused it as it is
)

// RefundStanding is where a refund in crypto stands.
type RefundStanding struct {
	Refund Refund
	Wait   RefundWait
	Until  time.Time // end of the cool-off
	Needed int       // persons who have to agree beside who asked for it and who gave the address
	Agreed int
	// Payment carries it out; the zero payment before it is approved.
	Payment ChainPayment
}

// ChainRefundRequest asks for crypto back: of an order that can't be paid out, or of an exception. Exactly one of
// OrderID and ExceptionID is set.
type ChainRefundRequest struct {
	OrderID     uuid.UUID
	ExceptionID uuid.UUID
	RequestID   uuid.UUID // of what a person asked for; zero where a flow asks
	Reason      string
}

// RefundRequest is what a person asked for: the money of an exception back, or an address for a refund. Exactly one of
// OrderID and ExceptionID is set.
type RefundRequest struct {
	ID          uuid.UUID // of the request
	OrderID     uuid.UUID
	ExceptionID uuid.UUID
	Address     string // in the canonical form of its network; empty where the order's counts
	Reason      string
}

// MaxRefundReason is the length of the reason for a refund, in characters.
const MaxRefundReason = 500

// Intent is the hash of everything about a refund in crypto that an approval covers.
func (r Refund) Intent() string {
	h := sha256.New()
	fmt.Fprintf(h, "kivuko refund v1\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n", r.ID, r.Network, r.Amount.Asset(), r.Amount, r.WalletID, r.HoldID, r.Address)
	return hex.EncodeToString(h.Sum(nil))
}

// CryptoBackNeeds is how many persons have to agree to a refund in crypto, beside who asked for it and who gave its
// address. It was doubted when nobody knew, at some time, whether the payee had been paid. The database counts the same.
func CryptoBackNeeds(r Refund, doubted bool, rule ApprovalRule) int {
	need := rule.Required(r.Value)
	if need == 0 && (r.AddressedBy != uuid.Nil || (doubted && r.ExceptionID == uuid.Nil)) {
		need = 1
	}
	return need
}

// ValueUnknown is what counts as the value of money that nobody can value: more than any number of persons short of
// all that the rule ever asks for decides about.
func (r ApprovalRule) ValueUnknown() money.Amount {
	return r.TwoAbove.Add(money.Must(money.KES, "0.01"))
}

// SettledByPayout tells whether a refund in crypto ended because the payout proved true that it was to make good for.
// Its receipt is the operator's then.
func (r Refund) SettledByPayout() bool {
	const longestReceipt = 40 // of the operator; ids of transactions are longer
	return r.Rail == RefundOnChain && r.Status == RefundCompleted && len(r.Receipt) <= longestReceipt
}

// ChainOf is the network that an exception's money came on, by its receipt, which names the movement as
// network:transaction:index; false for money that came on none.
func (x PaymentException) ChainOf() (Network, bool) {
	network, movement, found := strings.Cut(x.Receipt, ":")
	return Network(network), found && movement != "" && Network(network).Valid()
}

// InFlow tells whether what becomes of the exception's money is in the hands of its order's own flow: it decided over
// the order.
func (x PaymentException) InFlow() bool { return x.Kind == ExcUnder || x.Kind == ExcOver }
