package main

import (
	"context"
	"flag"
	"fmt"

	"kivuko/exchange"
	"kivuko/momo"
)

// runRegister tells the mobile money operator where to report payments to our number, and opens its list of them. Both
// are done once in the life of a number, and doing them again is no error.
func runRegister(ctx context.Context, p process, args []string) error {
	flags := flag.NewFlagSet("momo-register", flag.ContinueOnError)
	flags.SetOutput(p.out)
	number := flags.String("number", "", "a telephone number of ours, by which the operator opens its list")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("momo-register: takes no arguments, but was given %q", flags.Arg(0))
	}
	var nominated exchange.Phone
	if *number != "" {
		var err error
		if nominated, err = exchange.ParsePhone(*number); err != nil {
			return fmt.Errorf("momo-register: -number: %w", err)
		}
	}
	if err := p.config.check("momo-register"); err != nil {
		return err
	}
	operator, err := momo.New(p.config.momo())
	if err != nil {
		return err
	}
	if err := operator.RegisterC2B(ctx); err != nil {
		return fmt.Errorf("momo-register: the addresses of notices: %w", err)
	}
	if _, err := fmt.Fprintln(p.out, "The operator reports payments to", p.config.Momo.Shortcode, "from now on."); err != nil {
		return err
	}
	if nominated == "" {
		_, err := fmt.Fprintln(p.out, "Its list was not opened: no -number was given.")
		return err
	}
	if err := operator.RegisterPull(ctx, nominated); err != nil {
		return fmt.Errorf("momo-register: the list of payments: %w", err)
	}
	_, err = fmt.Fprintln(p.out, "Its list of payments is open.")
	return err
}
