package demo

import (
	"context"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// vendorKES is what a vendor who buys crypto has, in shillings. Each of its offers reserves a part.
const vendorKES = "3000000"

// shillings books what the vendors have, out of the house's capital. Each is booked once.
func (s *seeder) shillings(ctx context.Context) error {
	kes := money.Must(money.KES, vendorKES)
	for email := range s.vendors {
		owner := s.ids[email]
		err := s.store.Post(ctx, exchange.Posting{Entries: []exchange.Entry{{
			Key: "opening:fiat_balance:" + owner.String(), Kind: "fiat.opening", ObjectType: "user", ObjectID: owner,
			Lines: exchange.Lines(
				exchange.Debit(exchange.House(exchange.AccCapital, money.KES), kes),
				exchange.Credit(exchange.Owned(exchange.AccFiatBalance, owner, money.KES), kes)),
		}}})
		if err != nil {
			return err
		}
	}
	return nil
}
