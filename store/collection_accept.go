package store

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// arrival is the state of one received payment while a transaction books it.
type arrival struct {
	t     unitTx
	obs   exchange.Observation
	now   time.Time
	money money.Amount
	out   exchange.PaymentOutcome
	post  exchange.Posting
	least money.Amount // the least payout of the provider
}

const readCollection = `SELECT attempt_id FROM collections WHERE receipt = $1`

const insertCollection = `
INSERT INTO collections (receipt, attempt_id, order_id, kind, asset, amount, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`

const paidBefore = `SELECT EXISTS (SELECT FROM collections WHERE order_id = $1 AND kind IN ('exact', 'over', 'under'))`

// AcceptPayment books a payment that two sources proved. The attempt succeeds and the receipt is used up. Enough money
// for a waiting order approves its chain payment by policy and refunds a surplus. Too little ends the order and is
// refunded in full. An amount below the provider's least payout can't be refunded and is kept as unclaimed. Money for
// an order that was already paid or has ended opens an exception and moves nothing else, except that money for an order
// that its customer cancelled is refunded by rule (see refundsByRule). A repeated call with a booked receipt returns
// PaidKnown and the current state. CodeConflict when the receipt was booked for another attempt or set aside as
// unmatched. The observation must carry the receipt and the amount that really moved.
func (s *Store) AcceptPayment(ctx context.Context, attemptID uuid.UUID, obs exchange.Observation, now time.Time) (exchange.PaymentOutcome, error) {
	if obs.Receipt == "" || len(obs.Receipt) > 40 || !obs.Amount.Positive() || obs.Amount.Asset() != money.KES {
		return exchange.PaymentOutcome{}, exchange.Errorf(exchange.CodeInvalid, "A payment needs a receipt and an amount in KES.")
	}
	if now.IsZero() {
		now = s.now()
	}
	return change(ctx, s, "payment", attemptID, func(ctx context.Context, t unitTx) (exchange.PaymentOutcome, exchange.Posting, error) {
		o, a, err := t.lockedAttempt(ctx, attemptID)
		if err != nil {
			return exchange.PaymentOutcome{}, exchange.Posting{}, err
		}
		if a.Direction != exchange.Collection {
			return exchange.PaymentOutcome{}, exchange.Posting{}, exchange.Errorf(exchange.CodeInternal, "a payout is not accepted as a payment")
		}
		ar := &arrival{t: t, obs: obs, now: now.UTC().Truncate(time.Millisecond), money: obs.Amount, out: exchange.PaymentOutcome{Order: o, Attempt: a}}
		var booked []uuid.UUID
		if err := t.All(ctx, &booked, readCollection, obs.Receipt); err != nil {
			return exchange.PaymentOutcome{}, exchange.Posting{}, err
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

// recall fills in the outcome of a receipt that was booked before.
func (ar *arrival) recall(ctx context.Context) error {
	ar.out.Kind = exchange.PaidKnown
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

// book classifies the payment and applies the policy.
func (ar *arrival) book(ctx context.Context) error {
	var paid bool
	if err := ar.t.Get(ctx, &paid, paidBefore, ar.out.Order.ID); err != nil {
		return err
	}
	o := ar.out.Order
	switch cmp := ar.money.Cmp(o.Price.Fiat); {
	case paid:
		ar.out.Kind = exchange.PaidDuplicate
	case o.Status != exchange.OrderPending:
		ar.out.Kind = exchange.PaidLate
	case cmp < 0:
		ar.out.Kind = exchange.PaidUnder
	case cmp > 0:
		ar.out.Kind = exchange.PaidOver
	default:
		ar.out.Kind = exchange.PaidExact
	}
	if err := ar.claim(ctx); err != nil {
		return err
	}
	if err := ar.settleAttempt(ctx); err != nil {
		return err
	}
	_, err := ar.t.Exec(ctx, insertCollection, ar.obs.Receipt, ar.out.Attempt.ID, o.ID, ar.out.Kind, ar.money.Asset(), ar.money.Decimal(), ar.now)
	if err != nil {
		return err
	}
	terms, err := ar.t.termsAt(ctx, ar.t.s.now())
	if err != nil {
		return err
	}
	ar.least = terms.MinPayout
	return ar.place(ctx)
}

// place books the money to where it belongs.
func (ar *arrival) place(ctx context.Context) error {
	price := ar.out.Order.Price.Fiat
	switch ar.out.Kind {
	case exchange.PaidExact:
		return ar.pay(ctx, ar.money)
	case exchange.PaidOver:
		if err := ar.pay(ctx, price); err != nil {
			return err
		}
		return ar.sendBack(ctx, exchange.ExcOver, ar.money.Sub(price))
	case exchange.PaidUnder:
		return ar.refuse(ctx)
	case exchange.PaidLate:
		byRule, err := ar.refundsByRule(ctx)
		if err != nil {
			return err
		}
		if !byRule {
			return ar.setAside(ctx)
		}
		ar.entry(exchange.Credit(ar.goesBack(ar.money), ar.money))
		return ar.sendBack(ctx, exchange.ExcLate, ar.money)
	case exchange.PaidDuplicate, exchange.PaidKnown:
		return ar.setAside(ctx)
	}
	return nil
}

// Of several reports of a receipt the first is in momo_receipts, and c2b_payments has the first payer that one named.
const namedPayers = `
SELECT party_hash FROM momo_receipts WHERE receipt = $1 AND party_hash <> ''
UNION SELECT party_hash FROM c2b_payments WHERE receipt = $1 AND party_hash <> ''`

// refundsByRule reports whether late money goes back without an officer: its customer cancelled the order, the prompted
// phone paid what the prompt asked for, the provider can pay the amount out, and the amount is within what is refunded
// without an officer. The database refuses such a refund of another order, of another amount, to another phone or above
// that value.
func (ar *arrival) refundsByRule(ctx context.Context) (bool, error) {
	o := ar.out.Order
	if o.Status != exchange.OrderCancelled || o.StatusDetail != exchange.DetailCancelled || ar.money.Cmp(ar.least) < 0 ||
		!ar.money.Equal(ar.out.Attempt.Amount) {
		return false, nil
	}
	var payers []string
	if err := ar.t.All(ctx, &payers, namedPayers, ar.obs.Receipt); err != nil {
		return false, err
	}
	prompted := ar.out.Attempt.Phone.Hash()
	if slices.ContainsFunc(payers, func(named string) bool { return named != prompted }) {
		return false, nil
	}
	// A notice or a statement row without a payer may be of a payment that was made by hand, with our reference, by
	// anyone. The prompt's own result and answer are of the prompted phone.
	ownAnswer := ar.obs.Source == exchange.SourceCallback || ar.obs.Source == exchange.SourceQuery
	if len(payers) == 0 && !ownAnswer {
		return false, nil
	}
	rule, err := ar.t.approvalRule(ctx, exchange.ApproveRefund)
	return err == nil && rule.Required(ar.money) == 0, err
}

// settleAttempt makes the attempt succeed. An attempt that succeeded with another receipt stays as it is.
func (ar *arrival) settleAttempt(ctx context.Context) error {
	before := ar.out.Attempt
	if before.Status == exchange.AttemptSucceeded {
		return nil
	}
	a := before
	a.Status, a.Soft, a.ResultCode, a.ResultClass, a.ResultText = exchange.AttemptSucceeded, false, ar.obs.Code, ar.obs.Class, ar.obs.Text
	a.Receipt, a.Moved, a.SettledAt = ar.obs.Receipt, ar.money, ar.now
	var err error
	ar.out.Attempt, err = ar.t.saveAttempt(ctx, ar.out.Order, before, a)
	return err
}

// entry books the collection to the credited accounts.
func (ar *arrival) entry(credits ...exchange.Line) {
	ar.post.Entries = append(ar.post.Entries, exchange.Entry{
		Key: "momo:" + ar.obs.Receipt, Kind: "payment." + string(ar.out.Kind), ObjectType: "order", ObjectID: ar.out.Order.ID,
		Lines: append([]exchange.Line{exchange.Debit(exchange.House(exchange.AccMomoCollection, money.KES), ar.money)}, credits...),
	})
}

// pay moves the order to processing and approves its chain payment.
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
	if ar.out.ChainPayment, err = ar.t.approvePayment(ctx, ar.out.Order, 1, byPolicy); err != nil {
		return err
	}
	ar.entry(exchange.Lines(
		exchange.Credit(exchange.House(exchange.AccOrdersInFlight, money.KES), price),
		exchange.Credit(ar.goesBack(ar.money.Sub(price)), ar.money.Sub(price)),
	)...)
	return nil
}

// refuse ends an underpaid order and refunds everything.
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

// goesBack is the account of money that is owed to the payer: refunds, or unclaimed money when the amount is below the
// provider's least payout.
func (ar *arrival) goesBack(m money.Amount) exchange.AccountRef {
	if m.Positive() && m.Cmp(ar.least) < 0 {
		return exchange.House(exchange.AccUnclaimed, m.Asset())
	}
	return exchange.House(exchange.AccRefundsDue, m.Asset())
}

// policyReasons are the reasons of refunds that no officer requests.
var policyReasons = map[exchange.ExceptionKind]string{
	exchange.ExcOver: "overpaid", exchange.ExcUnder: "underpaid", exchange.ExcLate: "paid after the customer had cancelled the order",
}

// sendBack opens an exception and, by policy, its refund. An amount too small to refund is accepted instead, so that
// no flow waits for an impossible payout.
func (ar *arrival) sendBack(ctx context.Context, kind exchange.ExceptionKind, amount money.Amount) error {
	x, err := ar.t.openException(ctx, ar.out.Order, ar.exception(kind, amount))
	if err != nil {
		return err
	}
	if amount.Cmp(ar.least) < 0 {
		ar.out.Exception, err = ar.t.moveException(ctx, x, exchange.ExcAccepted, "below the provider's least payout", flow)
		return err
	}
	if x, err = ar.t.moveException(ctx, x, exchange.ExcRefunding, "returned by policy", flow); err != nil {
		return err
	}
	ar.out.Exception = x
	ar.out.Refund, err = ar.t.openRefund(ctx, ar.out.Order, exchange.Refund{
		OrderID: ar.out.Order.ID, AttemptID: ar.out.Attempt.ID, ExceptionID: x.ID, Amount: amount, Phone: ar.payer(), Reason: policyReasons[kind],
	}, ar.obs.Receipt, flow)
	return err
}

// setAside opens an exception, which an officer decides, for money that fits no order and that no rule refunds.
func (ar *arrival) setAside(ctx context.Context) error {
	kind := exchange.ExcLate
	if ar.out.Kind == exchange.PaidDuplicate {
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

// payer is who gets a refund: the payer that the source named, else the phone that was prompted.
func (ar *arrival) payer() exchange.Phone {
	if p, err := exchange.ParsePhone(ar.obs.Phone.Digits()); err == nil {
		return p
	}
	return ar.out.Attempt.Phone
}
