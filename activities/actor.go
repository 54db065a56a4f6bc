package activities

import (
	"github.com/google/uuid"

	"kivuko/exchange"
)

// Actor is the user on whose behalf a flow acts, as the API authenticated them. It is part of payloads and grants no rights:
// the API checks rights before it calls a flow.
type Actor struct {
	UserID    uuid.UUID     `json:"user_id"`
	Role      exchange.Role `json:"role"`
	IP        string        `json:"ip,omitempty"`
	RequestID string        `json:"request_id,omitempty"`
}

// Principal returns the actor in the store's form. Without a user it is the flow itself.
func (a Actor) Principal() exchange.Principal {
	if a.UserID == uuid.Nil {
		return exchange.System("flow")
	}
	return exchange.Principal{UserID: a.UserID, Role: a.Role, IP: a.IP, RequestID: a.RequestID}
}
