package store

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// transferPayment is a transfer that a payment carries out.
type transferPayment struct{ transfer exchange.Transfer }

func (o *transferPayment) parties() (owner, vendor uuid.UUID) {
	return o.transfer.SenderID, o.transfer.VendorID
}

// follow moves the transfer along. The transaction that completes its payment and captures its hold also completes the
// transfer.
func (o *transferPayment) follow(ctx context.Context, t unitTx, to paymentStage, txID string) error {
	f := o.transfer
	status, detail := f.Status, ""
	switch to {
	case stageApproved:
		if detail, txID = exchange.WaitSignature, ""; f.WalletType == exchange.Cold {
			detail = exchange.WaitExternal
		}
		if status != exchange.TransferQueued {
			status = exchange.TransferSigning // it is no longer on the network
		}
	case stageHandedOut:
		detail, txID = exchange.WaitHandedOut, f.TxHash
	case stageWithdrawn:
		detail, txID = exchange.WaitWithdrawal, f.TxHash
	case stageWaiting:
		detail, txID = exchange.WaitWatch, f.TxHash
	case stageFrozen:
		detail, txID = exchange.WaitFrozen, f.TxHash
	case stageSigned:
		status, detail, txID = exchange.TransferBroadcasting, exchange.WaitBroadcast, f.TxHash
	case stageBroadcast, stageIncluded:
		status, detail = exchange.TransferConfirming, exchange.WaitFinality
	case stageVanished:
		status, detail, txID = exchange.TransferBroadcasting, exchange.WaitBroadcast, f.TxHash
	case stageParked:
		detail, txID = exchange.WaitOperator, f.TxHash
	case stageCompleted:
		status, detail = exchange.TransferCompleted, exchange.WaitNothing
	}
	return o.advance(ctx, t, status, detail, txID)
}

// advance saves the transfer in a status, and in the intermediate ones that the state machine requires. A transfer
// that has ended, or has the status already, stays as it is.
func (o *transferPayment) advance(ctx context.Context, t unitTx, to exchange.TransferStatus, detail, txHash string) error {
	for !o.transfer.Over() {
		f := o.transfer
		f.Status, f.StatusDetail, f.TxHash = between(f.Status, to), detail, txHash
		if f.Status == o.transfer.Status && f.StatusDetail == o.transfer.StatusDetail && f.TxHash == o.transfer.TxHash {
			return nil
		}
		name := "transfer.detail_changed"
		if f.Status != o.transfer.Status {
			name = "transfer." + string(f.Status)
		}
		var err error
		if o.transfer, err = t.saveTransfer(ctx, name, flow, o.transfer, f); err != nil || o.transfer.Status == to {
			return err
		}
	}
	return nil
}

// between is the next status on the way to another one.
func between(from, to exchange.TransferStatus) exchange.TransferStatus {
	switch {
	case from == to:
		return to
	case from == exchange.TransferQueued:
		return exchange.TransferSigning
	case from == exchange.TransferSigning && to == exchange.TransferCompleted:
		return exchange.TransferConfirming
	}
	return to
}

func (o *transferPayment) spend(ctx context.Context, t unitTx, p exchange.ChainPayment) (exchange.Posting, []exchange.Line, error) {
	used, lines, err := t.spendReserved(ctx, p)
	fee := takeFee(o.transfer)
	used.Holds, used.Entries = append(used.Holds, fee.Holds...), append(used.Entries, fee.Entries...)
	return used, lines, err
}

// giveUpPayment makes sure that a transfer's crypto never leaves. CodeStateConflict while a transaction may still move
// it, or while an unsettled outgoing movement may be it.
func (t unitTx) giveUpPayment(ctx context.Context, f exchange.Transfer, by exchange.Principal, why string) error {
	p, found, err := t.paymentOf(ctx, exchange.ForTransfer, f.ID)
	if err != nil || !found || p.Status == exchange.ChainCancelled {
		return err
	}
	object, p, err := t.objectOf(ctx, p.ID)
	if err != nil {
		return err
	}
	_, alive, err := t.liveAttempt(ctx, p.ID)
	if err != nil {
		return err
	}
	if alive || (p.Status != exchange.ChainParked && p.Status != exchange.ChainApproved) {
		return exchange.Errorf(exchange.CodeStateConflict, "A transaction of the transfer may still move money, so the transfer can't be given up.")
	}
	if err := t.mayGiveUp(ctx, p.ID); err != nil {
		return err
	}
	if err := t.closeDraft(ctx, p.ID); err != nil {
		return err
	}
	if p.Status == exchange.ChainApproved {
		parked := p
		parked.Status, parked.Detail = exchange.ChainParked, why
		if p, err = t.savePayment(ctx, by, object, p, parked); err != nil {
			return err
		}
	}
	cancelled := p
	cancelled.Status, cancelled.Detail = exchange.ChainCancelled, why
	_, err = t.savePayment(ctx, by, object, p, cancelled)
	return err
}
