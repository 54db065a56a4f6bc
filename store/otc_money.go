package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The money of deposits: how it comes, and where it goes.

func inFlight() exchange.AccountRef { return exchange.House(exchange.AccOrdersInFlight, money.KES) }

// book adds an entry about the deposit.
func (w *otcWork) book(what string, lines ...exchange.Line) {
	w.post.Entries = append(w.post.Entries, exchange.Entry{
		Key: "otc_deposit:" + w.d.ID.String() + ":" + what, Kind: "otc_deposit." + what, ObjectType: "otc_deposit", ObjectID: w.d.ID, Lines: exchange.Lines(lines...),
	})
}

// receive books money that came at the bank. It is nobody's until the deposit is settled.
func (w *otcWork) receive(ctx context.Context) error {
	w.d.ReceivedAt = w.now
	w.book("received", exchange.Debit(exchange.Owned(exchange.AccBank, w.d.BankID, money.KES), w.d.Received), exchange.Credit(inFlight(), w.d.Received))
	return w.flagMoney(ctx)
}

// receiveLine takes the money of a statement line, and matches the line with the deposit. What the line's exception booked is undone.
func (w *otcWork) receiveLine(ctx context.Context, l exchange.StatementLine) error {
	w.d.LineID, w.d.BankRef, w.d.BankID, w.d.Received, w.d.ValueDate = l.ID, l.BankReference, l.BankID, l.Amount, l.ValueDate
	posting, err := w.matchLine(ctx, l.ID, exchange.LineOfDeposit, w.d.ID, w.by)
	if err != nil {
		return err
	}
	w.post.Entries = append(w.post.Entries, posting.Entries...)
	return w.receive(ctx)
}

// flagMoney flags what about the money an officer should look at.
func (w *otcWork) flagMoney(ctx context.Context) error {
	var flags []exchange.OTCFlag
	today := exchange.DateOf(w.now)
	if w.d.ValueDate.After(today) {
		flags = append(flags, exchange.FlagFutureValue)
	}
	if w.d.ValueDate.Before(today.Add(-exchange.OTCOldValue)) {
		flags = append(flags, exchange.FlagOldValue)
	}
	if !w.d.Received.Equal(w.d.Fiat) {
		flags = append(flags, exchange.FlagAmount)
	}
	if err := w.flag(ctx, flags...); err != nil {
		return err
	}
	return w.flagSame(ctx, exchange.FlagSameReference, sameReference, w.d.BankRef)
}

// Lines with the reference of a deposit that waits for its money, the earliest for each deposit; and lines of money that two officers
// proved before it was on a statement.
const findDeposits = `
SELECT DISTINCT ON (d.id) l.id AS line_id, d.id AS object_id
FROM bank_lines l JOIN otc_deposits d ON d.payment_reference = substring(l.reference_code FROM 'KVD[0-9A-Z]{9}')
WHERE l.status <> 'matched' AND l.side = 'credit' AND l.reference_code LIKE '%KVD%' AND l.asset = 'KES' AND ` + undecidedLine + ` AND d.method = 'bank' AND d.received_at IS NULL
    AND d.status IN ('pending', 'assigned', 'claimed', 'info_required', 'on_hold') AND NOT line_typed(l, d.id)
ORDER BY d.id, l.value_date, l.id LIMIT $1`

const findLineless = `
SELECT DISTINCT ON (d.id) l.id AS line_id, d.id AS object_id
FROM otc_deposits d JOIN bank_lines l ON l.bank_account_id = d.bank_account_id AND l.side = 'credit' AND l.status <> 'matched' AND l.amount = d.received_amount AND l.asset = 'KES'
    AND (l.bank_reference = d.bank_reference OR substring(l.reference_code FROM 'KVD[0-9A-Z]{9}') = d.payment_reference) AND ` + undecidedLine + `
WHERE d.method = 'bank' AND d.received_at IS NOT NULL AND d.statement_line_id IS NULL AND NOT line_typed(l, d.id) ORDER BY d.id, l.bank_reference <> d.bank_reference, l.value_date, l.id LIMIT $1`

// matchDeposit matches a line with a deposit. The deposit is locked before the line, as its own steps do.
func (s *Store) matchDeposit(ctx context.Context, p linePair) error {
	_, err := s.workOTC(ctx, p.ObjectID, func(ctx context.Context, w *otcWork) error {
		l, err := readOne[exchange.StatementLine](ctx, w, "statement line", lockLine, p.LineID)
		if err != nil {
			return err
		}
		switch {
		case w.d.HasMoney() && w.d.LineID == uuid.Nil && w.d.Received.Equal(l.Amount) && w.d.BankID == l.BankID:
			w.d.LineID = l.ID
			if !w.d.ValueDate.Equal(l.ValueDate) {
				if err := w.flag(ctx, exchange.FlagValue); err != nil {
					return err
				}
			}
			posting, err := w.matchLine(ctx, l.ID, exchange.LineOfDeposit, w.d.ID, w.by)
			if err != nil {
				return err
			}
			w.post = posting
			return w.save(ctx, "otc_deposit.changed")
		case w.d.HasMoney() || !w.d.Status.TakesMoney():
			return exchange.Errorf(exchange.CodeStateConflict, "The deposit takes no money any more.")
		}
		if err := w.receiveLine(ctx, l); err != nil {
			return err
		}
		if w.d.Status.WaitsForOfficer() {
			w.d.Detail = exchange.WaitReview
		}
		return w.save(ctx, "otc_deposit.received")
	})
	return err
}

const lateDeposits = `
SELECT d.id FROM otc_deposits d WHERE d.payment_reference = substring($1 FROM 'KVD[0-9A-Z]{9}') AND (d.received_at IS NOT NULL OR d.status IN ('expired', 'rejected', 'cancelled'))`

// lateFor is the deposit that a line names whose money is set aside: it has ended, or it has its money.
func (t unitTx) lateFor(ctx context.Context, l exchange.StatementLine) (uuid.UUID, error) {
	if l.Side != exchange.SideCredit {
		return uuid.Nil, nil
	}
	id, _, err := readFound[uuid.UUID](ctx, t, lateDeposits, exchange.BankReference(l.Reference))
	return id, err
}

// giveBack books money of a deposit that ends without crediting it: it lies in suspense under a payment exception, which an officer
// refunds, credits or matches.
func (w *otcWork) giveBack(ctx context.Context) error {
	if !w.d.HasMoney() {
		return nil
	}
	x := exchange.PaymentException{Kind: exchange.ExcUnmatched, DepositID: w.d.ID, Receipt: "otc_deposit:" + w.d.ID.String(), Amount: w.d.Received}
	if w.d.MomoReceipt != "" {
		if err := w.Get(ctx, &x.AttemptID, readCollection, w.d.MomoReceipt); err != nil {
			return err
		}
	}
	_, err := w.openException(ctx, w.d.MerchantID, x)
	if err != nil {
		return err
	}
	w.book("returned", exchange.Debit(inFlight(), w.d.Received), exchange.Credit(exchange.House(exchange.AccSuspense, money.KES), w.d.Received))
	return nil
}
