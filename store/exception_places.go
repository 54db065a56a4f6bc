package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
)

// Where the crypto of exceptions lies: that of a movement, or of a wallet whose chain balance and ledger differ. An
// exception about shillings has no place.
const placesOfExceptions = `
SELECT x.id AS exception_id, d.network, d.tx_id, d.id AS deposit_id, d.wallet_id, d.from_address AS "from", d.to_address AS address,
    o.id AS meant_wallet_id, coalesce(o.network, '') AS meant_network, coalesce(o.address, '') AS meant_address
FROM payment_exceptions x JOIN chain_deposits d ON d.id = deposit_of(x.receipt)
LEFT JOIN wallets w ON w.id = d.wallet_id LEFT JOIN wallets o ON o.id = w.counterpart_of WHERE x.id = ANY ($1::uuid[])
UNION ALL
SELECT r.exception_id, r.network, '', NULL, w.id, '', w.address, NULL, '', ''
FROM reconciliation_differences r JOIN wallets w ON w.id = r.wallet_id WHERE r.exception_id = ANY ($1::uuid[])`

type exceptionPlaceRow struct {
	ExceptionID uuid.UUID
	exchange.ExceptionPlace
}

// fillPlaces adds to exceptions about crypto the place where it lies.
func (s *Store) fillPlaces(ctx context.Context, all []exchange.PaymentException) error {
	ids, at := make([]string, len(all)), make(map[uuid.UUID]int, len(all))
	for i, x := range all {
		ids[i], at[x.ID] = x.ID.String(), i
	}
	var rows []exceptionPlaceRow
	if err := s.db.All(ctx, &rows, placesOfExceptions, pq.Array(ids)); err != nil {
		return translate(err, "payment exception")
	}
	for _, r := range rows {
		all[at[r.ExceptionID]].Place = r.ExceptionPlace
	}
	return nil
}

// placed is an exception with the place of its crypto.
func (s *Store) placed(ctx context.Context, x exchange.PaymentException) (exchange.PaymentException, error) {
	one := []exchange.PaymentException{x}
	err := s.fillPlaces(ctx, one)
	return one[0], err
}
