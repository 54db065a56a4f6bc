// Package soak runs Kivuko for a while as it will be run: people buy, sell and send in all ways that there are on three
// chains side by side, and do otherwise than was agreed; operators and officers answer what waits for them as the runbooks
// say; and the mobile money operator, the chains, the database, Temporal and Kivuko's own processes fail at random. At the
// end, when everything behaves again, each flow has its end or waits for a person with a reason, nobody was paid twice, and
// what Kivuko says of each deed is what the operator's books, the bank's and the chains say.
//
// All of it is planned before it begins, from a seed, so that a run that fails can be made again.
package soak

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"kivuko/dev/stack"
	"kivuko/momo/sandbox"
)

// Kind is what a step of the plan does.
type Kind string

// The kinds of steps. Of the sales, forms says how each is asked for.
const (
	Purchase      Kind = "purchase"
	MerchantSells Kind = "purchase that a merchant opens"
	Sale          Kind = "sale"
	MerchantBuys  Kind = "sale that a merchant opens"
	Remittance    Kind = "remittance"
	Custodial     Kind = "custodial remittance"
	TreasurySale  Kind = "sale to the treasury"
	Transfer      Kind = "transfer"
	Trouble       Kind = "trouble"
)

// sells tells whether a deed of the kind brings crypto for shillings.
func (k Kind) sells() bool { return forms[k] != form{} }

// buys tells whether a deed of the kind pays shillings for crypto.
func (k Kind) buys() bool { return k == Purchase || k == MerchantSells }

// Odd is what a customer does otherwise than was agreed.
type Odd string

// What customers do. Of a purchase there is only the last.
const (
	oddUnder   Odd = "too little comes"
	oddOver    Odd = "too much comes"
	oddFarOver Odd = "far too much comes"
	oddLate    Odd = "it comes when the order is cancelled"
	oddTwice   Odd = "it comes twice"
	oddCoin    Odd = "another coin comes first"
	oddCancel  Odd = "the order is cancelled"
)

var odds = []Odd{oddUnder, oddOver, oddFarOver, oddLate, oddTwice, oddCoin, oddCancel}

// Step is one thing that happens.
type Step struct {
	Number  int
	At      time.Duration // from the beginning
	Kind    Kind
	Network int   // index into those that run
	Units   int64 // of USDT, in millionths
	Inside  bool  // a transfer to another customer; a sale that is paid from a wallet here
	Bank    bool  // the shillings go to a bank account
	Odd     Odd   // empty: as agreed
	// Refuses has the bank refuse the payment at first.
	Refuses bool
	// Returns has the staff give the money back where the runbook leaves that to a person: instead of another try, and
	// instead of keeping what fits nothing.
	Returns bool
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
// What unhurried names makes Kivuko wait for minutes by itself, for which a short plan has no time.
var (
	collecting = []string{
		"callback_lost", "callback_twice", "callback_late", "late_success_1037", "late_success_1032", "late_success_1019", "pays_less", "pays_more",
		"callback_first", "no_metadata", "foreign_id", "query_contrary", "query_pending", "query_busy", "query_blank", "query_unknown", "accepted_5xx",
		"accepted_drop", "accepted_html", "accepted_blank", "no_receipt", "declined", "insufficient", "locked",
		"confirmation_lost", "all_lost",
	}
	paying = []string{
		"result_twice", "result_late", "timeout_then_paid", "payout_accepted_5xx", "payout_accepted_drop", "result_first", "unregistered",
		"timeout_then_failed", "payee_daily_limit", "payee_balance_limit", "account_inactive", "uncatalogued", "credential_wrong", "late_paid",
		"invalid_number",
	}
	unhurried = []string{"result_lost", "system_error_accepted", "timeout_then_paid_lost", "result_lost_failed", "payout_busy", "utility_short"}
)

// The plan's measures.
const (
	least      = 1_500_000 // units of an order; the operator pays out no less than ten shillings
	spread     = 3_000_000
	pace       = 900 * time.Millisecond // between two steps, on average
	troubles   = 5                      // one step in so many is a trouble
	faulty     = 3                      // the operator misbehaves about one order in so many
	odd        = 3                      // and the customer about one sale in so many
	fickle     = 8                      // one purchase in so many is cancelled
	mostAtOnce = 3
	patient    = 5 * time.Minute // plans of this length have time for what is unhurried
)

// shares are how often each kind comes among ordinary steps, relative to the others.
var shares = []struct {
	kind  Kind
	times int
}{
	{Purchase, 6}, {MerchantSells, 2}, {Sale, 6}, {MerchantBuys, 2}, {Remittance, 3}, {Custodial, 2}, {TreasurySale, 2}, {Transfer, 4},
}

// Plan makes the same steps of the same seed.
func Plan(seed uint64, length time.Duration, networks int) []Step {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // G404: a plan that can be made again is what it is for
	var kinds []Kind
	for _, s := range shares {
		kinds = append(kinds, slices.Repeat([]Kind{s.kind}, s.times)...)
	}
	var blows []Blow
	for _, w := range weights {
		blows = append(blows, slices.Repeat([]Blow{w.blow}, w.times)...)
	}
	payouts := paying
	if length >= patient {
		payouts = slices.Concat(paying, unhurried)
	}
	var steps []Step
	for at := time.Duration(0); at < length; at += time.Duration(r.Int64N(int64(2 * pace))) {
		s := Step{Number: len(steps) + 1, At: at, Kind: kinds[r.IntN(len(kinds))], Network: r.IntN(networks), Units: least + r.Int64N(spread)}
		// Everything is drawn for every step, so that a change of one rule leaves the others' numbers alone.
		inside, bank, refuses, returns := r.IntN(3) == 0, r.IntN(2) == 0, r.IntN(3) == 0, r.IntN(2) == 0
		bad, in, out := r.IntN(faulty) == 0, collecting[r.IntN(len(collecting))], payouts[r.IntN(len(payouts))]
		strays, stray, gives := r.IntN(odd) == 0, odds[r.IntN(len(odds))], r.IntN(fickle) == 0
		trouble, blow, count := r.IntN(troubles) == 0, blows[r.IntN(len(blows))], 1+r.IntN(mostAtOnce)
		s.Returns = returns
		switch f := forms[s.Kind]; {
		case trouble:
			s.Kind, s.Blow, s.Count = Trouble, blow, count
		case s.Kind == Transfer:
			s.Inside = inside
		case s.Kind.buys():
			s.bought(bad, in, gives)
		default:
			s.Bank = bank && f.bank
			s.Inside = f.funded || inside && !f.merchant
			s.sold(bad, out, strays, stray, refuses)
		}
		steps = append(steps, s)
	}
	return steps
}

// bought says what goes wrong with a purchase.
func (s *Step) bought(bad bool, behaviour string, gives bool) {
	switch {
	case bad:
		s.Operator = behaviour
	case gives:
		s.Odd = oddCancel
	}
}

// sold says what goes wrong with a sale. From a wallet here comes what was agreed.
func (s *Step) sold(bad bool, behaviour string, strays bool, stray Odd, refuses bool) {
	if strays && (!s.Inside || stray == oddCancel) {
		s.Odd = stray
	}
	switch {
	case s.Bank:
		s.Refuses = refuses
	case bad:
		s.Operator = behaviour
	}
}

// what is a step in words, without who and how much.
func (s Step) what() string {
	parts := []string{string(s.Kind)}
	if s.Kind == Trouble {
		return string(s.Kind) + ": " + string(s.Blow)
	}
	if s.Kind.sells() {
		if s.Inside {
			parts = append(parts, "from a wallet here")
		}
		if s.Bank {
			parts = append(parts, "to a bank")
		}
	}
	if s.Odd != "" {
		parts = append(parts, string(s.Odd))
	}
	if s.Operator != "" {
		parts = append(parts, "operator: "+s.Operator)
	}
	if s.Refuses {
		parts = append(parts, "the bank refuses")
	}
	return strings.Join(parts, ", ")
}

// harmless tells whether nothing was planned to go wrong with the step itself.
func (s Step) harmless() bool { return s.Odd == "" && s.Operator == "" && !s.Refuses }

// Print writes a plan down, a line for each kind of thing in it.
func Print(out io.Writer, seed uint64, length time.Duration, steps []Step) {
	counts := map[string]int{}
	for _, s := range steps {
		counts[s.what()]++
	}
	_, _ = fmt.Fprintf(out, "The plan of seed %d: %d steps in %s.\n%s", seed, len(steps), length, tally(counts))
}

// tally is a table of counts, in the order of the words.
func tally(counts map[string]int) string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "  %3d  %s\n", counts[what], what)
	}
	return b.String()
}

// operation is the operator's service of which a step asks that it misbehaves.
func (s Step) operation() string {
	if s.Kind.buys() {
		return sandbox.OpPrompt
	}
	return sandbox.OpPayout
}

// processes are the stack's own that a trouble ends, where that does not depend on the network.
var processes = map[Blow]string{
	blowMomo: stack.ProcessWorker("momo"), blowFlows: stack.ProcessWorker("flows"), blowAPI: stack.ProcessAPI, blowFlow: stack.ProcessTemporal,
}
