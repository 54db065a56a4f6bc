package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"kivuko/activities"
	"kivuko/store"
	"kivuko/worker"
)

// runResume compares every live row with its flow and starts what is missing, at once. The flow repair-parked does the same every
// few minutes for rows that have not changed meanwhile. It is for the time after a database was put back.
func runResume(ctx context.Context, p process, args []string) error {
	flags := flag.NewFlagSet("resume", flag.ContinueOnError)
	unchanged := flags.Duration("unchanged", 0, "leave out rows that changed within this time")
	if err := p.prepare(flags, args); err != nil {
		return err
	}
	db, err := openStore(ctx, p, store.RoleFlows, store.Options{})
	if err != nil {
		return err
	}
	defer closing(p, db)
	temporal, err := dialTemporal(p, nil)
	if err != nil {
		return err
	}
	defer temporal.Close()
	r := activities.Resume{Store: db, Flows: worker.LiveFlows{Client: temporal}, Log: p.log}
	in, all := activities.ResumeInput{Since: time.Now().Add(-*unchanged)}, activities.Resumed{More: true}
	for all.More {
		page, err := r.Page(ctx, in)
		all.Rows, all.Gone, all.Started, all.Reminded = all.Rows+page.Rows, all.Gone+page.Gone, all.Started+page.Started, all.Reminded+page.Reminded
		if err != nil {
			return err
		}
		in.After, all.More = page.After, page.More
	}
	if _, err := fmt.Fprintf(p.out, "%d live rows: %d flows were missing, %d of them were started; %d flows look again at their children\n",
		all.Rows, all.Gone, all.Started, all.Reminded); err != nil {
		return err
	}
	if all.Started < all.Gone {
		return fmt.Errorf("resume: %d flows could not be started; the log says why", all.Gone-all.Started)
	}
	return nil
}
