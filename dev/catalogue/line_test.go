package catalogue

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"kivuko/api"
	"kivuko/exchange"
	"kivuko/workflows"
)

// line delivers the operator's posts to us. It accepts a notice at once, because the operator does not wait or repeat,
// and delivers it at its simulated time to the API's own code behind the callback route, which finds the attempt,
// stores the body, records payments and wakes the flow before it returns.
type line struct {
	w      *harness
	server *httptest.Server
	inbox  *api.Inbox
	dir    string

	mu       sync.Mutex
	dead     bool // drops all posts of the operator
	delay    time.Duration
	waiting  []notice
	received []notice
}

// notice is one post of the operator, in the form of the API's spool.
type notice struct {
	ID         uuid.UUID             `json:"id"`
	Token      string                `json:"token"`
	Kind       exchange.CallbackKind `json:"kind"`
	RemoteIP   string                `json:"remote_ip"`
	OffRange   bool                  `json:"off_range,omitempty"`
	Standing   bool                  `json:"standing,omitempty"`
	Body       []byte                `json:"body"`
	ReceivedAt time.Time             `json:"received_at"`
}

func newLine(w *harness) *line {
	w.t.Helper()
	l := &line{w: w, dir: w.t.TempDir(), delay: answersAfter}
	read := func(kind exchange.CallbackKind, body []byte) ([]exchange.Observation, error) {
		return w.client.ParseCallback(kind, body)
	}
	var err error
	l.inbox, err = api.NewInbox(api.Deps{Config: api.Config{SpoolDir: l.dir}, Store: w.store, Flows: wakes{w: w}, Notices: read})
	if err != nil {
		w.t.Fatal(err)
	}
	l.server = httptest.NewServer(http.HandlerFunc(l.take))
	w.t.Cleanup(l.server.Close)
	return l
}

func (l *line) base() string { return l.server.URL + "/callbacks/momo" }

// at sets the delay of notices. With a zero delay the operator waits until the notice was taken.
func (l *line) at(delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = delay
}

// dies starts or stops dropping notices.
func (l *line) dies(dead bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = dead
}

func (l *line) take(rw http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	dead := l.dead
	l.mu.Unlock()
	if dead {
		rw.WriteHeader(http.StatusBadGateway)
		return
	}
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/callbacks/momo/"), "/")
	body, err := io.ReadAll(r.Body)
	if err != nil || len(parts) != 2 {
		rw.WriteHeader(http.StatusBadRequest)
		return
	}
	_, _ = io.WriteString(rw, `{"ResultCode":"0","ResultDesc":"Accepted"}`)
	if kind := exchange.CallbackKind(parts[1]); kind != exchange.CallbackValidation {
		l.carry(notice{Token: parts[0], Kind: kind, RemoteIP: "127.0.0.1", Standing: parts[0] == standingToken, Body: body})
	}
}

// post delivers a body to one of our addresses at once, as if from one of the operator's addresses. postFrom says whether it
// comes from outside them.
func (l *line) post(address string, body any) {
	l.w.t.Helper()
	l.postFrom(address, body, false)
}

func (l *line) postFrom(address string, body any, offRange bool) {
	l.w.t.Helper()
	raw, err := json.Marshal(body)
	if err != nil {
		l.w.t.Fatal(err)
	}
	token, kind, _ := strings.Cut(strings.TrimPrefix(address, l.base()+"/"), "/")
	n := notice{
		ID: uuid.Must(uuid.NewV7()), Token: token, Kind: exchange.CallbackKind(kind), RemoteIP: "203.0.113.5", OffRange: offRange, Standing: token == standingToken, Body: raw,
	}
	l.mu.Lock()
	l.waiting = append(l.waiting, n)
	l.mu.Unlock()
	l.hand(n.ID)
}

// carry delivers a notice when its time has come.
func (l *line) carry(n notice) {
	n.ID = uuid.Must(uuid.NewV7())
	l.mu.Lock()
	l.waiting = append(l.waiting, n)
	delay := l.delay
	l.mu.Unlock()
	env := l.w.playing()
	switch {
	case env == nil:
		l.hand(n.ID)
	case delay > 0:
		env.RegisterDelayedCallback(func() { l.hand(n.ID) }, delay)
	default: // the operator continues when the notice has arrived
		done := make(chan struct{})
		env.RegisterDelayedCallback(func() { defer close(done); l.hand(n.ID) }, 0)
		<-done
	}
}

// hand delivers a notice to the API's code, once.
func (l *line) hand(id uuid.UUID) {
	l.mu.Lock()
	var found *notice
	for i := range l.waiting {
		if l.waiting[i].ID == id {
			n := l.waiting[i]
			n.ReceivedAt = l.w.now()
			found = &n
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			l.received = append(l.received, n)
			break
		}
	}
	l.mu.Unlock()
	if found == nil {
		return
	}
	raw, err := json.Marshal(found)
	if err == nil {
		err = os.WriteFile(filepath.Join(l.dir, found.ID.String()+".callback"), raw, 0o600)
	}
	if err == nil {
		_, err = l.inbox.Drain(l.w.t.Context())
	}
	if err != nil {
		l.w.t.Errorf("a notice was not taken: %v", err)
	}
}

// rest delivers the notices that were still pending when a flow ended.
func (l *line) rest() {
	l.mu.Lock()
	ids := make([]uuid.UUID, len(l.waiting))
	for i, n := range l.waiting {
		ids[i] = n.ID
	}
	l.mu.Unlock()
	for _, id := range ids {
		l.hand(id)
	}
}

// of returns the delivered notices of a kind.
func (l *line) of(kind exchange.CallbackKind) []notice {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []notice
	for _, n := range l.received {
		if n.Kind == kind {
			all = append(all, n)
		}
	}
	return all
}

// wakes implements the API's calls of Temporal in the environment of the flow that is played.
type wakes struct {
	api.Flows
	w *harness
}

// Callback wakes the attempt's flow, or the flow for its late money. When neither runs, the test starts the latter
// afterwards.
func (f wakes) Callback(_ context.Context, a exchange.PaymentAttempt, callback uuid.UUID) error {
	ref := workflows.CallbackRef{CallbackID: callback, AttemptID: a.ID}
	if env := f.w.playing(); env != nil {
		for _, id := range []string{a.WorkflowID, workflows.LatePaymentID(a.ID)} {
			if env.SignalWorkflowByID(id, workflows.SignalCallback, ref) == nil {
				return nil
			}
		}
	}
	for _, known := range f.w.unwatched {
		if known.ID == a.ID {
			return nil
		}
	}
	f.w.unwatched = append(f.w.unwatched, a)
	return nil
}
