package temporal_test

import (
	"crypto/tls"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	temporalserver "go.temporal.io/server/temporal"

	"kivuko/dev/certificates"
	"kivuko/dev/ports"
)

const deploymentFiles = "../../docker/"

// deploymentConfig reads the configuration of the container's server.
func deploymentConfig(t *testing.T) *config.Config {
	t.Helper()
	c, err := config.Load(config.WithConfigFile(deploymentFiles + "temporal/server.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDeploymentIsReachedOverTLSAlone(t *testing.T) {
	c := deploymentConfig(t)
	for name, store := range c.Persistence.DataStores {
		if s := store.SQL; s.TLS == nil || !s.TLS.Enabled || !s.TLS.EnableHostVerification || s.TLS.CaFile == "" || s.Password != "" || s.PasswordCommand == nil {
			t.Errorf("the store %s: a verified connection and a password from a file, not %+v", name, s)
		}
	}
	f, own := c.Global.TLS.Frontend.Server, c.Global.TLS.SystemWorker
	if f.CertFile == "" || f.KeyFile == "" || !f.RequireClientAuth || len(f.ClientCAFiles) != 1 {
		t.Errorf("the frontend: %+v", f)
	}
	if own.CertFile == "" || own.KeyFile == "" || own.Client.DisableHostVerification || len(own.Client.RootCAFiles) != 1 || f.ClientCAFiles[0] == own.Client.RootCAFiles[0] {
		t.Errorf("the server's own workers: %+v", own)
	}
	for name, s := range c.Services {
		if name != "frontend" && s.RPC.BindOnIP != "127.0.0.1" {
			t.Errorf("%s listens on %s, where it has no TLS", name, s.RPC.BindOnIP)
		}
	}
}

// passwordFile stores the database's password where the deployment's scripts read it.
func passwordFile(t *testing.T) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, "histories_password")
	if err := os.WriteFile(file, []byte("it's-histories_password\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

// prepareHistories runs the deployment's own scripts: roles and databases, then the schema, twice.
func prepareHistories(t *testing.T, server *url.URL, secrets string) {
	t.Helper()
	psql, err := exec.LookPath("psql")
	if err != nil {
		t.Skip("there is no psql, which reads the scripts of the databases")
	}
	tools := t.TempDir()
	run := func(env []string, name string, args ...string) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Env = append(os.Environ(), env...)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, said)
		}
	}
	run([]string{"SECRETS=" + secrets}, psql, "--no-psqlrc", "--dbname", server.String(), "--file", deploymentFiles+"postgres/histories.sql")
	run(nil, "go", "build", "-o", filepath.Join(tools, "temporal-sql-tool"), "go.temporal.io/server/cmd/tools/sql")
	for range 2 {
		run([]string{
			"SECRETS=" + secrets, "PATH=" + tools + ":" + os.Getenv("PATH"), "SQL_PLUGIN=postgres12_pgx", "SQL_USER=temporal",
			"SQL_HOST=" + server.Hostname(), "SQL_PORT=" + server.Port(),
		}, "/bin/sh", deploymentFiles+"temporal/schema.sh")
	}
}

// The server starts from the deployment's file. Only the ports, the database's address and the paths are changed to
// this machine's, and the database has no TLS here.
func TestDeploymentServes(t *testing.T) {
	server, err := url.Parse(database(t).DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	secrets, password := passwordFile(t)
	prepareHistories(t, server, secrets)
	dir := makeCertificates(t)
	servers, clients := certificates.Authorities(dir)
	c := deploymentConfig(t)
	for _, store := range c.Persistence.DataStores {
		store.SQL.ConnectAddr, store.SQL.TLS, store.SQL.PasswordCommand.Args = server.Host, nil, []string{password}
	}
	frontend, own := &c.Global.TLS.Frontend.Server, &c.Global.TLS.SystemWorker
	frontend.CertFile, frontend.KeyFile = certificates.Files(dir, certificates.Server)
	frontend.ClientCAFiles = []string{clients}
	own.CertFile, own.KeyFile = certificates.Files(dir, certificates.Workers)
	own.Client.RootCAFiles = []string{servers}
	book := ports.NewBook() // its ports fit the 16 bits that the server's membership table has for them
	for name, s := range c.Services {
		for part, port := range map[string]*int{"-grpc": &s.RPC.GRPCPort, "-membership": &s.RPC.MembershipPort} {
			if *port, err = book.Assign(name+part, 0); err != nil {
				t.Fatal(err)
			}
		}
		c.Services[name] = s
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(c.Services["frontend"].RPC.GRPCPort))
	c.PublicClient.HostPort = address
	for name, i := range c.ClusterMetadata.ClusterInformation {
		i.RPCAddress = address
		c.ClusterMetadata.ClusterInformation[name] = i
	}
	c.DynamicConfigClient.Filepath = deploymentFiles + "dynamicconfig.yaml"
	serveDeployment(t, c)

	plain, err := client.NewLazyClient(client.Options{HostPort: address})
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	if _, err := plain.CheckHealth(t.Context(), &client.CheckHealthRequest{}); err == nil {
		t.Error("the frontend answers without TLS")
	}
	askOverTLS(t, address, overTLS(t, dir, dir, client1))
	refusesStrangers(t, address, dir)
}

// client1 is a client that has a certificate.
const client1 = "flows"

func makeCertificates(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := certificates.Make(dir, client1); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Whoever reached the frontend's port could start, signal and end every flow: a connection over TLS needed no certificate.
func refusesStrangers(t *testing.T, address, dir string) {
	t.Helper()
	for name, own := range map[string]*tls.Config{
		"without a certificate":                     overTLS(t, dir, dir, ""),
		"with one that the other authority signed":  overTLS(t, dir, dir, certificates.Server),
		"with one that nobody of this place signed": overTLS(t, dir, makeCertificates(t), client1),
	} {
		c, err := client.NewLazyClient(client.Options{HostPort: address, ConnectionOptions: client.ConnectionOptions{TLS: own}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.CheckHealth(t.Context(), &client.CheckHealthRequest{}); err == nil {
			t.Errorf("the frontend answers a client %s", name)
		}
		c.Close()
	}
}

// overTLS are the settings of a client that believes the servers of a directory and shows a certificate of another, or none.
func overTLS(t *testing.T, dir, from, name string) *tls.Config {
	t.Helper()
	servers, _ := certificates.Authorities(dir)
	var certificate, key string
	if name != "" {
		certificate, key = certificates.Files(from, name)
	}
	c, err := certificates.Client(servers, certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func serveDeployment(t *testing.T, c *config.Config) {
	t.Helper()
	logger := log.NewNoopLogger()
	stop := make(chan any)
	settings, err := dynamicconfig.NewFileBasedClient(c.DynamicConfigClient, logger, stop)
	if err != nil {
		t.Fatal(err)
	}
	authorizer, err := authorization.GetAuthorizerFromConfig(&c.Global.Authorization)
	if err != nil {
		t.Fatal(err)
	}
	s, err := temporalserver.NewServer(temporalserver.WithConfig(c), temporalserver.ForServices(temporalserver.DefaultServices),
		temporalserver.WithLogger(logger), temporalserver.WithAuthorizer(authorizer), temporalserver.WithDynamicConfigClient(settings))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		close(stop)
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// askOverTLS waits until the server's own workers poll: they too connect through the frontend's TLS.
func askOverTLS(t *testing.T, address string, own *tls.Config) {
	t.Helper()
	c, err := client.NewLazyClient(client.Options{HostPort: address, ConnectionOptions: client.ConnectionOptions{TLS: own}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for until := time.Now().Add(time.Hour); ; time.Sleep(200 * time.Millisecond) {
		answer, err := c.WorkflowService().DescribeTaskQueue(t.Context(), &workflowservice.DescribeTaskQueueRequest{
			Namespace: "temporal-system", TaskQueue: &taskqueuepb.TaskQueue{Name: "default-worker-tq"}, TaskQueueType: enumspb.TASK_QUEUE_TYPE_WORKFLOW,
		})
		if err == nil && len(answer.GetPollers()) > 0 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("the server's workers don't poll: %v, %v", answer, err)
		}
	}
}
