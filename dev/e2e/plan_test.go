package e2e

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The seeded plan.
const (
	// transfersVariable is the number of transfers of the plan, seedVariable its seed.
	transfersVariable = "KIVUKO_E2E_TRANSFERS"
	seedVariable      = "KIVUKO_E2E_SEED"
	defaultTransfers  = 30
	// troubleEach is the average number of transfers between two troubles.
	troubleEach = 3
	// mostAtOnce is the maximum count of a trouble.
	mostAtOnce = 3
)

// planned is one step of the plan: a transfer, or trouble.
type planned struct {
	node    int // index of the network
	units   int64
	inside  bool
	trouble string // empty for a transfer
	count   int
	pause   time.Duration
}

// The troubles of a plan.
const (
	troubleDrop    = "drop"
	troubleDrought = "drop everything until it can't come any more"
	troubleLose    = "lose"
	troubleBusy    = "busy"
	troubleDelay   = "delay"
	troubleReorg   = "reorganise"
	troubleForget  = "reorganise and forget"
	troubleNode    = "kill the node"
	troubleChain   = "kill the chain's worker"
	troubleSigner  = "kill the signer"
	troubleFlows   = "kill the flows' worker"
	troubleAPI     = "kill the API"
	troubleFlow    = "kill Temporal"
	troubleRows    = "kill PostgreSQL"
)

// plan makes the same steps for the same seed, before anything runs.
func plan(seed uint64, transfers, networks int) []planned {
	all := []string{
		troubleDrop, troubleLose, troubleBusy, troubleDelay, troubleReorg, troubleForget, troubleNode, troubleChain, troubleSigner, troubleFlows,
		troubleAPI, troubleFlow, troubleRows, troubleDrought,
	}
	r := rand.New(rand.NewPCG(seed, 0))
	var steps []planned
	for range transfers {
		steps = append(steps, planned{
			node: r.IntN(networks), units: 100_000 + r.Int64N(900_000), inside: r.IntN(4) == 0, pause: time.Duration(r.IntN(150)) * time.Millisecond,
		})
		if r.IntN(troubleEach) == 0 {
			steps = append(steps, planned{
				node: r.IntN(networks), trouble: all[r.IntN(len(all))], count: 1 + r.IntN(mostAtOnce), pause: time.Duration(r.IntN(150)) * time.Millisecond,
			})
		}
	}
	return steps
}

func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	v, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s must be a number, not %q", name, text)
	}
	return v
}

// movedBy is a transfer of the plan and its destination.
type movedBy struct {
	node    demo.Node
	id      uuid.UUID
	address string
	inside  bool // other transfers pay this address too; a stranger's address gets only this one
	amount  money.Amount
}

// TestTransfersSurviveAPlan sends on all networks while nodes drop, delay and reorganise, and nodes, workers,
// Temporal and PostgreSQL are killed. At the end no transfer is lost, none is doubled, and ledger and chains agree. A
// failed run prints its seed; KIVUKO_E2E_SEED repeats its plan.
func TestTransfersSurviveAPlan(t *testing.T) {
	w := open(t)
	seed := setting(t, seedVariable, uint64(rand.Uint32()))
	n := int(setting(t, transfersVariable, defaultTransfers))
	nodes := w.seed().Nodes()
	t.Logf("%d transfers on %d networks: %s=%d repeats the plan", n, len(nodes), seedVariable, seed)
	var all []movedBy
	trouble := &troubles{harness: w, exhausted: map[exchange.Network]time.Time{}}
	for _, step := range plan(seed, n, len(nodes)) {
		trouble.relieve(t, nodes)
		if step.trouble != "" {
			trouble.strike(t, nodes[step.node], step)
		} else {
			all = append(all, w.begin(t, nodes[step.node], step))
		}
		time.Sleep(step.pause)
	}
	for _, node := range nodes {
		post(t, node, "/reset", nil)
	}
	// No other test runs before the last transfer has ended: the faults that one arms would strike these.
	deadline := time.Now().Add(recovery) // for all together: many stuck transfers fail in the time of one
	for _, m := range all {
		w.judgeMove(t, m, deadline)
	}
	w.onePaymentEach(t, all)
	w.invariants(t)
	w.booksAgree(t)
}

// begin opens a transfer of the plan.
func (w *harness) begin(t *testing.T, n demo.Node, step planned) movedBy {
	t.Helper()
	m := movedBy{node: n, inside: step.inside, amount: money.FromUnits(money.USDT, big.NewInt(step.units))}
	to := map[string]any{"email": demo.SecondEmail}
	if step.inside {
		m.address = w.walletOf(t, demo.SecondEmail, n.Network).Address
	} else {
		var err error
		if m.address, err = stranger(n.Network); err != nil {
			t.Fatal(err)
		}
		to = map[string]any{"address": m.address}
	}
	f, err := transferOn(t.Context(), w.as(t, demo.VendorEmail), n.Network, m.amount.String(), to, uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	m.id = f.ID
	return m
}

// strike causes a trouble.
func (w *troubles) strike(t *testing.T, n demo.Node, step planned) {
	t.Helper()
	if step.trouble == troubleDrought && step.count < mostAtOnce {
		step.trouble = troubleDrop
	}
	t.Logf("%s: %s (%d)", n.Network, step.trouble, step.count)
	faults := map[string]map[string]any{
		troubleDrop: {"drop_next": step.count}, troubleLose: {"lose_next": step.count}, troubleBusy: {"busy_next": step.count},
		troubleDelay: {"answer_delay_ms": 1000 * step.count},
	}
	queue, processes := string(n.Network), map[exchange.Network]string{
		exchange.Tron: stack.ProcessTron, exchange.Ethereum: stack.ProcessEthereum, exchange.Solana: stack.ProcessSolana,
	}
	switch step.trouble {
	case troubleReorg, troubleForget:
		in := map[string]any{"blocks": step.count, "drop": step.trouble == troubleForget}
		eventually(t, "a reorganisation", func() error { return n.Call(t.Context(), http.MethodPost, "/reorganise", in, nil) })
	case troubleNode:
		w.kill(t, processes[n.Network], 300*time.Millisecond)
	case troubleChain:
		w.kill(t, stack.ProcessWorker("chain-"+queue), 0)
	case troubleSigner:
		w.kill(t, stack.ProcessWorker("signer-"+queue), 0)
	case troubleFlows:
		w.kill(t, stack.ProcessWorker("flows"), 0)
	case troubleAPI:
		w.kill(t, stack.ProcessAPI, 0)
	case troubleFlow:
		w.kill(t, stack.ProcessTemporal, 300*time.Millisecond)
	case troubleRows:
		databaseDies(t, w.harness)
	case troubleDrought:
		w.exhausted[n.Network] = time.Now().Add(transactionLife + exhaustedMargin)
		w.arm(t, n, map[string]any{})
	default:
		w.arm(t, n, faults[step.trouble])
	}
}

// troubles causes troubles, and stores which nodes drop every transaction and until when.
type troubles struct {
	*harness
	exhausted map[exchange.Network]time.Time
}

// A drought is longer than a transaction's lifetime: the signed one expires, and another one is needed. Droughts are
// rare, so that no payment has enough of them to park.
const (
	everything      = 1_000_000
	exhaustedMargin = 10 * time.Second
)

// arm sets the faults of a node. A running drought continues.
func (w *troubles) arm(t *testing.T, n demo.Node, faults map[string]any) {
	t.Helper()
	if _, exhausted := w.exhausted[n.Network]; exhausted {
		faults["drop_next"] = everything
	}
	post(t, n, "/faults", faults)
}

// relieve ends the droughts that lasted long enough.
func (w *troubles) relieve(t *testing.T, nodes []demo.Node) {
	t.Helper()
	for _, n := range nodes {
		if until, exhausted := w.exhausted[n.Network]; exhausted && time.Now().After(until) {
			t.Logf("%s: the drought is over", n.Network)
			delete(w.exhausted, n.Network)
			w.arm(t, n, map[string]any{})
		}
	}
}

// judgeMove waits for a transfer's end, until the common deadline, and checks with the chain that it came once.
func (w *harness) judgeMove(t *testing.T, m movedBy, deadline time.Time) {
	t.Helper()
	var f sent
	err := await(t.Context(), max(0, time.Until(deadline)), func() error {
		if err := w.as(t, demo.VendorEmail).Get(t.Context(), "/api/v1/auth/transfers/"+m.id.String(), &f); err != nil {
			return err
		}
		if f.Status != "completed" {
			return fmt.Errorf("it is %s (%s)", f.Status, f.Detail)
		}
		return nil
	})
	if err != nil {
		t.Errorf("transfer %s of %s on %s: %v", m.id, m.amount, m.node.Network, err)
		return
	}
	cameOnce(t, m.node, m.address, f.TxHash, m.amount)
}

// onePaymentEach compares the signed transactions of these transfers with the chains: for each transfer exactly
// one of them is on the chain, and nothing else came to an address that only this transfer pays.
func (w *harness) onePaymentEach(t *testing.T, all []movedBy) {
	t.Helper()
	for _, m := range all {
		var signed []string
		err := w.db.QueryRowContext(t.Context(), `SELECT array_agg(a.tx_id) FROM chain_attempts a JOIN chain_payments p ON p.id = a.payment_id
			WHERE p.purpose = 'transfer' AND p.object_id = $1`, m.id).Scan(pq.Array(&signed))
		if err != nil {
			t.Fatal(err)
		}
		changes, err := m.node.Changes(t.Context(), m.address)
		if err != nil {
			t.Fatal(err)
		}
		came := 0
		for _, c := range changes {
			if (!m.inside || slices.Contains(signed, c.Transaction)) && c.Amount.Asset() == money.USDT {
				came++
			}
		}
		if came != 1 {
			t.Errorf("transfer %s, for which %d transactions were signed, moved money %d times", m.id, len(signed), came)
		}
	}
}

// TestPlansRepeat checks that the same seed makes the same plan, and another seed another plan.
func TestPlansRepeat(t *testing.T) {
	const some = 50
	first, again, other := fmt.Sprint(plan(7, some, 3)), fmt.Sprint(plan(7, some, 3)), fmt.Sprint(plan(8, some, 3))
	if first != again || first == other {
		t.Error("a seed does not name its plan")
	}
}
