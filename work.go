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
	"kivuko/chain"
	"kivuko/chain/keys"
	"kivuko/chain/tron"
	"kivuko/exchange"
	"kivuko/momo"
	"kivuko/store"
	"kivuko/worker"
	"kivuko/workflows"
)

// tronPoll is the wait between two looks at a transaction: TRON's block time.
const tronPoll = 3 * time.Second

// operatorName is the provider on attempt rows.
const operatorName = "daraja"

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
	if err := p.config.checkQueues(queues); err != nil {
		return err
	}
	if err := keys.HardenProcess(); err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	db, err := store.Open(ctx, p.config.DatabaseURL, store.Options{Logger: p.log})
	if err != nil {
		return err
	}
	defer closing(p, db)
	metrics := prometheus.NewRegistry()
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
	return work(ctx, p, temporal, parts, metrics, worker.Options{
		Estate: estate, Queues: queues, BuildID: p.config.buildID(), Logger: p.log, Promote: p.config.Worker.Promote,
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
	parts := worker.Parts{}
	closers := func() {}
	var err error
	for _, q := range queues {
		switch q {
		case workflows.QueueFlows:
			parts.Flows = &activities.Orders{Store: rows}
		case workflows.QueueMomo:
			err = addMomo(p, rows, &parts)
		case workflows.QueueChain(exchange.Tron), workflows.QueueSigner(exchange.Tron):
			var c *tron.Client
			if c, err = newTron(p.config); err == nil {
				before := closers
				closers = func() { c.Close(); before() }
				err = addTron(p, q, db, c, &parts)
			}
		}
		if err != nil {
			closers()
			return parts, nil, err
		}
	}
	return crashPoints(parts), closers, nil
}

func addMomo(p process, rows worker.Rows, parts *worker.Parts) error {
	m := p.config.Momo
	operator, err := momo.New(momo.Config{
		BaseURL: m.BaseURL, ConsumerKey: m.ConsumerKey, ConsumerSecret: m.ConsumerSecret, Shortcode: m.Shortcode,
		Passkey: m.Passkey, PayoutShortcode: m.PayoutShortcode, InitiatorName: m.Initiator,
		SecurityCredential: m.SecurityCredential, CallbackBase: m.CallbackURL, StandingToken: m.StandingToken,
	})
	if err != nil {
		return err
	}
	parts.Momo = &activities.Momo{Store: rows, Operator: operator, Provider: operatorName, Now: time.Now}
	parts.Refund = &activities.Refunds{
		Store: rows, Operator: operator, Provider: operatorName, CallbackKey: m.CallbackKey, Now: time.Now,
	}
	return nil
}

func addTron(p process, queue string, db *store.Store, c *tron.Client, parts *worker.Parts) error {
	rows := worker.Rows{Store: db}
	if queue == workflows.QueueChain(exchange.Tron) {
		parts.Chains = map[exchange.Network]*activities.Chain{exchange.Tron: {Store: rows, Client: c, Poll: p.config.tronPoll()}}
		return nil
	}
	vault, err := keys.Open(keys.Config{
		MasterKey: p.config.MasterKey, OldMasterKeys: p.config.OldMasterKeys, VaultToken: p.config.VaultToken,
		CreateLocal: p.config.Mode == Local, Production: p.config.Mode == Production,
	})
	if err != nil {
		return err
	}
	ceilings, err := p.config.ceilings()
	if err != nil {
		return err
	}
	signer, err := keys.NewPaymentSigner(keys.PaymentSignerConfig{
		Store: crashSigning(worker.SigningRows{Store: db}), Vault: vault, Clients: map[exchange.Network]chain.Client{exchange.Tron: c},
		Ceilings: ceilings,
	})
	if err != nil {
		return err
	}
	maker := worker.KeyMaker{Vault: vault, Networks: map[exchange.Network]worker.AddressMaker{exchange.Tron: c}}
	parts.Sign = map[exchange.Network]*activities.Signing{exchange.Tron: {Signer: signer, Store: rows}}
	parts.Wallet = map[exchange.Network]*activities.Wallets{exchange.Tron: {Keys: maker, Store: rows}}
	return nil
}

func newTron(c Config) (*tron.Client, error) {
	endpoints := func(addresses []string) []tron.Endpoint {
		out := make([]tron.Endpoint, len(addresses))
		for i, a := range addresses {
			out[i] = tron.Endpoint{Address: a, TLS: c.Tron.TLS, APIKey: c.Tron.APIKey}
		}
		return out
	}
	return tron.New(tron.Config{
		FullNodes: endpoints(c.Tron.FullNodes), SolidityNodes: endpoints(c.Tron.SolidityNodes), Tokens: c.tronTokens(),
		USDCEnabled: c.Tron.USDCEnabled, TransactionLife: c.Tron.Life,
	})
}

// tronPoll is the network's block time, or what a test's faster chain asks for.
func (c Config) tronPoll() time.Duration {
	if c.Tron.Development && c.Tron.Poll > 0 {
		return c.Tron.Poll
	}
	return tronPoll
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
		Logger: p.log, Metrics: metrics,
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
