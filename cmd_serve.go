package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"kivuko/api"
	"kivuko/chain/keys"
	"kivuko/exchange"
	"kivuko/store"
	"kivuko/webui"
	"kivuko/worker"
	"kivuko/workflows"
)

// messagePause is how often messages to people are looked for.
const messagePause = time.Second

// spoolPause is how often spooled callbacks are tried again.
const spoolPause = 5 * time.Second

// runAPI serves the REST API. It has no wallet keys and no secrets of the mobile money operator.
func runAPI(ctx context.Context, p process, _ []string) error {
	if err := p.config.check("api"); err != nil {
		return err
	}
	if err := keys.HardenProcess(); err != nil { // it holds the keys of files while it reads and writes them
		return err
	}
	workflows.UseRunbooks(p.config.Runbooks)
	db, err := openStore(ctx, p, store.RoleAPI, store.Options{Limits: store.Limits{SwapUSDCOnTron: p.config.Tron.USDCEnabled}})
	if err != nil {
		return err
	}
	defer closing(p, db)
	metrics, err := newRegistry(db)
	if err != nil {
		return err
	}
	temporal, err := dialTemporal(p, metrics)
	if err != nil {
		return err
	}
	defer temporal.Close()
	deps, err := apiDeps(p, db, temporal, metrics)
	if err != nil {
		return err
	}
	defer closing(p, deps.Files)
	held := newBalances(p.config)
	defer held.close()
	deps.Balances, deps.Counts, deps.Joints, deps.Signatures = held.readers(), held.counters(), held.joints(), held.signatures()
	app, err := api.New(deps)
	if err != nil {
		return err
	}
	return serveAPI(ctx, p, app, deps)
}

func apiDeps(p process, db *store.Store, temporal client.Client, metrics *prometheus.Registry) (api.Deps, error) {
	c := p.config.API
	hooks, err := p.config.webhookSecrets()
	if err != nil {
		return api.Deps{}, err
	}
	const private = 0o700
	if err := os.MkdirAll(c.SpoolDir, private); err != nil {
		return api.Deps{}, fmt.Errorf("spool directory: %w", err)
	}
	health := map[string]func(context.Context) error{
		"postgres": db.Ping,
		"schema":   db.CheckSchema,
		"temporal": func(ctx context.Context) error {
			_, err := temporal.CheckHealth(ctx, &client.CheckHealthRequest{})
			return err
		},
	}
	for _, n := range p.config.networks() {
		if n.on {
			health[string(n.name)] = reachable(n.node)
		}
	}
	if host := hostOf(p.config.Momo.BaseURL); host != "" {
		health["momo"] = reachable(host)
	}
	operator, err := p.config.operator()
	if err != nil {
		return api.Deps{}, err
	}
	kept, err := p.config.uploads()
	if err != nil {
		return api.Deps{}, err
	}
	health["files"] = kept.Reach
	payable, all := p.config.addresses()
	return api.Deps{
		Config: api.Config{
			TokenKeys: namedKeys(c.TokenKeys), Peppers: namedKeys(c.Peppers), PublicURL: c.PublicURL, Operator: operator.name, TrustedProxies: c.TrustedProxies, CallbackSources: c.CallbackIPs, MetricsReaders: c.MetricsReaders, Origins: c.Origins, WebUI: p.config.Codec.Origin,
			SpoolDir: c.SpoolDir, StandingToken: p.config.Momo.StandingToken, RejectUnknown: p.config.Momo.RejectUnknown, Rates: rates(c.RateFactor),
		},
		Store: db, Flows: api.NewFlows(temporal), Health: health, Logger: p.log, Metrics: metrics,
		Addresses: payable, AnyAddresses: all, Refuses: p.config.refuses, Notices: operator.notices.ParseCallback, Answer: operator.notices.Answer, Webhooks: hooks, Files: kept,
	}, nil
}

// rates multiplies the default limits; a factor of one leaves them to the API.
func rates(factor int) api.Rates {
	if factor <= 1 {
		return api.Rates{}
	}
	r := api.DefaultRates()
	for _, limit := range []*api.Rate{&r.Login, &r.Refresh, &r.Search, &r.OrderCreate, &r.Upload, &r.General, &r.Unknown} {
		limit.Max *= factor
	}
	return r
}

// serveAPI listens until ctx ends and then lets running requests finish.
func serveAPI(ctx context.Context, p process, app *fiber.App, deps api.Deps) error {
	inbox, err := api.NewInbox(deps)
	if err != nil {
		return err
	}
	senders, err := p.config.Notify.senders()
	if err != nil {
		return err
	}
	messenger, err := api.NewMessenger(deps, senders)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.config.API.Listen)
	if err != nil {
		return fmt.Errorf("api: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return app.Listener(listener) })
	g.Go(func() error {
		inbox.Run(ctx, spoolPause)
		return nil
	})
	g.Go(func() error {
		messenger.Run(ctx, messagePause)
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		return app.ShutdownWithTimeout(p.config.API.DrainTimeout)
	})
	p.log.Info("listening", "address", listener.Addr().String())
	return g.Wait()
}

// runCodec serves the endpoint through which the Web UI reads payloads, and the Web UI itself behind the login of staff if its address
// is configured. It checks the access token like the API does. The local stack's Web UI has no login and sends no token; there the
// loopback address is the guard.
func runCodec(ctx context.Context, p process, _ []string) error {
	if err := p.config.check("codec"); err != nil {
		return err
	}
	codec, err := worker.NewCodec(payloadKeys(p.config))
	if err != nil {
		return err
	}
	authorize := func(*http.Request) error { return nil }
	if !p.config.Codec.Open {
		db, err := openStore(ctx, p, store.RoleCodec, store.Options{})
		if err != nil {
			return err
		}
		defer closing(p, db)
		if authorize, err = api.StaffOnly(api.Config{TokenKeys: namedKeys(p.config.API.TokenKeys)}, db); err != nil {
			return err
		}
	}
	if p.config.Codec.UI == "" {
		return serveHTTP(ctx, p, p.config.Codec.Listen, worker.CodecHandler(codec, p.config.Codec.Origin, authorize))
	}
	gate, err := p.config.gate(codec, authorize)
	if err != nil {
		return err
	}
	return serveHTTP(ctx, p, p.config.Codec.Listen, gate)
}

// gate puts the Web UI and the codec endpoint behind the login of staff. Both addresses were checked with the configuration.
func (c Config) gate(codec *worker.Codec, staff func(*http.Request) error) (http.Handler, error) {
	ui, uiErr := url.Parse(c.Codec.UI)
	site, siteErr := url.Parse(c.Codec.API)
	if err := errors.Join(uiErr, siteErr); err != nil {
		return nil, err
	}
	behind := func(*http.Request) error { return nil } // the gate has asked
	proven := func(r *http.Request) error {
		err := staff(r)
		if exchange.CodeOf(err) == exchange.CodeStepUpRequired {
			return errors.Join(webui.ErrUnproven, err)
		}
		return err
	}
	return webui.New(webui.Config{
		Origin: c.Codec.Origin, UI: ui, API: site, Public: strings.TrimSuffix(c.API.PublicURL, "/"),
		Codec: worker.CodecHandler(codec, c.Codec.Origin, behind), Staff: proven,
	})
}

func namedKeys(r Keyring) []api.Key {
	out := make([]api.Key, len(r))
	for i, k := range r {
		out[i] = api.Key{ID: k.ID, Secret: [32]byte(k.Key)}
	}
	return out
}

// serveHTTP serves a handler until ctx ends.
func serveHTTP(ctx context.Context, p process, address string, h http.Handler) error {
	const headerTime, drain = 5 * time.Second, 5 * time.Second
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerTime}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		return server.Shutdown(ctx)
	})
	p.log.Info("listening", "address", listener.Addr().String())
	return g.Wait()
}

func serveMetrics(ctx context.Context, p process, metrics *prometheus.Registry) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return serveHTTP(ctx, p, p.config.Worker.MetricsListen, mux)
}

// reachable reports whether something listens at an address.
func reachable(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return c.Close()
	}
}

// closing closes the database or the store of files when a command ends. Errors are only logged, because everything is kept already.
func closing(p process, s io.Closer) {
	if err := s.Close(); err != nil {
		p.log.Warn("a store did not close", "error", err)
	}
}
