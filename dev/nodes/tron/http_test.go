package tron

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
)

// ask posts to the HTTP API, as tronweb does.
func (b *bench) ask(path, body string) map[string]any {
	b.t.Helper()
	r, err := http.Post("http://"+b.HTTPAddr()+path, "application/json", strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	out := map[string]any{}
	b.decode(r, &out)
	return out
}

func TestHTTPShowsBlocksAccountsAndTransactions(t *testing.T) {
	b := newBench(t)
	ab := b.funded(5_000_000, "alice", "bob")
	info := b.mined(b.transferToken(ab[0], ab[1], USDTAddress, 9), ab[0])
	head := b.Head()
	now := b.ask("/wallet/getnowblock", "{}")
	if now["blockID"] != head.ID.String() || len(now["transactions"].([]any)) != 1 {
		t.Errorf("getnowblock %v", now)
	}
	bare := b.ask("/wallet/getblock", `{"detail":false}`)
	if bare["blockID"] != head.ID.String() || bare["transactions"] != nil {
		t.Errorf("getblock %v", bare)
	}
	first := b.ask("/wallet/getblockbynum", `{"num":0}`)["block_header"].(map[string]any)["raw_data"].(map[string]any)
	if first["number"] != float64(0) {
		t.Errorf("genesis header %v", first)
	}
	hexadecimal, base58 := ab[0].addr.Hex(), ab[0].String()
	if a := b.ask("/wallet/getaccount", `{"address":"`+hexadecimal+`"}`); a["address"] != hexadecimal {
		t.Errorf("getaccount %v", a)
	}
	if a := b.ask("/wallet/getaccount", `{"address":"`+base58+`","visible":true}`); a["address"] != base58 {
		t.Errorf("getaccount, visible: %v", a)
	}
	for _, wrong := range []string{`{"address":"` + base58 + `"}`, `{"address":"` + hexadecimal + `","visible":true}`} {
		if a := b.ask("/wallet/getaccount", wrong); a["address"] != nil || a["Error"] == nil {
			t.Errorf("%s: %v", wrong, a)
		}
	}
	got := b.ask("/wallet/gettransactioninfobyid", fmt.Sprintf(`{"value":"%x"}`, info.Id))
	log := got["log"].([]any)[0].(map[string]any)
	if log["address"] != mustAddress(USDTAddress).Hex()[2:] || got["receipt"].(map[string]any)["result"] != "SUCCESS" {
		t.Errorf("gettransactioninfobyid %v", got)
	}
	visible := b.ask("/wallet/gettransactioninfobyid", fmt.Sprintf(`{"value":"%x","visible":true}`, info.Id))
	if l := visible["log"].([]any)[0].(map[string]any); l["address"] != USDTAddress || visible["contract_address"] != USDTAddress {
		t.Errorf("gettransactioninfobyid, visible: %v", visible)
	}
	tx := b.ask("/wallet/gettransactionbyid", fmt.Sprintf(`{"value":"%x","visible":true}`, info.Id))
	contract := tx["raw_data"].(map[string]any)["contract"].([]any)[0].(map[string]any)["parameter"].(map[string]any)["value"].(map[string]any)
	if tx["visible"] != true || contract["owner_address"] != base58 || contract["contract_address"] != USDTAddress {
		t.Errorf("gettransactionbyid, visible: %v", tx)
	}
	if solid := b.ask("/walletsolidity/gettransactioninfobyid", fmt.Sprintf(`{"value":"%x"}`, info.Id)); len(solid) != 0 {
		t.Errorf("not final, yet %v", solid)
	}
}

func TestHTTPBuildsSignsAndBroadcasts(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	built := b.ask("/wallet/createtransaction", fmt.Sprintf(`{"owner_address":"%s","to_address":"%s","amount":5}`, ab[0].addr.Hex(), ab[1].addr.Hex()))
	text, err := json.Marshal(built)
	if err != nil {
		t.Fatal(err)
	}
	args, err := readArguments(httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	tx := b.signed(args.transaction(), ab[0])
	if args.err != nil || TransactionID(tx).String() != built["txID"] {
		t.Fatalf("%v, id %s, the node says %v", args.err, TransactionID(tx), built["txID"])
	}
	built["signature"] = []string{hex.EncodeToString(tx.Signature[0])}
	text, err = json.Marshal(built)
	if err != nil {
		t.Fatal(err)
	}
	if r := b.ask("/wallet/broadcasttransaction", string(text)); r["result"] != true || r["txid"] != built["txID"] {
		t.Fatalf("broadcasttransaction %v", r)
	}
	r := b.ask("/wallet/broadcasthex", fmt.Sprintf(`{"transaction":"%x"}`, encode(tx)))
	message, err := hex.DecodeString(fmt.Sprint(r["message"]))
	if err != nil || r["code"] != "DUP_TRANSACTION_ERROR" || string(message) != "Dup transaction." {
		t.Errorf("broadcasthex %v", r)
	}
	b.block()
	b.receipt(TransactionID(tx))
}

// Every kind of transaction that the node writes, it reads again to the same bytes, in both forms.
func TestHTTPReadsWhatItWrites(t *testing.T) {
	b := newBench(t)
	abc := b.funded(5_000_000, "alice", "bob", "carol")
	update := b.update(twoOfThree(abc[0], abc...))
	memo := under(b.transferTRX(abc[0], abc[1], 1), 2) // no float holds such an amount
	memo.RawData.Contract[0].GetParameter().Value = encode(&core.TransferContract{OwnerAddress: abc[0].addr[:], ToAddress: abc[1].addr[:], Amount: 1<<60 + 1})
	memo.RawData.Data = []byte("a memo")
	for _, tx := range []*core.Transaction{update, memo, b.transferToken(abc[0], abc[1], USDTAddress, 5)} {
		for _, visible := range []bool{false, true} {
			text, err := json.Marshal(transactionJSON(b.signed(cloneTransaction(tx), abc[0]), visible))
			if err != nil {
				t.Fatal(err)
			}
			args, err := readArguments(httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(text)))
			if err != nil {
				t.Fatal(err)
			}
			if got := args.transaction(); args.err != nil || TransactionID(got) != TransactionID(tx) || len(got.Signature) != 1 {
				t.Errorf("visible %t: %v\n%s", visible, args.err, text)
			}
		}
	}
}

func TestHTTPConstantCalls(t *testing.T) {
	b := newBench(t)
	alice := b.funded(5_000_000, "alice")[0]
	call := func(method, selector, parameter string) map[string]any {
		return b.ask(method, fmt.Sprintf(`{"owner_address":"%s","contract_address":"%s","function_selector":"%s","parameter":"%s","visible":true}`, alice, USDTAddress, selector, parameter))
	}
	word := strings.Repeat("0", 24) + alice.addr.Hex()[2:]
	for _, service := range []string{"/wallet", "/walletsolidity"} {
		if _, err := b.Solidify(); err != nil {
			t.Fatal(err)
		}
		x := call(service+"/triggerconstantcontract", "balanceOf(address)", word)
		if list, _ := x["constant_result"].([]any); len(list) != 1 || list[0] != fmt.Sprintf("%064x", 5_000_000) {
			t.Errorf("%s: %v", service, x)
		}
	}
	transfer := word + strings.Repeat("0", 63) + "1"
	if e := call("/wallet/estimateenergy", "transfer(address,uint256)", transfer); e["energy_required"] == nil {
		t.Errorf("estimateenergy %v", e)
	}
	simulated := call("/wallet/triggerconstantcontract", "transfer(address,uint256)", strings.Repeat("0", 62)+"07"+strings.Repeat("0", 63)+"1")
	if logs, _ := simulated["logs"].([]any); len(logs) != 1 || logs[0].(map[string]any)["address"] != USDTAddress {
		t.Errorf("a simulated transfer has the logs %v", simulated["logs"])
	}
	reverted := call("/wallet/triggerconstantcontract", "pause()", "")
	ret := reverted["transaction"].(map[string]any)["ret"].([]any)[0].(map[string]any)
	if reverted["result"].(map[string]any)["result"] != true || ret["ret"] != "FAILED" {
		t.Errorf("a reverted constant call %v", reverted)
	}
}

// With "visible", a refusal is text and not hexadecimal digits.
func TestHTTPMessagesAreVisible(t *testing.T) {
	b := newBench(t)
	body := `{"owner_address":"` + newActor("poor").String() + `","contract_address":"` + newActor("no contract").String() + `","function_selector":"x()","visible":true}`
	x := b.ask("/wallet/triggerconstantcontract", body)
	if text := x["result"].(map[string]any)["message"]; text != "Contract validate error : Smart contract is not exist." {
		t.Errorf("%v", x)
	}
}

func TestHTTPBuildsPermissionUpdates(t *testing.T) {
	b := newBench(t)
	abc := b.funded(0, "alice", "bob", "carol")
	m := toJSON(twoOfThree(abc[0], abc...), true)
	m["visible"] = true
	body, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	built := b.ask("/wallet/accountpermissionupdate", string(body))
	want := b.update(twoOfThree(abc[0], abc...)).RawData.Contract[0]
	text, err := json.Marshal(built)
	if err != nil {
		t.Fatal(err)
	}
	args, err := readArguments(httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	tx := args.transaction()
	if args.err != nil || !bytes.Equal(tx.RawData.Contract[0].Parameter.Value, want.Parameter.Value) {
		t.Fatalf("%v, %v", args.err, built)
	}
	b.mined(tx, abc[0])
	m["actives"] = []any{}
	if body, err = json.Marshal(m); err != nil {
		t.Fatal(err)
	}
	if x := b.ask("/wallet/accountpermissionupdate", string(body)); !strings.Contains(fmt.Sprint(x["Error"]), "active permission is missed") {
		t.Errorf("%v", x)
	}
}

// events gets a list of events, and the whole answer.
func (b *bench) events(path string) (list []map[string]any, whole map[string]any) {
	b.t.Helper()
	r, err := http.Get("http://" + b.HTTPAddr() + path)
	if err != nil {
		b.t.Fatal(err)
	}
	whole = map[string]any{}
	b.decode(r, &whole)
	data, _ := whole["data"].([]any)
	for _, e := range data {
		list = append(list, e.(map[string]any))
	}
	return list, whole
}

func TestEventsAreListed(t *testing.T) {
	b := newBench(t)
	ab := b.funded(5_000_000, "alice", "bob")
	info := b.mined(b.transferToken(ab[0], ab[1], USDTAddress, 9), ab[0])
	approved := b.mined(b.trigger(ab[0], USDTAddress, calldata("approve(address,uint256)", addressWord(ab[1].addr), number(3))), ab[0])
	byTx, _ := b.events(fmt.Sprintf("/v1/transactions/%x/events", info.Id))
	if len(byTx) != 1 {
		t.Fatalf("%v", byTx)
	}
	e, result := byTx[0], byTx[0]["result"].(map[string]any)
	from, to := "0x"+ab[0].addr.Hex()[2:], "0x"+ab[1].addr.Hex()[2:]
	if e["event_name"] != "Transfer" || e["contract_address"] != USDTAddress || e["block_number"] != float64(info.BlockNumber) || e["_unconfirmed"] != true ||
		result["from"] != from || result["0"] != from || result["to"] != to || result["value"] != "9" || e["result_type"].(map[string]any)["value"] != "uint256" {
		t.Errorf("%v", e)
	}
	contract := "/v1/contracts/" + USDTAddress + "/events"
	count := func(query string, want int) []map[string]any {
		t.Helper()
		list, whole := b.events(contract + query)
		if len(list) != want || whole["success"] != true {
			t.Errorf("%s: %d events, want %d: %v", query, len(list), want, whole)
		}
		return list
	}
	if all := count("", 4); all[0]["event_name"] != "Approval" || all[0]["block_number"] != float64(approved.BlockNumber) {
		t.Errorf("not the newest first: %v", all)
	}
	count("?event_name=Approval", 1)
	count("?only_confirmed=true", 0)
	count(fmt.Sprintf("?block_number=%d", info.BlockNumber), 1)
	first, whole := b.events(contract + "?limit=3")
	rest := count("?limit=3&fingerprint="+fmt.Sprint(whole["meta"].(map[string]any)["fingerprint"]), 1)
	if len(first) != 3 || rest[0]["transaction_id"] == first[2]["transaction_id"] && rest[0]["event_index"] == first[2]["event_index"] {
		t.Errorf("pages %v and %v", first, rest)
	}
	if newest, _ := b.events("/v1/blocks/latest/events"); len(newest) != 1 || newest[0]["event_name"] != "Approval" {
		t.Errorf("%v", newest)
	}
	if _, err := b.Solidify(); err != nil {
		t.Fatal(err)
	}
	count("?only_confirmed=true", 4)
	count("?only_unconfirmed=true", 0)
	for _, bad := range []string{"/v1/contracts/x/events", "/v1/blocks/x/events", contract + "?limit=0", contract + "?limit=201", "/v1/accounts/x"} {
		if _, whole := b.events(bad); whole["success"] != false || whole["error"] == "" {
			t.Errorf("%s: %v", bad, whole)
		}
	}
}

func TestHTTPRefusesNonsense(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct{ path, body, text string }{
		{"/wallet/getaccount", `{"address":"T123"}`, "address"},
		{"/wallet/getblockbynum", `{"num":"x"}`, "num"},
		{"/wallet/gettransactionbyid", `{"value":"zz"}`, "value"},
		{"/wallet/broadcasttransaction", `{"raw_data_hex":"ff"}`, "raw_data"},
		{"/wallet/broadcasttransaction", `{"raw_data":{"timestamp":"x"}}`, "timestamp"},
		{"/wallet/broadcasttransaction", `{"raw_data":{"contract":{}}}`, "contract"},
		{"/wallet/broadcasttransaction", `{"raw_data":{"contract":[{"type":"NoContract"}]}}`, "NoContract"},
		{"/wallet/broadcasttransaction", `{"raw_data":{"contract":[{"parameter":{"type_url":"type.googleapis.com/no.such"}}]}}`, "type_url"},
		{"/wallet/broadcasttransaction", `{"raw_data":{"ref_block_bytes":"zz"}}`, "ref_block_bytes"},
		{"/wallet/broadcasttransaction", `{"raw_data":{"expiration":{}}}`, "expiration"},
		{"/wallet/broadcasttransaction", `{"raw_data":{"fee_limit":true}}`, "fee_limit"},
		{"/wallet/broadcasttransaction", `{"raw_data":{"fee_limit":1.5}}`, "fee_limit"},
		{"/wallet/getnowblock", `{`, "parse the request"},
		{"/wallet/getblock", `{"id_or_num":"x"}`, "id_or_num"},
		{"/wallet/nosuch", `{}`, "no such method"},
		{"/walletsolidity/broadcasthex", `{}`, "no such method"},
		{"/admin/getnowblock", `{}`, "no such method"},
	} {
		if out := b.ask(c.path, c.body); !strings.Contains(fmt.Sprint(out["Error"]), c.text) {
			t.Errorf("%s %s: %v", c.path, c.body, out)
		}
	}
}
