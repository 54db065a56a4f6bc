package activities

import (
	"github.com/google/uuid"

	"kivuko/exchange"
)

// Actor is the person on whose behalf a flow acts, as the API established it. It travels in
// payloads and grants nothing: rights are checked before a flow hears of it.
type Actor struct {
	UserID    uuid.UUID     `json:"user_id"`
	Role      exchange.Role `json:"role"`
	IP        string        `json:"ip,omitempty"`
	RequestID string        `json:"request_id,omitempty"`
}

// Principal is the form in which the store wants to know who acts. Nobody is the flow itself.
func (a Actor) Principal() exchange.Principal {
	if a.UserID == uuid.Nil {
		return exchange.System("flow")
	}
	return exchange.Principal{UserID: a.UserID, Role: a.Role, IP: a.IP, RequestID: a.RequestID}
}
