package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/files"
	"kivuko/momo"
	"kivuko/store"
)

// Limits of the HTTP edge. Each is part of the contract (docs/contract.md).
const (
	maxBody          = 1 << 20          // the server's own limit; routes set lower ones
	defaultBody      = 64 << 10         // a JSON request
	callbackBody     = 64 << 10         // a notice of the mobile money operator
	unknownBody      = 4 << 10          // what is stored of a notice to an unknown address
	maxHeaderBytes   = 8 << 10          // request line and headers; above it 431
	maxJSONDepth     = 8                // nested objects and arrays in a request
	maxBearerLength  = 2 << 10          // an access token; above it 401
	maxFooterLength  = 256              // the part of a token that is read before the token is verified
	maxRefreshLength = 1 << 10          // a refresh token
	maxPageID        = 1_000_000        // deeper pages are refused: large offsets are slow
	maxPageSize      = 100              // where an operation has no bounds of its own
	defaultPageSize  = 20               //
	maxQueryLength   = 100              // characters of a search
	maxIdempotency   = 255              // characters of an Idempotency-Key
	maxLabelLength   = 80               // characters of a wallet's label
	maxNoteLength    = 500              // characters of an operator's note
	requestTimeout   = 10 * time.Second // the deadline of a request's calls to store and Temporal
	flowTimeout      = 20 * time.Second // the same where a flow must answer
	readTimeout      = 15 * time.Second
	writeTimeout     = 30 * time.Second
	idleTimeout      = 60 * time.Second
	uploadTimeout    = 3 * time.Minute // until a file has arrived and is stored
	importTimeout    = 3 * time.Minute // until a bank's statement is stored
	downloadTimeout  = 2 * time.Minute // until an answer was sent
	sessionCacheLife = 5 * time.Second // for how long another process may still accept a revoked session
	sessionCacheSize = 10_000
)

// Lifetimes of tokens.
const (
	AccessTokenLife  = 15 * time.Minute
	RefreshTokenLife = 30 * 24 * time.Hour
	DeviceTokenLife  = 400 * 24 * time.Hour
)

// Rate is a number of requests per time from one caller. The zero Rate is the default of its class. A negative Max
// switches the limit of the class off.
type Rate struct {
	Max int
	Per time.Duration
}

// Rates are the rate limits by class. Each process counts for itself. They are the first line of defence; the
// counters that guard PINs are in the database.
type Rates struct {
	Login       Rate // logins and registrations, per address; default 10 a minute
	Refresh     Rate // per address; default 30 a minute
	Search      Rate // per user; default 5 a second
	OrderCreate Rate // per user; default 10 a minute
	Upload      Rate // of files, per user; default 30 a minute
	General     Rate // everything else, per user, or per address without one; default 600 a minute
	Unknown     Rate // callbacks to unknown addresses, stored per process; default 60 a minute
}

// Argon2 bounds the work of password hashing. One hash takes 19 MiB and about 30 ms of a core.
type Argon2 struct {
	Parallel int // hashes at a time; default twice the cores
	Queue    int // requests that may wait; above it 503; default 100
}

// Guesses are how much the counters in the database let somebody guess. There is one for each account and way to prove it,
// apart for each device that the account knows, for what only looks like it, and for all others together, and one for each address.
type Guesses struct {
	Account store.Delays // default: five, then a minute, doubling up to a day; kept for 30 days
	Codes   store.Delays // one-time codes that an account asks for; default: ten, then a minute, doubling up to an hour
	Public  store.Delays // those that an address asks for without an account; default: 50, then a minute, doubling up to five
	Address store.Delays // more, because networks share addresses; default: 50, then a minute, doubling up to 15 minutes
}

// Config is the configuration of the API. It comes from main; no other package reads the environment.
type Config struct {
	// TokenKeys are the keys of access and refresh tokens. The first one signs, all of them verify. To rotate, add the
	// new key at the end in every process. Move it to the front when every process has it. Remove the old key after the
	// lifetime of a refresh token; sessions that were not refreshed until then end.
	TokenKeys []Key
	// Peppers are mixed into passwords and PINs before they are hashed, and into the fingerprints of request bodies. They
	// are kept outside the database. The first one hashes, all of them verify; a login renews a hash of another one. To
	// rotate, add the new one at the end in every process, move it to the front, and remove the old one when the accounts
	// that have not logged in since may need a reset.
	Peppers []Key
	Issuer  string // names this installation in tokens; default "kivuko"
	// PublicURL is where people reach this service. Links in messages lead there, and passkeys belong to its host. The default
	// is http://localhost:8080.
	PublicURL string

	// Operator is the name, as payments have it, of the mobile money operator whose float and breaker are shown.
	Operator string

	// TrustedProxies may name the client in X-Forwarded-For. From all other peers the header is ignored.
	TrustedProxies []netip.Prefix
	// CallbackSources are the addresses from which the mobile money operator calls. A callback from
	// elsewhere is stored with a flag and raises an alert; it is not dropped. Empty: no check.
	CallbackSources []netip.Prefix
	// StandingToken is the token of the callback addresses that belong to no attempt; "" where there are none.
	// It gives no access: it separates notices of the operator from noise.
	StandingToken string
	// RejectUnknown rejects a payment in the operator's validation request when nothing waits for the payment. Otherwise
	// all are accepted: an unmatched payment becomes an exception for an operator, a rejected one is lost.
	RejectUnknown bool
	// MetricsReaders may read /metrics; others get 404. Empty: everybody.
	MetricsReaders []netip.Prefix
	// Origins are the web pages, as exact origins, whose scripts may call the API. Empty: none.
	Origins []string
	// WebUI is the origin at which staff log in to Temporal's Web UI. Its scripts may not call the API; passkeys work there.
	WebUI string
	// SpoolDir keeps callbacks while the database is down. It must exist and be writable.
	SpoolDir string

	Rates   Rates
	Argon2  Argon2
	Guesses Guesses
}

// Deps is what the API works with.
type Deps struct {
	Config Config
	Store  *store.Store
	Flows  Flows
	// Addresses check an address that is to be paid and return its canonical form. They fail with an *exchange.Error
	// whose message continues after the field's name ("has a wrong checksum"). A network that is not in the map
	// has no orders and no wallets.
	Addresses map[exchange.Network]func(string) (string, error)
	// AnyAddresses check an address that is named but not paid: contracts and burn addresses pass too.
	AnyAddresses map[exchange.Network]func(string) (string, error)
	// Joints read what owners of an account of several owners sign out of its stored form, after the driver of the network has checked the
	// bytes. A network that is not in the map shows none.
	Joints map[exchange.Network]func(stored []byte) (JointView, error)
	// Signatures verify an owner's signature of what a stored form says, without a node, and return whose it is. They fail with CodeInvalid
	// and the check that the signature fails. Without an entry only the flow's worker verifies.
	Signatures map[exchange.Network]func(stored, signature []byte) (owner string, err error)
	// Balances read what an address holds at a network's newest final block. Without an entry, or when no node
	// answers, only the ledger's balances of a wallet are shown.
	Balances map[exchange.Network]func(ctx context.Context, address string, a money.Asset) (exchange.ChainBalance, error)
	// Counts read how many transactions of an address a network counts. They fail with CodeUnsupported on a network
	// that does not number transactions.
	Counts map[exchange.Network]func(ctx context.Context, address string) (exchange.SenderCount, error)
	// Refuses returns why an asset is not offered on a network ("its issuer has stopped it there"), as the rest
	// of a sentence, or "" when it is offered. Nil offers all.
	Refuses func(exchange.Network, money.Asset) string
	// Notices reads the operator's notices of payments to our number. With nil, only its statement is read.
	Notices ReadNotice
	// Answer returns what the operator expects as the answer to a notice.
	Answer func(momo.Answer) []byte
	// Health checks each dependency; the map's key is its name in /readyz. Without "postgres",
	// "schema" or "temporal" the service is not ready.
	Health map[string]func(context.Context) error
	// Files keeps the bytes of files; nil where none are taken.
	Files *files.Store
	// Webhooks is what endpoints need; nil where webhooks are not offered.
	Webhooks *Webhooks
	Logger   *slog.Logger          // default: discard
	Now      func() time.Time      // default: time.Now
	Metrics  *prometheus.Registry  // default: a registry of its own, served at /metrics
	Gather   []prometheus.Gatherer // also served at /metrics
}

func (c *Config) setDefaults() {
	rate := func(r *Rate, limit int, per time.Duration) {
		if r.Max == 0 {
			*r = Rate{limit, per}
		}
		if r.Per <= 0 {
			r.Per = per
		}
	}
	rate(&c.Rates.Login, 10, time.Minute)
	rate(&c.Rates.Refresh, 30, time.Minute)
	rate(&c.Rates.Search, 5, time.Second)
	rate(&c.Rates.OrderCreate, 10, time.Minute)
	rate(&c.Rates.Upload, 30, time.Minute)
	rate(&c.Rates.General, 600, time.Minute)
	rate(&c.Rates.Unknown, 60, time.Minute)
	number := func(n *int, d int) {
		if *n == 0 {
			*n = d
		}
	}
	number(&c.Argon2.Parallel, defaultHashers())
	number(&c.Argon2.Queue, 100)
	if c.Guesses.Account == (store.Delays{}) {
		c.Guesses.Account = store.Delays{Free: 5, Base: time.Minute, Most: 24 * time.Hour, Memory: 30 * 24 * time.Hour}
	}
	if c.Guesses.Codes == (store.Delays{}) {
		c.Guesses.Codes = store.Delays{Free: 10, Base: time.Minute, Most: time.Hour, Memory: time.Hour}
	}
	if c.Guesses.Public == (store.Delays{}) {
		c.Guesses.Public = store.Delays{Free: 50, Base: time.Minute, Most: 5 * time.Minute, Memory: time.Hour}
	}
	if c.Guesses.Address == (store.Delays{}) {
		c.Guesses.Address = store.Delays{Free: 50, Base: time.Minute, Most: 15 * time.Minute, Memory: time.Hour}
	}
	if c.PublicURL == "" {
		c.PublicURL = "http://localhost:8080"
	}
	if c.Issuer == "" {
		c.Issuer = "kivuko"
	}
}

// Validate returns an error that names every value with which the API can't start.
func (c Config) Validate() error {
	var bad []error
	bad = append(bad, checkRing("token keys", c.TokenKeys)...)
	bad = append(bad, checkRing("peppers", c.Peppers)...)
	for _, o := range c.Origins {
		if err := CheckOrigin(o); err != nil {
			bad = append(bad, fmt.Errorf("origins: %q %w", o, err))
		}
	}
	if c.Operator == "" {
		bad = append(bad, errors.New("operator: the name of the mobile money operator is required"))
	}
	if c.SpoolDir == "" {
		bad = append(bad, errors.New("spool directory: required to keep callbacks while the database is down"))
	}
	return errors.Join(bad...)
}

// checkRing returns what is wrong with a list of keys.
func checkRing(name string, ring []Key) (bad []error) {
	if len(ring) == 0 {
		bad = append(bad, fmt.Errorf("%s: at least one is required", name))
	}
	seen := map[string]bool{}
	for _, k := range ring {
		if k.ID == "" || len(k.ID) > 64 || !visibleASCII(k.ID) {
			bad = append(bad, fmt.Errorf("%s: the key id %q must be 1 to 64 visible characters", name, k.ID))
		}
		if seen[k.ID] {
			bad = append(bad, fmt.Errorf("%s: the id %q is used twice", name, k.ID))
		}
		if k.Secret == [32]byte{} {
			bad = append(bad, fmt.Errorf("%s: the secret of %q is empty", name, k.ID))
		}
		seen[k.ID] = true
	}
	return bad
}

func visibleASCII(s string) bool {
	for i := range len(s) {
		if s[i] < '!' || s[i] > '~' {
			return false
		}
	}
	return true
}
