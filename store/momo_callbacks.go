package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// MaxCallbackBody bounds the stored body of a callback.
const MaxCallbackBody = 64 << 10

const insertCallback = `
INSERT INTO momo_callbacks (id, attempt_id, kind, remote_ip, body, received_at, off_range, standing, float_move_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (id) DO NOTHING`

// SaveCallback stores a callback as received, before it is processed.
func (s *Store) SaveCallback(ctx context.Context, c exchange.MomoCallback) error {
	if len(c.Body) > MaxCallbackBody {
		return exchange.Errorf(exchange.CodeTooLarge, "A callback must have at most %d bytes.", MaxCallbackBody)
	}
	body := c.Body
	if body == nil {
		body = []byte{}
	}
	_, err := s.write(ctx, "callback", insertCallback, c.ID, nullID(c.AttemptID), c.Kind, clip(c.RemoteIP, maxIPLength), body, c.ReceivedAt,
		c.OffRange, c.Standing, nullID(c.FloatMoveID))
	return err
}

const callbackColumns = `id, attempt_id, kind, remote_ip, off_range, standing, body, received_at, float_move_id`

// maxCallbacksRead bounds how many callbacks of an attempt are read from either end. An attempt has a handful; more
// can only come from an attacker who knows its address. They must not hide the provider's: its first callbacks are
// among the oldest, and its latest are the newest.
const maxCallbacksRead = 100

const readCallbacks = `SELECT ` + callbackColumns + ` FROM momo_callbacks WHERE id IN (
    (SELECT id FROM momo_callbacks WHERE attempt_id = $1 ORDER BY received_at, id LIMIT $2)
    UNION (SELECT id FROM momo_callbacks WHERE attempt_id = $1 ORDER BY received_at DESC, id DESC LIMIT $2))
ORDER BY received_at, id`

// Callbacks lists the callbacks of an attempt, oldest first: all of them, or the hundred oldest and the hundred
// newest.
func (s *Store) Callbacks(ctx context.Context, attemptID uuid.UUID) ([]exchange.MomoCallback, error) {
	return readAll[exchange.MomoCallback](ctx, s.db, "callback", readCallbacks, attemptID, maxCallbacksRead)
}

const insertPayoutQuery = `INSERT INTO payout_queries (attempt_id, ticket, created_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`

// SavePayoutQuery stores the provider's id of a query about a payout, by which its answer is known. A repeated call
// changes nothing.
func (s *Store) SavePayoutQuery(ctx context.Context, attemptID uuid.UUID, ticket string) error {
	_, err := s.write(ctx, "payout query", insertPayoutQuery, attemptID, ticket, s.now())
	return err
}

// PayoutQueries lists the provider's ids of our queries about a payout.
func (s *Store) PayoutQueries(ctx context.Context, attemptID uuid.UUID) ([]string, error) {
	return readAll[string](ctx, s.db, "payout query", `SELECT ticket FROM payout_queries WHERE attempt_id = $1`, attemptID)
}

const readCallback = `SELECT ` + callbackColumns + ` FROM momo_callbacks WHERE id = $1`

// Callback reads one callback.
func (s *Store) Callback(ctx context.Context, id uuid.UUID) (exchange.MomoCallback, error) {
	return readOne[exchange.MomoCallback](ctx, s.db, "callback", readCallback, id)
}

const insertReceipt = `
INSERT INTO momo_receipts (receipt, channel, asset, amount, reference, party_hash, paid_at, received_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (receipt, channel) DO NOTHING`

const countContradictions = `SELECT count(*) FROM momo_receipts WHERE receipt = $1
    AND (asset <> $2 OR amount <> $3 OR (reference <> $4 AND reference <> '' AND $4 <> ''))`

// SaveReceipt stores the report of a notice or a statement row about a payment, once per receipt and channel. The payer is
// kept as a hash. A report with another amount or reference than another is CodeConflict: one of the two is wrong, and
// an operator has to review it.
func (s *Store) SaveReceipt(ctx context.Context, o exchange.Observation) error {
	_, err := s.saveReceipt(ctx, o)
	return err
}

// saveReceipt also reports whether the payment is new. A contradiction to an earlier channel is marked in the
// payment's row, so it must not abort the transaction.
func (s *Store) saveReceipt(ctx context.Context, o exchange.Observation) (created bool, err error) {
	if o.Receipt == "" || !o.Amount.Positive() || o.Amount.Asset() != money.KES {
		return false, exchange.Errorf(exchange.CodeInvalid, "A receipt needs a number and an amount in KES.")
	}
	at := o.At
	if at.IsZero() {
		at = s.now()
	}
	reference, contradicts := typed(o.Reference), false
	err = s.inTx(ctx, "receipt", func(t unitTx) error {
		contradicts = false
		var err error
		if created, err = t.noteC2B(ctx, o); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, insertReceipt, o.Receipt, o.Source, o.Amount.Asset(), o.Amount.Decimal(), reference, partyOf(o), at, t.s.now()); err != nil {
			return err
		}
		var others int
		err = t.Get(ctx, &others, countContradictions, o.Receipt, o.Amount.Asset(), o.Amount.Decimal(), reference)
		contradicts = others > 0
		return err
	})
	if err == nil && contradicts {
		err = exchange.Errorf(exchange.CodeConflict, "The receipt was already reported with another amount or reference.")
	}
	return created, err
}

const readReceipts = `SELECT receipt, channel, asset, amount, reference, party_hash, paid_at FROM momo_receipts
WHERE reference = $1 ORDER BY paid_at, receipt LIMIT 200`

// receiptRow is a row of momo_receipts.
type receiptRow struct {
	Receipt   string
	Channel   exchange.EvidenceSource
	Asset     money.Asset
	Amount    decimal.Decimal
	Reference string
	PartyHash string
	PaidAt    time.Time
}

func (r receiptRow) observation() (exchange.Observation, error) {
	m, err := amountOf(r.Asset, r.Amount)
	return exchange.Observation{
		State: exchange.SeenSucceeded, Receipt: r.Receipt, Source: r.Channel, Amount: m, Reference: r.Reference, PhoneHash: r.PartyHash, At: r.PaidAt.UTC(),
	}, err
}

// ReceiptsFor lists the reports of notices and statements about payments under a reference, oldest first.
func (s *Store) ReceiptsFor(ctx context.Context, reference string) ([]exchange.Observation, error) {
	var rows []receiptRow
	if err := s.db.All(ctx, &rows, readReceipts, reference); err != nil {
		return nil, translate(err, "receipt")
	}
	return convert(rows, receiptRow.observation)
}
