package store

import (
	"context"
	"io/fs"

	"github.com/pressly/goose/v3"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/ledger"
	"kivuko/store/pg"
)

// WriteEventLog is the statement that draws positions in the logs, for a test of what two transactions draw.
const WriteEventLog = ledger.WriteEventLog

// SchemaDigests returns the digest of the functions and grants of this build, and those that digests.txt lists.
func SchemaDigests() (now string, listed []string, err error) {
	c, err := readSchemaCode()
	return c.digest(), c.digests, err
}

// SchemaFunctions returns the statements that create the functions, by name.
func SchemaFunctions() (map[string]string, error) {
	c, err := readSchemaCode()
	all := map[string]string{}
	for _, f := range c.functions {
		all[f.name] = f.create
	}
	return all, err
}

// WriteUnwatched writes with a statement meant for reading.
func (s *Store) WriteUnwatched(ctx context.Context) error {
	var n int64
	return translate(s.db.Get(ctx, &n, `WITH written AS (UPDATE orders SET status = status WHERE false RETURNING id) SELECT count(*) FROM written`), "number")
}

// UseFile ties a file to an object in a transaction of its own.
func (s *Store) UseFile(ctx context.Context, u exchange.FileUse, by exchange.Principal) error {
	return s.inTx(ctx, "file", func(t unitTx) error { return t.useFile(ctx, u, by) })
}

// WithFormula asks for a quote of another formula than the one of new quotes.
func (r QuoteRequest) WithFormula(name string) QuoteRequest {
	r.formula = name
	return r
}

// ValueOf is what an amount counts as against limits.
func (s *Store) ValueOf(ctx context.Context, m money.Amount) (money.Amount, error) {
	var value money.Amount
	err := s.inTx(ctx, "amount", func(t unitTx) error {
		var err error
		value, _, err = t.valueOf(ctx, m)
		return err
	})
	return value, err
}

// MigrateTo brings an empty database to an earlier version of its tables, without functions that are no triggers and without rights.
func MigrateTo(ctx context.Context, url string, version int64) error {
	db, err := pg.Connect(url)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	code, err := readSchemaCode()
	if err != nil {
		return err
	}
	missing, err := code.missing(ctx, db)
	if err != nil {
		return err
	}
	if err := inOneTransaction(ctx, db, missing); err != nil {
		return err
	}
	files, err := fs.Sub(migrationFiles, migrationsDir)
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, files)
	if err != nil {
		return err
	}
	_, err = p.UpTo(ctx, version)
	return err
}
