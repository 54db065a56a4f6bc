package momo

import (
	"testing"

	"kivuko/exchange"
)

// said is one observation of a payout: "+" a result that reports paid, "y" and "n" responses to a query, "-" a result
// that reports failed; with a letter for its receipt or ticket.
func lateEvidence(a exchange.PaymentAttempt, answers ...string) Evidence {
	e := Evidence{Attempt: a, Late: true}
	e.Attempt.Direction = exchange.Payout
	for _, v := range answers {
		r, name := Report{Kind: exchange.CallbackResult}, v[1:]
		switch v[0] {
		case '+':
			r.State, r.Receipt = exchange.SeenSucceeded, name
		case '-':
			r.State = exchange.SeenFailed
		case 'y':
			r.Kind, r.Asked, r.State, r.Ticket, r.Receipt = exchange.CallbackStatus, true, exchange.SeenSucceeded, name, name[:1]
		case 'n':
			r.Kind, r.Asked, r.State, r.Ticket = exchange.CallbackStatus, true, exchange.SeenFailed, name
		}
		e.Reports = append(e.Reports, r)
	}
	return e
}

// TestLateEvidenceAboutPayouts accepts late evidence when two sources agree, whatever came before, and never one alone.
func TestLateEvidenceAboutPayouts(t *testing.T) {
	refused := exchange.PaymentAttempt{Status: exchange.AttemptFailed}
	made := exchange.PaymentAttempt{Status: exchange.AttemptSucceeded, Receipt: "A"}
	for name, c := range map[string]struct {
		attempt exchange.PaymentAttempt
		answers []string
		state   State
		receipt string
	}{
		"nothing":                              {refused, nil, NoClaim, ""},
		"refused, and refused again":           {refused, []string{"-", "n1", "n2"}, NoClaim, ""},
		"paid after it was refused":            {refused, []string{"-", "n1", "+A"}, Pending, ""},
		"confirmed":                            {refused, []string{"-", "n1", "+A", "yA1"}, Paid, "A"},
		"confirmed first":                      {refused, []string{"-", "n1", "yA1", "+A"}, Paid, "A"},
		"two answers":                          {refused, []string{"-", "yA1", "yA2"}, Paid, "A"},
		"one answer":                           {refused, []string{"-", "yA1"}, Pending, ""},
		"one answer, said twice":               {refused, []string{"yA1", "yA1"}, Pending, ""},
		"of two payments":                      {refused, []string{"+A", "yB1"}, Pending, ""},
		"denied once":                          {refused, []string{"+A", "n1"}, Pending, ""},
		"denied once, said twice":              {refused, []string{"+A", "n1", "n1"}, Pending, ""},
		"denied twice":                         {refused, []string{"+A", "n1", "n2"}, Denied, ""},
		"denied before it was claimed":         {refused, []string{"n1", "n2", "+A"}, Pending, ""},
		"made, and reported again":             {made, []string{"+A"}, Paid, "A"},
		"made, and another receipt":            {made, []string{"+A", "+B"}, Pending, ""},
		"made, and another receipt, confirmed": {made, []string{"+A", "yA1", "+B", "yB2"}, Paid, "B"},
		"two of three answers":                 {refused, []string{"yA1", "yB2", "yA3"}, Paid, "A"},
		"made, as two answers reported, again": {made, []string{"yA1", "yA2", "yA3"}, Paid, "A"},
	} {
		if v := Judge(lateEvidence(c.attempt, c.answers...)); v.State != c.state || v.Proof.Receipt != c.receipt {
			t.Errorf("%s: %s by %q, want %s by %q", name, v.State, v.Proof.Receipt, c.state, c.receipt)
		}
	}
}
