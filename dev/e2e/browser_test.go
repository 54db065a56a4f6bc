package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"kivuko/dev/demo"
)

// picturesVariable names a directory in which the tests in a browser leave a picture of each page.
const picturesVariable = "KIVUKO_E2E_PICTURES"

// browsers are the names that Chromium has on different systems.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// browser is headless Chromium with an authenticator.
type browser struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // chromedp's handle of the tab
	key webauthn.AuthenticatorID
}

// openBrowser skips the test where there is no Chromium: the local stack installs none, because it is larger than all the rest.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	var path string
	for _, name := range browsers {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("this needs Chromium, which is not on this machine: install it (apt-get install chromium)")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1280, 1600))
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
		b.picture("failed")
		b.t.Fatalf("the browser: %v; the page says %q", err, b.said())
	}
}

// evaluate returns the value of an expression on the page, when its promise is kept.
func evaluate[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, timeout)
	defer cancel()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("the browser: %s: %v", expression, err)
	}
	return got
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

// until waits for a condition on the page, also on the one that follows it.
func (b *browser) until(condition string) {
	b.t.Helper()
	err := await(b.ctx, timeout, func() error {
		holds, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`Boolean(`+condition+`)`))
		if err == nil && !holds {
			err = errors.New("it does not hold")
		}
		return err
	})
	if err != nil {
		b.picture("failed")
		b.t.Fatalf("the browser: %s: %v; the page says %q", condition, err, b.said())
	}
}

// shows waits until the page shows a text.
func (b *browser) shows(want string) {
	b.t.Helper()
	b.until(`document.body.innerText.includes(` + quoted(want) + `)`)
}

// said is what the page tells its reader.
func (b *browser) said() string {
	ctx, cancel := context.WithTimeout(b.ctx, time.Second)
	defer cancel()
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`(document.getElementById("say") ?? document.body).innerText.slice(0, 2000)`)) // no page, no words
	return text
}

// says waits until the page tells something.
func (b *browser) says(want string) {
	b.t.Helper()
	b.until(`document.getElementById("say")?.textContent.includes(` + quoted(want) + `)`)
}

// picture keeps a picture of the page, for people to look at.
func (b *browser) picture(name string) {
	b.t.Helper()
	dir := os.Getenv(picturesVariable)
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, timeout)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, b.t.Name()+"-"+name+".png"), png, 0o600)
	}
	if err != nil {
		b.t.Logf("no picture of %s: %v", name, err)
	}
}

func quoted(s string) string {
	raw, _ := json.Marshal(s) // a string
	return string(raw)
}

// fill types values into fields of a form, in place of what is there, and sends it.
func (b *browser) fill(form string, fields map[string]string) {
	b.t.Helper()
	for name, value := range fields {
		field := form + ` [name="` + name + `"]`
		evaluate[string](b, `document.querySelector(`+quoted(field)+`).value = ""`)
		b.do(chromedp.SendKeys(field, value))
	}
	b.do(chromedp.Click(form + " button"))
}

// plug gives the browser a new authenticator, which verifies its user.
func (b *browser) plug() {
	b.t.Helper()
	b.key = tell(b, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal, HasResidentKey: true, HasUserVerification: true,
		IsUserVerified: true, AutomaticPresenceSimulation: true,
	}}).AuthenticatorID
}

// swap takes the authenticator away and gives the browser another one.
func (b *browser) swap() {
	b.t.Helper()
	tell(b, webauthn.RemoveVirtualAuthenticator, webauthn.RemoveVirtualAuthenticatorParams{AuthenticatorID: b.key})
	b.plug()
}

// credential is the one key in the browser's authenticator.
func (b *browser) credential() *webauthn.Credential {
	b.t.Helper()
	all := tell(b, webauthn.GetCredentials, webauthn.GetCredentialsParams{AuthenticatorID: b.key}).Credentials
	if len(all) != 1 {
		b.t.Fatalf("the authenticator has %d keys", len(all))
	}
	return all[0]
}

// give puts a key into the browser's authenticator.
func (b *browser) give(c *webauthn.Credential) {
	b.t.Helper()
	tell(b, webauthn.AddCredential, webauthn.AddCredentialParams{AuthenticatorID: b.key, Credential: c})
}

// officer is a member of staff who enrolled in the browser.
type officer struct {
	email string
	user  uuid.UUID
}

// enrol invites an officer, who sets a password and a passkey in the browser by the link of the message. Another one lets the
// officer in.
func (w *harness) enrol(t *testing.T, b *browser, lastName string) officer {
	t.Helper()
	admin, err := w.adminLogin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := officer{email: "browser-" + uuid.NewString()[:8] + "@kivuko.example"}
	phone := "+2547" + strings.Map(func(r rune) rune { return '0' + r%10 }, uuid.NewString()[:8])
	in := map[string]any{"email": o.email, "phone_number": phone, "first_name": "Wambui", "last_name": lastName, "role": "treasury"}
	if err := admin.Post(t.Context(), "/api/v1/auth/invitations", uuid.NewString(), in, nil); err != nil {
		t.Fatal(err)
	}
	link := w.inbox(t, o.email, `http://localhost:[0-9]+/people/invitation#[A-Za-z0-9_-]+`)
	b.do(chromedp.Navigate(link), chromedp.WaitVisible("#invitation"))
	b.picture("1-invitation")
	b.fill("#invitation", map[string]string{"password": demo.Password, "again": demo.Password})
	b.says("Another person has to let you in")
	b.picture("2-enrolled")
	if at := evaluate[string](b, `location.href`); strings.Contains(at, "#") {
		t.Errorf("the link's secret stays in the address: %s", at)
	}
	if err := w.db.QueryRowContext(t.Context(), `SELECT id FROM users WHERE email = $1`, o.email).Scan(&o.user); err != nil {
		t.Fatal(err)
	}
	if err := w.seed().Confirm(t.Context(), o.user); err != nil {
		t.Fatal(err)
	}
	// The link works once.
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(link))
	b.says("This link was used before")
	return o
}
