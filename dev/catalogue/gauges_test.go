package catalogue

import (
	"sync"

	"go.temporal.io/sdk/client"
)

// gauges are the last values of the metrics, by name.
type gauges struct {
	client.MetricsHandler
	mu   sync.Mutex
	last map[string]int
}

func newGauges() *gauges {
	return &gauges{MetricsHandler: client.MetricsNopHandler, last: map[string]int{}}
}

// WithTags implements client.MetricsHandler and ignores the tags.
func (g *gauges) WithTags(map[string]string) client.MetricsHandler { return g }

// Gauge implements client.MetricsHandler.
func (g *gauges) Gauge(name string) client.MetricsGauge { return gauge{g, name} }

// value returns the last value of a gauge and reports whether there is one.
func (g *gauges) value(name string) (int, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, found := g.last[name]
	return n, found
}

type gauge struct {
	all  *gauges
	name string
}

// Update implements client.MetricsGauge.
func (g gauge) Update(n float64) {
	g.all.mu.Lock()
	defer g.all.mu.Unlock()
	g.all.last[g.name] = int(n)
}
