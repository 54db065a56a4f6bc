package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo/daraja"
)

// payer is the outcome of one prompt or payout at the operator.
type payer struct {
	code      string        // the result code; "0" is paid
	after     time.Duration // until the result
	pays      string        // KES that really moved; "": the requested amount
	refuse    string        // the code of a refused submission
	transient bool
	config    bool
	deaf      bool          // the request is accepted, the response lost
	unsent    bool          // the request is lost, and the response too
	early     bool          // the callback comes before the response to the submission
	silent    bool          // no callback
	twice     bool          // two callbacks
	foreign   bool          // the callback names another prompt
	late      time.Duration // the code is followed by a success this long after
	quiet     bool          // no callback of that success
	mute      bool          // queries get no response
	lies      bool          // queries report failed although it is paid
	confirms  bool          // a notice of the payment reaches our number
	unlisted  bool          // not in the statement
	reversed  bool          // the operator took the money back at once: its result says paid, its queries deny it
}

// moved is one movement in the operator's own book.
type moved struct {
	attempt exchange.PaymentAttempt
	receipt string
	amount  money.Amount
	at      time.Time
	payer   payer
}

// operator is a mobile money operator with a book of its own.
type operator struct {
	mu      sync.Mutex
	now     func() time.Time
	later   func(d time.Duration, what func())
	deliver func(a exchange.PaymentAttempt, kind exchange.CallbackKind, body []byte)
	confirm func(o exchange.Observation)
	script  func(a exchange.PaymentAttempt, n int) payer // n counts submissions of the direction, from 1
	fault   func(call string) error
	lost    func(call string) error

	submitted map[uuid.UUID]int // requests that arrived
	counts    map[exchange.PaymentDirection]int
	plans     map[uuid.UUID]payer
	attempts  map[uuid.UUID]exchange.PaymentAttempt
	results   map[uuid.UUID]string // the code as the operator sees it now
	book      []moved
	stranger  bool // its notices name another payer than the prompted phone
	asked     int
	looked    int                             // queries of either direction
	heard     func(a exchange.PaymentAttempt) // called while a query is under way
}

func (o *operator) Capabilities() exchange.Capabilities {
	return exchange.Capabilities{PayoutIdempotent: true, QuerySync: true}
}

func refs(a exchange.PaymentAttempt) exchange.Refs {
	return exchange.Refs{CheckoutRequestID: "ws_CO_" + a.ID.String(), MerchantRequestID: "mr-" + a.ID.String()}
}

func (o *operator) SubmitCollection(_ context.Context, a exchange.PaymentAttempt) exchange.Submission {
	return o.submit(a, refs(a))
}

func (o *operator) SubmitPayout(_ context.Context, a exchange.PaymentAttempt) exchange.Submission {
	return o.submit(a, exchange.Refs{ConversationID: "AG_" + a.ID.String(), OriginatorConversationID: a.ID.String()})
}

func (o *operator) submit(a exchange.PaymentAttempt, names exchange.Refs) exchange.Submission {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fault != nil {
		if err := o.fault("submit"); err != nil {
			return exchange.Submission{State: exchange.Unknown, Cause: err}
		}
	}
	if a.Direction == exchange.Payout && o.submitted[a.ID] > 0 { // known by its id
		return exchange.Submission{State: exchange.Accepted, Code: "duplicate"}
	}
	o.counts[a.Direction]++
	p := o.script(a, o.counts[a.Direction])
	if p.unsent {
		return exchange.Submission{State: exchange.Unknown, Text: "no answer"}
	}
	if p.refuse != "" {
		return exchange.Submission{State: exchange.Refused, Code: p.refuse, Class: classOf(a, p.refuse), Transient: p.transient, Config: p.config}
	}
	o.submitted[a.ID]++
	o.plans[a.ID], o.attempts[a.ID] = p, a
	if p.early {
		o.settle(a, p)
	} else {
		o.later(p.after, func() { o.mu.Lock(); defer o.mu.Unlock(); o.settle(a, p) })
	}
	if p.deaf || (o.lost != nil && o.lost("submit") != nil) {
		return exchange.Submission{State: exchange.Unknown, Text: "no answer"}
	}
	return exchange.Submission{State: exchange.Accepted, Refs: names}
}

// classOf is the class of a code, as the driver derives it.
func classOf(a exchange.PaymentAttempt, code string) exchange.OutcomeClass {
	switch code {
	case "403.002.1001":
		return exchange.ClassCredential
	case "not_sent":
		return exchange.ClassBusy
	}
	return daraja.Classify(a.Direction, code)
}

// settle runs when the payer answers, or when the payout is made.
func (o *operator) settle(a exchange.PaymentAttempt, p payer) {
	o.finish(a, p, p.code)
	if p.late > 0 && p.code != "0" {
		p.silent = p.silent || p.quiet
		o.later(p.late, func() { o.mu.Lock(); defer o.mu.Unlock(); o.finish(a, p, "0") })
	}
}

func (o *operator) finish(a exchange.PaymentAttempt, p payer, code string) {
	o.results[a.ID] = code
	obs := o.observe(a, code)
	if code == "0" {
		amount := a.Amount
		if p.pays != "" {
			amount = money.Must(money.KES, p.pays)
		}
		m := moved{attempt: a, receipt: fmt.Sprintf("UKL%07d", len(o.book)+1), amount: amount, at: o.now(), payer: p}
		o.book = append(o.book, m)
		obs.Receipt, obs.Amount, obs.At = m.receipt, m.amount, m.at
		if (p.confirms || o.stranger) && a.Direction == exchange.Collection {
			o.confirm(o.row(m, exchange.SourceConfirmation))
		}
	}
	obs.Source = exchange.SourceCallback
	if p.foreign {
		obs.Refs.CheckoutRequestID = "ws_CO_somebody_else"
	}
	if p.silent {
		return
	}
	if p.reversed {
		o.book, o.results[a.ID] = o.book[:len(o.book)-1], "1"
	}
	o.callback(a, exchange.CallbackResult, obs)
	if p.twice {
		o.callback(a, exchange.CallbackResult, obs)
	}
}

func (o *operator) observe(a exchange.PaymentAttempt, code string) exchange.Observation {
	obs := exchange.Observation{Code: code, Class: classOf(a, code), State: exchange.SeenFailed}
	switch code {
	case "0":
		obs.State = exchange.SeenSucceeded
	case "1032", "1037", "1019":
		obs.Soft = true
	case "":
		obs.State = exchange.SeenPending
	}
	if a.Direction == exchange.Collection {
		obs.Refs = refs(a)
	} else {
		obs.Refs = exchange.Refs{OriginatorConversationID: a.ID.String()}
	}
	return obs
}

func (o *operator) callback(a exchange.PaymentAttempt, kind exchange.CallbackKind, obs exchange.Observation) {
	body, err := json.Marshal(obs)
	if err != nil {
		panic(err)
	}
	o.deliver(a, kind, body)
}

func (o *operator) row(m moved, w exchange.EvidenceSource) exchange.Observation {
	obs := exchange.Observation{
		State: exchange.SeenSucceeded, Source: w, Receipt: m.receipt, Amount: m.amount, Reference: m.attempt.Reference, At: m.at,
	}
	if o.stranger {
		obs.Phone = "254799999999"
	}
	return obs
}

func (o *operator) Resolve(_ context.Context, a exchange.PaymentAttempt) exchange.Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.looked++
	if o.heard != nil {
		o.heard(a)
	}
	noAnswer := exchange.Observation{State: exchange.SeenNoAnswer, Source: exchange.SourceQuery}
	if o.fault != nil && o.fault("resolve") != nil {
		return noAnswer
	}
	p := o.plans[a.ID]
	if p.mute || (a.Direction == exchange.Collection && a.CheckoutRequestID == "") {
		return noAnswer
	}
	obs := o.observe(a, o.results[a.ID])
	obs.Source = exchange.SourceQuery
	if p.lies && obs.State == exchange.SeenSucceeded {
		obs = o.observe(a, "1")
	}
	if a.Direction == exchange.Collection {
		return obs
	}
	o.asked++
	obs.Ticket = fmt.Sprintf("ticket-%d", o.asked)
	for _, m := range o.book {
		if m.attempt.ID == a.ID {
			obs.Receipt, obs.Amount = m.receipt, m.amount
		}
	}
	if o.submitted[a.ID] == 0 {
		return noAnswer
	}
	o.later(2*time.Second, func() { o.mu.Lock(); defer o.mu.Unlock(); o.callback(a, exchange.CallbackStatus, obs) })
	return exchange.Observation{State: exchange.SeenPending, Source: exchange.SourceQuery, Ticket: obs.Ticket}
}

func (o *operator) ParseCallback(kind exchange.CallbackKind, body []byte) ([]exchange.Observation, error) {
	var obs exchange.Observation
	if err := json.Unmarshal(body, &obs); err != nil {
		return nil, exchange.Errorf(exchange.CodeMalformed, "the %s callback can't be read", kind)
	}
	return []exchange.Observation{obs}, nil
}

func (o *operator) Pull(_ context.Context, from, to time.Time, offset int) ([]exchange.Observation, int, bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fault != nil {
		if err := o.fault("pull"); err != nil {
			return nil, 0, false, err
		}
	}
	var rows []exchange.Observation
	for _, m := range o.book {
		if m.attempt.Direction == exchange.Collection && !m.at.Before(from) && !m.at.After(to) && !m.payer.unlisted {
			rows = append(rows, o.row(m, exchange.SourceStatement))
		}
	}
	if offset >= len(rows) {
		return nil, offset, false, nil
	}
	return rows[offset:], len(rows), true, nil
}

// collected and paidOut return the sums that the operator's book holds for an order and its refund, or for a withdrawal.
func (o *operator) collected(order uuid.UUID) []moved { return o.movements(exchange.Collection, order) }

func (o *operator) paidOut(order uuid.UUID) []moved { return o.movements(exchange.Payout, order) }

func (o *operator) movements(d exchange.PaymentDirection, order uuid.UUID) []moved {
	o.mu.Lock()
	defer o.mu.Unlock()
	var list []moved
	for _, m := range o.book {
		if m.attempt.Direction == d && (m.attempt.OrderID == order || m.attempt.Object.ID == order) {
			list = append(list, m)
		}
	}
	return list
}
