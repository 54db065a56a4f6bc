package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	pollEvery    = 50 * time.Millisecond
	checkTimeout = 2 * time.Second
	sayEvery     = 2 // seconds
)

// Wait calls check until it returns nil or ctx ends. After two seconds it prints what it
// waits for, with the time so far.
func Wait(ctx context.Context, progress io.Writer, what string, check func(context.Context) error) error {
	began, said := time.Now(), 0
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		var stop permanent
		if errors.As(err, &stop) {
			return fmt.Errorf("%s: %w", what, stop.error)
		}
		if waited := int(time.Since(began).Seconds()); waited >= said+sayEvery {
			said = waited
			_, _ = fmt.Fprintf(progress, "waiting for %s … %d s\n", what, waited)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %s: %w (%w)", what, time.Since(began).Round(time.Second), err, ctx.Err())
		case <-time.After(pollEvery):
		}
	}
}

// TCP is a readiness check: a server accepts connections at address.
func TCP(address string) func(context.Context) error {
	return func(ctx context.Context) error {
		dialer := net.Dialer{Timeout: checkTimeout}
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	}
}

// HTTP is a readiness check: a GET of url returns status 200.
func HTTP(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return permanent{err}
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		if err := resp.Body.Close(); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("GET %s: status %s", url, resp.Status)
		}
		return nil
	}
}
