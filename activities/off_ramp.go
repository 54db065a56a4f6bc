package activities

import (
	"context"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// OffRampStore stores orders that sell crypto for their flows. Every method is one transaction and may be called again.
type OffRampStore interface {
	// OpenOffRamp carries out an intent to sell, which the named operator pays out. CloseOffRamp ends a sale as an intent or a
	// command asks, or by a rule.
	OpenOffRamp(ctx context.Context, a exchange.Asked, operator string) (exchange.Order, error)
	CloseOffRamp(ctx context.Context, id uuid.UUID, detail string, a exchange.Asked) (exchange.Order, error)
	OrderByID(ctx context.Context, id uuid.UUID) (exchange.Order, error)
	ChainDeposit(ctx context.Context, id uuid.UUID) (exchange.ChainDeposit, error)
	// OffRampDeposits lists the movements into an order's escrow wallet that its flow must handle.
	PayoutsOf(ctx context.Context, of exchange.MomoObject) ([]exchange.PaymentAttempt, error)
	OffRampDeposits(ctx context.Context, order uuid.UUID) ([]uuid.UUID, error)
	SeeDeposit(ctx context.Context, order, deposit uuid.UUID) (exchange.Order, error)
	LoseDeposit(ctx context.Context, order, deposit uuid.UUID) (exchange.Order, error)
	TakeDeposit(ctx context.Context, order, deposit uuid.UUID) (exchange.DepositTaken, error)
	// DecideDeposit carries out an intent of the seller's about crypto of another amount.
	DecideDeposit(ctx context.Context, order uuid.UUID, a exchange.Asked) (exchange.DepositTaken, error)
	// ScreenTerms lists the possible senders of an order's deposits whose screening is not clear yet.
	ScreenTerms(ctx context.Context, order uuid.UUID) ([]exchange.Counterparty, error)
	RecordDepositScreening(ctx context.Context, deposit uuid.UUID, said []exchange.Screening) error
	Denied(ctx context.Context, n exchange.Network, address string) (bool, error)
}

// OffRamps changes the rows of orders that sell crypto. Screener is nil if only the deny list is used.
type OffRamps struct {
	Store    OffRampStore
	Screener Screener
	Provider string // the operator that pays sales out by mobile money
}

// OpenedOffRamp is a sale as it was opened.
type OpenedOffRamp struct {
	OpenedOrder
	Escrow     string      `json:"escrow"`                // the address to which the crypto must be sent
	Method     string      `json:"method"`                // of the payout
	FundFromID uuid.UUID   `json:"fund_from_id,omitzero"` // a custodial wallet from which the crypto is taken
	Deposits   []uuid.UUID `json:"deposits,omitempty"`    // movements that are not applied yet
	PaidOut    bool        `json:"paid_out,omitempty"`    // a payout by mobile money was begun
}

// OpenOffRamp inserts the order that an intent asks for, reserves its payout, and leases an escrow address for whose deposits
// its flow waits from then on. A second call with the same intent returns the same order, and names the movements that are
// not applied yet: the signals about them were lost while the flow was not running. Refusals have the codes of the store.
func (o *OffRamps) OpenOffRamp(ctx context.Context, in IntentInput) (OpenedOffRamp, error) {
	order, err := o.Store.OpenOffRamp(ctx, in.asked(ctx), o.Provider)
	if err != nil {
		return OpenedOffRamp{}, Failure(ctx, err)
	}
	deposits, err := o.Store.OffRampDeposits(ctx, order.ID)
	if err != nil {
		return OpenedOffRamp{}, Failure(ctx, err)
	}
	paidOut := false
	if order.Status == exchange.OrderProcessing { // its flow was started again
		begun, err := o.Store.PayoutsOf(ctx, exchange.OrderObject(order.ID))
		if err != nil {
			return OpenedOffRamp{}, Failure(ctx, err)
		}
		paidOut = len(begun) > 0
	}
	return OpenedOffRamp{
		OpenedOrder: OpenedOrder{
			OrderState: stateOf(order), Type: order.Type, Network: order.Network, Asset: order.Asset, MerchantID: order.VendorID,
			Crypto: order.Price.Crypto, Fiat: order.Price.Fiat, ExpiresAt: order.ExpiresAt,
		},
		Escrow: order.EscrowAddress, Method: order.PaymentMethod, FundFromID: order.FundWalletID, Deposits: deposits, PaidOut: paidOut,
	}, nil
}

// CloseOffRampInput ends a sale for which no crypto was seen.
type CloseOffRampInput struct {
	OrderID uuid.UUID `json:"order_id"`
	Detail  string    `json:"detail"`
	Behalf  Behalf    `json:"behalf,omitzero"`
}

// CloseOffRamp cancels a pending order and releases its reservation. It fails with CodeStateConflict when crypto is on its
// way to the escrow address, or was there before.
func (o *OffRamps) CloseOffRamp(ctx context.Context, in CloseOffRampInput) (OrderState, error) {
	order, err := o.Store.CloseOffRamp(ctx, in.OrderID, in.Detail, in.Behalf.asked(ctx))
	return stateOf(order), Failure(ctx, err)
}

// ReadOffRamp returns the state of an order.
func (o *OffRamps) ReadOffRamp(ctx context.Context, in OrderInput) (OrderState, error) {
	order, err := o.Store.OrderByID(ctx, in.OrderID)
	return stateOf(order), Failure(ctx, err)
}

// ApplyDepositInput names a movement into an order's escrow wallet.
type ApplyDepositInput struct {
	OrderID   uuid.UUID `json:"order_id"`
	DepositID uuid.UUID `json:"deposit_id"`
}

// The outcomes of a movement, besides the verdicts of package exchange about a taken one.
const (
	DepositNoticed = "seen" // the order shows it, and waits until it is final
	DepositGone    = "lost" // its block was reorganised away
)

// DepositApplied is the outcome of a movement, and the state of the order after it.
type DepositApplied struct {
	Outcome string `json:"outcome"` // a Deposit… constant, or a verdict of package exchange
	OrderState
	Crypto      money.Amount `json:"crypto,omitzero"` // what is sold now, and for how much; after it was taken
	Fiat        money.Amount `json:"fiat,omitzero"`
	RefundID    uuid.UUID    `json:"refund_id,omitzero"`
	ExceptionID uuid.UUID    `json:"exception_id,omitzero"`
}

// applyTries bounds how often a step is repeated because the movement changed meanwhile.
const applyTries = 5

// ApplyDeposit applies the current state of a movement to its order; the signal itself proves nothing. A seen movement is
// shown, a vanished one is removed, and a final one is taken, for the order or as an exception.
func (o *OffRamps) ApplyDeposit(ctx context.Context, in ApplyDepositInput) (DepositApplied, error) {
	var conflict error
	for range applyTries {
		d, err := o.Store.ChainDeposit(ctx, in.DepositID)
		if exchange.CodeOf(err) == exchange.CodeNotFound {
			return o.unnamedDeposit(ctx, in)
		}
		if err != nil {
			return DepositApplied{}, Failure(ctx, err)
		}
		applied, err := o.apply(ctx, in.OrderID, d)
		if exchange.CodeOf(err) != exchange.CodeStateConflict {
			return applied, Failure(ctx, err)
		}
		conflict = err // the movement changed meanwhile
	}
	return DepositApplied{}, Failure(ctx, exchange.Wrap(exchange.CodeUnavailable, conflict, "The deposit changes too often. Try again."))
}

// unnamedDeposit returns the order unchanged for a signal that names no movement: a signal is not trusted.
func (o *OffRamps) unnamedDeposit(ctx context.Context, in ApplyDepositInput) (DepositApplied, error) {
	order, err := o.Store.OrderByID(ctx, in.OrderID)
	return DepositApplied{Outcome: string(exchange.TakenKnown), OrderState: stateOf(order)}, Failure(ctx, err)
}

// apply applies a movement to its order. A movement that pays another address since a reorganisation counts as vanished.
func (o *OffRamps) apply(ctx context.Context, order uuid.UUID, d exchange.ChainDeposit) (DepositApplied, error) {
	switch d.Status {
	case exchange.DepositSeen:
		after, err := o.Store.SeeDeposit(ctx, order, d.ID)
		if exchange.CodeOf(err) != exchange.CodeNotFound {
			return DepositApplied{Outcome: DepositNoticed, OrderState: stateOf(after)}, err
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
	return applied(taken), err
}

func applied(taken exchange.DepositTaken) DepositApplied {
	return DepositApplied{
		Outcome: string(taken.Verdict), OrderState: stateOf(taken.Order), Crypto: taken.Order.Price.Crypto, Fiat: taken.Order.Price.Fiat,
		RefundID: taken.Refund.ID, ExceptionID: taken.Exception.ID,
	}
}

// DecideDepositInput names the seller's word about crypto of another amount than its sale asks for.
type DecideDepositInput struct {
	OrderID uuid.UUID `json:"order_id"`
	Behalf  Behalf    `json:"behalf"`
}

// DecideDeposit carries out the seller's word: the sale is priced by what came, or ends and the crypto goes back. Refusals have
// the codes of the store, and change nothing.
func (o *OffRamps) DecideDeposit(ctx context.Context, in DecideDepositInput) (DepositApplied, error) {
	taken, err := o.Store.DecideDeposit(ctx, in.OrderID, in.Behalf.asked(ctx))
	if err != nil {
		return DepositApplied{}, Failure(ctx, err)
	}
	return applied(taken), nil
}

func (o *OffRamps) lose(ctx context.Context, order uuid.UUID, d exchange.ChainDeposit) (DepositApplied, error) {
	after, err := o.Store.LoseDeposit(ctx, order, d.ID)
	return DepositApplied{Outcome: DepositGone, OrderState: stateOf(after)}, err
}

// FoundDeposits are movements that an order's flow must handle.
type FoundDeposits struct {
	IDs []uuid.UUID `json:"ids,omitempty"`
}

// FindDeposits finds movements into an order's escrow wallet, in case a signal was lost.
func (o *OffRamps) FindDeposits(ctx context.Context, in OrderInput) (FoundDeposits, error) {
	ids, err := o.Store.OffRampDeposits(ctx, in.OrderID)
	return FoundDeposits{IDs: ids}, Failure(ctx, err)
}

// DepositScreened is the screening result for the senders of an order's crypto.
type DepositScreened struct {
	Verdict exchange.Verdict `json:"verdict"`
}

// maxSenders is how many senders of one deposit are screened. A deposit with more has an unknown verdict.
const maxSenders = 8

// tooManySenders is the screener name for a deposit with more senders than are screened.
const tooManySenders = "too_many_senders"

// ScreenDeposit screens every possible sender of the crypto that an order sells, by the deny list and, if configured, by the
// screening service. The worst verdict counts. Nothing is paid out before the verdict is clear.
func (o *OffRamps) ScreenDeposit(ctx context.Context, in OrderInput) (DepositScreened, error) {
	ctx, stop := heartbeat(ctx)
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

// screenAll screens the senders of one deposit.
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

// screen screens one sender.
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
