package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// declared reads the names of all points out of the product's source, where they are put around side effects.
func declared(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "crash_*.go"))
	if err != nil || len(files) < 2 {
		t.Fatalf("the points were looked for in %v: %v", files, err)
	}
	points := map[string]bool{}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				for _, point := range pointsOf(call) {
					points[point] = true
				}
			}
			return true
		})
	}
	var all []string
	for point := range points {
		all = append(all, point)
	}
	slices.Sort(all)
	return all
}

// pointsOf are the points that a call puts: around(c, "Name", …) and step(c, "Name", …) two, c.point("before:Name")
// one.
func pointsOf(call *ast.CallExpr) []string {
	var names []string
	for _, a := range call.Args {
		if text, ok := a.(*ast.BasicLit); ok && text.Kind == token.STRING {
			name, _ := strconv.Unquote(text.Value) // the parser has read it
			names = append(names, name)
		}
	}
	if len(names) != 1 {
		return nil
	}
	switch f := call.Fun.(type) {
	case *ast.Ident:
		if f.Name == "around" || f.Name == "step" {
			return []string{"before:" + names[0], "after:" + names[0]}
		}
	case *ast.SelectorExpr:
		if f.Sel.Name == "point" {
			return names
		}
	}
	return nil
}

// TestEveryPointIsArmed holds that the trials arm every point that the product has, each once. That the process
// died there is for TestCrashPoints to see.
func TestEveryPointIsArmed(t *testing.T) {
	points := declared(t)
	const atLeast = 100 // so that a change to how points are written can't make this empty
	if len(points) < atLeast {
		t.Fatalf("only %d points were found: %v", len(points), points)
	}
	armed := map[string]int{}
	for _, tr := range trials() {
		armed[tr.point]++
		if !slices.Contains(points, tr.point) {
			t.Errorf("a trial arms %s, which the product does not have", tr.point)
		}
	}
	for _, point := range points {
		if armed[point] != 1 {
			t.Errorf("%s is armed by %d trials", point, armed[point])
		}
		if when, _, _ := strings.Cut(point, ":"); when != "before" && when != "after" {
			t.Errorf("the point %q says neither before nor after what", point)
		}
	}
}

// TestBriefTrialsHitEachProcess holds that what every run plays leaves out no kind of process.
func TestBriefTrialsHitEachProcess(t *testing.T) {
	killed, kinds := map[string]bool{}, map[string]bool{}
	for _, tr := range trials() {
		kind, _, _ := strings.Cut(tr.worker, "-")
		kinds[kind] = true
		if slices.Contains(brief, tr.point) {
			killed[kind] = true
		}
	}
	for kind := range kinds {
		if !killed[kind] {
			t.Errorf("no trial of every run kills a worker of the kind %q", kind)
		}
	}
	if len(kinds) < 5 {
		t.Errorf("the trials kill only %v", kinds)
	}
}
