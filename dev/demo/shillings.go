package demo

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The opening balances of those who buy crypto, in shillings. Each of a vendor's offers reserves a part.
const (
	vendorKES   = "3000000"
	platformKES = "1000000"
)

// shillings books the vendors' payments to our bank, and the house's shillings for sales to itself. Each is booked
// once.
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
