package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const deviceColumns = `id, user_id, origin, user_agent, created_at, seen_at`

// A device is known by its token's id, and a client without a token by its address and name.
const readKnownDevice = `
SELECT ` + deviceColumns + ` FROM devices
WHERE user_id = $1 AND forgotten_at IS NULL AND (id = $2 OR ($2 IS NULL AND origin = $3 AND user_agent = $4))
ORDER BY seen_at DESC LIMIT 1`

// KnownDevice finds the device of a user with an id, or with the zero id the one that was used last from an origin by a
// client of this name. It reports whether there is one.
func (s *Store) KnownDevice(ctx context.Context, userID, id uuid.UUID, origin, userAgent string) (exchange.Device, bool, error) {
	d, known, err := readFound[exchange.Device](ctx, s.db, readKnownDevice, userID, nullID(id), clip(origin, maxIPLength), clip(userAgent, maxUserAgentLength))
	return d, known, translate(err, "device")
}

const updateDevice = `
UPDATE devices SET origin = $3, user_agent = $4, seen_at = greatest(seen_at, $5) WHERE id = $1 AND user_id = $2 AND forgotten_at IS NULL`

const insertDevice = `
INSERT INTO devices (id, user_id, origin, user_agent, created_at, seen_at) VALUES ($1, $2, $3, $4, $5, $5)`

const hasDevice = `SELECT EXISTS (SELECT FROM devices WHERE user_id = $1)`

// useDevice notes that a session begins on a device. A new one is told to the user, unless it is the first.
func (t unitTx) useDevice(ctx context.Context, n Session, newDevice []exchange.Message) error {
	origin, agent := clip(n.Origin, maxIPLength), clip(n.UserAgent, maxUserAgentLength)
	known, err := t.Exec(ctx, updateDevice, n.DeviceID, n.UserID, origin, agent, n.CreatedAt)
	if err != nil || known > 0 {
		return err
	}
	var another bool
	if err := t.Get(ctx, &another, hasDevice, n.UserID); err != nil {
		return err
	}
	if _, err := t.Exec(ctx, insertDevice, n.DeviceID, n.UserID, origin, agent, n.CreatedAt); err != nil || !another {
		return err
	}
	if err := t.addMessages(ctx, newDevice); err != nil {
		return err
	}
	by := exchange.Principal{UserID: n.UserID, IP: n.IP, SessionID: n.FamilyID}
	return t.audit(ctx, by, "device.added", "device", n.DeviceID, nil, map[string]any{"user_id": n.UserID})
}

// FailedProof is an attempt to prove an account by a wrong secret.
type FailedProof struct {
	UserID   uuid.UUID
	By       exchange.Assurance
	DeviceID uuid.UUID // zero when the device is not known
	Failures int       // of the counter, this one included
}

// RecordFailedProof adds an attempt to the audit log, and messages to the owner of the account.
func (s *Store) RecordFailedProof(ctx context.Context, f FailedProof, by exchange.Principal, messages ...exchange.Message) error {
	return s.inTx(ctx, "user", func(t unitTx) error {
		if err := t.addMessages(ctx, messages); err != nil {
			return err
		}
		return t.audit(ctx, by, "login.failed", "user", f.UserID, nil, map[string]any{"by": f.By, "device_id": nullID(f.DeviceID), "failures": f.Failures})
	})
}
