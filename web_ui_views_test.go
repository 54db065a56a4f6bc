package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kivuko/workflows"
)

// The views of the Web UI filter by search attributes and workflow types that exist, and show columns that exist.
func TestWebUIViewsNameWhatExists(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/web-ui-views.js")
	if err != nil {
		t.Fatal(err)
	}
	settings, err := os.ReadFile("temporal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	attributes := regexp.MustCompile(`\bKivuko[A-Z]\w+`).FindAllString(string(page), -1)
	if len(attributes) == 0 {
		t.Error("the views filter by no attribute of ours")
	}
	for _, name := range attributes {
		if !strings.Contains(string(settings), name+":") {
			t.Errorf("%s is not in temporal.yaml", name)
		}
	}
	for _, m := range regexp.MustCompile(`WorkflowType = '(\w+)'`).FindAllStringSubmatch(string(page), -1) {
		if !slices.ContainsFunc(workflows.Flows(), func(f workflows.Flow) bool { return f.Type == m[1] }) {
			t.Errorf("there is no workflow type %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`KivukoParkedReason (?:= |STARTS_WITH )'([\w-]+)'`).FindAllStringSubmatch(string(page), -1) {
		if !slices.ContainsFunc(workflows.Reasons(), func(r workflows.Reason) bool { return strings.HasPrefix(string(r), m[1]) }) {
			t.Errorf("no reason begins with %s", m[1])
		}
	}
}
