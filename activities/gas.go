package activities

import (
	"context"
	"math/big"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// GasPolicy bounds the top-ups from our gas wallet to sending wallets that lack native coin.
type GasPolicy struct {
	Floor money.Amount // the least of one top-up; what a payment does not burn stays in its wallet
	Cap   money.Amount // the most; a payment that lacks more is parked
	Limit int          // top-ups of one payment
}

// gasMargin is the fraction of the missing amount that a top-up brings: the fee may rise until the payment is signed.
const (
	gasMarginNumerator   = 5
	gasMarginDenominator = 4
)

// The codes with which a payment is parked because it can get no gas.
const (
	GasWalletShort = "gas_wallet_short" // the gas wallet also has too little
	GasAboveCap    = "top_up_cap"       // the payment lacks more than one top-up may bring
	GasLimit       = "top_up_limit"     // the payment has used all its top-ups
	GasFailed      = "top_up_failed"    // a top-up did not arrive
	GasBudget      = "fee_budget"       // the daily budget for fees is used up
)

// TopUpInput asks for gas.
type TopUpInput struct {
	PaymentID uuid.UUID `json:"payment_id"`        // of the payment that needs it
	Missing   string    `json:"missing,omitempty"` // see NeedGas
}

// TopUp is the payment that brings gas, or the code why there is none.
type TopUp struct {
	PaymentID uuid.UUID `json:"payment_id,omitzero"`
	Refused   string    `json:"refused,omitempty"`
	// Waits is set when gas is on its way that was brought ahead of need, which has a flow of its own.
	Waits bool `json:"waits,omitempty"`
}

// ApproveTopUp writes the payment that brings gas to the sending wallet of another payment, or finds the open one. It returns
// neither a payment nor a refusal when the payment needs no gas any more.
func (c *Chain) ApproveTopUp(ctx context.Context, in TopUpInput) (TopUp, error) {
	amount, refused, err := c.Gas.amount(c.Client.Network(), in.Missing)
	if err != nil || refused != "" {
		return TopUp{Refused: refused}, Failure(ctx, err)
	}
	p, err := c.Store.ApproveTopUp(ctx, in.PaymentID, amount, c.Gas.Limit)
	switch code := exchange.CodeOf(err); {
	case err == nil && p.Purpose == exchange.ForGas && p.ObjectID != in.PaymentID: // brought ahead of need
		if p.Status == exchange.ChainParked {
			return TopUp{Refused: GasFailed}, nil // an officer settles it first
		}
		return TopUp{Waits: true}, nil
	case err == nil:
		return TopUp{PaymentID: p.ID}, nil
	case code == exchange.CodeInsufficientFunds:
		return TopUp{Refused: GasLimit}, nil
	case code == exchange.CodeUnsupported:
		return TopUp{Refused: string(chain.ReasonGas)}, nil
	case code == exchange.CodeStateConflict:
		return TopUp{}, nil
	}
	return TopUp{}, Failure(ctx, err)
}

// amount returns the amount of a top-up: the missing amount plus a margin, at least the floor and at most the cap.
func (g GasPolicy) amount(n exchange.Network, missing string) (money.Amount, string, error) {
	native := n.NativeCoin()
	if g.Floor.Asset() != native || g.Cap.Asset() != native {
		return money.Zero(native), string(chain.ReasonGas), nil // top-ups are not configured for the network
	}
	amount := g.Floor
	if missing != "" {
		need, err := money.Parse(native, missing)
		if err != nil {
			return amount, "", exchange.Wrap(exchange.CodeInternal, err, "%q is not an amount of %s", missing, native)
		}
		if need.Cmp(g.Cap) > 0 {
			return amount, GasAboveCap, nil
		}
		units := need.Units()
		units.Mul(units, big.NewInt(gasMarginNumerator)).Quo(units, big.NewInt(gasMarginDenominator))
		if wanted := money.FromUnits(native, units); wanted.Cmp(amount) > 0 {
			amount = wanted
		}
	}
	if amount.Cmp(g.Cap) > 0 {
		amount = g.Cap
	}
	return amount, "", nil
}
