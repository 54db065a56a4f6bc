package store

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// IdempotencyState says what to do with a request that carries an idempotency key.
type IdempotencyState string

// The states.
const (
	IdempotencyNew      IdempotencyState = "new"       // do it
	IdempotencyReplay   IdempotencyState = "replay"    // answer with what is stored
	IdempotencyInFlight IdempotencyState = "in_flight" // another request is doing it
	IdempotencyReused   IdempotencyState = "reused"    // the key belongs to another body
)

// IdempotencyRecord is the answer to a claim of a key.
type IdempotencyRecord struct {
	State IdempotencyState
	// ObjectID is minted with the first claim and stays: it becomes the id of what the request creates,
	// so that a retry after a crash creates the same object.
	ObjectID uuid.UUID
	Status   int
	Header   map[string]string
	Body     []byte
}

// claimLease is how long a claim is believed to be worked on. A request that takes longer has died.
const claimLease = time.Minute

const claimKey = `
INSERT INTO idempotency_keys (scope, key, body_hash, object_id, state, claimed_at, created_at)
VALUES ($1, $2, $3, $4, 'in_flight', $5, $5) ON CONFLICT DO NOTHING`

const lockKey = `SELECT body_hash, object_id, state, claimed_at, status, header, body FROM idempotency_keys WHERE scope = $1 AND key = $2 FOR UPDATE`

const reclaimKey = `UPDATE idempotency_keys SET body_hash = $3, object_id = $4, state = 'in_flight', claimed_at = $5 WHERE scope = $1 AND key = $2`

// IdempotencyBegin claims a key for a body. A claim whose request died, or that was abandoned, may be
// taken over with the same object id; only an abandoned one may have another body, and then gets
// another object id.
func (s *Store) IdempotencyBegin(ctx context.Context, scope, key string, bodyHash [32]byte) (IdempotencyRecord, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return IdempotencyRecord{}, translate(err, "idempotency key")
	}
	n, err := s.write(ctx, "idempotency key", claimKey, scope, key, bodyHash[:], id, s.now())
	if err != nil {
		return IdempotencyRecord{}, err
	}
	if n == 1 {
		return IdempotencyRecord{State: IdempotencyNew, ObjectID: id}, nil
	}
	var rec IdempotencyRecord
	err = s.inTx(ctx, "idempotency key", func(t unitTx) error {
		var err error
		rec, err = t.claimAgain(ctx, scope, key, bodyHash, id)
		return err
	})
	return rec, err
}

func (t unitTx) claimAgain(ctx context.Context, scope, key string, bodyHash [32]byte, fresh uuid.UUID) (IdempotencyRecord, error) {
	var r struct {
		BodyHash  []byte    `db:"body_hash"`
		ObjectID  uuid.UUID `db:"object_id"`
		State     string
		ClaimedAt time.Time `db:"claimed_at"`
		Status    int
		Header    []byte
		Body      []byte
	}
	if err := t.get(ctx, &r, lockKey, scope, key); err != nil {
		return IdempotencyRecord{}, err
	}
	rec := IdempotencyRecord{ObjectID: r.ObjectID}
	same := bytes.Equal(r.BodyHash, bodyHash[:])
	now := t.s.now()
	switch {
	case r.State == "abandoned" && !same:
		rec.ObjectID = fresh
	case !same:
		rec.State = IdempotencyReused
		return rec, nil
	case r.State == "done":
		rec.State, rec.Status, rec.Body = IdempotencyReplay, r.Status, r.Body
		return rec, json.Unmarshal(r.Header, &rec.Header)
	case r.State == "in_flight" && now.Sub(r.ClaimedAt) < claimLease:
		rec.State = IdempotencyInFlight
		return rec, nil
	}
	rec.State = IdempotencyNew
	return rec, t.one(ctx, reclaimKey, scope, key, bodyHash[:], rec.ObjectID, now)
}

const finishKey = `UPDATE idempotency_keys SET state = 'done', status = $3, header = $4, body = $5 WHERE scope = $1 AND key = $2 AND state <> 'done'`

// IdempotencyFinish stores the answer of a claimed key. The first answer stays.
func (s *Store) IdempotencyFinish(ctx context.Context, scope, key string, status int, header map[string]string, body []byte) error {
	if header == nil {
		header = map[string]string{}
	}
	doc, err := json.Marshal(header)
	if err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "the headers can't be stored")
	}
	if body == nil {
		body = []byte{}
	}
	_, err = s.write(ctx, "idempotency key", finishKey, scope, key, status, string(doc), body)
	return err
}

const abandonKey = `UPDATE idempotency_keys SET state = 'abandoned' WHERE scope = $1 AND key = $2 AND state = 'in_flight'`

// IdempotencyAbandon gives up a claim whose request changed nothing, so that the next one may try at once.
func (s *Store) IdempotencyAbandon(ctx context.Context, scope, key string) error {
	_, err := s.write(ctx, "idempotency key", abandonKey, scope, key)
	return err
}
