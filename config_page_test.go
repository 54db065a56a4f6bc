package main

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/workflows"
)

// written is one line of the tables of variables in docs/operations.md.
type written struct{ standard, production string }

// variable is one that the configuration reads.
type variable struct {
	name     string // without KIVUKO_
	standard string
	flag     bool
}

func readVariables(t reflect.Type, prefix string) []variable {
	var out []variable
	for i := range t.NumField() {
		f := t.Field(i)
		if inner, ok := f.Tag.Lookup("envPrefix"); ok {
			out = append(out, readVariables(f.Type, prefix+inner)...)
			continue
		}
		out = append(out, variable{prefix + f.Tag.Get("env"), f.Tag.Get("envDefault"), f.Type.Kind() == reflect.Bool})
	}
	return out
}

func writtenVariables(t *testing.T) map[string]written {
	t.Helper()
	page, err := os.ReadFile("docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]written{}
	for _, row := range regexp.MustCompile("(?m)^\\| `KIVUKO_([A-Z_0-9]+)` \\|([^|]*)\\|([^|]*)\\|(.*)\\|$").FindAllStringSubmatch(string(page), -1) {
		if _, twice := out[row[1]]; twice {
			t.Errorf("docs/operations.md tells of KIVUKO_%s twice", row[1])
		}
		if strings.TrimSpace(row[4]) == "" {
			t.Errorf("docs/operations.md does not say what KIVUKO_%s is", row[1])
		}
		out[row[1]] = written{strings.Trim(row[2], " `"), strings.TrimSpace(row[3])}
	}
	return out
}

func TestOperationsTellOfEveryVariable(t *testing.T) {
	page := writtenVariables(t)
	known := map[string]bool{}
	for _, v := range readVariables(reflect.TypeFor[Config](), "") {
		known[v.name] = true
		w, ok := page[v.name]
		switch {
		case !ok:
			t.Errorf("docs/operations.md does not tell of KIVUKO_%s", v.name)
		case w.standard != v.standard:
			t.Errorf("docs/operations.md says that the default of KIVUKO_%s is %q, and it is %q", v.name, w.standard, v.standard)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(page)) {
		if !known[name] {
			t.Errorf("docs/operations.md tells of KIVUKO_%s, which nothing reads", name)
		}
	}
}

// refusal is what a deployment of all processes and networks says of an environment.
func refusal(t *testing.T, variables map[string]string) string {
	t.Helper()
	c, err := load(t, variables)
	if err != nil {
		return err.Error()
	}
	var n need
	c.checkAPI(&n)
	c.checkCodec(&n)
	queues := []string{workflows.QueueFlows, workflows.QueueMomo}
	for _, network := range exchange.Networks() {
		queues = append(queues, workflows.QueueChain(network), workflows.QueueSigner(network))
	}
	if err := c.checkQueues(queues); err != nil {
		n.problems = append(n.problems, err.Error())
	}
	return strings.Join(n.problems, "\n")
}

// What the tables say of production is what production does: it misses what is required, and refuses
// what must be off, and nothing else.
func TestOperationsTellWhatProductionDemands(t *testing.T) {
	all := productionEnvironment()
	maps.Copy(all, map[string]string{
		"ETHEREUM_RPC": "https://node.example", "ETHEREUM_USDT": "0xdAC17F958D2ee523a2206206994597C13D831ec7",
		"SOLANA_RPC": "https://node.example", "SOLANA_USDT": "Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB",
	})
	if said := refusal(t, all); said != "" {
		t.Fatalf("a complete environment is refused: %s", said)
	}
	page := writtenVariables(t)
	for _, v := range readVariables(reflect.TypeFor[Config](), "") {
		t.Run(v.name, func(t *testing.T) {
			for value, cell := range map[string]string{"": "required", "true": "must be off"} {
				if value != "" && !v.flag {
					continue
				}
				changed := maps.Clone(all)
				changed[v.name] = value
				demanded := strings.Contains(refusal(t, changed), "KIVUKO_"+v.name+" ")
				if wrote := page[v.name].production == cell; wrote != demanded {
					t.Errorf("%q in docs/operations.md: %t; with the value %q production refuses: %t", cell, wrote, value, demanded)
				}
			}
		})
	}
}
