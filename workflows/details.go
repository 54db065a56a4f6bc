package workflows

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
)

// RunbooksPage has the runbook of every reason to park, from the root of the repository.
const RunbooksPage = "docs/runbooks.md"

// runbooks is the address at which operators read that page. A replay doesn't compare details, so workers may have
// different addresses.
var runbooks = RunbooksPage

// UseRunbooks sets the address of docs/runbooks.md, without a heading. It is called before the first worker or server of
// a process starts. The Web UI can only follow an absolute address.
func UseRunbooks(address string) { runbooks = address }

// runbook returns the address of a reason's runbook.
func runbook(r Reason) string { return runbooks + "#" + string(r) }

// api is the address of the API for the links in details.
var api string

// UseAPI sets the address of the API, like UseRunbooks.
func UseAPI(address string) { api = strings.TrimSuffix(address, "/") }

// link returns a text with an address: a link if the address is absolute, because the Web UI can follow no other.
func link(text, address string) string {
	if !strings.Contains(address, "://") {
		return text + " (" + address + ")"
	}
	return "[" + text + "](" + address + ")"
}

// card is the text that the Web UI shows for a flow: a title with its state, and lines of details.
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

// moment formats a time for details.
func moment(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") }

// orderCard describes the state of an order that buys crypto.
func orderCard(o activities.OpenedOrder, waits string, until time.Time) card {
	c := card{title: "Order " + string(o.Status)}
	c.add("Order", o.OrderID.String())
	c.add("Buys", fmt.Sprintf("%s %s on %s for %s %s", o.Crypto, o.Asset, o.Network, o.Fiat, o.Fiat.Asset()))
	c.add("Waits for", waits)
	if !until.IsZero() {
		c.add("Until", moment(until))
	}
	return c
}

// subject names a parked flow and its object.
type subject struct {
	flow, about string
	object      activities.ParkedObject
}

// objects returns links to the objects of the flow in the API, the nearest first.
func (s subject) objects() string {
	var links []string
	for _, o := range []struct {
		name, path string
		id         uuid.UUID
	}{
		{"payment exception", "payment-exceptions", s.object.ExceptionID},
		{"refund", "refunds", s.object.RefundID},
		{"transfer", "transfers", s.object.TransferID},
		{"withdrawal", "otc/withdrawals", s.object.WithdrawalID},
		{"OTC deposit", "otc/deposits", s.object.DepositID},
		{"fee sweep", "treasury/fee-sweeps", s.object.FeeSweepID},
		{"swap", "swaps", s.object.SwapID},
		{"proposal", "multisig/proposals", s.object.ProposalID},
		{"account of several owners", "multisig/accounts", s.object.MultisigID},
		{"order", "orders", s.object.OrderID},
	} {
		if o.id != uuid.Nil {
			links = append(links, link(o.name+" "+o.id.String(), api+"/api/v1/auth/"+o.path+"/"+o.id.String()))
		}
	}
	return strings.Join(links, ", ")
}

// parkedCard describes the object, the problem, the possible actions and the runbook.
func parkedCard(s subject, r Reason, cause error) card {
	a := guide[r]
	c := card{title: "Needs attention: " + string(r)}
	if amount := s.object.Amount; amount.Asset() != "" {
		c.add("Amount", amount.String()+" "+string(amount.Asset()))
	}
	if s.object.CustomerID != uuid.Nil {
		c.add("Customer", s.object.CustomerID.String())
	}
	c.add("Object", s.objects())
	c.add("What is wrong", a.what)
	c.add("What to do", a.do)
	c.add("Commands", strings.Join(a.verbs, ", "))
	c.add("About", s.about)
	c.add("Flow", s.flow)
	c.add("Error", words(cause))
	c.add("Runbook", link(string(r), runbook(r)))
	return c
}

// words returns the message of the innermost application error, with the type that code branches on.
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

// passing reports whether an error is temporary: a dependency was down for longer than the call could wait.
func passing(err error) bool {
	if temporal.IsTimeoutError(err) {
		return true
	}
	e, ok := asApplication(err)
	return ok && !e.NonRetryable()
}
