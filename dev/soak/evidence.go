package soak

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// evidence has the records of Kivuko, the operator, the bank and the chain about an action at its end. Each action has
// phones and addresses that no other action uses.
type evidence struct {
	action action
	status string
	price  int64        // of the order, in whole shillings
	crypto money.Amount // of the order or transfer
	why    []string     // reasons with which flows about it are parked
	legs   []leg        // of a swap
	paid   []paid       // for a proposal, by the chain
	tx     string       // that a proposal names
	held   int          // how much is still held for a proposal

	// At the operator, in shillings.
	collected []int64 // from the phone
	paidOut   []int64 // to the phone
	unbooked  int64   // collected, and not in the ledger
	watched   bool    // a flow waits for its late money
	// At the bank.
	atBank []int64

	came    []money.Amount // to the address of the buyer or recipient
	brought []money.Amount // to the order's address
	left    []money.Amount // the balance of the order's address
	back    []money.Amount // to the seller's address

	// Kivuko's decisions about money that fits no order, and about refunds.
	kept    []money.Amount // by the house, or credited
	twice   []money.Amount // known to have been paid twice
	refunds []money.Amount // of crypto, that left
	stands  bool           // the payout of a failed sale was proven and accepted
}

// sum adds up the amounts of an asset, in its units.
func sum(all []money.Amount, a money.Asset) money.Amount {
	total := money.Zero(a)
	for _, m := range all {
		if m.Asset() == a {
			total = total.Add(m)
		}
	}
	return total
}

func total(all []int64) (n int64) {
	for _, one := range all {
		n += one
	}
	return n
}

// shillings reads an amount that has no cents.
func shillings(text string) (int64, error) {
	whole, cents, _ := strings.Cut(text, ".")
	if strings.Trim(cents, "0") != "" {
		return 0, fmt.Errorf("%s has cents", text)
	}
	return strconv.ParseInt(whole, 10, 64)
}

func inShillings(all []money.Amount) (n int64) {
	for _, m := range all {
		if m.Asset() == money.KES {
			whole, _ := shillings(m.String()) // exceptions are of whole shillings
			n += whole
		}
	}
	return n
}

// verdict describes what is wrong with an action. An action with a parked flow is judged only by what must hold at any
// time.
func (e evidence) verdict() []string {
	var wrong []string
	say := func(format string, args ...any) {
		wrong = append(wrong, e.action.name()+": "+fmt.Sprintf(format, args...))
	}
	switch k := e.action.step.Kind; {
	case k == Deposit:
	case k == Swap:
		e.judgeSwap(say)
	case k == Proposal:
		e.judgeProposal(say)
	case k.byMomo():
		e.judgeDeposit(say)
	case k == Transfer, k == Purchased:
		e.judgeArrival(say)
	case k == Withdrawal:
		e.judgePayout(say)
	case k.buys():
		e.judgeArrival(say)
		e.judgePurchase(say)
	default:
		e.judgePayout(say)
		if len(e.why) == 0 {
			e.judgeCrypto(say)
		}
	}
	for _, reason := range e.why {
		if e.action.step.harmless() && !strings.HasPrefix(reason, "payout-") {
			say("it is parked with %s, which nothing in the plan explains", reason)
		}
	}
	return wrong
}

type sayer func(format string, args ...any)

func (e evidence) completed() bool { return e.status == string(exchange.OrderCompleted) }

// judgeArrival checks that bought or sent crypto came exactly once if the action is completed, and otherwise not.
func (e evidence) judgeArrival(say sayer) {
	if e.action.address == "" {
		return
	}
	for _, m := range e.came {
		if !m.Equal(e.crypto) {
			say("%s came, not %s", m, e.crypto)
		}
	}
	switch n := len(e.came); {
	case n > 1:
		say("the crypto came %d times", n)
	case e.completed() && n == 0:
		say("it is completed, and no crypto came")
	case !e.completed() && n > 0:
		say("it is %s, and the crypto came", e.status)
	}
}

// judgeDeposit checks that the merchant has paid once if the deposit is credited, and otherwise nothing that nobody looks for.
func (e evidence) judgeDeposit(say sayer) {
	credited := e.status == string(exchange.OTCAudited)
	for _, paid := range e.collected {
		if paid != e.price {
			say("%d shillings came, not %d", paid, e.price)
		}
	}
	switch n := len(e.collected); {
	case n > 1:
		say("it was paid %d times", n)
	case credited && n == 0:
		say("it is %s, and nothing came", e.status)
	case !credited && n > 0 && len(e.why) == 0 && !e.watched && inShillings(e.kept)+total(e.paidOut) != e.price:
		say("it is %s, and %v came", e.status, e.collected)
	case credited && e.unbooked > 0:
		say("it is %s, and its money is not booked", e.status)
	}
}

// judgePurchase checks that the payer has paid the price or nothing, besides amounts that are too small to refund.
func (e evidence) judgePurchase(say sayer) {
	if len(e.why) > 0 {
		return
	}
	want := inShillings(e.kept) - inShillings(e.twice)
	if e.completed() {
		want += e.price
	}
	got := total(e.collected) - e.unbooked - total(e.paidOut)
	if got != want {
		say("it is %s and the payer has paid %d shillings in total, not %d: %v were collected and %v went back", e.status, got, want, e.collected, e.paidOut)
	}
	if e.unbooked > 0 && !e.watched {
		say("%d shillings were collected, and no flow waits for them", e.unbooked)
	}
}

// judgePayout checks that the seller gets the price once, by the agreed rail, if the sale is completed, and otherwise
// nothing.
func (e evidence) judgePayout(say sayer) {
	momo, bank := e.paidOut, e.atBank
	switch {
	case len(momo) > 1:
		say("the payee was paid %d times: %v", len(momo), momo)
	case len(momo) == 1 && len(bank) > 0:
		say("the payee was paid by mobile money and by the bank: %v and %v", momo, bank)
	case e.action.step.Bank && len(momo) > 0:
		say("it was to be paid by the bank, and %v were paid by mobile money", momo)
	}
	for _, paid := range slices.Concat(momo, bank) {
		if paid != e.price {
			say("the payee got %d shillings, not %d", paid, e.price)
		}
	}
	paid := len(momo)+len(bank) > 0
	switch {
	case e.completed() && !paid:
		say("it is completed, and the payee got nothing")
	case !e.completed() && paid && len(e.why) == 0 && !e.stands && inShillings(e.twice) != e.price:
		say("it is %s, and the payee got %v", e.status, slices.Concat(momo, bank))
	}
}

// judgeCrypto checks that all deposited crypto is sold, given back or kept, to the unit, and that the order's address
// is empty.
func (e evidence) judgeCrypto(say sayer) {
	sold := e.completed() || e.stands
	for _, a := range []money.Asset{money.USDT, money.USDC} {
		if m := sum(e.left, a); m.Positive() {
			say("%s %s is left at its address", m, a)
		}
		brought, gone := sum(e.brought, a), sum(e.refunds, a).Add(sum(e.kept, a))
		if sold && a == e.crypto.Asset() {
			gone = gone.Add(e.crypto)
		}
		if !brought.Equal(gone) {
			say("%s %s came; sold, given back (%s) and kept (%s) is %s", brought, a, sum(e.refunds, a), sum(e.kept, a), gone)
		}
		if e.action.back == "" { // a custodial wallet got it, whose balance is compared with the ledger
			continue
		}
		if m := sum(e.back, a); !m.Equal(sum(e.refunds, a)) {
			say("%s %s went back, and Kivuko's refunds are %s", m, a, sum(e.refunds, a))
		}
	}
	if e.action.back != "" && len(e.back) != len(e.refunds) {
		say("crypto went back %d times for %d refunds", len(e.back), len(e.refunds))
	}
}
