package activities

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// BankStore is what payments by bank need of the database.
type BankStore interface {
	BankPayout(ctx context.Context, orderID uuid.UUID) (exchange.BankPayout, error)
	BeginBankPayout(ctx context.Context, orderID uuid.UUID) (exchange.OrderPayout, error)
}

// Bank looks after orders that officers pay at a bank. It talks to nobody: what officers say are rows, which the API
// writes and whose last one completes the order.
type Bank struct{ Store BankStore }

// BankInput asks where a payment by bank stands. Again puts one that was refused on the desk once more.
type BankInput struct {
	OrderID uuid.UUID `json:"order_id"`
	Again   bool      `json:"again,omitempty"`
}

// The states of a payment by bank, besides RefundPaid, RefundRefused, RefundFloatShort and PayoutUncleared.
const (
	BankWaits       = "waiting" // nobody has confirmed it
	BankWaitsSecond = "second"  // another officer has to
)

// BankStep is where a payment by bank stands.
type BankStep struct {
	State string `json:"state"`
}

// LookAtBank puts an order's payment on the desk of the treasury, where it is not yet, and tells where it stands.
func (b *Bank) LookAtBank(ctx context.Context, in BankInput) (BankStep, error) {
	p, err := b.Store.BankPayout(ctx, in.OrderID)
	if err != nil {
		return BankStep{}, Failure(ctx, err)
	}
	if p.Status == exchange.PayoutPending || (p.Status == exchange.PayoutRefused && in.Again) {
		_, err := b.Store.BeginBankPayout(ctx, in.OrderID)
		switch {
		case exchange.CodeOf(err) == exchange.CodeInsufficientFunds:
			return BankStep{State: RefundFloatShort}, nil
		case errors.Is(err, exchange.ErrUncleared):
			return BankStep{State: PayoutUncleared}, nil
		case err != nil:
			return BankStep{}, Failure(ctx, err)
		}
		return BankStep{State: BankWaits}, nil
	}
	switch p.State() {
	case exchange.BankDone:
		return BankStep{State: RefundPaid}, nil
	case exchange.BankRefused:
		return BankStep{State: RefundRefused}, nil
	case exchange.BankSecond:
		return BankStep{State: BankWaitsSecond}, nil
	case exchange.BankWaiting:
	}
	return BankStep{State: BankWaits}, nil
}
