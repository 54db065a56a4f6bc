package activities

import (
	"testing"

	"kivuko/exchange"
)

// said is one observation of a payout: "+" a result that reports paid, "y" and "n" responses to a query, "-" a result
// that reports failed; with a letter for its receipt or ticket.
func lateEvidenceOf(a exchange.PaymentAttempt, answers ...string) lateEvidence {
	h := lateEvidence{attempt: a}
	for _, v := range answers {
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

// TestLateEvidenceAboutPayouts accepts late evidence when two sources agree, whatever came before, and never one alone.
func TestLateEvidenceAboutPayouts(t *testing.T) {
	refused := exchange.PaymentAttempt{Status: exchange.AttemptFailed}
	made := exchange.PaymentAttempt{Status: exchange.AttemptSucceeded, Receipt: "A"}
	for name, c := range map[string]struct {
		attempt exchange.PaymentAttempt
		answers []string
		state   string
		receipt string
	}{
		"nothing":                                 {refused, nil, PayoutSilent, ""},
		"refused, and refused again":              {refused, []string{"-", "n1", "n2"}, PayoutSilent, ""},
		"paid after it was refused":               {refused, []string{"-", "n1", "+A"}, PayoutPending, ""},
		"confirmed":                               {refused, []string{"-", "n1", "+A", "yA1"}, PayoutPaid, "A"},
		"confirmed first":                         {refused, []string{"-", "n1", "yA1", "+A"}, PayoutPaid, "A"},
		"two answers":                             {refused, []string{"-", "yA1", "yA2"}, PayoutPaid, "A"},
		"one answer":                              {refused, []string{"-", "yA1"}, PayoutPending, ""},
		"one answer, said twice":                  {refused, []string{"yA1", "yA1"}, PayoutPending, ""},
		"of two payments":                         {refused, []string{"+A", "yB1"}, PayoutPending, ""},
		"denied once":                             {refused, []string{"+A", "n1"}, PayoutPending, ""},
		"denied once, said twice":                 {refused, []string{"+A", "n1", "n1"}, PayoutPending, ""},
		"denied twice":                            {refused, []string{"+A", "n1", "n2"}, PayoutDenied, ""},
		"denied before it was claimed":            {refused, []string{"n1", "n2", "+A"}, PayoutPending, ""},
		"made, and told again":                    {made, []string{"+A"}, PayoutPaid, "A"},
		"made, and another receipt":               {made, []string{"+A", "+B"}, PayoutPending, ""},
		"made, and another receipt, confirmed":    {made, []string{"+A", "yA1", "+B", "yB2"}, PayoutPaid, "B"},
		"made, as two answers told, another time": {made, []string{"yA1", "yA2", "yA3"}, PayoutPaid, "A"},
	} {
		h := lateEvidenceOf(c.attempt, c.answers...)
		if state, o := h.judge(); state != c.state || o.Receipt != c.receipt {
			t.Errorf("%s: %s by %q, want %s by %q", name, state, o.Receipt, c.state, c.receipt)
		}
	}
}
