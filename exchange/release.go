package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// ReleasePurpose is the kind of object that value leaves for.
type ReleasePurpose string

// The purposes of releases: value that leaves its owner without money that came in for it.
const (
	ReleaseTransfer ReleasePurpose = "transfer"
	ReleaseFunding  ReleasePurpose = "funding" // crypto that funds a sale from a wallet in our custody
)

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
	WalletID    uuid.UUID // where it comes from
	RequesterID uuid.UUID
	Recipient   string // "<network>:<address>" outside of our custody, otherwise "user:<id>" or "house"
	Inside      bool   // the recipient is in our custody, and therefore known
	Own         bool   // the recipient is the owner itself, so nothing leaves it
	Value       money.Amount
	OpenedAt    time.Time
	Officers    int       // who must approve, when it was judged last
	RestsUntil  time.Time // zero when the destination does not rest
	PassedAt    time.Time
}

// ReleaseSums are the values of the other releases that have left within ReleaseWindow or are still to leave: those from the
// same wallet, of the same owner, by the same requester and to the same recipient.
type ReleaseSums struct {
	Wallet, Owner, Requester, Recipient money.Amount
}

// Highest returns the greatest of the sums.
func (s ReleaseSums) Highest() money.Amount {
	highest := s.Wallet
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
	Rest     DestinationRest
	Known    time.Time // when the owner first named the recipient
	Approved int       // officers who approved its present terms and may still approve
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
// needs another person. What goes to another wallet of its owner does not leave the owner.
func JudgeRelease(f ReleaseFacts) ReleaseVerdict {
	var v ReleaseVerdict
	if !f.Own {
		v.Officers = f.Rule.Required(f.Value.Add(f.Sums.Highest()))
	}
	if f.House {
		v.Officers = max(v.Officers, 1)
	}
	if known := f.Known.Add(f.Rest.For); !f.Inside && f.Approved < 2 && f.Value.Add(f.Sums.Recipient).Cmp(f.Rest.Above) > 0 && f.Now.Before(known) {
		v.Until = known
	}
	v.Pass = f.Approved >= v.Officers && v.Until.IsZero()
	return v
}
