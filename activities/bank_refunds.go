package activities

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// BankRefundStore stores refunds by bank for flows. Every method is one transaction and may be called again.
type BankRefundStore interface {
	Refund(ctx context.Context, id uuid.UUID) (exchange.Refund, error)
	BeginBankRefund(ctx context.Context, id uuid.UUID) (exchange.Refund, error)
	MarkBankRefund(ctx context.Context, id uuid.UUID, detail string) (exchange.Refund, error)
	ConfirmBankRefund(ctx context.Context, id uuid.UUID, a exchange.Asked) (exchange.Refund, error)
}

// BankRefunds changes the rows of refunds by bank. It makes no network call: officers pay them at the bank.
type BankRefunds struct{ Store BankRefundStore }

// BankRefundInput names a refund by bank.
type BankRefundInput struct {
	RefundID uuid.UUID `json:"refund_id"`
}

// BankRefundState is the state of a refund by bank. Version grows with every change, so that of two answers the newer one is known.
type BankRefundState struct {
	Status exchange.RefundStatus `json:"status"`
	Detail string                `json:"detail,omitempty"`
	Amount money.Amount          `json:"amount,omitzero"`
	// State is why its money could not be reserved: PayoutFloatShort, PayoutFrozen, PayoutSuspended or PayoutOfficers. It is empty otherwise.
	State   string `json:"state,omitempty"`
	Version int64  `json:"version"`
}

func bankRefundState(f exchange.Refund) BankRefundState {
	return BankRefundState{Status: f.Status, Detail: f.Detail, Amount: f.Amount, Version: f.Version}
}

// ReserveBankRefund reserves the money of a refund at a bank of the house, from where an officer pays it. One that is not pending stays as it is.
func (b *BankRefunds) ReserveBankRefund(ctx context.Context, in BankRefundInput) (BankRefundState, error) {
	f, err := b.Store.BeginBankRefund(ctx, in.RefundID)
	why := ""
	switch {
	case exchange.CodeOf(err) == exchange.CodeInsufficientFunds:
		why = PayoutFloatShort
	case errors.Is(err, exchange.ErrFrozen):
		why = PayoutFrozen
	case exchange.CodeOf(err) == exchange.CodeSuspended:
		why = PayoutSuspended
	case errors.Is(err, exchange.ErrOfficers):
		why = PayoutOfficers
	case err != nil:
		return BankRefundState{}, Failure(ctx, err)
	}
	if why != "" {
		if f, err = b.Store.Refund(ctx, in.RefundID); err != nil {
			return BankRefundState{}, Failure(ctx, err)
		}
	}
	s := bankRefundState(f)
	s.State = why
	return s, nil
}

// LookAtBankRefund reads the state of a refund by bank.
func (b *BankRefunds) LookAtBankRefund(ctx context.Context, in BankRefundInput) (BankRefundState, error) {
	f, err := b.Store.Refund(ctx, in.RefundID)
	return bankRefundState(f), Failure(ctx, err)
}

// MarkBankRefundInput names what a refund by bank waits for.
type MarkBankRefundInput struct {
	RefundID uuid.UUID `json:"refund_id"`
	Detail   string    `json:"detail"`
}

// MarkBankRefund writes what a refund by bank waits for into its row.
func (b *BankRefunds) MarkBankRefund(ctx context.Context, in MarkBankRefundInput) (BankRefundState, error) {
	f, err := b.Store.MarkBankRefund(ctx, in.RefundID, in.Detail)
	return bankRefundState(f), Failure(ctx, err)
}

// ConfirmBankRefundInput is what an officer says of the payment of a refund by bank, by the officer's intent.
type ConfirmBankRefundInput struct {
	RefundID uuid.UUID `json:"refund_id"`
	IntentID uuid.UUID `json:"intent_id"`
}

// ConfirmBankRefund keeps what an officer says, and completes the refund when that is enough. Refusals have the codes of the store's
// ConfirmBankRefund.
func (b *BankRefunds) ConfirmBankRefund(ctx context.Context, in ConfirmBankRefundInput) (BankRefundState, error) {
	f, err := b.Store.ConfirmBankRefund(ctx, in.RefundID, Behalf{IntentID: in.IntentID}.asked(ctx))
	return bankRefundState(f), Failure(ctx, err)
}
