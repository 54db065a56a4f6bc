package activities

import (
	"context"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// OffRampStore is what flows that sell crypto change of orders. Every method is one transaction and may be called
// again.
type OffRampStore interface {
	OpenOffRamp(ctx context.Context, r exchange.OrderRequest, by exchange.Principal) (exchange.Order, error)
	CloseOffRamp(ctx context.Context, id uuid.UUID, detail string, by exchange.Principal) (exchange.Order, error)
	OrderByID(ctx context.Context, id uuid.UUID) (exchange.Order, error)
	ChainDeposit(ctx context.Context, id uuid.UUID) (exchange.ChainDeposit, error)
	// OffRampDeposits are the movements into an order's escrow wallet that its flow has to look at.
	OffRampDeposits(ctx context.Context, order uuid.UUID) ([]uuid.UUID, error)
	SeeDeposit(ctx context.Context, order, deposit uuid.UUID) (exchange.Order, error)
	LoseDeposit(ctx context.Context, order, deposit uuid.UUID) (exchange.Order, error)
	TakeDeposit(ctx context.Context, order, deposit uuid.UUID) (exchange.DepositTaken, error)
	// ScreenTerms are all who may have sent an order's crypto, deposit by deposit, where that has no clear word yet.
	ScreenTerms(ctx context.Context, order uuid.UUID) ([]exchange.Counterparty, error)
	RecordDepositScreening(ctx context.Context, deposit uuid.UUID, said []exchange.Screening) error
	Denied(ctx context.Context, n exchange.Network, address string) (bool, error)
}

// OffRamps moves the rows of orders that sell crypto. Screener is nil where the deny list is all there is.
type OffRamps struct {
	Store    OffRampStore
	Screener Screener
}

// OpenedOffRamp is a sale as it was opened.
type OpenedOffRamp struct {
	OpenedOrder
	Escrow     string    `json:"escrow"`                // the address that the crypto is to come to
	Method     string    `json:"method"`                // of the payout
	FundFromID uuid.UUID `json:"fund_from_id,omitzero"` // a custodial wallet from which the crypto is taken
}

// OpenOffRampInput asks for a new sale.
type OpenOffRampInput struct {
	Request exchange.OrderRequest `json:"request"`
	Actor   Actor                 `json:"actor"`
}

// OpenOffRamp inserts the order, reserves what it is to pay out, and leases it an escrow address for which its flow
// waits from then on. A second call with the same id gives the same order. Refusals have the codes of the store.
func (o *OffRamps) OpenOffRamp(ctx context.Context, in OpenOffRampInput) (OpenedOffRamp, error) {
	order, err := o.Store.OpenOffRamp(ctx, in.Request, in.Actor.Principal())
	if err != nil {
		return OpenedOffRamp{}, Failure(ctx, err)
	}
	return OpenedOffRamp{
		OpenedOrder: OpenedOrder{
			OrderState: stateOf(order), Type: order.Type, Network: order.Network, Asset: order.Asset, MerchantID: order.VendorID,
			Crypto: order.Price.Crypto, Fiat: order.Price.Fiat, ExpiresAt: order.ExpiresAt,
		},
		Escrow: order.EscrowAddress, Method: order.PaymentMethod, FundFromID: in.Request.FundWalletID,
	}, nil
}

// CloseOffRampInput gives up a sale for which no crypto was seen.
type CloseOffRampInput struct {
	OrderID uuid.UUID `json:"order_id"`
	Detail  string    `json:"detail"`
	Actor   Actor     `json:"actor,omitzero"`
}

// CloseOffRamp cancels a pending order and gives its reservation back. It fails with CodeStateConflict when crypto
// is on its way to the escrow address, or was there before.
func (o *OffRamps) CloseOffRamp(ctx context.Context, in CloseOffRampInput) (OrderState, error) {
	order, err := o.Store.CloseOffRamp(ctx, in.OrderID, in.Detail, in.Actor.Principal())
	return stateOf(order), Failure(ctx, err)
}

// ReadOffRamp tells where an order stands.
func (o *OffRamps) ReadOffRamp(ctx context.Context, in OrderInput) (OrderState, error) {
	order, err := o.Store.OrderByID(ctx, in.OrderID)
	return stateOf(order), Failure(ctx, err)
}

// HeedDepositInput names a movement into an order's escrow wallet.
type HeedDepositInput struct {
	OrderID   uuid.UUID `json:"order_id"`
	DepositID uuid.UUID `json:"deposit_id"`
}

// What a step did about a movement, besides the verdicts of exchange about one that was taken.
const (
	DepositNoticed = "seen" // the order knows of it, and waits until it is final
	DepositGone    = "lost" // its block was reorganised away
)

// DepositHeard is what became of a movement, and where the order stands after that.
type DepositHeard struct {
	Outcome string `json:"outcome"` // a Deposit… word, or a verdict of exchange
	OrderState
	Crypto      money.Amount `json:"crypto,omitzero"` // what is sold now, and for how much; after it was taken
	Fiat        money.Amount `json:"fiat,omitzero"`
	RefundID    uuid.UUID    `json:"refund_id,omitzero"`
	ExceptionID uuid.UUID    `json:"exception_id,omitzero"`
}

// heedTries bounds how often a step follows a movement that changes under its hands.
const heedTries = 5

// HeedDeposit does what follows from a movement as it is now: the signal that brought it proves nothing. A seen one is
// shown, one that vanished is forgotten, and a final one is taken, for the order or as an exception.
func (o *OffRamps) HeedDeposit(ctx context.Context, in HeedDepositInput) (DepositHeard, error) {
	var conflict error
	for range heedTries {
		d, err := o.Store.ChainDeposit(ctx, in.DepositID)
		if exchange.CodeOf(err) == exchange.CodeNotFound {
			return o.unheard(ctx, in)
		}
		if err != nil {
			return DepositHeard{}, Failure(ctx, err)
		}
		heard, err := o.heed(ctx, in.OrderID, d)
		if exchange.CodeOf(err) != exchange.CodeStateConflict {
			return heard, Failure(ctx, err)
		}
		conflict = err // the movement went on meanwhile
	}
	return DepositHeard{}, Failure(ctx, exchange.Wrap(exchange.CodeUnavailable, conflict, "The deposit changes too often."))
}

// unheard is the answer to a signal that names no movement: anybody who may send one can say anything.
func (o *OffRamps) unheard(ctx context.Context, in HeedDepositInput) (DepositHeard, error) {
	order, err := o.Store.OrderByID(ctx, in.OrderID)
	return DepositHeard{Outcome: string(exchange.TakenKnown), OrderState: stateOf(order)}, Failure(ctx, err)
}

// heed does what follows from a movement. One that came for the order, and goes elsewhere since a reorganisation, is as
// good as gone.
func (o *OffRamps) heed(ctx context.Context, order uuid.UUID, d exchange.ChainDeposit) (DepositHeard, error) {
	switch d.Status {
	case exchange.DepositSeen:
		after, err := o.Store.SeeDeposit(ctx, order, d.ID)
		if exchange.CodeOf(err) != exchange.CodeNotFound {
			return DepositHeard{Outcome: DepositNoticed, OrderState: stateOf(after)}, err
		}
		return o.lose(ctx, order, d)
	case exchange.DepositOrphaned:
		return o.lose(ctx, order, d)
	case exchange.DepositFinal:
	}
	taken, err := o.Store.TakeDeposit(ctx, order, d.ID)
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return o.lose(ctx, order, d)
	}
	return DepositHeard{
		Outcome: string(taken.Verdict), OrderState: stateOf(taken.Order), Crypto: taken.Order.Price.Crypto, Fiat: taken.Order.Price.Fiat,
		RefundID: taken.Refund.ID, ExceptionID: taken.Exception.ID,
	}, err
}

func (o *OffRamps) lose(ctx context.Context, order uuid.UUID, d exchange.ChainDeposit) (DepositHeard, error) {
	after, err := o.Store.LoseDeposit(ctx, order, d.ID)
	return DepositHeard{Outcome: DepositGone, OrderState: stateOf(after)}, err
}

// FoundDeposits are movements that an order's flow has to look at.
type FoundDeposits struct {
	IDs []uuid.UUID `json:"ids,omitempty"`
}

// FindDeposits looks for movements into an order's escrow wallet, for the case that a signal was lost.
func (o *OffRamps) FindDeposits(ctx context.Context, in OrderInput) (FoundDeposits, error) {
	ids, err := o.Store.OffRampDeposits(ctx, in.OrderID)
	return FoundDeposits{IDs: ids}, Failure(ctx, err)
}

// DepositScreened is what is known of who sent an order's crypto.
type DepositScreened struct {
	Verdict exchange.Verdict `json:"verdict"`
}

// maxSenders is how many senders of one deposit are asked about. Nobody says of more whether they may be paid for.
const maxSenders = 8

// tooManySenders is the name under which it is kept that a deposit has more senders than are asked about.
const tooManySenders = "too_many_senders"

// ScreenDeposit looks at all who may have sent the crypto that an order sells, against the deny list and, where there
// is one, by the screening service. The worst answer counts. It is asked again until the last word is clear; nobody is
// paid before.
func (o *OffRamps) ScreenDeposit(ctx context.Context, in OrderInput) (DepositScreened, error) {
	ctx, stop := beat(ctx)
	defer stop()
	senders, err := o.Store.ScreenTerms(ctx, in.OrderID)
	if err != nil {
		return DepositScreened{}, Failure(ctx, err)
	}
	byDeposit := map[uuid.UUID][]exchange.Counterparty{}
	for _, c := range senders {
		byDeposit[c.DepositID] = append(byDeposit[c.DepositID], c)
	}
	var all []exchange.Screening
	for deposit, senders := range byDeposit {
		said, err := o.screenAll(ctx, senders)
		if err == nil {
			err = o.Store.RecordDepositScreening(ctx, deposit, said)
		}
		if err != nil {
			return DepositScreened{}, Failure(ctx, err)
		}
		all = append(all, said...)
	}
	for _, v := range []exchange.Verdict{exchange.VerdictHit, exchange.VerdictUnknown} {
		if slices.ContainsFunc(all, func(s exchange.Screening) bool { return s.Verdict == v }) {
			return DepositScreened{Verdict: v}, nil
		}
	}
	return DepositScreened{Verdict: exchange.VerdictClear}, nil
}

// screenAll asks about the senders of one deposit.
func (o *OffRamps) screenAll(ctx context.Context, senders []exchange.Counterparty) ([]exchange.Screening, error) {
	if len(senders) > maxSenders {
		return []exchange.Screening{{Screener: tooManySenders, Verdict: exchange.VerdictUnknown, Reference: strconv.Itoa(len(senders))}}, nil
	}
	var all []exchange.Screening
	for _, c := range senders {
		said, err := o.screen(ctx, c)
		if err != nil {
			return nil, err
		}
		all = append(all, said...)
	}
	return all, nil
}

// screen asks about one sender.
func (o *OffRamps) screen(ctx context.Context, c exchange.Counterparty) ([]exchange.Screening, error) {
	denied, err := o.Store.Denied(ctx, c.Network, c.Address)
	if err != nil {
		return nil, err
	}
	said := []exchange.Screening{{Screener: denyList, Verdict: exchange.VerdictClear}}
	switch {
	case denied:
		said[0].Verdict = exchange.VerdictHit
	case o.Screener != nil:
		answer, err := askScreener(ctx, o.Screener, c, triesOf(ctx))
		if err != nil {
			return nil, err
		}
		said = append(said, answer)
	}
	return said, nil
}
