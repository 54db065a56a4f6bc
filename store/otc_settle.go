package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The ends of deposits: settlement and audit, and those that credit nothing.

// settleOTC credits shillings at once. Crypto is paid by a transfer that the same officer asks for; the deposit waits for it.
func settleOTC(ctx context.Context, w *otcWork) error {
	if w.d.TookPart(w.by.UserID) {
		return exchange.Errorf(exchange.CodeForbidden, "Who created or confirmed a deposit can't settle it.")
	}
	if w.d.Named(w.by.UserID) {
		return exchange.Errorf(exchange.CodeForbidden, "Who named a deposit's money can't settle it.")
	}
	if err := w.notImporter(ctx, w.d.LineID, w.by.UserID); err != nil {
		return err
	}
	if err := w.confirmationCounts(ctx); err != nil {
		return err
	}
	w.d.CreditedBy = w.by.UserID
	w.noted()
	if w.d.Sells() {
		return w.beginTransfer(ctx)
	}
	return w.creditShillings(ctx)
}

// confirmationCounts refuses the settlement of a deposit whose officers were switched off.
func (w *otcWork) confirmationCounts(ctx context.Context) error {
	var gone bool
	if err := w.Get(ctx, &gone, confirmersGone, nullID(w.d.ConfirmedBy), nullID(w.d.AgreedBy)); err != nil {
		return err
	}
	if gone {
		return exchange.Errorf(exchange.CodeStateConflict, "The officer who confirmed the deposit was switched off. Another officer has to claim and confirm it.")
	}
	return nil
}

// creditShillings books the shillings to the merchant.
func (w *otcWork) creditShillings(ctx context.Context) error {
	if err := w.move(ctx, exchange.OTCSettling, exchange.WaitNothing); err != nil {
		return err
	}
	w.book("settled", exchange.Debit(inFlight(), w.d.Received), exchange.Credit(exchange.Owned(exchange.AccFiatBalance, w.d.MerchantID, money.KES), w.d.Received.Sub(w.d.Fee)),
		exchange.Credit(exchange.House(exchange.AccFees, money.KES), w.d.Fee))
	return w.credited(ctx)
}

func (w *otcWork) credited(ctx context.Context) error {
	w.d.CreditedAt = w.now
	return w.move(ctx, exchange.OTCCredited, exchange.WaitAudit)
}

// auditOTC closes a deposit by a person who had no part in it.
func auditOTC(ctx context.Context, w *otcWork) error {
	if w.d.TookPart(w.by.UserID) || w.d.Named(w.by.UserID) {
		return exchange.Errorf(exchange.CodeForbidden, "Who took another part in a deposit can't audit it.")
	}
	if err := w.notImporter(ctx, w.d.LineID, w.by.UserID); err != nil {
		return err
	}
	w.d.AuditedBy, w.d.AuditedAt = w.by.UserID, w.now
	w.noted()
	return w.move(ctx, exchange.OTCAudited, exchange.WaitNothing)
}

// rejectOTC ends a deposit. Its money becomes a payment exception.
func rejectOTC(ctx context.Context, w *otcWork) error {
	if err := w.withdrawSaid(ctx); err != nil {
		return err
	}
	w.d.RejectedBy, w.d.RejectedAt = w.by.UserID, w.now
	w.noted()
	return w.end(ctx, exchange.OTCRejected, exchange.DetailRejected)
}

// cancelOTC ends a deposit for its merchant. One with money is cancelled only while it waits for the merchant.
func cancelOTC(ctx context.Context, w *otcWork) error {
	if w.d.HasMoney() && w.d.Status != exchange.OTCInfo {
		return exchange.Errorf(exchange.CodeStateConflict, "Money of the deposit has come. An officer has to decide about it.")
	}
	if w.d.Collects() != "" {
		if may, err := w.mayBePaid(ctx); err != nil {
			return err
		} else if may {
			return exchange.Errorf(exchange.CodeStateConflict, "The deposit may be paid at this moment. Cancel it when the prompt has ended.")
		}
	}
	return w.end(ctx, exchange.OTCCancelled, exchange.DetailCancelled)
}

func (w *otcWork) end(ctx context.Context, to exchange.OTCStatus, detail string) error {
	w.d.Reason, w.d.ClaimedBy, w.d.ClaimEndsAt, w.d.HeldFrom = w.step.Text, uuid.Nil, time.Time{}, ""
	if w.d.HasMoney() {
		detail = exchange.DetailReturned
	}
	if err := w.giveBack(ctx); err != nil {
		return err
	}
	return w.move(ctx, to, detail)
}

// beginTransfer takes the transfer that the officer asks for beside the settlement: exactly what the deposit owes, from the treasury.
func (w *otcWork) beginTransfer(ctx context.Context) error {
	if w.d.ToWalletID == uuid.Nil {
		return exchange.Errorf(exchange.CodeStateConflict, "The merchant has no default wallet on the network of the deposit.")
	}
	i, err := readOneIntent(ctx, w, w.step.TransferIntent)
	if err != nil {
		return err
	}
	r, err := exchange.TransferRequestOf(i)
	if err != nil {
		return err
	}
	same := i.Kind == exchange.IntendTransfer && i.By.UserID == w.by.UserID && r.Network == w.d.Network && r.Amount.Equal(w.d.Crypto) &&
		r.Recipient == exchange.Recipient{WalletID: w.d.ToWalletID} && r.QuoteID == uuid.Nil
	if !same {
		return exchange.Errorf(exchange.CodeStateConflict, "The deposit has changed. Read it again, and settle it as it is.")
	}
	w.d.TransferIntentID = i.ID
	return w.move(ctx, exchange.OTCSettling, exchange.WaitTransfer)
}

const transferOfIntent = `SELECT id, status, status_detail FROM transfers WHERE id = $1`

// FollowOTCTransfer brings a deposit that is being settled in crypto to where its transfer is: credited when that is completed, and
// confirmed again when it has ended and moved nothing, or can't be opened any more.
func (s *Store) FollowOTCTransfer(ctx context.Context, id uuid.UUID) (exchange.OTCDeposit, exchange.OTCTransfer, error) {
	var out exchange.OTCTransfer
	d, err := s.workOTC(ctx, id, func(ctx context.Context, w *otcWork) error {
		out = exchange.OTCTransfer{}
		if w.d.Status != exchange.OTCSettling || !w.d.Sells() {
			return nil
		}
		i, err := readOneIntent(ctx, w, w.d.TransferIntentID)
		if err != nil {
			return err
		}
		out.ID, out.IntentID = i.ObjectID, i.ID
		f, opened, err := readFound[struct {
			ID           uuid.UUID
			Status       exchange.TransferStatus
			StatusDetail string
		}](ctx, w, transferOfIntent, i.ObjectID)
		if err != nil {
			return err
		}
		if !opened {
			return w.awaitTransfer(ctx, i, &out)
		}
		out.Opened = true
		if w.d.TransferID == uuid.Nil {
			w.d.TransferID = f.ID
			if err := w.move(ctx, exchange.OTCSettling, exchange.WaitTransfer); err != nil {
				return err
			}
		}
		switch {
		case f.Status == exchange.TransferCompleted:
			w.book("sold", exchange.Debit(inFlight(), w.d.Received), exchange.Credit(treasuryShillings(), w.d.Received.Sub(w.d.Fee)),
				exchange.Credit(exchange.House(exchange.AccFees, money.KES), w.d.Fee))
			return w.credited(ctx)
		case f.Status == exchange.TransferBlocked && f.StatusDetail != exchange.DetailReleased, !exchange.TransferMachine.Terminal(f.Status):
			return nil
		}
		return w.unsettle(ctx)
	})
	return d, out, err
}

// awaitTransfer shows why the transfer is not opened yet. One that can't be opened any more gives the deposit back.
func (w *otcWork) awaitTransfer(ctx context.Context, i exchange.Intent, out *exchange.OTCTransfer) error {
	if !i.RefusedAt.IsZero() {
		return w.unsettle(ctx)
	}
	if !w.now.Before(i.ExpiresAt) {
		if _, err := w.Exec(ctx, refuseIntent, i.ID, w.now, exchange.CodeExpired); err != nil {
			return err
		}
		return w.unsettle(ctx)
	}
	r, err := exchange.TransferRequestOf(i)
	if err != nil {
		return err
	}
	if out.Short, out.Source, err = w.short(ctx, r.WalletID, w.d.Crypto); err != nil {
		return err
	}
	detail := exchange.WaitTransfer
	if out.Short {
		detail = exchange.WaitInventory
	}
	if detail == w.d.Detail {
		return nil
	}
	return w.move(ctx, exchange.OTCSettling, detail)
}

// unsettle gives a deposit back to whoever settles it anew: its transfer moved nothing, and never will.
func (w *otcWork) unsettle(ctx context.Context) error {
	w.d.TransferID, w.d.TransferIntentID, w.d.CreditedBy = uuid.Nil, uuid.Nil, uuid.Nil
	return w.move(ctx, exchange.OTCConfirmed, exchange.DetailUnpaid)
}

// RefuseOTCTransfer gives up a transfer that could not be opened, such as one that a limit refuses, so that it never is.
func (s *Store) RefuseOTCTransfer(ctx context.Context, id uuid.UUID, why exchange.Code) (exchange.OTCDeposit, error) {
	return s.workOTC(ctx, id, func(ctx context.Context, w *otcWork) error {
		if w.d.Status != exchange.OTCSettling || w.d.TransferIntentID == uuid.Nil || w.d.TransferID != uuid.Nil {
			return nil
		}
		if _, err := w.Exec(ctx, refuseIntent, w.d.TransferIntentID, w.now, why); err != nil {
			return err
		}
		i, err := readOneIntent(ctx, w, w.d.TransferIntentID)
		if err != nil || i.RefusedAt.IsZero() {
			return err
		}
		return w.unsettle(ctx)
	})
}
