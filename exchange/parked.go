package exchange

import (
	"time"

	"github.com/google/uuid"

	"kivuko/exchange/money"
)

// ParkedFlow is a flow that waits for an operator. Its row exists while it is parked.
type ParkedFlow struct {
	WorkflowID string
	RunID      string
	Type       string // of the flow
	ObjectType string // what the flow is about; empty when it is about no single object
	ObjectID   uuid.UUID
	Reason     string
	Network    Network // zero when the flow has no network
	Since      time.Time

	// Read from the object at the time of the query.
	OrderID     uuid.UUID // the order that the object belongs to
	FeeSweepID  uuid.UUID
	SwapID      uuid.UUID
	MultisigID  uuid.UUID // the account of several owners that the object is
	ProposalID  uuid.UUID
	ExceptionID uuid.UUID // the open payment exception that the object is or has
	RefundID    uuid.UUID
	TransferID  uuid.UUID
	CustomerID  uuid.UUID
	MerchantID  uuid.UUID
	// WithdrawalID is the withdrawal that the object is or belongs to.
	WithdrawalID uuid.UUID
	DepositID    uuid.UUID    // the OTC deposit that the object is or belongs to
	Amount       money.Amount // zero without an asset
}

// ParkedFilter narrows a list of parked flows. A zero value does not filter.
type ParkedFilter struct {
	Reason  string
	Network Network
	// After is the position of the last flow of the previous page.
	After ParkedPlace
	Size  int
}

// ParkedPlace is a flow's position in the list: the longest parked come first.
type ParkedPlace struct {
	Since      time.Time
	WorkflowID string
}

// Place returns the flow's position in the list.
func (p ParkedFlow) Place() ParkedPlace { return ParkedPlace{Since: p.Since, WorkflowID: p.WorkflowID} }
