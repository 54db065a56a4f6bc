//nolint:forbidigo // speeds are no money
package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// Sales per round of the benchmark, and the sizes of the escrow pools: one that just suffices, and twenty times that.
const (
	benchSales     = 10
	benchPool      = benchRounds * benchSales
	benchLargePool = 20 * benchPool
)

// BenchmarkSales measures the cost of opening a sale, which picks and lends an address, with a small and with a large
// pool, in turns on the same machine; and the cost of taking its crypto.
func BenchmarkSales(b *testing.B) {
	few, many := newSaleBench(b, benchPool), newSaleBench(b, benchLargePool)
	for b.Loop() {
		var small, large, take []float64
		for range rounds() {
			opened, taken := many.round(b)
			large, take = append(large, opened), append(take, taken)
			opened, taken = few.round(b)
			small, take = append(small, opened), append(take, taken)
		}
		ratio := median(large) / median(small)
		fmt.Printf("ratio sales: one is opened in %.2f ms with %d escrow addresses and in %.2f ms with %d; its crypto is taken in %.2f ms\n",
			median(large), benchLargePool, median(small), benchPool, median(take))
		b.ReportMetric(ratio, "x_pool")
		b.ReportMetric(median(take)/median(small), "x_open")
		b.ReportMetric(1000/median(small), "opened/s")
		b.ReportMetric(1000/median(take), "taken/s")
	}
	b.ReportMetric(0, "ns/op")
}

// saleBench is a database with a vendor who buys, a pool, and a growing chain.
type saleBench struct {
	s      *store.Store
	m      storetest.Market
	height uint64
}

func newSaleBench(b *testing.B, pool int) *saleBench {
	b.Helper()
	s := storetest.New(b)
	q := &saleBench{s: s, m: storetest.NewSellers(b, s), height: 1}
	storetest.EscrowPool(b, s, exchange.Tron, pool)
	storetest.Exec(b, s, `ANALYZE`)
	if _, err := s.StartDeposits(b.Context(), exchange.Tron, exchange.ChainBlock{Number: 1, ID: "b1"}); err != nil {
		b.Fatal(err)
	}
	return q
}

// round opens sales and takes the crypto of each, and returns the milliseconds per operation.
func (q *saleBench) round(b *testing.B) (opened, taken float64) {
	b.Helper()
	var sales []exchange.Order
	began := time.Now()
	for range benchSales {
		sales = append(sales, q.m.Sale(b, q.s, "5"))
	}
	opened = float64(time.Since(began).Microseconds()) / 1000 / benchSales
	deposits := q.pay(b, sales)
	began = time.Now()
	for i, o := range sales {
		if got, err := q.s.TakeDeposit(b.Context(), o.ID, deposits[i]); err != nil || got.Verdict != exchange.TakenExact {
			b.Fatalf("taken as %q, %v", got.Verdict, err)
		}
	}
	return opened, float64(time.Since(began).Microseconds()) / 1000 / benchSales
}

// pay delivers the crypto of sales in one final block.
func (q *saleBench) pay(b *testing.B, sales []exchange.Order) []uuid.UUID {
	b.Helper()
	q.height++
	scan := exchange.BlockScan{Network: exchange.Tron, Block: exchange.ChainBlock{
		Number: q.height, ID: fmt.Sprintf("b%d", q.height), Parent: fmt.Sprintf("b%d", q.height-1), Time: time.Now().UTC(),
	}}
	for _, o := range sales {
		scan.Movements = append(scan.Movements, moveOf("tx-"+o.ID.String(), "Tstranger0000000000000000000000000", o.EscrowAddress, o.Price.Crypto))
	}
	if _, err := q.s.RecordFinalBlock(b.Context(), scan); err != nil {
		b.Fatal(err)
	}
	ids := make([]uuid.UUID, len(sales))
	for i, o := range sales {
		all, _, err := q.s.ListChainDeposits(b.Context(), store.ChainDepositFilter{TxID: "tx-" + o.ID.String()}, store.Page{Number: 1, Size: 1})
		if err != nil || len(all) != 1 {
			b.Fatalf("%d deposits, %v", len(all), err)
		}
		ids[i] = all[0].ID
	}
	return ids
}
