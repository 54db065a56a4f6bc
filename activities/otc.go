package activities

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// OTCStore stores OTC deposits for flows. Every method is one transaction and may be called again.
type OTCStore interface {
	// OpenOTC and StepOTC carry out an intent about a deposit.
	OpenOTC(ctx context.Context, a exchange.Asked) (exchange.OTCDeposit, error)
	StepOTC(ctx context.Context, id uuid.UUID, a exchange.Asked) (exchange.OTCDeposit, error)
	LapseOTC(ctx context.Context, id uuid.UUID) (exchange.OTCDeposit, error)
	CreditOTC(ctx context.Context, id uuid.UUID) (exchange.OTCDeposit, error)
	Collections(ctx context.Context, of exchange.MomoObject) ([]exchange.PaymentAttempt, error)
	FollowOTCTransfer(ctx context.Context, id uuid.UUID) (exchange.OTCDeposit, exchange.OTCTransfer, error)
	RefuseOTCTransfer(ctx context.Context, id uuid.UUID, why exchange.Code) (exchange.OTCDeposit, error)
}

// OTC changes the rows of OTC deposits.
type OTC struct{ Store OTCStore }

// OTCState is the state of a deposit. Version grows with every change, so that of two answers the newer one is known.
type OTCState struct {
	DepositID uuid.UUID          `json:"deposit_id"`
	Status    exchange.OTCStatus `json:"status"`
	Detail    string             `json:"detail,omitempty"`
	Due       time.Time          `json:"due,omitzero"` // when something happens to it by time
	Version   int64              `json:"version"`
	// Collects is the method by which mobile money of it may still come, and Expires when it is waited for no longer.
	Collects exchange.OTCMethod `json:"collects,omitempty"`
	Expires  time.Time          `json:"expires,omitzero"`
	Credit   bool               `json:"credit,omitempty"` // the flow credits it
	Named    bool               `json:"named,omitempty"`  // an officer named the payment that is its money
}

// OpenedOTC is a deposit as it was created: what the flow shows of it.
type OpenedOTC struct {
	OTCState
	MerchantID uuid.UUID          `json:"merchant_id"`
	Method     exchange.OTCMethod `json:"method,omitempty"`
	Fiat       *money.Amount      `json:"fiat,omitempty"` // nil in a draft without an amount
	Asset      money.Asset        `json:"asset,omitempty"`
	Network    exchange.Network   `json:"network,omitempty"`
}

// OpenOTC stores the deposit that an intent asks for. Refusals have the codes of the store's OpenOTC.
func (a *OTC) OpenOTC(ctx context.Context, in IntentInput) (OpenedOTC, error) {
	d, err := a.Store.OpenOTC(ctx, in.asked(ctx))
	if err != nil {
		return OpenedOTC{}, Failure(ctx, err)
	}
	o := OpenedOTC{OTCState: otcState(d), MerchantID: d.MerchantID, Method: d.Method, Asset: d.Asset, Network: d.Network}
	if d.Fiat.Asset() != "" {
		o.Fiat = &d.Fiat
	}
	return o, nil
}

// OTCStepInput is a verb on a deposit, by the intent that asks for it.
type OTCStepInput struct {
	DepositID uuid.UUID `json:"deposit_id"`
	IntentID  uuid.UUID `json:"intent_id"`
}

// StepOTC carries out a verb on a deposit. Refusals have the codes of the store's StepOTC.
func (a *OTC) StepOTC(ctx context.Context, in OTCStepInput) (OTCState, error) {
	d, err := a.Store.StepOTC(ctx, in.DepositID, Behalf{IntentID: in.IntentID}.asked(ctx))
	return otcState(d), Failure(ctx, err)
}

// OTCInput names a deposit.
type OTCInput struct {
	DepositID uuid.UUID `json:"deposit_id"`
}

// LapseOTC does what is due by time, and returns the deposit as it is.
func (a *OTC) LapseOTC(ctx context.Context, in OTCInput) (OTCState, error) {
	d, err := a.Store.LapseOTC(ctx, in.DepositID)
	return otcState(d), Failure(ctx, err)
}

// CreditOTC credits shillings that came by mobile money and needed no officer.
func (a *OTC) CreditOTC(ctx context.Context, in OTCInput) (OTCState, error) {
	d, err := a.Store.CreditOTC(ctx, in.DepositID)
	return otcState(d), Failure(ctx, err)
}

// OTCPrompts is how many prompts for a deposit were stored.
type OTCPrompts struct {
	Prompts int `json:"prompts,omitempty"`
}

// Prompts counts the prompts that an earlier run of the flow stored.
func (a *OTC) Prompts(ctx context.Context, in OTCInput) (OTCPrompts, error) {
	all, err := a.Store.Collections(ctx, exchange.DepositObject(in.DepositID))
	return OTCPrompts{Prompts: len(all)}, Failure(ctx, err)
}

// OTCSettlement is where the transfer of a deposit's crypto is.
type OTCSettlement struct {
	OTCState
	TransferID uuid.UUID `json:"transfer_id,omitzero"`
	IntentID   uuid.UUID `json:"intent_id,omitzero"` // that asks for the transfer
	Opened     bool      `json:"opened,omitempty"`
	Short      bool      `json:"short,omitempty"`  // the treasury's wallet has too little
	Source     string    `json:"source,omitempty"` // where more can be brought from, in words
}

// FollowTransfer brings a deposit that is being settled in crypto to where its transfer is.
func (a *OTC) FollowTransfer(ctx context.Context, in OTCInput) (OTCSettlement, error) {
	d, t, err := a.Store.FollowOTCTransfer(ctx, in.DepositID)
	if err != nil {
		return OTCSettlement{}, Failure(ctx, err)
	}
	return OTCSettlement{OTCState: otcState(d), TransferID: t.ID, IntentID: t.IntentID, Opened: t.Opened, Short: t.Short, Source: t.Source}, nil
}

// RefusedTransferInput names a deposit whose transfer was refused.
type RefusedTransferInput struct {
	DepositID uuid.UUID     `json:"deposit_id"`
	Code      exchange.Code `json:"code"`
}

// RefuseTransfer gives up a transfer that could not be opened, so that it never is.
func (a *OTC) RefuseTransfer(ctx context.Context, in RefusedTransferInput) (OTCState, error) {
	d, err := a.Store.RefuseOTCTransfer(ctx, in.DepositID, in.Code)
	return otcState(d), Failure(ctx, err)
}

func otcState(d exchange.OTCDeposit) OTCState {
	s := OTCState{DepositID: d.ID, Status: d.Status, Detail: d.Detail, Due: d.Due(), Version: d.Version, Collects: d.Collects(), Credit: d.SettlesItself()}
	s.Named = s.Collects != "" && d.NamedPaymentID != uuid.Nil
	if s.Collects != "" {
		s.Expires = d.ExpiresAt
	}
	return s
}
