package main

import (
	"context"
	"flag"
	"fmt"

	"kivuko/exchange"
)

// runRegister registers our addresses for payment notices with the mobile money operator, and opens the operator's list of
// payments. Both are done once for each number; repeating them is no error.
func runRegister(ctx context.Context, p process, args []string) error {
	flags := flag.NewFlagSet("momo-register", flag.ContinueOnError)
	flags.SetOutput(p.out)
	number := flags.String("number", "", "one of our telephone numbers, with which the operator opens its list of payments")
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
	operator, err := p.config.openOperator()
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
		_, err := fmt.Fprintln(p.out, "The operator's list of payments was not opened: no -number was given.")
		return err
	}
	if err := operator.RegisterPull(ctx, nominated); err != nil {
		return fmt.Errorf("momo-register: the list of payments: %w", err)
	}
	_, err = fmt.Fprintln(p.out, "The operator's list of payments is open.")
	return err
}
