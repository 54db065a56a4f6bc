package main

import (
	"context"
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
	"kivuko/momo"
	"kivuko/store"
	"kivuko/worker"
	"kivuko/workflows"
)

// operatorName is the provider on attempt rows.
const operatorName = exchange.ProviderDaraja

// runWorker serves task queues. What a process can do follows from what it is configured with: only
// one with a master key can serve a signer queue.
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
	estate, err := worker.ParseEstate(temporalYAML)
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
	db, err := openStore(ctx, p, store.Options{Limits: p.config.limits(), Commits: crash.Commits()})
	if err != nil {
		return err
	}
	defer closing(p, db)
	metrics, err := newRegistry(db)
	if err != nil {
		return err
	}
	var counted prometheus.Registerer // nil where nobody can read them, because counting is not free
	if p.config.Worker.MetricsListen != "" {
		counted = metrics
	}
	temporal, err := dialTemporal(p, counted)
	if err != nil {
		return err
	}
	defer temporal.Close()
	parts, done, err := assemble(p, db, queues)
	if err != nil {
		return err
	}
	defer done()
	if parts.Relay != nil {
		parts.Relay.Waker = worker.WebhookFlows{Client: temporal}
	}
	if parts.Float != nil {
		parts.Float.Waker = worker.FloatFlows{Client: temporal}
	}
	return work(ctx, p, temporal, parts, metrics, worker.Options{
		Estate: estate, Queues: queues, BuildID: p.config.buildID(), Logger: p.log, Promote: p.config.Worker.Promote,
		Interceptors: crash.Interceptors(),
	})
}

func work(ctx context.Context, p process, temporal client.Client, parts worker.Parts, metrics *prometheus.Registry, o worker.Options) error {
	g, ctx := errgroup.WithContext(ctx)
	if p.config.Worker.MetricsListen != "" {
		g.Go(func() error { return serveMetrics(ctx, p, metrics) })
	}
	g.Go(func() error {
		err := worker.Run(ctx, temporal, parts, o)
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

// assemble makes the parts that the queues need, and a function that closes them.
func assemble(p process, db *store.Store, queues []string) (worker.Parts, func(), error) {
	rows := worker.Rows{Store: db}
	parts := worker.Parts{
		Chains: map[exchange.Network]*activities.Chain{}, Sign: map[exchange.Network]*activities.Signing{},
		Wallet: map[exchange.Network]*activities.Wallets{}, Watch: map[exchange.Network]*activities.Deposits{},
		Compare: map[exchange.Network]*activities.Comparing{}, Cold: map[exchange.Network]*activities.Cold{},
	}
	open := drivers{config: p.config, open: map[exchange.Network]driver{}}
	for _, q := range queues {
		var err error
		switch q {
		case workflows.QueueFlows:
			parts.Flows = &activities.Orders{Store: rows}
			parts.Decide = &activities.Approvals{Store: rows}
			parts.Waits = &activities.DepositWaits{Store: rows}
			parts.Pool, parts.Bank = &activities.Escrow{Store: rows}, &activities.Bank{Store: rows}
			parts.Back, parts.Sweep = &activities.ChainRefunds{Store: rows}, &activities.Sweeps{Store: rows}
			parts.Relay = &activities.Relay{Store: rows}
			parts.Reconcile = &activities.Reconciliation{Store: rows}
			parts.Send, err = p.config.transfers(rows)
			if err == nil {
				parts.Sale, err = p.config.sales(rows)
			}
			if err == nil {
				parts.Rates, err = p.config.rates(rows)
			}
		case workflows.QueueMomo:
			err = addMomo(p, rows, &parts)
		case workflows.QueueWebhooks:
			parts.Hooks, err = p.config.webhooks(rows)
		default:
			err = addNetwork(p, q, db, open, &parts)
		}
		if err != nil {
			open.close()
			return parts, nil, err
		}
	}
	return parts, open.close, nil
}

// transfers makes the activities of transfers.
func (c Config) transfers(rows worker.Rows) (*activities.Transfers, error) {
	screener, err := c.screener()
	return &activities.Transfers{Store: rows, Screener: screener}, err
}

// sales makes the activities of orders that sell crypto.
func (c Config) sales(rows worker.Rows) (*activities.OffRamps, error) {
	screener, err := c.screener()
	return &activities.OffRamps{Store: rows, Screener: screener}, err
}

// rates makes the activities of rates, with the source where one is configured.
func (c Config) rates(rows worker.Rows) (*activities.Rates, error) {
	r := &activities.Rates{Store: rows, Name: c.Rates.Source, Life: c.Rates.Life}
	if c.Rates.URL == "" {
		return r, nil
	}
	source, err := activities.NewHTTPRates(c.Rates.URL, c.Rates.Token)
	if err != nil {
		return nil, fmt.Errorf("KIVUKO_RATES_URL: %w", err)
	}
	r.Source = source
	return r, nil
}

func addMomo(p process, rows worker.Rows, parts *worker.Parts) error {
	m := p.config.Momo
	operator, err := momo.New(p.config.momo())
	if err != nil {
		return err
	}
	parts.Momo = &activities.Momo{Store: rows, Operator: operator, Provider: operatorName, Now: time.Now}
	parts.List = &activities.Statement{Store: rows, Operator: operator, Now: time.Now}
	parts.Refund = &activities.Refunds{
		Store: rows, Operator: operator, Provider: operatorName, CallbackKey: m.CallbackKey, Now: time.Now,
	}
	parts.Float = &activities.Float{Store: rows, Operator: operator, Provider: operatorName, CallbackKey: m.CallbackKey, Now: time.Now}
	parts.Payout = &activities.Payouts{
		Store: rows, Operator: operator, Provider: operatorName, CallbackKey: m.CallbackKey, Now: time.Now,
	}
	return nil
}

// momo is what a client of the mobile money operator needs.
func (c Config) momo() momo.Config {
	m := c.Momo
	return momo.Config{
		BaseURL: m.BaseURL, ConsumerKey: m.ConsumerKey, ConsumerSecret: m.ConsumerSecret, Shortcode: m.Shortcode,
		Passkey: m.Passkey, PayoutShortcode: m.PayoutShortcode, InitiatorName: m.Initiator,
		SecurityCredential: m.SecurityCredential, CallbackBase: m.CallbackURL, StandingToken: m.StandingToken,
		CheckPayees: m.Hakikisha,
	}
}

func (c Config) buildID() string {
	if c.Worker.BuildID != "" {
		return c.Worker.BuildID
	}
	return version()
}

// dialTemporal prepares the connection; it is made when it is first used, so that a process may start
// before Temporal does.
func dialTemporal(p process, metrics prometheus.Registerer) (client.Client, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return worker.DialLazy(worker.ClientConfig{
		Address: p.config.Temporal.Address, Namespace: p.config.Temporal.Namespace, TLS: p.config.Temporal.TLS,
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

// hostOf is the host and port of a URL, "" for none.
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
