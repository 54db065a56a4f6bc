package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"net/http"
	"testing"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/workflows"
)

// TestPeopleInABrowser plays an officer from the invitation to the end, in Chromium with an authenticator: enrolment, the
// second person, login, the proof before a verb that moves money, then wrong devices, and a copy of the key.
func TestPeopleInABrowser(t *testing.T) {
	w := openBeside(t)
	b := openBrowser(t)
	o := w.enrol(t, b, "Browser")
	key := b.credential()
	f, to := w.unanswered(t)

	// Who has the password and another device comes to the account, where nothing moves.
	b.swap()
	b.fill("#login", map[string]string{"email": o.email, "password": demo.Password})
	b.says("No passkey was given")
	b.picture("3-other-device")
	if status := b.retries(f); status != http.StatusForbidden {
		t.Errorf("a retry by the password alone: %d", status)
	}

	// A device that holds another key under the passkey's name is refused by the service.
	b.give(impostor(t, *key))
	b.do(chromedp.Click("#prove"))
	b.says("This passkey is not one of your account.")
	b.picture("4-wrong-key")
	if status := b.retries(f); status != http.StatusForbidden {
		t.Errorf("a retry by another key: %d", status)
	}
	w.parkedWith(t, workflows.TransferID(f.ID), workflows.ReasonScreening)

	// The officer's own proves it.
	b.swap()
	b.give(key)
	b.do(chromedp.Click("#prove"))
	b.says("Proven by your passkey until")
	b.picture("5-proven")
	w.screening.say(to, exchange.VerdictClear)
	if status := b.retries(f); status != http.StatusAccepted {
		t.Errorf("a retry after the proof: %d", status)
	}
	w.arrives(t, w.as(t, demo.VendorEmail), f.ID, "completed")

	b.renews()
	w.copied(t, b, o, key)
}

// unanswered is a transfer that is parked because the screening service does not know its recipient.
func (w *harness) unanswered(t *testing.T) (f sent, to string) {
	t.Helper()
	to = newAddress(t)
	w.screening.say(to, exchange.VerdictUnknown)
	f = w.send(t, w.as(t, demo.VendorEmail), "5", map[string]any{"address": to})
	w.parkedWith(t, workflows.TransferID(f.ID), workflows.ReasonScreening)
	return f, to
}

// retries sends the verb as a program in the page would, with the session of who is logged in there.
func (b *browser) retries(f sent) (status int) {
	b.t.Helper()
	return evaluate[int](b, `fetch(`+quoted(ofTransfer(f.ID, "retry"))+`, {method: "POST", headers: {Authorization: "Bearer " + token,
		"Content-Type": "application/json", "Idempotency-Key": crypto.randomUUID()}, body: JSON.stringify({note: "the service answers again"})}).then((a) => a.status)`)
}

// impostor is another key under the name of a passkey.
func impostor(t *testing.T, c webauthn.Credential) *webauthn.Credential {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	c.PrivateKey = der
	c.SignCount += 100
	return &c
}

// renews adds a second passkey in the account's page, removes it again, and changes the password.
func (b *browser) renews() {
	b.t.Helper()
	first := b.key
	second := tell(b, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportUsb, HasResidentKey: true, HasUserVerification: true,
		IsUserVerified: true, AutomaticPresenceSimulation: true,
	}}).AuthenticatorID
	b.do(chromedp.Click("#add"))
	b.says("The passkey is added.")
	b.picture("6-second-passkey")
	b.do(chromedp.Click("#passkeys li:nth-child(2) button"))
	b.until(`document.querySelectorAll("#passkeys li").length === 1`)
	tell(b, webauthn.RemoveVirtualAuthenticator, webauthn.RemoveVirtualAuthenticatorParams{AuthenticatorID: second})
	b.key = first

	b.fill("#password", map[string]string{"password": "a wrong one", "new_password": "password", "again": "password"})
	b.says("New password ")
	b.picture("7-bad-password")
	b.fill("#password", map[string]string{"password": "a wrong one", "new_password": anotherPassword, "again": anotherPassword})
	b.says("Present password is not your password")
	b.fill("#password", map[string]string{"password": demo.Password, "new_password": anotherPassword, "again": anotherPassword})
	b.says("The password is changed")
}

const anotherPassword = "boats for shillings, wambui"

// copied uses a copy of the passkey that has signed less often: it is found out, everything ends, and the owner is told.
func (w *harness) copied(t *testing.T, b *browser, o officer, key *webauthn.Credential) {
	thief := *key
	thief.SignCount = 0
	b.swap()
	b.give(&thief)
	b.do(chromedp.Click("#prove"))
	b.says("another authenticator has a copy")
	b.do(chromedp.WaitVisible("#login"))
	b.picture("8-copied")
	var live, audited int
	var active bool
	err := w.db.QueryRowContext(t.Context(), `SELECT (SELECT count(*) FROM session_families WHERE user_id = u.id AND revoked_at IS NULL), u.is_active,
		(SELECT count(*) FROM audit_log a JOIN passkeys p ON p.id = a.object_id WHERE a.action = 'security.passkey_cloned' AND p.user_id = u.id AND p.removed_at IS NOT NULL)
		FROM users u WHERE u.id = $1`, o.user).Scan(&live, &active, &audited)
	if err != nil || live != 0 || active || audited != 1 {
		t.Errorf("%d sessions live on, active %t, %d audit rows, %v", live, active, audited, err)
	}
	w.inbox(t, o.email, `a copy of your passkey`)
	for _, password := range []string{demo.Password, anotherPassword} {
		b.fill("#login", map[string]string{"password": password})
		b.says("is wrong")
	}
}
