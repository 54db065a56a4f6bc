package activities

import (
	"testing"

	"kivuko/exchange"
)

// said is one voice about a payout: "+" a result that says paid, "y" and "n" answers to a question, "-" a result that
// says failed; with a letter of its receipt or ticket.
func heardOf(a exchange.PaymentAttempt, voices ...string) hearsay {
	h := hearsay{attempt: a}
	for _, v := range voices {
		name := v[1:]
		switch v[0] {
		case '+':
			h.add(exchange.CallbackResult, exchange.Observation{State: exchange.SeenSucceeded, Receipt: name})
		case '-':
			h.add(exchange.CallbackResult, exchange.Observation{State: exchange.SeenFailed})
		case 'y':
			h.add(exchange.CallbackStatus, exchange.Observation{State: exchange.SeenSucceeded, Ticket: name, Receipt: name[:1]})
		case 'n':
			h.add(exchange.CallbackStatus, exchange.Observation{State: exchange.SeenFailed, Ticket: name})
		}
	}
	return h
}

// TestLateWordsAboutPayouts are believed when two agree, whatever was said before them, and never alone.
func TestLateWordsAboutPayouts(t *testing.T) {
	refused := exchange.PaymentAttempt{Status: exchange.AttemptFailed}
	made := exchange.PaymentAttempt{Status: exchange.AttemptSucceeded, Receipt: "A"}
	for name, c := range map[string]struct {
		attempt exchange.PaymentAttempt
		voices  []string
		state   string
		receipt string
	}{
		"nothing":                                 {refused, nil, PayoutSilent, ""},
		"refused, and refused again":              {refused, []string{"-", "n1", "n2"}, PayoutSilent, ""},
		"paid after it was refused":               {refused, []string{"-", "n1", "+A"}, RefundPending, ""},
		"confirmed":                               {refused, []string{"-", "n1", "+A", "yA1"}, RefundPaid, "A"},
		"confirmed first":                         {refused, []string{"-", "n1", "yA1", "+A"}, RefundPaid, "A"},
		"two answers":                             {refused, []string{"-", "yA1", "yA2"}, RefundPaid, "A"},
		"one answer":                              {refused, []string{"-", "yA1"}, RefundPending, ""},
		"one answer, said twice":                  {refused, []string{"yA1", "yA1"}, RefundPending, ""},
		"of two payments":                         {refused, []string{"+A", "yB1"}, RefundPending, ""},
		"denied once":                             {refused, []string{"+A", "n1"}, RefundPending, ""},
		"denied once, said twice":                 {refused, []string{"+A", "n1", "n1"}, RefundPending, ""},
		"denied twice":                            {refused, []string{"+A", "n1", "n2"}, PayoutDenied, ""},
		"denied before it was claimed":            {refused, []string{"n1", "n2", "+A"}, RefundPending, ""},
		"made, and told again":                    {made, []string{"+A"}, RefundPaid, "A"},
		"made, and another receipt":               {made, []string{"+A", "+B"}, RefundPending, ""},
		"made, and another receipt, confirmed":    {made, []string{"+A", "yA1", "+B", "yB2"}, RefundPaid, "B"},
		"made, as two answers told, another time": {made, []string{"yA1", "yA2", "yA3"}, RefundPaid, "A"},
	} {
		h := heardOf(c.attempt, c.voices...)
		if state, o := h.judge(); state != c.state || o.Receipt != c.receipt {
			t.Errorf("%s: %s by %q, want %s by %q", name, state, o.Receipt, c.state, c.receipt)
		}
	}
}
