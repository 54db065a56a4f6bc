package api

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/descope/virtualwebauthn"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/notify"
	"kivuko/store/storetest"
)

// authenticator is one in software, on the API's own page.
type authenticator struct {
	party virtualwebauthn.RelyingParty
	auth  virtualwebauthn.Authenticator
	cred  virtualwebauthn.Credential
}

func newAuthenticator() *authenticator {
	// The library leaves out leading zeros of a key's point, which no real authenticator does.
	const whole = 77
	cred := virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2)
	for len(cred.Key.AttestationData()) != whole {
		cred = virtualwebauthn.NewCredential(virtualwebauthn.KeyTypeEC2)
	}
	return &authenticator{
		party: virtualwebauthn.RelyingParty{Name: "Kivuko", ID: "localhost", Origin: "http://localhost:8080"},
		auth:  virtualwebauthn.NewAuthenticator(), cred: cred,
	}
}

// asked is the options of a challenge, as text.
func asked(t testing.TB, r *reply) string {
	t.Helper()
	raw, err := json.Marshal(r.object()["options"])
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// enrols answers a challenge with a new key.
func (a *authenticator) enrols(t testing.TB, r *reply) json.RawMessage {
	t.Helper()
	options, err := virtualwebauthn.ParseAttestationOptions(asked(t, r))
	if err != nil {
		t.Fatal(err)
	}
	return json.RawMessage(virtualwebauthn.CreateAttestationResponse(a.party, a.auth, a.cred, *options))
}

// proves answers a challenge with a signature, and counts it.
func (a *authenticator) proves(t testing.TB, r *reply) json.RawMessage {
	t.Helper()
	options, err := virtualwebauthn.ParseAssertionOptions(asked(t, r))
	if err != nil {
		t.Fatal(err)
	}
	a.cred.Counter++
	return json.RawMessage(virtualwebauthn.CreateAssertionResponse(a.party, a.auth, a.cred, *options))
}

const (
	stepUpPath   = "/api/v1/auth/step-up"
	passkeysPath = "/api/v1/auth/passkeys"
)

// enrol adds an authenticator to an account.
func (e *env) enrol(p person) *authenticator {
	e.t.Helper()
	a := newAuthenticator()
	ask := e.do(post, passkeysPath+"/options", nil, p.auth()).want(http.StatusCreated)
	e.do(post, passkeysPath, map[string]any{"challenge_id": ask.text("challenge_id"), "name": "key", "credential": a.enrols(e.t, ask)}, p.auth()).want(http.StatusCreated)
	return a
}

// stepUp sends an authenticator's answer.
func (e *env) stepUp(p person, a *authenticator) *reply {
	e.t.Helper()
	ask := e.do(post, stepUpPath+"/options", nil, p.auth()).want(http.StatusCreated)
	return e.do(post, stepUpPath, map[string]any{"challenge_id": ask.text("challenge_id"), "credential": a.proves(e.t, ask)}, p.auth())
}

// inbox is what was sent to somebody, oldest first.
func (e *env) inbox(to string) []notify.Message {
	e.t.Helper()
	rows, err := storetest.Owner(e.t, e.store).QueryContext(e.t.Context(), `SELECT id, channel, sealed FROM messages ORDER BY created_at, id`)
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var all []notify.Message
	for rows.Next() {
		var m exchange.Message
		if err := rows.Scan(&m.ID, &m.Channel, &m.Sealed); err != nil {
			e.t.Fatal(err)
		}
		open, err := openMessage(e.server.Config.Peppers, m)
		if err != nil {
			e.t.Fatal(err)
		}
		if open.To == to {
			all = append(all, open)
		}
	}
	if err := rows.Err(); err != nil {
		e.t.Fatal(err)
	}
	return all
}

// found is what a pattern finds in the newest message to somebody.
func (e *env) found(to, pattern string) string {
	e.t.Helper()
	all := e.inbox(to)
	if len(all) == 0 {
		e.t.Fatalf("nothing was sent to %s", to)
	}
	m := regexp.MustCompile(pattern).FindStringSubmatch(all[len(all)-1].Text)
	if m == nil {
		e.t.Fatalf("the last message to %s has no %s: %s", to, pattern, all[len(all)-1].Text)
	}
	return m[1]
}

func (e *env) code(to string) string { return e.found(to, `\b([0-9]{6})\b`) }

// invited is a person in the body of an invitation.
func invited(n string) map[string]any {
	body := registration(n)
	delete(body, "password")
	delete(body, "pin")
	return body
}

// accept accepts the newest invitation of an address.
func (e *env) accept(email, password string, a *authenticator) *reply {
	e.t.Helper()
	in := map[string]any{"token": e.found(email, `/people/invitation#([A-Za-z0-9_-]+)`), "password": password}
	open := e.do(post, "/api/v1/users/invitations/open", map[string]any{"token": in["token"]}).want(http.StatusOK)
	if a != nil {
		in["challenge_id"], in["credential"], in["passkey_name"] = open.text("challenge_id"), a.enrols(e.t, open), "first"
	}
	return e.do(post, "/api/v1/users/invitations/accept", in)
}

// TestD1NobodyIsTwoOfficers plays an admin who wants to be a second officer: it can set no password, the link goes to the
// person, works once, and what the person sets is let in by another officer, who sees whom.
func TestD1NobodyIsTwoOfficers(t *testing.T) {
	e := start(t)
	admin, second := e.person(exchange.RoleAdmin), e.person(exchange.RoleTreasury)
	body := invited("11000777")
	body["role"] = "treasury"
	body["password"] = testPassword
	e.do(post, "/api/v1/auth/invitations", body, admin.auth()).blames("/password unknown_field")
	delete(body, "password")
	sent := e.do(post, "/api/v1/auth/invitations", body, admin.auth()).want(http.StatusCreated)
	const email = "11000777@example.com"
	token := e.found(email, `#([A-Za-z0-9_-]+)`)
	if strings.Contains(string(sent.body), token) || strings.Contains(e.logs.String(), token) {
		t.Error("the inviter sees the link")
	}
	e.accept(email, testPassword, nil).blames("/credential required")
	key := newAuthenticator()
	made := e.accept(email, testPassword, key).want(http.StatusCreated)
	if made.object()["is_active"] != false || made.object()["email_proven_at"] == nil {
		t.Errorf("accepted %s", made.body)
	}
	e.do(post, "/api/v1/users/invitations/open", map[string]any{"token": token}).refused(exchange.CodeNotFound)
	login := map[string]any{"email": email, "password": testPassword}
	e.do(post, "/api/v1/users/login", login).refused(exchange.CodeInvalidCredentials)
	waits := e.do(get, changesPath+"?subject_id="+made.text("id"), nil, second.auth()).want(http.StatusOK).object()["changes"].([]any)[0].(map[string]any)
	confirm := changesPath + "/" + waits["id"].(string) + "/confirm"
	e.do(post, confirm, nil, admin.auth(), freshKey()).refused(exchange.CodeForbidden)
	e.do(post, confirm, nil, second.auth(), freshKey()).want(http.StatusOK)

	tokens := e.do(post, "/api/v1/users/login", login).want(http.StatusOK)
	id, _ := parseID(made.text("id"))
	officer := person{User: exchange.User{ID: id, Role: exchange.RoleTreasury}, token: tokens.text("access_token")}
	// A password opens the own account alone.
	e.do(get, "/api/v1/auth/approvals/pending", nil, officer.auth()).refused(exchange.CodeStepUpRequired)
	e.do(get, "/api/v1/auth/user/me", nil, officer.auth()).want(http.StatusOK)
	if got := e.stepUp(officer, key).want(http.StatusOK); got.text("assurance") != "passkey" {
		t.Errorf("proven by %s", got.body)
	}
	e.do(get, "/api/v1/auth/approvals/pending", nil, officer.auth()).want(http.StatusOK)
}

// TestLostSecretsComeBackByTwo renews an officer's secrets: the old ones end, and a second officer lets the person in.
func TestLostSecretsComeBackByTwo(t *testing.T) {
	e := start(t)
	admin, lost := e.person(exchange.RoleAdmin), e.person(exchange.RoleOTCOfficer)
	e.do(post, "/api/v1/auth/invitations", map[string]any{"user_id": admin.ID}, admin.auth()).blames("/user_id not_found")
	e.do(post, "/api/v1/auth/invitations", map[string]any{"user_id": lost.ID}, admin.auth()).want(http.StatusCreated)
	e.do(get, "/api/v1/auth/user/me", nil, lost.auth()).want(http.StatusOK)
	e.accept(lost.Email, "quite another good one", newAuthenticator()).want(http.StatusCreated)
	e.do(get, "/api/v1/auth/user/me", nil, lost.auth()).refused(exchange.CodeUnauthenticated)
	if keys := must(e.store.Passkeys(t.Context(), lost.ID)); len(keys) != 1 {
		t.Errorf("%d passkeys", len(keys))
	}
	e.do(post, "/api/v1/users/login", map[string]any{"email": lost.Email, "password": "quite another good one"}).refused(exchange.CodeInvalidCredentials)
}

func TestInvitationsAreListedAndWithdrawn(t *testing.T) {
	e := start(t)
	admin, vendor, rival := e.person(exchange.RoleAdmin), e.person(exchange.RoleVendor), e.person(exchange.RoleVendor)
	sent := e.do(post, "/api/v1/auth/merchants/"+vendor.ID.String()+"/subvendors", invited("11000778"), vendor.auth()).want(http.StatusCreated)
	token := e.found("11000778@example.com", `#([A-Za-z0-9_-]+)`)
	for p, want := range map[*person]float64{&admin: 1, &vendor: 1, &rival: 0} {
		if list := e.do(get, "/api/v1/auth/invitations", nil, p.auth()).want(http.StatusOK).object(); list["total"] != want {
			t.Errorf("%s sees %v", p.Role, list["total"])
		}
	}
	path := "/api/v1/auth/invitations/" + sent.text("id")
	e.do(del, path, nil, rival.auth()).refused(exchange.CodeNotFound)
	e.do(del, path, nil, vendor.auth()).want(http.StatusNoContent)
	e.do(post, "/api/v1/users/invitations/open", map[string]any{"token": token}).refused(exchange.CodeNotFound)
}

func TestPasskeysProveTheirUser(t *testing.T) {
	e := start(t)
	p := e.person(exchange.RoleVendor)
	e.do(post, stepUpPath+"/options", nil, p.auth()).refused(exchange.CodeStateConflict)
	a := e.enrol(p)
	e.stepUp(p, a).want(http.StatusOK)
	list := e.do(get, passkeysPath, nil, p.auth()).want(http.StatusOK).object()["passkeys"].([]any)
	if len(list) != 1 || list[0].(map[string]any)["used_at"] == nil {
		t.Errorf("passkeys %v", list)
	}

	// An answer is taken once, in the session that was asked, and from the account's own authenticator and page.
	ask := e.do(post, stepUpPath+"/options", nil, p.auth()).want(http.StatusCreated)
	answer := map[string]any{"challenge_id": ask.text("challenge_id"), "credential": a.proves(t, ask)}
	e.do(post, stepUpPath, answer, e.session(p.User).auth()).blames("/challenge_id not_found")
	e.do(post, stepUpPath, answer, p.auth()).want(http.StatusOK)
	e.do(post, stepUpPath, answer, p.auth()).blames("/challenge_id not_found")
	stranger := newAuthenticator()
	stranger.cred.ID = a.cred.ID
	e.stepUp(p, stranger).blames("/credential wrong")
	elsewhere := *a
	elsewhere.party.Origin = "https://kivuko.example.evil"
	e.stepUp(p, &elsewhere).blames("/credential wrong")
	absent := *a
	absent.auth.Options.UserNotVerified = true
	e.stepUp(p, &absent).blames("/credential wrong")

	e.do(del, passkeysPath+"/"+list[0].(map[string]any)["id"].(string), nil, p.auth()).want(http.StatusNoContent)
	admin := e.person(exchange.RoleAdmin)
	only := must(e.store.Passkeys(t.Context(), admin.ID))[0].ID
	e.do(del, passkeysPath+"/"+only.String(), nil, admin.auth()).refused(exchange.CodeStateConflict)
}

// TestClonedAuthenticatorEndsEverySession uses two copies of one key.
func TestClonedAuthenticatorEndsEverySession(t *testing.T) {
	e := start(t)
	p := e.person(exchange.RoleVendor)
	a := e.enrol(p)
	e.stepUp(p, a).want(http.StatusOK)
	clone := *a
	e.stepUp(p, a).want(http.StatusOK)
	e.stepUp(p, &clone).refused(exchange.CodeUnauthenticated)
	e.do(get, "/api/v1/auth/user/me", nil, p.auth()).refused(exchange.CodeUnauthenticated)
	if keys := must(e.store.Passkeys(t.Context(), p.ID)); len(keys) != 0 {
		t.Errorf("%d passkeys are left", len(keys))
	}
	if got := e.inbox(p.Email); len(got) == 0 || !strings.Contains(got[len(got)-1].Text, "copy of your passkey") {
		t.Errorf("the owner was told %v", got)
	}
}

// TestClonedAuthenticatorGivesNobodyAnOfficer plays a thief with an officer's password and a copy of the passkey. The account
// is closed, and when two officers open it again, only an invitation gives it another passkey.
func TestClonedAuthenticatorGivesNobodyAnOfficer(t *testing.T) {
	e := start(t)
	admin, second, officer := e.person(exchange.RoleAdmin), e.person(exchange.RoleTreasury), e.person(exchange.RoleOTCOfficer)
	a := e.enrol(officer)
	first := must(e.store.Passkeys(t.Context(), officer.ID))[0]
	e.do(del, passkeysPath+"/"+first.ID.String(), nil, officer.auth()).want(http.StatusNoContent)
	e.stepUp(officer, a).want(http.StatusOK)
	clone := *a
	e.stepUp(officer, a).want(http.StatusOK)
	e.stepUp(officer, &clone).refused(exchange.CodeUnauthenticated)
	login := map[string]any{"email": officer.Email, "password": testPassword}
	e.do(post, "/api/v1/users/login", login).refused(exchange.CodeInvalidCredentials)
	if u := must(e.store.User(t.Context(), officer.ID)); u.IsActive {
		t.Error("the account is open")
	}

	waits := e.do(patch, "/api/v1/auth/users/"+officer.ID.String(), map[string]any{"is_active": true}, admin.auth()).want(http.StatusAccepted)
	e.agree(waits, second)
	thief := bearer(e.do(post, "/api/v1/users/login", login).want(http.StatusOK).text("access_token"))
	e.do(post, passkeysPath+"/options", nil, thief).refused(exchange.CodeStateConflict)
	e.do(post, "/api/v1/auth/invitations", map[string]any{"user_id": officer.ID}, admin.auth()).want(http.StatusCreated)
	e.accept(officer.Email, "quite another good one", newAuthenticator()).want(http.StatusCreated)
}

// TestH9MoneyNeedsAFreshProof plays a stolen access token of a customer: it moves nothing five minutes after the login.
func TestH9MoneyNeedsAFreshProof(t *testing.T) {
	c := newCrossing(t, "100")
	body := sends("5", map[string]any{"user_id": c.other.ID})
	c.send(body).want(http.StatusCreated)
	c.skew.Store(int64(exchange.StepUpLife) + 1)
	c.send(body).refused(exchange.CodeStepUpRequired)
	c.do(get, transfersPath, nil, c.sender.auth()).want(http.StatusOK)
	c.do(post, stepUpPath, map[string]any{"password": "guess"}, c.sender.auth()).blames("/password wrong")
	c.send(body).refused(exchange.CodeStepUpRequired)
	c.skew.Store(0)
	c.do(post, stepUpPath, map[string]any{"password": testPassword}, c.sender.auth()).want(http.StatusOK)
	c.send(body).want(http.StatusCreated)
	c.do(post, stepUpPath, map[string]any{}, c.sender.auth()).blames(" required")
	c.do(post, stepUpPath, map[string]any{"pin": "4821", "password": testPassword}, c.sender.auth()).blames(" required")
}

// TestStepUpOfAnotherProcessCounts proves the caller at one process and moves money at another at once.
func TestStepUpOfAnotherProcessCounts(t *testing.T) {
	e := start(t)
	other := startOn(t, e.store)
	vendor := e.person(exchange.RoleVendor)
	storetest.Exec(t, e.store, `ALTER TABLE session_families DISABLE TRIGGER session_families_grow;
		UPDATE session_families SET stepped_up_at = stepped_up_at - interval '6 minutes';
		ALTER TABLE session_families ENABLE TRIGGER session_families_grow`)
	path := "/api/v1/auth/merchants/" + vendor.ID.String() + "/subvendors"
	other.do(post, path, invited("11000779"), vendor.auth()).refused(exchange.CodeStepUpRequired)
	e.do(post, stepUpPath, map[string]any{"password": testPassword}, vendor.auth()).want(http.StatusOK)
	other.do(post, path, invited("11000779"), vendor.auth()).want(http.StatusCreated)
}

// TestH3SquattersAreNotPaid plays somebody who registers another's number and address: transfers to them and merchants'
// orders for them are refused, their owner proves them and gets them, and only then is paid.
func TestH3SquattersAreNotPaid(t *testing.T) {
	c := newCrossing(t, "100")
	squat := registration("22333444")
	thief := c.do(post, "/api/v1/users/register", squat).want(http.StatusCreated)
	const phone, email = "254722333444", "22333444@example.com"
	thiefID, _ := parseID(thief.text("id"))
	c.wallet(person{User: exchange.User{ID: thiefID, Role: exchange.RoleUser}})
	c.send(sends("5", map[string]any{"phone_number": phone})).blames("/recipient/phone_number not_found")
	c.send(sends("5", map[string]any{"email": email})).blames("/recipient/email not_found")

	// The owner registers with codes and has both; the squatter has none any more.
	own := registration("22333444")
	c.do(post, "/api/v1/users/register", own).refused(exchange.CodeConflict)
	for field, to := range map[string]string{"phone": phone, "email": email} {
		body := map[string]any{"email": to}
		if field == "phone" {
			body = map[string]any{"phone_number": to}
		}
		sent := c.do(post, "/api/v1/users/verifications", body).want(http.StatusAccepted)
		own[field+"_verification"] = map[string]any{"id": sent.text("id"), "code": c.code(to)}
	}
	owner := c.do(post, "/api/v1/users/register", own).want(http.StatusCreated)
	if owner.object()["phone_proven_at"] == nil || owner.object()["email_proven_at"] == nil {
		t.Errorf("registered %s", owner.body)
	}
	if u := must(c.store.User(t.Context(), thiefID)); u.Email != "" || u.PhoneNumber != "" {
		t.Errorf("the squatter still has %q and %q", u.Email, u.PhoneNumber.Digits())
	}
	ownerID, _ := parseID(owner.text("id"))
	c.wallet(person{User: exchange.User{ID: ownerID, Role: exchange.RoleUser}})
	sent := c.send(sends("5", map[string]any{"phone_number": phone})).want(http.StatusCreated)
	if sent.text("recipient_id") != owner.text("id") {
		t.Errorf("paid %s", sent.body)
	}
	// A proven one can't be taken.
	c.do(post, "/api/v1/users/register", squat).refused(exchange.CodeConflict)
}

// TestUnprovenClaimsLapse registers after a day with what somebody claimed and left.
func TestUnprovenClaimsLapse(t *testing.T) {
	e := start(t)
	first := e.do(post, "/api/v1/users/register", registration("22333445")).want(http.StatusCreated)
	again := registration("22333445")
	e.do(post, "/api/v1/users/register", again).refused(exchange.CodeConflict)
	storetest.Exec(t, e.store, `UPDATE users SET created_at = created_at - interval '25 hours' WHERE id = $1`, first.text("id"))
	e.do(post, "/api/v1/users/register", again).want(http.StatusCreated)
	// One that is used stays until its owner proves it.
	id, _ := parseID(e.do(post, "/api/v1/users/login", map[string]any{"email": "22333445@example.com", "password": testPassword}).want(http.StatusOK).object()["user"].(map[string]any)["id"].(string))
	e.wallet(person{User: exchange.User{ID: id, Role: exchange.RoleUser}})
	storetest.Exec(t, e.store, `UPDATE users SET created_at = created_at - interval '25 hours' WHERE id = $1`, id)
	e.do(post, "/api/v1/users/register", again).refused(exchange.CodeConflict)
}

func TestContactsAreProvenByCodes(t *testing.T) {
	e := start(t)
	e.do(post, "/api/v1/users/register", registration("22333446")).want(http.StatusCreated)
	tokens := e.do(post, "/api/v1/users/login", map[string]any{"email": "22333446@example.com", "password": testPassword}).want(http.StatusOK)
	me := bearer(tokens.text("access_token"))
	const path = "/api/v1/auth/user/me/verifications"
	sent := e.do(post, path, map[string]any{"phone_number": "0722333446"}, me).want(http.StatusAccepted)
	confirm := path + "/" + sent.text("id") + "/confirm"
	code := e.code("254722333446")
	wrong := "000000"
	if code == wrong {
		wrong = "000001"
	}
	e.do(post, confirm, map[string]any{"code": wrong}, me).blames("/code wrong")
	e.do(post, confirm, map[string]any{"code": code}, e.person(exchange.RoleCustomer).auth()).refused(exchange.CodeNotFound)
	if got := e.do(post, confirm, map[string]any{"code": code}, me).want(http.StatusOK); got.object()["phone_proven_at"] == nil {
		t.Errorf("proven %s", got.body)
	}
	e.do(post, confirm, map[string]any{"code": code}, me).blames("/code wrong")
	// Five wrong guesses end a code.
	sent = e.do(post, path, map[string]any{"email": "22333446@example.com"}, me).want(http.StatusAccepted)
	confirm, code = path+"/"+sent.text("id")+"/confirm", e.code("22333446@example.com")
	for range exchange.MaxVerificationTry {
		e.do(post, confirm, map[string]any{"code": flipped(code)}, me).blames("/code wrong")
	}
	e.do(post, confirm, map[string]any{"code": code}, me).blames("/code wrong")
	// Another number needs a fresh proof, and five an hour are enough.
	for range exchange.MaxVerifications {
		e.do(post, path, map[string]any{"phone_number": "0722333447"}, me).want(http.StatusAccepted)
	}
	e.do(post, path, map[string]any{"phone_number": "0722333447"}, me).refused(exchange.CodeRateLimited)
	e.skew.Store(int64(exchange.StepUpLife) + 1)
	e.do(post, path, map[string]any{"phone_number": "0722333448"}, me).refused(exchange.CodeStepUpRequired)
}

// flipped is another code.
func flipped(code string) string {
	last := code[len(code)-1]
	return code[:len(code)-1] + string('0'+(last-'0'+1)%10)
}

func TestPasswordIsReset(t *testing.T) {
	e := start(t)
	p := e.person(exchange.RoleCustomer)
	const ask, set, next = "/api/v1/users/password/reset-code", "/api/v1/users/password/reset", "quite another good one"
	known := e.do(post, ask, map[string]any{"email": p.Email}).want(http.StatusAccepted)
	e.do(post, ask, map[string]any{"email": "nobody@example.com"}).want(http.StatusAccepted)
	if n := len(e.inbox("nobody@example.com")); n != 0 {
		t.Errorf("%d messages to nobody", n)
	}
	if link := e.found(p.Email, `/people/reset#([0-9a-f-]+\.[0-9]{6})`); !strings.HasPrefix(link, known.text("id")+".") {
		t.Errorf("the link has %s", link)
	}
	body := map[string]any{"id": known.text("id"), "code": flipped(e.code(p.Email)), "new_password": next}
	e.do(post, set, body).blames("/code wrong")
	body["id"] = uuid.NewString()
	e.do(post, set, body).blames("/code wrong")
	body["id"], body["code"] = known.text("id"), e.code(p.Email)
	e.do(post, set, body).want(http.StatusNoContent)
	e.do(get, "/api/v1/auth/user/me", nil, p.auth()).refused(exchange.CodeUnauthenticated)
	e.do(post, "/api/v1/users/login", map[string]any{"email": p.Email, "password": next}).want(http.StatusOK)
	e.do(post, set, body).blames("/code wrong")
}
