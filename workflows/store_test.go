package workflows_test

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// book is the database of these tests: the rules of the real store, in memory. Each method is one
// transaction. A fault can hit it before or after its effect.
type book struct {
	mu         sync.Mutex
	now        func() time.Time
	fault      func(call string) error // called before the effect
	lost       func(call string) error // called after it
	available  money.Amount            // of the offer
	float      money.Amount            // for payouts
	stale      int                     // rows that are no longer needed
	doubtful   bool                    // the operator names another payer than the prompted phone
	confirmed  bool                    // and an operator confirmed the prompted phone
	declared   bool                    // two officers declared a payout unpaid
	second     bool                    // a receipt needs a second officer
	orders     map[uuid.UUID]exchange.Order
	attempts   map[uuid.UUID]exchange.PaymentAttempt
	callbacks  map[uuid.UUID][]exchange.MomoCallback
	receipts   []exchange.Observation
	payments   map[uuid.UUID]exchange.ChainPayment
	signed     map[uuid.UUID]exchange.ChainAttempt
	exceptions map[uuid.UUID]exchange.PaymentException
	refunds    map[uuid.UUID]exchange.Refund
	commands   map[uuid.UUID]exchange.OperatorCommand
	vendor     map[uuid.UUID]int // how often an order's vendor was paid
	unsealed   int               // audit rows
	wallets    map[uuid.UUID]exchange.Wallet
	hold       func() exchange.SigningHold // called unless it is nil
	waited     int                         // how often a payment was shown to wait for the watch
	parked     map[string]exchange.ParkedFlow
	wasParked  []string
}

func newBook() *book {
	return &book{
		now: time.Now, available: money.Must(money.USDT, "1000"), float: money.Must(money.KES, "100000"),
		orders: map[uuid.UUID]exchange.Order{}, attempts: map[uuid.UUID]exchange.PaymentAttempt{},
		callbacks: map[uuid.UUID][]exchange.MomoCallback{}, payments: map[uuid.UUID]exchange.ChainPayment{},
		signed: map[uuid.UUID]exchange.ChainAttempt{}, exceptions: map[uuid.UUID]exchange.PaymentException{},
		refunds: map[uuid.UUID]exchange.Refund{}, commands: map[uuid.UUID]exchange.OperatorCommand{}, vendor: map[uuid.UUID]int{},
		wallets: map[uuid.UUID]exchange.Wallet{},
	}
}

var rate = decimal.RequireFromString("129.35")

// tx runs one transaction with its faults.
func tx[T any](b *book, call string, do func() (T, error)) (T, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var zero T
	if b.fault != nil {
		if err := b.fault(call); err != nil {
			return zero, err
		}
	}
	out, err := do()
	if err == nil && b.lost != nil {
		if err := b.lost(call); err != nil {
			return zero, err
		}
	}
	return out, err
}

// blank is run for a method whose result no flow uses.
func blank[T any](b *book, call string, do func() error) (T, error) {
	return tx(b, call, func() (none T, err error) { return none, do() })
}

func run(b *book, call string, do func() error) error {
	_, err := tx(b, call, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func notFound(what string) error { return exchange.Errorf(exchange.CodeNotFound, "no %s", what) }

func conflict(format string, args ...any) error {
	return exchange.Errorf(exchange.CodeStateConflict, format, args...)
}

func (b *book) OpenOrder(_ context.Context, r exchange.OrderRequest, by exchange.Principal) (exchange.Order, error) {
	return tx(b, "OpenOrder", func() (exchange.Order, error) {
		if o, ok := b.orders[r.ID]; ok {
			return o, nil
		}
		price := exchange.PriceByCrypto(r.Crypto, rate)
		if b.available.Cmp(price.Crypto) < 0 {
			return exchange.Order{}, exchange.Errorf(exchange.CodeInsufficientOffer, "The offer has less left.")
		}
		b.available = b.available.Sub(price.Crypto)
		o := exchange.Order{
			ID: r.ID, CustomerID: by.UserID, Type: exchange.OnRampBuy, Network: exchange.Tron, Asset: money.USDT, Rate: rate,
			Price: price, Status: exchange.OrderPending, StatusDetail: exchange.WaitPrompt, WalletAddress: "TCustomer",
			PaymentPhone: exchange.Phone(r.Phone), ExpiresAt: r.ExpiresAt, CreatedAt: b.now(), VendorID: uuid.NewSHA1(r.ID, []byte("vendor")),
		}
		b.orders[o.ID] = o
		return o, nil
	})
}

func (b *book) OrderByID(_ context.Context, id uuid.UUID) (exchange.Order, error) {
	return tx(b, "OrderByID", func() (exchange.Order, error) {
		if o, ok := b.orders[id]; ok {
			return o, nil
		}
		return exchange.Order{}, notFound("order")
	})
}

// move changes an order's status where the state machine allows it.
func (b *book) move(id uuid.UUID, to exchange.OrderStatus, detail string) (exchange.Order, error) {
	o := b.orders[id]
	if o.Status != to {
		if err := exchange.OnRampMachine.Allow(o.Status, to); err != nil {
			return o, err
		}
	}
	o.Status, o.StatusDetail = to, detail
	b.orders[id] = o
	return o, nil
}

func (b *book) CloseOrder(_ context.Context, id uuid.UUID, to exchange.OrderStatus, detail string, _ exchange.Principal) (exchange.Order, error) {
	return tx(b, "CloseOrder", func() (exchange.Order, error) {
		o := b.orders[id]
		if o.Status == to {
			return o, nil
		}
		if o.Status != exchange.OrderPending {
			return o, conflict("the order is %s", o.Status)
		}
		b.available = b.available.Add(o.Price.Crypto)
		return b.move(id, to, detail)
	})
}

func (b *book) SetOrderDetail(_ context.Context, id uuid.UUID, detail string) error {
	return run(b, "SetOrderDetail", func() error {
		o := b.orders[id]
		if exchange.OnRampMachine.Terminal(o.Status) {
			return nil
		}
		o.StatusDetail = detail
		b.orders[id] = o
		return nil
	})
}

func (b *book) CompleteOrder(_ context.Context, id uuid.UUID) (exchange.Order, error) {
	return tx(b, "CompleteOrder", func() (exchange.Order, error) {
		o := b.orders[id]
		if o.Status == exchange.OrderCompleted {
			return o, nil
		}
		if p, ok := b.paymentOf(id); !ok || p.Status != exchange.ChainCompleted {
			return o, conflict("the crypto is not delivered")
		}
		b.vendor[id]++
		return b.move(id, exchange.OrderCompleted, exchange.WaitNothing)
	})
}

func (b *book) paymentOf(order uuid.UUID) (exchange.ChainPayment, bool) {
	for _, p := range b.payments {
		if p.ObjectID == order {
			return p, true
		}
	}
	return exchange.ChainPayment{}, false
}

func (b *book) RefundOrder(_ context.Context, id uuid.UUID, reason string, _ exchange.Principal) (exchange.Order, exchange.Refund, error) {
	type both struct {
		o exchange.Order
		r exchange.Refund
	}
	out, err := tx(b, "RefundOrder", func() (both, error) {
		p, _ := b.paymentOf(id)
		refundID := uuid.NewSHA1(id, []byte("refund"))
		if r, ok := b.refunds[refundID]; ok {
			return both{b.orders[id], r}, nil
		}
		if _, alive := b.live(p.ID); alive || p.Status == exchange.ChainCompleted {
			return both{}, conflict("the payment is %s", p.Status)
		}
		o, err := b.move(id, exchange.OrderFailed, exchange.DetailRefundOpen)
		if err != nil {
			return both{}, err
		}
		p.Status = exchange.ChainCancelled
		b.payments[p.ID] = p
		b.available = b.available.Add(o.Price.Crypto)
		winner, _ := b.winner(id)
		r := b.openRefund(refundID, o, winner, uuid.Nil, o.Price.Fiat)
		return both{o, r}, nil
	})
	return out.o, out.r, err
}

func (b *book) winner(order uuid.UUID) (exchange.PaymentAttempt, bool) {
	for _, a := range b.attempts {
		if a.OrderID == order && a.Receipt != "" && a.Receipt == b.orders[order].PaymentTxnID {
			return a, true
		}
	}
	return exchange.PaymentAttempt{}, false
}

func (b *book) openRefund(id uuid.UUID, o exchange.Order, a exchange.PaymentAttempt, exception uuid.UUID, amount money.Amount) exchange.Refund {
	r := exchange.Refund{
		ID: id, OrderID: o.ID, AttemptID: a.ID, ExceptionID: exception, Amount: amount, Phone: a.Phone, Status: exchange.RefundPending,
	}
	b.refunds[id] = r
	return r
}

func (b *book) UseCommand(_ context.Context, id uuid.UUID, kind string, object uuid.UUID) (exchange.OperatorCommand, error) {
	return tx(b, "UseCommand", func() (exchange.OperatorCommand, error) {
		c, ok := b.commands[id]
		if !ok || c.ObjectType != kind || c.ObjectID != object {
			return exchange.OperatorCommand{}, notFound("command")
		}
		if c.UsedAt.IsZero() {
			c.UsedAt = b.now()
			b.commands[id] = c
		}
		return c, nil
	})
}

func (b *book) Prune(_ context.Context, limit int) (exchange.Pruned, error) {
	return tx(b, "Prune", func() (exchange.Pruned, error) {
		n := min(limit, b.stale)
		b.stale -= n
		return exchange.Pruned{IdempotencyKeys: n, Sessions: min(n, 1)}, nil
	})
}

func (b *book) SealAudit(context.Context) (int, error) {
	return tx(b, "SealAudit", func() (int, error) {
		n := b.unsealed
		b.unsealed = 0
		return n, nil
	})
}

func (b *book) BeginAttempt(_ context.Context, a exchange.PaymentAttempt) (exchange.PaymentAttempt, bool, error) {
	type both struct {
		a       exchange.PaymentAttempt
		created bool
	}
	out, err := tx(b, "BeginAttempt", func() (both, error) {
		if stored, ok := b.attempts[a.ID]; ok {
			return both{stored, false}, nil
		}
		for _, other := range b.attempts {
			if other.OrderID == a.OrderID && other.Direction == a.Direction && open(other) {
				return both{}, exchange.Errorf(exchange.CodeConflict, "another attempt is open")
			}
		}
		a.CallbackToken = ""
		b.attempts[a.ID] = a
		return both{a, true}, nil
	})
	return out.a, out.created, err
}

func open(a exchange.PaymentAttempt) bool {
	return a.Status == exchange.AttemptCreated || a.Status == exchange.AttemptUnknown || a.Status == exchange.AttemptAccepted
}

func (b *book) Attempt(_ context.Context, id uuid.UUID) (exchange.PaymentAttempt, error) {
	return tx(b, "Attempt", func() (exchange.PaymentAttempt, error) {
		if a, ok := b.attempts[id]; ok {
			return a, nil
		}
		return exchange.PaymentAttempt{}, notFound("attempt")
	})
}

func (b *book) RecordSubmission(_ context.Context, id uuid.UUID, s exchange.Submission) (exchange.PaymentAttempt, error) {
	return tx(b, "RecordSubmission", func() (exchange.PaymentAttempt, error) {
		a := b.attempts[id]
		to := map[exchange.SubmissionState]exchange.AttemptStatus{
			exchange.Accepted: exchange.AttemptAccepted, exchange.Refused: exchange.AttemptRefused, exchange.Unknown: exchange.AttemptUnknown,
		}[s.State]
		if s.Refs.CheckoutRequestID != "" {
			a.CheckoutRequestID, a.MerchantRequestID = s.Refs.CheckoutRequestID, s.Refs.MerchantRequestID
		}
		if exchange.AttemptMachine.Allow(a.Status, to) == nil {
			a.Status, a.ResultCode, a.ResultClass = to, s.Code, s.Class
		}
		a.SubmittedAt = b.now()
		b.attempts[id] = a
		return a, nil
	})
}

func (b *book) RecordFailure(_ context.Context, id uuid.UUID, o exchange.Observation) (exchange.PaymentAttempt, error) {
	return tx(b, "RecordFailure", func() (exchange.PaymentAttempt, error) {
		a := b.attempts[id]
		if a.Status == exchange.AttemptFailed {
			return a, nil
		}
		if err := exchange.AttemptMachine.Allow(a.Status, exchange.AttemptFailed); err != nil {
			return a, err
		}
		a.Status, a.Soft, a.ResultCode, a.ResultClass = exchange.AttemptFailed, o.Soft, o.Code, o.Class
		b.attempts[id] = a
		return a, nil
	})
}

func (b *book) SaveCallback(c exchange.MomoCallback) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.callbacks[c.AttemptID] = append(b.callbacks[c.AttemptID], c)
}

func (b *book) Callbacks(_ context.Context, id uuid.UUID) ([]exchange.MomoCallback, error) {
	return tx(b, "Callbacks", func() ([]exchange.MomoCallback, error) {
		return append([]exchange.MomoCallback{}, b.callbacks[id]...), nil
	})
}

func (b *book) SaveReceipt(_ context.Context, o exchange.Observation) error {
	return run(b, "SaveReceipt", func() error {
		for _, r := range b.receipts {
			if r.Receipt == o.Receipt {
				return nil
			}
		}
		b.receipts = append(b.receipts, o)
		return nil
	})
}

func (b *book) ReceiptsFor(_ context.Context, reference string) ([]exchange.Observation, error) {
	return tx(b, "ReceiptsFor", func() ([]exchange.Observation, error) {
		var rows []exchange.Observation
		for _, r := range b.receipts {
			if r.Reference == reference {
				rows = append(rows, r)
			}
		}
		return rows, nil
	})
}

func (b *book) AcceptPayment(_ context.Context, id uuid.UUID, o exchange.Observation, _ time.Time) (exchange.PaymentOutcome, error) {
	return tx(b, "AcceptPayment", func() (exchange.PaymentOutcome, error) {
		a := b.attempts[id]
		if a.Status == exchange.AttemptSucceeded {
			return b.outcome(a, "known"), nil
		}
		for _, other := range b.attempts {
			if other.Receipt == o.Receipt {
				return exchange.PaymentOutcome{}, exchange.Errorf(exchange.CodeConflict, "the receipt is known")
			}
		}
		a.Status, a.Receipt, a.Moved = exchange.AttemptSucceeded, o.Receipt, o.Amount
		b.attempts[id] = a
		return b.outcome(a, b.place(a, o)), nil
	})
}

// place finds where money that arrived belongs.
func (b *book) place(a exchange.PaymentAttempt, o exchange.Observation) exchange.PaymentKind {
	order := b.orders[a.OrderID]
	except := func(kind exchange.ExceptionKind, status exchange.ExceptionStatus, amount money.Amount) exchange.PaymentException {
		e := exchange.PaymentException{
			ID: uuid.NewSHA1(a.ID, []byte("exception")), Kind: kind, Status: status, OrderID: order.ID, AttemptID: a.ID, Amount: amount,
		}
		b.exceptions[e.ID] = e
		return e
	}
	price := order.Price.Fiat
	switch {
	case order.Status != exchange.OrderPending:
		kind := exchange.ExcLate
		if order.PaymentTxnID != "" {
			kind = exchange.ExcDuplicate
		}
		if kind == exchange.ExcLate && order.StatusDetail == exchange.DetailCancelled && b.byPrompted(o) {
			e := except(kind, exchange.ExcRefunding, a.Moved)
			b.openRefund(uuid.NewSHA1(e.ID, []byte("refund")), order, a, e.ID, a.Moved)
			return exchange.PaidLate
		}
		except(kind, exchange.ExcOpen, a.Moved)
		return exchange.PaymentKind(kind)
	case a.Moved.Cmp(price) < 0:
		e := except(exchange.ExcUnder, exchange.ExcRefunding, a.Moved)
		order.PaymentTxnID = a.Receipt
		b.orders[order.ID] = order
		b.available = b.available.Add(order.Price.Crypto)
		order, _ = b.move(order.ID, exchange.OrderFailed, exchange.DetailUnderpaid)
		b.openRefund(uuid.NewSHA1(a.ID, []byte("under")), order, a, e.ID, a.Moved)
		return "under"
	}
	order.PaymentTxnID = a.Receipt
	b.orders[order.ID] = order
	order, _ = b.move(order.ID, exchange.OrderProcessing, exchange.WaitSignature)
	p := exchange.ChainPayment{
		ID: uuid.NewSHA1(order.ID, []byte("payment")), Purpose: exchange.ForOrder, ObjectID: order.ID, Network: order.Network,
		Amount: order.Price.Crypto, FromAddress: "TVendor", ToAddress: order.WalletAddress, Status: exchange.ChainApproved,
	}
	b.payments[p.ID] = p
	if a.Moved.Cmp(price) > 0 {
		e := except(exchange.ExcOver, exchange.ExcRefunding, a.Moved.Sub(price))
		b.openRefund(uuid.NewSHA1(a.ID, []byte("over")), order, a, e.ID, e.Amount)
		return "over"
	}
	return "exact"
}

// byPrompted reports whether the payment is certainly of the prompted phone.
func (b *book) byPrompted(o exchange.Observation) bool {
	row := o.Source == exchange.SourceConfirmation || o.Source == exchange.SourceStatement
	return !b.doubtful && (!row || o.Phone != "")
}

func (b *book) outcome(a exchange.PaymentAttempt, kind exchange.PaymentKind) exchange.PaymentOutcome {
	out := exchange.PaymentOutcome{Order: b.orders[a.OrderID], Attempt: a, Kind: kind}
	out.ChainPayment, _ = b.paymentOf(a.OrderID) // the order's, whichever attempt paid it
	for _, e := range b.exceptions {
		if e.AttemptID == a.ID {
			out.Exception = e
		}
	}
	for _, r := range b.refunds {
		if r.AttemptID == a.ID && r.ExceptionID != uuid.Nil && r.ExceptionID == out.Exception.ID {
			out.Refund = r
		}
	}
	return out
}
