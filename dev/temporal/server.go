package temporal

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/metrics"
	// The plugin for PostgreSQL registers itself.
	_ "go.temporal.io/server/common/persistence/sql/sqlplugin/postgresql"
	"go.temporal.io/server/common/primitives"
	temporalserver "go.temporal.io/server/temporal"

	"kivuko/dev/certificates"
	"kivuko/dev/ports"
)

const (
	// historyShards can't change after the databases are made. Sixteen are best for one
	// node; a production cluster needs more.
	historyShards = 16
	clusterName   = "active"

	pollSettings = 10 * time.Second
	readyTimeout = 2 * time.Minute
	readyPoll    = 50 * time.Millisecond
)

// Options configure the server.
type Options struct {
	// PostgresURL names a PostgreSQL server and a user that may create databases;
	// its database is not used. It contains a password and is never logged.
	PostgresURL string
	// Database is the name of the server's database; empty: DefaultDatabase.
	Database string
	// DynamicConfig is the path of the dynamic configuration file.
	DynamicConfig string
	// Port is the loopback port of the frontend; 0: the one in PortsFile, or a free one.
	Port int
	// PortsFile stores the ports between runs; empty: free ports each time.
	PortsFile string
	// MetricsPort serves Prometheus metrics on loopback; 0: no metrics, which saves a
	// sixth of the server's work.
	MetricsPort int
	// Certificates is a directory that certificates.Make wrote: the frontend then answers over TLS alone, and only to who shows a
	// certificate of its clients. Empty: it answers anybody on this machine.
	Certificates string
	// UI configures the Web UI.
	UI UI
	// LogFile gets the server's log; empty: standard error.
	LogFile string
	// LogLevel is debug, info, warn or error; empty: warn.
	LogLevel string
	// Progress gets messages for the user; nil drops them.
	Progress io.Writer
}

// Server is a running Temporal.
type Server struct {
	opts   Options
	logger log.Logger

	mu       sync.Mutex // guards what a restart replaces
	inner    temporalserver.Server
	settings chan any // closed to stop the watch on the configuration file
	ui       *webUI
	ports    portSet
}

// portSet are the loopback ports of the server's services.
type portSet struct {
	frontend, frontendHTTP, history, matching, worker int
}

// Start prepares the databases, starts all of the server's services and waits
// until the frontend answers. The caller must Stop it.
//
// A port that is taken at the start is an error. When the server can't open a
// listener later, it ends the whole process.
func Start(ctx context.Context, opts Options) (*Server, error) {
	if opts.Progress == nil {
		opts.Progress = io.Discard
	}
	if opts.Database == "" {
		opts.Database = DefaultDatabase
	}
	if opts.LogLevel == "" {
		opts.LogLevel = "warn"
	}
	s := &Server{opts: opts}
	s.logger = log.NewZapLogger(log.BuildZapLogger(log.Config{
		Stdout: false, Level: opts.LogLevel, OutputFile: opts.LogFile, Format: "json",
	}))
	if err := s.start(ctx); err != nil {
		return nil, fmt.Errorf("temporal: %w", err)
	}
	return s, nil
}

// Address returns the host:port of the frontend, for clients and workers.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ports.Address(s.ports.frontend)
}

// UIURL returns the address of the Web UI, or an empty string when it is not served.
func (s *Server) UIURL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ui == nil {
		return ""
	}
	return s.ui.url()
}

// Stop ends the server. It may be called more than once.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inner == nil {
		return nil
	}
	if s.ui != nil {
		s.ui.stop()
		s.ui = nil
	}
	err := s.inner.Stop()
	close(s.settings)
	s.inner = nil
	return err
}

// Restart stops the server and starts it again on the same ports and data.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Stop(); err != nil {
		return fmt.Errorf("temporal: %w", err)
	}
	s.mu.Lock()
	s.opts.Port = s.ports.frontend
	s.mu.Unlock()
	if err := s.start(ctx); err != nil {
		return fmt.Errorf("temporal: %w", err)
	}
	return nil
}

// Ready waits until the frontend at address answers calls; overTLS is nil where it has no TLS.
func Ready(ctx context.Context, address string, overTLS *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	c, err := client.NewLazyClient(client.Options{HostPort: address, Logger: quiet{}, ConnectionOptions: client.ConnectionOptions{TLS: overTLS}})
	if err != nil {
		return err
	}
	defer c.Close()
	for {
		_, err := c.CheckHealth(ctx, &client.CheckHealthRequest{})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("temporal at %s does not answer: %w", address, err)
		case <-time.After(readyPoll):
		}
	}
}

// Ready waits until this server answers calls.
func (s *Server) Ready(ctx context.Context) error {
	overTLS, err := s.opts.clientTLS(certificates.Workers)
	if err != nil {
		return err
	}
	return Ready(ctx, s.Address(), overTLS)
}

// clientTLS are the settings of a connection to the frontend of a client by its certificate; nil without TLS.
func (o Options) clientTLS(name string) (*tls.Config, error) {
	if o.Certificates == "" {
		return nil, nil
	}
	servers, _ := certificates.Authorities(o.Certificates)
	certificate, key := certificates.Files(o.Certificates, name)
	return certificates.Client(servers, certificate, key)
}

func (s *Server) start(ctx context.Context) (err error) {
	p, err := assignPorts(s.opts)
	if err != nil {
		return err
	}
	cfg, err := s.config(p)
	if err != nil {
		return err
	}
	main, visibility := databases(s.opts.Database)
	for _, db := range []database{main, visibility} {
		if err := migrate(ctx, s.opts.PostgresURL, db, s.logger); err != nil {
			return err
		}
	}
	stopSettings := make(chan any)
	inner, err := s.build(cfg, p, stopSettings)
	if err != nil {
		close(stopSettings)
		return err
	}
	if err := inner.Start(); err != nil {
		close(stopSettings)
		return errors.Join(err, inner.Stop())
	}
	s.mu.Lock()
	s.inner, s.settings, s.ports = inner, stopSettings, p
	s.mu.Unlock()
	if err := s.Ready(ctx); err != nil {
		return errors.Join(err, s.Stop())
	}
	if err := s.startUI(ctx); err != nil {
		return errors.Join(err, s.Stop())
	}
	return nil
}

func (s *Server) build(cfg *config.Config, p portSet, done <-chan any) (temporalserver.Server, error) {
	dynamic, err := openSettings(s.opts.DynamicConfig, s.logger, done)
	if err != nil {
		return nil, err
	}
	authorizer, err := authorization.GetAuthorizerFromConfig(&cfg.Global.Authorization)
	if err != nil {
		return nil, err
	}
	options := []temporalserver.ServerOption{
		temporalserver.WithConfig(cfg),
		temporalserver.ForServices(temporalserver.DefaultServices),
		temporalserver.WithLogger(s.logger),
		temporalserver.WithAuthorizer(authorizer),
		temporalserver.WithDynamicConfigClient(dynamic),
		// One process is the whole cluster. Static hosts avoid the gossip protocol, which
		// remembers killed members.
		temporalserver.WithStaticHosts(map[primitives.ServiceName]static.Hosts{
			primitives.FrontendService: static.SingleLocalHost(ports.Address(p.frontend)),
			primitives.HistoryService:  static.SingleLocalHost(ports.Address(p.history)),
			primitives.MatchingService: static.SingleLocalHost(ports.Address(p.matching)),
			primitives.WorkerService:   static.SingleLocalHost(ports.Address(p.worker)),
		}),
	}
	if s.opts.MetricsPort == 0 {
		options = append(options, temporalserver.WithCustomMetricsHandler(metrics.NoopMetricsHandler))
	}
	return temporalserver.NewServer(options...)
}

func (s *Server) config(p portSet) (*config.Config, error) {
	main, visibility := databases(s.opts.Database)
	mainSQL, err := sqlConfig(s.opts.PostgresURL, main)
	if err != nil {
		return nil, err
	}
	visibilitySQL, err := sqlConfig(s.opts.PostgresURL, visibility)
	if err != nil {
		return nil, err
	}
	frontend := ports.Address(p.frontend)
	cfg := &config.Config{
		Persistence: config.Persistence{
			DefaultStore: "main", VisibilityStore: "visibility", NumHistoryShards: historyShards,
			DataStores: map[string]config.DataStore{"main": {SQL: mainSQL}, "visibility": {SQL: visibilitySQL}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10, MasterClusterName: clusterName, CurrentClusterName: clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: frontend},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services: map[string]config.Service{
			string(primitives.FrontendService): service(p.frontend, p.frontendHTTP),
			string(primitives.HistoryService):  service(p.history, 0),
			string(primitives.MatchingService): service(p.matching, 0),
			string(primitives.WorkerService):   service(p.worker, 0),
		},
		Archival:     config.Archival{History: config.HistoryArchival{State: disabled}, Visibility: config.VisibilityArchival{State: disabled}},
		PublicClient: config.PublicClient{HostPort: frontend},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History: config.HistoryArchivalNamespaceDefaults{State: disabled}, Visibility: config.VisibilityArchivalNamespaceDefaults{State: disabled},
		}},
	}
	if dir := s.opts.Certificates; dir != "" {
		cfg.Global.TLS = mutualTLS(dir)
	}
	if s.opts.MetricsPort != 0 {
		cfg.Global.Metrics = &metrics.Config{Prometheus: &metrics.PrometheusConfig{
			ListenAddress: ports.Address(s.opts.MetricsPort), HandlerPath: "/metrics",
		}}
	}
	return cfg, nil
}

const disabled = "disabled"

// mutualTLS is the deployment's (docker/temporal/server.yaml): the server's own workers connect through the frontend too.
func mutualTLS(dir string) config.RootTLS {
	servers, clients := certificates.Authorities(dir)
	var c config.RootTLS
	frontend, own := &c.Frontend.Server, &c.SystemWorker
	frontend.CertFile, frontend.KeyFile = certificates.Files(dir, certificates.Server)
	frontend.RequireClientAuth, frontend.ClientCAFiles = true, []string{clients}
	own.CertFile, own.KeyFile = certificates.Files(dir, certificates.Workers)
	own.Client.ServerName, own.Client.RootCAFiles = certificates.Server, []string{servers}
	return c
}

func service(grpc, http int) config.Service {
	return config.Service{RPC: config.RPC{GRPCPort: grpc, HTTPPort: http, BindOnLocalHost: true}}
}

// assignPorts returns a port for each service; a requested port must be free.
func assignPorts(opts Options) (portSet, error) {
	book := ports.NewBook()
	var err error
	if opts.PortsFile != "" {
		if book, err = ports.OpenBook(opts.PortsFile); err != nil {
			return portSet{}, err
		}
	}
	var p portSet
	for _, a := range []struct {
		name string
		port *int
	}{
		{"temporal-frontend", &p.frontend},
		{"temporal-frontend-http", &p.frontendHTTP},
		{"temporal-history", &p.history},
		{"temporal-matching", &p.matching},
		{"temporal-worker", &p.worker},
	} {
		if a.port == &p.frontend && opts.Port != 0 {
			if !ports.IsFree(opts.Port) {
				return portSet{}, fmt.Errorf("port %d of %s is taken by another program", opts.Port, ports.Loopback)
			}
			p.frontend = opts.Port
			continue
		}
		if *a.port, err = book.Assign(a.name, 0); err != nil {
			return portSet{}, err
		}
	}
	return p, nil
}

// quiet drops the client's log lines, because the waits for readiness expect failures.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
