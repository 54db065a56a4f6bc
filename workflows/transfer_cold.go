package workflows

import (
	"github.com/google/uuid"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

// cold tells whether the sending wallet's key never signs in the signer.
func (f *transfer) cold() bool { return f.row.WalletType == exchange.Cold }

// awaitImport waits for a transaction that was signed elsewhere, in sight of the operators.
func (f *transfer) awaitImport(ctx workflow.Context) {
	if d, decided := f.parkedOrMoved(ctx, ReasonColdWallet, nil); decided && d.verb == activities.VerbRefund {
		f.giveUp(ctx, d.proof)
		return
	}
	f.refresh(ctx)
	if f.row.Status == exchange.TransferQueued {
		f.imported = false // the row knows of none: wait on, instead of asking it without a pause
	}
}

// admitCold refuses what is known to be in vain. The rows decide about the rest.
func (f *transfer) admitCold() error {
	switch {
	case f.refusal != nil || (f.opened && f.over()):
		return refuse(exchange.CodeStateConflict, "The transfer is over.")
	case f.opened && !f.cold():
		return refuse(exchange.CodeStateConflict, "The sending wallet is not cold; its transfers are signed here.")
	}
	return nil
}

// ready waits until the transfer exists and refuses it while it is not to be paid yet.
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

func (f *transfer) onPayload(ctx workflow.Context, a Actor) (TransferAck, error) {
	if err := f.ready(ctx); err != nil {
		return TransferAck{}, err
	}
	in := activities.ColdInput{PaymentID: f.row.PaymentID, Actor: a}
	for range maxNoncePayments {
		out, err := step(ctx, offline(f.row.Network), "Hand out a transaction to be signed", cold.DraftColdPayment, in)
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
	return TransferAck{}, refuse(exchange.CodeUnavailable, "The network is not ready for a transaction that waits; ask again in a moment.")
}

// maxNoncePayments are those that come before a transaction is handed out: an account may have to be opened, or
// what was handed out before to be made impossible.
const maxNoncePayments = 3

// moveNonce has the gas wallet open or advance the nonce account by which a transaction lives, and waits until that
// is final. Whoever waits for the answer may go away; it is carried out all the same.
func (f *transfer) moveNonce(ctx workflow.Context, payment uuid.UUID) error {
	in := CryptoPayoutInput{PaymentID: payment, TransferID: f.row.TransferID, Network: f.row.Network}
	result, err := carry(ctx, in, child{summary: "Nonce account for the transfer " + f.row.TransferID.String()}, patiently)
	if err != nil {
		workflow.GetLogger(ctx).Error("the nonce account was not moved", "error", err)
		return refuse(exchange.CodeUnavailable, "The network's gas wallet could not prepare the transaction; ask again.")
	}
	if !result.Completed {
		return refuse(exchange.CodeStateConflict, "The network's gas wallet could not prepare the transaction ("+result.Reason+"); see to that and ask again.")
	}
	return nil
}

// withdraw makes sure that nothing that was handed out can be included any more. Nothing is given back before.
func (f *transfer) withdraw(ctx workflow.Context, a Actor) error {
	if !f.cold() || f.stage() != StagePayout || f.row.PaymentID == uuid.Nil {
		return nil
	}
	in := activities.ColdInput{PaymentID: f.row.PaymentID, Actor: a}
	out, err := step(ctx, offline(f.row.Network), "Make sure that nothing comes back signed", cold.CloseColdPayment, in)
	if err != nil {
		return passOn(err)
	}
	if out.NoncePaymentID == uuid.Nil {
		return nil
	}
	return f.moveNonce(ctx, out.NoncePaymentID)
}

// onImport stores the transaction and lets the flow bring it to its end.
func (f *transfer) onImport(ctx workflow.Context, s SignedElsewhere) (TransferAck, error) {
	if err := f.ready(ctx); err != nil {
		return TransferAck{}, err
	}
	in := activities.ColdImport{PaymentID: f.row.PaymentID, Raw: s.Raw, Actor: s.Actor}
	out, err := step(ctx, offline(f.row.Network), "Take the signed transaction", cold.ImportColdPayment, in)
	if err != nil {
		return TransferAck{}, passOn(err)
	}
	if out.Incomplete {
		sign := activities.SignInput{PaymentID: f.row.PaymentID}
		if _, err := step(ctx, cosigner(f.row.Network), "Add the fee payer's signature", signing.CompleteColdPayment, sign); err != nil {
			return TransferAck{}, passOn(err)
		}
	}
	f.imported = true // wakes the flow, which looks at the row itself
	return TransferAck{Status: f.row.Status, Detail: f.row.Detail}, nil
}
