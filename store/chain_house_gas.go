package store

import (
	"context"

	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const readHouseGas = `SELECT house_gas($1, $2)`

// HouseGas is what the house owns in the wallet that pays a payment's fee: the wallet's ledger balance without the
// owner's coins, with top-ups that a block has (RecordGasArrival), and without the possible cost of its other pending
// payments. It is negative when the house owes the
// wallet coins. False where every coin may be used: in wallets of the house, and in cold ones. The database refuses a
// transaction that could cost more.
func (s *Store) HouseGas(ctx context.Context, p exchange.ChainPayment) (money.Amount, bool, error) {
	native := p.Network.NativeCoin()
	var share decimal.NullDecimal
	if err := s.db.Get(ctx, &share, readHouseGas, p.FeeCustody(), p.ID); err != nil || !share.Valid {
		return money.Zero(native), false, translate(err, "wallet")
	}
	m, err := amountOf(native, share.Decimal)
	return m, err == nil, err
}
