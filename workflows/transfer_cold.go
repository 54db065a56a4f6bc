package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// cold reports whether the sending wallet is cold, so that the signer never signs with its key.
func (f *transfer) cold() bool { return f.row.WalletType == exchange.Cold }

// awaitImport waits, parked, for a transaction that is signed offline. It does not park for one that is being imported or is
// imported: the row shows what came of it, and there is nothing for an operator to do.
func (f *transfer) awaitImport(ctx workflow.Context) {
	if f.imports > 0 || f.imported {
		_ = workflow.Await(ctx, func() bool { return f.imports == 0 }) // never cancelled
	} else if d, decided := f.parkedOrMoved(ctx, ReasonColdWallet, nil); decided && d.verb == activities.VerbRefund {
		f.giveUp(ctx, d.proof)
		return
	}
	f.refresh(ctx)
	if f.row.Status == exchange.TransferQueued {
		f.imported = false // the row has no transaction: wait on, instead of reading it without a pause
	}
}

// admitCold refuses requests that certainly fail. The rows decide about the rest.
func (f *transfer) admitCold() error {
	switch {
	case f.refusal != nil || (f.opened && f.over()):
		return refuse(exchange.CodeStateConflict, "The transfer has ended.")
	case f.opened && !f.cold():
		return refuse(exchange.CodeStateConflict, "The sending wallet is not a cold wallet, so its transfers are signed by the service.")
	}
	return nil
}

// ready waits until the transfer exists, and refuses the request while the transfer can't be signed yet.
func (f *transfer) ready(ctx workflow.Context) error {
	if err := workflow.Await(ctx, func() bool { return f.opened }); err != nil {
		return err
	}
	if err := f.admitCold(); err != nil {
		return err
	}
	if f.stage() != StagePayout {
		return refuse(exchange.CodeStateConflict, "The transfer is "+string(f.row.Status)+" and can't be signed yet.")
	}
	return nil
}

func (f *transfer) onPayload(ctx workflow.Context, ref IntentRef) (TransferAck, error) {
	if err := f.ready(ctx); err != nil {
		return TransferAck{}, err
	}
	in := activities.ColdInput{PaymentID: f.row.PaymentID, Behalf: activities.Behalf{IntentID: ref.IntentID}}
	for range maxNoncePayments {
		out, err := step(ctx, offline(f.row.Network), "Prepare a transaction for offline signing", cold.DraftColdPayment, in)
		if err != nil {
			return TransferAck{}, passOn(err)
		}
		if out.NoncePaymentID == uuid.Nil {
			return TransferAck{Status: f.row.Status, Detail: f.row.Detail}, nil
		}
		if err := f.moveNonce(ctx, out.NoncePaymentID); err != nil {
			return TransferAck{}, err
		}
	}
	return TransferAck{}, refuse(exchange.CodeUnavailable, "The network can't prepare a transaction for offline signing now. Try again in a moment.")
}

// maxNoncePayments bounds the payments before a payload is returned: the nonce account may have to be opened, or an earlier
// payload to be made impossible.
const maxNoncePayments = 3

// moveNonce has the gas wallet open or advance the nonce account that keeps a transaction valid, and waits until that is
// final. It is carried out even if the caller no longer waits for the answer.
func (f *transfer) moveNonce(ctx workflow.Context, payment uuid.UUID) error {
	in := CryptoPayoutInput{PaymentID: payment, TransferID: f.row.TransferID, Network: f.row.Network}
	result, err := carry(ctx, in, child{summary: "Nonce account for the transfer " + f.row.TransferID.String()}, patiently)
	if err != nil {
		workflow.GetLogger(ctx).Error("the nonce account could not be opened or advanced", "error", err)
		return refuse(exchange.CodeUnavailable, "The network's gas wallet could not prepare the transaction. Try again.")
	}
	if !result.Completed {
		return refuse(exchange.CodeStateConflict, "The network's gas wallet could not prepare the transaction ("+result.Reason+"). Correct that and try again.")
	}
	return nil
}

// withdraw makes sure that no payload that was issued can still be included in a block. The money is returned only after that.
func (f *transfer) withdraw(ctx workflow.Context, asked activities.Behalf) error {
	if !f.cold() || f.stage() != StagePayout || f.row.PaymentID == uuid.Nil {
		return nil
	}
	in := activities.ColdInput{PaymentID: f.row.PaymentID, Behalf: asked}
	out, err := step(ctx, offline(f.row.Network), "Invalidate the issued transaction", cold.CloseColdPayment, in)
	if err != nil {
		return passOn(err)
	}
	if out.NoncePaymentID == uuid.Nil {
		return nil
	}
	return f.moveNonce(ctx, out.NoncePaymentID)
}

// onImport stores the signed transaction and lets the flow deliver it.
func (f *transfer) onImport(ctx workflow.Context, ref IntentRef) (TransferAck, error) {
	if err := f.ready(ctx); err != nil {
		return TransferAck{}, err
	}
	f.imports++
	defer func() { f.imports-- }()
	in := activities.ColdInput{PaymentID: f.row.PaymentID, Behalf: activities.Behalf{IntentID: ref.IntentID}}
	out, err := step(ctx, offline(f.row.Network), "Import the signed transaction", cold.ImportColdPayment, in)
	if err != nil {
		return TransferAck{}, passOn(err)
	}
	if out.Incomplete {
		sign := activities.SignInput{PaymentID: f.row.PaymentID}
		if _, err := step(ctx, cosigner(f.row.Network), "Add the fee payer's signature", signing.CompleteColdPayment, sign); err != nil {
			return TransferAck{}, passOn(err)
		}
	}
	f.imported = true // wakes the flow, which reads the row
	return TransferAck{Status: f.row.Status, Detail: f.row.Detail}, nil
}
