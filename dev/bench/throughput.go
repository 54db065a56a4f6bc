package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"kivuko/dev/stack"
)

// load is a number of flows in flight and its duration.
type load struct {
	inFlight        int
	settle, stretch time.Duration
	rounds          int
}

func (w *harness) loads() []load {
	if w.Quick {
		return []load{{1, time.Second, 3 * time.Second, 1}, {50, 4 * time.Second, 8 * time.Second, 1}}
	}
	return []load{
		{1, time.Second, 5 * time.Second, 2},
		{10, 2 * time.Second, 5 * time.Second, 3},
		{50, 6 * time.Second, 20 * time.Second, 3}, // flows started together end together: a stretch is many times as long as one
	}
}

// busier explains why on-ramps are slower than empty flows.
const busier = "an on-ramp also writes a dozen transactions into its own database, " +
	"calls the operator twice and the network several times, signs, and writes its search attributes three times"

// The owner's goals for on-ramps: against bare flows of the same shape, and, at the highest load, against the same activities in one
// flow on one queue.
const (
	minRatio                                = 0.9
	minPlainRate, minPlainTime, minPlainCPU = 0.7, 0.6, 1 / 1.5
	highest                                 = 50
)

// throughput compares on-ramps with both floors under every load. The kinds take turns in each round.
func (w *harness) throughput(ctx context.Context, t *table) error {
	for _, l := range w.loads() {
		if err := w.login(ctx); err != nil {
			return err
		}
		all := map[string][]round{}
		for n := range l.rounds {
			kinds := w.kinds()
			if n%2 == 1 { // alternate the order, because the first kind meets the machine in another state
				slices.Reverse(kinds)
			}
			for _, k := range kinds {
				r, err := w.loop(ctx, k, l.inFlight, l.settle, l.stretch)
				if err != nil {
					return err
				}
				all[k.name] = append(all[k.name], r)
			}
		}
		w.reportLoad(t, l, all)
	}
	return nil
}

func (w *harness) reportLoad(t *table, l load, all map[string][]round) {
	w.say("\n%d in flight, %d rounds of %s:", l.inFlight, l.rounds, l.stretch)
	for _, k := range w.kinds() {
		s := summarise(all[k.name])
		w.say("  %-18s %6.1f/s  p50 %5.0f ms  p99 %5.0f ms  CPU ms per flow:%s; our share of the busy machine %.0f %%",
			k.name, s.rate, ms(s.p50), ms(s.p99), s.cost(), 100*s.share)
	}
	ours := summarise(all[onRamp])
	for _, floor := range []struct {
		name            string
		rate, time, cpu goal
	}{
		{bareSame, atLeast(minRatio), atLeast(minRatio), goal{}},
		{barePlain, atLoad(l, minPlainRate), atLoad(l, minPlainTime), atLoad(l, minPlainCPU)},
	} {
		bare := summarise(all[floor.name])
		var rates []float64
		for i := range all[onRamp] {
			rates = append(rates, all[onRamp][i].rate/all[floor.name][i].rate)
		}
		slices.Sort(rates)
		what := fmt.Sprintf("on-ramps, %d in flight, against %s", l.inFlight, floor.name)
		t.add(figure{
			name: what + ": per second", ratio: median(rates), goal: floor.rate, why: busier,
			note: fmt.Sprintf("%.1f/s to %.1f/s, rounds %.2f to %.2f", ours.rate, bare.rate, rates[0], rates[len(rates)-1]),
		})
		for _, q := range []struct {
			name       string
			ours, bare time.Duration
		}{{"p50", ours.p50, bare.p50}, {"p99", ours.p99, bare.p99}} {
			t.add(figure{
				name: what + ": " + q.name, ratio: q.bare.Seconds() / q.ours.Seconds(), goal: floor.time, why: busier,
				note: fmt.Sprintf("%.0f ms to %.0f ms, both wait %.0f ms for finality (see the package's documentation)", ms(q.ours), ms(q.bare), ms(finality)),
			})
		}
		if ours.work > 0 {
			t.add(figure{
				name: what + ": processor time", ratio: float64(bare.work) / float64(ours.work), goal: floor.cpu, why: busier,
				note: fmt.Sprintf("%.0f ms to %.0f ms per flow, without simulators and loader", ms(ours.work), ms(bare.work)),
			})
		}
	}
}

// atLoad is a goal that holds at the highest load.
func atLoad(l load, least float64) goal {
	if l.inFlight < highest {
		return goal{}
	}
	return atLeast(least)
}

// summary summarises all rounds of one kind under one load.
type summary struct {
	rate     float64
	p50, p99 time.Duration
	share    float64
	cpu      usage         // per flow
	work     time.Duration // per flow, of everything but simulators and loader
}

func summarise(rounds []round) summary {
	s := summary{cpu: usage{}}
	var rates, shares []float64
	var took []time.Duration
	flows := 0
	for _, r := range rounds {
		rates, shares, took = append(rates, r.rate), append(shares, r.share), append(took, r.took...)
		flows += r.flows
		for process, t := range r.cpu {
			s.cpu[process] += t
		}
	}
	for process := range s.cpu {
		s.cpu[process] /= time.Duration(max(flows, 1))
	}
	s.rate, s.share, s.p50, s.p99 = median(rates), median(shares), quantile(took, 0.5), quantile(took, 0.99)
	s.work = s.cpu.total(stack.ProcessTron, stack.ProcessMomo, processLoader)
	return s
}

func (s summary) cost() string {
	text := ""
	for _, process := range slices.Sorted(maps.Keys(s.cpu)) {
		if t := s.cpu[process]; ms(t) >= 0.5 {
			text += fmt.Sprintf(" %s %.0f,", process, ms(t))
		}
	}
	return text + fmt.Sprintf(" together %.0f", ms(s.cpu.total()))
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
