package worker

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"

	"kivuko/workflows"
)

// Estate is temporal.yaml: how the service uses Temporal.
type Estate struct {
	Address          string              `yaml:"address"`
	Namespace        string              `yaml:"namespace"`
	Retention        time.Duration       `yaml:"retention"`
	Deployment       string              `yaml:"deployment"`
	SearchAttributes map[string]string   `yaml:"search_attributes"`
	Queues           map[string]Queue    `yaml:"queues"`
	Schedules        map[string]Schedule `yaml:"schedules"`
	Calls            workflows.Calls     `yaml:"calls"`
}

// Queue is what one task queue may do at a time.
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
}

// minRetention is Temporal's own lower bound.
const minRetention = 24 * time.Hour

// ParseEstate reads temporal.yaml and refuses what it does not know, because a misspelt limit would
// silently be no limit.
func ParseEstate(raw []byte) (Estate, error) {
	var e Estate
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
		rule(indexedTypes[kind] != 0, "search attribute %s: %q is no type of ours", name, kind)
	}
	for name, q := range e.Queues {
		rule(q.ConcurrentActivities > 0, "queue %s: concurrent_activities must be above zero", name)
		rule(q.Rate >= 0, "queue %s: rate must not be negative", name)
		rule(!q.Flows || q.ConcurrentFlows > 1, "queue %s: concurrent_flows must be above one", name)
	}
	for name, s := range e.Schedules {
		rule(s.Workflow != "" && s.Every >= time.Second && s.CatchUp >= 0, "schedule %s: workflow and every must be set", name)
	}
	return e, errors.Join(bad...)
}
