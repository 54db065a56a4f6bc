package api

import (
	"net/http"
	"strings"
	"testing"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

const transfersPath = "/api/v1/auth/transfers"

// crossing is two customers with wallets, and officers.
type crossing struct {
	*env
	sender, other person
	from, to      exchange.Wallet
	officers      []person
	admin         person
}

func newCrossing(t *testing.T, balance string) *crossing {
	t.Helper()
	e := start(t)
	c := &crossing{env: e, sender: e.person(exchange.RoleCustomer), other: e.person(exchange.RoleCustomer), admin: e.person(exchange.RoleAdmin)}
	c.from, c.to = e.wallet(c.sender), e.wallet(c.other)
	e.fund(c.from, balance)
	for range 3 {
		c.officers = append(c.officers, e.person(exchange.RoleTreasury))
	}
	return c
}

func sends(amount string, recipient map[string]any) map[string]any {
	return map[string]any{"network": "tron", "asset": "USDT", "amount": amount, "recipient": recipient}
}

func away(amount string) map[string]any { return sends(amount, map[string]any{"address": goodAddress}) }

func (c *crossing) send(body map[string]any) *reply {
	c.t.Helper()
	return c.do(post, transfersPath, body, c.sender.auth(), withKey(newID().String()))
}

// rule makes every external transfer need approval: by one officer, and by two above a lower value than the first rule's.
func (c *crossing) rule(two string) {
	c.t.Helper()
	c.do(patch, "/api/v1/auth/limits", map[string]any{"approvals": map[string]any{"transfer": map[string]any{"one_above": "0.01", "two_above": two}}}, c.admin.auth()).want(http.StatusOK)
}

// confirm lets a second officer confirm the waiting changes.
func (c *crossing) confirm(waits *reply, who person) *reply {
	c.t.Helper()
	change := waits.want(http.StatusAccepted).object()["changes"].([]any)[0].(map[string]any)
	return c.do(post, "/api/v1/auth/approvals/changes/"+change["id"].(string)+"/confirm", nil, who.auth(), withKey(newID().String()))
}

func (c *crossing) verb(who person, id, verb string, body any, key string) *reply {
	c.t.Helper()
	return c.do(post, transfersPath+"/"+id+"/"+verb, body, who.auth(), withKey(key))
}

func TestSendWithinOurCustody(t *testing.T) {
	c := newCrossing(t, "100")
	body := sends("12.5", map[string]any{"email": strings.ToUpper(c.other.Email)})
	body["note"] = "for the rent"
	first := c.do(post, transfersPath, body, c.sender.auth(), withKey("one")).want(http.StatusCreated)
	again := c.do(post, transfersPath, body, c.sender.auth(), withKey("one")).want(http.StatusCreated)
	id := first.text("id")
	if again.text("id") != id || again.header.Get(headerReplayed) != "true" || first.header.Get("Location") != transfersPath+"/"+id {
		t.Errorf("replayed %s", again.body)
	}
	got := first.object()
	if got["kind"] != "internal" || got["to_address"] != c.to.Address || got["amount"] != "12.500000" || got["approval_digest"] != nil || got["status"] != "queued" {
		t.Errorf("opened %s", first.body)
	}
	if eq := got["fiat_equivalent"].(map[string]any); eq["amount"] != "1875.00" || eq["currency"] != "KES" {
		t.Errorf("counts as %v", eq)
	}
	// The recipient sees the transfer, but not the sender's wallet, and can't change it.
	seen := c.do(get, transfersPath+"/"+id, nil, c.other.auth()).want(http.StatusOK).object()
	if seen["note"] != "for the rent" || seen["from_wallet_id"] != nil || seen["requested_by"] != nil {
		t.Errorf("the recipient sees %v", seen)
	}
	c.verb(c.other, id, "cancel", nil, "x").refused(exchange.CodeNotFound)
	c.do(get, transfersPath+"/"+id+"/timeline", nil, c.other.auth()).refused(exchange.CodeNotFound)
	if list := c.do(get, transfersPath+"?kind=internal&status=queued&network=tron", nil, c.other.auth()).want(http.StatusOK).object(); list["total"] != 1.0 {
		t.Errorf("the recipient lists %v", list["total"])
	}
	events := c.do(get, transfersPath+"/"+id+"/timeline", nil, c.sender.auth()).want(http.StatusOK).object()["events"].([]any)
	if len(events) < 2 {
		t.Errorf("timeline %v", events)
	}
	if got := c.verb(c.sender, id, "cancel", nil, "y").want(http.StatusOK).object(); got["status"] != "cancelled" || got["status_detail"] != "cancelled_by_sender" {
		t.Errorf("cancelled %v", got)
	}
	if strings.Contains(c.logs.String(), "for the rent") {
		t.Error("a note is in the log")
	}
}

func TestSendRefusesBadRequests(t *testing.T) {
	c := newCrossing(t, "100")
	with := func(change func(map[string]any)) map[string]any {
		body := away("1")
		change(body)
		return body
	}
	set := func(name string, v any) map[string]any { return with(func(b map[string]any) { b[name] = v }) }
	c.do(post, transfersPath, away("1"), c.sender.auth()).refused(exchange.CodeIdempotencyRequired)
	for _, bad := range []struct {
		body  map[string]any
		wants []string
	}{
		{map[string]any{}, []string{"/network required", "/asset required", "/amount required", "/recipient required"}},
		{set("network", "bitcoin"), []string{"/network enum"}},
		{set("asset", "TRX"), []string{"/asset enum"}},
		{set("amount", 1), []string{"/amount type"}},
		{set("amount", "1.0000001"), []string{"/amount precision"}},
		{set("amount", "0"), []string{"/amount out_of_range"}},
		{set("amount", "-1"), []string{"/amount format"}},
		{set("amount", "1e3"), []string{"/amount format"}},
		{set("recipient", map[string]any{}), []string{"/recipient required"}},
		{set("recipient", "me"), []string{"/recipient type"}},
		{set("recipient", map[string]any{"address": goodAddress, "user_id": c.other.ID}), []string{"/recipient conflict"}},
		{set("recipient", map[string]any{"address": mistypedAddress}), []string{"/recipient/address address"}},
		{set("recipient", map[string]any{"address": " "}), []string{"/recipient/address required"}},
		{set("recipient", map[string]any{"email": "nobody"}), []string{"/recipient/email format"}},
		{set("recipient", map[string]any{"phone_number": "12"}), []string{"/recipient/phone_number format"}},
		{set("recipient", map[string]any{"name": "Otieno"}), []string{"/recipient required", "/recipient/name unknown_field"}},
		{set("recipient", map[string]any{"email": "nobody@example.com"}), []string{"/recipient/email not_found"}},
		{set("recipient", map[string]any{"wallet_id": newID()}), []string{"/recipient/wallet_id not_found"}},
		{set("recipient", map[string]any{"address": c.from.Address}), []string{"/recipient/address address"}},
		{set("recipient", map[string]any{"wallet_id": c.from.ID}), []string{"/recipient/wallet_id own_wallet"}},
		{set("from_wallet_id", c.to.ID), []string{"/from_wallet_id not_found"}},
		{set("from_wallet_id", "mine"), []string{"/from_wallet_id format"}},
		{set("note", strings.Repeat("x", 201)), []string{"/note too_long"}},
		{set("approvals_required", 0), []string{"/approvals_required unknown_field"}},
	} {
		c.send(bad.body).blames(bad.wants...)
	}
	c.send(set("fx_rate_quote_id", newID())).blames("/fx_rate_quote_id not_found")
	ether := set("network", "ethereum")
	ether["recipient"] = map[string]any{"address": ethereumAddress}
	c.send(ether).refused(exchange.CodeUnsupported)
	c.send(away("100.000001")).refused(exchange.CodeInsufficientFunds)
	c.send(away("2000")).refused(exchange.CodeLimitReached)
	if _, total, err := c.store.ListTransfers(t.Context(), store.Everything(), store.TransferFilter{}, store.Page{Number: 1, Size: 1}); err != nil || total != 0 {
		t.Errorf("%d transfers of refused requests, %v", total, err)
	}
	c.do(get, transfersPath+"?status=lost", nil, c.sender.auth()).blames("query/status enum")
}

func TestHouseTreasurySends(t *testing.T) {
	c := newCrossing(t, "100")
	officer := c.officers[0]
	house := c.do(post, "/api/v1/auth/wallets/provision", map[string]any{"network": "tron", "asset": "USDT", "purpose": "treasury"}, c.admin.auth()).want(http.StatusCreated)
	id, _ := parseID(house.text("id"))
	c.fund(exchange.Wallet{ID: id}, "20")
	body := sends("5", map[string]any{"phone_number": c.other.PhoneNumber.Digits()})
	body["from_wallet_id"] = id
	got := c.do(post, transfersPath, body, officer.auth(), withKey("a")).want(http.StatusCreated).object()
	if got["sender_id"] != nil || got["recipient_id"] != c.other.ID.String() {
		t.Errorf("sent %v", got)
	}
	body["from_wallet_id"] = c.from.ID
	c.do(post, transfersPath, body, officer.auth(), withKey("b")).blames("/from_wallet_id not_found")
	c.do(post, transfersPath, away("1"), c.admin.auth(), withKey("c")).refused(exchange.CodeForbidden)
}

func TestOperatorsOfTransfers(t *testing.T) {
	c := newCrossing(t, "100")
	id := c.send(away("1")).want(http.StatusCreated).text("id")
	c.verb(c.officers[0], id, "refund", map[string]any{}, "a").blames("/note required")
	c.verb(c.officers[0], id, "refund", map[string]any{"note": "a court says so"}, "b").want(http.StatusOK)
	if got := c.verb(c.officers[0], id, "retry", map[string]any{}, "c").want(http.StatusAccepted); got.text("retry") != "requested" {
		t.Errorf("a retry is answered %s", got.body)
	}
	c.verb(c.sender, id, "retry", map[string]any{}, "d").refused(exchange.CodeForbidden)
	c.flows.failWith(exchange.Errorf(exchange.CodeNotFound, "The flow has ended."))
	c.verb(c.officers[0], id, "retry", map[string]any{}, "e").refused(exchange.CodeStateConflict)
	c.verb(c.sender, id, "cancel", nil, "f").refused(exchange.CodeStateConflict)
}

func TestLimitsAreTheAdmins(t *testing.T) {
	c := newCrossing(t, "1000")
	user := "/api/v1/auth/users/" + c.sender.ID.String()
	c.do(patch, user, map[string]any{"limits": map[string]any{"per_transaction": "1500", "per_day": "1000"}}, c.admin.auth()).blames("/limits/per_day out_of_range")
	c.do(patch, user, map[string]any{"limits": map[string]any{"per_transaction": 5}}, c.admin.auth()).blames("/limits/per_transaction type")
	c.do(patch, user, map[string]any{"limits": map[string]any{"per_year": "5"}}, c.admin.auth()).blames("/limits/per_year unknown_field")
	got := c.do(patch, user, map[string]any{"limits": map[string]any{"per_transaction": "1500"}}, c.admin.auth()).want(http.StatusOK).object()
	limits := got["limits"].(map[string]any)
	if limits["own"].(map[string]any)["per_transaction"] != "1500.00" || limits["effective"].(map[string]any)["per_day"] != "500000.00" {
		t.Errorf("limits %v", limits)
	}
	c.send(away("10.1")).refused(exchange.CodeLimitReached)
	c.send(away("10")).want(http.StatusCreated)
	c.do(patch, user, map[string]any{"limits": map[string]any{}}, c.admin.auth()).want(http.StatusOK)
	c.send(away("10.1")).want(http.StatusCreated)

	const path = "/api/v1/auth/limits"
	house := c.do(get, path, nil, c.officers[0].auth()).want(http.StatusOK).object()
	if len(house["roles"].(map[string]any)) != len(exchange.Roles()) || house["valuations"].(map[string]any)["USDT"] != "150" {
		t.Errorf("limits of the house %v", house)
	}
	c.do(patch, path, map[string]any{}, c.admin.auth()).blames(" required")
	c.do(patch, path, map[string]any{"roles": map[string]any{"king": map[string]any{}}}, c.admin.auth()).blames("/roles/king unknown_field")
	c.do(patch, path, map[string]any{"valuations": map[string]any{"USDT": "0"}}, c.admin.auth()).blames("/valuations/USDT out_of_range")
	c.do(patch, path, map[string]any{"approvals": map[string]any{"transfer": map[string]any{"one_above": "10", "two_above": "5"}}}, c.admin.auth()).
		blames("/approvals/transfer/two_above out_of_range")
	c.do(patch, path, map[string]any{"valuations": map[string]any{"USDT": "100"}}, c.officers[0].auth()).refused(exchange.CodeForbidden)
	waits := c.do(patch, path, map[string]any{
		"valuations": map[string]any{"USDT": "100"}, "roles": map[string]any{"customer": map[string]any{"per_transaction": "200", "per_day": "500000", "per_month": "500000"}},
	}, c.admin.auth())
	c.send(away("2")).refused(exchange.CodeLimitReached) // the lower limit counts at once, the lower valuation not yet
	c.confirm(waits, c.officers[0]).want(http.StatusOK)
	c.send(away("2.01")).refused(exchange.CodeLimitReached)
	c.send(away("2")).want(http.StatusCreated)
}

// A retry with the same key finds a transfer that was stored although the response was lost.
func TestSendRepeatedAfterAnUnknownOutcome(t *testing.T) {
	c := newCrossing(t, "100")
	c.flows.failWith(exchange.Errorf(exchange.CodeUnavailable, "no answer"))
	c.do(post, transfersPath, away("1"), c.sender.auth(), withKey("k")).refused(exchange.CodeUnavailable)
	c.flows.failWith(nil)
	c.do(post, transfersPath, away("1"), c.sender.auth(), withKey("k")).want(http.StatusCreated)
	account, err := c.store.Account(t.Context(), exchange.Owned(exchange.AccWalletBalance, c.from.ID, money.USDT))
	if err != nil || account.Held.String() != "1.000000" {
		t.Errorf("held %s, %v", account.Held, err)
	}
}

func TestDenyListIsTheAdmins(t *testing.T) {
	c := newCrossing(t, "100")
	const path = "/api/v1/auth/deny-list"
	add := func(who person, change map[string]any) *reply {
		body := map[string]any{"network": "tron", "address": goodAddress, "note": "court order 7"}
		for k, v := range change {
			body[k] = v
		}
		return c.do(post, path, body, who.auth())
	}
	add(c.officers[0], nil).refused(exchange.CodeForbidden)
	add(c.admin, map[string]any{"address": mistypedAddress}).blames("/address address")
	add(c.admin, map[string]any{"note": ""}).blames("/note required")
	add(c.admin, map[string]any{"network": "ethereum"}).blames("/address address")
	add(c.admin, map[string]any{"network": "solana"}).refused(exchange.CodeUnsupported)
	listed := add(c.admin, nil).want(http.StatusCreated)
	if again := add(c.admin, map[string]any{"note": "another"}).want(http.StatusCreated); again.text("id") != listed.text("id") || again.text("note") != "court order 7" {
		t.Errorf("listed twice: %s", again.body)
	}
	if list := c.do(get, path+"?network=tron", nil, c.officers[0].auth()).want(http.StatusOK).object(); list["total"] != 1.0 {
		t.Errorf("the list has %v lines", list["total"])
	}
	if got := c.send(away("1")).want(http.StatusCreated).object(); got["status"] != "blocked" || got["status_detail"] != "held" {
		t.Errorf("sent to a denied address: %v", got)
	}
	waits := c.do(del, path+"/"+listed.text("id"), nil, c.admin.auth()).want(http.StatusAccepted)
	if got := c.send(away("1")).want(http.StatusCreated).object(); got["status"] != "blocked" {
		t.Errorf("sent after one admin's word: %v", got)
	}
	c.agree(waits, c.officers[0])
	c.do(del, path+"/"+listed.text("id"), nil, c.admin.auth()).refused(exchange.CodeNotFound)
	if got := c.send(away("1")).want(http.StatusCreated).object(); got["status"] != "queued" {
		t.Errorf("sent after the line was taken off: %v", got)
	}
}

// What can't be paid can be denied: mixers are contracts, and senders are held against the list too.
func TestWhatCantBePaidIsDenied(t *testing.T) {
	e := start(t)
	admin := e.person(exchange.RoleAdmin)
	for address, network := range map[string]string{
		"T9yD14Nj9j7xAB4dbGeiX9h8unkKHxuWwb":         "tron", // the zero address
		"TLsV52sRDL79HXGGm9yzwKibb6BeruhUzy":         "tron", // where fees were burnt
		"0x0000000000000000000000000000000000000000": "ethereum",
		"0x000000000000000000000000000000000000dEaD": "ethereum",
	} {
		body := map[string]any{"network": network, "address": strings.ToLower(address), "note": "court order 7"}
		if network == "tron" {
			body["address"] = address
		}
		if got := e.do(post, "/api/v1/auth/deny-list", body, admin.auth()).want(http.StatusCreated).text("address"); got != address {
			t.Errorf("%s is listed as %s", address, got)
		}
	}
}
