package exchange_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"kivuko/exchange"
)

var update = flag.Bool("update", false, "write docs/states.md again")

const statesPage = "../docs/states.md"

// docs/states.md is generated from the machines and must be current.
func TestStatesPageIsCurrent(t *testing.T) {
	t.Parallel()
	want := states()
	if *update {
		if err := os.WriteFile(statesPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(statesPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/states.md is out of date: run go test ./exchange -run StatesPage -update")
	}
}

func states() string {
	var b strings.Builder
	b.WriteString("# State machines\n\n<!-- Generated from exchange/ by `go test ./exchange -run StatesPage -update`. Do not edit. -->\n\n" +
		"One definition of each machine drives the code, the guards in the database, `GET /api/v1/auth/state-machines` and this page.\n" +
		"In brackets: who causes the transition. Terminal states stay terminal; money that arrives later opens a payment exception.\n")
	for _, m := range exchange.Machines() {
		fmt.Fprintf(&b, "\n## %s\n\n```mermaid\n%s```\n\n| From | To | By | When |\n|---|---|---|---|\n", strings.ReplaceAll(m.Name, "_", " "), m.Mermaid())
		for _, tr := range m.Transitions {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", tr.From, tr.To, tr.By, tr.Why)
		}
	}
	return b.String()
}
