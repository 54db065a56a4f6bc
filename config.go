package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/caarlos0/env/v11"

	"kivuko/api"
	"kivuko/exchange"
	"kivuko/workflows"
)

// Mode is how strict the service is about its own configuration.
type Mode string

// Local runs on one machine with development secrets and embedded chains. Production refuses to
// start with any of them.
const (
	Local      Mode = "local"
	Production Mode = "production"
)

// Config is the whole configuration. Only this file reads the environment; packages receive values. Each process checks
// only the parts that it uses.
//
// The tags of a field describe its variable; the field's comment is the meaning. docs/configuration.md is generated from
// both, and config_variables.go checks what the tags require:
//
//	env, envDefault   the name without its prefix, and the default
//	for               the processes that read it: commands, kinds of queues, "workers" (all queues) or "all"
//	need              those of them that refuse to start without it
//	production        what production requires in addition: "required", "off", "https", or a rule in words that a check enforces
//	secret            "true" where the value is a secret
type Config struct {
	// `local` or `production`. Production refuses development secrets, embedded chains, sandboxes and unencrypted connections.
	Mode Mode `env:"MODE" envDefault:"local" for:"all"`
	// PostgreSQL, as `postgres://…`. Production requires `sslmode=verify-full`, unless the database is on this machine.
	DatabaseURL string `env:"DATABASE_URL" for:"api codec workers migrate quarantine freeze resume rewrap rewrap-files audit-verify" need:"api workers migrate quarantine freeze resume rewrap rewrap-files audit-verify" production:"required" secret:"true"`
	// The lowest level that is logged: `debug`, `info`, `warn` or `error`.
	LogLevel slog.Level `env:"LOG_LEVEL" envDefault:"info" for:"all"`
	// The address where your operators read docs/runbooks.md: a full http or https URL without a heading. The details of parked
	// flows and `GET /parked` link to it.
	Runbooks string `env:"RUNBOOKS" envDefault:"docs/runbooks.md" for:"api workers"`

	API      APIConfig      `envPrefix:"API_" title:"API"`
	Admin    AdminConfig    `envPrefix:"ADMIN_" title:"First admin"`
	Temporal TemporalConfig `envPrefix:"TEMPORAL_" title:"Temporal"`
	Codec    CodecConfig    `envPrefix:"CODEC_" title:"Codec"`
	Worker   WorkerConfig   `envPrefix:"WORKER_" title:"Workers"`
	Audit    AuditConfig    `envPrefix:"AUDIT_" title:"Audit log"`
	Limits   LimitsConfig   `envPrefix:"LIMIT_" title:"Limits"`
	Notify   NotifyConfig   `envPrefix:"NOTIFY_" title:"Messages"`
	Momo     MomoConfig     `envPrefix:"MOMO_" title:"Mobile money"`
	Rates    RatesConfig    `envPrefix:"RATES_" title:"Rates"`

	// Screening checks every party outside of our custody. The queue flows checks the sender of a sale's crypto and the
	// recipient of a transfer; signers check the recipient of every other payment before they sign it.
	Screening ScreeningConfig `envPrefix:"SCREENING_" title:"Screening"`
	Files     FilesConfig     `envPrefix:"FILES_" title:"Files"`
	Keys      KeysConfig      `envPrefix:"" title:"Keys"`
	Sending   SendingConfig   `envPrefix:"SENDING_" title:"Sending"`
	Deposits  DepositsConfig  `envPrefix:"DEPOSITS_" title:"Deposits"`

	Tron     TronConfig     `envPrefix:"TRON_" network:"tron" title:"TRON"` // the networks are in networks.go
	Ethereum EthereumConfig `envPrefix:"ETHEREUM_" network:"ethereum" title:"Ethereum"`
	Solana   SolanaConfig   `envPrefix:"SOLANA_" network:"solana" title:"Solana"`
}

// APIConfig is what the API process needs besides the database and Temporal.
type APIConfig struct {
	// The address and port where the API listens.
	Listen string `env:"LISTEN" envDefault:"127.0.0.1:8080" for:"api health"`
	// The public address of the API. The details of parked flows and the links in messages lead to it, and passkeys belong to its
	// host, which can't be an IP address.
	PublicURL string `env:"PUBLIC_URL" envDefault:"http://localhost:8080" for:"api flows codec" production:"required https"`
	// `id:` and 64 hexadecimal digits, several for rotation. The first makes access and refresh tokens, all of them verify.
	TokenKeys Keyring `env:"TOKEN_KEYS" for:"api codec" need:"api" production:"required" secret:"true"`
	// `id:` and 64 hexadecimal digits, several for rotation. PINs and passwords are hashed with the first, and checked with all of
	// them; a login hashes anew what another one hashed. If one is lost, the users that it is needed for have to set a new PIN and
	// password.
	Peppers Keyring `env:"PEPPERS" for:"api migrate" need:"api" production:"required" secret:"true"`
	// The directory where callbacks wait while the database is down. It must outlive the process.
	SpoolDir string `env:"SPOOL_DIR" envDefault:".local/spool" for:"api"`
	// Addresses or prefixes of the mobile money operator. A callback from another address is a reason to ask the operator, and is
	// no evidence. If empty, every address is the operator's.
	CallbackIPs Prefixes `env:"CALLBACK_IPS" for:"api" production:"required"`
	// Addresses or prefixes that may read `/metrics`. If empty, every address may read it.
	MetricsReaders Prefixes `env:"METRICS_READERS" for:"api" production:"required"`
	// Web pages whose scripts may call the API with a token of their own: exact origins, as `https://office.example`. If empty,
	// no other site's scripts may.
	Origins []string `env:"ORIGINS" for:"api"`
	// Addresses or prefixes of proxies whose `X-Forwarded-For` is trusted. Without them every caller has the proxy's address.
	TrustedProxies Prefixes `env:"TRUSTED_PROXIES" for:"api" production:"required"`
	// How long running requests may take to finish when the process is stopped.
	DrainTimeout time.Duration `env:"DRAIN_TIMEOUT" envDefault:"20s" for:"api"`
	// Multiplies every rate limit, for load tests.
	RateFactor int `env:"RATE_FACTOR" envDefault:"1" for:"api"`
}

// TemporalConfig is the connection to Temporal; temporal.yaml describes how the service uses it.
type TemporalConfig struct {
	// Host and port of Temporal. Values that are not set here, and the authority that signed its certificate, come from the variables
	// and files of the `temporal` command line.
	Address string `env:"ADDRESS" for:"api workers apply resume"`
	// The namespace, in place of the one in `temporal.yaml`.
	Namespace string `env:"NAMESPACE" for:"api workers apply resume"`
	// Whether Temporal is reached over TLS.
	TLS bool `env:"TLS" for:"api workers apply resume" production:"required unless Temporal is on this machine"`
	// The certificate (PEM) with which the process shows Temporal who it is. Each process has one of its own.
	Certificate string `env:"CERTIFICATE" for:"api workers apply resume" production:"required unless Temporal is on this machine or takes an API key"`
	// The private key (PEM) of that certificate.
	PrivateKey string `env:"PRIVATE_KEY" for:"api workers apply resume" secret:"true"`
	// The API key, for a Temporal that requires one.
	APIKey string `env:"API_KEY" for:"api workers apply resume" secret:"true"`
	// `id:` and 64 hexadecimal digits, several for rotation. The first encrypts payloads, all of them decrypt. Keep each one as long
	// as a history exists that it encrypted. Names begin with the key's domain and a dot: `flows.1`, `momo.1`, `chain.1`, `signer.1`,
	// `webhooks.1`. What a flow hands to another queue is encrypted with that domain's key. The workers of flows and the codec have all
	// domains' keys, the API and `apply` those of `flows`, every other worker only its own.
	PayloadKeys Keyring `env:"PAYLOAD_KEYS" for:"api codec workers apply resume" need:"api codec workers apply resume" secret:"true"`
}

// CodecConfig is the endpoint that lets the Web UI read encrypted payloads.
type CodecConfig struct {
	// The address and port where the codec endpoint listens.
	Listen string `env:"LISTEN" envDefault:"127.0.0.1:8081" for:"codec health"`
	// The address of the Web UI in a browser, which alone may use the endpoint. Where `KIVUKO_CODEC_UI` is set, staff log in there by
	// password and passkey, so its host must be that of `KIVUKO_API_PUBLIC_URL` or below it.
	Origin string `env:"ORIGIN" envDefault:"http://localhost:8233" for:"api codec"`
	// The address of the Web UI's own server (`http://temporal-ui:8080`), which nobody else may reach. The process then serves the Web
	// UI behind the login of staff, with the endpoint below `/codec`. If empty, it serves the endpoint alone.
	UI string `env:"UI" for:"codec"`
	// The address of the API at which staff log in to the Web UI.
	API string `env:"API" for:"codec"`
	// Allows every client that reaches the address to read payloads. For the local stack, whose Web UI has no login. Otherwise the
	// endpoint requires an access token of staff.
	Open bool `env:"OPEN" for:"codec" production:"off"`
}

// WorkerConfig is what each worker process needs.
type WorkerConfig struct {
	// The address and port where the worker serves `/metrics`. If empty, it serves none.
	MetricsListen string `env:"METRICS_LISTEN" for:"workers health"`
	// The build that flows are pinned to; the commit unless set.
	BuildID string `env:"BUILD_ID" for:"workers"`
	// Makes this build the current version at start, for the local stack. Deployments promote a build by hand or by pipeline.
	Promote bool `env:"PROMOTE" for:"workers"`
	// How many whole months events stay in the event log, at least 3. Older ones are archived in tables of their own, which the API does not
	// read. If 0, they stay for ever.
	EventsKept int `env:"EVENTS_KEPT" for:"flows"`
}

// AdminConfig is the first admin, whom the migration creates if there is no admin.
type AdminConfig struct {
	// The e-mail address of the first admin, whom `kivuko migrate` creates if there is none.
	Email string `env:"EMAIL" for:"migrate"`
	// The admin's phone number; required with the e-mail address.
	Phone string `env:"PHONE" for:"migrate"`
	// The admin's password; required with the e-mail address. Unset it afterwards.
	Password string `env:"PASSWORD" for:"migrate" secret:"true"`
}

// Prefixes are ranges of addresses.
type Prefixes []netip.Prefix

// UnmarshalText reads comma-separated addresses and prefixes.
func (p *Prefixes) UnmarshalText(text []byte) error {
	for _, t := range strings.Split(string(text), ",") {
		if a, err := netip.ParseAddr(t); err == nil {
			*p = append(*p, netip.PrefixFrom(a, a.BitLen()))
			continue
		}
		prefix, err := netip.ParsePrefix(t)
		if err != nil {
			return fmt.Errorf("%q is neither an address nor a prefix", t)
		}
		*p = append(*p, prefix)
	}
	return nil
}

// UnmarshalText reads local or production.
func (m *Mode) UnmarshalText(text []byte) error {
	*m = Mode(text)
	if *m != Local && *m != Production {
		return fmt.Errorf("must be local or production, not %q", text)
	}
	return nil
}

// loadConfig reads KIVUKO_* variables, and the files that KIVUKO_*_FILE name.
func loadConfig() (Config, error) {
	values, err := withFiles(env.ToMap(os.Environ()))
	if err != nil {
		return Config{}, err
	}
	c, err := env.ParseAsWithOptions[Config](env.Options{Prefix: variablePrefix, Environment: values})
	if err != nil {
		return Config{}, nameVariables(err, values)
	}
	return c, nil
}

// nameVariables adds the names of the variables to a parse error: the library knows only the names of fields. Two parts of
// the configuration may have fields of the same name; only set ones can be wrong.
func nameVariables(err error, values map[string]string) error {
	all, ok := errors.AsType[env.AggregateError](err)
	if !ok {
		return fmt.Errorf("configuration: %w", err)
	}
	var n need
	for _, e := range all.Errors {
		p, ok := errors.AsType[env.ParseError](e)
		if !ok {
			n.problems = append(n.problems, e.Error())
			continue
		}
		var names []string
		for _, v := range (Config{}).variables() {
			if v.field.Name == p.Name && values[v.name] != "" {
				names = append(names, v.name)
			}
		}
		n.problems = append(n.problems, fmt.Sprintf("%s: %v", strings.Join(names, " or "), p.Err))
	}
	return n.err()
}

// need collects all problems of a process, so that an operator sees them at once.
type need struct{ problems []string }

func (n *need) set(name, value string) {
	n.rule(value != "", name+" must be set")
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
	return errors.New("configuration:\n  " + strings.Join(n.problems, "\n  ") + "\ndocs/configuration.md describes every variable.")
}

// check reports every missing variable of a process, and every rule that its variables break. A process is a command or
// a queue of a worker.
func (c Config) check(processes ...string) error {
	var n need
	for _, p := range processes {
		c.checkTags(&n, p)
		c.checkRules(&n, p)
	}
	slices.Sort(n.problems)
	n.problems = slices.Compact(n.problems)
	return n.err()
}

// checkRules checks the rules that the tags can't express.
func (c Config) checkRules(n *need, process string) {
	kind, _ := kindOf(process)
	if reads("api codec workers migrate quarantine resume rewrap rewrap-files audit-verify", kind) {
		c.checkDatabase(n)
	}
	if reads("api workers apply resume", kind) {
		n.rule(c.Mode != Production || c.Temporal.TLS || loopback(c.Temporal.Address),
			"KIVUKO_TEMPORAL_TLS must be true: in production Temporal is reached over TLS unless it is on this machine")
		n.rule(c.Mode != Production || c.Temporal.Certificate != "" || c.Temporal.APIKey != "" || loopback(c.Temporal.Address),
			"KIVUKO_TEMPORAL_CERTIFICATE must be set: in production each process shows Temporal a certificate unless it is on this machine")
		n.rule((c.Temporal.Certificate == "") == (c.Temporal.PrivateKey == ""), "KIVUKO_TEMPORAL_CERTIFICATE and KIVUKO_TEMPORAL_PRIVATE_KEY must both be set")
	}
	if reads("api codec workers apply resume", kind) {
		c.checkPayloadKeys(n, kind)
	}
	if reads("api workers", kind) {
		c.checkRunbooks(n)
	}
	if reads("api momo momo-register", kind) {
		c.checkStandingToken(n)
	}
	if reads("api flows momo momo-register", kind) {
		_, err := c.operator()
		n.rule(err == nil, fmt.Sprint(err))
	}
	if reads("workers", kind) {
		c.checkLimits(n)
	}
	n.rule(kind != "flows" || c.Worker.EventsKept == 0 || c.Worker.EventsKept >= exchange.LeastEventMonths,
		fmt.Sprintf("KIVUKO_WORKER_EVENTS_KEPT must be 0 or at least %d months", exchange.LeastEventMonths))
	switch kind {
	case "api":
		c.checkAPI(n)
	case "codec":
		c.checkCodec(n)
	case "migrate":
		c.checkAdmin(n)
	case "rewrap":
		c.checkMaster(n)
	case "rewrap-files":
		c.checkFilesMaster(n)
	case "flows":
		c.checkFiles(n)
		c.Screening.check(n, c.Mode)
		c.Rates.check(n)
	case "chain":
		c.checkNetwork(n, process)
		c.checkSending(n)
		c.checkDeposits(n)
	case "signer":
		c.checkNetwork(n, process)
		c.checkKeys(n)
		c.Screening.check(n, c.Mode)
	}
}

// checkAPI checks the rules for the API.
func (c Config) checkAPI(n *need) {
	c.checkFiles(n)
	c.checkFilesMaster(n)
	c.Notify.check(n, c.Mode)
	for _, origin := range c.API.Origins {
		if err := api.CheckOrigin(origin); err != nil {
			n.rule(false, fmt.Sprintf("KIVUKO_API_ORIGINS: %q %v", origin, err))
		}
	}
	for _, network := range c.networks() {
		if network.on {
			network.check(n)
		}
	}
}

// checkRunbooks requires an address to which a heading can be added, and that a browser can open from the Web UI.
func (c Config) checkRunbooks(n *need) {
	u, err := url.Parse(c.Runbooks)
	whole := err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != ""
	n.rule(c.Runbooks == workflows.RunbooksPage || (whole && !strings.ContainsAny(c.Runbooks, "#() ")),
		"KIVUKO_RUNBOOKS must be the http or https address of the page, without a heading")
}

func (c Config) checkCodec(n *need) {
	n.rule(len(c.API.TokenKeys) > 0 || c.Codec.Open || c.Mode == Production, "KIVUKO_API_TOKEN_KEYS must be set: the codec endpoint requires an access token")
	n.rule(c.DatabaseURL != "" || c.Codec.Open || c.Mode == Production, "KIVUKO_DATABASE_URL must be set: the codec endpoint looks up the user of an access token")
	n.rule(!c.Codec.Open || loopback(c.Codec.Listen), "KIVUKO_CODEC_OPEN requires a loopback address in KIVUKO_CODEC_LISTEN")
	if c.Codec.UI == "" {
		return
	}
	n.rule(!c.Codec.Open, "KIVUKO_CODEC_OPEN and KIVUKO_CODEC_UI must not both be set: the Web UI is behind a login")
	for name, value := range map[string]string{"KIVUKO_CODEC_UI": c.Codec.UI, "KIVUKO_CODEC_API": c.Codec.API, "KIVUKO_CODEC_ORIGIN": c.Codec.Origin} {
		u, err := url.Parse(value)
		n.rule(err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && u.Path == "", name+" must be an http or https address without a path")
		n.rule(err != nil || name != "KIVUKO_CODEC_ORIGIN" || u.Scheme == "https" || loopback(u.Host), name+" must be https, or on this machine: a password is sent there")
	}
	n.rule(api.TakesPasskeys(c.Codec.Origin, c.API.PublicURL),
		"KIVUKO_CODEC_ORIGIN must be at the host of KIVUKO_API_PUBLIC_URL or below it: passkeys of staff work nowhere else")
}

func (c Config) checkAdmin(n *need) {
	if c.Admin.Email != "" {
		n.set("KIVUKO_ADMIN_PHONE", c.Admin.Phone)
		n.set("KIVUKO_ADMIN_PASSWORD", c.Admin.Password)
		n.rule(len(c.API.Peppers) > 0, "KIVUKO_API_PEPPERS must be set: the first admin's password is hashed with it")
	}
}

// allLoopback reports whether every address of some lists is on this machine.
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
