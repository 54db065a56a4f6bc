package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// chargeFees freezes the fees of an order against an offer. The house pays itself none. An amount that the fee leaves nothing of is
// CodeInvalid.
func (t unitTx) chargeFees(ctx context.Context, o *exchange.Order, pointer string) error {
	if o.VendorID == exchange.PlatformTreasury {
		return nil
	}
	line := exchange.FeeLine{Scope: exchange.FeePurchase, MerchantID: o.VendorID, Asset: o.Asset, Network: o.Network, Method: o.PaymentMethod}
	if o.OffRamp() {
		line.Scope = exchange.FeeSale
	}
	fees, err := t.feesFor(ctx, line, exchange.RoleVendor, o.CreatedAt)
	if err != nil {
		return err
	}
	o.ProfileID, o.Price = fees.ID, o.Charged(fees)
	return require(o.Price.Vendor.Positive(), pointer, "range", "must be more than the fee of "+o.Price.Fee.String()+" KES")
}

// chargeQuoted charges an order the fees of its quote, and compares its price with the quote's.
func (t unitTx) chargeQuoted(ctx context.Context, o *exchange.Order, q exchange.FXQuote) error {
	fees, err := t.frozenFees(ctx, *o)
	if err != nil {
		return err
	}
	if o.Price = o.Charged(fees); !o.Price.Fiat.Equal(q.Price.Fiat) || q.Price.Fee.Asset() == money.KES && !o.Price.Fee.Equal(q.Price.Fee) {
		return exchange.Errorf(exchange.CodeInternal, "quote %s is for %s with a fee of %s, its terms make %s with %s", q.ID, q.Price.Fiat, q.Price.Fee, o.Price.Fiat, o.Price.Fee)
	}
	return nil
}

const profileByID = `SELECT ` + profileColumns + ` FROM fee_profiles p WHERE p.id = $1`

// frozenFees are the fees that an order was opened with.
func (t unitTx) frozenFees(ctx context.Context, o exchange.Order) (exchange.FeeProfile, error) {
	if o.ProfileID == uuid.Nil {
		return exchange.FeeProfile{}.In(money.KES), nil
	}
	return readOne[exchange.FeeProfile](ctx, t, "fee profile", profileByID, o.ProfileID)
}
