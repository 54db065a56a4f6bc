package activities_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"pgregory.net/rapid"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// script is a network whose blocks the test writes. Blocks above final may be replaced.
type script struct {
	mu     sync.Mutex
	base   chain.Block // final before the script begins
	blocks []chain.BlockTransfers
	old    map[uint64]chain.BlockTransfers // of abandoned branches
	final  int                             // how many blocks are final
	name   string                          // with made, names blocks and transactions
	made   int
	// fault decides about one response: nil is the truth, errStale is the response of a node on an old branch.
	fault func() error
	reads int
}

var (
	errStale = errors.New("stale")
	errAway  = chain.Errorf(chain.ReasonUnavailable, "no node")
)

func (s *script) Network() exchange.Network { return exchange.Tron }

func (s *script) tip() chain.Block { return s.at(len(s.blocks)) }

// at is the newest block that was not skipped among the first n.
func (s *script) at(n int) chain.Block {
	for i := n - 1; i >= 0; i-- {
		if !s.blocks[i].Skipped {
			return s.blocks[i].Block
		}
	}
	return s.base
}

func (s *script) number(i int) uint64 { return s.base.Number + 1 + uint64(i) }

func (s *script) mine(moved ...chain.Movement) {
	s.made++
	n := s.number(len(s.blocks))
	s.blocks = append(s.blocks, chain.BlockTransfers{
		Block:     chain.Block{Number: n, ID: fmt.Sprintf("%s-%d-%d", s.name, n, s.made), Parent: s.tip().ID, Time: time.Unix(int64(n), 0).UTC()},
		Movements: moved,
	})
}

func (s *script) skip() {
	s.blocks = append(s.blocks, chain.BlockTransfers{Block: chain.Block{Number: s.number(len(s.blocks))}, Skipped: true})
}

// reorganise abandons the newest blocks and returns what moved in them.
func (s *script) reorganise(depth int) []chain.Movement {
	var lost []chain.Movement
	for range depth {
		last := s.blocks[len(s.blocks)-1]
		s.blocks = s.blocks[:len(s.blocks)-1]
		s.old[last.Block.Number] = last
		lost = append(lost, last.Movements...)
	}
	return lost
}

func (s *script) Head(context.Context) (chain.Head, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault != nil {
		if err := s.fault(); err != nil && !errors.Is(err, errStale) {
			return chain.Head{}, err
		}
	}
	return chain.Head{Latest: s.tip(), Final: s.at(s.final)}, nil
}

func (s *script) Transfers(_ context.Context, number uint64) (chain.BlockTransfers, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.fault != nil {
		switch err := s.fault(); {
		case errors.Is(err, errStale):
			if b, ok := s.old[number]; ok {
				return b, nil
			}
		case err != nil:
			return chain.BlockTransfers{}, err
		}
	}
	if number <= s.base.Number || number > s.number(len(s.blocks)-1) {
		return chain.BlockTransfers{}, chain.Errorf(chain.ReasonUnavailable, "there is no block %d", number)
	}
	return s.blocks[number-s.base.Number-1], nil
}

// unsure is a store whose responses get lost: the request was carried out or not.
type unsure struct {
	*store.Store
	lose func() bool
}

var errLost = exchange.Errorf(exchange.CodeUnavailable, "the answer was lost")

func (u unsure) RecordFinalBlock(ctx context.Context, b exchange.BlockScan) (exchange.DepositCursor, error) {
	if u.lose() {
		return exchange.DepositCursor{}, errLost
	}
	c, err := u.Store.RecordFinalBlock(ctx, b)
	if u.lose() {
		return c, errLost
	}
	return c, err
}

func (u unsure) RecordSeenBlock(ctx context.Context, b exchange.BlockScan) (exchange.DepositCursor, error) {
	c, err := u.Store.RecordSeenBlock(ctx, b)
	if u.lose() {
		return c, errLost
	}
	return c, err
}

// follow calls the activity once, which looks once.
func follow(t testing.TB, d *activities.Deposits) (activities.Followed, error) {
	t.Helper()
	suite := testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(d)
	value, err := env.ExecuteActivity(d.FollowDeposits, activities.FollowInput{Network: exchange.Tron})
	if err != nil {
		return activities.Followed{}, err
	}
	var f activities.Followed
	if err := value.Get(&f); err != nil {
		t.Fatal(err)
	}
	return f, nil
}

func newScript(t testing.TB, s *store.Store) *script {
	t.Helper()
	sc := &script{name: uuid.NewString(), base: chain.Block{Number: 100, ID: "base"}, old: map[uint64]chain.BlockTransfers{}}
	if c, found, err := s.DepositCursor(t.Context(), exchange.Tron); err != nil {
		t.Fatal(err)
	} else if found {
		sc.base = chain.Block{Number: c.Final.Number, ID: c.LinkID}
	}
	return sc
}

func (s *script) move(w exchange.Wallet, amount string) chain.Movement {
	s.made++
	return chain.Movement{TxID: fmt.Sprintf("%s-t%d", s.name, s.made), From: "Tstranger", To: w.Address, Amount: money.Must(money.USDT, amount)}
}

func held(t testing.TB, s *store.Store, w exchange.Wallet) string {
	t.Helper()
	a, err := s.Account(t.Context(), exchange.Owned(exchange.AccWalletBalance, w.ID, money.USDT))
	if err != nil {
		t.Fatal(err)
	}
	return a.Posted.String()
}

// TestDepositsFollowTheFinalChain plays random histories of a chain: blocks, skipped numbers, reorganisations whose
// transactions return or not, nodes that are down or on an old branch, and lost responses of the database. In every
// case, the books agree with the final chain at the end.
func TestDepositsFollowTheFinalChain(t *testing.T) {
	s := storetest.New(t)
	rapid.Check(t, func(rt *rapid.T) {
		w := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
		net := newScript(t, s)
		chance := func(percent int, what string) bool { return rapid.IntRange(1, 100).Draw(rt, what) <= percent }
		trouble := rapid.Bool().Draw(rt, "trouble")
		d := &activities.Deposits{Client: net, Store: unsure{s, func() bool { return trouble && chance(5, "lost") }}}
		if _, err := follow(t, &activities.Deposits{Client: net, Store: s}); err != nil {
			rt.Fatal(err)
		}
		var pending []chain.Movement
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch rapid.IntRange(0, 7).Draw(rt, "step") {
			case 0, 1:
				moved := pending
				pending = nil
				for range rapid.IntRange(0, 2).Draw(rt, "movements") {
					moved = append(moved, net.move(w, "1"))
				}
				net.mine(moved...)
			case 2:
				net.skip()
			case 3:
				if open := len(net.blocks) - net.final; open > 0 {
					lost := net.reorganise(rapid.IntRange(1, open).Draw(rt, "depth"))
					for _, m := range lost {
						if chance(60, "comes again") {
							pending = append(pending, m)
						}
					}
					net.mine()
				}
			case 4:
				if open := len(net.blocks) - net.final; open > 0 {
					net.final += rapid.IntRange(1, open).Draw(rt, "final")
				}
			default:
				net.fault = func() error {
					if !trouble || !chance(30, "fault") {
						return nil
					}
					if chance(80, "stale") {
						return errStale
					}
					return errAway
				}
				_, _ = follow(t, d) // retries at the next step
				net.fault = nil
			}
		}
		net.mine(pending...)
		net.final = len(net.blocks)
		var f activities.Followed
		var err error
		for range 5 {
			if f, err = follow(t, &activities.Deposits{Client: net, Store: s}); err == nil && f.Lag() == 0 {
				break
			}
		}
		if err != nil || f.Final != net.tip().Number && !net.blocks[len(net.blocks)-1].Skipped {
			rt.Fatalf("it ended at %+v, %v", f, err)
		}
		n := 0
		for _, b := range net.blocks {
			n += len(b.Movements)
		}
		if got, want := held(t, s, w), fmt.Sprintf("%d.000000", n); got != want && (n != 0 || got != "0.000000") {
			rt.Fatalf("%s are booked, the chain says %s", got, want)
		}
		all, _, err := s.ListChainDeposits(t.Context(), store.ChainDepositFilter{WalletID: w.ID}, store.Page{Number: 1, Size: 100})
		if err != nil {
			rt.Fatal(err)
		}
		final := 0
		for _, dep := range all {
			switch dep.Status {
			case exchange.DepositFinal:
				final++
			case exchange.DepositSeen:
				rt.Fatalf("%s is neither final nor gone", dep.TxID)
			case exchange.DepositOrphaned:
			}
		}
		if final != n {
			rt.Fatalf("%d movements are final, the chain has %d", final, n)
		}
	})
}

// A first start on a running chain begins with the next final block.
func TestDepositsBeginAtTheFinalHead(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	w := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	net := newScript(t, s)
	net.mine(net.move(w, "1"))
	net.final = 1
	net.mine(net.move(w, "2"))
	d := &activities.Deposits{Client: net, Store: s}
	f, err := follow(t, d)
	if err != nil || f.Final != 101 || f.Seen != 102 || f.Lag() != 0 {
		t.Fatalf("%+v, %v", f, err)
	}
	net.final = 2
	if f, err = follow(t, d); err != nil || f.Final != 102 {
		t.Fatalf("%+v, %v", f, err)
	}
	if got := held(t, s, w); got != "2.000000" {
		t.Errorf("%s are booked, want 2", got)
	}
}

// A configured first block is read too.
func TestDepositsBeginAtTheConfiguredBlock(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	w := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	net := newScript(t, s)
	for range 4 {
		net.mine(net.move(w, "1"))
	}
	net.final = 4
	if f, err := follow(t, &activities.Deposits{Client: net, Store: s, From: 102}); err != nil || f.Final != 104 {
		t.Fatalf("%+v, %v", f, err)
	}
	if got := held(t, s, w); got != "3.000000" {
		t.Errorf("%s are booked, want 3", got)
	}
}

// After a long stop all missed blocks are read, a bounded number at a time.
func TestDepositsCatchUp(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	w := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	net := newScript(t, s)
	d := &activities.Deposits{Client: net, Store: s}
	if _, err := follow(t, d); err != nil {
		t.Fatal(err)
	}
	const stopped = 300
	for i := range stopped {
		if i%10 == 0 {
			net.mine(net.move(w, "1"))
		} else {
			net.mine()
		}
	}
	net.final = stopped
	calls := 0
	for {
		calls++
		before := net.reads
		f, err := follow(t, d)
		if err != nil {
			t.Fatal(err)
		}
		if n := net.reads - before; n > 130 {
			t.Errorf("one call read %d blocks", n)
		}
		if f.Lag() == 0 {
			break
		}
	}
	if got := held(t, s, w); got != "30.000000" || calls < 3 {
		t.Errorf("%s are booked after %d calls", got, calls)
	}
}

// A node whose final block differs from the chain that was read is refused.
func TestDepositsRefuseAnotherFinalChain(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	w := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	net := newScript(t, s)
	d := &activities.Deposits{Client: net, Store: s}
	if _, err := follow(t, d); err != nil {
		t.Fatal(err)
	}
	net.mine(net.move(w, "1"))
	net.final = 1
	net.blocks[0].Block.Parent = "somewhere else"
	if _, err := follow(t, d); err == nil {
		t.Error("a final block without a known parent was accepted")
	}
	net.blocks[0].Block.Parent = net.base.ID
	net.old[101] = chain.BlockTransfers{
		Block: chain.Block{Number: 101, ID: "lie", Parent: net.base.ID}, Movements: []chain.Movement{net.move(w, "1000")},
	}
	net.fault = func() error { return errStale }
	if _, err := follow(t, d); err == nil {
		t.Error("a block that is not the final head was accepted")
	}
	net.fault = nil
	if _, err := follow(t, d); err != nil || held(t, s, w) != "1.000000" {
		t.Errorf("%s are booked, %v", held(t, s, w), err)
	}
}

// A seen deposit is removed when its block is replaced, also by one of the same height, and may return.
func TestDepositsSeeReorganisations(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	w := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	net := newScript(t, s)
	d := &activities.Deposits{Client: net, Store: s}
	if _, err := follow(t, d); err != nil {
		t.Fatal(err)
	}
	status := func(want exchange.ChainDepositStatus) {
		t.Helper()
		if _, err := follow(t, d); err != nil {
			t.Fatal(err)
		}
		all, _, err := s.ListChainDeposits(t.Context(), store.ChainDepositFilter{WalletID: w.ID}, store.Page{Number: 1, Size: 10})
		if err != nil || len(all) != 1 || all[0].Status != want {
			t.Fatalf("%+v, %v; want %s", all, err, want)
		}
	}
	net.mine()
	net.mine(net.move(w, "1"))
	net.mine()
	status(exchange.DepositSeen)
	lost := net.reorganise(3)
	net.mine()
	net.skip()
	net.mine() // as high as before
	status(exchange.DepositOrphaned)
	net.mine(lost...)
	status(exchange.DepositSeen)
	net.reorganise(1)
	net.mine(lost...) // in the block that replaces it
	status(exchange.DepositSeen)
	net.final = len(net.blocks)
	status(exchange.DepositFinal)
	if got := held(t, s, w); got != "1.000000" {
		t.Errorf("%s are booked, want 1", got)
	}
}

// A transaction that the driver can't read is quarantined and reported, and hides no other.
func TestDepositsWithAnUnreadableTransaction(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	w := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	net := newScript(t, s)
	d := &activities.Deposits{Client: net, Store: s}
	if _, err := follow(t, d); err != nil {
		t.Fatal(err)
	}
	net.mine(net.move(w, "1"))
	net.blocks[0].Unreadable = []chain.Unreadable{{TxID: "odd", Detail: "an event with 31 bytes"}}
	net.final = 1
	f, err := follow(t, d)
	if err != nil || f.Quarantined != 1 || held(t, s, w) != "1.000000" {
		t.Errorf("%+v, %v, %s booked", f, err, held(t, s, w))
	}
}

// A waiting flow is listed once for each event.
func TestDepositsNameWhoWaits(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	w := storetest.Wallet(t, s, storetest.User(t, s, exchange.RoleCustomer))
	net := newScript(t, s)
	d := &activities.Deposits{Client: net, Store: s, Stretch: time.Hour, Poll: time.Hour} // still ends at once
	if _, err := follow(t, &activities.Deposits{Client: net, Store: s}); err != nil {
		t.Fatal(err)
	}
	waits := &activities.DepositWaits{Store: s}
	in := activities.AwaitInput{Network: exchange.Tron, Address: w.Address, WorkflowID: "flow", Since: time.Now()}
	if err := waits.AwaitDeposits(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	net.mine(net.move(w, "1"))
	var statuses []exchange.ChainDepositStatus
	for i := range 2 {
		net.final = i
		f, err := follow(t, d)
		if err != nil || len(f.Wakeups) != 1 || f.Wakeups[0].WorkflowID != "flow" {
			t.Fatalf("%+v, %v", f, err)
		}
		at, err := waits.LookAtDeposit(t.Context(), activities.DepositInput{DepositID: f.Wakeups[0].DepositID})
		if err == nil {
			err = waits.RecordWoken(t.Context(), activities.WokenInput{IDs: []uuid.UUID{f.Wakeups[0].ID}})
		}
		if err != nil {
			t.Fatal(err)
		}
		statuses = append(statuses, at.Status)
	}
	if !slices.Equal(statuses, []exchange.ChainDepositStatus{exchange.DepositSeen, exchange.DepositFinal}) {
		t.Errorf("notified when it was %v", statuses)
	}
	if err := waits.EndDepositWait(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}
