package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// Payouts by mobile money of withdrawals.

// withdrawalPayout is a withdrawal as an object of payouts.
type withdrawalPayout struct {
	*outWork

	phone exchange.Phone
}

// withdrawalReference is what the payee reads.
const withdrawalReference = "Withdrawal"

func (x withdrawalPayout) owes() exchange.Payable {
	return exchange.Payable{
		Object: exchange.WithdrawalObject(x.w.ID), Amount: x.w.Payout, Phone: x.phone, Reference: withdrawalReference,
		Status: string(x.w.Status), Paid: x.w.Status == exchange.WithdrawalCompleted, Receipt: x.w.Receipt, Claimed: x.w.Claimed,
	}
}

func readWithdrawalPayable(ctx context.Context, s *Store, id uuid.UUID) (exchange.Payable, error) {
	var p exchange.Payable
	err := s.inTx(ctx, "withdrawal", func(t unitTx) error {
		w, err := readOne[exchange.Withdrawal](ctx, t, "withdrawal", readWithdrawal, id)
		if err != nil {
			return err
		}
		x, err := t.payoutOf(ctx, t.workOn(w))
		p = x.owes()
		return err
	})
	return p, err
}

// payoutOf is the payout of a withdrawal. CodeUnsupported for one that is not paid by mobile money.
func (t unitTx) payoutOf(ctx context.Context, w *outWork) (withdrawalPayout, error) {
	x := withdrawalPayout{outWork: w}
	if w.w.Method != exchange.WithdrawByMomo {
		return x, exchange.Errorf(exchange.CodeUnsupported, "The withdrawal is not paid by mobile money.")
	}
	d, err := readOne[exchange.Destination](ctx, t, "destination", readDestination, w.w.DestinationID)
	x.phone = d.Phone
	return x, err
}

func lockWithdrawalPayout(ctx context.Context, t unitTx, id uuid.UUID) (payoutObject, error) {
	w, err := t.startWithdrawal(ctx, id)
	if err != nil {
		return nil, err
	}
	x, err := t.payoutOf(ctx, w)
	return x, err
}

func (x withdrawalPayout) parties() (owner, vendor uuid.UUID) { return x.w.MerchantID, x.w.MerchantID }

func (x withdrawalPayout) over() bool { return x.w.Over() }

func (x withdrawalPayout) underWay() bool { return x.w.Status == exchange.WithdrawalConfirming }

func (x withdrawalPayout) ready(context.Context, unitTx) (bool, error) {
	if (x.w.Status != exchange.WithdrawalExecuting && x.w.Status != exchange.WithdrawalReview) || !x.w.Sold() {
		return false, exchange.Errorf(exchange.CodeStateConflict, "A withdrawal that is %s can't be paid now.", x.w.Status)
	}
	return true, nil
}

func (x withdrawalPayout) begin(ctx context.Context, _ unitTx) error {
	return x.move(ctx, exchange.WithdrawalConfirming, exchange.WaitPayout)
}

func (x withdrawalPayout) complete(ctx context.Context, _ unitTx, a exchange.PaymentAttempt, receipt string) (exchange.Posting, error) {
	x.w.PaidBy = a.ID
	err := x.paid(ctx, receipt, exchange.House(exchange.AccMomoPayout, a.Amount.Asset()))
	return x.post, err
}

func (x withdrawalPayout) again(context.Context, unitTx) error { return nil }

func (x withdrawalPayout) refuse(ctx context.Context, _ unitTx, code string) error {
	x.w.RefusedCode = code
	return x.move(ctx, exchange.WithdrawalReview, exchange.WaitOperator)
}

func (x withdrawalPayout) doubt(ctx context.Context, _ unitTx, claimed bool) error {
	if x.w.Over() {
		return nil
	}
	x.w.Claimed = claimed
	return x.move(ctx, x.w.Status, x.w.Detail)
}
