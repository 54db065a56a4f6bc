package chain_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

var (
	payment = chain.Transfer{From: "A", To: "B", Amount: money.Must(money.USDT, "10")}
	paid    = chain.Movement{TxID: "x", From: "A", To: "B", Amount: money.Must(money.USDT, "10")}
	epoch   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func headAt(number uint64, at time.Duration) chain.Head {
	b := chain.Block{Number: number, Height: number, Time: epoch.Add(at)}
	return chain.Head{Latest: b, Final: b}
}

func TestJudge(t *testing.T) {
	timed := exchange.ChainAttempt{ExpiresAt: epoch.Add(time.Minute)}
	counted := exchange.ChainAttempt{LastValidHeight: 100}
	numbered := exchange.ChainAttempt{Nonce: 7}
	changed := func(edit func(*chain.Movement)) []chain.Movement {
		m := paid
		edit(&m)
		return []chain.Movement{m}
	}
	for name, c := range map[string]struct {
		attempt exchange.ChainAttempt
		where   chain.Location
		nonce   bool
		twice   bool
		want    chain.Verdict
	}{
		"final and paid":            {where: chain.Location{Stage: chain.StageFinal, OK: true, Transfers: []chain.Movement{paid}}, want: chain.VerdictSucceeded},
		"paid among others":         {where: chain.Location{Stage: chain.StageFinal, OK: true, Transfers: []chain.Movement{{From: "A", To: "C", Amount: payment.Amount}, paid}}, want: chain.VerdictSucceeded},
		"final with a bad receipt":  {where: chain.Location{Stage: chain.StageFinal, OK: false, Transfers: []chain.Movement{paid}}, want: chain.VerdictFailed},
		"final without a movement":  {where: chain.Location{Stage: chain.StageFinal, OK: true}, want: chain.VerdictFailed},
		"too little":                {where: chain.Location{Stage: chain.StageFinal, OK: true, Transfers: changed(func(m *chain.Movement) { m.Amount = money.Must(money.USDT, "9.999999") })}, want: chain.VerdictFailed},
		"too much":                  {where: chain.Location{Stage: chain.StageFinal, OK: true, Transfers: changed(func(m *chain.Movement) { m.Amount = money.Must(money.USDT, "10.000001") })}, want: chain.VerdictFailed},
		"another token":             {where: chain.Location{Stage: chain.StageFinal, OK: true, Transfers: changed(func(m *chain.Movement) { m.Amount = money.Must(money.USDC, "10") })}, want: chain.VerdictFailed},
		"another recipient":         {where: chain.Location{Stage: chain.StageFinal, OK: true, Transfers: changed(func(m *chain.Movement) { m.To = "C" })}, want: chain.VerdictFailed},
		"another sender":            {where: chain.Location{Stage: chain.StageFinal, OK: true, Transfers: changed(func(m *chain.Movement) { m.From = "C" })}, want: chain.VerdictFailed},
		"in two halves":             {where: chain.Location{Stage: chain.StageFinal, OK: true, Transfers: []chain.Movement{{From: "A", To: "B", Amount: money.Must(money.USDT, "5")}, {From: "A", To: "B", Amount: money.Must(money.USDT, "5")}}}, want: chain.VerdictFailed},
		"included and paid":         {where: chain.Location{Stage: chain.StageIncluded, OK: true, Transfers: []chain.Movement{paid}}, want: chain.VerdictWait},
		"included and failed":       {where: chain.Location{Stage: chain.StageIncluded}, want: chain.VerdictWait},
		"included after its life":   {attempt: timed, where: chain.Location{Stage: chain.StageIncluded, Head: headAt(1, time.Hour)}, nonce: true, twice: true, want: chain.VerdictWait},
		"pending":                   {where: chain.Location{Stage: chain.StagePending}, want: chain.VerdictBroadcast},
		"pending after its life":    {attempt: timed, where: chain.Location{Stage: chain.StagePending, Head: headAt(1, time.Hour)}, twice: true, want: chain.VerdictBroadcast},
		"absent within its life":    {attempt: timed, where: chain.Location{Stage: chain.StageAbsent, Head: headAt(1, time.Minute-time.Millisecond)}, twice: true, want: chain.VerdictBroadcast},
		"absent, seen once":         {attempt: timed, where: chain.Location{Stage: chain.StageAbsent, Head: headAt(1, time.Hour)}, want: chain.VerdictBroadcast},
		"absent after its life":     {attempt: timed, where: chain.Location{Stage: chain.StageAbsent, Head: headAt(1, time.Minute)}, twice: true, want: chain.VerdictRebuild},
		"only the newest is past":   {attempt: timed, where: chain.Location{Stage: chain.StageAbsent, Head: chain.Head{Latest: chain.Block{Time: epoch.Add(time.Hour)}, Final: chain.Block{Time: epoch}}}, twice: true, want: chain.VerdictBroadcast},
		"absent at its last height": {attempt: counted, where: chain.Location{Stage: chain.StageAbsent, Head: headAt(100, 0)}, twice: true, want: chain.VerdictBroadcast},
		"absent past its height":    {attempt: counted, where: chain.Location{Stage: chain.StageAbsent, Head: headAt(101, 0)}, twice: true, want: chain.VerdictRebuild},
		"absent past its slot":      {attempt: counted, where: chain.Location{Stage: chain.StageAbsent, Head: chain.Head{Final: chain.Block{Number: 1 << 40, Height: 100}}}, twice: true, want: chain.VerdictBroadcast},
		"absent, height unknown":    {attempt: counted, where: chain.Location{Stage: chain.StageAbsent, Head: chain.Head{Final: chain.Block{Number: 1 << 40}}}, twice: true, want: chain.VerdictBroadcast},
		"absent without any bound":  {attempt: numbered, where: chain.Location{Stage: chain.StageAbsent, Head: headAt(1<<40, 1<<60)}, twice: true, want: chain.VerdictBroadcast},
		"its number was used":       {attempt: numbered, where: chain.Location{Stage: chain.StageAbsent}, nonce: true, twice: true, want: chain.VerdictRebuild},
		"its number, seen once":     {attempt: numbered, where: chain.Location{Stage: chain.StageAbsent}, nonce: true, want: chain.VerdictBroadcast},
		"nothing is known":          {attempt: timed, nonce: true, twice: true, want: chain.VerdictBroadcast},
	} {
		t.Run(name, func(t *testing.T) {
			got := chain.Judge(chain.Facts{Attempt: c.attempt, Expected: payment, Location: c.where, NonceUsed: c.nonce, AbsentTwice: c.twice})
			if got != c.want {
				t.Errorf("judged %s, want %s", got, c.want)
			}
		})
	}
}

// A payment of nothing, as the one that opens a Safe, is made when its transaction succeeded: there is no movement to look for.
func TestJudgeOfNothing(t *testing.T) {
	nothing := chain.Transfer{From: "A", To: "B", Amount: money.Zero(money.ETH)}
	for name, c := range map[string]struct {
		expected chain.Transfer
		where    chain.Location
		want     chain.Verdict
	}{
		"final":               {nothing, chain.Location{Stage: chain.StageFinal, OK: true}, chain.VerdictSucceeded},
		"final and failed":    {nothing, chain.Location{Stage: chain.StageFinal}, chain.VerdictFailed},
		"included":            {nothing, chain.Location{Stage: chain.StageIncluded, OK: true}, chain.VerdictWait},
		"nothing is expected": {chain.Transfer{}, chain.Location{Stage: chain.StageFinal, OK: true}, chain.VerdictFailed},
	} {
		if got := chain.Judge(chain.Facts{Expected: c.expected, Location: c.where}); got != c.want {
			t.Errorf("%s: judged %s, want %s", name, got, c.want)
		}
	}
}

// harness is a chain with the rules for a transaction that expires: it enters a block only while the previous block is older
// than the expiry (java-tron Manager.validateCommon), at most once, and a final block is never undone.
type harness struct {
	chain.Client
	blocks []bool // whether the transaction is in it
	times  []time.Duration
	final  int
	life   time.Duration
	views  []view // what lagging nodes still show
	pick   func(n int) int
}

// view is the chain as one node shows it.
type view struct {
	blocks []bool
	times  []time.Duration
	final  int
}

func (w *harness) includable() bool {
	for _, in := range w.blocks {
		if in {
			return false
		}
	}
	return w.times[len(w.times)-1] < w.life
}

func (w *harness) mine(step time.Duration, include bool) {
	w.blocks = append(w.blocks, include && w.includable())
	w.times = append(w.times, w.times[len(w.times)-1]+step)
}

func (w *harness) snapshot() {
	w.views = append(w.views, view{append([]bool(nil), w.blocks...), append([]time.Duration(nil), w.times...), w.final})
}

// Locate answers from any view, like a load balancer in front of several nodes.
func (w *harness) Locate(context.Context, string) (chain.Location, error) {
	v := w.views[len(w.views)-1-w.pick(min(len(w.views), 4))]
	at := func(i int) chain.Block { return chain.Block{Number: uint64(i), Time: epoch.Add(v.times[i])} }
	l := chain.Location{Stage: chain.StageAbsent, Head: chain.Head{Latest: at(len(v.blocks) - 1), Final: at(v.final)}}
	for i, in := range v.blocks {
		if in {
			l.Stage, l.Block, l.OK, l.Transfers = chain.StageIncluded, at(i), true, []chain.Movement{paid}
			if i <= v.final {
				l.Stage = chain.StageFinal
			}
		}
	}
	return l, nil
}

// No rebuild while any way to inclusion is left, whatever the chain does and however far nodes lag behind each other.
func TestNeverRebuildWhatCanStillPay(t *testing.T) {
	rebuilt, succeeded := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := &harness{blocks: []bool{false}, times: []time.Duration{0}}
		w.life = time.Duration(rapid.IntRange(1, 20).Draw(t, "life")) * time.Second
		w.pick = func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "lag") }
		w.snapshot()
		attempt := exchange.ChainAttempt{TxID: "x", ExpiresAt: epoch.Add(w.life)}
		gone := false
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "event") {
			case 0, 1:
				w.mine(time.Duration(rapid.IntRange(1, 3).Draw(t, "slot"))*time.Second, rapid.Bool().Draw(t, "include"))
			case 2:
				keep := w.final + 1 + rapid.IntRange(0, len(w.blocks)-w.final-1).Draw(t, "keep")
				w.blocks, w.times = w.blocks[:keep], w.times[:keep]
			case 3:
				w.final = rapid.IntRange(w.final, len(w.blocks)-1).Draw(t, "final")
			}
			w.snapshot()
			f, err := chain.Inquire(context.Background(), w, attempt, payment)
			if err != nil {
				t.Fatal(err)
			}
			paidFor := false
			for _, in := range w.blocks {
				paidFor = paidFor || in
			}
			switch chain.Judge(f) {
			case chain.VerdictRebuild:
				gone = true
				rebuilt++
			case chain.VerdictSucceeded:
				succeeded++
				if !paidFor {
					t.Fatal("judged succeeded, but the chain does not contain it")
				}
			case chain.VerdictFailed:
				t.Fatal("judged failed, but it can't fail here")
			case chain.VerdictWait, chain.VerdictBroadcast:
			}
			if gone && (paidFor || couldStill(w)) {
				t.Fatalf("rebuilt although it is on the chain (%v) or can still be", paidFor)
			}
		}
	})
	if rebuilt == 0 || succeeded == 0 {
		t.Fatalf("the property was not exercised: %d rebuilt, %d succeeded", rebuilt, succeeded)
	}
}

// couldStill reports whether some continuation, after undoing everything that is not final, includes the transaction.
func couldStill(w *harness) bool { return w.times[w.final] < w.life }

// looks answers Locate from a list.
type looks struct {
	chain.Client
	list []chain.Location
	errs []error
	n    int
}

func (l *looks) Locate(context.Context, string) (chain.Location, error) {
	defer func() { l.n++ }()
	if l.n < len(l.errs) && l.errs[l.n] != nil {
		return chain.Location{}, l.errs[l.n]
	}
	return l.list[l.n], nil
}

func TestInquireLooksTwiceBeforeGivingUp(t *testing.T) {
	attempt := exchange.ChainAttempt{TxID: "x", ExpiresAt: epoch.Add(time.Minute)}
	late, early := headAt(9, time.Hour), headAt(1, 0)
	down := errors.New("down")
	for name, c := range map[string]struct {
		looks looks
		calls int
		want  chain.Verdict
		fails bool
	}{
		"within its life, once is enough": {looks{list: []chain.Location{{Stage: chain.StageAbsent, Head: early}}}, 1, chain.VerdictBroadcast, false},
		"twice absent":                    {looks{list: []chain.Location{{Stage: chain.StageAbsent, Head: late}, {Stage: chain.StageAbsent, Head: late}}}, 2, chain.VerdictRebuild, false},
		"found the second time":           {looks{list: []chain.Location{{Stage: chain.StageAbsent, Head: late}, {Stage: chain.StageFinal, OK: true, Head: late, Transfers: []chain.Movement{paid}}}}, 2, chain.VerdictSucceeded, false},
		"the second node is behind":       {looks{list: []chain.Location{{Stage: chain.StageAbsent, Head: late}, {Stage: chain.StageAbsent, Head: early}}}, 2, chain.VerdictBroadcast, false},
		"the first look fails":            {looks{errs: []error{down}}, 1, "", true},
		"the second look fails":           {looks{list: []chain.Location{{Stage: chain.StageAbsent, Head: late}}, errs: []error{nil, down}}, 2, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := chain.Inquire(t.Context(), &c.looks, attempt, payment)
			if c.looks.n != c.calls || (err != nil) != c.fails {
				t.Fatalf("%d looks, error %v", c.looks.n, err)
			}
			if !c.fails && chain.Judge(f) != c.want {
				t.Errorf("judged %s, want %s", chain.Judge(f), c.want)
			}
		})
	}
}

func TestReasonOf(t *testing.T) {
	cause := errors.New("cause")
	err := fmt.Errorf("outer: %w", chain.Wrap(chain.ReasonGas, cause, "needs %d", 5))
	if chain.ReasonOf(err) != chain.ReasonGas || !errors.Is(err, cause) {
		t.Errorf("%v", err)
	}
	if chain.ReasonOf(nil) != "" || chain.ReasonOf(cause) != chain.ReasonProtocol {
		t.Error("the reasons of nil and of an unknown error are wrong")
	}
}
