package momo

import (
	"testing"
	"time"

	"github.com/google/uuid"

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
	tooMuch := said(exchange.SourceConfirmation, yes, "R9", "250000")
	tooMuchListed := said(exchange.SourceStatement, yes, "R9", "250000")
	queryDeclined := query(no)
	queryDeclined.Class = exchange.ClassDeclined
	byHand, byHandListed := said(exchange.SourceConfirmation, yes, "R0", "1"), said(exchange.SourceStatement, yes, "R0", "1")
	byHand.At, byHandListed.At = prompted, prompted
	strangers, strangersListed := byHand, byHandListed
	strangers.Phone, strangersListed.PhoneHash = "254711111111", exchange.Phone("254711111111").Hash()
	for name, c := range map[string]struct {
		callback, query exchange.Observation
		rows            []exchange.Observation
		rivals, open    bool
		note            string
		want            State
		paid            string // the proof's receipt, where several are named
	}{
		"no evidence":                                 {want: Pending},
		"callback alone":                              {callback: callback(yes, "R1", "1294"), query: query(silent), want: Claimed},
		"callback and question":                       {callback: callback(yes, "R1", "1294"), query: query(yes), want: Paid},
		"callback and notice":                         {callback: callback(yes, "R1", "1294"), rows: rows(notice), query: query(silent), want: Claimed},
		"callback and notice, the prompt is open":     {callback: callback(yes, "R1", "1294"), rows: rows(notice), query: query(pending), want: Claimed},
		"callback and notice, question failed":        {callback: callback(yes, "R1", "1294"), rows: rows(notice), query: query(no), want: Disputed},
		"callback and notice, question paid":          {callback: callback(yes, "R1", "1294"), rows: rows(notice), query: query(yes), want: Paid},
		"callback and the statement":                  {callback: callback(yes, "R1", "1294"), rows: rows(row), query: query(silent), want: Paid},
		"callback and another receipt":                {callback: callback(yes, "R2", "1294"), rows: rows(notice), want: Claimed},
		"callback and another amount":                 {callback: callback(yes, "R1", "1300"), rows: rows(notice), query: query(silent), want: Claimed},
		"too much, confirmed by the query":            {callback: callback(yes, "R1", "1300"), query: query(yes), want: Disputed},
		"another payer":                               {callback: stranger, query: query(yes), want: Disputed},
		"another payer, confirmed by a row":           {callback: stranger, query: query(yes), rows: rows(row), want: Paid},
		"no receipt":                                  {callback: callback(yes, "", "1294"), query: query(yes), want: Disputed},
		"question alone":                              {query: query(yes), want: Receipt},
		"question and row":                            {query: query(yes), rows: rows(row), want: Paid},
		"question and a row from before":              {query: query(yes), rows: rows(early), want: Receipt},
		"row alone":                                   {query: query(silent), rows: rows(row), want: Claimed},
		"row and notice":                              {query: query(silent), rows: rows(row, notice), want: Paid},
		"row and notice, the prompt is open":          {query: query(pending), rows: rows(row, notice), want: Claimed},
		"callback paid, question failed":              {callback: callback(yes, "R1", "1294"), query: query(no), want: Disputed},
		"the statement settles it":                    {callback: callback(yes, "R1", "1294"), query: query(no), rows: rows(row), want: Paid},
		"notice over another amount":                  {query: query(yes), rows: rows(tooMuch), want: Receipt},
		"notice over another amount, and a row":       {query: query(yes), rows: rows(tooMuch, row), want: Paid, paid: "R1"},
		"by hand, the callback is late":               {query: query(yes), rows: rows(byHand, byHandListed), want: Receipt},
		"by hand, the prompt's row is there":          {query: query(yes), rows: rows(byHand, byHandListed, row), want: Paid, paid: "R1"},
		"by hand, and no answer yet":                  {query: query(silent), rows: rows(byHand, byHandListed), want: Claimed},
		"by hand, the prompt failed":                  {query: query(no), rows: rows(byHand, byHandListed), want: Paid},
		"by a stranger's hand, the prompt failed":     {query: query(no), rows: rows(strangers, strangersListed), want: Failed},
		"by a stranger's hand, and no answer yet":     {query: query(silent), rows: rows(strangers, strangersListed), want: Pending},
		"by a stranger's hand, the prompt was paid":   {query: query(yes), rows: rows(strangers, strangersListed, row), want: Paid, paid: "R1"},
		"by a stranger's hand, an officer names it":   {query: query(silent), rows: rows(strangers, strangersListed), note: "R0", want: Paid, paid: "R0"},
		"too much, confirmed by a notice":             {callback: callback(yes, "R9", "250000"), query: query(yes), rows: rows(tooMuch), want: Disputed},
		"too much, confirmed by the statement":        {callback: callback(yes, "R9", "250000"), query: query(yes), rows: rows(tooMuch, tooMuchListed), want: Paid, paid: "R9"},
		"callback failed, question paid":              {callback: callback(no, "", ""), query: query(yes), want: Receipt},
		"callback failed, and no answer yet":          {callback: callback(no, "", ""), query: query(silent), want: Pending},
		"callback failed, the prompt is open":         {callback: callback(no, "", ""), query: query(pending), want: Pending},
		"callback failed, and so did the question":    {callback: callback(no, "", ""), query: query(no), want: Failed},
		"question failed":                             {query: query(no), want: Failed},
		"declined":                                    {callback: declined, query: queryDeclined, want: Declined},
		"declined, as the callback alone says":        {callback: declined, query: query(silent), want: Pending},
		"failed, and a row of another prompt":         {query: query(no), rows: rows(row), rivals: true, want: Failed},
		"failed, and the rows of an open prompt":      {query: query(no), rows: rows(row, notice), open: true, want: Failed},
		"failed, row and notice":                      {query: query(no), rows: rows(row, notice), want: Paid},
		"failed, and a row":                           {query: query(no), rows: rows(row), want: Disputed},
		"an officer and a row":                        {query: query(silent), rows: rows(row), note: "R1", want: Paid},
		"an officer and another row":                  {query: query(silent), rows: rows(row), note: "R9", want: Claimed},
		"an officer and a notice over another amount": {query: query(silent), rows: rows(tooMuch), note: "R9", want: Claimed},
		"an officer and a listed other amount":        {query: query(silent), rows: rows(tooMuchListed), note: "R9", want: Paid},
		"an officer and the query":                    {query: query(yes), note: "UKL0000001", want: Paid},
		"an officer alone":                            {query: query(silent), note: "UKL0000001", want: Pending},
	} {
		t.Run(name, func(t *testing.T) {
			e := Evidence{
				Attempt: exchange.PaymentAttempt{Direction: exchange.Collection, Amount: asked, Phone: "254712345678", CreatedAt: prompted},
				Reports: reports(exchange.CallbackResult, c.callback), Query: c.query, Receipts: c.rows, Rivals: c.rivals, Open: c.open, Attested: c.note, Now: prompted,
			}
			got := Judge(e)
			if got.State != c.want {
				t.Errorf("judged %q, want %q", got.State, c.want)
			}
			if c.paid != "" && got.Proof.Receipt != c.paid {
				t.Errorf("paid by %s, want %s", got.Proof.Receipt, c.paid)
			}
		})
	}
}

// A result and a notice that agree in everything prove nothing, whatever the operator's own answer leaves open: both came to us, and
// anybody who learns the two addresses can post both. With a row of the statement, which we asked for, they do. (Finding H5.)
func TestH5TwoReportsThatCameToUsProveNothing(t *testing.T) {
	for _, answer := range []exchange.ObservationState{"", exchange.SeenPending, exchange.SeenNoAnswer} {
		e := Evidence{
			Attempt:  exchange.PaymentAttempt{Direction: exchange.Collection, Amount: asked, Phone: "254712345678", CreatedAt: prompted},
			Reports:  reports(exchange.CallbackResult, said(exchange.SourceCallback, exchange.SeenSucceeded, "R1", "1294")),
			Receipts: rows(said(exchange.SourceConfirmation, exchange.SeenSucceeded, "R1", "1294")),
			Query:    said(exchange.SourceQuery, answer, "", ""), Now: prompted,
		}
		if v := Judge(e); v.State != Claimed || !v.WantsStatement || len(v.Receipts) != 0 {
			t.Errorf("answer %q, a result and a notice: %s, asks the statement %t, proven are %v", answer, v.State, v.WantsStatement, v.Receipts)
		}
		e.Receipts = rows(said(exchange.SourceStatement, exchange.SeenSucceeded, "R1", "1294"))
		if v := Judge(e); v.State != Paid {
			t.Errorf("answer %q, a result and a row of the statement: %s", answer, v.State)
		}
	}
}

// Reports from outside the operator's addresses are a reason to ask and never evidence: neither that a prompt was paid nor that
// it was not, and no ids of the operator's are taken from them. (Finding H5.)
func TestH5OffRangeReportsNeverCount(t *testing.T) {
	for _, s := range []exchange.ObservationState{exchange.SeenSucceeded, exchange.SeenFailed} {
		e := Evidence{
			Attempt: exchange.PaymentAttempt{Direction: exchange.Collection, Amount: asked, Phone: "254712345678", CreatedAt: prompted},
			Reports: reports(exchange.CallbackResult, said(exchange.SourceCallback, s, "R1", "1294")), Now: prompted,
			Receipts: rows(said(exchange.SourceConfirmation, exchange.SeenSucceeded, "R1", "1294")),
		}
		e.Reports[0].OffRange = true
		e.Query = said(exchange.SourceQuery, exchange.SeenPending, "", "")
		if v := Judge(e); v.State != Claimed {
			t.Errorf("a report %s and a notice: %s, want what the notice alone proves", s, v.State)
		}
		e.Receipts = nil
		if v := Judge(e); v.State != Pending {
			t.Errorf("a report %s: %s", s, v.State)
		}
	}
}

// A result that says not paid ends a prompt only with a source that we asked: the query, or the whole statement once the prompt
// can't be accepted any more. (Finding H5.)
func TestH5RefusalNeedsAQuestion(t *testing.T) {
	for name, c := range map[string]struct {
		age  time.Duration
		read bool
		want State
		asks bool
	}{
		"at once":                    {0, false, Pending, false},
		"not overdue, listed":        {promptLife, true, Pending, false},
		"overdue":                    {promptLife + time.Second, false, Pending, true},
		"overdue, and not in a list": {promptLife + time.Second, true, Failed, false},
	} {
		e := Evidence{
			Attempt:       exchange.PaymentAttempt{Direction: exchange.Collection, Status: exchange.AttemptAccepted, CheckoutRequestID: "ws_CO_1", Amount: asked, CreatedAt: prompted},
			Reports:       reports(exchange.CallbackResult, said(exchange.SourceCallback, exchange.SeenFailed, "", "")),
			Query:         said(exchange.SourceQuery, exchange.SeenNoAnswer, "", ""),
			StatementRead: c.read, Now: prompted.Add(c.age),
		}
		if v := Judge(e); v.State != c.want || v.WantsStatement != c.asks {
			t.Errorf("%s: %s, asks the statement %t", name, v.State, v.WantsStatement)
		}
	}
}

func rows(list ...exchange.Observation) []exchange.Observation { return list }

// reports are observations that came to one kind of address, without those that were not made.
func reports(kind exchange.CallbackKind, list ...exchange.Observation) []Report {
	var out []Report
	for _, o := range list {
		if o.State != "" {
			out = append(out, Report{Kind: kind, Observation: o, Asked: kind == exchange.CallbackStatus})
		}
	}
	return out
}

func TestReceiptOfAnotherPromptIsNoEvidence(t *testing.T) {
	e := Evidence{Attempt: exchange.PaymentAttempt{Amount: asked, CreatedAt: prompted}, Taken: []string{"R1"}, Now: prompted}
	e.Receipts = rows(said(exchange.SourceConfirmation, exchange.SeenSucceeded, "R1", "1294"), said(exchange.SourceStatement, exchange.SeenSucceeded, "R1", "1294"))
	if got := Judge(e).State; got != Pending {
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
		want    State
	}{
		"no evidence":                      {want: Pending},
		"result alone":                     {result: result(yes), want: Pending},
		"result and answer":                {result: result(yes), answers: rows(answer(yes, "t1")), want: Paid},
		"answer alone":                     {answers: rows(answer(yes, "t1")), want: Pending},
		"one answer twice":                 {answers: rows(answer(yes, "t1"), answer(yes, "t1")), want: Pending},
		"two answers":                      {answers: rows(answer(yes, "t1"), answer(yes, "t2")), want: Paid},
		"result paid, answer failed":       {result: result(yes), answers: rows(answer(no, "t1")), want: Disputed},
		"result failed, answer paid":       {result: result(no), answers: rows(answer(yes, "t1")), want: Disputed},
		"another amount":                   {result: result(yes), answers: rows(other), want: Disputed},
		"failed alone":                     {result: result(no), want: Pending},
		"failed and answer":                {result: result(no), answers: rows(answer(no, "t1")), want: Refused},
		"two answers failed":               {answers: rows(answer(no, "t1"), answer(no, "t2")), want: Refused},
		"answer still open":                {answers: rows(answer(pending, "t1")), want: Pending},
		"the queue's timeout says nothing": {result: said(exchange.SourceCallback, exchange.SeenUnknown, "", ""), want: Pending},
	} {
		t.Run(name, func(t *testing.T) {
			e := Evidence{Attempt: exchange.PaymentAttempt{Direction: exchange.Payout, Amount: asked}}
			e.Reports = append(reports(exchange.CallbackResult, c.result), reports(exchange.CallbackStatus, c.answers...)...)
			if got := Judge(e).State; got != c.want {
				t.Errorf("judged %q, want %q", got, c.want)
			}
		})
	}
}

// Only the operator's answers name its charge, which is part of the proof that is booked.
func TestProofCarriesTheCharge(t *testing.T) {
	const receipt = "UKL1234567"
	answer := said(exchange.SourceQuery, exchange.SeenSucceeded, receipt, "1294")
	for _, charge := range []money.Amount{money.Must(money.KES, "22.40"), {}} {
		answer.Charge = charge
		v := Judge(Evidence{Attempt: exchange.PaymentAttempt{Direction: exchange.Payout, Amount: asked}, Reports: []Report{
			{Kind: exchange.CallbackResult, Observation: said(exchange.SourceCallback, exchange.SeenSucceeded, receipt, "1294")},
			{Kind: exchange.CallbackStatus, Observation: answer, Asked: true},
		}})
		if v.State != Paid || v.Proof.Charge.Asset() != charge.Asset() || (charge.Asset() != "" && !v.Proof.Charge.Equal(charge)) {
			t.Errorf("%s with a charge of %s, want %s", v.State, v.Proof.Charge, charge)
		}
	}
}

// A prompt that was never acknowledged has failed when it is too old and the whole statement lacks it, and only then.
func TestPromptThatNeverStarted(t *testing.T) {
	for name, c := range map[string]struct {
		change    func(e *Evidence)
		want      State
		statement bool
		code      string
	}{
		"too old, and not listed":    {func(*Evidence) {}, Failed, true, "not_found"},
		"the statement was not read": {func(e *Evidence) { e.StatementRead = false }, Pending, true, ""},
		"not too old":                {func(e *Evidence) { e.Now = prompted.Add(promptLife) }, Pending, false, ""},
		"acknowledged":               {func(e *Evidence) { e.Attempt.CheckoutRequestID = "ws_CO_1" }, Pending, false, ""},
		"acknowledged, but thorough": {func(e *Evidence) { e.Attempt.CheckoutRequestID, e.Thorough = "ws_CO_1", true }, Pending, true, ""},
		"listed": {func(e *Evidence) {
			e.Receipts = rows(said(exchange.SourceStatement, exchange.SeenSucceeded, "R1", "1294"))
		}, Claimed, true, ""},
		"recorded as failed": {func(e *Evidence) {
			e.Attempt.Status, e.Attempt.Soft, e.Attempt.ResultCode = exchange.AttemptFailed, true, "7"
		}, Failed, false, "7"},
	} {
		e := Evidence{
			Attempt: exchange.PaymentAttempt{Status: exchange.AttemptUnknown, Amount: asked, CreatedAt: prompted}, StatementRead: true,
			Now: prompted.Add(promptLife + time.Second),
		}
		c.change(&e)
		if v := Judge(e); v.State != c.want || v.WantsStatement != c.statement || v.Proof.Code != c.code || (c.want == Failed && !v.Proof.Soft) {
			t.Errorf("%s: %s, statement %t, by %+v", name, v.State, v.WantsStatement, v.Proof)
		}
	}
}

// What a payout's verdict says besides its state decides whether it is sent again and whether officers may declare it unpaid.
func TestPayoutIsUnreportedOrClaimed(t *testing.T) {
	id := uuid.New()
	o := func(s exchange.ObservationState) exchange.Observation {
		return exchange.Observation{State: s, Ticket: "t"}
	}
	foreign := o(exchange.SeenSucceeded)
	foreign.Refs.OriginatorConversationID = uuid.NewString()
	for name, c := range map[string]struct {
		report           Report
		unheard, claimed bool
	}{
		"no report":           {Report{}, true, false},
		"the queue timed out": {Report{Kind: exchange.CallbackTimeout, Observation: o(exchange.SeenUnknown)}, false, false},
		"an open answer":      {Report{Kind: exchange.CallbackStatus, Observation: o(exchange.SeenPending), Asked: true}, false, false},
		"no answer":           {Report{Kind: exchange.CallbackStatus, Observation: o(exchange.SeenNoAnswer), Asked: true}, true, false},
		"an answer":           {Report{Kind: exchange.CallbackStatus, Observation: o(exchange.SeenSucceeded), Asked: true}, false, true},
		"a result":            {Report{Kind: exchange.CallbackResult, Observation: o(exchange.SeenSucceeded)}, false, true},
		"a failed result":     {Report{Kind: exchange.CallbackResult, Observation: o(exchange.SeenFailed)}, false, false},
		"about another":       {Report{Kind: exchange.CallbackResult, Observation: foreign}, true, false},
	} {
		v := Judge(Evidence{Attempt: exchange.PaymentAttempt{ID: id, Direction: exchange.Payout, Amount: asked}, Reports: []Report{c.report}})
		if v.State != Pending || v.Unheard != c.unheard || v.Claimed != c.claimed {
			t.Errorf("%s: %s, unheard %t, claimed %t", name, v.State, v.Unheard, v.Claimed)
		}
	}
}

// Results and answers come to one address. Who learns it can post both, so answers count only to queries that we sent.
func TestAnswersToNoQueryOfOurs(t *testing.T) {
	result := func(s exchange.ObservationState) Report {
		return Report{Kind: exchange.CallbackResult, Observation: said(exchange.SourceCallback, s, "R1", "1294")}
	}
	answer := func(s exchange.ObservationState, ticket string, asked bool) Report {
		o := said(exchange.SourceQuery, s, "R1", "1294")
		o.Ticket = ticket
		return Report{Kind: exchange.CallbackStatus, Observation: o, Asked: asked}
	}
	away := func(r Report) Report { r.OffRange = true; return r }
	const yes, no = exchange.SeenSucceeded, exchange.SeenFailed
	for name, c := range map[string]struct {
		reports    []Report
		open, late State
		claimed    bool
	}{
		"two to queries of others: refused":     {[]Report{answer(no, "a", false), answer(no, "b", false)}, Pending, NoClaim, false},
		"two to queries of others: paid":        {[]Report{answer(yes, "a", false), answer(yes, "b", false)}, Pending, NoClaim, false},
		"a result and one to a query of others": {[]Report{result(yes), answer(yes, "a", false)}, Pending, Pending, true},
		"denied by two to queries of others":    {[]Report{result(yes), answer(no, "a", false), answer(no, "b", false)}, Pending, Pending, true},
		"a result and an answer":                {[]Report{result(yes), answer(yes, "a", true)}, Paid, Paid, true},
		"a result from elsewhere":               {[]Report{away(result(yes))}, Pending, Pending, true},
		"a result from elsewhere, and denials":  {[]Report{away(result(yes)), answer(no, "a", true), answer(no, "b", true)}, Refused, Denied, true},
		"a result from elsewhere, an answer":    {[]Report{away(result(yes)), answer(yes, "a", true)}, Pending, Pending, true},
		"a refusal from elsewhere":              {[]Report{away(result(no)), answer(no, "a", true)}, Pending, NoClaim, false},
		"an answer from elsewhere":              {[]Report{result(yes), away(answer(yes, "a", true))}, Pending, Pending, true},
	} {
		e := Evidence{Attempt: exchange.PaymentAttempt{Direction: exchange.Payout, Amount: asked}, Reports: c.reports}
		open := Judge(e)
		if e.Late = true; open.State != c.open || open.Claimed != c.claimed || Judge(e).State != c.late {
			t.Errorf("%s: %s, claimed %t, late %s; want %s, %t, %s", name, open.State, open.Claimed, Judge(e).State, c.open, c.claimed, c.late)
		}
	}
}

// An open payout that was claimed and then denied twice can be ended by officers.
func TestOpenPayoutIsDenied(t *testing.T) {
	for name, c := range map[string]struct {
		answers []string
		want    bool
	}{
		"claimed, denied once":               {[]string{"+A", "n1"}, false},
		"claimed, denied once, said twice":   {[]string{"+A", "n1", "n1"}, false},
		"claimed, denied twice":              {[]string{"+A", "n1", "n2"}, true},
		"denied before it was claimed":       {[]string{"n1", "n2", "+A"}, false},
		"an answer claimed it, denied twice": {[]string{"yA1", "n2", "n3"}, true},
		"claimed again":                      {[]string{"+A", "n1", "n2", "yA3"}, false},
		"never claimed":                      {[]string{"-", "n1", "n2"}, false},
	} {
		e := lateEvidence(exchange.PaymentAttempt{Amount: asked}, c.answers...)
		e.Late = false
		if v := Judge(e); v.Denied != c.want {
			t.Errorf("%s: %s, denied %t, want %t", name, v.State, v.Denied, c.want)
		}
	}
}

// A movement of float counts when its result and the answer to a query agree.
func TestFloatNeedsTwoSources(t *testing.T) {
	result := func(s exchange.ObservationState, receipt string) Report {
		return Report{Kind: exchange.CallbackResult, Observation: said(exchange.SourceCallback, s, receipt, "")}
	}
	answer := func(s exchange.ObservationState, receipt string) Report {
		return Report{Kind: exchange.CallbackStatus, Asked: true, Observation: said(exchange.SourceQuery, s, receipt, "")}
	}
	unasked := func(r Report) Report { r.Asked = false; return r }
	away := func(r Report) Report { r.OffRange = true; return r }
	const yes, no, open = exchange.SeenSucceeded, exchange.SeenFailed, exchange.SeenPending
	for name, c := range map[string]struct {
		reports []Report
		want    State
	}{
		"nothing":              {nil, Pending},
		"a result":             {[]Report{result(yes, "R1")}, Pending},
		"result and answer":    {[]Report{answer(yes, "R1"), result(yes, "R1")}, Paid},
		"another receipt":      {[]Report{result(yes, "R1"), answer(yes, "R2")}, Pending},
		"no receipt":           {[]Report{result(yes, ""), answer(yes, "")}, Pending},
		"refused":              {[]Report{result(no, ""), answer(no, "")}, Refused},
		"they contradict":      {[]Report{result(yes, "R1"), answer(no, "")}, Pending},
		"an answer still open": {[]Report{result(no, ""), answer(open, "")}, Pending},
		"answer to no query":   {[]Report{result(yes, "R1"), unasked(answer(yes, "R1"))}, Pending},
		"a result off range":   {[]Report{away(result(yes, "R1")), answer(yes, "R1")}, Pending},
		"both off range":       {[]Report{away(result(no, "")), away(answer(no, ""))}, Pending},
		"success is final":     {[]Report{result(yes, "R1"), result(no, ""), answer(yes, "R1")}, Paid},
	} {
		if v := JudgeFloat(c.reports); v.State != c.want {
			t.Errorf("%s: %s, want %s", name, v.State, c.want)
		}
	}
}
