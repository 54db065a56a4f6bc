package main

import (
	"context"
	"errors"
	"os"

	"kivuko/exchange"
	"kivuko/files/inspect"
)

// inspectCommand is the command of the process that checks one uploaded file; the API starts it.
const inspectCommand = "inspect"

// runInspect checks the file that comes on the input and writes the verdict to the output. It has no configuration, and what it may
// use is limited before it reads.
func runInspect(ctx context.Context, p process, args []string) error {
	if len(args) != 1 {
		return errors.New("inspect: the type of the file is missing")
	}
	if err := inspect.Confine(); err != nil {
		return err
	}
	return inspect.Serve(ctx, exchange.FileType(args[0]), os.Stdin, p.out)
}
