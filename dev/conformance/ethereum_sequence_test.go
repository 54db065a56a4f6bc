package conformance

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"kivuko/chain"
	"kivuko/chain/chaintest"
	"kivuko/chain/ethereum"
	ethnode "kivuko/dev/nodes/ethereum"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// sequencePayment is a payment of one wallet with every transaction that was ever signed for it. They all have its
// nonce, so that at most one of them is included.
type sequencePayment struct {
	want     chain.Transfer
	nonce    uint64
	attempts []chain.Signed
	timeout  int
	end      chain.Verdict // once it is known
}

// sequence is the product's record of a sending wallet.
type sequence struct {
	*ethereumHarness
	wallet   chaintest.Account
	payments []*sequencePayment
	bump     int
}

// Payments of one wallet are carried through whatever node and network do to them, and each recipient is paid at most
// once.
func TestEthereumSequencePaysOnce(t *testing.T) {
	t.Parallel()
	const runs, payments = 6, 5
	bump := 0
	for seed := range uint64(runs) {
		h := startEthereum(t)
		random := rand.New(rand.NewPCG(seed, 1))
		amount := money.Must(money.USDT, "10")
		l := &sequence{ethereumHarness: h, wallet: h.NewAccount(t)}
		h.Fund(t, l.wallet.Address, money.Must(money.ETH, "50"))
		h.Fund(t, l.wallet.Address, money.Must(money.USDT, "1000"))
		for n := range uint64(payments) {
			l.payments = append(l.payments, &sequencePayment{
				want: chain.Transfer{From: l.wallet.Address, To: h.NewAccount(t).Address, Amount: amount}, nonce: n,
			})
		}
		l.carryThrough(t, random, seed)
		h.node.ResetFaults()
		// A verdict must stand even if the network undoes every block that it still can.
		if most := int(h.node.Head().Number - h.node.Final().Number); most > 0 {
			h.Reorganise(t, most, true)
		}
		h.Mine(t, 3)
		h.Finalise(t)
		for _, p := range l.payments {
			want := money.Zero(money.USDT)
			if p.end == chain.VerdictSucceeded {
				want = amount
			}
			if got, err := h.client.Balance(t.Context(), p.want.To, money.USDT); err != nil || !got.Amount.Equal(want) {
				t.Fatalf("seed %d: payment %d ended %s after %d transactions, and its recipient holds %s, %v",
					seed, p.nonce, p.end, len(p.attempts), got.Amount, err)
			}
		}
		if n, err := h.client.Nonces(t.Context(), l.wallet.Address); err != nil || n.Final != payments {
			t.Errorf("seed %d: %+v, %v", seed, n, err)
		}
		bump += l.bump
	}
	if bump == 0 {
		t.Error("no payment was replaced with a higher fee: the scenario is too easy")
	}
}

func (l *sequence) carryThrough(t *testing.T, random *rand.Rand, seed uint64) {
	t.Helper()
	const timeout = 150
	for step := range timeout {
		if step < timeout/2 {
			l.trouble(t, random)
		} else {
			l.node.ResetFaults()
			l.Mine(t, 1)
		}
		if l.turn(t) {
			return
		}
	}
	t.Fatalf("seed %d: the payments never came to an end", seed)
}

// turn does one round of the product's loop: sign what is unsigned, check everything that was signed, broadcast again
// what is in no block, and replace the lowest nonce when it is stuck. It reports whether all payments are final.
func (l *sequence) turn(t *testing.T) bool {
	t.Helper()
	lowest := true
	for _, p := range l.payments {
		if p.end != "" {
			continue
		}
		if len(p.attempts) == 0 {
			p.attempts = append(p.attempts, l.sign(t, l.wallet, p.want.To, p.want.Amount, p.nonce, exchange.Bid{}))
		}
		lost := 0
		for _, a := range p.attempts {
			switch v, _ := l.judge(t, a); v {
			case chain.VerdictSucceeded, chain.VerdictFailed:
				p.end = v
			case chain.VerdictRebuild: // another attempt of the payment used the nonce
				lost++
			case chain.VerdictWait, chain.VerdictBroadcast:
			}
		}
		if p.end != "" {
			continue
		}
		if lost == len(p.attempts) {
			t.Fatalf("payment %d is lost, with %d transactions", p.nonce, lost)
		}
		l.offer(t, p, lowest)
		lowest = false
	}
	return lowest
}

// offer broadcasts the newest transaction of a payment, after replacing it with a higher fee if it blocks the others.
func (l *sequence) offer(t *testing.T, p *sequencePayment, lowest bool) {
	t.Helper()
	const stuck = 4
	last := p.attempts[len(p.attempts)-1]
	if p.timeout++; lowest && p.timeout > stuck {
		p.timeout = 0
		u, err := l.client.Prepare(t.Context(), chain.Draft{Transfer: p.want, Nonce: p.nonce, Bump: last.Bid})
		switch chain.ReasonOf(err) {
		case "":
			signed, err := l.client.Sign(u, l.wallet.Key)
			if err != nil {
				t.Fatal(err)
			}
			p.attempts, last = append(p.attempts, signed), signed
			l.bump++
		case chain.ReasonFeeTooHigh: // the existing transaction is broadcast again
		default:
			t.Fatal(err)
		}
	}
	if _, err := l.client.Broadcast(t.Context(), last.Raw); err != nil {
		t.Fatal(err)
	}
}

// trouble makes one thing go wrong, or lets time pass.
func (l *sequence) trouble(t *testing.T, random *rand.Rand) {
	t.Helper()
	switch random.IntN(11) {
	case 0:
		l.DropNext(t)
	case 1:
		l.LoseNextAnswer(t)
	case 2:
		l.BusyNext(t)
	case 3:
		l.faults(t, ethnode.Faults{HoldBlocks: 3})
	case 4, 5:
		if most := int(l.node.Head().Number - l.node.Final().Number); most > 0 {
			l.Reorganise(t, 1+random.IntN(most), random.IntN(2) == 0)
		}
	case 6:
		l.node.Forget()
	case 7:
		const gwei = 1_000_000_000
		if err := l.node.SetBaseFee(big.NewInt((1 + random.Int64N(20)) * gwei)); err != nil {
			t.Fatal(err)
		}
	case 8:
		l.FailNext(t)
	default:
		l.Mine(t, 1+random.IntN(2))
	}
}

// A payment is stuck after the base fee rose above its fee cap. Its replacement is included, and the original never
// is.
func TestEthereumBumpsWhatIsStuck(t *testing.T) {
	t.Parallel()
	h := startEthereum(t)
	amount := money.Must(money.USDC, "3")
	from, to := h.ready(t, amount), h.NewAccount(t)
	stuck := h.sign(t, from, to.Address, amount, 0, exchange.Bid{})
	h.broadcast(t, stuck, chain.BroadcastAccepted)
	risen := new(big.Int).Add(stuck.Bid.Cap.Units(), big.NewInt(1))
	if err := h.node.SetBaseFee(risen); err != nil {
		t.Fatal(err)
	}
	h.Mine(t, 1)
	if v, f := h.judge(t, stuck); v != chain.VerdictBroadcast || f.Location.Stage != chain.StagePending {
		t.Fatalf("the verdict is %s: %+v", v, f)
	}
	h.broadcast(t, stuck, chain.BroadcastKnown)
	replacement := h.sign(t, from, to.Address, amount, 0, stuck.Bid)
	if replacement.Bid.Cap.Units().Cmp(risen) < 0 {
		t.Errorf("the replacement bids %s, the base fee is above %s wei", replacement.Bid.Cap, risen)
	}
	h.broadcast(t, replacement, chain.BroadcastAccepted)
	h.broadcast(t, stuck, chain.BroadcastRejected)
	h.Mine(t, 1)
	h.Finalise(t)
	if v, f := h.judge(t, replacement); v != chain.VerdictSucceeded {
		t.Errorf("the verdict is %s: %+v", v, f)
	}
	if v, f := h.judge(t, stuck); v != chain.VerdictRebuild {
		t.Errorf("the verdict is %s: %+v", v, f)
	}
}

// An event keeps its number when its transaction is included again at another place of another block.
func TestEthereumMovementsKeepTheirNumbers(t *testing.T) {
	t.Parallel()
	h := startEthereum(t)
	amount := money.Must(money.USDT, "3")
	first, second, to := h.ready(t, amount), h.ready(t, amount), h.NewAccount(t)
	before := h.sign(t, first, to.Address, amount, 0, exchange.Bid{})
	tracked := h.sign(t, second, to.Address, amount, 0, exchange.Bid{})
	h.broadcast(t, before, chain.BroadcastAccepted)
	h.Mine(t, 1)
	place := func() (index uint32, logged uint) {
		t.Helper()
		h.Mine(t, 1)
		_, f := h.judge(t, tracked)
		block, err := h.client.Transfers(t.Context(), f.Location.Block.Number)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range block.Movements {
			if m.TxID == tracked.TxID {
				r, err := h.rpc.TransactionReceipt(t.Context(), common.HexToHash(tracked.TxID))
				if err != nil {
					t.Fatal(err)
				}
				return m.Index, r.Logs[0].Index
			}
		}
		t.Fatalf("the movement is missing in %+v", block)
		return 0, 0
	}
	h.broadcast(t, tracked, chain.BroadcastAccepted)
	alone, loggedAlone := place()
	if err := h.node.Reorganise(2, true); err != nil {
		t.Fatal(err)
	}
	h.broadcast(t, before, chain.BroadcastAccepted)
	h.broadcast(t, tracked, chain.BroadcastAccepted)
	both, loggedBoth := place()
	if alone != both {
		t.Errorf("the movement had the number %d and has %d", alone, both)
	}
	if loggedAlone == loggedBoth {
		t.Errorf("the scenario failed: the node numbers the event %d both times", loggedBoth)
	}
}

// With a dead node and a node of another chain before the live one, nothing is missed.
func TestEthereumFailover(t *testing.T) {
	t.Parallel()
	h := startEthereum(t)
	c := h.driverConfig()
	c.Nodes = append([]ethereum.Endpoint{{URL: "http://127.0.0.1:1"}}, c.Nodes...)
	both, err := ethereum.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(both.Close)
	h.client = both
	h.pays(t, money.Must(money.USDT, "1"))
}

func TestEthereumRefusesToPayWhoRefuses(t *testing.T) {
	t.Parallel()
	h := startEthereum(t)
	from := h.ready(t, money.Must(money.USDT, "1"))
	_, err := h.client.Prepare(t.Context(), chain.Draft{Transfer: chain.Transfer{
		From: from.Address, To: ethnode.SinkAddress().Hex(), Amount: money.Must(money.ETH, "0.001"),
	}})
	if chain.ReasonOf(err) != chain.ReasonReverts {
		t.Errorf("ether to a contract that takes none: %v", err)
	}
}

func TestEthereumFeeCeiling(t *testing.T) {
	t.Parallel()
	h := startEthereum(t)
	from := h.ready(t, money.Must(money.USDT, "1"))
	if err := h.node.SetBaseFee(big.NewInt(350_000_000_000)); err != nil {
		t.Fatal(err)
	}
	h.Mine(t, 1)
	_, err := h.client.Prepare(t.Context(), chain.Draft{Transfer: chain.Transfer{From: from.Address, To: h.NewAccount(t).Address, Amount: money.Must(money.USDT, "1")}})
	if chain.ReasonOf(err) != chain.ReasonFeeTooHigh {
		t.Errorf("%v", err)
	}
}

func BenchmarkEthereumPayment(b *testing.B) {
	h := startEthereum(b)
	from, to := h.NewAccount(b), h.NewAccount(b)
	h.Fund(b, from.Address, money.Must(money.ETH, "1000"))
	h.Fund(b, from.Address, money.Must(money.USDT, "1000000"))
	const perBlock = 60
	nonce := uint64(0)
	for b.Loop() {
		signed := h.sign(b, from, to.Address, money.Must(money.USDT, "0.000001"), nonce, exchange.Bid{})
		h.broadcast(b, signed, chain.BroadcastAccepted)
		if nonce++; nonce%perBlock == 0 {
			h.Mine(b, 1) // a pool accepts a limited number from one sender
		}
	}
}
