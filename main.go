// Kivuko exchanges stablecoins against Kenyan shillings over mobile money. This is its one binary:
//
//	kivuko api                           serves the REST API
//	kivuko worker -queues flows,momo     works on task queues
//	kivuko codec                         lets the Temporal Web UI read encrypted payloads
//	kivuko migrate                       updates the database and creates the first admin
//	kivuko apply                         reconciles Temporal with temporal.yaml
//	kivuko momo-register                 registers our addresses with the mobile money operator
//	kivuko quarantine                    lists movements on chains that need an operator
//	kivuko resume                        starts the missing flows of everything that is not at its end
//	kivuko rewrap                        seals wallet keys with a new master key
//	kivuko rewrap-files                  seals the keys of files with a new master key
//	kivuko inspect                       checks one uploaded file, for the API
//	kivuko audit-verify                  recomputes the audit log's hash chain
//	kivuko cold-key                      makes the cold key, on a machine without a network
//	kivuko cold-sign                     signs a cold wallet's transaction there
//	kivuko health                        checks that a process of this machine answers
//	kivuko version                       prints the build
//
// KIVUKO_* variables configure everything; docs/configuration.md describes each.
package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// temporalYAML is how the service uses Temporal.
//
//go:embed temporal.yaml
var temporalYAML []byte

// command is a subcommand of the binary.
type command struct {
	help string
	run  func(ctx context.Context, p process, args []string) error
	// bare commands need no configuration and run with any environment.
	bare bool
}

// process is what every command gets: its configuration, its log and where it prints.
type process struct {
	config Config
	log    *slog.Logger
	out    io.Writer
}

// prepare reads the flags of a command and checks what the command needs of the configuration.
func (p process) prepare(flags *flag.FlagSet, args []string) error {
	flags.SetOutput(io.Discard) // the error says what is wrong
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%s: %w", flags.Name(), err)
	}
	return p.config.check(flags.Name())
}

func commands() map[string]command {
	return map[string]command{
		"api":           {help: "serve the REST API", run: runAPI},
		"worker":        {help: "work on task queues: -queues flows,momo,webhooks,chain-<network>,signer-<network>", run: runWorker},
		"codec":         {help: "serve the codec endpoint of the Temporal Web UI", run: runCodec},
		"migrate":       {help: "update the database and create the first admin", run: runMigrate},
		"apply":         {help: "reconcile Temporal with temporal.yaml", run: runApply},
		"momo-register": {help: "register our addresses for payment notices with the mobile money operator: [-number <telephone>]", run: runRegister},
		"quarantine":    {help: "list movements on chains that were set aside, or propose to settle one: -settle <id> [-payment <id>] -by <officer's e-mail address> -note <text>", run: runQuarantine},
		"freeze":        {help: "freeze all outgoing payments: -by <officer's e-mail address> -note <text>; alone, say whether they are frozen", run: runFreeze},
		"resume":        {help: "compare everything that is not at its end with its flow, and start what is missing: [-unchanged <duration>]", run: runResume},
		"rewrap":        {help: "seal the wallet keys of a network with the current master key: -network <network>", run: runRewrap},
		"rewrap-files":  {help: "seal the keys of files with the current master key", run: runRewrapFiles},
		inspectCommand:  {help: "check the uploaded file that comes on the input, for the API: <type>", run: runInspect, bare: true},
		"audit-verify":  {help: "recompute the audit log's hash chain", run: runAuditVerify},
		"cold-key":      {help: "make the cold key and print its public half: -out <new file>", run: runColdKey, bare: true},
		"cold-sign":     {help: "sign a cold wallet's transaction, without a network: -draft <file> [-yes]", run: runColdSign},
		"health":        {help: "check that a process of this machine answers: api, worker or codec", run: runHealth},
		"version":       {help: "print the build", run: runVersion, bare: true},
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := 0
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "kivuko:", err)
		code = 1
	}
	stop()
	os.Exit(code)
}

// run is main without os.Exit, for tests.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	if len(args) == 0 {
		return usage("no command given")
	}
	if args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		_, err := fmt.Fprintln(out, "Kivuko exchanges stablecoins against Kenyan shillings over mobile money. The commands are:"+listing()+"\nEverything is configured by KIVUKO_* variables; docs/configuration.md describes each.")
		return err
	}
	c, ok := commands()[args[0]]
	if !ok {
		return usage(fmt.Sprintf("unknown command %q", args[0]))
	}
	if c.bare {
		return c.run(ctx, process{log: slog.New(slog.NewJSONHandler(log, nil)).With("process", args[0]), out: out}, args[1:])
	}
	config, err := loadConfig()
	if err != nil {
		return err
	}
	logger := slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: config.LogLevel})).With("process", args[0])
	return c.run(ctx, process{config, logger, out}, args[1:])
}

func usage(problem string) error {
	return errors.New(problem + "; the commands are:" + listing())
}

func listing() string {
	var text string
	for _, name := range []string{"api", "worker", "codec", "migrate", "apply", "momo-register", "quarantine", "freeze", "resume", "rewrap", "rewrap-files", "inspect", "audit-verify", "cold-key", "cold-sign", "health", "version"} {
		text += fmt.Sprintf("\n  %-13s %s", name, commands()[name].help)
	}
	return text
}

func runVersion(_ context.Context, p process, _ []string) error {
	_, err := fmt.Fprintln(p.out, version())
	return err
}

// revision is the commit that the linker sets, because an image is built without the git history.
var revision string

// version is the commit that the binary was built from, or "development".
func version() string {
	if revision != "" {
		return revision
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "development"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "development"
}
