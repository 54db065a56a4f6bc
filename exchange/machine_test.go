package exchange_test

import (
	"slices"
	"strings"
	"testing"

	"kivuko/exchange"
)

// Every machine is consistent: all states are reachable, a final state has no transition, and every other state has one.
func TestMachinesHangTogether(t *testing.T) {
	t.Parallel()
	for _, m := range exchange.Machines() {
		reached := map[string]bool{m.Initial: true}
		out := map[string]int{}
		for range m.Transitions {
			for _, tr := range m.Transitions {
				if reached[tr.From] {
					reached[tr.To] = true
				}
			}
		}
		for _, tr := range m.Transitions {
			out[tr.From]++
			if tr.Why == "" || tr.By == "" || tr.From == tr.To {
				t.Errorf("%s: %s to %s has a short reason or an unknown state", m.Name, tr.From, tr.To)
			}
			if strings.Contains(tr.Why, ";") {
				t.Errorf("%s: %s to %s: Mermaid ends a statement at a semicolon: %q", m.Name, tr.From, tr.To, tr.Why)
			}
		}
		for _, s := range m.States {
			final := slices.Contains(m.Final, s)
			if !reached[s] || final == (out[s] > 0) {
				t.Errorf("%s: %s is reached %t, final %t, with %d ways out", m.Name, s, reached[s], final, out[s])
			}
		}
	}
}

func TestMachineAllowsItsArrowsOnly(t *testing.T) {
	t.Parallel()
	m := exchange.OnRampMachine
	if err := m.Allow(exchange.OrderPending, exchange.OrderProcessing); err != nil {
		t.Error(err)
	}
	for _, to := range m.States() {
		if err := m.Allow(exchange.OrderCompleted, to); exchange.CodeOf(err) != exchange.CodeStateConflict {
			t.Errorf("completed to %s: %v", to, err)
		}
	}
	if err := m.Allow(exchange.OrderPending, exchange.OrderCompleted); exchange.MessageOf(err) != "The on ramp order is pending and can't become completed." {
		t.Errorf("the message is %q", exchange.MessageOf(err))
	}
	if got := m.Sources(exchange.OrderFailed); !slices.Equal(got, []exchange.OrderStatus{exchange.OrderPending, exchange.OrderProcessing, exchange.OrderConfirming}) {
		t.Errorf("failed comes from %v", got)
	}
	if !m.Terminal(exchange.OrderFailed) || m.Terminal(exchange.OrderPending) {
		t.Error("failed must be final and pending not")
	}
}

// Success may follow any state except success, and nothing follows it.
func TestSuccessOfAnAttemptIsMonotonic(t *testing.T) {
	t.Parallel()
	for _, s := range exchange.AttemptMachine.States() {
		if s == exchange.AttemptSucceeded {
			continue
		}
		if exchange.AttemptMachine.Allow(s, exchange.AttemptSucceeded) != nil || exchange.AttemptMachine.Allow(exchange.AttemptSucceeded, s) == nil {
			t.Errorf("%s and succeeded", s)
		}
	}
}

// Only a live transaction can be included again.
func TestEndedChainAttemptsStayEnded(t *testing.T) {
	t.Parallel()
	for _, s := range exchange.ChainAttemptMachine.States() {
		alive := exchange.ChainAttempt{Status: s}.Alive()
		if alive == exchange.ChainAttemptMachine.Terminal(s) {
			t.Errorf("%s is alive %t", s, alive)
		}
	}
}
