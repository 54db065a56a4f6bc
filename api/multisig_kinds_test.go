package api

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// owners is a request for other owners: the first stays, an admin whose key is made and somebody outside come.
func (w *reserve) owners(changes map[string]any) map[string]any {
	return altered(map[string]any{"kind": "owners", "wallet_id": w.account.ID, "threshold": 2, "owners": []map[string]any{
		{"address": onEthereum("1"), "label": "outside"}, {"user_id": w.boss.ID}, {"address": onEthereum("7")},
	}}, changes)
}

// signable stores what owners sign for a proposal that moves nothing, after the keys of new owners are made.
func (w *reserve) signable(id string, sequence uint64) {
	w.t.Helper()
	ctx := w.t.Context()
	coming, err := w.store.ComingOwners(ctx, uuid.MustParse(id))
	for _, o := range coming {
		if o.Held && err == nil {
			_, err = w.store.StoreOwnerKey(ctx, w.account.ID, o.N, onEthereum("9"), exchange.SealedKey{
				WalletID: w.account.ID, Purpose: exchange.OwnerKeyPurpose(o.N), Ciphertext: []byte("sealed"), MasterKey: "test", PublicKey: []byte("public"), Algorithm: "secp256k1",
			})
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
	p, err := w.store.Proposal(ctx, store.Everything(), uuid.MustParse(id))
	if err != nil {
		w.t.Fatal(err)
	}
	y := storetest.PayloadOf(w.t, p)
	y.Sequence = sequence
	if y, err = w.store.StorePayload(ctx, y); err != nil {
		w.t.Fatalf("store a payload: %v", err)
	}
	change, err := exchange.OwnersChangeOf(p.After)
	if err != nil {
		w.t.Fatal(err)
	}
	w.says = JointView{
		Kind: p.Kind, Owners: change, Account: p.Address, To: p.Address, Amount: money.Zero(money.ETH), Digest: y.Digest, ID: y.JointID, FeeLimit: money.Zero(money.ETH), Body: []byte(`{}`),
	}
}

// said is the sentence about the newest payload.
func (w *reserve) said(id string) string {
	w.t.Helper()
	shown := w.do(get, proposalsPath+"/"+id+"/payload", nil, w.one.auth()).want(http.StatusOK).object()["payloads"].([]any)[0].(map[string]any)
	text, _ := shown["says"].(string)
	return text
}

// A change of the owners names them all, is approved by one officer more than a payment, and is shown in words.
func TestOwnersAreProposed(t *testing.T) {
	w := newReserve(t)
	storetest.Pause(t, w.store, 0)
	opened := w.do(post, proposalsPath, w.owners(nil), w.vendor.auth(), freshKey()).want(http.StatusCreated)
	id, o := opened.text("id"), opened.object()
	if list := o["owners"].([]any); o["kind"] != "owners" || o["required_approvals"] != 2.0 || o["required_signatures"] != 3.0 || o["threshold"] != 2.0 || o["control_threshold"] != nil ||
		o["amount"] != "0.000000000000000000" || o["destination"] != w.account.Address || len(list) != 3 || list[1].(map[string]any)["address"] != nil || o["signable_at"] != nil {
		t.Errorf("proposed %s", opened.body)
	}
	waits := w.do(get, "/api/v1/auth/approvals/pending", nil, w.boss.auth()).want(http.StatusOK).object()
	if list := waits["multisig_proposals"].([]any); len(list) != 1 || list[0].(map[string]any)["kind"] != "owners" {
		t.Errorf("an officer waits for %v", waits)
	}
	w.verb(w.boss, id, "approve", nil).want(http.StatusOK)
	if rests := w.verb(w.one, id, "approve", nil).want(http.StatusOK).object(); rests["status_detail"] != "pause" || rests["signable_at"] == nil {
		t.Errorf("approved by two: %v", rests)
	}
	if _, err := w.store.AdvanceProposal(t.Context(), uuid.MustParse(id)); err != nil {
		t.Fatal(err)
	}
	w.signable(id, 3)
	want := "Changes the owners of " + w.account.Address + " on ethereum to 2 of: " + onEthereum("1")
	if says := w.said(id); !strings.HasPrefix(says, want) || !strings.Contains(says, onEthereum("9")) || !strings.Contains(says, "number 3 of the Safe") {
		t.Errorf("owners sign %q", says)
	}
	w.says.Owners.Threshold = 1
	w.do(get, proposalsPath+"/"+id+"/payload", nil, w.one.auth()).want(http.StatusInternalServerError)
}

// What is asked for wrongly is refused by its field.
func TestRefusedKindsOfProposals(t *testing.T) {
	w := newReserve(t)
	ask := func(body map[string]any) *reply { return w.do(post, proposalsPath, body, w.boss.auth(), freshKey()) }
	ask(w.owners(map[string]any{"threshold": nil})).blames("/threshold required")
	ask(w.owners(map[string]any{"control_threshold": 3})).blames("/control_threshold forbidden")
	ask(w.owners(map[string]any{"owners": nil})).blames("/owners required")
	ask(w.owners(map[string]any{"amount": "1"})).blames("/amount unknown_field")
	ask(w.owners(map[string]any{"owners": []map[string]any{{"address": onEthereum("1")}, {"address": onEthereum("1")}}})).blames("/owners/1/address repeated")
	ask(w.owners(map[string]any{"owners": []map[string]any{{"address": onEthereum("1")}, {"label": "nobody"}}})).blames("/owners/1/address required")
	ask(map[string]any{"kind": "cancel", "wallet_id": w.account.ID}).blames("/supersedes required")
	ask(map[string]any{"kind": "cancel", "wallet_id": w.account.ID, "supersedes": uuid.New()}).blames("/supersedes not_found")
}

// A cancel has the number of what it makes impossible, and says so.
func TestCancelsAreProposed(t *testing.T) {
	w := newReserve(t)
	id := w.asks(w.vendor, "100", nil).want(http.StatusCreated).text("id")
	w.verb(w.boss, id, "approve", nil).want(http.StatusOK)
	w.payload(id)
	opened := w.do(post, proposalsPath, map[string]any{"kind": "cancel", "wallet_id": w.account.ID, "supersedes": id}, w.vendor.auth(), freshKey()).want(http.StatusCreated)
	cancel := opened.text("id")
	if o := opened.object(); o["kind"] != "cancel" || o["supersedes"] != id || o["required_approvals"] != 0.0 || o["owners"] != nil {
		t.Errorf("proposed %s", opened.body)
	}
	w.signable(cancel, 3)
	if want := "Uses up number 3 of " + w.account.Address + " and moves nothing, so that proposal " + id + " can never be executed."; !strings.HasPrefix(w.said(cancel), want) {
		t.Errorf("owners sign %q, want %q", w.said(cancel), want)
	}
}
