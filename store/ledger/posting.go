package ledger

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/store/pg"
)

// bookkeeper applies postings inside one transaction.
type bookkeeper struct {
	l        *Ledger
	t        Tx
	fastPath bool                          // it posts without reading the balances first
	fresh    map[exchange.AccountRef]int64 // accounts that this transaction created
}

// holdState is a hold as stored or as it will be stored.
type holdState struct {
	id, key  string
	account  int64
	parent   string // empty when it was not split off
	placed   decimal.Decimal
	was, now decimal.Decimal // the reserved amount before and after this round
	status   exchange.HoldStatus
	object   exchange.Hold
	created  bool // created in this round
	changed  bool
}

// accountState is a locked account.
type accountState struct {
	posted, held decimal.Decimal
	limited      bool // may not go below zero
	float        bool // payouts that were made may take it below what is held
	sign         int  // the sign of a debit
}

// line is one line to write.
type line struct {
	key     string
	account int64
	amount  decimal.Decimal
}

// book is what a round of postings reads, checks and writes.
type book struct {
	ids      map[exchange.AccountRef]int64
	accounts map[int64]*accountState
	holds    map[string]*holdState
	keys     map[string]*holdState
	digests  map[string][]byte // the digests of existing entries
	entries  []exchange.Entry
	lines    []line
	births   []*holdState
	undo     []func()
}

// post applies postings and returns the verdict of each. err means that the whole transaction failed.
func (b *bookkeeper) post(ctx context.Context, all []exchange.Posting) ([]error, error) {
	verdicts := make([]error, len(all))
	var todo []int
	for i, p := range all {
		if verdicts[i] = validPosting(p); verdicts[i] == nil && len(p.Entries)+len(p.Holds) > 0 {
			todo = append(todo, i)
		}
	}
	for len(todo) > 0 {
		later, err := b.round(ctx, all, todo, verdicts)
		if err != nil {
			return nil, err
		}
		if len(later) == len(todo) {
			verdicts[todo[0]] = exchange.Errorf(exchange.CodeInternal, "A posting changes a hold that it creates itself.")
			later = later[1:]
		}
		todo = later
	}
	return verdicts, nil
}

// round checks the postings in todo against the locked balances and writes those that pass. It returns those that need
// another round because they use a hold created in this one.
func (b *bookkeeper) round(ctx context.Context, all []exchange.Posting, todo []int, verdicts []error) (later []int, err error) {
	bk, err := b.open(ctx, all, todo)
	if err != nil {
		return nil, err
	}
	for _, i := range todo {
		wait, err := bk.judge(all[i])
		if wait {
			later = append(later, i)
		}
		verdicts[i] = err
	}
	return later, b.write(ctx, bk)
}

func validPosting(p exchange.Posting) error {
	for _, e := range p.Entries {
		if err := e.Validate(); err != nil {
			return err
		}
	}
	for _, op := range p.Holds {
		names := op.Verb == exchange.HoldPlace || op.Verb == exchange.HoldSplit
		if names && (op.Hold.Key == "" || !op.Hold.Amount.Positive() || op.Hold.Amount.Asset() != op.Hold.Account.Asset || op.Hold.ID == uuid.Nil) {
			return exchange.Errorf(exchange.CodeInternal, "hold %q lacks a key, an id, or a positive amount of its account's asset", op.Hold.Key)
		}
		if (op.Verb == exchange.HoldGrow || op.Verb == exchange.HoldShrink) && !op.Hold.Amount.Positive() {
			return exchange.Errorf(exchange.CodeInternal, "hold %s can't %s by %s", op.Hold.ID, op.Verb, op.Hold.Amount)
		}
	}
	return nil
}

// judge applies one posting to the book, or leaves the book unchanged and returns why.
func (bk *book) judge(p exchange.Posting) (wait bool, err error) {
	bk.undo = bk.undo[:0]
	entries, lines, births := len(bk.entries), len(bk.lines), len(bk.births)
	known, err := bk.known(p.Entries)
	if err != nil || known {
		return false, err
	}
	touched := map[int64]accountState{}
	for _, op := range p.Holds {
		if wait, err = bk.hold(op, touched); wait || err != nil {
			break
		}
	}
	if !wait && err == nil {
		bk.book(p.Entries, touched)
		err = bk.covered(p, touched)
	}
	if wait || err != nil {
		for _, f := range slices.Backward(bk.undo) {
			f()
		}
		bk.entries, bk.lines, bk.births = bk.entries[:entries], bk.lines[:lines], bk.births[:births]
	}
	return wait, err
}

// known reports whether all entries of a posting were booked before with the same content. Partly booked entries or
// another content are a conflict.
func (bk *book) known(entries []exchange.Entry) (bool, error) {
	found := 0
	for _, e := range entries {
		d, there := bk.digests[e.Key]
		if !there {
			continue
		}
		if string(d) != string(digest(e)) {
			return false, exchange.Errorf(exchange.CodeConflict, "The ledger has an entry %s with other content.", e.Key)
		}
		found++
	}
	if found > 0 && found < len(entries) {
		return false, exchange.Errorf(exchange.CodeConflict, "The ledger has only part of the entries of %s.", entries[0].Key)
	}
	return found > 0, nil
}

// book adds entries to the lines to write and moves the balances.
func (bk *book) book(entries []exchange.Entry, touched map[int64]accountState) {
	for _, e := range entries {
		bk.entries = append(bk.entries, e)
		bk.digests[e.Key] = digest(e)
		bk.undo = append(bk.undo, func() { delete(bk.digests, e.Key) })
		for _, l := range e.Lines {
			id := bk.ids[l.Account]
			a := bk.touch(id, touched)
			was := a.posted
			bk.undo = append(bk.undo, func() { a.posted = was })
			a.posted = was.Add(l.Amount.Decimal().Mul(decimal.NewFromInt(int64(a.sign))))
			bk.lines = append(bk.lines, line{e.Key, id, l.Amount.Decimal()})
		}
	}
}

// touch returns an account that is about to change, and keeps its state before the posting.
func (bk *book) touch(id int64, touched map[int64]accountState) *accountState {
	a := bk.accounts[id]
	if _, known := touched[id]; !known {
		touched[id] = *a
	}
	return a
}

// covered checks that no touched account went below its minimum.
func (bk *book) covered(p exchange.Posting, touched map[int64]accountState) error {
	for id, was := range touched {
		a := bk.accounts[id]
		if !a.limited || !a.posted.LessThan(a.held) {
			continue
		}
		if a.float && a.held.LessThanOrEqual(was.held) && bk.left(p, id) {
			continue // the database enforces the same rule
		}
		return exchange.Errorf(exchange.CodeInsufficientFunds, "The available balance is too small.")
	}
	return nil
}

// left reports whether everything that a posting takes from an account has really left it already.
func (bk *book) left(p exchange.Posting, account int64) bool {
	for _, e := range p.Entries {
		for _, l := range e.Lines {
			if bk.ids[l.Account] == account && l.Amount.Decimal().Sign() < 0 && !e.PaidOut() {
				return false
			}
		}
	}
	return true
}

// hold applies one step to a hold. It returns wait when the hold is created in the same round.
func (bk *book) hold(op exchange.HoldOp, touched map[int64]accountState) (wait bool, err error) {
	switch op.Verb {
	case exchange.HoldPlace, exchange.HoldSplit:
		return bk.create(op, touched)
	case exchange.HoldGrow, exchange.HoldShrink, exchange.HoldRelease, exchange.HoldReturn, exchange.HoldCapture:
	default:
		return false, exchange.Errorf(exchange.CodeInternal, "unknown step %q of a hold", op.Verb)
	}
	h := bk.holds[op.Hold.ID.String()]
	if h == nil {
		return false, exchange.Errorf(exchange.CodeNotFound, "There is no hold %s.", op.Hold.ID)
	}
	if h.created {
		return true, nil
	}
	if op.Verb == exchange.HoldGrow || op.Verb == exchange.HoldShrink {
		return false, bk.resize(h, op, touched)
	}
	to := exchange.HoldReleased
	if op.Verb == exchange.HoldCapture {
		to = exchange.HoldCaptured
	}
	if h.status == to {
		return false, nil // done before
	}
	if err := exchange.HoldMachine.Allow(h.status, to); err != nil {
		return false, err
	}
	if parent := bk.holds[h.parent]; op.Verb == exchange.HoldReturn && parent != nil && parent.status == exchange.HoldHeld {
		if parent.created {
			return true, nil
		}
		bk.move(parent, parent.now.Add(h.now), exchange.HoldHeld, touched)
	}
	bk.move(h, h.now, to, touched)
	return false, nil
}

// resize adds to a hold, or gives a part of it back.
func (bk *book) resize(h *holdState, op exchange.HoldOp, touched map[int64]accountState) error {
	if h.status != exchange.HoldHeld {
		return exchange.HoldMachine.Allow(h.status, exchange.HoldHeld)
	}
	more := op.Hold.Amount.Decimal()
	if op.Verb == exchange.HoldShrink {
		if h.now.LessThan(more) {
			return exchange.Errorf(exchange.CodeInsufficientFunds, "The hold has less left than requested.")
		}
		more = more.Neg()
	}
	bk.move(h, h.now.Add(more), exchange.HoldHeld, touched)
	return nil
}

// create places a hold or splits one off its parent.
func (bk *book) create(op exchange.HoldOp, touched map[int64]accountState) (wait bool, err error) {
	amount, account := op.Hold.Amount.Decimal(), bk.ids[op.Hold.Account]
	if old := bk.keys[op.Hold.Key]; old != nil {
		if old.account != account || !old.placed.Equal(amount) {
			return false, exchange.Errorf(exchange.CodeConflict, "There is already a hold %s of another amount or account.", op.Hold.Key)
		}
		return false, nil // placed before
	}
	h := &holdState{
		id: op.Hold.ID.String(), key: op.Hold.Key, account: account, placed: amount, now: amount,
		status: exchange.HoldHeld, object: op.Hold, created: true,
	}
	if op.Verb == exchange.HoldSplit {
		parent := bk.holds[op.Hold.ParentID.String()]
		switch {
		case parent == nil:
			return false, exchange.Errorf(exchange.CodeNotFound, "There is no hold %s.", op.Hold.ParentID)
		case parent.created:
			return true, nil
		case parent.status != exchange.HoldHeld:
			return false, exchange.Errorf(exchange.CodeStateConflict, "A hold that is %s can't be split.", parent.status)
		case parent.account != account:
			return false, exchange.Errorf(exchange.CodeInternal, "hold %s would leave its parent's account", op.Hold.Key)
		case parent.now.LessThan(amount):
			return false, exchange.Errorf(exchange.CodeInsufficientFunds, "The hold has less left than requested.")
		}
		h.parent = parent.id
		bk.move(parent, parent.now.Sub(amount), exchange.HoldHeld, touched)
	}
	bk.reserve(account, amount, touched)
	bk.births = append(bk.births, h)
	bk.keys[h.key], bk.holds[h.id] = h, h
	bk.undo = append(bk.undo, func() { delete(bk.keys, h.key); delete(bk.holds, h.id) })
	return false, nil
}

// move gives a hold another amount or status and adjusts its account.
func (bk *book) move(h *holdState, amount decimal.Decimal, to exchange.HoldStatus, touched map[int64]accountState) {
	before := *h
	bk.undo = append(bk.undo, func() { *h = before })
	was, now := decimal.Zero, decimal.Zero
	if h.status == exchange.HoldHeld {
		was = h.now
	}
	if to == exchange.HoldHeld {
		now = amount
	}
	h.now, h.status, h.changed = amount, to, true
	bk.reserve(h.account, now.Sub(was), touched)
}

func (bk *book) reserve(account int64, amount decimal.Decimal, touched map[int64]accountState) {
	a := bk.touch(account, touched)
	was := a.held
	bk.undo = append(bk.undo, func() { a.held = was })
	a.held = was.Add(amount)
}

// digest identifies the content of an entry, to distinguish a repetition from a clash of keys.
func digest(e exchange.Entry) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n", e.Kind, e.ObjectType, e.ObjectID)
	for _, l := range e.Lines {
		fmt.Fprintf(h, "%s %s\n", l.Account.Code(), l.Amount)
	}
	return h.Sum(nil)[:16]
}

const insertEntries = `
WITH e AS (
    INSERT INTO ledger_entries (key, digest, kind, object_type, object_id, at)
    SELECT key, digest, kind, object_type, object_id, $6::timestamptz
    FROM unnest($1::text[], $2::bytea[], $3::text[], $4::text[], $5::uuid[]) AS n (key, digest, kind, object_type, object_id)
    RETURNING id, key)
INSERT INTO ledger_lines (entry_id, account_id, amount)
SELECT e.id, l.account_id, l.amount
FROM unnest($7::text[], $8::bigint[], $9::numeric[]) AS l (key, account_id, amount) JOIN e ON e.key = l.key`

const updateHolds = `
UPDATE holds h SET amount = v.amount, status = v.status, updated_at = $4
FROM unnest($1::uuid[], $2::numeric[], $3::text[]) AS v (id, amount, status) WHERE h.id = v.id`

const insertHolds = `
INSERT INTO holds (id, key, account_id, parent_id, placed, amount, status, object_type, object_id, created_at, updated_at)
SELECT id, key, account_id, parent_id, amount, amount, 'held', object_type, object_id, $8::timestamptz, $8::timestamptz
FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::uuid[], $5::numeric[], $6::text[], $7::uuid[])
    AS n (id, key, account_id, parent_id, amount, object_type, object_id)`

// write stores a checked book: first released holds, then the lines, then new holds. In this order no statement takes
// an account below its minimum if the end state does not.
func (b *bookkeeper) write(ctx context.Context, bk *book) error {
	now := b.t.now()
	var freed, grown []*holdState
	for _, h := range bk.holds {
		switch {
		case h.created || !h.changed:
		case h.status != exchange.HoldHeld || h.now.LessThanOrEqual(h.was):
			freed = append(freed, h)
		default:
			grown = append(grown, h)
		}
	}
	if err := b.changeHolds(ctx, freed, now); err != nil {
		return err
	}
	if err := b.writeEntries(ctx, bk, now); err != nil {
		return err
	}
	if err := b.changeHolds(ctx, grown, now); err != nil {
		return err
	}
	return b.createHolds(ctx, bk.births, now)
}

func (b *bookkeeper) changeHolds(ctx context.Context, holds []*holdState, now time.Time) error {
	if len(holds) == 0 {
		return nil
	}
	var ids, amounts, states []string
	for _, h := range holds {
		ids, amounts, states = append(ids, h.id), append(amounts, h.now.String()), append(states, string(h.status))
	}
	n, err := b.t.Exec(ctx, updateHolds, pq.Array(ids), pq.Array(amounts), pq.Array(states), now)
	if err == nil && n != int64(len(holds)) {
		err = pg.ErrChangedMeanwhile
	}
	return err
}

func (b *bookkeeper) createHolds(ctx context.Context, holds []*holdState, now time.Time) error {
	if len(holds) == 0 {
		return nil
	}
	var ids, keys, amounts, types, objects []string
	var accounts []int64
	var parents []sql.NullString
	for _, h := range holds {
		ids, keys, accounts = append(ids, h.id), append(keys, h.key), append(accounts, h.account)
		parents = append(parents, sql.NullString{String: h.parent, Valid: h.parent != ""})
		amounts, types = append(amounts, h.placed.String()), append(types, h.object.ObjectType)
		objects = append(objects, h.object.ObjectID.String())
	}
	_, err := b.t.Exec(ctx, insertHolds, pq.Array(ids), pq.Array(keys), pq.Array(accounts), pq.Array(parents),
		pq.Array(amounts), pq.Array(types), pq.Array(objects), now)
	return err
}

func (b *bookkeeper) writeEntries(ctx context.Context, bk *book, now time.Time) error {
	if len(bk.entries) == 0 {
		return nil
	}
	var keys, kinds, types, lineKeys, amounts []string
	var digests [][]byte
	var objects []sql.NullString
	var accounts []int64
	for _, e := range bk.entries {
		keys, kinds, types = append(keys, e.Key), append(kinds, e.Kind), append(types, e.ObjectType)
		digests = append(digests, digest(e))
		objects = append(objects, sql.NullString{String: e.ObjectID.String(), Valid: e.ObjectID != uuid.Nil})
	}
	for _, l := range bk.lines {
		lineKeys, accounts, amounts = append(lineKeys, l.key), append(accounts, l.account), append(amounts, l.amount.String())
	}
	n, err := b.t.Exec(ctx, insertEntries, pq.Array(keys), pq.Array(digests), pq.Array(kinds), pq.Array(types), pq.Array(objects), now,
		pq.Array(lineKeys), pq.Array(accounts), pq.Array(amounts))
	if err == nil && n != int64(len(bk.lines)) {
		err = exchange.Errorf(exchange.CodeInternal, "%d of %d ledger lines were written", n, len(bk.lines))
	}
	return err
}
