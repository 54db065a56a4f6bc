package api

import (
	"net/http"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

// outdate makes every proof of every session older than it counts, as if the time had passed.
func (e *env) outdate() {
	e.t.Helper()
	storetest.Exec(e.t, e.store, `ALTER TABLE session_families DISABLE TRIGGER session_families_grow;
		UPDATE session_families SET stepped_up_at = stepped_up_at - interval '6 minutes';
		ALTER TABLE session_families ENABLE TRIGGER session_families_grow`)
	e.server.sessions.forgetAll()
}

// TestOldClientsOfCustomersGoOn sends what apps send that know neither codes, nor device tokens, nor /step-up. Their login is the
// proof: what moves money goes through for five minutes after it, and after the next login again.
func TestOldClientsOfCustomersGoOn(t *testing.T) {
	c := openCounter(t)
	c.do(post, "/api/v1/users/register", registration("11000901")).want(http.StatusCreated)
	byPIN := map[string]any{"phone_number": "0711000901", "pin": "4821"}
	login := func(path string, body map[string]any) option {
		return bearer(c.do(post, "/api/v1/users/"+path, body).want(http.StatusOK).text("access_token"))
	}
	login("login", map[string]any{"email": "11000901@example.com", "password": testPassword})
	login("login-pin", map[string]any{"email": "11000901@example.com", "pin": "4821"})
	tokens := c.do(post, "/api/v1/users/login-pin", byPIN).want(http.StatusOK)
	tokens = c.do(post, "/api/v1/auth/refresh", map[string]any{"refresh_token": tokens.text("refresh_token")}).want(http.StatusOK)
	auth := bearer(tokens.text("access_token"))
	buy := func(auth option) *reply {
		return c.do(post, ordersPath, c.request(nil), auth, withKey(newID().String()))
	}

	wallet := c.do(post, walletsPath, map[string]any{"network": "tron", "asset": "USDT"}, auth).want(http.StatusCreated).text("id")
	buy(auth).want(http.StatusCreated)

	// An hour later the session still reads and manages; what moves money asks for the login.
	c.outdate()
	tokens = c.do(post, "/api/v1/auth/refresh", map[string]any{"refresh_token": tokens.text("refresh_token")}).want(http.StatusOK)
	auth = bearer(tokens.text("access_token"))
	for _, path := range []string{
		ordersPath + "/search?query=USDT&page_id=1&page_size=10", "/api/v1/auth/offers?page_id=1&page_size=5", "/api/v1/auth/countries", "/api/v1/auth/fiat-currencies",
		"/api/v1/auth/user/me",
	} {
		c.do(get, path, nil, auth).want(http.StatusOK)
	}
	c.do(put, "/api/v1/auth/wallet/id/"+wallet+"/set-default-network", nil, auth).want(http.StatusOK)
	c.do(put, "/api/v1/auth/wallet/id/"+wallet+"/set-default", nil, auth).want(http.StatusOK)
	c.do(put, "/api/v1/auth/user/id/"+tokens.object()["user"].(map[string]any)["id"].(string)+"/pin", map[string]any{"pin": "73915", "password": testPassword}, auth).
		want(http.StatusOK)
	buy(auth).refused(exchange.CodeStepUpRequired)
	byPIN["pin"] = "73915"
	auth = login("login-pin", byPIN)
	buy(auth).want(http.StatusCreated)
	id, _ := parseID(wallet)
	c.fund(exchange.Wallet{ID: id}, "10")
	c.do(post, transfersPath, away("2"), auth, withKey("send")).want(http.StatusCreated)
}

// TestH8SalesNeedAProvenPhone plays accounts that anybody makes: they lend no address of the pool before a code proved their phone.
func TestH8SalesNeedAProvenPhone(t *testing.T) {
	c := openCounter(t)
	c.do(post, "/api/v1/users/register", registration("11000902")).want(http.StatusCreated)
	tokens := c.do(post, "/api/v1/users/login-pin", map[string]any{"phone_number": "0711000902", "pin": "4821"}).want(http.StatusOK)
	auth := bearer(tokens.text("access_token"))
	sell := func() *reply {
		return c.do(post, ordersPath, c.sell(map[string]any{"refund_address": goodAddress}), auth, withKey(newID().String()))
	}
	sell().refused(exchange.CodeStateConflict)
	sent := c.do(post, "/api/v1/auth/user/me/verifications", map[string]any{"phone_number": "254711000902"}, auth).want(http.StatusAccepted)
	c.do(post, "/api/v1/auth/user/me/verifications/"+sent.text("id")+"/confirm", map[string]any{"code": c.code("254711000902")}, auth).want(http.StatusOK)
	sell().want(http.StatusCreated)
}

// TestIntentsSayHowTheirCallerWasProven opens transfers by a PIN, a password and a passkey in one session: each intent has the
// session's assurance, and when and by what its caller last proved itself.
func TestIntentsSayHowTheirCallerWasProven(t *testing.T) {
	c := newCrossing(t, "100")
	p := c.provenSession(c.sender.User, proof{exchange.AssurancePIN, true})
	key := newAuthenticator()
	for _, step := range []struct {
		prove        func()
		session, now exchange.Assurance
	}{
		{func() {}, exchange.AssurancePIN, exchange.AssurancePIN},
		{func() {
			c.do(post, stepUpPath, map[string]any{"password": testPassword}, p.auth()).want(http.StatusOK)
		}, exchange.AssurancePassword, exchange.AssurancePassword},
		{func() {
			ask := c.do(post, passkeysPath+"/options", nil, p.auth()).want(http.StatusCreated)
			c.do(post, passkeysPath, map[string]any{"challenge_id": ask.text("challenge_id"), "name": "key", "credential": key.enrols(t, ask)}, p.auth()).want(http.StatusCreated)
			c.stepUp(p, key).want(http.StatusOK)
		}, exchange.AssurancePasskey, exchange.AssurancePasskey},
		{func() {
			c.do(post, stepUpPath, map[string]any{"password": testPassword}, p.auth()).want(http.StatusOK)
		}, exchange.AssurancePasskey, exchange.AssurancePassword},
	} {
		step.prove()
		c.do(post, transfersPath, away("1"), p.auth(), withKey(newID().String())).want(http.StatusCreated)
		state, err := c.store.AuthState(t.Context(), p.ID, p.session)
		if err != nil {
			t.Fatal(err)
		}
		all := c.asked()
		by := all[len(all)-1].By
		if by.SessionID != p.session || by.Assurance != step.session || by.SteppedUpBy != step.now || !by.SteppedUpAt.Equal(state.SteppedUpAt.Truncate(time.Millisecond)) || by.SteppedUpAt.IsZero() {
			t.Errorf("proven by %s and lately by %s the intent is of %+v", step.session, step.now, by)
		}
	}
}
