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

const profileByID = `SELECT ` + profileColumns + ` FROM fee_profiles p WHERE p.id = $1`

// frozenFees are the fees that an order was opened with.
func (t unitTx) frozenFees(ctx context.Context, o exchange.Order) (exchange.FeeProfile, error) {
	if o.ProfileID == uuid.Nil {
		return exchange.FeeProfile{}.In(money.KES), nil
	}
	return readOne[exchange.FeeProfile](ctx, t, "fee profile", profileByID, o.ProfileID)
}
