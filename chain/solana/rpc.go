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

// The RPC client of the library is not used: its errors hold the whole address with the provider's
// key, it refuses answers with fields that it does not know, and it reads without a bound.

const (
	// maxAnswerBytes bounds one answer. A full block of mainnet has about 10 MB.
	maxAnswerBytes = 64 << 20
	// maxNodeText bounds what is quoted of a node's words.
	maxNodeText = 200
)

// idempotent marks a request that net/http may send again (net/http Transport); without a value it is not sent itself.
const idempotent = "Idempotency-Key"

// Codes of Agave's RPC (rpc-client-api custom_error.rs) that mean something of their own here.
const (
	codePreflightFailure   = -32002
	codeSignatureInvalid   = -32003
	codeBlockNotAvailable  = -32004
	codeSlotSkipped        = -32007
	codeSlotSkippedArchive = -32009
	codeUnsupportedVersion = -32015
	codeInvalidParams      = -32602
)

// rpcError is a node's refusal.
type rpcError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// Error is the code with the node's words.
func (e *rpcError) Error() string { return fmt.Sprintf("code %d: %s", e.Code, quote(e.Message)) }

// rpcCode is the code of a refusal, or zero.
func rpcCode(err error) int {
	if e, ok := errors.AsType[*rpcError](err); ok {
		return e.Code
	}
	return 0
}

// quote makes a node's text fit for an error: bounded, one line, without control characters.
func quote(s string) string {
	if len(s) > maxNodeText {
		s = s[:maxNodeText]
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// options is the last parameter of most methods.
type options map[string]any

// call reads one thing of a node. A null answer leaves a pointer nil. It may be sent a second time, see post.
func call[T any](ctx context.Context, n *node, method string, params ...any) (T, error) {
	return request[T](ctx, n, true, method, params)
}

// callOnce is call for what is more than a read. It is sent at most once.
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
		return out, chain.Wrap(chain.ReasonProtocol, err, "%s answered %s in a form that the protocol does not have", n.endpoint, method)
	}
	return out, nil
}

// post sends one question and reads the result of its answer. A node may close a connection that is kept alive just
// when a question goes out on it; net/http sends a read again on a new connection then.
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
	defer func() { _ = response.Body.Close() }() // what was read is whole or refused below
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	if err != nil {
		return nil, withoutAddress(err)
	}
	if len(body) > maxAnswerBytes {
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswerBytes)
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
		return nil, errors.New("the answer is not one of JSON-RPC")
	}
	return answer.Result, nil
}

// withoutAddress takes the address out of an error of net/http, which may hold a provider's key.
func withoutAddress(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
