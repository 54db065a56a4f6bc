package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Whether a transaction may be signed. A database restored from a backup knows less than the chain: the watch has to
// read the chain first, and unknown transactions that it finds hold payments up.

// The limits of how far the watch over a network may lag for payments to be signed.
const (
	// MaxSigningLag is how many final blocks may be unbooked. Ethereum finalises 32 blocks at once.
	MaxSigningLag = 150
	// MaxLookAge is how old the watch's last look at the network may be.
	MaxLookAge = 2 * time.Minute
	// MaxWatchGap is how long the watch may pause without counting as resumed. Restoring a database and restarting
	// takes longer; docs/deployment.md requires the rest.
	MaxWatchGap = 5 * time.Minute
	// lifeMargin covers the difference between our clock and the chain's.
	lifeMargin = time.Minute
)

const readHold = `SELECT payment_hold($1)`

// hold is the unsettled history of a payment that blocks it until an officer settles it.
func (t unitTx) hold(ctx context.Context, paymentID uuid.UUID) (exchange.SigningHold, error) {
	var hold exchange.SigningHold
	err := t.Get(ctx, &hold, readHold, paymentID)
	return hold, err
}

const readGivingUp = `SELECT giving_up_waits($1)`

// mayGiveUp refuses to end a payment whose money may have left anyway. CodeStateConflict while that is for an officer to settle;
// CodeUnavailable with the cause exchange.ErrUnread while it is not known yet, so that a repeated call succeeds later. Of a payment that was
// never signed it is known at once. The database refuses it too.
func (t unitTx) mayGiveUp(ctx context.Context, paymentID uuid.UUID) error {
	hold, err := t.hold(ctx, paymentID)
	if err != nil {
		return err
	}
	switch hold {
	case exchange.HoldUnexpected, exchange.HoldSentBefore:
		return exchange.Errorf(exchange.CodeStateConflict, "Money that left the wallet may be this payment (%s). An officer has to settle that before the payment can be given up.", hold)
	case exchange.HoldNone, exchange.HoldForeign, exchange.HoldInactive, exchange.HoldFrozen, exchange.HoldPutBack, exchange.HoldDiffers, exchange.HoldWatch: // nothing of the payment itself
	}
	var waits string
	if err := t.Get(ctx, &waits, readGivingUp, paymentID); err != nil || waits == "" {
		return err
	}
	return exchange.Wrap(exchange.CodeUnavailable, exchange.ErrUnread, "%s", unread[waits])
}

// unread says what the giving up of a payment waits for, by the answers of giving_up_waits.
var unread = map[string]string{
	"put_back": "The database was put back from a backup, so the payment may have been made. It is given up when two officers have released the database.",
	"watch":    "The deposit watch was away and has not read the network's blocks again, so the payment may have been made. It is given up when the watch has caught up.",
	"unread":   "A node says that a transaction of the payment failed. It is given up when the deposit watch has read all of the network's blocks that could have that transaction.",
}

const readSigningState = `
SELECT EXISTS (SELECT FROM chain_attempts a WHERE a.payment_id = p.id AND a.status IN ('signed', 'broadcast', 'included', 'replaced')) AS alive,
    payment_hold(p.id) AS hold, c.final_number, l.final_head, l.looked_at, coalesce(l.identity = database_identity(), false) AS same,
    l.resumed_at IS NULL OR coalesce(l.passed <= c.final_number, false) AS passed,
    NOT unread_failure(p.id) AS read, put_back() AS put_back
FROM chain_payments p LEFT JOIN deposit_cursors c ON c.network = p.network LEFT JOIN deposit_looks l ON l.network = p.network WHERE p.id = $1`

// signingState is what a signature of a payment depends on.
type signingState struct {
	Alive    bool
	Hold     exchange.SigningHold
	Final    sql.NullInt64 `db:"final_number"`
	Head     sql.NullInt64 `db:"final_head"`
	LookedAt sql.NullTime
	Same     bool
	Passed   sql.NullBool
	Read     bool // that its failed transactions moved nothing
	PutBack  bool
}

// behind reports whether the watch over the payment's network may not know what the payment has moved.
func (r signingState) behind(now time.Time) bool {
	fresh := r.Final.Valid && r.LookedAt.Valid && now.Sub(r.LookedAt.Time) <= MaxLookAge
	return !fresh || !r.Same || !r.Passed.Bool || !r.Read || r.Head.Int64-r.Final.Int64 > MaxSigningLag
}

// SigningHold returns what prevents signing another transaction of a payment that has no live one.
func (s *Store) SigningHold(ctx context.Context, paymentID uuid.UUID) (exchange.SigningHold, error) {
	var r signingState
	if err := s.db.Get(ctx, &r, readSigningState, paymentID); err != nil {
		return exchange.HoldNone, translate(err, "chain payment")
	}
	switch {
	case r.Alive: // a signed transaction proceeds, and no other one can pay besides it
		return exchange.HoldNone, nil
	case r.Hold != exchange.HoldNone:
		return r.Hold, nil
	case r.behind(s.now()):
		return exchange.HoldWatch, nil
	}
	return exchange.HoldNone, nil
}

// unknown is why the chain may know more of a payment than this database, which a freeze or another hold does not hide: HoldPutBack,
// HoldWatch, or none.
func (t unitTx) unknown(ctx context.Context, paymentID uuid.UUID) (exchange.SigningHold, error) {
	var r signingState
	err := t.Get(ctx, &r, readSigningState, paymentID)
	switch {
	case err != nil:
		return exchange.HoldNone, translate(err, "chain payment")
	case r.PutBack:
		return exchange.HoldPutBack, nil
	case r.behind(t.s.now()):
		return exchange.HoldWatch, nil
	}
	return exchange.HoldNone, nil
}

// The first look at a network with known transactions may be that of a restored database too.
const watchAlive = `
INSERT INTO deposit_looks AS l (network, identity, alive_at, resumed_at)
VALUES ($1::text, database_identity(), $2::timestamptz, CASE WHEN EXISTS (SELECT FROM chain_attempts WHERE network = $1::text) THEN $2::timestamptz END)
ON CONFLICT (network) DO UPDATE SET identity = EXCLUDED.identity, alive_at = greatest(l.alive_at, EXCLUDED.alive_at),
    resumed_at = CASE WHEN l.identity <> EXCLUDED.identity OR EXCLUDED.alive_at - l.alive_at > $3::bigint * interval '1 second' THEN EXCLUDED.alive_at ELSE l.resumed_at END,
    resumed_height = CASE WHEN l.identity <> EXCLUDED.identity OR EXCLUDED.alive_at - l.alive_at > $3::bigint * interval '1 second' THEN NULL ELSE l.resumed_height END,
    passed = CASE WHEN l.identity <> EXCLUDED.identity OR EXCLUDED.alive_at - l.alive_at > $3::bigint * interval '1 second' THEN NULL ELSE l.passed END`

// WatchAlive records a heartbeat of the watch over a network, whatever the network's response. After a pause longer
// than MaxWatchGap, or in another database than before, the watch has resumed: transactions unknown to this database
// may have been signed before. Signing then waits until those have either been seen or can no longer be included.
func (s *Store) WatchAlive(ctx context.Context, n exchange.Network) error {
	return s.inTx(ctx, "watch", func(t unitTx) error {
		_, err := t.Exec(ctx, watchAlive, n, t.s.now(), int64(MaxWatchGap/time.Second))
		return err
	})
}

const recordLook = `
UPDATE deposit_looks SET looked_at = $2, final_head = $3::bigint, resumed_height = coalesce(resumed_height, $4::bigint),
    passed = CASE WHEN resumed_at IS NOT NULL AND passed IS NULL
        AND ($7::bigint = 0 OR $5::timestamptz >= resumed_at + $7::bigint * interval '1 second')
        AND ($8::bigint = 0 OR $6::bigint > coalesce(resumed_height, $4) + $8::bigint) THEN $3::bigint ELSE passed END
WHERE network = $1::text`

// RecordLook records the network's height at the watch's last look, after WatchAlive. Once the final chain has
// outlived every transaction signed before the watch resumed, signing continues when the watch has booked the blocks
// up to there.
func (s *Store) RecordLook(ctx context.Context, l exchange.WatchLook) error {
	life := int64(0)
	if l.Life > 0 {
		life = int64((l.Life + lifeMargin) / time.Second)
	}
	return s.inTx(ctx, "watch", func(t unitTx) error {
		return t.One(ctx, recordLook, l.Network, t.s.now(), blockNumber(l.Final.Number), blockNumber(l.LatestHeight), nullTime(l.Final.Time),
			blockNumber(l.FinalHeight), life, blockNumber(l.LifeBlocks))
	})
}

// AwaitSignature shows on a payment's object that its signature waits for the watch or for the release of the database, or
// until a freeze is lifted. It changes nothing when the payment is no longer approved.
func (s *Store) AwaitSignature(ctx context.Context, paymentID uuid.UUID, hold exchange.SigningHold) error {
	stage := stageWaiting
	if hold == exchange.HoldFrozen {
		stage = stageFrozen
	}
	_, err := change(ctx, s, "chain payment", paymentID, func(ctx context.Context, t unitTx) (struct{}, exchange.Posting, error) {
		object, p, err := t.objectOf(ctx, paymentID)
		if err != nil || p.Status != exchange.ChainApproved {
			return struct{}{}, exchange.Posting{}, err
		}
		return struct{}{}, exchange.Posting{}, object.follow(ctx, t, stage, "")
	})
	return err
}
