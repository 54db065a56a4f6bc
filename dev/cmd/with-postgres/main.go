// Command with-postgres runs a command beside a throw-away PostgreSQL server:
//
//	go run ./cmd/with-postgres -- go test ./...
//
// The command finds the server in KIVUKO_TEST_DATABASE_URL, as a role that may
// create databases. When that variable is set already, no server is started and
// the one it names is used. The exit code is the command's own.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"kivuko/dev/child"
	"kivuko/dev/postgres"
)

const (
	urlVariable = "KIVUKO_TEST_DATABASE_URL"
	exitUsage   = 2
	exitFailure = 1
)

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: with-postgres -- command [argument...]")
		os.Exit(exitUsage)
	}
	code, err := run(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "with-postgres:", err)
	}
	os.Exit(code)
}

// run returns the exit code: the command's, or our own together with an error.
func run(args []string) (code int, err error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	if os.Getenv(urlVariable) != "" {
		return command(args, nil, signals)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	started := make(chan struct{})
	interrupted := make(chan os.Signal, 1)
	go func() {
		select {
		case s := <-signals:
			interrupted <- s
			cancel()
		case <-started:
		}
	}()
	server, err := postgres.Start(ctx, postgres.Options{Unsafe: true, Progress: os.Stderr})
	if err != nil {
		return exitFailure, err
	}
	close(started)
	defer func() {
		if stopErr := server.Stop(); stopErr != nil {
			err = errors.Join(err, stopErr)
			code = max(code, exitFailure)
		}
	}()
	select {
	case s := <-interrupted:
		return exitFailure, fmt.Errorf("stopped by %s before the command ran", s)
	default:
	}
	return command(args, []string{urlVariable + "=" + server.DSN("postgres")}, signals)
}

// command runs the command until it ends and passes on every signal we get.
func command(args, env []string, signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // signals end it, not a context
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	p, err := child.Start(cmd, syscall.SIGTERM)
	if err != nil {
		return exitFailure, err
	}
	for {
		select {
		case <-p.Done():
			return child.ExitCode(p.Err()), nil
		case s := <-signals:
			if err := p.Signal(s); err != nil {
				return exitFailure, err
			}
		}
	}
}
