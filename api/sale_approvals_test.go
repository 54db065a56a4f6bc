package api

import (
	"net/http"
	"testing"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

// soldFromWallet opens a sale of 10 USDT from the customer's wallet in our custody, about which officers have to decide.
func (e *env) soldFromWallet(customer person, offer exchange.Offer) exchange.Order {
	e.t.Helper()
	storetest.Exec(e.t, e.store, `UPDATE approval_rules SET one_above = 100, two_above = 1000000 WHERE object_type = 'transfer'`)
	w := e.wallet(customer)
	e.fund(w, "10")
	storetest.Gas(e.t, e.store, w.ID, money.Must(money.TRX, "60"))
	o, err := storetest.OpenOffRamp(e.t.Context(), e.store, exchange.OrderRequest{
		ID: newID(), CustomerID: customer.ID, OfferID: offer.ID, Crypto: money.Must(money.USDT, "10"), Type: exchange.OffRampSell, FundWalletID: w.ID,
		ExpiresAt: e.server.now().Add(exchange.OffRampLife),
	}, principalOf(customer))
	if err != nil {
		e.t.Fatalf("sale: %v", err)
	}
	return o
}

// Officers approve and reject sales from wallets in our custody by the digest that they saw; a token does the same by a signal.
func TestOfficersDecideAboutSalesFromWallets(t *testing.T) {
	e := start(t)
	vendor, customer, other, officer := e.person(exchange.RoleVendor), e.person(exchange.RoleCustomer), e.person(exchange.RoleCustomer), e.person(exchange.RoleTreasury)
	e.wallet(vendor)
	offer := e.buys(vendor)
	first, second := e.soldFromWallet(customer, offer), e.soldFromWallet(other, offer)
	pending := func() []any {
		t.Helper()
		return e.do(get, "/api/v1/auth/approvals/pending", nil, officer.auth()).want(http.StatusOK).object()["orders"].([]any)
	}
	list := pending()
	if len(list) != 2 {
		t.Fatalf("%v wait", list)
	}
	seen := list[0].(map[string]any)
	if seen["object_id"] != first.ID.String() || seen["digest"] != first.FundingIntent() || seen["approvals_required"] != 1.0 || seen["payee"] != first.PaymentPhone.String() {
		t.Errorf("an officer sees %v", seen)
	}
	path := ordersPath + "/" + first.ID.String()
	if o := e.do(get, path, nil, officer.auth()).want(http.StatusOK).object(); o["approval_digest"] != seen["digest"] {
		t.Errorf("an officer sees the digest %v", o["approval_digest"])
	}
	if o := e.do(get, path, nil, customer.auth()).want(http.StatusOK).object(); o["status"] != "pending" || o["status_detail"] != "approval" || o["approval_digest"] != nil {
		t.Errorf("the customer sees %v", o)
	}
	e.doIn(t, post, path+"/approve", map[string]any{}, officer.auth(), freshKey()).blames("/digest required")
	e.do(post, path+"/approve", map[string]any{"digest": second.FundingIntent()}, officer.auth(), freshKey()).blames("/digest mismatch")
	e.do(post, path+"/reject", map[string]any{"digest": seen["digest"]}, officer.auth(), freshKey()).blames("/note required")
	e.do(post, path+"/approve", map[string]any{"digest": seen["digest"]}, e.person(exchange.RoleOTCOfficer).auth(), freshKey()).refused(exchange.CodeForbidden)
	e.do(post, path+"/approve", map[string]any{"digest": seen["digest"]}, customer.auth(), freshKey()).refused(exchange.CodeForbidden)
	e.do(post, "/api/v1/auth/approvals/tokens", map[string]any{
		"object_type": "order", "object_id": first.ID.String(), "action": "approve", "amount": "10", "digest": seen["digest"],
	}, officer.auth()).want(http.StatusCreated)
	key := freshKey()
	for range 2 {
		o := e.do(post, path+"/approve", map[string]any{"digest": seen["digest"], "note": "the payee is known"}, officer.auth(), key).want(http.StatusOK).object()
		if o["status_detail"] != "deposit" {
			t.Errorf("approved, it waits for %v", o["status_detail"])
		}
	}
	path = ordersPath + "/" + second.ID.String()
	e.do(post, path+"/reject", map[string]any{"digest": second.FundingIntent(), "note": "the payee is not"}, officer.auth(), freshKey()).want(http.StatusOK)
	e.do(post, path+"/approve", map[string]any{"digest": second.FundingIntent()}, e.person(exchange.RoleAdmin).auth(), freshKey()).refused(exchange.CodeStateConflict)
	if list := pending(); len(list) != 0 {
		t.Errorf("%v wait still", list)
	}
}
