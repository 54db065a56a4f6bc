package workflows_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"kivuko/activities"
	"kivuko/exchange"
	"kivuko/workflows"
)

// pools is the escrow pool of each network, as the store keeps it.
type pools struct {
	env    *testsuite.TestWorkflowEnvironment
	demand []exchange.EscrowDemand
	room   exchange.EscrowDemand
	made   map[exchange.Network][]uuid.UUID
	away   map[exchange.Network]error // signers that fail
	stale  []uuid.UUID
	before time.Time
	kept   []exchange.KeptDeposit
	stuck  map[uuid.UUID]bool
	fault  func(string) error
}

func newPools(demand ...exchange.EscrowDemand) *pools {
	p := &pools{
		env: newEnvironment(nil), demand: demand, made: map[exchange.Network][]uuid.UUID{}, away: map[exchange.Network]error{},
		stuck: map[uuid.UUID]bool{}, fault: func(string) error { return nil },
	}
	p.env.RegisterWorkflow(workflows.ReplenishEscrow)
	p.env.RegisterWorkflow(provision)
	p.env.RegisterActivity(&activities.Escrow{Store: p})
	p.env.RegisterActivity(&activities.Wallets{Keys: p, Store: p})
	return p
}

func (p *pools) EscrowDemand(context.Context) ([]exchange.EscrowDemand, error) {
	return p.demand, p.fault("EscrowDemand")
}

func (p *pools) EscrowRoom(_ context.Context, n exchange.Network, order uuid.UUID) (exchange.EscrowDemand, error) {
	if n != exchange.Tron || order != id(1) {
		return exchange.EscrowDemand{}, fmt.Errorf("asked for %s of %s", n, order)
	}
	return p.room, p.fault("EscrowRoom")
}

func (p *pools) ReleaseEscrow(_ context.Context, order uuid.UUID) ([]exchange.PaymentException, error) {
	if p.stuck[order] {
		return nil, exchange.Errorf(exchange.CodeStateConflict, "The money has not left.")
	}
	if err := p.fault("ReleaseEscrow"); err != nil {
		return nil, err
	}
	p.stale = slices.DeleteFunc(slices.Clone(p.stale), func(o uuid.UUID) bool { return o == order })
	return nil, nil
}

func (p *pools) StaleLeases(_ context.Context, before time.Time, _ int) ([]uuid.UUID, error) {
	p.before = before
	return p.stale, nil
}

func (p *pools) KeptUnmoved(_ context.Context, before time.Time, _ int) ([]exchange.KeptDeposit, error) {
	if !before.Equal(p.before) {
		return nil, fmt.Errorf("asked for what was kept before %s", before)
	}
	return p.kept, nil
}

func (p *pools) CreateKey(_ context.Context, wallet uuid.UUID, n exchange.Network) (string, exchange.SealedKey, error) {
	return "address", exchange.SealedKey{WalletID: wallet}, p.away[n]
}

// EscrowRequestNetwork finds the request among the demands, or among those that an order made.
func (p *pools) EscrowRequestNetwork(_ context.Context, request uuid.UUID) (exchange.Network, error) {
	for _, d := range p.demand {
		if slices.Contains(d.Make, request) {
			return d.Network, nil
		}
	}
	return exchange.Tron, nil
}

func (p *pools) CreateEscrowWallet(ctx context.Context, request uuid.UUID, address string, _ exchange.SealedKey) (exchange.Wallet, error) {
	n, err := p.EscrowRequestNetwork(ctx, request)
	if !slices.Contains(p.made[n], request) {
		p.made[n] = append(p.made[n], request)
	}
	return exchange.Wallet{ID: request, Address: address}, err
}

func (p *pools) AskedWallet(context.Context, exchange.Asked) (exchange.WalletRequest, error) {
	return exchange.WalletRequest{}, errAway
}

func (p *pools) CreateWallet(context.Context, exchange.Asked, string, exchange.SealedKey) (exchange.Wallet, error) {
	return exchange.Wallet{}, errAway
}

// AskedOrder is an order on TRON.
func (p *pools) AskedOrder(context.Context, exchange.Asked) (exchange.OrderRequest, error) {
	return exchange.OrderRequest{ID: id(1), Network: exchange.Tron}, nil
}

// replenish runs one round of the flow.
func (p *pools) replenish(t *testing.T) workflows.EscrowReplenished {
	t.Helper()
	p.env.ExecuteWorkflow(workflows.ReplenishEscrow)
	var out workflows.EscrowReplenished
	if err := p.env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if err := p.env.GetWorkflowResult(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// provision does what the flow of an order does that found no address.
func provision(ctx workflow.Context) (bool, error) {
	return workflows.ProvisionEscrow(ctx, id(1)), nil
}

func (p *pools) provisions(t *testing.T) bool {
	t.Helper()
	p.env.ExecuteWorkflow(provision)
	var extended bool
	if err := p.env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if err := p.env.GetWorkflowResult(&extended); err != nil {
		t.Fatal(err)
	}
	return extended
}

// A round makes what each pool lacks, with its own signer. A signer that is away does not delay the others.
func TestPoolsAreReplenished(t *testing.T) {
	p := newPools(
		exchange.EscrowDemand{Network: exchange.Ethereum, Make: []uuid.UUID{id(31), id(32)}},
		exchange.EscrowDemand{Network: exchange.Solana, Free: 5, Total: 5},
		exchange.EscrowDemand{Network: exchange.Tron, Make: []uuid.UUID{id(33), id(34)}, Short: 3},
	)
	p.away[exchange.Ethereum] = exchange.Errorf(exchange.CodeUnavailable, "The key service is away.")
	out := p.replenish(t)
	if out.Made != 2 || !slices.Equal(out.Failed, []exchange.Network{exchange.Ethereum}) || !slices.Equal(out.Short, []exchange.Network{exchange.Tron}) {
		t.Errorf("the round's result is %+v", out)
	}
	if !slices.Equal(p.made[exchange.Tron], []uuid.UUID{id(33), id(34)}) || len(p.made[exchange.Ethereum]) != 0 {
		t.Errorf("the addresses made are %v", p.made)
	}
}

// A signer that fails for a while is retried within the round, and no address is made twice.
func TestPoolIsReplenishedDespiteAnOutage(t *testing.T) {
	p := newPools(exchange.EscrowDemand{Network: exchange.Tron, Make: []uuid.UUID{id(33)}})
	p.fault = once("EscrowDemand")
	p.away[exchange.Tron] = exchange.Errorf(exchange.CodeUnavailable, "The key service is away.")
	p.env.RegisterDelayedCallback(func() { delete(p.away, exchange.Tron) }, 30*time.Second)
	if out := p.replenish(t); out.Made != 1 || len(p.made[exchange.Tron]) != 1 {
		t.Errorf("the round's result is %+v, it made %v", out, p.made)
	}
}

// Addresses that were not given back are given back, or counted if their crypto must leave first.
func TestForgottenAddressesAreGivenBack(t *testing.T) {
	p := newPools()
	p.stale, p.stuck[id(2)] = []uuid.UUID{id(1), id(2)}, true
	p.fault = once("ReleaseEscrow")
	start := p.env.Now()
	if out := p.replenish(t); out.Released != 1 || out.Stuck != 1 || !slices.Equal(p.stale, []uuid.UUID{id(2)}) {
		t.Errorf("the round's result is %+v, it left %v", out, p.stale)
	}
	if waited := start.Sub(p.before); waited < 55*time.Minute || waited > time.Hour+time.Minute {
		t.Errorf("they were handled %s after their end", waited)
	}
}

// An order that found no address tries again if one may be free soon, and is refused otherwise.
func TestOrdersProvisionThePool(t *testing.T) {
	for name, c := range map[string]struct {
		room     exchange.EscrowDemand
		away     error
		extended bool
		made     int
	}{
		"one is free by now":    {room: exchange.EscrowDemand{Free: 1}, extended: true},
		"one is made":           {room: exchange.EscrowDemand{Make: []uuid.UUID{id(41)}}, extended: true, made: 1},
		"the pool is full":      {room: exchange.EscrowDemand{Short: 1}},
		"the signer is away":    {room: exchange.EscrowDemand{Make: []uuid.UUID{id(41)}}, away: exchange.Errorf(exchange.CodeUnavailable, "away")},
		"the network is not on": {room: exchange.EscrowDemand{Make: []uuid.UUID{id(41)}}, away: exchange.Errorf(exchange.CodeUnsupported, "no keys")},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPools()
			p.room = c.room
			if c.away != nil {
				p.away[exchange.Tron] = c.away
			}
			start := p.env.Now()
			if extended := p.provisions(t); extended != c.extended || len(p.made[exchange.Tron]) != c.made {
				t.Errorf("the pool was extended: %t, made %v", extended, p.made)
			}
			if waited := p.env.Now().Sub(start); waited > 10*time.Second {
				t.Errorf("the customer waited %s for the response", waited)
			}
		})
	}
}

// Crypto that the house keeps and whose move has not begun is moved.
func TestKeptCryptoIsBroughtToTheTreasury(t *testing.T) {
	t.Parallel()
	p := newPools()
	p.kept = []exchange.KeptDeposit{{ExceptionID: id(3), Network: exchange.Solana}, {ExceptionID: id(4), Network: exchange.Tron}}
	var begun []string
	p.env.RegisterWorkflowWithOptions(func(ctx workflow.Context, in workflows.ReturnDepositInput) (workflows.ReturnDepositResult, error) {
		if in != (workflows.ReturnDepositInput{}) {
			t.Errorf("begun with %+v, which asks for a return", in)
		}
		begun = append(begun, workflow.GetInfo(ctx).WorkflowExecution.ID)
		return workflows.ReturnDepositResult{}, nil
	}, workflow.RegisterOptions{Name: workflows.TypeReturnDeposit})
	want := []string{workflows.ReturnDepositID(id(3)), workflows.ReturnDepositID(id(4))}
	if out := p.replenish(t); out.Moved != 2 || !slices.Equal(begun, want) {
		t.Errorf("%+v, begun %+v", out, begun)
	}
}
