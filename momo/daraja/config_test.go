package daraja

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

func TestNewNamesEveryBrokenField(t *testing.T) {
	for field, change := range map[string]func(*Config){
		"BaseURL":            func(c *Config) { c.BaseURL = "http://api.example.com" },
		"ConsumerKey":        func(c *Config) { c.ConsumerKey = "" },
		"ConsumerSecret":     func(c *Config) { c.ConsumerSecret = "" },
		"Passkey":            func(c *Config) { c.Passkey = "" },
		"Shortcode":          func(c *Config) { c.Shortcode = "12x45" },
		"Till":               func(c *Config) { c.Till = "1" },
		"PayoutShortcode":    func(c *Config) { c.PayoutShortcode = "-60099" },
		"InitiatorName":      func(c *Config) { c.InitiatorName = "" },
		"SecurityCredential": func(c *Config) { c.SecurityCredential = "" },
		"CertificatePEM":     func(c *Config) { c.SecurityCredential, c.InitiatorPassword = "", "password" },
		"CallbackBase":       func(c *Config) { c.CallbackBase = "https://pay.example.com/mpesa" },
		"StandingToken":      func(c *Config) { c.StandingToken = strings.Repeat("A", 64) },
		"Description":        func(c *Config) { c.Description = "fourteen chars" },
		"StatusKey":          func(c *Config) { c.StatusKey = "Other" },
	} {
		t.Run(field, func(t *testing.T) {
			cfg := testConfig("https://api.example.com")
			change(&cfg)
			_, err := New(cfg)
			if exchange.CodeOf(err) != exchange.CodeInvalid || !strings.Contains(err.Error(), "; "+field+" ") {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := New(testConfig("https://api.example.com")); err != nil {
		t.Error(err)
	}
}

func TestCheckCallbackBase(t *testing.T) {
	for base, good := range map[string]bool{
		"https://pay.example.com/api/v1/callbacks/momo":       true,
		"https://pay.example.com":                             true,
		"http://127.0.0.1:8080/api/v1/callbacks/momo":         true,
		"http://localhost:8080":                               true,
		"http://[::1]:8080":                                   true,
		"http://pay.example.com":                              false,
		"ftp://127.0.0.1":                                     false,
		"pay.example.com":                                     false,
		"":                                                    false,
		"https://pay.example.com/":                            false,
		"https://Pay.example.com":                             false,
		"https://user:word@pay.example.com":                   false,
		"https://pay.example.com?a=b":                         false,
		"https://pay.example.com?":                            false,
		"https://pay.example.com#a":                           false,
		"https://pay.example.com/M-Pesa":                      false,
		"https://pay.example.com/MPESA":                       false,
		"https://safaricom.example.com":                       false,
		"https://pay.example.com/execute":                     false,
		"https://pay.example.com/a.exe":                       false,
		"https://cmd.example.com":                             false,
		"https://pay.example.com/sql":                         false,
		"https://pay.example.com/Query":                       false,
		"https://abc.ngrok.io":                                false,
		"https://mockbin.org/bin":                             false,
		"https://requestbin.net":                              false,
		"https://pay.example.com/" + strings.Repeat("a", 300): false,
	} {
		if err := CheckCallbackBase(base); (err == nil) != good {
			t.Errorf("%q: %v", base, err)
		}
	}
}

// TestInvalidAttempts: an attempt that breaks a rule of the operator is refused with the field's name and never sent.
func TestInvalidAttempts(t *testing.T) {
	g, c := newGateway(t)
	g.says(200, "{}")
	for _, row := range []struct {
		field     string
		direction exchange.PaymentDirection
		change    func(*exchange.PaymentAttempt)
	}{
		{"id", exchange.Collection, func(a *exchange.PaymentAttempt) { a.ID = uuid.Nil }},
		{"direction", exchange.Collection, func(a *exchange.PaymentAttempt) { a.Direction = exchange.Payout }},
		{"direction", exchange.Payout, func(a *exchange.PaymentAttempt) { a.Direction = exchange.Collection }},
		{"phone", exchange.Collection, func(a *exchange.PaymentAttempt) { a.Phone = "0712345678" }},
		{"phone", exchange.Payout, func(a *exchange.PaymentAttempt) { a.Phone = "" }},
		{"amount", exchange.Collection, func(a *exchange.PaymentAttempt) { a.Amount = kes("1.50") }},
		{"amount", exchange.Collection, func(a *exchange.PaymentAttempt) { a.Amount = kes("0") }},
		{"amount", exchange.Collection, func(a *exchange.PaymentAttempt) { a.Amount = kes("-5") }},
		{"amount", exchange.Collection, func(a *exchange.PaymentAttempt) { a.Amount = kes("250001") }},
		{"amount", exchange.Collection, func(a *exchange.PaymentAttempt) { a.Amount = money.Must(money.USDT, "5") }},
		{"amount", exchange.Collection, func(a *exchange.PaymentAttempt) { a.Amount = money.Amount{} }},
		{"amount", exchange.Payout, func(a *exchange.PaymentAttempt) { a.Amount = kes("9") }},
		{"amount", exchange.Payout, func(a *exchange.PaymentAttempt) { a.Amount = kes("250001") }},
		{"amount", exchange.Payout, func(a *exchange.PaymentAttempt) { a.Amount = kes("10.01") }},
		{"reference", exchange.Collection, func(a *exchange.PaymentAttempt) { a.Reference = "" }},
		{"reference", exchange.Collection, func(a *exchange.PaymentAttempt) { a.Reference = "thirteen char" }},
		{"reference", exchange.Payout, func(a *exchange.PaymentAttempt) { a.Reference = "über" }},
		{"callback token", exchange.Collection, func(a *exchange.PaymentAttempt) { a.CallbackToken = "" }},
		{"callback token", exchange.Payout, func(a *exchange.PaymentAttempt) { a.CallbackToken = "../" + testToken[3:] }},
	} {
		a := testAttempt(row.direction)
		row.change(&a)
		submit := c.SubmitCollection
		if row.direction == exchange.Payout {
			submit = c.SubmitPayout
		}
		s := submit(t.Context(), a)
		if s.State != exchange.Refused || s.Code != codeInvalid || !strings.HasPrefix(s.Text, row.field+": ") {
			t.Errorf("%s of a %s: got %+v", row.field, row.direction, s)
		}
	}
	if s := c.Reverse(t.Context(), testAttempt(exchange.Payout), "bad receipt", kes("1")); s.Code != codeInvalid {
		t.Errorf("receipt: got %+v", s)
	}
	if s := c.Reverse(t.Context(), testAttempt(exchange.Payout), "SG632NMUAB", kes("1.5")); s.Code != codeInvalid {
		t.Errorf("amount: got %+v", s)
	}
	if len(g.asked()) != 0 || g.tokens() != 0 {
		t.Errorf("%d requests were sent", len(g.asked()))
	}
}

// TestWithoutPayouts: a client configured only for collections refuses the rest as a configuration error.
func TestWithoutPayouts(t *testing.T) {
	cfg := testConfig("https://api.example.com")
	cfg.PayoutShortcode, cfg.InitiatorName, cfg.SecurityCredential, cfg.StandingToken = "", "", "", ""
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if s := c.SubmitPayout(t.Context(), testAttempt(exchange.Payout)); s.State != exchange.Refused || !s.Config {
		t.Errorf("payout: got %+v", s)
	}
	if s := c.Reverse(t.Context(), testAttempt(exchange.Payout), "SG632NMUAB", kes("1")); s.State != exchange.Refused || !s.Config {
		t.Errorf("reversal: got %+v", s)
	}
	if o := c.Resolve(t.Context(), testAttempt(exchange.Payout)); o.State != exchange.SeenNoAnswer || !o.Config {
		t.Errorf("status: got %+v", o)
	}
	if _, err := c.Balance(t.Context()); exchange.CodeOf(err) != exchange.CodeInvalid {
		t.Errorf("balance: got %v", err)
	}
	if err := c.RegisterC2B(t.Context()); exchange.CodeOf(err) != exchange.CodeInvalid {
		t.Errorf("register: got %v", err)
	}
}

// TestPromptRequest pins the formats that the operator requires.
func TestPromptRequest(t *testing.T) {
	g, _ := newGateway(t)
	g.says(200, "{}")
	cfg := testConfig(g.URL)
	// The operator's clock is three hours ahead of UTC.
	cfg.Clock = func() time.Time { return time.Date(2021, 6, 28, 6, 24, 8, 0, time.UTC) }
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	a := testAttempt(exchange.Collection)
	c.SubmitCollection(t.Context(), a)
	want := fmt.Sprintf(`{"BusinessShortCode":174379,"Password":%q,"Timestamp":"20210628092408","TransactionType":"CustomerPayBillOnline",`+
		`"Amount":100,"PartyA":254712345678,"PartyB":174379,"PhoneNumber":254712345678,"CallBackURL":%q,"AccountReference":"KVK123","TransactionDesc":"Payment"}`,
		base64.StdEncoding.EncodeToString([]byte("174379passkey-of-the-shortcode20210628092408")),
		"https://pay.example.com/api/v1/callbacks/momo/"+testToken+"/result")
	if g.asked()[0].body != want {
		t.Errorf("got  %s\nwant %s", g.asked()[0].body, want)
	}
	if got := g.asked()[0].contentType; got != "application/json" {
		t.Errorf("content type %q", got)
	}
	cfg.Till = "555555"
	if c, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	c.SubmitCollection(t.Context(), a)
	if !strings.Contains(g.asked()[1].body, `"CustomerBuyGoodsOnline"`) || !strings.Contains(g.asked()[1].body, `"PartyB":555555`) {
		t.Errorf("till: got %s", g.asked()[1].body)
	}
}

// TestStatusRequest: a payout is queried by our id under the configured name, or by its receipt.
func TestStatusRequest(t *testing.T) {
	a := testAttempt(exchange.Payout)
	a.StatusToken = ""
	for key, want := range map[StatusKey]string{
		"": `"OriginalConversationID":"` + a.ID.String(), OriginalConversationID: `"OriginalConversationID":"` + a.ID.String(),
		OriginatorConversationID: `"OriginatorConversationID":"` + a.ID.String(),
	} {
		g, _ := newGateway(t)
		g.says(200, "{}")
		cfg := testConfig(g.URL)
		cfg.StatusKey = key
		c, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		c.Resolve(t.Context(), a)
		if !strings.Contains(g.asked()[0].body, want) || !strings.Contains(g.asked()[0].body, testToken+"/status") {
			t.Errorf("%q: got %s", key, g.asked()[0].body)
		}
		withReceipt := a
		withReceipt.Receipt = "SG632NMUAB"
		c.Resolve(t.Context(), withReceipt)
		if !strings.Contains(g.asked()[1].body, `"TransactionID":"SG632NMUAB"`) || strings.Contains(g.asked()[1].body, a.ID.String()) {
			t.Errorf("%q: got %s", key, g.asked()[1].body)
		}
	}
}

func TestEncryptCredential(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "operator"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	credential, err := EncryptCredential("initiator password", certificate)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := base64.StdEncoding.DecodeString(credential)
	if err != nil {
		t.Fatal(err)
	}
	//nolint:staticcheck // The padding that the operator prescribes.
	plain, err := rsa.DecryptPKCS1v15(nil, key, sealed)
	if err != nil || string(plain) != "initiator password" {
		t.Errorf("got %q, %v", plain, err)
	}
	for _, bad := range []string{"", "not PEM", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}))} {
		if _, err := EncryptCredential("password", []byte(bad)); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
	if _, err := EncryptCredential(strings.Repeat("x", 500), certificate); err == nil {
		t.Error("a password that is too long passes")
	}
}

// TestSecretsAreNotPrinted tries every way in which a value can get into a log.
func TestSecretsAreNotPrinted(t *testing.T) {
	cfg := testConfig("https://api.example.com")
	cfg.InitiatorPassword = "password-of-the-initiator"
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.tokens.token = "token-of-the-application"
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	logger.Info("message", "config", cfg, "client", c)
	printed := fmt.Sprintf("%v %+v %#v %s %v %+v %#v %s %s", cfg, cfg, cfg, cfg, c, c, c, c, log.String())
	for _, secret := range []string{"of-the-application", "of-the-shortcode", "of-the-initiator", "sealed-credential", testToken} {
		if strings.Contains(printed, secret) {
			t.Errorf("%q is printed: %s", secret, printed)
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"Error Occurred - Invalid Access Token - BJGFGQXV5aZnw9QKA4TDtu4Xdyf": "Error Occurred - Invalid Access Token",
		"Bad Request - Invalid PhoneNumber":                                   "Bad Request - Invalid PhoneNumber",
		"Duplicate OriginatorConversationID.":                                 "Duplicate OriginatorConversationID.",
		"The balance of 254712345678 is insufficient":                         "The balance of [number] is insufficient",
		"call +254 712 345 678 or 0712-345-678":                               "call [number] or [number]",
		"2547 ***** 126 x":                                                    "2547 ***** 126 x",
		"token c9SQxWWhmdVRlyh0zh8gZDTkubVF here":                             "token [redacted] here",
		"ws_CO_23052022122137653708374149":                                    "[redacted]",
		"to 254712345678 - JANE DOE done":                                     "to [number] - [redacted]",
		"line\nbreak\x00and \xff more":                                        "line break and  more",
		"a my-secret-value b":                                                 "a [redacted] b",
		strings.Repeat("é ", 300):                                             strings.Repeat("é ", 100) + "…",
	} {
		if got := redact(in, "my-secret-value", "", "abc"); got != want {
			t.Errorf("%q\ngot  %q\nwant %q", in, got, want)
		}
	}
}
