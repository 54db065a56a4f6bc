package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const txColumns = `id, payment_id, network, n, tx_id, raw, expires_at, last_valid_height, nonce_wallet, nonce, ref_block, nonce_account, nonce_block, adopted, CASE WHEN bid_cap > 0 THEN bid_tip||' '||network END AS "bid.tip",
	CASE WHEN bid_cap > 0 THEN bid_cap||' '||network END AS "bid.cap", fee_limit||' '||network AS fee_limit,
	status, block, block_id, fee||' '||network AS fee, last_code, broadcasts, created_at, updated_at`

const readLiveTx = `SELECT ` + txColumns + ` FROM chain_attempts WHERE payment_id = $1 AND status IN ('signed', 'broadcast', 'included')`

// LiveAttempt finds the leading transaction of a payment: it is broadcast or in a block. Others with the same number
// may be alive beside it; see LiveAttempts.
func (s *Store) LiveAttempt(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, bool, error) {
	var rows []exchange.ChainAttempt
	if err := s.db.All(ctx, &rows, readLiveTx, paymentID); err != nil || len(rows) == 0 {
		return exchange.ChainAttempt{}, false, translate(err, "transaction")
	}
	return rows[0], true, nil
}

func (t unitTx) liveAttempt(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, bool, error) {
	return readFound[exchange.ChainAttempt](ctx, t, readLiveTx, paymentID)
}

const readAllLive = `SELECT ` + txColumns + ` FROM chain_attempts
WHERE payment_id = $1 AND status IN ('signed', 'broadcast', 'included', 'replaced') ORDER BY n DESC`

// LiveAttempts finds all transactions of a payment that may still move money, newest first. Several share one sequence
// number, so at most one of them is ever included.
func (s *Store) LiveAttempts(ctx context.Context, paymentID uuid.UUID) ([]exchange.ChainAttempt, error) {
	return readAll[exchange.ChainAttempt](ctx, s.db, "transaction", readAllLive, paymentID)
}

func (t unitTx) liveAttempts(ctx context.Context, paymentID uuid.UUID) ([]exchange.ChainAttempt, error) {
	var rows []exchange.ChainAttempt
	if err := t.All(ctx, &rows, readAllLive, paymentID); err != nil {
		return nil, err
	}
	return rows, nil
}

const readTx = `SELECT ` + txColumns + ` FROM chain_attempts WHERE id = $1`

// ChainAttempt reads one transaction.
func (s *Store) ChainAttempt(ctx context.Context, id uuid.UUID) (exchange.ChainAttempt, error) {
	return readOne[exchange.ChainAttempt](ctx, s.db, "transaction", readTx, id)
}
