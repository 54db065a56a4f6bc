package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// Mode says how strict the service is about its own set-up.
type Mode string

// Local runs on one machine with development secrets and embedded chains. Production refuses to
// start with any of them.
const (
	Local      Mode = "local"
	Production Mode = "production"
)

// Config is everything that the environment may say. This file is the only place of the product that
// reads the environment; packages receive values. Each process checks only the parts it uses.
type Config struct {
	Mode        Mode   `env:"MODE" envDefault:"local"`
	DatabaseURL string `env:"DATABASE_URL"`
	LogLevel    string `env:"LOG_LEVEL" envDefault:"info"`
	// Runbooks is where operators read docs/operations.md: what the details of parked flows link to.
	Runbooks string `env:"RUNBOOKS" envDefault:"docs/operations.md"`

	API      APIConfig      `envPrefix:"API_"`
	Temporal TemporalConfig `envPrefix:"TEMPORAL_"`
	Codec    CodecConfig    `envPrefix:"CODEC_"`
	Worker   WorkerConfig   `envPrefix:"WORKER_"`
	Tron     TronConfig     `envPrefix:"TRON_"` // the networks are in networks.go
	Ethereum EthereumConfig `envPrefix:"ETHEREUM_"`
	Solana   SolanaConfig   `envPrefix:"SOLANA_"`
	Momo     MomoConfig     `envPrefix:"MOMO_"`
	Sending  SendingConfig  `envPrefix:"SENDING_"`
	Admin    AdminConfig    `envPrefix:"ADMIN_"`
	Limits   LimitsConfig   `envPrefix:"LIMIT_"`
	Deposits DepositsConfig `envPrefix:"DEPOSITS_"`

	// Screening is asked about everybody outside of our custody: by the queue flows about who sent the crypto of a sale
	// and who gets a transfer, by signers before any other payment is signed.
	Screening ScreeningConfig `envPrefix:"SCREENING_"`

	// Rates is where rates of crypto come from beside admins.
	Rates RatesConfig `envPrefix:"RATES_"`

	// WebhookKeys seal the secrets that events are signed with; without them there are no webhooks. The first one
	// seals. The API and the queue webhooks have them.
	WebhookKeys Keyring `env:"WEBHOOK_KEYS"` // id:hex of 32 bytes

	// MasterKey seals wallet keys: hcvault://… (Vault transit), awskms://…, or file:///… (local only).
	MasterKey     string   `env:"MASTER_KEY"`
	OldMasterKeys []string `env:"OLD_MASTER_KEYS"` // only open what they sealed
	VaultToken    string   `env:"VAULT_TOKEN"`
	// ColdPublicKey is the file with the public half of the cold key, with which the signer seals the keys of new
	// cold wallets. ColdKey is the file with the private half, on the cold machine alone.
	ColdPublicKey string `env:"COLD_PUBLIC_KEY"`
	ColdKey       string `env:"COLD_KEY"`
	// SignerCeilings bound a single payment of an asset ("USDT:20000,USDC:20000"), whoever approved it:
	// the signer's own limit, which a row in the database can't lift.
	SignerCeilings map[string]string `env:"SIGNER_CEILINGS"`
}

// APIConfig is what the API process needs beside the database and Temporal.
type APIConfig struct {
	Listen         string        `env:"LISTEN" envDefault:"127.0.0.1:8080"`
	PublicURL      string        `env:"PUBLIC_URL" envDefault:"http://127.0.0.1:8080"`
	TokenKeys      Keyring       `env:"TOKEN_KEYS"` // id:hex of 32 bytes, comma-separated; the first one signs
	PINPepper      HexKey        `env:"PIN_PEPPER"` // 32 bytes in hex
	SpoolDir       string        `env:"SPOOL_DIR" envDefault:".local/spool"`
	CallbackIPs    []string      `env:"CALLBACK_IPS"`    // addresses or prefixes of the operator; empty: any
	MetricsReaders []string      `env:"METRICS_READERS"` // addresses or prefixes that may read /metrics; empty: any
	TrustedProxies []string      `env:"TRUSTED_PROXIES"`
	DrainTimeout   time.Duration `env:"DRAIN_TIMEOUT" envDefault:"20s"`
	RateFactor     int           `env:"RATE_FACTOR" envDefault:"1"` // multiplies every rate limit
}

// TemporalConfig says where Temporal is; temporal.yaml says how the service uses it.
type TemporalConfig struct {
	Address     string  `env:"ADDRESS"`
	Namespace   string  `env:"NAMESPACE"`
	TLS         bool    `env:"TLS"`
	APIKey      string  `env:"API_KEY"`
	PayloadKeys Keyring `env:"PAYLOAD_KEYS"` // id:hex of 32 bytes; the first one encrypts
}

// CodecConfig is the endpoint that lets the Web UI read encrypted payloads.
type CodecConfig struct {
	Listen string `env:"LISTEN" envDefault:"127.0.0.1:8081"`
	Origin string `env:"ORIGIN" envDefault:"http://127.0.0.1:8233"`
	// Open lets everybody who reaches the address read payloads. It counts on the local stack only,
	// whose Web UI has no login; otherwise an access token of staff is asked for.
	Open bool `env:"OPEN"`
}

// WorkerConfig is what each worker process needs.
type WorkerConfig struct {
	MetricsListen string `env:"METRICS_LISTEN"`
	BuildID       string `env:"BUILD_ID"`
	// Promote makes this build the current version at start. Deployments promote by hand or by
	// pipeline; the local stack has nobody to do it.
	Promote bool `env:"PROMOTE"`
}

// MomoConfig is the mobile money operator's account of this deployment.
type MomoConfig struct {
	BaseURL            string `env:"BASE_URL"`
	ConsumerKey        string `env:"CONSUMER_KEY"`
	ConsumerSecret     string `env:"CONSUMER_SECRET"`
	Shortcode          string `env:"SHORTCODE"`
	Passkey            string `env:"PASSKEY"`
	PayoutShortcode    string `env:"PAYOUT_SHORTCODE"`
	Initiator          string `env:"INITIATOR"`
	SecurityCredential string `env:"SECURITY_CREDENTIAL"` // the initiator's password, encrypted for the operator
	CallbackKey        HexKey `env:"CALLBACK_KEY"`        // 32 bytes in hex: payouts' callback addresses are derived from it
	StandingToken      string `env:"STANDING_TOKEN"`      // 64 hexadecimal digits: the addresses that belong to no attempt
	CallbackURL        string `env:"CALLBACK_URL" envDefault:"http://127.0.0.1:8080/api/v1/callbacks/momo"`
	Development        bool   `env:"DEVELOPMENT"`    // the operator is the sandbox of the local stack
	Hakikisha          bool   `env:"HAKIKISHA"`      // ask whose a number is before money goes there
	RejectUnknown      bool   `env:"REJECT_UNKNOWN"` // let in only payments to our number that something waits for
}

// RatesConfig names a source of FX rates; without a URL admins enter them all. The protocol is that of
// activities.HTTPRates.
type RatesConfig struct {
	URL    string        `env:"URL"`
	Token  string        `env:"TOKEN"`
	Source string        `env:"SOURCE" envDefault:"feed"` // its name in the books
	Life   time.Duration `env:"LIFE" envDefault:"1h"`     // from a rate's moment until nothing is priced by it
}

func (r RatesConfig) check(n *need, mode Mode) {
	n.rule(mode != Production || r.URL == "" || strings.HasPrefix(r.URL, "https://"), "KIVUKO_RATES_URL must be https in production")
	n.rule(exchange.ValidRateSource(r.Source) && r.Source != exchange.RateSourceAdmin, "KIVUKO_RATES_SOURCE must be a short name in small letters, and not admin")
	n.rule(r.Life >= exchange.MinRateLife && r.Life <= exchange.MaxRateLife, "KIVUKO_RATES_LIFE must be between a minute and a week")
}

// AdminConfig makes the first admin at migration time, if there is none.
type AdminConfig struct {
	Email    string `env:"EMAIL"`
	Phone    string `env:"PHONE"`
	Password string `env:"PASSWORD"`
}

// HexKey is a secret of 32 bytes that prints as nothing.
type HexKey []byte

// UnmarshalText reads 64 hexadecimal digits.
func (k *HexKey) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != 32 {
		return errors.New("must be 64 hexadecimal digits")
	}
	*k = b
	return nil
}

// String hides the key.
func (k HexKey) String() string { return "[redacted]" }

// GoString hides the key.
func (k HexKey) GoString() string { return "[redacted]" }

// NamedKey is a key of a ring.
type NamedKey struct {
	ID  string
	Key HexKey
}

// Keyring is an ordered set of named keys; the first is used for new things, the others still read
// old ones.
type Keyring []NamedKey

// UnmarshalText reads "id:hex,id:hex".
func (r *Keyring) UnmarshalText(text []byte) error {
	for _, part := range strings.Split(string(text), ",") {
		id, digits, ok := strings.Cut(part, ":")
		if !ok || id == "" {
			return errors.New("must be id:hex, comma-separated")
		}
		k := NamedKey{ID: id}
		if err := k.Key.UnmarshalText([]byte(digits)); err != nil {
			return fmt.Errorf("key %s %w", id, err)
		}
		*r = append(*r, k)
	}
	return nil
}

// loadConfig reads KIVUKO_* variables, and the files that KIVUKO_*_FILE name.
func loadConfig() (Config, error) {
	variables, err := withFiles(env.ToMap(os.Environ()))
	if err != nil {
		return Config{}, err
	}
	c, err := env.ParseAsWithOptions[Config](env.Options{Prefix: variablePrefix, Environment: variables})
	if err != nil {
		return Config{}, fmt.Errorf("configuration: %w", nameVariables(err))
	}
	if c.Mode != Local && c.Mode != Production {
		return Config{}, fmt.Errorf("configuration: KIVUKO_MODE must be local or production, not %q", c.Mode)
	}
	return c, nil
}

// nameVariables says which variables a parse error is about: the library knows only the names of fields.
func nameVariables(err error) error {
	all, ok := errors.AsType[env.AggregateError](err)
	if !ok {
		return err
	}
	var named []error
	for _, e := range all.Errors {
		if p, ok := errors.AsType[env.ParseError](e); ok {
			e = fmt.Errorf("%s: %w", strings.Join(variablesOf(reflect.TypeFor[Config](), p.Name, "KIVUKO_"), " or "), p.Err)
		}
		named = append(named, e)
	}
	return errors.Join(named...)
}

// variablesOf lists the variables of the fields with a name. Two parts of the configuration may have
// fields of one name; an error then names both.
func variablesOf(t reflect.Type, field, prefix string) []string {
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		if inner, ok := f.Tag.Lookup("envPrefix"); ok {
			names = append(names, variablesOf(f.Type, field, prefix+inner)...)
		} else if f.Name == field {
			names = append(names, prefix+f.Tag.Get("env"))
		}
	}
	return names
}

// need collects what is missing for one process, so that a person sees all of it at once.
type need struct{ problems []string }

func (n *need) set(name, value string) {
	if value == "" {
		n.problems = append(n.problems, name+" must be set")
	}
}

func (n *need) rule(ok bool, problem string) {
	if !ok {
		n.problems = append(n.problems, problem)
	}
}

func (n *need) err() error {
	if len(n.problems) == 0 {
		return nil
	}
	return errors.New("configuration:\n  " + strings.Join(n.problems, "\n  "))
}

func (c Config) checkTemporal(n *need) {
	n.rule(len(c.Temporal.PayloadKeys) > 0, "KIVUKO_TEMPORAL_PAYLOAD_KEYS must be set")
	if c.Mode == Production {
		n.rule(c.Temporal.TLS || loopback(c.Temporal.Address), "KIVUKO_TEMPORAL_TLS must be true: in production Temporal is reached over TLS unless it is on this machine")
		n.rule(!c.Temporal.PayloadKeys.development(), "KIVUKO_TEMPORAL_PAYLOAD_KEYS holds a development key")
	}
}

func (c Config) checkAPI(n *need) {
	n.rule(len(c.API.TokenKeys) > 0, "KIVUKO_API_TOKEN_KEYS must be set")
	n.rule(len(c.API.PINPepper) > 0, "KIVUKO_API_PIN_PEPPER must be set")
	c.checkWebhooks(n)
	c.checkStanding(n)
	c.checkRunbooks(n)
	if c.Mode == Production {
		n.rule(!c.API.TokenKeys.development(), "KIVUKO_API_TOKEN_KEYS holds a development key")
		n.rule(!developmentKey(c.API.PINPepper), "KIVUKO_API_PIN_PEPPER is a development secret")
		n.rule(strings.HasPrefix(c.API.PublicURL, "https://"), "KIVUKO_API_PUBLIC_URL must be https in production")
		n.rule(len(c.API.MetricsReaders) > 0, "KIVUKO_API_METRICS_READERS must be set in production: without it everybody may read /metrics")
	}
}

// checkRunbooks wants an address to which a heading can be added, and that a browser opens from the Web UI.
func (c Config) checkRunbooks(n *need) {
	u, err := url.Parse(c.Runbooks)
	whole := err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
	n.rule(c.Runbooks == "docs/operations.md" || (whole && !strings.ContainsAny(c.Runbooks, "#() ")),
		"KIVUKO_RUNBOOKS must be the http or https address of the page, without a heading")
}

func (c Config) checkCodec(n *need) {
	n.rule(len(c.Temporal.PayloadKeys) > 0, "KIVUKO_TEMPORAL_PAYLOAD_KEYS must be set")
	n.rule(len(c.API.TokenKeys) > 0 || c.Codec.Open, "KIVUKO_API_TOKEN_KEYS must be set: the codec endpoint asks for an access token")
	if !c.Codec.Open {
		c.checkDatabase(n)
	}
	n.rule(!c.Codec.Open || loopback(c.Codec.Listen), "KIVUKO_CODEC_OPEN needs a loopback KIVUKO_CODEC_LISTEN")
	if c.Mode == Production {
		n.rule(!c.Codec.Open, "KIVUKO_CODEC_OPEN must be off in production")
		n.rule(!c.Temporal.PayloadKeys.development(), "KIVUKO_TEMPORAL_PAYLOAD_KEYS holds a development key")
		n.rule(!c.API.TokenKeys.development(), "KIVUKO_API_TOKEN_KEYS holds a development key")
	}
}

// checkQueues checks what a worker of the queues needs, and nothing more: a process that serves no
// signer queue should not even be given the master key.
func (c Config) checkQueues(queues []string) error {
	var n need
	c.checkDatabase(&n)
	c.checkTemporal(&n)
	c.checkLimits(&n)
	c.checkRunbooks(&n)
	for _, q := range queues {
		switch {
		case q == "flows":
			c.Screening.check(&n, c.Mode)
			c.Rates.check(&n, c.Mode)
		case q == "momo":
			c.checkMomo(&n)
		case q == "webhooks":
			n.rule(len(c.WebhookKeys) > 0, "KIVUKO_WEBHOOK_KEYS must be set to serve the queue webhooks")
			c.checkWebhooks(&n)
		case strings.HasPrefix(q, "chain-"):
			c.checkNetwork(&n, q)
			c.checkSending(&n)
		case strings.HasPrefix(q, "signer-"):
			c.checkNetwork(&n, q)
			c.checkKeys(&n)
			c.Screening.check(&n, c.Mode)
		}
	}
	return n.err()
}

// checkMomo checks what the queue momo needs: what every client of the operator does, and what payouts are made with.
func (c Config) checkMomo(n *need) {
	c.checkOperator(n)
	n.set("KIVUKO_MOMO_PAYOUT_SHORTCODE", c.Momo.PayoutShortcode)
	n.set("KIVUKO_MOMO_INITIATOR", c.Momo.Initiator)
	n.set("KIVUKO_MOMO_SECURITY_CREDENTIAL", c.Momo.SecurityCredential)
	n.rule(len(c.Momo.CallbackKey) > 0, "KIVUKO_MOMO_CALLBACK_KEY must be set")
	n.rule(c.Mode != Production || !developmentKey(c.Momo.CallbackKey), "KIVUKO_MOMO_CALLBACK_KEY is a development secret")
}

// checkOperator checks what a client of the operator needs, whatever it asks.
func (c Config) checkOperator(n *need) {
	for name, v := range map[string]string{
		"BASE_URL": c.Momo.BaseURL, "CONSUMER_KEY": c.Momo.ConsumerKey, "CONSUMER_SECRET": c.Momo.ConsumerSecret,
		"SHORTCODE": c.Momo.Shortcode, "PASSKEY": c.Momo.Passkey, "CALLBACK_URL": c.Momo.CallbackURL,
	} {
		n.set("KIVUKO_MOMO_"+name, v)
	}
	c.checkStanding(n)
	if c.Mode == Production {
		n.rule(!c.Momo.Development, "KIVUKO_MOMO_DEVELOPMENT must be off in production: the sandbox moves no money")
		n.rule(strings.HasPrefix(c.Momo.BaseURL, "https://"), "KIVUKO_MOMO_BASE_URL must be https in production")
		n.rule(strings.HasPrefix(c.Momo.CallbackURL, "https://"), "KIVUKO_MOMO_CALLBACK_URL must be https in production")
	}
}

// checkStanding checks the token of the addresses that belong to no attempt. The workers give them to the operator and
// the API knows its notices by them, so that each of the two must have it.
func (c Config) checkStanding(n *need) {
	token := c.Momo.StandingToken
	if c.Mode == Production && token == "" {
		n.rule(false, "KIVUKO_MOMO_STANDING_TOKEN must be set in production: without it neither notices of payments nor our balances arrive")
	}
	_, err := hex.DecodeString(token)
	n.rule(token == "" || (err == nil && len(token) == 64 && token == strings.ToLower(token)), "KIVUKO_MOMO_STANDING_TOKEN must be 64 hexadecimal digits in small letters")
	n.rule(c.Mode != Production || token != hex.EncodeToString(developmentKeys()["standing"]), "KIVUKO_MOMO_STANDING_TOKEN is a development secret")
}

func (c Config) checkKeys(n *need) {
	n.set("KIVUKO_MASTER_KEY", c.MasterKey)
	n.rule(c.ColdKey == "", "KIVUKO_COLD_KEY must not be set here: a signer must not be able to open the keys of cold wallets")
	ceilings, err := c.ceilings()
	if err != nil {
		n.problems = append(n.problems, err.Error())
	}
	if c.Mode == Production {
		for _, asset := range c.signedAssets() {
			_, ok := ceilings[asset]
			n.rule(ok, "KIVUKO_SIGNER_CEILINGS must name "+string(asset)+": in production the signer bounds each payment by itself")
		}
		n.rule(!strings.HasPrefix(c.MasterKey, "file:"), "KIVUKO_MASTER_KEY must name a key service in production, not a file")
	}
}

func (c Config) ceilings() (map[money.Asset]money.Amount, error) {
	out := map[money.Asset]money.Amount{}
	for name, text := range c.SignerCeilings {
		asset := money.Asset(name)
		if !asset.Valid() {
			return nil, fmt.Errorf("KIVUKO_SIGNER_CEILINGS: %q is no asset of ours", name)
		}
		limit, err := money.Parse(asset, text)
		if err != nil || !limit.Positive() {
			return nil, fmt.Errorf("KIVUKO_SIGNER_CEILINGS: the ceiling of %s must be a decimal above zero", name)
		}
		out[asset] = limit
	}
	return out, nil
}

// signedAssets are the tokens of all networks that are on.
func (c Config) signedAssets() []money.Asset {
	var out []money.Asset
	for _, n := range c.networks() {
		for _, asset := range slices.Sorted(maps.Keys(n.tokens)) {
			if n.on && !slices.Contains(out, asset) {
				out = append(out, asset)
			}
		}
	}
	return out
}

// developmentMark is what every development key is derived from; see developmentKey.
const developmentMark = "kivuko development key "

// developmentKeys are the keys that the local stack uses. Each is the SHA-256 of a public text, so
// anybody knows them; production refuses them by value.
func developmentKeys() map[string]HexKey {
	keys := map[string]HexKey{}
	for _, name := range []string{"token", "payload", "pepper", "callback", "webhook", "standing"} {
		sum := sha256.Sum256([]byte(developmentMark + name))
		keys[name] = sum[:]
	}
	return keys
}

func developmentKey(k HexKey) bool {
	for _, d := range developmentKeys() {
		if string(d) == string(k) {
			return true
		}
	}
	return false
}

func (r Keyring) development() bool {
	for _, k := range r {
		if developmentKey(k.Key) {
			return true
		}
	}
	return false
}

// allLoopback tells whether every address of some lists is on this machine.
func allLoopback(lists ...[]string) bool {
	for _, a := range slices.Concat(lists...) {
		if !loopback(a) {
			return false
		}
	}
	return true
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		if u, uerr := url.Parse(address); uerr == nil {
			host = u.Hostname()
		}
	}
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}
