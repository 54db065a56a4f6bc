package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/pg"
)

// ExceptionFilter narrows a list of payment exceptions.
type ExceptionFilter struct {
	Status  exchange.ExceptionStatus
	Kind    exchange.ExceptionKind
	Asset   money.Asset
	OrderID uuid.UUID
	// AttemptID is the prompt or payout of the money.
	AttemptID uuid.UUID
	DepositID uuid.UUID     // the OTC deposit that the money names
	LineID    uuid.UUID     // the line of a bank's statement that is about it
	Rail      exchange.Rail // the way that the money took
	// CreatedFrom is inclusive and CreatedTo exclusive; zero is open.
	CreatedFrom, CreatedTo time.Time
	ID                     uuid.UUID
	View                   *View // restricts to exceptions that concern the view; nil is all
}

const exceptionColumns = `id, kind, status, order_id, attempt_id, line_id, deposit_id, receipt, amount||' '||asset AS amount, NULL AS place, note, created_at, updated_at, version`

func exceptionSnapshot(x exchange.PaymentException) map[string]any {
	return map[string]any{
		"id": x.ID, "kind": x.Kind, "status": x.Status, "order_id": nullID(x.OrderID), "statement_line_id": nullID(x.LineID), "otc_deposit_id": nullID(x.DepositID), "receipt": x.Receipt, "amount": x.Amount.String(),
		"currency": x.Amount.Asset(), "version": x.Version,
	}
}

const insertException = `
INSERT INTO payment_exceptions (id, kind, status, order_id, attempt_id, line_id, receipt, asset, amount, note, created_at, updated_at, deposit_id)
VALUES ($1, $2, 'open', $3, $4, $5, $6, $7, $8, '', $9, $9, $10) RETURNING ` + exceptionColumns

// openException opens an exception that its owner, if any, may read.
func (t unitTx) openException(ctx context.Context, owner uuid.UUID, x exchange.PaymentException) (exchange.PaymentException, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return x, err
	}
	err = t.Get(ctx, &x, insertException, id, x.Kind, nullID(x.OrderID), nullID(x.AttemptID), nullID(x.LineID), x.Receipt, x.Amount.Asset(), x.Amount.Decimal(), t.s.now(), nullID(x.DepositID))
	if err != nil {
		return x, err
	}
	return x, t.record(ctx, auditEvent{by: flow, object: "payment_exception", id: id, name: "payment_exception.opened", owner: owner, after: exceptionSnapshot(x)})
}

const saveException = `UPDATE payment_exceptions SET status = $2, note = $3, updated_at = $4, version = version + 1
WHERE id = $1 AND version = $5 AND status = ANY ($6) RETURNING ` + exceptionColumns

const ownerOfOrder = `SELECT customer_id FROM orders WHERE id = $1`

// ownerOfException is who may read an exception: the owner of its order, or of what its money was collected for.
func (t unitTx) ownerOfException(ctx context.Context, x exchange.PaymentException) (owner uuid.UUID, err error) {
	if x.OrderID != uuid.Nil {
		return owner, t.Get(ctx, &owner, ownerOfOrder, x.OrderID)
	}
	if x.DepositID != uuid.Nil {
		return owner, t.Get(ctx, &owner, merchantOfDeposit, x.DepositID)
	}
	if x.AttemptID == uuid.Nil {
		return owner, nil
	}
	var a exchange.PaymentAttempt
	if err := t.Get(ctx, &a, readAttempt, x.AttemptID); err != nil {
		return owner, translate(err, "payment attempt")
	}
	if a.Object.Type == exchange.MomoWithdrawal {
		return owner, t.Get(ctx, &owner, merchantOfWithdrawal, a.Object.ID)
	}
	kind, err := collectionTypeOf(a.Object)
	if err != nil {
		return owner, err
	}
	return owner, t.Get(ctx, &owner, kind.owner, a.Object.ID)
}

func (t unitTx) moveException(ctx context.Context, before exchange.PaymentException, to exchange.ExceptionStatus, note string, by exchange.Principal) (exchange.PaymentException, error) {
	if err := exchange.ExceptionMachine.Allow(before.Status, to); err != nil {
		return before, err
	}
	var rows []exchange.PaymentException
	err := t.All(ctx, &rows, saveException, before.ID, to, note, t.s.now(), before.Version, pq.Array(exchange.ExceptionMachine.Sources(to)))
	if err == nil && len(rows) == 0 {
		err = pg.ErrChangedMeanwhile
	}
	if err != nil {
		return before, err
	}
	x := rows[0]
	owner, err := t.ownerOfException(ctx, x)
	if err != nil {
		return x, err
	}
	return x, t.record(ctx, auditEvent{
		by: by, object: "payment_exception", id: x.ID, name: "payment_exception." + string(to), owner: owner,
		before: exceptionSnapshot(before), after: exceptionSnapshot(x),
	})
}

const readException = `SELECT ` + exceptionColumns + ` FROM payment_exceptions WHERE id = $1`

const readExceptionByReceipt = `SELECT ` + exceptionColumns + ` FROM payment_exceptions WHERE receipt = $1`

const lockException = `SELECT ` + exceptionColumns + ` FROM payment_exceptions WHERE id = $1 FOR NO KEY UPDATE`

// Exception reads a payment exception, with the place of its crypto.
func (s *Store) Exception(ctx context.Context, id uuid.UUID) (exchange.PaymentException, error) {
	var x exchange.PaymentException
	if err := s.db.Get(ctx, &x, readException, id); err != nil {
		return exchange.PaymentException{}, translate(err, "payment exception")
	}
	return s.placed(ctx, x)
}

func (t unitTx) exceptionOf(ctx context.Context, receipt string) (exchange.PaymentException, bool, error) {
	return readFound[exchange.PaymentException](ctx, t, readExceptionByReceipt, receipt)
}

func (t unitTx) lockedException(ctx context.Context, id uuid.UUID) (exchange.PaymentException, error) {
	return readOne[exchange.PaymentException](ctx, t, "payment exception", lockException, id)
}

// onRail are the conditions of rails; see exchange.PaymentException.Rail.
var onRail = map[exchange.Rail]string{
	exchange.RailBank:  `(line_id IS NOT NULL OR deposit_id IS NOT NULL AND attempt_id IS NULL)`,
	exchange.RailMomo:  `line_id IS NULL AND (deposit_id IS NULL OR attempt_id IS NOT NULL) AND asset = 'KES'`,
	exchange.RailChain: `asset <> 'KES'`,
}

// ListExceptions pages through the payment exceptions, newest first, with their number and the places of their crypto.
func (s *Store) ListExceptions(ctx context.Context, f ExceptionFilter, p Page) ([]exchange.PaymentException, int, error) {
	var w where
	w.concerns(f.View, "id", exceptionsOfCustomer, exceptionsOfMerchant)
	w.id("id", f.ID)
	w.eq("status", string(f.Status))
	w.eq("kind", string(f.Kind))
	w.eq("asset", string(f.Asset))
	w.between("created_at", f.CreatedFrom, f.CreatedTo)
	w.id("order_id", f.OrderID)
	w.id("attempt_id", f.AttemptID)
	w.id("line_id", f.LineID)
	w.id("deposit_id", f.DepositID)
	if of := onRail[f.Rail]; of != "" {
		w.add(of)
	}
	all, total, err := readPage[exchange.PaymentException](ctx, s, "payment exception", list{columns: exceptionColumns, from: "payment_exceptions", where: w, order: "created_at DESC, id DESC"}, p)
	if err != nil {
		return nil, 0, err
	}
	return all, total, s.fillPlaces(ctx, all)
}

// RefundException refunds money that lies in suspense. A repeated call returns the existing refund; CodeStateConflict
// when an officer settled the exception in another way.
func (s *Store) RefundException(ctx context.Context, exceptionID uuid.UUID, by exchange.Principal) (exchange.Refund, error) {
	return change(ctx, s, "refund", exceptionID, func(ctx context.Context, t unitTx) (exchange.Refund, exchange.Posting, error) {
		var none exchange.Posting
		x, err := t.lockedException(ctx, exceptionID)
		if err != nil {
			return exchange.Refund{}, none, err
		}
		if old, found, err := t.refundOf(ctx, exceptionID); err != nil || found {
			return old, none, err
		}
		if x.Kind == exchange.ExcReconciliation {
			return exchange.Refund{}, none, exchange.Errorf(exchange.CodeStateConflict, "A difference between the ledger and the chain has no money to refund.")
		}
		if x.Kind == exchange.ExcPaidTwice {
			return exchange.Refund{}, none, exchange.Errorf(exchange.CodeStateConflict, "The money of a double payout has left; there is nothing to refund.")
		}
		if x.OrderID == uuid.Nil {
			return exchange.Refund{}, none, exchange.Errorf(exchange.CodeStateConflict, "The money belongs to no order, so it is refunded by bank.")
		}
		var r exchange.PaymentAttempt
		if err := t.Get(ctx, &r, readAttempt, x.AttemptID); err != nil {
			return exchange.Refund{}, none, translate(err, "payment attempt")
		}
		var o exchange.Order
		if err := t.Get(ctx, &o, readOrderByID, x.OrderID); err != nil {
			return exchange.Refund{}, none, translate(err, "order")
		}
		if x, err = t.moveException(ctx, x, exchange.ExcRefunding, "", by); err != nil {
			return exchange.Refund{}, none, err
		}
		refund, err := t.openRefund(ctx, o, exchange.Refund{
			OrderID: x.OrderID, AttemptID: x.AttemptID, ExceptionID: x.ID, Amount: x.Amount, Phone: r.Phone, Reason: string(x.Kind),
		}, x.Receipt, by)
		return refund, exchange.Posting{Entries: []exchange.Entry{{
			Key: "exception:" + x.ID.String() + ":refund", Kind: "exception.refund", ObjectType: "payment_exception", ObjectID: x.ID,
			Lines: []exchange.Line{
				exchange.Debit(exchange.House(exchange.AccSuspense, x.Amount.Asset()), x.Amount),
				exchange.Credit(exchange.House(exchange.AccRefundsDue, x.Amount.Asset()), x.Amount),
			},
		}}}, err
	})
}

// ResolveException settles an open exception without a refund. Written-off and accepted money becomes the house's, and
// a double payout its loss; for both a note says why. Crediting needs an account of the payer, which customers do not
// have: CodeUnsupported. An exception that is already settled in this way is returned as it is, and so is one that an
// officer credited or wrote off directly while the flow that asks to accept it was waiting.
func (s *Store) ResolveException(ctx context.Context, id uuid.UUID, to exchange.ExceptionStatus, note string, by exchange.Principal) (exchange.PaymentException, error) {
	if to == exchange.ExcCredited {
		return exchange.PaymentException{}, exchange.Errorf(exchange.CodeUnsupported, "Money can't be credited to a customer. Refund it instead.")
	}
	if to != exchange.ExcAccepted && to != exchange.ExcWrittenOff {
		return exchange.PaymentException{}, exchange.Errorf(exchange.CodeStateConflict, "An exception can't be resolved as %s.", to)
	}
	if err := require(note != "" && len([]rune(note)) <= 500, "/note", "required", "must say why, in at most 500 characters"); err != nil {
		return exchange.PaymentException{}, err
	}
	return change(ctx, s, "payment exception", id, func(ctx context.Context, t unitTx) (exchange.PaymentException, exchange.Posting, error) {
		x, err := t.lockedException(ctx, id)
		elsewhere := to == exchange.ExcAccepted && (x.Status == exchange.ExcCredited || x.Status == exchange.ExcWrittenOff)
		if err != nil || x.Status == to || elsewhere {
			return x, exchange.Posting{}, err
		}
		if err := t.withinOneOfficer(ctx, x); err != nil {
			return x, exchange.Posting{}, err
		}
		if err := t.stillOpen(ctx, x); err != nil {
			return x, exchange.Posting{}, err
		}
		if x, err = t.moveException(ctx, x, to, note, by); err != nil {
			return x, exchange.Posting{}, err
		}
		if x.Kind == exchange.ExcReconciliation {
			return x, exchange.Posting{}, nil // it was never booked; a separate entry corrects the books
		}
		at, err := t.placeOf(ctx, x)
		if err != nil {
			return x, exchange.Posting{}, err
		}
		return x, exchange.Posting{Entries: []exchange.Entry{{
			Key: "exception:" + x.ID.String() + ":" + string(to), Kind: "exception." + string(to), ObjectType: "payment_exception", ObjectID: x.ID,
			Lines: keeping(x, at),
		}}}, nil
	})
}

// keeping books money that the house keeps or has lost. Kept coins lie in a wallet, from where they are swept like earned fees.
func keeping(x exchange.PaymentException, at place) []exchange.Line {
	house := func(k exchange.AccountKind) exchange.AccountRef { return exchange.House(k, x.Amount.Asset()) }
	if x.Kind == exchange.ExcPaidTwice {
		return []exchange.Line{exchange.Debit(house(exchange.AccFees), x.Amount), exchange.Credit(house(exchange.AccReceivable), x.Amount)}
	}
	kept := house(exchange.AccFees)
	if x.Amount.Asset().Stablecoin() && at.WalletID != uuid.Nil {
		kept = exchange.Owned(exchange.AccWalletFees, at.WalletID, x.Amount.Asset())
	}
	return []exchange.Line{exchange.Debit(house(exchange.AccSuspense), x.Amount), exchange.Credit(kept, x.Amount)}
}
