package worker

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"

	"kivuko/workflows"
)

// TemporalConfig is temporal.yaml: how the service uses Temporal.
type TemporalConfig struct {
	Address          string              `yaml:"address"`
	Namespace        string              `yaml:"namespace"`
	Retention        time.Duration       `yaml:"retention"`
	Deployment       string              `yaml:"deployment"`
	SearchAttributes map[string]string   `yaml:"search_attributes"`
	Queues           map[string]Queue    `yaml:"queues"`
	Schedules        map[string]Schedule `yaml:"schedules"`
	Calls            workflows.Calls     `yaml:"calls"`
}

// Queue has the limits of one task queue.
type Queue struct {
	Flows                bool    `yaml:"flows"` // runs workflow code
	ConcurrentFlows      int     `yaml:"concurrent_flows"`
	ConcurrentLocal      int     `yaml:"concurrent_local"`
	ConcurrentActivities int     `yaml:"concurrent_activities"`
	Rate                 float64 `yaml:"rate"` // activities per second over all workers; 0 is no limit
}

// Schedule starts a flow at intervals.
type Schedule struct {
	Workflow string        `yaml:"workflow"`
	Every    time.Duration `yaml:"every"`
	CatchUp  time.Duration `yaml:"catch_up"`
	Timeout  time.Duration `yaml:"timeout"` // of one run; scheduledTimeout when it is not said
}

// scheduledTimeout ends a scheduled run that no worker can go on with, since the next one is dropped while it is open. It
// is longer than any run takes, and what it ends shows up among the failures.
const scheduledTimeout = 30 * time.Minute

// minRetention is Temporal's own lower bound.
const minRetention = 24 * time.Hour

// ParseTemporalConfig reads temporal.yaml. It refuses unknown fields, because a misspelt limit would silently not apply.
func ParseTemporalConfig(raw []byte) (TemporalConfig, error) {
	var e TemporalConfig
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(&e); err != nil {
		return e, fmt.Errorf("temporal.yaml: %w", err)
	}
	var bad []error
	rule := func(ok bool, format string, args ...any) {
		if !ok {
			bad = append(bad, fmt.Errorf("temporal.yaml: "+format, args...))
		}
	}
	rule(e.Address != "" && e.Namespace != "" && e.Deployment != "", "address, namespace and deployment must be set")
	rule(e.Retention >= minRetention, "retention must be at least %s", minRetention)
	for name, kind := range e.SearchAttributes {
		rule(indexedTypes[kind] != 0, "search attribute %s: the type %q is unknown", name, kind)
	}
	for name, q := range e.Queues {
		rule(q.ConcurrentActivities > 0, "queue %s: concurrent_activities must be above zero", name)
		rule(q.Rate >= 0, "queue %s: rate must not be negative", name)
		rule(!q.Flows || q.ConcurrentFlows > 1, "queue %s: concurrent_flows must be above one", name)
	}
	for name, s := range e.Schedules {
		s.Timeout = cmp.Or(s.Timeout, scheduledTimeout)
		e.Schedules[name] = s
		rule(s.Workflow != "" && s.Every >= time.Second && s.CatchUp >= 0, "schedule %s: workflow and every must be set", name)
		rule(s.Timeout >= time.Minute, "schedule %s: timeout must be at least a minute", name)
	}
	return e, errors.Join(bad...)
}
