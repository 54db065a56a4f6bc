package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

func TestFaults(t *testing.T) {
	in := newInbox(t)
	s := open(t, Config{MagicAmounts: true})
	for _, bad := range []Fault{{Behaviour: "no such"}, {Behaviour: "result:"}, {Behaviour: "declined", Op: OpPayout}} {
		if err := s.Set(bad); err == nil {
			t.Errorf("%+v passes", bad)
		}
	}
	code := func(phone string, amount int) string {
		t.Helper()
		if status, answer := ask(t, s, promptPath, promptFor(s, in, phone, amount)); status != 200 {
			t.Fatalf("%d %v", status, answer)
		}
		s.rest(t)
		b := s.Books()
		return b.Prompts[len(b.Prompts)-1].Results[0].Code
	}
	expect := func(want string, phone string, amount int) {
		t.Helper()
		if got := code(phone, amount); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	set := func(f Fault) {
		t.Helper()
		if err := s.Set(f); err != nil {
			t.Fatal(err)
		}
	}
	set(Fault{Behaviour: "declined", Phone: phone, Times: 2})
	set(Fault{Behaviour: "result:4321"})
	expect("1032", phone, 5)
	expect("4321", "254712345679", 5)
	expect("1032", phone, 5)
	expect("0", phone, 5)
	set(Fault{Behaviour: "expired", Times: -1})
	for range 3 {
		expect("1019", phone, 5)
	}
	s.Reset()
	expect("0", phone, 5)
	expect("1032", phone, magicAmount+12)
	expect("1037", magicPrefix+"13", magicAmount+12) // the number counts before the amount
}

// TestTable: every behaviour can be selected in one way, and is documented.
func TestTable(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	names, digits := map[string]bool{}, map[string]bool{}
	for _, b := range Behaviours() {
		if names[b.Name] || (b.Magic != "" && digits[b.Magic]) || len(b.Ops) == 0 || b.Text == "" {
			t.Errorf("%+v", b)
		}
		names[b.Name] = true
		if b.Magic != "" {
			digits[b.Magic] = true
			if !bytes.Contains(doc, []byte(b.Magic+" ")) && !strings.Contains(string(doc), b.Magic+" to") {
				t.Errorf("%s %s is not documented", b.Magic, b.Name)
			}
		}
		if got, err := lookup(b.Name); err != nil || got.Name != b.Name {
			t.Errorf("%s: got %+v, %v", b.Name, got, err)
		}
	}
}

func control(t *testing.T, s *Server, method, path, contentType, body string) (int, string) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), method, s.ControlURL()+path, strings.NewReader(body))
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer)
}

func TestControl(t *testing.T) {
	s := open(t, Config{Control: "127.0.0.1:0"})
	for _, row := range []struct {
		method, path, contentType, body string
		status                          int
		contains                        string
	}{
		{"POST", "/control/pay", "application/json", `{"phone":"254712345678","reference":"<b>INV</b>","amount":12}`, 200, "receipt"},
		{"POST", "/control/pay", "application/json", `{"phone":"x","amount":12}`, 422, "phone"},
		{"POST", "/control/fund", "application/json", `{"account":"utility","amount":1000}`, 200, "booked"},
		{"POST", "/control/fund", "application/json", `{"account":"utility","amount":-99999999999}`, 422, "less"},
		{"POST", "/control/fund", "application/json", `{"account":"other","amount":1}`, 422, "account"},
		{"POST", "/control/faults", "application/json", `{"behaviour":"declined","times":3}`, 200, "set"},
		{"GET", "/control/faults", "", "", 200, `"times":3`},
		{"POST", "/control/faults", "application/json", `{"behaviour":"nonsense"}`, 422, "nonsense"},
		{"POST", "/control/faults", "application/json", `{"unknown":1}`, 400, "unknown"},
		{"POST", "/control/faults", "text/plain", `{"behaviour":"declined"}`, 415, "application/json"},
		{"POST", "/control/reset", "application/json", "", 200, "reset"},
		{"GET", "/control/faults", "", "", 200, `"faults":null`},
		{"POST", "/control/release", "application/json", "", 200, "released"},
		{"POST", "/control/revoke", "application/json", "{}", 200, "revoked"},
		{"POST", "/control/settle", "application/json", "{}", 200, "settled"},
		{"GET", "/control/certificate", "", "", 200, "BEGIN CERTIFICATE"},
		{"GET", "/control/books", "", "", 200, `"direction":"collection"`},
		{"GET", "/", "", "", 200, "&lt;b&gt;INV"},
		{"GET", "/", "", "", 200, "Declined"},
		{"GET", "/other", "", "", 404, ""},
		{"POST", "/control/pay", "application/json", strings.Repeat(" ", maxBody+1), 413, "long"},
	} {
		status, answer := control(t, s, row.method, row.path, row.contentType, row.body)
		if status != row.status || !strings.Contains(strings.ToLower(answer), strings.ToLower(row.contains)) {
			t.Errorf("%s %s %.50s: got %d %.300s", row.method, row.path, row.body, status, answer)
		}
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.ControlURL()+"/", nil)
	req.Header.Set("Accept", "application/json")
	if status, answer := send(t, req); status != 200 || answer["magic_prefix"] != magicPrefix {
		t.Errorf("got %d %v", status, answer)
	}
	if resp, err := http.Get(s.URL() + "/control/books"); err != nil || resp.StatusCode != 404 {
		t.Errorf("the gateway serves the control endpoints, too: %v", err)
	} else {
		_ = resp.Body.Close()
	}
}

// The page begins with the magic numbers, and has a limited length however much has moved.
func TestPageBeginsWithTheNumbers(t *testing.T) {
	s := open(t, Config{Control: "127.0.0.1:0"})
	for range pageRows + 5 {
		if _, err := s.Pay(phone, "INVOICE-7", 1); err != nil {
			t.Fatal(err)
		}
	}
	status, page := control(t, s, http.MethodGet, "/", "", "")
	numbers, moved := strings.Index(page, "<td><code>declined</code></td>"), strings.Index(page, "INVOICE-7")
	if status != http.StatusOK || numbers < 0 || moved < numbers {
		t.Errorf("status %d, the numbers are at %d and what moved at %d", status, numbers, moved)
	}
	if n := strings.Count(page, "INVOICE-7"); n != pageRows {
		t.Errorf("%d rows, want %d", n, pageRows)
	}
}

// TestCommand starts the sandbox as the development stack does, and ends it.
func TestCommand(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	reader, writer := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"--data", t.TempDir(), "--answer-delay", "0s", "--shortcode", "600100", "--callback-hosts", "a,b"}, writer)
	}()
	var address string
	if _, err := fmt.Fscanf(reader, "READY %s\n", &address); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(address + "/control/books")
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v %v", resp, err)
	}
	_ = resp.Body.Close()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, args := range [][]string{{"--nonsense"}, {"stray"}, {"--msisdn", "other"}, {"--listen", "nowhere:-1"}, {"--answer-delay", "long"}} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("%v passes", args)
		}
	}
}

// TestIDs look like the operator's.
func TestIDs(t *testing.T) {
	at := time.Date(2024, 7, 6, 21, 30, 5, 123e6, time.UTC) // the seventh in Nairobi
	if got := newReceipt(at); !strings.HasPrefix(got, "SG7") || len(got) != 10 {
		t.Errorf("receipt %s", got)
	}
	if got := newCheckoutRequestID(at, phone); got != "ws_CO_07072024003005123712345678" {
		t.Errorf("checkout %s", got)
	}
	if got := newConversationID(at); !strings.HasPrefix(got, "AG_20240707_") || len(got) != 32 {
		t.Errorf("conversation %s", got)
	}
	if got := filler(at); got != "SG70000000" {
		t.Errorf("filler %s", got)
	}
}
