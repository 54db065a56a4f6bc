package api

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
	"kivuko/store/storetest"
)

// reserve is a house with a wallet of three owners on Ethereum, two of whom sign: one outside, and two officers whose keys are ours. It is
// shared with a merchant, who has money in it to propose payments of.
type reserve struct {
	*env
	vendor, boss, one, two person
	account                exchange.MultisigAccount
	says                   JointView // what the driver reads in a payload, where it is another payment
}

func newReserve(t *testing.T) *reserve {
	w := &reserve{}
	w.env = start(t, everyAddress, func(d *Deps) {
		d.Joints = map[exchange.Network]func([]byte) (JointView, error){exchange.Ethereum: func([]byte) (JointView, error) { return w.says, nil }}
		d.Signatures = map[exchange.Network]func(stored, signature []byte) (string, error){exchange.Ethereum: w.ownerOf}
	})
	w.vendor, w.boss, w.one, w.two = w.person(exchange.RoleVendor), w.person(exchange.RoleAdmin), w.person(exchange.RoleTreasury), w.person(exchange.RoleTreasury)
	w.watched(exchange.Ethereum)
	gas := storetest.GasWallet(t, w.store, exchange.Ethereum)
	storetest.Gas(t, w.store, gas.ID, money.Must(money.ETH, "5"))
	w.account = storetest.MultisigWallet(t, w.store, exchange.MultisigRequest{
		ID: newID(), Network: exchange.Ethereum, Asset: money.USDT, Name: "Reserve", MerchantID: w.vendor.ID, Custody: exchange.MultisigSelf, Threshold: 2,
		Owners: []exchange.MultisigOwner{{Address: onEthereum("1"), Label: "outside"}, {UserID: w.one.ID, Label: "one"}, {UserID: w.two.ID, Label: "two"}},
		Policy: exchange.MultisigPolicy{Approvals: 1},
	})
	w.env.fund(exchange.Wallet{ID: w.account.ID}, "1000")
	return w
}

// ownerOf is the driver's check of a signature, which names its owner instead of proving it.
func (w *reserve) ownerOf(stored, signature []byte) (string, error) {
	owner := strings.TrimRight(string(signature), "\x00")
	if !bytes.Equal(signature, signatureOf(owner)) || !strings.HasPrefix(owner, "0x") && !strings.HasPrefix(owner, "owner-") { // of a key that is ours
		return "", exchange.Invalid(exchange.FieldError{Pointer: "/signature", Code: "signature", Message: "is refused: it is no signature of an owner"})
	}
	if !json.Valid(stored) {
		return "", errors.New("nothing is stored that owners sign")
	}
	return owner, nil
}

// watched has the deposit watch of a network at work, and values agreed.
func (e *env) watched(n exchange.Network) {
	e.t.Helper()
	storetest.AgreeValuations(e.t, e.store)
	first := exchange.ChainBlock{Number: 100, ID: "b100", Time: time.Now().UTC()}
	_, err := e.store.StartDeposits(e.t.Context(), n, first)
	if err == nil {
		err = e.store.WatchAlive(e.t.Context(), n)
	}
	if err == nil {
		err = e.store.RecordLook(e.t.Context(), exchange.WatchLook{Network: n, Final: first})
	}
	if err != nil {
		e.t.Fatal(err)
	}
	storetest.Exec(e.t, e.store, `UPDATE deposit_looks SET looked_at = now() + interval '1 hour'`)
}

// proposal is a payment that a merchant proposed from a wallet that is shared with it.
func (w *harness) proposal(merchant person) exchange.Proposal {
	w.t.Helper()
	storetest.AgreeValuations(w.t, w.store)
	from := w.activeMultisig(merchant.ID) // only so many of one wallet may be open
	w.fund(exchange.Wallet{ID: from.ID}, "1")
	r := exchange.ProposalRequest{ID: newID(), WalletID: from.ID, Amount: usdt("1"), Destination: goodAddress}
	p, err := storetest.OpenProposal(w.t.Context(), w.store, r, principalOf(merchant))
	if err == nil {
		_, err = w.store.AdvanceProposal(w.t.Context(), p.ID)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// asks proposes a payment of some USDT to an address outside.
func (w *reserve) asks(who person, amount string, changes map[string]any) *reply {
	body := map[string]any{"wallet_id": w.account.ID, "asset": "USDT", "amount": amount, "destination": onEthereum("2"), "reference": "invoice 7"}
	return w.do(post, proposalsPath, altered(body, changes), who.auth(), freshKey())
}

// verb sends a verb about a proposal.
func (w *reserve) verb(who person, id, verb string, body any) *reply {
	return w.do(post, proposalsPath+"/"+id+"/"+verb, body, who.auth(), freshKey())
}

func (w *reserve) status(id, want, ending string) {
	w.t.Helper()
	shown := w.do(get, proposalsPath+"/"+id, nil, w.boss.auth()).want(http.StatusOK).object()
	if at, _ := shown["ending"].(string); shown["status"] != want || at != ending {
		w.t.Fatalf("the proposal is %v (%v), to be %q, want %s, to be %q", shown["status"], shown["status_detail"], at, want, ending)
	}
}

// payload stores what owners sign for an approved proposal, whose recipient is cleared.
func (w *reserve) payload(id string) exchange.MultisigPayload {
	w.t.Helper()
	p, err := w.store.Proposal(w.t.Context(), store.Everything(), uuid.MustParse(id))
	if err == nil {
		err = w.store.RecordRecipient(w.t.Context(), p.PaymentID, []exchange.Screening{{Screener: "deny_list", Verdict: exchange.VerdictClear}})
	}
	y := storetest.PayloadOf(w.t, p)
	var open []exchange.MultisigPayload
	if err == nil {
		open, err = w.store.OpenPayloads(w.t.Context(), w.account.ID)
	}
	y.Sequence = uint64(3 + len(open))
	if err == nil {
		y, err = w.store.StorePayload(w.t.Context(), y)
	}
	if err != nil {
		w.t.Fatalf("store a payload: %v", err)
	}
	w.says = JointView{
		Account: p.Address, To: p.Destination, Amount: p.Amount, Digest: y.Digest, ID: y.JointID, FeeLimit: money.Zero(money.ETH),
		Body: []byte(`{"primaryType": "SafeTx", "message": {"nonce": "3"}}`),
	}
	return y
}

// A merchant proposes, an officer approves, an owner outside and an officer with a key of our key store sign, and an officer has it executed.
func TestProposalsAreApprovedSignedAndExecuted(t *testing.T) {
	w := newReserve(t)
	body := map[string]any{"wallet_id": w.account.ID, "asset": "USDT", "amount": "100", "destination": onEthereum("2"), "reference": "invoice 7"}
	opened := w.do(post, proposalsPath, body, w.vendor.auth(), withKey("pay")).want(http.StatusCreated)
	id := opened.text("id")
	if again := w.do(post, proposalsPath, body, w.vendor.auth(), withKey("pay")).want(http.StatusCreated); again.text("id") != id {
		t.Error("one key made two proposals")
	}
	if o := opened.object(); o["status"] != "approving" || o["amount"] != "100.000000" || o["required_approvals"] != 1.0 || o["required_signatures"] != 2.0 || o["proposer_id"] != w.vendor.ID.String() ||
		o["address"] != w.account.Address || o["reference"] != "invoice 7" || opened.header.Get("Location") != proposalsPath+"/"+id {
		t.Errorf("proposed %s", opened.body)
	}
	if none := w.do(get, proposalsPath+"/"+id+"/payload", nil, w.vendor.auth()).want(http.StatusOK).object(); len(none["payloads"].([]any)) != 0 {
		t.Errorf("before it is approved owners sign %v", none)
	}
	waits := w.do(get, "/api/v1/auth/approvals/pending", nil, w.boss.auth()).want(http.StatusOK).object()
	if list := waits["multisig_proposals"].([]any); len(list) != 1 || list[0].(map[string]any)["object_id"] != id || waits["total"] != 1.0 {
		t.Errorf("an officer waits for %v", waits)
	}
	w.verb(w.boss, id, "approve", map[string]any{"digest": strings.Repeat("0", 64)}).blames("/digest mismatch")
	w.verb(w.boss, id, "approve", nil).want(http.StatusOK)
	y := w.payload(id)
	read := w.do(get, proposalsPath+"/"+id+"/payload", nil, w.one.auth()).want(http.StatusOK)
	shown := read.object()["payloads"].([]any)[0].(map[string]any)
	if shown["id"] != y.ID.String() || shown["sequence"] != 3.0 || shown["typed_data"].(map[string]any)["primaryType"] != "SafeTx" || shown["digest"] != hex.EncodeToString(y.Digest) ||
		!strings.Contains(shown["says"].(string), "Pay 100.000000 USDT on ethereum from "+w.account.Address) || shown["confirmation_digest"] != y.Intent() || shown["raw_data"] != nil {
		t.Errorf("owners sign %s", read.body)
	}
	w.do(get, proposalsPath+"/"+id+"/payload", nil, w.one.auth(), header("If-None-Match", read.header.Get("ETag"))).want(http.StatusNotModified)
	outside := base64.StdEncoding.EncodeToString(signatureOf(w.account.Owners[0].Address))
	w.verb(w.vendor, id, "confirm", map[string]any{"payload_id": y.ID, "signature": "c0ffee"}).blames("/signature signature")
	signed := w.verb(w.vendor, id, "confirm", map[string]any{"payload_id": y.ID, "signature": outside}).want(http.StatusOK).object()
	if list := signed["signatures"].([]any); len(list) != 1 || list[0].(map[string]any)["owner"] != w.account.Owners[0].Address || list[0].(map[string]any)["held"] != false || signed["status"] != "signing" {
		t.Errorf("one owner signed: %v", signed)
	}
	if list := w.do(get, "/api/v1/auth/approvals/pending", nil, w.one.auth()).want(http.StatusOK).object()["multisig_payloads"].([]any); len(list) != 1 || list[0].(map[string]any)["digest"] != y.Intent() {
		t.Errorf("the officer's key may sign %v", list)
	}
	w.verb(w.one, id, "execute", nil).refused(exchange.CodeStateConflict)
	w.verb(w.boss, id, "confirm", map[string]any{"payload_id": y.ID, "digest": y.Intent()}).refused(exchange.CodeForbidden) // no owner
	w.verb(w.one, id, "confirm", map[string]any{"payload_id": y.ID, "digest": strings.Repeat("0", 64)}).blames("/digest mismatch")
	ready := w.verb(w.one, id, "confirm", map[string]any{"payload_id": y.ID, "digest": y.Intent()}).want(http.StatusOK).object()
	if list := ready["signatures"].([]any); len(list) != 2 || ready["status"] != "ready" || ready["approvals_given"] != 1.0 {
		t.Errorf("two owners signed: %v", ready)
	}
	w.verb(w.vendor, id, "execute", nil).refused(exchange.CodeForbidden)
	if done := w.verb(w.two, id, "execute", nil).want(http.StatusOK).object(); done["executed_by"] != w.two.ID.String() || done["status_detail"] != "signature" {
		t.Errorf("executed: %v", done)
	}
	list := w.do(get, proposalsPath+"?status=ready&network=ethereum&wallet_id="+w.account.ID.String()+"&proposer_id="+w.vendor.ID.String(), nil, w.boss.auth()).want(http.StatusOK).object()
	if list["total"] != 1.0 {
		t.Errorf("the proposals are %v", list)
	}
}

// A merchant reads proposals from wallets that are shared with it, without who of the staff decided and signed; others read nothing.
func TestProposalsAreReadWithoutTheStaff(t *testing.T) {
	w := newReserve(t)
	id := w.asks(w.one, "100", nil).want(http.StatusCreated).text("id")
	w.verb(w.boss, id, "approve", map[string]any{"note": "as agreed"}).want(http.StatusOK)
	y := w.payload(id)
	w.verb(w.one, id, "confirm", map[string]any{"payload_id": y.ID, "digest": y.Intent()}).want(http.StatusOK) // the proposer may sign
	sub, rival := w.person(exchange.RoleSubvendor, w.vendor.ID), w.person(exchange.RoleVendor)
	for _, who := range []person{w.vendor, sub} {
		for _, path := range []string{proposalsPath + "/" + id, proposalsPath, proposalsPath + "/" + id + "/payload"} {
			r := w.do(get, path, nil, who.auth()).want(http.StatusOK)
			for _, hidden := range []string{w.one.ID.String(), w.boss.ID.String(), "as agreed", y.Intent()} {
				if strings.Contains(string(r.body), hidden) {
					t.Errorf("a %s reads %q at %s: %s", who.Role, hidden, path, r.body)
				}
			}
		}
	}
	staff := w.do(get, proposalsPath+"/"+id, nil, w.person(exchange.RoleOTCOfficer).auth()).want(http.StatusOK)
	decided := staff.object()["approvals"].([]any)[0].(map[string]any)
	if staff.object()["proposer_id"] != w.one.ID.String() || decided["officer_id"] != w.boss.ID.String() || decided["note"] != "as agreed" || decided["action"] != "approve" {
		t.Errorf("staff read %s", staff.body)
	}
	for _, path := range []string{"", "/payload"} {
		w.do(get, proposalsPath+"/"+id+path, nil, rival.auth()).refused(exchange.CodeNotFound)
	}
	w.verb(rival, id, "cancel", nil).refused(exchange.CodeNotFound)
	w.verb(rival, id, "confirm", map[string]any{"payload_id": y.ID, "signature": "00"}).refused(exchange.CodeNotFound)
	w.asks(rival, "1", nil).blames("/wallet_id not_found")
	w.asks(sub, "1", nil).refused(exchange.CodeForbidden)
}

// What a proposal or a signature has wrong is named by field and rule.
func TestProposalsNameWhatIsWrong(t *testing.T) {
	w := newReserve(t)
	ask := func(changes map[string]any) *reply { return w.asks(w.vendor, "100", changes) }
	ask(map[string]any{"wallet_id": nil, "asset": nil, "amount": nil, "destination": nil}).blames("/asset required", "/wallet_id required", "/amount required", "/destination required")
	ask(map[string]any{"kind": "permissions", "amount": 5, "reference": strings.Repeat("x", 201)}).blames("/kind enum", "/amount type", "/reference too_long")
	ask(map[string]any{"wallet_id": newID()}).blames("/wallet_id not_found")
	ask(map[string]any{"destination": "0x12"}).blames("/destination address")
	ask(map[string]any{"amount": "1001"}).refused(exchange.CodeInsufficientFunds)
	w.do(post, proposalsPath, map[string]any{}, w.vendor.auth()).refused(exchange.CodeIdempotencyRequired)
	id := ask(nil).want(http.StatusCreated).text("id")
	w.verb(w.vendor, id, "approve", nil).refused(exchange.CodeForbidden)
	w.verb(w.boss, id, "reject", nil).blames("/note required")
	confirm := func(body map[string]any) *reply { return w.verb(w.one, id, "confirm", body) }
	confirm(map[string]any{}).blames("/payload_id required", "/signature required")
	confirm(map[string]any{"payload_id": newID(), "signature": "0x00", "digest": "0"}).blames("/digest conflict")
	confirm(map[string]any{"payload_id": newID(), "signature": "?"}).blames("/signature format")
	confirm(map[string]any{"payload_id": newID(), "signature": ""}).blames("/signature required")
	confirm(map[string]any{"payload_id": newID(), "digest": " "}).blames("/digest required")
	confirm(map[string]any{"payload_id": newID(), "signature": "0x00"}).blames("/payload_id not_found")
	w.verb(w.boss, id, "approve", nil).want(http.StatusOK)
	y := w.payload(id)
	w.verb(w.vendor, id, "confirm", map[string]any{"payload_id": y.ID, "digest": y.Intent()}).refused(exchange.CodeForbidden)
	for name, other := range map[string]func(*JointView){ // the bytes say another payment than the proposal
		"account": func(v *JointView) { v.Account = onEthereum("3") }, "recipient": func(v *JointView) { v.To = onEthereum("3") }, "amount": func(v *JointView) { v.Amount = usdt("99") },
		"digest": func(v *JointView) { v.Digest = []byte("other") }, "id": func(v *JointView) { v.ID = "other" },
	} {
		right := w.says
		other(&w.says)
		if r := w.do(get, proposalsPath+"/"+id+"/payload", nil, w.vendor.auth()); r.status != http.StatusInternalServerError {
			t.Errorf("with another %s owners sign %s", name, r.body)
		}
		w.says = right
	}
	delete(w.server.Joints, exchange.Ethereum)
	w.do(get, proposalsPath+"/"+id+"/payload", nil, w.vendor.auth()).refused(exchange.CodeUnsupported)
}

// A proposal ends by its proposer or by officers, with a payload only when that is proven impossible, and operators take a parked one on.
func TestProposalsEnd(t *testing.T) {
	w := newReserve(t)
	id := w.asks(w.vendor, "100", nil).want(http.StatusCreated).text("id")
	w.verb(w.vendor, id, "cancel", nil).want(http.StatusOK)
	w.status(id, "cancelled", "")
	w.flows.ended = append(w.flows.ended, "multisig-proposal:"+id)
	w.verb(w.boss, id, "cancel", nil).refused(exchange.CodeStateConflict)
	if p := w.verb(w.boss, id, "retry", map[string]any{}).refused(exchange.CodeStateConflict).problem(); !strings.Contains(p.Detail, "The flow of the proposal has ended") {
		t.Errorf("the retry of one that has ended is refused by %q", p.Detail)
	}

	id = w.asks(w.vendor, "100", nil).want(http.StatusCreated).text("id")
	w.verb(w.boss, id, "reject", map[string]any{"note": "unknown recipient"}).want(http.StatusOK)
	w.status(id, "rejected", "")

	id = w.asks(w.vendor, "100", nil).want(http.StatusCreated).text("id")
	w.verb(w.boss, id, "approve", nil).want(http.StatusOK)
	y := w.payload(id)
	w.verb(w.one, id, "cancel", nil).want(http.StatusOK)
	w.status(id, "signing", "cancelled")
	w.verb(w.one, id, "confirm", map[string]any{"payload_id": y.ID, "digest": y.Intent()}).refused(exchange.CodeStateConflict)
	if r := w.verb(w.boss, id, "retry", map[string]any{}).want(http.StatusAccepted); r.text("retry") != "requested" {
		t.Errorf("the retry answers %s", r.body)
	}
	w.verb(w.person(exchange.RoleOTCOfficer), id, "retry", map[string]any{}).refused(exchange.CodeForbidden)
}

// A token lets an officer decide about a proposal by a signal.
func TestProposalsAreDecidedBySignal(t *testing.T) {
	w := newReserve(t)
	opened := w.asks(w.vendor, "100", nil).want(http.StatusCreated)
	body := map[string]any{"object_type": "multisig_proposal", "object_id": opened.text("id"), "action": "approve", "amount": "100", "digest": opened.text("digest")}
	token := w.do(post, "/api/v1/auth/approvals/tokens", body, w.boss.auth()).want(http.StatusCreated)
	if token.text("workflow_id") != "multisig-proposal:"+opened.text("id") || token.text("signal") != "approve" {
		t.Errorf("the token is %s", token.body)
	}
	if _, err := w.store.DecideProposal(t.Context(), uuid.MustParse(opened.text("id")), exchange.Approve, token.text("token")); err != nil {
		t.Errorf("the token decides nothing: %v", err)
	}
	w.do(post, "/api/v1/auth/approvals/tokens", altered(body, map[string]any{"object_id": newID()}), w.boss.auth()).blames("/object_id not_found")
}
