package activities

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// TransferStore stores transfers for flows. Every method is one transaction and may be called again: a transfer that has
// advanced already is returned unchanged.
type TransferStore interface {
	// OpenTransfer carries out an intent to transfer, and CancelTransfer one to cancel.
	OpenTransfer(ctx context.Context, a exchange.Asked) (exchange.Transfer, error)
	TransferByID(ctx context.Context, id uuid.UUID) (exchange.Transfer, error)
	AdvanceTransfer(ctx context.Context, id uuid.UUID) (exchange.Transfer, error)
	Denied(ctx context.Context, n exchange.Network, address string) (bool, error)
	RecordScreening(ctx context.Context, id uuid.UUID, said []exchange.Screening) (exchange.Transfer, error)
	SignTransfer(ctx context.Context, id uuid.UUID) (exchange.Transfer, error)
	SetTransferDetail(ctx context.Context, id uuid.UUID, detail string) (exchange.Transfer, error)
	CancelTransfer(ctx context.Context, id uuid.UUID, a exchange.Asked) (exchange.Transfer, error)
	LapseTransfer(ctx context.Context, id uuid.UUID) (exchange.Transfer, error)
	GiveUpTransfer(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.Transfer, error)
	actingStore
}

// Screener returns whether a counterparty outside our custody may be paid. Neither an error nor VerdictUnknown lets money
// go.
type Screener interface {
	Screen(ctx context.Context, c exchange.Counterparty) (exchange.Screening, error)
}

// Transfers changes the rows of transfers. Screener is nil if only the deny list is used.
type Transfers struct {
	Store    TransferStore
	Screener Screener
}

// TransferState is the state of a transfer. Version grows with every change, so that of two answers the newer one is known.
type TransferState struct {
	TransferID uuid.UUID               `json:"transfer_id"`
	Status     exchange.TransferStatus `json:"status"`
	Detail     string                  `json:"detail,omitempty"`
	PaymentID  uuid.UUID               `json:"payment_id,omitzero"`
	Approvals  int                     `json:"approvals,omitempty"`
	Required   int                     `json:"approvals_required,omitempty"`
	RestsUntil time.Time               `json:"rests_until,omitzero"` // of the destination, while nothing else is missing
	Version    int64                   `json:"version"`
}

// OpenedTransfer is a transfer as it was created: what the flow needs for its decisions and its details.
type OpenedTransfer struct {
	TransferState
	Kind       exchange.TransferKind `json:"kind"`
	Network    exchange.Network      `json:"network"`
	Amount     money.Amount          `json:"amount"`
	WalletType exchange.WalletType   `json:"wallet_type"`
	MerchantID uuid.UUID             `json:"merchant_id,omitzero"`
}

// OpenTransfer stores the transfer that an intent asks for and holds its amount. A second call with the same intent returns
// the same transfer. Refusals have the codes of the store's OpenTransfer.
func (a *Transfers) OpenTransfer(ctx context.Context, in IntentInput) (OpenedTransfer, error) {
	f, err := a.Store.OpenTransfer(ctx, in.asked(ctx))
	if err != nil {
		return OpenedTransfer{}, Failure(ctx, err)
	}
	return OpenedTransfer{
		TransferState: transferState(f), Kind: f.Kind, Network: f.Network, Amount: f.Amount, WalletType: f.WalletType, MerchantID: f.VendorID,
	}, nil
}

// TransferInput names a transfer.
type TransferInput struct {
	TransferID uuid.UUID `json:"transfer_id"`
}

// AdvanceTransfer moves an external transfer on to its screening. One within our custody, or whose destination has rested, is
// queued when the rule about all that leaves allows it.
func (a *Transfers) AdvanceTransfer(ctx context.Context, in TransferInput) (TransferState, error) {
	f, err := a.Store.AdvanceTransfer(ctx, in.TransferID)
	return transferState(f), Failure(ctx, err)
}

// ReadTransfer returns the state of a transfer.
func (a *Transfers) ReadTransfer(ctx context.Context, in TransferInput) (TransferState, error) {
	f, err := a.Store.TransferByID(ctx, in.TransferID)
	return transferState(f), Failure(ctx, err)
}

// denyList is the screener name of the deny list.
const denyList = "deny_list"

// ScreenTransfer screens the recipient by the deny list, and, if that is clear, by the configured screener, and stores the
// verdicts. A screener without an answer is asked again within the limits of the call. After an unknown verdict the transfer
// stays in screening.
func (a *Transfers) ScreenTransfer(ctx context.Context, in TransferInput) (TransferState, error) {
	f, err := a.Store.TransferByID(ctx, in.TransferID)
	if err != nil || f.Status != exchange.TransferScreening {
		return transferState(f), Failure(ctx, err)
	}
	denied, err := a.Store.Denied(ctx, f.Network, f.ToAddress)
	if err != nil {
		return TransferState{}, Failure(ctx, err)
	}
	said := []exchange.Screening{{Screener: denyList, Verdict: exchange.VerdictClear}}
	switch {
	case denied:
		said[0].Verdict = exchange.VerdictHit
	case a.Screener != nil:
		answer, err := a.Screener.Screen(ctx, exchange.Counterparty{TransferID: f.ID, Network: f.Network, Address: f.ToAddress, Amount: f.Amount})
		if err != nil {
			return TransferState{}, Failure(ctx, err)
		}
		said = append(said, answer)
	}
	f, err = a.Store.RecordScreening(ctx, f.ID, said)
	return transferState(f), Failure(ctx, err)
}

// HandToSigner moves a queued transfer of a hot wallet on to signing.
func (a *Transfers) HandToSigner(ctx context.Context, in TransferInput) (TransferState, error) {
	f, err := a.Store.SignTransfer(ctx, in.TransferID)
	return transferState(f), Failure(ctx, err)
}

// MarkTransferInput names what a transfer waits for.
type MarkTransferInput struct {
	TransferID uuid.UUID `json:"transfer_id"`
	Detail     string    `json:"detail"`
}

// MarkTransfer writes what a transfer waits for into its row.
func (a *Transfers) MarkTransfer(ctx context.Context, in MarkTransferInput) (TransferState, error) {
	f, err := a.Store.SetTransferDetail(ctx, in.TransferID, in.Detail)
	return transferState(f), Failure(ctx, err)
}

// CancelTransferInput cancels a transfer as an intent asks.
type CancelTransferInput struct {
	TransferID uuid.UUID `json:"transfer_id"`
	IntentID   uuid.UUID `json:"intent_id"`
}

// CancelTransfer cancels a transfer before anything is signed; CodeStateConflict after that.
func (a *Transfers) CancelTransfer(ctx context.Context, in CancelTransferInput) (TransferState, error) {
	f, err := a.Store.CancelTransfer(ctx, in.TransferID, Behalf{IntentID: in.IntentID}.asked(ctx))
	return transferState(f), Failure(ctx, err)
}

// LapseTransfer cancels a transfer that officers did not decide in time.
func (a *Transfers) LapseTransfer(ctx context.Context, in TransferInput) (TransferState, error) {
	f, err := a.Store.LapseTransfer(ctx, in.TransferID)
	return transferState(f), Failure(ctx, err)
}

// GiveUpTransferInput returns a transfer's money by command.
type GiveUpTransferInput struct {
	TransferID uuid.UUID `json:"transfer_id"`
	Proof      Proof     `json:"proof"`
}

// GiveUpTransfer ends a transfer that can't go on, or releases the money of a blocked one. It is refused with
// CodeStateConflict while a transaction may still move the money.
func (a *Transfers) GiveUpTransfer(ctx context.Context, in GiveUpTransferInput) (TransferState, error) {
	f, err := actedOn(ctx, a.Store, in.Proof.Behalf(), func(by exchange.Principal) (exchange.Transfer, error) {
		return a.Store.GiveUpTransfer(ctx, in.TransferID, by)
	})
	return transferState(f), Failure(ctx, err)
}

func transferState(f exchange.Transfer) TransferState {
	s := TransferState{
		TransferID: f.ID, Status: f.Status, Detail: f.StatusDetail, PaymentID: f.PaymentID, Approvals: f.Approvals,
		Required: f.ApprovalsRequired, Version: f.Version,
	}
	if f.StatusDetail == exchange.WaitRest {
		s.RestsUntil = f.RestsUntil
	}
	return s
}
