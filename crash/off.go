//go:build !crash

package crash

import (
	"context"
	"net/http"

	"go.temporal.io/sdk/interceptor"
	"google.golang.org/grpc"
)

// Interceptors are none.
func Interceptors() []interceptor.WorkerInterceptor { return nil }

// Commits is nil: no commit is watched.
func Commits() func(context.Context) func(committed bool) { return nil }

// Transport returns what it is given.
func Transport(t http.RoundTripper) http.RoundTripper { return t }

// Dial has no options.
func Dial() []grpc.DialOption { return nil }
