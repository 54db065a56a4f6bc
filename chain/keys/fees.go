package keys

import (
	"context"
	"errors"

	"kivuko/chain"
)

// afford refuses a transaction when the wallet's native coin does not cover it after the payments before it in the sequence.
// No node would accept it, and its number would block all that follow.
func (s *PaymentSigner) afford(ctx context.Context, o order, u chain.Unsigned, unmined uint64) error {
	native := o.payment.Network.NativeCoin()
	wallet, address := o.sender()
	need, err := s.store.NonceReserve(ctx, wallet, o.payment.Network, unmined)
	if err != nil {
		return err
	}
	need = need.Add(u.FeeLimit)
	if u.Transfer.Amount.Asset() == native {
		need = need.Add(u.Transfer.Amount)
	}
	has, err := o.client.Balance(ctx, address, native)
	if err != nil {
		return err
	}
	if missing := need.Sub(has.Amount); missing.Positive() {
		refused := chain.Errorf(chain.ReasonGas, "the payments before it leave %s %s too little for the fee", missing, native)
		refused.Missing = missing
		return refused
	}
	return nil
}

// withinBudget refuses a transaction whose fee would exceed the house's daily fee budget. A replacement is exempt: the
// payments behind it would have to wait too.
func (s *PaymentSigner) withinBudget(ctx context.Context, o order, u chain.Unsigned) error {
	if u.FeeLimit.Asset() == "" {
		return nil // no fee
	}
	left, bounded, err := s.store.FeesLeft(ctx, o.payment)
	if err != nil || !bounded || u.FeeLimit.Cmp(left) <= 0 {
		return err
	}
	return chain.Errorf(chain.ReasonBudget, "the fee may be %s %s, and the budget of the day has %s left", u.FeeLimit, u.FeeLimit.Asset(), left)
}

// housePays refuses a transaction whose fee could use coins that belong to the wallet's owner.
func (s *PaymentSigner) housePays(ctx context.Context, o order, u chain.Unsigned) error {
	if u.FeeLimit.Asset() == "" {
		return nil // no fee
	}
	share, bounded, err := s.store.HouseGas(ctx, o.payment)
	if err != nil || !bounded {
		return err
	}
	if missing := u.FeeLimit.Sub(share); missing.Positive() {
		refused := chain.Errorf(chain.ReasonGas, "the fee may be %s %s, and the house has %s in the wallet", u.FeeLimit, u.FeeLimit.Asset(), share)
		refused.Missing = missing
		return refused
	}
	return nil
}

// wholeNeed lets one top-up bring all that a wallet lacks. The driver counts every coin in it, and coins of its owner pay no
// fee: without this, what it calls missing would be too little, and housePays would ask for a second top-up.
func (s *PaymentSigner) wholeNeed(ctx context.Context, o order, cause error) error {
	short, ok := errors.AsType[*chain.Error](cause)
	if !ok || short.Reason != chain.ReasonGas || short.Cost.Asset() == "" || short.Missing.Asset() != short.Cost.Asset() {
		return cause
	}
	share, bounded, err := s.store.HouseGas(ctx, o.payment)
	if err != nil {
		return err
	}
	if !bounded || short.Cost.Sub(share).Cmp(short.Missing) <= 0 {
		return cause
	}
	whole := *short
	whole.Missing = short.Cost.Sub(share)
	return &whole
}
