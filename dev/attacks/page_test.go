package attacks

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPageNamesEveryAttack compares docs/attacks.md with the tests: each attack of this folder is on the page, and each test that
// the page names is where it says.
func TestPageNamesEveryAttack(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	raw, err := os.ReadFile(filepath.Join(root, "docs", "attacks.md"))
	if err != nil {
		t.Fatal(err)
	}
	page, quoted := string(raw), regexp.MustCompile("`([^`]+)`")
	for _, line := range strings.Split(page, "\n") {
		folder, tests := filepath.Join("dev", "attacks"), []string(nil)
		for _, m := range quoted.FindAllStringSubmatch(line, -1) {
			switch {
			case strings.HasPrefix(m[1], "Test"):
				tests = append(tests, m[1])
			case strings.HasPrefix(line, "|") && isFolder(filepath.Join(root, m[1])):
				folder = m[1]
			}
		}
		for _, name := range tests {
			if !slices.Contains(testsOf(t, filepath.Join(root, folder)), name) && !slices.Contains(testsOf(t, "."), name) {
				t.Errorf("%s has no %s", folder, name)
			}
		}
	}
	for _, name := range testsOf(t, ".") {
		if name != t.Name() && name != "TestMain" && !strings.Contains(page, "`"+name+"`") {
			t.Errorf("the page does not name %s", name)
		}
	}
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// testsOf lists the tests of a folder.
func testsOf(t *testing.T, folder string) (all []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range declared.FindAllStringSubmatch(string(raw), -1) {
			all = append(all, m[1])
		}
	}
	return all
}
