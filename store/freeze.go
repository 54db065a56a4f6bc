package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const freezeColumns = `z.id, z.reason, z.pulled_by, z.pulled_at, z.lifted_at`

func freezeSnapshot(z exchange.Freeze) map[string]any {
	return map[string]any{"id": z.ID, "note": z.Reason, "pulled_by": z.PulledBy}
}

const isFrozen = `SELECT EXISTS (SELECT FROM freezes WHERE lifted_at IS NULL)`

// Frozen reports whether outgoing payments are frozen. A transaction that lets money leave asks the database itself, under
// the lock of the freeze (frozen).
func (s *Store) Frozen(ctx context.Context) (bool, error) {
	return readOne[bool](ctx, s.db, "freeze", isFrozen)
}

const presentFreeze = `SELECT ` + freezeColumns + ` FROM freezes z WHERE z.lifted_at IS NULL`

// PresentFreeze reads the freeze in force, if there is one.
func (s *Store) PresentFreeze(ctx context.Context) (exchange.Freeze, bool, error) {
	var rows []exchange.Freeze
	if err := s.db.All(ctx, &rows, presentFreeze); err != nil || len(rows) == 0 {
		return exchange.Freeze{}, false, translate(err, "freeze")
	}
	return rows[0], true, nil
}

const insertFreeze = `INSERT INTO freezes (id, reason, pulled_by, pulled_at) VALUES ($1, $2, $3, $4)`

const lockFreeze = `SELECT pg_advisory_xact_lock(hashtextextended('kivuko freeze', 0))`

// Freeze stops all outgoing payments at once, in the name of one officer. While a freeze is in force it is returned.
func (s *Store) Freeze(ctx context.Context, id uuid.UUID, reason string, by exchange.Principal) (exchange.Freeze, error) {
	z := exchange.Freeze{ID: id, Reason: clip(reason, exchange.MaxFreezeReason), PulledBy: by.UserID}
	err := s.inTx(ctx, "freeze", func(t unitTx) error {
		if _, err := t.Exec(ctx, lockFreeze); err != nil { // first, as the trigger takes it too
			return err
		}
		var rows []exchange.Freeze
		if err := t.All(ctx, &rows, presentFreeze); err != nil {
			return err
		}
		if len(rows) > 0 {
			z = rows[0]
			return nil
		}
		z.PulledAt = t.s.now()
		if err := t.One(ctx, insertFreeze, z.ID, z.Reason, z.PulledBy, z.PulledAt); err != nil {
			return err
		}
		return t.record(ctx, auditEvent{by: by, object: "freeze", id: z.ID, name: "freeze.pulled", after: freezeSnapshot(z)})
	})
	return z, err
}

// liftTerms is the proposed end of a freeze.
type liftTerms struct {
	FreezeID uuid.UUID `json:"freeze_id"`
	Note     string    `json:"note"`
}

// ProposeLift proposes to lift the freeze, which a second officer confirms. CodeStateConflict when nothing is frozen.
func (s *Store) ProposeLift(ctx context.Context, note string, by exchange.Principal) (exchange.ControlChange, error) {
	var proposed exchange.ControlChange
	err := s.inTx(ctx, "freeze", func(t unitTx) error {
		var rows []exchange.Freeze
		if err := t.All(ctx, &rows, presentFreeze); err != nil {
			return err
		}
		if len(rows) == 0 {
			return exchange.Errorf(exchange.CodeStateConflict, "Outgoing payments are not frozen.")
		}
		var err error
		proposed, err = t.propose(ctx, exchange.ControlFreezeLift, uuid.Nil, freezeSnapshot(rows[0]), liftTerms{rows[0].ID, note}, by)
		return err
	})
	return proposed, err
}

const liftFreeze = `UPDATE freezes AS z SET lifted_at = $2, change_id = $3 WHERE z.id = $1 AND z.lifted_at IS NULL RETURNING ` + freezeColumns

// applyLift ends the freeze that two officers agreed to lift. CodeStateConflict when it has ended.
func (t unitTx) applyLift(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	terms, err := termsFrom[liftTerms](c)
	if err != nil {
		return err
	}
	var rows []exchange.Freeze
	if err := t.All(ctx, &rows, liftFreeze, terms.FreezeID, t.s.now(), c.ID); err != nil {
		return err
	}
	if len(rows) == 0 {
		return exchange.Errorf(exchange.CodeStateConflict, "The freeze was lifted already.")
	}
	return t.record(ctx, auditEvent{by: by, object: "freeze", id: rows[0].ID, name: "freeze.lifted", after: freezeSnapshot(rows[0])})
}
