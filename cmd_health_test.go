package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealthAsksTheProcess(t *testing.T) {
	var asked string
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Method + " " + r.URL.Path
		w.WriteHeader(status)
	}))
	defer server.Close()
	address := strings.TrimPrefix(server.URL, "http://")
	_, port, _ := strings.Cut(address, ":")
	for _, c := range []struct{ args, variable, listen, want string }{
		{"health", "API_LISTEN", address, "GET /healthz"},
		{"health api", "API_LISTEN", "0.0.0.0:" + port, "GET /healthz"},
		{"health worker", "WORKER_METRICS_LISTEN", ":" + port, "GET /metrics"},
		{"health codec", "CODEC_LISTEN", "[::]:" + port, "OPTIONS /"},
	} {
		t.Run(c.args, func(t *testing.T) {
			asked, status = "", http.StatusNoContent
			t.Setenv("KIVUKO_"+c.variable, c.listen)
			var out bytes.Buffer
			if err := run(t.Context(), strings.Fields(c.args), &out, &out); err != nil || asked != c.want {
				t.Errorf("asked %q, want %q; %v", asked, c.want, err)
			}
			status = http.StatusServiceUnavailable
			if err := run(t.Context(), strings.Fields(c.args), &out, &out); err == nil || !strings.Contains(err.Error(), "503") {
				t.Errorf("a process that answers 503 is not healthy: %v", err)
			}
		})
	}
}

func TestHealthRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"health signer":     `no process "signer"`,
		"health worker":     "KIVUKO_WORKER_METRICS_LISTEN must be an address and a port",
		"health api worker": "one process at a time",
	} {
		var out bytes.Buffer
		if err := run(t.Context(), strings.Fields(args), &out, &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want it to say %q", args, err, want)
		}
	}
	t.Setenv("KIVUKO_API_LISTEN", "127.0.0.1:1")
	var out bytes.Buffer
	if err := run(t.Context(), []string{"health"}, &out, &out); err == nil {
		t.Error("no process listens, but the check succeeds")
	}
}
