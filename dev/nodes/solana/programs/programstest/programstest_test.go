package programstest

import (
	"errors"
	"testing"
)

var errEnded = errors.New("the test ended")

// bench is a test that notes how Set ended it.
type bench struct {
	testing.TB
	ended string
}

func (*bench) Helper() {}

func (b *bench) Fatal(...any) {
	b.ended = "failed"
	panic(errEnded)
}

func (b *bench) Skipf(string, ...any) {
	b.ended = "skipped"
	panic(errEnded)
}

// A check of a submission must not pass because the programs can't be had.
func TestWithoutThem(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("PATH", "") // no npm
	for ci, want := range map[string]string{"": "skipped", "true": "failed"} {
		t.Setenv("CI", ci)
		b := &bench{TB: t}
		func() {
			defer func() {
				if r := recover(); r != errEnded { //nolint:errorlint // the very value
					panic(r)
				}
			}()
			Set(b)
		}()
		if b.ended != want {
			t.Errorf("with CI=%q the test was %s, want %s", ci, b.ended, want)
		}
	}
}
