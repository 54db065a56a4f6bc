package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/momo/sandbox"
	"kivuko/workflows"
)

// TestSecretsStayOut searches everything that Temporal keeps of the flows, and every log of the stack at the most
// verbose level, for what must not leave the database: phone numbers, names, passwords, tokens, keys.
func TestSecretsStayOut(t *testing.T) {
	w := openBeside(t)
	paid, given := newPhone(), newPhone()
	var tokens struct {
		AccessToken  string `json:"access_token"`
		RefreshToken string `json:"refresh_token"`
	}
	in := map[string]string{"email": demo.CustomerEmail, "password": demo.Password}
	if err := w.amina(t).Post(t.Context(), "/api/v1/users/login", "", in, &tokens); err != nil {
		t.Fatal(err)
	}
	if tokens.AccessToken == "" || tokens.RefreshToken == "" {
		t.Fatal("the login gave no tokens")
	}
	o := w.ends(t, w.buy(t, purchase{crypto: "5", phone: paid}).ID, "completed", "")
	w.fault(t, "pays_less", "prompt", given)
	less := w.ends(t, w.buy(t, purchase{fiat: "700", phone: given}).ID, "failed", "underpaid")
	w.refunded(t, less, 699)
	canaries := map[string]string{
		"the payer's number": paid, "the payer's number without its country": paid[3:], "the number of a refund": given,
		"the customer's e-mail": demo.CustomerEmail, "the customer's name": "Hassan-Wanjiru", "the vendor's e-mail": demo.VendorEmail,
		"the access token": tokens.AccessToken, "the refresh token": tokens.RefreshToken, "a password": demo.Password,
		"the admin's password": stack.AdminPassword, "the operator's secret": sandbox.DefaultConsumerSecret,
		"the operator's passkey": sandbox.DefaultPasskey, "the initiator's credential": sandbox.DefaultSecurityCredential,
	}
	for _, kv := range w.stack.ProductEnvironment(stack.ProcessAPI) {
		for _, name := range []string{"KIVUKO_API_TOKEN_KEYS=dev:", "KIVUKO_API_PEPPERS=dev:", "KIVUKO_TEMPORAL_PAYLOAD_KEYS=dev:"} {
			if secret, ok := strings.CutPrefix(kv, name); ok {
				canaries[name] = secret
			}
		}
	}
	seen := w.histories(t)
	if _, ok := seen["history of on-ramp:"+o.ID.String()]; !ok || len(seen) < 6 {
		t.Fatalf("only these were found: %d", len(seen))
	}
	w.couldBeSeen(t, o, seen["history of on-ramp:"+o.ID.String()])
	for name, text := range w.logs(t) {
		seen[name] = text
	}
	if !bytes.Contains(seen["log api.log"], []byte("/api/v1/auth/orders")) {
		t.Error("the log of the API has no requests")
	}
	for where, text := range seen {
		for form, view := range views(text) {
			for what, canary := range canaries {
				if leaks(view, canary) {
					t.Errorf("%s (%s) is in the %s", what, form, where)
				}
			}
		}
	}
	// Customers may publish these, but they are kept out of the index that every user of the Web UI can search.
	for where, text := range seen {
		if strings.HasPrefix(where, "search attributes") && bytes.Contains(text, []byte(o.WalletAddress)) {
			t.Errorf("the customer's address is in the %s", where)
		}
	}
}

// couldBeSeen proves that the search can find something: only decrypted, the history holds the flow's input.
func (w *harness) couldBeSeen(t *testing.T, o order, kept []byte) {
	t.Helper()
	codec, err := w.codec()
	if err != nil {
		t.Fatal(err)
	}
	h, err := readHistory(t.Context(), w.temporal, codec, workflows.OnRampID(o.ID), "")
	if err != nil {
		t.Fatal(err)
	}
	input := []byte(`{"intent_id":"` + o.ID.String() + `"}`) // a request's first intent has the id of what it opens
	raw, err := proto.Marshal(h)
	if there, before := bytes.Contains(raw, input), bytes.Contains(kept, input); err != nil || !there || before {
		t.Errorf("decrypted, the history holds %s: %t, and as it is kept: %t; %v", input, there, before, err)
	}
}

var (
	base64Run = regexp.MustCompile(`[A-Za-z0-9+/_-]{12,}`)
	hexRun    = regexp.MustCompile(`[0-9A-Fa-f]{12,}`)
	// took is how many nanoseconds a request took. A long time can look like a phone number.
	took = regexp.MustCompile(`"took":[0-9]+`)
)

// views returns a text and what is encoded in it. The text is decoded rather than the canary encoded: a few
// characters of base64 occur by chance, a whole canary does not. The start of an encoding isn't known, so each
// alignment is decoded.
func views(text []byte) map[string][]byte {
	text = took.ReplaceAll(text, nil)
	all := map[string][]byte{"plain": text}
	for shift := range 4 {
		var decoded []byte
		for _, run := range base64Run.FindAll(text, -1) {
			encoded := strings.NewReplacer("-", "+", "_", "/").Replace(string(run[shift:]))
			if len(encoded)%4 == 1 { // no encoding ends there
				encoded = encoded[:len(encoded)-1]
			}
			b, _ := base64.RawStdEncoding.DecodeString(encoded) // every character is of the alphabet
			decoded = append(append(decoded, b...), '\n')
		}
		all[fmt.Sprint("base64, shift ", shift)] = decoded
	}
	for shift := range 2 {
		var decoded []byte
		for _, run := range hexRun.FindAll(text, -1) {
			digits := run[shift:]
			b, _ := hex.DecodeString(string(digits[:len(digits)/2*2])) // every character is a digit
			decoded = append(append(decoded, b...), '\n')
		}
		all[fmt.Sprint("hexadecimal, shift ", shift)] = decoded
	}
	return all
}

// leaks reports whether a text contains a canary. A number must stand alone: it occurs by chance inside longer
// numbers, hashes and fractions of a second.
func leaks(text []byte, canary string) bool {
	number := strings.Trim(canary, "0123456789") == ""
	for at := 0; ; at++ {
		next := bytes.Index(text[at:], []byte(canary))
		if next < 0 {
			return false
		}
		at += next
		before, after := text[:at], text[at+len(canary):]
		if !number || (len(after) == 0 || !hexadecimal(after[0])) &&
			(len(before) == 0 || before[at-1] != '.' && !hexadecimal(before[at-1]) || bytes.HasSuffix(before, []byte("%2B"))) {
			return true
		}
	}
}

func hexadecimal(c byte) bool { return strings.IndexByte("0123456789abcdefABCDEF", c) >= 0 }

// The search finds a canary in each encoding, and takes no clock reading for a phone number.
func TestLeaksAreFound(t *testing.T) {
	found := func(text, canary string) bool {
		for _, view := range views([]byte(text)) {
			if leaks(view, canary) {
				return true
			}
		}
		return false
	}
	for _, canary := range []string{"254712345678", "712345678", demo.CustomerEmail, demo.Password} {
		for _, leak := range []string{canary, `{"phone":"` + canary + `"}`, "tel=%2B" + canary + "&x=1", "\x09" + canary + "\x12"} {
			for shift := range 3 {
				inner := strings.Repeat(" ", shift) + leak
				for _, text := range []string{
					leak, "x" + hex.EncodeToString([]byte(leak)), base64.StdEncoding.EncodeToString([]byte(inner)),
					`"` + base64.RawURLEncoding.EncodeToString([]byte(inner)) + `"`, "a/" + base64.StdEncoding.EncodeToString([]byte(inner)) + "/b",
				} {
					if !found(text, canary) {
						t.Errorf("%q is not found in %q", canary, text)
					}
				}
			}
		}
	}
	for _, text := range []string{
		"2026-11-22T17:00:00.712345678Z", `"took":712345678,`, "1712345678901", "8c5a0f6e-712345678abc", strings.Repeat("a", 40) + "712345678" + strings.Repeat("0", 15),
		base64.StdEncoding.EncodeToString([]byte("1712345678901234")),
	} {
		if found(text, "712345678") {
			t.Errorf("a phone number is found in %q", text)
		}
	}
}

// histories returns all flows of the namespace as Temporal stores them, payloads undecoded, and their index rows.
func (w *harness) histories(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	var page []byte
	for {
		list, err := w.temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{NextPageToken: page})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list.GetExecutions() {
			id, run := e.GetExecution().GetWorkflowId(), e.GetExecution().GetRunId()
			index, err := protojson.Marshal(e.GetSearchAttributes())
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range e.GetSearchAttributes().GetIndexedFields() {
				index = append(index, p.GetData()...)
			}
			row, err := proto.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			all["search attributes of "+id] = append(index, row...)
			var raw bytes.Buffer
			for _, event := range w.events(t, id, run) {
				b, err := proto.Marshal(event)
				if err != nil {
					t.Fatal(err)
				}
				raw.Write(b)
			}
			all["history of "+id] = append(all["history of "+id], raw.Bytes()...)
		}
		if page = list.GetNextPageToken(); len(page) == 0 {
			return all
		}
	}
}

// logs returns what the product's processes have logged so far. The sandbox and the nodes are not the product.
func (w *harness) logs(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	dir := filepath.Join(w.stack.State, "logs")
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name := filepath.Base(path)
		if strings.HasPrefix(name, stack.ProcessMomo+".") || strings.HasPrefix(name, stack.ProcessTron+".") {
			return nil
		}
		text, err := os.ReadFile(path)
		all["log "+name] = text
		return err
	})
	if err != nil || len(all) < len(stack.Queues)+1 {
		t.Fatalf("%d logs were read: %v", len(all), err)
	}
	return all
}
