package stack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kivuko/dev/certificates"
	"kivuko/dev/ports"
	"kivuko/dev/postgres"
	"kivuko/dev/supervisor"
	"kivuko/exchange"
	"kivuko/store"
)

// Names of the supervised processes, for tests that kill them.
const (
	ProcessTemporal = "temporal"
	ProcessTron     = "tron"
	ProcessEthereum = "ethereum"
	ProcessSolana   = "solana"
	ProcessMomo     = "momo"
	ProcessMessages = "messages"
	ProcessAPI      = "api"
	ProcessMigrate  = "migrate"
	// ProcessAuditVerify checks the audit log and ends.
	ProcessAuditVerify = "audit-verify"
	ProcessCodec       = "codec"
	ProcessApply       = "apply"
	ProcessResume      = "resume"
	ProcessRegister    = "momo-register"
)

// Queues are the task queues, each served by a separate worker process, so that a crash of one
// does not affect the others.
var Queues = []string{"flows", "momo", "webhooks", "chain-tron", "signer-tron", "chain-ethereum", "signer-ethereum"}

// SolanaQueues are served too when Solana's token programs are available.
var SolanaQueues = []string{"chain-solana", "signer-solana"}

// ProcessWorker is the name of the worker process that serves queue.
func ProcessWorker(queue string) string { return "worker-" + queue }

// Infrastructure returns the steps that start everything but Kivuko's own processes.
func Infrastructure() []Step {
	return []Step{
		{"PostgreSQL", startPostgres},
		{"Temporal and its Web UI", startTemporal},
		{"TRON network", startTron},
		{"Ethereum network", startEthereum},
		{"Solana network", startSolana},
		{"mobile money sandbox", startMomo},
		{"page of messages", startMessages},
	}
}

// Prepare returns the steps that prepare database and Temporal for the product.
func Prepare() []Step {
	return []Step{
		{"database schema", once(ProcessMigrate)},
		{"Temporal namespace and attributes", once(ProcessApply)},
	}
}

// Product returns the steps that start the product's own processes.
func Product() []Step {
	return []Step{
		{"API", startAPI},
		{"workers", startWorkers},
		{"codec server", startCodec},
	}
}

// Resume returns the step that compares every live row with its flow and starts what is missing, as after a restore.
func Resume() Step { return Step{"comparison of rows with flows", once(ProcessResume)} }

// Notices returns the step that registers for notices: the mobile money sandbox then reports payments to our number.
func Notices() []Step { return []Step{{"notices of payments to our number", registerNotices}} }

// ourNumber is the phone number with which the operator enables its statement of payments.
const ourNumber = "254700999999"

func registerNotices(ctx context.Context, s *Stack) error {
	return s.Supervisor.RunOnce(ctx, s.product(ProcessRegister, ProcessRegister, "-number", ourNumber))
}

func startPostgres(ctx context.Context, s *Stack) error {
	server, err := postgres.Start(ctx, postgres.Options{
		Dir: filepath.Join(s.State, "postgres"), Unsafe: s.UnsafeDatabase, Progress: s.Out,
	})
	if err != nil {
		return err
	}
	s.Postgres = server
	s.keepPostgres()
	s.Note("PostgreSQL", fmt.Sprintf("%s, user %s, password in %s",
		ports.Address(server.Port()), server.User(), filepath.Join(server.Dir(), "password")))
	for _, role := range append(store.Roles(), store.RoleMigrate) {
		if err := server.CreateLogin(ctx, string(role)); err != nil {
			return err
		}
	}
	return server.CreateDatabase(ctx, productDatabase, string(store.RoleMigrate))
}

// roleOf is the role with which a process of the product logs in to its database. Commands of operators run as the flows.
func roleOf(process string) store.Role {
	kind, _, _ := strings.Cut(strings.TrimPrefix(process, ProcessWorker("")), "-")
	switch kind {
	case ProcessAPI:
		return store.RoleAPI
	case ProcessCodec:
		return store.RoleCodec
	case ProcessMigrate:
		return store.RoleMigrate
	case "momo":
		return store.RoleMomo
	case "webhooks":
		return store.RoleWebhooks
	case "chain":
		return store.RoleChain
	case "signer":
		return store.RoleSigner
	}
	return store.RoleFlows
}

// keepPostgres restarts the server whenever it ends unexpectedly.
func (s *Stack) keepPostgres() {
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	s.watch.Go(func() {
		const pause = time.Second
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.Postgres.Done():
			}
			s.Supervisor.Say("PostgreSQL ended unexpectedly; starting it again, its log is %s", filepath.Join(s.Postgres.Dir(), "log"))
			if err := s.Postgres.Restart(ctx, postgres.Fast); err != nil && ctx.Err() == nil {
				s.Supervisor.Say("PostgreSQL cannot be started again: %v", err)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
	})
}

func startTemporal(ctx context.Context, s *Stack) error {
	_, port, _ := strings.Cut(s.Addresses.Temporal, ":")
	_, uiPort, _ := strings.Cut(s.Addresses.TemporalUI, ":")
	ui := []string{"--codec-endpoint", "http://" + s.Addresses.Codec}
	if s.StaffLogin {
		ui = []string{"--codec-endpoint", s.WebUI() + "/codec", "--ui-origin", s.WebUI()}
	}
	if err := certificates.Make(s.certificates(), identities()...); err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	_, err := s.Supervisor.Start(ctx, supervisor.Spec{
		Name: ProcessTemporal,
		Path: s.Self,
		Args: append([]string{
			"temporal", "--port", port, "--ui-port", uiPort, "--dynamic-config", s.DynamicConfig,
			"--ports-file", filepath.Join(s.State, "temporal", "ports.json"), "--certificates", s.certificates(), "--ui-certificate", identityUI,
		}, ui...),
		// The URL has a password, and other users can read arguments but not the environment.
		Env: append(s.baseEnvironment(), PostgresVariable+"="+s.Postgres.DSN("postgres")),
		// The process starts the Web UI last.
		Ready: supervisor.HTTP("http://" + s.Addresses.TemporalUI + "/healthz"),
	})
	s.Note("Temporal", s.Addresses.Temporal)
	s.Note("Temporal Web UI", s.WebUI()+", views and columns for it: docs/web-ui-views.js")
	return err
}

// PostgresVariable names the environment variable with the database URL of `kivuko-dev temporal`.
const PostgresVariable = "KIVUKO_DEV_POSTGRES_URL"

func startTron(ctx context.Context, s *Stack) error {
	if s.lacks(exchange.Tron) {
		return nil
	}
	_, err := s.Supervisor.Start(ctx, supervisor.Spec{
		Name: ProcessTron,
		Path: s.Self,
		Args: append([]string{
			"tron", "--grpc", s.Addresses.TronGRPC, "--solidity", s.Addresses.TronSolidity,
			"--http", s.Addresses.TronHTTP, "--control", s.Addresses.TronControl,
			"--data", filepath.Join(s.State, "tron"),
		}, s.TronFlags...),
		Env: s.baseEnvironment(),
		// The node starts its fault switches last.
		Ready: supervisor.TCP(s.Addresses.TronControl),
	})
	s.Note("TRON node", fmt.Sprintf("gRPC %s, HTTP http://%s", s.Addresses.TronGRPC, s.Addresses.TronHTTP))
	return err
}

func startMessages(ctx context.Context, s *Stack) error {
	_, err := s.Supervisor.Start(ctx, supervisor.Spec{
		Name:  ProcessMessages,
		Path:  s.Self,
		Args:  []string{"messages", "--listen", s.Addresses.Messages, "--smtp", s.Addresses.Mail},
		Env:   s.baseEnvironment(),
		Ready: supervisor.TCP(s.Addresses.Mail),
	})
	s.Note("messages to people", "http://"+s.Addresses.Messages)
	return err
}

func startMomo(ctx context.Context, s *Stack) error {
	_, err := s.Supervisor.Start(ctx, supervisor.Spec{
		Name:  ProcessMomo,
		Path:  s.Self,
		Args:  append([]string{"momo", "--listen", s.Addresses.Momo, "--data", filepath.Join(s.State, "momo")}, s.MomoFlags...),
		Env:   s.baseEnvironment(),
		Ready: supervisor.TCP(s.Addresses.Momo),
	})
	s.Note("mobile money sandbox", "http://"+s.Addresses.Momo)
	return err
}

// once returns a step that runs a subcommand of the product to its end.
func once(subcommand string) func(context.Context, *Stack) error {
	return func(ctx context.Context, s *Stack) error {
		return s.Supervisor.RunOnce(ctx, s.product(subcommand, subcommand))
	}
}

// product returns the specification of a process of the product's binary.
func (s *Stack) product(name string, args ...string) supervisor.Spec {
	return supervisor.Spec{Name: name, Path: s.Options.Product, Args: args, Env: s.ProductEnvironment(name), Dir: s.Root}
}

func startAPI(ctx context.Context, s *Stack) error {
	spec := s.product(ProcessAPI, "api")
	spec.Ready = supervisor.HTTP("http://" + s.Addresses.API + "/healthz")
	_, err := s.Supervisor.Start(ctx, spec)
	s.Note("API", "http://"+s.Addresses.API)
	return err
}

// Served returns the task queues for which a worker runs.
func (s *Stack) Served() []string {
	queues := slices.Clone(Queues)
	if s.Solana() {
		queues = append(queues, SolanaQueues...)
	}
	return slices.DeleteFunc(queues, func(queue string) bool {
		_, network, _ := strings.Cut(queue, "-")
		return s.lacks(exchange.Network(network))
	})
}

// Control returns the address of the fault switches of a network's node, and whether it runs.
func (s *Stack) Control(n exchange.Network) (address string, runs bool) {
	switch n {
	case exchange.Tron:
		address = s.Addresses.TronControl
	case exchange.Ethereum:
		address = s.Addresses.EthereumControl
	case exchange.Solana:
		return s.Addresses.SolanaControl, s.Solana()
	}
	return address, address != "" && !s.lacks(n)
}

// lacks reports whether a network was left out.
func (s *Stack) lacks(n exchange.Network) bool { return slices.Contains(s.Without, n) }

func startWorkers(ctx context.Context, s *Stack) error {
	for _, queue := range s.Served() {
		if _, err := s.Supervisor.Start(ctx, s.product(ProcessWorker(queue), "worker", "--queues", queue)); err != nil {
			return err
		}
	}
	return nil
}

func startCodec(ctx context.Context, s *Stack) error {
	spec := s.product(ProcessCodec, "codec")
	spec.Ready = supervisor.TCP(s.Addresses.Codec)
	_, err := s.Supervisor.Start(ctx, spec)
	s.Note("codec server", "http://"+s.Addresses.Codec)
	return err
}

// Remove deletes the state directory of a stack that does not run.
func Remove(state string) error {
	if _, err := os.Stat(state); os.IsNotExist(err) {
		return nil
	}
	lock, err := takeLock(filepath.Join(state, "lock"))
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // the file is removed with the directory
	if err := postgres.Remove(filepath.Join(state, "postgres")); err != nil {
		return err
	}
	return os.RemoveAll(state)
}
