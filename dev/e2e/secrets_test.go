package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/momo/sandbox"
	"kivuko/worker"
	"kivuko/workflows"
)

// TestSecretsStayOut looks for what must not leave the database in everything that Temporal keeps of the flows
// and in every log of the stack, at the most talkative level: numbers and names of persons, passwords, tokens, keys.
func TestSecretsStayOut(t *testing.T) {
	w := open(t)
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
		"the customer's e-mail": demo.CustomerEmail, "the customer's name": "Hassan", "the vendor's e-mail": demo.VendorEmail,
		"the access token": tokens.AccessToken, "the refresh token": tokens.RefreshToken, "a password": demo.Password,
		"the admin's password": stack.AdminPassword, "the operator's secret": sandbox.DefaultConsumerSecret,
		"the operator's passkey": sandbox.DefaultPasskey, "the initiator's credential": sandbox.DefaultSecurityCredential,
	}
	for _, kv := range w.stack.ProductEnvironment(stack.ProcessAPI) {
		for _, name := range []string{"KIVUKO_API_TOKEN_KEYS=dev:", "KIVUKO_API_PIN_PEPPER=", "KIVUKO_TEMPORAL_PAYLOAD_KEYS=dev:"} {
			if secret, ok := strings.CutPrefix(kv, name); ok {
				canaries[name] = secret
			}
		}
	}
	seen := w.histories(t)
	if _, ok := seen["history of on-ramp:"+o.ID.String()]; !ok || len(seen) < 6 {
		t.Fatalf("only these were found: %d", len(seen))
	}
	w.couldBeSeen(t, o, paid)
	for name, text := range w.logs(t) {
		seen[name] = text
	}
	if !bytes.Contains(seen["log api.log"], []byte("/api/v1/auth/orders")) {
		t.Error("the log of the API says nothing of its requests")
	}
	for what, canary := range canaries {
		for where, text := range seen {
			for form, needle := range forms(canary) {
				if bytes.Contains(text, []byte(needle)) {
					t.Errorf("%s (%s) stands in the %s", what, form, where)
				}
			}
		}
	}
	// What customers may well tell the world is kept from the index that everybody at the Web UI can search.
	for where, text := range seen {
		if strings.HasPrefix(where, "search attributes") && bytes.Contains(text, []byte(o.WalletAddress)) {
			t.Errorf("the customer's address stands in the %s", where)
		}
	}
}

// couldBeSeen makes sure that the search has something to miss: with the keys, the payer's number is there.
func (w *world) couldBeSeen(t *testing.T, o order, phone string) {
	t.Helper()
	codec, err := w.codec()
	if err != nil {
		t.Fatal(err)
	}
	h, err := worker.ReadHistory(t.Context(), w.temporal, codec, workflows.OnRampID(o.ID), "")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := proto.Marshal(h)
	if err != nil || !bytes.Contains(raw, []byte(phone)) {
		t.Errorf("the decrypted history does not hold the payer's number either: %v", err)
	}
}

// forms are the ways in which a text hides in others. Base64 depends on where it begins, so it is looked for
// without its ends.
func forms(canary string) map[string]string {
	all := map[string]string{"plain": canary, "hexadecimal": hex.EncodeToString([]byte(canary))}
	for shift := range 3 {
		encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", shift) + canary))
		if len(encoded) > 12 {
			all["base64 "+string(rune('0'+shift))] = encoded[4 : len(encoded)-4]
		}
	}
	return all
}

// histories are all flows of the namespace as Temporal stores them, payloads undecoded, and their rows of the index.
func (w *world) histories(t *testing.T) map[string][]byte {
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

// logs are what the product's processes have written so far. The sandbox and the nodes are not the product.
func (w *world) logs(t *testing.T) map[string][]byte {
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
