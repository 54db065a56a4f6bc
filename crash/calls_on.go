//go:build crash

package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"runtime"
	"strings"

	"google.golang.org/grpc"
)

// Commits returns the hook of store.Options. A commit is named after the store's method that made it.
func Commits() func(context.Context) func(committed bool) {
	if points == nil {
		return nil
	}
	return func(ctx context.Context) func(bool) {
		e := of(ctx)
		if e == nil {
			return func(bool) {}
		}
		return e.step(asked())
	}
}

// asked returns the outermost store method on the stack, and the place in the code: all callers up to the activity.
func asked() (name, site string) {
	const deepest = 100
	name = "call"
	callers := make([]uintptr, deepest)
	callers = callers[:runtime.Callers(2, callers)]
	frames := runtime.CallersFrames(callers)
	for {
		frame, more := frames.Next()
		if method, ours := strings.CutPrefix(frame.Function, "kivuko/store.(*Store)."); ours {
			name, _, _ = strings.Cut(method, ".") // without the closures in it
		}
		if !more {
			return name, fmt.Sprint(callers)
		}
	}
}

// Transport puts points around the requests of activities that may change something.
func Transport(t http.RoundTripper) http.RoundTripper {
	if points == nil {
		return t
	}
	return transport{t}
}

// wrapDefaultTransport does so for the clients that have no transport of their own.
func wrapDefaultTransport() { http.DefaultTransport = transport{http.DefaultTransport} }

type transport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	e := of(r.Context())
	if e == nil || reads(r) {
		return t.RoundTripper.RoundTrip(r)
	}
	step := e.step(asked())
	step(false)
	answer, err := t.RoundTripper.RoundTrip(r)
	step(true)
	return answer, err
}

// readingRPC matches the node methods that change nothing. Every other method is a point.
var readingRPC = regexp.MustCompile(`^(eth_|net_|web3_)?(get|call$|chainId$|blockNumber$|estimate|fee|maxPriority|gasPrice$|simulate|version$|is[A-Z])`)

// reads reports whether a request is known to change nothing, by its HTTP method or its JSON-RPC methods.
func reads(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return true
	}
	if r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return false
	}
	type call struct {
		Version string `json:"jsonrpc"`
		Method  string `json:"method"`
	}
	var batch []call
	if json.Unmarshal(raw, &batch) != nil {
		batch = make([]call, 1)
		if json.Unmarshal(raw, &batch[0]) != nil {
			return false
		}
	}
	for _, c := range batch {
		if c.Version == "" || !readingRPC.MatchString(c.Method) {
			return false
		}
	}
	return true
}

// readingGRPC matches the methods of TRON nodes and of Temporal that change nothing outside the activity.
var readingGRPC = regexp.MustCompile(`^(Get|List|Describe|Query|Count|Poll|Record|Respond|Estimate|Trigger|Create.*Transaction)`)

// Dial puts points around the calls of activities that may change something.
func Dial() []grpc.DialOption {
	if points == nil {
		return nil
	}
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(func(
		ctx context.Context, method string, in, out any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, o ...grpc.CallOption,
	) error {
		e := of(ctx)
		if e == nil || readingGRPC.MatchString(path.Base(method)) {
			return invoke(ctx, method, in, out, conn, o...)
		}
		step := e.step(asked())
		step(false)
		err := invoke(ctx, method, in, out, conn, o...)
		step(true)
		return err
	})}
}
