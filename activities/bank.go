package activities

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// BankStore is the database interface of bank payments.
type BankStore interface {
	BankPayout(ctx context.Context, orderID uuid.UUID) (exchange.BankPayout, error)
	BeginBankPayout(ctx context.Context, orderID uuid.UUID) (exchange.OrderPayout, error)
}

// Bank handles orders that officers pay at a bank. It makes no network call: the API writes the officers' confirmations as
// rows, and the last one completes the order.
type Bank struct{ Store BankStore }

// BankInput asks for the state of a bank payment. Again puts a refused one into the treasury's queue again.
type BankInput struct {
	OrderID uuid.UUID `json:"order_id"`
	Again   bool      `json:"again,omitempty"`
}

// The states of a bank payment, besides PayoutPaid, PayoutRefused, PayoutFloatShort, PayoutUncleared, PayoutFrozen and
// PayoutInactive.
const (
	BankWaits       = "waiting" // no officer has confirmed it
	BankWaitsSecond = "second"  // a second officer has to confirm it
)

// BankStep is the state of a bank payment.
type BankStep struct {
	State string `json:"state"`
}

// LookAtBank puts an order's payment into the treasury's queue, unless it is there, and returns its state.
func (b *Bank) LookAtBank(ctx context.Context, in BankInput) (BankStep, error) {
	p, err := b.Store.BankPayout(ctx, in.OrderID)
	if err != nil {
		return BankStep{}, Failure(ctx, err)
	}
	if p.Status == exchange.PayoutPending || (p.Status == exchange.PayoutRefused && in.Again) {
		_, err := b.Store.BeginBankPayout(ctx, in.OrderID)
		switch {
		case exchange.CodeOf(err) == exchange.CodeInsufficientFunds:
			return BankStep{State: PayoutFloatShort}, nil
		case errors.Is(err, exchange.ErrUncleared):
			return BankStep{State: PayoutUncleared}, nil
		case errors.Is(err, exchange.ErrFrozen):
			return BankStep{State: PayoutFrozen}, nil
		case errors.Is(err, exchange.ErrInactive):
			return BankStep{State: PayoutInactive}, nil
		case err != nil:
			return BankStep{}, Failure(ctx, err)
		}
		return BankStep{State: BankWaits}, nil
	}
	switch p.Status {
	case exchange.PayoutCompleted:
		return BankStep{State: PayoutPaid}, nil
	case exchange.PayoutRefused, exchange.PayoutCancelled:
		return BankStep{State: PayoutRefused}, nil
	case exchange.PayoutPending, exchange.PayoutProcessing:
	}
	if p.WaitsFor() == exchange.WaitBankSecond {
		return BankStep{State: BankWaitsSecond}, nil
	}
	return BankStep{State: BankWaits}, nil
}
