package store

import (
	"context"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
)

const passkeyColumns = `id, user_id, credential_id, public_key, aaguid, transports, syncable, synced, name, sign_count, created_at, used_at`

const insertPasskey = `
INSERT INTO passkeys (id, user_id, credential_id, public_key, aaguid, transports, syncable, synced, name, sign_count, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`

const (
	readPasskeys  = `SELECT ` + passkeyColumns + ` FROM passkeys WHERE user_id = $1 AND removed_at IS NULL ORDER BY created_at, id`
	countPasskeys = `SELECT count(*) FROM passkeys WHERE user_id = $1 AND removed_at IS NULL`
	lostPasskeys  = `SELECT count(*) > 0 AND bool_and(removed_at IS NOT NULL) FROM passkeys WHERE user_id = $1`
)

// Passkeys lists the passkeys of a user, oldest first.
func (s *Store) Passkeys(ctx context.Context, userID uuid.UUID) ([]exchange.Passkey, error) {
	return readAll[exchange.Passkey](ctx, s.db, "passkey", readPasskeys, userID)
}

// MayAddPasskey refuses, by CodeStateConflict, another passkey to staff who had some and have none any more. Only an
// invitation gives them one: by the password alone a thief would become an officer.
func (s *Store) MayAddPasskey(ctx context.Context, who exchange.Principal) error {
	return mayAddPasskey(ctx, s.db, who)
}

func mayAddPasskey(ctx context.Context, r reader, who exchange.Principal) error {
	if !who.Role.Staff() {
		return nil
	}
	lost, err := readOne[bool](ctx, r, "passkey", lostPasskeys, who.UserID)
	if err == nil && lost {
		err = exchange.Errorf(exchange.CodeStateConflict, "The account has lost its passkeys. Ask an admin for an invitation, which gives it another one.")
	}
	return err
}

// AddPasskey stores a passkey of a user. CodeStateConflict by MayAddPasskey; CodeConflict when the authenticator is known
// already; CodeLimitReached when the user has too many.
func (s *Store) AddPasskey(ctx context.Context, p exchange.Passkey, by exchange.Principal, told ...exchange.Message) error {
	return s.inTx(ctx, "passkey", func(t unitTx) error {
		if err := t.One(ctx, lockOwner, p.UserID); err != nil {
			return err
		}
		if err := t.below(ctx, exchange.MaxPasskeys, countPasskeys, p.UserID, "passkeys of one account"); err != nil {
			return err
		}
		if err := mayAddPasskey(ctx, t, by); err != nil {
			return err
		}
		if err := t.addPasskey(ctx, p, by); err != nil {
			return err
		}
		return t.addMessages(ctx, told)
	})
}

func (t unitTx) addPasskey(ctx context.Context, p exchange.Passkey, by exchange.Principal) error {
	err := t.One(ctx, insertPasskey, p.ID, p.UserID, p.CredentialID, p.PublicKey, p.AAGUID, pq.Array(p.Transports), p.Syncable, p.Synced, p.Name, p.SignCount, t.s.now())
	if err != nil {
		return err
	}
	return t.audit(ctx, by, "passkey.added", "passkey", p.ID, nil, map[string]any{"user_id": p.UserID, "name": p.Name, "syncable": p.Syncable})
}

const removePasskey = `
UPDATE passkeys SET removed_at = $3, reason = $4 WHERE id = $1 AND user_id = $2 AND removed_at IS NULL`

// RemovePasskey removes a passkey of the caller's. CodeStateConflict for the last one of staff, who can't work without.
func (s *Store) RemovePasskey(ctx context.Context, id uuid.UUID, by exchange.Principal, told ...exchange.Message) error {
	return s.inTx(ctx, "passkey", func(t unitTx) error {
		if err := t.One(ctx, lockOwner, by.UserID); err != nil {
			return err
		}
		n, err := t.Exec(ctx, removePasskey, id, by.UserID, t.s.now(), "by its user")
		if err != nil {
			return err
		}
		if n == 0 {
			return exchange.Errorf(exchange.CodeNotFound, "There is no such passkey.")
		}
		var left int
		if err := t.Get(ctx, &left, countPasskeys, by.UserID); err != nil {
			return err
		}
		if left == 0 && by.Role.Staff() {
			return exchange.Errorf(exchange.CodeStateConflict, "The last passkey of staff can't be removed. Add another one first.")
		}
		if err := t.addMessages(ctx, told); err != nil {
			return err
		}
		return t.audit(ctx, by, "passkey.removed", "passkey", id, nil, nil)
	})
}

const insertChallenge = `
INSERT INTO challenges (id, purpose, user_id, session_id, terms, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`

// AddChallenge stores what an authenticator is asked to sign.
func (s *Store) AddChallenge(ctx context.Context, c exchange.Challenge) error {
	now := s.now()
	_, err := s.write(ctx, "challenge", insertChallenge, c.ID, c.Purpose, c.UserID, nullID(c.SessionID), string(c.Terms), now, now.Add(exchange.ChallengeLife))
	return err
}

// A challenge is gone with its first answer, right or wrong.
const takeChallenge = `
DELETE FROM challenges WHERE id = $1 AND purpose = $2 AND user_id = $3 AND session_id IS NOT DISTINCT FROM $4 AND expires_at > $5
RETURNING id, purpose, user_id, session_id, terms, expires_at`

// TakeChallenge uses up a challenge. CodeNotFound when it is unknown, expired, used, or of another session.
func (s *Store) TakeChallenge(ctx context.Context, id uuid.UUID, purpose exchange.ChallengePurpose, userID, sessionID uuid.UUID) (exchange.Challenge, error) {
	return readOne[exchange.Challenge](ctx, s.db, "challenge", takeChallenge, id, purpose, userID, nullID(sessionID), s.now())
}

const stepUp = `
UPDATE session_families f SET stepped_up_at = greatest(f.stepped_up_at, $2), stepped_up_by = $4, seen_at = greatest(f.seen_at, $2),
    assurance = CASE WHEN assurance_rank($4) > assurance_rank(f.assurance) THEN $4 ELSE f.assurance END, passkey_id = coalesce($5, f.passkey_id)
FROM users u WHERE f.id = $1 AND u.id = f.user_id AND f.revoked_at IS NULL AND f.expires_at > $2 AND ` + awake

// StepUp notes that the caller proved itself again in its session, and by what. The session's assurance rises with a
// stronger proof.
func (s *Store) StepUp(ctx context.Context, by exchange.Assurance, passkey uuid.UUID, who exchange.Principal) error {
	return s.inTx(ctx, "session", func(t unitTx) error {
		now := t.s.now()
		if err := t.One(ctx, stepUp, who.SessionID, now, now.Add(-StaffIdle), by, nullID(passkey)); err != nil {
			return err
		}
		return t.audit(ctx, who, "session.stepped_up", "session", who.SessionID, nil, map[string]any{"by": by, "passkey_id": nullID(passkey)})
	})
}

const usePasskey = `
UPDATE passkeys SET sign_count = $3, used_at = $4, synced = $5 WHERE id = $1 AND user_id = $2 AND removed_at IS NULL
    AND (sign_count < $3 OR (sign_count = 0 AND $3 = 0))`

// UsePasskey notes the use of a passkey, with the count of its authenticator's signatures, and steps the session up. A count
// that did not grow means that there are two authenticators with one key: the passkey is removed, every session of its user
// ends, an account of staff is deactivated, and a security event is recorded. CodeUnauthenticated then. Authenticators without a counter always report zero.
func (s *Store) UsePasskey(ctx context.Context, p exchange.Passkey, who exchange.Principal, cloned ...exchange.Message) error {
	copied := false
	err := s.inTx(ctx, "passkey", func(t unitTx) error {
		now := t.s.now()
		n, err := t.Exec(ctx, usePasskey, p.ID, p.UserID, p.SignCount, now, p.Synced)
		if err != nil {
			return err
		}
		if copied = n == 0; copied {
			return t.removeCloned(ctx, p, who, cloned)
		}
		if err := t.One(ctx, stepUp, who.SessionID, now, now.Add(-StaffIdle), exchange.AssurancePasskey, p.ID); err != nil {
			return err
		}
		return t.audit(ctx, who, "session.stepped_up", "session", who.SessionID, nil, map[string]any{"by": exchange.AssurancePasskey, "passkey_id": p.ID})
	})
	if err == nil && copied {
		return exchange.Errorf(exchange.CodeUnauthenticated, "The passkey was removed, because another authenticator has a copy of it.")
	}
	return err
}

// removeCloned removes a passkey that has a copy. Who used the copy has the password too, so an account of staff is closed.
func (t unitTx) removeCloned(ctx context.Context, p exchange.Passkey, who exchange.Principal, told []exchange.Message) error {
	now := t.s.now()
	n, err := t.Exec(ctx, removePasskey, p.ID, p.UserID, now, "cloned")
	if err != nil || n == 0 {
		return err // removed at the same time
	}
	if _, err := t.Exec(ctx, bumpAuthVersion, p.UserID); err != nil {
		return err
	}
	if _, err := t.Exec(ctx, revokeFamilies, p.UserID, now, "passkey cloned"); err != nil {
		return err
	}
	by := exchange.System("passkeys")
	by.IP = who.IP
	before, err := readOne[exchange.User](ctx, t, "user", lockUser, p.UserID)
	if err != nil {
		return err
	}
	if want := before; want.Role.Staff() {
		want.IsActive = false
		if _, err := t.saveUser(ctx, before, want, by); err != nil {
			return err
		}
	}
	if err := t.addMessages(ctx, told); err != nil {
		return err
	}
	return t.audit(ctx, by, "security.passkey_cloned", "passkey", p.ID, nil, map[string]any{"user_id": p.UserID})
}
