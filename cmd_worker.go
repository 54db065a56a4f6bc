package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"kivuko/activities"
	"kivuko/chain/keys"
	"kivuko/crash"
	"kivuko/exchange"
	"kivuko/service"
	"kivuko/store"
	"kivuko/worker"
	"kivuko/workflows"
)

// runWorker serves task queues. The configuration of a process decides which queues it can serve: only one with a master
// key can serve a signer queue.
func runWorker(ctx context.Context, p process, args []string) error {
	flags := flag.NewFlagSet("worker", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the error says what is wrong
	list := flags.String("queues", "", "comma-separated task queues")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	var queues []string
	for _, q := range strings.Split(*list, ",") {
		if q = strings.TrimSpace(q); q != "" {
			queues = append(queues, q)
		}
	}
	temporalConfig, err := worker.ParseTemporalConfig(temporalYAML)
	if err != nil {
		return err
	}
	if err := p.config.check(queues...); err != nil {
		return err
	}
	if err := keys.HardenProcess(); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	workflows.UseRunbooks(p.config.Runbooks)
	workflows.UseAPI(p.config.API.PublicURL)
	role, err := roleOfQueues(queues)
	if err != nil && p.config.Mode == Production {
		return fmt.Errorf("worker: %w", err)
	}
	db, err := openStore(ctx, p, role, store.Options{Limits: p.config.limits(), AuditKeys: p.config.auditKeys(), Commits: crash.Commits()})
	if err != nil {
		return err
	}
	defer closing(p, db)
	metrics, err := newRegistry(db)
	if err != nil {
		return err
	}
	var counted prometheus.Registerer // nil when the metrics are not served, because counting has a cost
	if p.config.Worker.MetricsListen != "" {
		counted = metrics
	}
	temporal, err := dialTemporal(p, counted)
	if err != nil {
		return err
	}
	defer temporal.Close()
	parts := parts{process: p, db: db, temporal: temporal, drivers: drivers{config: p.config, open: map[exchange.Network]driver{}}}
	defer parts.drivers.close()
	activities := worker.Activities{}
	for _, q := range queues {
		if activities[q], err = parts.activities(q); err != nil {
			return err
		}
	}
	return work(ctx, p, temporal, activities, metrics, worker.Options{
		TemporalConfig: temporalConfig, Queues: queues, BuildID: p.config.buildID(), Logger: p.log, Promote: p.config.Worker.Promote,
		Interceptors: crash.Interceptors(),
	})
}

func work(ctx context.Context, p process, temporal client.Client, activities worker.Activities, metrics *prometheus.Registry, o worker.Options) error {
	g, ctx := errgroup.WithContext(ctx)
	if p.config.Worker.MetricsListen != "" {
		g.Go(func() error { return serveMetrics(ctx, p, metrics) })
	}
	g.Go(func() error {
		err := worker.Run(ctx, temporal, activities, o)
		if err == nil {
			err = context.Canceled // ends the other servers too
		}
		return err
	})
	if err := g.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// parts is what the activities of a process are made from.
type parts struct {
	process
	db       *store.Store
	temporal client.Client
	drivers  drivers
}

// activities creates the activities of a queue. The worker refuses an unknown queue, and one with missing activities.
func (p parts) activities(queue string) ([]any, error) {
	chain, signer := workflows.ChainOf(queue), workflows.SignerOf(queue)
	switch {
	case queue == workflows.QueueFlows:
		return p.flows()
	case queue == workflows.QueueMomo:
		return p.momo()
	case queue == workflows.QueueWebhooks:
		w, err := p.config.webhooks(p.db)
		return []any{w}, err
	case chain != "":
		return p.chain(chain)
	case signer != "":
		return p.signer(signer)
	}
	return nil, nil
}

// flows creates the activities that need only the store, the screening service and the source of rates.
func (p parts) flows() ([]any, error) {
	screener, err := p.config.screener()
	if err != nil {
		return nil, err
	}
	rates, err := p.config.rates(p.db)
	if err != nil {
		return nil, err
	}
	objects, err := p.config.objects()
	if err != nil {
		return nil, err
	}
	return []any{
		&activities.Orders{
			Store: p.db, Index: worker.ParkedIndex{Client: p.temporal}, Flows: worker.LiveFlows{Client: p.temporal}, Heads: p.config.auditHeads(),
			EventsKept: p.config.Worker.EventsKept,
		},
		&activities.OffRamps{Store: p.db, Screener: screener, Provider: p.config.Momo.Provider}, &activities.Bank{Store: p.db}, &activities.House{Store: p.db},
		&activities.OTC{Store: p.db}, &activities.Withdrawals{Store: p.db, Screener: screener}, &activities.BankRefunds{Store: p.db}, &activities.Swaps{Store: p.db}, &activities.MultisigRows{Store: p.db}, &activities.Proposals{Store: p.db},
		&activities.Escrow{Store: p.db}, &activities.Sweeps{Store: p.db}, &activities.ChainRefunds{Store: p.db},
		&activities.Transfers{Store: p.db, Screener: screener}, &activities.Approvals{Store: p.db}, &activities.Intents{Store: p.db}, &activities.DepositWaits{Store: p.db},
		&activities.Reconciliation{Store: p.db}, rates,
		&activities.Relay{Store: p.db, Waker: worker.WebhookFlows{Client: p.temporal}},
		&activities.Files{Store: p.db, Objects: objects, Now: time.Now},
	}, nil
}

// rates creates the activities of rates, with the source if one is configured.
func (c Config) rates(db *store.Store) (*activities.Rates, error) {
	r := &activities.Rates{Store: db, Name: c.Rates.Source, Life: c.Rates.Life}
	if c.Rates.URL == "" {
		return r, nil
	}
	source, err := service.NewRates(c.Rates.URL, c.Rates.Token)
	if err != nil {
		return nil, fmt.Errorf("KIVUKO_RATES_URL: %w", err)
	}
	r.Source = source
	return r, nil
}

// momo creates the activities that use the mobile money operator.
func (p parts) momo() ([]any, error) {
	operator, err := p.config.openOperator()
	if err != nil {
		return nil, err
	}
	rows, name, key := p.db, p.config.Momo.Provider, p.config.Momo.CallbackKey
	return []any{
		&activities.Momo{Store: rows, Operator: operator, Provider: name, Now: time.Now},
		&activities.Payouts{Store: rows, Operator: operator, Provider: name, CallbackKey: key, Now: time.Now},
		&activities.Refunds{Store: rows},
		&activities.Float{
			Store: rows, Operator: operator, Waker: worker.FloatFlows{Client: p.temporal}, Provider: name, CallbackKey: key, Now: time.Now,
		},
		&activities.Statement{Store: rows, Operator: operator, Now: time.Now},
	}, nil
}

func (c Config) buildID() string {
	if c.Worker.BuildID != "" {
		return c.Worker.BuildID
	}
	return version()
}

// dialTemporal prepares the connection. It connects at the first use, so that a process may start before Temporal.
func dialTemporal(p process, metrics prometheus.Registerer) (client.Client, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	var overTLS *tls.Config
	if p.config.Temporal.TLS {
		overTLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return worker.DialLazy(worker.ClientConfig{
		Address: p.config.Temporal.Address, Namespace: p.config.Temporal.Namespace, TLS: overTLS,
		Certificate: p.config.Temporal.Certificate, PrivateKey: p.config.Temporal.PrivateKey,
		APIKey: p.config.Temporal.APIKey, Keys: payloadKeys(p.config), Identity: fmt.Sprintf("kivuko@%s:%d", host, os.Getpid()),
		Logger: p.log, Metrics: metrics, Dial: crash.Dial(),
	})
}

func payloadKeys(c Config) []worker.Key {
	out := make([]worker.Key, len(c.Temporal.PayloadKeys))
	for i, k := range c.Temporal.PayloadKeys {
		out[i] = worker.Key{ID: k.ID, Secret: k.Key}
	}
	return out
}

// hostOf returns the host and port of a URL, or "".
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	if u.Port() != "" {
		return u.Host
	}
	if u.Scheme == "http" {
		return u.Host + ":80"
	}
	return u.Host + ":443"
}
