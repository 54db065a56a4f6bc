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

// RefundRail is the way in which a refund is paid.
type RefundRail string

// The rails.
const (
	RefundByMomo  RefundRail = "momo"  // shillings, to the payer's phone
	RefundOnChain RefundRail = "chain" // crypto, to an address that was given for it
	RefundByBank  RefundRail = "bank"  // shillings that belong to no order, to an account at a bank
)

// RefundRails lists the rails.
func RefundRails() []RefundRail { return []RefundRail{RefundByMomo, RefundOnChain, RefundByBank} }

// The details of a refund in crypto that waits for an officer.
const (
	RefundRejected = "rejected"        // an officer refused it
	RefundReturned = "address_refused" // it could not be sent to its address, and now has another one
)

// RefundCoolOff is the time between the last refused payout of an order and its refund in crypto, because operators report
// successes after failures. The database has the value in force.
const RefundCoolOff = 10 * time.Minute

// RefundWait is what a refund in crypto waits for before it may be sent.
type RefundWait string

// The values.
const (
	RefundReady        RefundWait = ""               // nothing
	RefundWaitsAddress RefundWait = "refund_address" // it has no address
	RefundWaitsPayout  RefundWait = "payout"         // a payout of its order may have paid, or has
	RefundWaitsCoolOff RefundWait = "cool_off"       // the cool-off after the last refused payout
	RefundWaitsClaim   RefundWait = "payout_claimed" // the payee is reported as paid after all
	RefundWaitsOfficer RefundWait = "officer"        // another officer must agree
	RefundWaitsRefused RefundWait = "rejected"       // an officer refused it
)

// RefundStanding is the current position of a refund in crypto.
type RefundStanding struct {
	Refund Refund
	Wait   RefundWait
	Until  time.Time // end of the cool-off
	Needed int       // officers who must agree besides those who asked for it and gave the address
	Agreed int
	// Payment carries it out; zero before the approval.
	Payment ChainPayment
}

// ChainRefundRequest requests a refund in crypto: of an order that can't be paid out, or of an exception. Exactly one of
// OrderID and ExceptionID is set.
type ChainRefundRequest struct {
	OrderID     uuid.UUID
	ExceptionID uuid.UUID
	RequestID   uuid.UUID // the officer's request; zero when a flow asks
	Reason      string
}

// RefundRequest is an officer's or customer's request: to refund an exception, or to set a refund's address. Exactly one of
// OrderID and ExceptionID is set.
type RefundRequest struct {
	ID          uuid.UUID // of the request
	OrderID     uuid.UUID
	ExceptionID uuid.UUID
	Address     string // in the canonical form of its network; empty to use the order's
	Reason      string
}

// MaxRefundReason is the most characters of the reason for a refund.
const MaxRefundReason = 500

// Intent is the hash of everything about a refund in crypto that an approval covers.
func (r Refund) Intent() string {
	h := sha256.New()
	fmt.Fprintf(h, "kivuko refund v1\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n", r.ID, r.Network, r.Amount.Asset(), r.Amount, r.WalletID, r.HoldID, r.Address)
	return hex.EncodeToString(h.Sum(nil))
}

// ValueUnknown is the value that counts for money without a valuation: one that needs the most officers of the rule.
func (r ApprovalRule) ValueUnknown() money.Amount {
	return r.TwoAbove.Add(money.Must(money.KES, "0.01"))
}

// SettledByPayout reports whether a refund in crypto ended because the payout that it was to replace proved to have been
// made. Its receipt is then the operator's.
func (r Refund) SettledByPayout() bool {
	const longestReceipt = 40 // of the operator; ids of transactions are longer
	return r.Rail == RefundOnChain && r.Status == RefundCompleted && len(r.Receipt) <= longestReceipt
}

// ChainOf returns the network that an exception's money came on. Its receipt is network:transaction:index; false for money
// that did not come on a chain.
func (x PaymentException) ChainOf() (Network, bool) {
	network, movement, found := strings.Cut(x.Receipt, ":")
	return Network(network), found && movement != "" && Network(network).Valid()
}

// InFlow reports whether the order's own flow decides about the exception's money.
func (x PaymentException) InFlow() bool { return x.Kind == ExcUnder || x.Kind == ExcOver }
