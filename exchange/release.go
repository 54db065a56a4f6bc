package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// ReleasePurpose is the kind of object that value leaves for.
type ReleasePurpose string

// The purposes of releases. The table release_purposes says which values of the approval rules count for each, and whose
// destinations don't rest.
const (
	ReleaseTransfer ReleasePurpose = "transfer"
	ReleaseFunding  ReleasePurpose = "funding" // crypto that funds a sale from a wallet in our custody
	ReleaseRefund   ReleasePurpose = "refund"  // shillings or crypto that go back
	ReleasePayout   ReleasePurpose = "payout"  // the shillings of an order that sells crypto
	// What a merchant withdraws, whatever it is.
	ReleaseWithdrawal ReleasePurpose = "withdrawal"
	ReleaseFeeSweep   ReleasePurpose = "fee_sweep" // earned fees that go to the treasury
	ReleaseSwap       ReleasePurpose = "swap"      // what the owner of a wallet gives for another asset
	ReleaseProposal   ReleasePurpose = "proposal"  // what leaves a wallet of several owners
)

// Exemption is why a release asks no officer by its value and counts in no sum. The table release_exemptions says why of each.
type Exemption string

// The exemptions.
const (
	ExemptOwn     Exemption = "own"     // it goes to another wallet of its owner
	ExemptSurplus Exemption = "surplus" // it goes back by rule to the number that paid it
	ExemptSale    Exemption = "sale"    // value came in for it
	// It carries out a withdrawal, whose own release counts.
	ExemptWithdrawal Exemption = "withdrawal"
)

// ErrOfficers is the cause of a refusal to let money leave before more officers have approved.
var ErrOfficers = errors.New("more officers have to approve")

// ReleaseWindow is how long a release counts in the running sums after it passed.
const ReleaseWindow = 24 * time.Hour

// Release is value that is to leave its owner, whatever the product. It is written when its object is opened and counts from
// then on, so that of two releases at the same moment at least one is judged with the other. It passes once, when the rule
// (JudgeRelease) allows it.
type Release struct {
	ID          uuid.UUID
	Purpose     ReleasePurpose
	ObjectID    uuid.UUID
	House       bool      // the money is the house's own
	OwnerID     uuid.UUID // whose money it is, a merchant's as that of the merchant with its subvendors; zero for the house
	Source      string    // where it comes from: the id of a wallet, or an account of the house; empty when that does not count
	RequesterID uuid.UUID // zero when no user chose it
	Recipient   string    // "<network>:<address>", "momo:<number>" or "bank:<account>" outside of our custody, otherwise "user:<id>" or "house"
	Inside      bool      // the recipient is in our custody, and therefore known
	Exempt      Exemption // empty when it counts
	Value       money.Amount
	OpenedAt    time.Time
	Digest      string    // of the terms that officers approve, for the crypto of a sale
	Officers    int       // who must approve, when it was judged last
	RestsUntil  time.Time // zero when the destination does not rest
	PassedAt    time.Time
}

// ReleaseSums are the values of the other releases that have left within ReleaseWindow or are still to leave: those from the
// same source, of the same owner, by the same requester and to the same recipient.
type ReleaseSums struct {
	Source, Owner, Requester, Recipient money.Amount
}

// Highest returns the greatest of the sums.
func (s ReleaseSums) Highest() money.Amount {
	highest := s.Source
	for _, m := range []money.Amount{s.Owner, s.Requester, s.Recipient} {
		if m.Cmp(highest) > 0 {
			highest = m
		}
	}
	return highest
}

// DestinationRest is how long a destination outside of our custody rests after its owner first named it, before more than
// Above goes there within ReleaseWindow. Two officers shorten it.
type DestinationRest struct {
	Above money.Amount
	For   time.Duration
}

// MaxDestinationRest is the longest rest of a new destination.
const MaxDestinationRest = 7 * 24 * time.Hour

// Looser reports whether more money may go to a new destination, or sooner, than by another rule.
func (d DestinationRest) Looser(now DestinationRest) bool {
	return d.For < now.For || d.Above.Cmp(now.Above) > 0
}

// ReleaseFacts are what a release is judged by. They are read in one transaction, under the lock of the release.
type ReleaseFacts struct {
	Release
	Sums     ReleaseSums
	Rule     ApprovalRule
	Rest     DestinationRest // zero for a purpose whose destinations don't rest
	Always   bool            // its destinations rest in our custody too
	Least    int             // officers whatever the value, among them those that were needed at its opening
	Known    time.Time       // when the owner first named the recipient
	Approved int             // officers who approved its present terms and may still approve
	Now      time.Time
}

// ReleaseVerdict is the rule's answer. A release that does not pass waits for more officers, until a time, or both.
type ReleaseVerdict struct {
	Pass     bool
	Officers int
	Until    time.Time
}

// JudgeRelease is the rule for all value that leaves. As many officers must approve as the value needs together with the
// highest of the running sums, so that it makes no difference in how many parts it leaves. The house's own money always
// needs another person. What is exempt asks nobody by its value.
func JudgeRelease(f ReleaseFacts) ReleaseVerdict {
	v := ReleaseVerdict{Officers: f.Least}
	if f.Exempt == "" {
		v.Officers = max(v.Officers, f.Rule.Required(f.Value.Add(f.Sums.Highest())))
	}
	if f.House {
		v.Officers = max(v.Officers, 1)
	}
	if known := f.Known.Add(f.Rest.For); (f.Always || !f.Inside) && f.Exempt == "" && f.Approved < 2 && f.Value.Add(f.Sums.Recipient).Cmp(f.Rest.Above) > 0 && f.Now.Before(known) {
		v.Until = known
	}
	v.Pass = f.Approved >= v.Officers && v.Until.IsZero()
	return v
}

// SaleRelease is what a sale from a wallet in our custody waits for before its crypto may leave.
type SaleRelease struct {
	Order     Order
	Passed    bool
	GivenUp   bool      // the payment from the wallet was given up, by a refusal or a cancellation
	Until     time.Time // end of the rest of a new payee; zero when it does not rest
	Needed    int
	Approvals int
}

// FundingIntent is the hash of everything about a sale from a wallet in our custody that an approval covers.
func (o Order) FundingIntent() string {
	h := sha256.New()
	fmt.Fprintf(h, "kivuko sale v1\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n", o.ID, o.CustomerID, o.Network, o.Asset, o.Price.Crypto, o.FundWalletID, o.EscrowAddress,
		o.Price.Fiat, o.PaymentMethod, o.Payee())
	return hex.EncodeToString(h.Sum(nil))
}

// Payee is the number or the account that gets the shillings of a sale.
func (o Order) Payee() string {
	if o.PaymentMethod == PaymentMethodMomo {
		return o.PaymentPhone.Digits()
	}
	return o.Beneficiary.AccountNumber
}
