package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"kivuko/exchange"
)

// suite names benchmarks whose figures are already ratios: a package, a pattern of its benchmarks, and how
// often each one repeats.
type suite struct{ module, dir, bench, times string }

var (
	storeSuite   = suite{".", "./store", "HotAccount|Search|Sales", "1x"}
	apiSuite     = suite{".", "./api", "GetOrder", "20x"}
	uploadSuite  = suite{".", "./api", "Upload", "5x"} // of one user, who may not upload without end
	depositSuite = suite{".", "./store", "Deposits", "1x"}
	sendingSuite = suite{"dev", "./conformance", "Sending", "1x"}
)

// testDatabaseVariable names the variable with the server on which benchmarks make databases (store/storetest).
const testDatabaseVariable = "KIVUKO_TEST_DATABASE_URL"

// suitesOf runs Go benchmarks on the stack's PostgreSQL and adds their figures to the table.
func suitesOf(all ...suite) func(context.Context, *harness, *table) error {
	return func(ctx context.Context, w *harness, t *table) error {
		found := findings{}
		var errs []error
		for _, s := range all {
			errs = append(errs, w.suite(ctx, s, found))
		}
		for _, f := range goals(found) {
			t.add(f)
		}
		return errors.Join(errs...)
	}
}

func (w *harness) suite(ctx context.Context, s suite, found findings) error {
	// With -v each result is on a separate line, whatever the benchmark prints.
	args := []string{"test", "-v", "-count=1", "-run", "^$", "-bench", s.bench, "-benchtime", s.times, "-timeout", "60m"}
	if w.Quick {
		args = append(args, "-short")
	}
	cmd := exec.CommandContext(ctx, "go", append(args, s.dir)...)
	cmd.Dir = filepath.Join(w.Root, s.module)
	cmd.Env = append(slices.Clone(w.Env), testDatabaseVariable+"="+w.stack.Postgres.DSN("postgres"))
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
		if text := lines.Text(); strings.Contains(text, "Benchmark") || strings.Contains(text, "ratio ") || strings.Contains(text, "p95") || strings.Contains(text, "are not on this machine") {
			w.say("  %s", text)
		}
		found.read(lines.Text())
	}
	if err := lines.Err(); err != nil {
		_, _ = io.Copy(io.Discard, out) // a full pipe would block the benchmarks
		return errors.Join(err, cmd.Wait())
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("benchmarks of %s: %w", s.dir, err)
	}
	return nil
}

// findings are metrics by "benchmark unit".
type findings map[string]float64

// hotRate matches the writer's rate in the output of the store's benchmark: "ratio hold/64-writers: … (12345/s)".
var hotRate = regexp.MustCompile(`ratio (\w+)/(\d+)-writers:.*\((\d+)/s\)`)

// read reads the metrics of a line of `go test -bench` (golang.org/design/14313-benchmark-format):
// the name, the number of runs, and pairs of value and unit.
func (f findings) read(line string) {
	if m := hotRate.FindStringSubmatch(line); m != nil {
		if rate, err := strconv.ParseFloat(m[3], 64); err == nil {
			f["HotAccount/"+m[1]+" rate_"+m[2]] = rate
		}
	}
	fields := strings.Fields(line)
	if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
		return
	}
	name := strings.TrimPrefix(fields[0], "Benchmark")
	if i := strings.LastIndexByte(name, '-'); i > 0 { // the number of processors
		name = name[:i]
	}
	for i := 2; i+1 < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return
		}
		f[name+" "+fields[i+1]] = value
	}
}

// Goals of the store and the API.
const (
	minLocking = 10  // times plain row locking, at 64 writers
	minKept    = 1   // of the rate at 64 writers, at 256
	minInserts = 0.7 // of plain inserts of the same rows
	minRead    = 0.8 // of the same query behind a bare Fiber
	maxSearch  = 10  // milliseconds, the 95th percentile at one million orders
	maxGrowth  = 2   // of that at ten millions
	maxWallets = 1.2 // times the cost of a block with a hundred watched wallets, at a hundred thousand
	maxUpload  = 1.2 // times the memory of an upload of 1 MiB, at ten
	maxPool    = 1.2 // times the cost of opening a sale with fifty escrow addresses, at a thousand
	minBeside  = 1   // of the rate of one sending wallet, with eight in parallel
)

// goals returns the figures of the table, with their goals.
func goals(found findings) []figure {
	var out []figure
	pick := func(key, name, unit string, g goal, note, why string) {
		if value, ok := found[key]; ok {
			out = append(out, figure{name: name, ratio: value, unit: unit, goal: g, note: note, why: why})
		}
	}
	for _, kind := range []string{"hold", "posting"} {
		key := "HotAccount/" + kind
		for _, writers := range []string{"1", "64", "256"} {
			name := fmt.Sprintf("%ss on one hot account, %s writers", kind, writers)
			locking := goal{}
			if writers == "64" {
				locking = atLeast(minLocking)
			}
			note := fmt.Sprintf("%.0f/s", found[key+" rate_"+writers])
			pick(key+" x_locking_"+writers, name+", against row locking", "", locking, note, "")
			pick(key+" x_inserts_"+writers, name+", against plain inserts", "", atLeast(minInserts), note,
				"a single writer shares its commit with no other, and locks and checks, which plain inserts don't")
		}
		if many, few := found[key+" rate_256"], found[key+" rate_64"]; few > 0 {
			out = append(out, figure{
				name: kind + "s on one hot account: 256 writers against 64", ratio: many / few, goal: atLeast(minKept), note: "must not fall",
			})
		}
	}
	pick("GetOrder ratio", "GET of one order against the same read behind a bare Fiber", "", atLeast(minRead),
		fmt.Sprintf("%.0f/s to %.0f/s", found["GetOrder api-req/s"], found["GetOrder bare-req/s"]),
		"the token, the session, the policy, the log line and the metrics of each request")
	pick("Upload x_memory", "an upload of 10 MiB against one of 1 MiB: memory", "", atMost(maxUpload),
		fmt.Sprintf("%.1f MiB allocated, client included, and %.0f MiB/s", found["Upload MiB/upload"], found["Upload MiB/s"]), "")
	pick("Deposits x_wallets", "one block with 100,000 watched wallets against 100", "", atMost(maxWallets),
		fmt.Sprintf("%.0f deposits booked per second", found["Deposits deposits/s"]), "")
	pick("Sales x_pool", "opening a sale with 1,000 escrow addresses against 50", "", atMost(maxPool),
		fmt.Sprintf("%.0f sales opened per second, one after the other", found["Sales opened/s"]), "")
	pick("Sales x_open", "taking the crypto of a sale against opening one", "", goal{},
		fmt.Sprintf("%.0f taken per second, one after the other", found["Sales taken/s"]), "")
	for _, n := range exchange.Networks() {
		out = append(out, sendingGoals(found, n)...)
	}
	const million, ten = "Search/1000000 p95-ms", "Search/10000000 p95-ms"
	pick(million, "search, slowest kind of query at 1 million orders: p95", "ms", atMost(maxSearch), "three-letter queries included", "")
	pick(ten, "search, slowest kind of query at 10 million orders: p95", "ms", goal{}, "three-letter queries included", "")
	if found[million] > 0 && found[ten] > 0 {
		out = append(out, figure{name: "search at 10 million orders against 1 million: p95", ratio: found[ten] / found[million], goal: atMost(maxGrowth)})
	}
	return out
}

// sendingGoals are the figures of one network: transfers up to broadcast, and deposits.
func sendingGoals(found findings, n exchange.Network) []figure {
	key := "Sending/" + string(n)
	if _, ok := found[key+" x_bare_1"]; !ok {
		return nil
	}
	var out []figure
	for _, load := range []struct{ senders, name string }{{"1", "one wallet"}, {"8", "8 wallets in parallel"}} {
		out = append(out, figure{
			name:  fmt.Sprintf("transfers on %s up to broadcast, %s, against the bare driver", n, load.name),
			ratio: found[key+" x_bare_"+load.senders],
			note:  fmt.Sprintf("%.0f/s to %.0f/s", found[key+" sent/s_"+load.senders], found[key+" bare/s_"+load.senders]),
		})
	}
	return append(out, figure{
		name:  fmt.Sprintf("transfers on %s: 8 wallets in parallel against one", n),
		ratio: found[key+" sent/s_8"] / found[key+" sent/s_1"], goal: atLeast(minBeside), note: "must not fall",
	}, figure{
		name: fmt.Sprintf("deposits on %s: watching against only reading the same blocks", n), ratio: found[key+" x_reading"],
		note: fmt.Sprintf("%.0f deposits seen and booked per second, from the node into the ledger", found[key+" deposits/s"]),
	})
}
