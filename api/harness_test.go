package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/google/uuid"

	"kivuko/chain"
	"kivuko/chain/ethereum"
	"kivuko/chain/tron"
	"kivuko/exchange"
	"kivuko/momo/daraja"
	"kivuko/store"
	"kivuko/store/storetest"
)

// contractRouter finds the operation of a request; made once, because it compiles every path.
var contractRouter = sync.OnceValues(func() (routers.Router, error) {
	raw, err := Document()
	if err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		return nil, err
	}
	closeObjects(tree)
	if raw, err = json.Marshal(tree); err != nil {
		return nil, err
	}
	doc, err := loadDocument(raw)
	if err != nil {
		return nil, err
	}
	for _, media := range []string{"text/html", "text/css", "text/javascript", "image/png", "image/jpeg", "application/pdf", "application/xml", "text/csv"} {
		openapi3filter.RegisterBodyDecoder(media, openapi3filter.FileBodyDecoder)
	}
	return gorillamux.NewRouter(doc)
})

// closeObjects closes the schemas that the document leaves open for future fields: in the tests, a response has exactly
// the documented fields.
func closeObjects(tree any) {
	switch node := tree.(type) {
	case map[string]any:
		if _, object := node["properties"].(map[string]any); object && node["additionalProperties"] == nil {
			node["additionalProperties"] = false
		}
		for _, inner := range node {
			closeObjects(inner)
		}
	case []any:
		for _, inner := range node {
			closeObjects(inner)
		}
	}
}

// env is the API on a real listener and a real database, with flows that write through the store.
type env struct {
	t      *testing.T
	store  *store.Store
	server *server
	flows  *fakeFlows
	base   string
	client *http.Client
	logs   *logBuffer
	skew   atomic.Int64 // by how much the API's clock is ahead
	// treasuries makes the wallet of the house once, with an inventory.
	treasuries sync.Once
}

// logBuffer keeps the log, so that tests can check that it has no secrets.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// hanging bounds what would otherwise wait for ever. However busy the machine, nothing else takes that long.
const hanging = time.Hour

var generous = Rates{
	Login: Rate{Max: -1}, Refresh: Rate{Max: -1}, Search: Rate{Max: -1}, OrderCreate: Rate{Max: -1}, Upload: Rate{Max: -1}, General: Rate{Max: -1},
}

func testDeps(t *testing.T, s *store.Store) Deps {
	return Deps{
		Config: Config{
			TokenKeys: []Key{testKey("test", 7)}, Peppers: []Key{testKey("pepper", 'p')}, SpoolDir: t.TempDir(), Operator: daraja.Name,
			Rates: generous, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		},
		Store: s, Answer: daraja.Notices{}.Answer,
		Addresses: map[exchange.Network]func(string) (string, error){exchange.Tron: forPeople(tron.ParseAddress)},
		AnyAddresses: map[exchange.Network]func(string) (string, error){
			exchange.Tron: forPeople(tron.ReadAddress), exchange.Ethereum: forPeople(ethereum.ReadAddress),
		},
		Health:   map[string]func(context.Context) error{"postgres": s.Ping},
		Webhooks: testWebhooks(), Files: testFiles(t, "file://"+t.TempDir()),
	}
}

func forPeople(parse func(string) (string, error)) func(string) (string, error) {
	return func(text string) (string, error) {
		a, err := parse(text)
		if e, ok := errors.AsType[*chain.Error](err); ok {
			return "", exchange.Errorf(exchange.CodeInvalid, "%s", e.Detail)
		}
		return a, err
	}
}

// start runs the API. Changes adjust what it is built from.
func start(t *testing.T, changes ...func(*Deps)) *env {
	t.Helper()
	return startOn(t, storetest.New(t), changes...)
}

func startOn(t *testing.T, st *store.Store, changes ...func(*Deps)) *env {
	t.Helper()
	e := &env{t: t, store: st, logs: &logBuffer{}}
	e.flows = &fakeFlows{store: st}
	d := testDeps(t, st)
	d.Flows, d.Logger = e.flows, slog.New(slog.NewJSONHandler(e.logs, nil))
	d.Now = func() time.Time { return time.Now().Add(time.Duration(e.skew.Load())) }
	for _, change := range changes {
		change(&d)
	}
	var err error
	if e.server, err = newServer(d); err != nil {
		t.Fatal(err)
	}
	e.server.testTimeout = hanging
	app, err := e.server.app()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- app.Listener(listener) }()
	e.base = "http://" + listener.Addr().String()
	e.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: hanging}
	t.Cleanup(func() {
		e.client.CloseIdleConnections()
		if err := errors.Join(app.ShutdownWithTimeout(hanging), <-served); err != nil {
			t.Error(err)
		}
	})
	// A server that is shut down before it starts to serve would never stop.
	e.do(get, "/healthz", nil).want(http.StatusOK)
	return e
}

// reply is a response that was read and validated against the contract.
type reply struct {
	t      testing.TB
	what   string
	status int
	header http.Header
	body   []byte
}

// option changes a request.
type option func(*http.Request)

func bearer(token string) option {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func withKey(key string) option { return func(r *http.Request) { r.Header.Set(headerKey, key) } }

func from(address string) option {
	return func(r *http.Request) { r.Header.Set("X-Forwarded-For", address) }
}

func header(name, value string) option { return func(r *http.Request) { r.Header.Set(name, value) } }

// do sends a request and validates the response against openapi.yaml. The body is nil, a string that is sent as it
// is, or a value that is sent as JSON.
func (e *env) do(method, path string, body any, options ...option) *reply {
	e.t.Helper()
	return e.doIn(e.t, method, path, e.withDigest(e.t, path, body), options...)
}

func (e *env) doIn(t testing.TB, method, path string, body any, options ...option) *reply {
	t.Helper()
	var content io.Reader
	var sent []byte
	switch b := body.(type) {
	case nil:
	case string:
		sent = []byte(b)
		content = bytes.NewReader(sent)
	default:
		var err error
		if sent, err = json.Marshal(b); err != nil {
			t.Fatal(err)
		}
		content = bytes.NewReader(sent)
	}
	r, err := http.NewRequestWithContext(context.Background(), method, e.base+path, content)
	if err != nil {
		t.Fatal(err)
	}
	if content != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, o := range options {
		o(r)
	}
	answer, err := e.client.Do(r)
	// The server closes the connection while too long headers are still being sent, so the client may see the
	// closed connection before the response.
	for range 9 {
		if err == nil || content != nil {
			break
		}
		answer, err = e.client.Do(r)
	}
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	got := &reply{t: t, what: method + " " + path, status: answer.StatusCode, header: answer.Header, body: raw}
	keep(t, r, sent, got)
	if err := hold(r, got); err != nil {
		t.Errorf("%s: status %d breaks the contract: %v\n%s", got.what, got.status, err, clip(string(raw), 600))
	}
	return got
}

var decision = regexp.MustCompile(`/(approvals/changes|refunds|transfers|swaps|otc/withdrawals|multisig/proposals)/([0-9a-f-]{36})/(confirm|approve|reject)$`)

// withDigest completes a decision that names no digest by that of the object: an officer decides about what is shown.
func (e *env) withDigest(t testing.TB, path string, body any) any {
	about := decision.FindStringSubmatch(path)
	given, plain := body.(map[string]any)
	ofPayload := about != nil && about[1] == "multisig/proposals" && about[3] == "confirm" // a signature, and no decision about the proposal
	if about == nil || ofPayload || (body != nil && body != "{}" && !plain) || given["digest"] != nil {
		return body
	}
	digest, id := strings.Repeat("0", digestLength), uuid.MustParse(about[2])
	switch about[1] {
	case "approvals/changes":
		if c, err := e.store.ControlChange(t.Context(), id); err == nil {
			digest = c.Digest()
		}
	case "otc/withdrawals":
		if w, err := e.store.WithdrawalByID(t.Context(), id); err == nil {
			digest = w.Digest
		}
	case "swaps":
		if o, err := e.store.Swap(t.Context(), store.Everything(), id); err == nil {
			digest = o.Digest
		}
	case "multisig/proposals":
		if p, err := e.store.Proposal(t.Context(), store.Everything(), id); err == nil {
			digest = p.Digest
		}
	case "refunds":
		if r, err := e.store.Refund(t.Context(), id); err == nil && r.Digest != "" {
			digest = r.Digest
		}
	default:
		if f, err := e.store.Transfer(t.Context(), store.ViewOf(exchange.Principal{Role: exchange.RoleAdmin}, exchange.ActApprove), id); err == nil {
			digest = f.Digest
		}
	}
	out := map[string]any{"digest": digest}
	maps.Copy(out, given)
	return out
}

// hold validates a response against the contract. Without an operation, it must be a problem.
func hold(r *http.Request, got *reply) error {
	router, err := contractRouter()
	if err != nil {
		return err
	}
	if got.header.Get("X-Request-Id") == "" || got.header.Get("X-Content-Type-Options") != "nosniff" {
		return errors.New("headers of every response are missing")
	}
	route, parameters, err := router.FindRoute(r)
	if r.Method == http.MethodOptions && got.status == http.StatusNoContent {
		return nil // a preflight request, which every path has
	}
	if err != nil {
		if got.status != http.StatusNotFound && got.status != http.StatusMethodNotAllowed {
			return fmt.Errorf("no operation: %w", err)
		}
		if got.problem().Code == "" {
			return errors.New("no problem body")
		}
		return nil
	}
	return openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, Route: route, PathParams: parameters},
		Status:                 got.status, Header: got.header, Body: io.NopCloser(bytes.NewReader(got.body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	})
}

// want ends the test unless the status is the one given.
func (r *reply) want(status int) *reply {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("%s: status %d, want %d: %s", r.what, r.status, status, clip(string(r.body), 600))
	}
	return r
}

// refused ends the test unless the reply is a problem with the code.
func (r *reply) refused(code exchange.Code) *reply {
	r.t.Helper()
	if p := r.problem(); p.Code != code || r.status != p.Status {
		r.t.Fatalf("%s: status %d, code %q, want %q: %s", r.what, r.status, p.Code, code, clip(string(r.body), 600))
	}
	return r
}

// blames ends the test unless the reply is a 422 that names exactly these "pointer code" pairs.
func (r *reply) blames(want ...string) {
	r.t.Helper()
	p := r.refused(exchange.CodeInvalid).problem()
	var got []string
	for _, f := range p.Errors {
		got = append(got, f.Pointer+" "+f.Code)
	}
	if strings.Join(got, ", ") != strings.Join(want, ", ") {
		r.t.Fatalf("%s: blames %v, want %v", r.what, got, want)
	}
}

func (r *reply) problem() problem {
	var p problem
	_ = json.Unmarshal(r.body, &p) // an empty problem is no match for any
	return p
}

// object is the body as an object.
func (r *reply) object() map[string]any {
	r.t.Helper()
	var v map[string]any
	if err := json.Unmarshal(r.body, &v); err != nil {
		r.t.Fatalf("%s: %v: %s", r.what, err, r.body)
	}
	return v
}

// array is the body as an array.
func (r *reply) array() []any {
	r.t.Helper()
	var v []any
	if err := json.Unmarshal(r.body, &v); err != nil {
		r.t.Fatalf("%s: %v: %s", r.what, err, r.body)
	}
	return v
}

func (r *reply) text(name string) string {
	r.t.Helper()
	s, ok := r.object()[name].(string)
	if !ok {
		r.t.Fatalf("%s: no text %q in %s", r.what, name, r.body)
	}
	return s
}

// person is an account with its credentials and tokens.
type person struct {
	exchange.User
	token   string
	session uuid.UUID
}

const testPassword = "a perfectly fine one"

// cheap is a cost of hashes that tests don't wait for.
var cheap = cost{memory: 8, passes: 1, threads: 1}

// cheapHash hashes a secret of a test's user at a low cost.
func (e *env) cheapHash(s secret) string {
	e.t.Helper()
	phc, err := hashAt(cheap, e.server.Config.Peppers[0], s)
	if err != nil {
		e.t.Fatal(err)
	}
	return phc
}

var people atomic.Int64

// person stores an account of a role and opens a session for it.
func (e *env) person(role exchange.Role, vendor ...uuid.UUID) person {
	e.t.Helper()
	n := people.Add(1)
	u := exchange.User{
		ID: newID(), Email: fmt.Sprintf("%s%d@example.com", role, n), PhoneNumber: exchange.Phone(fmt.Sprintf("2547%08d", n)),
		FirstName: "Amina", LastName: fmt.Sprintf("Number%d", n), Role: role, IsActive: true,
	}
	if len(vendor) > 0 {
		u.VendorID = vendor[0]
	}
	hash := e.cheapHash(passwordOf(u.ID, testPassword))
	u, err := storetest.AddUser(e.t, e.store, u, exchange.Credentials{UserID: u.ID, PasswordHash: hash})
	if err != nil {
		e.t.Fatalf("create %s: %v", role, err)
	}
	return e.session(u)
}

// session opens a session without the work of a login.
func (e *env) session(u exchange.User) person {
	e.t.Helper()
	now := e.server.now().UTC()
	session := store.Session{ID: newID(), FamilyID: newID(), UserID: u.ID, Assurance: exchange.AssurancePassword, CreatedAt: now, ExpiresAt: now.Add(RefreshTokenLife)}
	text, hash, err := e.server.ring.refresh(u.ID, session.FamilyID, now, session.ExpiresAt)
	if err != nil || text == "" {
		e.t.Fatal(err)
	}
	session.TokenHash = hash
	if err := e.store.CreateSession(e.t.Context(), session); err != nil {
		e.t.Fatal(err)
	}
	if u.Role.Staff() {
		e.provePasskey(u, session.FamilyID)
	}
	state, err := e.store.AuthState(e.t.Context(), u.ID, session.FamilyID)
	if err != nil {
		e.t.Fatal(err)
	}
	token, _, err := e.server.ring.access(claims{u.ID, session.FamilyID, state.AuthVersion}, now)
	if err != nil {
		e.t.Fatal(err)
	}
	return person{u, token, session.FamilyID}
}

// provePasskey raises a session as a passkey does, without an authenticator.
func (e *env) provePasskey(u exchange.User, session uuid.UUID) {
	e.t.Helper()
	all, err := e.store.Passkeys(e.t.Context(), u.ID)
	if err != nil {
		e.t.Fatal(err)
	}
	who := exchange.Principal{UserID: u.ID, Role: u.Role, SessionID: session}
	if len(all) == 0 {
		id := newID()
		all = []exchange.Passkey{{ID: id, UserID: u.ID, CredentialID: id[:], PublicKey: make([]byte, 32), AAGUID: make([]byte, 16), Transports: []string{}, Name: "test"}}
		if err := e.store.AddPasskey(e.t.Context(), all[0], who); err != nil {
			e.t.Fatal(err)
		}
	}
	if err := e.store.StepUp(e.t.Context(), exchange.AssurancePasskey, all[0].ID, who); err != nil {
		e.t.Fatal(err)
	}
	e.server.sessions.forget(u.ID)
}

func (p person) auth() option { return bearer(p.token) }
