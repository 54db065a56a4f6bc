package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

// Payments to our number that an officer names as the money of a deposit, because they came under another reference. The flow of the
// deposit writes down who named what (matchOTC), and the mobile money worker books it (TakeNamed).

// awaitedElsewhere reports whether something else waits for a payment under its reference.
const awaitedElsewhere = `SELECT EXISTS (SELECT FROM payment_attempts WHERE direction = 'collection' AND reference = $1 AND reference <> '' AND object_id <> $2
    AND status IN ('created', 'unknown', 'accepted'))`

// othersReference reports whether the payer wrote the reference of somebody else, also of an object that has ended: its money is late.
const othersReference = `SELECT others_reference($1, $2)`

// matchOTC names the payment that is a deposit's money. Above what needs no officer, another one has to name the same.
func matchOTC(ctx context.Context, w *otcWork) error {
	if w.d.Collects() == "" {
		return exchange.Errorf(exchange.CodeStateConflict, "The deposit waits for no mobile money.")
	}
	p, err := readOne[exchange.C2BPayment](ctx, w, "payment", lockC2B, w.step.PaymentID)
	if err != nil {
		return err
	}
	if err := w.nameable(ctx, p); err != nil {
		return err
	}
	room, err := w.room(ctx)
	if err != nil {
		return err
	}
	again := w.d.NamedPaymentID == p.ID
	switch {
	case again && w.d.Named(w.by.UserID):
		return nil
	case again && w.d.NamedSecond == uuid.Nil && p.Amount.Cmp(room) > 0:
		w.d.NamedSecond = w.by.UserID
	default:
		w.d.NamedPaymentID, w.d.NamedBy, w.d.NamedSecond = p.ID, w.by.UserID, uuid.Nil
	}
	if w.d.Status.WaitsForOfficer() {
		w.d.Detail = w.waitsFor()
		if p.Amount.Cmp(room) > 0 && w.d.NamedSecond == uuid.Nil {
			w.d.Detail = exchange.WaitSecond
		}
	}
	err = w.save(ctx, "otc_deposit.changed")
	if pg.Broke(err, "otc_deposits_named_key") { // at the same moment
		return namedElsewhere(err)
	}
	return err
}

func namedElsewhere(cause error) error {
	return exchange.Wrap(exchange.CodeConflict, cause, "An officer named the payment for another deposit.")
}

// nameable refuses a payment that is no deposit's money: it paid something else, officers decided about it, or it is not proven.
func (w *otcWork) nameable(ctx context.Context, p exchange.C2BPayment) error {
	switch {
	case p.Status == exchange.C2BMatched:
		return exchange.Errorf(exchange.CodeStateConflict, "The payment is matched.")
	case p.ListedAt.IsZero():
		return exchange.Errorf(exchange.CodeStateConflict, "The mobile money operator's statement does not list the payment yet.")
	case p.Disputed:
		return exchange.Errorf(exchange.CodeStateConflict, "The operator's channels contradict each other about the payment.")
	case p.NamedFor != uuid.Nil && p.NamedFor != w.d.ID:
		return namedElsewhere(nil)
	}
	open, err := w.isOpen(ctx, p)
	if err != nil {
		return err
	}
	if !open {
		return exchange.Errorf(exchange.CodeStateConflict, "Officers have decided about the payment.")
	}
	var awaited bool
	if err := w.Get(ctx, &awaited, awaitedElsewhere, p.Reference, w.d.ID); err != nil {
		return err
	}
	if awaited {
		return exchange.Errorf(exchange.CodeStateConflict, "Something else waits for a payment under this reference.")
	}
	var theirs bool
	if err := w.Get(ctx, &theirs, othersReference, p.Reference, w.d.MerchantID); err != nil {
		return err
	}
	if theirs {
		return exchange.Errorf(exchange.CodeStateConflict, "The payment names an order or a deposit of somebody else.")
	}
	return nil
}

// isOpen reports whether no officer has decided about a payment.
func (t unitTx) isOpen(ctx context.Context, p exchange.C2BPayment) (bool, error) {
	if p.ExceptionID == uuid.Nil {
		return true, nil
	}
	x, err := readOne[exchange.PaymentException](ctx, t, "payment exception", readException, p.ExceptionID)
	return x.Status == exchange.ExcOpen, err
}

const lastCollection = `SELECT id FROM payment_attempts WHERE object_type = $1 AND object_id = $2 AND direction = 'collection' ORDER BY created_at DESC, id DESC LIMIT 1`

// TakeNamed books the payment that officers named as a deposit's money, and returns the deposit. It does nothing while another officer
// has to agree, and forgets a payment that can't be taken any more.
func (s *Store) TakeNamed(ctx context.Context, deposit uuid.UUID) (exchange.OTCDeposit, error) {
	return change(ctx, s, "OTC deposit", deposit, func(ctx context.Context, t unitTx) (exchange.OTCDeposit, exchange.Posting, error) {
		var none exchange.Posting
		x, err := t.lockedOTCCollection(ctx, deposit)
		if err != nil {
			return exchange.OTCDeposit{}, none, err
		}
		posting, err := x.takeNamed(ctx, t)
		return x.w.d, posting, err
	})
}

func (x *depositCollection) takeNamed(ctx context.Context, t unitTx) (exchange.Posting, error) {
	var none exchange.Posting
	w := x.w
	if w.d.Collects() == "" || w.d.NamedPaymentID == uuid.Nil {
		return none, nil
	}
	p, err := readOne[exchange.C2BPayment](ctx, t, "payment", lockC2B, w.d.NamedPaymentID)
	if err != nil {
		return none, err
	}
	open, err := t.isOpen(ctx, p)
	if err != nil {
		return none, err
	}
	if p.Status == exchange.C2BMatched || p.Disputed || !open {
		return none, w.forgetNamed(ctx)
	}
	room, err := w.room(ctx)
	if err != nil {
		return none, err
	}
	if w.d.NamedSecond == uuid.Nil && p.Amount.Cmp(room) > 0 {
		return none, w.awaitSecond(ctx)
	}
	id, begun, err := readFound[uuid.UUID](ctx, t, lastCollection, exchange.MomoDeposit, w.d.ID)
	if err != nil || !begun { // the flow begins to wait for the deposit's money at any moment
		return none, err
	}
	a, err := t.lockedAttempt(ctx, id)
	if err != nil {
		return none, err
	}
	ar := &arrival{
		t: t, x: x, now: w.now, money: p.Amount, out: exchange.PaymentOutcome{Attempt: a, Kind: exchange.PaidExact},
		obs: exchange.Observation{State: exchange.SeenSucceeded, Receipt: p.Receipt, Amount: p.Amount, Reference: p.Reference, PhoneHash: p.PartyHash, At: p.PaidAt, Source: exchange.SourceStatement},
	}
	err = ar.takeNamed(ctx, p)
	return ar.post, err
}

// forgetNamed lets a named payment go that can't be the deposit's money any more, also while it waits for a second officer.
func (w *otcWork) forgetNamed(ctx context.Context) error {
	w.d.NamedPaymentID, w.d.NamedBy, w.d.NamedSecond = uuid.Nil, uuid.Nil, uuid.Nil
	if w.d.Status.WaitsForOfficer() {
		w.d.Detail = w.waitsFor()
	}
	return w.save(ctx, "otc_deposit.changed")
}

// awaitSecond shows that another officer has to name the payment: other deposits have taken the room since the first one did.
func (w *otcWork) awaitSecond(ctx context.Context) error {
	if !w.d.Status.WaitsForOfficer() || w.d.Detail == exchange.WaitSecond {
		return nil
	}
	w.d.Detail = exchange.WaitSecond
	return w.save(ctx, "otc_deposit.changed")
}

const claimNamed = `UPDATE c2b_payments SET status = 'matched', object_type = $2, object_id = $3, attempt_id = $4, booked_at = $5, updated_at = $5 WHERE id = $1 AND status = 'unmatched'`

// takeNamed books a payment that officers named. Money that was set aside leaves suspense, with its exception.
func (ar *arrival) takeNamed(ctx context.Context, p exchange.C2BPayment) error {
	if p.ExceptionID != uuid.Nil {
		x, err := ar.t.lockedException(ctx, p.ExceptionID)
		if err == nil {
			_, err = ar.t.moveException(ctx, x, exchange.ExcMatched, "the money of an OTC deposit", flow)
		}
		if err != nil {
			return err
		}
	}
	of := ar.out.Attempt.Object
	if err := ar.t.One(ctx, claimNamed, p.ID, of.Type, of.ID, ar.out.Attempt.ID, ar.now); err != nil {
		return err
	}
	if err := ar.settleAttempt(ctx); err != nil {
		return err
	}
	if err := ar.t.One(ctx, insertCollection, p.Receipt, ar.out.Attempt.ID, of.Type, of.ID, ar.out.Kind, p.Amount.Asset(), p.Amount.Decimal(), ar.now); err != nil {
		return err
	}
	_, account, err := ar.x.complete(ctx, ar.t, ar.out.Attempt, p.Receipt)
	if err != nil {
		return err
	}
	if p.ExceptionID == uuid.Nil {
		ar.entry(exchange.Credit(account, p.Amount))
		return nil
	}
	ar.post.Entries = append(ar.post.Entries, exchange.Entry{
		Key: "exception:" + p.ExceptionID.String() + ":matched", Kind: "payment.matched", ObjectType: "payment_exception", ObjectID: p.ExceptionID,
		Lines: []exchange.Line{exchange.Debit(exchange.House(exchange.AccSuspense, money.KES), p.Amount), exchange.Credit(account, p.Amount)},
	})
	return nil
}
