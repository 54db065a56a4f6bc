package attacks

import (
	"crypto/sha256"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"kivuko/dev/client"
	"kivuko/dev/demo"
	"kivuko/dev/stack"
	"kivuko/dev/testbed"
	"kivuko/exchange"
	"kivuko/store"
)

// D1: who made an officer's account chose its password and its PIN, and so decided twice. Now the person who is invited sets the
// secrets, by a link that only its mailbox has, and another officer lets it in.
func TestD1_OnePersonIsTwo(t *testing.T) {
	w := openBeside(t)
	admin := w.Admin(t)
	email := "mdogo-" + uuid.NewString()[:8] + "@kivuko.example"
	in := map[string]any{"email": email, "phone_number": "+" + testbed.NewPhone(), "first_name": "Mdogo", "last_name": "Mbili", "role": "treasury"}
	withSecrets := map[string]any{"password": demo.Password, "pin": pin}
	for name, value := range in {
		withSecrets[name] = value
	}
	err := admin.Post(t.Context(), auth+"/invitations", testbed.Key(), withSecrets, nil)
	refused(t, "an invitation with secrets", err, http.StatusUnprocessableEntity, "/password")
	var made struct {
		Token string `json:"token"`
		Link  string `json:"link"`
	}
	if err := admin.Post(t.Context(), auth+"/invitations", testbed.Key(), in, &made); err != nil || made.Token+made.Link != "" {
		t.Fatalf("who invites gets %+v, %v", made, err)
	}
	link := w.Inbox(t, email, `/people/invitation#[A-Za-z0-9_-]+`)
	if err := client.New(w.API()).Accept(t.Context(), link[strings.Index(link, "#")+1:], demo.Password); err != nil {
		t.Fatal(err)
	}
	if _, err := client.New(w.API()).Login(t.Context(), email, demo.Password); err == nil {
		t.Error("the account is open before a second officer let it in")
	}
	id := w.ID(t, email)
	var waits testbed.Waits
	if err := w.Officer(t).Get(t.Context(), auth+"/approvals/changes?status=pending&subject_id="+id.String(), &waits); err != nil || len(waits.Changes) != 1 {
		t.Fatalf("%+v wait, %v", waits, err)
	}
	confirm := auth + "/approvals/changes/" + waits.Changes[0].ID.String() + "/confirm"
	err = admin.Post(t.Context(), confirm, testbed.Key(), map[string]any{"digest": waits.Changes[0].Digest}, nil)
	refused(t, "who invited lets in", err, http.StatusForbidden, "forbidden")
	w.Agree(t, waits)
	w.login(t, email)
}

// C2: whoever wrote a row of a session with the hash of a text of its own had that user's tokens: refresh never looked at the
// token itself. Now a refresh token is opened and bound to its session and user before the database is asked.
func TestC2_ASessionRowIsAToken(t *testing.T) {
	w := openBeside(t)
	db, err := store.Open(t.Context(), w.Stack.Postgres.RoleDSN("kivuko", string(store.RoleAPI)), store.Options{MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // nothing of it is used any more
	const chosen = "a text that its writer chose"
	now := time.Now().UTC()
	row := store.Session{
		ID: uuid.Must(uuid.NewV7()), FamilyID: uuid.Must(uuid.NewV7()), UserID: w.ID(t, stack.AdminEmail), TokenHash: sha256.Sum256([]byte(chosen)),
		Assurance: exchange.AssurancePassword, CreatedAt: now, ExpiresAt: now.Add(time.Hour),
	}
	if err := db.CreateSession(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	refresh := func(token string) (tokens struct {
		AccessToken  string `json:"access_token"`
		RefreshToken string `json:"refresh_token"`
	}, err error,
	) {
		err = client.New(w.API()).Post(t.Context(), auth+"/refresh", "", map[string]any{"refresh_token": token}, &tokens)
		return tokens, err
	}
	tokens, err := refresh(chosen)
	refused(t, "a refresh by the chosen text", err, http.StatusUnauthorized, "unauthenticated")
	if tokens.AccessToken != "" {
		t.Error("it gave an access token of the admin's")
	}
	own := struct {
		RefreshToken string `json:"refresh_token"`
	}{}
	if err := client.New(w.API()).Post(t.Context(), "/api/v1/users/login", "", map[string]any{"email": demo.ThirdEmail, "password": demo.Password}, &own); err != nil {
		t.Fatal(err)
	}
	if _, err := refresh(own.RefreshToken); err != nil {
		t.Errorf("a customer's own token: %v", err)
	}
}

// C4 and B12: four digits opened an officer's account, 6,305 guesses a year were free, no row told of them; and five wrong ones by
// a stranger stopped the officer. Now staff has no PIN, guesses are counted per account and written down, and the officer goes on.
func TestC4_StaffByFourDigits(t *testing.T) {
	w := openBeside(t)
	const officer = "wanjiku@kivuko.example"
	id := w.ID(t, officer)
	known := w.login(t, officer)
	failures := `SELECT count(*) FROM audit_log WHERE object_id = $1 AND action = 'login.failed'`
	before := w.count(t, failures, id)
	err := known.Do(t.Context(), http.MethodPut, auth+"/user/id/"+id.String()+"/pin", "", map[string]any{"pin": pin, "password": demo.Password}, nil)
	if err == nil {
		t.Error("an officer has set a PIN")
	}
	delayed := false
	for range 8 {
		status, code := w.knock(t, "/api/v1/users/login-pin", map[string]any{"email": officer, "pin": "1357"})
		delayed = delayed || status == http.StatusTooManyRequests || status == http.StatusLocked
		if status < http.StatusBadRequest {
			t.Errorf("a PIN opens the account of an officer: %d %s", status, code)
		}
	}
	if n := w.count(t, failures, id); !delayed || n == before {
		t.Errorf("guesses were delayed: %t; %d are in the audit log", delayed, n-before)
	}

	// B12: the owner logs in on a known device, proves herself and works.
	again := w.login(t, officer)
	if err := again.Get(t.Context(), auth+"/freeze", nil); err != nil {
		t.Errorf("the officer after a stranger's guesses: %v", err)
	}
}

// B12: five wrong PINs by a stranger stopped an officer from getting tokens for approvals.
func TestB12_StrangersStopNoOfficer(t *testing.T) {
	w := openBeside(t)
	first, second := w.Officer(t), w.As(t, testbed.SecondOfficer)
	f := w.houseSends(t, first, "1.5", map[string]any{"address": testbed.NewAddress(t)})
	for range 7 {
		w.knock(t, "/api/v1/users/login", map[string]any{"email": testbed.SecondOfficer, "password": "guess"})
		w.knock(t, "/api/v1/users/login-pin", map[string]any{"email": testbed.SecondOfficer, "pin": "1357"})
	}
	in := map[string]any{"object_type": "transfer", "object_id": f.ID, "action": "reject", "amount": f.Amount, "digest": f.Digest, "note": "an attack"}
	var ticket struct {
		Token string `json:"token"`
	}
	if err := second.Post(t.Context(), auth+"/approvals/tokens", "", in, &ticket); err != nil || ticket.Token == "" {
		t.Errorf("the officer asks for a token: %v", err)
	}
	if err := second.Post(t.Context(), auth+"/transfers/"+f.ID.String()+"/reject", testbed.Key(), map[string]any{"digest": f.Digest, "note": "an attack"}, nil); err != nil {
		t.Error(err)
	}
	w.login(t, testbed.SecondOfficer)
}

// H3: whoever registered another's phone and e-mail first got the payments that were meant for their owner. Now only a proven one
// is paid, and who proves it has it.
func TestH3_SquattersAreNotPaid(t *testing.T) {
	w := openBeside(t)
	vendor := w.As(t, demo.VendorEmail)
	phone := testbed.NewPhone()
	email := phone + "@owners.example"
	if err := w.register(t, phone, email); err != nil {
		t.Fatal(err)
	}
	thief := w.login(t, email)
	var squat struct {
		Address string `json:"address"`
	}
	wallet := map[string]any{"network": "tron", "asset": "USDT"}
	if err := thief.Post(t.Context(), auth+"/wallets", testbed.Key(), wallet, &squat); err != nil {
		t.Fatal(err)
	}
	for field, to := range map[string]string{"phone_number": "+" + phone, "email": email} {
		in := map[string]any{"network": "tron", "asset": "USDT", "amount": "2", "recipient": map[string]any{field: to}}
		refused(t, "a transfer to a claimed "+field, vendor.Post(t.Context(), auth+"/transfers", testbed.Key(), in, nil), http.StatusUnprocessableEntity, "/recipient/"+field)
	}
	owner := demo.Person{Email: email, Phone: "+" + phone, First: "Mwenye", Last: "Simu", Role: "customer"}
	if _, err := w.Seed().Register(t.Context(), w.Admin(t), owner); err != nil {
		t.Fatal(err)
	}
	own := w.login(t, email)
	var house struct {
		Address string `json:"address"`
	}
	if err := own.Post(t.Context(), auth+"/wallets", testbed.Key(), wallet, &house); err != nil {
		t.Fatal(err)
	}
	f := testbed.Send(t, vendor, "2", map[string]any{"phone_number": "+" + phone})
	testbed.Arrives(t, vendor, f.ID, "completed")
	w.got(t, house.Address, "2")
	w.got(t, squat.Address, "0")
}

// H9: an access token alone moved its owner's money and named where refunds go, for as long as it lived. Now both need a proof
// that is not older than five minutes.
func TestH9_AStolenTokenMovesNothing(t *testing.T) {
	w := openBeside(t)
	owner := w.login(t, demo.VendorEmail)
	// As if all its logins were six minutes old: other attacks log in meanwhile, and prove themselves anew. Only the owner of the schema may: the trigger lets a proof grow alone.
	if _, err := w.DB.ExecContext(t.Context(), `BEGIN; ALTER TABLE session_families DISABLE TRIGGER session_families_grow;
		UPDATE session_families SET stepped_up_at = stepped_up_at - interval '6 minutes'
		WHERE user_id = '`+w.ID(t, demo.VendorEmail).String()+`';
		ALTER TABLE session_families ENABLE TRIGGER session_families_grow; COMMIT`); err != nil {
		t.Fatal(err)
	}
	stolen, to := owner.Unproven(), testbed.NewAddress(t)
	in := map[string]any{"network": "tron", "asset": "USDT", "amount": "3", "recipient": map[string]any{"address": to}}
	refused(t, "a withdrawal", stolen.Post(t.Context(), auth+"/transfers", testbed.Key(), in, nil), http.StatusForbidden, "step_up_required")
	address := map[string]any{"refund_address": to}
	err := stolen.Do(t.Context(), http.MethodPatch, orders+uuid.NewString()+"/refund-address", "", address, nil)
	refused(t, "another refund address", err, http.StatusForbidden, "step_up_required")
	if err := stolen.Get(t.Context(), auth+"/user/me", nil); err != nil {
		t.Errorf("the token is not one: %v", err)
	}
	w.got(t, to, "0")
	f := testbed.Send(t, owner, "3", map[string]any{"address": to}) // proves the owner by the password first
	testbed.Arrives(t, owner, f.ID, "completed")
	w.got(t, to, "3")
}

// H8: accounts that anybody makes borrowed all addresses of the pool, by opening and cancelling sales, and no sale was taken for
// a week. Now such an account proves its phone first, and all of them together have a share.
func TestH8_UnverifiedAccountsStopNoSales(t *testing.T) {
	w := openBeside(t)
	const share = 2
	if _, err := w.DB.ExecContext(t.Context(), `UPDATE escrow_policy SET most = 40, user_percent = 5 WHERE network = 'tron'`); err != nil { // of 40, two
		t.Fatal(err)
	}
	sell := func(c *client.Client, phone string) error {
		_, err := testbed.Place(t.Context(), c, w.saleOf(t, demo.VendorEmail, phone), testbed.Key())
		return err
	}
	c, phone := w.stranger(t)
	refused(t, "a sale of an account with an unproven phone", sell(c, phone), http.StatusConflict, "phone")
	lent := 0
	for range share + 1 {
		c, phone := w.stranger(t, "phone")
		err := sell(c, phone)
		if err == nil {
			lent++
		} else if !testbed.Is(err, http.StatusTooManyRequests) && !testbed.Is(err, http.StatusUnprocessableEntity) && !testbed.Is(err, http.StatusConflict) {
			t.Errorf("a sale beyond the share: %v", err)
		}
	}
	if lent != share {
		t.Errorf("unverified accounts borrowed %d addresses, not %d", lent, share)
	}
	if err := sell(w.As(t, demo.SecondEmail), testbed.NewPhone()); err != nil {
		t.Errorf("the sale of a verified customer: %v", err)
	}
}
