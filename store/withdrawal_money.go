package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// The money of executed withdrawals: crypto that the house buys, shillings that leave, and crypto that the merchant bought.

// paid completes a withdrawal whose shillings left an account of the house.
func (w *outWork) paid(ctx context.Context, receipt string, from exchange.AccountRef) error {
	owed := w.w.Owed()
	w.settle(exchange.HoldCapture, w.w.HoldID)
	w.book("paid", exchange.Debit(w.balance(), owed), exchange.Credit(from, w.w.Payout), exchange.Credit(exchange.House(exchange.AccFees, owed.Asset()), owed.Sub(w.w.Payout)))
	w.w.Receipt, w.w.CompletedAt, w.w.RefusedCode, w.w.Claimed = receipt, w.now, "", false
	return w.move(ctx, exchange.WithdrawalCompleted, exchange.WaitNothing)
}

// SellWithdrawal takes the treasury's shillings for the crypto of an executed withdrawal, and approves the payment that brings the crypto to
// the treasury. A repeated call changes nothing. CodeInsufficientFunds while the treasury has too few shillings, CodeUnsupported where it has
// no wallet on the network.
func (s *Store) SellWithdrawal(ctx context.Context, id uuid.UUID) (exchange.Withdrawal, error) {
	return s.workWithdrawal(ctx, id, func(ctx context.Context, w *outWork) error {
		if w.w.Status != exchange.WithdrawalExecuting || w.w.Sold() || w.w.PaymentID != uuid.Nil {
			return nil
		}
		to, found, err := readFound[exchange.Wallet](ctx, w, readTreasury, w.w.SourceNetwork)
		if err != nil {
			return err
		}
		if !found {
			return exchange.Errorf(exchange.CodeUnsupported, "The house has no treasury wallet on %s.", w.w.SourceNetwork)
		}
		if w.w.HouseHoldID, err = w.hold("buys", treasuryShillings(), w.w.Price()); err != nil {
			return err
		}
		if err := w.move(ctx, exchange.WithdrawalExecuting, exchange.WaitCollection); err != nil {
			return err
		}
		p, err := w.addPayment(ctx, flow, &withdrawalPayment{w}, exchange.ChainPayment{
			Purpose: exchange.ForWithdrawal, ObjectID: id, Network: w.w.SourceNetwork, Amount: w.w.Source, WalletID: w.w.SourceWalletID, ToAddress: to.Address,
			HoldID: w.w.HoldID, ApprovedBy: "user:" + w.w.ExecutedBy.String(),
		})
		w.w.PaymentID = p.ID
		return err
	})
}

// withdrawalPayment brings crypto that is sold to the treasury's wallet.
type withdrawalPayment struct{ *outWork }

func (p *withdrawalPayment) parties() (owner, vendor uuid.UUID) {
	return p.w.MerchantID, p.w.MerchantID
}

// follow changes nothing: its withdrawal waits until spend.
func (p *withdrawalPayment) follow(context.Context, unitTx, paymentStage, string) error { return nil }

// spend books the sale: the crypto is the treasury's, and the shillings that were held for it are the merchant's, held for the payout. Other
// objects change no row in spend; the sale and the crypto must be booked together.
func (p *withdrawalPayment) spend(ctx context.Context, t unitTx, paid exchange.ChainPayment) (exchange.Posting, []exchange.Line, error) {
	posting, lines, err := t.spendReserved(ctx, paid)
	if err != nil {
		return posting, lines, err
	}
	w := p.outWork
	w.book("sold", exchange.Debit(treasuryShillings(), w.w.Price()), exchange.Credit(w.balance(), w.w.Payout), exchange.Credit(exchange.House(exchange.AccFees, w.w.Fee.Asset()), w.w.Fee))
	w.settle(exchange.HoldCapture, w.w.HouseHoldID)
	if w.w.HoldID, err = w.hold("sold", w.balance(), w.w.Payout); err != nil {
		return posting, lines, err
	}
	w.w.SoldAt = w.now
	detail := exchange.WaitPayout
	if w.w.Method == exchange.WithdrawByBank {
		detail = exchange.WaitBank
	}
	err = w.move(ctx, exchange.WithdrawalExecuting, detail)
	posting.Holds, posting.Entries = append(posting.Holds, w.post.Holds...), append(posting.Entries, w.post.Entries...)
	w.post = exchange.Posting{}
	return posting, lines, err
}

// giveUpSale gives up the payment of crypto that is sold, unless it is final. CodeStateConflict when a transaction of it may move the crypto.
func (w *outWork) giveUpSale(ctx context.Context) error {
	if w.w.PaymentID == uuid.Nil || w.w.Sold() {
		return nil
	}
	p, found, err := w.paymentOf(ctx, exchange.ForWithdrawal, w.w.ID)
	if err != nil || !found || p.Status == exchange.ChainCancelled {
		return err
	}
	return w.abandonPayment(ctx, p.ID, "cancelled", w.by)
}

// beginTransfer takes the transfer that the officer asks for beside the execution: exactly what the withdrawal buys, from the treasury.
func (w *outWork) beginTransfer(ctx context.Context) error {
	to, err := readOne[exchange.Destination](ctx, w, "destination", readDestination, w.w.DestinationID)
	if err != nil {
		return err
	}
	if err := require(w.step.TransferIntent != uuid.Nil, "/from_wallet_id", "required", "is required: a wallet of the treasury pays"); err != nil {
		return err
	}
	i, err := readOneIntent(ctx, w, w.step.TransferIntent)
	if err != nil {
		return err
	}
	r, err := exchange.TransferRequestOf(i)
	if err != nil {
		return err
	}
	same := i.Kind == exchange.IntendTransfer && i.By.UserID == w.by.UserID && r.Network == to.Network && r.Amount.Equal(w.w.Payout) &&
		r.Recipient == exchange.Recipient{Address: to.Address} && r.QuoteID == uuid.Nil
	if !same {
		return exchange.Errorf(exchange.CodeStateConflict, "The transfer is not what the withdrawal buys.")
	}
	w.w.TransferIntentID = i.ID
	return w.move(ctx, exchange.WithdrawalExecuting, exchange.WaitTransfer)
}

// FollowWithdrawalTransfer brings a withdrawal that buys crypto to where its transfer is: completed when that is, and approved again when it
// has ended and moved nothing, or can't be opened any more.
func (s *Store) FollowWithdrawalTransfer(ctx context.Context, id uuid.UUID) (exchange.Withdrawal, exchange.OTCTransfer, error) {
	var out exchange.OTCTransfer
	w, err := s.workWithdrawal(ctx, id, func(ctx context.Context, w *outWork) error {
		out = exchange.OTCTransfer{}
		if w.w.TransferIntentID == uuid.Nil || w.w.Over() {
			return nil
		}
		i, err := readOneIntent(ctx, w, w.w.TransferIntentID)
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
		if w.w.TransferID == uuid.Nil {
			w.w.TransferID = f.ID
			if err := w.move(ctx, exchange.WithdrawalConfirming, exchange.WaitTransfer); err != nil {
				return err
			}
		}
		switch {
		case f.Status == exchange.TransferCompleted:
			return w.bought(ctx)
		case f.Status == exchange.TransferBlocked && f.StatusDetail != exchange.DetailReleased, !exchange.TransferMachine.Terminal(f.Status):
			return nil
		}
		return w.unexecute(ctx)
	})
	return w, out, err
}

// bought completes a withdrawal whose crypto is final: the merchant's shillings are the house's.
func (w *outWork) bought(ctx context.Context) error {
	w.settle(exchange.HoldCapture, w.w.HoldID)
	w.book("bought", exchange.Debit(w.balance(), w.w.Source), exchange.Credit(treasuryShillings(), w.w.Source.Sub(w.w.Fee)),
		exchange.Credit(exchange.House(exchange.AccFees, w.w.Fee.Asset()), w.w.Fee))
	w.w.CompletedAt = w.now
	return w.move(ctx, exchange.WithdrawalCompleted, exchange.WaitNothing)
}

// awaitTransfer shows why the transfer is not opened yet. One that can't be opened any more gives the withdrawal back.
func (w *outWork) awaitTransfer(ctx context.Context, i exchange.Intent, out *exchange.OTCTransfer) error {
	if i.RefusedAt.IsZero() && !w.now.Before(i.ExpiresAt) {
		if _, err := w.Exec(ctx, refuseIntent, i.ID, w.now, exchange.CodeExpired); err != nil {
			return err
		}
		return w.unexecute(ctx)
	}
	if !i.RefusedAt.IsZero() {
		return w.unexecute(ctx)
	}
	r, err := exchange.TransferRequestOf(i)
	if err != nil {
		return err
	}
	if out.Short, out.Source, err = w.short(ctx, r.WalletID, w.w.Payout); err != nil {
		return err
	}
	detail := exchange.WaitTransfer
	if out.Short {
		detail = exchange.WaitInventory
	}
	return w.move(ctx, exchange.WithdrawalExecuting, detail)
}

// unexecute gives a withdrawal back to whoever executes it anew: its transfer moved nothing, and never will.
func (w *outWork) unexecute(ctx context.Context) error {
	w.w.TransferID, w.w.TransferIntentID, w.w.ExecutedBy = uuid.Nil, uuid.Nil, uuid.Nil
	w.w.ExecutedAt = exchange.Withdrawal{}.ExecutedAt
	return w.move(ctx, exchange.WithdrawalApproved, exchange.WaitExecution)
}

// RefuseWithdrawalTransfer gives up a transfer that could not be opened, such as one that a limit refuses, so that it never is.
func (s *Store) RefuseWithdrawalTransfer(ctx context.Context, id uuid.UUID, why exchange.Code) (exchange.Withdrawal, error) {
	return s.workWithdrawal(ctx, id, func(ctx context.Context, w *outWork) error {
		if w.w.Status != exchange.WithdrawalExecuting || w.w.TransferIntentID == uuid.Nil || w.w.TransferID != uuid.Nil {
			return nil
		}
		if _, err := w.Exec(ctx, refuseIntent, w.w.TransferIntentID, w.now, why); err != nil {
			return err
		}
		i, err := readOneIntent(ctx, w, w.w.TransferIntentID)
		if err != nil || i.RefusedAt.IsZero() {
			return err
		}
		return w.unexecute(ctx)
	})
}
