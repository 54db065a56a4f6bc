package store

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// AccountFilter narrows a list of accounts.
type AccountFilter struct {
	Kind  exchange.AccountKind
	Owner uuid.UUID
	Asset money.Asset
}

// EntryFilter narrows a list of ledger entries.
type EntryFilter struct {
	ObjectType string
	ObjectID   uuid.UUID
	Account    *exchange.AccountRef
	Before     int64 // only entries older than this one; zero begins with the newest
}

// EntryRecord is a booked entry.
type EntryRecord struct {
	ID int64
	exchange.Entry
	At time.Time
}

// Post books a posting atomically, see ledger.Post.
func (s *Store) Post(ctx context.Context, p exchange.Posting) error {
	return translate(s.ledger.Post(ctx, p), "posting")
}

const accountColumns = `id, kind AS "ref.kind", owner_id AS "ref.owner", asset AS "ref.asset", posted||' '||asset AS posted, held||' '||asset AS held,
	updated_at`

const readAccount = `SELECT ` + accountColumns + ` FROM ledger_accounts WHERE code = $1`

// Account reads an account. One without bookings is empty, not missing.
func (s *Store) Account(ctx context.Context, ref exchange.AccountRef) (exchange.Account, error) {
	var rows []exchange.Account
	if err := s.db.All(ctx, &rows, readAccount, ref.Code()); err != nil {
		return exchange.Account{}, translate(err, "account")
	}
	if len(rows) == 0 {
		return exchange.Account{Ref: ref, Posted: money.Zero(ref.Asset), Held: money.Zero(ref.Asset)}, nil
	}
	return rows[0], nil
}

// ListAccounts pages through the accounts, oldest first, with their number.
func (s *Store) ListAccounts(ctx context.Context, f AccountFilter, p Page) ([]exchange.Account, int, error) {
	var w where
	w.eq("kind", string(f.Kind))
	w.id("owner_id", f.Owner)
	w.eq("asset", string(f.Asset))
	return readPage[exchange.Account](ctx, s, "account", list{columns: accountColumns, from: "ledger_accounts", where: w, order: "id"}, p)
}

// entryRow is a row of ledger_entries.
type entryRow struct {
	ID         int64
	Key        string
	Kind       string
	ObjectType string
	ObjectID   uuid.NullUUID
	At         time.Time
}

const readLines = `
SELECT l.entry_id, a.kind, a.owner_id, a.asset, l.amount FROM ledger_lines l JOIN ledger_accounts a ON a.id = l.account_id
WHERE l.entry_id = ANY ($1) ORDER BY l.id`

// ListEntries reads the entries, the newest first.
func (s *Store) ListEntries(ctx context.Context, f EntryFilter, size int) ([]EntryRecord, error) {
	var w where
	w.eq("object_type", f.ObjectType)
	w.id("object_id", f.ObjectID)
	if f.Before != 0 {
		w.add("id < ?", f.Before)
	}
	if f.Account != nil {
		w.add(`id IN (SELECT l.entry_id FROM ledger_lines l JOIN ledger_accounts a ON a.id = l.account_id WHERE a.code = ?)`, f.Account.Code())
	}
	var rows []entryRow
	err := s.first(ctx, &rows, list{columns: `id, key, kind, object_type, object_id, at`, from: "ledger_entries", where: w, order: "id DESC"}, size)
	if err != nil {
		return nil, translate(err, "ledger entry")
	}
	records := make([]EntryRecord, len(rows))
	ids, place := make([]int64, len(rows)), make(map[int64]int, len(rows))
	for i, r := range rows {
		ids[i], place[r.ID] = r.ID, i
		records[i] = EntryRecord{ID: r.ID, At: r.At.UTC(), Entry: exchange.Entry{
			Key: r.Key, Kind: r.Kind, ObjectType: r.ObjectType, ObjectID: r.ObjectID.UUID,
		}}
	}
	var lines []struct {
		EntryID int64
		Kind    exchange.AccountKind
		OwnerID uuid.NullUUID
		Asset   money.Asset
		Amount  decimal.Decimal
	}
	if err := s.db.All(ctx, &lines, readLines, pq.Array(ids)); err != nil {
		return nil, translate(err, "ledger entry")
	}
	for _, l := range lines {
		m, err := amountOf(l.Asset, l.Amount)
		if err != nil {
			return nil, err
		}
		r := &records[place[l.EntryID]]
		r.Lines = append(r.Lines, exchange.Line{Account: exchange.AccountRef{Kind: l.Kind, Owner: l.OwnerID.UUID, Asset: l.Asset}, Amount: m})
	}
	return records, nil
}

// escapeLike escapes a text so that it matches literally in a LIKE pattern.
func escapeLike(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}

// amountOf converts a column to an amount; the column has no more decimals than its asset.
func amountOf(a money.Asset, v decimal.Decimal) (money.Amount, error) {
	m, err := money.New(a, v)
	if err != nil {
		return money.Amount{}, exchange.Wrap(exchange.CodeInternal, err, "a stored amount of %s is not one", strings.ToValidUTF8(string(a), ""))
	}
	return m, nil
}
