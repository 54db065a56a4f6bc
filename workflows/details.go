package workflows

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// RunbooksPage has the runbook of every reason to park, from the root of the repository.
const RunbooksPage = "docs/runbooks.md"

// runbooks is where people read that page. Details are no part of what a replay compares, so a worker may name another
// place than the one that began a flow.
var runbooks = RunbooksPage

// UseRunbooks sets where people read docs/runbooks.md, as the address without a heading, before the first worker or
// server of a process starts. A link in the Web UI leads there only if it is a whole address.
func UseRunbooks(address string) { runbooks = address }

// runbook is the address of a reason's heading.
func runbook(r Reason) string { return runbooks + "#" + string(r) }

// card is what the Web UI shows of a flow: a line that says where it stands, and what follows.
type card struct {
	title string
	lines []string
}

func (c *card) add(name, value string) {
	if value != "" {
		c.lines = append(c.lines, "- **"+name+":** "+value)
	}
}

func (c card) String() string {
	return "### " + c.title + "\n\n" + strings.Join(c.lines, "\n")
}

// describe sets the current details. They are encrypted like every payload and need no event.
func describe(ctx workflow.Context, c card) { workflow.SetCurrentDetails(ctx, c.String()) }

// moment is how people read times in details.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }

// orderCard says where an order stands.
func orderCard(o activities.OpenedOrder, waits string, until time.Time) card {
	c := card{title: "Order " + string(o.Status)}
	c.add("Order", o.OrderID.String())
	c.add("Sells", fmt.Sprintf("%s %s on %s for %s %s", o.Crypto, o.Asset, o.Network, o.Fiat, o.Fiat.Asset()))
	c.add("Waits for", waits)
	if !until.IsZero() {
		c.add("Until", moment(until))
	}
	return c
}

// parkedCard says what is wrong, what can be done, and where to read more.
func parkedCard(about, flow string, r Reason, cause error) card {
	a := guide[r]
	c := card{title: "Needs attention: " + a.what}
	c.add("What to do", a.do)
	c.add("Takes", strings.Join(a.verbs, ", "))
	c.add("About", about)
	c.add("Flow", flow)
	c.add("Error", words(cause))
	c.add("More", fmt.Sprintf("[%s](%s)", r, runbook(r)))
	return c
}

// words is the innermost message that says something, with the type that code branches on.
func words(err error) string {
	if err == nil {
		return ""
	}
	if e, ok := asApplication(err); ok {
		return e.Type() + ": " + e.Message()
	}
	return err.Error()
}

func asApplication(err error) (*temporal.ApplicationError, bool) {
	return errors.AsType[*temporal.ApplicationError](err)
}

// passing tells whether an error is only of the moment: a dependency was away for longer than the
// call could wait.
func passing(err error) bool {
	if temporal.IsTimeoutError(err) {
		return true
	}
	e, ok := asApplication(err)
	return ok && !e.NonRetryable()
}
