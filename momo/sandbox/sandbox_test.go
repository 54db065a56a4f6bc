package sandbox

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

const phone = "254712345678"

// inbox receives callbacks.
type inbox struct {
	*httptest.Server
	mu   sync.Mutex
	got  []string // paths
	last http.Header
	take func(w http.ResponseWriter, r *http.Request)
}

func newInbox(t *testing.T) *inbox {
	t.Helper()
	in := &inbox{take: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"ResultCode":0}`) }}
	in.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in.mu.Lock()
		in.got, in.last = append(in.got, r.URL.Path), r.Header
		in.mu.Unlock()
		in.take(w, r)
	}))
	t.Cleanup(in.Close)
	return in
}

func (in *inbox) count(path string) (n int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, p := range in.got {
		if p == path {
			n++
		}
	}
	return n
}

func open(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (s *Server) rest(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	if err := s.Settle(ctx); err != nil {
		t.Fatal(err)
	}
}

// ask sends a request to the gateway with a new token.
func ask(t *testing.T, s *Server, path string, fields map[string]any) (int, map[string]any) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/oauth/v1/generate?grant_type=client_credentials", nil)
	req.SetBasicAuth(s.cfg.ConsumerKey, s.cfg.ConsumerSecret)
	_, token := send(t, req)
	body, _ := json.Marshal(fields)
	req, _ = http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+path, bytes.NewReader(body))
	req.Header.Set("Authorization", fmt.Sprint("Bearer ", token["access_token"]))
	return send(t, req)
}

func send(t *testing.T, req *http.Request) (int, map[string]any) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(resp.Body)
	var answer map[string]any
	_ = json.Unmarshal(body, &answer)
	return resp.StatusCode, answer
}

func promptFor(s *Server, in *inbox, phone string, amount int) map[string]any {
	const stamp = "20260101120000"
	return map[string]any{
		"BusinessShortCode": s.cfg.Shortcode, "Timestamp": stamp, "TransactionType": "CustomerPayBillOnline", "Amount": amount,
		"Password": base64Of(s.cfg.Shortcode + s.cfg.Passkey + stamp), "PartyA": phone, "PhoneNumber": json.Number(phone),
		"PartyB": s.cfg.Shortcode, "CallBackURL": in.URL + "/prompt", "AccountReference": "KVK1", "TransactionDesc": "x",
	}
}

func payoutFor(s *Server, in *inbox, id, phone string, amount int) map[string]any {
	return map[string]any{
		"OriginatorConversationID": id, "InitiatorName": s.cfg.InitiatorName, "SecurityCredential": s.cfg.SecurityCredential,
		"CommandID": "BusinessPayment", "Amount": amount, "PartyA": s.cfg.PayoutShortcode, "PartyB": phone, "Remarks": "remark",
		"QueueTimeOutURL": in.URL + "/timeout", "ResultURL": in.URL + "/payout",
	}
}

const (
	promptPath = "/mpesa/stkpush/v1/processrequest"
	payoutPath = "/mpesa/b2c/v3/paymentrequest"
)

func asJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

func base64Of(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// TestNaturalLimits: missing money, and more than is allowed, can't be moved.
func TestNaturalLimits(t *testing.T) {
	in := newInbox(t)
	s := open(t, Config{WalletOpening: 400_000, UtilityOpening: 300_000, RuleLimit: time.Minute, Tariff: []Band{}})
	result := func(fields map[string]any, path string) string {
		t.Helper()
		if status, answer := ask(t, s, path, fields); status != 200 {
			t.Fatalf("%d %v", status, answer)
		}
		s.rest(t)
		b := s.Books()
		if path == promptPath {
			return b.Prompts[len(b.Prompts)-1].Results[0].Code
		}
		return b.Payouts[len(b.Payouts)-1].Results[0].Code
	}
	for i, row := range []struct {
		path, phone string
		amount      int
		want        string
	}{
		{promptPath, phone, 250_001, "3"},
		{promptPath, phone, 250_000, "0"},
		{promptPath, phone, 250_000, "1"}, // 150,000 are left
		{promptPath, phone, 100_000, "0"},
		{promptPath, phone, 100_000, "1"},
		{promptPath, "254712345679", 5, "0"},
		{promptPath, "254712345679", 5, "17"}, // the same amount within the rule's time
		{payoutPath, "254712345680", 9, "2"},
		{payoutPath, "254712345680", 250_001, "3"},
		{payoutPath, "254712345680", 100_001, "8"}, // the wallet may hold 500,000
		{payoutPath, "254712345680", 100_000, "0"},
		{payoutPath, phone, 200_000, "4"}, // 350,000 were moved today
		{payoutPath, phone, 150_000, "0"},
		{payoutPath, "254712345681", 100_000, "1"}, // 50,000 are left in our account
	} {
		fields := promptFor(s, in, row.phone, row.amount)
		if row.path == payoutPath {
			fields = payoutFor(s, in, fmt.Sprint(i), row.phone, row.amount)
		}
		if got := result(fields, row.path); got != row.want {
			t.Errorf("%d: %s of %d with %s: got %s, want %s", i, row.path, row.amount, row.phone, got, row.want)
		}
	}
	checkBooks(t, s)
}

// checkBooks recomputes the balances from the effects.
func checkBooks(t *testing.T, s *Server) {
	t.Helper()
	b := s.Books()
	working, utility, wallets, receipts := s.cfg.WorkingOpening, s.cfg.UtilityOpening, map[string]int64{}, map[string]bool{}
	for i, e := range b.Effects {
		switch e.Direction {
		case Collection:
			working += e.Amount
			wallets[e.Phone] -= e.Amount
		case Payout:
			utility -= e.Amount + e.Charge
			wallets[e.Phone] += e.Amount
		case Reversal:
			working -= e.Amount
			wallets[e.Phone] += e.Amount
		case Float:
			working -= e.Amount
			utility += e.Amount
		}
		if receipts[e.Receipt] || len(e.Receipt) != 10 || e.Seq != i+1 {
			t.Errorf("effect %+v", e)
		}
		receipts[e.Receipt] = true
	}
	if working != b.Working || utility != b.Utility {
		t.Errorf("working %d, utility %d; the books say %d and %d", working, utility, b.Working, b.Utility)
	}
	for phone, change := range wallets {
		if got := b.Wallets[phone]; got != s.cfg.WalletOpening+change || got < 0 {
			t.Errorf("wallet %s: %d, want %d", phone, got, s.cfg.WalletOpening+change)
		}
	}
}

// TestOpenPromptLocks: a phone with an open prompt is refused another one.
func TestOpenPromptLocks(t *testing.T) {
	in := newInbox(t)
	s := open(t, Config{AnswerDelay: time.Hour})
	if status, _ := ask(t, s, promptPath, promptFor(s, in, phone, 5)); status != 200 {
		t.Fatal(status)
	}
	status, answer := ask(t, s, promptPath, promptFor(s, in, phone, 5))
	if status != 500 || answer["errorCode"] != "500.001.1001" || answer["errorMessage"] != locked {
		t.Errorf("got %d %v", status, answer)
	}
	if status, _ := ask(t, s, promptPath, promptFor(s, in, "254712345679", 5)); status != 200 {
		t.Errorf("another phone: got %d", status)
	}
}

// TestFieldRules: a request that breaks a rule is refused with the field's name.
func TestFieldRules(t *testing.T) {
	in := newInbox(t)
	s := open(t, Config{})
	for _, row := range []struct {
		path, field string
		value       any
		message     string
	}{
		{promptPath, "BusinessShortCode", "", "BusinessShortCode"},
		{promptPath, "BusinessShortCode", "999999", "Merchant does not exist"},
		{promptPath, "Password", "eA==", "Wrong credentials"},
		{promptPath, "Timestamp", "today", "Timestamp"},
		{promptPath, "TransactionType", "Other", "TransactionType"},
		{promptPath, "Amount", "1.5", "Amount"},
		{promptPath, "Amount", 0, "Amount"},
		{promptPath, "PhoneNumber", "0712345678", "PhoneNumber"},
		{promptPath, "PartyA", "25471234567x", "PartyA"},
		{promptPath, "CallBackURL", "http://example.com/x", "CallBackURL"},
		{promptPath, "CallBackURL", in.URL + "/mpesa", "CallBackURL"},
		{promptPath, "CallBackURL", "https://Example.com/x", "CallBackURL"},
		{promptPath, "AccountReference", "thirteen char", "AccountReference"},
		{promptPath, "TransactionDesc", "fourteen chars", "TransactionDesc"},
		{payoutPath, "OriginatorConversationID", "", "OriginatorConversationID"},
		{payoutPath, "CommandID", "Other", "CommandID"},
		{payoutPath, "PartyA", "1", "PartyA"},
		{payoutPath, "PartyB", "254812345678", "PartyB"},
		{payoutPath, "Remarks", "x", "Remarks"},
		{payoutPath, "ResultURL", "x", "ResultURL"},
		{payoutPath, "QueueTimeOutURL", "", "QueueTimeOutURL"},
	} {
		fields := promptFor(s, in, phone, 5)
		if row.path == payoutPath {
			fields = payoutFor(s, in, "id", phone, 50)
		}
		fields[row.field] = row.value
		status, answer := ask(t, s, row.path, fields)
		if status < 400 || !strings.Contains(fmt.Sprint(answer["errorMessage"]), row.message) {
			t.Errorf("%s %v: got %d %v", row.field, row.value, status, answer)
		}
	}
	if b := s.Books(); len(b.Prompts)+len(b.Payouts)+len(b.Effects) != 0 {
		t.Errorf("got %+v", b)
	}
}

func TestFront(t *testing.T) {
	s := open(t, Config{})
	for _, row := range []struct {
		method, path, authorization string
		status                      int
		code                        string
	}{
		{"POST", promptPath, "", 404, "404.001.04"},
		{"POST", promptPath, "Bearer wrong", 401, "401.002.01"},
		{"GET", promptPath, "Bearer wrong", 405, "405.001"},
		{"POST", "/mpesa/other", "", 404, "404.001.01"},
		{"POST", "/oauth/v1/generate", "", 405, "405.001"},
		{"GET", "/oauth/v1/generate?grant_type=client_credentials", "Bearer x", 400, "400.008.01"},
		{"GET", "/oauth/v1/generate?grant_type=other", "Basic YTpi", 400, "400.008.02"},
		{"GET", "/oauth/v1/generate?grant_type=client_credentials", "Basic YTpi", 400, ""},
	} {
		req, _ := http.NewRequestWithContext(t.Context(), row.method, s.URL()+row.path, nil)
		req.Header.Set("Authorization", row.authorization)
		status, answer := send(t, req)
		if code, _ := answer["errorCode"].(string); status != row.status || code != row.code {
			t.Errorf("%s %s: got %d %v", row.method, row.path, status, answer)
		}
	}
}

// TestTokens: issuing a token invalidates the previous one, and a token expires.
func TestTokens(t *testing.T) {
	now := time.Now()
	var mu sync.Mutex
	s := open(t, Config{Clock: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }})
	token := func() string {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/oauth/v1/generate?grant_type=client_credentials", nil)
		req.SetBasicAuth(DefaultConsumerKey, DefaultConsumerSecret)
		_, answer := send(t, req)
		return fmt.Sprint(answer["access_token"])
	}
	good := func(token string) bool {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+promptPath, strings.NewReader("{}"))
		req.Header.Set("Authorization", "Bearer "+token)
		status, _ := send(t, req)
		return status != 401
	}
	first, second := token(), token()
	if good(first) || !good(second) {
		t.Error("the first of two tokens is valid, or the second is not")
	}
	mu.Lock()
	now = now.Add(tokenLife)
	mu.Unlock()
	if good(second) {
		t.Error("an expired token is accepted")
	}
}

// TestValidation: the validation address decides; without its response, the registration does.
func TestValidation(t *testing.T) {
	const accept, reject = `{"ResultCode":"0","ResultDesc":"Accepted"}`, `{"ResultCode":"C2B00012","ResultDesc":"Rejected"}`
	for _, row := range []struct {
		name, responseType string
		status             int
		answer             string
		silent, paid       bool
	}{
		{"accepted", "Cancelled", 200, accept, false, true},
		{"rejected", "Completed", 200, reject, false, false},
		{"fails, completed", "Completed", 500, "", false, true},
		{"fails, cancelled", "Cancelled", 500, "", false, false},
		{"rubbish, cancelled", "Cancelled", 200, "ok", false, false},
		{"silent, completed", "Completed", 200, reject, true, true},
		{"silent, cancelled", "Cancelled", 200, accept, true, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			in := newInbox(t)
			in.take = func(w http.ResponseWriter, r *http.Request) {
				if row.silent && r.URL.Path == "/validation" {
					_, _ = io.Copy(io.Discard, r.Body)
					<-r.Context().Done() // until the operator gives up
					return
				}
				w.WriteHeader(row.status)
				_, _ = io.WriteString(w, row.answer)
			}
			s := open(t, Config{ValidationTimeout: 50 * time.Millisecond})
			if !row.silent {
				s.cfg.ValidationTimeout = time.Minute
			}
			status, answer := ask(t, s, "/mpesa/c2b/v2/registerurl", map[string]any{
				"ShortCode": s.cfg.Shortcode, "ResponseType": row.responseType,
				"ConfirmationURL": in.URL + "/confirmation", "ValidationURL": in.URL + "/validation",
			})
			if status != 200 || answer["ResponseCode"] != "0" {
				t.Fatalf("%d %v", status, answer)
			}
			receipt, err := s.Pay(phone, "KVK1", 5)
			if (err == nil) != row.paid || (receipt != "") != row.paid || len(s.Books().Effects) > 0 != row.paid {
				t.Errorf("got %q, %v", receipt, err)
			}
			if got := in.count("/confirmation") == 1; got != row.paid {
				t.Errorf("confirmed: %v", got)
			}
		})
	}
}

// TestPullByGet: the portal says GET, integrators send POST, and both work.
func TestPullByGet(t *testing.T) {
	s := open(t, Config{})
	if _, err := s.Pay(phone, "INV", 7); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		ask(t, s, "/pulltransactions/v1/query", nil) // for a token
		now := time.Now().In(eat)
		body := fmt.Sprintf(`{"ShortCode":%q,"StartDate":%q,"EndDate":%q,"OffSetValue":"0"}`, s.cfg.Shortcode,
			now.Add(-time.Hour).Format("2006-01-02 15:04:05"), now.Add(time.Hour).Format("2006-01-02 15:04:05"))
		req, _ := http.NewRequestWithContext(t.Context(), method, s.URL()+"/pulltransactions/v1/query", strings.NewReader(body))
		s.mu.Lock()
		req.Header.Set("Authorization", "Bearer "+s.token)
		s.mu.Unlock()
		status, answer := send(t, req)
		if rows := fmt.Sprint(answer["Response"]); status != 200 || answer["ResponseCode"] != "1000" ||
			!strings.HasPrefix(rows, "[[map[") || strings.Count(rows, "transactionId") != 1 {
			t.Errorf("%s: got %d %v", method, status, answer)
		}
	}
}

// TestSimulate: the operator's own method of simulating a payer's payment.
func TestSimulate(t *testing.T) {
	s := open(t, Config{})
	status, _ := ask(t, s, "/mpesa/c2b/v2/simulate", map[string]any{"ShortCode": s.cfg.Shortcode, "CommandID": "CustomerPayBillOnline", "Amount": 7, "Msisdn": json.Number(phone), "BillRefNumber": "INV"})
	s.rest(t)
	if e := s.Books().Effects; status != 200 || len(e) != 1 || e[0].Reference != "INV" || e[0].Amount != 7 {
		t.Errorf("got %d %+v", status, e)
	}
	if err := s.Set(Fault{Behaviour: "c2b_rejected"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pay(phone, "INV", 7); !errors.Is(err, ErrRejected) {
		t.Errorf("got %v", err)
	}
}

// TestCallbacksStayHome: callbacks to other machines are only sent if configured.
func TestCallbacksStayHome(t *testing.T) {
	in := newInbox(t)
	s := open(t, Config{})
	fields := promptFor(s, in, phone, 5)
	fields["CallBackURL"] = "https://192.0.2.1/x"
	ask(t, s, promptPath, fields)
	s.rest(t)
	d := s.Books().Deliveries[0]
	if d.Status != 0 || !strings.Contains(d.Error, "loopback") {
		t.Errorf("got %+v", d)
	}
}
