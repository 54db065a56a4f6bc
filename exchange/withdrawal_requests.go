package exchange

import (
	"strings"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// WithdrawalRequest is a merchant's request for a withdrawal.
type WithdrawalRequest struct {
	ID            uuid.UUID
	DestinationID uuid.UUID
	Source        money.Asset
	Payout        money.Asset
	WalletID      uuid.UUID    // that crypto leaves
	Amount        money.Amount // of shillings that arrive; without an asset where a quote names the amounts
	QuoteID       uuid.UUID
}

// Terms are what the request asks for. Its id is the object of the intent, and its requester the principal.
func (r WithdrawalRequest) Terms() Terms { return termsOf(r.terms()) }

func (r *WithdrawalRequest) terms() []term {
	return []term{
		idTerm("destination_id", &r.DestinationID), textTerm("source_asset", &r.Source), textTerm("payout_asset", &r.Payout), idTerm("wallet_id", &r.WalletID),
		amountTerm("amount", &r.Amount), idTerm("quote_id", &r.QuoteID),
	}
}

// WithdrawalRequestOf is the request that an intent states.
func WithdrawalRequestOf(i Intent) (WithdrawalRequest, error) {
	r := WithdrawalRequest{ID: i.ObjectID}
	err := readTerms(i, r.terms())
	return r, err
}

// UseTransfers is the rule code for crypto that stays crypto.
const UseTransfers = "use_transfers"

// Check checks a request on its own. CodeInvalid lists every field at fault.
func (r WithdrawalRequest) Check() error {
	c := checker{}
	known := func(a money.Asset) bool { return a == money.KES || a.Stablecoin() }
	c.rule(known(r.Source), "/source_asset", "enum", "must be KES, USDT or USDC")
	c.rule(known(r.Payout), "/payout_asset", "enum", "must be KES, USDT or USDC")
	c.rule(!r.Source.Stablecoin() || !r.Payout.Stablecoin(), "/payout_asset", UseTransfers, "must be KES: crypto goes to an address by POST /transfers")
	c.rule(r.DestinationID != uuid.Nil, "/destination_id", "required", "is required")
	c.rule(!r.Source.Stablecoin() || r.WalletID != uuid.Nil, "/source_wallet_id", "required", "is required for crypto")
	c.rule(r.Source != money.KES || r.WalletID == uuid.Nil, "/source_wallet_id", "forbidden", "must be left out: shillings are in no wallet")
	if r.Source == money.KES && r.Payout == money.KES {
		c.rule(r.Amount.Asset() == money.KES && r.Amount.Positive(), "/payout_amount", "out_of_range", "must be above zero")
		c.rule(r.QuoteID == uuid.Nil, "/fx_rate_quote_id", "forbidden", "must be left out: shillings need no quote")
		return Invalid(c.bad...)
	}
	c.rule(r.QuoteID != uuid.Nil, "/fx_rate_quote_id", "required", "is required: it has the price")
	c.rule(r.Amount.Asset() == "", "/payout_amount", "forbidden", "must be left out: the quote has the amounts")
	return Invalid(c.bad...)
}

// WithdrawalStep is what a verb on a withdrawal needs, beside the withdrawal and the caller. What an officer says of the payment of a refund by
// bank has the same form.
type WithdrawalStep struct {
	Text           string    // a reason, or a note
	TransferIntent uuid.UUID // execute: by which the same officer asks for the transfer of bought crypto
	Reference      string    // confirm: the bank's
	PaidOn         time.Time
	Amount         money.Amount
	LineID         uuid.UUID // of a statement that shows the payment
}

// Terms are what the verb needs.
func (r WithdrawalStep) Terms() Terms { return termsOf(r.terms()) }

func (r *WithdrawalStep) terms() []term {
	return []term{
		textTerm("text", &r.Text), idTerm("transfer_intent_id", &r.TransferIntent), textTerm("reference", &r.Reference), momentTerm("paid_on", &r.PaidOn),
		amountTerm("amount", &r.Amount), idTerm("line_id", &r.LineID),
	}
}

// WithdrawalStepOf is the verb that an intent states.
func WithdrawalStepOf(i Intent) (WithdrawalStep, error) {
	var r WithdrawalStep
	err := readTerms(i, r.terms())
	return r, err
}

// Check checks a verb on its own. CodeInvalid lists every field at fault.
func (r WithdrawalStep) Check(verb IntentKind) error {
	c := checker{}
	c.text(r.Text, "/note", MaxWithdrawalText)
	c.rule(verb != IntendWithdrawalHold || strings.TrimSpace(r.Text) != "", "/note", "required", "is required")
	if verb == IntendWithdrawalPaid || verb == IntendRefundPaid {
		typed := BankReference(r.Reference)
		c.rule(typed != "" && len(typed) <= MaxBankReference, "/reference", "required", "is required, in at most 64 letters and digits")
		c.rule(!r.PaidOn.IsZero(), "/paid_on", "required", "is required")
		c.rule(r.Amount.Asset() == money.KES && r.Amount.Positive(), "/amount", "out_of_range", "must be above zero, in KES")
	}
	return Invalid(c.bad...)
}
