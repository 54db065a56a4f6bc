package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The owner's goals under load: what 95 of 100 requests take at most, in milliseconds, while sixteen clients ask at once and one person
// logs in beside them.
const (
	clientsAtOnce                      = 16
	mostOrder, mostTransfer, mostLogin = 150, 250, 150
)

// apart explains why an answer takes longer than its work.
const apart = "the flows that the requests start run on the same processors as the API, the database and Temporal"

// underLoad measures the answers of the API to sixteen clients at once, which open orders and then transfers. The flows of both go on
// meanwhile, on a stack of its own with the blocks and the payers of `make run`: the other parts' stack makes fifty blocks a second, and
// each is read.
func underLoad(ctx context.Context, other *harness, t *table) (err error) {
	o := other.Options
	if o.State, err = stateDir(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.State)) }()
	w, err := open(ctx, o, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.begin(ctx); err != nil {
		return err
	}
	if err := w.login(ctx); err != nil {
		return err
	}
	vendor, err := client.New(w.api()).Login(ctx, demo.VendorEmail, demo.Password)
	if err != nil {
		return err
	}
	for _, kind := range []struct {
		name string
		most float64
		do   func(context.Context) error
	}{
		{"POST /orders", mostOrder, func(ctx context.Context) error {
			_, err := w.openOrder(ctx)
			return err
		}},
		{"POST /transfers", mostTransfer, func(ctx context.Context) error { return w.transfer(ctx, vendor) }},
	} {
		took, logins, err := w.crowd(ctx, kind.do)
		if err != nil {
			return fmt.Errorf("%s: %w", kind.name, err)
		}
		for _, f := range []struct {
			name string
			took []time.Duration
			most float64
		}{{kind.name, took, kind.most}, {"a login beside " + kind.name, logins, mostLogin}} {
			t.add(figure{
				name: fmt.Sprintf("%s, %d clients at once: p95", f.name, clientsAtOnce), ratio: ms(quantile(f.took, 0.95)), unit: "ms", goal: atMost(f.most), why: apart,
				note: fmt.Sprintf("p50 %.0f ms, p99 %.0f ms, %d times", ms(quantile(f.took, 0.5)), ms(quantile(f.took, 0.99)), len(f.took)),
			})
		}
	}
	return nil
}

// crowd has all clients ask one after the other, and one person log in again and again meanwhile.
func (w *harness) crowd(ctx context.Context, do func(context.Context) error) (took, logins []time.Duration, err error) {
	each := 10
	if w.Quick {
		each = 3
	}
	var mu sync.Mutex
	timed := func(ctx context.Context, into *[]time.Duration, do func(context.Context) error) error {
		began := time.Now()
		err := do(ctx)
		mu.Lock()
		defer mu.Unlock()
		*into = append(*into, time.Since(began))
		return err
	}
	beside, stop := context.WithCancel(ctx)
	group, inner := errgroup.WithContext(ctx)
	for range clientsAtOnce {
		group.Go(func() error {
			for range each {
				if err := timed(inner, &took, do); err != nil {
					return err
				}
			}
			return nil
		})
	}
	var doors sync.WaitGroup
	var shut error
	doors.Go(func() {
		for shut == nil && beside.Err() == nil {
			shut = timed(ctx, &logins, func(ctx context.Context) error {
				_, err := client.New(w.api()).Login(ctx, demo.SecondEmail, demo.Password)
				return err
			})
		}
	})
	err = group.Wait()
	stop()
	doors.Wait()
	if err == nil {
		err = shut
	}
	return took, logins, err
}

// transfer sends a little from the vendor's wallet to an address outside.
func (w *harness) transfer(ctx context.Context, vendor *client.Client) error {
	to, err := demo.Stranger(exchange.Tron)
	if err != nil {
		return err
	}
	return vendor.Post(ctx, "/api/v1/auth/transfers", uuid.NewString(), map[string]any{
		"network": exchange.Tron, "asset": money.USDT, "amount": buyUSDT, "recipient": map[string]any{"address": to},
	}, nil)
}
