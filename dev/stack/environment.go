package stack

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kivuko/dev/certificates"
	"kivuko/dev/messages"
	"kivuko/dev/nodes/ethereum"
	"kivuko/dev/nodes/tron"
	"kivuko/exchange"
	"kivuko/momo/sandbox"
	"kivuko/worker"
)

// productDatabase is the product's own database.
const productDatabase = "kivuko"

// The first admin of a local stack. The stack listens only on loopback.
const (
	AdminEmail    = "admin@kivuko.example"
	AdminPhone    = "+254700000001"
	AdminPassword = "shillings for tokens, admin"
)

func portOf(address string) string {
	_, port, _ := strings.Cut(address, ":")
	return port
}

// baseEnvironment returns our own environment without the product's variables, which only
// ProductEnvironment sets.
func (s *Stack) baseEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "KIVUKO_") })
}

// secretsOf lists the processes that get a secret variable; the others don't need it. A variable whose prefix is not
// listed goes to all of them.
var secretsOf = map[string][]string{
	"MASTER_KEY":        {ProcessWorker("signer-tron"), ProcessWorker("signer-ethereum"), ProcessWorker("signer-solana")},
	"MOMO_CONSUMER_":    {ProcessWorker("momo"), ProcessRegister},
	"MOMO_CALLBACK_KEY": {ProcessWorker("momo")},
	"MOMO_PASSKEY":      {ProcessWorker("momo"), ProcessRegister},
	"MOMO_SECURITY_":    {ProcessWorker("momo"), ProcessRegister},
	"MOMO_STANDING_":    {ProcessAPI, ProcessWorker("momo"), ProcessRegister},
	"NOTIFY_":           {ProcessAPI},
	"WEBHOOK_KEYS":      {ProcessAPI, ProcessWorker("webhooks")},
	"ADMIN_":            {ProcessMigrate},
	"AUDIT_":            {ProcessWorker("flows"), ProcessAuditVerify},
	"API_PEPPERS":       {ProcessAPI, ProcessMigrate},
	"FILES_MASTER_KEY":  {ProcessAPI},
}

// needs reports whether a process gets a variable. Only who uses Temporal has a certificate and payload keys, and only who asks for
// a login opens tokens.
func (s *Stack) needs(process, variable string) bool {
	switch variable {
	case "API_TOKEN_KEYS":
		return process == ProcessAPI || (process == ProcessCodec && s.StaffLogin)
	case "TEMPORAL_CERTIFICATE_FILE", "TEMPORAL_PRIVATE_KEY_FILE":
		return slices.Contains(identities(), process)
	case "TEMPORAL_PAYLOAD_KEYS":
		return process == ProcessCodec || slices.Contains(identities(), process)
	}
	for prefix, processes := range secretsOf {
		if strings.HasPrefix(variable, prefix) {
			return slices.Contains(processes, process)
		}
	}
	return true
}

// ProductEnvironment returns the environment of one of the product's processes.
// Steps that learn facts at run time (token addresses, for example) add theirs with
// SetEnvironment before the processes start.
func (s *Stack) ProductEnvironment(process string) []string {
	variables := s.variables(process)
	maps.Copy(variables, s.codecVariables())
	variables["TEMPORAL_CERTIFICATE_FILE"], variables["TEMPORAL_PRIVATE_KEY_FILE"] = certificates.Files(s.certificates(), process)
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, value := range s.extra {
		variables[name] = value
	}
	for _, n := range s.Without {
		maps.DeleteFunc(variables, func(name, _ string) bool { return strings.HasPrefix(name, strings.ToUpper(string(n))+"_") })
	}
	servers, _ := certificates.Authorities(s.certificates())
	env := append(s.baseEnvironment(), authorityVariable+"="+servers)
	for name, value := range variables {
		if s.needs(process, name) {
			env = append(env, "KIVUKO_"+name+"="+value)
		}
	}
	return env
}

// variables are the variables of a process, whether it needs them or not.
func (s *Stack) variables(process string) map[string]string {
	return map[string]string{
		"MODE":         "local",
		"DATABASE_URL": s.Postgres.RoleDSN(productDatabase, string(roleOf(process))),
		"MASTER_KEY":   "file://" + filepath.Join(s.State, "master-"+familyOf(process)+".key"),

		"FILES_BUCKET":     "file://" + filepath.Join(s.State, "files"),
		"FILES_MASTER_KEY": "file://" + filepath.Join(s.State, "master-files.key"),

		"API_LISTEN":     s.Addresses.API,
		"API_PUBLIC_URL": "http://localhost:" + portOf(s.Addresses.API), // a passkey's host can't be an address
		"API_TOKEN_KEYS": "dev:" + developmentKey("token"),
		"API_PEPPERS":    "dev:" + developmentKey("pepper"),
		"API_SPOOL_DIR":  filepath.Join(s.State, "spool"),
		// Who has not logged in is counted by address, and all people of a local stack call from one.
		"API_RATE_FACTOR": "10",

		"TEMPORAL_ADDRESS":      s.Addresses.Temporal,
		"TEMPORAL_NAMESPACE":    "kivuko",
		"TEMPORAL_PAYLOAD_KEYS": payloadKeys(process),
		"TEMPORAL_TLS":          "true",
		"WORKER_PROMOTE":        "true",
		// One name for every build: this build continues the open flows of earlier ones.
		"WORKER_BUILD_ID": "local",

		"TRON_GRPC":          s.Addresses.TronGRPC,
		"TRON_SOLIDITY_GRPC": s.Addresses.TronSolidity,
		"TRON_USDT":          tron.USDTAddress,
		"TRON_USDC":          tron.USDCAddress,
		"TRON_USDC_ENABLED":  "true",
		"TRON_DEVELOPMENT":   "true",

		"ETHEREUM_RPC":          "http://" + s.Addresses.EthereumRPC,
		"ETHEREUM_CHAIN_ID":     strconv.Itoa(ethereum.ChainID),
		"ETHEREUM_USDT":         ethereum.USDTAddress().Hex(),
		"ETHEREUM_USDC":         ethereum.USDCAddress().Hex(),
		"ETHEREUM_DEVELOPMENT":  "true",
		"ETHEREUM_POLL":         ethereum.DefaultBlockInterval.String(),
		"SENDING_STUCK_TIMEOUT": "15s", // blocks come every second here

		"NOTIFY_SMTP_URL":     "smtp+plain://" + s.Addresses.Mail,
		"NOTIFY_SMS_URL":      "http://" + s.Addresses.Messages,
		"NOTIFY_SMS_USERNAME": messages.Username,
		"NOTIFY_SMS_KEY":      messages.APIKey,

		"MOMO_BASE_URL":            "http://" + s.Addresses.Momo,
		"MOMO_CALLBACK_URL":        "http://" + s.Addresses.API + "/api/v1/callbacks/momo",
		"MOMO_CALLBACK_KEY":        developmentKey("callback"),
		"MOMO_STANDING_TOKEN":      developmentKey("standing"),
		"MOMO_DEVELOPMENT":         "true",
		"MOMO_CONSUMER_KEY":        sandbox.DefaultConsumerKey,
		"MOMO_CONSUMER_SECRET":     sandbox.DefaultConsumerSecret,
		"MOMO_SHORTCODE":           sandbox.DefaultShortcode,
		"MOMO_PASSKEY":             sandbox.DefaultPasskey,
		"MOMO_PAYOUT_SHORTCODE":    sandbox.DefaultPayoutShortcode,
		"MOMO_INITIATOR":           sandbox.DefaultInitiatorName,
		"MOMO_SECURITY_CREDENTIAL": sandbox.DefaultSecurityCredential,

		"WEBHOOK_KEYS": "dev:" + developmentKey("webhook"),

		"AUDIT_KEYS": "dev:" + developmentKey("audit"),
		"AUDIT_HEAD": filepath.Join(s.State, "audit.head"),

		"ADMIN_EMAIL":    AdminEmail,
		"ADMIN_PHONE":    AdminPhone,
		"ADMIN_PASSWORD": AdminPassword,
	}
}

// codecVariables are those of the codec endpoint, with or without the Web UI behind it.
func (s *Stack) codecVariables() map[string]string {
	v := map[string]string{"CODEC_LISTEN": s.Addresses.Codec, "CODEC_ORIGIN": s.WebUI()}
	if s.StaffLogin {
		v["CODEC_UI"], v["CODEC_API"] = "http://"+s.Addresses.TemporalUI, "http://"+s.Addresses.API
	} else {
		v["CODEC_OPEN"] = "true" // the Web UI has no login
	}
	return v
}

// WebUI is the address at which browsers reach the Web UI.
func (s *Stack) WebUI() string {
	if s.StaffLogin {
		return "http://localhost:" + portOf(s.Addresses.Codec) // a passkey's host can't be an address
	}
	return "http://" + s.Addresses.TemporalUI
}

// familyOf names the networks of a process's queue that share keys, and so a master key: a key of TRON is an account on Ethereum
// too, and its signer there returns what came to it by mistake. It is empty for a process of no network.
func familyOf(process string) string {
	_, network, _ := strings.Cut(strings.TrimPrefix(process, ProcessWorker("")), "-")
	if exchange.Network(network).Counterparts() {
		return "counterparts"
	}
	return network
}

// payloadKeys is the ring of a process: the keys of its own domain, and those of all domains for the flows, which hand work to
// all, and for the codec, which shows all.
func payloadKeys(process string) string {
	own := worker.DomainOf(strings.TrimPrefix(process, ProcessWorker("")))
	var ring []string
	for _, domain := range worker.Domains() {
		if domain != own && process != ProcessWorker("flows") && process != ProcessCodec && process != ProcessResume {
			continue
		}
		name := "payload " + domain
		if domain == worker.DomainFlows {
			name = "payload"
		}
		ring = append(ring, domain+".dev:"+developmentKey(name))
	}
	return strings.Join(ring, ",")
}

// SetEnvironment adds or replaces a variable of the product's processes that start
// from now on; name goes without the prefix KIVUKO_.
func (s *Stack) SetEnvironment(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.extra == nil {
		s.extra = map[string]string{}
	}
	s.extra[name] = value
}

// developmentKey derives a key that is not secret. The product refuses it in production by its
// value.
func developmentKey(name string) string {
	sum := sha256.Sum256([]byte("kivuko development key " + name))
	return hex.EncodeToString(sum[:])
}

// ProductDatabase returns the URL of the product's database, for tests and demos that fill it.
func (s *Stack) ProductDatabase() string { return s.Postgres.DSN(productDatabase) }
