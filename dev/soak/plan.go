// Package soak runs Kivuko for a while as it will be run: people buy, sell and send on three chains side by side,
// while the mobile money operator, the chains, the database, Temporal and Kivuko's own processes fail at random. At the
// end, when everything behaves again, each order has its end or waits for a person with a reason, nothing was paid
// twice, and the ledger says what the operator's books and the chains say.
//
// All of it is planned before it begins, from a seed, so that a run that fails can be made again.
package soak

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"kivuko/dev/stack"
	"kivuko/momo/sandbox"
)

// Kind is what a step of the plan does.
type Kind string

// The kinds of steps.
const (
	Purchase Kind = "purchase"
	Sale     Kind = "sale"
	Transfer Kind = "transfer"
	Trouble  Kind = "trouble"
)

// Step is one thing that happens.
type Step struct {
	At      time.Duration // from the beginning
	Kind    Kind
	Network int   // index into those that run
	Units   int64 // of USDT, in millionths
	Inside  bool  // a transfer to another customer; a sale from a wallet here
	// Operator is how the operator behaves about the order: empty for well.
	Operator string
	Blow     Blow
	Count    int
}

// Blow is a trouble.
type Blow string

// The troubles. The nodes' are of one network.
const (
	blowDrop   Blow = "a node drops what it takes"
	blowLose   Blow = "a node loses its answers"
	blowBusy   Blow = "a node is busy"
	blowDelay  Blow = "a node is slow"
	blowReorg  Blow = "a chain is reorganised"
	blowForget Blow = "a chain is reorganised and forgets"
	blowNode   Blow = "a node dies"
	blowChain  Blow = "the worker of a chain dies"
	blowSigner Blow = "a signer dies"
	blowMomo   Blow = "the operator's worker dies"
	blowFlows  Blow = "the flows' worker dies"
	blowAPI    Blow = "the API dies"
	blowRows   Blow = "PostgreSQL dies"
	blowFlow   Blow = "Temporal dies"
	blowMute   Blow = "the operator is in maintenance"
	blowPages  Blow = "the operator answers with pages"
	blowTokens Blow = "the operator's token ends"
	blowAsk    Blow = "the operator answers no questions"
)

// weights are how often each trouble comes, relative to the others. What takes everything away comes seldom.
var weights = []struct {
	blow  Blow
	times int
}{
	{blowDrop, 4},
	{blowLose, 4},
	{blowBusy, 4},
	{blowDelay, 3},
	{blowReorg, 4},
	{blowForget, 2},
	{blowNode, 2},
	{blowChain, 3},
	{blowSigner, 3},
	{blowMomo, 4},
	{blowFlows, 3},
	{blowAPI, 3},
	{blowRows, 1},
	{blowFlow, 1},
	{blowMute, 2},
	{blowPages, 2},
	{blowTokens, 3},
	{blowAsk, 2},
}

// collecting and paying are how the operator may behave about a prompt and about a payout; each by its sandbox's name.
var (
	collecting = []string{
		"callback_lost", "callback_twice", "callback_late", "late_success_1037", "late_success_1032", "pays_less", "pays_more", "callback_first",
		"no_metadata", "foreign_id", "query_contrary", "query_pending", "query_busy", "query_blank", "query_unknown", "accepted_5xx", "accepted_drop",
		"accepted_html", "accepted_drop_lost", "accepted_blank", "no_receipt", "declined", "insufficient", "locked", "confirmation_lost", "all_lost",
	}
	paying = []string{
		"result_lost", "result_twice", "result_late", "timeout_then_paid", "payout_accepted_5xx", "payout_accepted_drop", "system_error_accepted",
		"result_first", "timeout_then_paid_lost", "unregistered", "timeout_then_failed", "result_lost_failed",
	}
)

// The plan's measures.
const (
	least      = 1_500_000 // units of an order; the operator pays out no less than ten shillings
	spread     = 3_000_000
	pace       = 900 * time.Millisecond // between two steps, on average
	troubles   = 5                      // one step in so many is a trouble
	faulty     = 3                      // the operator misbehaves about one order in so many
	mostAtOnce = 3
)

// Plan makes the same steps of the same seed. Of ten that are no trouble, four are purchases, four sales, and two
// transfers.
func Plan(seed uint64, length time.Duration, networks int) []Step {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // G404: a plan that can be made again is what it is for
	kinds := []Kind{Purchase, Purchase, Purchase, Purchase, Sale, Sale, Sale, Sale, Transfer, Transfer}
	var blows []Blow
	for _, w := range weights {
		blows = append(blows, slices.Repeat([]Blow{w.blow}, w.times)...)
	}
	var steps []Step
	for at := time.Duration(0); at < length; at += time.Duration(r.Int64N(int64(2 * pace))) {
		s := Step{At: at, Kind: kinds[r.IntN(len(kinds))], Network: r.IntN(networks), Units: least + r.Int64N(spread), Inside: r.IntN(2) == 0}
		behaviour, bad := r.IntN(1000), r.IntN(faulty) == 0
		trouble, blow, count := r.IntN(troubles) == 0, blows[r.IntN(len(blows))], 1+r.IntN(mostAtOnce)
		switch {
		case trouble:
			s.Kind, s.Blow, s.Count = Trouble, blow, count
		case bad && s.Kind == Purchase:
			s.Operator = collecting[behaviour%len(collecting)]
		case bad && s.Kind == Sale:
			s.Operator = paying[behaviour%len(paying)]
		}
		steps = append(steps, s)
	}
	return steps
}

// Print writes a plan down, a line for each kind of thing in it.
func Print(out io.Writer, seed uint64, length time.Duration, steps []Step) {
	counts := map[string]int{}
	for _, s := range steps {
		what := string(s.Kind)
		switch {
		case s.Kind == Trouble:
			what += ": " + string(s.Blow)
		case s.Operator != "":
			what += ", operator: " + s.Operator
		}
		counts[what]++
	}
	var lines []string
	for what, n := range counts {
		lines = append(lines, fmt.Sprintf("  %3d  %s", n, what))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[5:], b[5:]) })
	_, _ = fmt.Fprintf(out, "The plan of seed %d: %d steps in %s.\n%s\n", seed, len(steps), length, strings.Join(lines, "\n"))
}

// operations are for which of the operator's services a behaviour is asked for.
var operations = map[Kind]string{Purchase: sandbox.OpPrompt, Sale: sandbox.OpPayout}

// processes are the stack's own that a trouble ends, where that does not depend on the network.
var processes = map[Blow]string{
	blowMomo: stack.ProcessWorker("momo"), blowFlows: stack.ProcessWorker("flows"), blowAPI: stack.ProcessAPI, blowFlow: stack.ProcessTemporal,
}
