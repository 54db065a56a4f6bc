package storetest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"kivuko/store/pg"
)

// A database serves one test after the other. What a test wrote is deleted, and its connections are kept: a new database and
// cold connections cost several times what the usual test does. A database whose schema was changed, whose test failed, or that
// somebody still uses is dropped instead.

const (
	// mostTests is how many tests a database serves: the deleted rows stay in its files.
	mostTests = 25
	// mostKept is how many connections to a database are kept between two tests.
	mostKept = 4
	// keptName tells the kept connections from those of others, who must be gone when a test is over.
	keptName = "kivuko-storetest"
)

// clones are the databases of this process, by name.
var clones sync.Map

// clone is a copy of the template.
type clone struct {
	name, dsn string
	tests     int
	server    *server
	admin     *sql.Conn // of the server's owner, whom no trigger stops

	mu   sync.Mutex
	kept map[string][]session // idle, by URL
	used int                  // handed out
	over bool                 // nothing is kept any more
}

// session is a connection of lib/pq.
type session interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// keeper connects to a clone by one URL.
type keeper struct {
	driver.Connector
	url   string
	clone *clone
}

// connectTo returns a pool of connections, which are kept if the URL is of a clone.
func connectTo(dsn string) (*sql.DB, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, err
	}
	c, ok := clones.Load(strings.TrimPrefix(u.Path, "/"))
	if !ok {
		return pg.Connect(dsn)
	}
	inner, err := pg.Connector(named(u))
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(keeper{inner, dsn, c.(*clone)}), nil
}

// named is the URL of connections that a restored database may have.
func named(u *url.URL) string {
	q := u.Query()
	q.Set("application_name", keptName)
	named := *u
	named.RawQuery = q.Encode()
	return named.String()
}

// Connect implements driver.Connector by a kept connection, if there is one.
func (k keeper) Connect(ctx context.Context) (driver.Conn, error) {
	if s := k.clone.idle(k.url); s != nil {
		return &handed{s, k}, nil
	}
	c, err := k.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	s, ok := c.(session)
	if !ok {
		return nil, errors.Join(fmt.Errorf("a connection of type %T can't be kept", c), c.Close())
	}
	k.clone.count(1)
	return &handed{s, k}, nil
}

// handed is a connection that is kept when its user closes it.
type handed struct {
	session
	from keeper
}

// asNew gives a session the state in which it began. Its plans stay, which is what makes it worth keeping.
const asNew = `ROLLBACK; RESET ALL; RESET ROLE; DEALLOCATE ALL; CLOSE ALL; UNLISTEN *; DISCARD TEMP; DISCARD SEQUENCES; SELECT pg_advisory_unlock_all()`

// Close implements driver.Conn.
func (h *handed) Close() error {
	defer h.from.clone.count(-1)
	if h.IsValid() {
		if _, err := h.ExecContext(context.Background(), asNew, nil); err == nil && h.from.clone.keep(h.from.url, h.session) {
			return nil
		}
	}
	return h.session.Close()
}

func (c *clone) idle(url string) session {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.kept[url]
	if len(all) == 0 {
		return nil
	}
	s := all[len(all)-1]
	c.kept[url] = all[:len(all)-1]
	c.used++
	return s
}

func (c *clone) keep(url string, s session) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || len(c.kept[url]) >= mostKept {
		return false
	}
	c.kept[url] = append(c.kept[url], s)
	return true
}

func (c *clone) count(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used += n
}

// release makes the database ready for the next test, or drops it.
func (c *clone) release(t testing.TB) {
	ctx, cancel := context.WithTimeout(context.Background(), hanging)
	defer cancel()
	c.tests++
	if !t.Failed() && c.tests < mostTests && c.unused() && c.restore(ctx) == nil {
		c.server.put(c)
		return
	}
	if err := c.drop(ctx); err != nil {
		t.Errorf("drop the test database: %v", err)
	}
}

func (c *clone) unused() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used == 0
}

// drop closes what is kept and drops the database.
func (c *clone) drop(ctx context.Context) error {
	c.mu.Lock()
	kept := c.kept
	c.kept, c.over = nil, true
	c.mu.Unlock()
	clones.Delete(c.name)
	for _, all := range kept {
		for _, s := range all {
			_ = s.Close() // the drop ends those that can't be closed
		}
	}
	_ = c.admin.Close()
	_, err := c.server.admin.ExecContext(ctx, `DROP DATABASE IF EXISTS `+c.name+` WITH (FORCE)`)
	return err
}

// others counts the sessions of programs that a test has left behind.
const others = `
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name <> '` + keptName + `' AND backend_type = 'client backend'`

// closing is how long the server may take to notice that a program has closed its session. It saves a database, nothing depends on it.
const closing = 200 * time.Millisecond

// alone reports whether the database is unused. A session that is open is not ended here: its program could connect again, and would reach
// the database of the next test.
func (c *clone) alone(ctx context.Context) (bool, error) {
	for until := time.Now().Add(closing); ; time.Sleep(closing / 100) {
		var n int
		err := c.admin.QueryRowContext(ctx, others).Scan(&n)
		if err != nil || n == 0 || time.Now().After(until) {
			return n == 0, err
		}
	}
}

// errChanged is the reason to drop a database.
var errChanged = errors.New("the schema was changed, or somebody uses the database")

// restore makes a database equal to the template.
func (c *clone) restore(ctx context.Context) error {
	alone, err := c.alone(ctx)
	if err != nil {
		return err
	}
	var schema string
	if err := c.admin.QueryRowContext(ctx, schemaPrint).Scan(&schema); err != nil {
		return err
	}
	if !alone || schema != c.server.schema {
		return errChanged
	}
	_, err = c.admin.ExecContext(ctx, c.server.restore)
	return err
}

// schemaPrint changes with everything in the database that is not a row of a table. A trigger that was switched off and on again is
// as before. Statistics count, because plans depend on them.
const schemaPrint = `
SELECT concat_ws(' ',
    (SELECT sum(hashtextextended(concat_ws(' ', oid, xmin), 0)) FROM pg_class WHERE relnamespace = 'public'::regnamespace),
    (SELECT sum(hashtextextended(concat_ws(' ', oid, xmin), 0)) FROM pg_proc WHERE pronamespace = 'public'::regnamespace),
    (SELECT sum(hashtextextended(concat_ws(' ', oid, xmin), 0)) FROM pg_type WHERE typnamespace = 'public'::regnamespace),
    (SELECT sum(hashtextextended(concat_ws(' ', oid, xmin), 0)) FROM pg_constraint WHERE connamespace = 'public'::regnamespace),
    (SELECT sum(hashtextextended(concat_ws(' ', a.attrelid, a.attnum, a.xmin), 0)) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
        WHERE c.relnamespace = 'public'::regnamespace),
    (SELECT sum(hashtextextended(concat_ws(' ', oid, tgenabled, tgfoid, tgname), 0)) FROM pg_trigger),
    (SELECT sum(hashtextextended(concat_ws(' ', oid, xmin), 0)) FROM pg_attrdef),
    (SELECT sum(hashtextextended(concat_ws(' ', oid, xmin), 0)) FROM pg_rewrite),
    (SELECT sum(hashtextextended(concat_ws(' ', oid, xmin), 0)) FROM pg_policy),
    (SELECT sum(hashtextextended(concat_ws(' ', oid, xmin), 0)) FROM pg_namespace WHERE nspname !~ '^pg_(toast_)?temp_'),
    (SELECT count(*) FROM pg_default_acl), (SELECT count(*) FROM pg_extension), (SELECT count(*) FROM pg_event_trigger), (SELECT count(*) FROM pg_largeobject_metadata),
    (SELECT count(*) FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase WHERE d.datname = current_database()),
    (SELECT count(*) FROM pg_statistic s JOIN pg_class c ON c.oid = s.starelid WHERE c.relnamespace = 'public'::regnamespace))`

// tablesOf lists the tables with the columns that can be written, and whether the template has rows in them.
const tablesOf = `
SELECT c.relname, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' GROUP BY c.oid ORDER BY c.relname`

// sequencesOf lists the statements that put the sequences back.
const sequencesOf = `
SELECT format('SELECT setval(%L, %s, %L)', quote_ident(schemaname) || '.' || quote_ident(sequencename), coalesce(last_value, start_value), last_value IS NOT NULL)
FROM pg_sequences WHERE schemaname = 'public' ORDER BY 1`

// restoring returns the statements that make the rows of a database those that it has now.
func restoring(ctx context.Context, db *sql.Conn) (string, error) {
	// No trigger and no foreign key applies to a replica.
	all := []string{`BEGIN`, `SET LOCAL session_replication_role = replica`, `SET LOCAL jit = off`}
	tables, err := pairs(ctx, db, tablesOf)
	if err != nil {
		return "", err
	}
	for _, t := range tables {
		name, columns := `"`+t[0]+`"`, t[1]
		var rows sql.NullString
		if err := db.QueryRowContext(ctx, `SELECT jsonb_agg(to_jsonb(x)) FROM `+name+` x`).Scan(&rows); err != nil {
			return "", err
		}
		if !rows.Valid {
			all = append(all, `DELETE FROM `+name)
			continue
		}
		var sum string
		const sumOf = `SELECT sum(hashtextextended(x::text, 0))::text FROM `
		if err := db.QueryRowContext(ctx, sumOf+name+` x`).Scan(&sum); err != nil {
			return "", err
		}
		all = append(all, fmt.Sprintf(`DO $restore$ BEGIN IF (%s%s x) IS DISTINCT FROM '%s' THEN DELETE FROM %s;
			INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM jsonb_populate_recordset(NULL::%s, $rows$%s$rows$); END IF; END $restore$`,
			sumOf, name, sum, name, name, columns, columns, name, rows.String))
	}
	sequences, err := pairs(ctx, db, `SELECT s, '' FROM (`+sequencesOf+`) x (s)`)
	if err != nil {
		return "", err
	}
	for _, s := range sequences {
		all = append(all, s[0])
	}
	return strings.Join(append(all, `COMMIT`), ";\n"), nil
}

func pairs(ctx context.Context, db *sql.Conn, query string) (all [][2]string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer func() { err = first(err, rows.Close()) }()
	for rows.Next() {
		var p [2]string
		if err := rows.Scan(&p[0], &p[1]); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, rows.Err()
}
