// Package soak runs Kivuko for a while under realistic conditions. Customers buy, sell and send in all possible ways on
// three chains in parallel, and sometimes deviate from their orders. Merchants deposit and withdraw at the desk, and propose
// payments from wallets of several owners. Operators and officers follow the runbooks. The
// mobile money operator, the chains, the database, Temporal and Kivuko's own processes fail at random. At the end the
// failures stop. Then each flow has ended or is parked with a reason, no payment was made twice, and Kivuko's record of
// each action agrees with the books of the operator, the bank and the chains.
//
// The whole run is planned in advance from a seed, so that a failed run can be repeated.
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

// Kind is the action of a step.
type Kind string

// The kinds of steps. forms has the requests of the sales.
const (
	Purchase      Kind = "purchase"
	MerchantSells Kind = "purchase that a merchant opens"
	Sale          Kind = "sale"
	MerchantBuys  Kind = "sale that a merchant opens"
	Remittance    Kind = "remittance"
	Custodial     Kind = "custodial remittance"
	TreasurySale  Kind = "sale to the treasury"
	Transfer      Kind = "transfer"
	Deposit       Kind = "deposit at the desk"
	Prompted      Kind = "deposit by a prompt"
	ByHand        Kind = "deposit to our number"
	Withdrawal    Kind = "withdrawal"
	Purchased     Kind = "withdrawal as crypto"
	Swap          Kind = "swap"
	Proposal      Kind = "proposal"
	Trouble       Kind = "trouble"
)

// sells reports whether an action of the kind brings crypto for shillings.
func (k Kind) sells() bool { return forms[k] != form{} }

// Known reports whether plans have actions of the kind.
func (k Kind) Known() bool {
	for _, s := range shares {
		if s.kind == k {
			return true
		}
	}
	return false
}

// buys reports whether an action of the kind pays shillings for crypto.
func (k Kind) buys() bool { return k == Purchase || k == MerchantSells }

// Odd is a customer's deviation from the order.
type Odd string

// The deviations. A purchase has only the last one.
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

// Step is one action or trouble of the plan.
type Step struct {
	Number  int
	At      time.Duration // from the beginning
	Kind    Kind
	Network int   // index into the running networks
	Units   int64 // of USDT, in millionths
	Inside  bool  // a transfer to another customer; a sale or withdrawal that is paid from a custodial wallet; a deposit for crypto; a swap for USDT, or a trouble about it; a proposal that another tool sends
	Bank    bool  // the shillings go to a bank account
	Odd     Odd   // empty: none
	// Refuses makes the bank refuse the payment at first, and an admin reject a proposal.
	Refuses bool
	// Returns makes the staff give the money back where the runbook leaves the choice to them: instead of another try,
	// and instead of keeping money that fits no order. Of a swap, half an hour passes whose payout the issuer refuses, so that it goes back,
	// and two officers accept a difference.
	Returns bool
	// Operator is the operator's fault for the order; empty: none.
	Operator string
	Fault    Fault
	Count    int
}

// Fault is an injected failure.
type Fault string

// The troubles. Those of nodes concern one network.
const (
	faultDrop   Fault = "a node drops transactions that it accepted"
	faultLose   Fault = "responses of a node are lost"
	faultBusy   Fault = "a node is busy"
	faultDelay  Fault = "a node is slow"
	faultReorg  Fault = "a chain is reorganised"
	faultForget Fault = "a chain is reorganised and loses transactions"
	faultNode   Fault = "a node dies"
	faultChain  Fault = "the worker of a chain dies"
	faultSigner Fault = "a signer dies"
	faultMomo   Fault = "the operator's worker dies"
	faultFlows  Fault = "the flows' worker dies"
	faultAPI    Fault = "the API dies"
	faultRows   Fault = "PostgreSQL dies"
	faultFlow   Fault = "Temporal dies"
	faultMute   Fault = "the operator is in maintenance"
	faultPages  Fault = "the operator answers with HTML pages"
	faultTokens Fault = "the operator's token expires"
	faultAsk    Fault = "the operator answers no status queries"
	// Those of swaps last for a while.
	faultDrained Fault = "the treasury has nothing left to swap"
	faultFrozen  Fault = "an issuer freezes a wallet"
	faultBooks   Fault = "the books of the treasury are wrong"
)

// weight is the relative frequency of a trouble.
type weight struct {
	fault Fault
	times int
}

// weights are those of all plans. Those that stop everything are rare.
var weights = []weight{
	{faultDrop, 4},
	{faultLose, 4},
	{faultBusy, 4},
	{faultDelay, 3},
	{faultReorg, 4},
	{faultForget, 2},
	{faultNode, 2},
	{faultChain, 3},
	{faultSigner, 3},
	{faultMomo, 4},
	{faultFlows, 3},
	{faultAPI, 3},
	{faultRows, 1},
	{faultFlow, 1},
	{faultMute, 2},
	{faultPages, 2},
	{faultTokens, 3},
	{faultAsk, 2},
}

// swapWeights are those that plans of swaps alone have besides.
var swapWeights = []weight{{faultDrained, 5}, {faultFrozen, 12}, {faultBooks, 5}}

// collecting and paying are the sandbox's names of its faults for prompts and for payouts. Those in unhurried make
// Kivuko wait for minutes, for which a short plan has no time.
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

// The plan's numbers.
const (
	least      = 1_500_000 // units of an order; the operator's smallest payout is ten shillings
	spread     = 3_000_000
	pace       = 900 * time.Millisecond // between two steps, on average
	troubles   = 5                      // one step in this many is a trouble
	faulty     = 3                      // one order in this many has a fault of the operator
	odd        = 3                      // one sale in this many has a deviation of the customer
	fickle     = 8                      // one purchase in this many is cancelled
	mostAtOnce = 3
	patient    = 5 * time.Minute // plans of this length have time for the faults in unhurried
)

// shares are the relative frequencies of the kinds of actions.
var shares = []struct {
	kind  Kind
	times int
}{
	{Purchase, 6},
	{MerchantSells, 2},
	{Sale, 6},
	{MerchantBuys, 2},
	{Remittance, 3},
	{Custodial, 2},
	{TreasurySale, 2},
	{Transfer, 4},
	{Deposit, 3},
	{Prompted, 2},
	{ByHand, 1},
	{Withdrawal, 3},
	{Purchased, 1},
	{Swap, 3},
	{Proposal, 2},
}

// Plan makes the same steps for the same seed. If a kind is given, all actions are of it.
func Plan(seed uint64, length time.Duration, networks int, only Kind) []Step {
	r := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // G404: a plan must be repeatable
	var kinds []Kind
	for _, s := range shares {
		kinds = append(kinds, slices.Repeat([]Kind{s.kind}, s.times)...)
	}
	all := weights
	if only != "" {
		kinds = []Kind{only}
	}
	if only == Swap {
		all = slices.Concat(weights, swapWeights)
	}
	var faults []Fault
	for _, w := range all {
		faults = append(faults, slices.Repeat([]Fault{w.fault}, w.times)...)
	}
	payouts := paying
	if length >= patient {
		payouts = slices.Concat(paying, unhurried)
	}
	var steps []Step
	for at := time.Duration(0); at < length; at += time.Duration(r.Int64N(int64(2 * pace))) {
		s := Step{Number: len(steps) + 1, At: at, Kind: kinds[r.IntN(len(kinds))], Network: r.IntN(networks), Units: least + r.Int64N(spread)}
		// Every step draws all random numbers, so that a change of one rule does not change the numbers of the others.
		inside, bank, refuses, returns := r.IntN(3) == 0, r.IntN(2) == 0, r.IntN(3) == 0, r.IntN(2) == 0
		bad, in, out := r.IntN(faulty) == 0, collecting[r.IntN(len(collecting))], payouts[r.IntN(len(payouts))]
		strays, stray, gives := r.IntN(odd) == 0, odds[r.IntN(len(odds))], r.IntN(fickle) == 0
		trouble, fault, count := r.IntN(troubles) == 0, faults[r.IntN(len(faults))], 1+r.IntN(mostAtOnce)
		s.Returns = returns
		switch f := forms[s.Kind]; {
		case trouble:
			s.Kind, s.Fault, s.Count, s.Inside = Trouble, fault, count, inside
		case s.Kind == Transfer, s.Kind == Deposit, s.Kind == Swap:
			s.Inside = inside
		case s.Kind == Withdrawal:
			s.Inside, s.Bank = inside, bank && !inside // only shillings of the merchant's are paid at a bank
		case s.Kind == Proposal:
			s.proposed(inside, bank, refuses)
		case s.Kind == Purchased, s.Kind.byMomo():
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

// bought sets what goes wrong with a purchase.
func (s *Step) bought(bad bool, behaviour string, gives bool) {
	switch {
	case bad:
		s.Operator = behaviour
	case gives:
		s.Odd = oddCancel
	}
}

// sold sets what goes wrong with a sale. One that is paid from a custodial wallet has no deviation.
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

// proposed sets what becomes of a proposal: most are executed, some by another tool, and one in three is rejected or cancelled.
func (s *Step) proposed(inside, bank, ends bool) {
	switch {
	case ends && bank:
		s.Odd = oddCancel
	case ends:
		s.Refuses = true
	default:
		s.Inside = inside
	}
}

// what describes a step, without customer and amount.
func (s Step) what() string {
	parts := []string{string(s.Kind)}
	if s.Kind == Trouble {
		return string(s.Kind) + ": " + string(s.Fault)
	}
	if s.Kind == Swap && s.Inside {
		parts = append(parts, "for USDT")
	}
	if s.Kind == Proposal {
		return s.ofProposal()
	}
	if s.Kind == Deposit && s.Inside {
		parts = append(parts, "for crypto")
	}
	if s.Kind.sells() || s.Kind == Withdrawal {
		if s.Inside {
			parts = append(parts, "from a custodial wallet")
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

// ofProposal describes a proposal.
func (s Step) ofProposal() string {
	switch {
	case s.Inside:
		return string(s.Kind) + ", another tool sends it"
	case s.Refuses:
		return string(s.Kind) + ", an admin rejects it"
	case s.Odd == oddCancel:
		return string(s.Kind) + ", it is cancelled"
	}
	return string(s.Kind)
}

// harmless reports whether nothing is planned to go wrong with the step itself.
func (s Step) harmless() bool { return s.Odd == "" && s.Operator == "" && !s.Refuses }

// Print writes a summary of the plan, a line for each kind of step.
func Print(out io.Writer, seed uint64, length time.Duration, steps []Step) {
	counts := map[string]int{}
	for _, s := range steps {
		counts[s.what()]++
	}
	_, _ = fmt.Fprintf(out, "The plan of seed %d: %d steps in %s.\n%s", seed, len(steps), length, tally(counts))
}

// tally returns a table of counts in alphabetical order.
func tally(counts map[string]int) string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&b, "  %3d  %s\n", counts[what], what)
	}
	return b.String()
}

// operation returns the operator's service that a step's fault concerns.
func (s Step) operation() string {
	if s.Kind.buys() {
		return sandbox.OpPrompt
	}
	return sandbox.OpPayout
}

// processes are the stack's processes that a trouble kills, where that does not depend on the network.
var processes = map[Fault]string{
	faultMomo: stack.ProcessWorker("momo"), faultFlows: stack.ProcessWorker("flows"), faultAPI: stack.ProcessAPI, faultFlow: stack.ProcessTemporal,
}
