package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const breakerColumns = `provider, hits, trial, code, opened_at, closed_at, closed_by, note`

// Whether the database may send, which holds for all providers.
const releaseColumns = `NOT database_released() AS moved, (SELECT max(released_at) FROM database_releases WHERE change_id IS NOT NULL) AS released_at`

func breakerSnapshot(b exchange.Breaker) map[string]any {
	return map[string]any{"provider": b.Provider, "state": b.State(), "code": b.Code, "note": b.Note}
}

const (
	readBreaker = `SELECT ` + breakerColumns + `, ` + releaseColumns + ` FROM momo_breakers WHERE provider = $1`
	noBreaker   = `SELECT $1::text AS provider, 0 AS hits, false AS trial, '' AS code, NULL::timestamptz AS opened_at, NULL::timestamptz AS closed_at,
		NULL::uuid AS closed_by, '' AS note, ` + releaseColumns
)

// Breaker is the circuit breaker of a provider's payouts; closed where no payout was ever refused.
func (s *Store) Breaker(ctx context.Context, provider string) (exchange.Breaker, error) {
	var r exchange.Breaker
	err := s.db.Get(ctx, &r, readBreaker, provider)
	if exchange.CodeOf(translate(err, "breaker")) == exchange.CodeNotFound {
		err = s.db.Get(ctx, &r, noBreaker, provider)
	}
	return r, translate(err, "breaker")
}

const payoutStopped = isSuspended + ` OR frozen() OR $2 = 'order' AND order_party_gone($3)
    OR EXISTS (SELECT FROM otc_withdrawals w WHERE $2 = 'otc_withdrawal' AND w.id = $3 AND withdrawal_party_gone(w))`

// PayoutStopped reports whether nothing may be sent for an object now, not even a payout whose attempt was begun before: in a
// freeze, while the provider refuses our credential or the database is not released, after a party of the order or the withdrawal was
// switched off, and while another payment of the object was made or is claimed to be. What begins a payout is checked
// again by the triggers of payment_attempts.
func (s *Store) PayoutStopped(ctx context.Context, of exchange.MomoObject, provider string) (bool, error) {
	owed, err := s.Payable(ctx, of)
	if err != nil || owed.Paid || owed.Claimed {
		return err == nil, err
	}
	return readOne[bool](ctx, s.db, "payout", payoutStopped, provider, string(of.Type), of.ID)
}

const insertCredentialHit = `INSERT INTO momo_credential_hits (attempt_id, code) SELECT id, $2 FROM payment_attempts
WHERE id = $1 AND direction = 'payout' AND status IN ('created', 'unknown', 'accepted') ON CONFLICT DO NOTHING`

// NoteCredential counts that the provider refused our credential for an open payout. It does so before the payout is
// settled, because by then queries with the same credential may have locked it. Each payout counts once, whichever
// source reports it first; a settled one was counted when it was settled. One source suffices here, because the only
// effect is that nothing is sent.
func (s *Store) NoteCredential(ctx context.Context, attempt uuid.UUID, code string) error {
	_, err := s.write(ctx, "credential refusal", insertCredentialHit, attempt, code)
	return err
}

const lockBreaker = readBreaker + ` FOR UPDATE`

const closeBreaker = `UPDATE momo_breakers SET hits = 1, trial = true, closings = closings + 1, opened_at = NULL, closed_at = $2, closed_by = $3, note = $4 WHERE provider = $1`

const maxBreakerNote = 500

// openBreaker locks the breaker of a provider. CodeStateConflict when it is not open.
func (t unitTx) openBreaker(ctx context.Context, provider string) (exchange.Breaker, error) {
	var b exchange.Breaker
	if err := translate(t.Get(ctx, &b, lockBreaker, provider), "breaker"); err != nil && exchange.CodeOf(err) != exchange.CodeNotFound {
		return b, err
	}
	if b.State() != exchange.BreakerOpen {
		return b, exchange.Errorf(exchange.CodeStateConflict, "The breaker is not open.")
	}
	return b, nil
}

// closeBreaker lets payouts go again, one at a time until the provider accepts one.
func (t unitTx) closeBreaker(ctx context.Context, provider, note string, by exchange.Principal) error {
	before, err := t.openBreaker(ctx, provider)
	if err != nil {
		return err
	}
	b := before
	b.Hits, b.Trial, b.OpenedAt, b.ClosedAt, b.ClosedBy, b.Note = exchange.BreakerHits-1, true, time.Time{}, t.s.now(), by.UserID, note
	if err := t.One(ctx, closeBreaker, provider, b.ClosedAt, nullID(b.ClosedBy), b.Note); err != nil {
		return err
	}
	return t.audit(ctx, by, "momo_breaker.closed", "momo_breaker", uuid.Nil, breakerSnapshot(before), breakerSnapshot(b))
}
