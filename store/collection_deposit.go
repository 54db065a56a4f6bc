package store

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Collections of OTC deposits, which take whatever amount comes: it is priced when it is there.

// depositCollection is a deposit as an object of collections.
type depositCollection struct {
	w     *otcWork
	phone exchange.Phone // of the payer who is expected
}

func collectableDeposit(d exchange.OTCDeposit, phone exchange.Phone) exchange.Collectable {
	return exchange.Collectable{
		Object: exchange.DepositObject(d.ID), Amount: d.Fiat, Phone: phone, Reference: d.Reference, Status: string(d.Status), Detail: d.Detail,
		Waits: d.Collects() != "", Any: true, ByHand: d.Method == exchange.OTCByC2B,
	}
}

func readDepositCollectable(ctx context.Context, s *Store, id uuid.UUID) (exchange.Collectable, error) {
	d, err := s.OTCDepositByID(ctx, id)
	if err != nil {
		return exchange.Collectable{}, err
	}
	phone, err := expectedPayer(ctx, s.db, d)
	return collectableDeposit(d, phone), translate(err, "merchant")
}

func lockDepositCollection(ctx context.Context, t unitTx, id uuid.UUID) (collectionObject, error) {
	return t.lockedOTCCollection(ctx, id)
}

func (t unitTx) lockedOTCCollection(ctx context.Context, id uuid.UUID) (*depositCollection, error) {
	w, err := t.startOTC(ctx, id)
	if err != nil {
		return nil, err
	}
	phone, err := expectedPayer(ctx, t, w.d)
	return &depositCollection{w, phone}, err
}

const phoneOfUser = `SELECT coalesce(phone_number, '') FROM users WHERE id = $1`

// expectedPayer is the number that is prompted, and for payments by hand the merchant's own; none if that is no number of the operator's
// country. A payment of another amount by somebody else waits for an officer.
func expectedPayer(ctx context.Context, from reader, d exchange.OTCDeposit) (exchange.Phone, error) {
	if d.Method != exchange.OTCByC2B {
		return d.Phone, nil
	}
	var own string
	if err := from.Get(ctx, &own, phoneOfUser, d.MerchantID); err != nil {
		return "", err
	}
	if p, err := exchange.ParsePhone(strings.TrimPrefix(own, "+")); err == nil {
		return p, nil
	}
	return "", nil
}

func (x *depositCollection) parties() (owner, vendor uuid.UUID) {
	return x.w.d.MerchantID, x.w.d.MerchantID
}

func (x *depositCollection) wants() exchange.Collectable { return collectableDeposit(x.w.d, x.phone) }

func (x *depositCollection) order() exchange.Order { return exchange.Order{} }

func (x *depositCollection) wait(ctx context.Context, _ unitTx, detail string) error {
	if x.w.d.Collects() == "" || !x.w.d.Status.WaitsForOfficer() || x.w.d.Detail == detail {
		return nil
	}
	return x.w.move(ctx, x.w.d.Status, detail)
}

const dayOfPayment = `SELECT paid_on($1)`

// complete takes the money. Within what needs no officer the deposit is confirmed by it; otherwise it goes to the queue.
func (x *depositCollection) complete(ctx context.Context, _ unitTx, a exchange.PaymentAttempt, receipt string) ([]exchange.HoldOp, exchange.AccountRef, error) {
	w := x.w
	var day time.Time
	if err := w.Get(ctx, &day, dayOfPayment, receipt); err != nil {
		return nil, exchange.AccountRef{}, err
	}
	w.d.MomoReceipt, w.d.MerchantRequestID, w.d.CheckoutRequestID = receipt, a.MerchantRequestID, a.CheckoutRequestID
	w.d.Received, w.d.ValueDate, w.d.ReceivedAt = a.Moved, day.UTC(), w.now
	if err := w.flagMoney(ctx); err != nil {
		return nil, exchange.AccountRef{}, err
	}
	return nil, inFlight(), w.provenByMomo(ctx)
}

const paidByStranger = `SELECT paid_by_stranger(d, $2) FROM otc_deposits d WHERE d.id = $1`

func (w *otcWork) provenByMomo(ctx context.Context) error {
	var stranger bool
	if err := w.Get(ctx, &stranger, paidByStranger, w.d.ID, w.d.MomoReceipt); err != nil {
		return err
	}
	if stranger {
		if err := w.flag(ctx, exchange.FlagSender); err != nil {
			return err
		}
	}
	room, err := w.room(ctx)
	switch {
	case err != nil:
		return err
	case w.d.Status == exchange.OTCPending && !stranger && w.d.Received.Cmp(room) <= 0:
		w.d.AutomaticAt = w.now // the database sets its own time
		if err := w.save(ctx, "otc_deposit.received"); err != nil {
			return err
		}
		w.d.ConfirmedAt = w.now
		return w.priceReceived(ctx)
	case w.d.Status.WaitsForOfficer():
		w.d.Detail = exchange.WaitReview
	}
	return w.save(ctx, "otc_deposit.received")
}

const readRoom = `SELECT deposit_room($1)||' KES'`

// room is how much mobile money of the deposit's merchant needs no officer now: its automatic limit without that of the last 24 hours. It
// is locked until the transaction ends, and below zero after the limit was lowered.
func (w *otcWork) room(ctx context.Context) (money.Amount, error) {
	return readOne[money.Amount](ctx, w, "limit", readRoom, w.d.MerchantID)
}

const readAutomatic = `SELECT otc_limit($1)||' KES'`

// automatic is how much mobile money of the deposit's merchant needs no officer in 24 hours.
func (w *otcWork) automatic(ctx context.Context) (money.Amount, error) {
	return readOne[money.Amount](ctx, w, "limit", readAutomatic, w.d.MerchantID)
}

// underpaid never happens: a deposit takes any amount.
func (x *depositCollection) underpaid(context.Context, unitTx, string) ([]exchange.HoldOp, error) {
	return nil, exchange.Errorf(exchange.CodeInternal, "an OTC deposit takes any amount")
}

// returns is false: an officer decides about what comes late or twice.
func (x *depositCollection) returns(exchange.PaymentKind) bool { return false }

func (x *depositCollection) report(context.Context, unitTx, *exchange.PaymentOutcome) error {
	return nil
}

// awaitPayer stores that a payer may pay our number under the object's reference.
func (t unitTx) awaitPayer(ctx context.Context, x momoObject, a exchange.PaymentAttempt) (exchange.PaymentAttempt, error) {
	a.CallbackToken = ""
	created, err := t.insertAttempt(ctx, a, uuid.Nil)
	if err != nil {
		return created, err
	}
	if err := t.recordAttempt(ctx, "created", x, created); err != nil {
		return created, err
	}
	a = created
	a.Status = exchange.AttemptAccepted
	return t.saveAttempt(ctx, x, created, a)
}

// StopAwaiting ends what waits for payments by hand under the reference of an object that takes none any more. Money that comes
// nevertheless is late.
func (s *Store) StopAwaiting(ctx context.Context, of exchange.MomoObject) error {
	_, err := change(ctx, s, "collection", of.ID, func(ctx context.Context, t unitTx) (struct{}, exchange.Posting, error) {
		var none exchange.Posting
		x, err := t.lockedCollectionObject(ctx, of)
		if err != nil || x.wants().Waits || !x.wants().ByHand {
			return struct{}{}, none, err
		}
		var open []exchange.PaymentAttempt
		if err := t.All(ctx, &open, lockOpenCollections, of.Type, of.ID); err != nil {
			return struct{}{}, none, err
		}
		for _, before := range open {
			a := before
			a.Status, a.ResultClass, a.ResultText, a.SettledAt = exchange.AttemptFailed, exchange.ClassUnanswered, "nothing came while it was awaited", t.s.now()
			if _, err := t.saveAttempt(ctx, x, before, a); err != nil {
				return struct{}{}, none, err
			}
		}
		return struct{}{}, none, nil
	})
	return err
}

const lockOpenCollections = `SELECT ` + attemptColumns + ` FROM payment_attempts
WHERE object_type = $1 AND object_id = $2 AND direction = 'collection' AND status IN ('created', 'unknown', 'accepted') FOR NO KEY UPDATE`
