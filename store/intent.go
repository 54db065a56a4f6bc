package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
)

// intentRow is an intent as it is stored. Its statement is the truth; the other columns only find it.
type intentRow struct {
	ID        uuid.UUID
	Kind      exchange.IntentKind
	ObjectID  uuid.UUID
	UserID    uuid.UUID
	Statement []byte
	Digest    []byte
	UsedAt    time.Time
	UsedBy    string
	RefusedAt time.Time
	Refusal   exchange.Code
}

const intentColumns = `id, kind, object_id, user_id, statement, digest, used_at, coalesce(used_by, '') AS used_by, refused_at, coalesce(refusal, '') AS refusal`

// intent reads the statement of a row and verifies its digest.
func (r intentRow) intent() (exchange.Intent, error) {
	digest := exchange.DigestOfIntent(r.Statement)
	i, err := exchange.ParseIntent(r.Statement)
	if err != nil {
		return i, err
	}
	if !bytes.Equal(digest[:], r.Digest) || i.ID != r.ID || i.Kind != r.Kind || i.ObjectID != r.ObjectID || i.By.UserID != r.UserID {
		return i, exchange.Errorf(exchange.CodeInternal, "intent %s differs from its statement", r.ID)
	}
	i.UsedAt, i.UsedBy, i.RefusedAt, i.Refusal = r.UsedAt.UTC(), r.UsedBy, r.RefusedAt.UTC(), r.Refusal
	return i, nil
}

const insertIntent = `
INSERT INTO intents (id, kind, object_id, user_id, statement, digest, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (id) DO NOTHING`

const readIntent = `SELECT ` + intentColumns + ` FROM intents WHERE id = $1`

// maxIntents bounds how often one request may be refused for the moment, or lapse, and be made again.
const maxIntents = 50

// SaveIntent writes down what a caller asks for, and returns it with its times. Its id is that of the request: a repeated
// request finds its intent, as the first one wrote it. After that was refused or has lapsed unused, the request is made
// anew, by an intent with an id that derives from the request's. CodeConflict when the id belongs to another request,
// CodeLimitReached when it was refused too often.
func (s *Store) SaveIntent(ctx context.Context, i exchange.Intent) (exchange.Intent, error) {
	request := i.ID
	i.CreatedAt = s.now()
	i.ExpiresAt = i.CreatedAt.Add(i.Kind.Life())
	for n := range maxIntents {
		if n > 0 {
			i.ID = uuid.NewSHA1(request, fmt.Appendf(nil, "intent %d", n))
		}
		digest := i.Digest()
		rows, err := s.write(ctx, "intent", insertIntent, i.ID, i.Kind, i.ObjectID, i.By.UserID, i.Statement(), digest[:], i.CreatedAt, i.ExpiresAt)
		if err != nil || rows == 1 {
			return i, err
		}
		old, err := s.Intent(ctx, i.ID)
		if err != nil {
			return old, err
		}
		if old.Kind != i.Kind || old.ObjectID != i.ObjectID || old.By.UserID != i.By.UserID {
			return old, exchange.Errorf(exchange.CodeConflict, "The id belongs to another request.")
		}
		if old.RefusedAt.IsZero() && (!old.UsedAt.IsZero() || i.CreatedAt.Before(old.ExpiresAt)) {
			return old, nil
		}
	}
	return i, exchange.Errorf(exchange.CodeLimitReached, "The request was refused too often. Send it with another Idempotency-Key.")
}

// Intent reads an intent.
func (s *Store) Intent(ctx context.Context, id uuid.UUID) (exchange.Intent, error) {
	return readOneIntent(ctx, s.db, id)
}

func readOneIntent(ctx context.Context, from reader, id uuid.UUID) (exchange.Intent, error) {
	r, err := readOne[intentRow](ctx, from, "intent", readIntent, id)
	if err != nil {
		return exchange.Intent{}, err
	}
	return r.intent()
}

const refuseIntent = `UPDATE intents SET refused_at = $2, refusal = $3 WHERE id = $1 AND used_at IS NULL AND refused_at IS NULL`

// RefuseIntent ends an intent before its refusal is told to the caller, so that nothing opens later what the caller was
// told is not opened. One that was used or refused before stays as it is.
func (s *Store) RefuseIntent(ctx context.Context, id uuid.UUID, why exchange.Code) error {
	_, err := s.write(ctx, "intent", refuseIntent, id, s.now(), why)
	return err
}

const useIntent = `UPDATE intents SET used_at = $3, used_by = $2
WHERE id = $1 AND used_at IS NULL AND refused_at IS NULL AND expires_at > $3 AND intent_flow(kind, object_id) = $2 AND kind = ANY ($4)
RETURNING ` + intentColumns

// useIntent marks an intent as used by a flow. A repeated use by the same flow returns it again with used true: its effect
// was stored in the same transaction. CodeNotFound for an intent of another kind or for another flow, CodeStateConflict
// for one that was refused, CodeExpired for one that was not used in time.
func (t unitTx) useIntent(ctx context.Context, a exchange.Asked, kinds ...exchange.IntentKind) (i exchange.Intent, used bool, err error) {
	var r intentRow
	err = t.Get(ctx, &r, useIntent, a.IntentID, a.Flow, t.s.now(), pq.Array(kinds))
	if err == nil {
		i, err = r.intent()
		return i, false, err
	}
	if !errors.Is(err, sql.ErrNoRows) {
		return i, false, err
	}
	if i, err = readOneIntent(ctx, t, a.IntentID); err == nil {
		used, err = fit(i, a, kinds)
	}
	if err == nil && !used {
		err = errIntentLapsed
	}
	return i, used, err
}

// act uses an intent to act for the caller who asked, on the object of the intent. done reports that the intent was used
// before, so that what it asked for is done. An operator's command was used when it was proven; with it, and when the flow
// acts by a rule, nothing is done yet.
func (t unitTx) act(ctx context.Context, a exchange.Asked, object uuid.UUID, kinds ...exchange.IntentKind) (by exchange.Principal, done bool, err error) {
	if a.IntentID == uuid.Nil {
		by, err = acting(ctx, t, a)
		return by, false, err
	}
	i, used, err := t.useIntent(ctx, a, kinds...)
	if err == nil && i.ObjectID != object {
		err = exchange.Errorf(exchange.CodeNotFound, "There is no such intent for this object.")
	}
	return i.By, used, err
}

// UseIntent is useIntent for a step whose effect is stored later and can be repeated.
func (s *Store) UseIntent(ctx context.Context, a exchange.Asked, kind exchange.IntentKind) (exchange.Intent, error) {
	var used exchange.Intent
	err := s.inTx(ctx, "intent", func(t unitTx) (err error) {
		used, _, err = t.useIntent(ctx, a, kind)
		return err
	})
	return used, err
}

// Acting returns for whom a flow acts, by the row that says so and never by what the flow was told: the caller of an
// intent, the operator of a command, or the flow itself, which follows a rule. CodeNotFound when the row is for another
// flow or was never used, CodeStateConflict when the intent was refused.
func (s *Store) Acting(ctx context.Context, a exchange.Asked) (exchange.Principal, error) {
	return acting(ctx, s.db, a)
}

// The role is that of now: an operator who was deactivated after the command had the right to give it.
const readCommander = `
SELECT c.actor_id AS user_id, u.role FROM operator_commands c JOIN users u ON u.id = c.actor_id WHERE c.id = $1 AND c.used_at IS NOT NULL`

func acting(ctx context.Context, from reader, a exchange.Asked) (exchange.Principal, error) {
	switch {
	case a.CommandID != uuid.Nil:
		by, err := readOne[struct {
			UserID uuid.UUID
			Role   exchange.Role
		}](ctx, from, "command", readCommander, a.CommandID)
		return exchange.Principal{UserID: by.UserID, Role: by.Role, RequestID: "command:" + a.CommandID.String()}, err
	case a.IntentID == uuid.Nil:
		return flow, nil
	}
	i, err := readOneIntent(ctx, from, a.IntentID)
	if err == nil {
		_, err = fit(i, a, exchange.IntentKinds())
	}
	return i.By, err
}

// CheckIntent reports whether a flow may use an intent of a kind, or has used it. The errors are those of useIntent.
func (s *Store) CheckIntent(ctx context.Context, a exchange.Asked, kind exchange.IntentKind) error {
	i, err := s.Intent(ctx, a.IntentID)
	if err == nil {
		_, err = fit(i, a, []exchange.IntentKind{kind})
	}
	if err == nil && i.UsedAt.IsZero() && !s.now().Before(i.ExpiresAt) {
		err = errIntentLapsed
	}
	return err
}

var errIntentLapsed = exchange.Errorf(exchange.CodeExpired, "The request was not carried out in time. Send it again.")

// fit refuses an intent that a flow may not use, and reports whether it was used.
func fit(i exchange.Intent, a exchange.Asked, kinds []exchange.IntentKind) (used bool, err error) {
	switch {
	case !slices.Contains(kinds, i.Kind) || i.Flow() != a.Flow:
		return false, exchange.Errorf(exchange.CodeNotFound, "There is no such intent for this flow.")
	case !i.RefusedAt.IsZero():
		return false, exchange.Errorf(exchange.CodeStateConflict, "The request was refused before (%s).", i.Refusal)
	}
	return !i.UsedAt.IsZero(), nil
}

// AskedWallet and AskedOrder read what an intent asks for and use nothing up.
func (s *Store) AskedWallet(ctx context.Context, a exchange.Asked) (exchange.WalletRequest, error) {
	return readAsked(ctx, s, a, exchange.WalletRequestOf, exchange.IntendWallet)
}

func (s *Store) AskedOrder(ctx context.Context, a exchange.Asked) (exchange.OrderRequest, error) {
	return readAsked(ctx, s, a, exchange.OrderRequestOf, exchange.IntendPurchase, exchange.IntendSale)
}

// readAsked reads what an intent of some kinds asks for, and uses nothing up. The errors are those of useIntent.
func readAsked[R any](ctx context.Context, s *Store, a exchange.Asked, read func(exchange.Intent) (R, error), kinds ...exchange.IntentKind) (R, error) {
	var none R
	i, err := s.Intent(ctx, a.IntentID)
	if err == nil {
		_, err = fit(i, a, kinds)
	}
	if err != nil {
		return none, err
	}
	return read(i)
}
