package main

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/workflows"
)

//go:generate go test -count=1 -run ConfigurationPage . -update

var update = flag.Bool("update", false, "write docs/configuration.md again")

const configurationPage = "docs/configuration.md"

// meanings are the comments of the fields of all structs in the files of the configuration, by struct and field.
func meanings(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"config*.go", "network_*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}
				fields, ok := spec.Type.(*ast.StructType)
				if !ok {
					return true
				}
				for _, f := range fields.Fields.List {
					for _, id := range f.Names {
						out[spec.Name.Name+"."+id.Name] = strings.Join(strings.Fields(f.Doc.Text()), " ")
					}
				}
				return true
			})
		}
	}
	return out
}

const configurationHead = `# Configuration

<!-- Generated from the structs of config*.go and network_*.go by ` + "`make generate`" + `. Do not edit. -->

Kivuko is configured by environment variables alone. A process checks at start what it needs itself, and names every variable that is missing or breaks a rule.

- **Writing.** Lists are comma-separated, pairs have a colon (` + "`USDT:20000`" + `), durations are written ` + "`90s`, `15m` or `1h`" + `. Flags are ` + "`true` or `false`" + `.
- **Files.** ` + "`KIVUKO_X_FILE`" + ` names a file that holds the value of ` + "`KIVUKO_X`" + `; an empty file sets nothing. Pass what is marked *secret* this way.
- **Read by** lists the commands that read the variable, and of workers the queues. In **bold** are those that refuse to start without it, of a network only where it is served. *workers* means every queue; *chain* and *signer* are the queues of a network.
- **Production** says what ` + "`KIVUKO_MODE=production`" + ` demands besides. No process takes a key of the local stack there.
- A network is on in the processes where its first variable is set. The API reads balances from its nodes, and needs the network's tokens for that.
`

// drawConfiguration returns the page of all variables.
func drawConfiguration(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(configurationHead)
	comments := meanings(t)
	table := func(title string, structure reflect.Type, prefix string) {
		b.WriteString("\n## " + title + "\n\n| Variable | Default | Read by | Production | Meaning |\n|---|---|---|---|---|\n")
		for f := range structure.Fields() {
			if _, nested := f.Tag.Lookup("envPrefix"); nested {
				continue
			}
			meaning := comments[structure.Name()+"."+f.Name]
			if !strings.HasSuffix(meaning, ".") {
				t.Errorf("the comment of %s.%s must be whole sentences: %q", structure.Name(), f.Name, meaning)
			}
			if f.Tag.Get("secret") == "true" {
				meaning = "*Secret.* " + meaning
			}
			standard := f.Tag.Get("envDefault")
			if standard != "" {
				standard = "`" + standard + "`"
			}
			b.WriteString("| " + strings.Join([]string{"`" + prefix + f.Tag.Get("env") + "`", standard, readers(f), f.Tag.Get("production"), meaning}, " | ") + " |\n")
		}
	}
	config := reflect.TypeFor[Config]()
	table("All processes", config, variablePrefix)
	for f := range config.Fields() {
		if prefix, nested := f.Tag.Lookup("envPrefix"); nested {
			table(f.Tag.Get("title"), f.Type, variablePrefix+prefix)
		}
	}
	return strings.ReplaceAll(b.String(), "|  |", "| |")
}

func readers(f reflect.StructField) string {
	var out []string
	needed := strings.Fields(f.Tag.Get("need"))
	for _, r := range strings.Fields(f.Tag.Get("for")) {
		if slices.Contains(needed, r) {
			r = "**" + r + "**"
		}
		out = append(out, r)
	}
	return strings.Join(out, ", ")
}

func TestConfigurationPageIsCurrent(t *testing.T) {
	page := drawConfiguration(t)
	if *update {
		if err := os.WriteFile(configurationPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(configurationPage)
	if err != nil || string(have) != page {
		t.Errorf("%s is out of date: run make generate (%v)", configurationPage, err)
	}
}

// everyProcess are all commands that have a configuration, and all queues.
func everyProcess() []string {
	out := []string{"api", "codec", "migrate", "apply", "momo-register", "quarantine", "freeze", "resume", "rewrap", "rewrap-files", "audit-verify", workflows.QueueFlows, workflows.QueueMomo, workflows.QueueWebhooks}
	for _, network := range exchange.Networks() {
		out = append(out, workflows.QueueChain(network), workflows.QueueSigner(network))
	}
	return out
}

// Tags name existing processes, each process that needs a variable reads it, and keys are secrets.
func TestTagsOfVariables(t *testing.T) {
	known := []string{"all", "workers", "health", "cold-key", "cold-sign"}
	for _, p := range everyProcess() {
		kind, _ := kindOf(p)
		known = append(known, kind)
	}
	for _, v := range (Config{}).variables() {
		tag := v.field.Tag
		listed := strings.Fields(tag.Get("for"))
		if len(listed) == 0 {
			t.Errorf("%s is read by no process", v.name)
		}
		for _, p := range append(slices.Clone(listed), strings.Fields(tag.Get("need"))...) {
			if !slices.Contains(known, p) || !slices.Contains(listed, p) {
				t.Errorf("%s: %q is no process, or needs what it does not read", v.name, p)
			}
		}
		if k := v.value.Interface(); reflect.TypeOf(k) == reflect.TypeFor[Keyring]() || reflect.TypeOf(k) == reflect.TypeFor[HexKey]() {
			if tag.Get("secret") != "true" {
				t.Errorf("%s is a key and no secret", v.name)
			}
		}
	}
}

// In production each process enforces exactly its tags: it needs required values, and refuses those that must be off or
// encrypted.
func TestEachProcessDemandsWhatTheTagsSay(t *testing.T) {
	all := productionEnvironment()
	maps.Copy(all, map[string]string{
		"ETHEREUM_RPC": "https://node.example", "ETHEREUM_USDT": "0xdAC17F958D2ee523a2206206994597C13D831ec7",
		"SOLANA_RPC": "https://node.example", "SOLANA_USDT": "Es9vMFrzaCERmJfrF4H2FYD4KCoNkY11McCe8BenwNYB",
		"RATES_URL": "https://rates.example/v1",
	})
	whole, err := load(t, all)
	if err != nil {
		t.Fatal(err)
	}
	for _, process := range everyProcess() {
		if err := checkEach(whole, process); err != nil {
			t.Fatalf("%s refuses a complete environment: %v", process, err)
		}
	}
	for _, v := range whole.variables() {
		rule := v.field.Tag.Get("production")
		changes := map[string]bool{"": strings.HasPrefix(rule, "required")}
		if v.value.Kind() == reflect.Bool {
			changes["true"] = rule == "off"
		}
		if strings.Contains(rule, "https") {
			changes["http://plain.example"] = true
		}
		for value, demanded := range changes {
			t.Run(v.name+"="+value, func(t *testing.T) {
				changed := maps.Clone(all)
				changed[strings.TrimPrefix(v.name, variablePrefix)] = value
				c, err := load(t, changed)
				if err != nil {
					t.Fatal(err)
				}
				for _, process := range everyProcess() {
					err := checkEach(c, process)
					want := v.readBy(process) && (demanded || value == "" && v.neededBy(process))
					if refused := err != nil && strings.Contains(err.Error(), "\n  "+v.name+" must be "); refused != want {
						t.Errorf("%s refuses: %t, and the tags say %t (%v)", process, refused, want, err)
					}
				}
			})
		}
	}
}
