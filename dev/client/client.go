// Package client speaks Kivuko's REST API the way an app does: JSON, a bearer token, problem
// documents. The demo and the end-to-end tests use it, so they see only what an app sees.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"kivuko/exchange"
)

// Limits of a call.
const (
	callTimeout = 30 * time.Second
	retryFor    = 3 * time.Minute // a database that was killed is back within seconds
	retryPause  = 250 * time.Millisecond
	maxAnswer   = 16 << 20
)

// Client is one caller. The zero token is a caller without a login.
type Client struct {
	base  string
	token string
	http  *http.Client
	retry bool

	email, password string // of the login
	staff           bool
	proof           *proof
}

// proof is when a caller proved itself again. Callers of one login share it.
type proof struct {
	mu sync.Mutex
	at time.Time
}

// New makes a caller of the API at an address such as http://127.0.0.1:8080.
func New(base string) *Client {
	return &Client{base: strings.TrimSuffix(base, "/"), http: &http.Client{Timeout: callTimeout}}
}

// WithRetries returns the caller with calls that are made again, with the same Idempotency-Key, while the service is away:
// when it doesn't answer, answers 503, or still works on the first one. It gives up after three minutes.
func (c *Client) WithRetries() *Client {
	retrying := *c
	retrying.retry = true
	return &retrying
}

// Unproven returns the caller without what it proves itself by: what asks for a fresh proof is refused.
func (c *Client) Unproven() *Client {
	bare := *c
	bare.proof = nil
	return &bare
}

// Problem is an error answer of the API (RFC 9457).
type Problem struct {
	Status    int    `json:"status"`
	Code      string `json:"code"`
	Title     string `json:"title"`
	Detail    string `json:"detail"`
	RequestID string `json:"request_id"`
	Errors    []struct {
		Pointer string `json:"pointer"`
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"errors"`
}

// Error puts the problem into one line.
func (p *Problem) Error() string {
	text := fmt.Sprintf("%d %s: %s", p.Status, p.Code, p.Detail)
	for _, e := range p.Errors {
		text += fmt.Sprintf("; %s %s", e.Pointer, e.Message)
	}
	return text
}

// Login returns a caller with the tokens of an account. When an operation asks the caller to prove itself again, the client
// does so and repeats the call: by the password, and for staff by a passkey in software.
func (c *Client) Login(ctx context.Context, email, password string) (*Client, error) {
	var tokens struct {
		AccessToken string `json:"access_token"`
		User        struct {
			Role exchange.Role `json:"role"`
		} `json:"user"`
	}
	in := map[string]string{"email": email, "password": password}
	if err := c.Do(ctx, http.MethodPost, "/api/v1/users/login", "", in, &tokens); err != nil {
		return nil, fmt.Errorf("login of %s: %w", email, err)
	}
	known := *c
	known.token, known.email, known.password, known.staff = tokens.AccessToken, email, password, tokens.User.Role.Staff()
	known.proof = &proof{}
	return &known, nil
}

// Get reads a resource.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	return c.Do(ctx, http.MethodGet, path, "", nil, out)
}

// Post sends a command. Key is its Idempotency-Key; with one, the call may be repeated.
func (c *Client) Post(ctx context.Context, path, key string, in, out any) error {
	return c.Do(ctx, http.MethodPost, path, key, in, out)
}

// Decide sends a decision about the object of a path such as …/refunds/{id}/approve, with the digest of the object as it is.
func (c *Client) Decide(ctx context.Context, path, key string, in map[string]any, out any) error {
	var seen struct {
		Digest   string `json:"digest"`
		Approval string `json:"approval_digest"`
	}
	if err := c.Get(ctx, path[:strings.LastIndex(path, "/")], &seen); err != nil {
		return err
	}
	decision := map[string]any{"digest": cmp.Or(seen.Digest, seen.Approval)}
	maps.Copy(decision, in)
	return c.Post(ctx, path, key, decision, out)
}

// Do makes a call. An answer of 400 and above is a *Problem.
func (c *Client) Do(ctx context.Context, method, path, key string, in, out any) error {
	return c.again(ctx, path, func() error { return c.once(ctx, method, path, key, in, out) })
}

// again makes a call until the service is not away any more.
func (c *Client) again(ctx context.Context, path string, call func() error) error {
	for deadline := time.Now().Add(retryFor); ; {
		err := c.proven(ctx, path, call)
		if err == nil || !c.retry || !away(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryPause):
		}
	}
}

// proven makes a call, and makes it again with a new proof of who calls when it asks for one.
func (c *Client) proven(ctx context.Context, path string, call func() error) error {
	began := time.Now()
	err := call()
	if asked, ok := errors.AsType[*Problem](err); ok && asked.Code == "step_up_required" && c.proof != nil && !strings.Contains(path, "/passkeys") {
		if err = c.proveSince(ctx, began); err == nil {
			err = call()
		}
	}
	return err
}

// away reports whether a failure passes by itself.
func away(err error) bool {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p.Status == http.StatusServiceUnavailable || p.Code == "idempotency_in_flight"
	}
	_, unanswered := errors.AsType[*url.Error](err)
	return unanswered || errors.Is(err, io.ErrUnexpectedEOF)
}

func (c *Client) once(ctx context.Context, method, path, key string, in, out any) error {
	if in == nil {
		return c.send(ctx, method, path, key, "", nil, out)
	}
	raw, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return c.send(ctx, method, path, key, "application/json", bytes.NewReader(raw), out)
}

// Upload sends a file, for a purpose unless the path says what it is for. A file whose answer was lost and that is sent again is
// another file with the same content.
func (c *Client) Upload(ctx context.Context, path, purpose, name string, content []byte, out any) error {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	var err error
	if purpose != "" {
		err = form.WriteField("purpose", purpose)
	}
	if err == nil {
		var file io.Writer
		if file, err = form.CreateFormFile("file", name); err == nil {
			_, err = file.Write(content)
		}
	}
	if err := errors.Join(err, form.Close()); err != nil {
		return err
	}
	return c.again(ctx, path, func() error {
		return c.send(ctx, http.MethodPost, path, "", form.FormDataContentType(), bytes.NewReader(body.Bytes()), out)
	})
}

// send makes one request with a body of a media type.
func (c *Client) send(ctx context.Context, method, path, key, media string, body io.Reader, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // everything of worth was read before
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		p := &Problem{Status: resp.StatusCode}
		if json.Unmarshal(raw, p) != nil {
			p.Detail = string(raw)
		}
		return p
	}
	if out == nil || len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, out)
}
