package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"kivuko/exchange"
)

// The schema: numbered files with tables and triggers, which run once, and the functions and grants, which are
// written anew at every migration. digests.txt lists all sets of functions and grants that builds have had, the
// newest last.
//
//go:embed migrations
var migrationFiles embed.FS

const (
	migrationsDir = "migrations"
	functionFiles = migrationsDir + "/functions/*.sql"
	grantsFile    = migrationsDir + "/grants.sql"
	digestsFile   = migrationsDir + "/digests.txt"

	// A process waits up to ten minutes for another one that migrates.
	lockEverySeconds = 1
	lockTries        = 600
)

// Migrate brings the database to the newest schema. There is no way back: a mistake is mended by a new migration.
// CodeStateConflict when the database was migrated by a build that is newer than this one. A lock of a database session
// makes several starting processes wait for each other.
func Migrate(ctx context.Context, url string) (err error) {
	db, err := sql.Open("postgres", url)
	if err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "The database URL can't be read.")
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

// closed keeps the first error.
func closed(err, closing error) error {
	if err == nil && closing != nil {
		return translate(closing, "database")
	}
	return err
}

// migrate runs under the lock. Triggers name functions and functions name tables: so the trigger functions that are
// missing are created first, with bodies that are not looked at yet, then the tables, then all functions.
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

// refuseNewer looks before anything is changed: an older build would put its own functions, with guards that lack what
// was learnt since, in the place of the newer ones.
func refuseNewer(ctx context.Context, db *sql.DB, p *goose.Provider, code schemaCode) error {
	has, knows, err := p.GetVersions(ctx)
	if err != nil {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The version of the schema could not be read.")
	}
	if has > knows {
		return exchange.Errorf(exchange.CodeStateConflict, "The database was migrated by a newer build: it has version %d of the schema, and this build knows no more than %d. "+
			"Use a build that is at least as new.", has, knows)
	}
	if has == 0 {
		return nil
	}
	var digest string
	err = db.QueryRowContext(ctx, `SELECT coalesce(max(digest), '') FROM schema_code`).Scan(&digest)
	if err != nil {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The functions of the schema could not be read.")
	}
	if digest != "" && digest != code.digest() && !slices.Contains(code.digests, digest) {
		return exchange.Errorf(exchange.CodeStateConflict, "The database was migrated by a newer build: this build does not know its functions (%s). "+
			"Use a build that is at least as new.", digest)
	}
	return nil
}

// schemaCode is the part of the schema that is written anew at every migration.
type schemaCode struct {
	functions []schemaFunction
	grants    string
	digests   []string // of all that there ever were, this one last
}

type schemaFunction struct{ name, create string }

// isTrigger reports whether triggers may name the function.
func (f schemaFunction) isTrigger() bool {
	return strings.Contains(f.create, "FUNCTION "+f.name+"() RETURNS trigger")
}

func readSchemaCode() (schemaCode, error) {
	var c schemaCode
	names, err := fs.Glob(migrationFiles, functionFiles) // sorted
	if err != nil {
		return c, exchange.Wrap(exchange.CodeInternal, err, "The functions of the schema can't be read.")
	}
	for _, n := range append(names, grantsFile, digestsFile) {
		b, err := migrationFiles.ReadFile(n)
		if err != nil {
			return c, exchange.Wrap(exchange.CodeInternal, err, "The functions of the schema can't be read.")
		}
		switch n {
		case grantsFile:
			c.grants = string(b)
		case digestsFile:
			c.digests = strings.Fields(string(b))
		default:
			c.functions = append(c.functions, schemaFunction{strings.TrimSuffix(path.Base(n), ".sql"), string(b)})
		}
	}
	return c, nil
}

// digest names this set of functions and grants.
func (c schemaCode) digest() string {
	h := sha256.New()
	for _, f := range c.functions {
		h.Write([]byte(f.name + "\x00" + f.create + "\x00"))
	}
	h.Write([]byte(c.grants))
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// missing are the statements that create the trigger functions which the database does not have.
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

// inOneTransaction leaves the bodies of functions unchecked, because they name each other; a test checks them.
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
	for _, s := range append([]string{`SET LOCAL check_function_bodies = off`}, statements...) {
		if _, err := tx.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// Positions in the logs come from transaction numbers, which start anew when a dump is restored into
// another server. This moves the base so that they go on growing; it changes nothing otherwise.
const raiseLogClock = `
UPDATE log_clock SET base = last.n + 1 - pg_current_xact_id()::text::bigint
FROM (SELECT greatest((SELECT max(cursor) FROM events), (SELECT max(id) FROM audit_log), 0) >> 20 AS n) last
WHERE base + pg_current_xact_id()::text::bigint <= last.n`

// SchemaHash names the embedded schema: it changes whenever a file of it does.
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
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
