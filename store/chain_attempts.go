package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const txColumns = `id, payment_id, network, n, tx_id, raw, expires_at, last_valid_height, nonce, ref_block, fee_limit, status, block, block_id, fee,
	last_code, broadcasts, created_at, updated_at`

// txRow is a row of chain_attempts.
type txRow struct {
	ID              uuid.UUID
	PaymentID       uuid.UUID `db:"payment_id"`
	Network         exchange.Network
	N               int
	TxID            string `db:"tx_id"`
	Raw             []byte
	ExpiresAt       sql.NullTime `db:"expires_at"`
	LastValidHeight int64        `db:"last_valid_height"`
	Nonce           int64
	RefBlock        string          `db:"ref_block"`
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
		LastValidHeight: uint64(max(r.LastValidHeight, 0)), Nonce: uint64(max(r.Nonce, 0)), RefBlock: r.RefBlock, Status: r.Status,
		Block: uint64(max(r.Block, 0)), BlockID: r.BlockID, LastCode: r.LastCode, Broadcasts: r.Broadcasts, CreatedAt: r.CreatedAt.UTC(),
		UpdatedAt: r.UpdatedAt.UTC(),
	}
	var err error
	if a.FeeLimit, err = amountOf(r.Network.NativeCoin(), r.FeeLimit); err != nil {
		return a, err
	}
	a.Fee, err = amountOf(r.Network.NativeCoin(), r.Fee)
	return a, err
}

const readLiveTx = `SELECT ` + txColumns + ` FROM chain_attempts WHERE payment_id = $1 AND status IN ('signed', 'broadcast', 'included')`

// LiveAttempt finds the transaction of a payment that may still move money.
func (s *Store) LiveAttempt(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, bool, error) {
	var rows []txRow
	if err := s.readAll(ctx, &rows, readLiveTx, paymentID); err != nil || len(rows) == 0 {
		return exchange.ChainAttempt{}, false, translate(err, "transaction")
	}
	a, err := rows[0].attempt()
	return a, err == nil, err
}

func (t unitTx) liveAttempt(ctx context.Context, paymentID uuid.UUID) (exchange.ChainAttempt, bool, error) {
	var rows []txRow
	if err := t.all(ctx, &rows, readLiveTx, paymentID); err != nil || len(rows) == 0 {
		return exchange.ChainAttempt{}, false, err
	}
	a, err := rows[0].attempt()
	return a, true, err
}

const readTx = `SELECT ` + txColumns + ` FROM chain_attempts WHERE id = $1`

// ChainAttempt reads one transaction.
func (s *Store) ChainAttempt(ctx context.Context, id uuid.UUID) (exchange.ChainAttempt, error) {
	var r txRow
	if err := s.read(ctx, &r, readTx, id); err != nil {
		return exchange.ChainAttempt{}, translate(err, "transaction")
	}
	return r.attempt()
}

const nextTxNumber = `SELECT coalesce(max(n), 0) + 1 FROM chain_attempts WHERE payment_id = $1`

const insertTx = `
INSERT INTO chain_attempts (id, payment_id, network, n, tx_id, raw, expires_at, last_valid_height, nonce, ref_block, fee_limit, status, created_at, updated_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'signed', $12, $12) RETURNING ` + txColumns

// SaveSignedAttempt stores signed bytes before they are first sent. When a transaction of the payment is
// alive already, that one is returned and the given one is dropped unsent: only stored bytes are ever
// sent. Its number is given here. CodeStateConflict unless the payment is approved, CodeConflict when
// another payment has the transaction id.
func (s *Store) SaveSignedAttempt(ctx context.Context, a exchange.ChainAttempt) (exchange.ChainAttempt, error) {
	return change(ctx, s, "transaction", a.PaymentID, func(ctx context.Context, t unitTx) (exchange.ChainAttempt, exchange.Posting, error) {
		var none exchange.Posting
		o, before, err := t.objectOf(ctx, a.PaymentID)
		if err != nil {
			return exchange.ChainAttempt{}, none, err
		}
		if live, alive, err := t.liveAttempt(ctx, a.PaymentID); err != nil || alive {
			return live, none, err
		}
		p := before
		p.Status, p.TxID, p.Detail, p.Block = exchange.ChainSigned, a.TxID, "", 0
		if _, err := t.savePayment(ctx, flow, o, before, p); err != nil {
			return exchange.ChainAttempt{}, none, err
		}
		var n int
		if err := t.get(ctx, &n, nextTxNumber, a.PaymentID); err != nil {
			return exchange.ChainAttempt{}, none, err
		}
		limit := a.FeeLimit
		if limit.Asset() == "" {
			limit = money.Zero(before.Network.NativeCoin())
		}
		var r txRow
		err = t.get(ctx, &r, insertTx, a.ID, a.PaymentID, before.Network, n, a.TxID, a.Raw, nullTime(a.ExpiresAt), int64(a.LastValidHeight), int64(a.Nonce), //nolint:gosec // G115: heights and nonces are far from the limit
			a.RefBlock, limit.Decimal(), t.s.now())
		if err != nil {
			return exchange.ChainAttempt{}, none, err
		}
		saved, err := r.attempt()
		if err != nil {
			return saved, none, err
		}
		_, err = t.orderFollows(ctx, o, o.Status, exchange.WaitBroadcast, o.TxHash)
		return saved, none, err
	})
}

// step is one report of the chain about one transaction.
type step struct {
	t       unitTx
	order   exchange.Order
	payment exchange.ChainPayment
	tx      exchange.ChainAttempt
	posting exchange.Posting
}

const paymentOfTx = `SELECT payment_id FROM chain_attempts WHERE id = $1`

const lockTx = `SELECT ` + txColumns + ` FROM chain_attempts WHERE id = $1 FOR NO KEY UPDATE`

// chainStep locks a transaction with its payment and order, runs fn, and returns the payment.
func (s *Store) chainStep(ctx context.Context, attemptID uuid.UUID, fn func(context.Context, *step) error) (exchange.ChainPayment, error) {
	return change(ctx, s, "transaction", attemptID, func(ctx context.Context, t unitTx) (exchange.ChainPayment, exchange.Posting, error) {
		st := &step{t: t}
		var paymentID uuid.UUID
		if err := t.get(ctx, &paymentID, paymentOfTx, attemptID); err != nil {
			return st.payment, st.posting, translate(err, "transaction")
		}
		var err error
		if st.order, st.payment, err = t.objectOf(ctx, paymentID); err != nil {
			return st.payment, st.posting, err
		}
		var r txRow
		if err := t.get(ctx, &r, lockTx, attemptID); err != nil {
			return st.payment, st.posting, translate(err, "transaction")
		}
		if st.tx, err = r.attempt(); err != nil {
			return st.payment, st.posting, err
		}
		err = fn(ctx, st)
		return st.payment, st.posting, err
	})
}

const saveTx = `
UPDATE chain_attempts SET status = $2, block = $3, block_id = $4, fee = $5, last_code = $6, broadcasts = $7, updated_at = $8
WHERE id = $1 AND status = ANY ($9)`

// saveTx stores what the chain says of the transaction.
func (st *step) saveTx(ctx context.Context, a exchange.ChainAttempt) error {
	from := []exchange.ChainAttemptStatus{st.tx.Status}
	if a.Status != st.tx.Status {
		if err := exchange.ChainAttemptMachine.Allow(st.tx.Status, a.Status); err != nil {
			return err
		}
		from = exchange.ChainAttemptMachine.Sources(a.Status)
	}
	err := st.t.one(ctx, saveTx, a.ID, a.Status, int64(a.Block), a.BlockID, a.Fee.Decimal(), clip(a.LastCode, 500), a.Broadcasts, st.t.s.now(), pq.Array(from)) //nolint:gosec // G115: block numbers are far from the limit
	st.tx = a
	return err
}

// pay moves the payment, unless it is there already.
func (st *step) pay(ctx context.Context, to exchange.ChainPaymentStatus, edit func(*exchange.ChainPayment)) error {
	p := st.payment
	p.Status = to
	edit(&p)
	if p.Status == st.payment.Status && p.Detail == st.payment.Detail && p.TxID == st.payment.TxID && p.Block == st.payment.Block {
		return nil
	}
	var err error
	st.payment, err = st.t.savePayment(ctx, flow, st.order, st.payment, p)
	return err
}

// follow moves the order along with the payment.
func (st *step) follow(ctx context.Context, to exchange.OrderStatus, detail, txHash string) error {
	var err error
	st.order, err = st.t.orderFollows(ctx, st.order, to, detail, txHash)
	return err
}

// RecordBroadcast stores a node's answer to the signed bytes. Once a node took them, the payment is
// broadcast and its order confirming.
func (s *Store) RecordBroadcast(ctx context.Context, attemptID uuid.UUID, code string, accepted bool) (exchange.ChainPayment, error) {
	return s.chainStep(ctx, attemptID, func(ctx context.Context, st *step) error {
		a := st.tx
		if !a.Alive() {
			return nil // a late answer about a transaction whose fate is known
		}
		a.LastCode = code
		a.Broadcasts++
		if accepted && a.Status == exchange.TxSigned {
			a.Status = exchange.TxBroadcast
		}
		if err := st.saveTx(ctx, a); err != nil || !accepted {
			return err
		}
		if st.payment.Status == exchange.ChainSigned {
			if err := st.pay(ctx, exchange.ChainBroadcast, func(*exchange.ChainPayment) {}); err != nil {
				return err
			}
		}
		return st.follow(ctx, exchange.OrderConfirming, exchange.WaitFinality, a.TxID)
	})
}

// RecordIncluded stores the block in which the transaction was seen; the block is not final yet.
func (s *Store) RecordIncluded(ctx context.Context, attemptID uuid.UUID, block uint64, blockID string) (exchange.ChainPayment, error) {
	return s.chainStep(ctx, attemptID, func(ctx context.Context, st *step) error {
		a := st.tx
		if a.Status == exchange.TxSucceeded || a.Status == exchange.TxFailed {
			return nil // final already
		}
		a.Status, a.Block, a.BlockID = exchange.TxIncluded, block, blockID
		if err := st.saveTx(ctx, a); err != nil {
			return err
		}
		if err := st.pay(ctx, exchange.ChainIncluded, func(p *exchange.ChainPayment) { p.TxID, p.Block = a.TxID, block }); err != nil {
			return err
		}
		return st.follow(ctx, exchange.OrderConfirming, exchange.WaitFinality, a.TxID)
	})
}

// RecordVanished stores that the transaction's block was reorganised away. The transaction is as good as
// broadcast again, and its order back in processing.
func (s *Store) RecordVanished(ctx context.Context, attemptID uuid.UUID) (exchange.ChainPayment, error) {
	return s.chainStep(ctx, attemptID, func(ctx context.Context, st *step) error {
		a := st.tx
		if a.Status == exchange.TxBroadcast || a.Status == exchange.TxSigned {
			return nil // vanished before
		}
		a.Status, a.Block, a.BlockID = exchange.TxBroadcast, 0, ""
		if err := st.saveTx(ctx, a); err != nil {
			return err
		}
		if err := st.pay(ctx, exchange.ChainBroadcast, func(p *exchange.ChainPayment) { p.Block = 0 }); err != nil {
			return err
		}
		return st.follow(ctx, exchange.OrderProcessing, exchange.WaitBroadcast, st.order.TxHash)
	})
}

// RecordExpired stores the proof that the transaction can never be included any more. Only now may
// another one be signed.
func (s *Store) RecordExpired(ctx context.Context, attemptID uuid.UUID, evidence string) (exchange.ChainPayment, error) {
	return s.chainStep(ctx, attemptID, func(ctx context.Context, st *step) error {
		a := st.tx
		if a.Status == exchange.TxExpired {
			return nil
		}
		a.Status, a.LastCode, a.Block, a.BlockID = exchange.TxExpired, evidence, 0, ""
		if err := st.saveTx(ctx, a); err != nil {
			return err
		}
		if err := st.pay(ctx, exchange.ChainApproved, func(p *exchange.ChainPayment) { p.TxID, p.Block = "", 0 }); err != nil {
			return err
		}
		return st.follow(ctx, exchange.OrderProcessing, exchange.WaitSignature, "")
	})
}

// RecordFinal stores the end of a transaction in a final block, with what the network took. One that
// made the expected transfer completes the payment: the reserved crypto is spent and has left custody.
// One that failed parks the payment for a person; its fee is booked all the same. It may be called
// again with the same outcome.
func (s *Store) RecordFinal(ctx context.Context, attemptID uuid.UUID, ok bool, block uint64, blockID string, fee money.Amount, code string) (exchange.ChainPayment, error) {
	to := exchange.TxFailed
	if ok {
		to = exchange.TxSucceeded
	}
	return s.chainStep(ctx, attemptID, func(ctx context.Context, st *step) error {
		a := st.tx
		if a.Status == to {
			return nil
		}
		if fee.Asset() == "" {
			fee = money.Zero(st.payment.Network.NativeCoin())
		}
		if fee.Sign() < 0 || fee.Asset() != st.payment.Network.NativeCoin() {
			return exchange.Errorf(exchange.CodeInternal, "a fee of %s %s is none of %s", fee, fee.Asset(), st.payment.Network)
		}
		a.Status, a.Block, a.BlockID, a.Fee, a.LastCode = to, block, blockID, fee, code
		if err := st.saveTx(ctx, a); err != nil {
			return err
		}
		total := st.payment.Fee.Add(fee)
		if ok {
			return st.complete(ctx, fee, total)
		}
		if err := st.pay(ctx, exchange.ChainParked, func(p *exchange.ChainPayment) {
			p.Detail, p.TxID, p.Block, p.Fee = clip(code, 200), a.TxID, block, total
		}); err != nil {
			return err
		}
		if fee.Positive() {
			if err := st.bookFee(ctx, "chain_attempt:"+a.ID.String()+":fee", "chain_attempt.failed", fee, nil); err != nil {
				return err
			}
		}
		return st.follow(ctx, st.order.Status, exchange.WaitOperator, st.order.TxHash)
	})
}

// complete spends the reserved crypto.
func (st *step) complete(ctx context.Context, fee, total money.Amount) error {
	err := st.pay(ctx, exchange.ChainCompleted, func(p *exchange.ChainPayment) {
		p.Detail, p.TxID, p.Block, p.Fee = "", st.tx.TxID, st.tx.Block, total
	})
	if err != nil {
		return err
	}
	p := st.payment
	st.posting.Holds = append(st.posting.Holds, exchange.HoldOp{Verb: exchange.HoldCapture, Hold: exchange.Hold{ID: p.HoldID}})
	lines := []exchange.Line{
		exchange.Debit(exchange.Owned(exchange.AccWalletBalance, p.WalletID, p.Amount.Asset()), p.Amount),
		exchange.Credit(exchange.Owned(exchange.AccCustody, p.WalletID, p.Amount.Asset()), p.Amount),
	}
	arrival, err := st.arrival(ctx)
	if err != nil {
		return err
	}
	lines = append(lines, arrival...)
	if err := st.bookFee(ctx, "chain_payment:"+p.ID.String()+":completed", "chain_payment.completed", fee, lines); err != nil {
		return err
	}
	return st.follow(ctx, st.order.Status, exchange.WaitFinality, st.tx.TxID)
}

const readWalletAt = `SELECT id FROM wallets WHERE network = $1 AND address = $2`

// arrival books the other end of a payment that goes to a wallet in our custody: what the chain added to
// it belongs to its owner. A payment to anybody else leaves our books.
func (st *step) arrival(ctx context.Context) ([]exchange.Line, error) {
	p := st.payment
	var ours []uuid.UUID
	if err := st.t.all(ctx, &ours, readWalletAt, p.Network, p.ToAddress); err != nil || len(ours) == 0 {
		return nil, err
	}
	return []exchange.Line{
		exchange.Debit(exchange.Owned(exchange.AccCustody, ours[0], p.Amount.Asset()), p.Amount),
		exchange.Credit(exchange.Owned(exchange.AccWalletBalance, ours[0], p.Amount.Asset()), p.Amount),
	}, nil
}

const lockGas = `SELECT posted - held FROM ledger_accounts WHERE code = $1 FOR NO KEY UPDATE`

// bookFee books what the network took, in one entry with lines. The chain is right about what was in
// the wallet: gas coins that arrived without our knowing are booked to suspense first, because a fee
// that was paid can't be refused.
func (st *step) bookFee(ctx context.Context, key, kind string, fee money.Amount, lines []exchange.Line) error {
	p := st.payment
	gas := exchange.Owned(exchange.AccCustody, p.WalletID, fee.Asset())
	var free []decimal.Decimal
	if err := st.t.all(ctx, &free, lockGas, gas.Code()); err != nil {
		return err
	}
	known := money.Zero(fee.Asset())
	if len(free) == 1 {
		var err error
		if known, err = amountOf(fee.Asset(), free[0]); err != nil {
			return err
		}
	}
	if short := fee.Sub(known); short.Positive() {
		st.posting.Entries = append(st.posting.Entries, exchange.Entry{
			Key: "chain_attempt:" + st.tx.ID.String() + ":gas", Kind: "gas.found", ObjectType: "chain_payment", ObjectID: p.ID,
			Lines: []exchange.Line{exchange.Debit(gas, short), exchange.Credit(exchange.House(exchange.AccSuspense, fee.Asset()), short)},
		})
	}
	lines = append(lines, exchange.Debit(exchange.House(exchange.AccNetworkFees, fee.Asset()), fee), exchange.Credit(gas, fee))
	st.posting.Entries = append(st.posting.Entries, exchange.Entry{
		Key: key, Kind: kind, ObjectType: "chain_payment", ObjectID: p.ID, Lines: exchange.Lines(lines...),
	})
	return nil
}
