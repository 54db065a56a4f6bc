package activities

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// How an account on TRON is opened: it begins with a key of ours, a payment brings it what the network asks for, and the key gives it to its owners by
// a transaction that is signed once, stored, sent as often as needed, and judged by the chain.

// givenPlace is the address of the key with which an account begins, and what giving it to its owners costs.
func (m *Multisigs) givenPlace(ctx context.Context, a exchange.MultisigAccount) (MultisigPlace, error) {
	if a.OpeningAddress == "" || a.Address != "" && a.Address != a.OpeningAddress {
		return MultisigPlace{}, exchange.Errorf(exchange.CodeStateConflict, "The key with which the account begins is not made.")
	}
	giver, err := m.giver()
	if err != nil {
		return MultisigPlace{}, err
	}
	_, owners := chain.OpeningOf(a)
	rent, err := giver.GivingCost(ctx, a.OpeningAddress, owners)
	return MultisigPlace{Address: a.OpeningAddress, Rent: rent}, err
}

// begins refuses an account that is at another address than the key with which it begins.
func (m *Multisigs) begins(a exchange.MultisigAccount) error {
	if a.OpeningAddress == "" || a.Address != a.OpeningAddress {
		return exchange.Errorf(exchange.CodeStateConflict, "The account is %s, and begins with the key of %s.", a.Address, a.OpeningAddress)
	}
	return nil
}

func (m *Multisigs) giver() (chain.Giver, error) {
	giver, ok := m.Client.(chain.Giver)
	if !ok {
		return nil, exchange.Errorf(exchange.CodeUnsupported, "No account on %s is given to owners.", m.Client.Network())
	}
	return giver, nil
}

// HandoverSigner signs what gives an account to its owners, and stores it before it returns it. keys.PaymentSigner implements it.
type HandoverSigner interface {
	SignHandover(ctx context.Context, account uuid.UUID) (exchange.MultisigHandover, exchange.SigningHold, error)
}

// MultisigHandovers signs what gives accounts to their owners. It is registered on signer queues only.
type MultisigHandovers struct{ Signer HandoverSigner }

// SignedHandover is the transaction that gives an account to its owners, or why there is none.
type SignedHandover struct {
	TxID string `json:"tx_id,omitempty"`
	// Waits is what the signature waits for; the wait ends by itself.
	Waits string `json:"waits,omitempty"`
	// Lacks is set when the account has too little for it, as far as the signer's node knows.
	Lacks bool `json:"lacks,omitempty"`
}

// SignHandover returns the transaction that gives an account to its owners, and signs one if none may be executed. Nothing is signed in a freeze, nor
// while the account has too little.
func (m *MultisigHandovers) SignHandover(ctx context.Context, in MultisigInput) (SignedHandover, error) {
	h, hold, err := m.Signer.SignHandover(ctx, in.AccountID)
	if chainReason(err) == chain.ReasonGas {
		return SignedHandover{Lacks: true}, nil
	}
	return SignedHandover{TxID: h.TxID, Waits: string(hold)}, Failure(ctx, err)
}

// MultisigLack is what an account lacks to be given to its owners.
type MultisigLack struct {
	Missing money.Amount `json:"missing"`
}

// ReadLack reads what an account lacks at a final block at which it has what was paid to it.
func (m *Multisigs) ReadLack(ctx context.Context, in MultisigInput) (MultisigLack, error) {
	missing, err := m.lack(ctx, in.AccountID)
	return MultisigLack{missing}, Failure(ctx, err)
}

func (m *Multisigs) lack(ctx context.Context, id uuid.UUID) (money.Amount, error) {
	none := money.Zero(m.Client.Network().NativeCoin())
	a, err := m.Store.MultisigAccountByID(ctx, id)
	if err != nil {
		return none, err
	}
	p, err := m.Store.ChainPayment(ctx, a.PaymentID)
	if err != nil {
		return none, err
	}
	place, err := m.place(ctx, id)
	if err != nil {
		return none, err
	}
	has, err := m.Client.Balances(ctx, []chain.Holding{{Address: a.Address, Asset: none.Asset()}})
	switch {
	case err != nil:
		return none, err
	case len(has) != 1 || has[0].At.Number < p.Block:
		return none, NotYet("The node does not have the payment to the account yet.", m.Poll)
	case has[0].Amount.Cmp(place.Rent) >= 0:
		return none, nil
	}
	return place.Rent.Sub(has[0].Amount), nil
}

// FundMultisigInput names an account that lacks coins to be given to its owners.
type FundMultisigInput struct {
	AccountID uuid.UUID    `json:"account_id"`
	Missing   money.Amount `json:"missing"`
}

// FundMultisig approves a further payment to the account, or finds it; CodeStateConflict when there were too many.
func (m *MultisigRows) FundMultisig(ctx context.Context, in FundMultisigInput) (MultisigState, error) {
	a, err := m.Store.FundMultisig(ctx, in.AccountID, in.Missing)
	return multisigState(a), Failure(ctx, err)
}

// HandoverStore is the database interface of delivering what gives accounts to their owners.
type HandoverStore interface {
	Handover(ctx context.Context, account uuid.UUID) (exchange.MultisigHandover, bool, error)
	EndHandover(ctx context.Context, h exchange.MultisigHandover, end exchange.HandoverStatus, evidence string) error
	Frozen(ctx context.Context) (bool, error)
}

// DeliveredHandover is how the last transaction that gives an account to its owners ended.
type DeliveredHandover struct {
	Executed bool `json:"executed,omitempty"` // if not, it can't be executed any more, and another one may follow
}

// DeliverHandover sends the stored transaction that gives an account to its owners, again and again, and records what the final chain says about it.
// It returns NotYet while the transaction may still be executed.
func (m *Multisigs) DeliverHandover(ctx context.Context, in MultisigInput) (DeliveredHandover, error) {
	executed, err := m.deliverHandover(ctx, in.AccountID)
	return DeliveredHandover{executed}, Failure(ctx, err)
}

func (m *Multisigs) deliverHandover(ctx context.Context, account uuid.UUID) (bool, error) {
	giver, err := m.giver()
	if err != nil {
		return false, err
	}
	h, found, err := m.Store.Handover(ctx, account)
	switch {
	case err != nil || !found:
		return false, err
	case h.Status != exchange.HandoverSigned:
		return h.Status == exchange.HandoverExecuted, nil
	}
	joint, err := chain.DecodeJoint(h.Joint)
	if err != nil {
		return false, err
	}
	o, err := giver.Outcome(ctx, joint)
	if err != nil {
		return false, err
	}
	switch o.State {
	case chain.JointExecuted:
		return true, m.Store.EndHandover(ctx, h, exchange.HandoverExecuted, judged{JointOutcome: o}.evidence())
	case chain.JointExpired:
		return false, m.Store.EndHandover(ctx, h, exchange.HandoverExpired, judged{JointOutcome: o}.evidence())
	case chain.JointFailed, chain.JointSuperseded: // no network puts such a change into a block without doing it
		return false, exchange.Errorf(exchange.CodeStateConflict, "The transaction %s did not give the account to its owners: %s %s", h.TxID, o.State, o.Location.Code)
	case chain.JointOpen:
		if err := m.offerHandover(ctx, giver, h); err != nil {
			return false, err
		}
	case chain.JointIncluded: // in a block that is not final
	}
	return false, NotYet(fmt.Sprintf("The transaction %s is %s.", h.TxID, o.State), m.Poll)
}

// offerHandover broadcasts the stored bytes, except in a freeze. Whatever nodes answer, the chain says what became of them.
func (m *Multisigs) offerHandover(ctx context.Context, client chain.Client, h exchange.MultisigHandover) error {
	frozen, err := m.Store.Frozen(ctx)
	if err != nil || frozen {
		return err
	}
	_, err = client.Broadcast(ctx, h.Raw)
	return err
}
