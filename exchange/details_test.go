package exchange_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// A detail is one of the object's list, and each value of the list occurs.
func TestDetailsAreListed(t *testing.T) {
	t.Parallel()
	listed := func(name string, list []string, got ...string) {
		if slices.Sort(list); !slices.Equal(list, slices.Compact(slices.Sorted(slices.Values(got)))) {
			t.Errorf("%s: the list is %v, and the details are %v", name, list, got)
		}
	}
	var quotes, moves, payouts []string
	for _, s := range exchange.QuoteMachine.States() {
		quotes = append(quotes, exchange.FXQuote{Status: s}.WaitsFor())
	}
	for _, s := range exchange.FloatMoveMachine.States() {
		moves = append(moves, exchange.FloatMove{Status: s}.WaitsFor())
	}
	for _, s := range exchange.OrderPayoutMachine.States() {
		p := exchange.OrderPayout{Status: s}
		payouts = append(payouts, exchange.BankPayout{OrderPayout: p}.WaitsFor(),
			exchange.BankPayout{OrderPayout: p, Confirmations: make([]exchange.BankConfirmation, 1)}.WaitsFor())
	}
	var destinations []string
	for _, s := range exchange.DestinationMachine.States() {
		d := exchange.Destination{Status: s, RestsUntil: time.Unix(10, 0)}
		destinations = append(destinations, d.WaitsFor(time.Unix(9, 0)), d.WaitsFor(time.Unix(10, 0)))
	}
	listed("destination", exchange.DestinationDetails(), destinations...)
	proposer, other := uuid.New(), uuid.New()
	listed("quote", exchange.QuoteDetails(), quotes...)
	listed("float move", exchange.FloatMoveDetails(), moves...)
	listed("bank payout", exchange.BankPayoutDetails(), payouts...)
	listed("control change", exchange.ControlDetails(),
		exchange.ControlChange{Status: exchange.ControlPending, ProposedBy: proposer}.WaitsFor(),
		exchange.ControlChange{Status: exchange.ControlConfirmed, ProposedBy: proposer, DecidedBy: other}.WaitsFor(),
		exchange.ControlChange{Status: exchange.ControlRejected, ProposedBy: proposer, DecidedBy: other}.WaitsFor(),
		exchange.ControlChange{Status: exchange.ControlRejected, ProposedBy: proposer, DecidedBy: proposer}.WaitsFor())
}
