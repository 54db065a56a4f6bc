package exchange

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Event is one change of an object, in the event log. It is written in the same transaction as the change that it describes.
type Event struct {
	Cursor     int64  // global order, the value of ?after=
	ObjectType string // "order", "offer", ...
	ObjectID   uuid.UUID
	Sequence   int64  // per object, from 1, without a gap
	Type       string // "order.completed"
	// OwnerID and VendorID may read it besides staff; when both are zero, only staff may.
	OwnerID  uuid.UUID
	VendorID uuid.UUID
	Payload  json.RawMessage // the object at that time, without secrets and personal data
	At       time.Time
}

// ForMerchant is the event as a merchant sees it: without the address of a customer's refund in crypto. A payload that can't
// be parsed is left out.
func (e Event) ForMerchant(merchant uuid.UUID) Event {
	if e.OwnerID == merchant || len(e.Payload) == 0 || (e.ObjectType != "refund" && e.ObjectType != "chain_payment") {
		return e
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(e.Payload, &fields); err != nil {
		e.Payload = nil
		return e
	}
	if e.ObjectType == "chain_payment" && string(fields["purpose"]) != `"`+string(ForRefund)+`"` {
		return e
	}
	delete(fields, "address")
	delete(fields, "to_address")
	shown, err := json.Marshal(fields)
	if err != nil {
		shown = nil
	}
	e.Payload = shown
	return e
}

// AuditRecord is who did what, when, from where, and what changed. Rows are sealed into a hash chain after they are written.
type AuditRecord struct {
	ID         int64
	At         time.Time
	Actor      string // "user:<id>" or "system:<part>"
	Role       Role
	IP         string
	RequestID  string
	Action     string // "order.open", "offer.publish", ...
	ObjectType string
	ObjectID   uuid.UUID
	Before     json.RawMessage
	After      json.RawMessage
	Hash       string // empty until sealed
}

// OperatorCommand is an officer's decision about a parked flow. The API writes it after it checked the officer's permission.
// The flow acts on the row, never on the content of a signal.
type OperatorCommand struct {
	ID         uuid.UUID
	ObjectType string
	ObjectID   uuid.UUID
	Verb       string // "retry", "refund", "resolve"
	Note       string
	ActorID    uuid.UUID
	CreatedAt  time.Time
	UsedAt     time.Time
}
