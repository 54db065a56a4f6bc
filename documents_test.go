package main

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents are our pages, by their paths from the root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	read := func(name string) {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages[filepath.ToSlash(name)] = string(content)
	}
	read("README.md")
	read("CONTRIBUTING.md")
	err := filepath.WalkDir("docs", func(name string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".md" {
			read(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

var (
	codeBlock = regexp.MustCompile("(?ms)^[ ]*```.*?^[ ]*```")
	heading   = regexp.MustCompile(`(?m)^#{1,6} (.*)$`)
	reference = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	quoted    = regexp.MustCompile("`([^`\n]+)`")
)

// anchorsOf returns the anchors of a page's headings, as the usual Markdown viewers make them: in small letters, without
// punctuation, with a dash for each space.
func anchorsOf(page string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(page, ""), -1) {
		text := strings.ToLower(reference.ReplaceAllString(m[1], ""))
		text = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(text, "")
		out[strings.ReplaceAll(text, " ", "-")] = true
	}
	return out
}

// lost lists the references of the pages to files and headings that do not exist.
func lost(pages map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		for _, m := range reference.FindAllStringSubmatch(codeBlock.ReplaceAllString(pages[name], ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := path.Join(path.Dir(name), file)
			if file == "" {
				target = name
			}
			if _, err := os.Stat(target); err != nil {
				out = append(out, name+" refers to "+m[1]+", which does not exist")
			} else if anchor != "" && !anchorsOf(pages[target])[anchor] {
				out = append(out, name+" refers to "+m[1]+", and there is no such heading")
			}
		}
	}
	return out
}

func TestReferencesOfThePagesResolve(t *testing.T) {
	pages := documents(t)
	for _, fault := range lost(pages) {
		t.Error(fault)
	}
	pages["docs/runbooks.md"] = strings.Replace(pages["docs/runbooks.md"], "](#incidents)", "](#incident)", 1)
	if found := lost(pages); len(found) != 1 || !strings.Contains(found[0], "no such heading") {
		t.Errorf("found %q where one reference is broken", found)
	}
}

// Every decision has its entry in the index, with its title.
func TestDecisionsAreInTheirIndex(t *testing.T) {
	pages := documents(t)
	index := pages["docs/decisions/README.md"]
	for name, page := range pages {
		if path.Dir(name) != "docs/decisions" || path.Base(name) == "README.md" {
			continue
		}
		title := strings.TrimPrefix(strings.SplitN(page, "\n", 2)[0], "# ")
		number, text, ok := strings.Cut(title, ". ")
		if !ok || !strings.HasPrefix(strings.TrimLeft(path.Base(name), "0"), number+"-") {
			t.Errorf("%s is headed %q, want its number and a sentence", name, title)
		}
		if line := number + ". [" + text + "](" + path.Base(name) + ")\n"; !strings.Contains(index, "\n"+line) {
			t.Errorf("docs/decisions/README.md lacks the line %s", line)
		}
	}
}

// Files and commands that the pages for newcomers name exist.
func TestNamedFilesExist(t *testing.T) {
	pages := documents(t)
	for _, name := range []string{"README.md", "CONTRIBUTING.md", "docs/architecture.md"} {
		for _, m := range quoted.FindAllStringSubmatch(codeBlock.ReplaceAllString(pages[name], ""), -1) {
			file := strings.SplitN(m[1], "#", 2)[0]
			if strings.ContainsAny(file, " <{*$=:") || strings.HasPrefix(file, "/") || strings.HasPrefix(file, "http") {
				continue
			}
			if !strings.HasSuffix(file, "/") && !slices.Contains([]string{".go", ".md", ".yaml", ".yml"}, path.Ext(file)) {
				continue
			}
			found := false
			for _, dir := range []string{".", "docs", "api", "docker", "dev", "exchange", "worker", "workflows"} {
				_, err := os.Stat(filepath.Join(dir, file))
				found = found || err == nil
			}
			if !found {
				t.Errorf("%s names %s, which does not exist", name, file)
			}
		}
	}
}

var (
	counted = regexp.MustCompile("(Counter\\()?\"(kivuko_[a-z_]+)\"")
	alarmed = regexp.MustCompile("\"ALERT ([^\";]+)")
)

// signals are the exported names of our metrics, and the messages of alerts.
func signals(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, dir := range []string{"activities", "api", "worker"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range counted.FindAllStringSubmatch(string(content), -1) {
				if m[1] != "" {
					m[2] += "_total" // the exporter adds it
				}
				out = append(out, m[2])
			}
			for _, m := range alarmed.FindAllStringSubmatch(string(content), -1) {
				out = append(out, m[1])
			}
		}
	}
	return out
}

// Every metric and every alert in a log has a row in docs/alerts.md: when it counts, what it means, and what to do.
func TestEveryAlertIsDescribed(t *testing.T) {
	page := documents(t)["docs/alerts.md"]
	known := signals(t)
	for _, name := range known {
		if !strings.Contains(page, "`"+name+"`") && !strings.Contains(page, "\""+name+"\"") {
			t.Errorf("docs/alerts.md does not describe %s", name)
		}
	}
	for _, line := range strings.Split(page, "\n") {
		for _, m := range regexp.MustCompile("`(kivuko_[a-z_]+)`").FindAllStringSubmatch(line, -1) {
			if !slices.Contains(known, m[1]) {
				t.Errorf("docs/alerts.md describes %s, which nothing counts", m[1])
			}
		}
		if cells := strings.Split(line, " | "); strings.HasPrefix(line, "| `kivuko") && len(cells) != 4 {
			t.Errorf("a line of docs/alerts.md has %d cells, want metric, threshold, meaning and action: %s", len(cells), line)
		}
	}
}
