package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// suitePackages are the packages of the product whose benchmarks print ratios.
var suitePackages = []string{"./store/...", "./api/..."}

// testDatabaseVariable tells the benchmarks where they may make databases (store/storetest).
const testDatabaseVariable = "KIVUKO_TEST_DATABASE_URL"

// suites runs the Go benchmarks of the product on the stack's PostgreSQL, with the rest of the stack idle,
// and takes their ratios into the table.
func (w *world) suites(ctx context.Context, t *table) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-run", "^$", "-bench", ".", "-benchtime", "5x", "-p", "1", "-timeout", "20m"}, suitePackages...)...)
	cmd.Dir = w.Root
	cmd.Env = append(os.Environ(), testDatabaseVariable+"="+w.stack.Postgres.DSN("postgres"))
	cmd.Stderr = w.Out
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		w.say("  %s", lines.Text())
		for _, f := range readBenchmark(lines.Text()) {
			t.add(f)
		}
	}
	if err := lines.Err(); err != nil {
		_, _ = io.Copy(io.Discard, out) // so that the benchmarks can end
		return err
	}
	return cmd.Wait()
}

// expected is a metric that a goal is known for.
type expected struct {
	metric *regexp.Regexp // of "name unit"
	figure func(found []string) figure
}

// readBenchmark takes the metrics out of a line that `go test -bench` prints
// (golang.org/design/14313-benchmark-format): the name, the number of runs, and pairs of value and unit.
func readBenchmark(line string) []figure {
	fields := strings.Fields(line)
	if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
		return nil
	}
	name := strings.TrimPrefix(fields[0], "Benchmark")
	if i := strings.LastIndexByte(name, '-'); i > 0 { // the number of processors
		name = name[:i]
	}
	var out []figure
	for i := 2; i+1 < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return out
		}
		for _, e := range expectations {
			if found := e.metric.FindStringSubmatch(name + " " + fields[i+1]); found != nil {
				f := e.figure(found)
				f.ratio, f.note = value, fmt.Sprintf("Benchmark%s, %s", name, fields[i+1])
				out = append(out, f)
				break
			}
		}
	}
	return out
}

func named(name string, g goal) func([]string) figure {
	return func([]string) figure { return figure{name: name, goal: g} }
}

// Goals of the store and the API.
const (
	minLocking = 10  // times plain row locking, at 64 writers
	minInserts = 0.7 // of plain inserts of the same rows
	minRead    = 0.8 // of the same query behind a bare Fiber
)

var expectations = []expected{
	{regexp.MustCompile(`^HotAccount/(\w+) x_locking_(\d+)$`), func(m []string) figure {
		f := figure{name: m[1] + "s on one hot account, " + m[2] + " writers, against row locking"}
		if m[2] == "64" {
			f.goal = atLeast(minLocking)
		}
		return f
	}},
	{regexp.MustCompile(`^HotAccount/(\w+) x_inserts_(\d+)$`), func(m []string) figure {
		f := figure{name: m[1] + "s on one hot account, " + m[2] + " writers, against plain inserts"}
		if m[2] != "1" {
			f.goal = atLeast(minInserts)
		}
		return f
	}},
	{regexp.MustCompile(`^GetOrder ratio$`), named("GET of one order against the same read behind a bare Fiber", atLeast(minRead))},
}
