//nolint:forbidigo // speeds are no money
package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// The content of a benchmark block: foreign movements, and a few of ours among them.
const (
	benchMovements = 200
	benchOurs      = 5
	benchBlocks    = 30
	benchAccounts  = 100 // that get deposits, of however many there are; opening one costs the same everywhere
)

// BenchmarkDeposits measures what one block costs with a hundred and with a hundred thousand wallets, in turns
// on the same machine, and how many deposits per second are booked when a block is full of them.
func BenchmarkDeposits(b *testing.B) {
	few, many := newDepositBench(b, 100), newDepositBench(b, 100_000)
	for b.Loop() {
		var cost, of []float64
		for range rounds() {
			cost, of = append(cost, many.blocks(b, benchOurs)), append(of, few.blocks(b, benchOurs))
		}
		ratio := median(cost) / median(of)
		full := many.blocks(b, benchMovements)
		rate := benchMovements / (full / 1000)
		fmt.Printf("ratio deposits: a block costs %.2f ms with 100,000 wallets and %.2f ms with 100; %.0f deposits booked per second\n",
			median(cost), median(of), rate)
		b.ReportMetric(ratio, "x_wallets")
		b.ReportMetric(rate, "deposits/s")
	}
	b.ReportMetric(0, "ns/op")
}

// depositBench is a database with wallets and a growing chain.
type depositBench struct {
	s      *store.Store
	height uint64
	made   int
}

func newDepositBench(b *testing.B, wallets int) *depositBench {
	b.Helper()
	s := storetest.New(b)
	owner := storetest.User(b, s, exchange.RoleCustomer)
	storetest.Exec(b, s, `ALTER TABLE wallets DISABLE TRIGGER wallets_wanted`)
	storetest.Exec(b, s, `INSERT INTO wallets (id, owner_type, owner_id, network, address, asset, type, custody, label, is_default, created_at, updated_at)
		SELECT gen_random_uuid(), 'customer', $1, 'tron', 'Tours' || lpad(n::text, 29, '0'), 'USDT', 'hot', 'custodial', '', false, now(), now()
		FROM generate_series(1, $2::int) n`, owner.ID, wallets)
	storetest.Exec(b, s, `ANALYZE wallets`)
	if _, err := s.StartDeposits(b.Context(), exchange.Tron, exchange.ChainBlock{Number: 1, ID: "b1"}); err != nil {
		b.Fatal(err)
	}
	return &depositBench{s: s, height: 1}
}

// blocks records final blocks and returns the milliseconds that one took.
func (c *depositBench) blocks(b *testing.B, ours int) float64 {
	b.Helper()
	began := time.Now()
	for range benchBlocks {
		c.height++
		scan := exchange.BlockScan{Network: exchange.Tron, Block: exchange.ChainBlock{
			Number: c.height, ID: fmt.Sprintf("b%d", c.height), Parent: fmt.Sprintf("b%d", c.height-1), Time: began,
		}}
		for i := range benchMovements {
			c.made++
			to := fmt.Sprintf("Telse%029d", c.made)
			if i < ours {
				to = fmt.Sprintf("Tours%029d", 1+c.made%benchAccounts)
			}
			scan.Movements = append(scan.Movements, moveOf(fmt.Sprintf("t%d", c.made), fmt.Sprintf("Tfrom%029d", c.made), to, usdt("1")))
		}
		if _, err := c.s.RecordFinalBlock(context.Background(), scan); err != nil {
			b.Fatal(err)
		}
	}
	return float64(time.Since(began).Microseconds()) / 1000 / benchBlocks
}
