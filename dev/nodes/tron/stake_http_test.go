package tron

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
	"google.golang.org/protobuf/proto"
)

// built signs what a route built, and mines it.
func (b *bench) builtBy(path string, by actor, fields string) *core.TransactionInfo {
	b.t.Helper()
	built := b.ask(path, `{"owner_address":"`+by.String()+`","visible":true`+fields+`}`)
	raw, err := hex.DecodeString(fmt.Sprint(built["raw_data_hex"]))
	if err != nil || built["txID"] == nil {
		b.t.Fatalf("%s: %v", path, built)
	}
	tx := &core.Transaction{RawData: &core.TransactionRaw{}}
	if err := proto.Unmarshal(raw, tx.RawData); err != nil {
		b.t.Fatal(err)
	}
	return b.mined(tx, by)
}

func (b *bench) says(path, body, want string) {
	b.t.Helper()
	got, err := json.Marshal(b.ask(path, body))
	if err != nil {
		b.t.Fatal(err)
	}
	if string(got) != want {
		b.t.Errorf("%s %s: %s, want %s", path, body, got, want)
	}
}

// TestHTTPStakes stakes, lends the stake, takes it back and withdraws it, as wallets do, with addresses in base58check.
func TestHTTPStakes(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	alice, bob := ab[0], ab[1]
	of := func(a actor) string { return `{"owner_address":"` + a.String() + `","visible":true}` }
	b.builtBy("/wallet/freezebalancev2", alice, `,"frozen_balance":100000000,"resource":"ENERGY"`)
	b.says("/wallet/getcandelegatedmaxsize", `{"owner_address":"`+alice.String()+`","type":1,"visible":true}`, `{"max_size":100000000}`)
	b.builtBy("/wallet/delegateresource", alice, `,"balance":40000000,"resource":"ENERGY","receiver_address":"`+bob.String()+`"`)
	lent := fmt.Sprintf(`{"delegatedResource":[{"from":"%s","frozen_balance_for_energy":40000000,"to":"%s"}]}`, alice, bob)
	pair := fmt.Sprintf(`{"fromAddress":"%s","toAddress":"%s","visible":true}`, alice, bob)
	for _, service := range []string{"/wallet", "/walletsolidity"} {
		b.says(service+"/getdelegatedresourcev2", pair, lent)
	}
	b.says("/wallet/getdelegatedresourceaccountindexv2", `{"value":"`+alice.String()+`","visible":true}`,
		fmt.Sprintf(`{"account":"%s","toAccounts":["%s"]}`, alice, bob))
	b.says("/wallet/getdelegatedresourceaccountindexv2", `{"value":"`+bob.addr.Hex()+`"}`,
		fmt.Sprintf(`{"account":"%s","fromAccounts":["%s"]}`, bob.addr.Hex(), alice.addr.Hex()))
	b.builtBy("/wallet/undelegateresource", alice, `,"balance":40000000,"resource":"ENERGY","receiver_address":"`+bob.String()+`"`)
	b.says("/wallet/getdelegatedresourcev2", pair, `{}`)

	b.builtBy("/wallet/unfreezebalancev2", alice, `,"unfreeze_balance":30000000,"resource":"ENERGY"`)
	b.says("/wallet/getavailableunfreezecount", of(alice), `{"count":31}`)
	b.says("/wallet/getcanwithdrawunfreezeamount", of(alice), `{}`)
	later := b.Head().Time.Add(14 * 24 * time.Hour).UnixMilli()
	b.says("/wallet/getcanwithdrawunfreezeamount", fmt.Sprintf(`{"owner_address":"%s","timestamp":%d,"visible":true}`, alice, later), `{"amount":30000000}`)
	if err := b.AdvanceTime(15 * 24 * time.Hour); err != nil {
		t.Fatal(err)
	}
	b.block()
	b.says("/wallet/getcanwithdrawunfreezeamount", of(alice), `{"amount":30000000}`)
	info := b.builtBy("/wallet/unfreezebalancev2", alice, `,"unfreeze_balance":20000000,"resource":"ENERGY"`)
	if info.WithdrawExpireAmount != 30_000_000 {
		t.Errorf("the next one withdraws %d, want what has waited long enough", info.WithdrawExpireAmount)
	}
	info = b.builtBy("/wallet/cancelallunfreezev2", alice, "")
	if info.WithdrawExpireAmount != 0 || info.CancelUnfreezeV2Amount["ENERGY"] != 20_000_000 {
		t.Errorf("cancelled: %v", info)
	}
	shown, err := json.Marshal(b.ask("/wallet/gettransactioninfobyid", fmt.Sprintf(`{"value":"%x"}`, info.Id))["cancel_unfreezeV2_amount"])
	if want := `[{"key":"BANDWIDTH","value":0},{"key":"ENERGY","value":20000000},{"key":"TRON_POWER","value":0}]`; err != nil || string(shown) != want {
		t.Errorf("shown as %s, %v", shown, err)
	}
	if refused := b.ask("/wallet/cancelallunfreezev2", of(alice)); refused["Error"] != "class org.tron.core.exception.ContractValidateException : Contract validate error : No unfreezeV2 list to cancel" {
		t.Errorf("cancelled twice: %v", refused)
	}
	b.builtBy("/wallet/unfreezebalancev2", alice, `,"unfreeze_balance":70000000,"resource":"ENERGY"`)
	if err := b.AdvanceTime(15 * 24 * time.Hour); err != nil {
		t.Fatal(err)
	}
	b.block()
	if info := b.builtBy("/wallet/withdrawexpireunfreeze", alice, ""); info.WithdrawExpireAmount != 70_000_000 {
		t.Errorf("withdrawn: %v", info)
	}
}

// TestHTTPSmallReads asks what wallets ask in passing.
func TestHTTPSmallReads(t *testing.T) {
	b := newBench(t)
	ab := b.funded(0, "alice", "bob")
	b.says("/wallet/getenergyprices", `{}`, `{"prices":"0:100"}`)
	b.says("/wallet/getbandwidthprices", `{}`, `{"prices":"0:1000"}`)
	b.says("/wallet/getmemofee", `{}`, `{"prices":"0:1000000"}`)
	b.says("/wallet/listnodes", `{}`, `{}`)
	b.says("/wallet/validateaddress", `{"address":"`+ab[0].String()+`"}`, `{"message":"Base58check format","result":true}`)
	b.says("/wallet/validateaddress", `{"address":"`+ab[0].addr.Hex()+`"}`, `{"message":"Hex string format","result":true}`)
	b.says("/wallet/validateaddress", `{"address":"T"}`, `{"message":"Invalid address","result":false}`)
	if list, _ := b.ask("/wallet/listwitnesses", `{"visible":true}`)["witnesses"].([]any); len(list) != 27 || list[0].(map[string]any)["address"].(string)[0] != 'T' {
		t.Errorf("witnesses %v", list)
	}
	if net := b.ask("/wallet/getaccountnet", `{"address":"`+ab[0].String()+`","visible":true}`); net["freeNetLimit"] != float64(600) {
		t.Errorf("getaccountnet %v", net)
	}
	tx := b.signed(b.transferTRX(ab[0], ab[1], 7), ab[0])
	id := TransactionID(tx).String()
	b.says("/wallet/getpendingsize", `{}`, `{"pendingSize":0}`)
	b.ask("/wallet/broadcasthex", fmt.Sprintf(`{"transaction":"%x"}`, encode(tx)))
	b.says("/wallet/getpendingsize", `{}`, `{"pendingSize":1}`)
	b.says("/wallet/gettransactionlistfrompending", `{}`, `{"txId":["`+id+`"]}`)
	if got := b.ask("/wallet/gettransactionfrompending", `{"value":"`+id+`"}`); got["txID"] != id {
		t.Errorf("pending %v", got)
	}
	number := b.block().Number
	b.says("/wallet/gettransactioncountbyblocknum", fmt.Sprintf(`{"num":%d}`, number), `{"count":1}`)
	b.says("/walletsolidity/gettransactioncountbyblocknum", fmt.Sprintf(`{"num":%d}`, number), `{"count":-1}`)
	if got := b.ask("/walletsolidity/getpendingsize", `{}`); got["Error"] == nil {
		t.Errorf("a solid node has no pool: %v", got)
	}
}
