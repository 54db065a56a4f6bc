package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

// runQuarantine lists the quarantined movements, or proposes to settle one of them, which a second officer confirms in the
// API. A movement out of a wallet may be settled as the transaction of a payment whose transaction is not known here; it
// then completes the payment.
func runQuarantine(ctx context.Context, p process, args []string) error {
	flags := flag.NewFlagSet("quarantine", flag.ContinueOnError)
	settle := flags.String("settle", "", "id of the movement to settle")
	payment := flags.String("payment", "", "id of the chain payment that the movement completes, if its transaction is not known here")
	note := flags.String("note", "", "what the movement was")
	email := flags.String("by", "", "e-mail address of the officer who found out")
	if err := p.prepare(flags, args); err != nil {
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
		return proposeSettlement(ctx, p, db, id, *payment, *note, *email)
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

// proposeSettlement proposes in the name of an officer what a movement was.
func proposeSettlement(ctx context.Context, p process, db *store.Store, id uuid.UUID, payment, note, email string) error {
	var pay uuid.UUID
	if payment != "" {
		var err error
		if pay, err = uuid.Parse(payment); err != nil {
			return fmt.Errorf("quarantine: -payment: %w", err)
		}
	}
	by, err := officerNamed(ctx, db, email, "quarantine")
	if err != nil {
		return err
	}
	waits, err := db.ProposeSettlement(ctx, id, pay, note, by)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "Change %s waits until another officer confirms it: POST /api/v1/auth/approvals/changes/%[1]s/confirm\n", waits.ID)
	return err
}
