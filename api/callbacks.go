package api

import (
	"bytes"
	"context"
	"crypto/subtle"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// A callback token is the unguessable part of an attempt's address.
const (
	minCallbackToken = 16
	maxCallbackToken = 128
	wakeTimeout      = 10 * time.Second
	// The operator waits eight seconds for an answer to the question whether to let a payment in (portal, C2B).
	validationTimeout = 5 * time.Second
	maxWakers         = 64
)

// callbackAnswer is what the operator takes for a receipt of its notice.
var callbackAnswer = []byte(`{"ResultCode":"0","ResultDesc":"Accepted"}`)

// The answers that send a payment away (portal, C2B result codes): the account is not known, the amount is not asked for.
var (
	rejectAccount = []byte(`{"ResultCode":"C2B00012","ResultDesc":"Rejected"}`)
	rejectAmount  = []byte(`{"ResultCode":"C2B00013","ResultDesc":"Rejected"}`)
)

// momoCallback takes a notice of the mobile money operator. The operator says each thing once, so the
// body is stored before anything is made of it, on disk when the database is away, and only when it
// could be kept nowhere is the operator told so. The answer is the same for addresses that belong to
// nothing, so that they can't be searched for. The notice only wakes the flow, which asks a second
// witness before money counts.
func (s *server) momoCallback(c *call) error {
	token, kind := c.fc.Params("token"), exchange.CallbackKind(c.fc.Params("kind"))
	if !kind.Valid() || len(token) < minCallbackToken || len(token) > maxCallbackToken || !visibleASCII(token) {
		return exchange.Errorf(exchange.CodeNotFound, "There is nothing at this address.")
	}
	notice := spooled{
		ID: newID(), Token: token, Kind: kind, RemoteIP: c.who.IP, Body: bytes.Clone(c.fc.Request().Body()), ReceivedAt: s.now().UTC(),
		Standing: s.standing(token),
	}
	if len(s.Config.CallbackSources) > 0 && !containsText(s.Config.CallbackSources, c.who.IP) {
		notice.OffRange = true
		s.metrics.callbacks.WithLabelValues("off_range").Inc()
		s.log.Warn("ALERT callback from outside the operator's addresses", "request_id", c.who.RequestID, "callback_id", notice.ID)
	}
	ctx, cancel := c.ctx, context.CancelFunc(func() {})
	if kind == exchange.CallbackValidation {
		ctx, cancel = context.WithTimeout(ctx, validationTimeout)
	}
	defer cancel()
	outcome, wake, err := s.take(ctx, notice)
	s.metrics.callbacks.WithLabelValues(outcome).Inc()
	if err != nil {
		return exchange.Wrap(exchange.CodeUnavailable, err, "The notice could not be kept. Send it again.")
	}
	if wake != nil {
		s.wakers.start(wake)
	}
	c.fc.Set("Content-Type", "application/json")
	return c.fc.Status(http.StatusOK).Send(s.verdict(ctx, notice))
}

// verdict answers a notice. All are taken; only the question whether to let a payment in may be answered with no, and
// only where that is configured and the store says in time that nothing waits for the payment.
func (s *server) verdict(ctx context.Context, n spooled) []byte {
	if n.Kind != exchange.CallbackValidation || !s.Config.RejectUnknown || !n.Standing || n.OffRange || s.Notices == nil {
		return callbackAnswer
	}
	seen, err := s.Notices(n.Kind, n.Body)
	if err != nil || len(seen) != 1 {
		return callbackAnswer
	}
	known, fits, err := s.Store.AwaitsPayment(ctx, seen[0].Reference, seen[0].Amount)
	switch {
	case err != nil: // a payment that fits nothing is better than one that is lost
		s.log.Warn("a payment is let in without a look", "callback_id", n.ID, "error", err)
		return callbackAnswer
	case !known:
		return rejectAccount
	case !fits:
		return rejectAmount
	}
	return callbackAnswer
}

// toDisk keeps a notice that the database did not take. The operator says each thing once, so one that is
// turned away here has to be asked for; the alert tells how many.
func (s *server) toDisk(n spooled) (string, func(), error) {
	err := s.spool.keep(n)
	s.metrics.measure(s.spool)
	switch {
	case errors.Is(err, errSpoolFull):
		s.log.Error("ALERT callback turned away: the spool is full", "callback_id", n.ID, "off_range", n.OffRange, "error", err)
		return "spool_full", nil, err
	case err != nil:
		s.log.Error("ALERT callback could be kept nowhere", "callback_id", n.ID, "error", err)
		return "lost", nil, err
	}
	return "spooled", nil, nil
}

// standing tells whether a token is that of the addresses that belong to no attempt, where the operator
// reports payments that payers start themselves, balances and the like.
func (s *server) standing(token string) bool {
	ours := s.Config.StandingToken
	return ours != "" && subtle.ConstantTimeCompare([]byte(ours), []byte(token)) == 1
}

// take keeps a notice: in the database, or on disk. It returns what became of it and how to wake the
// flow that waits for it.
func (s *server) take(ctx context.Context, n spooled) (string, func(), error) {
	of, err := s.spool.match(ctx, n)
	if err == nil && of.nobody() && !n.Standing && !s.unknown.allow() {
		return "dropped", nil, nil
	}
	if err == nil {
		err = s.Store.SaveCallback(ctx, n.callback(of))
	}
	switch {
	case err != nil:
		s.log.Error("callback goes to disk", "callback_id", n.ID, "error", err)
		return s.toDisk(n)
	case s.spool.takes(n):
		return "standing", inTime(func(ctx context.Context) { s.spool.note(ctx, n) }), nil
	case n.Standing:
		return "standing", nil, nil
	case of.nobody():
		return "unknown", nil, nil
	case of.move != uuid.Nil:
		return "stored", nil, nil // its flow looks by itself
	}
	return "stored", inTime(func(ctx context.Context) { s.spool.wake(ctx, of.attempt, n.ID) }), nil
}

// inTime bounds what goes on beside a request.
func inTime(do func(context.Context)) func() {
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), wakeTimeout)
		defer cancel()
		do(ctx)
	}
}
