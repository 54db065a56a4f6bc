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
	x     collectionObject
	obs   exchange.Observation
	now   time.Time
	money money.Amount
	out   exchange.PaymentOutcome
	post  exchange.Posting
	least money.Amount // the least payout of the provider
}

const readCollection = `SELECT attempt_id FROM collections WHERE receipt = $1`

const insertCollection = `
INSERT INTO collections (receipt, attempt_id, object_type, object_id, kind, asset, amount, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

const paidBefore = `SELECT EXISTS (SELECT FROM collections WHERE object_type = $1 AND object_id = $2 AND kind IN ('exact', 'over', 'under'))`

// AcceptPayment books a payment that two sources proved. The attempt succeeds and the receipt is used up. Enough money
// completes what a waiting object wants: an order's chain payment is approved by policy. Too little ends it. Money beyond
// that, and money for an object that was already paid or has ended, goes back by rule where the object says so and the
// database allows it (see returnsByRule), and is else an exception for an officer. An amount below the provider's least
// payout can't be refunded and is kept as unclaimed. A repeated call with a booked receipt returns PaidKnown and the
// current state. CodeConflict when the receipt was booked for another attempt or set aside as unmatched. The observation
// must carry the receipt and the amount that really moved.
func (s *Store) AcceptPayment(ctx context.Context, attemptID uuid.UUID, obs exchange.Observation, now time.Time) (exchange.PaymentOutcome, error) {
	if obs.Receipt == "" || len(obs.Receipt) > 40 || !obs.Amount.Positive() || obs.Amount.Asset() != money.KES {
		return exchange.PaymentOutcome{}, exchange.Errorf(exchange.CodeInvalid, "A payment needs a receipt and an amount in KES.")
	}
	if now.IsZero() {
		now = s.now()
	}
	return change(ctx, s, "payment", attemptID, func(ctx context.Context, t unitTx) (exchange.PaymentOutcome, exchange.Posting, error) {
		x, a, err := t.lockedCollection(ctx, attemptID)
		if err != nil {
			return exchange.PaymentOutcome{}, exchange.Posting{}, err
		}
		ar := &arrival{t: t, x: x, obs: obs, now: now.UTC().Truncate(time.Millisecond), money: obs.Amount, out: exchange.PaymentOutcome{Attempt: a}}
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
		if err == nil {
			ar.out.Object = x.wants()
			err = x.report(ctx, t, &ar.out)
		}
		return ar.out, ar.post, err
	})
}

// lockedCollection locks an attempt to collect, and its object first.
func (t unitTx) lockedCollection(ctx context.Context, attemptID uuid.UUID) (collectionObject, exchange.PaymentAttempt, error) {
	var a exchange.PaymentAttempt
	if err := t.Get(ctx, &a, readAttempt, attemptID); err != nil {
		return nil, a, translate(err, "payment attempt")
	}
	if a.Direction != exchange.Collection {
		return nil, a, exchange.Errorf(exchange.CodeInternal, "a payout is not accepted as a payment")
	}
	x, err := t.lockedCollectionObject(ctx, a.Object)
	if err != nil {
		return nil, a, err
	}
	a, err = t.lockedAttempt(ctx, attemptID)
	return x, a, err
}

// recall fills in the outcome of a receipt that was booked before.
func (ar *arrival) recall(ctx context.Context) error {
	ar.out.Kind = exchange.PaidKnown
	var found bool
	var err error
	if ar.out.Exception, found, err = ar.t.exceptionOf(ctx, ar.obs.Receipt); err != nil || !found {
		return err
	}
	ar.out.Refund, _, err = ar.t.refundOf(ctx, ar.out.Exception.ID)
	return err
}

// book classifies the payment and applies the policy.
func (ar *arrival) book(ctx context.Context) error {
	want := ar.x.wants()
	if want.Any {
		want.Amount = ar.money
	}
	var paid bool
	if err := ar.t.Get(ctx, &paid, paidBefore, want.Object.Type, want.Object.ID); err != nil {
		return err
	}
	switch cmp := ar.money.Cmp(want.Amount); {
	case paid:
		ar.out.Kind = exchange.PaidDuplicate
	case !want.Waits:
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
	_, err := ar.t.Exec(ctx, insertCollection, ar.obs.Receipt, ar.out.Attempt.ID, want.Object.Type, want.Object.ID, ar.out.Kind,
		ar.money.Asset(), ar.money.Decimal(), ar.now)
	if err != nil {
		return err
	}
	terms, err := ar.t.termsAt(ctx, ar.t.s.now())
	if err != nil {
		return err
	}
	ar.least = terms.MinPayout
	return ar.place(ctx, want)
}

// place books the money to where it belongs.
func (ar *arrival) place(ctx context.Context, want exchange.Collectable) error {
	switch ar.out.Kind {
	case exchange.PaidExact, exchange.PaidOver:
		holds, account, err := ar.x.complete(ctx, ar.t, ar.out.Attempt, ar.obs.Receipt)
		if err != nil {
			return err
		}
		ar.post.Holds = append(ar.post.Holds, holds...)
		surplus := ar.money.Sub(want.Amount)
		ar.entry(exchange.Lines(exchange.Credit(account, want.Amount), exchange.Credit(ar.leftOver(surplus), surplus))...)
		if surplus.Positive() {
			return ar.putAside(ctx, exchange.ExcOver, surplus)
		}
		return nil
	case exchange.PaidUnder:
		holds, err := ar.x.underpaid(ctx, ar.t, ar.obs.Receipt)
		if err != nil {
			return err
		}
		ar.post.Holds = append(ar.post.Holds, holds...)
		ar.entry(exchange.Credit(ar.leftOver(ar.money), ar.money))
		return ar.putAside(ctx, exchange.ExcUnder, ar.money)
	case exchange.PaidLate:
		byRule, err := ar.returnsByRule(ctx)
		if err != nil {
			return err
		}
		if !byRule {
			return ar.setAside(ctx, exchange.ExcLate)
		}
		ar.entry(exchange.Credit(ar.leftOver(ar.money), ar.money))
		return ar.putAside(ctx, exchange.ExcLate, ar.money)
	case exchange.PaidDuplicate, exchange.PaidKnown:
		return ar.setAside(ctx, exchange.ExcDuplicate)
	}
	return nil
}

// c2b_payments has the first payer that a report named.
const namedPayers = `
SELECT party_hash FROM momo_receipts WHERE receipt = $1 AND party_hash <> ''
UNION SELECT party_hash FROM c2b_payments WHERE receipt = $1 AND party_hash <> ''`

// returnsByRule reports whether late money goes back without an officer: the object returns it, as an order does that its
// customer cancelled, the prompted phone paid what the prompt asked for, the provider can pay the amount out, and the
// amount is within what is refunded without an officer. The database refuses such a refund of another order, of another
// amount, to another phone or above that value.
func (ar *arrival) returnsByRule(ctx context.Context) (bool, error) {
	if !ar.x.returns(exchange.PaidLate) || ar.money.Cmp(ar.least) < 0 || !ar.money.Equal(ar.out.Attempt.Amount) {
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
	ar.out.Attempt, err = ar.t.saveAttempt(ctx, ar.x, before, a)
	return err
}

// entry books the collection to the credited accounts.
func (ar *arrival) entry(credits ...exchange.Line) {
	of := ar.out.Attempt.Object
	ar.post.Entries = append(ar.post.Entries, exchange.Entry{
		Key: "momo:" + ar.obs.Receipt, Kind: "payment." + string(ar.out.Kind), ObjectType: string(of.Type), ObjectID: of.ID,
		Lines: append([]exchange.Line{exchange.Debit(exchange.House(exchange.AccMomoCollection, money.KES), ar.money)}, credits...),
	})
}

// leftOver is the account of money that the object does not take. It is owed to the payer where it goes back by rule, and
// is else in suspense until an officer decides; what is below the provider's least payout can't go back.
func (ar *arrival) leftOver(m money.Amount) exchange.AccountRef {
	switch {
	case m.Positive() && m.Cmp(ar.least) < 0:
		return exchange.House(exchange.AccUnclaimed, m.Asset())
	case !ar.x.returns(ar.out.Kind):
		return exchange.House(exchange.AccSuspense, m.Asset())
	}
	return exchange.House(exchange.AccRefundsDue, m.Asset())
}

// policyReasons are the reasons of refunds that no officer requests.
var policyReasons = map[exchange.ExceptionKind]string{
	exchange.ExcOver: "overpaid", exchange.ExcUnder: "underpaid", exchange.ExcLate: "paid after the customer had cancelled the order",
}

// putAside opens an exception for money that the object does not take and, where it goes back by rule, its refund. An
// amount too small to refund is accepted instead, so that no flow waits for an impossible payout.
func (ar *arrival) putAside(ctx context.Context, kind exchange.ExceptionKind, amount money.Amount) error {
	x, err := ar.t.openException(ctx, ar.owner(), ar.exception(kind, amount))
	if err != nil {
		return err
	}
	ar.out.Exception = x
	if amount.Cmp(ar.least) < 0 {
		ar.out.Exception, err = ar.t.moveException(ctx, x, exchange.ExcAccepted, "below the provider's least payout", flow)
		return err
	}
	if !ar.x.returns(ar.out.Kind) {
		return nil
	}
	if ar.out.Exception, err = ar.t.moveException(ctx, x, exchange.ExcRefunding, "returned by policy", flow); err != nil {
		return err
	}
	o := ar.x.order()
	ar.out.Refund, err = ar.t.openRefund(ctx, o, exchange.Refund{
		OrderID: o.ID, AttemptID: ar.out.Attempt.ID, ExceptionID: x.ID, Amount: amount, Phone: ar.payer(), Reason: policyReasons[kind],
	}, ar.obs.Receipt, flow)
	return err
}

// setAside opens an exception, which an officer decides, for money that fits no object and that no rule refunds.
func (ar *arrival) setAside(ctx context.Context, kind exchange.ExceptionKind) error {
	ar.entry(exchange.Credit(exchange.House(exchange.AccSuspense, money.KES), ar.money))
	var err error
	ar.out.Exception, err = ar.t.openException(ctx, ar.owner(), ar.exception(kind, ar.money))
	return err
}

func (ar *arrival) owner() uuid.UUID {
	owner, _ := ar.x.parties()
	return owner
}

func (ar *arrival) exception(kind exchange.ExceptionKind, amount money.Amount) exchange.PaymentException {
	return exchange.PaymentException{
		Kind: kind, OrderID: ar.x.order().ID, AttemptID: ar.out.Attempt.ID, DepositID: ar.out.Attempt.Object.DepositID(), Receipt: ar.obs.Receipt, Amount: amount,
	}
}

// payer is who gets a refund: the payer that the source named, else the phone that was prompted.
func (ar *arrival) payer() exchange.Phone {
	if p, err := exchange.ParsePhone(ar.obs.Phone.Digits()); err == nil {
		return p
	}
	return ar.out.Attempt.Phone
}
