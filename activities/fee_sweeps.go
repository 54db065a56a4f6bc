package activities

import (
	"context"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// FeeSweepInput names a sweep of earned fees.
type FeeSweepInput struct {
	SweepID uuid.UUID `json:"sweep_id"`
}

// FeeSweepState is a sweep with the payment that carries it out; none while its officers may not decide any more, and for one that
// was given up.
type FeeSweepState struct {
	Status    exchange.FeeSweepStatus `json:"status"`
	PaymentID uuid.UUID               `json:"payment_id,omitzero"`
	Network   exchange.Network        `json:"network,omitempty"`
	Amount    money.Amount            `json:"amount,omitzero"`
}

// ApproveFeeSweep approves the payment of a wallet's earned fees to the treasury, or finds it.
func (s *Sweeps) ApproveFeeSweep(ctx context.Context, in FeeSweepInput) (FeeSweepState, error) {
	a, err := s.Store.ApproveFeeSweep(ctx, in.SweepID)
	return FeeSweepState{Status: a.Status, PaymentID: a.PaymentID, Network: a.Network, Amount: a.Amount}, Failure(ctx, err)
}

// GiveUpFeeSweepInput leaves the fees of a sweep where they are, by an operator's command.
type GiveUpFeeSweepInput struct {
	SweepID uuid.UUID `json:"sweep_id"`
	Proof   Proof     `json:"proof"`
}

// GiveUpFeeSweep gives a sweep up; CodeStateConflict while a transaction may still move the fees.
func (s *Sweeps) GiveUpFeeSweep(ctx context.Context, in GiveUpFeeSweepInput) error {
	by, err := actor(ctx, s.Store, in.Proof.Behalf())
	if err == nil {
		_, err = s.Store.GiveUpFeeSweep(ctx, in.SweepID, by)
	}
	return Failure(ctx, err)
}

// SweptFees is an asset of a network whose fees a rule sweeps.
type SweptFees struct {
	Network exchange.Network `json:"network"`
	Asset   money.Asset      `json:"asset"`
}

// SweptByRule lists what rules sweep. A gauge counts those that sweep nothing because nobody stands behind them any more.
func (s *Sweeps) SweptByRule(ctx context.Context) ([]SweptFees, error) {
	rules, err := s.Store.FeeSweepRules(ctx)
	var all []SweptFees
	orphaned := int64(0)
	for _, r := range rules {
		switch {
		case !r.IsActive:
		case r.Orphaned:
			orphaned++
		default:
			all = append(all, SweptFees{r.Network, r.Asset})
		}
	}
	if err == nil {
		gauge(ctx, "kivuko_fee_rules_orphaned", orphaned)
	}
	return all, Failure(ctx, err)
}

// OpenSweeps names the sweeps that rules opened and whose payment is not signed.
type OpenSweeps struct {
	Sweeps []uuid.UUID `json:"sweeps,omitempty"`
}

// OpenFeeSweeps opens the sweeps that a rule asks for now. Called again, it opens none for fees that are on their way, and names the
// open ones.
func (s *Sweeps) OpenFeeSweeps(ctx context.Context, in SweptFees) (OpenSweeps, error) {
	open, err := s.Store.OpenScheduledFeeSweeps(ctx, in.Network, in.Asset)
	return OpenSweeps{open}, Failure(ctx, err)
}
