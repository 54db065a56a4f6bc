package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"kivuko/activities"
	"kivuko/chain"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/worker"
)

// DepositsConfig is how deposits on the chains are watched.
type DepositsConfig struct {
	// From is the first block to read of a network where nothing was read before ("tron:1"). Without it
	// reading begins with what becomes final after the first start.
	From map[string]uint64 `env:"FROM"`
	// Minimum is the least amount that wakes anybody. Less is booked all the same.
	Minimum map[string]string `env:"MINIMUM" envDefault:"USDT:0.01,USDC:0.01,TRX:0.1,ETH:0.00001,SOL:0.0001"`
}

func (c DepositsConfig) minimum() (map[money.Asset]money.Amount, error) {
	least := map[money.Asset]money.Amount{}
	for _, name := range slices.Sorted(maps.Keys(c.Minimum)) {
		if !money.Asset(name).Valid() || money.Asset(name).Fiat() {
			return nil, fmt.Errorf("KIVUKO_DEPOSITS_MINIMUM: %q is no crypto asset", name)
		}
		m, err := money.Parse(money.Asset(name), c.Minimum[name])
		if err != nil {
			return nil, fmt.Errorf("KIVUKO_DEPOSITS_MINIMUM: the amount of %s: %w", name, err)
		}
		least[m.Asset()] = m
	}
	return least, nil
}

// addWatch adds what sees the deposits on a network.
func addWatch(p process, name exchange.Network, db *store.Store, c chain.Client, parts *worker.Parts) error {
	least, err := p.config.Deposits.minimum()
	if err != nil {
		return err
	}
	for n := range p.config.Deposits.From {
		if !exchange.Network(n).Valid() {
			return fmt.Errorf("KIVUKO_DEPOSITS_FROM: there is no network %q", n)
		}
	}
	net := p.config.network(name)
	if p.config.Mode == Local {
		net.life, net.lifeBlocks = 0, 0 // a developer's machine sleeps, and its chains stand still with it
	}
	parts.Watch[name] = &activities.Deposits{
		Store: db, Client: c, Poll: net.blockTime, Stretch: activities.DefaultStretch,
		From: p.config.Deposits.From[string(name)], Minimum: least, Life: net.life, LifeBlocks: net.lifeBlocks,
	}
	return nil
}

// runQuarantine lists the movements that were set aside, or settles one of them. One that left a wallet may be
// settled as a payment whose transaction is not known here, which the payment then completes by.
func runQuarantine(ctx context.Context, p process, args []string) error {
	flags := flag.NewFlagSet("quarantine", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error says what is wrong
	settle := flags.String("settle", "", "id of a movement that is dealt with")
	payment := flags.String("payment", "", "id of the chain payment that a movement was, whose transaction is not known here")
	note := flags.String("note", "", "what it was")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("quarantine: %w", err)
	}
	var n need
	p.config.checkDatabase(&n)
	if err := n.err(); err != nil {
		return err
	}
	db, err := store.Open(ctx, p.config.DatabaseURL, store.Options{Logger: p.log})
	if err != nil {
		return err
	}
	defer closing(p, db)
	if *settle != "" {
		id, err := uuid.Parse(*settle)
		if err != nil {
			return fmt.Errorf("quarantine: -settle: %w", err)
		}
		if *payment == "" {
			return db.SettleQuarantine(ctx, id, *note, exchange.System("operator"))
		}
		pay, err := uuid.Parse(*payment)
		if err != nil {
			return fmt.Errorf("quarantine: -payment: %w", err)
		}
		_, err = db.AdoptSend(ctx, id, pay, *note, exchange.System("operator"))
		return err
	}
	for _, n := range exchange.Networks() {
		all, err := db.OpenQuarantine(ctx, n)
		if err != nil {
			return err
		}
		for _, q := range all {
			_, err := fmt.Fprintf(p.out, "%s  %s  %s  block %d  %s  %s\n  %s\n", q.ID, q.CreatedAt.Format(time.RFC3339), q.Network, q.Block, q.Reason, q.Detail, q.Payload)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
