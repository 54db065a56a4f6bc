package exchange

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// AccountKind is what an account of the ledger stands for.
type AccountKind string

// The kinds of account. Debit-normal kinds are assets, credit-normal ones are what we owe or earned. Every custodial wallet
// has two accounts per asset: custody (the balance that the chain must have) and wallet_balance (what we owe the wallet's
// owner). One whose owner paid a fee has a third, wallet_fees: the fee stays in its custody until it is swept.
const (
	AccCustody        AccountKind = "custody"          // per wallet; equals the chain at a final block
	AccWalletBalance  AccountKind = "wallet_balance"   // per wallet; owed to its owner
	AccFiatBalance    AccountKind = "fiat_balance"     // per merchant; KES owed to it
	AccMomoCollection AccountKind = "momo_collection"  // the house's money at the operator, collected
	AccMomoPayout     AccountKind = "momo_payout"      // the house's money at the operator, for payouts
	AccBank           AccountKind = "bank"             // per house bank account; the house's money there
	AccOrdersInFlight AccountKind = "orders_in_flight" // customers' money between payment and delivery
	AccRefundsDue     AccountKind = "refunds_due"      // customers' money on its way back
	AccSuspense       AccountKind = "suspense"         // money that arrived and matches nothing
	AccUnclaimed      AccountKind = "unclaimed"        // customers' money too little to be sent back
	AccReceivable     AccountKind = "receivable"       // what was paid out twice, until it is recovered
	AccRounding       AccountKind = "rounding"         // remainders of rounding to whole shillings
	AccFees           AccountKind = "fees"             // what the house earned, but not what lies in wallets
	AccWalletFees     AccountKind = "wallet_fees"      // per wallet; what the house earned in crypto that still lies there
	AccNetworkFees    AccountKind = "network_fees"     // per native coin; what networks charged
	AccMomoFees       AccountKind = "momo_fees"        // what the operator charged
	AccBankFees       AccountKind = "bank_fees"        // what banks charged
	AccCapital        AccountKind = "capital"          // what the owners of the house put in
)

// AccountKinds lists all kinds.
func AccountKinds() []AccountKind {
	return []AccountKind{
		AccCustody, AccWalletBalance, AccFiatBalance, AccMomoCollection, AccMomoPayout, AccBank, AccOrdersInFlight, AccRefundsDue, AccSuspense,
		AccUnclaimed, AccReceivable, AccRounding, AccFees, AccWalletFees, AccNetworkFees, AccMomoFees, AccBankFees, AccCapital,
	}
}

// DebitNormal reports whether a debit increases accounts of the kind.
func (k AccountKind) DebitNormal() bool {
	return slices.Contains([]AccountKind{AccCustody, AccMomoCollection, AccMomoPayout, AccBank, AccNetworkFees, AccMomoFees, AccBankFees, AccReceivable}, k)
}

// MayGoNegative reports whether the available balance of accounts of the kind may fall below zero. Accounts with other
// people's money may not.
func (k AccountKind) MayGoNegative() bool {
	return slices.Contains([]AccountKind{AccRounding, AccFees, AccNetworkFees, AccMomoFees, AccBankFees, AccCapital}, k)
}

// AccountRef names an account. Owner is the wallet of custody, wallet_balance and wallet_fees accounts, the master
// merchant of fiat balances, the house bank account of bank accounts, and zero for the house.
type AccountRef struct {
	Kind  AccountKind
	Owner uuid.UUID
	Asset money.Asset
}

// Code is the account's unique name in the database: "wallet_balance:0192…:USDT".
func (a AccountRef) Code() string {
	if a.Owner == uuid.Nil {
		return fmt.Sprintf("%s:house:%s", a.Kind, a.Asset)
	}
	return fmt.Sprintf("%s:%s:%s", a.Kind, a.Owner, a.Asset)
}

// House names an account of the house.
func House(k AccountKind, a money.Asset) AccountRef { return AccountRef{Kind: k, Asset: a} }

// Owned names an account of a wallet or a merchant.
func Owned(k AccountKind, owner uuid.UUID, a money.Asset) AccountRef {
	return AccountRef{Kind: k, Owner: owner, Asset: a}
}

// Account is an account with its balance, positive in the normal direction of its kind.
type Account struct {
	ID        int64
	Ref       AccountRef
	Posted    money.Amount
	Held      money.Amount
	UpdatedAt time.Time
}

// Available is the balance that can still be spent or held.
func (a Account) Available() money.Amount { return a.Posted.Sub(a.Held) }

// Line is one side of an entry. A positive amount is a debit, a negative one a credit.
type Line struct {
	Account AccountRef
	Amount  money.Amount
}

// Debit makes a debit line.
func Debit(a AccountRef, m money.Amount) Line { return Line{a, m} }

// Credit makes a credit line.
func Credit(a AccountRef, m money.Amount) Line { return Line{a, m.Neg()} }

// Entry is an immutable booking. Key is its business key: posting the same key again has no effect, so that a retried
// activity books once.
type Entry struct {
	Key        string
	Kind       string // "order.paid", "chain_payment.completed", ...
	ObjectType string
	ObjectID   uuid.UUID
	Lines      []Line
}

// PaidOut reports whether the entry books a payout that was made. Its money has already left the operator's account, so only
// such an entry may take the payout float below what is held of it.
func (e Entry) PaidOut() bool {
	switch e.Kind {
	case "order.completed", "refund.completed", "payout.paid_twice", "payout.charged":
		return true
	}
	return false
}

// Validate checks that the entry has a key, at least two lines, no empty line, matching assets, and a sum of zero in every
// asset.
func (e Entry) Validate() error {
	if e.Key == "" || e.Kind == "" {
		return Errorf(CodeInternal, "ledger entry without key or kind")
	}
	if len(e.Lines) < 2 {
		return Errorf(CodeInternal, "ledger entry %s has fewer than two lines", e.Key)
	}
	sums := map[money.Asset]decimal.Decimal{}
	for _, l := range e.Lines {
		if l.Amount.IsZero() {
			return Errorf(CodeInternal, "ledger entry %s has an empty line on %s", e.Key, l.Account.Code())
		}
		if l.Amount.Asset() != l.Account.Asset {
			return Errorf(CodeInternal, "ledger entry %s books %s on %s", e.Key, l.Amount.Asset(), l.Account.Code())
		}
		sums[l.Account.Asset] = sums[l.Account.Asset].Add(l.Amount.Decimal())
	}
	for asset, sum := range sums {
		if !sum.IsZero() {
			return Errorf(CodeInternal, "ledger entry %s is off by %s %s", e.Key, sum, asset)
		}
	}
	return nil
}

// Lines drops empty lines, so that callers can list a rounding or fee line that may be zero.
func Lines(all ...Line) []Line {
	var kept []Line
	for _, l := range all {
		if !l.Amount.IsZero() {
			kept = append(kept, l)
		}
	}
	return kept
}
