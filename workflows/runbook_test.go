package workflows_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/workflows"
)

// A rehearsal runs what docs/runbooks.md says about a reason to park: the flow parks with the reason, one of the
// commands is sent the way that the document names, and the flow ends as the document says.
type rehearsal struct {
	verbs []string
	play  func(t *testing.T, c *parkedCommand)
}

// parkedCommand is one command about one reason.
type parkedCommand struct {
	reason workflows.Reason
	verb   string
	after  time.Duration // how long the flow stays parked before the command; a minute where it is zero
	mend   func()        // removes the cause, as the runbook asks for before a retry
	seen   bool          // the flow was parked with the reason
	sent   bool          // and the command is on its way
}

// mended reports whether the cause is gone. Only a retry needs that: money is given back, and a payment is proven, while
// the cause remains.
func (c *parkedCommand) mended() bool { return c.sent && c.verb == activities.VerbRetry }

// await has a command sent when a flow, given by its id or the beginning of it, is parked with the reason, after a check
// of what it shows.
func (c *parkedCommand) await(t *testing.T, env *testsuite.TestWorkflowEnvironment, s *signs, flow string, send func()) {
	t.Helper()
	s.parks = append(s.parks, func(at, reason string) {
		if !strings.HasPrefix(at, flow) || reason != string(c.reason) || c.seen {
			return
		}
		c.seen, flow = true, at
		env.RegisterDelayedCallback(func() {
			c.shown(t, env, s, flow)
			c.sent = true
			if c.mend != nil && c.mended() {
				c.mend()
			}
			send()
		}, c.pause())
	})
	t.Cleanup(func() { c.over(t, s, flow) })
}

func (c *parkedCommand) pause() time.Duration {
	if c.after == 0 {
		return time.Minute
	}
	return c.after
}

// shown checks what an operator sees of the parked flow: its search attributes, and details that link the runbook.
func (c *parkedCommand) shown(t *testing.T, env *testsuite.TestWorkflowEnvironment, s *signs, flow string) {
	t.Helper()
	s.mu.Lock()
	reasons, alarmed := s.reasons[flow], s.alarmed[flow]
	s.mu.Unlock()
	if !alarmed || len(reasons) == 0 || reasons[len(reasons)-1] != string(c.reason) {
		t.Errorf("%s needs attention: %t, with %v", flow, alarmed, reasons)
	}
	details := detailsOf(t, env, flow)
	a := c.reason.Advice()
	if !strings.HasPrefix(flow, "deposit-watch:") { // it has no object
		beginsWithObject(t, s, flow, details, a.What)
	}
	for _, want := range []string{string(c.reason) + " (docs/runbooks.md#" + string(c.reason) + ")", a.What, a.Do, strings.Join(a.Verbs, ", ")} {
		if !strings.Contains(details, want) {
			t.Errorf("the details of %s do not say %q:\n%s", flow, want, details)
		}
	}
}

// detailsOf reads what the Web UI shows of a flow now.
func detailsOf(t testing.TB, env *testsuite.TestWorkflowEnvironment, flow string) string {
	t.Helper()
	answer, err := env.QueryWorkflowByID(flow, "__temporal_workflow_metadata")
	if err != nil {
		answer, err = env.QueryWorkflow("__temporal_workflow_metadata") // the flow that the environment itself runs
	}
	if err != nil {
		t.Errorf("%s shows no details: %v", flow, err)
		return ""
	}
	var m sdkpb.WorkflowMetadata
	if err := answer.Get(&m); err != nil {
		t.Errorf("the details of %s can't be read: %v", flow, err)
		return ""
	}
	return m.GetCurrentDetails()
}

// beginsWithObject checks that details name the object before the problem: the amount, the customer's id and the object's
// address in the API.
func beginsWithObject(t *testing.T, s *signs, flow, details, wrong string) {
	t.Helper()
	first, _, found := strings.Cut(details, wrong)
	wants := []string{
		"1250.00 KES", aboutParked.CustomerID.String(), "/api/v1/auth/payment-exceptions/" + aboutParked.ExceptionID.String(),
		"/api/v1/auth/orders/" + aboutParked.OrderID.String(),
	}
	if order := s.order; order != nil {
		amount := order.Crypto.String() + " USDT"
		if strings.Contains(first, "KES") { // a refund, or late money
			amount = s.shillings + ".00 KES"
		}
		wants = []string{amount, order.CustomerID.String(), "/api/v1/auth/orders/" + order.ID.String()}
	}
	if f := s.transfer; f != nil {
		wants = []string{f.Amount.String() + " USDT", f.RequestedBy.String(), "/api/v1/auth/transfers/" + f.ID.String()}
	}
	if s.about != nil {
		wants = s.about
	}
	for _, want := range wants {
		if !found || !strings.Contains(first, want) {
			t.Errorf("the details of %s do not begin with %q:\n%s", flow, want, details)
		}
	}
}

// over checks that the command was sent and that the flow is no longer parked.
func (c *parkedCommand) over(t *testing.T, s *signs, flow string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !c.seen:
		t.Errorf("%s was never parked with the reason, but with %v", flow, s.reasons[flow])
	case !c.sent:
		t.Errorf("%s went on before the command", flow)
	case s.alarmed[flow]:
		t.Errorf("%s still needs attention", flow)
	}
}

// rehearsals is every reason to park.
func rehearsals() map[workflows.Reason]rehearsal {
	table := map[workflows.Reason]rehearsal{}
	for _, family := range []map[workflows.Reason]rehearsal{
		payoutRehearsals(), purchaseRehearsals(), refundRehearsals(), lateRehearsals(), transferRehearsals(), watchRehearsals(),
		saleRehearsals(), paidOutRehearsals(), returnRehearsals(), withdrawalRehearsals(), feeRehearsals(), backRehearsals(), depositRehearsals(), swapRehearsals(), councilRehearsals(), proposalRehearsals(),
	} {
		for r, play := range family {
			if _, double := table[r]; double {
				panic("two rehearsals of " + r)
			}
			table[r] = play
		}
	}
	return table
}

var (
	onlyRetry       = []string{activities.VerbRetry}
	retryOrRefund   = []string{activities.VerbRetry, activities.VerbRefund}
	retryOrResolve  = []string{activities.VerbRetry, activities.VerbResolve}
	refundOrResolve = []string{activities.VerbRefund, activities.VerbResolve}
)

// TestRunbooks rehearses every command of every reason to park.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	for r, s := range rehearsals() {
		for _, verb := range s.verbs {
			t.Run(string(r)+"/"+verb, func(t *testing.T) {
				t.Parallel()
				s.play(t, &parkedCommand{reason: r, verb: verb})
			})
		}
	}
}

// TestEveryReasonIsRehearsed compares the guide, the rehearsals and the runbooks.
func TestEveryReasonIsRehearsed(t *testing.T) {
	t.Parallel()
	table := rehearsals()
	for _, r := range workflows.Reasons() {
		s, ok := table[r]
		if !ok {
			t.Errorf("no rehearsal covers %s", r)
			continue
		}
		if guided := r.Advice().Verbs; !slices.Equal(slices.Sorted(slices.Values(guided)), slices.Sorted(slices.Values(s.verbs))) {
			t.Errorf("%s takes %v; rehearsed are %v", r, guided, s.verbs)
		}
	}
	for r := range maps.Keys(table) {
		if !slices.Contains(workflows.Reasons(), r) {
			t.Errorf("%s is rehearsed and is no reason to park", r)
		}
	}
	doc, err := os.ReadFile(filepath.Join("..", "docs", "runbooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range runbooks(string(doc)) {
		if _, ok := table[workflows.Reason(name)]; !ok {
			t.Errorf("docs/runbooks.md has a runbook for %q, which is no reason to park", name)
		}
		for _, part := range []string{"Means", "Look", "Send"} {
			if !strings.Contains(text, "\n**"+part+".** ") {
				t.Errorf("the runbook of %s does not say %q", name, part)
			}
		}
		_, send, _ := strings.Cut(text, "\n**Send.** ")
		send, _, _ = strings.Cut(send, "\n\n")
		for _, verb := range table[workflows.Reason(name)].verbs {
			if !strings.Contains(send, "`"+verb+"`") && !strings.HasPrefix(send, "As for [") {
				t.Errorf("the runbook of %s does not say when to send %s", name, verb)
			}
		}
	}
	for r := range maps.Keys(table) {
		if runbooks(string(doc))[string(r)] == "" {
			t.Errorf("docs/runbooks.md has no heading %s", r)
		}
	}
}

// runbooks are the sections of the operators' document whose headings are reasons: words in lower case, joined by hyphens.
func runbooks(doc string) map[string]string {
	found := map[string]string{}
	for _, section := range strings.Split(doc, "\n## ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		if strings.Contains(name, "-") && !strings.Contains(name, " ") && name == strings.ToLower(name) {
			found[name] = text
		}
	}
	return found
}
