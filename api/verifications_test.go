package api

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"kivuko/exchange"
)

const (
	publicCodes = "/api/v1/users/verifications"
	ownCodes    = "/api/v1/auth/user/me/verifications"
	resetCodes  = "/api/v1/users/password/reset-code"
)

// stranger is another address for each request.
func stranger(i int) option { return from(fmt.Sprintf("203.0.113.%d", i)) }

// TestStrangersHoldNoCodesShut plays somebody who asks for codes to another's number and address: the codes in the owner's hand stay
// valid, and the owner gets new ones.
func TestStrangersHoldNoCodesShut(t *testing.T) {
	e := start(t)
	p := e.person(exchange.RoleCustomer)
	phone := map[string]any{"phone_number": "+" + p.PhoneNumber.Digits()}
	mine := e.do(post, ownCodes, phone, p.auth()).want(http.StatusAccepted)
	code := e.code(p.PhoneNumber.Digits())
	registering := e.do(post, publicCodes, map[string]any{"phone_number": "0722333777"}).want(http.StatusAccepted)
	registeringCode := e.code("254722333777")
	for i := range exchange.MaxVerifications {
		e.do(post, publicCodes, phone, stranger(i)).want(http.StatusAccepted)
		e.do(post, publicCodes, map[string]any{"email": p.Email}, stranger(i)).want(http.StatusAccepted)
	}
	e.do(post, publicCodes, phone, stranger(9)).refused(exchange.CodeRateLimited)
	e.do(post, ownCodes, map[string]any{"email": p.Email}, p.auth()).want(http.StatusAccepted)
	e.do(post, ownCodes+"/"+mine.text("id")+"/confirm", map[string]any{"code": code}, p.auth()).want(http.StatusOK)

	e.do(post, publicCodes, map[string]any{"phone_number": "0722333777"}, stranger(1)).want(http.StatusAccepted)
	own := registration("22333777")
	own["phone_verification"] = map[string]any{"id": registering.text("id"), "code": registeringCode}
	if got := e.do(post, "/api/v1/users/register", own).want(http.StatusCreated); got.object()["phone_proven_at"] == nil {
		t.Errorf("registered %s", got.body)
	}
}

// TestManyAccountsFloodNoNumber plays somebody with many accounts, each of which asks for codes to one number: together they get no more
// than a few, and whose number it is gets codes all the same.
func TestManyAccountsFloodNoNumber(t *testing.T) {
	e := start(t)
	owner := e.person(exchange.RoleCustomer)
	phone := map[string]any{"phone_number": "+" + owner.PhoneNumber.Digits()}
	sent := 0
	for i := range exchange.MaxVerificationsElse/exchange.MaxVerifications + 1 {
		thief := e.person(exchange.RoleCustomer)
		for range exchange.MaxVerifications {
			if got := e.do(post, ownCodes, phone, thief.auth(), stranger(i)); got.status == http.StatusAccepted {
				sent++
			} else {
				got.refused(exchange.CodeRateLimited)
			}
		}
	}
	if sent != exchange.MaxVerificationsElse {
		t.Errorf("%d codes went to another's number", sent)
	}
	e.do(post, ownCodes, phone, owner.auth()).want(http.StatusAccepted)
	e.do(post, publicCodes, phone, stranger(9)).want(http.StatusAccepted)
}

// TestNetworksShareAddresses plays a carrier's whole town behind one address: what others there ask for delays no account's codes.
func TestNetworksShareAddresses(t *testing.T) {
	e := start(t)
	p := e.person(exchange.RoleUser)
	nat := from("198.51.100.1")
	for i := range 50 {
		e.do(post, publicCodes, map[string]any{"phone_number": fmt.Sprintf("07224455%02d", i)}, nat).want(http.StatusAccepted)
	}
	e.do(post, publicCodes, map[string]any{"phone_number": "0722447700"}, nat).refused(exchange.CodeRateLimited)
	e.do(post, ownCodes, map[string]any{"phone_number": "+" + p.PhoneNumber.Digits()}, p.auth(), nat).want(http.StatusAccepted)
}

// TestResetTellsNoAccount asks for reset codes until no more are sent, after others spent the codes of the address: an address with an
// account answers as one without.
func TestResetTellsNoAccount(t *testing.T) {
	e := start(t)
	p := e.person(exchange.RoleCustomer)
	for i := range exchange.MaxVerifications {
		e.do(post, publicCodes, map[string]any{"email": p.Email}, stranger(i)).want(http.StatusAccepted)
		e.do(post, publicCodes, map[string]any{"email": "nobody@example.com"}, stranger(i)).want(http.StatusAccepted)
	}
	for i := range exchange.MaxVerifications {
		known := e.do(post, resetCodes, map[string]any{"email": p.Email}, stranger(i)).want(http.StatusAccepted)
		unknown := e.do(post, resetCodes, map[string]any{"email": "nobody@example.com"}, stranger(i)).want(http.StatusAccepted)
		one, two := must(time.Parse(time.RFC3339, known.text("expires_at"))), must(time.Parse(time.RFC3339, unknown.text("expires_at")))
		if two.Sub(one).Abs() > time.Minute {
			t.Errorf("the codes expire at %s and %s", one, two)
		}
	}
	e.do(post, resetCodes, map[string]any{"email": p.Email}, stranger(9)).refused(exchange.CodeRateLimited)
	e.do(post, resetCodes, map[string]any{"email": "nobody@example.com"}, stranger(9)).refused(exchange.CodeRateLimited)
}

// TestStrangersHoldNoResetShut plays somebody who spends an hour's reset codes of another's account: each of them went to the owner, and
// opens the account until new ones are sent. One use ends them all.
func TestStrangersHoldNoResetShut(t *testing.T) {
	e := start(t)
	p := e.person(exchange.RoleCustomer)
	mine := e.do(post, resetCodes, map[string]any{"email": p.Email}).want(http.StatusAccepted)
	code := e.code(p.Email)
	var last *reply
	for i := range exchange.MaxVerifications - 1 {
		last = e.do(post, resetCodes, map[string]any{"email": p.Email}, stranger(i)).want(http.StatusAccepted)
	}
	if left := time.Until(must(time.Parse(time.RFC3339, last.text("expires_at")))); left < exchange.VerificationsWindow-time.Minute {
		t.Errorf("the last code is valid for %s, and the next is sent after %s", left, exchange.VerificationsWindow)
	}
	newest := e.code(p.Email)
	reset := func(id, code string) *reply {
		return e.do(post, "/api/v1/users/password/reset", map[string]any{"id": id, "code": code, "new_password": "quite another good one"})
	}
	reset(mine.text("id"), code).want(http.StatusNoContent)
	reset(last.text("id"), newest).blames("/code wrong")
}

// TestANewPasswordEndsResets plays who reads the owner's mail: a code that was asked for before opens nothing after the owner changed
// the password.
func TestANewPasswordEndsResets(t *testing.T) {
	e := start(t)
	p := e.person(exchange.RoleCustomer)
	asked := e.do(post, resetCodes, map[string]any{"email": p.Email}).want(http.StatusAccepted)
	code := e.code(p.Email)
	in := map[string]any{"password": testPassword, "new_password": "quite another good one"}
	e.do(put, "/api/v1/auth/user/me/password", in, p.auth()).want(http.StatusNoContent)
	in = map[string]any{"id": asked.text("id"), "code": code, "new_password": "a third one of the thief's"}
	e.do(post, "/api/v1/users/password/reset", in).blames("/code wrong")
}
