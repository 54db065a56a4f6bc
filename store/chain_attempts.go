package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const txColumns = `id, payment_id, network, n, tx_id, raw, expires_at, last_valid_height, nonce_wallet, nonce, ref_block, nonce_account, nonce_block, adopted, bid_tip, bid_cap, fee_limit,
	status, block, block_id, fee, last_code, broadcasts, created_at, updated_at`

// txRow is a row of chain_attempts.
type txRow struct {
	ID              uuid.UUID
	PaymentID       uuid.UUID `db:"payment_id"`
	Network         exchange.Network
	N               int
	TxID            string `db:"tx_id"`
	Raw             []byte
	ExpiresAt       sql.NullTime  `db:"expires_at"`
	LastValidHeight int64         `db:"last_valid_height"`
	NonceWallet     uuid.NullUUID `db:"nonce_wallet"`
	Nonce           int64
	RefBlock        string `db:"ref_block"`
	NonceAccount    string `db:"nonce_account"`
	NonceBlock      int64  `db:"nonce_block"`
	Adopted         bool
	BidTip          decimal.Decimal `db:"bid_tip"`
	BidCap          decimal.Decimal `db:"bid_cap"`
	FeeLimit        decimal.Decimal `db:"fee_limit"`
	Status          exchange.ChainAttemptStatus
	Block           int64
	BlockID         string `db:"block_id"`
	Fee             decimal.Decimal
	LastCode        string `db:"last_code"`
	Broadcasts      int
	CreatedAt       time.Time `db:"created_at"`
	UpdatedAt       time.Time `db:"updated_at"`
}

func (r txRow) attempt() (exchange.ChainAttempt, error) {
	a := exchange.ChainAttempt{
		ID: r.ID, PaymentID: r.PaymentID, Network: r.Network, N: r.N, TxID: r.TxID, Raw: r.Raw, ExpiresAt: utc(r.ExpiresAt),
		LastValidHeight: uint64(max(r.LastValidHeight, 0)), NonceWallet: r.NonceWallet.UUID, Nonce: uint64(max(r.Nonce, 0)), RefBlock: r.RefBlock,
		NonceAccount: r.NonceAccount, NonceBlock: uint64(max(r.NonceBlock, 0)), Adopted: r.Adopted,
		Status: r.Status, Block: uint64(max(r.Block, 0)), BlockID: r.BlockID, LastCode: r.LastCode, Broadcasts: r.Broadcasts,
		CreatedAt: r.CreatedAt.UTC(), UpdatedAt: r.UpdatedAt.UTC(),
	}
	native := r.Network.NativeCoin()
	var err error
	read := func(to *money.Amount, from decimal.Decimal) {
		if err == nil {
			*to, err = amountOf(native, from)
		}
	}
	read(&a.FeeLimit, r.FeeLimit)
	read(&a.Fee, r.Fee)
	if r.BidCap.IsPositive() { // a zero bid is no bid
		read(&a.Bid.Tip, r.BidTip)
		read(&a.Bid.Cap, r.BidCap)
	}
	return a, err
}

const readLiveTx = `SELECT ` + txColumns + ` FROM chain_attempts WHERE payment_id = $1 AND status IN ('signed', 'broadcast', 'included')`

// LiveAttempt finds the leading transaction of a payment: it is broadcast or in a block. Others with the same number
// may be alive beside it; see LiveAttempts.
func (s *Store) LiveAttempt(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, bool, error) {
	var rows []txRow
	if err := s.db.All(ctx, &rows, readLiveTx, paymentID); err != nil || len(rows) == 0 {
		return exchange.ChainAttempt{}, false, translate(err, "transaction")
	}
	a, err := rows[0].attempt()
	return a, err == nil, err
}

func (t unitTx) liveAttempt(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, bool, error) {
	var rows []txRow
	if err := t.All(ctx, &rows, readLiveTx, paymentID); err != nil || len(rows) == 0 {
		return exchange.ChainAttempt{}, false, err
	}
	a, err := rows[0].attempt()
	return a, true, err
}

const readAllLive = `SELECT ` + txColumns + ` FROM chain_attempts
WHERE payment_id = $1 AND status IN ('signed', 'broadcast', 'included', 'replaced') ORDER BY n DESC`

// LiveAttempts finds all transactions of a payment that may still move money, newest first. Several share one sequence
// number, so at most one of them is ever included.
func (s *Store) LiveAttempts(ctx context.Context, paymentID uuid.UUID) ([]exchange.ChainAttempt, error) {
	var rows []txRow
	if err := s.db.All(ctx, &rows, readAllLive, paymentID); err != nil {
		return nil, translate(err, "transaction")
	}
	return attemptsOf(rows)
}

func (t unitTx) liveAttempts(ctx context.Context, paymentID uuid.UUID) ([]exchange.ChainAttempt, error) {
	var rows []txRow
	if err := t.All(ctx, &rows, readAllLive, paymentID); err != nil {
		return nil, err
	}
	return attemptsOf(rows)
}

func attemptsOf(rows []txRow) ([]exchange.ChainAttempt, error) {
	out := make([]exchange.ChainAttempt, len(rows))
	for i, r := range rows {
		var err error
		if out[i], err = r.attempt(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

const readTx = `SELECT ` + txColumns + ` FROM chain_attempts WHERE id = $1`

// ChainAttempt reads one transaction.
func (s *Store) ChainAttempt(ctx context.Context, id uuid.UUID) (exchange.ChainAttempt, error) {
	var r txRow
	if err := s.db.Get(ctx, &r, readTx, id); err != nil {
		return exchange.ChainAttempt{}, translate(err, "transaction")
	}
	return r.attempt()
}
