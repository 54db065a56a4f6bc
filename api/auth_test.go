package api

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kivuko/exchange"
	"kivuko/store"
	"kivuko/store/storetest"
)

func registration(n string) map[string]any {
	return map[string]any{
		"email": n + "@example.com", "phone_number": "07" + n, "first_name": "Amina", "last_name": "Otieno", "password": testPassword, "pin": "4821",
	}
}

func TestRegisterLoginRefresh(t *testing.T) {
	e := start(t)
	user := e.do(post, "/api/v1/users/register", registration("11000001")).want(http.StatusCreated)
	if user.text("role") != "user" || user.text("phone_number") != "254711000001" || strings.Contains(string(user.body), "token") {
		t.Fatalf("registered as %s", user.body)
	}
	logins := map[string]map[string]any{
		"/api/v1/users/login":     {"email": "11000001@EXAMPLE.com", "password": testPassword},
		"/api/v1/users/login-pin": {"phone_number": "+254 711-000 001", "pin": "4821"},
	}
	for path, body := range logins {
		tokens := e.do(post, path, body).want(http.StatusOK)
		for _, name := range []string{"access_token", "refresh_token"} {
			if !strings.HasPrefix(tokens.text(name), "v4.local.") {
				t.Errorf("%s: %s is no PASETO: %s", path, name, tokens.text(name))
			}
		}
		me := e.do(get, "/api/v1/auth/user/me", nil, bearer(tokens.text("access_token"))).want(http.StatusOK)
		if me.text("id") != user.text("id") {
			t.Errorf("%s: logged in as %s", path, me.text("id"))
		}
	}
	e.do(post, "/api/v1/users/login-pin", map[string]any{"email": "11000001@example.com", "pin": "4821"}).want(http.StatusOK)

	first := e.do(post, "/api/v1/users/login", logins["/api/v1/users/login"]).want(http.StatusOK)
	second := e.do(post, "/api/v1/auth/refresh", map[string]any{"refresh_token": first.text("refresh_token")}).want(http.StatusOK)
	if first.text("refresh_token") == second.text("refresh_token") || first.text("refresh_token_expires_at") != second.text("refresh_token_expires_at") {
		t.Error("the refresh token is not rotated, or its end moved")
	}
	// The access token may be expired, wrong, or missing.
	third := e.do(post, "/api/v1/auth/refresh", map[string]any{"refresh_token": second.text("refresh_token")}, bearer("rubbish")).want(http.StatusOK)
	// Using an old one revokes the family: the newest refresh token and the access tokens stop working.
	e.do(post, "/api/v1/auth/refresh", map[string]any{"refresh_token": first.text("refresh_token")}).refused(exchange.CodeUnauthenticated)
	e.do(post, "/api/v1/auth/refresh", map[string]any{"refresh_token": third.text("refresh_token")}).refused(exchange.CodeUnauthenticated)
	e.do(get, "/api/v1/auth/user/me", nil, bearer(third.text("access_token"))).refused(exchange.CodeUnauthenticated)
}

func TestOneOfManyRefreshesWins(t *testing.T) {
	e := start(t)
	e.do(post, "/api/v1/users/register", registration("11000002")).want(http.StatusCreated)
	tokens := e.do(post, "/api/v1/users/login", map[string]any{"email": "11000002@example.com", "password": testPassword}).want(http.StatusOK)
	var won, lost atomic.Int32
	var wait sync.WaitGroup
	for range 30 {
		wait.Go(func() {
			switch e.do(post, "/api/v1/auth/refresh", map[string]any{"refresh_token": tokens.text("refresh_token")}).status {
			case http.StatusOK:
				won.Add(1)
			case http.StatusUnauthorized:
				lost.Add(1)
			}
		})
	}
	wait.Wait()
	if won.Load() != 1 || lost.Load() != 29 {
		t.Errorf("%d won and %d lost", won.Load(), lost.Load())
	}
}

func TestLoginAnswersTheSameForUnknownAndWrong(t *testing.T) {
	e := start(t)
	e.do(post, "/api/v1/users/register", registration("11000003")).want(http.StatusCreated)
	bodies := map[string][]byte{}
	for name, body := range map[string]map[string]any{
		"wrong password": {"email": "11000003@example.com", "password": "wrong password"},
		"unknown e-mail": {"email": "nobody@example.com", "password": "wrong password"},
		"no e-mail":      {"email": "nobody", "password": "wrong password"},
	} {
		bodies[name] = anonymous(e.do(post, "/api/v1/users/login", body).refused(exchange.CodeInvalidCredentials))
	}
	for name, body := range map[string]map[string]any{
		"wrong PIN":     {"email": "11000003@example.com", "pin": "9375"},
		"unknown phone": {"phone_number": "0799999999", "pin": "9375"},
		"no phone":      {"phone_number": "12", "pin": "9375"},
		"long PIN":      {"email": "11000003@example.com", "pin": "4821 and more"},
	} {
		bodies[name] = anonymous(e.do(post, "/api/v1/users/login-pin", body).refused(exchange.CodeInvalidCredentials))
	}
	for name, body := range bodies {
		if !bytes.Equal(body, bodies["wrong password"]) {
			t.Errorf("%s answers %s", name, body)
		}
	}
}

// anonymous is a body without the ids of the single request.
func anonymous(r *reply) []byte {
	id := r.header.Get("X-Request-Id")
	return bytes.ReplaceAll(r.body, []byte(id), []byte("*"))
}

// TestUnknownAccountCostsAsMuch counts hashes instead of time: each failed login does exactly one.
func TestUnknownAccountCostsAsMuch(t *testing.T) {
	h := testHasher(t, Argon2{Parallel: 1, Queue: 1})
	work := fmt.Sprintf("m=%d,t=%d,p=%d,keyid=", argonMemoryKiB, argonTime, argonThreads)
	if parts := strings.Split(h.dummy, "$"); len(parts) != 6 || !strings.HasPrefix(parts[3], work) {
		t.Errorf("the dummy hash %s asks for other work than a real one", h.dummy)
	}
}

// TestC4GuessesAreCountedPerAccount plays strangers who guess PINs and passwords from many addresses: known and unknown
// accounts let them look at five, then they wait longer and longer. The owner, on a device that the account knows, does not.
func TestC4GuessesAreCountedPerAccount(t *testing.T) {
	const wrong = "037518" // no number in the log begins with 0
	e := start(t)
	user := e.do(post, "/api/v1/users/register", registration("11000004")).want(http.StatusCreated)
	mine := func(secret, value string, more ...string) map[string]any {
		body := map[string]any{"email": "11000004@example.com", secret: value}
		for _, device := range more {
			body["device_token"] = device
		}
		return body
	}
	device := e.do(post, "/api/v1/users/login", mine("password", testPassword)).want(http.StatusOK).text("device_token")
	for path, secret := range map[string]string{"/api/v1/users/login-pin": "pin", "/api/v1/users/login": "password"} {
		for _, account := range []string{"11000004@example.com", "ghost@example.com"} {
			var looked, delayed atomic.Int32
			var wait sync.WaitGroup
			for i := range 20 {
				wait.Go(func() {
					r := e.do(post, path, map[string]any{"email": account, secret: wrong}, from(fmt.Sprintf("198.51.100.%d", i)))
					switch {
					case r.problem().Code == exchange.CodeInvalidCredentials:
						looked.Add(1)
					case r.status == http.StatusTooManyRequests && r.header.Get("Retry-After") != "":
						delayed.Add(1)
					}
				})
			}
			wait.Wait()
			if looked.Load() != 5 || delayed.Load() != 15 {
				t.Errorf("%s %s: of 20 guesses from 20 addresses %d were looked at and %d delayed", path, account, looked.Load(), delayed.Load())
			}
		}
	}
	// The right secret has to wait too where the account knows nobody, and nowhere else.
	e.do(post, "/api/v1/users/login-pin", mine("pin", "4821"), from("198.51.100.99")).refused(exchange.CodePINLocked)
	e.do(post, "/api/v1/users/login", mine("password", testPassword), from("198.51.100.99")).refused(exchange.CodeRateLimited)
	e.do(post, "/api/v1/users/login", mine("password", testPassword)).want(http.StatusOK) // as before, without a token
	e.do(post, "/api/v1/users/login-pin", mine("pin", "4821", device), from("198.51.100.99")).want(http.StatusOK)
	e.do(post, "/api/v1/users/login", mine("password", testPassword, device), from("198.51.100.99")).want(http.StatusOK)
	// A token of another user's device is none.
	other := e.login(e.person(exchange.RoleCustomer)).text("device_token")
	e.do(post, "/api/v1/users/login-pin", mine("pin", "4821", other), from("198.51.100.98")).refused(exchange.CodePINLocked)

	var rows, notices int
	db := storetest.Owner(t, e.store)
	if err := db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM audit_log WHERE action = 'login.failed' AND object_id = $1),
		(SELECT count(*) FROM messages WHERE kind = 'login.failed' AND user_id = $1)`, user.text("id")).Scan(&rows, &notices); err != nil {
		t.Fatal(err)
	}
	if rows != 10 || notices != 1 {
		t.Errorf("%d failures are in the audit log, want 10, and the owner got %d notices, want 1", rows, notices)
	}
	// Ids and times in the log may contain any four digits, hence six digits with a boundary on both sides.
	if regexp.MustCompile(`\b`+wrong+`\b`).MatchString(e.logs.String()) || strings.Contains(e.logs.String(), user.text("email")) {
		t.Error("the log contains a PIN or personal data")
	}
}

// TestB12StrangersDelayNoOfficer plays five wrong secrets of an officer's account from outside: the officer goes on.
func TestB12StrangersDelayNoOfficer(t *testing.T) {
	e := start(t)
	officer := e.person(exchange.RoleTreasury)
	device := e.login(officer).text("device_token")
	for range 6 {
		e.do(post, "/api/v1/users/login", map[string]any{"email": officer.Email, "password": "guess"}, from("203.0.113.7"))
		e.do(post, "/api/v1/users/login-pin", map[string]any{"email": officer.Email, "pin": "1357"}, from("203.0.113.7"))
	}
	e.do(post, "/api/v1/auth/step-up", map[string]any{"password": testPassword}, officer.auth()).want(http.StatusOK)
	e.do(post, "/api/v1/users/login", map[string]any{"email": officer.Email, "password": testPassword, "device_token": device}, from("203.0.113.8")).want(http.StatusOK)
}

// TestNewDevicesAreTold logs in from a known and from an unknown client.
func TestNewDevicesAreTold(t *testing.T) {
	e := start(t)
	p := e.person(exchange.RoleCustomer) // the session of the test is the first device
	told := func() (n int) {
		err := storetest.Owner(t, e.store).QueryRowContext(t.Context(), `SELECT count(*) FROM messages WHERE kind = 'device.added' AND user_id = $1`, p.ID).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	body := map[string]any{"email": p.Email, "password": testPassword}
	for _, agent := range []string{"phone", "phone", "laptop"} {
		e.do(post, "/api/v1/users/login", body, header("User-Agent", agent)).want(http.StatusOK)
	}
	if n := told(); n != 4 { // by SMS and e-mail, for each of two
		t.Errorf("%d messages about new devices, want 4", n)
	}
}

func TestAddressLocks(t *testing.T) {
	e := start(t, func(d *Deps) {
		d.Config.Guesses.Address = store.Delays{Free: 8, Base: time.Minute, Most: time.Hour, Memory: time.Hour}
	})
	for i := range 8 {
		e.do(post, "/api/v1/users/login-pin", map[string]any{"email": fmt.Sprintf("ghost%d@example.com", i), "pin": "9375"}, from("203.0.113.9")).
			refused(exchange.CodeInvalidCredentials)
	}
	e.do(post, "/api/v1/users/login-pin", map[string]any{"email": "fresh@example.com", "pin": "9375"}, from("203.0.113.9")).refused(exchange.CodePINLocked)
	e.do(post, "/api/v1/users/login-pin", map[string]any{"email": "fresh@example.com", "pin": "9375"}, from("203.0.113.10")).refused(exchange.CodeInvalidCredentials)
}

func TestRegistrationRules(t *testing.T) {
	e := start(t)
	with := func(name string, value any) map[string]any {
		r := registration("11000005")
		r[name] = value
		return r
	}
	for name, c := range map[string]struct {
		body  map[string]any
		blame string
	}{
		"role is not theirs to choose": {with("role", "admin"), "/role unknown_field"},
		"weak PIN":                     {with("pin", "1234"), "/pin format"},
		"empty PIN":                    {with("pin", ""), "/pin format"},
		"long PIN":                     {with("pin", "4821733"), "/pin format"},
		"short password":               {with("password", "short"), "/password length"},
		"common password":              {with("password", "password123"), "/password too_common"},
		"bad e-mail":                   {with("email", "amina"), "/email format"},
		"foreign phone":                {with("phone_number", "+4915112345678"), "/phone_number format"},
		"empty name":                   {with("first_name", "  "), "/first_name required"},
		"NUL in a name":                {with("first_name", "A\x00B"), "/first_name control_character"},
		"invisible name":               {with("last_name", "\u3164"), "/last_name format"},
		"invisible e-mail":             {with("email", "ami\u200bna@example.com"), "/email format"},
		"look-alike e-mail":            {with("email", "\u0430mina@example.com"), "/email format"},
		"own name as password":         {with("password", "AminaOtieno"), "/password too_common"},
		"number as phone":              {with("phone_number", 711000005), "/phone_number type"},
	} {
		t.Run(name, func(t *testing.T) { e.doIn(t, post, "/api/v1/users/register", c.body).blames(c.blame) })
	}
	e.do(post, "/api/v1/users/register", registration("11000005")).want(http.StatusCreated)
	taken := e.do(post, "/api/v1/users/register", registration("11000005")).refused(exchange.CodeConflict)
	if !strings.Contains(string(taken.body), `"/email"`) {
		t.Errorf("the conflict names no field: %s", taken.body)
	}
}

func TestRegistrationReplaysByKey(t *testing.T) {
	e := start(t)
	first := e.do(post, "/api/v1/users/register", registration("11000006"), withKey("k1")).want(http.StatusCreated)
	again := e.do(post, "/api/v1/users/register", registration("11000006"), withKey("k1")).want(http.StatusCreated)
	if again.header.Get(headerReplayed) != "true" || first.text("id") != again.text("id") {
		t.Errorf("the replay is another: %s", again.body)
	}
	other := registration("11000006")
	other["password"] = "quite another one"
	e.do(post, "/api/v1/users/register", other, withKey("k1")).refused(exchange.CodeIdempotencyReused)
	// The same key from another caller is another key.
	e.do(post, "/api/v1/users/register", registration("11000007"), withKey("k1"), from("192.0.2.77")).want(http.StatusCreated)
}

func TestSessionsEnd(t *testing.T) {
	e := start(t)
	const mePath = "/api/v1/auth/user/me"
	alive := func(p person, want int) {
		t.Helper()
		e.do(get, mePath, nil, p.auth()).want(want)
	}
	one := e.person(exchange.RoleUser)
	two := e.session(one.User)
	alive(one, 200)
	alive(two, 200)
	e.do(post, "/api/v1/auth/logout", nil, one.auth()).want(http.StatusNoContent)
	alive(one, 401)
	alive(two, 200)
	three := e.session(one.User)
	e.do(post, "/api/v1/auth/sessions/revoke-all", "{}", two.auth()).want(http.StatusNoContent)
	alive(two, 401)
	alive(three, 401)

	admin, victim := e.person(exchange.RoleAdmin), e.person(exchange.RoleCustomer)
	alive(victim, 200)
	e.do(patch, "/api/v1/auth/users/"+victim.ID.String(), map[string]any{"is_active": false}, admin.auth()).want(200)
	alive(victim, 401)
	e.do(post, "/api/v1/users/login", map[string]any{"email": victim.Email, "password": testPassword}).refused(exchange.CodeInvalidCredentials)
	e.do(patch, "/api/v1/auth/users/"+victim.ID.String(), map[string]any{"is_active": true}, admin.auth()).want(200)
	alive(victim, 401)
	e.do(post, "/api/v1/users/login", map[string]any{"email": victim.Email, "password": testPassword}).want(200)
	e.do(patch, "/api/v1/auth/users/"+admin.ID.String(), map[string]any{"is_active": false}, admin.auth()).refused(exchange.CodeStateConflict)
}

// TestAnotherProcessFollows checks that a change by another process takes effect within five seconds.
func TestAnotherProcessFollows(t *testing.T) {
	e := start(t)
	other := startOn(t, e.store)
	admin, victim := e.person(exchange.RoleAdmin), e.person(exchange.RoleCustomer)
	other.do(get, "/api/v1/auth/user/me", nil, victim.auth()).want(200)
	e.do(patch, "/api/v1/auth/users/"+victim.ID.String(), map[string]any{"is_active": false}, admin.auth()).want(200)
	other.skew.Store(int64(5*time.Second + time.Millisecond))
	other.do(get, "/api/v1/auth/user/me", nil, victim.auth()).want(401)
}

func TestTokensAreChecked(t *testing.T) {
	e := start(t)
	p := e.person(exchange.RoleUser)
	forger := mustRing(t, testKey("test", 8))
	forged, _, _ := forger.access(claims{p.ID, p.session, 1}, time.Now())
	unknown, _, _ := mustRing(t, testKey("other", 7)).access(claims{p.ID, p.session, 1}, time.Now())
	for name, value := range map[string]string{
		"none": "", "empty": "Bearer ", "basic": "Basic YTpi", "rubbish": "Bearer rubbish", "forged": "Bearer " + forged,
		"unknown key": "Bearer " + unknown, "cut": "Bearer " + p.token[:len(p.token)-3], "long": "Bearer v4.local." + strings.Repeat("A", 4000),
	} {
		var o []option
		if value != "" {
			o = append(o, header("Authorization", value))
		}
		r := e.do(get, "/api/v1/auth/user/me", nil, o...).refused(exchange.CodeUnauthenticated)
		if r.header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: no WWW-Authenticate", name)
		}
	}
	e.do(get, "/api/v1/auth/user/me", nil, header("Authorization", "bearer "+p.token)).want(200)
	e.do(get, "/api/v1/auth/user/me", nil, header("Authorization", "Bearer "+strings.Repeat("A", 9000))).want(http.StatusRequestHeaderFieldsTooLarge)
	e.skew.Store(int64(AccessTokenLife))
	e.do(get, "/api/v1/auth/user/me", nil, p.auth()).refused(exchange.CodeUnauthenticated)
}

func TestPINIsChangedWithThePassword(t *testing.T) {
	e := start(t)
	p, other := e.person(exchange.RoleCustomer), e.person(exchange.RoleCustomer)
	path := "/api/v1/auth/user/id/" + p.ID.String() + "/pin"
	e.do(put, path, map[string]any{"pin": "73915", "password": testPassword}, p.auth()).want(200)
	e.do(post, "/api/v1/users/login-pin", map[string]any{"email": p.Email, "pin": "73915"}).want(200)
	e.do(put, path, map[string]any{"pin": "73916", "password": "not the password"}, p.auth()).blames("/password wrong")
	e.do(put, path, map[string]any{"pin": "1111", "password": testPassword}, p.auth()).blames("/pin format")
	e.do(put, path, map[string]any{"pin": "73916"}, p.auth()).blames("/password required")
	foreign := e.do(put, path, map[string]any{"pin": "73916", "password": testPassword}, other.auth()).refused(exchange.CodeNotFound)
	absent := e.do(put, strings.Replace(path, p.ID.String(), newID().String(), 1), map[string]any{"pin": "73916", "password": testPassword}, other.auth())
	if !bytes.Equal(anonymous(foreign), anonymous(absent)) {
		t.Errorf("a foreign account answers %s, an absent one %s", foreign.body, absent.body)
	}
	e.do(post, "/api/v1/users/login-pin", map[string]any{"email": p.Email, "pin": "73915"}).want(200)
}

func TestUsersOfAnAdmin(t *testing.T) {
	e := start(t)
	admin, vendor := e.person(exchange.RoleAdmin), e.person(exchange.RoleVendor)
	sub := e.person(exchange.RoleSubvendor, vendor.ID)
	for range 6 {
		e.person(exchange.RoleUser)
	}
	status := e.do(get, "/api/v1/auth/users/account-status?page_id=1&page_size=5", nil, admin.auth()).want(200).object()
	if len(status["users"].([]any)) != 5 || status["page_size"] != 5.0 || status["total"] != 9.0 {
		t.Errorf("account status %v", status)
	}
	for _, q := range []string{"page_id=0", "page_id=-1", "page_size=4", "page_size=51", "page_size=x", "page_id=1e3", "page_id=99999999999999999999", "page_id=1&page_id=2", "page_size=%00", "page_id=%2B1"} {
		e.do(get, "/api/v1/auth/users/account-status?"+q, nil, admin.auth()).refused(exchange.CodeInvalid)
	}
	count := e.do(get, "/api/v1/auth/users/count/role/user", nil, admin.auth()).want(200).object()
	if count["count"] != 6.0 || count["role"] != "user" {
		t.Errorf("count %v", count)
	}
	e.do(get, "/api/v1/auth/users/count/role/king", nil, admin.auth()).blames("path/role enum")
	list := e.do(get, "/api/v1/auth/users?role=vendor", nil, admin.auth()).want(200).object()
	if list["total"] != 1.0 {
		t.Errorf("list %v", list)
	}
	verified := e.do(patch, "/api/v1/auth/users/"+sub.ID.String(), map[string]any{"is_active": true, "role": "admin"}, admin.auth())
	verified.blames("/role unknown_field")
	e.do(patch, "/api/v1/auth/users/"+sub.ID.String(), "{}", admin.auth()).blames(" required")
	e.do(get, "/api/v1/auth/users/"+newID().String(), nil, admin.auth()).refused(exchange.CodeNotFound)
	e.do(get, "/api/v1/auth/users/7", nil, admin.auth()).blames("path/id format")
}

func TestVendorMakesItsOwnSubvendorsAlone(t *testing.T) {
	e := start(t)
	vendor, rival := e.person(exchange.RoleVendor), e.person(exchange.RoleVendor)
	path := "/api/v1/auth/merchants/" + vendor.ID.String() + "/subvendors"
	e.do(post, path, invited("11000009"), vendor.auth()).want(http.StatusCreated)
	e.do(post, path, invited("11000010"), rival.auth()).refused(exchange.CodeNotFound)
	e.accept("11000009@example.com", testPassword, nil).want(http.StatusCreated)
	detail := e.do(get, "/api/v1/auth/merchants/"+vendor.ID.String(), nil, vendor.auth()).want(200).object()
	if len(detail["subvendors"].([]any)) != 1 {
		t.Errorf("detail %v", detail)
	}
	e.do(get, "/api/v1/auth/merchants/"+vendor.ID.String(), nil, rival.auth()).refused(exchange.CodeNotFound)
	list := e.do(get, "/api/v1/auth/merchants", nil, rival.auth()).want(200).object()
	if list["total"] != 1.0 {
		t.Errorf("a vendor sees %v", list)
	}
}

func TestRecoverAndHeaders(t *testing.T) {
	e := start(t)
	admin := e.person(exchange.RoleAdmin)
	e.do(get, "/nowhere", nil).refused(exchange.CodeNotFound)
	e.do(get, "/api/v1/auth/user/me/", nil, admin.auth()).refused(exchange.CodeNotFound)
	wrong := e.do(del, "/api/v1/auth/user/me", nil, admin.auth()).refused(exchange.CodeMethodNotAllowed)
	if !strings.Contains(wrong.header.Get("Allow"), "GET") {
		t.Errorf("Allow: %q", wrong.header.Get("Allow"))
	}
	e.do(post, "/api/v1/users/login", "{}", header("Content-Type", "text/plain")).refused(exchange.CodeMediaType)
	e.do(post, "/api/v1/users/login", "{}", header("Content-Encoding", "gzip")).refused(exchange.CodeMediaType)
	e.do(post, "/api/v1/users/login", `{"email":`).refused(exchange.CodeMalformed)
	e.do(post, "/api/v1/users/login", `{"email":"a","email":"b"}`).refused(exchange.CodeMalformed)
	e.do(post, "/api/v1/users/login", `{"email":"`+strings.Repeat("x", defaultBody)+`"}`).refused(exchange.CodeTooLarge)
}

// TestPanicsAreRecovered runs a handler that panics and one that fails with a secret.
func TestPanicsAreRecovered(t *testing.T) {
	e := start(t)
	s := e.server
	for name, handle := range map[string]func(*call) error{
		"panic": func(*call) error { panic("secret of the house") },
		"error": func(*call) error { return fmt.Errorf("secret of the house") },
	} {
		app, err := s.app()
		if err != nil {
			t.Fatal(err)
		}
		s.mount(app, &route{method: get, path: "/boom", public: true, limit: limitNone, handle: handle})
		answer, err := app.Test(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/boom", nil), -1)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		var b bytes.Buffer
		_, _ = b.ReadFrom(answer.Body)
		if answer.StatusCode != 500 || strings.Contains(b.String(), "secret") || !strings.Contains(b.String(), answer.Header.Get("X-Request-Id")) {
			t.Errorf("%s: %d %s", name, answer.StatusCode, b.String())
		}
	}
}

func TestRateLimits(t *testing.T) {
	e := start(t, func(d *Deps) {
		d.Config.Rates.Login = Rate{Max: 3, Per: time.Hour}
		d.Config.Rates.General = Rate{Max: 10, Per: time.Hour}
	})
	body := map[string]any{"email": "nobody", "password": "x"}
	for range 3 {
		e.do(post, "/api/v1/users/login", body, from("192.0.2.1")).refused(exchange.CodeInvalidCredentials)
	}
	limited := e.do(post, "/api/v1/users/login", body, from("192.0.2.1")).refused(exchange.CodeRateLimited)
	if limited.header.Get("Retry-After") == "" {
		t.Error("429 without Retry-After")
	}
	e.do(post, "/api/v1/users/login", body, from("192.0.2.2")).refused(exchange.CodeInvalidCredentials)
	p := e.person(exchange.RoleUser)
	for range 10 {
		e.do(get, "/api/v1/auth/user/me", nil, p.auth()).want(200)
	}
	e.do(get, "/api/v1/auth/user/me", nil, p.auth(), from("192.0.2.3")).refused(exchange.CodeRateLimited)
	e.do(get, "/healthz", nil).want(200)
}

func TestForwardedAddressCountsFromTrustedProxiesAlone(t *testing.T) {
	e := start(t, func(d *Deps) {
		d.Config.TrustedProxies = nil
		d.Config.Rates.Login = Rate{Max: 2, Per: time.Hour}
	})
	body := map[string]any{"email": "nobody", "password": "x"}
	for i := range 3 {
		r := e.do(post, "/api/v1/users/login", body, from(fmt.Sprintf("192.0.2.%d", i)))
		if limited := r.status == http.StatusTooManyRequests; limited != (i == 2) {
			t.Errorf("request %d: %d", i, r.status)
		}
	}
}
