package activities

import (
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

var (
	asked    = money.Must(money.KES, "1294")
	prompted = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
)

func said(w exchange.EvidenceSource, s exchange.ObservationState, receipt, amount string) exchange.Observation {
	o := exchange.Observation{Source: w, State: s, Receipt: receipt, At: prompted.Add(20 * time.Second)}
	if amount != "" {
		o.Amount = money.Must(money.KES, amount)
	}
	if s == exchange.SeenFailed {
		o.Class = exchange.ClassUnanswered
	}
	return o
}

func TestTwoSourcesDecide(t *testing.T) {
	const yes, no, pending, silent = exchange.SeenSucceeded, exchange.SeenFailed, exchange.SeenPending, exchange.SeenNoAnswer
	callback := func(s exchange.ObservationState, receipt, amount string) exchange.Observation {
		return said(exchange.SourceCallback, s, receipt, amount)
	}
	query := func(s exchange.ObservationState) exchange.Observation { return said(exchange.SourceQuery, s, "", "") }
	notice := said(exchange.SourceConfirmation, yes, "R1", "1294")
	row := said(exchange.SourceStatement, yes, "R1", "1294")
	stranger := callback(yes, "R1", "1294")
	stranger.Phone = "254799999999"
	declined := callback(no, "", "")
	declined.Class = exchange.ClassDeclined
	early := row
	early.At = prompted.Add(-time.Hour)
	for name, c := range map[string]struct {
		callback, query exchange.Observation
		rows            []exchange.Observation
		rivals          bool
		note            string
		want            PaymentState
	}{
		"no evidence":                         {want: PaymentPending},
		"callback alone":                      {callback: callback(yes, "R1", "1294"), query: query(silent), want: PaymentClaimed},
		"callback and question":               {callback: callback(yes, "R1", "1294"), query: query(yes), want: PaymentPaid},
		"callback and notice":                 {callback: callback(yes, "R1", "1294"), rows: rows(notice), want: PaymentPaid},
		"callback and another receipt":        {callback: callback(yes, "R2", "1294"), rows: rows(notice), want: PaymentClaimed},
		"callback and another amount":         {callback: callback(yes, "R1", "1300"), rows: rows(notice), query: query(silent), want: PaymentClaimed},
		"too much, vouched by the question":   {callback: callback(yes, "R1", "1300"), query: query(yes), want: PaymentDisputed},
		"another payer":                       {callback: stranger, query: query(yes), want: PaymentDisputed},
		"another payer, vouched by a row":     {callback: stranger, query: query(yes), rows: rows(row), want: PaymentPaid},
		"no receipt":                          {callback: callback(yes, "", "1294"), query: query(yes), want: PaymentDisputed},
		"question alone":                      {query: query(yes), want: PaymentReceipt},
		"question and row":                    {query: query(yes), rows: rows(row), want: PaymentPaid},
		"question and a row from before":      {query: query(yes), rows: rows(early), want: PaymentReceipt},
		"row alone":                           {query: query(silent), rows: rows(row), want: PaymentClaimed},
		"row and notice":                      {query: query(silent), rows: rows(row, notice), want: PaymentPaid},
		"row and notice, the prompt is open":  {query: query(pending), rows: rows(row, notice), want: PaymentClaimed},
		"callback paid, question failed":      {callback: callback(yes, "R1", "1294"), query: query(no), want: PaymentDisputed},
		"the statement settles it":            {callback: callback(yes, "R1", "1294"), query: query(no), rows: rows(row), want: PaymentPaid},
		"callback failed, question paid":      {callback: callback(no, "", ""), query: query(yes), want: PaymentReceipt},
		"callback failed":                     {callback: callback(no, "", ""), query: query(silent), want: PaymentFailed},
		"question failed":                     {query: query(no), want: PaymentFailed},
		"declined":                            {callback: declined, query: query(no), want: PaymentDeclined},
		"failed, and a row of another prompt": {query: query(no), rows: rows(row), rivals: true, want: PaymentFailed},
		"failed, and a row":                   {query: query(no), rows: rows(row), want: PaymentDisputed},
		"a person and a row":                  {query: query(silent), rows: rows(row), note: "R1", want: PaymentPaid},
		"a person and another row":            {query: query(silent), rows: rows(row), note: "R9", want: PaymentClaimed},
		"a person and the question":           {query: query(yes), note: "UKL0000001", want: PaymentPaid},
		"a person alone":                      {query: query(silent), note: "UKL0000001", want: PaymentPending},
	} {
		t.Run(name, func(t *testing.T) {
			e := evidence{
				attempt:  exchange.PaymentAttempt{Amount: asked, Phone: "254712345678", CreatedAt: prompted},
				callback: c.callback, query: c.query, rivals: c.rivals, vouchedFor: c.note,
			}
			e.add(c.rows)
			if got := e.judge(); got.state != c.want {
				t.Errorf("judged %q, want %q", got.state, c.want)
			}
		})
	}
}

func rows(list ...exchange.Observation) []exchange.Observation { return list }

func TestReceiptOfAnotherPromptIsNoEvidence(t *testing.T) {
	e := evidence{attempt: exchange.PaymentAttempt{Amount: asked, CreatedAt: prompted}, claimed: []string{"R1"}}
	e.add(rows(said(exchange.SourceConfirmation, exchange.SeenSucceeded, "R1", "1294"), said(exchange.SourceStatement, exchange.SeenSucceeded, "R1", "1294")))
	if got := e.judge().state; got != PaymentPending {
		t.Errorf("judged %q", got)
	}
}

func TestForeignCallbacksAreDropped(t *testing.T) {
	a := exchange.PaymentAttempt{CheckoutRequestID: "ws_CO_ours", MerchantRequestID: "m"}
	ours := exchange.Observation{Refs: exchange.Refs{CheckoutRequestID: "ws_CO_ours", MerchantRequestID: "m"}}
	list := []exchange.Observation{
		{Refs: exchange.Refs{CheckoutRequestID: "ws_CO_theirs"}}, ours, {Refs: exchange.Refs{CheckoutRequestID: "ws_CO_ours", MerchantRequestID: "n"}},
	}
	if kept := matching(a, list); len(kept) != 1 || kept[0].Refs != ours.Refs {
		t.Errorf("kept %+v", kept)
	}
}

func TestNotesThatAreReceipts(t *testing.T) {
	for note, want := range map[string]string{
		"UKL1234567": "UKL1234567", " UKL1234567 ": "UKL1234567", "not paid": "", "NOT PAID AT ALL": "", "ukl1234567": "", "UKL": "",
		"UKL12345678901234567890": "", "": "",
	} {
		if got := exchange.ReceiptIn(note); got != want {
			t.Errorf("%q reads as %q, want %q", note, got, want)
		}
	}
}

func TestPayoutNeedsTwoSources(t *testing.T) {
	const yes, no, pending = exchange.SeenSucceeded, exchange.SeenFailed, exchange.SeenPending
	result := func(s exchange.ObservationState) exchange.Observation {
		return said(exchange.SourceCallback, s, "R1", "1294")
	}
	answer := func(s exchange.ObservationState, ticket string) exchange.Observation {
		o := said(exchange.SourceQuery, s, "R1", "1294")
		o.Ticket = ticket
		return o
	}
	other := answer(yes, "t1")
	other.Amount = money.Must(money.KES, "1")
	for name, c := range map[string]struct {
		result  exchange.Observation
		answers []exchange.Observation
		want    string
	}{
		"no evidence":                      {want: PayoutPending},
		"result alone":                     {result: result(yes), want: PayoutPending},
		"result and answer":                {result: result(yes), answers: rows(answer(yes, "t1")), want: PayoutPaid},
		"answer alone":                     {answers: rows(answer(yes, "t1")), want: PayoutPending},
		"one answer twice":                 {answers: rows(answer(yes, "t1"), answer(yes, "t1")), want: PayoutPending},
		"two answers":                      {answers: rows(answer(yes, "t1"), answer(yes, "t2")), want: PayoutPaid},
		"result paid, answer failed":       {result: result(yes), answers: rows(answer(no, "t1")), want: PayoutDisputed},
		"result failed, answer paid":       {result: result(no), answers: rows(answer(yes, "t1")), want: PayoutDisputed},
		"another amount":                   {result: result(yes), answers: rows(other), want: PayoutDisputed},
		"failed alone":                     {result: result(no), want: PayoutPending},
		"failed and answer":                {result: result(no), answers: rows(answer(no, "t1")), want: PayoutRefused},
		"two answers failed":               {answers: rows(answer(no, "t1"), answer(no, "t2")), want: PayoutRefused},
		"answer still open":                {answers: rows(answer(pending, "t1")), want: PayoutPending},
		"the queue's timeout says nothing": {result: said(exchange.SourceCallback, exchange.SeenUnknown, "", ""), want: PayoutPending},
	} {
		t.Run(name, func(t *testing.T) {
			e := payoutEvidence{attempt: exchange.PaymentAttempt{Amount: asked}, result: c.result, answers: c.answers}
			if got, _ := e.judge(); got != c.want {
				t.Errorf("judged %q, want %q", got, c.want)
			}
		})
	}
}
