//go:build !crash

package crash

import (
	"context"
	"net/http"

	"go.temporal.io/sdk/interceptor"
	"google.golang.org/grpc"
)

// Interceptors returns nil.
func Interceptors() []interceptor.WorkerInterceptor { return nil }

// Commits returns nil: commits are not hooked.
func Commits() func(context.Context) func(committed bool) { return nil }

// Transport returns t unchanged.
func Transport(t http.RoundTripper) http.RoundTripper { return t }

// Dial returns no options.
func Dial() []grpc.DialOption { return nil }
