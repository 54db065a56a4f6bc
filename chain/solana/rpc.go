package solana

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"kivuko/chain"
)

// The RPC client of the library is not used: its errors contain the whole address with the provider's key, it refuses
// responses with unknown fields, and it reads without a limit.

const (
	// maxAnswerBytes bounds one response. A full block of mainnet has about 10 MB.
	maxAnswerBytes = 64 << 20
	// maxNodeText bounds how much of a node's message is quoted.
	maxNodeText = 200
)

// idempotent marks a request that net/http may send again (net/http Transport); without a value the header is not sent.
const idempotent = "Idempotency-Key"

// Codes of Agave's RPC (rpc-client-api custom_error.rs) that are handled separately.
const (
	codePreflightFailure   = -32002
	codeSignatureInvalid   = -32003
	codeBlockNotAvailable  = -32004
	codeSlotSkipped        = -32007
	codeSlotSkippedArchive = -32009
	codeUnsupportedVersion = -32015
	codeInvalidParams      = -32602
)

// rpcError is an error response of a node.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// Error is the code with the node's message.
func (e *rpcError) Error() string { return fmt.Sprintf("code %d: %s", e.Code, quote(e.Message)) }

// rpcCode is the code of an error response, or zero.
func rpcCode(err error) int {
	if e, ok := errors.AsType[*rpcError](err); ok {
		return e.Code
	}
	return 0
}

// quote makes a node's text safe for an error: bounded, one line, without control characters.
func quote(s string) string {
	if len(s) > maxNodeText {
		s = s[:maxNodeText]
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// options is the last parameter of most methods.
type options map[string]any

// call sends a read to a node. A null result leaves a pointer nil. It may be sent a second time, see post.
func call[T any](ctx context.Context, n *node, method string, params ...any) (T, error) {
	return request[T](ctx, n, true, method, params)
}

// callOnce is call for requests that do more than read. They are sent at most once.
func callOnce[T any](ctx context.Context, n *node, method string, params ...any) (T, error) {
	return request[T](ctx, n, false, method, params)
}

func request[T any](ctx context.Context, n *node, read bool, method string, params []any) (T, error) {
	var out T
	if params == nil {
		params = []any{}
	}
	question, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return out, fmt.Errorf("%s: %w", method, err)
	}
	result, err := n.post(ctx, question, read)
	if err != nil {
		return out, fmt.Errorf("%s: %w", method, err)
	}
	if err := json.Unmarshal(result, &out); err != nil {
		return out, chain.Wrap(chain.ReasonProtocol, err, "the response of %s to %s is not in a form of the protocol", n.endpoint, method)
	}
	return out, nil
}

// post sends one request and reads the result of its response. A node may close a kept-alive connection just as a request is
// sent on it; net/http then repeats a read on a new connection.
func (n *node) post(ctx context.Context, question []byte, read bool) (json.RawMessage, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, n.endpoint.URL, bytes.NewReader(question))
	if err != nil {
		return nil, withoutAddress(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if read {
		request.Header[idempotent] = nil
	}
	response, err := n.client.Do(request)
	if err != nil {
		return nil, withoutAddress(err)
	}
	defer func() { _ = response.Body.Close() }() // an incomplete body is refused below
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	if err != nil {
		return nil, withoutAddress(err)
	}
	if len(body) > maxAnswerBytes {
		return nil, fmt.Errorf("the response has more than %d bytes", maxAnswerBytes)
	}
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *rpcError       `json:"error"`
	}
	err = json.Unmarshal(body, &answer)
	switch {
	case err == nil && answer.Error != nil && response.StatusCode < http.StatusInternalServerError && response.StatusCode != http.StatusTooManyRequests:
		return nil, answer.Error
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("HTTP status %d", response.StatusCode)
	case err != nil || answer.Result == nil:
		return nil, errors.New("the response is not JSON-RPC")
	}
	return answer.Result, nil
}

// withoutAddress removes the address, which may contain a provider's key, from an error of net/http.
func withoutAddress(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
