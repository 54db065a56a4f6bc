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

	"kivuko/dev/client"
	"kivuko/dev/stack"
)

// The end's patience.
const (
	// quiet is how long everything may take to come to its end when nothing is wrong any more: the operator is asked
	// about a payout every two minutes, and two answers are needed where its result is lost.
	quiet = 8 * time.Minute
	// givenUp is after how long a customer gives up an order that waits for a payment which nobody makes.
	givenUp  = 30 * time.Second
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
	w.say("the stack is up after %s, with %d networks", time.Since(began).Round(time.Second), len(w.nodes))
	deeds, err := w.play(ctx, steps)
	if err != nil {
		return err
	}
	w.say("the plan was played after %s; everything behaves again", time.Since(began).Round(time.Second))
	if err := w.calm(ctx); err != nil {
		return fmt.Errorf("ending the troubles: %w", err)
	}
	ends, parked, err := w.end(ctx, deeds)
	if err == nil {
		err = w.judge(ctx, deeds, ends, parked)
	}
	w.say("the soak took %s", time.Since(began).Round(time.Second))
	if err != nil {
		return fmt.Errorf("seed %d: %w", o.Seed, err)
	}
	return nil
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
	Flow     string     `json:"flow"`
	Reason   string     `json:"reason"`
	ObjectID *uuid.UUID `json:"object_id"`
}

// parkedNow asks the API who waits for a person.
func (w *world) parkedNow(ctx context.Context) (all []waiting, err error) {
	const page = 100
	var out struct {
		Parked []waiting `json:"parked"`
	}
	c, err := w.as(ctx, stack.AdminEmail, stack.AdminPassword)
	if err == nil {
		err = c.Get(ctx, fmt.Sprintf("/api/v1/auth/parked?page_size=%d", page), &out)
	}
	return out.Parked, err
}

// end waits until every deed has come to its end or waits for a person, and tells how.
func (w *world) end(ctx context.Context, deeds []deed) (map[uuid.UUID]object, []waiting, error) {
	ends, began := map[uuid.UUID]object{}, time.Now()
	for {
		parked, err := w.parkedNow(ctx)
		if err != nil && time.Since(began) > quiet {
			return nil, nil, err
		}
		var open []string
		for _, d := range deeds {
			if d.refused != nil || ends[d.id].over() {
				continue
			}
			o, err := w.read(ctx, d)
			if err != nil {
				return nil, nil, fmt.Errorf("%s %s: %w", d.step.Kind, d.id, err)
			}
			ends[d.id] = o
			if !o.over() && !slices.ContainsFunc(parked, func(p waiting) bool { return p.ObjectID != nil && *p.ObjectID == d.id }) {
				open = append(open, fmt.Sprintf("%s %s on %s (operator: %q) is %s (%s)", d.step.Kind, d.id, d.node.Network, d.step.Operator, o.Status, o.Detail))
				w.giveUp(ctx, d, o, time.Since(began))
			}
		}
		if err == nil && len(open) == 0 {
			return ends, parked, nil
		}
		if time.Since(began) > quiet {
			return nil, nil, fmt.Errorf("%d have no end and wait for nobody after %s:\n%s", len(open), quiet, strings.Join(open, "\n"))
		}
		if err := pause(ctx, lookEach); err != nil {
			return nil, nil, err
		}
	}
}

// giveUp cancels an order that nobody pays, as its customer would. Whether that still can be is for the flow to say.
func (w *world) giveUp(ctx context.Context, d deed, o object, after time.Duration) {
	if d.step.Kind == Transfer || o.Status != "pending" || after < givenUp {
		return
	}
	key := newKey()
	_ = w.insist(ctx, d.email, func(ctx context.Context, c *client.Client) error {
		return c.Post(ctx, "/api/v1/auth/orders/"+d.id.String()+"/cancel", key, nil, nil)
	})
}
