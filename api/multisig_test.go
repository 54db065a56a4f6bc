package api

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/chain/ethereum"
	"kivuko/chain/solana"
	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// Addresses of owners on TRON.
const (
	ownerOne = "TFsQZQYUDpUhFJkPne9EoKbwHEhkRRSGyU"
	ownerTwo = "TN2DX5T2f3ycW5fgvjJRjBUYwng2aEKTHu"
)

// onEthereum is an address whose digits are all the same.
func onEthereum(digit string) string { return "0x" + strings.Repeat(digit, 40) }

// everyAddress turns all networks on.
func everyAddress(d *Deps) {
	everywhere(d)
	d.AnyAddresses[exchange.Solana] = solana.ReadAddress
	d.Addresses[exchange.Ethereum] = forPeople(ethereum.ParseAddress)
}

// altered is an object with other values at some pointers; nil removes one.
func altered(object map[string]any, changes map[string]any) map[string]any {
	out := maps.Clone(object)
	for at, v := range changes {
		name, rest, deeper := strings.Cut(at, "/")
		switch {
		case deeper:
			out[name] = altered(out[name].(map[string]any), map[string]any{rest: v})
		case v == nil:
			delete(out, name)
		default:
			out[name] = v
		}
	}
	return out
}

func owners(list ...map[string]any) []any {
	return each(list, func(o map[string]any) any { return o })
}

// adoptedOnTron is a request for an account on TRON that exists.
func adoptedOnTron() map[string]any {
	return map[string]any{
		"owner_type": "treasury", "network": "tron", "asset": "USDT", "label": "vault", "custody": "self",
		"treasury": map[string]any{"name": "Main vault", "policy": map[string]any{
			"approvals": 1, "value_rules": []any{map[string]any{"above": "100000", "approvals": 2}, map[string]any{"above": "5000000.50", "approvals": 3}},
		}},
		"multisig": map[string]any{"kind": "tron", "address": goodAddress, "threshold": 3, "owners": owners(
			map[string]any{"address": ownerOne, "weight": 2, "label": "ledger"}, map[string]any{"address": ownerTwo, "label": "safe"},
		)},
	}
}

// openedOnSolana is a request for a new account whose keys our key store makes.
func openedOnSolana(one, two person) map[string]any {
	return map[string]any{
		"network": "solana", "asset": "USDC", "custody": "provider",
		"treasury": map[string]any{"name": "Daily", "policy": map[string]any{"approvals": 2}},
		"multisig": map[string]any{"kind": "provider", "threshold": 2, "owners": owners(
			map[string]any{"user_id": one.ID, "label": "one"}, map[string]any{"user_id": two.ID, "label": "two"},
		)},
	}
}

// multisig is an account of several owners that two officers agreed to, shared with a merchant.
func (e *env) multisig(merchant uuid.UUID) exchange.MultisigAccount {
	e.t.Helper()
	r := exchange.MultisigRequest{
		ID: newID(), Network: exchange.Tron, Asset: money.USDT, Name: "Vault", MerchantID: merchant, Custody: exchange.MultisigSelf, Address: fakeAddress(newID()),
		Threshold: 2, Owners: []exchange.MultisigOwner{
			{Address: fakeAddress(newID()), UserID: e.person(exchange.RoleTreasury).ID, Weight: 1, Label: "officer"}, {Address: fakeAddress(newID()), Weight: 1, Label: "outside"},
		}, Policy: exchange.MultisigPolicy{Approvals: 1},
	}
	c, err := e.store.ProposeMultisigWallet(e.t.Context(), r, principalOf(e.person(exchange.RoleTreasury)))
	if err == nil {
		_, err = e.store.ConfirmChange(e.t.Context(), c.ID, "", principalOf(e.person(exchange.RoleAdmin)))
	}
	if err != nil {
		e.t.Fatal(err)
	}
	a, err := e.store.MultisigAccount(e.t.Context(), store.Everything(), r.ID)
	if err != nil {
		e.t.Fatal(err)
	}
	return a
}

// activeMultisig is one that the chain agrees with, so that it is a wallet.
func (e *env) activeMultisig(merchant uuid.UUID) exchange.MultisigAccount {
	e.t.Helper()
	a := e.multisig(merchant)
	watched, err := e.store.StartDeposits(e.t.Context(), exchange.Tron, exchange.ChainBlock{Number: 70, ID: "block-70", Time: time.Now().UTC()})
	if err != nil {
		e.t.Fatal(err)
	}
	at := watched.Final
	quorum := exchange.MultisigQuorum{Address: a.Address, Owners: a.Owners, Threshold: a.Threshold, ControlThreshold: a.Threshold, Block: at.Number, BlockID: at.ID}
	a, err = e.store.ActivateMultisig(e.t.Context(), a.ID, quorum, []money.Amount{money.Zero(money.TRX), money.Zero(money.USDT), money.Zero(money.USDC)})
	if err != nil {
		e.t.Fatal(err)
	}
	return a
}

// A treasury officer proposes a wallet of several owners, and another officer confirms it. Then its flow runs.
func TestWalletsOfSeveralOwnersAreAgreedByTwo(t *testing.T) {
	e := start(t, everyAddress)
	one, two, vendor := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin), e.person(exchange.RoleVendor)
	body := altered(adoptedOnTron(), map[string]any{"treasury/merchant_id": vendor.ID})
	waits := e.do(post, walletsPath+"/owner", body, one.auth(), withKey("vault")).want(http.StatusAccepted)
	if again := e.do(post, walletsPath+"/owner", body, one.auth(), withKey("vault")).want(http.StatusAccepted); waiting(again)["id"] != waiting(waits)["id"] {
		t.Error("one key made two changes")
	}
	e.confirmedBy(one, waits).refused(exchange.CodeForbidden)
	if list := e.do(get, multisigPath, nil, two.auth()).want(http.StatusOK).object(); list["total"] != 0.0 {
		t.Errorf("before a second officer agreed there is %v", list)
	}
	e.confirmedBy(two, waits).want(http.StatusOK)
	list := e.do(get, multisigPath+"?status=preparing&network=tron&merchant_id="+vendor.ID.String(), nil, two.auth()).want(http.StatusOK).object()["multisig_accounts"].([]any)
	if len(list) != 1 {
		t.Fatalf("the accounts are %v", list)
	}
	id := list[0].(map[string]any)["id"].(string)
	if !slices.Contains(e.flows.calls, "open multisig "+id) {
		t.Errorf("its flow was not started: %v", e.flows.calls)
	}
	a := e.do(get, multisigPath+"/"+id, nil, one.auth()).want(http.StatusOK)
	shown := a.object()
	owner, policy := shown["owners"].([]any)[0].(map[string]any), shown["policy"].(map[string]any)
	if shown["kind"] != "tron" || shown["adopted"] != true || shown["address"] != goodAddress || shown["requested_by"] != one.ID.String() || shown["merchant_id"] != vendor.ID.String() ||
		owner["address"] != ownerOne || owner["weight"] != 2.0 || owner["held"] != false || policy["approvals"] != 1.0 || policy["version"] != 1.0 ||
		policy["value_rules"].([]any)[1].(map[string]any)["above"] != "5000000.50" {
		t.Errorf("the account is %s", a.body)
	}
	if len(e.do(get, multisigPath+"?status=active", nil, one.auth()).want(http.StatusOK).object()["multisig_accounts"].([]any)) != 0 {
		t.Error("the filter by status filters nothing")
	}
	e.do(get, multisigPath+"/"+id, nil, one.auth(), header("If-None-Match", a.header.Get("ETag"))).want(http.StatusNotModified)
}

// What a request for a wallet of several owners has wrong is named by field and rule.
func TestWalletsOfSeveralOwnersNameWhatIsWrong(t *testing.T) {
	e := start(t, everyAddress)
	officer, colleague, customer := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin), e.person(exchange.RoleCustomer)
	ask := func(changes map[string]any) *reply {
		return e.do(post, walletsPath+"/owner", altered(adoptedOnTron(), changes), officer.auth())
	}
	safe := func(changes map[string]any) *reply {
		return ask(altered(map[string]any{"network": "ethereum", "multisig": map[string]any{"threshold": 2, "owners": owners(
			map[string]any{"address": onEthereum("1"), "label": "one"}, map[string]any{"user_id": colleague.ID, "label": "two"},
		)}}, changes))
	}
	ask(map[string]any{"treasury": nil, "custody": nil, "multisig": nil}).blames("/custody required", "/treasury required", "/multisig required")
	ask(map[string]any{"treasury": map[string]any{}, "multisig": map[string]any{}}).
		blames("/treasury/name required", "/treasury/policy required", "/multisig/threshold required", "/multisig/owners required")
	ask(map[string]any{"treasury/custody_provider": "self_custody"}).blames("/treasury/custody_provider unknown_field")
	ask(map[string]any{"custody": "bank", "set_default": true, "multisig/kind": "vault"}).blames("/custody enum", "/multisig/kind enum", "/set_default conflict")
	ask(map[string]any{"multisig/kind": "safe"}).blames("/multisig/kind conflict")
	ask(map[string]any{"multisig/kind": "provider"}).blames("/multisig/kind conflict")
	ask(map[string]any{"network": "solana"}).blames("/network enum")
	ask(map[string]any{"multisig/address": goodAddress[:33]}).blames("/multisig/address address")
	ask(map[string]any{"multisig/address": " "}).blames("/multisig/address required")
	ask(map[string]any{"multisig/address": nil}).want(http.StatusAccepted) // a new one
	ask(map[string]any{"treasury/policy": map[string]any{"approvals": 0, "value_rules": []any{map[string]any{"above": 5, "approvals": 11}}}}).
		blames("/treasury/policy/approvals out_of_range", "/treasury/policy/value_rules/0/above type", "/treasury/policy/value_rules/0/approvals out_of_range")
	ask(map[string]any{"treasury/policy/value_rules": []any{map[string]any{"above": "5", "approvals": 2}, map[string]any{"above": "4", "approvals": 3}}}).
		blames("/treasury/policy/value_rules/1/above out_of_range")
	ask(map[string]any{"treasury/merchant_id": officer.ID}).blames("/treasury/merchant_id not_found")
	ask(map[string]any{"multisig/owners": []any{"T"}}).blames("/multisig/owners/0 type")
	ask(map[string]any{"multisig/owners": "T"}).blames("/multisig/owners type")
	ask(map[string]any{"multisig/owners": slices.Repeat(owners(map[string]any{"address": ownerOne, "label": "o"}), 6)}).blames("/multisig/owners out_of_range")
	ask(map[string]any{"multisig/owners": owners(map[string]any{"address": ownerOne, "label": "a"}, map[string]any{"address": ownerOne, "label": "b"}), "multisig/threshold": 2}).
		blames("/multisig/owners/1/address repeated")
	ask(map[string]any{"multisig/threshold": 4}).blames("/multisig/threshold out_of_range")
	ask(map[string]any{"multisig/threshold": 2}).blames("/multisig/threshold out_of_range") // the first owner has it alone
	ask(map[string]any{"multisig/owners": owners(map[string]any{"address": ownerOne, "weight": 1001}, map[string]any{"address": ownerTwo, "label": "b", "role": "x"})}).
		blames("/multisig/owners/0/label required", "/multisig/owners/0/weight out_of_range", "/multisig/owners/1/role unknown_field")
	ask(map[string]any{"multisig/owners": owners(map[string]any{"address": ownerOne, "user_id": customer.ID, "weight": 2, "label": "a"}, map[string]any{"address": ownerTwo, "label": "b"})}).
		blames("/multisig/owners/0/user_id not_found")
	safe(map[string]any{"multisig/owners": owners(map[string]any{"address": onEthereum("1"), "weight": 2, "label": "a"}, map[string]any{"label": "b"})}).
		blames("/multisig/owners/0/weight forbidden")
	safe(map[string]any{"multisig/owners": owners(map[string]any{"address": onEthereum("1"), "label": "a"}, map[string]any{"label": "b"})}).
		blames("/multisig/owners/1/address required")
	safe(map[string]any{"multisig/address": onEthereum("2")}).blames("/multisig/owners/1/address required")
	safe(map[string]any{"custody": "provider"}).blames("/multisig/owners/0/address forbidden", "/multisig/owners/0/user_id required")
	safe(nil).want(http.StatusAccepted)
	e.do(post, walletsPath+"/owner", altered(adoptedOnTron(), map[string]any{"owner_type": "customer", "user_id": customer.ID}), customer.auth()).
		blames("/treasury conflict", "/custody conflict", "/multisig conflict")
	e.server.Refuses = func(exchange.Network, money.Asset) string { return "its issuer has stopped it there" }
	ask(nil).blames("/asset unsupported_asset")
	delete(e.server.Addresses, exchange.Tron)
	ask(nil).refused(exchange.CodeUnsupported)
}

// Only officers propose wallets of several owners, with a proof of the last minutes; the same key serves before and after it.
func TestWalletsOfSeveralOwnersAreForOfficersWhoProveThemselves(t *testing.T) {
	e := start(t, everyAddress)
	vendor := e.person(exchange.RoleVendor)
	for _, who := range []person{e.person(exchange.RoleOTCOfficer), vendor, e.person(exchange.RoleSubvendor, vendor.ID), e.person(exchange.RoleCustomer)} {
		if p := e.do(post, walletsPath+"/owner", adoptedOnTron(), who.auth()).refused(exchange.CodeForbidden).problem(); who.Role != exchange.RoleOTCOfficer && !strings.Contains(p.Detail, "may not create treasury wallets") {
			t.Errorf("the %s is refused by %q", who.Role, p.Detail)
		}
		e.do(post, provisionPath, openedOnSolana(who, who), who.auth()).refused(exchange.CodeForbidden)
	}
	officer := e.person(exchange.RoleTreasury)
	late := e.provenSession(officer.User, proof{exchange.AssurancePasskey, false})
	e.do(post, walletsPath+"/owner", adoptedOnTron(), late.auth(), withKey("late")).refused(exchange.CodeStepUpRequired)
	e.do(post, provisionPath, openedOnSolana(officer, late), late.auth(), withKey("late")).refused(exchange.CodeStepUpRequired)
	e.provePasskey(officer.User, late.session)
	e.do(post, walletsPath+"/owner", adoptedOnTron(), late.auth(), withKey("late")).want(http.StatusAccepted)
}

// Wallets of several owners on Solana are provisioned, by treasury officers too, who provision nothing else.
func TestWalletsOfSeveralOwnersAreProvisioned(t *testing.T) {
	e := start(t, everyAddress)
	officer, admin, customer := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin), e.person(exchange.RoleCustomer)
	body := openedOnSolana(officer, admin)
	provision := func(who person, body map[string]any) *reply {
		return e.do(post, provisionPath, body, who.auth(), freshKey())
	}
	provision(officer, map[string]any{"network": "solana", "asset": "USDC", "user_id": customer.ID}).refused(exchange.CodeForbidden)
	provision(officer, map[string]any{"network": "solana", "asset": "USDC", "purpose": "treasury"}).refused(exchange.CodeForbidden)
	provision(admin, altered(body, map[string]any{"purpose": "treasury", "user_id": customer.ID})).blames("/purpose forbidden", "/user_id forbidden")
	provision(admin, map[string]any{"network": "solana", "asset": "USDC", "custody": "self"}).blames("/treasury required", "/multisig required")
	provision(admin, map[string]any{"network": "solana", "asset": "USDC"}).blames("/user_id required")
	provision(admin, altered(body, map[string]any{"multisig/kind": "tron"})).blames("/multisig/kind conflict")
	e.flows.failWith(errors.New("temporal is down")) // the confirmation counts all the same
	e.confirmedBy(admin, provision(officer, body).want(http.StatusAccepted)).want(http.StatusOK)
	e.flows.failWith(nil)
	a := e.do(get, multisigPath, nil, admin.auth()).want(http.StatusOK).object()["multisig_accounts"].([]any)[0].(map[string]any)
	owner := a["owners"].([]any)[0].(map[string]any)
	if a["kind"] != "spl" || a["custody"] != "provider" || a["adopted"] != false || a["address"] != nil || owner["held"] != true || owner["user_id"] != officer.ID.String() || owner["address"] != nil {
		t.Errorf("the account is %v", a)
	}
}

// A merchant and its subvendors read what is shared with them, without who of the staff signs, and spends none of it.
func TestWalletsOfSeveralOwnersAreSharedWithMerchants(t *testing.T) {
	e := start(t, everyAddress)
	vendor, rival := e.person(exchange.RoleVendor), e.person(exchange.RoleVendor)
	sub, customer, officer := e.person(exchange.RoleSubvendor, vendor.ID), e.person(exchange.RoleCustomer), e.person(exchange.RoleTreasury)
	a, apart := e.activeMultisig(vendor.ID), e.activeMultisig(uuid.Nil)
	account, wallet := multisigPath+"/"+a.ID.String(), "/api/v1/auth/wallet/id/"+a.ID.String()
	for _, who := range []person{vendor, sub} {
		list := e.do(get, multisigPath, nil, who.auth()).want(http.StatusOK).object()
		r := e.do(get, account, nil, who.auth()).want(http.StatusOK)
		for _, o := range r.object()["owners"].([]any) {
			if o.(map[string]any)["user_id"] != nil {
				t.Errorf("a merchant reads who of the staff signs: %s", r.body)
			}
		}
		if list["total"] != 1.0 || r.object()["requested_by"] != nil || strings.Contains(string(r.body), a.RequestedBy.String()) {
			t.Errorf("a merchant reads %v, %s", list, r.body)
		}
		w := e.do(get, wallet, nil, who.auth()).want(http.StatusOK).object()
		if w["custody"] != "multisig" || w["purpose"] != "multisig" || w["wallet_type"] != "cold" || w["owner_type"] != "treasury" || w["owner_id"] != nil || w["address"] != a.Address {
			t.Errorf("the wallet is %v", w)
		}
		e.do(get, wallet+"/balances", nil, who.auth()).want(http.StatusOK)
		wallets := e.do(get, walletsPath+"?purpose=multisig", nil, who.auth()).want(http.StatusOK).object()
		if wallets["total"] != 1.0 {
			t.Errorf("a merchant lists %v", wallets)
		}
		e.do(put, wallet+"/set-default-network", nil, who.auth()).refused(exchange.CodeNotFound)
		e.do(get, multisigPath+"/"+apart.ID.String(), nil, who.auth()).refused(exchange.CodeNotFound)
		e.do(get, "/api/v1/auth/wallet/id/"+apart.ID.String(), nil, who.auth()).refused(exchange.CodeNotFound)
	}
	for _, path := range []string{account, wallet, wallet + "/balances", wallet + "/movements"} {
		e.do(get, path, nil, rival.auth()).refused(exchange.CodeNotFound)
	}
	e.do(get, multisigPath, nil, customer.auth()).refused(exchange.CodeForbidden)
	e.do(get, wallet, nil, customer.auth()).refused(exchange.CodeNotFound)
	for _, who := range []person{officer, e.person(exchange.RoleOTCOfficer), e.person(exchange.RoleAdmin)} {
		r := e.do(get, account, nil, who.auth()).want(http.StatusOK)
		if r.object()["requested_by"] != a.RequestedBy.String() || r.object()["owners"].([]any)[0].(map[string]any)["user_id"] != a.Owners[0].UserID.String() {
			t.Errorf("%s reads %s", who.Role, r.body)
		}
		if all := e.do(get, multisigPath+"?status=active", nil, who.auth()).want(http.StatusOK).object(); all["total"] != 2.0 {
			t.Errorf("%s lists %v", who.Role, all)
		}
	}
	send := sends("1", map[string]any{"address": goodAddress})
	send["from_wallet_id"] = a.ID
	e.do(post, transfersPath, send, officer.auth(), freshKey()).blames("/from_wallet_id not_found")
	e.do(post, transfersPath, send, vendor.auth(), freshKey()).blames("/from_wallet_id not_found")
}

// Operators retry an account that is parked, or give it up, as long as its flow runs.
func TestOperatorsOfWalletsOfSeveralOwners(t *testing.T) {
	e := start(t, everyAddress)
	admin, id := e.person(exchange.RoleAdmin), e.multisig(uuid.Nil).ID
	path := multisigPath + "/" + id.String()
	if r := e.do(post, path+"/retry", map[string]any{}, admin.auth(), freshKey()).want(http.StatusAccepted); r.text("retry") != "requested" {
		t.Errorf("the retry answers %s", r.body)
	}
	e.do(post, path+"/refund", map[string]any{}, admin.auth(), freshKey()).blames("/note required")
	e.do(post, path+"/refund", map[string]any{"note": "another one"}, admin.auth()).refused(exchange.CodeIdempotencyRequired)
	e.do(post, path+"/refund", map[string]any{"note": "another one"}, admin.auth(), freshKey()).want(http.StatusOK)
	e.do(post, multisigPath+"/"+newID().String()+"/retry", map[string]any{}, admin.auth(), freshKey()).refused(exchange.CodeNotFound)
	e.do(post, path+"/retry", map[string]any{}, e.person(exchange.RoleOTCOfficer).auth(), freshKey()).refused(exchange.CodeForbidden)
	e.flows.ended = append(e.flows.ended, "multisig:"+id.String())
	e.do(post, path+"/retry", map[string]any{}, admin.auth(), freshKey()).refused(exchange.CodeStateConflict)
}

// What is paid to an account that is no wallet yet is in no books, so its address is shown to no merchant before.
func TestAddressesOfSeveralOwnersAreShownLater(t *testing.T) {
	e := start(t, everyAddress)
	vendor, staff := e.person(exchange.RoleVendor), e.person(exchange.RoleTreasury)
	early, ready := e.multisig(vendor.ID), e.activeMultisig(vendor.ID)
	shown := func(who person, a exchange.MultisigAccount) any {
		return e.do(get, multisigPath+"/"+a.ID.String(), nil, who.auth()).want(http.StatusOK).object()["address"]
	}
	if got := shown(vendor, early); got != nil {
		t.Errorf("a merchant sees the address %v of an account that is %s", got, early.Status)
	}
	if got := shown(staff, early); got != early.Address {
		t.Errorf("the staff sees the address %v of the account that they named", got)
	}
	for _, who := range []person{vendor, staff} {
		if got := shown(who, ready); got != ready.Address {
			t.Errorf("the address of the wallet is %v", got)
		}
	}
}
