package workflows_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kivuko/workflows"
)

// The table of all reasons in the runbooks is generated from their advice.
func TestReasonsTableIsCurrent(t *testing.T) {
	const begin, end = "Do not edit up to the next mark. -->\n", "<!-- /reasons -->\n"
	name := filepath.Join("..", workflows.RunbooksPage)
	doc, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, marked := strings.Cut(string(doc), begin)
	_, after, ended := strings.Cut(rest, end)
	if !marked || !ended {
		t.Fatalf("%s has no markers around the table of reasons", workflows.RunbooksPage)
	}
	var b strings.Builder
	b.WriteString("\n| Reason | What is wrong | Commands |\n|---|---|---|\n")
	for _, r := range slices.Sorted(slices.Values(workflows.Reasons())) {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | `%s` |\n", r, r, r.Advice().What, strings.Join(r.Advice().Verbs, "`, `"))
	}
	page := before + begin + b.String() + "\n" + end + after
	if *update {
		if err := os.WriteFile(name, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		doc = []byte(page)
	}
	if string(doc) != page {
		t.Errorf("the table of reasons in %s is out of date: run make generate", workflows.RunbooksPage)
	}
}
