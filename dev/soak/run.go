package soak

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/stack"
	"kivuko/exchange"
)

// Time limits at the end of a run.
const (
	// quiet is how long all actions and flows may take to end after the last failure. An order whose callback was lost, and
	// of which the operator's query says nothing, stays open for its whole life.
	quiet = exchange.OrderLife + 2*time.Minute
	// givenUp is after how long a customer cancels an order whose payment does not come.
	givenUp = 30 * time.Second
	// answered is how long the office tries to end a parked flow.
	answered = time.Minute
	// unsaid is after how long a purchase without callback and notice may be left open: the statement alone is only one
	// source, and the flow parks half an hour after the order has expired.
	unsaid   = 6 * time.Minute
	lookEach = 3 * time.Second
	sayEach  = time.Minute // how often it says what it still waits for
	atOnce   = 40          // actions in parallel
)

// Run makes the plan, plays it, and compares the result with the books of the operator, the bank and the chains. The
// error lists the differences.
func Run(ctx context.Context, o Options) (err error) {
	began := time.Now()
	w, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	steps := Plan(o.Seed, o.For, len(w.nodes), o.Only)
	Print(o.Out, o.Seed, o.For, steps)
	w.say("The stack is up after %s, with %d networks.", time.Since(began).Round(time.Second), len(w.nodes))
	err = w.run(ctx, steps)
	w.say("The soak took %s.", time.Since(began).Round(time.Second))
	if err != nil {
		return fmt.Errorf("seed %d: %w", o.Seed, err)
	}
	w.say("Seed %d: all checks passed.", o.Seed)
	return nil
}

// run plays the plan while the office works, and judges the result.
func (w *harness) run(ctx context.Context, steps []Step) error {
	began := time.Now()
	office := w.openOffice()
	working, home := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { office.work(working) })
	defer wait.Wait()
	defer home()
	actions, err := w.play(ctx, steps)
	if err != nil {
		return err
	}
	w.say("The plan ended after %s; nothing fails any more.", time.Since(began).Round(time.Second))
	if err := w.calm(ctx); err != nil {
		return fmt.Errorf("ending the troubles: %w", err)
	}
	e, err := w.end(ctx, office, actions)
	did, bank := office.records()
	e.report(w.Out, did, w.counts)
	if err != nil {
		if e.late { // a difference explains more than a missing end
			err = errors.Join(err, w.claims(ctx, e, bank))
		}
		return err
	}
	w.say("All flows have ended, %s after the plan began.", time.Since(began).Round(time.Second))
	home()
	wait.Wait()
	return w.judge(ctx, e, bank)
}

// play takes the plan's steps at their times. Actions run in parallel; a trouble ends before the next step.
func (w *harness) play(ctx context.Context, steps []Step) ([]action, error) {
	var (
		wait    sync.WaitGroup
		mu      sync.Mutex
		actions []action
		slots   = make(chan struct{}, atOnce)
		began   = time.Now()
	)
	defer wait.Wait()
	for _, s := range steps {
		if err := pause(ctx, time.Until(began.Add(s.At))); err != nil {
			return nil, err
		}
		if s.Kind == Trouble {
			w.say("%7s  %s (%d, %s)", time.Since(began).Round(100*time.Millisecond), s.Fault, s.Count, w.nodes[s.Network].Network)
			w.counted(string(s.Fault))
			if does, about := w.lasting(s); does != nil {
				if w.begins(s, about) {
					wait.Go(func() {
						defer w.ended(s, about)
						w.damage(does(ctx, time.Duration(s.Count)*lasts))
					})
				}
				continue
			}
			w.damage(w.strike(ctx, s))
			continue
		}
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			d := w.do(ctx, s)
			mu.Lock()
			defer mu.Unlock()
			actions = append(actions, d)
		})
	}
	wait.Wait()
	return actions, ctx.Err()
}

// damage says what went wrong with a trouble. Two may meet; the checks at the end report what they did.
func (w *harness) damage(err error) {
	if err != nil {
		w.say("         %v", err)
	}
}

// waiting is a parked flow with its reason.
type waiting struct {
	Flow     string     `json:"workflow_id"`
	Reason   string     `json:"reason"`
	ObjectID *uuid.UUID `json:"object_id"`
}

// parkedNow returns the parked flows by the API.
func (w *harness) parkedNow(ctx context.Context) ([]waiting, error) {
	var out struct {
		Parked []waiting `json:"parked"`
	}
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	c, err := w.as(ctx, stack.AdminEmail)
	if err == nil {
		err = c.Get(ctx, fmt.Sprintf("/api/v1/auth/parked?page_size=%d", listed), &out)
	}
	return out.Parked, err
}

// ending is the state of all actions and flows at the end.
type ending struct {
	actions  []action
	objects  map[uuid.UUID]object
	parked   []waiting
	watching int                // flows that wait for late money
	asked    map[uuid.UUID]bool // purchases whose payment no source confirms or denies
	open     []string
	late     bool // the time was over
}

// end waits until every action and every flow has ended, but for parked flows that the office can't end.
func (w *harness) end(ctx context.Context, o *office, actions []action) (ending, error) {
	e := ending{actions: actions, objects: map[uuid.UUID]object{}, asked: map[uuid.UUID]bool{}}
	began, last, since, said := time.Now(), "", time.Now(), time.Now()
	for {
		err := w.look(ctx, o, &e, time.Since(began))
		if b, err := w.books(ctx); err == nil {
			if err := w.nothingTwice(ctx, b); err != nil { // later events can't correct it
				return e, err
			}
		}
		now := fmt.Sprint(e.open, e.parked)
		if now != last {
			last, since = now, time.Now()
		}
		switch {
		case err == nil && len(e.open) == 0 && (len(e.parked) == 0 || time.Since(since) > answered):
			return e, nil
		case time.Since(began) > quiet && err != nil:
			return e, err
		case time.Since(began) > quiet:
			e.late = true
			return e, fmt.Errorf("%d have neither ended nor parked after %s:\n%s", len(e.open), quiet, strings.Join(e.open, "\n"))
		}
		if time.Since(said) > sayEach {
			said = time.Now()
			w.say("%7s  it waits for %d ends: %s", time.Since(began).Round(time.Second), len(e.open), strings.Join(e.open[:min(len(e.open), 3)], "; "))
		}
		if err := pause(ctx, lookEach); err != nil {
			return e, err
		}
	}
}

// look returns the current state of all actions, and which are still open.
func (w *harness) look(ctx context.Context, o *office, e *ending, after time.Duration) (err error) {
	e.open, e.watching = nil, 0
	if e.parked, err = w.parkedNow(ctx); err != nil {
		return err
	}
	waits := map[string]bool{}
	for _, p := range e.parked {
		waits[p.Flow] = true
	}
	for _, d := range e.actions {
		if d.refused != nil || e.objects[d.id].over() {
			continue
		}
		now, err := w.read(ctx, d)
		if err != nil {
			return fmt.Errorf("%s: %w", d.name(), err)
		}
		e.objects[d.id] = now
		if e.asked[d.id] = d.step.Kind.buys() && now.Detail == exchange.WaitOutcome && after > unsaid; e.asked[d.id] {
			continue
		}
		if d.step.Kind == ByHand && now.Status == string(exchange.OTCPending) {
			_ = w.readList(ctx) // read again at the next look
		}
		if !now.over() {
			if !slices.ContainsFunc(e.parked, func(p waiting) bool { return p.ObjectID != nil && *p.ObjectID == d.id }) {
				e.open = append(e.open, fmt.Sprintf("%s is %s (%s)", d.name(), now.Status, now.Detail))
			}
			w.giveUp(ctx, d, now, after)
		}
	}
	flows, err := w.running(ctx)
	if err != nil {
		return err
	}
	for _, f := range flows {
		switch {
		case waits[f.id], e.asked[f.object()]:
		case f.watches():
			e.watching++
		default:
			e.open = append(e.open, f.String())
		}
	}
	undecided, err := o.openExceptions(ctx)
	for _, x := range undecided {
		if x.of() != nil && slices.ContainsFunc(e.parked, func(p waiting) bool { return p.ObjectID != nil && *p.ObjectID == *x.of() }) {
			continue // its flow waits for it
		}
		e.open = append(e.open, fmt.Sprintf("the exception %s has no decision: %s %s, %s", x.ID, x.Amount, x.Asset, x.Kind))
	}
	return err
}

// giveUp cancels an order without a payment, as its customer would. The flow decides whether that is still possible.
func (w *harness) giveUp(ctx context.Context, d action, o object, after time.Duration) {
	if d.step.Kind != Transfer && (!d.step.Kind.atDesk() || d.step.Kind == Prompted) && o.Status == "pending" && after >= givenUp {
		_ = w.cancel(ctx, d)
	}
}
