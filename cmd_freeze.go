package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

// runFreeze freezes all outgoing payments in the name of an officer, also when the API can't be reached; without -by it
// prints whether they are frozen. Two officers lift a freeze through the API.
func runFreeze(ctx context.Context, p process, args []string) error {
	flags := flag.NewFlagSet("freeze", flag.ContinueOnError)
	email := flags.String("by", "", "e-mail address of the officer who freezes")
	note := flags.String("note", "", "why")
	if err := p.prepare(flags, args); err != nil {
		return err
	}
	if (*email == "") != (*note == "") {
		return errors.New("freeze: -by and -note go together")
	}
	db, err := store.Open(ctx, p.config.DatabaseURL, store.Options{Logger: p.log})
	if err != nil {
		return err
	}
	defer closing(p, db)
	if *email == "" {
		z, frozen, err := db.PresentFreeze(ctx)
		if err != nil {
			return err
		}
		return showFreeze(p, z, frozen)
	}
	by, err := officerNamed(ctx, db, *email, "freeze")
	if err != nil {
		return err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	z, err := db.Freeze(ctx, id, *note, by)
	if err != nil {
		return err
	}
	return showFreeze(p, z, true)
}

func showFreeze(p process, z exchange.Freeze, frozen bool) error {
	if !frozen {
		_, err := fmt.Fprintln(p.out, "Outgoing payments are not frozen.")
		return err
	}
	_, err := fmt.Fprintf(p.out, "Outgoing payments are frozen since %s by %s: %s\n", z.PulledAt.Format(time.RFC3339), z.PulledBy, z.Reason)
	return err
}

// officerNamed is the active staff member in whose name a command acts.
func officerNamed(ctx context.Context, db *store.Store, email, command string) (exchange.Principal, error) {
	u, err := db.UserByEmail(ctx, email)
	if err != nil {
		return exchange.Principal{}, err
	}
	if !u.IsActive || !u.Role.Staff() {
		return exchange.Principal{}, fmt.Errorf("%s: %s is not an active member of the staff", command, email)
	}
	return exchange.Principal{UserID: u.ID, Role: u.Role, RequestID: "command:" + command}, nil
}
