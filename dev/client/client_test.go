package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"kivuko/dev/client"
)

// service answers with one status after the other, zero being a connection that breaks, and then with 201.
type service struct {
	statuses []int
	keys     []string
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
	status := http.StatusCreated
	if len(s.statuses) > 0 {
		status, s.statuses = s.statuses[0], s.statuses[1:]
	}
	if status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(status)
}

// A caller with retries goes on with the same key while the service is away, and takes every other refusal.
func TestRetries(t *testing.T) {
	t.Parallel()
	const away, refused = http.StatusServiceUnavailable, http.StatusUnprocessableEntity
	for name, test := range map[string]struct {
		statuses     []int
		retry        bool
		calls, fails int
	}{
		"away for a while": {[]int{away, 0, away}, true, 4, 0},
		"refused":          {[]int{refused}, true, 1, refused},
		"without retries":  {[]int{away}, false, 1, away},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &service{statuses: test.statuses}
			server := httptest.NewServer(s)
			defer server.Close()
			c := client.New(server.URL)
			if test.retry {
				c = c.WithRetries()
			}
			err := c.Post(t.Context(), "/", "key", nil, nil)
			if p, _ := errors.AsType[*client.Problem](err); (err == nil) != (test.fails == 0) || (p != nil && p.Status != test.fails) {
				t.Errorf("got %v", err)
			}
			if !slices.Equal(s.keys, slices.Repeat([]string{"key"}, test.calls)) {
				t.Errorf("called with the keys %q", s.keys)
			}
		})
	}
}
