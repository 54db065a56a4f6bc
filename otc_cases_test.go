package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// caseTests are the tests that a row of docs/otc-cases.md names in one folder.
var caseTests = regexp.MustCompile("((?:`Test\\w+`(?:, )?)+) \\((?:`([a-z0-9/]+)/`|root)\\)")

// Each case of the OTC desk names the tests that play it, by their folder, and they exist.
func TestCasesOfThePageNameTheirTests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/otc-cases.md")
	if err != nil {
		t.Fatal(err)
	}
	sources, rows := map[string]string{}, 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if len(cells) != 3 || strings.HasPrefix(line, "| Case ") {
			continue
		}
		rows++
		groups := caseTests.FindAllStringSubmatch(cells[2], -1)
		if rest := caseTests.ReplaceAllString(cells[2], ""); strings.Contains(rest, "`Test") || len(groups) == 0 && !strings.Contains(rest, "`Benchmark") {
			t.Errorf("%q names no test, or one without its folder", cells[0])
		}
		for _, g := range groups {
			for _, name := range regexp.MustCompile(`Test\w+`).FindAllString(g[1], -1) {
				if !strings.Contains(testsOf(t, sources, g[2]), "\nfunc "+name+"(") {
					t.Errorf("%q: there is no %s in %q", cells[0], name, g[2])
				}
			}
		}
	}
	if rows < 60 {
		t.Errorf("the page has %d cases", rows)
	}
}

// testsOf returns the tests of a folder, which is the root when it is empty.
func testsOf(t *testing.T, read map[string]string, folder string) string {
	t.Helper()
	if read[folder] == "" {
		files, err := filepath.Glob(filepath.Join(".", folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(b)
		}
		read[folder] = all.String()
	}
	return read[folder]
}
