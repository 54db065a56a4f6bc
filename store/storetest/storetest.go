// Package storetest gives each test a database of its own on a real PostgreSQL.
//
// A template is migrated once per schema, under a lock, and reused by other test binaries on the same server. Each binary
// clones it for its tests, which have the clones one after the other.
package storetest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/lib/pq" // the driver named "postgres"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// URLVariable names the environment variable with the URL of the server, as a role that may create
// databases.
const URLVariable = "KIVUKO_TEST_DATABASE_URL"

// serviceRole is the restricted role that tests run under, so that they prove the grants sufficient: it has the rights of all
// processes, because a test does what several of them do. As connects as one of them.
const serviceRole store.Role = "kivuko_tests"

// templateLock is the key of the advisory lock under which a template is made.
const templateLock = 0x6b69_7675

// New opens a store on a fresh database, as the restricted role of the service.
func New(t testing.TB) *store.Store {
	t.Helper()
	return Open(t, URL(t), store.Options{})
}

// Open opens a store on a database of URL with options, and closes it at the end of the test.
func Open(t testing.TB, dsn string, o store.Options) *store.Store {
	t.Helper()
	return OpenAs(t, dsn, serviceRole, o)
}

// OpenAs is Open with the rights of one process, for what that process alone does.
func OpenAs(t testing.TB, dsn string, role store.Role, o store.Options) *store.Store {
	t.Helper()
	if reflect.ValueOf(o.Limits).IsZero() {
		o.Limits = plenty()
	}
	if o.AuditKeys == nil {
		o.AuditKeys = []exchange.AuditKey{{ID: "test", Secret: []byte("0123456789abcdef0123456789abcdef")}}
	}
	if o.Connect == nil {
		o.Connect = connectTo
	}
	s, err := store.Open(t.Context(), withRole(t, dsn, role), o)
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	owners.Store(s, sync.OnceValue(func() *sql.DB { return connect(t, dsn) }))
	t.Cleanup(func() {
		knownValues(t, s.Pool())
		knownPayloads(t, s.Pool())
		owner, _ := owners.LoadAndDelete(s)
		if err := owner.(func() *sql.DB)().Close(); err != nil {
			t.Errorf("close the owner's connections: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return s
}

// written selects the enumerated values of rows that clients branch on.
const written = `
SELECT 'event' AS list, type AS value FROM events WHERE object_type <> 'test' UNION SELECT 'event object', object_type FROM events WHERE object_type <> 'test'
UNION SELECT 'action', action FROM audit_log UNION SELECT 'audit object', object_type FROM audit_log
UNION SELECT 'order', status_detail FROM orders UNION SELECT 'transfer', status_detail FROM transfers
UNION SELECT 'swap', status_detail FROM swaps`

// knownValues fails the test when it wrote a value that the contract does not list.
func knownValues(t testing.TB, db *sql.DB) {
	t.Helper()
	var events []string
	for _, e := range exchange.EventTypes() {
		events = append(events, e.Type)
	}
	known := map[string][]string{
		"event": events, "event object": exchange.EventObjects(), "action": exchange.AuditActions(), "audit object": exchange.AuditObjects(),
		"order": exchange.OrderDetails(), "transfer": exchange.TransferDetails(), "swap": exchange.SwapDetails(),
	}
	rows, err := db.QueryContext(context.Background(), written)
	if err != nil {
		return // a test has dropped the database
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var list, value string
		if err := rows.Scan(&list, &value); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(known[list], value) {
			t.Errorf("the database has the value %q of %s, which is not in the lists of package exchange", value, list)
		}
	}
	if err := rows.Err(); err != nil {
		t.Error(err)
	}
}

// plenty are limits that no test reaches by accident.
func plenty() store.Limits {
	const many = 1_000_000
	fees := map[money.Asset]money.Amount{}
	for _, coin := range []money.Asset{money.ETH, money.TRX, money.SOL} {
		fees[coin] = money.Must(coin, "1000000")
	}
	return store.Limits{
		UserFees: fees, CustomerFees: fees, MerchantFees: fees, HouseFees: fees,
		CustomerOrders: many, UserOrders: many, PromptsPerPhone: many, CustomerTransfers: many, UserTransfers: many, MerchantTransfers: many, SwapUSDCOnTron: true,
	}
}

// owners caches the owner's connections of each open store: the first statement on a new connection costs the server
// as much as a whole test.
var owners sync.Map

// Exec runs a statement on the database of a store as the owner of the schema, who may do more than the service.
func Exec(t testing.TB, s *store.Store, query string, args ...any) {
	t.Helper()
	if _, err := Owner(t, s).ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("run as the owner: %v", err)
	}
}

// PutBack makes the database of a store another one than before, as a restore from a backup does.
func PutBack(t testing.TB, s *store.Store) {
	t.Helper()
	Exec(t, s, `CREATE OR REPLACE FUNCTION database_identity() RETURNS text LANGUAGE sql STABLE AS $$ SELECT 'put back' $$`)
}

// Owner is the plain connection pool on the database of a store as the owner of the schema.
func Owner(t testing.TB, s *store.Store) *sql.DB {
	t.Helper()
	owner, ok := owners.Load(s)
	if !ok {
		t.Fatal("the store was not opened by storetest")
	}
	return owner.(func() *sql.DB)()
}

// WithRole makes sessions of the URL work as the restricted role of the service.
func WithRole(t testing.TB, dsn string) string {
	t.Helper()
	return withRole(t, dsn, serviceRole)
}

func withRole(t testing.TB, dsn string, role store.Role) string {
	t.Helper()
	u := parse(t, dsn)
	q := u.Query()
	q.Set("role", string(role))
	u.RawQuery = q.Encode()
	return u.String()
}

// As is a connection to the database of a store with the rights of one process.
func As(t testing.TB, s *store.Store, role store.Role) *sql.Conn {
	t.Helper()
	c, err := Owner(t, s).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // it ends with its pool in any case
	if _, err := c.ExecContext(t.Context(), `SET ROLE `+string(role)); err != nil {
		t.Fatal(err)
	}
	return c
}

// URL returns the URL of a fresh database for the owner of the schema, for tests that read tables directly or tamper with them.
// The test has it to itself until its end.
func URL(t testing.TB) string {
	t.Helper()
	c, err := take(t.Context(), serverURL(t))
	if err != nil {
		t.Fatalf("a database for the test: %v", err)
	}
	t.Cleanup(func() { c.release(t) })
	return c.dsn
}

// EmptyURL creates an empty database, for tests of the migrations themselves.
func EmptyURL(t testing.TB) string {
	t.Helper()
	server := serverURL(t)
	return create(t, DB(t, server), server)
}

func serverURL(t testing.TB) string {
	t.Helper()
	server := os.Getenv(URLVariable)
	if server == "" {
		t.Fatalf("%s is not set: run the tests with \"make test\", which starts a PostgreSQL for them", URLVariable)
	}
	return server
}

// hanging only ends a test that hangs: the databases of all test binaries wait for the same checkpoints.
const hanging = 5 * time.Minute

// create creates a database that is dropped at the end of the test.
func create(t testing.TB, admin *sql.DB, server string) string {
	t.Helper()
	name := "kivuko_empty_" + randomName()
	ctx, cancel := context.WithTimeout(context.Background(), hanging)
	defer cancel()
	if _, err := admin.ExecContext(ctx, `CREATE DATABASE `+name); err != nil {
		t.Fatalf("create a database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), hanging)
		defer cancel()
		if _, err := admin.ExecContext(ctx, `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`); err != nil {
			t.Errorf("drop the test database: %v", err)
		}
	})
	u := parse(t, server)
	u.Path = "/" + name
	return u.String()
}

// DB opens a plain connection pool on a database of URL.
func DB(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db := connect(t, dsn)
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the database: %v", err)
		}
	})
	return db
}

func connect(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := connectTo(dsn)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	return db
}

func parse(t testing.TB, dsn string) *url.URL {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatalf("%s must be a URL", URLVariable)
	}
	return u
}

func randomName() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func ensureTemplate(server, name string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*hanging)
	defer cancel()
	db, err := sql.Open("postgres", server)
	if err != nil {
		return err
	}
	defer func() { err = first(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = first(err, conn.Close()) }() // ends the session and with it the lock
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, templateLock); err != nil {
		return err
	}
	defer func() {
		_, uerr := conn.ExecContext(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, templateLock)
		err = first(err, uerr)
	}()
	var there bool
	if err := conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&there); err != nil || there {
		return err
	}
	return makeTemplate(ctx, conn, server, name)
}

// makeTemplate migrates under another name first, so that a killed run leaves no incomplete template.
func makeTemplate(ctx context.Context, conn *sql.Conn, server, name string) error {
	draft := name + "_draft"
	if _, err := conn.ExecContext(ctx, `DROP DATABASE IF EXISTS `+draft+` WITH (FORCE)`); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, `CREATE DATABASE `+draft); err != nil {
		return err
	}
	u, err := url.Parse(server)
	if err != nil {
		return err
	}
	u.Path = "/" + draft
	if err := store.Migrate(ctx, u.String()); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, makeServiceRole()); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, `ALTER DATABASE `+draft+` RENAME TO `+name)
	return err
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// makeServiceRole is the statement that makes the role of tests, which inherits the rights of all processes.
func makeServiceRole() string {
	var of []string
	for _, role := range store.Roles() {
		of = append(of, string(role))
	}
	return `DO $$ BEGIN
		IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '` + string(serviceRole) + `') THEN
			CREATE ROLE ` + string(serviceRole) + ` NOLOGIN IN ROLE ` + strings.Join(of, ", ") + `;
		END IF;
	END $$`
}
