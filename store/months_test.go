package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// logged writes an event of an object and its owner.
const logged = `INSERT INTO events (cursor, object_type, object_id, sequence, type, owner_id, payload, at)
	SELECT log_position() + 1, 'test', $1, 1, 'test.done', $2::uuid, '{}', now()`

// calendar sets the month that it is for a database.
func calendar(t *testing.T, s *store.Store, month string) {
	t.Helper()
	storetest.Exec(t, s, `CREATE OR REPLACE FUNCTION this_month() RETURNS date LANGUAGE sql STABLE AS $$ SELECT date '`+month+`-01' $$`)
}

// kept runs the schedule in a month and returns what it did.
func kept(t *testing.T, s *store.Store, month string, events int) exchange.Months {
	t.Helper()
	calendar(t, s, month)
	var m exchange.Months
	settle(t, func() bool { // another test's backup or migration of the same server holds nothing of this database; a moment's reader may
		var err error
		if m, err = s.KeepMonths(t.Context(), events); err != nil && exchange.CodeOf(err) != exchange.CodeUnavailable {
			t.Fatal(err)
		}
		return err == nil
	})
	return m
}

// texts reads a column.
func texts(t *testing.T, db interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}, query string, args ...any,
) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var one string
		if err := rows.Scan(&one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// written posts an entry and records an event of its own object, and returns the parts that they lie in.
func written(t *testing.T, s *store.Store, key string) []string {
	t.Helper()
	id := uuid.New()
	postKey(t, s, key, id, "1")
	storetest.Exec(t, s, logged, id, nil)
	return texts(t, storetest.Owner(t, s), `SELECT tableoid::regclass::text FROM events WHERE object_id = $1
		UNION ALL SELECT tableoid::regclass::text FROM ledger_entries WHERE key = $2
		UNION ALL SELECT DISTINCT l.tableoid::regclass::text FROM ledger_entries e JOIN ledger_lines l ON l.entry_id = e.id WHERE e.key = $2`, id, key)
}

func posting(key string, object uuid.UUID, amount string) exchange.Posting {
	m := money.Must(money.USDT, amount)
	return exchange.Posting{Entries: []exchange.Entry{{
		Key: key, Kind: "test", ObjectType: "test", ObjectID: object,
		Lines: []exchange.Line{exchange.Debit(exchange.Owned(exchange.AccCustody, uuid.Max, money.USDT), m), exchange.Credit(exchange.Owned(exchange.AccWalletBalance, uuid.Max, money.USDT), m)},
	}}}
}

func postKey(t *testing.T, s *store.Store, key string, object uuid.UUID, amount string) {
	t.Helper()
	if err := s.Post(t.Context(), posting(key, object, amount)); err != nil {
		t.Fatal(err)
	}
}

func in(month string) []string {
	return []string{"events_" + month, "ledger_entries_" + month, "ledger_lines_" + month}
}

// Before the schedule has run, rows lie in the first parts. It makes this month and four more, once, however often and by how many it is run, and
// what is written from then on lies in the month.
func TestMonthsAreMadeAhead(t *testing.T) {
	t.Parallel()
	s, _ := watched(t) // whose readings can't write
	if got := written(t, s, "before"); !slices.Equal(got, in("2000_01")) {
		t.Errorf("before any month rows are in %v", got)
	}
	calendar(t, s, "2026-12")
	var wg sync.WaitGroup
	var mu sync.Mutex
	var made, begun []string
	for range 4 {
		wg.Go(func() {
			m := exchange.Months{}
			settle(t, func() bool {
				var err error
				m, err = s.KeepMonths(t.Context(), 0)
				mu.Lock()
				defer mu.Unlock()
				made = append(made, m.Made...)
				if m.Begun != "" {
					begun = append(begun, m.Begun)
				}
				return err == nil
			})
		})
	}
	wg.Wait()
	slices.Sort(made)
	if want := []string{"2026-12", "2027-01", "2027-02", "2027-03", "2027-04"}; !slices.Equal(made, want) || !slices.Equal(begun, want[:1]) {
		t.Errorf("made %v, begun %v", made, begun)
	}
	if got := written(t, s, "first"); !slices.Equal(got, in("2026_12")) {
		t.Errorf("rows of the month are in %v", got)
	}
	if m := kept(t, s, "2026-12", 0); len(m.Made) > 0 || m.Begun != "" || m.Ahead != exchange.MonthsAhead || m.Outside {
		t.Errorf("run again, it did %+v", m)
	}
	if m := kept(t, s, "2027-01", 0); !slices.Equal(m.Made, []string{"2027-05"}) || m.Begun != "2027-01" {
		t.Errorf("in the next month it did %+v", m)
	}
	if got := written(t, s, "second"); !slices.Equal(got, in("2027_01")) {
		t.Errorf("rows of the next month are in %v", got)
	}
	wantBooks(t, s)
}

// The schedule was down until long after the last month that it had made. Money goes on in the month that began last, and the run that comes at
// last makes the months that are needed now.
func TestLateMonthsStopNothing(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	kept(t, s, "2026-12", 0)
	calendar(t, s, "2027-09")
	if got := written(t, s, "late"); !slices.Equal(got, in("2026_12")) {
		t.Errorf("while the schedule is down, rows are in %v", got)
	}
	m := kept(t, s, "2027-09", 0)
	if want := []string{"2027-09", "2027-10", "2027-11", "2027-12", "2028-01"}; !slices.Equal(m.Made, want) || m.Begun != "2027-09" || m.Ahead != exchange.MonthsAhead {
		t.Errorf("the late run did %+v", m)
	}
	if got := written(t, s, "now"); !slices.Equal(got, in("2027_09")) {
		t.Errorf("afterwards rows are in %v", got)
	}
	if begun := texts(t, storetest.Owner(t, s), `SELECT month FROM months WHERE begun_at IS NULL AND month <= '2027-09-01'`); len(begun) > 0 {
		t.Errorf("%v did not begin", begun)
	}
	if n := len(eventsFrom(t, s, 0, 2)); n != 2 {
		t.Errorf("%d events in the log", n)
	}
	wantBooks(t, s)
}

// Positions that are beyond all months, as in another server, and ids that are, are taken too: they lie in the rest, and the next months lie behind them.
func TestRowsOutsideOfAllMonths(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	kept(t, s, "2026-12", 0)
	storetest.Exec(t, s, `UPDATE log_clock SET base = base + (1::bigint << 31)`)
	storetest.Exec(t, s, `SELECT setval('ledger_entries_id_seq', (SELECT max(entry_to) FROM months))`)
	if got := written(t, s, "beyond"); !slices.Equal(got, in("rest")) {
		t.Errorf("rows beyond all months are in %v", got)
	}
	if m := kept(t, s, "2026-12", 0); !m.Outside {
		t.Errorf("no alert: %+v", m)
	}
	m := kept(t, s, "2027-05", 0)
	if m.Begun != "2027-05" || m.Outside {
		t.Errorf("the run in May did %+v", m)
	}
	if got := written(t, s, "after"); !slices.Equal(got, in("2027_05")) {
		t.Errorf("afterwards rows are in %v", got)
	}
	wantBooks(t, s)
}

// A key of the ledger is used once in all months, and so is the number of an object's event.
func TestKeysAreUniqueOverMonths(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	kept(t, s, "2026-12", 0)
	object := uuid.New()
	postKey(t, s, "once", object, "5")
	event := `INSERT INTO events (cursor, object_type, object_id, sequence, type, payload, at) SELECT log_position() + 7, 'test', '` + object.String() + `', 1, 'test.done', '{}', now()`
	storetest.Exec(t, s, event)
	kept(t, s, "2027-01", 0)
	for _, role := range []store.Role{store.RoleAPI, store.RoleFlows, store.RoleMomo, store.RoleChain, store.RoleSigner} {
		login := storetest.As(t, s, role)
		_, err := login.ExecContext(ctx, `INSERT INTO ledger_entries (key, digest, kind, object_type, at) VALUES ('once', decode(repeat('00', 16), 'hex'), 'x', '', now())`)
		if sqlState(err) != "23505" || !strings.Contains(err.Error(), "ledger_entries_key_key") {
			t.Errorf("%s books a key again: %v", role, err)
		}
		if _, err := login.ExecContext(ctx, event); sqlState(err) != "23505" || !strings.Contains(err.Error(), "events_sequence_key") {
			t.Errorf("%s writes the number of an event again: %v", role, err)
		}
		for _, query := range []string{
			`INSERT INTO ledger_keys VALUES ('mine', 1)`, `DELETE FROM ledger_keys`, `INSERT INTO event_keys VALUES (1, 'x', gen_random_uuid(), 1)`, `DELETE FROM event_keys`,
			`UPDATE months SET begun_at = now()`,
			`INSERT INTO ledger_entries (id, key, digest, kind, object_type, at) OVERRIDING SYSTEM VALUE VALUES (1, 'mine', decode(repeat('00', 16), 'hex'), 'x', '', now())`,
			`INSERT INTO ledger_lines (id, entry_id, account_id, amount) OVERRIDING SYSTEM VALUE VALUES (1, 1, 1, 1)`,
		} {
			if _, err := login.ExecContext(ctx, query); sqlState(err) != "42501" {
				t.Errorf("%s: %s: %v", role, query, err)
			}
		}
	}
	postKey(t, s, "once", object, "5") // a repetition
	if err := s.Post(ctx, posting("once", object, "6")); exchange.CodeOf(err) == "" {
		t.Error("an entry was booked with a used key")
	}
	for _, table := range []string{"ledger_keys", "event_keys"} {
		for _, verb := range []string{"DELETE FROM " + table, "TRUNCATE " + table + " CASCADE"} {
			if _, err := storetest.Owner(t, s).ExecContext(ctx, verb); sqlState(err) != "KV002" {
				t.Errorf("%s: %v", verb, err)
			}
		}
	}
	if n := texts(t, storetest.Owner(t, s), `SELECT count(*) FROM ledger_entries WHERE key = 'once'`); n[0] != "1" {
		t.Errorf("%s entries", n)
	}
	wantBooks(t, s)
}

// A line lies where its entry is, and has one.
func TestLinesBelongToEntries(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	kept(t, s, "2026-12", 0)
	postKey(t, s, "old", uuid.New(), "5")
	kept(t, s, "2027-01", 0)
	postKey(t, s, "new", uuid.New(), "5")
	db := storetest.Owner(t, s)
	const lines = `INSERT INTO ledger_lines (entry_id, account_id, amount) SELECT %s, id, CASE kind WHEN 'custody' THEN 1 ELSE -1 END FROM ledger_accounts WHERE owner_id = 'ffffffff-ffff-ffff-ffff-ffffffffffff'`
	for _, id := range []string{`(SELECT entry_to - 1 FROM months WHERE month = '2026-12-01')`, `(SELECT max(id) + 1 FROM ledger_entries)`, `9e17::bigint`, `0`} {
		if _, err := db.ExecContext(ctx, fmt.Sprintf(lines, id)); sqlState(err) != "23503" {
			t.Errorf("lines of entry %s: %v", id, err)
		}
	}
	// Not even without triggers does a line get into a month that is not its entry's.
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, q := range []string{`SET LOCAL session_replication_role = replica`, `SAVEPOINT here`} {
		if _, err := tx.ExecContext(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	into := strings.Replace(lines, "INTO ledger_lines (entry_id", "INTO ledger_lines_2027_01 (id, entry_id", 1)
	into = strings.Replace(into, "SELECT %s", "SELECT id, (SELECT id FROM ledger_entries WHERE key = 'old')", 1)
	if _, err := tx.ExecContext(ctx, into); sqlState(err) != "23514" {
		t.Errorf("lines of an entry in another month: %v", err)
	}
	wantBooks(t, s)
}

// The guards of a table hold for each of its parts: those that exist, those that are made, the rest and what was archived. No login reaches a part, and
// not even the owner writes into one.
func TestPartsAreGuarded(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	written(t, s, "first")
	kept(t, s, "2026-12", 0)
	written(t, s, "second")
	h := hooks{t: t, s: s, now: time.Now()}
	h.relayAll()
	kept(t, s, "2027-06", 0)
	if m := kept(t, s, "2027-06", 3); !slices.Equal(m.Archived, []string{"2000-01", "2026-12", "2027-01", "2027-02"}) {
		t.Fatalf("archived %+v", m)
	}
	db := storetest.Owner(t, s)
	parts := texts(t, db, `SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
		AND relname ~ '^(events|ledger_entries|ledger_lines)_(rest|[0-9]{4}_[0-9]{2})$'`)
	if len(parts) != 3*12 {
		t.Fatalf("the parts are %v", parts)
	}
	queries := func(part string) map[string]string {
		return map[string]string{
			"write":  `INSERT INTO ` + part + ` SELECT * FROM ` + part + ` LIMIT 1`,
			"change": `UPDATE ` + part + ` SET ` + map[string]string{"even": "type = ''", "ledg": "id = id"}[part[:4]],
			"remove": `DELETE FROM ` + part, "empty": `TRUNCATE ` + part,
		}
	}
	logins := map[store.Role]*sql.Conn{}
	for _, role := range store.Roles() {
		logins[role] = storetest.As(t, s, role)
	}
	for _, part := range parts {
		for role, login := range logins {
			for what, query := range queries(part) {
				if _, err := login.ExecContext(ctx, query); sqlState(err) != "42501" {
					t.Errorf("%s may %s rows of %s: %v", role, what, part, err)
				}
			}
		}
		for what, query := range queries(part) {
			if _, err := db.ExecContext(ctx, query); sqlState(err) != "KV002" {
				t.Errorf("the owner may %s rows of %s: %v", what, part, err)
			}
		}
	}
	// A part has every row trigger, constraint and index of the whole.
	for _, differs := range texts(t, db, `
WITH parts AS (SELECT inhrelid AS part, inhparent AS whole FROM pg_inherits WHERE inhparent IN ('events'::regclass, 'ledger_entries'::regclass, 'ledger_lines'::regclass)),
triggers AS (SELECT tgrelid, tgname, tgtype, tgfoid, tgdeferrable, tginitdeferred, tgenabled FROM pg_trigger WHERE NOT tgisinternal OR tgparentid <> 0)
SELECT p.part::regclass || ' lacks trigger ' || w.tgname FROM parts p JOIN triggers w ON w.tgrelid = p.whole AND w.tgtype & 1 = 1 WHERE NOT EXISTS (SELECT FROM triggers x WHERE x.tgrelid = p.part
    AND (x.tgname, x.tgtype, x.tgfoid, x.tgdeferrable, x.tginitdeferred, x.tgenabled) = (w.tgname, w.tgtype, w.tgfoid, w.tgdeferrable, w.tginitdeferred, w.tgenabled))
UNION ALL SELECT p.part::regclass || ' lacks ' || pg_get_constraintdef(w.oid) FROM parts p JOIN pg_constraint w ON w.conrelid = p.whole AND w.contype <> 't' WHERE NOT EXISTS (
    SELECT FROM pg_constraint x WHERE x.conrelid = p.part AND pg_get_constraintdef(x.oid) = pg_get_constraintdef(w.oid) AND x.convalidated)
UNION ALL SELECT p.part::regclass || ' lacks ' || w.indexrelid::regclass FROM parts p JOIN pg_index w ON w.indrelid = p.whole WHERE NOT EXISTS (
    SELECT FROM pg_inherits i JOIN pg_index x ON x.indexrelid = i.inhrelid WHERE i.inhparent = w.indexrelid AND x.indrelid = p.part AND x.indisvalid)`) {
		t.Error(differs)
	}
}

// relayAll relays the whole log.
func (h *hooks) relayAll() {
	h.t.Helper()
	settle(h.t, func() bool {
		if _, err := h.s.RelayEvents(h.t.Context(), store.MaxEvents); err != nil {
			h.t.Fatal(err)
		}
		return texts(h.t, storetest.Owner(h.t, h.s), `SELECT cursor >= (SELECT max(cursor) FROM event_keys) FROM webhook_relay`)[0] == "true"
	})
}

// Only the flows may have months made, and they can make no others than those whose time has come, begin none that is not made for good, and archive
// none that is young.
func TestWhoMakesMonths(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	calendar(t, s, "2026-12")
	for _, role := range store.Roles() {
		login := storetest.As(t, s, role)
		for _, query := range []string{`SELECT make_month()`, `SELECT begin_month()`, `SELECT archive_events(3)`} {
			tx, err := login.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = tx.ExecContext(ctx, query)
			if (sqlState(err) == "42501") == (role == store.RoleFlows) || role == store.RoleFlows && err != nil {
				t.Errorf("%s: %s: %v", role, query, err)
			}
			_ = tx.Rollback()
		}
		for _, query := range []string{
			`CREATE TABLE mine PARTITION OF events FOR VALUES FROM (1) TO (2)`, `ALTER TABLE events DETACH PARTITION events_2000_01`,
			`CALL add_part('events', 'log_clock', 'DEFAULT')`, `DROP TABLE events_2000_01`, `SELECT setval('ledger_entries_id_seq', 1)`,
		} {
			if _, err := login.ExecContext(ctx, query); sqlState(err) != "42501" {
				t.Errorf("%s: %s: %v", role, query, err)
			}
		}
	}
	flows := storetest.As(t, s, store.RoleFlows)
	tx, err := flows.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if got := texts(t, tx, `SELECT coalesce(make_month()::text, '')`); got[0] == "" {
			t.Error("a month is missing")
		}
	}
	if got := texts(t, tx, `SELECT coalesce(make_month()::text, '') || coalesce(begin_month()::text, '')`); got[0] != "" {
		t.Errorf("a transaction made or began %s", got)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if got := written(t, s, "after"); !slices.Equal(got, in("2000_01")) {
		t.Errorf("rows are in %v", got)
	}
	for _, months := range []string{"2", "0", "-100", "NULL"} {
		if _, err := flows.ExecContext(ctx, `SELECT archive_events(`+months+`)`); sqlState(err) != "KV002" {
			t.Errorf("events archived after %s months: %v", months, err)
		}
	}
	tx, err = flows.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `SELECT begin_month()`); sqlState(err) != "KV002" {
		t.Errorf("a month begins by what was seen before: %v", err)
	}
}

// The log is read in order over all months, by everyone, from any position.
func TestTheLogGoesOverMonths(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	u := storetest.User(t, s, exchange.RoleCustomer)
	var want []string
	for _, month := range []string{"2026-12", "2027-01", "2027-02", "2027-05"} {
		kept(t, s, month, 0)
		for range 3 {
			id := uuid.New()
			want = append(want, id.String())
			storetest.Exec(t, s, logged, id, u.ID)
		}
	}
	var got []string
	for _, e := range eventsFrom(t, s, 0, len(want)+1) {
		if e.Type == "test.done" {
			got = append(got, e.ObjectID.String())
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the log is %v, want %v", got, want)
	}
	own, err := s.Events(t.Context(), store.ViewOf(storetest.PrincipalOf(u), exchange.ActReadEvents), 0, store.MaxEvents)
	if err != nil || len(own) < len(want) || !slices.IsSortedFunc(own, func(a, b exchange.Event) int { return int(a.Cursor - b.Cursor) }) {
		t.Errorf("the owner reads %d, %v", len(own), err)
	}
	if months := texts(t, storetest.Owner(t, s), `SELECT DISTINCT tableoid::regclass::text FROM events WHERE type = 'test.done'`); len(months) != 4 {
		t.Errorf("the events lie in %v", months)
	}
}

// A month waits for those who have a position in the log of the month before and have not committed, and readers skip nothing while it begins.
func TestAMonthBeginsBehindAllWriters(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	calendar(t, s, "2026-12")
	begin := func() (exchange.Months, error) { return s.KeepMonths(ctx, 0) }
	numbered, err := storetest.Owner(t, s).BeginTx(ctx, nil) // it has a number and no position
	if err != nil {
		t.Fatal(err)
	}
	texts(t, numbered, `SELECT pg_current_xact_id()`)
	slow, err := storetest.Owner(t, s).BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	texts(t, slow, `SELECT log_position()`)
	if m, err := begin(); exchange.CodeOf(err) != exchange.CodeUnavailable || m.Begun != "" || len(m.Made) != 5 {
		t.Errorf("the month began before a writer was done: %+v, %v", m, err)
	}
	late := uuid.New()
	if _, err := slow.ExecContext(ctx, logged, late, nil); err != nil {
		t.Fatal(err)
	}
	if err := slow.Commit(); err != nil {
		t.Fatal(err)
	}
	m, err := begin()
	if err != nil || m.Begun != "2026-12" {
		t.Fatalf("%+v, %v", m, err)
	}
	u := storetest.User(t, s, exchange.RoleCustomer) // of the new month
	first, err := s.Events(ctx, store.Everything(), 0, 10)
	if err != nil || len(first) != 1 || first[0].ObjectID != late {
		t.Errorf("while a writer of the new month is not done, the log is %+v, %v", first, err)
	}
	last := uuid.New()
	if _, err := numbered.ExecContext(ctx, logged, last, nil); err != nil {
		t.Fatal(err)
	}
	if err := numbered.Commit(); err != nil {
		t.Fatal(err)
	}
	events := eventsFrom(t, s, first[0].Cursor, 2)
	if events[0].ObjectID != last || events[1].ObjectID != u.ID {
		t.Errorf("then it is %+v", events)
	}
	if got := texts(t, storetest.Owner(t, s), `SELECT tableoid::regclass::text FROM events ORDER BY cursor`); !slices.Equal(got, []string{"events_2000_01", "events_2026_12", "events_2026_12"}) {
		t.Errorf("they lie in %v", got)
	}
}

// Many write, one reads the log and months begin meanwhile: the reader gets every event once and in order.
func TestMonthsBeginUnderLoad(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	const writers, each = 6, 30
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for range each {
				postKey(t, s, uuid.NewString(), uuid.New(), "1")
				storetest.Exec(t, s, logged, uuid.New(), nil)
			}
		})
	}
	for _, month := range []string{"2026-12", "2027-01", "2027-02", "2027-03"} {
		kept(t, s, month, 0)
	}
	all := eventsFrom(t, s, 0, writers*each)
	wg.Wait()
	var cursors []string
	for _, e := range all {
		cursors = append(cursors, fmt.Sprint(e.Cursor))
	}
	if stored := texts(t, storetest.Owner(t, s), `SELECT cursor FROM events ORDER BY cursor`); !slices.Equal(cursors, stored) {
		t.Errorf("the reader got %d of %d events", len(cursors), len(stored))
	}
	wantBooks(t, s)
}

// The parts of a month are locked after the accounts. A posting that has changed an account waits for the parts, so the other order would have
// the two wait for each other.
func TestMonthsWaitForPostingsFirst(t *testing.T) {
	t.Parallel()
	ctx, s := t.Context(), storetest.New(t)
	posting, err := storetest.Owner(t, s).BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = posting.Rollback() }()
	if _, err := posting.ExecContext(ctx, `LOCK TABLE ledger_accounts IN ROW EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	flows, made := storetest.As(t, s, store.RoleFlows), make(chan error, 1)
	go func() {
		for {
			_, err := flows.ExecContext(ctx, `SELECT make_month()`)
			if sqlState(err) != "55P03" { // it waited for too long
				made <- err
				return
			}
		}
	}()
	const waiting = `SELECT count(*), count(h.pid) FROM pg_locks w JOIN pg_database d ON d.oid = w.database AND d.datname = current_database()
		LEFT JOIN pg_locks h ON h.pid = w.pid AND h.granted AND h.mode = 'AccessExclusiveLock' AND h.relation = ANY (ARRAY['events_rest', 'ledger_entries_rest', 'ledger_lines_rest']::regclass[])
		WHERE NOT w.granted AND w.relation = 'ledger_accounts'::regclass`
	for waits, holds := 0, 0; waits == 0; {
		select {
		case err := <-made:
			t.Fatalf("the month did not wait for the posting: %v", err)
		default:
		}
		if err := posting.QueryRowContext(ctx, waiting).Scan(&waits, &holds); err != nil {
			t.Fatal(err)
		}
		if holds > 0 {
			t.Errorf("the month waits for the accounts and keeps %d parts from who has them", holds)
		}
	}
	if err := posting.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-made; err != nil {
		t.Error(err)
	}
}

// Events leave the log when all of their month are old enough and no delivery needs them. They stay in a table that does not change, with their
// keys. The ledger stays whole.
func TestEventsAreArchived(t *testing.T) {
	t.Parallel()
	ctx, h := t.Context(), newHooks(t)
	s := h.s
	kept(t, s, "2026-12", 0)
	m := storetest.NewMarket(t, s)
	e := h.endpoint(m.Customer)
	object := uuid.New()
	storetest.Exec(t, s, strings.Replace(logged, "now()", "'2027-01-15'", 1), object, m.Customer.ID)
	postKey(t, s, "old", object, "5")
	kept(t, s, "2027-01", 0)
	storetest.User(t, s, exchange.RoleCustomer)
	if got := kept(t, s, "2027-01", 3).Archived; len(got) != 1 || got[0] != "2000-01" {
		t.Errorf("archived %v", got) // there is nothing in it
	}
	age := func(month string) exchange.Months { return kept(t, s, month, 3) }
	if got := age("2027-03"); len(got.Archived) > 0 || got.Needed {
		t.Errorf("young events: %+v", got)
	}
	if got := age("2027-04"); len(got.Archived) > 0 || got.Needed { // the month is over for three months, its newest event is not
		t.Errorf("events that came late: %+v", got)
	}
	tamper(t, s, `UPDATE events SET at = '2026-12-05'`)
	if got := age("2027-04"); len(got.Archived) > 0 || !got.Needed {
		t.Errorf("events that the relay has not read: %+v", got)
	}
	h.relayAll()
	if got := age("2027-04"); len(got.Archived) > 0 || !got.Needed {
		t.Errorf("events with undelivered webhooks: %+v", got)
	}
	if _, err := storetest.As(t, s, store.RoleFlows).ExecContext(ctx, `SELECT archive_events(3)`); sqlState(err) != "KV001" {
		t.Errorf("the database itself: %v", err)
	}
	for _, d := range h.claim(e.ID) {
		if err := s.RecordWebhook(ctx, exchange.WebhookResult{DeliveryID: d.ID, Attempt: d.Attempts, Status: 200}); err != nil {
			t.Fatal(err)
		}
	}
	if got := age("2027-04"); len(got.Archived) > 0 || !got.Needed {
		t.Errorf("events that can be sent again: %+v", got)
	}
	storetest.Exec(t, s, `DELETE FROM webhook_deliveries`)
	if got := age("2027-04"); !slices.Equal(got.Archived, []string{"2026-12"}) || got.Needed {
		t.Errorf("old events: %+v", got)
	}
	if got := texts(t, storetest.Owner(t, s), `SELECT object_id FROM events_2026_12 WHERE type = 'test.done'`); !slices.Equal(got, []string{object.String()}) {
		t.Errorf("the archive has %v", got)
	}
	events, err := s.Events(ctx, store.Everything(), 0, 10)
	if err != nil || slices.ContainsFunc(events, func(e exchange.Event) bool { return e.ObjectID == object }) {
		t.Errorf("the log still has them: %+v, %v", events, err)
	}
	_, err = storetest.Owner(t, s).ExecContext(ctx, logged, object, nil)
	if sqlState(err) != "23505" {
		t.Errorf("the number of an archived event is used again: %v", err)
	}
	if got := written(t, s, "now"); !slices.Equal(got, in("2027_04")) {
		t.Errorf("rows are in %v", got)
	}
	if n := texts(t, storetest.Owner(t, s), `SELECT count(*) FROM ledger_lines l JOIN ledger_entries e ON e.id = l.entry_id WHERE e.key = 'old'`); n[0] != "2" {
		t.Errorf("the ledger has %s of its lines", n)
	}
	wantBooks(t, s)
}

// What was written before there were months is where it was, with its keys, and goes on from there.
func TestMigrationKeepsLogAndLedger(t *testing.T) {
	t.Parallel()
	ctx, url := t.Context(), storetest.EmptyURL(t)
	if err := store.MigrateTo(ctx, url, 40); err != nil {
		t.Fatal(err)
	}
	db := storetest.DB(t, url)
	for _, query := range []string{
		`SET session_replication_role = replica;
		INSERT INTO events SELECT n << 20, 'test', 'ffffffff-ffff-ffff-ffff-ffffffffffff', n, 'test.done', NULL, NULL, '{}', now() FROM generate_series(1, 1000) n;
		INSERT INTO ledger_accounts (code, kind, asset, debit_normal, may_go_below, posted) VALUES ('suspense:house:KES', 'suspense', 'KES', false, false, 1000), ('bank:house:KES', 'bank', 'KES', true, false, 1000);
		INSERT INTO ledger_entries (key, digest, kind, object_type, at) SELECT 'key ' || n, decode(repeat('00', 16), 'hex'), 'test', '', now() FROM generate_series(1, 1000) n;
		INSERT INTO ledger_lines (entry_id, account_id, amount) SELECT e.id, a.id, CASE a.kind WHEN 'bank' THEN 1 ELSE -1 END FROM ledger_entries e, ledger_accounts a;
		INSERT INTO webhook_deliveries (id, endpoint_id, event_cursor, object_type, object_id, status, status_detail, next_at, created_at, updated_at)
			VALUES (gen_random_uuid(), gen_random_uuid(), 5 << 20, 'test', gen_random_uuid(), 'pending', '', now(), now(), now());
		SET session_replication_role = origin`,
	} {
		if _, err := db.ExecContext(ctx, query); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Migrate(ctx, url); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		`SELECT count(*) || ' ' || min(tableoid::regclass::text) || ' ' || max(tableoid::regclass::text) FROM events`:                                             "1000 events_2000_01 events_2000_01",
		`SELECT count(*) || ' ' || max(tableoid::regclass::text) FROM ledger_entries`:                                                                             "1000 ledger_entries_2000_01",
		`SELECT count(*) || ' ' || max(tableoid::regclass::text) FROM ledger_lines`:                                                                               "2000 ledger_lines_2000_01",
		`SELECT count(*) FROM ledger_keys k JOIN ledger_entries e ON (e.key, e.id) = (k.key, k.entry_id)`:                                                         "1000",
		`SELECT count(*) FROM event_keys k JOIN events e USING (cursor, object_type, object_id, sequence)`:                                                        "1000",
		`SELECT nextval('ledger_entries_id_seq')`:                                                                                                                 "1001",
		`SELECT nextval('ledger_lines_id_seq')`:                                                                                                                   "2001",
		`SELECT log_position() < (SELECT cursor_to FROM months)`:                                                                                                  "true",
		`SELECT string_agg(tgname, ' ' ORDER BY tgname) FROM pg_trigger WHERE tgrelid = 'ledger_entries'::regclass AND NOT tgisinternal AND tgname LIKE '%_kept'`: "ledger_entries_kept",
	} {
		if got := texts(t, db, query); got[0] != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	gone, came := differences(schemaOf(t, storetest.DB(t, storetest.URL(t))), schemaOf(t, db))
	for _, line := range append(gone, came...) {
		if !strings.HasPrefix(line, "row of ledger_") && !strings.HasPrefix(line, "row of event") && !strings.HasPrefix(line, "row of webhook_deliveries") && !strings.HasPrefix(line, "row of log_clock") {
			t.Errorf("an empty database has another schema: %s", line)
		}
	}
}

// A login that may make temporary tables can't put one in the place of a table that a function with the owner's rights works on.
func TestTemporaryTablesReplaceNoOthers(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	db := storetest.As(t, s, store.RoleFlows)
	if _, err := db.ExecContext(t.Context(), `CREATE TEMPORARY TABLE months (LIKE months INCLUDING ALL); INSERT INTO pg_temp.months SELECT * FROM public.months`); err != nil {
		t.Fatal(err)
	}
	var made, planted int
	if err := db.QueryRowContext(t.Context(), `SELECT count(make_month()) FROM generate_series(1, 1)`).Scan(&made); err != nil || made != 1 {
		t.Fatalf("made %d months: %v", made, err)
	}
	if err := db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM public.months) - (SELECT count(*) FROM pg_temp.months)`).Scan(&planted); err != nil || planted != 1 {
		t.Errorf("the owner has %d months more than the table of the login, want 1: %v", planted, err)
	}
}
