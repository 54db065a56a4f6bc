package tron

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
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
	for _, form := range []string{ab[0].String(), ab[0].addr.Hex()} {
		if a := b.ask("/wallet/getaccount", `{"address":"`+form+`"}`); a["address"] != ab[0].addr.Hex() {
			t.Errorf("getaccount %v", a)
		}
	}
	got := b.ask("/wallet/gettransactioninfobyid", fmt.Sprintf(`{"value":"%x"}`, info.Id))
	log := got["log"].([]any)[0].(map[string]any)
	if log["address"] != mustAddress(USDTAddress).Hex()[2:] || got["receipt"].(map[string]any)["result"] != "SUCCESS" {
		t.Errorf("gettransactioninfobyid %v", got)
	}
	if solid := b.ask("/walletsolidity/gettransactioninfobyid", fmt.Sprintf(`{"value":"%x"}`, info.Id)); len(solid) != 0 {
		t.Errorf("not final, yet %v", solid)
	}
}

func TestHTTPBuildsSignsAndBroadcasts(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	built := b.ask("/wallet/createtransaction", fmt.Sprintf(`{"owner_address":"%s","to_address":"%s","amount":5}`, ab[0].addr.Hex(), ab[1]))
	text, err := json.Marshal(built)
	if err != nil {
		t.Fatal(err)
	}
	var fields object
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatal(err)
	}
	args := &arguments{fields: fields}
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

func TestHTTPConstantCalls(t *testing.T) {
	b := newBench(t)
	alice := b.funded(5_000_000, "alice")[0]
	call := func(method, selector, parameter string) map[string]any {
		return b.ask(method, fmt.Sprintf(`{"owner_address":"%s","contract_address":"%s","function_selector":"%s","parameter":"%s"}`, alice, USDTAddress, selector, parameter))
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
	reverted := call("/wallet/triggerconstantcontract", "pause()", "")
	ret := reverted["transaction"].(map[string]any)["ret"].([]any)[0].(map[string]any)
	if reverted["result"].(map[string]any)["result"] != true || ret["ret"] != "FAILED" {
		t.Errorf("a reverted constant call %v", reverted)
	}
}

func TestHTTPRefusesNonsense(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct{ path, body, text string }{
		{"/wallet/getaccount", `{"address":"T123"}`, "address"},
		{"/wallet/getblockbynum", `{"num":"x"}`, "num"},
		{"/wallet/gettransactionbyid", `{"value":"zz"}`, "value"},
		{"/wallet/broadcasttransaction", `{"raw_data_hex":"ff"}`, "raw_data_hex"},
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
