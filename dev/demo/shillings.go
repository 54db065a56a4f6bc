package demo

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// What the buyers of crypto have to pay with, in shillings. Each of a vendor's offers reserves its part.
const (
	vendorKES   = "3000000"
	platformKES = "1000000"
)

// shillings books what vendors brought to our bank, and what the house set apart for the sales in which it is the
// vendor itself. Each is booked once.
func (s *seeder) shillings(ctx context.Context) error {
	brought := map[uuid.UUID]string{exchange.PlatformTreasury: platformKES}
	for email := range s.vendors {
		brought[s.ids[email]] = vendorKES
	}
	for owner, text := range brought {
		kes := money.Must(money.KES, text)
		err := s.store.Post(ctx, exchange.Posting{Entries: []exchange.Entry{{
			Key: "opening:fiat_balance:" + owner.String(), Kind: "fiat.opening", ObjectType: "user", ObjectID: owner,
			Lines: exchange.Lines(
				exchange.Debit(exchange.House(exchange.AccBank, money.KES), kes),
				exchange.Credit(exchange.Owned(exchange.AccFiatBalance, owner, money.KES), kes)),
		}}})
		if err != nil {
			return err
		}
	}
	return nil
}
