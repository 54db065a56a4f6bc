package api

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// market is a vendor with an active offer and a customer.
type market struct {
	*env
	vendor, customer person
	wallet           exchange.Wallet
	offer            exchange.Offer
}

func openMarket(t *testing.T, changes ...func(*Deps)) market {
	t.Helper()
	e := start(t, changes...)
	m := market{env: e, vendor: e.person(exchange.RoleVendor), customer: e.person(exchange.RoleCustomer)}
	m.wallet = e.wallet(m.vendor)
	m.offer = e.offer(m.vendor, m.wallet)
	return m
}

func (m market) request(more map[string]any) map[string]any {
	body := map[string]any{"offer_id": m.offer.ID.String(), "crypto_amount": "10.5", "wallet_address": goodAddress}
	for name, value := range more {
		if value == nil {
			delete(body, name)
		} else {
			body[name] = value
		}
	}
	return body
}

const ordersPath = "/api/v1/auth/orders"

func TestOpenOrder(t *testing.T) {
	m := openMarket(t)
	r := m.do(post, ordersPath, m.request(nil), m.customer.auth(), withKey("a")).want(http.StatusCreated)
	o := r.object()
	for name, want := range map[string]any{
		"crypto_amount": "10.500000", "usdt_amount": "10.500000", "fiat_amount": "1360.00", "fiat_currency": "KES", "status": "pending",
		"asset": "USDT", "network": "tron", "order_type": "ON_RAMP_BUY", "order_subtype": "standard_onramp", "wallet_address": goodAddress,
		"payment_method": "momo", "status_detail": "prompt", "rate": "129.5", "customer_id": m.customer.ID.String(), "vendor_id": m.vendor.ID.String(),
	} {
		if o[name] != want {
			t.Errorf("%s is %v, want %v", name, o[name], want)
		}
	}
	phone := o["payment_phone_number"].(map[string]any)
	if phone["String"] != m.customer.PhoneNumber.Digits() || phone["Valid"] != true {
		t.Errorf("payment_phone_number %v", phone)
	}
	empty := o["blockchain_txn_hash"].(map[string]any)
	if empty["String"] != "" || empty["Valid"] != false {
		t.Errorf("blockchain_txn_hash %v", empty)
	}
	never := o["completed_at"].(map[string]any)
	if never["Time"] != "0001-01-01T00:00:00.000Z" || never["Valid"] != false {
		t.Errorf("completed_at %v", never)
	}
	if r.header.Get("Location") != ordersPath+"/"+r.text("id") {
		t.Errorf("Location %s", r.header.Get("Location"))
	}
	left := m.do(get, "/api/v1/auth/offers/"+m.offer.ID.String(), nil, m.customer.auth()).want(200)
	if left.text("available_amount") != "89.500000" {
		t.Errorf("the offer has %s left", left.text("available_amount"))
	}
	byFiat := m.do(post, ordersPath, m.request(map[string]any{"crypto_amount": nil, "fiat_amount": "1300", "payment_phone_number": "0712 345 678"}),
		m.customer.auth(), withKey("b")).want(http.StatusCreated)
	if byFiat.text("crypto_amount") != "10.038610" || byFiat.text("fiat_amount") != "1300.00" {
		t.Errorf("1300 shillings buy %s for %s", byFiat.text("crypto_amount"), byFiat.text("fiat_amount"))
	}
}

// TestOrdersAtAnExpectedRate checks that an order opens only at the rate that the customer saw.
func TestOrdersAtAnExpectedRate(t *testing.T) {
	m := openMarket(t)
	m.do(post, ordersPath, m.request(map[string]any{"expected_rate": "129.50"}), m.customer.auth(), withKey("a")).want(http.StatusCreated)
	m.do(post, ordersPath, m.request(map[string]any{"expected_rate": "129"}), m.customer.auth(), withKey("b")).refused(exchange.CodeRateChanged)
	for i, bad := range []any{129.5, "0", "-1", "1e3", "129.5000001"} {
		refusal := m.do(post, ordersPath, m.request(map[string]any{"expected_rate": bad}), m.customer.auth(), withKey(string(rune('c'+i)))).refused(exchange.CodeInvalid)
		if fields := refusal.problem().Errors; len(fields) != 1 || fields[0].Pointer != "/expected_rate" {
			t.Errorf("%v is blamed on %+v", bad, fields)
		}
	}
}

func TestOrderRequestsAreChecked(t *testing.T) {
	m := openMarket(t)
	draft := m.draft(m.vendor, m.wallet)
	for name, c := range map[string]struct {
		more  map[string]any
		blame string
	}{
		"seven places":          {map[string]any{"crypto_amount": "1.1234567"}, "/crypto_amount precision"},
		"negative":              {map[string]any{"crypto_amount": "-1"}, "/crypto_amount format"},
		"exponent":              {map[string]any{"crypto_amount": "1e3"}, "/crypto_amount format"},
		"empty":                 {map[string]any{"crypto_amount": ""}, "/crypto_amount required"},
		"number":                {map[string]any{"crypto_amount": 10.5}, "/crypto_amount type"},
		"zero":                  {map[string]any{"crypto_amount": "0"}, "/crypto_amount out_of_range"},
		"both amounts":          {map[string]any{"fiat_amount": "100"}, "/fiat_amount conflict"},
		"no amount":             {map[string]any{"crypto_amount": nil}, "/crypto_amount required"},
		"cents":                 {map[string]any{"crypto_amount": nil, "fiat_amount": "100.50"}, "/fiat_amount precision"},
		"number of shillings":   {map[string]any{"crypto_amount": nil, "fiat_amount": 100}, "/fiat_amount type"},
		"wrong checksum":        {map[string]any{"wallet_address": mistypedAddress}, "/wallet_address address"},
		"Ethereum address":      {map[string]any{"wallet_address": ethereumAddress}, "/wallet_address address"},
		"long address":          {map[string]any{"wallet_address": strings.Repeat("T", 200)}, "/wallet_address too_long"},
		"no wallet":             {map[string]any{"wallet_address": nil}, "/wallet_address required"},
		"unknown field":         {map[string]any{"customer_id": m.vendor.ID.String()}, "/customer_id unknown_field"},
		"price is not theirs":   {map[string]any{"rate": "1"}, "/rate unknown_field"},
		"absent offer":          {map[string]any{"offer_id": newID().String()}, "/offer_id not_found"},
		"somebody's draft":      {map[string]any{"offer_id": draft.ID.String()}, "/offer_id not_found"},
		"no offer":              {map[string]any{"offer_id": nil}, "/offer_id required"},
		"offer is no id":        {map[string]any{"offer_id": "7"}, "/offer_id format"},
		"foreign phone":         {map[string]any{"payment_phone_number": "+4915112345678"}, "/payment_phone_number format"},
		"unicode digits":        {map[string]any{"crypto_amount": "١٠"}, "/crypto_amount format"},
		"unknown type of order": {map[string]any{"order_type": "GIFT"}, "/order_type enum"},
	} {
		t.Run(name, func(t *testing.T) {
			m.doIn(t, post, ordersPath, m.request(c.more), m.customer.auth(), withKey(newID().String())).blames(c.blame)
		})
	}
	for name, amount := range map[string]string{"below the minimum": "0.5", "above the maximum": "51"} {
		r := m.do(post, ordersPath, m.request(map[string]any{"crypto_amount": amount}), m.customer.auth(), withKey(newID().String())).refused(exchange.CodeInvalid)
		if p := r.problem(); len(p.Errors) != 1 || p.Errors[0].Pointer != "/crypto_amount" {
			t.Errorf("%s: %s", name, r.body)
		}
	}
	if n := m.flows.count(); n != 4 { // the vendor's wallet, the missing default wallet, and the two that only the offer's bounds refuse
		t.Errorf("%d flows were asked", n)
	}
	m.do(post, ordersPath, m.request(nil), m.customer.auth()).refused(exchange.CodeIdempotencyRequired)
	for _, key := range []string{strings.Repeat("k", 256), "with space", "ümlaut"} {
		m.do(post, ordersPath, m.request(nil), m.customer.auth(), withKey(key)).blames("header/Idempotency-Key format")
	}
}

// TestMessagesReadWell pins the messages of the most common mistakes.
func TestMessagesReadWell(t *testing.T) {
	m := openMarket(t)
	for want, more := range map[string]map[string]any{
		"has a wrong checksum: a character is mistyped or missing":                                         {"wallet_address": mistypedAddress},
		"is an Ethereum address (0x…); a TRON address starts with T":                                       {"wallet_address": ethereumAddress},
		"has too many decimal places: at most 6":                                                           {"crypto_amount": "1.1234567"},
		`must be a decimal string such as "10.50"; amounts are never JSON numbers`:                         {"crypto_amount": 10.5},
		"must be whole shillings, because mobile money moves no cents":                                     {"crypto_amount": nil, "fiat_amount": "10.50"},
		"must be a Kenyan mobile number such as 0712345678 or +254712345678":                               {"payment_phone_number": "12345"},
		"is not a field of this request":                                                                   {"amount": "10"},
		"must be ON_RAMP_BUY, ON_RAMP_SELL, OFF_RAMP_BUY or OFF_RAMP_SELL":                                 {"order_type": "BUY"},
		"must be a UUID such as 019a9f5e-0000-7000-8000-000000000000":                                      {"offer_id": "offer"},
		"must be a plain decimal number such as 10 or 10.50, without sign, exponent, spaces or separators": {"crypto_amount": "1,5"},
	} {
		r := m.do(post, ordersPath, m.request(more), m.customer.auth(), withKey(newID().String())).refused(exchange.CodeInvalid)
		if got := r.problem().Errors[0].Message; got != want {
			t.Errorf("says %q, want %q", got, want)
		}
	}
}

func TestOrderKeysProtectTheMoney(t *testing.T) {
	m := openMarket(t)
	first := m.do(post, ordersPath, m.request(nil), m.customer.auth(), withKey("same")).want(http.StatusCreated)
	again := m.do(post, ordersPath, m.request(nil), m.customer.auth(), withKey("same")).want(http.StatusCreated)
	if !bytes.Equal(first.body, again.body) || again.header.Get(headerReplayed) != "true" || again.header.Get("Location") != first.header.Get("Location") {
		t.Errorf("the replay differs: %s", again.body)
	}
	m.do(post, ordersPath, m.request(map[string]any{"crypto_amount": "11"}), m.customer.auth(), withKey("same")).refused(exchange.CodeIdempotencyReused)
	other := m.person(exchange.RoleUser)
	m.do(post, ordersPath, m.request(nil), other.auth(), withKey("same")).want(http.StatusCreated)

	// The response was lost: the order may exist, so the retry must request the same one.
	m.flows.failWith(exchange.Errorf(exchange.CodeUnavailable, "late"))
	late := m.do(post, ordersPath, m.request(nil), m.customer.auth(), withKey("late")).refused(exchange.CodeUnavailable)
	if late.header.Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	m.flows.failWith(nil)
	m.do(post, ordersPath, m.request(nil), m.customer.auth(), withKey("late")).want(http.StatusCreated)
	calls := m.flows.calls
	if a, b := calls[len(calls)-2], calls[len(calls)-1]; a != b {
		t.Errorf("the retry asked for %s after %s", b, a)
	}
}

func TestOrdersAreTheirOwners(t *testing.T) {
	m := openMarket(t)
	o := m.order(m.customer, m.offer.ID)
	rival, stranger, admin := m.person(exchange.RoleVendor), m.person(exchange.RoleCustomer), m.person(exchange.RoleAdmin)
	sub := m.person(exchange.RoleSubvendor, m.vendor.ID)
	path := ordersPath + "/" + o.ID.String()
	for _, p := range []person{m.customer, m.vendor, sub, admin} {
		m.do(get, path, nil, p.auth()).want(200)
		if list := m.do(get, ordersPath, nil, p.auth()).want(200).object(); list["total"] != 1.0 {
			t.Errorf("%s lists %v orders", p.Role, list["total"])
		}
		if found := m.do(get, ordersPath+"/search?page_id=1&page_size=10&query="+o.ID.String(), nil, p.auth()).want(200); len(found.array()) != 1 {
			t.Errorf("%s finds %s", p.Role, found.body)
		}
		if answerOrder := m.do(get, path+"/timeline", nil, p.auth()).want(200).object(); len(answerOrder["events"].([]any)) == 0 {
			t.Errorf("%s reads an empty timeline", p.Role)
		}
	}
	absent := m.do(get, ordersPath+"/"+newID().String(), nil, rival.auth()).refused(exchange.CodeNotFound)
	for _, p := range []person{rival, stranger} {
		foreign := m.do(get, path, nil, p.auth()).refused(exchange.CodeNotFound)
		if !bytes.Equal(anonymous(foreign), anonymous(absent)) {
			t.Errorf("foreign answers %s, absent %s", foreign.body, absent.body)
		}
		m.do(get, path+"/timeline", nil, p.auth()).refused(exchange.CodeNotFound)
		if list := m.do(get, ordersPath, nil, p.auth()).want(200).object(); list["total"] != 0.0 {
			t.Errorf("a stranger lists %v orders", list["total"])
		}
		if found := m.do(get, ordersPath+"/search?page_id=1&page_size=10&query="+o.ID.String(), nil, p.auth()).want(200); len(found.array()) != 0 {
			t.Errorf("a stranger finds %s", found.body)
		}
	}
	seen := m.do(get, path, nil, m.vendor.auth()).object()["payment_phone_number"].(map[string]any)["String"].(string)
	if seen == m.customer.PhoneNumber.Digits() || !strings.HasSuffix(m.customer.PhoneNumber.Digits(), strings.TrimLeft(seen, "*")) {
		t.Errorf("the vendor reads the payer's number %q", seen)
	}
	for _, q := range []string{"page_id=1&page_size=10", "query=x&page_id=1", "query=x&page_size=10", "query=x&page_id=0&page_size=10", "query=x&page_id=1&page_size=101", "query=%00&page_id=1&page_size=5"} {
		m.do(get, ordersPath+"/search?"+q, nil, m.customer.auth()).refused(exchange.CodeInvalid)
	}
}

func TestOrderVerbs(t *testing.T) {
	m := openMarket(t)
	o := m.order(m.customer, m.offer.ID)
	path := ordersPath + "/" + o.ID.String()
	admin := m.person(exchange.RoleAdmin)
	m.do(post, path+"/retry-payment", nil, m.customer.auth()).refused(exchange.CodeIdempotencyRequired)
	m.do(post, path+"/retry-payment", nil, m.customer.auth(), withKey("r")).want(200)
	m.do(post, path+"/refund", map[string]any{}, admin.auth(), withKey("x")).blames("/note required")
	m.do(post, path+"/refund", map[string]any{"note": "lost in the desert"}, admin.auth(), withKey("y")).want(200)
	if got := m.do(post, path+"/retry", nil, admin.auth(), withKey("z")).want(202); got.text("retry") != "requested" || got.text("id") != o.ID.String() {
		t.Errorf("a retry is answered %s", got.body)
	}
	if got := m.do(get, path, nil, admin.auth()).want(200).object(); got["retry"] != nil {
		t.Errorf("an order that is read says retry: %v", got["retry"])
	}
	if got := m.do(post, path+"/cancel", nil, m.customer.auth()).want(200).text("status"); got != "cancelled" {
		t.Errorf("cancelled order is %s", got)
	}
	m.flows.failWith(exchange.Errorf(exchange.CodeNotFound, "The flow has ended."))
	r := m.do(post, path+"/retry-payment", nil, m.customer.auth(), withKey("late")).refused(exchange.CodeStateConflict)
	if !strings.Contains(r.problem().Detail, "cancelled") {
		t.Errorf("says %q", r.problem().Detail)
	}
}

// TestCommandsReachWatchesOverLateMoney sends commands about an order whose own flow accepts none: they go once to
// the flow that watches for late money, whether or not the money has arrived.
func TestCommandsReachWatchesOverLateMoney(t *testing.T) {
	m := openMarket(t)
	o := m.order(m.customer, m.offer.ID)
	path, admin := ordersPath+"/"+o.ID.String(), m.person(exchange.RoleAdmin)
	var prompts []uuid.UUID
	for range 3 {
		a := storetest.Attempt(t, m.store, o)
		prompts = append(prompts, a.ID)
		if _, err := m.store.RecordFailure(t.Context(), a.ID, exchange.Observation{State: exchange.SeenFailed, Soft: true, Code: "1037", Class: exchange.ClassUnanswered}); err != nil {
			t.Fatal(err)
		}
	}
	over := exchange.Errorf(exchange.CodeNotFound, "The flow has ended.")
	idle := exchange.Errorf(exchange.CodeStateConflict, "The flow does not wait for a command.")
	other := exchange.Errorf(exchange.CodeStateConflict, "A flow that is parked with outcome-unknown does not accept refund.")
	away := exchange.Errorf(exchange.CodeUnavailable, "later")
	note := map[string]any{"note": "found at the operator"}
	refund := func(key string) *reply {
		return m.do(post, path+"/refund", note, admin.auth(), withKey(strings.ReplaceAll(key, " ", "-")))
	}
	for _, c := range []struct {
		key     string
		flow    error
		watches map[uuid.UUID]error
		asked   int
		code    exchange.Code
	}{
		{key: "none", flow: over, asked: 3, code: exchange.CodeStateConflict},
		{key: "the second", flow: over, watches: map[uuid.UUID]error{prompts[1]: nil}, asked: 2},
		{key: "the order's flow is at work", flow: idle, watches: map[uuid.UUID]error{prompts[2]: nil}, asked: 3},
		{key: "another verb first", flow: over, watches: map[uuid.UUID]error{prompts[0]: other, prompts[1]: nil}, asked: 2},
		{key: "no watch takes it", flow: over, watches: map[uuid.UUID]error{prompts[0]: other}, asked: 3, code: exchange.CodeStateConflict},
		{key: "watches do not answer", flow: over, watches: map[uuid.UUID]error{prompts[0]: away, prompts[1]: nil}, asked: 1, code: exchange.CodeUnavailable},
		{key: "the order's flow does not answer", flow: away, watches: map[uuid.UUID]error{prompts[0]: nil}, code: exchange.CodeUnavailable},
	} {
		t.Run(c.key, func(t *testing.T) {
			m.flows.failWith(c.flow)
			m.flows.watches = c.watches
			before := m.flows.count()
			r := refund(c.key)
			if c.code == "" {
				r.want(200)
			} else {
				r.refused(c.code)
			}
			if asked := m.flows.count() - before - 1; asked != c.asked {
				t.Errorf("%d watches were asked, want %d", asked, c.asked)
			}
		})
	}
	m.flows.failWith(over)
	m.flows.takes, m.flows.watches = true, map[uuid.UUID]error{prompts[0]: nil}
	before := m.flows.count()
	refund("taken by the order's flow, which is over since").refused(exchange.CodeStateConflict)
	if m.flows.count() != before+1 {
		t.Error("a command that was applied was sent on to a watch")
	}
	if r := refund("no watch takes it"); !strings.Contains(r.problem().Detail, "does not accept refund") {
		t.Errorf("says %q", r.problem().Detail)
	}
}
