package soak

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// evidence is all that is known of a deed at its end: what Kivuko says of it, and what the operator, the bank and the
// chain say. The outside's sums are of addresses and phones that are nobody else's.
type evidence struct {
	deed   deed
	status string
	price  int64        // of the order, in whole shillings
	crypto money.Amount // of the order or transfer
	why    []string     // reasons with which flows about it are parked

	// At the operator, in shillings.
	collected []int64 // from the phone
	paidOut   []int64 // to the phone
	unbooked  int64   // collected, and not in the ledger
	watched   bool    // a flow looks out for late money of it
	// At the bank.
	atBank []int64

	came    []money.Amount // to the address of who buys, or is sent to
	brought []money.Amount // to the order's address
	left    []money.Amount // which is still there
	back    []money.Amount // to the address of who sells

	// What Kivuko says became of money that fits nothing, and of refunds.
	kept    []money.Amount // by the house, or credited
	twice   []money.Amount // known to have been paid twice
	refunds []money.Amount // of crypto, that left
	stands  bool           // the payout of a failed sale proved true, and was let stand
}

// sum adds up what there is of an asset, in its units.
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

// verdict is what is wrong with a deed, in sentences. A deed about which a flow still waits for a person is judged only
// by what must be so at any time.
func (e evidence) verdict() []string {
	var wrong []string
	say := func(format string, args ...any) {
		wrong = append(wrong, e.deed.name()+": "+fmt.Sprintf(format, args...))
	}
	switch k := e.deed.step.Kind; {
	case k == Transfer:
		e.judgeArrival(say)
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
		if e.deed.step.harmless() && !strings.HasPrefix(reason, "payout-") {
			say("it is parked with %s, and nothing in the plan explains that", reason)
		}
	}
	return wrong
}

type sayer func(format string, args ...any)

func (e evidence) completed() bool { return e.status == string(exchange.OrderCompleted) }

// judgeArrival: what was bought or sent comes exactly once when it is completed, and never otherwise.
func (e evidence) judgeArrival(say sayer) {
	if e.deed.address == "" {
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

// judgePurchase: what the payer has paid in the end is the price, or nothing, besides what was too little to go back.
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
		say("it is %s and the payer has paid %d shillings in the end, not %d: %v were collected and %v went back", e.status, got, want, e.collected, e.paidOut)
	}
	if e.unbooked > 0 && !e.watched {
		say("%d shillings were collected, and nobody looks for them", e.unbooked)
	}
}

// judgePayout: who sells gets the price once, by the way that was agreed, when the sale is completed; and nothing
// otherwise.
func (e evidence) judgePayout(say sayer) {
	momo, bank := e.paidOut, e.atBank
	switch {
	case len(momo) > 1:
		say("the payee was paid %d times: %v", len(momo), momo)
	case len(momo) == 1 && len(bank) > 0:
		say("the payee was paid by mobile money and by the bank: %v and %v", momo, bank)
	case e.deed.step.Bank && len(momo) > 0:
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

// judgeCrypto: everything that was brought is sold, given back or kept, to the unit, and nothing is left at the order's
// address.
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
		if e.deed.back == "" { // a wallet of ours got it, whose balance is compared with the ledger
			continue
		}
		if m := sum(e.back, a); !m.Equal(sum(e.refunds, a)) {
			say("%s %s went back, and %s is said to have", m, a, sum(e.refunds, a))
		}
	}
	if e.deed.back != "" && len(e.back) != len(e.refunds) {
		say("crypto went back %d times for %d refunds", len(e.back), len(e.refunds))
	}
}
