package activities

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// WithdrawalStore stores withdrawals for flows. Every method is one transaction and may be called again: a withdrawal that has gone on
// already is returned unchanged.
type WithdrawalStore interface {
	// OpenWithdrawal and StepWithdrawal carry out an intent about a withdrawal, DecideWithdrawal an officer's decision.
	OpenWithdrawal(ctx context.Context, a exchange.Asked) (exchange.Withdrawal, error)
	StepWithdrawal(ctx context.Context, id uuid.UUID, a exchange.Asked) (exchange.Withdrawal, error)
	DecideWithdrawal(ctx context.Context, id uuid.UUID, token string, action exchange.ApprovalAction) (exchange.WithdrawalStanding, error)
	// AdvanceWithdrawal brings a withdrawal that was not executed to where it belongs, and says what it needs.
	AdvanceWithdrawal(ctx context.Context, id uuid.UUID) (exchange.WithdrawalStanding, error)
	WithdrawalByID(ctx context.Context, id uuid.UUID) (exchange.Withdrawal, error)
	DestinationsOf(ctx context.Context, all []exchange.Withdrawal) (map[uuid.UUID]exchange.Destination, error)
	Denied(ctx context.Context, n exchange.Network, address string) (bool, error)
	RecordWithdrawalScreening(ctx context.Context, id uuid.UUID, said []exchange.Screening) (exchange.WithdrawalStanding, error)
	SetWithdrawalDetail(ctx context.Context, id uuid.UUID, detail string) (exchange.Withdrawal, error)
	SellWithdrawal(ctx context.Context, id uuid.UUID) (exchange.Withdrawal, error)
	BeginWithdrawalBank(ctx context.Context, id uuid.UUID) (exchange.Withdrawal, error)
	FailWithdrawal(ctx context.Context, id uuid.UUID) (exchange.Withdrawal, error)
	FollowWithdrawalTransfer(ctx context.Context, id uuid.UUID) (exchange.Withdrawal, exchange.OTCTransfer, error)
	RefuseWithdrawalTransfer(ctx context.Context, id uuid.UUID, why exchange.Code) (exchange.Withdrawal, error)
	refusalStore
}

// Withdrawals changes the rows of withdrawals. Screener is nil if only the deny list is used.
type Withdrawals struct {
	Store    WithdrawalStore
	Screener Screener
}

// WithdrawalState is the state of a withdrawal. Version grows with every change, so that of two answers the newer one is known.
type WithdrawalState struct {
	WithdrawalID uuid.UUID                 `json:"withdrawal_id"`
	Status       exchange.WithdrawalStatus `json:"status"`
	Detail       string                    `json:"detail,omitempty"`
	Due          time.Time                 `json:"due,omitzero"` // when something happens to it by time
	Sold         bool                      `json:"sold,omitempty"`
	Version      int64                     `json:"version"`
}

// OpenedWithdrawal is a withdrawal as it was requested: what the flow needs for its decisions and its details.
type OpenedWithdrawal struct {
	WithdrawalState
	MerchantID uuid.UUID                 `json:"merchant_id"`
	Method     exchange.WithdrawalMethod `json:"method"`
	Source     money.Amount              `json:"source"`
	Payout     money.Amount              `json:"payout"`
}

// OpenWithdrawal stores the withdrawal that an intent asks for. Refusals have the codes of the store's OpenWithdrawal.
func (a *Withdrawals) OpenWithdrawal(ctx context.Context, in IntentInput) (OpenedWithdrawal, error) {
	w, err := a.Store.OpenWithdrawal(ctx, in.asked(ctx))
	if err != nil {
		return OpenedWithdrawal{}, Failure(ctx, err)
	}
	return OpenedWithdrawal{WithdrawalState: withdrawalState(w), MerchantID: w.MerchantID, Method: w.Method, Source: w.Source, Payout: w.Payout}, nil
}

// WithdrawalStepInput is a verb on a withdrawal, by the intent that asks for it.
type WithdrawalStepInput struct {
	WithdrawalID uuid.UUID `json:"withdrawal_id"`
	IntentID     uuid.UUID `json:"intent_id"`
}

// StepWithdrawal carries out a verb on a withdrawal. Refusals have the codes of the store's StepWithdrawal.
func (a *Withdrawals) StepWithdrawal(ctx context.Context, in WithdrawalStepInput) (WithdrawalState, error) {
	w, err := a.Store.StepWithdrawal(ctx, in.WithdrawalID, Behalf{IntentID: in.IntentID}.asked(ctx))
	return withdrawalState(w), Failure(ctx, err)
}

// WithdrawalInput names a withdrawal.
type WithdrawalInput struct {
	WithdrawalID uuid.UUID `json:"withdrawal_id"`
}

// LookAtWithdrawal brings a withdrawal that was not executed to where it belongs, and returns the state of any.
func (a *Withdrawals) LookAtWithdrawal(ctx context.Context, in WithdrawalInput) (WithdrawalState, error) {
	s, err := a.Store.AdvanceWithdrawal(ctx, in.WithdrawalID)
	return standingState(s), Failure(ctx, err)
}

// ScreenWithdrawal screens the address of a withdrawal that leaves our custody by the deny list, and, if that is clear, by the configured
// screener, and stores the verdicts. A screener without an answer is asked again within the limits of the call. After an unknown verdict
// the withdrawal stays where it is. One that needs no screening goes on.
func (a *Withdrawals) ScreenWithdrawal(ctx context.Context, in WithdrawalInput) (WithdrawalState, error) {
	s, err := a.Store.AdvanceWithdrawal(ctx, in.WithdrawalID)
	w := s.Withdrawal
	if err != nil || w.Status != exchange.WithdrawalRequested {
		return standingState(s), Failure(ctx, err)
	}
	to, err := a.Store.DestinationsOf(ctx, []exchange.Withdrawal{w})
	if err != nil {
		return WithdrawalState{}, Failure(ctx, err)
	}
	d := to[w.DestinationID]
	denied, err := a.Store.Denied(ctx, d.Network, d.Address)
	if err != nil {
		return WithdrawalState{}, Failure(ctx, err)
	}
	said := []exchange.Screening{{Screener: denyList, Verdict: exchange.VerdictClear}}
	switch {
	case denied:
		said[0].Verdict = exchange.VerdictHit
	case a.Screener != nil:
		answer, err := a.Screener.Screen(ctx, exchange.Counterparty{WithdrawalID: w.ID, Network: d.Network, Address: d.Address, Amount: w.Payout})
		if err != nil {
			return WithdrawalState{}, Failure(ctx, err)
		}
		said = append(said, answer)
	}
	s, err = a.Store.RecordWithdrawalScreening(ctx, w.ID, said)
	return standingState(s), Failure(ctx, err)
}

// DecideWithdrawalInput is a decision that claims to be an officer's, see DecideInput.
type DecideWithdrawalInput struct {
	WithdrawalID uuid.UUID               `json:"withdrawal_id"`
	Action       exchange.ApprovalAction `json:"action"`
	Token        string                  `json:"token"`
}

// DecideWithdrawal accepts only the token, as DecideTransfer does.
func (a *Withdrawals) DecideWithdrawal(ctx context.Context, in DecideWithdrawalInput) (WithdrawalState, error) {
	if err := plausible(in.Action, in.Token); err != nil {
		return WithdrawalState{}, Failure(ctx, err)
	}
	s, err := a.Store.DecideWithdrawal(ctx, in.WithdrawalID, in.Token, in.Action)
	return standingState(s), Failure(ctx, err)
}

// RefusedWithdrawalDecisionInput describes a decision about a withdrawal without proof.
type RefusedWithdrawalDecisionInput struct {
	WithdrawalID uuid.UUID                `json:"withdrawal_id"`
	Action       exchange.ApprovalAction  `json:"action"`
	Channel      exchange.ApprovalChannel `json:"channel"`
	Code         exchange.Code            `json:"code"`
}

// RecordRefusedWithdrawalDecision records an attempt to decide about a withdrawal without the right to, for the auditor.
func (a *Withdrawals) RecordRefusedWithdrawalDecision(ctx context.Context, in RefusedWithdrawalDecisionInput) error {
	return Failure(ctx, a.Store.RecordRefusedDecision(ctx, exchange.ApproveWithdrawal, in.WithdrawalID, in.Action, in.Channel, in.Code))
}

// MarkWithdrawalInput names what a withdrawal waits for.
type MarkWithdrawalInput struct {
	WithdrawalID uuid.UUID `json:"withdrawal_id"`
	Detail       string    `json:"detail"`
}

// MarkWithdrawal writes what a withdrawal waits for into its row.
func (a *Withdrawals) MarkWithdrawal(ctx context.Context, in MarkWithdrawalInput) (WithdrawalState, error) {
	w, err := a.Store.SetWithdrawalDetail(ctx, in.WithdrawalID, in.Detail)
	return withdrawalState(w), Failure(ctx, err)
}

// AwaitOfficers writes what an executed withdrawal lacks by what left meanwhile: another officer, or the rest of its destination.
func (a *Withdrawals) AwaitOfficers(ctx context.Context, in WithdrawalInput) (WithdrawalState, error) {
	s, err := a.Store.AdvanceWithdrawal(ctx, in.WithdrawalID)
	tried := s.Withdrawal.Status == exchange.WithdrawalExecuting || s.Withdrawal.Status == exchange.WithdrawalReview
	if err != nil || !tried || s.Ready() {
		return standingState(s), Failure(ctx, err)
	}
	s.Withdrawal, err = a.Store.SetWithdrawalDetail(ctx, in.WithdrawalID, s.Waits())
	return standingState(s), Failure(ctx, err)
}

// WithdrawalMoney is where the money of an executed withdrawal is.
type WithdrawalMoney struct {
	WithdrawalState
	// State is why nothing is on its way: PayoutFloatShort, PayoutFrozen, PayoutSuspended, PayoutInactive or PayoutOfficers. It is empty when something is.
	State     string           `json:"state,omitempty"`
	PaymentID uuid.UUID        `json:"payment_id,omitzero"` // of crypto that the house buys
	Network   exchange.Network `json:"network,omitempty"`
}

// SellWithdrawal takes the treasury's shillings for the crypto of a withdrawal, and approves the payment that brings it to the treasury.
func (a *Withdrawals) SellWithdrawal(ctx context.Context, in WithdrawalInput) (WithdrawalMoney, error) {
	w, err := a.Store.SellWithdrawal(ctx, in.WithdrawalID)
	return a.moved(ctx, in, w, err)
}

// ReserveAtBank reserves the money of a withdrawal at a bank of the house, from where an officer pays it.
func (a *Withdrawals) ReserveAtBank(ctx context.Context, in WithdrawalInput) (WithdrawalMoney, error) {
	w, err := a.Store.BeginWithdrawalBank(ctx, in.WithdrawalID)
	return a.moved(ctx, in, w, err)
}

// moved tells why nothing is on its way from the failures that are no error of the step.
func (a *Withdrawals) moved(ctx context.Context, in WithdrawalInput, w exchange.Withdrawal, err error) (WithdrawalMoney, error) {
	state := ""
	switch {
	case exchange.CodeOf(err) == exchange.CodeInsufficientFunds:
		state = PayoutFloatShort
	case errors.Is(err, exchange.ErrFrozen):
		state = PayoutFrozen
	case exchange.CodeOf(err) == exchange.CodeSuspended:
		state = PayoutSuspended
	case errors.Is(err, exchange.ErrInactive):
		state = PayoutInactive
	case errors.Is(err, exchange.ErrOfficers):
		state = PayoutOfficers
	case err != nil:
		return WithdrawalMoney{}, Failure(ctx, err)
	}
	if state != "" {
		if w, err = a.Store.WithdrawalByID(ctx, in.WithdrawalID); err != nil {
			return WithdrawalMoney{}, Failure(ctx, err)
		}
	}
	return WithdrawalMoney{WithdrawalState: withdrawalState(w), State: state, PaymentID: w.PaymentID, Network: w.SourceNetwork}, nil
}

// FailWithdrawal ends a withdrawal whose payee can't be paid, or of which two officers declared that it was not.
func (a *Withdrawals) FailWithdrawal(ctx context.Context, in WithdrawalInput) (WithdrawalState, error) {
	w, err := a.Store.FailWithdrawal(ctx, in.WithdrawalID)
	return withdrawalState(w), Failure(ctx, err)
}

// WithdrawalTransfer is where the transfer of bought crypto is.
type WithdrawalTransfer struct {
	WithdrawalState
	TransferID uuid.UUID `json:"transfer_id,omitzero"`
	IntentID   uuid.UUID `json:"intent_id,omitzero"` // that asks for the transfer
	Opened     bool      `json:"opened,omitempty"`
	Short      bool      `json:"short,omitempty"`  // the treasury's wallet has too little
	Source     string    `json:"source,omitempty"` // where more can be brought from, in words
}

// FollowWithdrawalTransfer brings a withdrawal of bought crypto to where its transfer is.
func (a *Withdrawals) FollowWithdrawalTransfer(ctx context.Context, in WithdrawalInput) (WithdrawalTransfer, error) {
	w, t, err := a.Store.FollowWithdrawalTransfer(ctx, in.WithdrawalID)
	if err != nil {
		return WithdrawalTransfer{}, Failure(ctx, err)
	}
	return WithdrawalTransfer{WithdrawalState: withdrawalState(w), TransferID: t.ID, IntentID: t.IntentID, Opened: t.Opened, Short: t.Short, Source: t.Source}, nil
}

// RefusedWithdrawalTransferInput names a withdrawal whose transfer was refused.
type RefusedWithdrawalTransferInput struct {
	WithdrawalID uuid.UUID     `json:"withdrawal_id"`
	Code         exchange.Code `json:"code"`
}

// RefuseWithdrawalTransfer gives up a transfer that could not be opened, so that it never is.
func (a *Withdrawals) RefuseWithdrawalTransfer(ctx context.Context, in RefusedWithdrawalTransferInput) (WithdrawalState, error) {
	w, err := a.Store.RefuseWithdrawalTransfer(ctx, in.WithdrawalID, in.Code)
	return withdrawalState(w), Failure(ctx, err)
}

func withdrawalState(w exchange.Withdrawal) WithdrawalState {
	return standingState(exchange.WithdrawalStanding{Withdrawal: w})
}

func standingState(s exchange.WithdrawalStanding) WithdrawalState {
	w := s.Withdrawal
	return WithdrawalState{WithdrawalID: w.ID, Status: w.Status, Detail: w.Detail, Due: s.Due(), Sold: w.Sold(), Version: w.Version}
}
