package api

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"sync"
	"time"

	"kivuko/exchange"
	"kivuko/momo"
)

// A callback token is the unguessable part of an attempt's callback address.
const (
	minCallbackToken = 16
	maxCallbackToken = 128
	wakeTimeout      = 10 * time.Second
	// The operator waits eight seconds for the answer to a validation request (portal, C2B).
	validationTimeout = 5 * time.Second
	maxWakers         = 64
)

// momoCallback takes a notice of the mobile money operator. The operator sends each notice once, so the body is
// stored before it is processed: in the database, or on disk while the database is down. Only when neither works
// does the operator get an error. Unknown addresses get the same answer, so that callers can't probe for valid ones.
// The notice only wakes the flow, which asks a second source before money counts.
func (s *server) momoCallback(c *call) error {
	token, kind := c.fc.Params("token"), exchange.CallbackKind(c.fc.Params("kind"))
	if !kind.Valid() || len(token) < minCallbackToken || len(token) > maxCallbackToken || !visibleASCII(token) {
		return exchange.Errorf(exchange.CodeNotFound, "This path does not exist.")
	}
	n := notice{
		ID: newID(), Token: token, Kind: kind, RemoteIP: c.who.IP, Body: bytes.Clone(c.fc.Request().Body()), ReceivedAt: s.now().UTC(),
		Standing: s.standing(token),
	}
	if len(s.Config.CallbackSources) > 0 && !containsText(s.Config.CallbackSources, c.who.IP) {
		n.OffRange = true
		s.metrics.callbacks.WithLabelValues("off_range").Inc()
		s.log.Warn("ALERT callback from outside the operator's addresses", "request_id", c.who.RequestID, "callback_id", n.ID)
	}
	ctx, cancel := c.ctx, context.CancelFunc(func() {})
	if kind == exchange.CallbackValidation {
		ctx, cancel = context.WithTimeout(ctx, s.within(validationTimeout))
	}
	defer cancel()
	outcome, act, err := s.take(ctx, n)
	s.metrics.callbacks.WithLabelValues(outcome).Inc()
	if err != nil {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The notice could not be stored. Send it again.")
	}
	if act != nil {
		s.wakers.start(act)
	}
	c.fc.Set("Content-Type", "application/json")
	return c.fc.Status(http.StatusOK).Send(s.Answer(s.verdict(ctx, n)))
}

// verdict returns the answer to a notice. All notices are accepted. Only a validation request may be rejected, and only
// where that is configured and the store reports in time that nothing waits for the payment.
func (s *server) verdict(ctx context.Context, n notice) momo.Answer {
	if n.Kind != exchange.CallbackValidation || !s.Config.RejectUnknown || !n.Standing || n.OffRange || s.Notices == nil {
		return momo.Accept
	}
	seen, err := s.Notices(n.Kind, n.Body)
	if err != nil || len(seen) != 1 {
		return momo.Accept
	}
	known, fits, err := s.Store.AwaitsPayment(ctx, seen[0].Reference, seen[0].Amount)
	switch {
	case err != nil: // better an unmatched payment than a rejected one
		s.log.Warn("a payment is accepted without validation", "callback_id", n.ID, "error", err)
		return momo.Accept
	case !known:
		return momo.UnknownAccount
	case !fits:
		return momo.WrongAmount
	}
	return momo.Accept
}

// toDisk stores a notice on disk that the database did not take. The mobile money operator sends each notice once, so the
// payment of a notice that is rejected here has to be queried; the alert counts such notices.
func (s *server) toDisk(n notice) (string, func(), error) {
	err := s.inbox.spool.keep(n)
	s.metrics.measure(s.inbox.spool)
	switch {
	case errors.Is(err, errSpoolFull):
		s.log.Error("ALERT callback refused: the spool is full", "callback_id", n.ID, "off_range", n.OffRange, "error", err)
		return "spool_full", nil, err
	case err != nil:
		s.log.Error("ALERT a callback could be stored neither in the database nor on disk", "callback_id", n.ID, "error", err)
		return "lost", nil, err
	}
	return "spooled", nil, nil
}

// standing reports whether a token is the standing token: that of the addresses which belong to no attempt. The operator
// reports payments that payers start themselves, and balances, there.
func (s *server) standing(token string) bool {
	ours := s.Config.StandingToken
	return ours != "" && subtle.ConstantTimeCompare([]byte(ours), []byte(token)) == 1
}

// take stores a notice, in the database or on disk. It returns the outcome and, for a notice in the database, a function
// that does what the notice asks for.
func (s *server) take(ctx context.Context, n notice) (string, func(), error) {
	of, err := s.inbox.match(ctx, n)
	if err == nil && of.unassigned() && !n.Standing && !s.unknown.allow() {
		return "dropped", nil, nil
	}
	if err == nil {
		err = s.Store.SaveCallback(ctx, n.callback(of))
	}
	if err != nil {
		s.log.Error("the database did not take a callback; it is stored on disk", "callback_id", n.ID, "error", err)
		return s.toDisk(n)
	}
	act := inTime(func(ctx context.Context) { s.inbox.act(ctx, n, of) })
	switch {
	case n.Standing:
		return "standing", act, nil
	case of.unassigned():
		return "unknown", nil, nil
	}
	return "stored", act, nil
}

// inTime bounds work that runs in the background of a request.
func inTime(do func(context.Context)) func() {
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), wakeTimeout)
		defer cancel()
		do(ctx)
	}
}

// wakers runs a bounded number of wake-ups in the background. Above the bound, a request waits for its own wake-up.
type wakers struct {
	slots chan struct{}
	wait  sync.WaitGroup
}

func newWakers(n int) *wakers { return &wakers{slots: make(chan struct{}, n)} }

func (w *wakers) start(do func()) {
	select {
	case w.slots <- struct{}{}:
		w.wait.Go(func() {
			defer func() { <-w.slots }()
			do()
		})
	default:
		do()
	}
}
