package worker

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"kivuko/workflows"
)

// registry records what is registered.
type registry struct {
	sdk.Registry
	flows, activities []string
}

func (r *registry) RegisterWorkflowWithOptions(_ any, o workflow.RegisterOptions) {
	r.flows = append(r.flows, o.Name)
}

func (r *registry) RegisterActivity(a any) {
	r.activities = append(r.activities, reflect.TypeOf(a).Elem().Name())
}

// tableOf are the lines of the table below a heading of a page, by what their first cells quote.
func tableOf(t *testing.T, name, heading string) map[string]string {
	t.Helper()
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut("\n"+string(page), "\n"+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	lines := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|(.*)\\|$").FindAllStringSubmatch(section, -1) {
		lines[m[1]] = m[2]
	}
	return lines
}

// docs/architecture.md says which activities run on which queue, and docs/flows.md which flows there are and which
// schedule starts them.
func TestPagesNameQueuesFlowsAndSchedules(t *testing.T) {
	temporalConfig := ours(t)
	queues, flows := tableOf(t, "../docs/architecture.md", "## Queues"), tableOf(t, "../docs/flows.md", "# Flows")
	for _, name := range slices.Sorted(maps.Keys(temporalConfig.Queues)) {
		kind, _, ofNetwork := strings.Cut(name, "-")
		var r registry
		if err := register(&r, name, workflows.Activities(name)); err != nil {
			t.Fatal(err)
		}
		label := name
		if ofNetwork {
			label = kind + "-<network>"
		}
		cells := strings.Split(queues[label], "|")
		var written []string
		for _, m := range regexp.MustCompile("`([A-Za-z]+)`").FindAllStringSubmatch(cells[len(cells)-1], -1) {
			written = append(written, m[1])
		}
		slices.Sort(written)
		slices.Sort(r.activities)
		if !slices.Equal(written, r.activities) {
			t.Errorf("docs/architecture.md has the activities %v on the queue %s, and they are %v", written, name, r.activities)
		}
		if written := slices.Sorted(maps.Keys(flows)); len(r.flows) > 0 && !slices.Equal(written, slices.Sorted(slices.Values(r.flows))) {
			t.Errorf("docs/flows.md lists the flows %v, want %v", written, r.flows)
		}
	}
	for _, f := range workflows.Flows() {
		if cell, _, _ := strings.Cut(flows[f.Type], "|"); f.ID != "" && strings.TrimSpace(cell) != "`"+string(f.ID)+"`" {
			t.Errorf("docs/flows.md says that the id of %s is %s, and it is %s", f.Type, cell, f.ID)
		}
	}
	for name, schedule := range temporalConfig.Schedules {
		if !strings.Contains(flows[schedule.Workflow], "`"+name+"`") {
			t.Errorf("docs/flows.md does not say that the schedule %s starts %s", name, schedule.Workflow)
		}
	}
}
