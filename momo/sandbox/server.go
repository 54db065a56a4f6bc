package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Defaults of a Config. None of them is a real account.
const (
	DefaultConsumerKey        = "sandbox-consumer-key"
	DefaultConsumerSecret     = "sandbox-consumer-secret"
	DefaultShortcode          = "174379"
	DefaultPasskey            = "sandbox-passkey"
	DefaultPayoutShortcode    = "600992"
	DefaultInitiatorName      = "sandbox"
	DefaultInitiatorPassword  = "sandbox-password"
	DefaultSecurityCredential = "sandbox-credential" // accepted besides the password encrypted for the certificate
	DefaultWalletOpening      = 300_000
	DefaultUtilityOpening     = 50_000_000
	DefaultWorkingOpening     = 1_000_000
	DefaultValidationTimeout  = 8 * time.Second // portal
)

// Limits of the operator (portal), in whole shillings.
const (
	maxTransaction = 250_000
	minPayout      = 10
	maxWallet      = 500_000
	maxDaily       = 500_000
	pullWindow     = 48 * time.Hour
	tokenLife      = 3599 * time.Second
)

// Config configures a sandbox. The zero Config is a sandbox in memory that responds at once, for tests.
type Config struct {
	Listen  string // "": a free port of 127.0.0.1
	Control string // "": the page and the control endpoints are served with the gateway
	Dir     string // of the books and the certificate; "": in memory

	ConsumerKey, ConsumerSecret, Shortcode, Passkey string
	PayoutShortcode, InitiatorName                  string
	InitiatorPassword, SecurityCredential           string

	// AnswerDelay is the time that a payer, or the queue of payouts, takes.
	AnswerDelay time.Duration
	// LateDelay is the additional time of late actions. A negative one waits for Release.
	LateDelay time.Duration
	// ValidationTimeout is how long a validation address may take; 0 is DefaultValidationTimeout.
	ValidationTimeout time.Duration
	// RuleLimit is how long a prompt with the amount and payer of a paid one is refused (result 17). The operator's limit is
	// two minutes; 0 switches the rule off.
	RuleLimit time.Duration
	// DailyLimit is what a wallet may move within 24 hours; 0: the operator's 500,000; negative: no limit.
	DailyLimit int64

	// Tariff is the charge of a payout by its amount, in ascending bands; the last band has no end. nil: DefaultTariff;
	// without bands payouts are free.
	Tariff []Band

	MagicAmounts  bool     // amounts of 66,0NN shillings select behaviours, as numbers do
	StringExpiry  bool     // expires_in is a string
	MSISDN        string   // in confirmations: "hashed" (the default), "masked" or "plain"
	CallbackHosts []string // names or addresses that callbacks may go to besides loopback

	WalletOpening, UtilityOpening, WorkingOpening int64 // 0: the default, negative: nothing

	Clock func() time.Time // nil: the system's
}

func (c *Config) defaults() {
	for _, d := range []struct {
		field *string
		value string
	}{
		{&c.Listen, "127.0.0.1:0"},
		{&c.ConsumerKey, DefaultConsumerKey},
		{&c.ConsumerSecret, DefaultConsumerSecret},
		{&c.Shortcode, DefaultShortcode},
		{&c.Passkey, DefaultPasskey},
		{&c.PayoutShortcode, DefaultPayoutShortcode},
		{&c.InitiatorName, DefaultInitiatorName},
		{&c.InitiatorPassword, DefaultInitiatorPassword},
		{&c.SecurityCredential, DefaultSecurityCredential},
		{&c.MSISDN, "hashed"},
	} {
		if *d.field == "" {
			*d.field = d.value
		}
	}
	for _, d := range []struct {
		field *int64
		value int64
	}{
		{&c.WalletOpening, DefaultWalletOpening},
		{&c.UtilityOpening, DefaultUtilityOpening},
		{&c.WorkingOpening, DefaultWorkingOpening},
		{&c.DailyLimit, maxDaily},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	c.WalletOpening, c.UtilityOpening, c.WorkingOpening = max(0, c.WalletOpening), max(0, c.UtilityOpening), max(0, c.WorkingOpening)
	if c.ValidationTimeout == 0 {
		c.ValidationTimeout = DefaultValidationTimeout
	}
	if c.Tariff == nil {
		c.Tariff = DefaultTariff()
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
}

// Server is a running sandbox. It is safe for concurrent use.
type Server struct {
	cfg         Config
	url         string
	controlURL  string
	credentials *credentials
	servers     []*http.Server
	callbacks   [2]*http.Client // the usual one, and one from an address that is not the operator's

	ctx    context.Context //nolint:containedctx // The life of the server's own goroutines, ended by Close.
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu         sync.Mutex
	ledger     *ledger
	faults     []Fault
	token      string
	tokenUntil time.Time
	busy       int           // goroutines that are not held back
	held       int           // goroutines that wait for Release
	release    chan struct{} // closed by Release
	idle       chan struct{} // closed when busy falls to zero
	failure    error         // of the journal: nothing is accepted any more
}

// New starts a sandbox. Prompts and payouts that an earlier one with the same Dir left open are resumed. The error names the
// invalid part of the configuration.
func New(cfg Config) (*Server, error) {
	cfg.defaults()
	if !slices.Contains([]string{"hashed", "masked", "plain"}, cfg.MSISDN) {
		return nil, errors.New("MSISDN: must be hashed, masked or plain")
	}
	s := &Server{cfg: cfg, ledger: newLedger(cfg.WalletOpening, cfg.WorkingOpening, cfg.UtilityOpening), release: make(chan struct{}), idle: make(chan struct{})}
	var err error
	if s.credentials, err = loadCredentials(cfg.Dir); err != nil {
		return nil, err
	}
	if cfg.Dir != "" {
		if err := s.ledger.load(filepath.Clean(cfg.Dir)); err != nil {
			return nil, err
		}
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.callbacks = [2]*http.Client{s.callbackClient(nil), s.callbackClient(net.IPv4(127, 0, 0, 66))}
	if err := s.listen(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.resume()
	return s, nil
}

func (s *Server) listen() error {
	gateway := http.NewServeMux()
	s.routeGateway(gateway)
	control := gateway
	if s.cfg.Control != "" {
		control = http.NewServeMux()
	}
	s.routeControl(control)
	var err error
	if s.url, err = s.serve(s.cfg.Listen, gateway); err != nil {
		return fmt.Errorf("gateway (Listen): %w", err)
	}
	s.controlURL = s.url
	if s.cfg.Control != "" {
		if s.controlURL, err = s.serve(s.cfg.Control, control); err != nil {
			return fmt.Errorf("control endpoints (Control): %w", err)
		}
	}
	return nil
}

func (s *Server) serve(address string, handler http.Handler) (string, error) {
	listener, err := new(net.ListenConfig).Listen(s.ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	s.servers = append(s.servers, server)
	s.work.Go(func() { _ = server.Serve(listener) })
	return "http://" + listener.Addr().String(), nil
}

// URL is the base address of the gateway.
func (s *Server) URL() string { return s.url }

// ControlURL is the base address of the page and the control endpoints.
func (s *Server) ControlURL() string { return s.controlURL }

// CertificatePEM is the certificate that encrypts initiator passwords for this sandbox.
func (s *Server) CertificatePEM() string { return string(s.credentials.certificate) }

// Close stops the sandbox. Open prompts and payouts stay in the books, to be resumed.
func (s *Server) Close() error {
	s.cancel()
	var errs []error
	for _, server := range s.servers {
		errs = append(errs, server.Close())
	}
	s.work.Wait()
	for _, c := range s.callbacks {
		c.CloseIdleConnections()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure == nil {
		s.failure = errors.New("the sandbox is closed")
	}
	return errors.Join(append(errs, s.ledger.close())...)
}

// Books copies the operator's records.
func (s *Server) Books() Books {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.books()
}

// Set appends a fault to the queue.
func (s *Server) Set(f Fault) error {
	b, err := lookup(f.Behaviour)
	if err != nil {
		return err
	}
	if f.Op != "" && !b.has(f.Op) {
		return fmt.Errorf("op: %s is not for %q", b.Name, f.Op)
	}
	if f.Times == 0 {
		f.Times = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
	return nil
}

// Reset clears all faults.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// pick returns the behaviour of a request: that of the first matching fault, otherwise that of the number or amount.
func (s *Server) pick(op, phone string, amount int64) Behaviour {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.faults {
		f := &s.faults[i]
		b, err := lookup(f.Behaviour)
		if err != nil || !b.has(op) || (f.Op != "" && f.Op != op) || (f.Phone != "" && f.Phone != phone) {
			continue
		}
		if f.Times--; f.Times == 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
		} else {
			f.Times = max(f.Times, -1)
		}
		return b
	}
	return magic(op, phone, amount, s.cfg.MagicAmounts)
}

// start runs work in the background until Close.
func (s *Server) start(work func()) {
	s.mu.Lock()
	s.busy++
	s.mu.Unlock()
	s.work.Go(func() {
		defer s.pause(-1, 0)
		work()
	})
}

// pause counts goroutines and wakes Settle when none is busy.
func (s *Server) pause(busy, held int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy += busy
	s.held += held
	if s.busy == 0 {
		close(s.idle)
		s.idle = make(chan struct{})
	}
}

// Settle waits until nothing is running except what waits for Release.
func (s *Server) Settle(ctx context.Context) error {
	for {
		s.mu.Lock()
		busy, idle := s.busy, s.idle
		s.mu.Unlock()
		if busy == 0 {
			return nil
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Release continues everything that is held back as late.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy, s.held = s.busy+s.held, 0
	close(s.release)
	s.release = make(chan struct{})
}

// wait waits for the answer delay or the late delay. It returns false when the sandbox is closing.
func (s *Server) wait(late bool) bool {
	delay := s.cfg.AnswerDelay
	if late {
		delay = s.cfg.LateDelay
	}
	if delay == 0 {
		return s.ctx.Err() == nil
	}
	if late && delay < 0 {
		return s.hold()
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// hold waits for Release, which counts the waiter as busy again.
func (s *Server) hold() bool {
	s.mu.Lock()
	release := s.release
	s.mu.Unlock()
	s.pause(-1, 1)
	select {
	case <-release:
		return true
	case <-s.ctx.Done():
		s.pause(1, -1)
		return false
	}
}

// write appends to the books. After a failure the sandbox accepts nothing any more.
func (s *Server) write(rec record) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writeLocked(rec)
}

func (s *Server) writeLocked(rec record) bool {
	if s.failure != nil {
		return false
	}
	s.failure = s.ledger.append(rec)
	return s.failure == nil
}

// resume continues what an earlier sandbox left open.
func (s *Server) resume() {
	s.mu.Lock()
	prompts, payouts := slices.Clone(s.ledger.promptIDs), slices.Clone(s.ledger.payoutIDs)
	s.mu.Unlock()
	for _, id := range prompts {
		s.start(func() { s.runPrompt(id) })
	}
	for _, id := range payouts {
		s.start(func() { s.runPayout(id) })
	}
}
