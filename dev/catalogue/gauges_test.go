package catalogue

import (
	"sync"

	"go.temporal.io/sdk/client"
)

// gauges are what steps tell to whoever watches, by name.
type gauges struct {
	client.MetricsHandler
	mu   sync.Mutex
	last map[string]int
}

func newGauges() *gauges {
	return &gauges{MetricsHandler: client.MetricsNopHandler, last: map[string]int{}}
}

// WithTags implements client.MetricsHandler. What a number is about is not told apart.
func (g *gauges) WithTags(map[string]string) client.MetricsHandler { return g }

// Gauge implements client.MetricsHandler.
func (g *gauges) Gauge(name string) client.MetricsGauge { return gauge{g, name} }

// says is the last number that was told by a name, and whether there is one.
func (g *gauges) says(name string) (int, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, told := g.last[name]
	return n, told
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
