package testbed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
)

// Timeout bounds a wait for something that should happen soon. It only decides how long a test waits for a broken product, so it
// is generous for slow machines.
const (
	Timeout  = 3 * time.Minute
	pollEach = 100 * time.Millisecond
)

// Eventually waits until check succeeds.
func Eventually(t *testing.T, what string, check func() error) {
	t.Helper()
	if err := Await(t.Context(), Timeout, check); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// Await waits for a time until check succeeds.
func Await(ctx context.Context, limit time.Duration, check func() error) error {
	for deadline := time.Now().Add(limit); ; {
		err := check()
		if err == nil || ctx.Err() != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("after %s: %w", limit, err)
		}
		time.Sleep(pollEach)
	}
}

// Key returns a new Idempotency-Key.
func Key() string { return uuid.NewString() }

// Is reports whether err is the API's response with a status.
func Is(err error, status int) bool {
	p, ok := errors.AsType[*client.Problem](err)
	return ok && p.Status == status
}

// Passing reports whether a request should be repeated with the same key: the connection broke, or the service responds that it
// is unavailable or still processing the first request.
func Passing(err error) bool {
	p, ok := errors.AsType[*client.Problem](err)
	if !ok {
		return err != nil
	}
	return p.Status >= http.StatusInternalServerError || p.Code == "idempotency_in_flight" || p.Status == http.StatusTooManyRequests
}

// Insist repeats a request with its key until it is answered.
func Insist(ctx context.Context, c *client.Client, path, key string, in, out any) error {
	var final error
	err := Await(ctx, 2*Timeout, func() error {
		err := c.Post(ctx, path, key, in, out)
		if Passing(err) {
			return err
		}
		final = err
		return nil
	})
	return errors.Join(err, final)
}

// Seen is a decision about the object of a path such as …/refunds/{id}/approve, with the digest of the object as it is.
func Seen(t *testing.T, c *client.Client, path string) map[string]any {
	t.Helper()
	var object struct {
		Digest   string `json:"digest"`
		Approval string `json:"approval_digest"`
	}
	if err := c.Get(t.Context(), path[:strings.LastIndex(path, "/")], &object); err != nil {
		t.Fatal(err)
	}
	return map[string]any{"digest": cmp.Or(object.Digest, object.Approval)}
}

// Waits are changes that wait for a second officer, as the answer to a request lists them.
type Waits struct {
	Changes []struct {
		ID     uuid.UUID `json:"id"`
		Kind   string    `json:"kind"`
		Digest string    `json:"digest"`
	} `json:"changes"`
}

// Call sends a JSON request to a control endpoint of the stack.
func Call(ctx context.Context, method, address string, in, out any) error {
	var body bytes.Buffer
	if in == nil {
		in = struct{}{}
	}
	if err := json.NewEncoder(&body).Encode(in); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, &body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		var text bytes.Buffer
		_, _ = text.ReadFrom(resp.Body)
		return fmt.Errorf("%s %s: %s %s", method, address, resp.Status, text.String())
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}
