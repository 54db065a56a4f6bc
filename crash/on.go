//go:build crash

package crash

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
)

// variable names a directory. It is not part of the service's configuration, so it is read here and not in config.go.
//
// A file in Armed arms points. Its first line is the queue whose process must die, empty for any; its second line is a
// pattern of path.Match for the point. The process that reaches such a point removes the file, writes the point's name to a
// file of the same name in Killed and dies. The file is removed first, so that it kills only once.
//
// Each process lists the points that it passes in a file of its own in Passed, each once, with the type of the workflow and
// the queue. The file also lists the activities that it executes.
const variable = "KIVUKO_CRASH_DIR"

// The directories below the one that the variable names.
const (
	Armed  = "armed"
	Killed = "killed"
	Passed = "passed"
)

// points is the register of this process, nil when crash points are off.
var points = open()

type register struct {
	dir string

	mu    sync.Mutex
	notes *os.File
	noted map[string]bool
}

func open() *register {
	dir := os.Getenv(variable) //nolint:forbidigo // see variable
	if dir == "" {
		return nil
	}
	r := &register{dir: dir, noted: map[string]bool{}}
	for _, name := range []string{Armed, Killed, Passed} {
		must(os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	notes, err := os.OpenFile(filepath.Join(dir, Passed, fmt.Sprint(os.Getpid())), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	must(err)
	r.notes = notes
	wrapDefaultTransport()
	return r
}

func must(err error) {
	if err != nil {
		panic("crash points: " + err.Error())
	}
}

// note records once that a point was passed, or that an activity was executed.
func (r *register) note(point string, by *execution) {
	line := strings.Join([]string{point, by.flow, by.queue}, "\t")
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.noted[line] {
		return
	}
	r.noted[line] = true
	_, err := r.notes.WriteString(line + "\n")
	must(err)
}

// pass kills the process if the point is armed. After SIGKILL nothing else runs: no deferred call, no answer to Temporal, no
// end of a transaction.
func (r *register) pass(point string, by *execution) {
	r.note(point, by)
	armed, err := os.ReadDir(filepath.Join(r.dir, Armed))
	must(err)
	for _, entry := range armed {
		file := filepath.Join(r.dir, Armed, entry.Name())
		content, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process is dying of it
		}
		must(err)
		queue, pattern, _ := strings.Cut(string(content), "\n")
		matches, err := path.Match(pattern, point)
		must(err)
		if !matches || (queue != "" && !slices.Contains(os.Args, queue)) {
			continue
		}
		switch err := os.Remove(file); {
		case err == nil:
			must(os.WriteFile(filepath.Join(r.dir, Killed, entry.Name()), []byte(point), 0o600))
			must(syscall.Kill(os.Getpid(), syscall.SIGKILL))
			select {} // the signal is on its way
		case !errors.Is(err, fs.ErrNotExist):
			must(err)
		}
	}
}

// execution is one execution of an activity.
type execution struct {
	activity, flow, queue string

	mu    sync.Mutex
	sites map[string][]string // the places in the code that made a step, in order
}

type executionKey struct{}

// of returns the execution of a context, nil outside of activities.
func of(ctx context.Context) *execution {
	e, _ := ctx.Value(executionKey{}).(*execution)
	return e
}

// step returns the function that is called before and after a side effect. A side effect that the same place repeats, as in
// a loop, has the same number.
func (e *execution) step(name, site string) func(done bool) {
	return func(done bool) {
		number := e.number(name, site)
		when := "before"
		if done {
			when = "after"
		}
		points.pass(fmt.Sprintf("%s/%s#%d/%s", e.activity, name, number, when), e)
	}
}

func (e *execution) number(name, site string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.Index(e.sites[name], site)
	if i < 0 {
		i = len(e.sites[name])
		e.sites[name] = append(e.sites[name], site)
	}
	return i + 1
}

// Interceptors returns the interceptor that puts the execution of an activity into its context.
func Interceptors() []interceptor.WorkerInterceptor {
	if points == nil {
		return nil
	}
	return []interceptor.WorkerInterceptor{&naming{}}
}

type naming struct {
	interceptor.WorkerInterceptorBase
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (*naming) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	return &named{interceptor.ActivityInboundInterceptorBase{Next: next}}
}

type named struct {
	interceptor.ActivityInboundInterceptorBase
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (a *named) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	info := activity.GetInfo(ctx)
	e := &execution{activity: info.ActivityType.Name, queue: info.TaskQueue, sites: map[string][]string{}}
	if info.WorkflowType != nil {
		e.flow = info.WorkflowType.Name
	}
	points.note(e.activity, e)
	return a.Next.ExecuteActivity(context.WithValue(ctx, executionKey{}, e), in)
}
