package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/lib/pq"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"kivuko/exchange"
	"kivuko/store/pg"
)

// The schema: numbered files with tables and triggers, which run once, and the functions and grants (roles.go), which every
// migration rewrites. A function that reads rows is in PL/pgSQL, which keeps its plans; one in SQL is parsed and planned anew in each
// query that calls it. digests.txt lists the digests of all released sets of functions and grants, newest last.
//
//go:embed migrations
var migrationFiles embed.FS

const (
	migrationsDir = "migrations"
	tableFiles    = migrationsDir + "/[0-9]*.sql"
	functionFiles = migrationsDir + "/functions/*.sql"
	digestsFile   = migrationsDir + "/digests.txt"

	// A process waits up to ten minutes for another migrating process.
	lockEverySeconds = 1
	lockTries        = 600
)

// Migrate brings the database to the newest schema. There is no downgrade: a new migration corrects a mistake.
// CodeStateConflict when a newer build migrated the database. A session lock makes concurrently starting processes
// wait for each other.
func Migrate(ctx context.Context, url string) (err error) {
	db, err := pg.Connect(url)
	if err != nil {
		return err
	}
	defer func() { err = closed(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The database can't be reached.")
	}
	defer func() { err = closed(err, conn.Close()) }()
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockEverySeconds, lockTries))
	if err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "The migration lock can't be made.")
	}
	if err := locker.SessionLock(ctx, conn); err != nil {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The migration lock can't be taken.")
	}
	defer func() { err = closed(err, locker.SessionUnlock(context.WithoutCancel(ctx), conn)) }()
	return migrate(ctx, db)
}

// closed returns the first error of the two.
func closed(err, closing error) error {
	if err == nil && closing != nil {
		return translate(closing, "database")
	}
	return err
}

// migrate runs under the lock. Triggers refer to functions, and functions to tables. So it first creates missing
// trigger functions with unchecked bodies, then the tables, then all functions.
func migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrationFiles, migrationsDir)
	if err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "The migrations can't be read.")
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files)
	if err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "The migrations can't be read.")
	}
	code, err := readSchemaCode()
	if err != nil {
		return err
	}
	if err := refuseNewer(ctx, db, p, code); err != nil {
		return err
	}
	missing, err := code.missing(ctx, db)
	if err != nil {
		return err
	}
	if err := inOneTransaction(ctx, db, missing); err != nil {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The functions of the triggers could not be created.")
	}
	if _, err := p.Up(ctx); err != nil {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The database could not be migrated.")
	}
	if err := inOneTransaction(ctx, db, append(code.statements(), raiseLogClock)); err != nil {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The functions and grants could not be written.")
	}
	return nil
}

// refuseNewer runs before any change: an older build would replace newer functions with its own, which lack newer
// guards.
func refuseNewer(ctx context.Context, db *sql.DB, p *goose.Provider, code schemaCode) error {
	has, knows, err := p.GetVersions(ctx)
	if err != nil {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The version of the schema could not be read.")
	}
	if has > knows {
		return exchange.Errorf(exchange.CodeStateConflict, "The database was migrated by a newer build: it has schema version %d, and this build knows versions up to %d. "+
			"Use a build that is at least as new.", has, knows)
	}
	if has == 0 {
		return nil
	}
	var digest string
	err = db.QueryRowContext(ctx, readSchemaDigest).Scan(&digest)
	if err != nil {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The functions of the schema could not be read.")
	}
	if digest != "" && digest != code.digest() && !slices.Contains(code.digests, digest) {
		return exchange.Errorf(exchange.CodeStateConflict, "The database was migrated by a newer build: this build does not know its functions (%s). "+
			"Use a build that is at least as new.", digest)
	}
	return nil
}

const readSchemaDigest = `SELECT coalesce(max(digest), '') FROM schema_code`

// knownCode is this build's, read once because every check of readiness needs it.
var knownCode = sync.OnceValues(readSchemaCode)

// CheckSchema reports whether the functions and rights of the database are those of this build: CodeStateConflict where
// they are older or missing, because `kivuko migrate` did not run or did not come to its end. Newer ones suit
// this build too, because its workers go on with the flows that they began.
func (s *Store) CheckSchema(ctx context.Context) error {
	code, err := knownCode()
	if err != nil {
		return err
	}
	var digest string
	err = s.db.Get(ctx, &digest, readSchemaDigest)
	if pe, ok := errors.AsType[*pq.Error](err); ok && pe.Code.Class() == "42" { // no such table, or no right to read it
		return exchange.Wrap(exchange.CodeStateConflict, err, "The database was not migrated by this build. Run `kivuko migrate` of this build to its end.")
	}
	if err != nil {
		return translate(err, "schema")
	}
	if digest != code.digest() && (digest == "" || slices.Contains(code.digests, digest)) {
		return exchange.Errorf(exchange.CodeStateConflict, "The functions and rights of the database (%s) are older than this build's (%s). "+
			"Run `kivuko migrate` of this build to its end.", digest, code.digest())
	}
	return nil
}

// schemaCode is the part of the schema that every migration rewrites.
type schemaCode struct {
	tables    []string // the names of the numbered files
	functions []schemaFunction
	grants    string
	digests   []string // of all released sets, this one last
}

type schemaFunction struct{ name, create string }

// isTrigger reports whether the function is a trigger function.
func (f schemaFunction) isTrigger() bool {
	return strings.Contains(f.create, "FUNCTION "+f.name+"() RETURNS trigger")
}

func readSchemaCode() (schemaCode, error) {
	var c schemaCode
	tables, err := fs.Glob(migrationFiles, tableFiles) // sorted
	if err != nil {
		return c, exchange.Wrap(exchange.CodeInternal, err, "The tables of the schema can't be read.")
	}
	c.tables = tables
	names, err := fs.Glob(migrationFiles, functionFiles) // sorted
	if err != nil {
		return c, exchange.Wrap(exchange.CodeInternal, err, "The functions of the schema can't be read.")
	}
	c.grants = grants()
	for _, n := range append(names, digestsFile) {
		b, err := migrationFiles.ReadFile(n)
		if err != nil {
			return c, exchange.Wrap(exchange.CodeInternal, err, "The functions of the schema can't be read.")
		}
		switch n {
		case digestsFile:
			c.digests = strings.Fields(string(b))
		default:
			c.functions = append(c.functions, schemaFunction{strings.TrimSuffix(path.Base(n), ".sql"), string(b)})
		}
	}
	return c, nil
}

// digest names this set of functions and grants, and the numbered files that they belong to, so that a database without one
// of these files has another digest.
func (c schemaCode) digest() string {
	h := sha256.New()
	for _, name := range c.tables {
		h.Write([]byte(name + "\x00"))
	}
	for _, f := range c.functions {
		h.Write([]byte(f.name + "\x00" + f.create + "\x00"))
	}
	h.Write([]byte(c.grants))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// missing are the statements that create the trigger functions which the database lacks.
func (c schemaCode) missing(ctx context.Context, db *sql.DB) ([]string, error) {
	var there string
	err := db.QueryRowContext(ctx, `SELECT coalesce(string_agg(proname, ' '), '') FROM pg_proc WHERE pronamespace = current_schema()::regnamespace`).Scan(&there)
	if err != nil {
		return nil, exchange.Wrap(exchange.CodeUnavailable, err, "The functions of the database could not be read.")
	}
	has := strings.Fields(there)
	var create []string
	for _, f := range c.functions {
		if f.isTrigger() && !slices.Contains(has, f.name) {
			create = append(create, f.create)
		}
	}
	return create, nil
}

func (c schemaCode) statements() []string {
	var all []string
	for _, f := range c.functions {
		all = append(all, f.create)
	}
	return append(all, c.grants,
		`INSERT INTO schema_code (digest) VALUES ('`+c.digest()+`') ON CONFLICT (only_row) DO UPDATE SET digest = excluded.digest`)
}

// pinSearchPath is taken over by the functions that work with the owner's rights (SET search_path FROM CURRENT). Tables of pg_temp come last:
// by default they come first, and a login that may make temporary tables could put one in the place of a table of ours.
const pinSearchPath = `SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true)`

// inOneTransaction leaves the bodies of functions unchecked, because they refer to each other; a test checks them.
func inOneTransaction(ctx context.Context, db *sql.DB, statements []string) (err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = tx.Rollback() // the first error says more
		}
	}()
	for _, s := range append([]string{`SET LOCAL check_function_bodies = off`, pinSearchPath}, statements...) {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// Positions in the logs come from transaction numbers, which restart when a dump is restored into another server. This
// raises the base so that they keep growing; otherwise it changes nothing.
const raiseLogClock = `
UPDATE log_clock SET base = last.n + 1 - pg_current_xact_id()::text::bigint
FROM (SELECT greatest((SELECT max(cursor) FROM event_keys), (SELECT max(id) FROM audit_log), 0) >> 20 AS n) last
WHERE base + pg_current_xact_id()::text::bigint <= last.n`

// SchemaHash identifies the embedded schema: it changes whenever one of its files does.
func SchemaHash() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(migrationFiles, migrationsDir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := migrationFiles.ReadFile(name)
		h.Write([]byte(name))
		h.Write(b)
		return err
	})
	if err != nil {
		return "", exchange.Wrap(exchange.CodeInternal, err, "The migrations can't be read.")
	}
	h.Write([]byte(grants()))
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
