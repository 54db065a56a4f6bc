package ledger

import (
	"cmp"
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
)

// Every transaction locks accounts in the order of their ids, so that two of them can't deadlock. The statement itself
// finds the accounts of named holds. NO KEY UPDATE does not block the foreign keys of other transactions' lines.
const lockAccounts = `
SELECT id, posted, held, may_go_below, debit_normal, kind = 'momo_payout' AS float FROM ledger_accounts
WHERE id = ANY (ARRAY(SELECT unnest($1::bigint[]) UNION SELECT account_id FROM holds WHERE id = ANY ($2::uuid[])))
ORDER BY id FOR NO KEY UPDATE`

// The holds that a round touches, with the parents of those that may return to them. The accounts are already locked,
// and a hold changes only under the lock of its account.
const loadHolds = `
SELECT id, key, account_id, parent_id, placed, amount, status FROM holds
WHERE id = ANY (ARRAY(SELECT unnest($1::uuid[]) UNION SELECT parent_id FROM holds WHERE id = ANY ($1::uuid[]) AND parent_id IS NOT NULL))
UNION ALL
SELECT id, key, account_id, parent_id, placed, amount, status FROM holds WHERE key = ANY ($2::text[])`

// Few entries of a round were booked before, mostly none. So the keys are looked up in their one table first, and the parts of the
// ledger only for those that are there.
const (
	loadBooked  = `SELECT entry_id FROM ledger_keys WHERE key = ANY ($1::text[])`
	loadDigests = `SELECT key, digest FROM ledger_entries WHERE id = ANY ($1::bigint[])`
)

// wanted is what a round has to load.
type wanted struct {
	refs     map[exchange.AccountRef]bool
	holdIDs  []string
	holdKeys []string
	entries  []string
}

func wants(all []exchange.Posting, todo []int) wanted {
	w := wanted{refs: map[exchange.AccountRef]bool{}}
	for _, i := range todo {
		for _, e := range all[i].Entries {
			w.entries = append(w.entries, e.Key)
			for _, l := range e.Lines {
				w.refs[l.Account] = true
			}
		}
		for _, op := range all[i].Holds {
			switch op.Verb {
			case exchange.HoldPlace, exchange.HoldSplit:
				w.refs[op.Hold.Account] = true
				w.holdKeys = append(w.holdKeys, op.Hold.Key)
				if op.Hold.ParentID != uuid.Nil {
					w.holdIDs = append(w.holdIDs, op.Hold.ParentID.String())
				}
			case exchange.HoldGrow, exchange.HoldShrink, exchange.HoldRelease, exchange.HoldReturn, exchange.HoldCapture:
				w.holdIDs = append(w.holdIDs, op.Hold.ID.String())
			}
		}
	}
	return w
}

// open locks the accounts of the postings in todo and reads what is needed to check them.
func (b *bookkeeper) open(ctx context.Context, all []exchange.Posting, todo []int) (*book, error) {
	w := wants(all, todo)
	bk := &book{accounts: map[int64]*accountState{}, holds: map[string]*holdState{}, keys: map[string]*holdState{}, digests: map[string][]byte{}}
	var err error
	if bk.ids, err = b.accountIDs(ctx, w.refs); err != nil {
		return nil, err
	}
	if err := b.loadAccounts(ctx, bk, w); err != nil {
		return nil, err
	}
	if len(w.holdIDs)+len(w.holdKeys) > 0 {
		if err := b.loadHolds(ctx, bk, w); err != nil {
			return nil, err
		}
	}
	if len(w.entries) == 0 {
		return bk, nil
	}
	var booked []int64
	if err := b.t.All(ctx, &booked, loadBooked, pq.Array(w.entries)); err != nil || len(booked) == 0 {
		return bk, err
	}
	var rows []struct {
		Key    string
		Digest []byte
	}
	if err := b.t.All(ctx, &rows, loadDigests, pq.Array(booked)); err != nil {
		return nil, err
	}
	for _, r := range rows {
		bk.digests[r.Key] = r.Digest
	}
	return bk, nil
}

func (b *bookkeeper) loadAccounts(ctx context.Context, bk *book, w wanted) error {
	ids := make([]int64, 0, len(bk.ids))
	for _, id := range bk.ids {
		ids = append(ids, id)
	}
	var rows []struct {
		ID         int64
		Posted     decimal.Decimal
		Held       decimal.Decimal
		MayGoBelow bool
		Debit      bool `db:"debit_normal"`
		Float      bool
	}
	if err := b.t.All(ctx, &rows, lockAccounts, pq.Array(ids), pq.Array(w.holdIDs)); err != nil {
		return err
	}
	for _, r := range rows {
		a := &accountState{posted: r.Posted, held: r.Held, limited: !r.MayGoBelow, float: r.Float, sign: -1}
		if r.Debit {
			a.sign = 1
		}
		bk.accounts[r.ID] = a
	}
	return nil
}

func (b *bookkeeper) loadHolds(ctx context.Context, bk *book, w wanted) error {
	var rows []struct {
		ID      uuid.UUID
		Key     string
		Account int64         `db:"account_id"`
		Parent  uuid.NullUUID `db:"parent_id"`
		Placed  decimal.Decimal
		Amount  decimal.Decimal
		Status  exchange.HoldStatus
	}
	if err := b.t.All(ctx, &rows, loadHolds, pq.Array(w.holdIDs), pq.Array(w.holdKeys)); err != nil {
		return err
	}
	for _, r := range rows {
		if bk.holds[r.ID.String()] != nil {
			continue
		}
		h := &holdState{id: r.ID.String(), key: r.Key, account: r.Account, placed: r.Placed, was: r.Amount, now: r.Amount, status: r.Status}
		if r.Parent.Valid {
			h.parent = r.Parent.UUID.String()
		}
		bk.holds[h.id], bk.keys[h.key] = h, h
	}
	return nil
}

const insertAccount = `
INSERT INTO ledger_accounts (code, kind, owner_id, asset, debit_normal, may_go_below) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (code) DO NOTHING`

const accountID = `SELECT id FROM ledger_accounts WHERE code = $1`

// accountIDs finds the ids of accounts and opens new ones, in the order of their codes so that two transactions that
// open the same accounts can't deadlock.
func (b *bookkeeper) accountIDs(ctx context.Context, refs map[exchange.AccountRef]bool) (map[exchange.AccountRef]int64, error) {
	ids := make(map[exchange.AccountRef]int64, len(refs))
	var missing []exchange.AccountRef
	b.l.mu.RLock()
	for ref := range refs {
		if id, ok := b.l.accounts[ref]; ok {
			ids[ref] = id
		} else if id, ok := b.fresh[ref]; ok {
			ids[ref] = id
		} else {
			missing = append(missing, ref)
		}
	}
	b.l.mu.RUnlock()
	slices.SortFunc(missing, func(x, y exchange.AccountRef) int { return cmp.Compare(x.Code(), y.Code()) })
	for _, ref := range missing {
		_, err := b.t.Exec(ctx, insertAccount, ref.Code(), ref.Kind, uuid.NullUUID{UUID: ref.Owner, Valid: ref.Owner != uuid.Nil}, ref.Asset, ref.Kind.DebitNormal(), ref.Kind.MayGoNegative())
		if err != nil {
			return nil, err
		}
		var id int64
		if err := b.t.Get(ctx, &id, accountID, ref.Code()); err != nil {
			return nil, err
		}
		ids[ref] = id
		b.fresh[ref] = id
	}
	return ids, nil
}

// remember caches the ids of accounts that a committed transaction found or opened.
func (l *Ledger) remember(fresh map[exchange.AccountRef]int64) {
	if len(fresh) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for ref, id := range fresh {
		l.accounts[ref] = id
	}
}
