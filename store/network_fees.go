package store

import (
	"context"
	"maps"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// What networks take for somebody's payments is counted by triggers in network_fees, whoever writes the payments.

// defaultFees are the most that each network may take in a day of Kenya, in its coin.
func defaultFees(eth, trx, sol string) map[money.Asset]money.Amount {
	return map[money.Asset]money.Amount{
		money.ETH: money.Must(money.ETH, eth), money.TRX: money.Must(money.TRX, trx), money.SOL: money.Must(money.SOL, sol),
	}
}

// bounded fills the coins that are not given.
func bounded(given, missing map[money.Asset]money.Amount) map[money.Asset]money.Amount {
	all := maps.Clone(missing)
	for coin, m := range given {
		if m.Positive() && m.Asset() == coin {
			all[coin] = m
		}
	}
	return all
}

// fees is what networks may take in a day for the payments of somebody with a role.
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

// underFees refuses one more payment of somebody whose payments cost the house as much today as they may.
func (t unitTx) underFees(ctx context.Context, n exchange.Network, query string, id uuid.UUID, most map[money.Asset]money.Amount, whose string) error {
	var taken decimal.Decimal
	if err := t.get(ctx, &taken, query, id, n, exchange.DayOf(t.s.now())); err != nil {
		return err
	}
	if limit := most[n.NativeCoin()]; taken.GreaterThanOrEqual(limit.Decimal()) {
		return exchange.Errorf(exchange.CodeLimitReached, "The network fees of %s on %s have reached %s %s, the most of a day. Try again tomorrow.",
			whose, n, limit, limit.Asset())
	}
	return nil
}

// orderFees holds an order against what its customer's and its vendor's payments may cost: together they could
// have the house pay a fee for each of many small orders.
func (t unitTx) orderFees(ctx context.Context, role exchange.Role, o exchange.Order) error {
	if err := t.underFees(ctx, o.Network, feesOfUser, o.CustomerID, t.s.limits.fees(role), "your payments"); err != nil {
		return err
	}
	if o.VendorID == exchange.PlatformTreasury {
		return nil // the house has a budget of its own
	}
	return t.underFees(ctx, o.Network, feesOfMerchant, o.VendorID, t.s.limits.MerchantFees, "this vendor's payments")
}

// transferFees is the same for a transfer. Those of the house's own treasury are bounded by the house's budget alone.
func (t unitTx) transferFees(ctx context.Context, role exchange.Role, f exchange.Transfer) error {
	switch {
	case f.VendorID != uuid.Nil:
		return t.underFees(ctx, f.Network, feesOfMerchant, f.VendorID, t.s.limits.MerchantFees, "your payments")
	case f.SenderID != uuid.Nil:
		return t.underFees(ctx, f.Network, feesOfUser, f.RequestedBy, t.s.limits.fees(role), "your payments")
	}
	return nil
}

// FeesLeft is what the house's budget of the day has left on the payment's network, without what the payment
// itself took of it. Below zero it is overdrawn. Payments that are signed at the same moment don't see each other.
func (s *Store) FeesLeft(ctx context.Context, p exchange.ChainPayment) (money.Amount, bool, error) {
	limit := s.limits.HouseFees[p.Network.NativeCoin()]
	var taken decimal.Decimal
	if err := s.read(ctx, &taken, feesOfOthers, p.Network, exchange.DayOf(s.now()), p.ID); err != nil {
		return limit, true, translate(err, "network fee")
	}
	sum, err := amountOf(limit.Asset(), taken)
	if err != nil {
		return limit, true, err
	}
	return limit.Sub(sum), true, nil
}
