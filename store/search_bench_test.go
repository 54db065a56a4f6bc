//nolint:forbidigo // speeds are no money
package store_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// searchSizes are the table sizes of BenchmarkSearch; KIVUKO_BENCH_ORDERS names others ("1000000,10000000"). A
// short run has a small table.
func searchSizes(b *testing.B) []int {
	b.Helper()
	text := os.Getenv("KIVUKO_BENCH_ORDERS")
	if text == "" && testing.Short() {
		return []int{50_000}
	}
	if text == "" {
		return []int{1_000_000}
	}
	var sizes []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil {
			b.Fatalf("KIVUKO_BENCH_ORDERS: %v", err)
		}
		sizes = append(sizes, n)
	}
	return sizes
}

// Orders of the last year in the order of their ids, one in ten of them a customer's first, with
// receipts, hashes and numbers that look like real ones. Triggers are off: they guard changes, and
// nothing here is one.
var generate = []string{
	`SET session_replication_role = replica`,
	`SET synchronous_commit = off`,
	`CREATE FUNCTION bench_id(n bigint) RETURNS uuid LANGUAGE sql IMMUTABLE AS $$
		SELECT (lpad(to_hex(1760000000000 + n * 3000), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid $$`,
	`CREATE FUNCTION bench_name(n bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
		SELECT initcap((ARRAY['wan','oti','kam','nje','ami','mwa','ach','che','kip','nya'])[1 + n % 10] || (ARRAY['ji','eno','au','ri','na','ngi','ieng','rono','koech','mbura'])[1 + n / 10 % 10]
			|| translate(substr(md5((n % 20000)::text), 1, 3), '0123456789', 'aeiouklmnr')) $$`,
	// Indexes are made after the rows: ten million rows one by one into each take an hour.
	`CREATE TABLE bench_indexes AS SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition FROM pg_index i
		WHERE i.indrelid IN ('orders'::regclass, 'users'::regclass) AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)`,
	`DO $$ DECLARE i bench_indexes; BEGIN FOR i IN SELECT * FROM bench_indexes LOOP EXECUTE 'DROP INDEX ' || i.name; END LOOP; END $$`,
	`INSERT INTO users (id, email, phone_number, first_name, last_name, role, is_active, password_hash, created_at, updated_at)
		SELECT md5('u' || n)::uuid, 'u' || n || '@example.com', '2547' || lpad(n::text, 8, '0'), bench_name(n), bench_name(n * 7919 % 1000003), 'customer', true, 'x', now(), now()
		FROM generate_series(1, $1::bigint / 10) n`,
	`INSERT INTO name_words SELECT DISTINCT lower(w) FROM (SELECT first_name AS w FROM users UNION SELECT last_name FROM users) n ON CONFLICT DO NOTHING`,
	`INSERT INTO orders (id, customer_id, vendor_id, order_type, order_subtype, network, asset, rate, crypto_amount, asked_amount, fiat_amount, vendor_amount, rounding_amount,
			wallet_id, wallet_address, status, status_detail, payment_method, payment_phone, tx_hash, momo_receipt, expires_at, completed_at, created_at, updated_at, intent_id, payment_reference)
		SELECT bench_id(n), md5('u' || 1 + n * 7919 % ($1::bigint / 10))::uuid, md5('v' || n % 50)::uuid, 'ON_RAMP_BUY', 'standard_onramp', 'tron', 'USDT', 129.5, 10, 10, 1295, 1295, 0,
			md5('w' || n % 50)::uuid, 'T' || substr(md5('a' || n), 1, 33), 'completed', 'none', 'momo', '2547' || lpad((n * 7919 % 100000000)::text, 8, '0'),
			md5('x' || n) || md5('y' || n), upper('S' || substr(md5('r' || n), 1, 9)), now(), now(), to_timestamp(1760000000 + n * 3), now(), md5('i' || n)::uuid,
			'KVK' || upper(lpad(to_hex(n), 9, '0'))
		FROM generate_series(1, $1::bigint) n`,
	`INSERT INTO users (id, email, phone_number, first_name, last_name, role, is_active, password_hash, created_at, updated_at)
		SELECT md5('v' || n)::uuid, 'v' || n || '@example.com', '2541' || lpad((n + 1)::text, 8, '0'), 'Vendor', 'No' || n, 'vendor', true, 'x', now(), now() FROM generate_series(0, 49) n`,
	`SET maintenance_work_mem = '512MB'`,
	`DO $$ DECLARE i bench_indexes; BEGIN FOR i IN SELECT * FROM bench_indexes LOOP EXECUTE i.definition; END LOOP; END $$`,
	`VACUUM ANALYZE`,
}

// kinds of query, each a column or an expression over one order and its customer.
var searchKinds = []struct{ name, expression string }{
	{"id", `o.id::text`},
	{"id prefix", `substr(o.id::text, 1, 13)`},
	{"hash", `o.tx_hash`},
	{"hash prefix", `substr(o.tx_hash, 1, 16)`},
	{"receipt", `lower(o.momo_receipt)`},
	{"receipt prefix", `substr(o.momo_receipt, 1, 5)`},
	{"phone", `'0' || substr(o.payment_phone, 4)`},
	{"phone end", `substr(o.payment_phone, 8)`},
	{"full name", `u.first_name || ' ' || u.last_name`},
	{"last name", `u.last_name`},
	{"part of a name", `substr(u.last_name, 2, 5)`},
	{"three letters", `lower(substr(u.first_name, 1, 3))`},
	{"three hex", `substr(o.tx_hash, 10, 3)`},
	{"three digits", `substr(o.payment_phone, 10)`},
	{"no match", `'zzqqxxkk'`},
}

// BenchmarkSearch prints the 95th percentile of each kind of query, for staff and for one merchant, and
// over sizes its growth.
func BenchmarkSearch(b *testing.B) {
	const times = 40
	var smallest float64
	for _, n := range searchSizes(b) {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			url := storetest.URL(b)
			db := sqlx.NewDb(storetest.DB(b, url), "postgres")
			db.SetMaxOpenConns(1)
			for _, q := range generate {
				if strings.Contains(q, "$1") && strings.HasPrefix(q, "INSERT") {
					db.MustExec(q, n)
					continue
				}
				db.MustExec(q)
			}
			s := storetest.Open(b, url, store.Options{})
			var vendor uuid.UUID
			if err := db.Get(&vendor, `SELECT md5('v7')::uuid`); err != nil {
				b.Fatal(err)
			}
			merchant := store.ViewOf(exchange.Principal{Role: exchange.RoleVendor, UserID: vendor, VendorID: vendor}, exchange.ActReadOrders)
			for b.Loop() {
				worst := 0.0
				for who, view := range map[string]store.View{"staff": store.Everything(), "merchant": merchant} {
					for _, k := range searchKinds {
						p95 := searchP95(b, s, db, view, k.expression, n, times)
						worst = max(worst, p95)
						fmt.Printf("search %d orders, %s, %s: p95 %.1f ms\n", n, who, k.name, p95)
					}
				}
				if smallest == 0 {
					smallest = worst
				}
				fmt.Printf("ratio search/%d-orders: slowest p95 %.1f ms, %.2fx the smallest table\n", n, worst, worst/smallest)
				b.ReportMetric(worst, "p95-ms")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func searchP95(b *testing.B, s *store.Store, db *sqlx.DB, v store.View, expression string, n, times int) float64 {
	b.Helper()
	var queries []string
	err := db.Select(&queries, `SELECT `+expression+` FROM generate_series(1, $2::bigint) g
		JOIN orders o ON o.id = bench_id(1 + g * 104729 % $1) JOIN users u ON u.id = o.customer_id`, n, times+5)
	if err != nil {
		b.Fatal(err)
	}
	var took []float64
	for i, q := range queries {
		begin := time.Now()
		if _, _, err := s.SearchOrders(b.Context(), v, q, store.Page{Number: 1, Size: 20}); err != nil {
			b.Fatal(err)
		}
		if i >= 5 { // after a warm-up
			took = append(took, float64(time.Since(begin).Microseconds())/1000)
		}
	}
	slices.Sort(took)
	return took[len(took)*95/100]
}
