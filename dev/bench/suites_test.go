package bench

import (
	"math"
	"strings"
	"testing"
)

// Real output of `go test -bench -v`, with the benchmark's own lines in between.
const printed = `goos: linux
BenchmarkHotAccount/hold
ratio hold/64-writers: 12.5x row locking, 0.81x plain inserts, 9.0x one writer (20000/s)
ratio hold/256-writers: 20.0x row locking, 0.90x plain inserts, 9.9x one writer (18000/s)
BenchmarkHotAccount/hold-2         	       1	         0 ns/op	        12.50 x_locking_64	         0.81 x_inserts_64
BenchmarkGetOrder-2 	      20	 604155137 ns/op	      9000 api-req/s	     12000 bare-req/s	         0.7500 ratio
BenchmarkUpload-2 	      20	 120000000 ns/op	         0.5000 MiB/upload	        90.00 MiB/s	         1.050 x_memory
BenchmarkSales-2   	       1	       130.0 opened/s	       180.0 taken/s	         0.7500 x_open	         1.100 x_pool
BenchmarkSending/tron-2         	       1	       800.0 bare/s_1	       900.0 bare/s_8	       230.0 deposits/s	       160.0 sent/s_1	       120.0 sent/s_8	         0.2000 x_bare_1	         0.1300 x_bare_8	         0.02245 x_reading
PASS`

func TestFiguresOfSuites(t *testing.T) {
	found := findings{}
	for line := range strings.Lines(printed) {
		found.read(line)
	}
	want := map[string]string{
		"holds on one hot account, 64 writers, against row locking":                         "met",
		"holds on one hot account, 64 writers, against plain inserts":                       "met",
		"holds on one hot account: 256 writers against 64":                                  "MISSED by 10.0 %",
		"GET of one order against the same read behind a bare Fiber":                        "MISSED by 6.3 %",
		"an upload of 10 MiB against one of 1 MiB: memory":                                  "met",
		"opening a sale with 1,000 escrow addresses against 50":                             "met",
		"taking the crypto of a sale against opening one":                                   "-",
		"transfers on tron up to broadcast, one wallet, against the bare driver":            "-",
		"transfers on tron up to broadcast, 8 wallets in parallel, against the bare driver": "-",
		"transfers on tron: 8 wallets in parallel against one":                              "MISSED by 25.0 %",
		"deposits on tron: watching against only reading the same blocks":                   "-",
	}
	figures := goals(found)
	if len(figures) != len(want) {
		t.Errorf("%d figures, want %d: %v", len(figures), len(want), figures)
	}
	for _, f := range figures {
		if got := f.goal.verdict(f.ratio); got != want[f.name] {
			t.Errorf("%s: %q, want %q", f.name, got, want[f.name])
		}
	}
}

func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		goal  goal
		value float64
		want  string
	}{
		{goal{}, 3, "-"},
		{atLeast(0.9), 0.9, "met"},
		{atLeast(0.9), math.Inf(1), "not measured"},
		{goal{}, math.NaN(), "not measured"},
		{atLeast(0.9), 0.45, "MISSED by 50.0 %"},
		{atMost(40), 40, "met"},
		{atMost(40), 54, "MISSED by 35.0 %"},
	} {
		if got := c.goal.verdict(c.value); got != c.want {
			t.Errorf("%v of %s: %q, want %q", c.value, c.goal, got, c.want)
		}
	}
}
