package activities

import (
	"context"
	"errors"
	"math/big"

	"github.com/google/uuid"
	"go.temporal.io/sdk/activity"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// GasAheadPolicy is how much gas is brought to wallets before they need it. The database has bounds of its own, which this can only narrow.
type GasAheadPolicy struct {
	Floor    money.Amount // the least of one top-up
	Cap      money.Amount // the most of one top-up
	Payments int          // of a wallet with an active offer, for which the gas suffices; of every other one it is one
	Limit    int          // top-ups of one run; 0: none are made
	Floats   bool         // the fee changes with each block, so a quarter more is brought
}

// GasAheadStore has the wallets and their top-ups. Every method may be called again.
type GasAheadStore interface {
	TokenHolders(ctx context.Context, n exchange.Network, limit int) ([]exchange.TokenHolder, error)
	GasLow(ctx context.Context, n exchange.Network, below map[exchange.GasKind]money.Amount, limit int) (int, []exchange.LowWallet, error)
	ApproveGasAhead(ctx context.Context, wallet uuid.UUID, amount money.Amount) (exchange.ChainPayment, exchange.GasRefusal, error)
	OpenGasAhead(ctx context.Context, n exchange.Network, limit int) ([]exchange.ChainPayment, error)
	ReviveGasAhead(ctx context.Context, paymentID uuid.UUID) (bool, error)
}

// GasEstimator is the part of a network's driver that says what a payment may cost.
type GasEstimator interface {
	Prepare(ctx context.Context, d chain.Draft) (chain.Unsigned, error)
	// Unused returns an address that no token knows.
	Unused(seed string) string
}

// GasAhead brings gas to the wallets of one network before they need it.
type GasAhead struct {
	Store   GasAheadStore
	Network exchange.Network
	Client  GasEstimator // nil on a network where the gas wallet pays the fees
	Policy  GasAheadPolicy
}

// GasBrought is what a run did on one network.
type GasBrought struct {
	Looked   int                         `json:"looked,omitempty"` // wallets that get gas ahead of need
	Approved int                         `json:"approved,omitempty"`
	Refused  map[exchange.GasRefusal]int `json:"refused,omitempty"` // wallets that lack gas and got none, by the reason
	Start    []GasTopUp                  `json:"start,omitempty"`   // top-ups without a transaction, whose flows must run
}

// GasTopUp is a top-up ahead of need.
type GasTopUp struct {
	PaymentID uuid.UUID `json:"payment_id"`
	WalletID  uuid.UUID `json:"wallet_id"` // that gets it
}

const (
	estimateTries = 5 // holders of tokens from which a payment is simulated
	candidates    = 5 // wallets that are looked at for one top-up: some are refused
)

// BringGas approves top-ups of wallets in which the house has less than their next payment may cost. Those that an earlier run approved
// and that have no transaction come first. A repeated call finds what the one before approved among them.
func (g *GasAhead) BringGas(ctx context.Context) (GasBrought, error) {
	out := GasBrought{Refused: map[exchange.GasRefusal]int{}}
	if g.Client == nil || g.Policy.Limit <= 0 {
		return out, nil
	}
	err := g.revive(ctx, &out)
	if err == nil {
		err = g.bring(ctx, &out)
	}
	if err != nil {
		return out, Failure(ctx, err)
	}
	short := 0
	if out.Refused[exchange.GasReserve] > 0 {
		short = 1
	}
	of := activity.GetMetricsHandler(ctx).WithTags(map[string]string{"network": string(g.Network)})
	of.Gauge("kivuko_gas_wallet_short").Update(float64(short)) //nolint:forbidigo // a gauge of the SDK takes nothing else, and yes or no is no money
	return out, nil
}

// revive lists the top-ups that an earlier run approved and that have no transaction.
func (g *GasAhead) revive(ctx context.Context, out *GasBrought) error {
	open, err := g.Store.OpenGasAhead(ctx, g.Network, g.Policy.Limit)
	if err != nil {
		return err
	}
	for _, p := range open {
		ready, err := g.Store.ReviveGasAhead(ctx, p.ID)
		switch {
		case err == nil && ready:
			out.Start = append(out.Start, GasTopUp{PaymentID: p.ID, WalletID: p.ObjectID})
		case err != nil && exchange.CodeOf(err) != exchange.CodeStateConflict && exchange.CodeOf(err) != exchange.CodeUnavailable:
			return err // the two codes mean that a later run may give it up
		}
	}
	return nil
}

func (g *GasAhead) bring(ctx context.Context, out *GasBrought) error {
	holders, err := g.Store.TokenHolders(ctx, g.Network, estimateTries)
	if err != nil {
		return err
	}
	usual, known, err := g.usual(ctx, holders)
	if err != nil || !known {
		if len(holders) > 0 {
			out.Refused[exchange.GasCostUnknown]++
		}
		return err // without coins anywhere nothing is paid soon
	}
	var low []exchange.LowWallet
	if out.Looked, low, err = g.Store.GasLow(ctx, g.Network, usual, candidates*g.Policy.Limit); err != nil {
		return err
	}
	for _, w := range low {
		if len(out.Start) >= g.Policy.Limit {
			break
		}
		amount, refused, err := g.amount(ctx, w, usual[w.Kind], holders)
		if err != nil {
			return err
		}
		var p exchange.ChainPayment
		if refused == "" {
			p, refused, err = g.Store.ApproveGasAhead(ctx, w.ID, amount)
		}
		switch {
		case err != nil:
			return err
		case refused != "":
			out.Refused[refused]++
		default:
			out.Approved++
			out.Start = append(out.Start, GasTopUp{PaymentID: p.ID, WalletID: w.ID})
		}
	}
	return nil
}

// usual is the most that a payment of each kind of wallet may cost now. A vendor's customer and the merchant of a sale may hold no token
// yet, which costs more. A customer's coins mostly go to who has some, and what is not used would stay with the customer.
func (g *GasAhead) usual(ctx context.Context, holders []exchange.TokenHolder) (map[exchange.GasKind]money.Amount, bool, error) {
	for _, from := range holders {
		fresh, ok, err := g.cost(ctx, from, g.Client.Unused(from.Address))
		if err != nil {
			return nil, false, err
		}
		if !ok {
			continue
		}
		held, ok, err := g.cost(ctx, from, g.recipient(from, holders))
		if err != nil {
			return nil, false, err
		}
		if !ok {
			held = fresh
		}
		return map[exchange.GasKind]money.Amount{exchange.GasForVendor: fresh, exchange.GasForEscrow: fresh, exchange.GasForCoins: held}, true, nil
	}
	return nil, false, nil
}

// recipient is another holder of the same token; an unused address where there is none.
func (g *GasAhead) recipient(from exchange.TokenHolder, holders []exchange.TokenHolder) string {
	for _, h := range holders {
		if h.Asset == from.Asset && h.Address != from.Address {
			return h.Address
		}
	}
	return g.Client.Unused(from.Address)
}

// cost is the most that a token payment may cost its sender now; false where the network refuses it. Nothing is signed: the driver simulates
// the payment of the smallest amount. Energy that the sender has makes it no less: the network may not count it in the end.
func (g *GasAhead) cost(ctx context.Context, from exchange.TokenHolder, to string) (money.Amount, bool, error) {
	native := g.Network.NativeCoin()
	u, err := g.Client.Prepare(ctx, chain.Draft{Transfer: chain.Transfer{From: from.Address, To: to, Amount: money.FromUnits(from.Asset, big.NewInt(1))}})
	if err == nil {
		return u.FeeLimit, u.FeeLimit.Asset() == native, nil
	}
	e, ok := errors.AsType[*chain.Error](err)
	if !ok || e.Reason == chain.ReasonUnavailable || e.Reason == chain.ReasonProtocol {
		return money.Zero(native), false, err
	}
	return e.Cost, e.Reason == chain.ReasonGas && e.Cost.Asset() == native, nil
}

// amount is what a wallet lacks, or why it gets nothing. A wallet with coins is asked about itself: it may have energy, or its token may
// cost another fee.
func (g *GasAhead) amount(ctx context.Context, w exchange.LowWallet, cost money.Amount, holders []exchange.TokenHolder) (money.Amount, exchange.GasRefusal, error) {
	if w.Asset != "" {
		from, to := exchange.TokenHolder{Address: w.Address, Asset: w.Asset}, g.Client.Unused(w.Address)
		if w.Kind == exchange.GasForCoins {
			to = g.recipient(from, holders)
		}
		own, ok, err := g.cost(ctx, from, to)
		if err != nil || !ok {
			return own, exchange.GasCostUnknown, err
		}
		cost = own
	}
	if w.Share.Cmp(cost) >= 0 {
		return cost, exchange.GasEnough, nil
	}
	if cost.Sub(w.Share).Cmp(g.Policy.Cap) > 0 {
		return cost, exchange.GasTooDear, nil
	}
	return g.Policy.lack(w, cost), "", nil
}

// lack is what a wallet lacks for its payments, between the floor and the cap.
func (p GasAheadPolicy) lack(w exchange.LowWallet, cost money.Amount) money.Amount {
	target := cost.Units()
	if w.Kind == exchange.GasForVendor {
		target.Mul(target, big.NewInt(int64(p.Payments)))
	}
	if p.Floats {
		target.Mul(target, big.NewInt(gasMarginNumerator)).Quo(target, big.NewInt(gasMarginDenominator))
	}
	lacks := money.FromUnits(cost.Asset(), target).Sub(w.Share)
	if lacks.Cmp(p.Floor) < 0 {
		return p.Floor
	}
	if lacks.Cmp(p.Cap) > 0 {
		return p.Cap
	}
	return lacks
}
