package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// OffRampFlow is the workflow id of an order that sells crypto. Money that arrives at its escrow address wakes it.
func OffRampFlow(order uuid.UUID) string { return "off-ramp:" + order.String() }

// DepositVerdict is how money that came to an order's escrow address fits the order.
type DepositVerdict string

// The verdicts.
const (
	TakenExact      DepositVerdict = "exact"
	TakenWaits      DepositVerdict = "waits"       // another amount, while the order may still be paid: it decides nothing yet
	TakenRepriced   DepositVerdict = "repriced"    // another amount, priced at the order's rate by the seller's word or when the order has expired
	TakenMismatch   DepositVerdict = "mismatch"    // another amount, which the seller or the offer does not take: all of it is returned
	TakenWrongAsset DepositVerdict = "wrong_asset" // another coin: it stays in suspense, and the order keeps waiting
	TakenDuplicate  DepositVerdict = "duplicate"   // the order already has its deposit
	TakenLate       DepositVerdict = "late"        // the order was closed
	TakenKnown      DepositVerdict = "known"       // already taken, or not to be taken
)

// DepositTaken is the result of taking a deposit. Exception and Refund have a zero id if there is none.
type DepositTaken struct {
	Verdict   DepositVerdict
	Order     Order
	Exception PaymentException
	Refund    Refund
}

// OtherDeposit is crypto of another amount than a sale asks for. It may be anybody's, so it decides nothing before the sale
// expires, unless the seller says what is to become of it. The zero value is none.
type OtherDeposit struct {
	ID     uuid.UUID
	TxID   string
	Amount money.Amount
	Fee    money.Amount // of the house for it
}

// DepositWord is what the seller of a sale says about crypto of another amount: to be paid for it, or to have it back. The
// kind of its intent says which of the two.
type DepositWord struct {
	DepositID uuid.UUID
	Digest    string // of what the seller saw
}

// Terms are what the seller says.
func (w DepositWord) Terms() Terms { return termsOf(w.terms()) }

func (w *DepositWord) terms() []term {
	return []term{idTerm("deposit_id", &w.DepositID), textTerm("digest", &w.Digest)}
}

// DepositWordOf is the word that an intent states.
func DepositWordOf(i Intent) (DepositWord, error) {
	var w DepositWord
	err := readTerms(i, w.terms())
	return w, err
}

// OtherPrice is what the sale would be paid for the other amount, at its own rate.
func (o Order) OtherPrice() Price {
	return o.soldFor(SellByCrypto(o.Other.Amount, o.Rate), o.Other.Fee)
}

// OtherDigest is the hash of what the seller sees of the other amount: how much came, by which transaction, and what would be
// paid for it.
func (o Order) OtherDigest() string {
	d := o.Other
	h := sha256.New()
	fmt.Fprintf(h, "kivuko other deposit v1\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n", o.ID, o.Network, d.ID, d.TxID, d.Amount.Asset(), d.Amount, o.Rate, o.OtherPrice().Fiat)
	return hex.EncodeToString(h.Sum(nil))
}

// AsksTheSeller reports whether another amount waits for the seller's word.
func (o Order) AsksTheSeller() bool { return o.Status == OrderPending && o.Other.ID != uuid.Nil }

// OwnedBy reports whether the order is the caller's own, or its merchant's.
func (o Order) OwnedBy(p Principal) bool {
	return o.CustomerID == p.UserID || p.Role.Merchant() && o.CustomerID == p.VendorID
}
