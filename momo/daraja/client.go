package daraja

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// endpoint is a path of the operator's gateway. The meaning of an error code depends on the endpoint.
type endpoint string

// The endpoints that Kivuko uses.
const (
	endpointToken        endpoint = "/oauth/v1/generate"
	endpointPrompt       endpoint = "/mpesa/stkpush/v1/processrequest"
	endpointPromptQuery  endpoint = "/mpesa/stkpushquery/v1/query"
	endpointPayout       endpoint = "/mpesa/b2c/v3/paymentrequest"
	endpointStatus       endpoint = "/mpesa/transactionstatus/v1/query"
	endpointBalance      endpoint = "/mpesa/accountbalance/v1/query"
	endpointFloat        endpoint = "/mpesa/b2b/v1/paymentrequest"
	endpointPayee        endpoint = "/mpesa/b2c/hakikisha/v1/hakikisha"
	endpointReversal     endpoint = "/mpesa/reversal/v1/request"
	endpointRegister     endpoint = "/mpesa/c2b/v2/registerurl"
	endpointPullRegister endpoint = "/pulltransactions/v1/register"
	endpointPull         endpoint = "/pulltransactions/v1/query"
)

// queries are the endpoints that only read. The operator may close a kept-alive connection just as a request is sent on it;
// net/http then repeats these requests on a new connection. Requests that may move money are sent once.
var queries = map[endpoint]bool{
	endpointPromptQuery: true, endpointStatus: true, endpointBalance: true, endpointPayee: true, endpointPull: true,
}

// Limits of requests and responses.
const (
	maxReply       = 4 << 20  // bytes of a response; a page of the statement is the longest
	maxCallback    = 64 << 10 // bytes of a callback
	maxReference   = 12       // AccountReference, portal
	maxDescription = 13       // TransactionDesc, portal
)

// Capabilities returns what Daraja guarantees (portal: limits of Express and B2C; FAQ: callbacks are not repeated). A prompt
// is not idempotent; a payout is, by the attempt's id.
func (c *Client) Capabilities() exchange.Capabilities {
	return exchange.Capabilities{
		PayoutIdempotent: true,
		QuerySync:        true,
		Reversal:         true,
		MinCollection:    money.Must(money.KES, "1"),
		MaxCollection:    money.Must(money.KES, "250000"),
		MinPayout:        exchange.MinMomoPayout(),
		MaxPayout:        money.Must(money.KES, "250000"),
	}
}

// reply is any HTTP response.
type reply struct {
	status int
	body   []byte
}

// envelope is the gateway's error report. It may come with any status, even 200, so the body is read before the status.
type envelope struct {
	RequestID    flexString `json:"requestId"`
	ErrorCode    flexString `json:"errorCode"`
	ErrorMessage flexString `json:"errorMessage"`
	// ResponseCode and ResponseDescription are in acknowledgements instead of the error.
	ResponseCode        flexString `json:"ResponseCode"`
	ResponseDescription flexString `json:"ResponseDescription"`
}

func (r reply) envelope() envelope {
	var e envelope
	if decode(r.body, &e) != nil {
		return envelope{}
	}
	return e
}

// notSentError means that a request certainly did not reach the operator.
type notSentError struct {
	config bool
	err    error
}

func (e *notSentError) Error() string { return e.err.Error() }
func (e *notSentError) Unwrap() error { return e.err }

// post sends a JSON request with the access token. When the gateway refuses the token it is renewed once and the request
// repeated, which is safe for money too: the refused request was not processed. The error is a *notSentError or *tokenError
// when nothing was sent; any other error leaves the outcome open.
func (c *Client) post(ctx context.Context, to endpoint, payload any) (reply, error) {
	body, err := json.Marshal(payload)
	if err != nil {
		return reply{}, &notSentError{config: true, err: fmt.Errorf("%s: the request can't be written as JSON", to)}
	}
	for renewed := false; ; renewed = true {
		token, err := c.tokens.get(ctx)
		if err != nil {
			return reply{}, asTokenError(err)
		}
		r, err := c.send(ctx, to, token, body)
		if err != nil || renewed || !turnsTokenDown(r) {
			return r, err
		}
		c.tokens.drop(token)
	}
}

func asTokenError(err error) error {
	if _, ok := errors.AsType[*tokenError](err); ok {
		return err
	}
	return &tokenError{err: err}
}

func (c *Client) send(ctx context.Context, to endpoint, token string, body []byte) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base.String()+string(to), bytes.NewReader(body))
	if err != nil {
		return reply{}, &notSentError{config: true, err: fmt.Errorf("%s: the request can't be built", to)}
	}
	if queries[to] {
		req.Header["Idempotency-Key"] = nil // makes net/http treat the request as idempotent; without a value it is not sent
	} else {
		req.GetBody = nil // prevents net/http from sending the body again
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	if err := timeIsOver(ctx); err != nil {
		return reply{}, &notSentError{err: fmt.Errorf("%s: %w", to, err)}
	}
	r, err := c.do(req)
	if err != nil {
		return reply{}, fmt.Errorf("%s: %w", to, err)
	}
	return r, nil
}

// timeIsOver returns why a request must not be sent any more. It compares the time of day: the timer of a context stands
// still while the machine is suspended.
func timeIsOver(ctx context.Context) error {
	if end, ok := ctx.Deadline(); ok && !time.Now().Round(0).Before(end.Round(0)) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// do performs one HTTP exchange and reads the limited response. Errors contain neither headers nor bodies.
func (c *Client) do(req *http.Request) (reply, error) {
	req.Header.Set("Accept", "application/json")
	resp, err := c.cfg.HTTP.Do(req)
	if err != nil {
		return reply{}, transportError(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	if err != nil {
		return reply{}, fmt.Errorf("the response (status %d) broke off: %w", resp.StatusCode, err)
	}
	if len(body) > maxReply {
		return reply{}, fmt.Errorf("the response (status %d) is longer than %d bytes", resp.StatusCode, maxReply)
	}
	return reply{status: resp.StatusCode, body: body}, nil
}

// transportError distinguishes failures before the first byte (no connection, an invalid certificate) from those after which
// the operator may have the request.
func transportError(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // without the address, which may contain a proxy's user
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return &notSentError{err: err}
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &notSentError{config: true, err: err}
	}
	return err
}

// redact removes this client's secrets, and everything that looks like a token or a telephone number.
func (c *Client) redact(s string) string {
	return redact(s, c.tokens.current(), c.cfg.ConsumerKey, c.cfg.ConsumerSecret, c.cfg.Passkey,
		c.cfg.InitiatorPassword, c.credential)
}
