package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// PaymentKind says how a payment that arrived fits its order.
type PaymentKind string

// The kinds.
const (
	PaidExact     PaymentKind = "exact"
	PaidOver      PaymentKind = "over"
	PaidUnder     PaymentKind = "under"
	PaidLate      PaymentKind = "late"
	PaidDuplicate PaymentKind = "duplicate"
	PaidKnown     PaymentKind = "known" // booked before
)

// PaymentOutcome is what became of money that arrived. ChainPayment, Exception and Refund have a zero
// id where there is none.
type PaymentOutcome struct {
	Kind         PaymentKind
	Order        exchange.Order
	Attempt      exchange.PaymentAttempt
	ChainPayment exchange.ChainPayment
	Exception    exchange.PaymentException
	Refund       exchange.Refund
}

// arrival is money that arrived, on its way through one transaction.
type arrival struct {
	t     unitTx
	obs   exchange.Observation
	now   time.Time
	money money.Amount
	out   PaymentOutcome
	post  exchange.Posting
	least money.Amount // that the operator pays out, where some of the payment goes back
}

const readCollection = `SELECT attempt_id FROM collections WHERE receipt = $1`

const insertCollection = `
INSERT INTO collections (receipt, attempt_id, order_id, kind, asset, amount, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`

const paidBefore = `SELECT EXISTS (SELECT FROM collections WHERE order_id = $1 AND kind IN ('exact', 'over', 'under'))`

// AcceptPayment books money that two witnesses proved. The attempt succeeds and the receipt is used up.
// An order that waits goes on when enough came: its chain payment is approved by policy, and a surplus
// goes back. Too little ends the order and goes back whole. What is below the operator's least payout can't go
// back and is kept as unclaimed. Money for an order that was paid already, or
// has ended, opens an exception and moves nothing else. It may be called any number of times: a receipt
// that is booked is PaidKnown, with everything as it is now. CodeConflict when the receipt was booked
// for another attempt, or set aside as money of nobody. The observation must carry the receipt and the amount that really moved.
func (s *Store) AcceptPayment(ctx context.Context, attemptID uuid.UUID, obs exchange.Observation, now time.Time) (PaymentOutcome, error) {
	if obs.Receipt == "" || len(obs.Receipt) > 40 || !obs.Amount.Positive() || obs.Amount.Asset() != money.KES {
		return PaymentOutcome{}, exchange.Errorf(exchange.CodeInvalid, "A payment is accepted with its receipt and its amount in KES.")
	}
	if now.IsZero() {
		now = s.now()
	}
	return change(ctx, s, "payment", attemptID, func(ctx context.Context, t unitTx) (PaymentOutcome, exchange.Posting, error) {
		o, a, err := t.lockedAttempt(ctx, attemptID)
		if err != nil {
			return PaymentOutcome{}, exchange.Posting{}, err
		}
		if a.Direction != exchange.Collection {
			return PaymentOutcome{}, exchange.Posting{}, exchange.Errorf(exchange.CodeInternal, "a payout is not accepted as a payment")
		}
		ar := &arrival{t: t, obs: obs, now: now.UTC().Truncate(time.Millisecond), money: obs.Amount, out: PaymentOutcome{Order: o, Attempt: a}}
		var booked []uuid.UUID
		if err := t.all(ctx, &booked, readCollection, obs.Receipt); err != nil {
			return PaymentOutcome{}, exchange.Posting{}, err
		}
		switch {
		case len(booked) == 1 && booked[0] != attemptID:
			err = exchange.Errorf(exchange.CodeConflict, "The receipt was booked for another payment attempt.")
		case len(booked) == 1:
			err = ar.recall(ctx)
		default:
			err = ar.book(ctx)
		}
		return ar.out, ar.post, err
	})
}

// recall fills in what became of a receipt that was booked before.
func (ar *arrival) recall(ctx context.Context) error {
	ar.out.Kind = PaidKnown
	var err error
	if ar.out.ChainPayment, _, err = ar.t.paymentOf(ctx, exchange.ForOrder, ar.out.Order.ID); err != nil {
		return err
	}
	var found bool
	if ar.out.Exception, found, err = ar.t.exceptionOf(ctx, ar.obs.Receipt); err != nil || !found {
		return err
	}
	ar.out.Refund, _, err = ar.t.refundOf(ctx, ar.out.Exception.ID)
	return err
}

// book classifies the money and does what the policy says.
func (ar *arrival) book(ctx context.Context) error {
	var paid bool
	if err := ar.t.get(ctx, &paid, paidBefore, ar.out.Order.ID); err != nil {
		return err
	}
	o := ar.out.Order
	switch cmp := ar.money.Cmp(o.Price.Fiat); {
	case paid:
		ar.out.Kind = PaidDuplicate
	case o.Status != exchange.OrderPending:
		ar.out.Kind = PaidLate
	case cmp < 0:
		ar.out.Kind = PaidUnder
	case cmp > 0:
		ar.out.Kind = PaidOver
	default:
		ar.out.Kind = PaidExact
	}
	if err := ar.claim(ctx); err != nil {
		return err
	}
	if err := ar.settleAttempt(ctx); err != nil {
		return err
	}
	_, err := ar.t.exec(ctx, insertCollection, ar.obs.Receipt, ar.out.Attempt.ID, o.ID, ar.out.Kind, ar.money.Asset(), ar.money.Decimal(), ar.now)
	if err != nil {
		return err
	}
	if ar.out.Kind == PaidOver || ar.out.Kind == PaidUnder {
		terms, err := ar.t.termsAt(ctx, ar.t.s.now())
		if err != nil {
			return err
		}
		ar.least = terms.MinPayout
	}
	switch ar.out.Kind {
	case PaidExact:
		return ar.pay(ctx, ar.money)
	case PaidOver:
		if err := ar.pay(ctx, o.Price.Fiat); err != nil {
			return err
		}
		return ar.sendBack(ctx, exchange.ExcOver, ar.money.Sub(o.Price.Fiat))
	case PaidUnder:
		return ar.refuse(ctx)
	case PaidLate, PaidDuplicate, PaidKnown:
		return ar.setAside(ctx)
	}
	return nil
}

// settleAttempt makes the attempt succeed. An attempt that succeeded with another receipt stays as it is.
func (ar *arrival) settleAttempt(ctx context.Context) error {
	before := ar.out.Attempt
	if before.Status == exchange.AttemptSucceeded {
		return nil
	}
	a := before
	a.Status, a.Soft, a.ResultCode, a.ResultText = exchange.AttemptSucceeded, false, ar.obs.Code, ar.obs.Text
	a.Receipt, a.Moved, a.SettledAt = ar.obs.Receipt, ar.money, ar.now
	var err error
	ar.out.Attempt, err = ar.t.saveAttempt(ctx, ar.out.Order, before, a)
	return err
}

// entry books the collection against the accounts that the money goes to.
func (ar *arrival) entry(credits ...exchange.Line) {
	ar.post.Entries = append(ar.post.Entries, exchange.Entry{
		Key: "momo:" + ar.obs.Receipt, Kind: "payment." + string(ar.out.Kind), ObjectType: "order", ObjectID: ar.out.Order.ID,
		Lines: append([]exchange.Line{exchange.Debit(exchange.House(exchange.AccMomoCollection, money.KES), ar.money)}, credits...),
	})
}

// pay moves the order on: its price is in flight and its chain payment approved.
func (ar *arrival) pay(ctx context.Context, price money.Amount) error {
	before := ar.out.Order
	o := before
	o.Status, o.StatusDetail = exchange.OrderProcessing, exchange.WaitSignature
	o.PaymentTxnID, o.MomoReceipt = ar.obs.Receipt, ar.obs.Receipt
	o.MerchantRequest, o.CheckoutRequest = ar.out.Attempt.MerchantRequestID, ar.out.Attempt.CheckoutRequestID
	var err error
	if ar.out.Order, err = ar.t.saveOrder(ctx, "order.processing", flow, before, o); err != nil {
		return err
	}
	if ar.out.ChainPayment, err = ar.t.approvePayment(ctx, ar.out.Order); err != nil {
		return err
	}
	ar.entry(exchange.Lines(
		exchange.Credit(exchange.House(exchange.AccOrdersInFlight, money.KES), price),
		exchange.Credit(ar.goesBack(ar.money.Sub(price)), ar.money.Sub(price)),
	)...)
	return nil
}

// refuse ends an order that was paid too little for and sends everything back.
func (ar *arrival) refuse(ctx context.Context) error {
	before := ar.out.Order
	o := before
	o.Status, o.StatusDetail = exchange.OrderFailed, exchange.DetailUnderpaid
	o.PaymentTxnID, o.MomoReceipt = ar.obs.Receipt, ar.obs.Receipt
	var err error
	if ar.out.Order, err = ar.t.saveOrder(ctx, "order.failed", flow, before, o); err != nil {
		return err
	}
	back, err := ar.t.returnReservation(ctx, ar.out.Order)
	if err != nil {
		return err
	}
	ar.post.Holds = append(ar.post.Holds, back.Holds...)
	ar.entry(exchange.Credit(ar.goesBack(ar.money), ar.money))
	return ar.sendBack(ctx, exchange.ExcUnder, ar.money)
}

// goesBack is the account of money that belongs to the payer: on its way back, or, where the operator pays
// out no such little sum, kept for the payer's asking.
func (ar *arrival) goesBack(m money.Amount) exchange.AccountRef {
	if m.Positive() && m.Cmp(ar.least) < 0 {
		return exchange.House(exchange.AccUnclaimed, m.Asset())
	}
	return exchange.House(exchange.AccRefundsDue, m.Asset())
}

// sendBack opens an exception that policy returns, with its refund. What is too little to be sent back is
// accepted instead, so that no flow waits for a payout that can't be.
func (ar *arrival) sendBack(ctx context.Context, kind exchange.ExceptionKind, amount money.Amount) error {
	x, err := ar.t.openException(ctx, ar.out.Order, ar.exception(kind, amount))
	if err != nil {
		return err
	}
	if amount.Cmp(ar.least) < 0 {
		ar.out.Exception, err = ar.t.moveException(ctx, x, exchange.ExcAccepted, "below the operator's least payout", flow)
		return err
	}
	if x, err = ar.t.moveException(ctx, x, exchange.ExcRefunding, "returned by policy", flow); err != nil {
		return err
	}
	ar.out.Exception = x
	ar.out.Refund, err = ar.t.openRefund(ctx, ar.out.Order, exchange.Refund{
		OrderID: ar.out.Order.ID, AttemptID: ar.out.Attempt.ID, ExceptionID: x.ID, Amount: amount, Phone: ar.payer(), Reason: string(kind) + "paid",
	}, ar.obs.Receipt, flow)
	return err
}

// setAside keeps money that fits nothing until a person decides.
func (ar *arrival) setAside(ctx context.Context) error {
	kind := exchange.ExcLate
	if ar.out.Kind == PaidDuplicate {
		kind = exchange.ExcDuplicate
	}
	ar.entry(exchange.Credit(exchange.House(exchange.AccSuspense, money.KES), ar.money))
	var err error
	ar.out.Exception, err = ar.t.openException(ctx, ar.out.Order, ar.exception(kind, ar.money))
	return err
}

func (ar *arrival) exception(kind exchange.ExceptionKind, amount money.Amount) exchange.PaymentException {
	return exchange.PaymentException{
		Kind: kind, OrderID: ar.out.Order.ID, AttemptID: ar.out.Attempt.ID, Receipt: ar.obs.Receipt, Amount: amount,
	}
}

// payer is who gets money back: whoever paid, where a witness told, else whom we prompted.
func (ar *arrival) payer() exchange.Phone {
	if p, err := exchange.ParsePhone(ar.obs.Phone.Digits()); err == nil {
		return p
	}
	return ar.out.Attempt.Phone
}
