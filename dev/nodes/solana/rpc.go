package solana

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

const (
	// maxBodyBytes is Agave's MAX_REQUEST_BODY_SIZE.
	maxBodyBytes = 50 << 10
	// maxBatch bounds the requests of one batch, as public providers do.
	maxBatch = 100
	// apiVersion is the release of Agave whose answers these are.
	apiVersion = "3.0.0"
)

// object is a JSON object.
type object = map[string]any

// Codes of JSON-RPC and of Agave's RPC (rpc-client-api/src/custom_error.rs).
const (
	codeParse               = -32700
	codeInvalidRequest      = -32600
	codeNoMethod            = -32601
	codeInvalidParams       = -32602
	codePreflight           = -32002
	codeSignature           = -32003
	codeBlockNotAvailable   = -32004
	codeNodeUnhealthy       = -32005
	codeSlotSkipped         = -32007
	codeVersion             = -32015
	codeMinContextSlot      = -32016
	textInvalidParam        = "Invalid param: "
	textSignatureFailed     = "Transaction signature verification failure"
	textMinContextSlot      = "Minimum context slot has not been reached"
	textBelowConfirmed      = "Method does not support commitment below `confirmed`"
	contentType             = "application/json"
	headerContentType       = "Content-Type"
	jsonRPCVersion          = "2.0"
	healthOK                = "ok"
	maxMultipleAccounts     = 100
	maxSignatureStatuses    = 256
	maxSignaturesForAddress = 1_000
	maxBlockRange           = 500_000
	maxFilters              = 4
	maxFeeAccounts          = 128
)

// rpcError is an error of JSON-RPC.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Message) }

func invalid(format string, args ...any) *rpcError {
	return &rpcError{Code: codeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// request is one call of JSON-RPC.
type request struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// arguments are the positional parameters.
func (r *request) arguments() ([]json.RawMessage, error) {
	if len(r.Params) == 0 || string(r.Params) == "null" {
		return nil, nil
	}
	var out []json.RawMessage
	if err := json.Unmarshal(r.Params, &out); err != nil {
		return nil, invalid("Invalid params: expected an array")
	}
	return out, nil
}

func (r *request) answer(result any, err error) object {
	id := r.ID
	if id == nil {
		id = json.RawMessage("null")
	}
	out := object{"jsonrpc": jsonRPCVersion, "id": id}
	if err == nil {
		out["result"] = result
		return out
	}
	var refused *rpcError
	if !errors.As(err, &refused) {
		refused = &rpcError{Code: -32603, Message: err.Error()}
	}
	out["error"] = refused
	return out
}

// rpcHandler serves JSON-RPC and upgrades websockets.
func (n *Node) rpcHandler() http.Handler {
	s := &rpcServer{node: n, methods: methods()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		text := healthOK
		if n.CurrentFaults().BehindBlocks > 0 {
			text = "behind"
		}
		_, _ = io.WriteString(w, text) // the reader went away
	})
	mux.HandleFunc("POST /", s.post)
	mux.HandleFunc("GET /", s.upgrade)
	return mux
}

// rpcServer answers the calls to a node.
type rpcServer struct {
	node    *Node
	methods map[string]method
}

// post answers one request or a batch. Refusals of JSON-RPC have status 200, as
// with Agave.
func (s *rpcServer) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err != nil {
		status := http.StatusBadRequest
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, err.Error(), status)
		return
	}
	answer, outcome := s.handle(body)
	if outcome.delay > 0 {
		timer := time.NewTimer(outcome.delay)
		defer timer.Stop()
		select {
		case <-r.Context().Done():
			return
		case <-timer.C:
		}
	}
	if outcome.lose {
		panic(http.ErrAbortHandler) // cuts the connection
	}
	w.Header().Set(headerContentType, contentType)
	if answer == nil { // notifications have no answer
		return
	}
	raw, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(raw) // the reader went away
}

// handle answers a body: an object, or an array of them.
func (s *rpcServer) handle(body []byte) (answer any, worst outcome) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '[' {
		var r request
		if err := json.Unmarshal(body, &r); err != nil {
			return r.answer(nil, &rpcError{Code: codeParse, Message: "Parse error"}), outcome{}
		}
		return s.one(&r)
	}
	var batch []json.RawMessage
	var none request
	if err := json.Unmarshal(body, &batch); err != nil {
		return none.answer(nil, &rpcError{Code: codeParse, Message: "Parse error"}), outcome{}
	}
	if len(batch) == 0 || len(batch) > maxBatch {
		return none.answer(nil, &rpcError{Code: codeInvalidRequest, Message: fmt.Sprintf("Invalid request: want 1 to %d calls in a batch", maxBatch)}), outcome{}
	}
	answers := []any{}
	for _, raw := range batch {
		var r request
		if err := json.Unmarshal(raw, &r); err != nil {
			answers = append(answers, none.answer(nil, &rpcError{Code: codeInvalidRequest, Message: "Invalid request"}))
			continue
		}
		one, outcome := s.one(&r)
		if one != nil {
			answers = append(answers, one)
		}
		worst.lose, worst.delay = worst.lose || outcome.lose, max(worst.delay, outcome.delay)
	}
	if len(answers) == 0 {
		return nil, worst
	}
	return answers, worst
}

// one answers a request, nil for a notification.
func (s *rpcServer) one(r *request) (any, outcome) {
	if r.JSONRPC != jsonRPCVersion || r.Method == "" {
		return r.answer(nil, &rpcError{Code: codeInvalidRequest, Message: "Invalid request"}), outcome{}
	}
	result, outcome, err := s.call(r)
	if r.ID == nil {
		return nil, outcome
	}
	return r.answer(result, err), outcome
}

func (s *rpcServer) call(r *request) (any, outcome, error) {
	f, ok := s.methods[r.Method]
	if !ok {
		return nil, outcome{}, &rpcError{Code: codeNoMethod, Message: "Method not found"}
	}
	args, err := r.arguments()
	if err != nil {
		return nil, outcome{}, err
	}
	c := &call{node: s.node, args: args, behind: uint64(s.node.CurrentFaults().BehindBlocks)}
	result, err := f(c)
	return result, c.outcome, err
}
