package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"kivuko/dev/demo"
	"kivuko/dev/messages"
	"kivuko/dev/stack"
)

// browser is headless Chromium with an authenticator.
type browser struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // chromedp's handle of the tab
	key webauthn.AuthenticatorID
}

func openBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox)
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(allocator)
	t.Cleanup(closeTab)
	b := &browser{t: t, ctx: ctx}
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil { // starts the browser, which lives as long as ctx
		t.Fatal(err)
	}
	tell(b, webauthn.Enable, webauthn.EnableParams{})
	b.plug()
	return b
}

// do runs steps on the page.
func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, timeout)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.t.Fatalf("the browser: %v; the page says %q", err, b.said())
	}
}

// tell sends the browser a command.
func tell[P, R any](b *browser, command cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, timeout)
	defer cancel()
	got, err := chromedp.Call(ctx, command, params)
	if err != nil {
		b.t.Fatalf("%s: %v", command.Method, err)
	}
	return got
}

// plug gives the browser a new authenticator, which verifies its user.
func (b *browser) plug() {
	b.t.Helper()
	b.key = tell(b, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal, HasResidentKey: true, HasUserVerification: true,
		IsUserVerified: true, AutomaticPresenceSimulation: true,
	}}).AuthenticatorID
}

// said is what the page tells its reader.
func (b *browser) said() string {
	ctx, cancel := context.WithTimeout(b.ctx, time.Second)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.getElementById("say")?.textContent ?? ""`)) // no page, no words
	return text
}

// says waits until the page tells something.
func (b *browser) says(want string) {
	b.t.Helper()
	b.do(chromedp.Poll[chromedp.Void](`document.getElementById("say").textContent.includes(`+quoted(want)+`)`, chromedp.WithPollingTimeout(timeout)))
}

func quoted(s string) string {
	raw, _ := json.Marshal(s) // a string
	return string(raw)
}

// inbox reads the newest message to somebody that a pattern finds something in.
func (w *harness) inbox(t *testing.T, to, pattern string) string {
	t.Helper()
	find := regexp.MustCompile(pattern)
	var found string
	eventually(t, "a message to "+to, func() error {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+w.stack.Addresses.Messages+"/messages?to="+url.QueryEscape(to), nil)
		if err != nil {
			return err
		}
		got, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		defer func() { _ = got.Body.Close() }() // everything of worth was read before
		var all []messages.Message
		if err := json.NewDecoder(got.Body).Decode(&all); err != nil {
			return err
		}
		for _, m := range all {
			if hit := find.FindString(m.Text); hit != "" {
				found = hit
				return nil
			}
		}
		return http.ErrNoLocation
	})
	return found
}

// TestPeopleInABrowser plays an officer from the invitation to the end, in Chromium with an authenticator: enrolment, the
// second person, login and proof, then a wrong device, and a copy of the key.
func TestPeopleInABrowser(t *testing.T) {
	w := openBeside(t)
	b := openBrowser(t)
	email := "browser-" + uuid.NewString()[:8] + "@kivuko.example"
	admin, err := w.login(t.Context(), stack.AdminEmail, stack.AdminPassword)
	if err != nil {
		t.Fatal(err)
	}
	phone := "+2547" + strings.Map(func(r rune) rune { return '0' + r%10 }, uuid.NewString()[:8])
	in := map[string]any{"email": email, "phone_number": phone, "first_name": "Wambui", "last_name": "Browser", "role": "treasury"}
	if err := admin.Post(t.Context(), "/api/v1/auth/invitations", uuid.NewString(), in, nil); err != nil {
		t.Fatal(err)
	}
	link := w.inbox(t, email, `http://localhost:[0-9]+/people/invitation#[A-Za-z0-9_-]+`)

	fill := func(form, name, value string) chromedp.Action[chromedp.Void] {
		return chromedp.SendKeys("#"+form+` [name="`+name+`"]`, value)
	}
	b.do(chromedp.Navigate(link), chromedp.WaitVisible("#invitation"), fill("invitation", "password", demo.Password),
		fill("invitation", "again", demo.Password), chromedp.Click("#invitation button"))
	b.says("Another person has to let you in")
	if at, err := chromedp.Run(b.ctx, chromedp.Location()); err != nil || strings.Contains(at, "#") {
		t.Errorf("the link's secret stays in the address: %s, %v", at, err)
	}
	var user uuid.UUID
	if err := w.db.QueryRowContext(t.Context(), `SELECT id FROM users WHERE email = $1`, email).Scan(&user); err != nil {
		t.Fatal(err)
	}
	if err := w.seed().Confirm(t.Context(), user); err != nil {
		t.Fatal(err)
	}

	b.do(fill("login", "email", email), fill("login", "password", demo.Password), chromedp.Click("#login button"))
	b.says("Proven by your passkey")

	// Another device has no such passkey.
	first := b.credentials()
	tell(b, webauthn.RemoveVirtualAuthenticator, webauthn.RemoveVirtualAuthenticatorParams{AuthenticatorID: b.key})
	b.plug()
	b.do(chromedp.Click("#prove"))
	b.says("The passkey was not given, or is not known here.")

	// A copy of the key that was used less often is found out, and everything ends.
	first[0].SignCount = 0
	tell(b, webauthn.AddCredential, webauthn.AddCredentialParams{AuthenticatorID: b.key, Credential: first[0]})
	b.do(chromedp.Click("#prove"))
	b.says("another authenticator has a copy")
	var live int
	err = w.db.QueryRowContext(t.Context(), `SELECT count(*) FROM session_families WHERE user_id = $1 AND revoked_at IS NULL`, user).Scan(&live)
	if err != nil || live != 0 {
		t.Errorf("%d sessions live on, %v", live, err)
	}
	w.inbox(t, email, `a copy of your passkey`)
}

// credentials are the keys in the browser's authenticator.
func (b *browser) credentials() []*webauthn.Credential {
	b.t.Helper()
	all := tell(b, webauthn.GetCredentials, webauthn.GetCredentialsParams{AuthenticatorID: b.key}).Credentials
	if len(all) != 1 {
		b.t.Fatalf("the authenticator has %d keys", len(all))
	}
	return all
}
