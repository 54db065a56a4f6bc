package api

import (
	"errors"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of the HTTP edge. Labels are route templates and statuses, never ids.
type metrics struct {
	requests  *prometheus.CounterVec
	latency   *prometheus.HistogramVec
	callbacks *prometheus.CounterVec
	spooled   prometheus.Gauge
	onDisk    prometheus.Gauge
}

// measure counts the callbacks that wait on disk.
func (m *metrics) measure(s *spool) {
	files, bytes := s.waiting()
	m.spooled.Set(float64(files))
	m.onDisk.Set(float64(bytes))
}

func newMetrics(r *prometheus.Registry) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kivuko_http_requests_total", Help: "Requests by method, route template and status.",
		}, []string{"method", "route", "status"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "kivuko_http_request_duration_seconds", Help: "Time to answer by method and route template.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20},
		}, []string{"method", "route"}),
		callbacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kivuko_momo_callbacks_total",
			Help: "Mobile money callbacks by outcome. Kept: stored (of an attempt), standing (at the address for notices that belong to no attempt), " +
				"unknown (at an unknown address), spooled (on disk). Not kept: dropped (too many at unknown addresses), spool_full, " +
				"lost (neither database nor disk took it). off_range counts those from other addresses than the operator's once more.",
		}, []string{"outcome"}),
		spooled: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kivuko_momo_callbacks_spooled", Help: "Callbacks that wait on disk for the database.",
		}),
		onDisk: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "kivuko_momo_callbacks_spooled_bytes", Help: "Bytes of the callbacks that wait on disk.",
		}),
	}
	var all []error
	for _, c := range []prometheus.Collector{m.requests, m.latency, m.callbacks, m.spooled, m.onDisk} {
		all = append(all, r.Register(c))
	}
	return m, errors.Join(all...)
}

// knownMethods bounds the label's values: a client may send any method.
var knownMethods = map[string]bool{"GET": true, "POST": true, "PUT": true, "PATCH": true, "DELETE": true, "HEAD": true, "OPTIONS": true}

func (m *metrics) observe(method, route string, status int, took time.Duration) {
	if !knownMethods[method] {
		method = "other"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.latency.WithLabelValues(method, route).Observe(took.Seconds())
}
