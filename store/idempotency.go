package store

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// IdempotencyState is how to handle a request that carries an idempotency key.
type IdempotencyState string

// The states.
const (
	IdempotencyNew      IdempotencyState = "new"       // execute the request
	IdempotencyReplay   IdempotencyState = "replay"    // return the stored response
	IdempotencyInFlight IdempotencyState = "in_flight" // another request is executing it
	IdempotencyReused   IdempotencyState = "reused"    // the key belongs to another body
)

// IdempotencyRecord is the result of claiming a key.
type IdempotencyRecord struct {
	State IdempotencyState
	// ObjectID is created with the first claim and stays: it becomes the id of the object that the request creates, so
	// that a retry after a crash creates the same object.
	ObjectID uuid.UUID
	Status   int
	Header   map[string]string
	Body     []byte
}

// claimLease is how long a claim counts as being executed. A longer request counts as crashed.
const claimLease = time.Minute

const claimKey = `
INSERT INTO idempotency_keys (scope, key, body_hash, object_id, state, claimed_at, created_at)
VALUES ($1, $2, $3, $4, 'in_flight', $5, $5) ON CONFLICT DO NOTHING`

const lockKey = `SELECT body_hash, object_id, state, claimed_at, status, header, body FROM idempotency_keys WHERE scope = $1 AND key = $2 FOR UPDATE`

const reclaimKey = `UPDATE idempotency_keys SET body_hash = $3, object_id = $4, state = 'in_flight', claimed_at = $5 WHERE scope = $1 AND key = $2`

// IdempotencyBegin claims a key for a body. A claim whose request crashed or was abandoned may be taken over with the
// same object id; only an abandoned one may have another body, and then gets another object id.
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
		BodyHash  []byte
		ObjectID  uuid.UUID
		State     string
		ClaimedAt time.Time
		Status    int
		Header    []byte
		Body      []byte
	}
	if err := t.Get(ctx, &r, lockKey, scope, key); err != nil {
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
	return rec, t.One(ctx, reclaimKey, scope, key, bodyHash[:], rec.ObjectID, now)
}

const finishKey = `UPDATE idempotency_keys SET state = 'done', status = $3, header = $4, body = $5 WHERE scope = $1 AND key = $2 AND state <> 'done'`

// IdempotencyFinish stores the response of a claimed key. The first response stays.
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

// IdempotencyAbandon gives up a claim whose request changed nothing, so that a retry may start at once.
func (s *Store) IdempotencyAbandon(ctx context.Context, scope, key string) error {
	_, err := s.write(ctx, "idempotency key", abandonKey, scope, key)
	return err
}
