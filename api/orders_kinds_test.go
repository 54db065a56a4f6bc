package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

// counter is a vendor whose offer buys, and a customer with a wallet.
type counter struct {
	market
	buys exchange.Offer
}

func openCounter(t *testing.T) counter {
	t.Helper()
	c := counter{market: openMarket(t)}
	c.buys = c.env.buys(c.vendor)
	return c
}

func (c counter) sell(more map[string]any) map[string]any {
	body := map[string]any{"order_type": "OFF_RAMP_SELL", "offer_id": c.buys.ID.String(), "crypto_amount": "10"}
	for name, value := range more {
		if body[name] = value; value == nil {
			delete(body, name)
		}
	}
	return body
}

func (c counter) open(who person, body map[string]any) *reply {
	return c.do(post, ordersPath, body, who.auth(), withKey(newID().String()))
}

// A customer sells: the response has the address to pay to and the expected shillings.
func TestSellingCrypto(t *testing.T) {
	c := openCounter(t)
	r := c.open(c.customer, c.sell(map[string]any{"refund_address": goodAddress, "expected_rate": "129.355"})).want(http.StatusCreated)
	o := r.object()
	for name, want := range map[string]any{
		"order_type": "OFF_RAMP_SELL", "order_subtype": "standard_offramp", "status": "pending", "status_detail": "deposit", "crypto_amount": "10.000000",
		"fiat_amount": "1293.00", "rate": "129.355", "payment_method": "momo", "offer_id": c.buys.ID.String(), "deposit_confirmations": 0.0,
	} {
		if o[name] != want {
			t.Errorf("%s is %v, want %v", name, o[name], want)
		}
	}
	text := func(name string) string { return o[name].(map[string]any)["String"].(string) }
	if text("escrow_wallet_address") == "" || o["wallet_address"] != text("escrow_wallet_address") || text("escrow_network") != "tron" || !strings.HasPrefix(text("escrow_reference"), "KVK") {
		t.Errorf("to be paid to %v, %s on %s as %s", o["wallet_address"], text("escrow_wallet_address"), text("escrow_network"), text("escrow_reference"))
	}
	if text("payment_phone_number") != c.customer.PhoneNumber.Digits() || text("refund_address") != goodAddress {
		t.Errorf("paid out to %s, back to %s", text("payment_phone_number"), text("refund_address"))
	}
	seen := c.do(get, ordersPath+"/"+o["id"].(string), nil, c.vendor.auth()).want(200).object()
	if got := seen["refund_address"].(map[string]any); got["Valid"] != false || seen["payment_phone_number"].(map[string]any)["String"] == text("payment_phone_number") {
		t.Errorf("the vendor sees %v and %v", got, seen["payment_phone_number"])
	}
	if found := c.do(get, ordersPath+"/search?page_id=1&page_size=10&query="+text("escrow_wallet_address"), nil, c.customer.auth()).want(200); len(found.array()) != 1 {
		t.Errorf("by its escrow address %s is found", found.body)
	}
	cancelled := c.do(post, ordersPath+"/"+o["id"].(string)+"/cancel", nil, c.customer.auth()).want(200)
	if cancelled.text("status") != "cancelled" || c.flows.calls[len(c.flows.calls)-1] != "cancel off-ramp "+o["id"].(string) {
		t.Errorf("it is %s after %s", cancelled.text("status"), c.flows.calls[len(c.flows.calls)-1])
	}
	c.do(post, ordersPath+"/"+o["id"].(string)+"/retry-payment", nil, c.customer.auth(), withKey("again")).refused(exchange.CodeStateConflict)
}

// Only the customer and staff see sender and beneficiary of a remittance; the vendor sees masked numbers.
func TestRemittances(t *testing.T) {
	c := openCounter(t)
	if err := c.store.SeedCatalogs(t.Context()); err != nil {
		t.Fatal(err)
	}
	body := c.sell(map[string]any{
		"order_subtype": "remittance_offramp", "sender_name": "Jane Roe", "sender_country": "ke", "sender_phone": "+254 711-111 111",
		"beneficiary_account_name": "Amina Otieno", "payment_phone_number": "0712345678",
	})
	o := c.open(c.customer, body).want(http.StatusCreated).object()
	text := func(o map[string]any, name string) string { return o[name].(map[string]any)["String"].(string) }
	if text(o, "sender_name") != "Jane Roe" || text(o, "sender_country") != "KE" || text(o, "sender_phone") != "254711111111" ||
		text(o, "beneficiary_account_name") != "Amina Otieno" || text(o, "payment_phone_number") != "254712345678" {
		t.Errorf("the order is %v", o)
	}
	seen := c.do(get, ordersPath+"/"+o["id"].(string), nil, c.vendor.auth()).want(200)
	for _, number := range []string{"254711111111", "254712345678"} {
		if strings.Contains(string(seen.body), number) {
			t.Errorf("the vendor reads %s in %s", number, seen.body)
		}
	}
	if got := text(seen.object(), "sender_phone"); got != "********1111" {
		t.Errorf("the vendor reads %q", got)
	}
	for _, name := range []string{"Jane Roe", "Amina Otieno"} {
		if strings.Contains(string(seen.body), name) {
			t.Errorf("the vendor reads %s in %s", name, seen.body)
		}
	}
	bank := map[string]any{"payment_method": "bank", "beneficiary_bank_name": "Equity", "beneficiary_account_number": "0123 4567 89", "beneficiary_swift_code": "eqblkena"}
	for name, value := range body {
		if name != "payment_phone_number" {
			bank[name] = value
		}
	}
	paid := c.open(c.customer, bank).want(http.StatusCreated).object()
	if paid["payment_method"] != "bank" || text(paid, "beneficiary_account_number") != "0123456789" || text(paid, "beneficiary_swift_code") != "EQBLKENA" {
		t.Errorf("by bank the order is %v", paid)
	}
	hidden := c.do(get, ordersPath+"/"+paid["id"].(string), nil, c.vendor.auth()).want(200).object()
	if got := text(hidden, "beneficiary_account_number"); got != "******6789" {
		t.Errorf("the vendor reads the account %q", got)
	}
	for role, want := range map[exchange.Role]string{exchange.RoleOTCOfficer: "******6789", exchange.RoleTreasury: "0123456789", exchange.RoleAdmin: "0123456789"} {
		o := c.do(get, ordersPath+"/"+paid["id"].(string), nil, c.person(role).auth()).want(200).object()
		if got := text(o, "beneficiary_account_number"); got != want || text(o, "sender_name") != "Jane Roe" {
			t.Errorf("a %s reads the account %q of %q", role, got, text(o, "sender_name"))
		}
	}
	bank["payment_phone_number"] = "0712345678"
	c.open(c.customer, bank).blames("/payment_phone_number forbidden")
	delete(body, "sender_name")
	c.open(c.customer, body).blames("/sender_name required")
	body["sender_name"], body["sender_phone"] = "Jane Roe", "+44 7700 900123"
	c.open(c.customer, body).blames("/sender_phone mismatch")
	body["sender_phone"] = "+254 7111"
	c.open(c.customer, body).blames("/sender_phone format")
	body["sender_country"], body["sender_phone"] = "ZZ", "+254711111111"
	c.open(c.customer, body).blames("/sender_country not_found")
	for _, call := range c.flows.calls {
		if strings.Contains(call, "Roe") {
			t.Errorf("a flow was asked with %s", call)
		}
	}
}

// A merchant opens orders for a named customer, with the customer's registered number and wallet, one at a time.
func TestMerchantsOpenForCustomers(t *testing.T) {
	c := openCounter(t)
	sub := c.person(exchange.RoleSubvendor, c.vendor.ID)
	rival := c.person(exchange.RoleVendor)
	bare := c.person(exchange.RoleCustomer)
	wallet := c.env.wallet(c.customer)
	bought := c.sell(map[string]any{"order_type": "OFF_RAMP_BUY", "customer": map[string]any{"phone_number": c.customer.PhoneNumber.Digits()}})
	o := c.open(sub, bought).want(http.StatusCreated).object()
	if o["customer_id"] != c.customer.ID.String() || o["vendor_id"] != c.vendor.ID.String() || o["order_subtype"] != "standard_offramp" {
		t.Errorf("the order is %v", o)
	}
	id := o["id"].(string)
	theirs := c.do(get, ordersPath+"/"+id, nil, c.customer.auth()).want(200).object()
	if back := theirs["refund_address"].(map[string]any)["String"]; back != wallet.Address {
		t.Errorf("the crypto goes back to %v, want %s", back, wallet.Address)
	}
	c.open(c.vendor, bought).refused(exchange.CodeLimitReached)
	sold := c.request(map[string]any{"order_type": "ON_RAMP_SELL", "wallet_address": nil, "customer": map[string]any{"email": c.customer.Email}})
	c.open(c.vendor, sold).refused(exchange.CodeLimitReached)
	c.do(post, ordersPath+"/"+id+"/cancel", nil, c.vendor.auth()).want(200)
	p := c.open(c.vendor, sold).want(http.StatusCreated).object()
	if p["wallet_address"] != wallet.Address || p["order_type"] != "ON_RAMP_SELL" || p["customer_id"] != c.customer.ID.String() {
		t.Errorf("the purchase is %v", p)
	}
	c.do(post, ordersPath+"/"+p["id"].(string)+"/cancel", nil, c.vendor.auth()).want(200)

	own := c.env.sale(c.customer, c.buys.ID)
	c.do(post, ordersPath+"/"+own.ID.String()+"/cancel", nil, c.vendor.auth()).refused(exchange.CodeForbidden)
	c.open(rival, bought).blames("/offer_id not_found")
	for want, more := range map[string]map[string]any{
		"/customer required":              {"customer": nil},
		"/customer not_found":             {"customer": map[string]any{"user_id": newID().String()}},
		"/customer/email format":          {"customer": map[string]any{"email": "nobody"}},
		"/payment_phone_number forbidden": {"payment_phone_number": "0712345678"},
		"/refund_address forbidden":       {"refund_address": goodAddress},
		"/wallet_id forbidden":            {"wallet_id": wallet.ID.String()},
	} {
		body := map[string]any{}
		for k, v := range bought {
			body[k] = v
		}
		for k, v := range more {
			if body[k] = v; v == nil {
				delete(body, k)
			}
		}
		c.open(c.vendor, body).blames(want)
	}
	bought["customer"] = map[string]any{"user_id": c.vendor.ID.String()} // no customer
	c.open(c.vendor, bought).blames("/customer not_found")
	bought["customer"] = map[string]any{"user_id": c.customer.ID.String(), "email": c.customer.Email}
	c.open(c.vendor, bought).blames("/customer required")
	sold["customer"] = map[string]any{"user_id": bare.ID.String()}
	c.open(c.vendor, sold).blames("/customer no_wallet")
}

// A kind of another role is forbidden; fields that a kind must not have are named.
func TestKindsOfOrders(t *testing.T) {
	c := openCounter(t)
	c.open(c.customer, c.sell(map[string]any{"order_type": "OFF_RAMP_BUY", "customer": map[string]any{"user_id": c.customer.ID.String()}})).refused(exchange.CodeForbidden)
	c.open(c.customer, c.request(map[string]any{"order_type": "ON_RAMP_SELL"})).refused(exchange.CodeForbidden)
	c.open(c.vendor, c.sell(nil)).refused(exchange.CodeForbidden)
	c.open(c.vendor, c.request(nil)).refused(exchange.CodeForbidden)
	c.open(c.person(exchange.RoleAdmin), c.sell(nil)).refused(exchange.CodeForbidden)
	for want, more := range map[string]map[string]any{
		"/order_subtype mismatch":          {"order_subtype": "standard_onramp"},
		"/order_subtype enum":              {"order_subtype": "gift"},
		"/customer forbidden":              {"customer": map[string]any{"email": "a@example.com"}},
		"/wallet_address forbidden":        {"wallet_address": goodAddress},
		"/refund_address address":          {"refund_address": mistypedAddress},
		"/asset mismatch":                  {"asset": "USDC"},
		"/network mismatch":                {"network": "solana"},
		"/fx_rate_quote_id forbidden":      {"fx_rate_quote_id": newID().String()},
		"/payment_method enum":             {"payment_method": "bank", "beneficiary_account_name": nil},
		"/sender_name forbidden":           {"sender_name": "Jane"},
		"/beneficiary_bank_name forbidden": {"beneficiary_bank_name": "Equity"},
		"/crypto_amount range":             {"crypto_amount": "1"},
		"/beneficiary_swift_code too_long": {"beneficiary_swift_code": "EQBLKENAXXXX"},
		"/payment_phone_number format":     {"payment_phone_number": "+4915112345678"},
		"/refund_address too_long":         {"refund_address": strings.Repeat("T", 129)},
		"/beneficiary_account_number type": {"beneficiary_account_number": 5},
	} {
		c.open(c.customer, c.sell(more)).blames(want)
	}
	refusal := c.open(c.customer, c.sell(map[string]any{"offer_id": c.offer.ID.String(), "crypto_amount": "2"})).refused(exchange.CodeStateConflict)
	if !strings.Contains(refusal.problem().Detail, "an offer that buys") {
		t.Errorf("a sale to a selling offer: %s", refusal.problem().Detail)
	}
}

// Only the customer sets the refund address, and only once.
func TestRefundAddresses(t *testing.T) {
	c := openCounter(t)
	o := c.env.sale(c.customer, c.buys.ID)
	path := ordersPath + "/" + o.ID.String() + "/refund-address"
	say := func(who person, address string) *reply {
		return c.do(patch, path, map[string]any{"refund_address": address}, who.auth())
	}
	say(c.customer, mistypedAddress).blames("/refund_address address")
	say(c.customer, "").blames("/refund_address required")
	say(c.vendor, goodAddress).refused(exchange.CodeForbidden)
	say(c.person(exchange.RoleVendor), goodAddress).refused(exchange.CodeNotFound)
	say(c.person(exchange.RoleCustomer), goodAddress).refused(exchange.CodeNotFound)
	for range 2 {
		if got := say(c.customer, goodAddress).want(200).object()["refund_address"].(map[string]any)["String"]; got != goodAddress {
			t.Errorf("it is %v", got)
		}
	}
	say(c.customer, c.env.wallet(c.customer).Address).blames("/refund_address address") // the fakes' addresses have no checksum
	path = ordersPath + "/" + c.soldToHouse(c.vendor).ID.String() + "/refund-address"
	for _, who := range []person{c.person(exchange.RoleSubvendor, c.vendor.ID), c.vendor} {
		if got := say(who, goodAddress).want(200).object()["refund_address"].(map[string]any)["String"]; got != goodAddress {
			t.Errorf("what a %s sells to the house goes back to %v", who.Role, got)
		}
	}
	c.do(patch, ordersPath+"/"+c.order(c.customer, c.offer.ID).ID.String()+"/refund-address", map[string]any{"refund_address": goodAddress}, c.customer.auth()).
		refused(exchange.CodeStateConflict)
}

// offer_id without an offer: null for a custodial remittance, absent for a sale to the treasury.
func TestOffersOnTheWire(t *testing.T) {
	o := exchange.Order{Type: exchange.OffRampSell, Subtype: exchange.CustodialRemittanceOffRamp, Price: exchange.SellByCrypto(money.Must(money.USDT, "10"), decimal.RequireFromString("129.355"))}
	if text := encoded(t, orderWire(o, exchange.Principal{})); !strings.Contains(text, `"offer_id":null`) {
		t.Errorf("a custodial remittance is %s", text)
	}
	o.Subtype = exchange.TreasuryOffRamp
	if text := encoded(t, orderWire(o, exchange.Principal{})); strings.Contains(text, "offer_id") {
		t.Errorf("a sale to the treasury is %s", text)
	}
	o.Type, o.Subtype = exchange.OnRampBuy, exchange.TreasuryOnRamp
	if text := encoded(t, orderWire(o, exchange.Principal{})); strings.Contains(text, "offer_id") {
		t.Errorf("a purchase from the treasury is %s", text)
	}
	o.Type, o.Subtype, o.OfferID = exchange.OffRampSell, exchange.StandardOffRamp, newID()
	if text := encoded(t, orderWire(o, exchange.Principal{})); !strings.Contains(text, `"offer_id":"`+o.OfferID.String()+`"`) {
		t.Errorf("a sale is %s", text)
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// quoted is a quote for ten USDT.
func (c counter) quoted(who person) string {
	c.t.Helper()
	return c.do(post, "/api/v1/auth/pricing/quotes", map[string]any{"purpose": "offramp", "offer_type": "BUY", "asset": "USDT", "amount": "10"}, who.auth(),
		withKey(newID().String())).want(http.StatusCreated).text("id")
}

// The house sells at a quote, to customers and merchants, out of its inventory.
func TestPurchasesWithQuotes(t *testing.T) {
	c := openCounter(t)
	c.rate("129", "131")
	c.house()
	sub := c.person(exchange.RoleSubvendor, c.vendor.ID)
	quoted := func(who person, amount string) *reply {
		return c.do(post, "/api/v1/auth/pricing/quotes", map[string]any{"purpose": "onramp", "offer_type": "SELL", "asset": "USDT", "amount": amount, "network": "tron"},
			who.auth(), withKey(newID().String()))
	}
	buy := func(quote string, more map[string]any) map[string]any {
		body := map[string]any{"order_type": "ON_RAMP_BUY", "order_subtype": "treasury_onramp", "fx_rate_quote_id": quote, "wallet_address": goodAddress}
		for k, v := range more {
			if body[k] = v; v == nil {
				delete(body, k)
			}
		}
		return body
	}
	for _, who := range []person{c.customer, c.vendor, sub} {
		quote := quoted(who, "10").want(http.StatusCreated).text("id")
		r := c.open(who, buy(quote, nil)).want(http.StatusCreated)
		o := r.object()
		if _, there := o["offer_id"]; there || o["vendor_id"] != exchange.PlatformTreasury.String() || o["fiat_amount"] != "1310.00" || o["crypto_amount"] != "10.000000" ||
			o["network"] != "tron" || o["fx_rate_quote_id"] != quote {
			t.Errorf("a %s buys %s", who.Role, r.body)
		}
		c.open(who, buy(quote, nil)).refused(exchange.CodeStateConflict) // it was used
		c.do(post, ordersPath+"/"+o["id"].(string)+"/retry-payment", nil, who.auth(), freshKey()).want(http.StatusOK)
		c.do(post, ordersPath+"/"+o["id"].(string)+"/cancel", nil, who.auth(), freshKey()).want(http.StatusOK)
	}
	c.do(post, ordersPath+"/"+c.order(c.customer, c.offer.ID).ID.String()+"/retry-payment", nil, c.vendor.auth(), freshKey()).refused(exchange.CodeForbidden)
	mine := quoted(c.customer, "10").text("id")
	for want, more := range map[string]map[string]any{
		"/fx_rate_quote_id required":  {"fx_rate_quote_id": nil, "crypto_amount": "10", "network": "tron"},
		"/fx_rate_quote_id not_found": {"fx_rate_quote_id": quoted(c.vendor, "10").text("id")},
		"/network mismatch":           {"network": "ethereum", "wallet_address": nil},
		"/fiat_amount forbidden":      {"fiat_amount": "1310"},
		"/offer_id forbidden":         {"offer_id": c.offer.ID.String()},
		"/expected_rate forbidden":    {"expected_rate": "131"},
		"/crypto_amount mismatch":     {"crypto_amount": "11"},
		"/refund_address forbidden":   {"refund_address": goodAddress},
	} {
		c.open(c.customer, buy(mine, more)).blames(want)
	}
	quoted(c.customer, "5000.000001").refused(exchange.CodeInsufficientFunds)
	if priced := c.do(get, "/api/v1/auth/pricing/indicative?purpose=onramp&offer_type=SELL&asset=USDT&amount=10&network=tron", nil, c.customer.auth()).want(200).object(); priced["fiat_amount"] != "1310.00" {
		t.Errorf("ten cost about %v", priced["fiat_amount"])
	}
}

// The house buys at a quote, from customers and merchants, and from custodial wallets.
func TestSalesWithQuotes(t *testing.T) {
	c := openCounter(t)
	if err := c.store.SeedCatalogs(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.rate("129", "131")
	storetest.AgreeValuations(t, c.store)
	storetest.Shillings(t, c.store, exchange.PlatformTreasury, money.Must(money.KES, "20000"))
	storetest.TreasuryWallet(t, c.store, exchange.Tron)
	wallet := c.env.wallet(c.customer)
	c.fund(wallet, "10")
	sub := c.person(exchange.RoleSubvendor, c.vendor.ID)
	treasury := func(quote string, more map[string]any) map[string]any {
		body := map[string]any{"order_type": "OFF_RAMP_SELL", "order_subtype": "treasury_offramp", "fx_rate_quote_id": quote, "network": "tron"}
		for k, v := range more {
			if body[k] = v; v == nil {
				delete(body, k)
			}
		}
		return body
	}
	for _, who := range []person{c.customer, c.vendor, sub} {
		r := c.open(who, treasury(c.quoted(who), nil)).want(http.StatusCreated)
		o := r.object()
		if _, there := o["offer_id"]; there || o["vendor_id"] != exchange.PlatformTreasury.String() || o["fiat_amount"] != "1290.00" || o["crypto_amount"] != "10.000000" {
			t.Errorf("a %s sells %s", who.Role, r.body)
		}
	}
	if found := c.do(get, ordersPath+"?order_subtype=treasury_offramp", nil, sub.auth()).want(200).object(); found["total"] != 2.0 {
		t.Errorf("the merchant lists %v sales to the house", found["total"])
	}
	mine := c.quoted(c.customer)
	for want, more := range map[string]map[string]any{
		"/fx_rate_quote_id required":  {"fx_rate_quote_id": nil, "crypto_amount": "10"},
		"/fx_rate_quote_id not_found": {"fx_rate_quote_id": c.quoted(c.vendor)},
		"/network required":           {"network": nil},
		"/network mismatch":           {"network": "ethereum", "wallet_id": wallet.ID.String()},
		"/fiat_amount forbidden":      {"fiat_amount": "1290"},
		"/offer_id forbidden":         {"offer_id": c.buys.ID.String()},
		"/expected_rate forbidden":    {"expected_rate": "129"},
		"/sender_name forbidden":      {"sender_name": "Jane"},
		"/crypto_amount mismatch":     {"crypto_amount": "11"},
		"/wallet_id not_found":        {"wallet_id": c.market.wallet.ID.String()},
	} {
		c.open(c.customer, treasury(mine, more)).blames(want)
	}
	remittance := map[string]any{
		"order_type": "OFF_RAMP_SELL", "order_subtype": "custodial_remittance_offramp", "fx_rate_quote_id": mine, "wallet_id": wallet.ID.String(),
		"sender_name": "Jane Roe", "sender_country": "KE", "sender_phone": "+254711111111", "beneficiary_account_name": "Amina Otieno", "payment_phone_number": "0712345678",
	}
	r := c.open(c.customer, remittance).want(http.StatusCreated)
	if !strings.Contains(string(r.body), `"offer_id":null`) || r.object()["network"] != "tron" || r.object()["refund_address"].(map[string]any)["String"] != wallet.Address {
		t.Errorf("the remittance is %s", r.body)
	}
	remittance["fx_rate_quote_id"] = c.quoted(c.customer)
	remittance["refund_address"] = goodAddress
	c.open(c.customer, remittance).blames("/refund_address forbidden")
	delete(remittance, "refund_address")
	delete(remittance, "wallet_id")
	c.open(c.customer, remittance).blames("/wallet_id required")
	remittance["fx_rate_quote_id"] = c.quoted(c.vendor)
	c.open(c.vendor, remittance).refused(exchange.CodeForbidden)
}

// A vendor sees in events that crypto is refunded to a customer, but not the address.
func TestEventsHideWhereCryptoGoesBackTo(t *testing.T) {
	vendor, customer := newID(), newID()
	said := `{"status":"pending","address":"` + goodAddress + `"}`
	signed := `{"purpose":"refund","to_address":"` + goodAddress + `"}`
	sent := `{"purpose":"order","to_address":"` + goodAddress + `"}`
	for _, c := range []struct {
		who             exchange.Principal
		owner           uuid.UUID
		object, payload string
		shown           bool
	}{
		{exchange.Principal{Role: exchange.RoleVendor, UserID: vendor, VendorID: vendor}, customer, "refund", said, false},
		{exchange.Principal{Role: exchange.RoleSubvendor, UserID: newID(), VendorID: vendor}, customer, "chain_payment", signed, false},
		{exchange.Principal{Role: exchange.RoleVendor, UserID: vendor, VendorID: vendor}, customer, "chain_payment", sent, true},
		{exchange.Principal{Role: exchange.RoleVendor, UserID: vendor, VendorID: vendor}, vendor, "refund", said, true},
		{exchange.Principal{Role: exchange.RoleCustomer, UserID: customer}, customer, "refund", said, true},
		{exchange.Principal{Role: exchange.RoleTreasury, UserID: newID()}, customer, "chain_payment", signed, true},
	} {
		caller := &call{who: c.who}
		shown := caller.eventWire(exchange.Event{ObjectType: c.object, OwnerID: c.owner, VendorID: vendor, Payload: []byte(c.payload)})
		if text := encoded(t, shown); strings.Contains(text, goodAddress) != c.shown || !strings.Contains(text, "pending") && !strings.Contains(text, "purpose") {
			t.Errorf("a %s reads %s", c.who.Role, text)
		}
	}
}
