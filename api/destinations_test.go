package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

// destination is one that a merchant saved.
func (e *env) destination(of person) exchange.Destination {
	e.t.Helper()
	d := exchange.Destination{ID: newID(), MerchantID: of.ID, Kind: exchange.DestinationPhone, Phone: storetest.NewPhone()}
	d, err := e.store.AddDestination(e.t.Context(), d, principalOf(of))
	if err != nil {
		e.t.Fatal(err)
	}
	return d
}

func destinationCells() map[string]cell {
	of := func(s scene) uuid.UUID { return s.w.destination(s.merchant()).ID }
	const one = destinationsPath + "/{id}"
	return map[string]cell{"GET " + one: {id: of}, "DELETE " + one: {id: of}, "POST " + one + "/confirm": {id: of}}
}

// A subvendor saves where the merchant's money may go, the master merchant confirms it and is told of both, and it rests for a day.
func TestDestinationsAreConfirmedAndRest(t *testing.T) {
	e := start(t)
	master := e.person(exchange.RoleVendor)
	agent, rival, officer := e.person(exchange.RoleSubvendor, master.ID), e.person(exchange.RoleVendor), e.person(exchange.RoleOTCOfficer)
	save := func(body map[string]any) *reply { return e.do(post, destinationsPath, body, agent.auth(), freshKey()) }
	account := map[string]any{
		"kind": "bank", "label": "Rent", "bank_name": "Bank of Examples", "bank_code": "01", "branch": "Nairobi", "swift_code": "EXAMKENA",
		"account_name": "Landlord Limited", "account_number": "0100-200 300",
	}
	saved := save(account).want(http.StatusCreated)
	path := destinationsPath + "/" + saved.text("id")
	if o := saved.object(); saved.header.Get("Location") != path || o["merchant_id"] != master.ID.String() || o["account_number"] != "0100200300" || o["status"] != "unconfirmed" ||
		o["status_detail"] != "confirmation" || o["rests_until"] != nil || o["phone_number"] != nil || o["created_by"] != agent.ID.String() {
		t.Errorf("saved %v", o)
	}
	save(account).refused(exchange.CodeConflict)
	e.do(post, path+"/confirm", nil, agent.auth(), freshKey()).refused(exchange.CodeForbidden)
	e.do(post, path+"/confirm", nil, rival.auth(), freshKey()).refused(exchange.CodeNotFound)
	e.do(post, path+"/confirm", nil, officer.auth(), freshKey()).refused(exchange.CodeForbidden)
	for range 2 {
		o := e.do(post, path+"/confirm", nil, master.auth(), freshKey()).want(http.StatusOK).object()
		rests, err := time.Parse(time.RFC3339, o["rests_until"].(string))
		if o["status"] != "confirmed" || o["status_detail"] != "destination_rest" || err != nil || time.Until(rests) < 23*time.Hour {
			t.Errorf("confirmed %v", o)
		}
	}
	told := e.inbox(master.Email)
	if len(told) != 2 || !strings.Contains(told[0].Text, "ends in 0300 was saved") || !strings.Contains(told[1].Text, "was confirmed") || strings.Contains(told[0].Text+told[1].Text, "0100200300") {
		t.Errorf("the merchant was told %v", told)
	}
	e.skew.Store(int64(25 * time.Hour))
	if o := e.do(get, path, nil, e.session(officer.User).auth()).want(http.StatusOK).object(); o["status_detail"] != "none" {
		t.Errorf("rested %v", o)
	}
	e.skew.Store(0)
	agent = e.session(agent.User)
	list := func(who person, query string) float64 {
		return e.do(get, destinationsPath+query, nil, who.auth()).want(http.StatusOK).object()["total"].(float64)
	}
	if list(agent, "?kind=bank&status=confirmed") != 1 || list(rival, "") != 0 || list(officer, "?merchant_id="+master.ID.String()) != 1 {
		t.Error("the lists differ")
	}
	e.do(del, path, nil, rival.auth()).refused(exchange.CodeNotFound)
	e.do(del, path, nil, agent.auth()).want(http.StatusNoContent)
	if list(agent, "") != 0 || list(agent, "?status=removed") != 1 {
		t.Error("the removed one is listed")
	}
	e.do(post, path+"/confirm", nil, master.auth(), freshKey()).refused(exchange.CodeStateConflict)
	save(account).want(http.StatusCreated)
}

// Each kind of destination has its own fields, in one form.
func TestDestinationsHaveTheFieldsOfTheirKind(t *testing.T) {
	e := start(t)
	master := e.person(exchange.RoleVendor)
	save := func(body map[string]any) *reply { return e.do(post, destinationsPath, body, master.auth(), freshKey()) }
	save(map[string]any{}).blames("/kind required")
	save(map[string]any{"kind": "phone"}).blames("/phone_number required")
	save(map[string]any{"kind": "phone", "phone_number": "12"}).blames("/phone_number format")
	save(map[string]any{"kind": "phone", "phone_number": "0712345678", "address": goodAddress, "account_number": "1"}).blames("/account_number forbidden", "/address forbidden")
	save(map[string]any{"kind": "bank"}).blames("/bank_name required", "/account_name required", "/account_number required")
	save(map[string]any{"kind": "bank", "bank_name": "B", "account_name": "A", "account_number": "- -", "swift_code": "x"}).blames("/swift_code format", "/account_number format")
	save(map[string]any{"kind": "address"}).blames("/network required", "/address required")
	save(map[string]any{"kind": "address", "network": "tron", "address": goodAddress[:33]}).blames("/address address")
	save(map[string]any{"kind": "address", "network": "solana", "address": goodAddress}).refused(exchange.CodeUnsupported)
	save(map[string]any{"kind": "address", "network": "tron", "address": e.treasuryAddress()}).blames("/address own_wallet")
	if o := save(map[string]any{"kind": "phone", "phone_number": "0712 345 678"}).want(http.StatusCreated).object(); o["phone_number"] != "254712345678" || o["label"] != nil {
		t.Errorf("saved %v", o)
	}
	if o := save(map[string]any{"kind": "address", "network": "tron", "address": goodAddress}).want(http.StatusCreated).object(); o["address"] != goodAddress || o["network"] != "tron" {
		t.Errorf("saved %v", o)
	}
	save(map[string]any{"kind": "phone", "phone_number": "+254712345678"}).refused(exchange.CodeConflict)
}

// treasuryAddress is the address of a wallet of the house.
func (e *env) treasuryAddress() string {
	e.t.Helper()
	r := exchange.WalletRequest{
		ID: newID(), OwnerType: exchange.OwnerTreasury, Purpose: exchange.HouseTreasury, Network: exchange.Tron, Asset: money.USDT, Type: exchange.Hot,
	}
	key := exchange.SealedKey{WalletID: r.ID, Ciphertext: []byte("sealed"), MasterKey: "test", PublicKey: []byte("public"), Algorithm: "secp256k1"}
	w, err := storetest.CreateWallet(e.t.Context(), e.store, r, "TVZQRtoE4Lgo4iqYtuqTebJea6mBsRi6Tz", key)
	if err != nil {
		e.t.Fatal(err)
	}
	return w.Address
}
