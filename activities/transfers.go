package activities

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// TransferStore is what flows change of transfers. Every method is one transaction and may be called
// again: a transfer that is further already is returned as it is.
type TransferStore interface {
	OpenTransfer(ctx context.Context, r exchange.TransferRequest, by exchange.Principal) (exchange.Transfer, error)
	TransferByID(ctx context.Context, id uuid.UUID) (exchange.Transfer, error)
	AdvanceTransfer(ctx context.Context, id uuid.UUID) (exchange.Transfer, error)
	Denied(ctx context.Context, n exchange.Network, address string) (bool, error)
	RecordScreening(ctx context.Context, id uuid.UUID, said []exchange.Screening) (exchange.Transfer, error)
	SignTransfer(ctx context.Context, id uuid.UUID) (exchange.Transfer, error)
	SetTransferDetail(ctx context.Context, id uuid.UUID, detail string) (exchange.Transfer, error)
	CancelTransfer(ctx context.Context, id uuid.UUID, detail string, by exchange.Principal) (exchange.Transfer, error)
	LapseTransfer(ctx context.Context, id uuid.UUID) (exchange.Transfer, error)
	GiveUpTransfer(ctx context.Context, id uuid.UUID, by exchange.Principal) (exchange.Transfer, error)
}

// Screener says whether somebody outside of our custody may be paid. An error is no answer, and so is
// VerdictUnknown: neither lets money go.
type Screener interface {
	Screen(ctx context.Context, c exchange.Counterparty) (exchange.Screening, error)
}

// Transfers moves the rows of transfers. Screener is nil where the deny list is all there is.
type Transfers struct {
	Store    TransferStore
	Screener Screener
}

// TransferState is where a transfer stands. Version grows with every change, so that of two answers the
// newer one is known.
type TransferState struct {
	TransferID uuid.UUID               `json:"transfer_id"`
	Status     exchange.TransferStatus `json:"status"`
	Detail     string                  `json:"detail,omitempty"`
	PaymentID  uuid.UUID               `json:"payment_id,omitzero"`
	Approvals  int                     `json:"approvals,omitempty"`
	Version    int64                   `json:"version"`
}

// OpenedTransfer is a transfer as it was created: what the flow needs to steer and to say what it is about.
type OpenedTransfer struct {
	TransferState
	Kind              exchange.TransferKind `json:"kind"`
	Network           exchange.Network      `json:"network"`
	Amount            money.Amount          `json:"amount"`
	WalletType        exchange.WalletType   `json:"wallet_type"`
	MerchantID        uuid.UUID             `json:"merchant_id,omitzero"`
	ApprovalsRequired int                   `json:"approvals_required,omitempty"`
}

// OpenTransferInput asks for a new transfer.
type OpenTransferInput struct {
	Request exchange.TransferRequest `json:"request"`
	Actor   Actor                    `json:"actor"`
}

// OpenTransfer stores the transfer and holds its amount. A second call with the same id gives the same
// transfer. Refusals have the codes of the store's OpenTransfer.
func (a *Transfers) OpenTransfer(ctx context.Context, in OpenTransferInput) (OpenedTransfer, error) {
	f, err := a.Store.OpenTransfer(ctx, in.Request, in.Actor.Principal())
	if err != nil {
		return OpenedTransfer{}, Failure(ctx, err)
	}
	return OpenedTransfer{
		TransferState: transferState(f), Kind: f.Kind, Network: f.Network, Amount: f.Amount, WalletType: f.WalletType, MerchantID: f.VendorID,
		ApprovalsRequired: f.ApprovalsRequired,
	}, nil
}

// TransferInput names a transfer.
type TransferInput struct {
	TransferID uuid.UUID `json:"transfer_id"`
}

// AdvanceTransfer queues a transfer within our custody, or sends one that leaves it to the screening.
func (a *Transfers) AdvanceTransfer(ctx context.Context, in TransferInput) (TransferState, error) {
	f, err := a.Store.AdvanceTransfer(ctx, in.TransferID)
	return transferState(f), Failure(ctx, err)
}

// ReadTransfer tells where a transfer stands.
func (a *Transfers) ReadTransfer(ctx context.Context, in TransferInput) (TransferState, error) {
	f, err := a.Store.TransferByID(ctx, in.TransferID)
	return transferState(f), Failure(ctx, err)
}

// denyList is the name under which the deny list answers.
const denyList = "deny_list"

// ScreenTransfer asks the deny list, and the configured screener where that is clear, about who is to be
// paid, and stores what they said. A screener that gives no answer is asked again within the limits of the
// call. The transfer is still being screened afterwards when one said that it does not know.
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

// HandToSigner moves a queued transfer of a hot wallet on to its signing.
func (a *Transfers) HandToSigner(ctx context.Context, in TransferInput) (TransferState, error) {
	f, err := a.Store.SignTransfer(ctx, in.TransferID)
	return transferState(f), Failure(ctx, err)
}

// MarkTransferInput says what a transfer waits for.
type MarkTransferInput struct {
	TransferID uuid.UUID `json:"transfer_id"`
	Detail     string    `json:"detail"`
}

// MarkTransfer writes what a transfer waits for, for everybody who reads it.
func (a *Transfers) MarkTransfer(ctx context.Context, in MarkTransferInput) (TransferState, error) {
	f, err := a.Store.SetTransferDetail(ctx, in.TransferID, in.Detail)
	return transferState(f), Failure(ctx, err)
}

// CancelTransferInput gives a transfer up on behalf of a person.
type CancelTransferInput struct {
	TransferID uuid.UUID `json:"transfer_id"`
	Actor      Actor     `json:"actor"`
}

// CancelTransfer gives a transfer up before anything is signed; CodeStateConflict after that.
func (a *Transfers) CancelTransfer(ctx context.Context, in CancelTransferInput) (TransferState, error) {
	detail := exchange.DetailByPerson
	if in.Actor.Role.Staff() {
		detail = exchange.DetailByStaff
	}
	f, err := a.Store.CancelTransfer(ctx, in.TransferID, detail, in.Actor.Principal())
	return transferState(f), Failure(ctx, err)
}

// LapseTransfer cancels a transfer for which nobody decided in time.
func (a *Transfers) LapseTransfer(ctx context.Context, in TransferInput) (TransferState, error) {
	f, err := a.Store.LapseTransfer(ctx, in.TransferID)
	return transferState(f), Failure(ctx, err)
}

// GiveUpTransferInput gives a transfer's money back by command.
type GiveUpTransferInput struct {
	TransferID uuid.UUID `json:"transfer_id"`
	Proof      Proof     `json:"proof"`
}

// GiveUpTransfer ends a transfer that can't go on, or frees the money of a blocked one. It is refused with
// CodeStateConflict while a transaction may still move the money.
func (a *Transfers) GiveUpTransfer(ctx context.Context, in GiveUpTransferInput) (TransferState, error) {
	f, err := a.Store.GiveUpTransfer(ctx, in.TransferID, in.Proof.Principal())
	return transferState(f), Failure(ctx, err)
}

func transferState(f exchange.Transfer) TransferState {
	return TransferState{
		TransferID: f.ID, Status: f.Status, Detail: f.StatusDetail, PaymentID: f.PaymentID, Approvals: f.Approvals, Version: f.Version,
	}
}
