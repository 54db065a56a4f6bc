package api

import (
	"net/http"
	"slices"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

const escrowPath = "/api/v1/auth/escrow-wallets"

// escrow adds an address to the escrow pool of TRON.
func (e *env) escrow() uuid.UUID {
	e.t.Helper()
	id := newID()
	key := exchange.SealedKey{WalletID: id, Ciphertext: []byte("sealed"), MasterKey: "local:test", PublicKey: make([]byte, 33), Algorithm: "secp256k1"}
	if _, err := storetest.CreateWallet(e.t.Context(), e.store, exchange.EscrowWallet(id, exchange.Tron), fakeAddress(id), key); err != nil {
		e.t.Fatal(err)
	}
	return id
}

// Staff see every address of the pool with its balances, and find those of a network or a status.
func TestEscrowPoolIsRead(t *testing.T) {
	e := start(t)
	officer := e.person(exchange.RoleOTCOfficer)
	ids := []uuid.UUID{e.escrow(), e.escrow()}
	for query, want := range map[string]int{"": 2, "?network=tron": 2, "?network=solana": 0, "?status=free": 2, "?status=leased": 0, "?page_id=2&page_size=1": 1} {
		list := e.do(get, escrowPath+query, nil, officer.auth()).want(http.StatusOK).object()["escrow_wallets"].([]any)
		if len(list) != want {
			t.Errorf("%s: %d addresses", query, len(list))
		}
	}
	a := e.do(get, escrowPath+"/"+ids[0].String(), nil, officer.auth()).want(http.StatusOK).object()
	balances := a["balances"].(map[string]any)
	if a["id"] != ids[0].String() || a["wallet_id"] != a["id"] || a["network"] != "tron" || a["status"] != "free" || a["trouble"] != nil || a["order_id"] != nil ||
		len(balances) != 3 || balances["USDT"] != "0.000000" {
		t.Errorf("the address is %v", a)
	}
	e.do(get, escrowPath+"?network=bitcoin&status=gone", nil, officer.auth()).blames("query/network enum", "query/status enum")
	wallet := e.wallet(e.person(exchange.RoleCustomer))
	e.do(get, escrowPath+"/"+wallet.ID.String(), nil, officer.auth()).refused(exchange.CodeNotFound)
}

// An admin requests addresses once, however often the request arrives, and not beyond the policy.
func TestEscrowPoolGrowsByRequest(t *testing.T) {
	e := start(t)
	admin := e.person(exchange.RoleAdmin)
	e.do(patch, escrowPath+"/policy", map[string]any{"network": "tron", "keep_free": 0, "most": 3}, admin.auth()).want(http.StatusOK)
	ask := func(count int, key string) *reply {
		return e.do(post, escrowPath, map[string]any{"network": "tron", "count": count}, admin.auth(), withKey(key))
	}
	first := ask(2, "two").want(http.StatusAccepted).object()
	again := ask(2, "two").want(http.StatusAccepted).object()
	if wallets := first["wallet_ids"].([]any); len(wallets) != 2 || !slices.Equal(wallets, again["wallet_ids"].([]any)) || first["most"] != 3.0 {
		t.Errorf("asked for %v, and again for %v", first, again)
	}
	ask(2, "more").refused(exchange.CodeLimitReached)
	ask(1, "last").want(http.StatusAccepted)
	e.do(post, escrowPath, map[string]any{"network": "tron", "count": 51, "purpose": "gas"}, admin.auth(), withKey("many")).blames("/count out_of_range", "/purpose unknown_field")
	e.do(post, escrowPath, map[string]any{}, admin.auth(), withKey("none")).blames("/network required", "/count required")
}

func TestEscrowAddressIsSwitchedOffAndOn(t *testing.T) {
	e := start(t)
	admin := e.person(exchange.RoleAdmin)
	path := escrowPath + "/" + e.escrow().String()
	change := func(body map[string]any) *reply { return e.do(patch, path, body, admin.auth()) }
	change(map[string]any{"status": "disabled"}).blames("/note required")
	change(map[string]any{"note": "its key was shown"}).blames("/note forbidden")
	change(map[string]any{}).blames(" required")
	change(map[string]any{"status": "leased"}).blames("/status enum")
	off := change(map[string]any{"status": "disabled", "note": "its key was shown", "label": "shelf"}).want(http.StatusOK).object()
	if off["status"] != "disabled" || off["note"] != "its key was shown" || off["label"] != "shelf" {
		t.Errorf("switched off it is %v", off)
	}
	on := change(map[string]any{"status": "free", "label": ""}).want(http.StatusOK).object()
	if on["status"] != "free" || on["note"] != nil || on["label"] != nil {
		t.Errorf("switched on it is %v", on)
	}
}

func TestEscrowPolicyIsChanged(t *testing.T) {
	e := start(t)
	admin, treasurer := e.person(exchange.RoleAdmin), e.person(exchange.RoleTreasury)
	change := func(body map[string]any) *reply { return e.do(patch, escrowPath+"/policy", body, admin.auth()) }
	changed := change(map[string]any{"network": "solana", "rest_seconds": 700000, "idle_rest_seconds": 30000, "user_percent": 20}).want(http.StatusOK).object()
	if changed["rest_seconds"] != 700000.0 || changed["idle_rest_seconds"] != 30000.0 || changed["user_percent"] != 20.0 || changed["keep_free"] != 20.0 || changed["most"] != 500.0 || changed["updated_by"] != admin.ID.String() {
		t.Errorf("changed to %v", changed)
	}
	waits := change(map[string]any{"network": "solana", "rest_seconds": 600, "keep_free": 30}).want(http.StatusAccepted).object()["changes"].([]any)
	if c := waits[0].(map[string]any); len(waits) != 1 || c["kind"] != "escrow_policy" {
		t.Errorf("%v wait", waits)
	}
	change(map[string]any{"network": "solana", "rest_seconds": 599, "idle_rest_seconds": 599, "user_percent": 101, "most": 0, "keep_free": 1001}).blames(
		"/keep_free out_of_range", "/most out_of_range", "/user_percent out_of_range", "/rest_seconds out_of_range", "/idle_rest_seconds out_of_range")
	change(map[string]any{"network": "solana", "keep_free": 501}).blames("/keep_free out_of_range")
	all := e.do(get, escrowPath+"/policy", nil, treasurer.auth()).want(http.StatusOK).object()["policies"].([]any)
	if len(all) != 3 || all[1].(map[string]any)["network"] != "solana" || all[1].(map[string]any)["rest_seconds"] != 700000.0 || all[1].(map[string]any)["keep_free"] != 30.0 {
		t.Errorf("the policies are %v", all)
	}
}
