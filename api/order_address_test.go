package api

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

// addressCells is the row of the matrix about corrected addresses.
func addressCells() map[string]cell {
	return map[string]cell{
		"POST /api/v1/auth/orders/{id}/correct-address": {
			id: func(s scene) uuid.UUID {
				if s.w.stuck == uuid.Nil {
					s.w.stuck = s.w.undeliverable(storetest.Market{Customer: s.w.other.User, Offer: s.w.theirs}, "1").ID
				}
				return s.w.stuck
			}, shared: true,
			body: fixed(map[string]any{"wallet_address": goodAddress, "note": "asked by phone"}),
		},
	}
}

// undeliverable is a paid purchase whose address the network refuses.
func (e *env) undeliverable(m storetest.Market, crypto string) exchange.Order {
	e.t.Helper()
	o := m.Order(e.t, e.store, crypto)
	out, err := e.store.AcceptPayment(e.t.Context(), storetest.Attempt(e.t, e.store, o).ID, storetest.Paid(e.t, o.Price.Fiat), time.Time{})
	if err == nil {
		_, err = e.store.ParkChainPayment(e.t.Context(), out.ChainPayment.ID, "invalid_address")
	}
	if err != nil {
		e.t.Fatal(err)
	}
	return o
}

// Two officers give a purchase another address, and its flow goes on. One alone changes nothing.
func TestTwoOfficersCorrectAnAddress(t *testing.T) {
	e := start(t)
	o := e.undeliverable(storetest.NewMarket(t, e.store), "10")
	one, two := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin)
	path := "/api/v1/auth/orders/" + o.ID.String() + "/correct-address"
	e.do(post, path, map[string]any{"wallet_address": goodAddress}, one.auth(), freshKey()).blames("/note required")
	e.do(post, path, map[string]any{"note": "x"}, one.auth(), freshKey()).blames("/wallet_address required")
	e.do(post, path, map[string]any{"wallet_address": "nowhere", "note": "x"}, one.auth(), freshKey()).blames("/wallet_address address")
	body := map[string]any{"wallet_address": goodAddress, "note": "asked by phone"}
	e.do(post, "/api/v1/auth/orders/"+newID().String()+"/correct-address", body, one.auth(), freshKey()).refused(exchange.CodeNotFound)
	waits := e.do(post, path, body, one.auth(), freshKey()).want(http.StatusAccepted).object()["changes"].([]any)[0].(map[string]any)
	if asked := waits["change"].(map[string]any); waits["kind"] != "order_address" || asked["wallet_address"] != goodAddress || asked["order_id"] != o.ID.String() {
		t.Errorf("what waits is %v", waits)
	}
	confirm := "/api/v1/auth/approvals/changes/" + waits["id"].(string) + "/confirm"
	e.do(post, confirm, map[string]any{}, one.auth(), freshKey()).refused(exchange.CodeForbidden)
	goesTo := func() string {
		now, err := e.store.Order(t.Context(), store.Everything(), o.ID)
		if err != nil {
			t.Fatal(err)
		}
		return now.WalletAddress
	}
	if goesTo() != o.WalletAddress || e.flows.count() != 0 {
		t.Errorf("one officer alone sends the crypto to %s and notified %v", goesTo(), e.flows.calls)
	}
	e.do(post, confirm, map[string]any{}, two.auth(), freshKey()).want(http.StatusOK)
	if goesTo() != goodAddress || !slices.Equal(e.flows.calls, []string{"command " + o.ID.String()}) {
		t.Errorf("the crypto goes to %s, and flows were notified: %v", goesTo(), e.flows.calls)
	}
	e.do(post, path, map[string]any{"wallet_address": goodAddress, "note": "x"}, one.auth(), freshKey()).refused(exchange.CodeStateConflict)
}

// The retry after a corrected address is for the order's flow alone: another one would repeat something else.
func TestCorrectedAddressReachesNoOtherFlow(t *testing.T) {
	e := start(t)
	o := e.undeliverable(storetest.NewMarket(t, e.store), "10")
	one, two := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin)
	prompts, err := e.store.Collections(t.Context(), exchange.OrderObject(o.ID))
	if err != nil {
		t.Fatal(err)
	}
	e.watch(prompts[0].ID)
	waits := e.do(post, "/api/v1/auth/orders/"+o.ID.String()+"/correct-address", map[string]any{"wallet_address": goodAddress, "note": "asked by phone"}, one.auth(), freshKey()).
		want(http.StatusAccepted).object()["changes"].([]any)[0].(map[string]any)
	e.flows.failWith(exchange.Errorf(exchange.CodeNotFound, "The flow has ended."))
	e.do(post, "/api/v1/auth/approvals/changes/"+waits["id"].(string)+"/confirm", map[string]any{}, two.auth(), freshKey()).want(http.StatusOK)
	if !slices.Equal(e.flows.calls, []string{"command " + o.ID.String()}) {
		t.Errorf("flows were notified: %v", e.flows.calls)
	}
}
