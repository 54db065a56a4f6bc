package daraja_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/momo/daraja"
	"kivuko/momo/sandbox"
)

const (
	standing = "00000000000000000000000000000000000000000000000000000000000000aa"
	payer    = exchange.Phone("254712345678")
)

// posted is one callback that the operator sent.
type posted struct {
	token string
	kind  exchange.CallbackKind
	body  []byte
	from  string
}

// receiver replaces Kivuko's callback route.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []posted
	answer string
	status int
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{answer: `{"ResultCode":"0","ResultDesc":"Accepted"}`, status: http.StatusOK}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
		host, _, _ := strings.Cut(req.RemoteAddr, ":")
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(parts) == 3 && parts[0] == "cb" {
			r.got = append(r.got, posted{parts[1], exchange.CallbackKind(parts[2]), body, host})
		}
		w.WriteHeader(r.status)
		_, _ = io.WriteString(w, r.answer)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) of(token string, kind exchange.CallbackKind) []posted {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []posted
	for _, p := range r.got {
		if p.token == token && p.kind == kind {
			out = append(out, p)
		}
	}
	return out
}

// harness is a client, an operator and a receiver.
type harness struct {
	t        *testing.T
	client   *daraja.Client
	operator *sandbox.Server
	receiver *receiver
}

func newHarness(t *testing.T, change func(*sandbox.Config, *daraja.Config)) *harness {
	t.Helper()
	r := newReceiver(t)
	sandboxConfig := sandbox.Config{LateDelay: -1}
	config := daraja.Config{
		ConsumerKey: sandbox.DefaultConsumerKey, ConsumerSecret: sandbox.DefaultConsumerSecret,
		Shortcode: sandbox.DefaultShortcode, Passkey: sandbox.DefaultPasskey,
		PayoutShortcode: sandbox.DefaultPayoutShortcode, InitiatorName: sandbox.DefaultInitiatorName,
		SecurityCredential: sandbox.DefaultSecurityCredential,
		CallbackBase:       r.URL + "/cb", StandingToken: standing,
	}
	if change != nil {
		change(&sandboxConfig, &config)
	}
	operator, err := sandbox.New(sandboxConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = operator.Close() })
	config.BaseURL = operator.URL()
	client, err := daraja.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return &harness{t: t, client: client, operator: operator, receiver: r}
}

// settle waits until the operator has nothing running.
func (w *harness) settle() {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Hour)
	defer cancel()
	if err := w.operator.Settle(ctx); err != nil {
		w.t.Fatal("the operator does not become idle:", err)
	}
}

func (w *harness) release() {
	w.t.Helper()
	w.settle()
	w.operator.Release()
	w.settle()
}

// results parses the callbacks of one kind for an attempt.
func (w *harness) results(a exchange.PaymentAttempt, kind exchange.CallbackKind) []exchange.Observation {
	w.t.Helper()
	var out []exchange.Observation
	token := a.CallbackToken
	if kind == exchange.CallbackStatus {
		token = a.StatusToken
	}
	for _, p := range w.receiver.of(token, kind) {
		seen, err := w.client.ParseCallback(kind, p.body)
		if err != nil {
			w.t.Fatalf("%v: %s", err, p.body)
		}
		out = append(out, seen...)
	}
	return out
}

func (w *harness) result(a exchange.PaymentAttempt) exchange.Observation {
	w.t.Helper()
	seen := w.results(a, exchange.CallbackResult)
	if len(seen) != 1 {
		w.t.Fatalf("got %d results, want 1", len(seen))
	}
	return seen[0]
}

// moved sums the effects of a direction.
func (w *harness) moved(direction string) (sum int64) {
	for _, e := range w.operator.Books().Effects {
		if e.Direction == direction {
			sum += e.Amount
		}
	}
	return sum
}

func attempt(direction exchange.PaymentDirection, phone exchange.Phone, amount string) exchange.PaymentAttempt {
	id := uuid.New()
	return exchange.PaymentAttempt{
		ID: id, Direction: direction, Provider: "daraja", Status: exchange.AttemptCreated,
		Amount: money.Must(money.KES, amount), Phone: phone, Reference: "KVK123",
		CallbackToken: strings.ReplaceAll(id.String()+uuid.NewString(), "-", ""), StatusToken: strings.ReplaceAll(uuid.NewString()+id.String(), "-", ""),
	}
}

func collection(phone exchange.Phone) exchange.PaymentAttempt {
	return attempt(exchange.Collection, phone, "100")
}

func payout(phone exchange.Phone) exchange.PaymentAttempt {
	return attempt(exchange.Payout, phone, "500")
}

// magic is the number that selects a behaviour of the operator.
func magic(digits string) exchange.Phone { return exchange.Phone("2547000000" + digits) }

func (w *harness) collect(a *exchange.PaymentAttempt) exchange.Submission {
	w.t.Helper()
	s := w.client.SubmitCollection(w.t.Context(), *a)
	a.MerchantRequestID, a.CheckoutRequestID = s.Refs.MerchantRequestID, s.Refs.CheckoutRequestID
	return s
}

func TestCollection(t *testing.T) {
	w := newHarness(t, nil)
	if err := w.client.RegisterC2B(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := collection(payer)
	s := w.collect(&a)
	if s.State != exchange.Accepted || s.Refs.CheckoutRequestID == "" || s.Refs.MerchantRequestID == "" {
		t.Fatalf("got %+v", s)
	}
	w.settle()
	seen := w.result(a)
	effect := w.operator.Books().Effects[0]
	if seen.State != exchange.SeenSucceeded || seen.Receipt != effect.Receipt || !seen.Amount.Equal(a.Amount) ||
		seen.Phone != payer || seen.Refs != s.Refs || seen.Source != exchange.SourceCallback {
		t.Errorf("callback: got %+v", seen)
	}
	if !seen.At.Equal(effect.Time.Truncate(time.Second)) {
		t.Errorf("callback: time %v, want %v", seen.At, effect.Time)
	}
	if effect.Reference != a.Reference || effect.Amount != 100 || effect.Phone != payer.Digits() {
		t.Errorf("books: got %+v", effect)
	}
	query := w.client.Resolve(t.Context(), a)
	if query.State != exchange.SeenSucceeded || query.Source != exchange.SourceQuery || query.Receipt != "" {
		t.Errorf("query: got %+v", query)
	}
	notices := w.receiver.of(standing, exchange.CallbackConfirmation)
	if len(notices) != 1 {
		t.Fatalf("got %d confirmations, want 1", len(notices))
	}
	notice, err := w.client.ParseCallback(exchange.CallbackConfirmation, notices[0].body)
	if err != nil {
		t.Fatal(err)
	}
	if n := notice[0]; n.Receipt != effect.Receipt || n.Reference != a.Reference || n.PhoneHash != payer.Hash() ||
		!n.Amount.Equal(a.Amount) || n.State != exchange.SeenSucceeded || n.Source != exchange.SourceConfirmation {
		t.Errorf("confirmation: got %+v", n)
	}
}

func TestPayout(t *testing.T) {
	w := newHarness(t, nil)
	a := payout(payer)
	s := w.client.SubmitPayout(t.Context(), a)
	if s.State != exchange.Accepted || s.Refs.ConversationID == "" || s.Refs.OriginatorConversationID != a.ID.String() {
		t.Fatalf("got %+v", s)
	}
	w.settle()
	seen, effect := w.result(a), w.operator.Books().Effects[0]
	if seen.State != exchange.SeenSucceeded || seen.Receipt != effect.Receipt || !seen.Amount.Equal(a.Amount) ||
		seen.Phone != payer || seen.Refs != s.Refs {
		t.Errorf("result: got %+v", seen)
	}
	again := w.client.SubmitPayout(t.Context(), a)
	w.settle()
	if again.State != exchange.Accepted || again.Code != "500.002.1001" || w.moved(sandbox.Payout) != 500 {
		t.Errorf("submitting again: got %+v, moved %d", again, w.moved(sandbox.Payout))
	}
	question := w.client.Resolve(t.Context(), a)
	if question.State != exchange.SeenPending || question.Ticket == "" {
		t.Fatalf("question: got %+v", question)
	}
	w.settle()
	answer := w.results(a, exchange.CallbackStatus)[0]
	if answer.State != exchange.SeenSucceeded || answer.Ticket != question.Ticket || answer.Receipt != effect.Receipt ||
		!answer.Amount.Equal(a.Amount) || answer.Phone != payer || answer.Refs != s.Refs {
		t.Errorf("answer: got %+v", answer)
	}
}
