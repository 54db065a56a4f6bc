package api

import (
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
)

// signing is a proposal whose payload waits for owners.
func (w *reserve) signing() (id string, y exchange.MultisigPayload) {
	w.t.Helper()
	id = w.asks(w.vendor, "100", nil).want(http.StatusCreated).text("id")
	w.verb(w.boss, id, "approve", nil).want(http.StatusOK)
	return id, w.payload(id)
}

// Bytes of signatures are authority. Those of keys in our key store are shown to no role, and those of owners outside to admins and treasury
// officers, who may have them executed.
func TestSignaturesAreShownToWhoMayExecute(t *testing.T) {
	w := newReserve(t)
	id, y := w.signing()
	outside, held := signatureOf(w.account.Owners[0].Address), signatureOf(w.account.Owners[1].Address)
	brought := w.verb(w.vendor, id, "confirm", map[string]any{"payload_id": y.ID, "signature": hex.EncodeToString(outside)}).want(http.StatusOK)
	made := w.verb(w.one, id, "confirm", map[string]any{"payload_id": y.ID, "digest": y.Intent()}).want(http.StatusOK)
	shows := func(r *reply, raw []byte) bool {
		return strings.Contains(string(r.body), hex.EncodeToString(raw)) || strings.Contains(string(r.body), base64.StdEncoding.EncodeToString(raw))
	}
	if shows(brought, outside) || shows(made, held) {
		t.Errorf("the answers to signatures have their bytes: %s, %s", brought.body, made.body)
	}
	for _, c := range []struct {
		who  person
		sees bool
	}{
		{w.boss, true}, {w.two, true}, {w.person(exchange.RoleOTCOfficer), false}, {w.vendor, false}, {w.person(exchange.RoleSubvendor, w.vendor.ID), false},
	} {
		t.Run(string(c.who.Role), func(t *testing.T) {
			for _, path := range []string{proposalsPath + "/" + id, proposalsPath + "/" + id + "/payload", proposalsPath} {
				r := w.do(get, path, nil, c.who.auth()).want(http.StatusOK)
				if got := strings.Count(string(r.body), `"signature":`); got != 2 {
					t.Fatalf("%s has %d signatures: %s", path, got, r.body)
				}
				if shows(r, outside) != c.sees {
					t.Errorf("at %s the signature of an owner outside is shown: %t, want %t", path, !c.sees, c.sees)
				}
				if shows(r, held) {
					t.Errorf("at %s a signature of our key store is shown: %s", path, r.body)
				}
			}
		})
	}
}

// A signature is verified before the flow is asked, which takes only so many updates: a wrong one names the check that it fails, and one that is
// known already answers as before.
func TestSignaturesAreVerifiedBeforeTheFlow(t *testing.T) {
	w := newReserve(t)
	id, y := w.signing()
	other, z := w.signing()
	outside := signatureOf(w.account.Owners[0].Address)
	confirm := func(id string, payload uuid.UUID, signature string) *reply {
		return w.verb(w.vendor, id, "confirm", map[string]any{"payload_id": payload, "signature": signature})
	}
	w.flows.reset()
	text := hex.EncodeToString(outside)
	confirm(id, y.ID, "c0ffee").blames("/signature signature")
	confirm(id, y.ID, text+"00").blames("/signature signature") // a byte too many
	confirm(id, y.ID, strings.Repeat("0", maxSignatureText+1)).blames("/signature too_long")
	confirm(id, y.ID, text[1:]).blames("/signature format")
	confirm(id, newID(), text).blames("/payload_id not_found")
	confirm(id, z.ID, text).blames("/payload_id not_found") // that of another proposal
	confirm(id, y.ID, hex.EncodeToString(signatureOf(onEthereum("9")))).blames("/signature signature")
	confirm(id, y.ID, hex.EncodeToString(signatureOf(w.account.Owners[1].Address))).blames("/signature signature") // its key is ours
	if n := w.flows.count(); n != 0 {
		t.Fatalf("wrong signatures reached the flow: %v", w.flows.calls)
	}
	first := confirm(id, y.ID, "0x"+text).want(http.StatusOK).object()
	if n := w.flows.count(); n != 1 || len(first["signatures"].([]any)) != 1 {
		t.Fatalf("one signature made %d calls and is %v", n, first["signatures"])
	}
	for _, again := range []string{text, strings.ToUpper(text), base64.StdEncoding.EncodeToString(outside)} {
		r := confirm(id, y.ID, again).want(http.StatusOK).object()
		if n := w.flows.count(); n != 1 || r["version"] != first["version"] || len(r["signatures"].([]any)) != 1 {
			t.Errorf("the same signature as %q made %d calls and answers %v", again, n, r)
		}
	}
	confirm(other, z.ID, base64.StdEncoding.EncodeToString(outside)).want(http.StatusOK)
	w.verb(w.boss, other, "cancel", nil).want(http.StatusOK)
	w.flows.reset()
	confirm(other, z.ID, text).refused(exchange.CodeStateConflict) // it is to end
	if _, err := w.store.VoidPayload(t.Context(), y.ID, "its number was used"); err != nil {
		t.Fatal(err)
	}
	confirm(id, y.ID, text).refused(exchange.CodeStateConflict)
	w.payload(id)
	confirm(id, y.ID, text).refused(exchange.CodeStateConflict) // it has ended, and another one follows
	if n := w.flows.count(); n != 0 {
		t.Errorf("signatures of what can't be executed reached the flow: %v", w.flows.calls)
	}
	delete(w.server.Signatures, exchange.Ethereum) // without a driver the flow's worker verifies
	last, x := w.signing()
	w.flows.reset()
	confirm(last, x.ID, "c0ffee").blames("/signature wrong")
	if n := w.flows.count(); n != 1 {
		t.Errorf("the flow verified %d signatures", n)
	}
}
