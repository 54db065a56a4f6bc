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

// The end's patience.
const (
	// quiet is how long everything may take to come to its end when nothing is wrong any more.
	quiet = 10 * time.Minute
	// givenUp is after how long a customer gives up an order that waits for a payment which nobody makes.
	givenUp = 30 * time.Second
	// answered is for how long the office has tried when a flow stays parked.
	answered = time.Minute
	// unsaid is after how long a purchase may be left whose prompt nobody answered and of which no notice came: only the
	// statement tells of it, which is one voice, and its flow tells a person half an hour after the order's time.
	unsaid   = 6 * time.Minute
	lookEach = 3 * time.Second
	atOnce   = 40 // deeds under way
)

// Run makes the plan, plays it, and holds the end against the outside's books. The error names what does not fit.
func Run(ctx context.Context, o Options) (err error) {
	began := time.Now()
	w, err := open(ctx, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	steps := Plan(o.Seed, o.For, len(w.nodes))
	Print(o.Out, o.Seed, o.For, steps)
	w.say("The stack is up after %s, with %d networks.", time.Since(began).Round(time.Second), len(w.nodes))
	err = w.run(ctx, steps)
	w.say("The soak took %s.", time.Since(began).Round(time.Second))
	if err != nil {
		return fmt.Errorf("seed %d: %w", o.Seed, err)
	}
	w.say("Seed %d: every claim holds.", o.Seed)
	return nil
}

// run plays the plan with the office at work, and judges the end.
func (w *world) run(ctx context.Context, steps []Step) error {
	began := time.Now()
	office := w.openOffice()
	working, home := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { office.work(working) })
	defer wait.Wait()
	defer home()
	deeds, err := w.play(ctx, steps)
	if err != nil {
		return err
	}
	w.say("The plan was played after %s; everything behaves again.", time.Since(began).Round(time.Second))
	if err := w.calm(ctx); err != nil {
		return fmt.Errorf("ending the troubles: %w", err)
	}
	e, err := w.end(ctx, office, deeds)
	did, bank := office.records()
	e.report(w.Out, did)
	if err != nil {
		if e.late { // what is wrong already says more than what is missing
			err = errors.Join(err, w.claims(ctx, e, bank))
		}
		return err
	}
	w.say("All of it has ended, %s after the plan began.", time.Since(began).Round(time.Second))
	home()
	wait.Wait()
	return w.judge(ctx, e, bank)
}

// play takes the plan's steps at their times. Deeds go on side by side; a trouble is over before the next step.
func (w *world) play(ctx context.Context, steps []Step) ([]deed, error) {
	var (
		wait  sync.WaitGroup
		mu    sync.Mutex
		deeds []deed
		slots = make(chan struct{}, atOnce)
		began = time.Now()
	)
	defer wait.Wait()
	for _, s := range steps {
		if err := pause(ctx, time.Until(began.Add(s.At))); err != nil {
			return nil, err
		}
		if s.Kind == Trouble {
			w.say("%7s  %s (%d, %s)", time.Since(began).Round(100*time.Millisecond), s.Blow, s.Count, w.nodes[s.Network].Network)
			if err := w.strike(ctx, s); err != nil {
				w.say("         %v", err) // two troubles may meet; the end tells whether it did harm
			}
			continue
		}
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			d := w.do(ctx, s)
			mu.Lock()
			defer mu.Unlock()
			deeds = append(deeds, d)
		})
	}
	wait.Wait()
	return deeds, ctx.Err()
}

// waiting is a flow that waits for a person, with the reason that it shows.
type waiting struct {
	Flow     string     `json:"workflow_id"`
	Reason   string     `json:"reason"`
	ObjectID *uuid.UUID `json:"object_id"`
}

// parkedNow asks the API who waits for a person.
func (w *world) parkedNow(ctx context.Context) ([]waiting, error) {
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

// ending is how everything stands at the end.
type ending struct {
	deeds    []deed
	objects  map[uuid.UUID]object
	parked   []waiting
	watching int                // flows that look out for late money
	asked    map[uuid.UUID]bool // purchases of which nobody says whether they were paid
	open     []string
	late     bool // the time was over
}

// end waits until every deed and every flow has come to its end. What the office can't end stays parked.
func (w *world) end(ctx context.Context, o *office, deeds []deed) (ending, error) {
	e := ending{deeds: deeds, objects: map[uuid.UUID]object{}, asked: map[uuid.UUID]bool{}}
	began, last, since := time.Now(), "", time.Now()
	for {
		err := w.look(ctx, o, &e, time.Since(began))
		if b, err := w.books(ctx); err == nil {
			if err := w.nothingTwice(ctx, b); err != nil { // nothing that comes can mend it
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
			return e, fmt.Errorf("%d have no end and wait for nobody after %s:\n%s", len(e.open), quiet, strings.Join(e.open, "\n"))
		}
		if err := pause(ctx, lookEach); err != nil {
			return e, err
		}
	}
}

// look sees how everything stands now, and who is still under way.
func (w *world) look(ctx context.Context, o *office, e *ending, after time.Duration) (err error) {
	e.open, e.watching = nil, 0
	if e.parked, err = w.parkedNow(ctx); err != nil {
		return err
	}
	waits := map[string]bool{}
	for _, p := range e.parked {
		waits[p.Flow] = true
	}
	for _, d := range e.deeds {
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
		if x.OrderID != nil && slices.ContainsFunc(e.parked, func(p waiting) bool { return p.ObjectID != nil && *p.ObjectID == *x.OrderID }) {
			continue // the order's flow asks about it
		}
		e.open = append(e.open, fmt.Sprintf("nobody has decided about the exception %s: %s %s, %s", x.ID, x.Amount, x.Asset, x.Kind))
	}
	return err
}

// giveUp cancels an order that nobody pays, as its customer would. Whether that still can be is for the flow to say.
func (w *world) giveUp(ctx context.Context, d deed, o object, after time.Duration) {
	if d.step.Kind != Transfer && o.Status == "pending" && after >= givenUp {
		_ = w.cancel(ctx, d)
	}
}
