package daraja

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

const testToken = "11111111111111111111111111111111111111111111111111111111111111bb"

func testConfig(base string) Config {
	return Config{
		BaseURL: base, ConsumerKey: "key-of-the-application", ConsumerSecret: "secret-of-the-application",
		Shortcode: "174379", Passkey: "passkey-of-the-shortcode", PayoutShortcode: "600992",
		InitiatorName: "initiator", SecurityCredential: "sealed-credential",
		CallbackBase: "https://pay.example.com/api/v1/callbacks/momo", StandingToken: testToken,
	}
}

// gateway is an operator that gives the same response to every request.
type gateway struct {
	*httptest.Server
	answer func(w http.ResponseWriter, r *http.Request)

	mu     sync.Mutex
	issued int
	seen   []question
}

// question is a request to the gateway, other than for a token.
type question struct{ contentType, body string }

func (g *gateway) asked() []question {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.seen)
}

func (g *gateway) tokens() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.issued
}

func newGateway(t *testing.T) (*gateway, *Client) {
	t.Helper()
	g := &gateway{}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == string(endpointToken) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.issued++
			_, _ = fmt.Fprintf(w, `{"access_token":"SecretToken%017d","expires_in":3599}`, g.issued)
			return
		}
		body, _ := io.ReadAll(r.Body)
		g.mu.Lock()
		g.seen = append(g.seen, question{r.Header.Get("Content-Type"), string(body)})
		g.mu.Unlock()
		g.answer(w, r)
	}))
	t.Cleanup(g.Close)
	c, err := New(testConfig(g.URL))
	if err != nil {
		t.Fatal(err)
	}
	return g, c
}

func (g *gateway) says(status int, body string) {
	g.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func testAttempt(direction exchange.PaymentDirection) exchange.PaymentAttempt {
	return exchange.PaymentAttempt{
		ID: uuid.New(), Direction: direction, Amount: money.Must(money.KES, "100"), Phone: "254712345678",
		Reference: "KVK123", CallbackToken: testToken, CheckoutRequestID: "ws_CO_1",
	}
}

// ask sends the request for money that belongs to an endpoint.
func (c *Client) ask(ctx context.Context, at endpoint) exchange.Submission {
	switch at {
	case endpointPrompt:
		return c.SubmitCollection(ctx, testAttempt(exchange.Collection))
	case endpointPayout:
		return c.SubmitPayout(ctx, testAttempt(exchange.Payout))
	default:
		return c.Reverse(ctx, testAttempt(exchange.Payout), "SG632NMUAB", money.Must(money.KES, "100"))
	}
}

func errorBody(code, message string) string {
	b, _ := json.Marshal(map[string]string{"requestId": "1-2-3", "errorCode": code, "errorMessage": message})
	return string(b)
}

// TestSubmissionOutcomes tests every row of the catalogue of gateway errors; the comments name its source.
func TestSubmissionOutcomes(t *testing.T) {
	type want struct {
		state             exchange.SubmissionState
		transient, config bool
	}
	var (
		accepted = want{state: exchange.Accepted}
		unknown  = want{state: exchange.Unknown}
		refused  = want{state: exchange.Refused}
		later    = want{state: exchange.Refused, transient: true}
		ours     = want{state: exchange.Refused, config: true}
		both     = want{state: exchange.Refused, transient: true, config: true}
	)
	const (
		lock     = "Unable to lock subscriber, a transaction is already in process for the current subscriber"
		checkout = `{"MerchantRequestID":"m","CheckoutRequestID":"c","ResponseCode":"0"}`
		queued   = `{"ConversationID":"AG_1","OriginatorConversationID":"","ResponseCode":"0"}`
	)
	for _, row := range []struct {
		at     endpoint
		status int
		body   string
		want   want
	}{
		// Acknowledgements: portal, Express and B2C.
		{endpointPrompt, 200, checkout, accepted},
		{endpointPrompt, 500, checkout, accepted}, // the body counts before the status
		{endpointPrompt, 200, `{"MerchantRequestID":"m","CheckoutRequestID":"c","ResponseCode":0}`, accepted},
		{endpointPrompt, 200, `{"MerchantRequestID":"m","ResponseCode":"0"}`, unknown},
		{endpointPrompt, 200, `{"MerchantRequestID":"m","CheckoutRequestID":"c","ResponseCode":"1"}`, unknown},
		{endpointPayout, 200, queued, accepted},
		{endpointPayout, 200, `{"ConversationID":"AG_1","OriginatorConversationID":"another","ResponseCode":"0"}`, unknown},
		{endpointPayout, 200, `{"OriginatorConversationID":"","ResponseCode":"0"}`, unknown},
		{endpointReversal, 200, queued, accepted},
		// Portal, "Bad Request - Invalid <Field>" and "Invalid Request Payload".
		{endpointPrompt, 400, errorBody("400.002.02", "Bad Request - Invalid BusinessShortCode"), ours},
		{endpointPrompt, 400, errorBody("400.002.02", "Bad Request - Invalid CallBackURL"), ours},
		{endpointPrompt, 400, errorBody("400.002.02", "Bad Request - Invalid PhoneNumber"), refused},
		{endpointPrompt, 400, errorBody("400.002.02", "Bad Request - Invalid PartyA"), refused},
		{endpointPayout, 400, errorBody("400.002.02", "Bad Request - Invalid PartyA"), ours},
		{endpointPayout, 400, errorBody("400.002.02", "Bad Request - Invalid PartyB"), refused},
		{endpointPayout, 400, errorBody("400.002.02", "Bad Request - Invalid InitiatorName"), ours},
		{endpointPrompt, 400, errorBody("400.002.05", "Invalid Request Payload"), ours},
		{endpointPrompt, 400, errorBody("400.003.02", "Bad Request"), ours},
		// Portal: token errors, also with status 404. A second token is refused too.
		{endpointPrompt, 400, errorBody("400.003.01", "Invalid Access Token"), both},
		{endpointPrompt, 401, errorBody("401.002.01", "Error Occurred - Invalid Access Token - abc"), both},
		{endpointPayout, 401, errorBody("401.003.01", "Error Occurred: Invalid Access Token"), both},
		{endpointPrompt, 404, errorBody("404.001.03", "Invalid Access Token"), both},
		{endpointPayout, 404, errorBody("404.001.04", "Invalid Authentication Header"), both},
		// Production: the product is not enabled.
		{endpointPrompt, 401, errorBody("401", "Invalid API call as no apiproduct match found"), both},
		{endpointPrompt, 401, "", both},
		// Production, observed live: not entitled, or our address is not listed.
		{endpointPayout, 403, errorBody("403.002.1001", "You are not authorized to initiate this transaction"), ours},
		// Portal: wrong address, wrong method.
		{endpointPrompt, 404, errorBody("404.001.01", "Resource not found"), ours},
		{endpointPrompt, 404, errorBody("404.002.01", "Resource not found"), ours},
		{endpointPayout, 404, errorBody("404.003.01", "Resource not found"), ours},
		{endpointPrompt, 405, errorBody("405.001", "GET Method Not Allowed"), ours},
		// Portal and sandbox observations: five meanings of one code.
		{endpointPrompt, 500, errorBody("500.001.1001", "Merchant does not exist"), ours},
		{endpointPrompt, 500, errorBody("500.001.1001", "[MerchantValidate] - Wrong credentials"), ours},
		{endpointPrompt, 500, errorBody("500.001.1001", lock), later},
		{endpointPrompt, 200, errorBody("500.001.1001", lock), later},
		{endpointPrompt, 500, errorBody("500.001.1001", ""), unknown},
		{endpointPrompt, 500, errorBody("500.001.1001", "The transaction is being processed"), unknown},
		{endpointPayout, 500, errorBody("500.001.1001", lock), unknown},
		// Portal, B2C; and gathuku/laravel_mpesa#21.
		{endpointPayout, 500, errorBody("500.002.1001", "Duplicate OriginatorConversationID."), accepted},
		{endpointPayout, 500, errorBody("500.002.1001", "System internal error."), unknown},
		{endpointPrompt, 500, errorBody("500.002.1001", "Duplicate OriginatorConversationID."), unknown},
		// Portal: internal error. The message that means success for a registration means nothing for money.
		{endpointPrompt, 500, errorBody("500.003.1001", "Internal Server Error"), unknown},
		{endpointPayout, 500, errorBody("500.003.1001", "Urls are already registered"), unknown},
		// Portal: throttling and maintenance; unknown for payouts.
		{endpointPrompt, 500, errorBody("500.003.02", "Spike Arrest Violation"), later},
		{endpointPrompt, 500, errorBody("500.003.02", "System is busy. Please try again in few minutes."), later},
		{endpointPayout, 500, errorBody("500.003.02", "Spike Arrest Violation"), unknown},
		{endpointReversal, 500, errorBody("500.003.02", "Spike Arrest Violation"), unknown},
		{endpointPrompt, 500, errorBody("500.003.03", "Quota Violation"), both},
		{endpointPayout, 500, errorBody("500.003.03", "Quota Violation"), unknown},
		{endpointPrompt, 503, errorBody("00.002.1001", "Service is currently under maintenance"), later},
		{endpointPayout, 503, errorBody("00.002.1001", "Service is currently under maintenance"), unknown},
		// Anything else is unknown.
		{endpointPrompt, 500, errorBody("777.1", "Something new"), unknown},
		{endpointPrompt, 502, "<html><body>502 Bad Gateway</body></html>", unknown},
		{endpointPrompt, 404, "<html></html>", unknown},
		{endpointPayout, 502, "<html></html>", unknown},
		{endpointPrompt, 200, "", unknown},
		{endpointPrompt, 200, "{", unknown},
		{endpointPrompt, 200, "null", unknown},
		{endpointPrompt, 200, "[]", unknown},
		{endpointPrompt, 200, `{"errorCode":{"a":1}}`, unknown},
		{endpointPrompt, 200, checkout + "trailing", unknown},
		{endpointPrompt, 302, "", unknown},
	} {
		t.Run(fmt.Sprintf("%s/%d/%.60s", row.at, row.status, row.body), func(t *testing.T) {
			g, c := newGateway(t)
			g.says(row.status, row.body)
			s := c.ask(t.Context(), row.at)
			if got := (want{s.State, s.Transient, s.Config}); got != row.want {
				t.Errorf("got %+v, want %+v; %+v", got, row.want, s)
			}
			if s.State == exchange.Unknown && s.Cause == nil {
				t.Error("an unknown outcome has no cause")
			}
			wantAsked := 1
			if strings.Contains(row.body, "Token") || strings.Contains(row.body, "Authentication") || row.status == 401 {
				wantAsked = 2
			}
			if len(g.asked()) != wantAsked || g.tokens() != wantAsked {
				t.Errorf("asked %d times with %d tokens, want %d", len(g.asked()), g.tokens(), wantAsked)
			}
		})
	}
}

// TestQueryOutcomes: a query's result is a failure only if the operator says so in a result code.
func TestQueryOutcomes(t *testing.T) {
	answer := func(code, id string) string {
		return fmt.Sprintf(`{"ResponseCode":"0","MerchantRequestID":"m","CheckoutRequestID":%q,"ResultCode":%s,"ResultDesc":"words"}`, id, code)
	}
	for _, row := range []struct {
		status int
		body   string
		want   exchange.ObservationState
		soft   bool
	}{
		{200, answer(`"0"`, "ws_CO_1"), exchange.SeenSucceeded, false},  // portal: a string here
		{200, answer(`0`, "ws_CO_1"), exchange.SeenSucceeded, false},    // a number in callbacks
		{200, answer(`"1032"`, "ws_CO_1"), exchange.SeenFailed, true},   // sandbox observation
		{200, answer(`"2001"`, "ws_CO_1"), exchange.SeenFailed, false},  // portal
		{200, answer(`"4999"`, "ws_CO_1"), exchange.SeenPending, false}, // sandbox observation
		{200, answer(`"31337"`, "ws_CO_1"), exchange.SeenUnknown, false},
		{200, answer(`"0"`, "ws_CO_2"), exchange.SeenNoAnswer, false}, // about another prompt
		// Sandbox observations: no information, with either status, with and without a message.
		{500, errorBody("500.001.1001", "The transaction is being processed"), exchange.SeenNoAnswer, false},
		{200, errorBody("500.001.1001", "The transaction is being processed"), exchange.SeenNoAnswer, false},
		{500, errorBody("500.001.1001", "The transaction does not Exist"), exchange.SeenNoAnswer, false},
		{200, errorBody("500.001.1001", ""), exchange.SeenNoAnswer, false},
		{500, errorBody("500.003.02", "Spike Arrest Violation"), exchange.SeenNoAnswer, false},
		{400, errorBody("400.002.02", "Bad Request - Invalid CheckoutRequestID"), exchange.SeenNoAnswer, false},
		{200, `{"errorCode":"500.001.1001","CheckoutRequestID":"ws_CO_1","ResultCode":"0"}`, exchange.SeenNoAnswer, false},
		{502, "<html></html>", exchange.SeenNoAnswer, false},
		{200, "", exchange.SeenNoAnswer, false},
		{200, `{"ResponseCode":"0"}`, exchange.SeenNoAnswer, false},
	} {
		t.Run(fmt.Sprintf("%d/%.60s", row.status, row.body), func(t *testing.T) {
			g, c := newGateway(t)
			g.says(row.status, row.body)
			o := c.Resolve(t.Context(), testAttempt(exchange.Collection))
			if o.State != row.want || o.Soft != row.soft || o.Source != exchange.SourceQuery {
				t.Errorf("got %+v", o)
			}
		})
	}
	_, c := newGateway(t)
	unasked := testAttempt(exchange.Collection)
	unasked.CheckoutRequestID = ""
	if o := c.Resolve(t.Context(), unasked); o.State != exchange.SeenNoAnswer || o.Code != codeInvalid {
		t.Errorf("without an id to ask by: got %+v", o)
	}
}

// TestResultCodes repeats the catalogue of result codes, so that a row changed by mistake is noticed. The tables in
// result.go name their sources.
func TestResultCodes(t *testing.T) {
	for _, c := range []struct {
		name  string
		table map[string]result
		want  string // code:letter, where S is success, F failure, P pending, U unknown; s soft, c config, t transient
	}{
		{"prompt", promptResults, "0:S 1:F 2:F 3:F 4:F 8:Fc 17:Ft 26:Ft 1001:Ft 1019:Fst 1025:F 9999:F 1032:Fst 1037:Fst 2001:F 2028:Fc SFC_IC0003:Fc 8006:F 4999:P 77:U :U"},
		{"payout", payoutResults, "0:S 1:Fct 2:F 3:F 4:Ft 8:Ft 11:Fc 2006:Fc 21:Fc 17:Fst 26:Fst 18:Fc 20:Fc 22:Fc 2001:Fc 8006:Fc 2028:Fc 2040:F 15:U TP40153:Fc SFC_IC0003:F 77:U"},
		{"reversal", reversalResults, "0:S R000001:S R000002:F 1:Fct 11:Fc 21:Fc 2001:Fc 2006:Fc 2028:Fc 8006:Fc 77:U"},
		{"status", transactionStatuses, "completed:S cancelled:F declined:F expired:F failed:F reversed:F rejected:F initiated:P authorized:P pending:P other:U"},
	} {
		t.Run(c.name, func(t *testing.T) {
			listed := 0
			for row := range strings.SplitSeq(c.want, " ") {
				code, want, _ := strings.Cut(row, ":")
				if _, ok := c.table[code]; ok {
					listed++
				}
				if got := letters(resultOf(c.table, code)); got != want {
					t.Errorf("code %q: got %s, want %s", code, got, want)
				}
			}
			if listed != len(c.table) {
				t.Errorf("%d of %d rows are tested", listed, len(c.table))
			}
		})
	}
}

func letters(o outcome) string {
	s := map[exchange.ObservationState]string{
		exchange.SeenSucceeded: "S", exchange.SeenFailed: "F", exchange.SeenPending: "P", exchange.SeenUnknown: "U",
	}[o.state]
	for _, flag := range []struct {
		on     bool
		letter string
	}{{o.soft, "s"}, {o.config, "c"}, {o.transient, "t"}} {
		if flag.on {
			s += flag.letter
		}
	}
	return s
}
