package daraja

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// fixtures finds the operator's published payloads, which we may not copy.
func fixtures(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("KIVUKO_FIXTURES")
	if dir == "" {
		t.Skip("the operator's published payloads are not here: KIVUKO_FIXTURES names the folder above them, see the Makefile")
	}
	return filepath.Join(dir, "momo")
}

func at(s string) time.Time {
	moment, err := time.Parse(time.RFC3339, s)
	if err != nil {
		panic(err)
	}
	return moment
}

func kes(s string) money.Amount { return money.Must(money.KES, s) }

// checks has the expected result for each file.
var checks = map[string]func(*testing.T, []byte){
	"stk_callback_success.json": callback(exchange.CallbackResult, exchange.Observation{
		State: exchange.SeenSucceeded, Code: "0", Text: processed, Receipt: "NLJ7RT61SV", Amount: kes("1"), Phone: "254708374149",
		Refs: exchange.Refs{MerchantRequestID: "29115-34620561-1", CheckoutRequestID: "ws_CO_191220191020363925"},
		At:   at("2019-12-19T07:21:15Z"), Source: exchange.SourceCallback,
	}),
	"stk_callback_success_balance_without_value.json": callback(exchange.CallbackResult, exchange.Observation{
		State: exchange.SeenSucceeded, Code: "0", Text: processed, Receipt: "LHG31AA5TX", Amount: kes("1"), Phone: "254712345678",
		Refs: exchange.Refs{MerchantRequestID: "29115-34620561-1", CheckoutRequestID: "ws_CO_191220191020363925"},
		At:   at("2019-12-19T07:21:15Z"), Source: exchange.SourceCallback,
	}),
	"stk_callback_cancelled_1032.json": callback(exchange.CallbackResult, exchange.Observation{
		State: exchange.SeenFailed, Soft: true, Transient: true, Code: "1032", Class: exchange.ClassDeclined, Text: "Request cancelled by user",
		Refs:   exchange.Refs{MerchantRequestID: "f1e2-4b95-a71d-b30d3cdbb7a7942864", CheckoutRequestID: "ws_CO_21072024125243250722943992"},
		Source: exchange.SourceCallback,
	}),
	"stk_callback_1019_sandbox.json": callback(exchange.CallbackResult, exchange.Observation{
		State: exchange.SeenFailed, Soft: true, Transient: true, Code: "1019", Class: exchange.ClassUnanswered, Text: "Transaction has expired",
		Refs:   exchange.Refs{MerchantRequestID: "53785-65856915-1", CheckoutRequestID: "ws_CO_23052022122137653708374149"},
		Source: exchange.SourceCallback,
	}),
	"stk_callback_1037_observed.json": callback(exchange.CallbackResult, exchange.Observation{
		State: exchange.SeenFailed, Soft: true, Transient: true, Code: "1037", Class: exchange.ClassUnanswered, Text: "No response from user.",
		Refs: exchange.Refs{MerchantRequestID: "…", CheckoutRequestID: "…"}, Source: exchange.SourceCallback,
	}),
	"b2c_result_success.json": callback(exchange.CallbackResult, exchange.Observation{
		State: exchange.SeenSucceeded, Code: "0", Text: processed, Receipt: "SG632NMUAB", Amount: kes("10"), Phone: "254705912645",
		Refs: exchange.Refs{ConversationID: "AG_20240706_2010364430d9bbdaf872", OriginatorConversationID: "53e3-4aa8-9fe0-8fb5e4092cdd3533373"},
		At:   at("2024-07-06T19:48:52Z"), Source: exchange.SourceCallback,
	}),
	"b2c_result_failed_2001.json": callback(exchange.CallbackResult, exchange.Observation{
		State: exchange.SeenFailed, Config: true, Code: "2001", Class: exchange.ClassCredential, Text: "The initiator information is invalid.",
		Refs:   exchange.Refs{ConversationID: "AG_20240707_201062f6f6f5804f7a33", OriginatorConversationID: "53e3-4aa8-9fe0-8fb5e4092cdd3544366"},
		Source: exchange.SourceCallback,
	}),
	"b2b_topup_result_failed_object_params.json": callback(exchange.CallbackResult, exchange.Observation{
		State: exchange.SeenFailed, Config: true, Code: "2001", Class: exchange.ClassCredential, Text: "The initiator information is invalid.",
		Refs:   exchange.Refs{ConversationID: "AG_20200120_0000657265d5fa9ae5c0", OriginatorConversationID: "12337-23509183-5"},
		Source: exchange.SourceCallback,
	}),
	"reversal_result_success.json": callback(exchange.CallbackReversal, exchange.Observation{
		State: exchange.SeenSucceeded, Code: "0", Text: processed, Receipt: "SKE52PAWR9", Amount: kes("1"), Phone: "254705912645",
		Refs: exchange.Refs{ConversationID: "AG_20211114_201018edbbf9f1582eaa", OriginatorConversationID: "dad6-4c34-8787-c8cb963a496d1268232"},
		At:   at("2021-11-14T10:27:11Z"), Reference: "SKC82PACB8", Source: exchange.SourceCallback,
	}),
	"reversal_result_failed_R000002.json": callback(exchange.CallbackReversal, exchange.Observation{
		State: exchange.SeenFailed, Code: "R000002", Class: exchange.ClassDenied, Text: "The OriginalTransactionID is invalid.",
		Refs:   exchange.Refs{ConversationID: "AG_20211114_2010573069aefb6b625a", OriginatorConversationID: "3124-481d-b706-10bdd6fbc8e21792398"},
		Source: exchange.SourceCallback,
	}),
	"transaction_status_result_completed.json": callback(exchange.CallbackStatus, exchange.Observation{
		State: exchange.SeenSucceeded, Code: "0", Text: "Completed", Receipt: "MBN31H462N", Amount: kes("300"), Phone: "254708374149",
		Refs: exchange.Refs{ConversationID: "AG_20180223_000041b09c22e613d6c9", OriginatorConversationID: "3211-416020-3"},
		At:   at("2018-02-23T02:41:12Z"), Ticket: "AG_20180223_0000493344ae97d86f75", Source: exchange.SourceQuery, Charge: kes("22.40"),
	}),
	"c2b_confirmation_masked_v1.json": callback(exchange.CallbackConfirmation, exchange.Observation{
		State: exchange.SeenSucceeded, Receipt: "RKTQDM7W6S", Amount: kes("10"), Reference: "invoice008",
		At: at("2019-11-22T03:38:45Z"), Source: exchange.SourceConfirmation,
	}),
	"c2b_confirmation_masked_v2.json": callback(exchange.CallbackConfirmation, exchange.Observation{
		State: exchange.SeenSucceeded, Receipt: "RKL51ZDR4F", Amount: kes("5"), Reference: "Sample Transaction",
		At: at("2023-11-21T09:13:25Z"), Source: exchange.SourceConfirmation,
	}),
	"account_balance_result.json": checkBalance,

	"oauth_token_response_number.json": checkToken,
	"oauth_token_response_string.json": checkToken,

	"stk_push_response.json":                       submission(endpointPrompt, 200, exchange.Submission{State: exchange.Accepted, Refs: exchange.Refs{MerchantRequestID: "2654-4b64-97ff-b827b542881d3130", CheckoutRequestID: "ws_CO_1007202409152617172396192"}}),
	"b2c_v3_ack.json":                              submission(endpointPayout, 200, exchange.Submission{State: exchange.Unknown, Refs: exchange.Refs{ConversationID: "AG_20240706_20106e9209f64bebd05b", OriginatorConversationID: "600997_Test_32et3241ed8yu"}}),
	"reversal_ack.json":                            submission(endpointReversal, 200, exchange.Submission{State: exchange.Accepted, Refs: exchange.Refs{ConversationID: "AG_20210706_20106e9209f64bebd05b", OriginatorConversationID: "f1e2-4b95-a71d-b30d3cdbb7a7735297"}}),
	"account_balance_ack.json":                     checkBalanceAck,
	"transaction_status_ack.json":                  checkStatusAck,
	"c2b_register_response.json":                   checkRegister,
	"pull_register_response.json":                  checkPullRegister,
	"stk_query_response_success.json":              query(200, exchange.SeenNoAnswer), // about a prompt that the test did not query
	"stk_query_still_processing_500_001_1001.json": query(500, exchange.SeenNoAnswer),

	"error_400_002_02_invalid_callbackurl.json":    submission(endpointPrompt, 400, exchange.Submission{State: exchange.Refused, Config: true, Code: "400.002.02", Class: exchange.ClassConfig, Text: "Bad Request - Invalid CallBackURL"}),
	"error_400_002_02_invalid_phonenumber.json":    submission(endpointPrompt, 400, exchange.Submission{State: exchange.Refused, Code: "400.002.02", Class: exchange.ClassConfig, Text: "Bad Request - Invalid PhoneNumber"}),
	"error_400_002_02_invalid_shortcode.json":      submission(endpointPrompt, 400, exchange.Submission{State: exchange.Refused, Config: true, Code: "400.002.02", Class: exchange.ClassConfig, Text: "Bad Request - Invalid BusinessShortCode"}),
	"error_401_002_01_invalid_token.json":          submission(endpointPayout, 401, exchange.Submission{State: exchange.Refused, Config: true, Transient: true, Code: "401.002.01", Class: exchange.ClassCredential, Text: "Error Occurred - Invalid Access Token"}),
	"error_500_002_1001_duplicate_originator.json": submission(endpointPayout, 500, exchange.Submission{State: exchange.Accepted, Code: "500.002.1001", Text: "Duplicate OriginatorConversationID."}),
	"error_500_002_1001_system_internal.json":      submission(endpointPayout, 500, exchange.Submission{State: exchange.Unknown, Code: "500.002.1001", Text: "System internal error."}),

	// Unsupported formats must be refused as callbacks and leave a submission unknown.
	"mtn_requesttopay_status_pending.json": foreign,

	"hakikisha_error_unknown_customer.json": checkUnknownPayee,
	"hakikisha_request.json":                request(payeeRequest{}),

	"stk_push_request.json":           request(promptRequest{}),
	"stk_query_request.json":          request(promptQuery{}),
	"b2c_v3_request.json":             request(payoutRequest{}),
	"reversal_request.json":           request(reversalRequest{}, "Occasion"),
	"c2b_register_request.json":       request(registerRequest{}),
	"transaction_status_request.json": checkStatusRequest,
	"account_balance_request.json":    checkBalanceRequest,
	"pull_query_request.json":         checkPullRequest,
	"pull_register_request.json":      checkPullRegisterRequest,
	"c2b_simulate_request.json":       foreign, // only for the operator's sandbox
	"c2b_validation_accept.json":      foreign, // we send it, we don't read it
	"c2b_validation_reject.json":      foreign,
}

const processed = "The service request is processed successfully."

// TestFixtures reads every published payload and fails on one without a check.
func TestFixtures(t *testing.T) {
	files, err := os.ReadDir(fixtures(t))
	if err != nil {
		t.Fatal(err)
	}
	dir, seen := fixtures(t), 0
	for _, f := range files {
		if filepath.Ext(f.Name()) != ".json" {
			continue
		}
		seen++
		t.Run(f.Name(), func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join(dir, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			check := checks[f.Name()]
			if check == nil {
				t.Fatal("this payload has no check")
			}
			check(t, body)
		})
	}
	if seen != len(checks) {
		t.Errorf("%d files, %d checks", seen, len(checks))
	}
}

func callback(kind exchange.CallbackKind, want exchange.Observation) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		got, err := notices.ParseCallback(kind, body)
		if err != nil || len(got) != 1 {
			t.Fatalf("got %+v, %v", got, err)
		}
		if !got[0].Amount.Equal(want.Amount) {
			t.Errorf("amount %s, want %s", got[0].Amount, want.Amount)
		}
		if !got[0].Charge.Equal(want.Charge) {
			t.Errorf("charge %s, want %s", got[0].Charge, want.Charge)
		}
		got[0].Amount, got[0].Charge = want.Amount, want.Charge
		if !reflect.DeepEqual(got[0], want) {
			t.Errorf("got  %+v\nwant %+v", got[0], want)
		}
	}
}

func submission(to endpoint, status int, want exchange.Submission) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		g, c := newGateway(t)
		g.says(status, string(body))
		got := c.ask(t.Context(), to)
		if (got.Cause != nil) != (want.State == exchange.Unknown) {
			t.Errorf("cause: %v", got.Cause)
		}
		got.Cause = nil
		if got != want {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
}

func query(status int, want exchange.ObservationState) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		g, c := newGateway(t)
		g.says(status, string(body))
		if got := c.Resolve(t.Context(), testAttempt(exchange.Collection)); got.State != want {
			t.Errorf("got %+v", got)
		}
		if status != http.StatusOK {
			return
		}
		asked := testAttempt(exchange.Collection)
		asked.CheckoutRequestID = "ws_CO_13012021093521236557"
		if got := c.Resolve(t.Context(), asked); got.State != exchange.SeenSucceeded {
			t.Errorf("got %+v", got)
		}
	}
}

// foreign is a payload that must count neither as a callback nor as a response.
func foreign(t *testing.T, body []byte) {
	if !json.Valid(body) {
		t.Fatal("is not JSON")
	}
	for _, kind := range []exchange.CallbackKind{
		exchange.CallbackResult, exchange.CallbackStatus, exchange.CallbackReversal,
		exchange.CallbackConfirmation, exchange.CallbackValidation,
	} {
		if got, err := notices.ParseCallback(kind, body); exchange.CodeOf(err) != exchange.CodeMalformed {
			t.Errorf("%s: got %+v, %v", kind, got, err)
		}
	}
	g, c := newGateway(t)
	g.says(http.StatusOK, string(body))
	if s := c.ask(t.Context(), endpointPrompt); s.State != exchange.Unknown {
		t.Errorf("got %+v", s)
	}
}

// request checks that we send exactly the fields of the published request.
func request(ours any, extra ...string) func(*testing.T, []byte) {
	return func(t *testing.T, body []byte) {
		var fields map[string]any
		encoded, err := json.Marshal(ours)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(encoded, &fields); err != nil {
			t.Fatal(err)
		}
		for _, name := range extra {
			delete(fields, name)
		}
		sameFields(t, fields, body)
	}
}

func sameFields(t *testing.T, ours map[string]any, published []byte) {
	t.Helper()
	var theirs map[string]any
	if err := json.Unmarshal(published, &theirs); err != nil {
		t.Fatal(err)
	}
	for name := range theirs {
		// The portal's sample of the status query has spaces in two names; its table does not.
		if _, ok := ours[strings.ReplaceAll(name, " ", "")]; !ok {
			t.Errorf("field %q is not sent", name)
		}
	}
	for name := range ours {
		_, plain := theirs[name]
		_, spaced := theirs[strings.Replace(name, "ID", " ID", 1)]
		if !plain && !spaced {
			t.Errorf("field %q is sent and not known", name)
		}
	}
}

// sent is the body of a call's only request.
func sent(t *testing.T, call func(*Client)) map[string]any {
	t.Helper()
	g, c := newGateway(t)
	g.says(http.StatusOK, "{}")
	call(c)
	var fields map[string]any
	if len(g.asked()) != 1 {
		t.Fatalf("sent %d requests, want 1", len(g.asked()))
	}
	if err := json.Unmarshal([]byte(g.asked()[0].body), &fields); err != nil {
		t.Fatal(err)
	}
	return fields
}

func checkStatusRequest(t *testing.T, body []byte) {
	fields := sent(t, func(c *Client) { c.QueryStatus(t.Context(), testAttempt(exchange.Payout)) })
	fields["TransactionID"] = "" // sent instead of our id when there is a receipt
	sameFields(t, fields, body)
}

func checkBalanceRequest(t *testing.T, body []byte) {
	sameFields(t, sent(t, func(c *Client) { _, _ = c.Balance(t.Context()) }), body)
}

func checkPullRequest(t *testing.T, body []byte) {
	now := time.Now()
	sameFields(t, sent(t, func(c *Client) { _, _, _, _ = c.Pull(t.Context(), now.Add(-time.Hour), now, 0) }), body)
}

func checkPullRegisterRequest(t *testing.T, body []byte) {
	sameFields(t, sent(t, func(c *Client) { _ = c.RegisterPull(t.Context(), "254722000000") }), body)
}

func checkBalance(t *testing.T, body []byte) {
	got, err := notices.ParseBalance(body)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Accounts) != 5 || got.Ticket != "AG_20200206_00005e091a8ec6b9eac5" || !got.At.Equal(at("2020-01-09T09:57:10Z")) {
		t.Fatalf("got %+v", got)
	}
	utility, charges := got.Accounts[2], got.Accounts[3]
	if utility.Name != exchange.FloatUtility || !utility.Available.Equal(kes("228037")) {
		t.Errorf("got %+v", utility)
	}
	if !charges.Current.Equal(kes("-1540")) {
		t.Errorf("got %+v", charges)
	}
	for _, kind := range []exchange.CallbackKind{exchange.CallbackBalance, "other"} {
		if _, err := notices.ParseCallback(kind, body); err == nil {
			t.Errorf("%s: a balance was read as an observation", kind)
		}
	}
}

func checkToken(t *testing.T, body []byte) {
	g, c := newGateway(t)
	inner := g.Config.Handler
	g.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == string(endpointToken) {
			_, _ = w.Write(body)
			return
		}
		inner.ServeHTTP(w, r)
	})
	token, life, err := c.fetchToken(t.Context())
	if err != nil || token != "c9SQxWWhmdVRlyh0zh8gZDTkubVF" || life != 3599*time.Second {
		t.Errorf("got %q, %v, %v", token, life, err)
	}
}

func checkBalanceAck(t *testing.T, body []byte) {
	g, c := newGateway(t)
	g.says(http.StatusOK, string(body))
	if ticket, err := c.Balance(t.Context()); err != nil || ticket != "AG_20200123_0000417fed8ed666e976" {
		t.Errorf("got %q, %v", ticket, err)
	}
}

func checkStatusAck(t *testing.T, body []byte) {
	g, c := newGateway(t)
	g.says(http.StatusOK, string(body))
	o := c.Resolve(t.Context(), testAttempt(exchange.Payout))
	if o.State != exchange.SeenPending || o.Ticket != "AG_20210709_1234409f86436c583e3f" {
		t.Errorf("got %+v", o)
	}
}

func checkRegister(t *testing.T, body []byte) {
	g, c := newGateway(t)
	g.says(http.StatusOK, string(body))
	if err := c.RegisterC2B(t.Context()); err != nil {
		t.Error(err)
	}
}

func checkPullRegister(t *testing.T, body []byte) {
	for _, variant := range []string{
		string(body),
		strings.ReplaceAll(strings.ReplaceAll(string(body), "ResponseStatus", "Response Status"), "1000", "1001"),
	} {
		g, c := newGateway(t)
		g.says(http.StatusOK, variant)
		if err := c.RegisterPull(t.Context(), "254722000000"); err != nil {
			t.Errorf("%v: %s", err, variant)
		}
	}
	g, c := newGateway(t)
	g.says(http.StatusOK, fmt.Sprintf(`{"ResponseStatus":%q}`, "1002"))
	if err := c.RegisterPull(t.Context(), "254722000000"); err == nil {
		t.Error("a response that is neither registered nor already registered was accepted")
	}
}

func checkUnknownPayee(t *testing.T, body []byte) {
	g, c := newGateway(t)
	g.says(http.StatusBadRequest, string(body))
	if got, err := c.CheckPayee(t.Context(), "254722000000"); err != nil || got.Known || got.Name != "" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// notices reads callbacks, as processes without a client do.
var notices Notices
