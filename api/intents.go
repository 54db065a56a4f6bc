package api

import (
	"slices"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// ask writes down what the caller asks for and has the flow carry it out, by the id of the intent alone. A refusal ends the
// intent before the caller learns of it, so that nothing opens later what the caller was told is not opened.
func (s *server) ask(c *call, kind exchange.IntentKind, object uuid.UUID, terms exchange.Terms, send func(intent uuid.UUID) error) error {
	if c.objectID == uuid.Nil { // a route without idempotency keys
		c.objectID = newID()
	}
	asked, err := s.Store.SaveIntent(c.ctx, exchange.Intent{ID: c.objectID, Kind: kind, ObjectID: object, By: c.who, Terms: terms})
	if err != nil {
		return err
	}
	refusal := send(asked.ID)
	if refusal == nil || slices.Contains(undecided, exchange.CodeOf(refusal)) {
		return refusal
	}
	if err := s.Store.RefuseIntent(c.ctx, asked.ID, exchange.CodeOf(refusal)); err != nil {
		return err
	}
	return refusal
}

// forget ends the transfer that was written down beside a verb that was refused, so that nothing opens it on its own. One whose verb
// may still be carried out stays.
func (s *server) forget(c *call, transfer uuid.UUID, refusal error) error {
	if refusal == nil || transfer == uuid.Nil || slices.Contains(undecided, exchange.CodeOf(refusal)) {
		return refusal
	}
	if err := s.Store.RefuseIntent(c.ctx, transfer, exchange.CodeOf(refusal)); err != nil {
		return err
	}
	return refusal
}

// undecided are the codes of failures after which the flow may still carry out the intent. The caller is asked to repeat the
// request.
var undecided = []exchange.Code{exchange.CodeUnavailable, exchange.CodeInternal, exchange.CodeRateLimited}
