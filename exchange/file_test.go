package exchange_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"kivuko/exchange"
)

func TestTypesAreToldByTheBeginning(t *testing.T) {
	long := strings.Repeat("a", exchange.FileSniff-1)
	for head, want := range map[string]exchange.FileType{
		"%PDF-1.7\n": exchange.FilePDF, "\x89PNG\r\n\x1a\n": exchange.FilePNG, "\xff\xd8\xff\xe0": exchange.FileJPEG,
		"<?xml version=\"1.0\"?>": exchange.FileXML, "\ufeff \n<Document>": exchange.FileXML, "date,amount\n": exchange.FileCSV, "\ufeffdate;amount": exchange.FileCSV,
		"": "", " %PDF-1.7": exchange.FileCSV, "MZ\x90\x00": "", "PK\x03\x04": "", "\xff\xfe<\x00": "", "Jos\xe9": "", "a\x00b": "",
		long + "\u00e9"[:1]: exchange.FileCSV, // the last character is cut off
	} {
		if got := exchange.FileTypeOf([]byte(head)); got != want {
			t.Errorf("%.20q is %q, want %q", head, got, want)
		}
	}
}

func TestRulesOfPurposes(t *testing.T) {
	for _, p := range exchange.FilePurposes() {
		if p.MaxSize() <= 0 || len(p.Types()) == 0 || !p.UsedBy(exchange.RoleAdmin) || p.UsedBy(exchange.RoleCustomer) {
			t.Errorf("%s has no rules", p)
		}
		for _, r := range exchange.Roles() {
			if p.UsedBy(r) && exchange.ScopeOf(r, exchange.ActUploadFiles) == exchange.ScopeNone {
				t.Errorf("a %s may upload %s by its rule, and nothing by the policy", r, p)
			}
		}
	}
	if p := exchange.FilePurpose("holiday"); p.MaxSize() != 0 || len(p.Types()) != 0 || p.UsedBy(exchange.RoleAdmin) {
		t.Error("an unknown purpose allows something")
	}
}

// Whatever a file is called, its clean name is no path, breaks no line, is short, ends as its type does, and is clean already.
func TestCleanNamesAreSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(exchange.FileTypes()).Draw(t, "type")
		given := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"..", "../../a", "con", "NUL.pdf", "con_", "_", "?", "nul .x", "a.pdf.exe", ".pdf", "a\u202efdp.exe", "a\r\nSet-Cookie: x"})).Draw(t, "name")
		name := exchange.CleanFileName(given, kind)
		ending := name[max(0, strings.LastIndex(name, ".")):]
		first, _, _ := strings.Cut(strings.ToLower(name), ".")
		switch {
		case strings.ContainsAny(name, "/\\<>:\"|?*%;\x00\r\n\t"), strings.HasPrefix(name, "."), !utf8.ValidString(name):
			t.Fatalf("%q is called %q", given, name)
		case slices.Contains([]string{"con", "nul", "com1"}, strings.TrimSpace(first)):
			t.Fatalf("%q is called %q, which is a device on Windows", given, name)
		case utf8.RuneCountInString(name) > exchange.MaxFileName:
			t.Fatalf("%q is longer than %d", name, exchange.MaxFileName)
		case exchange.CleanFileName(name, kind) != name:
			t.Fatalf("%q becomes %q when it is cleaned again", name, exchange.CleanFileName(name, kind))
		case ending != map[exchange.FileType]string{
			exchange.FilePDF: ".pdf", exchange.FilePNG: ".png", exchange.FileJPEG: ".jpg", exchange.FileXML: ".xml", exchange.FileCSV: ".csv",
		}[kind]:
			t.Fatalf("%q ends as another type than %s", name, kind)
		}
	})
}
