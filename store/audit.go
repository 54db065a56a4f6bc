package store

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
)

// AuditFilter narrows a list of audit records; the interval is half open.
type AuditFilter struct {
	Actor      string
	Action     string
	ObjectType string
	ObjectID   uuid.UUID
	From, To   time.Time
	Before     int64 // only records older than this one; zero begins with the newest
}

// auditRow is a row of audit_log with its seal, if it has one.
type auditRow struct {
	ID         int64
	At         time.Time
	Actor      string
	Role       exchange.Role
	IP         string
	RequestID  string
	Action     string
	ObjectType string
	ObjectID   uuid.UUID
	Before     []byte
	After      []byte
	N          *int64
	Hash       []byte
	KeyID      string
}

const auditColumns = `a.id, a.at, a.actor, a.role, a.ip, a.request_id, a.action, a.object_type, a.object_id, a.before, a.after, s.n, s.hash, coalesce(s.key_id, '') AS key_id`

func (r auditRow) record() (exchange.AuditRecord, error) {
	return exchange.AuditRecord{
		ID: r.ID, At: r.At.UTC(), Actor: r.Actor, Role: r.Role, IP: r.IP, RequestID: r.RequestID, Action: r.Action,
		ObjectType: r.ObjectType, ObjectID: r.ObjectID, Before: r.Before, After: r.After, Hash: hex.EncodeToString(r.Hash),
	}, nil
}

// AuditRecords reads the audit log, the newest record first.
func (s *Store) AuditRecords(ctx context.Context, f AuditFilter, size int) ([]exchange.AuditRecord, error) {
	var w where
	w.eq("a.actor", f.Actor)
	w.eq("a.action", f.Action)
	w.eq("a.object_type", f.ObjectType)
	w.id("a.object_id", f.ObjectID)
	w.between("a.at", f.From, f.To)
	if f.Before != 0 {
		w.add("a.id < ?", f.Before)
	}
	var rows []auditRow
	err := s.first(ctx, &rows, list{
		columns: auditColumns, from: `audit_log a LEFT JOIN audit_seals s ON s.audit_id = a.id`,
		where: w, order: "a.id DESC",
	}, size)
	if err != nil {
		return nil, translate(err, "audit record")
	}
	return convert(rows, auditRow.record)
}

// sealBatch bounds how many records one transaction seals.
const sealBatch = 2000

// auditLock is the key of the advisory lock that lets one process seal at a time.
const auditLock = 0x6b69_7661

const lastSeal = `SELECT n, audit_id, hash, key_id FROM audit_seals ORDER BY n DESC LIMIT 1`

// Only records before the oldest running transaction are sealed, so that no record can appear between two sealed ones
// later.
const unsealed = `SELECT a.id, a.at, a.actor, a.role, a.ip, a.request_id, a.action, a.object_type, a.object_id, a.before, a.after,
    NULL::bigint AS n, NULL::bytea AS hash, '' AS key_id
FROM audit_log a WHERE a.id > $1 AND a.id < (SELECT log_horizon()) ORDER BY a.id LIMIT $2`

const insertSeals = `INSERT INTO audit_seals (n, audit_id, hash, key_id, sealed_at)
SELECT n, audit_id, hash, $5, $4 FROM unnest($1::bigint[], $2::bigint[], $3::bytea[]) AS x (n, audit_id, hash)`

// sealRow is a link of the chain.
type sealRow struct {
	N       int64
	AuditID int64
	Hash    []byte
	KeyID   string
}

// SealAudit chains the records that are not sealed yet, and returns their number. Each seal is a keyed hash of the
// previous seal and the record.
func (s *Store) SealAudit(ctx context.Context) (int, error) {
	if len(s.audit) == 0 {
		return 0, exchange.Errorf(exchange.CodeInternal, "no key of the audit log is configured")
	}
	total := 0
	for {
		var sealed int
		err := s.inTx(ctx, "audit record", func(t unitTx) error {
			var err error
			sealed, err = t.sealSome(ctx)
			return err
		})
		total += sealed
		if err != nil || sealed < sealBatch {
			return total, err
		}
	}
}

func (t unitTx) sealSome(ctx context.Context) (int, error) {
	if _, err := t.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, auditLock); err != nil {
		return 0, err
	}
	var seals []sealRow
	if err := t.All(ctx, &seals, lastSeal); err != nil {
		return 0, err
	}
	last := sealRow{}
	if len(seals) > 0 {
		last = seals[0]
	}
	var rows []auditRow
	if err := t.All(ctx, &rows, unsealed, last.AuditID, sealBatch); err != nil || len(rows) == 0 {
		return 0, err
	}
	var ns, ids []int64
	var hashes [][]byte
	for _, r := range rows {
		last = sealRow{N: last.N + 1, AuditID: r.ID, Hash: seal(t.s.audit[0].Secret, last.Hash, r)}
		ns, ids, hashes = append(ns, last.N), append(ids, last.AuditID), append(hashes, last.Hash)
	}
	_, err := t.Exec(ctx, insertSeals, pq.Array(ns), pq.Array(ids), pq.Array(hashes), t.s.now(), t.s.audit[0].ID)
	return len(rows), err
}

// seal hashes the previous seal and a record with a key. Each field is preceded by its length, so that field boundaries
// are unambiguous.
func seal(key, before []byte, r auditRow) []byte {
	h := hmac.New(sha256.New, key)
	field := func(b []byte) {
		_ = binary.Write(h, binary.BigEndian, int64(len(b))) // a hash never fails
		h.Write(b)
	}
	field(before)
	_ = binary.Write(h, binary.BigEndian, r.ID)
	_ = binary.Write(h, binary.BigEndian, r.At.UnixMicro())
	for _, text := range []string{r.Actor, string(r.Role), r.IP, r.RequestID, r.Action, r.ObjectType} {
		field([]byte(text))
	}
	field(r.ObjectID[:])
	for _, doc := range [][]byte{r.Before, r.After} {
		if doc == nil {
			_ = binary.Write(h, binary.BigEndian, int64(-1))
			continue
		}
		field(doc)
	}
	return h.Sum(nil)
}

// AuditHead reads the newest link of the chain for export.
func (s *Store) AuditHead(ctx context.Context) (exchange.AuditHead, error) {
	var rows []sealRow
	if err := s.db.All(ctx, &rows, lastSeal); err != nil || len(rows) == 0 {
		return exchange.AuditHead{}, translate(err, "audit record")
	}
	return exchange.AuditHead{N: rows[0].N, Hash: hex.EncodeToString(rows[0].Hash), Key: rows[0].KeyID}, nil
}

const readSeal = `SELECT n, audit_id, hash, key_id FROM audit_seals WHERE n = $1`

// HasAuditHead checks that a head which was kept outside is still in the chain. CodeConflict when it is not: the end of the log
// was cut off, or the database is an older one. An empty head is in every chain.
func (s *Store) HasAuditHead(ctx context.Context, kept exchange.AuditHead) error {
	if kept.N == 0 {
		return nil
	}
	var rows []sealRow
	if err := s.db.All(ctx, &rows, readSeal, kept.N); err != nil {
		return translate(err, "audit record")
	}
	if len(rows) == 0 || hex.EncodeToString(rows[0].Hash) != kept.Hash {
		return broken(fmt.Sprintf("at its end: the kept head %d is missing", kept.N))
	}
	return nil
}

// VerifyAudit recomputes the chain and finds records that were edited, removed, reordered, or inserted before sealed
// ones. It can't detect that the newest links were cut off; VerifyAuditSince can.
func (s *Store) VerifyAudit(ctx context.Context) error {
	return s.VerifyAuditSince(ctx, exchange.AuditHead{})
}

// The full join finds both a seal without a record and a record among sealed ones without a seal.
const readChain = `SELECT ` + auditColumns + `
FROM audit_log a LEFT JOIN audit_seals s ON s.audit_id = a.id
WHERE a.id > $1 AND a.id <= (SELECT max(audit_id) FROM audit_seals) ORDER BY a.id LIMIT $2`

const countSeals = `SELECT count(*) FROM audit_seals`

// VerifyAuditSince does what VerifyAudit does, and also finds that an exported head is missing from the chain.
func (s *Store) VerifyAuditSince(ctx context.Context, exported exchange.AuditHead) (err error) {
	// One snapshot, so that concurrent sealing is not mistaken for tampering.
	tx, err := s.ledger.Snapshot(ctx)
	if err != nil {
		return translate(err, "audit record")
	}
	defer func() { err = cmp.Or(err, translate(tx.Rollback(), "audit record")) }()
	return verifyChain(ctx, unitTx{tx, s}, exported)
}

func verifyChain(ctx context.Context, t unitTx, exported exchange.AuditHead) error {
	last, n := sealRow{}, int64(0)
	found := exported.N == 0
	for {
		var rows []auditRow
		if err := t.All(ctx, &rows, readChain, last.AuditID, sealBatch); err != nil {
			return translate(err, "audit record")
		}
		for _, r := range rows {
			n++
			key, known := t.s.auditKey(r.KeyID)
			if r.N != nil && !known {
				return exchange.Errorf(exchange.CodeInternal, "the key %q of the audit log's record %d is not configured", r.KeyID, r.ID)
			}
			if r.N == nil || *r.N != n || !hmac.Equal(r.Hash, seal(key, last.Hash, r)) {
				return broken(fmt.Sprintf("at record %d", r.ID))
			}
			last = sealRow{N: n, AuditID: r.ID, Hash: r.Hash}
			found = found || (n == exported.N && hex.EncodeToString(r.Hash) == exported.Hash)
		}
		if len(rows) < sealBatch {
			break
		}
	}
	var seals int64
	if err := t.Get(ctx, &seals, countSeals); err != nil {
		return translate(err, "audit record")
	}
	if seals != n {
		return broken(fmt.Sprintf("after record %d: %d seals have no record", last.AuditID, seals-n))
	}
	if !found {
		return broken("at its end: the exported head is missing")
	}
	return nil
}

func (s *Store) auditKey(id string) ([]byte, bool) {
	for _, k := range s.audit {
		if k.ID == id {
			return k.Secret, true
		}
	}
	return nil, false
}

func broken(where string) error {
	return exchange.Errorf(exchange.CodeConflict, "The audit log was tampered with %s.", where)
}
