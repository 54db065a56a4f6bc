package activities_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/testsuite"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// vaultRoom is a network and a ledger in which every wallet should hold 5 USDT and nothing else.
type vaultRoom struct {
	mu       sync.Mutex
	wallets  []exchange.Wallet
	run      exchange.Reconciliation
	cursor   uint64
	moves    bool // the watch advances with each check
	head     uint64
	asked    map[string]int // how often by address
	answer   func(address string, try int) (string, error)
	recorded []exchange.ReconciledBatch
	refusal  error
}

func newVaultRoom(wallets int) *vaultRoom {
	v := &vaultRoom{run: exchange.Reconciliation{ID: uuid.New(), Network: exchange.Tron, Status: exchange.ReconciliationRunning}, cursor: 10, head: 10, asked: map[string]int{}}
	for i := range wallets {
		v.wallets = append(v.wallets, exchange.Wallet{ID: uuid.UUID{14: byte(i / 200), 15: byte(i%200 + 1)}, Address: "T" + uuid.UUID{15: byte(i)}.String()[30:]})
	}
	v.answer = func(string, int) (string, error) { return "5", nil }
	return v
}

func (v *vaultRoom) Network() exchange.Network { return exchange.Tron }

func (v *vaultRoom) Supports(a money.Asset) error {
	if a != money.USDT {
		return chain.Errorf(chain.ReasonUnsupported, "not here")
	}
	return nil
}

func (v *vaultRoom) Balance(_ context.Context, address string, a money.Asset) (chain.Balance, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked[address]++
	text, err := v.answer(address, v.asked[address])
	if err != nil {
		return chain.Balance{}, err
	}
	return chain.Balance{Amount: money.Must(a, text), At: chain.Block{Number: v.head, ID: "head"}}, nil
}

func (v *vaultRoom) Reconciliation(context.Context, uuid.UUID) (exchange.Reconciliation, error) {
	return v.run, nil
}

func (v *vaultRoom) WalletsAfter(_ context.Context, _ exchange.Network, after uuid.UUID, limit int) ([]exchange.Wallet, error) {
	for i, w := range v.wallets {
		if w.ID.String() > after.String() {
			return v.wallets[i:min(i+limit, len(v.wallets))], nil
		}
	}
	return nil, nil
}

func (v *vaultRoom) DepositCursor(context.Context, exchange.Network) (exchange.DepositCursor, bool, error) {
	if v.moves {
		v.cursor++
	}
	return exchange.DepositCursor{Final: exchange.ChainBlock{Number: v.cursor}}, true, nil
}

func (v *vaultRoom) CompareReadings(_ context.Context, _ exchange.Network, readings []exchange.WalletReading) ([]exchange.Comparison, error) {
	var all []exchange.Comparison
	for _, r := range readings {
		all = append(all, exchange.Comparison{
			WalletReading: r, Ledger: money.Must(money.USDT, "5"), Fees: money.Zero(money.USDT), Deferred: r.Block.Number > v.cursor,
		})
	}
	return all, nil
}

func (v *vaultRoom) RecordComparisons(_ context.Context, b exchange.ReconciledBatch) (exchange.Reconciliation, error) {
	if v.refusal != nil {
		return v.run, v.refusal
	}
	v.recorded = append(v.recorded, b)
	v.run.Cursor = b.Last
	return v.run, nil
}

// compare runs one activity.
func (v *vaultRoom) compare() (activities.Compared, error) {
	suite := &testsuite.WorkflowTestSuite{}
	env := suite.NewTestActivityEnvironment()
	c := &activities.Comparing{Store: v, Client: v, Poll: time.Millisecond, WatchTimeout: 50 * time.Millisecond}
	env.RegisterActivity(c)
	out, err := env.ExecuteActivity(c.CompareWallets, activities.CompareInput{RunID: v.run.ID, Network: exchange.Tron})
	if err != nil {
		return activities.Compared{}, err
	}
	var now activities.Compared
	return now, out.Get(&now)
}

// counts sums the recorded comparisons.
func (v *vaultRoom) counts() (compared, deferred, unread, differs int) {
	for _, b := range v.recorded {
		unread += b.Unread
		for _, c := range b.Comparisons {
			switch {
			case c.Deferred:
				deferred++
			case c.Differs():
				differs++
				compared++
			default:
				compared++
			}
		}
	}
	return compared, deferred, unread, differs
}

func TestWalletsAreComparedBatchByBatch(t *testing.T) {
	v := newVaultRoom(120)
	for i, more := range []bool{true, true, false} {
		got, err := v.compare()
		if err != nil || got.More != more {
			t.Fatalf("step %d: %+v, %v", i, got, err)
		}
	}
	if compared, deferred, unread, differs := v.counts(); compared != 120 || deferred+unread+differs != 0 {
		t.Errorf("compared %d, deferred %d, unread %d, differ %d", compared, deferred, unread, differs)
	}
	for _, w := range v.wallets {
		if v.asked[w.Address] != 1 {
			t.Errorf("wallet %s was read %d times", w.Address, v.asked[w.Address])
		}
	}
	v.run.Status = exchange.ReconciliationFailed // another run took its place
	v.run.Cursor = uuid.Nil
	if got, err := v.compare(); err != nil || got.More || len(v.recorded) != 3 {
		t.Errorf("a run that has ended goes on: %+v, %v", got, err)
	}
}

// A difference counts when a second check finds it too.
func TestWhatDiffersIsLookedAtTwice(t *testing.T) {
	broken := chain.Errorf(chain.ReasonProtocol, "nonsense")
	for name, c := range map[string]struct {
		answer                              func(try int) (string, error)
		compared, unread, deferred, differs int
	}{
		"stands":              {func(int) (string, error) { return "4", nil }, 3, 0, 0, 1},
		"a node's slip":       {func(try int) (string, error) { return map[bool]string{true: "4", false: "5"}[try == 1], nil }, 3, 0, 0, 0},
		"nonsense":            {func(int) (string, error) { return "", broken }, 2, 1, 0, 0},
		"nonsense afterwards": {func(try int) (string, error) { return "4", map[bool]error{true: nil, false: broken}[try == 1] }, 2, 0, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVaultRoom(3)
			odd := v.wallets[1].Address
			v.answer = func(address string, try int) (string, error) {
				if address == odd {
					return c.answer(try)
				}
				return "5", nil
			}
			if got, err := v.compare(); err != nil || got.More {
				t.Fatalf("%+v, %v", got, err)
			}
			compared, deferred, unread, differs := v.counts()
			if compared != c.compared || deferred != c.deferred || unread != c.unread || differs != c.differs {
				t.Errorf("compared %d, deferred %d, unread %d, differ %d; want %+v", compared, deferred, unread, differs, c)
			}
			if v.asked[v.wallets[0].Address] != 1 {
				t.Error("a matching wallet was read again")
			}
		})
	}
}

// A batch is not recorded while the chain or the database can't be reached.
func TestOutagesLeaveTheBatch(t *testing.T) {
	v := newVaultRoom(3)
	v.answer = func(string, int) (string, error) { return "", chain.Errorf(chain.ReasonUnavailable, "no route") }
	if _, err := v.compare(); err == nil || len(v.recorded) != 0 {
		t.Fatalf("%v, recorded %+v", err, v.recorded)
	}
	v = newVaultRoom(3)
	v.refusal = errors.New("the database is away")
	if _, err := v.compare(); err == nil || v.run.Cursor != uuid.Nil {
		t.Errorf("%v, the run is at %s", err, v.run.Cursor)
	}
}

// A batch waits for the ledger to reach its blocks, but no longer than its timeout.
func TestBatchesWaitForTheWatch(t *testing.T) {
	v := newVaultRoom(1)
	v.head, v.moves = 15, true
	if _, err := v.compare(); err != nil {
		t.Fatal(err)
	}
	if compared, deferred, _, _ := v.counts(); compared != 1 || deferred != 0 || v.cursor < 15 {
		t.Errorf("compared %d, deferred %d with the watch at %d", compared, deferred, v.cursor)
	}
	v = newVaultRoom(1)
	v.head = 15
	if _, err := v.compare(); err != nil {
		t.Fatal(err)
	}
	if compared, deferred, _, _ := v.counts(); compared != 0 || deferred != 1 {
		t.Errorf("compared %d, deferred %d although the watch stands still", compared, deferred)
	}
}

// coinRoom is a vaultRoom on Solana that also reads the native coin.
type coinRoom struct {
	*vaultRoom
	read []string
}

func (c *coinRoom) Network() exchange.Network { return exchange.Solana }

func (c *coinRoom) Supports(money.Asset) error { return nil }

func (c *coinRoom) Balance(ctx context.Context, address string, a money.Asset) (chain.Balance, error) {
	c.mu.Lock()
	c.read = append(c.read, address+" "+string(a))
	c.mu.Unlock()
	b, err := c.vaultRoom.Balance(ctx, address, money.USDT)
	b.Amount = money.Must(a, "5")
	return b, err
}

func (c *coinRoom) CompareReadings(_ context.Context, _ exchange.Network, readings []exchange.WalletReading) ([]exchange.Comparison, error) {
	var all []exchange.Comparison
	for _, r := range readings {
		all = append(all, exchange.Comparison{WalletReading: r, Ledger: r.Amount, Fees: money.Zero(r.Amount.Asset())})
	}
	return all, nil
}

// An account of several owners on Solana has the coins that opening it cost, which can never be moved, so they are not compared with the ledger. Its
// tokens are.
func TestRentOfSharedAccountsIsNotCompared(t *testing.T) {
	t.Parallel()
	room := &coinRoom{vaultRoom: newVaultRoom(2)}
	for i, custody := range []exchange.Custody{exchange.Custodial, exchange.Multisig} {
		room.wallets[i].Network, room.wallets[i].Custody, room.wallets[i].Address = exchange.Solana, custody, string(custody)
	}
	suite := &testsuite.WorkflowTestSuite{}
	env := suite.NewTestActivityEnvironment()
	c := &activities.Comparing{Store: room, Client: room, Poll: time.Millisecond, WatchTimeout: 50 * time.Millisecond}
	env.RegisterActivity(c)
	if _, err := env.ExecuteActivity(c.CompareWallets, activities.CompareInput{RunID: room.run.ID, Network: exchange.Solana}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(room.read)
	if want := []string{"custodial SOL", "custodial USDC", "custodial USDT", "multisig USDC", "multisig USDT"}; !slices.Equal(room.read, want) {
		t.Errorf("read are %v, want %v", room.read, want)
	}
}
