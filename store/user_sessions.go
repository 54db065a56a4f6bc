package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Session is one refresh token of a family. Only the SHA-256 of the token is stored.
type Session struct {
	ID        uuid.UUID
	FamilyID  uuid.UUID
	UserID    uuid.UUID
	TokenHash [32]byte
	Assurance exchange.Assurance // of the login that begins a family
	DeviceID  uuid.UUID          // a known device of the user; another id, or zero, is a new one's
	Origin    string             // where the device is; see exchange.Device
	IP        string
	UserAgent string
	CreatedAt time.Time
	ExpiresAt time.Time
}

// AuthState is what each request's token is checked against.
type AuthState struct {
	User        exchange.User
	AuthVersion int64
	SessionLive bool
	Assurance   exchange.Assurance
	DeviceID    uuid.UUID
	SeenAt      time.Time
	SteppedUpAt time.Time
	SteppedUpBy exchange.Assurance
}

// StaffIdle is how long a session of staff lives without a request.
const StaffIdle = 15 * time.Minute

// Limits of the stored data of a session's client.
const (
	maxIPLength        = 64
	maxUserAgentLength = 512
)

const insertFamily = `
INSERT INTO session_families (id, user_id, created_at, expires_at, assurance, device_id, seen_at, stepped_up_at, stepped_up_by)
VALUES ($1, $2, $3, $4, $5, $6, $3, $3, $5)`

const insertSession = `INSERT INTO sessions (id, family_id, token_hash, ip, user_agent, created_at) VALUES ($1, $2, $3, $4, $5, $6)`

// CreateSession begins a family with its first token. The messages are stored when the device is new and not the user's
// first one.
func (s *Store) CreateSession(ctx context.Context, n Session, newDevice ...exchange.Message) error {
	if n.DeviceID == uuid.Nil {
		n.DeviceID = uuid.Must(uuid.NewV7())
	}
	return s.inTx(ctx, "session", func(t unitTx) error {
		if err := t.useDevice(ctx, n, newDevice); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, insertFamily, n.FamilyID, n.UserID, n.CreatedAt, n.ExpiresAt, n.Assurance, n.DeviceID); err != nil {
			return err
		}
		if err := t.addSession(ctx, n); err != nil {
			return err
		}
		return t.audit(ctx, exchange.Principal{UserID: n.UserID, IP: n.IP, SessionID: n.FamilyID}, "session.created", "session", n.FamilyID, nil,
			map[string]any{"assurance": n.Assurance, "device_id": n.DeviceID})
	})
}

func (t unitTx) addSession(ctx context.Context, n Session) error {
	_, err := t.Exec(ctx, insertSession, n.ID, n.FamilyID, n.TokenHash[:], clip(n.IP, maxIPLength), clip(n.UserAgent, maxUserAgentLength), n.CreatedAt)
	return err
}

// clip shortens a client's text to the stored length, and drops what PostgreSQL can't hold.
func clip(s string, limit int) string {
	kept := make([]rune, 0, min(len(s), limit))
	for _, r := range s {
		if len(kept) == limit {
			break
		}
		if r != 0 {
			kept = append(kept, r)
		}
	}
	return string(kept)
}

// awake is the condition that a family of a user's is not idle. Only staff's sessions end when they are.
const awake = `(NOT is_staff(u.role) OR f.seen_at > $3)`

// One statement uses the token, so only one of many concurrent uses finds it unused.
const useSession = `
UPDATE sessions s SET used_at = $2 FROM session_families f JOIN users u ON u.id = f.user_id
WHERE s.token_hash = $1 AND s.used_at IS NULL AND f.id = s.family_id AND f.id = $4 AND f.user_id = $5 AND f.revoked_at IS NULL
    AND f.expires_at > $2 AND u.is_active AND ` + awake + `
    AND NOT EXISTS (SELECT FROM users v WHERE v.id = u.vendor_id AND NOT v.is_active)
RETURNING f.id, f.user_id, f.expires_at`

const usedFamily = `
SELECT f.id, f.user_id, f.expires_at FROM sessions s JOIN session_families f ON f.id = s.family_id
WHERE s.token_hash = $1 AND s.used_at IS NOT NULL AND f.id = $2 AND f.user_id = $3`

const revokeFamily = `UPDATE session_families SET revoked_at = $2, reason = $3 WHERE id = $1 AND revoked_at IS NULL`

const revokeFamilies = `UPDATE session_families SET revoked_at = $2, reason = $3 WHERE user_id = $1 AND revoked_at IS NULL`

// familyRow names a family and its end.
type familyRow struct {
	ID        uuid.UUID
	UserID    uuid.UUID
	ExpiresAt time.Time
}

var errBadRefresh = exchange.Errorf(exchange.CodeUnauthenticated, "The refresh token is not valid.")

// RotateSession uses up the refresh token of a session, old, and replaces it with next. next's family, user and expiry
// come from the stored one, so a family ends at the time set when it began. Of many concurrent uses of one token exactly
// one succeeds. The reuse of a token revokes its whole family, because it may have been stolen, and records a security
// event. Every refusal is CodeUnauthenticated; a token of another family or user than old's is unknown.
func (s *Store) RotateSession(ctx context.Context, old, next Session) (exchange.User, Session, error) {
	var user exchange.User
	refused := false
	err := s.inTx(ctx, "session", func(t unitTx) error {
		now := t.s.now()
		var used []familyRow
		if err := t.All(ctx, &used, useSession, old.TokenHash[:], now, now.Add(-StaffIdle), old.FamilyID, old.UserID); err != nil {
			return err
		}
		if refused = len(used) == 0; refused {
			return t.punishReuse(ctx, old, next.IP)
		}
		next.FamilyID, next.UserID, next.ExpiresAt, next.CreatedAt = used[0].ID, used[0].UserID, used[0].ExpiresAt.UTC(), now
		if err := t.Get(ctx, &user, readUser, next.UserID); err != nil {
			return err
		}
		if !user.Role.Staff() { // a refresh alone does not keep a session of staff alive
			if _, err := t.Exec(ctx, touchFamily, next.FamilyID, now, now.Add(-StaffIdle)); err != nil {
				return err
			}
		}
		return t.addSession(ctx, next)
	})
	if err == nil && refused {
		err = errBadRefresh
	}
	if err != nil {
		return exchange.User{}, Session{}, err
	}
	return user, next, nil
}

func (t unitTx) punishReuse(ctx context.Context, old Session, ip string) error {
	var families []familyRow
	if err := t.All(ctx, &families, usedFamily, old.TokenHash[:], old.FamilyID, old.UserID); err != nil || len(families) == 0 {
		return err
	}
	f := families[0]
	n, err := t.Exec(ctx, revokeFamily, f.ID, t.s.now(), "refresh token used twice")
	if err != nil || n == 0 {
		return err
	}
	by := exchange.System("sessions")
	by.IP = ip
	return t.record(ctx, auditEvent{
		by: by, object: "session", id: f.ID, name: "security.refresh_token_reused", owner: f.UserID,
		after: map[string]any{"family_id": f.ID, "user_id": f.UserID},
	})
}

const touchFamily = `
UPDATE session_families f SET seen_at = $2 FROM users u
WHERE f.id = $1 AND u.id = f.user_id AND f.revoked_at IS NULL AND f.seen_at < $2 AND ` + awake

// TouchSession notes that the user of a family did something. A session that is idle already stays so.
func (s *Store) TouchSession(ctx context.Context, familyID uuid.UUID) error {
	now := s.now()
	_, err := s.write(ctx, "session", touchFamily, familyID, now, now.Add(-StaffIdle))
	return err
}

const revokeOwnFamily = `UPDATE session_families SET revoked_at = $2, reason = $3 WHERE id = $1 AND user_id = $4 AND revoked_at IS NULL`

// RevokeSession ends a family of the caller's, for a reason. An already ended family is no error; CodeNotFound for one of
// another user.
func (s *Store) RevokeSession(ctx context.Context, familyID uuid.UUID, reason string, by exchange.Principal) error {
	return s.inTx(ctx, "session", func(t unitTx) error {
		n, err := t.Exec(ctx, revokeOwnFamily, familyID, t.s.now(), reason, by.UserID)
		if err != nil {
			return err
		}
		if n == 0 {
			_, err := readOne[uuid.UUID](ctx, t, "session", readOwnFamily, familyID, by.UserID)
			return err
		}
		return t.audit(ctx, by, "session.revoked", "session", familyID, nil, map[string]any{"reason": reason})
	})
}

const readOwnFamily = `SELECT id FROM session_families WHERE id = $1 AND user_id = $2`

// LiveSession is a family as its user sees it.
type LiveSession struct {
	ID          uuid.UUID
	Assurance   exchange.Assurance
	IP          string
	UserAgent   string
	CreatedAt   time.Time
	SeenAt      time.Time
	SteppedUpAt time.Time
	ExpiresAt   time.Time
}

const readFamilies = `
SELECT f.id, f.assurance, s.ip, s.user_agent, f.created_at, f.seen_at, f.stepped_up_at, f.expires_at
FROM session_families f JOIN sessions s ON s.family_id = f.id AND s.used_at IS NULL JOIN users u ON u.id = f.user_id
WHERE f.user_id = $1 AND f.revoked_at IS NULL AND f.expires_at > $2 AND ` + awake + ` ORDER BY f.created_at DESC, f.id DESC LIMIT $4`

// MaxSessions is how many sessions of a user are listed.
const MaxSessions = 100

// Sessions lists the live families of a user, newest first.
func (s *Store) Sessions(ctx context.Context, userID uuid.UUID) ([]LiveSession, error) {
	now := s.now()
	return readAll[LiveSession](ctx, s.db, "session", readFamilies, userID, now, now.Add(-StaffIdle), MaxSessions)
}

const bumpAuthVersion = `UPDATE users SET auth_version = auth_version + 1 WHERE id = $1`

// RevokeAllSessions ends every family of a user and makes its access tokens invalid at once.
func (s *Store) RevokeAllSessions(ctx context.Context, userID uuid.UUID, by exchange.Principal) error {
	return s.inTx(ctx, "user", func(t unitTx) error {
		n, err := t.Exec(ctx, bumpAuthVersion, userID)
		if err != nil {
			return err
		}
		if n == 0 {
			return exchange.Errorf(exchange.CodeNotFound, "There is no such user.")
		}
		if _, err := t.Exec(ctx, revokeFamilies, userID, t.s.now(), "all sessions revoked"); err != nil {
			return err
		}
		return t.audit(ctx, by, "session.all_revoked", "user", userID, nil, nil)
	})
}

// A subvendor acts for its vendor, so its sessions are invalid while the vendor is deactivated.
const readAuthState = `
SELECT ` + userColumns + `, auth_version, family IS NOT NULL AND (NOT is_staff(role) OR seen_at > $4)
    AND NOT EXISTS (SELECT FROM users v WHERE v.id = users.vendor_id AND NOT v.is_active) AS session_live,
    coalesce(assurance, '') AS assurance, device_id, seen_at, stepped_up_at,
    coalesce(stepped_up_by, '') AS stepped_up_by
FROM users LEFT JOIN (SELECT id AS family, user_id AS family_of, assurance, device_id, seen_at, stepped_up_at, stepped_up_by FROM session_families
    WHERE id = $2 AND revoked_at IS NULL AND expires_at > $3) f ON family_of = users.id
WHERE users.id = $1`

// AuthState reads the AuthState of a user and a family.
func (s *Store) AuthState(ctx context.Context, userID, familyID uuid.UUID) (AuthState, error) {
	var r struct {
		exchange.User
		AuthVersion int64
		SessionLive bool
		Assurance   exchange.Assurance
		DeviceID    uuid.UUID
		SeenAt      time.Time
		SteppedUpAt time.Time
		SteppedUpBy exchange.Assurance
	}
	now := s.now()
	if err := s.db.Get(ctx, &r, readAuthState, userID, familyID, now, now.Add(-StaffIdle)); err != nil {
		return AuthState{}, translate(err, "user")
	}
	return AuthState{r.User, r.AuthVersion, r.SessionLive, r.Assurance, r.DeviceID, r.SeenAt, r.SteppedUpAt, r.SteppedUpBy}, nil
}
