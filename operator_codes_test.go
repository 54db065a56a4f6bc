package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// codesOfOperators are codes and fields of Daraja that can't be mistaken for anything else.
var codesOfOperators = regexp.MustCompile(`["'](1019|1025|1032|1037|2001|2006|2028|2040|4999|8006|9999|TP40153|SFC_IC0003|R00000\d|C2B000\d\d|\d{3}\.\d{3}\.\d{2,4})["']|ResultCode"|ResultDesc|/mpesa/|stkpush|Utility Account`)

// TestOnlyDriversKnowTheOperatorsCodes keeps the codes of the mobile money operator in its driver, so that a second operator
// needs no change of flows, activities, store and API.
func TestOnlyDriversKnowTheOperatorsCodes(t *testing.T) {
	read := 0
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "dev" || name == "bin" || name == "docs" || strings.HasPrefix(name, "momo/") || (name != "." && strings.HasPrefix(name, "."))):
			return filepath.SkipDir
		case d.IsDir(), strings.HasSuffix(name, "_test.go"), !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".sql"):
			return nil
		}
		text, err := os.ReadFile(name)
		read++
		for i, line := range strings.Split(string(text), "\n") {
			if found := codesOfOperators.FindString(line); found != "" {
				t.Errorf("%s:%d has %s, which only a driver in momo/ should know", name, i+1, found)
			}
		}
		return err
	})
	if err != nil || read < 300 {
		t.Errorf("read %d files, %v", read, err)
	}
}
