package activities

import (
	"context"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
)

// Behalf names the row by which a step acts for somebody: an intent or an operator's command. Without either the flow acts
// by a rule of its own. Who it is stands in the row and never in a payload.
type Behalf struct {
	IntentID  uuid.UUID `json:"intent_id,omitzero"`
	CommandID uuid.UUID `json:"command_id,omitzero"`
}

// IntentInput is the input of a step that carries out an intent.
type IntentInput struct {
	IntentID uuid.UUID `json:"intent_id"`
}

// asked names the row, and the flow that this activity belongs to, by what the server says and not the payload.
func (b Behalf) asked(ctx context.Context) exchange.Asked {
	a := exchange.Asked{IntentID: b.IntentID, CommandID: b.CommandID}
	if activity.IsActivity(ctx) {
		a.Flow = activity.GetInfo(ctx).WorkflowExecution.ID
	}
	return a
}

func (in IntentInput) asked(ctx context.Context) exchange.Asked {
	return Behalf{IntentID: in.IntentID}.asked(ctx)
}

// actingStore says for whom a flow acts.
type actingStore interface {
	// Acting returns the caller of an intent, the operator of a command, or the flow itself without either.
	Acting(ctx context.Context, a exchange.Asked) (exchange.Principal, error)
}

// actor returns for whom a step acts.
func actor(ctx context.Context, s actingStore, b Behalf) (exchange.Principal, error) {
	return s.Acting(ctx, b.asked(ctx))
}

// actedOn runs a change on behalf of whom the row names, and returns its result.
func actedOn[T any](ctx context.Context, s actingStore, b Behalf, change func(by exchange.Principal) (T, error)) (T, error) {
	by, err := actor(ctx, s, b)
	if err != nil {
		var none T
		return none, err
	}
	return change(by)
}
