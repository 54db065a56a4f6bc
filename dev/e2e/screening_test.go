package e2e

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"

	"kivuko/exchange"
)

// screening is the service that the product asks about every address outside our custody. Every address is clear
// unless a test sets another verdict.
type screening struct {
	server *httptest.Server

	mu       sync.Mutex
	verdicts map[string]exchange.Verdict // by address
}

func newScreening() *screening {
	s := &screening{verdicts: map[string]exchange.Verdict{}}
	s.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Address string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"verdict": s.of(asked.Address), "reference": "e2e"}) // a caller that went away retries
	}))
	return s
}

// say sets the verdict for an address from now on.
func (s *screening) say(address string, v exchange.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verdicts[address] = v
}

func (s *screening) of(address string) exchange.Verdict {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.verdicts[address]; ok {
		return v
	}
	return exchange.VerdictClear
}
