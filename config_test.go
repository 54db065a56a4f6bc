package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/worker"
)

// productionEnvironment is a complete configuration that production accepts.
func productionEnvironment() map[string]string {
	key := func(b string) string { return strings.Repeat(b, 32) }
	return map[string]string{
		"MODE": "production", "DATABASE_URL": "postgres://db.example/kivuko?sslmode=verify-full", "MASTER_KEY": "hcvault://vault.example/transit/keys/kivuko",
		"API_TOKEN_KEYS": "k1:" + key("a1") + ",k0:" + key("a0"), "API_PEPPERS": "p1:" + key("b2"), "FILES_BUCKET": "s3://files?region=eu-west-1", "FILES_MASTER_KEY": "hcvault://vault.example/transit/keys/files", "NOTIFY_SMTP_URL": "smtps://u:p@mail.example:465", "NOTIFY_SMS_USERNAME": "kivuko", "NOTIFY_SMS_KEY": "k", "API_PUBLIC_URL": "https://api.example", "API_METRICS_READERS": "10.0.0.9",
		"API_CALLBACK_IPS": "192.0.2.0/24", "API_TRUSTED_PROXIES": "10.0.0.1", "AUDIT_KEYS": "a1:" + key("a7"), "AUDIT_HEAD": "/var/lib/kivuko/audit.head",
		"TEMPORAL_ADDRESS": "temporal.example:7233", "TEMPORAL_TLS": "true", "TEMPORAL_CERTIFICATE": "a certificate", "TEMPORAL_PRIVATE_KEY": "its key",
		"TEMPORAL_PAYLOAD_KEYS": "flows.1:" + key("c3") + ",momo.1:" + key("c4") + ",chain.1:" + key("c5") + ",signer.1:" + key("c6") + ",webhooks.1:" + key("c7"),
		"TRON_TLS":              "true", "TRON_GRPC": "tron.example:50051", "TRON_SOLIDITY_GRPC": "tron.example:50061", "TRON_USDT": "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
		"MOMO_BASE_URL": "https://operator.example", "MOMO_CONSUMER_KEY": "key", "MOMO_CONSUMER_SECRET": "secret",
		"MOMO_SHORTCODE": "600000", "MOMO_PASSKEY": "pass", "MOMO_PAYOUT_SHORTCODE": "600001", "MOMO_INITIATOR": "api",
		"MOMO_SECURITY_CREDENTIAL": "sealed", "MOMO_CALLBACK_URL": "https://api.example/api/v1/callbacks/momo",
		"MOMO_CALLBACK_KEY": key("d4"), "MOMO_STANDING_TOKEN": key("e5"), "SIGNER_CEILINGS": "USDT:20000", "WEBHOOK_KEYS": "w1:" + key("f6"),
		"SCREENING_URL": "https://screening.example/v1/check",
	}
}

func load(t *testing.T, variables map[string]string) (Config, error) {
	t.Helper()
	for name, value := range variables {
		t.Setenv("KIVUKO_"+name, value)
	}
	return loadConfig()
}

// checkAll is what all processes of a deployment on TRON demand.
func checkAll(c Config) error {
	return checkEach(c, "api", "codec", "flows", "momo", "webhooks", "chain-tron", "signer-tron")
}

// checkEach is what processes demand, each with the payload keys that a deployment gives it.
func checkEach(c Config, processes ...string) error {
	var n need
	for _, p := range processes {
		own := withOwnKeys(c, p)
		own.checkTags(&n, p)
		own.checkRules(&n, p)
	}
	slices.Sort(n.problems)
	n.problems = slices.Compact(n.problems)
	return n.err()
}

// withOwnKeys leaves a process those payload keys that a deployment gives it.
func withOwnKeys(c Config, process string) Config {
	if kind, _ := kindOf(process); len(c.Temporal.PayloadKeys) > 1 && !reads("flows codec resume", kind) {
		c.Temporal.PayloadKeys = slices.DeleteFunc(slices.Clone(c.Temporal.PayloadKeys), func(k NamedKey) bool {
			return !worker.Key{ID: k.ID}.InDomain(worker.DomainOf(kind))
		})
	}
	return c
}

// All processes had the same payload keys: a worker with a way out that was taken over could read every history.
func TestEachProcessHasThePayloadKeysOfItsDomain(t *testing.T) {
	c, err := load(t, productionEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	for process, want := range map[string]string{
		"momo": "not flows.1, chain.1, signer.1, webhooks.1", "signer-tron": "not flows.1, momo.1, chain.1, webhooks.1", "api": "not momo.1, chain.1, signer.1, webhooks.1",
	} {
		if err := c.check(process); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s with the keys of all: %v", process, err)
		}
	}
	flows := c
	flows.Temporal.PayloadKeys = c.Temporal.PayloadKeys[:3]
	if err := flows.check("flows"); err == nil || !strings.Contains(err.Error(), "must have a key whose name begins with signer.") {
		t.Errorf("flows without the key of signers: %v", err)
	}
}

func TestProductionAcceptsACompleteConfiguration(t *testing.T) {
	c, err := load(t, productionEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	if err := checkAll(c); err != nil {
		t.Fatal(err)
	}
	if got := c.API.TokenKeys; len(got) != 2 || got[0].ID != "k1" || got[1].ID != "k0" {
		t.Errorf("token keys %v: the first of the list must sign", got)
	}
}

func TestProductionRefuses(t *testing.T) {
	dev := developmentKeys()
	for _, c := range []struct{ name, value, want string }{
		{"API_TOKEN_KEYS", "dev:" + hex.EncodeToString(dev["token"]), "KIVUKO_API_TOKEN_KEYS holds a development key"},
		{"API_PEPPERS", "dev:" + hex.EncodeToString(dev["pepper"]), "KIVUKO_API_PEPPERS holds a development key"},
		{"NOTIFY_SMTP_URL", "smtp+plain://mail.example:25", "KIVUKO_NOTIFY_SMTP_URL must be smtps:// or smtp:// in production"},
		{"NOTIFY_SMS_URL", "http://sms.example", "KIVUKO_NOTIFY_SMS_URL must be https"},
		{"TEMPORAL_PAYLOAD_KEYS", "dev:" + hex.EncodeToString(dev["payload"]), "KIVUKO_TEMPORAL_PAYLOAD_KEYS holds a development key"},
		{"TEMPORAL_TLS", "false", "KIVUKO_TEMPORAL_TLS must be true"},
		{"TEMPORAL_CERTIFICATE", "", "KIVUKO_TEMPORAL_CERTIFICATE must be set"},
		{"TEMPORAL_PRIVATE_KEY", "", "KIVUKO_TEMPORAL_CERTIFICATE and KIVUKO_TEMPORAL_PRIVATE_KEY must both be set"},
		{"API_PUBLIC_URL", "http://api.example", "KIVUKO_API_PUBLIC_URL must be https"},
		{"MASTER_KEY", "file:///var/lib/kivuko/master.key", "KIVUKO_MASTER_KEY must name a key service"},
		{"FILES_MASTER_KEY", "file:///var/lib/kivuko/files.key", "KIVUKO_FILES_MASTER_KEY must name a key service"},
		{"FILES_BUCKET", "file://./files", "KIVUKO_FILES_BUCKET must be an absolute directory"},
		{"TRON_DEVELOPMENT", "true", "KIVUKO_TRON_DEVELOPMENT must be off"},
		{"MOMO_PROVIDER", "another", "KIVUKO_MOMO_PROVIDER must be one of: daraja"},
		{"MOMO_DEVELOPMENT", "true", "KIVUKO_MOMO_DEVELOPMENT must be off"},
		{"MOMO_BASE_URL", "http://operator.example", "KIVUKO_MOMO_BASE_URL must be https"},
		{"MOMO_CALLBACK_URL", "http://api.example/x", "KIVUKO_MOMO_CALLBACK_URL must be https"},
		{"MOMO_STANDING_TOKEN", strings.Repeat("E5", 32), "KIVUKO_MOMO_STANDING_TOKEN must be 64 hexadecimal digits in small letters"},
		{"MOMO_STANDING_TOKEN", hex.EncodeToString(dev["standing"]), "KIVUKO_MOMO_STANDING_TOKEN is a development key"},
		{"SCREENING_URL", "http://screening.example", "KIVUKO_SCREENING_URL must be https"},
		{"API_ORIGINS", "https://office.example,*", `KIVUKO_API_ORIGINS: "*" must be a scheme, a host and at most a port`},
		{"API_ORIGINS", "null", `KIVUKO_API_ORIGINS: "null" must be a scheme`},
		{"API_ORIGINS", "https://*.office.example", "KIVUKO_API_ORIGINS: \"https://*.office.example\" must be a scheme"},
		{"API_ORIGINS", "https://office.example/", "no wildcard, path or slash at the end"},
		{"API_ORIGINS", "https://office.example/app", "no wildcard, path or slash at the end"},
		{"API_ORIGINS", "https://Office.example", "in small letters"},
		{"API_ORIGINS", "https://a@office.example", "must be a scheme"},
		{"API_ORIGINS", "https://office.example:443", "must not name the scheme's own port"},
		{"API_ORIGINS", "https://office.example:65536", "must have a port of at most 65535"},
		{"API_ORIGINS", "http://office.example", `KIVUKO_API_ORIGINS: "http://office.example" must be https, unless the host is this machine`},
		{"API_ORIGINS", "https://[0:0:0:0:0:0:0:1]", "must have an IPv6 address in its short form"},
		{"RUNBOOKS", "docs/other.md", "KIVUKO_RUNBOOKS must be the http or https address"},
		{"RUNBOOKS", "https://pages.example/runbooks.html#limits", "KIVUKO_RUNBOOKS must be the http or https address"},
		{"CODEC_OPEN", "true", "KIVUKO_CODEC_OPEN must be off"},
		{"DATABASE_URL", "", "KIVUKO_DATABASE_URL must be set"},
		{"DATABASE_URL", "postgres://db.example/kivuko", "KIVUKO_DATABASE_URL must say sslmode=verify-full"},
		{"DATABASE_URL", "postgres://db.example/kivuko?sslmode=verify-ca", "KIVUKO_DATABASE_URL must say sslmode=verify-full"},
		{"DATABASE_URL", "postgres://db.example/kivuko?sslmode=verify-full&sslmode=disable", "KIVUKO_DATABASE_URL must say sslmode=verify-full"},
		{"DATABASE_URL", "postgres://127.0.0.1/kivuko?sslmode=disable&host=db.example", "KIVUKO_DATABASE_URL must say sslmode=verify-full"},
		{"DATABASE_URL", "host=db.example sslmode=verify-full", "KIVUKO_DATABASE_URL must be a postgres:// URL"},
		{"TRON_TLS", "false", "KIVUKO_TRON_TLS must be true"},
		{"API_METRICS_READERS", "", "KIVUKO_API_METRICS_READERS must be set"},
		{"API_CALLBACK_IPS", "", "KIVUKO_API_CALLBACK_IPS must be set"},
		{"API_TRUSTED_PROXIES", "", "KIVUKO_API_TRUSTED_PROXIES must be set"},
		{"LIMIT_USER_ORDERS", "11", "KIVUKO_LIMIT_USER_ORDERS must not be above KIVUKO_LIMIT_CUSTOMER_ORDERS"},
		{"LIMIT_USER_TRANSFERS", "51", "KIVUKO_LIMIT_USER_TRANSFERS must not be above KIVUKO_LIMIT_CUSTOMER_TRANSFERS"},
		{"LIMIT_MERCHANT_TRANSFERS", "0", "KIVUKO_LIMIT_MERCHANT_TRANSFERS must be above zero"},
		{"LIMIT_USER_FEES", "ETH:0.03,TRX:300", "KIVUKO_LIMIT_USER_FEES must name an amount above zero of SOL"},
		{"LIMIT_HOUSE_FEES", "ETH:0,TRX:300,SOL:1", "KIVUKO_LIMIT_HOUSE_FEES must name an amount above zero of ETH"},
		{"LIMIT_MERCHANT_FEES", "ETH:1,TRX:300,SOL:1,USDT:5", "KIVUKO_LIMIT_MERCHANT_FEES names a coin that no network takes fees in"},
		{"LIMIT_PROMPTS_PER_PHONE", "0", "KIVUKO_LIMIT_PROMPTS_PER_PHONE must be above zero"},
		{"SIGNER_CEILINGS", "", "KIVUKO_SIGNER_CEILINGS must be set in production"},
		{"SIGNER_CEILINGS", "USDC:1", "KIVUKO_SIGNER_CEILINGS must name USDT"},
		{"SIGNER_CEILINGS", "USDT:-1", "the ceiling of USDT must be a decimal above zero"},
		{"SIGNER_CEILINGS", "BTC:1", "\"BTC\" is not an asset of Kivuko"},
		{"SENDING_STUCK_TIMEOUT", "0s", "KIVUKO_SENDING_STUCK_TIMEOUT must be above zero"},
		{"SENDING_TOP_UP_LIMIT", "0", "KIVUKO_SENDING_TOP_UP_LIMIT must be above zero"},
		{"SENDING_TOP_UP_CAPS", "TRX:300,ETH:0.001", "the cap of ETH must not be below its floor"},
		{"SENDING_TOP_UP_CAPS", "TRX:300", "must both name ETH, or neither"},
		{"SENDING_TOP_UP_FLOORS", "TRX:x,ETH:0.001", "KIVUKO_SENDING_TOP_UP_FLOORS: the amount of TRX"},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := productionEnvironment()
			env[c.name] = c.value
			config, err := load(t, env)
			if err != nil {
				t.Fatal(err)
			}
			if err := checkAll(config); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want it to say %q", err, c.want)
			}
		})
	}
}

func TestOriginsThatBrowsersWriteAreAccepted(t *testing.T) {
	for _, list := range []string{"", "https://office.example", "https://office.example:8443,http://localhost:5173,http://127.0.0.1,http://[::1]:8080"} {
		env := productionEnvironment()
		env["API_ORIGINS"] = list
		c, err := load(t, env)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkAll(c); err != nil || len(c.API.Origins) != len(strings.FieldsFunc(list, func(r rune) bool { return r == ',' })) {
			t.Errorf("%q gives %q, %v", list, c.API.Origins, err)
		}
	}
}

// Services on this machine need no TLS, in every mode.
func TestProductionAcceptsPlainConnectionsOnThisMachine(t *testing.T) {
	for name, value := range map[string]string{
		"loopback": "postgres://[::1]:5432/kivuko?sslmode=disable", "name": "postgres://localhost/kivuko?sslmode=disable",
		"socket": "postgres:///kivuko?host=/var/run/postgresql",
	} {
		t.Run(name, func(t *testing.T) {
			env := productionEnvironment()
			env["DATABASE_URL"], env["TRON_TLS"] = value, "false"
			env["TRON_GRPC"], env["TRON_SOLIDITY_GRPC"] = "127.0.0.1:50051", "localhost:50061"
			c, err := load(t, env)
			if err != nil {
				t.Fatal(err)
			}
			if err := checkAll(c); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAWorkerIsAskedOnlyForItsQueues checks that processes start without the master key and the operator's secrets if
// they don't need them.
func TestAWorkerIsAskedOnlyForItsQueues(t *testing.T) {
	env := productionEnvironment()
	for name := range env {
		if strings.HasPrefix(name, "MOMO_") || name == "MASTER_KEY" || strings.HasPrefix(name, "API_") && name != "API_PUBLIC_URL" {
			delete(env, name)
		}
	}
	c, err := load(t, env)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkEach(c, "flows", "chain-tron"); err != nil {
		t.Errorf("flows and chain-tron need neither key: %v", err)
	}
	if err := c.check("signer-tron"); err == nil || !strings.Contains(err.Error(), "KIVUKO_MASTER_KEY") {
		t.Errorf("a signer without a master key: got %v", err)
	}
	if err := c.check("momo"); err == nil || !strings.Contains(err.Error(), "KIVUKO_MOMO_PASSKEY") {
		t.Errorf("the momo queue without credentials: got %v", err)
	}
}

// TestEachScreeningProcessNamesItsScreener checks that a forgotten variable can't make a signer use only the deny list
// while the other processes use the service.
func TestEachScreeningProcessNamesItsScreener(t *testing.T) {
	c, err := load(t, productionEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	for _, queue := range []string{"flows", "signer-tron"} {
		c.Screening.URL = ""
		if err := c.check(queue); err == nil || !strings.Contains(err.Error(), "KIVUKO_SCREENING_URL must be set in production") {
			t.Errorf("%s without a screening service: got %v", queue, err)
		}
		c.Screening.URL = noScreening
		if err := checkEach(c, queue); err != nil {
			t.Errorf("%s that does without: %v", queue, err)
		}
	}
	if s, err := c.screener(); s != nil || err != nil {
		t.Errorf("a deployment without a service asks %v, %v", s, err)
	}
	c.Screening.URL = ""
	if err := checkEach(c, "momo", "chain-tron"); err != nil {
		t.Errorf("queues without screening: %v", err)
	}
}

func TestConfigurationNamesTheBrokenVariable(t *testing.T) {
	for name, value := range map[string]string{
		"MODE": "prod", "LOG_LEVEL": "loud", "API_METRICS_READERS": "everybody", "CODEC_OPEN": "perhaps", "MOMO_CALLBACK_KEY": "abc", "API_TOKEN_KEYS": "nocolon", "TEMPORAL_PAYLOAD_KEYS": "k:zz",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := load(t, map[string]string{name: value}); err == nil || !strings.Contains(err.Error(), "KIVUKO_"+name) {
				t.Errorf("got %v, want it to name KIVUKO_%s", err, name)
			}
		})
	}
}

// All wrong variables are reported at once, and no correct one.
func TestConfigurationNamesEveryVariableThatCannotBeRead(t *testing.T) {
	_, err := load(t, map[string]string{"MODE": "prod", "MOMO_CALLBACK_KEY": "abc", "CODEC_OPEN": "perhaps"})
	for _, want := range []string{"KIVUKO_MODE: must be local or production", "KIVUKO_MOMO_CALLBACK_KEY: must be 64 hexadecimal digits", "KIVUKO_CODEC_OPEN: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}

func TestConfigurationNamesEveryBrokenRule(t *testing.T) {
	all := productionEnvironment()
	all["MOMO_PASSKEY"], all["TRON_TLS"], all["LIMIT_USER_ORDERS"] = "", "false", "11"
	c, err := load(t, all)
	if err != nil {
		t.Fatal(err)
	}
	err = checkAll(c)
	for _, want := range []string{"KIVUKO_MOMO_PASSKEY must be set", "KIVUKO_TRON_TLS must be true", "KIVUKO_LIMIT_USER_ORDERS must not be above"} {
		if err == nil || strings.Count(err.Error(), want) != 1 {
			t.Errorf("got %v, want it to say %q once", err, want)
		}
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	c, err := load(t, productionEnvironment())
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprintf("%v", c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c)} {
		for _, secret := range []string{"161 161", "178 178", "0xa1, 0xa1", "a1a1a1", "b2b2b2"} {
			if strings.Contains(text, secret) {
				t.Errorf("a key prints: %.200s", text)
			}
		}
	}
}

func TestCommandLine(t *testing.T) {
	var out, log bytes.Buffer
	if err := run(context.Background(), nil, &out, &log); err == nil || !strings.Contains(err.Error(), "no command given") {
		t.Errorf("got %v", err)
	}
	if err := run(context.Background(), []string{"serve"}, &out, &log); err == nil || !strings.Contains(err.Error(), `unknown command "serve"`) {
		t.Errorf("got %v", err)
	}
	for name, c := range commands() {
		if !strings.Contains(listing(), "\n  "+name+" ") || !strings.Contains(listing(), c.help) {
			t.Errorf("the list of commands lacks %s", name)
		}
	}
	if err := run(context.Background(), []string{"version"}, &out, &log); err != nil || out.Len() == 0 {
		t.Errorf("version: %v, printed %q", err, out.String())
	}
	if err := run(context.Background(), []string{"worker", "-queue", "x"}, &out, &log); err == nil || !strings.Contains(err.Error(), "-queue") {
		t.Errorf("got %v", err)
	}
}

// TestTwoCommandsNeedNoConfiguration covers the machine without a network, where the cold key is made, and the command
// that prints an image's build.
func TestTwoCommandsNeedNoConfiguration(t *testing.T) {
	t.Setenv("KIVUKO_MODE", "neither")
	t.Setenv("KIVUKO_API_DRAIN_TIMEOUT", "soon")
	var log bytes.Buffer
	if err := run(t.Context(), []string{"health"}, &log, &log); err == nil {
		t.Fatal("the environment is no obstacle")
	}
	for _, args := range [][]string{{"version"}, {"cold-key", "-out", filepath.Join(t.TempDir(), "key")}} {
		var out bytes.Buffer
		if err := run(t.Context(), args, &out, &log); err != nil || out.Len() == 0 {
			t.Errorf("%s: %v, printed %q", args[0], err, out.String())
		}
	}
}

// TestANetworkWithoutConfigurationIsOff covers a deployment that serves only some networks: the queues of the others
// refuse to start and name the variable that turns them on, and no addresses are offered there.
func TestANetworkWithoutConfigurationIsOff(t *testing.T) {
	env := productionEnvironment()
	delete(env, "TRON_GRPC")
	c, err := load(t, env)
	if err != nil {
		t.Fatal(err)
	}
	for _, queue := range []string{"chain-tron", "signer-tron"} {
		err := c.check(queue)
		if err == nil || !strings.Contains(err.Error(), "the network tron is off here; KIVUKO_TRON_GRPC turns it on") {
			t.Errorf("%s: got %v", queue, err)
		}
	}
	if err := c.check("chain-nowhere"); err == nil || !strings.Contains(err.Error(), "no driver for nowhere") {
		t.Errorf("got %v", err)
	}
	if payable, all := c.addresses(); len(payable)+len(all) != 0 {
		t.Error("addresses of a network that is off are accepted")
	}
	if _, err := (drivers{config: c, open: map[exchange.Network]driver{}}).of(exchange.Tron); err == nil {
		t.Error("a driver of a network that is off was made")
	}
}
