package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange/money"
)

// WithdrawalMethod is how a withdrawal leaves.
type WithdrawalMethod string

// The methods.
const (
	WithdrawByMomo  WithdrawalMethod = "momo"
	WithdrawByBank  WithdrawalMethod = "bank"
	WithdrawByChain WithdrawalMethod = "chain" // crypto, by a transfer of the treasury
)

// WithdrawalMethods lists the methods in a fixed order.
func WithdrawalMethods() []WithdrawalMethod {
	return []WithdrawalMethod{WithdrawByMomo, WithdrawByBank, WithdrawByChain}
}

// Limits of withdrawals. Each is part of the contract.
const (
	MaxOpenWithdrawals = 500                // of one merchant that have not ended
	MaxWithdrawalText  = 500                // characters of reasons and notes
	WithdrawalLife     = 7 * 24 * time.Hour // without an execution, until the money is free again
)

// Withdrawal is money that a merchant takes out: shillings of its balance, crypto of a wallet that is sold for shillings, or
// shillings for crypto of the treasury. It goes to one of the merchant's saved destinations.
type Withdrawal struct {
	ID          uuid.UUID
	MerchantID  uuid.UUID // the master merchant
	RequestedBy uuid.UUID
	IntentID    uuid.UUID
	Status      WithdrawalStatus
	Detail      string // what it waits for, or why it ended
	HeldFrom    WithdrawalStatus

	// What is asked for, frozen.
	Method         WithdrawalMethod
	Source         money.Amount // all that leaves the merchant
	SourceWalletID uuid.UUID    // of crypto
	SourceNetwork  Network
	Payout         money.Amount // all that arrives
	Fee            money.Amount // in shillings
	ProfileID      uuid.UUID    // zero for the zero profile
	QuoteID        uuid.UUID    // zero for shillings that stay shillings
	Rate           decimal.Decimal
	Value          money.Amount // in shillings, for limits and the running sums
	DestinationID  uuid.UUID
	Digest         string // of what officers approve; see Intent

	// The money on its way.
	HoldID      uuid.UUID // of the merchant's money: in the wallet or the balance, and in the balance once crypto was sold
	HouseHoldID uuid.UUID // of the treasury's shillings, from the execution until crypto was sold
	BankHoldID  uuid.UUID // at an account of the house
	PaymentID   uuid.UUID // the chain payment of sold crypto
	TxHash      string    // of it, or of the transfer that paid bought crypto
	SoldAt      time.Time // when the sale was booked

	// Who carried it out, and how it was paid.
	ExecutedBy       uuid.UUID
	ExecutedAt       time.Time
	TransferIntentID uuid.UUID // by which the executing officer asks for the transfer of bought crypto
	TransferID       uuid.UUID
	PaidBy           uuid.UUID // the payment attempt by mobile money
	Receipt          string    // the operator's receipt, or the bank's reference
	LineID           uuid.UUID // the line of a bank's statement that proved it
	RefusedCode      string    // of the last refusal
	Claimed          bool      // a source claims that a refused payout was made, so that no other begins
	Reason           string    // of a rejection, a cancellation or a failure
	EndedBy          uuid.UUID // who rejected or cancelled it
	CreatedAt        time.Time
	UpdatedAt        time.Time
	CompletedAt      time.Time
	Version          int64
}

// Sells reports whether the merchant's crypto is sold for shillings.
func (w Withdrawal) Sells() bool { return w.Source.Asset().Stablecoin() }

// Buys reports whether the merchant's shillings buy crypto.
func (w Withdrawal) Buys() bool { return w.Payout.Asset().Stablecoin() }

// Sold reports whether crypto that is sold has become shillings. What never was crypto counts as sold.
func (w Withdrawal) Sold() bool { return !w.Sells() || !w.SoldAt.IsZero() }

// Over reports whether the withdrawal has ended.
func (w Withdrawal) Over() bool { return WithdrawalMachine.Terminal(w.Status) }

// Owed is what is held in the merchant's balance for the payout: the payout itself once crypto was sold, with the fee otherwise.
func (w Withdrawal) Owed() money.Amount {
	if w.Sells() {
		return w.Payout
	}
	return w.Source
}

// Price is what the house pays for crypto that it buys: what arrives, and the fee.
func (w Withdrawal) Price() money.Amount { return w.Payout.Add(w.Fee) }

// Intent is the hash of everything about a withdrawal that an approval covers. It never changes.
func (w Withdrawal) Intent(recipient string) string {
	h := sha256.New()
	fmt.Fprintf(h, "kivuko withdrawal v1\n%s\n%s\n%s\n%s\n%s %s\n%s\n%s\n%s %s\n%s\n%s\n%s\n%s\n", w.ID, w.MerchantID, w.RequestedBy, w.Method, w.Source.Asset(), w.Source,
		textOf(w.SourceWalletID), w.SourceNetwork, w.Payout.Asset(), w.Payout, w.Fee, w.Rate, w.DestinationID, recipient)
	return hex.EncodeToString(h.Sum(nil))
}

// WithdrawalApproval is an officer's decision about a withdrawal.
type WithdrawalApproval struct {
	WithdrawalID uuid.UUID
	OfficerID    uuid.UUID
	Action       ApprovalAction
	Note         string
	At           time.Time
	Counts       bool // the officer may still approve
}

// WithdrawalStanding is a withdrawal with what it needs before it may leave.
type WithdrawalStanding struct {
	Withdrawal Withdrawal
	Needed     int       // officers, as the rule of all that leaves was judged last
	Approvals  int       // of officers that count
	Rejected   bool      // an officer rejected it
	RestsUntil time.Time // of the destination; zero when it has rested, or two officers approved
}

// Ready reports whether the withdrawal may be executed.
func (s WithdrawalStanding) Ready() bool {
	return !s.Rejected && s.Approvals >= s.Needed && s.RestsUntil.IsZero()
}

// Waits is what a withdrawal that is not ready waits for.
func (s WithdrawalStanding) Waits() string {
	switch {
	case s.Approvals == 0:
		return WaitApproval
	case s.Approvals < s.Needed:
		return WaitSecond
	case !s.RestsUntil.IsZero():
		return WaitRest
	}
	return WaitExecution
}

// Due is when something happens to the withdrawal by time, or its destination has rested; zero when nothing does.
func (s WithdrawalStanding) Due() time.Time {
	w := s.Withdrawal
	lapses := time.Time{}
	if slices.Contains(unexecuted, w.Status) {
		lapses = w.CreatedAt.Add(WithdrawalLife)
	}
	rests := s.RestsUntil
	if w.Over() || w.Detail != WaitRest {
		rests = time.Time{}
	}
	if rests.IsZero() || !lapses.IsZero() && lapses.Before(rests) {
		return lapses
	}
	return rests
}
