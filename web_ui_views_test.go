package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"kivuko/workflows"
)

// The views of the Web UI filter by search attributes, workflow types and reasons that exist, show columns that exist, and
// leave no reason out.
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
	for _, r := range workflows.Reasons() {
		if !slices.Contains(reasonsOfViews(t, string(page)), r) {
			t.Errorf("no view of a kind of work shows flows that are parked with %s", r)
		}
	}
}

// reasonsOfViews returns the reasons by which the views filter.
func reasonsOfViews(t *testing.T, page string) []workflows.Reason {
	t.Helper()
	var all []workflows.Reason
	for _, m := range regexp.MustCompile(`KivukoParkedReason (= |STARTS_WITH |IN \()('[\w-]+'(?:, '[\w-]+')*)`).FindAllStringSubmatch(page, -1) {
		for text := range strings.SplitSeq(m[2], ", ") {
			text = strings.Trim(text, "'")
			before := len(all)
			for _, r := range workflows.Reasons() {
				if string(r) == text || m[1] == "STARTS_WITH " && strings.HasPrefix(string(r), text) {
					all = append(all, r)
				}
			}
			if len(all) == before {
				t.Errorf("there is no reason %s%s", m[1], text)
			}
		}
	}
	return all
}
