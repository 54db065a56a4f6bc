package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// OrderFilter narrows a list of orders; the interval is half open.
type OrderFilter struct {
	Status      exchange.OrderStatus
	Type        exchange.OrderType
	Subtype     exchange.OrderSubtype
	OfferID     uuid.UUID
	Network     exchange.Network
	Asset       money.Asset
	CustomerID  uuid.UUID
	VendorID    uuid.UUID
	Least, Most *money.Amount // of crypto, both inclusive
	CreatedFrom time.Time
	CreatedTo   time.Time
}

func orderRecord(name string, by exchange.Principal, before *exchange.Order, after exchange.Order) auditEvent {
	f := auditEvent{by: by, object: "order", id: after.ID, name: name, owner: after.CustomerID, vendor: after.VendorID, after: orderSnapshot(after)}
	if after.VendorID == exchange.PlatformTreasury {
		f.vendor = after.CustomerID // a merchant that sells to the house may read it; the house's account reads nothing
	}
	if before != nil {
		f.before = orderSnapshot(*before)
	}
	return f
}

var readScopedOrder = `SELECT ` + orderColumns + ` FROM orders o
WHERE o.id = $1 AND o.deleted_at IS NULL AND ($2 OR o.customer_id = $3 OR o.vendor_id = $4 OR o.customer_id = $4)`

// OrderByID reads an order for its own flow.
func (s *Store) OrderByID(ctx context.Context, id uuid.UUID) (exchange.Order, error) {
	return s.Order(ctx, Everything(), id)
}

// Order reads an order.
func (s *Store) Order(ctx context.Context, v View, id uuid.UUID) (exchange.Order, error) {
	all, owner, vendor := v.args()
	return readOne[exchange.Order](ctx, s.db, "order", readScopedOrder, id, all, owner, vendor)
}

// ListOrders pages through the orders, newest first, with their number.
func (s *Store) ListOrders(ctx context.Context, v View, f OrderFilter, p Page) ([]exchange.Order, int, error) {
	var w where
	w.add(`o.deleted_at IS NULL`)
	if err := s.scopeOrders(ctx, &w, v); err != nil {
		return nil, 0, translate(err, "order")
	}
	w.eq("o.status", string(f.Status))
	w.eq("o.order_type", string(f.Type))
	w.eq("o.order_subtype", string(f.Subtype))
	w.id("o.offer_id", f.OfferID)
	w.eq("o.network", string(f.Network))
	w.eq("o.asset", string(f.Asset))
	w.id("o.customer_id", f.CustomerID)
	w.id("o.vendor_id", f.VendorID)
	if f.Least != nil {
		w.add(`o.crypto_amount >= ?`, f.Least.Decimal())
	}
	if f.Most != nil {
		w.add(`o.crypto_amount <= ?`, f.Most.Decimal())
	}
	w.between("o.created_at", f.CreatedFrom, f.CreatedTo)
	return readPage[exchange.Order](ctx, s, "order", list{columns: orderColumns, from: "orders o", where: w, order: "o.created_at DESC, o.id DESC"}, p)
}

const soldToTheHouse = `SELECT EXISTS (SELECT FROM orders WHERE customer_id = $1 AND deleted_at IS NULL)`

// scopeOrders filters by the orders that a view may see. A merchant that sold its own crypto to the house is the
// customer of those orders; only then both columns are searched, because one index can't serve both.
func (s *Store) scopeOrders(ctx context.Context, w *where, v View) error {
	_, _, vendor := v.args()
	var both bool
	if vendor.Valid {
		if err := s.db.Get(ctx, &both, soldToTheHouse, vendor.UUID); err != nil {
			return err
		}
	}
	if both {
		w.add(`(o.vendor_id = ? OR o.customer_id = ?)`, vendor.UUID, vendor.UUID)
		return nil
	}
	w.scope(v, "o.customer_id", "o.vendor_id")
	return nil
}

var lockOrder = `SELECT ` + orderColumns + ` FROM orders o WHERE o.id = $1 FOR NO KEY UPDATE`

func (t unitTx) lockedOrder(ctx context.Context, id uuid.UUID) (exchange.Order, error) {
	return readOne[exchange.Order](ctx, t, "order", lockOrder, id)
}

// saveOrder stores an order that differs from before, with its event and audit row.
func (t unitTx) saveOrder(ctx context.Context, name string, by exchange.Principal, before, o exchange.Order) (exchange.Order, error) {
	from := []exchange.OrderStatus{before.Status}
	if o.Status != before.Status {
		if err := o.Machine().Allow(before.Status, o.Status); err != nil {
			return before, err
		}
		from = o.Machine().Sources(o.Status)
	}
	o.UpdatedAt = t.s.now()
	if o.Status == exchange.OrderCompleted && before.Status != exchange.OrderCompleted {
		o.CompletedAt = o.UpdatedAt
	}
	o.Version = before.Version + 1
	values, err := columnsOf(o, changedFields)
	if err != nil {
		return before, err
	}
	if err := t.One(ctx, updateOrder, append([]any{o.ID, before.Version, pq.Array(from)}, values...)...); err != nil {
		return before, err
	}
	return o, t.record(ctx, orderRecord(name, by, &before, o))
}

// flow is the principal of an order's own workflow.
var flow = exchange.System("flow")

// SetOrderDetail stores what an order waits for. It does nothing to an order that has ended.
func (s *Store) SetOrderDetail(ctx context.Context, id uuid.UUID, detail string) error {
	_, err := change(ctx, s, "order", id, func(ctx context.Context, t unitTx) (exchange.Order, exchange.Posting, error) {
		o, err := t.lockedOrder(ctx, id)
		if err == nil {
			o, err = t.setDetail(ctx, o, detail)
		}
		return o, exchange.Posting{}, err
	})
	return err
}

// setDetail stores what a locked order waits for. An order that has ended is left as it is.
func (t unitTx) setDetail(ctx context.Context, before exchange.Order, detail string) (exchange.Order, error) {
	if before.StatusDetail == detail || before.Machine().Terminal(before.Status) {
		return before, nil
	}
	o := before
	o.StatusDetail = detail
	return t.saveOrder(ctx, "order.detail_changed", flow, before, o)
}

// returnReservation returns an unpaid order's reservation to its offer, which may become active again, and its value
// to its customer's limits. Without a live offer the reservation is simply released.
func (t unitTx) returnReservation(ctx context.Context, o exchange.Order) (exchange.Posting, error) {
	p := exchange.Posting{Holds: []exchange.HoldOp{{Verb: exchange.HoldReturn, Hold: exchange.Hold{ID: o.HoldID}}}}
	for _, use := range []string{"order", repriceUse} {
		if err := t.releaseLimit(ctx, use, o.ID); err != nil {
			return p, err
		}
	}
	if o.OfferID == uuid.Nil {
		return p, nil
	}
	offer, err := t.lockedOffer(ctx, o.OfferID)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return p, nil // deleted meanwhile
	}
	if err != nil || offer.Status == exchange.OfferClosed {
		return p, err
	}
	back := o.Price.Crypto
	if o.OffRamp() {
		back = o.Price.Vendor
	}
	_, err = t.settleOffer(ctx, offer, offer.After(offer.Reserved.Add(back)), flow)
	return p, err
}

// CloseOrder ends an order that waits for its payment, as cancelled or failed, and returns its reservation to the
// offer: as an intent or a command asks, or by the flow's own rule. An order that ended in the same way is returned as it
// is; any other state is CodeStateConflict, because money may be on its way.
func (s *Store) CloseOrder(ctx context.Context, id uuid.UUID, to exchange.OrderStatus, detail string, a exchange.Asked) (exchange.Order, error) {
	if to != exchange.OrderCancelled && to != exchange.OrderFailed {
		return exchange.Order{}, exchange.Errorf(exchange.CodeStateConflict, "An order can't be closed as %s.", to)
	}
	return change(ctx, s, "order", id, func(ctx context.Context, t unitTx) (exchange.Order, exchange.Posting, error) {
		var none exchange.Posting
		before, err := t.lockedOrder(ctx, id)
		if err != nil {
			return before, none, err
		}
		by, done, err := t.act(ctx, a, id, exchange.IntendPurchaseCancel)
		if err != nil || done || before.Status == to {
			return before, none, err
		}
		if before.Status != exchange.OrderPending {
			return before, none, exchange.Errorf(exchange.CodeStateConflict, "An order that is %s can't become %s.", before.Status, to)
		}
		o := before
		o.Status, o.StatusDetail = to, detail
		if o, err = t.saveOrder(ctx, "order."+string(to), by, before, o); err != nil {
			return before, none, err
		}
		p, err := t.returnReservation(ctx, o)
		return o, p, err
	})
}

// CompleteOrder ends an order whose crypto arrived finally: it needs the completed chain payment, and pays the
// merchant. A completed order is returned as it is.
func (s *Store) CompleteOrder(ctx context.Context, id uuid.UUID) (exchange.Order, error) {
	return change(ctx, s, "order", id, func(ctx context.Context, t unitTx) (exchange.Order, exchange.Posting, error) {
		var none exchange.Posting
		before, err := t.lockedOrder(ctx, id)
		if err != nil || before.Status == exchange.OrderCompleted {
			return before, none, err
		}
		p, found, err := t.paymentOf(ctx, exchange.ForOrder, id)
		if err != nil {
			return before, none, err
		}
		if !found || p.Status != exchange.ChainCompleted {
			return before, none, exchange.Errorf(exchange.CodeStateConflict, "The transaction of the order's crypto is not final yet.")
		}
		o := before
		o.Status, o.StatusDetail, o.TxHash = exchange.OrderCompleted, exchange.WaitNothing, p.TxID
		if o, err = t.saveOrder(ctx, "order.completed", flow, before, o); err != nil {
			return before, none, err
		}
		return o, exchange.Posting{Entries: []exchange.Entry{{
			Key: "order:" + id.String() + ":completed", Kind: "order.completed", ObjectType: "order", ObjectID: id,
			Lines: exchange.Lines(
				exchange.Debit(exchange.House(exchange.AccOrdersInFlight, money.KES), o.Price.Fiat),
				exchange.Credit(exchange.Owned(exchange.AccFiatBalance, o.VendorID, money.KES), o.Price.Vendor),
				exchange.Credit(exchange.House(exchange.AccRounding, money.KES), o.Price.Rounding),
				exchange.Credit(exchange.House(exchange.AccFees, money.KES), o.Price.Fee),
			),
		}}}, nil
	})
}
