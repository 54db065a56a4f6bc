package daraja

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kivuko/chain/chaintest"
	"kivuko/exchange"
)

// TestTokenIsFetchedOnce: with any number of callers, one token request runs at a time.
func TestTokenIsFetchedOnce(t *testing.T) {
	var fetched atomic.Int64
	hold := make(chan struct{})
	s := newTokenSource(time.Now, func(context.Context) (string, time.Duration, error) {
		<-hold
		return fmt.Sprint("token ", fetched.Add(1)), time.Hour, nil
	})
	var callers, asking sync.WaitGroup
	for range 50 {
		asking.Add(1)
		callers.Go(func() {
			asking.Done()
			if token, err := s.get(t.Context()); err != nil || token != "token 1" {
				t.Errorf("got %q, %v", token, err)
			}
		})
	}
	asking.Wait()
	close(hold)
	callers.Wait()
	if n := fetched.Load(); n != 1 {
		t.Errorf("fetched %d tokens", n)
	}
}

func TestTokenLife(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	fetched, life := 0, time.Hour
	s := newTokenSource(func() time.Time { return now }, func(context.Context) (string, time.Duration, error) {
		fetched++
		return fmt.Sprint(fetched), life, nil
	})
	for _, step := range []struct {
		pass time.Duration
		want string
	}{
		{0, "1"},
		{time.Hour - refreshEarly - time.Second, "1"}, // just before it is refreshed early
		{time.Second, "2"},
		{0, "2"},
	} {
		now = now.Add(step.pass)
		if got, err := s.get(t.Context()); got != step.want || err != nil {
			t.Errorf("after %v: got %q, want %q; %v", step.pass, got, step.want, err)
		}
	}
	s.drop("1") // an old token that a caller still had
	if got, _ := s.get(t.Context()); got != "2" {
		t.Errorf("dropping an old token dropped the new one: %q", got)
	}
	s.drop("2")
	life = 10 * time.Second
	if got, _ := s.get(t.Context()); got != "3" {
		t.Errorf("a dropped token is used: %q", got)
	}
	now = now.Add(5 * time.Second)
	if got, _ := s.get(t.Context()); got != "4" {
		t.Errorf("a short-lived token is used for more than half its life: %q", got)
	}
}

// TestTokenCallerGivesUp: a caller that gives up does not end the request for others.
func TestTokenCallerGivesUp(t *testing.T) {
	started, hold := make(chan struct{}), make(chan struct{})
	s := newTokenSource(time.Now, func(ctx context.Context) (string, time.Duration, error) {
		close(started)
		<-hold
		return "token", time.Hour, ctx.Err()
	})
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := s.get(ctx)
		gone <- err
	}()
	<-started
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	close(hold)
	if token, err := s.get(t.Context()); token != "token" || err != nil {
		t.Errorf("got %q, %v", token, err)
	}
}

// TestTokenFailures: without a token nothing was sent, so a payment is refused for now and never unknown.
func TestTokenFailures(t *testing.T) {
	for _, row := range []struct {
		name   string
		status int
		body   string
		config bool
	}{
		{"bad key", 400, "", true},
		{"bad grant", 400, errorBody("400.008.02", "Invalid grant type passed"), true},
		{"unauthorised", 401, "", true},
		{"page", 502, "<html></html>", false},
		{"empty", 200, "", false},
		{"no life", 200, `{"access_token":"abc"}`, false},
		{"strange life", 200, `{"access_token":"abc","expires_in":"soon"}`, false},
		{"no life left", 200, `{"access_token":"abc","expires_in":-1}`, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			var others atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != string(endpointToken) {
					others.Add(1)
				}
				w.WriteHeader(row.status)
				_, _ = io.WriteString(w, row.body)
			}))
			defer server.Close()
			c, err := New(testConfig(server.URL))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []exchange.Submission{
				c.SubmitCollection(t.Context(), testAttempt(exchange.Collection)), c.SubmitPayout(t.Context(), testAttempt(exchange.Payout)),
			} {
				if s.State != exchange.Refused || !s.Transient || s.Config != row.config || (s.Code == "token_refused") != row.config || s.Class.StopsPayouts() != row.config {
					t.Errorf("got %+v", s)
				}
			}
			if others.Load() != 0 {
				t.Error("a request was sent without a token")
			}
		})
	}
}

// overslept is the context of a process that was suspended until after its deadline: the timer that ends it stood still.
type overslept struct{ context.Context }

func (overslept) Deadline() (time.Time, bool) { return time.Now().Add(-time.Second), true }

// TestBrokenConnections: a failure before the first byte is a refusal, after it the outcome is unknown.
func TestBrokenConnections(t *testing.T) {
	t.Run("dropped", func(t *testing.T) {
		g, c := newGateway(t)
		g.answer = func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
		for _, at := range []endpoint{endpointPrompt, endpointPayout, endpointReversal} {
			before := len(g.asked())
			if s := c.ask(t.Context(), at); s.State != exchange.Unknown || s.Cause == nil {
				t.Errorf("%s: got %+v", at, s)
			}
			if len(g.asked()) != before+1 {
				t.Errorf("%s: sent %d times", at, len(g.asked())-before)
			}
		}
	})
	t.Run("broken off", func(t *testing.T) {
		g, c := newGateway(t)
		g.answer = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "500")
			_, _ = io.WriteString(w, `{"ResponseCode":"0"`)
		}
		if s := c.ask(t.Context(), endpointPrompt); s.State != exchange.Unknown {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("caller gives up", func(t *testing.T) {
		g, c := newGateway(t)
		ctx, cancel := context.WithCancel(t.Context())
		g.answer = func(_ http.ResponseWriter, r *http.Request) {
			cancel()
			<-r.Context().Done()
		}
		s := c.ask(ctx, endpointPayout)
		if s.State != exchange.Unknown || !errors.Is(s.Cause, context.Canceled) {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("its time is over", func(t *testing.T) {
		g, c := newGateway(t)
		g.says(200, "{}")
		c.ask(t.Context(), endpointPrompt) // fetches the token
		before := len(g.asked())
		for _, at := range []endpoint{endpointPrompt, endpointPayout, endpointReversal} {
			if s := c.ask(overslept{t.Context()}, at); s.State != exchange.Refused || s.Code != "not_sent" || len(g.asked()) != before {
				t.Errorf("%s: sent %d times, got %+v", at, len(g.asked())-before, s)
			}
		}
	})
	t.Run("never connected", func(t *testing.T) {
		g, c := newGateway(t)
		g.says(200, "{}")
		c.ask(t.Context(), endpointPrompt) // fetches the token
		g.Close()
		for _, at := range []endpoint{endpointPrompt, endpointPayout} {
			if s := c.ask(t.Context(), at); s.State != exchange.Refused || !s.Transient || s.Config || s.Code != "not_sent" {
				t.Errorf("%s: got %+v", at, s)
			}
		}
	})
	t.Run("certificate not trusted", func(t *testing.T) {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
		server.StartTLS()
		defer server.Close()
		c, err := New(testConfig(server.URL))
		if err != nil {
			t.Fatal(err)
		}
		c.tokens.token, c.tokens.renewAt = "token", time.Now().Add(time.Hour)
		if s := c.ask(t.Context(), endpointPrompt); s.State != exchange.Refused || !s.Config {
			t.Errorf("got %+v", s)
		}
	})
}

// TestAKeptConnectionIsClosed: the operator closes a connection just as a request is sent on it. A query is sent again; a
// request that may move money is sent once.
func TestAKeptConnectionIsClosed(t *testing.T) {
	g, c := newGateway(t)
	direct, err := url.Parse(g.URL)
	if err != nil {
		t.Fatal(err)
	}
	g.says(200, `{"ResponseCode":"0","ConversationID":"AG_1","MerchantRequestID":"m","CheckoutRequestID":"ws_CO_1","ResultCode":"0"}`)
	address, lost := chaintest.HangsUp(t, httputil.NewSingleHostReverseProxy(direct))
	cfg := testConfig(address)
	if c, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	for what, query := range map[string]func(context.Context) error{
		"prompt": func(ctx context.Context) error { return noAnswer(c.Resolve(ctx, testAttempt(exchange.Collection))) },
		"status": func(ctx context.Context) error { return noAnswer(c.QueryStatus(ctx, testAttempt(exchange.Payout))) },
		"balance": func(ctx context.Context) error {
			_, err := c.Balance(ctx)
			return err
		},
	} {
		var before, arrived int64
		chaintest.OnKeptConnection(t, func(ctx context.Context) {
			before, arrived = lost.Load(), int64(len(g.asked()))
			if err := query(ctx); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		})
		if lost.Load() != before+1 || int64(len(g.asked())) != arrived+1 {
			t.Errorf("%s: lost %d times, answered %d times", what, lost.Load()-before, int64(len(g.asked()))-arrived)
		}
	}
	for _, at := range []endpoint{endpointPrompt, endpointPayout, endpointReversal} {
		var before, arrived int64
		var s exchange.Submission
		chaintest.OnKeptConnection(t, func(ctx context.Context) {
			before, arrived = lost.Load(), int64(len(g.asked()))
			s = c.ask(ctx, at)
		})
		if s.State != exchange.Unknown {
			t.Errorf("%s: got %+v", at, s)
		}
		if lost.Load() != before+1 || int64(len(g.asked())) != arrived {
			t.Errorf("%s: lost %d times, answered %d times", at, lost.Load()-before, int64(len(g.asked()))-arrived)
		}
	}
}

// noAnswer is an error when a query had no response.
func noAnswer(o exchange.Observation) error {
	if o.State == exchange.SeenNoAnswer {
		return fmt.Errorf("got %+v", o)
	}
	return nil
}

// TestRedirectsAreNotFollowed: a followed redirect would send the payment a second time, and the token to another host.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	for i, doer := range []Doer{nil, &http.Client{}, nil, &http.Client{}} {
		status := http.StatusTemporaryRedirect
		if i > 1 {
			status = http.StatusFound
		}
		g, _ := newGateway(t)
		g.answer = func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) }
		cfg := testConfig(g.URL)
		cfg.HTTP = doer
		c, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if s := c.ask(t.Context(), endpointPayout); s.State != exchange.Unknown {
			t.Errorf("got %+v", s)
		}
	}
	if elsewhere.Load() != 0 {
		t.Error("a redirect was followed")
	}
}

// TestReplyLimit: an endless response is cut off, and proves nothing about the money.
func TestReplyLimit(t *testing.T) {
	g, c := newGateway(t)
	g.answer = func(w http.ResponseWriter, _ *http.Request) {
		for { // until the client hangs up
			if _, err := io.WriteString(w, strings.Repeat(" ", 1<<16)); err != nil {
				return
			}
		}
	}
	if s := c.ask(t.Context(), endpointPrompt); s.State != exchange.Unknown || !strings.Contains(s.Text, "longer than") {
		t.Errorf("got %+v", s)
	}
}

// TestTextsHoldNoSecrets: every kind of outcome contains the operator's message.
func TestTextsHoldNoSecrets(t *testing.T) {
	g, c := newGateway(t)
	g.answer = func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(500)
		_, _ = io.WriteString(w, errorBody("777", r.Header.Get("Authorization")+" for 254712345678 key-of-the-application 254 712 345 678"))
	}
	out := fmt.Sprintf("%+v", c.ask(t.Context(), endpointPrompt))
	out += fmt.Sprintf("%+v", c.Resolve(t.Context(), testAttempt(exchange.Collection)))
	_, err := c.Balance(t.Context())
	out += fmt.Sprint(err)
	_, _, _, err = c.Pull(t.Context(), time.Now().Add(-time.Hour), time.Now(), 0)
	out += fmt.Sprint(err, c.RegisterC2B(t.Context()))
	for _, secret := range []string{"SecretToken", "254712345678", "712 345", "key-of-the"} {
		if strings.Contains(out, secret) {
			t.Errorf("%q shows: %s", secret, out)
		}
	}
}

// TestCallbackLimits: bodies that are too long or unexpected are errors that quote nothing.
func TestCallbackLimits(t *testing.T) {
	kinds := []exchange.CallbackKind{
		exchange.CallbackResult, exchange.CallbackStatus, exchange.CallbackReversal, exchange.CallbackConfirmation, exchange.CallbackValidation,
	}
	for _, body := range []string{
		"", "null", "[]", "{}", "0", `"x"`, "{", `{"Body":{}}`, `{"Body":{"stkCallback":{}}}`, `{"Result":{}}`, `{"Result":null}`,
		`{"Result":{"ResultCode":{}}}`, `{"Body":{"stkCallback":{"ResultCode":[0]}}}`, `{"TransID":"secret 254712345678"}`,
		"<html>254712345678</html>",
	} {
		for _, kind := range kinds {
			got, err := notices.ParseCallback(kind, []byte(body))
			if exchange.CodeOf(err) != exchange.CodeMalformed || strings.Contains(fmt.Sprint(err), "254712345678") {
				t.Errorf("%s of %q: got %+v, %v", kind, body, got, err)
			}
		}
		if _, err := notices.ParseBalance([]byte(body)); exchange.CodeOf(err) != exchange.CodeMalformed {
			t.Errorf("balance of %q: got %v", body, err)
		}
		// The timeout notice has no documented body; with any body the outcome is unknown.
		if got, err := notices.ParseCallback(exchange.CallbackTimeout, []byte(body)); err != nil || got[0].State != exchange.SeenUnknown {
			t.Errorf("timeout of %q: got %+v, %v", body, got, err)
		}
	}
	long := []byte(`{"Result":{"ResultCode":0,"ResultDesc":"` + strings.Repeat("x", maxCallback) + `"}}`)
	for _, kind := range append(kinds, exchange.CallbackTimeout) {
		if _, err := notices.ParseCallback(kind, long); exchange.CodeOf(err) != exchange.CodeTooLarge {
			t.Errorf("%s: got %v", kind, err)
		}
	}
	if _, err := notices.ParseBalance(long); exchange.CodeOf(err) != exchange.CodeTooLarge {
		t.Errorf("balance: got %v", err)
	}
}

// TestSuccessNeedsReadableMoney: an unreadable amount has no asset, so it can't equal an expected one.
func TestSuccessNeedsReadableMoney(t *testing.T) {
	for value, want := range map[string]string{
		`1`: "1.00", `1.0`: "1.00", `"5.00"`: "5.00", `100.000`: "100.00", `0.5`: "0.50", `250000`: "250000.00",
		`1e3`: "0", `-5`: "0", `"1,000"`: "0", `1.005`: "0", `""`: "0", `null`: "0", `true`: "0", `"NaN"`: "0",
	} {
		body := fmt.Sprintf(`{"Body":{"stkCallback":{"ResultCode":0,"CallbackMetadata":{"Item":{"Name":"Amount","Value":%s}}}}}`, value)
		got, err := notices.ParseCallback(exchange.CallbackResult, []byte(body))
		if err != nil || got[0].Amount.String() != want || got[0].State != exchange.SeenSucceeded {
			t.Errorf("%s: got %+v, %v", value, got, err)
		}
	}
}

// TestPullRows: the page is nested once or twice, and an unreadable row is not a payment.
func TestPullRows(t *testing.T) {
	const row = `{"transactionId":"UKL1","trxDate":"2026-11-21 06:00:00","msisdn":254712345678,"transactiontype":"c2b-pay-bill-debit","billreference":"A","amount":"5.0"}`
	for body, want := range map[string][]exchange.ObservationState{
		`{"ResponseCode":"1000","Response":[[` + row + `]]}`:                                     {exchange.SeenSucceeded},
		`{"ResponseCode":1000,"Response":[` + row + `]}`:                                         {exchange.SeenSucceeded},
		`{"ResponseCode":"1000","Response":` + row + `}`:                                         {exchange.SeenSucceeded},
		`{"ResponseCode":"1001","Response":[[]]}`:                                                nil,
		`{"ResponseCode":"1001","Response":[[{}]]}`:                                              nil,
		`{"ResponseCode":"1001"}`:                                                                nil,
		`{"ResponseCode":"1000","Response":[[{"amount":"5","transactiontype":"c2b"}]]}`:          {exchange.SeenUnknown},
		`{"ResponseCode":"1000","Response":[[{"transactionId":"X","transactiontype":"other"}]]}`: {exchange.SeenUnknown},
	} {
		g, c := newGateway(t)
		g.says(200, body)
		seen, next, more, err := c.Pull(t.Context(), time.Now().Add(-time.Hour), time.Now(), 7)
		if err != nil || len(seen) != len(want) || (next > 7) != more {
			t.Errorf("%s: got %+v, %d, %v, %v", body, seen, next, more, err)
			continue
		}
		for i, o := range seen {
			if o.State != want[i] || (want[i] == exchange.SeenSucceeded && (o.Phone != "254712345678" || !o.At.Equal(at("2026-11-21T03:00:00Z")))) {
				t.Errorf("%s: got %+v", body, o)
			}
		}
	}
	g, c := newGateway(t)
	g.says(200, `{"ResponseCode":"1003","Response":[[]]}`)
	if _, _, _, err := c.Pull(t.Context(), time.Now().Add(-time.Hour), time.Now(), 0); exchange.CodeOf(err) != exchange.CodeUnavailable {
		t.Errorf("an unknown code was read as an empty page: %v", err)
	}
}

// TestHostileCallback: no posted body can break the database or a log.
func TestHostileCallback(t *testing.T) {
	long := strings.Repeat("x", 20_000)
	for kind, body := range map[exchange.CallbackKind]string{
		exchange.CallbackConfirmation: `{"TransID":"UK\u0000L1","TransAmount":"5","BillRefNumber":"a\u0000b\n` + long + `","MSISDN":"x"}`,
		exchange.CallbackValidation:   `{"TransID":"","TransAmount":"5","BillRefNumber":"a\u0000b\ud800` + long + `","MSISDN":"x"}`,
		exchange.CallbackResult: `{"Body":{"stkCallback":{"ResultCode":"` + long + `","ResultDesc":"\u0000` + long + `","CheckoutRequestID":"` + long +
			`","MerchantRequestID":"\u0000"}}}`,
		exchange.CallbackStatus: `{"Result":{"ResultCode":0,"ConversationID":"` + long + `","ResultParameters":{"ResultParameter":[{"Key":"TransactionStatus","Value":"Completed"},` +
			`{"Key":"ReceiptNo","Value":"` + long + `"}]}}}`,
		exchange.CallbackTimeout: `{"Result":{"ResultCode":"` + long + `","ConversationID":"\u0000"}}`,
	} {
		seen, err := notices.ParseCallback(kind, []byte(body))
		if kind == exchange.CallbackConfirmation {
			if err == nil {
				t.Errorf("a receipt with a blank in it was accepted: %+v", seen)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		o := seen[0]
		for _, s := range []string{o.Code, o.Text, o.Receipt, o.Reference, o.Ticket, o.Refs.CheckoutRequestID, o.Refs.MerchantRequestID, o.Refs.ConversationID} {
			if strings.ContainsAny(s, "\x00\n") || len(s) > 4*maxText {
				t.Errorf("%s: got %.300q", kind, s)
			}
		}
		if o.Receipt != "" {
			t.Errorf("%s: receipt %.50q", kind, o.Receipt)
		}
	}
}

// FuzzParseCallback: no body causes a panic, and only a zero result code or a confirmation is a success.
func FuzzParseCallback(f *testing.F) {
	f.Add(`{"Body":{"stkCallback":{"ResultCode":0,"CallbackMetadata":{"Item":[{"Name":"Amount","Value":1.00}]}}}}`)
	f.Add(`{"Result":{"ResultCode":"0","ResultParameters":{"ResultParameter":{"Key":"TransactionStatus","Value":"Completed"}}}}`)
	f.Add(`{"TransID":"UKL1","TransAmount":"5.00","MSISDN":"2547 ***** 126"}`)
	f.Fuzz(func(t *testing.T, body string) {
		_, _ = notices.ParseBalance([]byte(body))
		for _, kind := range []exchange.CallbackKind{
			exchange.CallbackResult, exchange.CallbackTimeout, exchange.CallbackStatus, exchange.CallbackConfirmation,
			exchange.CallbackValidation, exchange.CallbackReversal, exchange.CallbackBalance,
		} {
			seen, err := notices.ParseCallback(kind, []byte(body))
			if (err == nil) != (len(seen) == 1) {
				t.Fatalf("%s: got %+v, %v", kind, seen, err)
			}
			if err != nil || seen[0].State != exchange.SeenSucceeded || kind == exchange.CallbackConfirmation {
				continue
			}
			if code := seen[0].Code; code != ackCode && code != "R000001" {
				t.Errorf("%s: success with code %q", kind, code)
			}
		}
	})
}

func TestNotSent(t *testing.T) {
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	if _, ok := errors.AsType[*notSentError](transportError(dial)); !ok {
		t.Error("a failed dial counts as sent")
	}
	for _, op := range []string{"read", "write", "proxyconnect"} {
		if _, ok := errors.AsType[*notSentError](transportError(&net.OpError{Op: op, Err: errors.New("reset")})); ok {
			t.Errorf("a failed %s counts as never sent", op)
		}
	}
}
