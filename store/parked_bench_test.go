//nolint:forbidigo // speeds are no money
package store_test

import (
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// BenchmarkListParked reads the first page of the list with 16 clients at a time. The goal is that 95 of 100 answers take less than
// 50 ms with 1,000 parked flows, and less than a second with 100,000.
func BenchmarkListParked(b *testing.B) {
	for _, flows := range []int{1000, 100_000} {
		b.Run(strconv.Itoa(flows), func(b *testing.B) { listParked(b, flows) })
	}
}

func listParked(b *testing.B, flows int) {
	b.Helper()
	const clients = 16
	s := storetest.New(b)
	m := storetest.NewMarket(b, s)
	var orders []exchange.Order
	for range 20 {
		orders = append(orders, m.Order(b, s, "10"))
	}
	for i, o := range orders {
		storetest.Exec(b, s, `INSERT INTO parked_flows (workflow_id, run_id, flow_type, object_type, object_id, reason, network, since)
			SELECT 'on-ramp:' || n, 'run', 'OnRamp', 'order', $1, 'step-failed', 'tron', now() - n * interval '1 second'
			FROM generate_series($2::int, $3::int - 1, $4::int) AS n`, o.ID, i, flows, len(orders))
	}
	took := make([]time.Duration, b.N)
	next := make(chan int)
	var done sync.WaitGroup
	b.ResetTimer()
	for range clients {
		done.Go(func() {
			for i := range next {
				began := time.Now()
				if all, total, err := s.ListParked(b.Context(), exchange.ParkedFilter{Size: 21}); err != nil || len(all) != 21 || total != flows {
					b.Errorf("%d of %d flows: %v", len(all), total, err)
				}
				took[i] = time.Since(began)
			}
		})
	}
	for i := range b.N {
		next <- i
	}
	close(next)
	done.Wait()
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
}
