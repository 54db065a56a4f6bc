package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

// wireChange is a proposed loosening of the controls. Was and Change have the fields of their object, as the API
// shows them elsewhere.
type wireChange struct {
	ID           uuid.UUID       `json:"id"`
	Kind         string          `json:"kind"`
	SubjectID    *uuid.UUID      `json:"subject_id"`
	Was          json.RawMessage `json:"was"`
	Change       json.RawMessage `json:"change"`
	Status       string          `json:"status"`
	StatusDetail string          `json:"status_detail"`
	ProposedBy   uuid.UUID       `json:"proposed_by"`
	ProposedAt   timestamp       `json:"proposed_at"`
	ExpiresAt    timestamp       `json:"expires_at"`
	DecidedBy    *uuid.UUID      `json:"decided_by"`
	DecidedAt    *timestamp      `json:"decided_at"`
	Note         *string         `json:"note"`
	Digest       string          `json:"digest"` // of what is decided about
}

func changeWire(c exchange.ControlChange) wireChange {
	return wireChange{
		ID: c.ID, Kind: string(c.Kind), SubjectID: optID(c.SubjectID), Was: c.Was, Change: c.Change, Status: string(c.Status), StatusDetail: c.WaitsFor(),
		ProposedBy: c.ProposedBy, ProposedAt: stamp(c.ProposedAt), ExpiresAt: stamp(c.ExpiresAt), DecidedBy: optID(c.DecidedBy),
		DecidedAt: optTime(c.DecidedAt), Note: optText(c.Note), Digest: c.Digest(),
	}
}

// wirePendingChange lists the changes that wait for a second officer.
type wirePendingChange struct {
	Changes   []wireChange `json:"changes"`
	ConfirmAt []string     `json:"confirm_at"` // the operations by which a second officer confirms, one for each thing that waits
}

// answerPending answers a request that created changes which wait for a second officer. With exactly one change, the
// response has its location.
func answerPending(c *call, waits ...exchange.ControlChange) error {
	paths := each(waits, func(w exchange.ControlChange) string { return "/api/v1/auth/approvals/changes/" + w.ID.String() })
	if len(waits) == 1 {
		c.fc.Set(fiber.HeaderLocation, paths[0])
	}
	return c.json(http.StatusAccepted, wirePendingChange{each(waits, changeWire), each(paths, func(p string) string { return p + "/confirm" })})
}

// proposal proposes a change of which the caller says no more than why; a second officer confirms it.
func (s *server) proposal(longest int, propose func(context.Context, string, exchange.Principal) (exchange.ControlChange, error)) func(*call) error {
	return func(c *call) error {
		f, err := c.body()
		if err != nil {
			return err
		}
		note := f.line("note", true, longest)
		if err := f.done(); err != nil {
			return err
		}
		waits, err := propose(c.ctx, note, c.who)
		if err != nil {
			return err
		}
		return answerPending(c, waits)
	}
}

var controlStatuses = names(exchange.ControlChangeMachine.States())

// listChanges lists proposed changes, decided ones too.
func (s *server) listChanges(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.ControlFilter{
		Status:    exchange.ControlStatus(q.oneOf("status", controlStatuses...)),
		SubjectID: q.id("subject_id"),
	}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "changes", page, changeWire)(s.Store.ControlChanges(c.ctx, filter, page))
}

type changeVerb func(ctx context.Context, id uuid.UUID, note string, by exchange.Principal) (exchange.ControlChange, error)

// decideChange is a second officer's decision about a change that another officer proposed.
func (s *server) decideChange(do changeVerb, wantsNote bool) func(*call) error {
	return func(c *call) error {
		id, f, err := c.idAndBody()
		if err != nil {
			return err
		}
		note, digest := f.line("note", wantsNote, maxNoteLength), f.line("digest", true, digestLength)
		if err := f.done(); err != nil {
			return err
		}
		seen, err := s.Store.ControlChange(c.ctx, id)
		if err != nil {
			return hideAbsence(err)
		}
		if digest != seen.Digest() { // what a change says never changes, so the decision is about what was seen
			return exchange.Invalid(exchange.FieldError{Pointer: "/digest", Code: "mismatch", Message: "must be the change's digest"})
		}
		change, err := do(c.ctx, id, note, c.who)
		if err != nil {
			return hideAbsence(err)
		}
		s.sessions.forgetAll() // a confirmed user is active now
		if change.Kind == exchange.ControlFloatMove && change.Status == exchange.ControlConfirmed {
			if err := s.Flows.MoveFloat(c.ctx, change.ID); err != nil {
				s.log.Warn("the flow of a movement of float was not started; the next check of the float starts it", "move", change.ID, "error", err)
			}
		}
		s.wakePayouts(c.ctx, change)
		s.notifyOfDecision(c, change)
		s.passAttestationOn(c, change)
		s.passAddressOn(c, change)
		s.passRefundOn(c, change)
		s.passFailureOn(c, change)
		s.passResolutionOn(c, change)
		s.startFeeSweeps(c, change)
		s.startMultisig(c, change)
		s.passBankRefundOn(c, change)
		s.passBankRefusalOn(c, change)
		return c.json(http.StatusOK, changeWire(change))
	}
}
