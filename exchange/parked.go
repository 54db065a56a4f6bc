package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// ParkedFlow is a flow that waits for an operator. A flow keeps one while it is parked.
type ParkedFlow struct {
	WorkflowID string
	RunID      string
	Type       string // of the flow
	ObjectType string // what the flow is about; empty when it is about no single object
	ObjectID   uuid.UUID
	Reason     string
	Network    Network // zero when the flow is about no network
	Since      time.Time

	// What the object says when the list is read.
	OrderID    uuid.UUID // the order that the object belongs to
	CustomerID uuid.UUID
	MerchantID uuid.UUID
	Amount     money.Amount // zero without an asset
}

// ParkedFilter narrows a list of parked flows. Zero values narrow nothing.
type ParkedFilter struct {
	Reason  string
	Network Network
	// After is where the page before ended: the flow's Since and id.
	After ParkedPlace
	Size  int
}

// ParkedPlace is the place of a flow in the list: the longest parked come first.
type ParkedPlace struct {
	Since      time.Time
	WorkflowID string
}

// Place is where the flow stands in the list.
func (p ParkedFlow) Place() ParkedPlace { return ParkedPlace{Since: p.Since, WorkflowID: p.WorkflowID} }
