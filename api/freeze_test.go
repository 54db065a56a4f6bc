package api

import (
	"net/http"
	"testing"

	"kivuko/exchange"
)

const freezePath = "/api/v1/auth/freeze"

// One officer freezes outgoing payments, and two lift the freeze.
func TestFreezeIsPulledByOneAndLiftedByTwo(t *testing.T) {
	e := start(t)
	one, two, otc := e.person(exchange.RoleTreasury), e.person(exchange.RoleAdmin), e.person(exchange.RoleOTCOfficer)
	e.do(post, freezePath, map[string]any{"note": "odd payments"}, e.person(exchange.RoleCustomer).auth()).refused(exchange.CodeForbidden)
	e.do(post, freezePath, map[string]any{}, otc.auth()).blames("/note required")
	if got := e.do(get, freezePath, nil, one.auth()).want(http.StatusOK).object(); got["frozen"] != false || got["id"] != nil {
		t.Errorf("before it is %v", got)
	}
	e.do(post, freezePath+"/lift", map[string]any{"note": "nothing"}, one.auth()).refused(exchange.CodeStateConflict)
	pulled := e.do(post, freezePath, map[string]any{"note": "odd payments"}, otc.auth()).want(http.StatusCreated).object()
	if pulled["frozen"] != true || pulled["note"] != "odd payments" || pulled["pulled_by"] != otc.ID.String() {
		t.Errorf("pulled it is %v", pulled)
	}
	if again := e.do(post, freezePath, map[string]any{"note": "me too"}, one.auth()).want(http.StatusCreated).text("id"); again != pulled["id"] {
		t.Errorf("a second one is %s", again)
	}
	e.do(post, freezePath+"/lift", map[string]any{"note": "all explained"}, otc.auth()).refused(exchange.CodeForbidden)
	waits := e.do(post, freezePath+"/lift", map[string]any{"note": "all explained"}, one.auth()).want(http.StatusAccepted)
	if got := e.do(get, freezePath, nil, two.auth()).want(http.StatusOK).object(); got["frozen"] != true {
		t.Errorf("one officer's word lifted it: %v", got)
	}
	e.agree(waits, two)
	if got := e.do(get, freezePath, nil, two.auth()).want(http.StatusOK).object(); got["frozen"] != false {
		t.Errorf("lifted it is %v", got)
	}
}
