package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

// keyRule is how a route uses the header Idempotency-Key.
type keyRule int

const (
	keyNone     keyRule = iota // ignored: reads, sessions, and idempotent verbs
	keyOptional                // creates something; with a key a retry is safe
	keyRequired                // moves money
)

const (
	headerKey      = "Idempotency-Key"
	headerReplayed = "Idempotency-Replayed"
)

// replayedHeaders are kept with a stored response.
var replayedHeaders = []string{fiber.HeaderContentType, fiber.HeaderLocation}

// idempotent runs a handler under the caller's key. Unique ids protect the money: the claim's object id
// becomes the id of the order or wallet, so a handler that runs twice, before and after a crash, creates
// only one.
func (s *server) idempotent(c *call) error {
	key, err := c.key()
	if err != nil {
		return err
	}
	if key == "" {
		c.objectID = newID()
		return c.route.handle(c)
	}
	scope := c.scope()
	print := s.hasher.fingerprint(c.fc.Path(), c.fc.Request().Body())
	claim, err := s.Store.IdempotencyBegin(c.ctx, scope, key, print)
	if err != nil {
		return err
	}
	switch claim.State {
	case store.IdempotencyReplay:
		return replay(c.fc, claim)
	case store.IdempotencyReused:
		return exchange.Errorf(exchange.CodeIdempotencyReused, "This Idempotency-Key was used for another request. Use a new key for each request.")
	case store.IdempotencyInFlight:
		c.fc.Set(fiber.HeaderRetryAfter, "2")
		return exchange.Errorf(exchange.CodeIdempotencyBusy, "The first request with this Idempotency-Key is still running. Repeat the request in a moment.")
	case store.IdempotencyNew:
	}
	c.objectID = claim.ObjectID
	failure := c.route.handle(c)
	if failure != nil {
		if err := s.writeError(c.fc, failure); err != nil {
			return err
		}
	}
	s.keep(c, scope, key, exchange.CodeOf(failure) == exchange.CodeStepUpRequired)
	return nil
}

// keepTimeout bounds the storing of a response.
const keepTimeout = 3 * time.Second

// keep stores the response under the key, unless it is a failure of the service or says that the caller has to prove itself and then
// repeat the request. After these the claim is released but keeps its object id, and the client's retry runs the handler again.
func (s *server) keep(c *call, scope, key string, unproven bool) {
	status := c.fc.Response().StatusCode()
	// The handler may have used up the request's time. The claim must still be settled, because the client is
	// asked to retry with the same key.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), s.within(keepTimeout))
	defer cancel()
	var err error
	if status >= http.StatusInternalServerError && status != http.StatusNotImplemented || status == http.StatusTooManyRequests || unproven {
		err = s.Store.IdempotencyAbandon(ctx, scope, key)
	} else {
		header := map[string]string{}
		for _, name := range replayedHeaders {
			if v := c.fc.GetRespHeader(name); v != "" {
				header[name] = v
			}
		}
		err = s.Store.IdempotencyFinish(ctx, scope, key, status, header, c.fc.Response().Body())
	}
	if err != nil {
		// The claim stays. Another request can take it over later, with the same object id.
		s.log.Error("idempotency record not kept", "request_id", c.who.RequestID, "error", err)
	}
}

func replay(fc *fiber.Ctx, r store.IdempotencyRecord) error {
	for name, value := range r.Header {
		fc.Set(name, value)
	}
	fc.Set(headerReplayed, "true")
	return fc.Status(r.Status).Send(r.Body)
}

// key reads the header: 1 to 255 visible ASCII characters.
func (c *call) key() (string, error) {
	all := c.fc.Request().Header.PeekAll(headerKey)
	bad := func(message string) error {
		return exchange.Invalid(exchange.FieldError{Pointer: "header/" + headerKey, Code: "format", Message: message})
	}
	switch {
	case len(all) == 0 && c.route.key == keyRequired:
		return "", exchange.Errorf(exchange.CodeIdempotencyRequired,
			"This request moves money. Send an Idempotency-Key, for example a UUID. Send the same key when you retry.")
	case len(all) == 0:
		return "", nil
	case len(all) > 1:
		return "", bad("must be given once")
	}
	key := string(all[0])
	if key == "" || len(key) > maxIdempotency || !visibleASCII(key) {
		return "", bad(fmt.Sprintf("must be 1 to %d visible ASCII characters", maxIdempotency))
	}
	return key, nil
}

// scope separates the keys of different callers and routes.
func (c *call) scope() string {
	caller := "user:" + c.who.UserID.String()
	if c.who.UserID == uuid.Nil {
		caller = "address:" + c.who.IP
	}
	return caller + " " + c.route.method + " " + c.route.path
}
