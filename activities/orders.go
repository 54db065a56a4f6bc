package activities

import (
	"context"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// OrderStore stores orders for flows. Every method is one transaction and may be called again.
type OrderStore interface {
	// OpenOrder carries out an intent to buy. CloseOrder ends an order as an intent or a command asks, or by a rule.
	OpenOrder(ctx context.Context, a exchange.Asked) (exchange.Order, error)
	CloseOrder(ctx context.Context, id uuid.UUID, to exchange.OrderStatus, detail string, a exchange.Asked) (exchange.Order, error)
	SetOrderDetail(ctx context.Context, id uuid.UUID, detail string) error
	CompleteOrder(ctx context.Context, id uuid.UUID) (exchange.Order, error)
	RefundOrder(ctx context.Context, id uuid.UUID, reason string, by exchange.Principal) (exchange.Order, exchange.Refund, error)
	ChainPayment(ctx context.Context, id uuid.UUID) (exchange.ChainPayment, error)
	ChainPaymentOf(ctx context.Context, purpose exchange.ChainPurpose, objectID uuid.UUID) (exchange.ChainPayment, error)
	RetryChainPayment(ctx context.Context, paymentID uuid.UUID, by exchange.Principal) (exchange.ChainPayment, error)
	UseCommand(ctx context.Context, id uuid.UUID, objectType string, objectID uuid.UUID) (exchange.OperatorCommand, error)
	SealAudit(ctx context.Context) (int, error)
	AuditHead(ctx context.Context) (exchange.AuditHead, error)
	HasAuditHead(ctx context.Context, kept exchange.AuditHead) error
	Prune(ctx context.Context, limit int) (exchange.Pruned, error)
	KeepMonths(ctx context.Context, kept int) (exchange.Months, error)
	PurchaseProgress(ctx context.Context, orderID uuid.UUID) (exchange.PurchaseProgress, error)
	ParkedStore
	LiveStore
	actingStore
}

// Orders changes the rows of orders.
type Orders struct {
	Store OrderStore
	Index ParkedIndex
	Flows LiveFlows
	Heads AuditHeads // nil: the head of the audit log is only logged
	// EventsKept is how many whole months events stay in the log; zero for ever.
	EventsKept int
}

// AuditHeads keeps the head of the audit log outside the database.
type AuditHeads interface {
	Kept() (exchange.AuditHead, error)
	Keep(head exchange.AuditHead) error
}

// OrderState is the state of an order.
type OrderState struct {
	OrderID uuid.UUID            `json:"order_id"`
	Status  exchange.OrderStatus `json:"status"`
	Detail  string               `json:"detail,omitempty"`
}

// OpenedOrder is an order as it was opened: what the flow needs for its decisions and its details.
type OpenedOrder struct {
	OrderState
	Type       exchange.OrderType `json:"type"`
	Network    exchange.Network   `json:"network"`
	Asset      money.Asset        `json:"asset"`
	MerchantID uuid.UUID          `json:"merchant_id"`
	Crypto     money.Amount       `json:"crypto"`
	Fiat       money.Amount       `json:"fiat"`
	ExpiresAt  time.Time          `json:"expires_at"`
}

// OpenOrder inserts the order that an intent asks for and reserves its crypto. A second call with the same intent returns
// the same order. Refusals have the codes of the store's OpenOrder.
func (o *Orders) OpenOrder(ctx context.Context, in IntentInput) (OpenedOrder, error) {
	order, err := o.Store.OpenOrder(ctx, in.asked(ctx))
	if err != nil {
		return OpenedOrder{}, Failure(ctx, err)
	}
	return OpenedOrder{
		OrderState: stateOf(order), Type: order.Type, Network: order.Network, Asset: order.Asset, MerchantID: order.VendorID,
		Crypto: order.Price.Crypto, Fiat: order.Price.Fiat, ExpiresAt: order.ExpiresAt,
	}, nil
}

// CloseOrderInput ends an order that was never paid.
type CloseOrderInput struct {
	OrderID uuid.UUID            `json:"order_id"`
	To      exchange.OrderStatus `json:"to"`
	Detail  string               `json:"detail"`
	Behalf  Behalf               `json:"behalf,omitzero"`
}

// CloseOrder ends a pending order and releases its reservation. It fails with CodeStateConflict when the order was paid
// meanwhile.
func (o *Orders) CloseOrder(ctx context.Context, in CloseOrderInput) (OrderState, error) {
	order, err := o.Store.CloseOrder(ctx, in.OrderID, in.To, in.Detail, in.Behalf.asked(ctx))
	return stateOf(order), Failure(ctx, err)
}

// MarkOrderInput names what an order waits for.
type MarkOrderInput struct {
	OrderID uuid.UUID `json:"order_id"`
	Detail  string    `json:"detail"`
}

// MarkOrder writes what an order waits for into its row.
func (o *Orders) MarkOrder(ctx context.Context, in MarkOrderInput) error {
	return Failure(ctx, o.Store.SetOrderDetail(ctx, in.OrderID, in.Detail))
}

// OrderInput names an order.
type OrderInput struct {
	OrderID uuid.UUID `json:"order_id"`
}

// CompleteOrder pays the vendor and ends the order. The chain payment must be completed.
func (o *Orders) CompleteOrder(ctx context.Context, in OrderInput) (OrderState, error) {
	order, err := o.Store.CompleteOrder(ctx, in.OrderID)
	return stateOf(order), Failure(ctx, err)
}

// ObjectRef names an object that a command may be about.
type ObjectRef struct {
	Type string    `json:"type"`
	ID   uuid.UUID `json:"id"`
}

// The object types of commands.
const (
	ObjectOrder     = "order"
	ObjectException = "payment_exception"
	ObjectTransfer  = "transfer"
	// ObjectOTCDeposit has no command but the retry of a signal, which needs no row.
	ObjectOTCDeposit = "otc_deposit"
	ObjectWithdrawal = "otc_withdrawal"
	ObjectFeeSweep   = "fee_sweep"
	ObjectSwap       = "swap"
	ObjectMultisig   = "multisig_account"
	ObjectProposal   = "multisig_proposal"
	ObjectRefund     = "refund" // one by bank
)

// ProveInput asks whether a command exists for one of some objects.
type ProveInput struct {
	CommandID uuid.UUID   `json:"command_id"`
	Objects   []ObjectRef `json:"objects"`
}

// Proof is a command that the API wrote.
type Proof struct {
	CommandID uuid.UUID `json:"command_id"`
	Object    ObjectRef `json:"object"`
	Verb      string    `json:"verb"`
	// NoReceipt is set when the command's note is no receipt, which some decisions need. It is negative so that an older
	// proof without the field keeps its meaning.
	NoReceipt bool `json:"no_receipt,omitempty"`
}

// The verbs of commands.
const (
	VerbRetry   = "retry"
	VerbRefund  = "refund"
	VerbResolve = "resolve"
)

// ProveCommand finds the command and marks it as used. A command about another object is CodeNotFound.
func (o *Orders) ProveCommand(ctx context.Context, in ProveInput) (Proof, error) {
	for _, object := range in.Objects {
		c, err := o.Store.UseCommand(ctx, in.CommandID, object.Type, object.ID)
		if exchange.CodeOf(err) == exchange.CodeNotFound {
			continue
		}
		if err != nil {
			return Proof{}, Failure(ctx, err)
		}
		return Proof{CommandID: c.ID, Object: object, Verb: c.Verb, NoReceipt: exchange.ReceiptIn(c.Note) == ""}, nil
	}
	return Proof{}, Failure(ctx, exchange.Errorf(exchange.CodeNotFound, "There is no such command for this object."))
}

// Behalf names the command, for steps that act for whoever gave it.
func (p Proof) Behalf() Behalf { return Behalf{CommandID: p.CommandID} }

// RefundOrderInput refunds a paid order by an operator's command.
type RefundOrderInput struct {
	OrderID uuid.UUID `json:"order_id"`
	Proof   Proof     `json:"proof"`
}

// RefundOpened names the refund of an order or an exception.
type RefundOpened struct {
	OrderState
	RefundID uuid.UUID `json:"refund_id"`
}

// RefundOrder cancels the crypto payout and opens the refund of the whole payment. It is refused with CodeStateConflict
// while a transaction of the order may still move crypto.
func (o *Orders) RefundOrder(ctx context.Context, in RefundOrderInput) (RefundOpened, error) {
	by, err := actor(ctx, o.Store, in.Proof.Behalf())
	if err != nil {
		return RefundOpened{}, Failure(ctx, err)
	}
	order, refund, err := o.Store.RefundOrder(ctx, in.OrderID, "by command "+in.Proof.CommandID.String(), by)
	return RefundOpened{OrderState: stateOf(order), RefundID: refund.ID}, Failure(ctx, err)
}

// RetryPayoutInput lets a parked chain payment go on.
type RetryPayoutInput struct {
	PaymentID uuid.UUID `json:"payment_id"`
	Proof     Proof     `json:"proof,omitzero"`
}

// RetryPayout approves a parked chain payment again. A parked payment has no pending transaction, so another one can't pay
// twice. A payment that is not parked stays unchanged. It returns the payment that goes on: after officers corrected the
// address of an order, that is another one.
func (o *Orders) RetryPayout(ctx context.Context, in RetryPayoutInput) (PaymentApproved, error) {
	p, err := o.Store.ChainPayment(ctx, in.PaymentID)
	if err == nil && p.Status == exchange.ChainCancelled && p.Purpose == exchange.ForOrder {
		p, err = o.Store.ChainPaymentOf(ctx, p.Purpose, p.ObjectID)
	}
	if err == nil && p.Status == exchange.ChainParked {
		p, err = actedOn(ctx, o.Store, in.Proof.Behalf(), func(by exchange.Principal) (exchange.ChainPayment, error) {
			return o.Store.RetryChainPayment(ctx, p.ID, by)
		})
	}
	return PaymentApproved{PaymentID: p.ID, Network: p.Network}, Failure(ctx, err)
}

// Sealed is how many audit rows were sealed.
type Sealed struct {
	Rows int `json:"rows"`
}

// SealAudit seals the audit rows written since the last run into the hash chain, and keeps the new head outside the database and
// in the log. It seals nothing behind a log whose end was cut off: the head that was kept is missing then.
func (o *Orders) SealAudit(ctx context.Context) (Sealed, error) {
	var kept exchange.AuditHead
	if o.Heads != nil {
		var err error
		if kept, err = o.Heads.Kept(); err == nil {
			err = o.Store.HasAuditHead(ctx, kept)
		}
		if err != nil {
			activity.GetLogger(ctx).Error("ALERT the end of the audit log is missing, or its kept head can't be read, so nothing more is sealed", "kept", kept.N, "error", err)
			return Sealed{}, Failure(ctx, err)
		}
	}
	n, err := o.Store.SealAudit(ctx)
	if err != nil || n == 0 && o.Heads == nil {
		return Sealed{Rows: n}, Failure(ctx, err)
	}
	head, err := o.Store.AuditHead(ctx)
	if err != nil {
		return Sealed{Rows: n}, Failure(ctx, err)
	}
	if n > 0 {
		activity.GetLogger(ctx).Info("the head of the audit log", "n", head.N, "hash", head.Hash, "key", head.Key)
	}
	if o.Heads != nil && head.N > kept.N {
		err = o.Heads.Keep(head)
	}
	return Sealed{Rows: n}, Failure(ctx, err)
}

func stateOf(o exchange.Order) OrderState {
	return OrderState{OrderID: o.ID, Status: o.Status, Detail: o.StatusDetail}
}
