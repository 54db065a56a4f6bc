package temporal_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"

	"kivuko/dev/child"
	"kivuko/dev/ports"
	"kivuko/dev/postgres"
	"kivuko/dev/temporal"
)

// Variables that turn this test binary into a server process.
const (
	urlVariable   = "TEMPORAL_TEST_POSTGRES_URL"
	stateVariable = "TEMPORAL_TEST_STATE"
)

const (
	namespace = "kivuko"
	queue     = "greetings"
)

func TestMain(m *testing.M) {
	url := os.Getenv(urlVariable)
	if url == "" {
		os.Exit(m.Run())
	}
	s, err := temporal.Start(context.Background(), options(url, os.Getenv(stateVariable)))
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
	fmt.Println(s.Address())
	select {}
}

func options(url, state string) temporal.Options {
	return temporal.Options{
		PostgresURL:   url,
		DynamicConfig: filepath.Join("..", "..", "docker", "dynamicconfig.yaml"),
		PortsFile:     filepath.Join(state, "ports.json"),
		LogFile:       filepath.Join(state, "log"),
	}
}

func database(t *testing.T) *postgres.Server {
	t.Helper()
	pg, err := postgres.Start(t.Context(), postgres.Options{Unsafe: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Stop(); err != nil {
			t.Error(err)
		}
	})
	return pg
}

func start(t *testing.T, opts temporal.Options) *temporal.Server {
	t.Helper()
	s, err := temporal.Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func dial(t *testing.T, address string) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{HostPort: address, Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func register(t *testing.T, c client.Client) {
	t.Helper()
	_, err := c.WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// begin starts a workflow that no worker runs yet. It retries for the seconds until
// the server's caches contain a new namespace.
func begin(t *testing.T, c client.Client, id string) client.WorkflowRun {
	t.Helper()
	deadline := time.Now().Add(time.Hour)
	for {
		run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: queue}, greet, "Amina")
		if err == nil {
			return run
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

func greet(_ workflow.Context, name string) (string, error) { return "hello " + name, nil }

// finish runs a worker until the workflow has ended, and checks its result.
// timeout limits how long a workflow may take to continue: after a crash the server retries with growing pauses, which
// take longer on a busy machine.
const timeout = 5 * time.Minute

func finish(t *testing.T, c client.Client, id string) {
	t.Helper()
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflow(greet)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	var got string
	if err := c.GetWorkflow(ctx, id, "").Get(ctx, &got); err != nil {
		t.Fatal(err)
	}
	if got != "hello Amina" {
		t.Errorf("the workflow answered %q", got)
	}
}

func TestWorkflowSurvivesARestartOfTheServer(t *testing.T) {
	s := start(t, options(database(t).DSN("postgres"), t.TempDir()))
	c := dial(t, s.Address())
	register(t, c)
	run := begin(t, c, "restart")
	address := s.Address()
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.Address() != address {
		t.Fatalf("the address changed from %s to %s", address, s.Address())
	}
	description, err := c.DescribeWorkflowExecution(t.Context(), "restart", "")
	if err != nil {
		t.Fatal(err)
	}
	info := description.GetWorkflowExecutionInfo()
	if info.GetExecution().GetRunId() != run.GetRunID() || info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		t.Errorf("the run came back as %v", info)
	}
	finish(t, c, "restart")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("a second Stop: %v", err)
	}
}

// process starts a server as a separate process and returns its address.
func process(t *testing.T, url, state string) (*child.Process, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), urlVariable+"="+url, stateVariable+"="+state)
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	p, err := child.Start(cmd, syscall.SIGKILL)
	_ = w.Close() // the child has its own descriptor
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Signal(syscall.SIGKILL)
		_ = out.Close()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.HasPrefix(line, "failed:") {
		t.Fatalf("the server process said %q (%v)", line, err)
	}
	return p, strings.TrimSpace(line)
}

func TestWorkflowSurvivesAKillOfTheServer(t *testing.T) {
	url, state := database(t).DSN("postgres"), t.TempDir()
	p, address := process(t, url, state)
	c := dial(t, address)
	register(t, c)
	begin(t, c, "kill")
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if _, again := process(t, url, state); again != address {
		t.Fatalf("the address changed from %s to %s", address, again)
	}
	finish(t, c, "kill")
}

func TestServerSurvivesACrashOfItsDatabase(t *testing.T) {
	pg := database(t)
	s := start(t, options(pg.DSN("postgres"), t.TempDir()))
	c := dial(t, s.Address())
	register(t, c)
	// Each service of the server reads a namespace when it first needs it. When the database dies during that read, the
	// service drops its task for a namespace that is seconds old.
	begin(t, c, "before")
	finish(t, c, "before")
	begin(t, c, "crash")
	if err := pg.Restart(t.Context(), postgres.Kill); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	finish(t, c, "crash")
}

func TestTakenPortIsNamed(t *testing.T) {
	port, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", ports.Address(port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	opts := options("postgres://nobody:secret-of-the-url@127.0.0.1:1/x", t.TempDir())
	opts.Port = port
	_, err = temporal.Start(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d", port)) {
		t.Errorf("error is %v", err)
	}
}

func TestUnreachableDatabaseIsAnErrorWithoutThePassword(t *testing.T) {
	for _, url := range []string{
		"postgres://nobody:secret-of-the-url@127.0.0.1:1/x?sslmode=disable",
		"postgres://nobody:secret-of-the-url@127.0.0.1:bad port/x",
	} {
		_, err := temporal.Start(t.Context(), options(url, t.TempDir()))
		if err == nil || strings.Contains(err.Error(), "secret-of-the-url") {
			t.Errorf("error is %v", err)
		}
	}
}

func TestWebUIKnowsItsCodec(t *testing.T) {
	opts := options(database(t).DSN("postgres"), t.TempDir())
	port, err := ports.Free()
	if err != nil {
		t.Fatal(err)
	}
	opts.UI = temporal.UI{Port: port, Namespace: namespace, CodecEndpoint: "http://127.0.0.1:8081"}
	s := start(t, opts)
	if page := get(t, s.UIURL()+"/"); !strings.Contains(page, "<html") {
		t.Errorf("the front page is %.200q", page)
	}
	settings := get(t, s.UIURL()+"/api/v1/settings")
	for _, want := range []string{
		`"Endpoint":"http://127.0.0.1:8081"`, `"DefaultNamespace":"kivuko"`,
		// An operator signals flows. What ends, pauses or rewinds one leaves a paid order behind, and flows are not started by hand. Updates
		// and the commands of activities are the API's and the workers' own.
		`"WorkflowSignalDisabled":false`, `"WorkflowUpdateDisabled":true`, `"WorkflowCancelDisabled":true`, `"WorkflowPauseDisabled":true`,
		`"WorkflowResetDisabled":true`, `"WorkflowTerminateDisabled":true`, `"BatchActionsDisabled":true`, `"StartWorkflowDisabled":true`,
		`"ActivityCommandsDisabled":true`,
	} {
		if !strings.Contains(settings, want) {
			t.Errorf("the settings lack %s: %s", want, settings)
		}
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if !ports.IsFree(port) {
		t.Error("the Web UI still listens after Stop")
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s: %s", url, resp.Status, body)
	}
	return string(body)
}
