package activities

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// waitingWallets is the database of these tests: wallets that are low, and what was approved.
type waitingWallets struct {
	holders  []exchange.TokenHolder
	low      []exchange.LowWallet
	open     []exchange.ChainPayment
	dead     map[uuid.UUID]error // open ones that can't be revived, with nil for those that were given up
	refuses  map[uuid.UUID]exchange.GasRefusal
	below    map[exchange.GasKind]money.Amount
	approved map[uuid.UUID]money.Amount // by wallet
}

func (r *waitingWallets) TokenHolders(context.Context, exchange.Network, int) ([]exchange.TokenHolder, error) {
	return r.holders, nil
}

func (r *waitingWallets) GasLow(_ context.Context, _ exchange.Network, below map[exchange.GasKind]money.Amount, _ int) (int, []exchange.LowWallet, error) {
	r.below = below
	return len(r.low) + 1, r.low, nil
}

func (r *waitingWallets) ApproveGasAhead(_ context.Context, w uuid.UUID, amount money.Amount) (exchange.ChainPayment, exchange.GasRefusal, error) {
	if why := r.refuses[w]; why != "" {
		return exchange.ChainPayment{}, why, nil
	}
	r.approved[w] = amount
	return exchange.ChainPayment{ID: paymentFor(w), ObjectID: w}, "", nil
}

func (r *waitingWallets) OpenGasAhead(context.Context, exchange.Network, int) ([]exchange.ChainPayment, error) {
	return r.open, nil
}

func (r *waitingWallets) ReviveGasAhead(_ context.Context, id uuid.UUID) (bool, error) {
	err, gone := r.dead[id]
	return !gone, err
}

// paymentFor is the top-up of a wallet.
func paymentFor(w uuid.UUID) uuid.UUID { return uuid.NewSHA1(w, []byte("top-up")) }

// costs is a network's simulations: what a payment costs a sender at most, to a holder and to a new recipient. Other senders pay as usual.
type costs struct {
	held, fresh string
	native      money.Asset
	own         map[string]error
}

func (c costs) Unused(seed string) string { return "unused " + seed }

func (c costs) Prepare(_ context.Context, d chain.Draft) (chain.Unsigned, error) {
	if err, special := c.own[d.From]; special {
		if err == nil {
			return chain.Unsigned{FeeLimit: money.Zero(c.native)}, nil // it has energy
		}
		return chain.Unsigned{}, err
	}
	e := chain.Errorf(chain.ReasonGas, "no coins")
	if e.Cost = money.Must(c.native, c.held); d.To == c.Unused(d.From) {
		e.Cost = money.Must(c.native, c.fresh)
	}
	return chain.Unsigned{}, e
}

// The most that a transfer of USDT on TRON may cost: 64,285 energy to a holder and 130,285 to a new recipient, at 100 sun, with the
// margin of the driver, and 345 bytes of bandwidth. What it burns is those without the margin, and mostly no bandwidth.
const (
	heldMost, heldBurn = "9.3449", "6.4285"
	freshMost          = "18.5849"
)

func onTron() costs {
	return costs{held: heldMost, fresh: freshMost, native: money.TRX, own: map[string]error{}}
}

func newWallets(low ...exchange.LowWallet) *waitingWallets {
	return &waitingWallets{
		holders: []exchange.TokenHolder{{Address: "treasury", Asset: money.USDT}, {Address: "vendor", Asset: money.USDT}}, low: low,
		refuses: map[uuid.UUID]exchange.GasRefusal{}, approved: map[uuid.UUID]money.Amount{}, dead: map[uuid.UUID]error{},
	}
}

func lowWallet(k exchange.GasKind, address, share string) exchange.LowWallet {
	w := exchange.LowWallet{ID: uuid.NewSHA1(uuid.Nil, []byte(address)), Address: address, Kind: k, Share: money.Must(money.TRX, share)}
	if k != exchange.GasForEscrow {
		w.Asset = money.USDT
	}
	return w
}

func (r *waitingWallets) bring(t *testing.T, c GasEstimator, limit int) (GasBrought, error) {
	t.Helper()
	g := &GasAhead{Store: r, Network: exchange.Tron, Client: c, Policy: GasAheadPolicy{
		Floor: money.Must(money.TRX, "0.5"), Cap: money.Must(money.TRX, "75"), Payments: 2, Limit: limit,
	}}
	suite := testsuite.WorkflowTestSuite{}
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(g)
	value, err := env.ExecuteActivity(g.BringGas)
	var out GasBrought
	if err == nil {
		err = value.Get(&out)
	}
	return out, err
}

// A vendor's wallet gets gas for two payments to new recipients, an escrow address for one, and a customer's for one to who holds some
// already: what stays with the customer is at most a tenth of the 37 TRX that stayed before.
func TestGasAheadAmounts(t *testing.T) {
	vendor, used := lowWallet(exchange.GasForVendor, "vendor", "0"), lowWallet(exchange.GasForVendor, "second vendor", "5.5")
	escrow, coins := lowWallet(exchange.GasForEscrow, "escrow", "0"), lowWallet(exchange.GasForCoins, "customer", "0")
	almost, owed := lowWallet(exchange.GasForCoins, "customer with some", "9.2"), lowWallet(exchange.GasForEscrow, "owed", "-2")
	rows := newWallets(vendor, used, escrow, coins, almost, owed)
	out, err := rows.bring(t, onTron(), 20)
	if err != nil || out.Approved != 6 || len(out.Start) != 6 || out.Looked != 7 || len(out.Refused) > 0 {
		t.Fatalf("brought %+v, %v", out, err)
	}
	for w, want := range map[exchange.LowWallet]string{vendor: "37.1698", used: "31.6698", escrow: freshMost, coins: heldMost, almost: "0.5", owed: "20.5849"} {
		if got := rows.approved[w.ID]; !got.Equal(money.Must(money.TRX, want)) {
			t.Errorf("%s got %s TRX, want %s", w.Address, got, want)
		}
	}
	for kind, want := range map[exchange.GasKind]string{exchange.GasForVendor: freshMost, exchange.GasForEscrow: freshMost, exchange.GasForCoins: heldMost} {
		if !rows.below[kind].Equal(money.Must(money.TRX, want)) {
			t.Errorf("%s is low below %s, want %s", kind, rows.below[kind], want)
		}
	}
	for _, w := range []exchange.LowWallet{coins, almost} {
		left := w.Share.Add(rows.approved[w.ID]).Sub(money.Must(money.TRX, heldBurn))
		if left.Cmp(money.Must(money.TRX, "3.7")) > 0 {
			t.Errorf("%s TRX stay with the customer", left)
		}
	}
}

// Where the fee changes with each block, a quarter more is brought, and never more than the cap.
func TestGasAheadWhereFeesFloat(t *testing.T) {
	p := GasAheadPolicy{Floor: money.Must(money.TRX, "0.5"), Cap: money.Must(money.TRX, "40"), Payments: 3, Floats: true}
	for w, want := range map[exchange.LowWallet]string{
		lowWallet(exchange.GasForEscrow, "escrow", "1"): "11.5", lowWallet(exchange.GasForVendor, "vendor", "0"): "37.5", lowWallet(exchange.GasForVendor, "owed", "-9"): "40",
	} {
		if got := p.lack(w, money.Must(money.TRX, "10")); !got.Equal(money.Must(money.TRX, want)) {
			t.Errorf("%s gets %s, want %s", w.Address, got, want)
		}
	}
}

// A wallet gets nothing that has enough, as by energy that was delegated to it, that costs too much, that the token blocks, or to which the
// database lets nothing go. The others get theirs.
func TestGasAheadIsRefused(t *testing.T) {
	energy, blocked := lowWallet(exchange.GasForVendor, "energy", "0"), lowWallet(exchange.GasForCoins, "blocked", "0")
	dear, capped, good := lowWallet(exchange.GasForVendor, "dear", "0"), lowWallet(exchange.GasForVendor, "capped", "0"), lowWallet(exchange.GasForVendor, "good", "0")
	rows, c := newWallets(energy, blocked, dear, capped, good), onTron()
	tooMuch := chain.Errorf(chain.ReasonGas, "no coins")
	tooMuch.Cost = money.Must(money.TRX, "75.1")
	c.own = map[string]error{"energy": nil, "blocked": chain.Errorf(chain.ReasonBlocked, "on the list"), "dear": tooMuch}
	rows.refuses[capped.ID] = exchange.GasWalletCap
	out, err := rows.bring(t, c, 20)
	want := map[exchange.GasRefusal]int{exchange.GasEnough: 1, exchange.GasCostUnknown: 1, exchange.GasTooDear: 1, exchange.GasWalletCap: 1}
	if err != nil || !maps.Equal(out.Refused, want) || out.Approved != 1 || out.Start[0] != (GasTopUp{PaymentID: paymentFor(good.ID), WalletID: good.ID}) {
		t.Errorf("brought %+v, %v", out, err)
	}
}

// A run makes no more than its limit, with what an earlier one left. What can't be taken up now is left to later runs.
func TestGasAheadIsTakenUpFirst(t *testing.T) {
	left, gone, unread := exchange.ChainPayment{ID: uuid.New(), ObjectID: uuid.New()}, exchange.ChainPayment{ID: uuid.New()}, exchange.ChainPayment{ID: uuid.New()}
	rows := newWallets(lowWallet(exchange.GasForVendor, "first", "0"), lowWallet(exchange.GasForVendor, "second", "0"))
	rows.open = []exchange.ChainPayment{gone, unread, left}
	rows.dead = map[uuid.UUID]error{gone.ID: nil, unread.ID: exchange.Errorf(exchange.CodeUnavailable, "the watch was away")}
	out, err := rows.bring(t, onTron(), 2)
	if err != nil || out.Approved != 1 || len(out.Start) != 2 || out.Start[0] != (GasTopUp{PaymentID: left.ID, WalletID: left.ObjectID}) {
		t.Errorf("brought %+v, %v", out, err)
	}
	if out, err := rows.bring(t, onTron(), 0); err != nil || len(out.Start) > 0 {
		t.Errorf("while it is off it brought %+v, %v", out, err)
	}
	if out, err := rows.bring(t, nil, 2); err != nil || len(out.Start) > 0 {
		t.Errorf("where the gas wallet pays it brought %+v, %v", out, err)
	}
}

// Without a simulation nothing is brought: another holder is asked, and a node that does not answer is asked again.
func TestGasAheadWithoutACost(t *testing.T) {
	rows, c := newWallets(lowWallet(exchange.GasForEscrow, "escrow", "0")), onTron()
	c.own["treasury"] = chain.Errorf(chain.ReasonBlocked, "on the list")
	if out, err := rows.bring(t, c, 5); err != nil || out.Approved != 1 {
		t.Errorf("with another holder it brought %+v, %v", out, err)
	}
	c.own["vendor"] = chain.Errorf(chain.ReasonPaused, "paused")
	if out, err := rows.bring(t, c, 5); err != nil || out.Approved != 0 || out.Refused[exchange.GasCostUnknown] != 1 {
		t.Errorf("with none it brought %+v, %v", out, err)
	}
	c.own["treasury"] = chain.Wrap(chain.ReasonUnavailable, errors.New("away"), "away")
	if out, err := rows.bring(t, c, 5); err == nil {
		t.Errorf("without a node it brought %+v", out)
	}
	rows.holders = nil
	if out, err := rows.bring(t, c, 5); err != nil || out.Approved != 0 || len(out.Refused) > 0 {
		t.Errorf("without coins anywhere it brought %+v, %v", out, err)
	}
}
