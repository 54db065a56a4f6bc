package store

import (
	"context"
	"maps"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Triggers count the networks' fees for each party's payments in network_fees, whichever code writes the payments.

// defaultFees are the most that each network may take per day in Kenya, in its coin.
func defaultFees(eth, trx, sol string) map[money.Asset]money.Amount {
	return map[money.Asset]money.Amount{
		money.ETH: money.Must(money.ETH, eth), money.TRX: money.Must(money.TRX, trx), money.SOL: money.Must(money.SOL, sol),
	}
}

// bounded fills in missing coins.
func bounded(given, missing map[money.Asset]money.Amount) map[money.Asset]money.Amount {
	all := maps.Clone(missing)
	for coin, m := range given {
		if m.Positive() && m.Asset() == coin {
			all[coin] = m
		}
	}
	return all
}

// fees are the most that networks may take per day for the payments of a role.
func (l Limits) fees(r exchange.Role) map[money.Asset]money.Amount {
	switch r {
	case exchange.RoleUser:
		return l.UserFees
	case exchange.RoleCustomer:
		return l.CustomerFees
	case exchange.RoleVendor, exchange.RoleSubvendor, exchange.RoleTreasury, exchange.RoleAdmin, exchange.RoleOTCOfficer:
	}
	return l.MerchantFees
}

const (
	feesOfUser     = `SELECT coalesce(sum(expected + amount), 0) FROM network_fees WHERE user_id = $1 AND network = $2 AND at >= $3`
	feesOfMerchant = `SELECT coalesce(sum(expected + amount), 0) FROM network_fees WHERE vendor_id = $1 AND network = $2 AND at >= $3`
	feesOfOthers   = `SELECT coalesce(sum(amount), 0) FROM network_fees WHERE network = $1 AND at >= $2 AND payment_id <> $3`
)

// underFees refuses another payment of a party whose fees have reached the daily limit.
func (t unitTx) underFees(ctx context.Context, n exchange.Network, query string, id uuid.UUID, most map[money.Asset]money.Amount, whose string) error {
	var taken decimal.Decimal
	if err := t.Get(ctx, &taken, query, id, n, exchange.DayOf(t.s.now())); err != nil {
		return err
	}
	if limit := most[n.NativeCoin()]; taken.GreaterThanOrEqual(limit.Decimal()) {
		return exchange.Errorf(exchange.CodeLimitReached, "The network fees of %s on %s have reached the daily limit of %s %s. Try again tomorrow.",
			whose, n, limit, limit.Asset())
	}
	return nil
}

// orderFees checks an order against the fee limits of its customer and its vendor: together they could make the house
// pay a fee for each of many small orders.
func (t unitTx) orderFees(ctx context.Context, role exchange.Role, o exchange.Order) error {
	if err := t.underFees(ctx, o.Network, feesOfUser, o.CustomerID, t.s.limits.fees(role), "your payments"); err != nil {
		return err
	}
	if o.VendorID == exchange.PlatformTreasury {
		return nil // the house has a budget of its own
	}
	return t.underFees(ctx, o.Network, feesOfMerchant, o.VendorID, t.s.limits.MerchantFees, "this vendor's payments")
}

// transferFees does the same for a transfer. Only the house's budget bounds those of its own treasury.
func (t unitTx) transferFees(ctx context.Context, role exchange.Role, f exchange.Transfer) error {
	switch {
	case f.VendorID != uuid.Nil:
		return t.underFees(ctx, f.Network, feesOfMerchant, f.VendorID, t.s.limits.MerchantFees, "your payments")
	case f.SenderID != uuid.Nil:
		return t.underFees(ctx, f.Network, feesOfUser, f.RequestedBy, t.s.limits.fees(role), "your payments")
	}
	return nil
}

// FeesLeft is the remainder of the house's daily budget on the payment's network, without the payment's own fee. It is
// negative when overdrawn. Payments signed at the same moment don't see each other.
func (s *Store) FeesLeft(ctx context.Context, p exchange.ChainPayment) (money.Amount, bool, error) {
	limit := s.limits.HouseFees[p.Network.NativeCoin()]
	var taken decimal.Decimal
	if err := s.db.Get(ctx, &taken, feesOfOthers, p.Network, exchange.DayOf(s.now()), p.ID); err != nil {
		return limit, true, translate(err, "network fee")
	}
	sum, err := amountOf(limit.Asset(), taken)
	if err != nil {
		return limit, true, err
	}
	return limit.Sub(sum), true, nil
}
