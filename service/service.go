// Package service asks the services that others run for us: screening of counterparties and exchange rates.
//
// A service's address may hold a key, so no error contains it. Every answer has a limit of time and size, and a redirect is
// no answer.
package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Limits of a request.
const (
	timeout   = 10 * time.Second
	maxAnswer = 64 << 10
)

// endpoint is the address of a service, with the token that it expects.
type endpoint struct {
	url, host, token string
	client           *http.Client
}

// newEndpoint checks an address: an absolute http or https URL without a user. what names the service. The token, if any,
// is sent as a bearer token.
func newEndpoint(what, address, token string) (endpoint, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil {
		return endpoint{}, fmt.Errorf("the address of the %s must be an http or https URL", what)
	}
	return endpoint{url: address, host: u.Host, token: token, client: &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// ask sends a request, with a body of JSON unless body is nil, and returns the body of the 200 response.
func (e endpoint) ask(ctx context.Context, method string, body io.Reader) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, method, e.url, body)
	if err != nil {
		return nil, withoutAddress(err)
	}
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if e.token != "" {
		r.Header.Set("Authorization", "Bearer "+e.token)
	}
	answer, err := e.client.Do(r)
	if err != nil {
		return nil, withoutAddress(err)
	}
	defer func() { _ = answer.Body.Close() }() // read to the end or given up
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode != http.StatusOK:
		return nil, errors.New("status " + answer.Status)
	case len(raw) > maxAnswer:
		return nil, errors.New("the answer is too long")
	}
	return raw, nil
}

// withoutAddress removes the address from an error of net/http: it may hold a key, and errors reach histories and logs.
func withoutAddress(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
