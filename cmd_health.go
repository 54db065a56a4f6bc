package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// healthTimeout bounds the request of `kivuko health`; a slower process is not healthy.
const healthTimeout = 5 * time.Second

// probe is how the health of a kind of process is checked: at the address where it listens.
type probe struct{ variable, listen, method, path string }

// probeOf returns the probe of "api", "worker" or "codec". A worker answers at its metrics address, and the codec
// endpoint answers a browser's preflight request, which needs no token.
func (c Config) probeOf(kind string) (probe, error) {
	switch kind {
	case "api":
		return probe{"KIVUKO_API_LISTEN", c.API.Listen, http.MethodGet, "/healthz"}, nil
	case "worker":
		return probe{"KIVUKO_WORKER_METRICS_LISTEN", c.Worker.MetricsListen, http.MethodGet, "/metrics"}, nil
	case "codec":
		return probe{"KIVUKO_CODEC_LISTEN", c.Codec.Listen, http.MethodOptions, "/"}, nil
	}
	return probe{}, fmt.Errorf("health: there is no process %q; the processes are api, worker and codec", kind)
}

// runHealth checks that a process of this machine answers, for images without another HTTP client. It fails unless
// the answer is a success.
func runHealth(ctx context.Context, p process, args []string) error {
	kind := "api"
	if len(args) > 0 {
		kind = args[0]
	}
	if len(args) > 1 {
		return fmt.Errorf("health: one process at a time, not %q", args)
	}
	ask, err := p.config.probeOf(kind)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(ask.listen)
	if err != nil {
		return fmt.Errorf("configuration: %s must be an address and a port: %w", ask.variable, err)
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "localhost" // a process that listens everywhere listens here too
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, ask.method, "http://"+net.JoinHostPort(host, port)+ask.path, http.NoBody)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	direct := &http.Client{Transport: &http.Transport{}} // never through a proxy of the environment
	answer, err := direct.Do(request)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("health: the %s answers %s", kind, answer.Status)
	}
	_, err = fmt.Fprintln(p.out, "healthy")
	return err
}
