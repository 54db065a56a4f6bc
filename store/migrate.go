package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"kivuko/exchange"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// Migrate brings the database to the newest schema. There is no way back: a mistake is mended by a
// new migration. CodeStateConflict when the database has migrations that this build does not know. A lock of the database session makes several starting processes wait for each other.
func Migrate(ctx context.Context, url string) (err error) {
	db, err := sql.Open("postgres", url)
	if err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "The database URL can't be read.")
	}
	defer func() {
		if cerr := db.Close(); err == nil {
			err = translate(cerr, "database")
		}
	}()
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "The migrations can't be read.")
	}
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "The migration lock can't be made.")
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithSessionLocker(locker))
	if err != nil {
		return exchange.Wrap(exchange.CodeInternal, err, "The migrations can't be read.")
	}
	if _, err := p.Up(ctx); err != nil {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The database could not be migrated.")
	}
	has, knows, err := p.GetVersions(ctx)
	if err != nil {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The version of the schema could not be read.")
	}
	if has > knows {
		return exchange.Errorf(exchange.CodeStateConflict, "The database was migrated by a newer build: it has version %d of the schema, and this build knows no more than %d. "+
			"Use a build that is at least as new.", has, knows)
	}
	if _, err := db.ExecContext(ctx, raiseLogClock); err != nil {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The log positions could not be checked.")
	}
	return nil
}

// Positions in the logs come from transaction numbers, which start anew when a dump is restored into
// another server. This moves the base so that they go on growing; it changes nothing otherwise.
const raiseLogClock = `
UPDATE log_clock SET base = last.n + 1 - pg_current_xact_id()::text::bigint
FROM (SELECT greatest((SELECT max(cursor) FROM events), (SELECT max(id) FROM audit_log), 0) >> 20 AS n) last
WHERE base + pg_current_xact_id()::text::bigint <= last.n`

// SchemaHash names the embedded schema: it changes whenever a migration does.
func SchemaHash() (string, error) {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql") // sorted
	if err != nil {
		return "", exchange.Wrap(exchange.CodeInternal, err, "The migrations can't be read.")
	}
	h := sha256.New()
	for _, n := range names {
		b, err := migrationFiles.ReadFile(n)
		if err != nil {
			return "", exchange.Wrap(exchange.CodeInternal, err, "The migrations can't be read.")
		}
		h.Write([]byte(n))
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}
