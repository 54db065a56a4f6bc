package api

import (
	"net/http"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

// An exception about crypto shows where the money is and how it arrived; for the wrong network, also whose address was
// used. The refund goes to an address on the network where the money is.
func TestExceptionsShowWhereTheCryptoIs(t *testing.T) {
	const (
		meant       = "0xa614f803B6FD780986A42c78Ec9c7f77e6DeD13C"
		counterpart = "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t" // the same account on TRON
		payer       = "Tstranger0000000000000000000000000"
	)
	e := start(t)
	ctx, officer := t.Context(), e.person(exchange.RoleTreasury)
	request := exchange.EscrowWallet(newID(), exchange.Ethereum)
	_, err := storetest.CreateWallet(ctx, e.store, request, meant, exchange.SealedKey{
		WalletID: request.ID, Ciphertext: []byte("sealed"), MasterKey: "test", PublicKey: []byte("public"), Algorithm: "secp256k1",
	})
	if err == nil {
		_, err = e.store.StartDeposits(ctx, exchange.Tron, exchange.ChainBlock{Number: 100, ID: "b100", Time: time.Now().UTC()})
	}
	if err == nil {
		_, err = e.store.RecordFinalBlock(ctx, exchange.BlockScan{
			Network: exchange.Tron, Block: exchange.ChainBlock{Number: 101, ID: "b101", Parent: "b100", Time: time.Now().UTC()},
			Movements: []exchange.ChainMovement{{TxID: "tx", From: payer, To: counterpart, Amount: money.Must(money.USDT, "7")}},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	e.reconcile(e.wallet(e.person(exchange.RoleCustomer)))
	const list = "/api/v1/auth/payment-exceptions"
	one := func(query string) map[string]any {
		t.Helper()
		all := e.do(get, list+query, nil, officer.auth()).want(http.StatusOK).object()["payment_exceptions"].([]any)
		if len(all) != 1 {
			t.Fatalf("%d exceptions", len(all))
		}
		return all[0].(map[string]any)
	}
	x := one("?kind=wrong_network")
	w := e.do(get, "/api/v1/auth/wallets?purpose=counterpart", nil, officer.auth()).want(http.StatusOK).object()["wallets"].([]any)[0].(map[string]any)
	if x["network"] != "tron" || x["tx_hash"] != "tx" || x["from_address"] != payer || x["address"] != counterpart || x["wallet_id"] != w["id"] ||
		x["chain_deposit_id"] == nil || x["order_id"] != nil || x["amount"] != "7.000000" || w["purpose"] != "counterpart" || w["address"] != counterpart {
		t.Errorf("the exception is %v, the wallet %v", x, w)
	}
	if of := x["meant_for"].(map[string]any); of["wallet_id"] != request.ID.String() || of["network"] != "ethereum" || of["address"] != meant {
		t.Errorf("it was meant for %v", of)
	}
	if d := one("?kind=reconciliation"); d["network"] != "tron" || d["wallet_id"] == nil || d["address"] == nil || d["tx_hash"] != nil || d["meant_for"] != nil {
		t.Errorf("the difference is %v", d)
	}
	path := list + "/" + x["id"].(string)
	e.do(post, path+"/refund", map[string]any{"note": "mixed up"}, officer.auth(), freshKey()).blames("/address required")
	e.do(post, path+"/refund", map[string]any{"note": "mixed up", "address": meant}, officer.auth(), freshKey()).blames("/address address")
	e.do(post, "/api/v1/auth/wallets/provision", map[string]any{"network": "tron", "asset": "USDT", "purpose": "counterpart"}, e.person(exchange.RoleAdmin).auth(), freshKey()).
		blames("/purpose enum")
	done := e.do(post, path+"/write-off", map[string]any{"note": "nobody answers"}, officer.auth(), freshKey()).want(http.StatusOK).object()
	if done["status"] != "written_off" || done["network"] != "tron" || done["meant_for"] == nil {
		t.Errorf("settled it is %v", done)
	}
	if n := e.flows.asked("keep " + x["id"].(string) + " on tron"); n != 1 {
		t.Errorf("the way to the treasury was asked for %d times", n)
	}
}
