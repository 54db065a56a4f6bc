package store

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/store/pg"
)

// Releases are the rule for all value that leaves (exchange.JudgeRelease). An object that value leaves for announces its
// release in the transaction that opens it, and asks later whether it may pass: of two objects opened at the same moment, at
// least one is judged after both were announced. One that asks in the transaction that announces it holds a lock of its own
// (lock_release).

const carriesWithdrawal = `SELECT EXISTS (SELECT FROM otc_withdrawals WHERE transfer_intent_id = $1)`

// transferRelease is what a transfer releases that an intent asks for. An account of several owners is outside, as far as the rule is concerned:
// others control it together with us.
func (t unitTx) transferRelease(ctx context.Context, f exchange.Transfer, shared bool, intent uuid.UUID) (exchange.Release, error) {
	owner, recipient := cmp.Or(f.VendorID, f.SenderID), cmp.Or(f.RecipientVendorID, f.RecipientID)
	r := exchange.Release{
		Purpose: exchange.ReleaseTransfer, ObjectID: f.ID, House: owner == uuid.Nil, OwnerID: owner, Source: f.WalletID.String(), RequesterID: f.RequestedBy,
		Inside: f.Kind == exchange.InternalTransfer && !shared, Value: f.Value, OpenedAt: f.CreatedAt,
	}
	switch {
	case !r.Inside:
		r.Recipient = string(f.Network) + ":" + f.ToAddress
	case recipient == uuid.Nil:
		r.Recipient = "house"
	default:
		r.Recipient = "user:" + recipient.String()
	}
	if r.Inside && owner == recipient {
		r.Exempt = exchange.ExemptOwn
		return r, nil
	}
	var carries bool
	err := t.Get(ctx, &carries, carriesWithdrawal, intent)
	if carries {
		r.Exempt = exchange.ExemptWithdrawal
	}
	return r, err
}

const insertRelease = `
INSERT INTO releases (id, purpose, object_id, house, owner_id, source, requester_id, recipient, inside, exempt, value, opened_at, digest)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

// announce writes the release of an object that was just opened, and returns what it needs as things are. From now on it
// counts in the running sums of others.
func (t unitTx) announce(ctx context.Context, r exchange.Release) (exchange.ReleaseVerdict, error) {
	var none exchange.ReleaseVerdict
	var err error
	if r.ID, err = uuid.NewV7(); err != nil {
		return none, err
	}
	err = t.One(ctx, insertRelease, r.ID, r.Purpose, r.ObjectID, r.House, nullID(r.OwnerID), r.Source, nullID(r.RequesterID), r.Recipient, r.Inside, r.Exempt,
		r.Value.Decimal(), r.OpenedAt, r.Digest)
	if err != nil {
		return none, err
	}
	var f exchange.ReleaseFacts
	if err := t.Get(ctx, &f, releaseFacts, r.ID, t.s.now()); err != nil {
		return none, err
	}
	v := exchange.JudgeRelease(f)
	if v.Officers == f.Officers && v.Until.IsZero() {
		return v, nil // as it was written
	}
	return v, t.One(ctx, saveVerdict, r.ID, v.Officers, nullTime(v.Until), nullTime(f.PassedAt))
}

// The terms of what is owed follow from its rows. A refund in crypto without an address has no recipient yet.
const announceOwed = `
INSERT INTO releases (id, purpose, object_id, house, owner_id, source, requester_id, recipient, inside, exempt, value, opened_at)
SELECT $3, r.purpose, r.object_id, r.house, r.owner_id, r.source, r.requester_id, r.recipient, r.inside, r.exempt, r.value, $4
FROM release_terms($1, $2) r WHERE r.recipient IS NOT NULL`

// announceOwed writes the release of a refund or of a payout of an order in place of an earlier one, which let nothing leave or
// had other terms. Their first one is written by the database with their row.
func (t unitTx) announceOwed(ctx context.Context, purpose exchange.ReleasePurpose, object uuid.UUID) error {
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	if err := t.endRelease(ctx, purpose, object); err != nil {
		return err
	}
	_, err = t.Exec(ctx, announceOwed, purpose, object, id, t.s.now())
	return err
}

const hasPassed = `SELECT passed_at IS NOT NULL FROM releases WHERE purpose = $1 AND object_id = $2 AND ended_at IS NULL`

// releaseOwed lets a refund or a payout of an order leave if the rule allows it. Every try is judged: what passed for an
// earlier one does not pass for the next.
func (t unitTx) releaseOwed(ctx context.Context, purpose exchange.ReleasePurpose, object uuid.UUID) (exchange.ReleaseVerdict, error) {
	passed, found, err := readFound[bool](ctx, t, hasPassed, purpose, object)
	if err == nil && (passed || !found) {
		err = t.announceOwed(ctx, purpose, object)
	}
	if err != nil {
		return exchange.ReleaseVerdict{}, err
	}
	return t.judge(ctx, purpose, object)
}

const lockRelease = `SELECT id FROM releases WHERE purpose = $1 AND object_id = $2 AND ended_at IS NULL FOR NO KEY UPDATE`

const lockSums = `SELECT lock_release(r) FROM releases r WHERE r.id = $1`

const releaseFacts = `
SELECT r.id, r.purpose, r.object_id, r.house, r.owner_id, coalesce(r.source, '') AS source, r.requester_id, r.recipient, r.inside, r.exempt,
    r.value||' KES' AS value, r.opened_at, r.digest, r.officers, r.rests_until, r.passed_at, release_approvals(r) AS approved, $2::timestamptz AS now,
    s.source||' KES' AS "sums.source", s.owner||' KES' AS "sums.owner", s.requester||' KES' AS "sums.requester", s.recipient||' KES' AS "sums.recipient",
    a.one_above||' KES' AS "rule.one_above", a.two_above||' KES' AS "rule.two_above", release_least(r) AS least,
    CASE WHEN y.always THEN 0 ELSE p.rest_above END||' KES' AS "rest.above", CASE y.rests WHEN '' THEN p.rest_seconds::bigint * 1000000000 ELSE 0 END AS "rest.for", y.always, release_known(r) AS known
FROM releases r JOIN release_purposes y ON y.purpose = r.purpose JOIN approval_rules a ON a.object_type = y.rule
    CROSS JOIN release_policy p CROSS JOIN LATERAL release_sums(r, $2::timestamptz) s
WHERE r.id = $1`

const readDestinationRest = `SELECT rest_above||' KES' AS above, rest_seconds::bigint * 1000000000 AS "for" FROM release_policy`

const saveDestinationRest = `UPDATE release_policy SET rest_seconds = $1, rest_above = $2, updated_by = $3, updated_at = $4`

// restTerms are the rest of new destinations as two officers agree to it.
type restTerms struct {
	Rest  int64  `json:"rest_seconds"`
	Above string `json:"rest_above"`
}

func restTermsOf(d exchange.DestinationRest) restTerms {
	return restTerms{int64(d.For / time.Second), d.Above.String()}
}

// DestinationRest reads how long new destinations rest.
func (s *Store) DestinationRest(ctx context.Context) (exchange.DestinationRest, error) {
	return readOne[exchange.DestinationRest](ctx, s.db, "limit", readDestinationRest)
}

const saveVerdict = `UPDATE releases SET officers = $2, rests_until = $3, passed_at = $4 WHERE id = $1`

// judge lets the release of an object pass if the rule allows it, which the database checks again, and stores what it needs
// otherwise. One that has passed stays so.
func (t unitTx) judge(ctx context.Context, purpose exchange.ReleasePurpose, object uuid.UUID) (exchange.ReleaseVerdict, error) {
	var v exchange.ReleaseVerdict
	var id uuid.UUID
	if err := t.Get(ctx, &id, lockRelease, purpose, object); err != nil {
		return v, translate(err, "release")
	}
	if _, err := t.Exec(ctx, lockSums, id); err != nil {
		return v, err
	}
	var f exchange.ReleaseFacts
	if err := t.Get(ctx, &f, releaseFacts, id, t.s.now()); err != nil {
		return v, err
	}
	if !f.PassedAt.IsZero() {
		return exchange.ReleaseVerdict{Pass: true, Officers: f.Officers}, nil
	}
	if v = exchange.JudgeRelease(f); v.Pass {
		f.PassedAt = f.Now
	}
	err := t.One(ctx, saveVerdict, id, v.Officers, nullTime(v.Until), nullTime(f.PassedAt))
	if pe, ok := errors.AsType[*pq.Error](err); ok && v.Pass && pe.Code == codeTwoOfficers {
		err = errors.Join(pg.ErrLostRace, err) // another was announced since the facts were read, whose lock this one shares
	}
	return v, err
}

const endRelease = `UPDATE releases SET ended_at = $3 WHERE purpose = $1 AND object_id = $2 AND ended_at IS NULL`

// endRelease takes the release of an object that moves nothing out of the running sums.
func (t unitTx) endRelease(ctx context.Context, purpose exchange.ReleasePurpose, object uuid.UUID) error {
	_, err := t.Exec(ctx, endRelease, purpose, object, t.s.now())
	return err
}

// The trigger sets how long a release counts.
const endUnpassed = `
UPDATE releases SET ended_at = CASE WHEN may_have_left(purpose, object_id) THEN NULL ELSE $3::timestamptz END
WHERE purpose = $1 AND object_id = $2 AND ended_at IS NULL`

// endUnpassed does so when nothing has left by it or by an earlier one of its object. What left counts for a day.
func (t unitTx) endUnpassed(ctx context.Context, purpose exchange.ReleasePurpose, object uuid.UUID) error {
	passed, found, err := readFound[bool](ctx, t, hasPassed, purpose, object)
	if err != nil || !found || passed { // the login of the chain's watch finds it passed, and may not write it
		return err
	}
	_, err = t.Exec(ctx, endUnpassed, purpose, object, t.s.now())
	return err
}
