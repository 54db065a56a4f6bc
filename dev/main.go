// Command kivuko-dev runs Kivuko on one machine, for development and tests:
//
//	kivuko-dev run         the whole stack, until Ctrl-C
//	kivuko-dev temporal    the Temporal server and its Web UI
//	kivuko-dev postgres    a PostgreSQL server
//	kivuko-dev tron        a TRON node
//	kivuko-dev ethereum    an Ethereum node
//	kivuko-dev solana      a Solana node
//	kivuko-dev momo        the mobile money operator's sandbox
//	kivuko-dev messages    the page of what was sent by SMS and e-mail
//	kivuko-dev clean-data  delete the stack's data
//
// `kivuko-dev help` lists them, and `kivuko-dev <command> -h` the flags of one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"kivuko/dev/demo"
	"kivuko/dev/messages"
	"kivuko/dev/nodes/ethereum"
	"kivuko/dev/nodes/solana"
	"kivuko/dev/nodes/solana/programs"
	"kivuko/dev/nodes/tron"
	"kivuko/dev/postgres"
	"kivuko/dev/stack"
	"kivuko/dev/temporal"
	"kivuko/momo/sandbox"
)

const exitUsage = 2

// command is a subcommand: it runs until it is done or ctx ends.
type command struct {
	name, help string
	run        func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"run", "the whole stack, until Ctrl-C", runStack},
		{"temporal", "the Temporal server and its Web UI", runTemporal},
		{"postgres", "a PostgreSQL server", runPostgres},
		{"tron", "a TRON node", tron.Command},
		{"ethereum", "an Ethereum node", ethereum.Command},
		{"solana", "a Solana node", solana.Command},
		{"momo", "the mobile money operator's sandbox", sandbox.Command},
		{"messages", "the page of what was sent by SMS and e-mail", messages.Command},
		{"clean-data", "delete the stack's data", cleanData},
	}
}

// usage lists the commands.
func usage() string {
	text := "The commands of kivuko-dev are:\n"
	for _, c := range commands() {
		text += fmt.Sprintf("  %-10s  %s\n", c.name, c.help)
	}
	return text + "kivuko-dev <command> -h lists the flags of one. The product's own commands are those of kivuko."
}

// find returns the command that the arguments name. Its error lists the commands.
func find(args []string) (command, error) {
	if len(args) == 0 {
		return command{}, errors.New("kivuko-dev: no command given\n" + usage())
	}
	i := slices.IndexFunc(commands(), func(c command) bool { return c.name == args[0] })
	if i < 0 {
		return command{}, fmt.Errorf("kivuko-dev: there is no command %q\n%s", args[0], usage())
	}
	return commands()[i], nil
}

func main() {
	if len(os.Args) > 1 && slices.Contains([]string{"help", "-h", "--help"}, os.Args[1]) {
		fmt.Println(usage())
		return
	}
	c, err := find(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exitUsage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// A second signal ends the process at once, and the kernel then ends its children.
	context.AfterFunc(ctx, stop)
	err = c.run(ctx, os.Args[2:])
	var unavailable *programs.UnavailableError
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(exitUsage)
	case errors.As(err, &unavailable):
		fmt.Fprintf(os.Stderr, "kivuko-dev %s: %v\n", c.name, err)
		os.Exit(solana.ExitUnavailable)
	case err != nil && !errors.Is(err, context.Canceled):
		fmt.Fprintf(os.Stderr, "kivuko-dev %s: %v\n", c.name, err)
		os.Exit(1)
	}
}

// steps returns the steps of `run`, in order.
func steps() []stack.Step {
	var all []stack.Step
	for _, part := range [][]stack.Step{stack.Infrastructure(), stack.Prepare(), stack.Product(), stack.Notices(), demonstration()} {
		all = append(all, part...)
	}
	return all
}

// job is a part of the demo that plays once.
type job struct {
	name string
	play func(context.Context, demo.Stack) error
}

// demonstration creates the demo data, and plays the main job, the OTC desk and payments from wallets of several owners once.
func demonstration() []stack.Step {
	return []stack.Step{
		{Name: "demo accounts, wallets, offers", Run: func(ctx context.Context, s *stack.Stack) error {
			s.Note("API documentation", "http://"+s.Addresses.API+"/docs")
			s.Note("login: admin", stack.AdminEmail+" / "+stack.AdminPassword)
			for _, p := range demo.People() {
				s.Note("login: "+p.Role, p.Email+" / "+demo.Password)
			}
			return demo.Seed(ctx, demoStack(s))
		}},
		played("wallets of several owners", job{"opening of wallets of several owners", demo.OpenShared}),
		played("main job", job{"main job", demo.MainJob}, job{"payments from wallets of several owners", demo.PayShared}),
		played("OTC desk", job{"OTC desk", demo.Desk}),
	}
}

// demoStack has the addresses of a stack that the demo needs.
func demoStack(s *stack.Stack) demo.Stack {
	w := demo.Stack{
		API: "http://" + s.Addresses.API, TronControl: "http://" + s.Addresses.TronControl, TronGRPC: s.Addresses.TronGRPC,
		EthereumControl: "http://" + s.Addresses.EthereumControl, NoSafe: !s.Safe(), Momo: "http://" + s.Addresses.Momo,
		Messages: "http://" + s.Addresses.Messages, DatabaseURL: s.ProductDatabase(), AdminEmail: stack.AdminEmail, AdminPass: stack.AdminPassword, Say: s.Supervisor.Say,
	}
	if s.Solana() {
		w.SolanaControl = "http://" + s.Addresses.SolanaControl
	}
	return w
}

// played is a step that plays jobs at once. When one fails, the stack stays up, so that the failure can be examined in it.
func played(name string, jobs ...job) stack.Step {
	return stack.Step{Name: name, Run: func(ctx context.Context, s *stack.Stack) error {
		var all sync.WaitGroup
		for _, j := range jobs {
			all.Go(func() {
				if err := j.play(ctx, demoStack(s)); err != nil && ctx.Err() == nil {
					s.Supervisor.Say("THE %s FAILED: %v\nThe stack keeps running.", strings.ToUpper(j.name), err)
				}
			})
		}
		all.Wait()
		return ctx.Err()
	}}
}

func runStack(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	root := flags.String("root", "", "the checkout (default: found from the working directory)")
	state := flags.String("state", "", "the directory of data and logs (default: .local in the checkout)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("run takes only flags, not %q: --state names the directory of its data", flags.Arg(0))
	}
	if *root == "" {
		if *root, err = findRoot(); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	s, err := stack.Open(stack.Options{Root: *root, State: *state, Self: self, Out: os.Stdout, FetchPrograms: true})
	if err != nil {
		return err
	}
	defer func() {
		s.Supervisor.Say("stopping …")
		err = errors.Join(err, s.Down())
		s.Supervisor.Say("stopped")
	}()
	if err := s.Up(ctx, steps()); err != nil {
		return err
	}
	s.Summary()
	<-ctx.Done()
	return nil
}

// findRoot walks up from the working directory to the checkout.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		raw, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(raw), "module kivuko\n") {
			return dir, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the working directory is not in a checkout of Kivuko: change into one, or name it with --root")
		}
	}
}

func runTemporal(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("temporal", flag.ContinueOnError)
	opts := temporal.Options{Progress: os.Stderr}
	flags.StringVar(&opts.PostgresURL, "postgres", "",
		"URL of a PostgreSQL server (default: from "+stack.PostgresVariable+", which keeps its password out of the process list)")
	flags.StringVar(&opts.Database, "database", "", "name of the database (default: "+temporal.DefaultDatabase+")")
	flags.StringVar(&opts.DynamicConfig, "dynamic-config", "docker/dynamicconfig.yaml", "file of dynamic configuration")
	flags.StringVar(&opts.PortsFile, "ports-file", "", "file that stores the ports of the inner services")
	flags.StringVar(&opts.LogLevel, "log-level", "", "debug, info, warn or error (default: warn)")
	flags.IntVar(&opts.Port, "port", 0, "port of the frontend (default: a free one)")
	flags.IntVar(&opts.MetricsPort, "metrics-port", 0, "port of the Prometheus metrics (default: none)")
	flags.IntVar(&opts.UI.Port, "ui-port", 0, "port of the Web UI (default: none)")
	flags.StringVar(&opts.UI.CodecEndpoint, "codec-endpoint", "", "URL that decrypts payloads for the Web UI")
	flags.StringVar(&opts.UI.Origin, "ui-origin", "", "address at which browsers reach the Web UI behind a login (default: its own)")
	flags.StringVar(&opts.Certificates, "certificates", "", "directory of the certificates of Temporal and its clients (default: no TLS)")
	flags.StringVar(&opts.UI.Certificate, "ui-certificate", "", "name of the Web UI's certificate in that directory")
	flags.StringVar(&opts.UI.Namespace, "namespace", "kivuko", "namespace that the Web UI opens with")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if opts.PostgresURL == "" {
		opts.PostgresURL = os.Getenv(stack.PostgresVariable)
	}
	s, err := temporal.Start(ctx, opts)
	if err != nil {
		return err
	}
	fmt.Printf("Temporal answers at %s\n", s.Address())
	if url := s.UIURL(); url != "" {
		fmt.Printf("Web UI: %s\n", url)
	}
	<-ctx.Done()
	return s.Stop()
}

func runPostgres(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("postgres", flag.ContinueOnError)
	opts := postgres.Options{Progress: os.Stderr}
	flags.StringVar(&opts.Dir, "dir", "", "the cluster's directory (default: a temporary one)")
	flags.BoolVar(&opts.Unsafe, "unsafe", false, "faster, but a crash of the machine can lose data")
	if err := flags.Parse(args); err != nil {
		return err
	}
	s, err := postgres.Start(ctx, opts)
	if err != nil {
		return err
	}
	fmt.Printf("PostgreSQL answers at 127.0.0.1:%d; user %s, password in %s\n",
		s.Port(), s.User(), filepath.Join(s.Dir(), "password"))
	select {
	case <-ctx.Done():
		return s.Stop()
	case <-s.Done():
		return errors.Join(errors.New("the server ended by itself: see "+filepath.Join(s.Dir(), "log")), s.Stop())
	}
}

func cleanData(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("clean-data", flag.ContinueOnError)
	state := flags.String("state", "", "the state directory (default: .local in the checkout)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 { // if it is meant as the directory, the default one must not be removed instead
		return fmt.Errorf("clean-data takes only flags, not %q: --state names the directory", flags.Arg(0))
	}
	if *state == "" {
		root, err := findRoot()
		if err != nil {
			return err
		}
		*state = filepath.Join(root, ".local")
	}
	return stack.Remove(*state)
}
