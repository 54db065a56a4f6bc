//nolint:forbidigo // speeds are no money
package store_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// BenchmarkListParked reads the first page of the list at 1,000 parked flows with 16 clients at a time. The goal is that
// 95 of 100 answers take less than 50 ms.
func BenchmarkListParked(b *testing.B) {
	const flows, clients = 1000, 16
	s := storetest.New(b)
	m := storetest.NewMarket(b, s)
	var orders []exchange.Order
	for range 20 {
		orders = append(orders, m.Order(b, s, "10"))
	}
	for i := range flows {
		err := s.KeepParked(b.Context(), exchange.ParkedFlow{
			WorkflowID: fmt.Sprintf("on-ramp:%d", i), RunID: "run", Type: "OnRamp", ObjectType: "order", ObjectID: orders[i%len(orders)].ID,
			Reason: "step-failed", Network: exchange.Tron, Since: time.Now(),
		})
		if err != nil {
			b.Fatal(err)
		}
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
