package workflows

import (
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
)

var cold *activities.Cold

// cold tells whether the sending wallet's key never signs in the signer.
func (f *transfer) cold() bool { return f.row.WalletType == exchange.Cold }

// awaitImport waits for a transaction that was signed elsewhere, in sight of the operators.
func (f *transfer) awaitImport(ctx workflow.Context) {
	if d, decided := f.parked(ctx, ReasonColdWallet, nil); decided && d.verb == activities.VerbRefund {
		f.giveUp(ctx, d.proof)
		return
	}
	f.refresh(ctx)
	if f.row.Status == exchange.TransferQueued {
		f.imported = false // the row knows of none: wait on, instead of asking it without a pause
	}
}

// coldDoors are the updates by which a transaction is handed out and comes back.
func (f *transfer) coldDoors(ctx workflow.Context) error {
	if err := workflow.SetUpdateHandlerWithOptions(ctx, UpdatePayload, f.onPayload, workflow.UpdateHandlerOptions{
		Validator: func(Actor) error { return f.admitCold() }, Description: "An officer asks for the transaction of a cold wallet, to sign it elsewhere.",
	}); err != nil {
		return err
	}
	return workflow.SetUpdateHandlerWithOptions(ctx, UpdateImport, f.onImport, workflow.UpdateHandlerOptions{
		Validator: func(SignedElsewhere) error { return f.admitCold() }, Description: "An officer brings the transaction of a cold wallet, signed elsewhere.",
	})
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
	if err := workflow.ExecuteActivity(offline(ctx, f.row.Network, "Hand out a transaction to be signed"), cold.DraftColdPayment, in).Get(ctx, nil); err != nil {
		return TransferAck{}, passOn(err)
	}
	return TransferAck{Status: f.row.Status, Detail: f.row.Detail}, nil
}

// onImport stores the transaction and lets the flow bring it to its end.
func (f *transfer) onImport(ctx workflow.Context, s SignedElsewhere) (TransferAck, error) {
	if err := f.ready(ctx); err != nil {
		return TransferAck{}, err
	}
	in := activities.ColdImport{PaymentID: f.row.PaymentID, Raw: s.Raw, Actor: s.Actor}
	if err := workflow.ExecuteActivity(offline(ctx, f.row.Network, "Take the signed transaction"), cold.ImportColdPayment, in).Get(ctx, nil); err != nil {
		return TransferAck{}, passOn(err)
	}
	f.imported = true // wakes the flow, which looks at the row itself
	return TransferAck{Status: f.row.Status, Detail: f.row.Detail}, nil
}
