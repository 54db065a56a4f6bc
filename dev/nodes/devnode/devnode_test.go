package devnode

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// stub is a node that remembers what was switched.
type stub struct {
	Switched []string `json:"switched"`
	refusal  error
}

func (s *stub) Summary() *stub { return s }
func (s *stub) Pause()         { s.Switched = append(s.Switched, "pause") }
func (s *stub) Resume()        { s.Switched = append(s.Switched, "resume") }
func (s *stub) ResetFaults()   { s.Switched = append(s.Switched, "reset") }

func (s *stub) Reorganise(int, bool) error { return s.refusal }

func (s *stub) Start(context.Context) error { return s.refusal }

func (s *stub) Close() error { s.Switched = append(s.Switched, "close"); return nil }

func TestSwitches(t *testing.T) {
	s := &stub{refusal: errors.New("too deep")}
	mux := Switches(s, func(d time.Duration) error {
		s.Switched = append(s.Switched, d.String())
		return nil
	})
	mux.HandleFunc("GET /letters", ListFor(func(text string) (string, error) {
		if text == "" {
			return "", errors.New("address: want some text")
		}
		return text, nil
	}, func(text string) ([]string, error) {
		if text == "none" {
			return nil, errors.New("the node is broken")
		}
		return strings.Split(text, ""), nil
	}))
	for _, c := range []struct {
		method, path, body string
		status             int
		text               string
	}{
		{http.MethodPost, "/pause", "", http.StatusOK, `{"switched":["pause"]}`},
		{http.MethodPost, "/resume", "{}", http.StatusOK, `"resume"]`},
		{http.MethodPost, "/interval", `{"milliseconds": 20}`, http.StatusOK, `"20ms"]`},
		{http.MethodPost, "/reset", "", http.StatusOK, `"reset"]`},
		{http.MethodGet, "/state", "", http.StatusOK, `["pause","resume","20ms","reset"]`},
		{http.MethodPost, "/reorganise", `{"blocks": 3}`, http.StatusBadRequest, `{"error":"too deep"}`},
		{http.MethodPost, "/interval", `{"seconds": 20}`, http.StatusBadRequest, "unknown field"},
		{http.MethodPost, "/interval", strings.Repeat(" ", maxControlBytes+1), http.StatusBadRequest, "too large"},
		{http.MethodGet, "/letters?address=ab", "", http.StatusOK, `["a","b"]`},
		{http.MethodGet, "/letters", "", http.StatusBadRequest, `{"error":"address: want some text"}`},
		{http.MethodGet, "/letters?address=none", "", http.StatusInternalServerError, `{"error":"the node is broken"}`},
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body)))
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.text) {
			t.Errorf("%s %s: %d %s, want %d %s", c.method, c.path, w.Code, w.Body, c.status, c.text)
		}
	}
}

func TestClock(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := NewClock(func() time.Time { return start })
	if err := c.Advance(time.Hour); err != nil || !c.Now().Equal(start.Add(time.Hour)) {
		t.Errorf("%s, %v", c.Now(), err)
	}
	for _, d := range []time.Duration{-1, maxTimeStep + 1} {
		if err := c.Advance(d); err == nil {
			t.Errorf("advanced by %s", d)
		}
	}
}

func TestRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := Run(ctx, &stub{}, &out, func() string { return "rpc=here" }); err != nil || out.String() != "READY rpc=here\n" {
		t.Errorf("%q, %v", out.String(), err)
	}
	s := &stub{refusal: errors.New("no")}
	if err := Run(ctx, s, &out, nil); !errors.Is(err, s.refusal) || len(s.Switched) != 1 {
		t.Errorf("%v, %v", err, s.Switched)
	}
}

func TestCommandLines(t *testing.T) {
	flags := flag.NewFlagSet("node", flag.ContinueOnError)
	if err := Parse(flags, []string{"surplus"}); err == nil || err.Error() != `node: unexpected argument "surplus"` {
		t.Error(err)
	}
	for addr, ok := range map[string]bool{
		"": true, "127.0.0.1:0": true, "localhost:1": true, "[::1]:1": true, "0.0.0.0:1": false, ":1": false, "127.0.0.1": false, "example.com:1": false,
	} {
		if err := CheckLoopback(addr); (err == nil) != ok {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

func TestTicks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		r, began := NewRhythm(time.Second), time.Now()
		var ticks []int64 // milliseconds
		broken := errors.New("broken")
		var result error
		var work sync.WaitGroup
		work.Go(func() {
			result = r.Tick(ctx, func() error {
				ticks = append(ticks, time.Since(began).Milliseconds())
				if len(ticks) == 2 {
					time.Sleep(300 * time.Millisecond) // does not delay the next one
				}
				if len(ticks) == 6 {
					return broken
				}
				return nil
			})
		})
		time.Sleep(3500 * time.Millisecond)
		r.Pause()
		time.Sleep(10 * time.Second)
		r.Resume()
		time.Sleep(1500 * time.Millisecond)
		r.SetInterval(0)
		time.Sleep(time.Minute)
		r.SetInterval(5 * time.Second)
		time.Sleep(time.Minute)
		want := []int64{1000, 2000, 3000, 14500, 80000, 85000}
		if work.Wait(); !slices.Equal(ticks, want) || !errors.Is(result, broken) {
			t.Errorf("ticks at %v ms, %v; want %v", ticks, result, want)
		}
		cancel()
		if err := r.Tick(ctx, func() error { return nil }); err != nil {
			t.Error(err)
		}
	})
}

func TestHostServesOnce(t *testing.T) {
	h := NewHost(slog.New(slog.DiscardHandler))
	if err := h.Listen("web", ""); err != nil {
		t.Fatal(err)
	}
	if err := h.Listen("other", h.Addr("web")); err == nil || !strings.Contains(err.Error(), "listen for other") {
		t.Errorf("a port was bound twice: %v", err)
	}
	refusal, ended := errors.New("not yet"), make(chan struct{})
	if err := h.Start(t.Context(), func(context.Context) error { return refusal }); !errors.Is(err, refusal) {
		t.Error(err)
	}
	serve := func(ctx context.Context) error {
		h.ServeHTTP("web", http.NotFoundHandler())
		h.Go("worker", func() error { <-ctx.Done(); close(ended); return nil })
		return nil
	}
	if err := h.Start(t.Context(), serve); err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context(), serve); err == nil {
		t.Error("started twice")
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+h.Addr("web"), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil || answer.StatusCode != http.StatusNotFound {
		t.Fatalf("%v, %v", answer, err)
	}
	_ = answer.Body.Close()
	var started bool
	if !h.Close(func(s bool) { started = s }) || !started {
		t.Error("the first end is not one")
	}
	<-ended
	if h.Close(func(bool) { t.Error("ended twice") }) {
		t.Error("closed twice")
	}
	if err := h.Start(t.Context(), serve); err == nil {
		t.Error("started after its end")
	}
}
