package api

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-webauthn/webauthn/webauthn"
	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"
)

// server is what handlers share. It has no state of requests.
type server struct {
	Deps
	log      *slog.Logger
	now      func() time.Time
	ring     *keyring
	hasher   *hasher
	passkeys *webauthn.WebAuthn
	sessions *sessionCache
	limits   map[limitClass]fiber.Handler
	metrics  *metrics
	inbox    *Inbox
	document []byte // openapi.yaml as JSON
	unknown  *window
	wakers   *wakers
	reads    chan struct{} // one entry for each running read of a chain
	uploads  uploads
	ready    readiness
	// testTimeout replaces the time limits of requests in tests, so that a busy machine does not fail them; zero keeps them.
	testTimeout time.Duration
}

// within returns a time limit of requests.
func (s *server) within(limit time.Duration) time.Duration { return cmp.Or(s.testTimeout, limit) }

// New builds the API. It refuses an invalid configuration.
func New(d Deps) (*fiber.App, error) {
	s, err := newServer(d)
	if err != nil {
		return nil, err
	}
	return s.app()
}

func newServer(d Deps) (*server, error) {
	if err := d.Config.Validate(); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	if d.Store == nil || d.Flows == nil || d.Answer == nil {
		return nil, fmt.Errorf("api: store, flows and the answers to notices are required")
	}
	d.Config.setDefaults()
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Metrics == nil {
		d.Metrics = prometheus.NewRegistry()
	}
	s := &server{
		Deps: d, log: d.Logger, now: d.Now, unknown: newWindow(d.Config.Rates.Unknown, d.Now), wakers: newWakers(maxWakers),
		reads: make(chan struct{}, maxChainReads),
	}
	var err error
	if s.sessions, err = newSessionCache(d.Now); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	if s.ring, err = newKeyring(d.Config.Issuer, d.Config.TokenKeys); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	if s.hasher, err = newHasher(d.Config.Peppers, d.Config.Argon2); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	if s.passkeys, err = newRelyingParty(d.Config); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	if s.document, err = Document(); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	if s.inbox, err = NewInbox(d); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	if s.metrics, err = newMetrics(d.Metrics); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	s.limits = s.limiters()
	return s, nil
}

func (s *server) app() (*fiber.App, error) {
	app := fiber.New(fiber.Config{
		AppName:               "kivuko",
		Immutable:             true, // values outlive the request in logs, caches and flows
		CaseSensitive:         true,
		StrictRouting:         true,
		BodyLimit:             maxBody,
		StreamRequestBody:     true, // see body.go
		ReadBufferSize:        maxHeaderBytes,
		ReadTimeout:           s.within(readTimeout),
		WriteTimeout:          s.within(writeTimeout),
		IdleTimeout:           s.within(idleTimeout),
		DisableStartupMessage: true,
		JSONEncoder:           encode,
		ErrorHandler: func(fc *fiber.Ctx, err error) error {
			harden(fc)
			return s.writeError(fc, err)
		},
	})
	table := s.routes()
	app.Server().Handler, app.Server().HeaderReceived = routable(app.Server().Handler), s.patience(table)
	app.Server().DisablePreParseMultipartForm, app.Server().ExpectHandler = true, s.expected(app)
	app.Use(s.outer, s.browsers(table))
	app.Hooks().OnShutdown(func() error {
		s.wakers.wait.Wait()
		return nil
	})
	if err := checkRoutes(table); err != nil {
		return nil, err
	}
	for i := range table {
		s.mount(app, &table[i])
	}
	return app, nil
}

// mount registers a route. The general limit comes after identification, so that it can count per user, and
// before everything expensive.
func (s *server) mount(app *fiber.App, r *route) {
	chain := []fiber.Handler{s.identify(r)}
	if h := s.limits[limitGeneral]; h != nil && r.limit != limitNone {
		chain = append(chain, h)
	}
	if h := s.limits[r.limit]; h != nil && r.limit != limitGeneral {
		chain = append(chain, h)
	}
	chain = append(chain, s.serve)
	app.Add(r.method, fiberPath(r.path), chain...)
}

// serve enforces the rules of a route and runs its handler.
func (s *server) serve(fc *fiber.Ctx) error {
	c := callOf(fc)
	if err := s.authorise(c); err != nil {
		return err
	}
	if !c.route.form {
		limit := cmp.Or(c.route.body, defaultBody)
		if err := readBody(fc, limit); err != nil {
			return err
		}
		if len(fc.Request().Body()) > limit {
			return fiber.ErrRequestEntityTooLarge
		}
	}
	if err := c.expectations(); err != nil {
		return err
	}
	if c.route.key == keyNone {
		return s.conditional(c)
	}
	return s.idempotent(c)
}
