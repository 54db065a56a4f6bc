package soak

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

func usdt(text string) money.Amount { return money.Must(money.USDT, text) }

// bought and sold return actions without a fault.
func bought() evidence {
	return evidence{
		action: action{step: Step{Kind: Purchase}, id: uuid.New(), address: "mine"}, status: "completed", price: 388, crypto: usdt("3"),
		collected: []int64{388}, came: []money.Amount{usdt("3")},
	}
}

func sold() evidence {
	return evidence{
		action: action{step: Step{Kind: Sale}, id: uuid.New(), address: "escrow", back: "mine"}, status: "completed", price: 386, crypto: usdt("3"),
		paidOut: []int64{386}, brought: []money.Amount{usdt("3")}, left: []money.Amount{usdt("3"), usdt("-3")},
	}
}

// exchanged returns a completed swap.
func exchanged() evidence {
	return evidence{action: action{step: Step{Kind: Swap}, id: uuid.New()}, status: "completed", legs: []leg{
		{exchange.LegCollect, usdt("-3"), []money.Amount{usdt("-3")}}, {exchange.LegPayout, usdt("2.9"), []money.Amount{usdt("2.9")}},
	}}
}

// jointly returns an executed proposal.
func jointly() evidence {
	return evidence{action: action{step: Step{Kind: Proposal}, id: uuid.New(), address: "mine"}, status: "executed", crypto: usdt("3"), tx: "ab", paid: []paid{{"AB", usdt("3")}}}
}

var broughtBack = leg{exchange.LegRefund, usdt("3"), []money.Amount{usdt("3")}}

// TestTheJudgeSees checks that the judge reports forbidden results and accepts unusual correct ones.
func TestTheJudgeSees(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		is    evidence
		does  func(*evidence)
		wrong string // of the verdict; empty: nothing is wrong
	}{
		"a purchase": {is: bought()},
		"a sale":     {is: sold()},
		"the crypto comes twice": {is: bought(), wrong: "the crypto came 2 times", does: func(e *evidence) {
			e.came = append(e.came, usdt("3"))
		}},
		"another amount comes": {is: bought(), wrong: "2.999999 came, not 3.000000", does: func(e *evidence) {
			e.came[0] = usdt("2.999999")
		}},
		"nothing comes": {is: bought(), wrong: "no crypto came", does: func(e *evidence) { e.came = nil }},
		"a failed purchase delivers": {is: bought(), wrong: "it is failed, and the crypto came", does: func(e *evidence) {
			e.status, e.paidOut = "failed", []int64{388}
		}},
		"a failed purchase keeps the money": {is: bought(), wrong: "paid 388 shillings in total, not 0", does: func(e *evidence) {
			e.status, e.came = "failed", nil
		}},
		"a shilling too much is kept": {is: bought(), does: func(e *evidence) {
			e.collected, e.kept = []int64{389}, []money.Amount{money.Must(money.KES, "1")}
		}},
		"a shilling too much vanishes": {is: bought(), wrong: "paid 389 shillings", does: func(e *evidence) { e.collected = []int64{389} }},
		"a refund goes out twice":      {is: bought(), wrong: "paid -388 shillings", does: func(e *evidence) { e.status, e.came, e.paidOut = "failed", nil, []int64{388, 388} }},
		"the phone is prompted twice":  {is: bought(), wrong: "paid 776 shillings", does: func(e *evidence) { e.collected = []int64{388, 388} }},
		"late money is looked for": {is: bought(), does: func(e *evidence) {
			e.status, e.came, e.unbooked, e.watched = "cancelled", nil, 388, true
		}},
		"late money is lost": {is: bought(), wrong: "no flow waits for them", does: func(e *evidence) {
			e.status, e.came, e.unbooked = "cancelled", nil, 388
		}},
		"the payee is paid twice": {is: sold(), wrong: "paid 2 times", does: func(e *evidence) { e.paidOut = []int64{386, 386} }},
		"the payee is paid by both": {is: sold(), wrong: "by mobile money and by the bank", does: func(e *evidence) {
			e.atBank = []int64{386}
		}},
		"the payee gets less": {is: sold(), wrong: "got 385 shillings, not 386", does: func(e *evidence) { e.paidOut = []int64{385} }},
		"the payee gets nothing": {is: sold(), wrong: "the payee got nothing", does: func(e *evidence) {
			e.paidOut = nil
		}},
		"a failed sale pays": {is: sold(), wrong: "it is failed, and the payee got [386]", does: func(e *evidence) {
			e.status, e.refunds, e.back = "failed", []money.Amount{usdt("3")}, []money.Amount{usdt("3")}
		}},
		"a failed sale pays, and that is known": {is: sold(), does: func(e *evidence) {
			e.status, e.refunds, e.back = "failed", []money.Amount{usdt("3")}, []money.Amount{usdt("3")}
			e.twice = []money.Amount{money.Must(money.KES, "386")}
		}},
		"the payout of a failed sale stands": {is: sold(), does: func(e *evidence) { e.status, e.stands = "failed", true }},
		"a completed sale gives back too": {is: sold(), wrong: "sold, given back", does: func(e *evidence) {
			e.refunds, e.back = []money.Amount{usdt("3")}, []money.Amount{usdt("3")}
		}},
		"crypto goes back twice": {is: sold(), wrong: "6.000000 USDT went back", does: func(e *evidence) {
			e.status, e.paidOut, e.refunds, e.back = "failed", nil, []money.Amount{usdt("3")}, []money.Amount{usdt("3"), usdt("3")}
		}},
		"crypto stays at the address": {is: sold(), wrong: "3.000000 USDT is left", does: func(e *evidence) { e.left = e.brought }},
		"a second deposit vanishes": {is: sold(), wrong: "4.000000 USDT came", does: func(e *evidence) {
			e.brought = append(e.brought, usdt("1"))
		}},
		"a second deposit is kept": {is: sold(), does: func(e *evidence) {
			e.brought, e.kept = append(e.brought, usdt("1")), []money.Amount{usdt("1")}
		}},
		"another coin goes back": {is: sold(), does: func(e *evidence) {
			one := []money.Amount{money.Must(money.USDC, "1")}
			e.brought, e.refunds, e.back = append(e.brought, one...), one, one
		}},
		"a flow is parked and nothing explains it": {is: sold(), wrong: "nothing in the plan explains", does: func(e *evidence) {
			e.status, e.paidOut, e.why = "processing", nil, []string{"momo-refused"}
		}},
		"a flow is parked as the plan has it": {is: sold(), does: func(e *evidence) {
			e.status, e.paidOut, e.why, e.action.step.Operator = "processing", nil, []string{"momo-refused"}, "account_inactive"
		}},
		"a swap": {is: exchanged()},
		"a swap goes back": {is: exchanged(), does: func(e *evidence) {
			e.status, e.legs[1] = "refunded", broughtBack
		}},
		"a swap that nothing was collected for": {is: exchanged(), does: func(e *evidence) { e.status, e.legs = "expired", nil }},
		"a swap is paid and goes back": {is: exchanged(), wrong: "it is completed with the final legs [collect payout refund]", does: func(e *evidence) {
			e.legs = append(e.legs, broughtBack)
		}},
		"a refunded swap is paid": {is: exchanged(), wrong: "it is refunded with the final legs [collect payout]", does: func(e *evidence) { e.status = "refunded" }},
		"a swap is neither paid nor goes back": {is: exchanged(), wrong: "it is refunded with the final legs [collect]", does: func(e *evidence) {
			e.status, e.legs = "refunded", e.legs[:1]
		}},
		"a swap stays parked": {is: exchanged(), wrong: "it is paying_out with the final legs [collect]", does: func(e *evidence) {
			e.status, e.legs, e.why = "paying_out", e.legs[:1], []string{"payout-blocked"}
		}},
		"a leg moves nothing on the chain": {is: exchanged(), wrong: "its payout should have moved 2.900000, and moved []", does: func(e *evidence) { e.legs[1].got = nil }},
		"a proposal":                       {is: jointly()},
		"a proposal is cancelled as the plan has it": {is: jointly(), does: func(e *evidence) {
			e.status, e.tx, e.paid, e.action.step.Odd = "cancelled", "", nil, oddCancel
		}},
		"a proposal is rejected as the plan has it": {is: jointly(), does: func(e *evidence) {
			e.status, e.tx, e.paid, e.action.step.Refuses = "rejected", "", nil, true
		}},
		"a proposal that is to be cancelled is executed before": {is: jointly(), does: func(e *evidence) { e.action.step.Odd = oddCancel }},
		"a proposal is paid twice": {is: jointly(), wrong: "it was paid 2 times", does: func(e *evidence) {
			e.paid = append(e.paid, e.paid[0])
		}},
		"a proposal names another transaction": {is: jointly(), wrong: `it was paid by AB and names "cd"`, does: func(e *evidence) { e.tx = "cd" }},
		"a proposal pays another amount": {is: jointly(), wrong: "2.000000 came, not 3.000000", does: func(e *evidence) {
			e.paid[0].amount = usdt("2")
		}},
		"an executed proposal pays nothing": {is: jointly(), wrong: "it is executed, and nothing came", does: func(e *evidence) { e.paid = nil }},
		"a cancelled proposal pays": {is: jointly(), wrong: "it is cancelled, and was paid", does: func(e *evidence) {
			e.status, e.action.step.Odd = "cancelled", oddCancel
		}},
		"a proposal fails by itself": {is: jointly(), wrong: "it is failed, which nothing in the plan explains", does: func(e *evidence) {
			e.status, e.paid = "failed", nil
		}},
		"a proposal leaves a hold": {is: jointly(), wrong: "1 of its holds are left", does: func(e *evidence) { e.held = 1 }},
		"a leg moves twice": {is: exchanged(), wrong: "and moved [2.900000 2.900000]", does: func(e *evidence) {
			e.legs[1].got = append(e.legs[1].got, usdt("2.9"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.does != nil {
				c.does(&c.is)
			}
			got := strings.Join(c.is.verdict(), "\n")
			if (got == "") != (c.wrong == "") || !strings.Contains(got, c.wrong) {
				t.Errorf("the judge says %q, not %q", got, c.wrong)
			}
		})
	}
}
