package main

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"kivuko/store"
)

// newRegistry returns the metrics of every process: its memory, goroutines and files, and its database connections. Waits
// for a connection are the first sign of a pool that is too small.
func newRegistry(db *store.Store) (*prometheus.Registry, error) {
	r := prometheus.NewRegistry()
	var all []error
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewDBStatsCollector(db.Pool(), "kivuko"),
	} {
		all = append(all, r.Register(c))
	}
	return r, errors.Join(all...)
}
