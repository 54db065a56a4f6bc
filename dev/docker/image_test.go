package docker

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"debug/elf"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
)

const (
	commit = "0123456789abcdef0123456789abcdef01234567" // the commit of the test image
	spool  = "/var/spool/kivuko"
	heads  = "/var/lib/kivuko"
	kept   = "/var/lib/kivuko-files"
	nobody = 65532
	most   = 100 << 20 // bytes of the image
)

// buildContext copies the files that .dockerignore lets into the build.
func buildContext(t *testing.T) string {
	t.Helper()
	patterns, err := ignorefile.ReadAll(bytes.NewReader(read(t, dockerfile+".dockerignore")))
	if err != nil {
		t.Fatal(err)
	}
	matcher, err := patternmatcher.New(patterns)
	if err != nil {
		t.Fatal(err)
	}
	root, dir := "../..", t.TempDir()
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		if err != nil || name == "." {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", ".local", "bin", "dev"}, name) { // large, and ignored; the next check verifies that
				return filepath.SkipDir
			}
			return nil
		}
		if hidden, err := matcher.MatchesOrParentMatches(name); hidden || err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), content, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"docker/secrets/token_keys", "docker/.env", ".git/config", "dev/go.mod", ".local/master.key", "config_test.go"} {
		if hidden, err := matcher.MatchesOrParentMatches(secret); !hidden || err != nil {
			t.Errorf("the build sees %s: %v", secret, err)
		}
	}
	return dir
}

// buildImage runs the Dockerfile's build stage and returns the directory of the image's files.
func buildImage(t *testing.T, extra ...string) string {
	t.Helper()
	out := t.TempDir()
	cmd := exec.CommandContext(t.Context(), filepath.Join(buildContext(t), "docker", "build.sh"), out)
	cmd.Env = append(os.Environ(), append(extra, "REVISION="+commit)...)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return out
}

func sums(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(root, path)
		sum := sha256.Sum256(read(t, path))
		out[name] = hex.EncodeToString(sum[:])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// container runs the binary as a container of the image would: it sees only the image's files and the deployment's
// mounts, and runs as an unprivileged user.
type container struct{ root string }

func (c container) command(ctx context.Context, env map[string]string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "/kivuko", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.Env = "/", &out, &out, []string{}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: c.root, Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return cmd, &out
}

// run runs a command to its end. The limit of the whole run ends one that hangs: a migration alone takes minutes on a busy machine.
func (c container) run(t *testing.T, env map[string]string, args ...string) (string, error) {
	t.Helper()
	cmd, out := c.command(t.Context(), env, args...)
	err := cmd.Run()
	return out.String(), err
}

// mount writes a file at the path of a deployment's mount.
func (c container) mount(t *testing.T, path, content string) {
	t.Helper()
	path = filepath.Join(c.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// clientPair is a certificate with its key, as each process shows Temporal one.
var clientPair = sync.OnceValues(func() (certificate, key string) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "client"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		panic(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		panic(err)
	}
	text := func(kind string, b []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}))
	}
	return text("CERTIFICATE", der), text("PRIVATE KEY", secret)
})

// payloadKeys is the content of one of the secrets with payload keys: those of one domain, or of all.
func payloadKeys(secret string) string {
	var all []string
	for i, domain := range []string{"flows", "momo", "chain", "signer", "webhooks"} {
		if secret == "payload_keys" || secret == "payload_keys_"+domain {
			all = append(all, fmt.Sprintf("%s.1:%s", domain, strings.Repeat(fmt.Sprintf("c%d", i), 32)))
		}
	}
	return strings.Join(all, ",")
}

// secretsFor returns values of all secrets of the deployment. The databases are on this machine, so that production
// mode accepts them without TLS.
func secretsFor(database string) map[string]string {
	key := func(b string) string { return strings.Repeat(b, 32) }
	certificate, private := clientPair()
	return map[string]string{
		"client_certificate": certificate, "client_key": private,
		"database_url": database, "admin_password": "a long password of the first admin",
		"payload_keys": payloadKeys("payload_keys_flows"), "token_keys": "k1:" + key("a1"), "peppers": "p1:" + key("b2"), "smtp_url": "smtps://kivuko:secret@mail.example:465", "sms_key": "secret", "audit_keys": "a1:" + key("a7"),
		"momo_consumer_key": "key", "momo_consumer_secret": "secret", "momo_passkey": "pass", "momo_security_credential": "sealed",
		"momo_callback_key": key("d4"), "momo_standing_token": key("e5"), "tron_api_key": "", "ethereum_nodes": "https://127.0.0.1:1/key",
		"solana_nodes": "https://127.0.0.1:1/key", "screening_token": "token", "rates_token": "token", "vault_token": "token", "files_vault_token": "token", "webhook_keys": "w1:" + key("f6"),
	}
}

func (c container) mountSecrets(t *testing.T, secrets map[string]string) {
	t.Helper()
	for name, value := range secrets {
		c.mount(t, "/run/secrets/"+name, value+"\n")
	}
}

// environment returns a service's environment of the compose file.
func environment(s types.ServiceConfig) map[string]string {
	out := map[string]string{}
	for name, value := range s.Environment {
		out[name] = *value
	}
	delete(out, "TEMPORAL_TLS_SERVER_CA_CERT_PATH") // the deployment's own authority, which is missing here
	return out
}

// TestImage builds the image's files and runs the binary with only these files.
func TestImage(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may give a process other files as its root")
	}
	dir := buildImage(t)
	c := container{filepath.Join(dir, "image")}
	t.Run("files", func(t *testing.T) { checkFiles(t, c.root) })
	t.Run("twice", func(t *testing.T) {
		var extra []string
		if os.Getenv("KIVUKO_IMAGE_FRESH") != "" { // compiles everything again, which takes minutes
			extra = []string{"GOCACHE=" + t.TempDir()}
		}
		if a, b := sums(t, c.root), sums(t, filepath.Join(buildImage(t, extra...), "image")); !maps.Equal(a, b) {
			t.Errorf("two builds differ: %v and %v", a, b)
		}
	})
	for _, own := range []string{spool, heads, kept} { // the other COPYs of the Dockerfile
		if err := os.MkdirAll(filepath.Join(c.root, own), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(filepath.Join(c.root, own), nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("version", func(t *testing.T) {
		if out, err := c.run(t, nil, "version"); err != nil || strings.TrimSpace(out) != commit {
			t.Errorf("%q, %v", out, err)
		}
	})
	t.Run("configurations", func(t *testing.T) { checkConfigurations(t, c) })
	t.Run("deployment", func(t *testing.T) { checkDeployment(t, c) })
}

// checkFiles checks that the image has two files, that the binary needs no other, and that it is small.
func checkFiles(t *testing.T, root string) {
	want := []string{"etc/ssl/certs/ca-certificates.crt", "kivuko"}
	if got := slices.Sorted(maps.Keys(sums(t, root))); !slices.Equal(got, want) {
		t.Errorf("the image holds %v, want %v", got, want)
	}
	binary, err := elf.Open(filepath.Join(root, "kivuko"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = binary.Close() }()
	for _, p := range binary.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the binary is dynamically linked: %s", p.Type)
		}
	}
	content := read(t, filepath.Join(root, "kivuko"))
	if len(content) > most {
		t.Errorf("the binary has %d bytes, more than %d", len(content), most)
	}
	here, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(content, []byte(here+"/")) {
		t.Error("the binary names a path of this machine")
	}
}

// checkConfigurations starts every process with exactly the environment of the compose file. No setting or secret may be
// missing: each process starts until it needs a server that does not run here.
func checkConfigurations(t *testing.T, c container) {
	const away = "postgres://nobody:x@127.0.0.1:1/kivuko?connect_timeout=2"
	c.mountSecrets(t, secretsFor(away))
	public, err := c.run(t, nil, "cold-key", "-out", spool+"/cold.json")
	if err != nil {
		t.Fatalf("%v: %s", err, public)
	}
	c.mount(t, "/etc/kivuko/cold.json", public)
	for name, s := range deployment(t).Services {
		if !strings.HasPrefix(s.Image, ours) || name == "apply" { // apply waits for Temporal, and needs fewer settings than the others
			continue
		}
		t.Run(name, func(t *testing.T) {
			for _, secret := range s.Secrets {
				if secret.Target == "payload_keys" || secret.Source == "payload_keys" {
					c.mountSecrets(t, map[string]string{"payload_keys": payloadKeys(secret.Source)})
				}
			}
			said, err := c.run(t, environment(s), s.Command...)
			if err == nil || strings.Contains(said, "configuration:") || !strings.Contains(said, "127.0.0.1:1: connect: connection refused") {
				t.Errorf("%v: %s", err, said)
			}
			// The same is refused without a secret that production requires.
			env := environment(s)
			delete(env, "KIVUKO_DATABASE_URL_FILE")
			if said, err := c.run(t, env, s.Command...); err == nil || !strings.Contains(said, "KIVUKO_DATABASE_URL must be set") {
				t.Errorf("without its database: %v: %s", err, said)
			}
		})
	}
}

// checkDeployment creates the roles as the database's container does, migrates as the owner, and serves the API in
// production mode as the role that owns nothing.
func checkDeployment(t *testing.T, c container) {
	server, err := url.Parse(os.Getenv("KIVUKO_TEST_DATABASE_URL"))
	if err != nil || server.Host == "" {
		t.Skip("KIVUKO_TEST_DATABASE_URL is not set: make check-docker starts a PostgreSQL for this")
	}
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("there is no psql, which reads the scripts of the databases")
	}
	secrets := t.TempDir()
	names := []string{"histories_password"}
	for _, role := range []string{"migrate", "api", "flows", "momo", "chain", "signer", "webhooks", "codec"} {
		names = append(names, "books_"+role+"_password")
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte("it's "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, script := range []string{"books.sql", "histories.sql"} {
		cmd := exec.CommandContext(t.Context(), psql, "--no-psqlrc", "--dbname", server.String(), "--file", filepath.Join(folder, "postgres", script))
		cmd.Env = append(os.Environ(), "SECRETS="+secrets)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", script, err, said)
		}
	}
	as := func(role string) string {
		u := *server
		u.User, u.Path = url.UserPassword("kivuko_"+role, "it's books_"+role+"_password"), "/kivuko"
		return u.String()
	}
	c.mountSecrets(t, secretsFor(as("migrate")))
	services := deployment(t).Services
	for range 2 { // the second one finds nothing to do
		if said, err := c.run(t, environment(services["migrate"]), "migrate"); err != nil {
			t.Fatalf("migrate: %v: %s", err, said)
		}
	}
	c.mountSecrets(t, secretsFor(as("flows")))
	if said, err := c.run(t, environment(services["api"]), "api"); err == nil || !strings.Contains(said, "must log in as kivuko_api") {
		t.Errorf("the API serves with the role of the flows: %v: %s", err, said)
	}
	c.mountSecrets(t, secretsFor(as("api")))
	env, trusted := environment(services["api"]), "/run/trusted.pem"
	keys, certificate := vault(t)
	env["KIVUKO_FILES_MASTER_KEY"], env["SSL_CERT_FILE"] = keys, trusted
	c.mount(t, trusted, certificate)
	serve(t, c, env)
}

// serve runs the API until it answers, runs the health check, and stops it.
func serve(t *testing.T, c container, env map[string]string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	env["KIVUKO_API_LISTEN"] = address
	api, out := c.command(t.Context(), env, "api")
	if err := api.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- api.Wait() }()
	for healthy := false; !healthy; {
		_, err := c.run(t, env, "health", "api")
		if healthy = err == nil; healthy {
			continue
		}
		select {
		case err := <-ended:
			t.Fatalf("the API ended: %v: %s", err, out)
		case <-time.After(100 * time.Millisecond):
		}
	}
	answer, err := http.Get(fmt.Sprintf("http://%s/healthz", address))
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Errorf("%v, %v", answer, err)
	} else {
		_ = answer.Body.Close()
	}
	if err := api.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the API did not stop well: %v: %s", err, out)
	}
	if said, err := c.run(t, env, "health", "api"); err == nil {
		t.Errorf("it has stopped, and is healthy: %s", said)
	}
}
