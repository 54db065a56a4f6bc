//nolint:forbidigo // speeds are no money
package store_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/pg"
	"kivuko/store/storetest"
)

// The benchmarks print ratios within one run, because only those are comparable between machines. Variants alternate
// over several rounds, and the median of the rounds' ratios is reported.
const (
	benchRounds = 5
	benchRound  = 700 * time.Millisecond
)

var benchWriters = []int{1, 64, 256}

// rounds is one with -short, which only checks that a benchmark works.
func rounds() int {
	if testing.Short() {
		return 1
	}
	return benchRounds
}

// BenchmarkHotAccount reserves and posts on one account: through the coalescing writer, with a plain
// row lock around the same statements, and as plain inserts of the same rows without any balance.
func BenchmarkHotAccount(b *testing.B) {
	for _, kind := range []string{"hold", "posting"} {
		b.Run(kind, func(b *testing.B) {
			h := newHot(b)
			for b.Loop() {
				h.run(b, kind)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// run measures every number of writers in every round, so that a growing table and other load on the machine affect
// all of them alike.
func (h *hot) run(b *testing.B, kind string) {
	b.Helper()
	ways := []func(context.Context) error{h.ourHold, h.lockedHold, h.plainHold}
	if kind == "posting" {
		ways = []func(context.Context) error{h.ourPosting, h.lockedPosting, h.plainPosting}
	}
	locking, inserts, alone := map[int][]float64{}, map[int][]float64{}, map[int][]float64{}
	ours := map[int][]float64{}
	for range rounds() {
		var base float64
		for _, writers := range benchWriters {
			a, l, p := rate(b, writers, ways[0]), rate(b, writers, ways[1]), rate(b, writers, ways[2])
			if writers == 1 {
				base = a
			}
			ours[writers] = append(ours[writers], a)
			locking[writers], inserts[writers], alone[writers] = append(locking[writers], a/l), append(inserts[writers], a/p), append(alone[writers], a/base)
		}
	}
	for _, writers := range benchWriters {
		fmt.Printf("ratio %s/%d-writers: %.1fx row locking, %.2fx plain inserts, %.1fx one writer (%.0f/s)\n", kind, writers,
			median(locking[writers]), median(inserts[writers]), median(alone[writers]), median(ours[writers]))
		b.ReportMetric(median(locking[writers]), fmt.Sprintf("x_locking_%d", writers))
		b.ReportMetric(median(inserts[writers]), fmt.Sprintf("x_inserts_%d", writers))
	}
}

// hot is a database with one busy account.
type hot struct {
	s      *store.Store
	db     *sqlx.DB
	wallet uuid.UUID
	ids    map[string]int64
}

func newHot(b *testing.B) *hot {
	b.Helper()
	url := storetest.URL(b)
	h := &hot{s: storetest.Open(b, url, store.Options{}), wallet: storetest.NewID(b), ids: map[string]int64{}}
	h.db = sqlx.NewDb(storetest.DB(b, url), "postgres")
	// KIVUKO_BENCH_MONTHS is how many months the ledger has, each with its parts.
	if n, _ := strconv.Atoi(os.Getenv("KIVUKO_BENCH_MONTHS")); n > 0 {
		for i := range n {
			h.db.MustExec(fmt.Sprintf(`CREATE OR REPLACE FUNCTION this_month() RETURNS date LANGUAGE sql STABLE AS $$ SELECT date '2026-12-01' + interval '%d months' $$`, i))
			if _, err := h.s.KeepMonths(b.Context(), 0); err != nil {
				b.Fatal(err)
			}
		}
	}
	storetest.Deposit(b, h.s, h.wallet, money.Must(money.USDT, "100000000000"))
	h.db.SetMaxOpenConns(pg.DefaultMaxConns)
	h.db.SetMaxIdleConns(pg.DefaultMaxConns)
	for _, q := range []string{
		// The same rows with the same keys, without the triggers that maintain balances.
		`CREATE TABLE plain_entries (LIKE ledger_entries INCLUDING ALL)`, `CREATE TABLE plain_lines (LIKE ledger_lines INCLUDING ALL)`,
		`ALTER TABLE plain_entries ADD UNIQUE (key)`,
		`CREATE TABLE plain_holds (LIKE holds INCLUDING ALL)`,
	} {
		h.db.MustExec(q)
	}
	for _, ref := range []exchange.AccountRef{h.balance(), h.custody()} {
		var id int64
		if err := h.db.Get(&id, `SELECT id FROM ledger_accounts WHERE code = $1`, ref.Code()); err != nil {
			b.Fatal(err)
		}
		h.ids[ref.Code()] = id
	}
	return h
}

func (h *hot) balance() exchange.AccountRef {
	return exchange.Owned(exchange.AccWalletBalance, h.wallet, money.USDT)
}

func (h *hot) custody() exchange.AccountRef {
	return exchange.Owned(exchange.AccCustody, h.wallet, money.USDT)
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// rate runs fn in parallel for one round and returns how often it ended per second.
func rate(b *testing.B, writers int, fn func(context.Context) error) float64 {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), benchRound)
	defer cancel()
	var n atomic.Int64
	var wg sync.WaitGroup
	begin := time.Now()
	for range writers {
		wg.Go(func() {
			for ctx.Err() == nil {
				if err := fn(context.WithoutCancel(ctx)); err != nil {
					b.Error(err)
					return
				}
				n.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(n.Load()) / time.Since(begin).Seconds()
}

func (h *hot) ourHold(ctx context.Context) error {
	id := uuid.New()
	return h.s.Post(ctx, exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldPlace, Hold: exchange.Hold{
		ID: id, Key: id.String(), Account: h.balance(), Amount: money.Must(money.USDT, "1"), ObjectType: "bench", ObjectID: id,
	}}}})
}

func (h *hot) ourPosting(ctx context.Context) error {
	id := uuid.New()
	one := money.Must(money.USDT, "1")
	return h.s.Post(ctx, exchange.Posting{Entries: []exchange.Entry{{
		Key: id.String(), Kind: "bench", ObjectType: "bench", ObjectID: id,
		Lines: []exchange.Line{exchange.Debit(h.balance(), one), exchange.Credit(h.custody(), one)},
	}}})
}

const lockBalances = `SELECT id FROM ledger_accounts WHERE id = ANY ($1) ORDER BY id FOR NO KEY UPDATE`

const benchHold = `INSERT INTO %s (id, key, account_id, placed, amount, status, object_type, object_id, created_at, updated_at)
VALUES ($1, $2, $3, 1, 1, 'held', 'bench', $1, now(), now())`

const benchEntry = `WITH e AS (INSERT INTO %s (key, digest, kind, object_type, object_id, at)
    VALUES ($1, '\x00000000000000000000000000000000', 'bench', 'bench', $2, now()) RETURNING id)
INSERT INTO %s (entry_id, account_id, amount) SELECT e.id, l.account_id, l.amount FROM e, (VALUES ($3::bigint, 1), ($4::bigint, -1)) l (account_id, amount)`

// locked runs a statement under the lock of the account, as a service without the writer would.
func (h *hot) locked(ctx context.Context, query string, args ...any) error {
	tx, err := h.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, lockBalances, fmt.Sprintf("{%d}", h.ids[h.balance().Code()])); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, query, args...); err != nil {
		return err
	}
	return tx.Commit()
}

func (h *hot) lockedHold(ctx context.Context) error {
	id := uuid.New()
	return h.locked(ctx, fmt.Sprintf(benchHold, "holds"), id, id.String(), h.ids[h.balance().Code()])
}

func (h *hot) lockedPosting(ctx context.Context) error {
	id := uuid.New()
	return h.locked(ctx, fmt.Sprintf(benchEntry, "ledger_entries", "ledger_lines"), id.String(), id, h.ids[h.balance().Code()], h.ids[h.custody().Code()])
}

func (h *hot) plainHold(ctx context.Context) error {
	id := uuid.New()
	_, err := h.db.ExecContext(ctx, fmt.Sprintf(benchHold, "plain_holds"), id, id.String(), h.ids[h.balance().Code()])
	return err
}

func (h *hot) plainPosting(ctx context.Context) error {
	id := uuid.New()
	_, err := h.db.ExecContext(ctx, fmt.Sprintf(benchEntry, "plain_entries", "plain_lines"), id.String(), id, h.ids[h.balance().Code()], h.ids[h.custody().Code()])
	return err
}
