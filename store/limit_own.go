package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
)

const countOwn = `
SELECT ` + waitingOrders + ` AS waiting, ` + unpaidOwn + ` AS unpaid, ` + unpaidAsked + ` AS asked, (` + countWallets + `) AS wallets, (` + countSubvendors + `) AS subvendors`

// OwnLimits reads the limits of a user with what is used of each. Staff have only spending limits.
func (s *Store) OwnLimits(ctx context.Context, u exchange.User) (exchange.OwnLimits, error) {
	var o exchange.OwnLimits
	limits, err := s.LimitsOf(ctx, u)
	if err != nil {
		return o, err
	}
	o.Own, o.Effective = limits.Own, limits.Effective
	if o.Used, err = s.SpentOf(ctx, u); err != nil {
		return o, err
	}
	o.Left = o.Effective.Left(o.Used)
	if u.Role == exchange.RoleSubvendor {
		shared := exchange.User{ID: u.VendorID, Role: exchange.RoleVendor}
		o.Merchant = &exchange.MerchantShare{}
		if o.Merchant.Effective, err = s.effective(ctx, shared.ID, shared.Role); err == nil {
			o.Merchant.Used, err = s.SpentOf(ctx, shared)
		}
		if err != nil {
			return o, err
		}
		o.Left = o.Left.Min(o.Merchant.Effective.Left(o.Merchant.Used))
	}
	if u.Role.Staff() {
		return o, nil
	}
	if o.Counts, err = s.ownCounts(ctx, u); err == nil {
		o.Fees, err = s.ownFees(ctx, u)
	}
	return o, err
}

// ownCounts reads how many of what is counted a user has.
func (s *Store) ownCounts(ctx context.Context, u exchange.User) ([]exchange.CountedLimit, error) {
	vendor, sender := exchange.VendorOf(u), u.ID
	n, err := readOne[struct{ Waiting, Unpaid, Asked, Wallets, Subvendors int }](ctx, s.db, "limit", countOwn, u.ID, nullID(vendor), s.now().Add(-unpaidWindow))
	if err != nil {
		return nil, err
	}
	sent, err := readOne[int](ctx, s.db, "transfer", countSent, exchange.DayOf(s.now()), nullID(vendor), sender)
	if err != nil {
		return nil, err
	}
	counts := []exchange.CountedLimit{
		{Name: exchange.LimitOrdersWaiting, Used: n.Waiting, Most: s.limits.orders(u.Role)},
		{Name: exchange.LimitUnpaidSales, Used: n.Unpaid, Most: s.limits.unpaidSales(u.Role, false)},
		{Name: exchange.LimitTransfers, Used: sent, Most: s.limits.transfers(u.Role)},
		{Name: exchange.LimitWallets, Used: n.Wallets, Most: MaxWalletsPerOwner},
	}
	if u.Role.Merchant() {
		counts = append(counts, exchange.CountedLimit{Name: exchange.LimitCustomersSales, Used: n.Asked, Most: s.limits.unpaidSales(u.Role, true)})
	}
	if u.Role == exchange.RoleVendor {
		counts = append(counts, exchange.CountedLimit{Name: exchange.LimitSubvendors, Used: n.Subvendors, Most: MaxSubvendorsPerVendor})
	}
	return counts, nil
}

// ownFees reads what networks took today for the payments of a user, or of a merchant with its subvendors.
func (s *Store) ownFees(ctx context.Context, u exchange.User) ([]exchange.CountedFees, error) {
	query, id, most := feesOfUser, u.ID, s.limits.fees(u.Role)
	if vendor := exchange.VendorOf(u); vendor != uuid.Nil {
		query, id = feesOfMerchant, vendor
	}
	var all []exchange.CountedFees
	for _, n := range exchange.Networks() {
		taken, err := readOne[decimal.Decimal](ctx, s.db, "network fee", query, id, n, exchange.DayOf(s.now()))
		if err != nil {
			return nil, err
		}
		used, err := amountOf(n.NativeCoin(), taken)
		if err != nil {
			return nil, err
		}
		all = append(all, exchange.CountedFees{Network: n, Used: used, Most: most[n.NativeCoin()]})
	}
	return all, nil
}
