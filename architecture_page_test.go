package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

//go:generate go test -count=1 -run ArchitecturePage . -update

// imports are our packages, each with its imports of our packages, without tests.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}}:{{join .Imports ","}}`, "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, line := range strings.Fields(string(said)) {
		name, list, _ := strings.Cut(line, ":")
		out[name] = nil
		for _, i := range strings.Split(list, ",") {
			if strings.HasPrefix(i, "kivuko/") {
				out[name] = append(out[name], i)
			}
		}
	}
	return out
}

// drawImports draws an arrow for each import, except for imports that follow from others.
func drawImports(all map[string][]string) string {
	var reaches func(from, to string) bool
	reaches = func(from, to string) bool {
		return slices.ContainsFunc(all[from], func(next string) bool { return next == to || reaches(next, to) })
	}
	short := func(name string) string { return strings.TrimPrefix(name, "kivuko/") }
	node := func(name string) string { return strings.ReplaceAll(short(name), "/", "_") }
	var b strings.Builder
	b.WriteString("\n```mermaid\nflowchart TD\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		label := short(name) + "/"
		if name == "kivuko" {
			label = "main.go and the root"
		}
		fmt.Fprintf(&b, "    %s[\"%s\"]\n", node(name), label)
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, to := range slices.Sorted(slices.Values(all[name])) {
			if !slices.ContainsFunc(all[name], func(other string) bool { return other != to && reaches(other, to) }) {
				fmt.Fprintf(&b, "    %s --> %s\n", node(name), node(to))
			}
		}
	}
	b.WriteString("```\n\n")
	return b.String()
}

// The diagram of the packages matches their imports.
func TestArchitecturePageIsCurrent(t *testing.T) {
	const name, begin, end = "docs/architecture.md", "Do not edit up to the next mark. -->\n", "<!-- /imports -->\n"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, marked := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if !marked || !ended {
		t.Fatalf("%s has no marks around the drawing of imports", name)
	}
	want := before + begin + drawImports(imports(t)) + end + after
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(page) != want {
		t.Errorf("the drawing of imports in %s is out of date: run make generate", name)
	}
}

func TestDrawImports(t *testing.T) {
	t.Parallel()
	got := drawImports(map[string][]string{"kivuko/a": {"kivuko/b", "kivuko/c"}, "kivuko/b": {"kivuko/c"}, "kivuko/c": nil})
	for line, want := range map[string]bool{"a --> b": true, "b --> c": true, "a --> c": false} {
		if strings.Contains(got, line) != want {
			t.Errorf("%q is drawn: %t\n%s", line, !want, got)
		}
	}
}

// Every package has its row in the table of folders, or is named in the row of a parent folder.
func TestEveryPackageIsInTheTable(t *testing.T) {
	page := documents(t)["docs/architecture.md"]
	for name := range imports(t) {
		if folder := strings.TrimPrefix(name, "kivuko/"); name != "kivuko" && !strings.Contains(page, "`"+folder+"/`") {
			t.Errorf("docs/architecture.md does not say what %s/ is", folder)
		}
	}
}
