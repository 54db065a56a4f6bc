package e2e

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/google/uuid"

	"kivuko/dev/demo"
	"kivuko/exchange"
	"kivuko/workflows"
)

// TestWebUIOfStaff reads a parked flow in Temporal's own Web UI as an officer does, behind the gate and the login: nothing before
// both steps of the login, then the payloads in clear, and of all that changes a flow the signals of operators alone.
func TestWebUIOfStaff(t *testing.T) {
	w := openBeside(t)
	b := openBrowser(t)
	f, to := w.unanswered(t)
	ui, flow := w.stack.WebUI(), workflows.TransferID(f.ID)

	b.do(chromedp.Navigate(ui+"/namespaces/kivuko/workflows"), chromedp.WaitVisible(theLogin))
	if page := evaluate[string](b, `document.documentElement.outerHTML`); strings.Contains(page, flow) || strings.Contains(page, "_app") {
		t.Errorf("who has not logged in gets more than the page of the login: %s", page)
	}
	b.answers(t, "without a login", http.StatusUnauthorized, reads(flow))
	o := w.enrol(t, b, "Flows")
	w.enter(t, b, o, flow)
	b.opens(t, w, ui, f)

	b.answers(t, "with both steps of the login", http.StatusForbidden, changes(flow))
	b.offers(t)
	w.screening.say(to, exchange.VerdictClear)
	b.signals("retry")
	w.arrives(t, w.as(t, demo.VendorEmail), f.ID, "completed")
	b.shows("COMPLETED")
	b.picture("A-completed")
}

const theLogin = `form[action="/login"]`

// enter logs an officer in at the gate, after a wrong password and the passkeys of others.
func (w *harness) enter(t *testing.T, b *browser, o officer, flow string) {
	t.Helper()
	b.do(chromedp.Navigate(w.stack.WebUI()+"/namespaces/kivuko/workflows"), chromedp.WaitVisible(theLogin))
	b.picture("3-login")
	b.fill(theLogin, map[string]string{"email": o.email, "password": "a wrong one"})
	b.says("the password is wrong")
	b.fill(theLogin, map[string]string{"email": o.email, "password": demo.Password})
	b.until(`document.getElementById("prove")`)
	b.picture("4-passkey")
	b.answers(t, "with the password alone", http.StatusUnauthorized, reads(flow))
	key := b.credential()
	for _, wrong := range []struct {
		key  *webauthn.Credential
		says string
	}{{nil, "No passkey was given"}, {impostor(t, *key), "This passkey is not one of your account."}} {
		b.swap()
		if wrong.key != nil {
			b.give(wrong.key)
		}
		b.do(chromedp.Click("#prove"))
		b.says(wrong.says)
	}
	b.picture("5-wrong-key")
	b.answers(t, "with the passkeys of others", http.StatusUnauthorized, reads(flow))
	b.swap()
	b.give(key)
	b.do(chromedp.Click("#prove"))
	b.shows(flow) // the list of flows
	b.picture("6-flows")
}

// opens reads the flow of a transfer: its input, the summaries of its steps, and its details, all of which are encrypted at the server.
func (b *browser) opens(t *testing.T, w *harness, ui string, f sent) {
	t.Helper()
	var intent uuid.UUID
	if err := w.db.QueryRowContext(t.Context(), `SELECT intent_id FROM transfers WHERE id = $1`, f.ID).Scan(&intent); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(ui + "/namespaces/kivuko/workflows/" + strings.ReplaceAll(workflows.TransferID(f.ID), ":", "%3A")))
	b.shows(`"intent_id"`)
	b.shows(intent.String())
	b.shows("Screen the recipient")
	b.picture("7-parked")
	b.press(`a[href$="/user-metadata"]`)
	for _, text := range []string{"Transfer 5.000000 USDT", "Needs attention: " + string(workflows.ReasonScreening), workflows.ReasonScreening.Advice().Do} {
		b.until(`[...document.querySelectorAll("iframe")].some((f) => (f.contentDocument?.body?.innerText ?? decodeURIComponent(f.src)).includes(` + quoted(text) + `))`)
	}
	b.picture("8-details")
}

// press clicks on the visible one of the elements that a selector finds.
func (b *browser) press(selector string) {
	b.t.Helper()
	visible := `[...document.querySelectorAll(` + quoted(selector) + `)].find((e) => e.offsetParent)`
	b.until(visible)
	b.do(chromedp.Evaluate[chromedp.Void](visible + `.click()`))
}

// offers checks the buttons of a flow's page: a signal can be sent, and nothing else.
func (b *browser) offers(t *testing.T) {
	t.Helper()
	if !evaluate[bool](b, `[...document.querySelectorAll("button")].filter((e) => e.innerText.trim() === "Request Cancellation").every((e) => e.disabled)`) {
		t.Error("there is a button that cancels the flow")
	}
	b.press(`[aria-controls="workflow-actions"]`)
	got := evaluate[map[string]bool](b, `Object.fromEntries([...document.querySelectorAll("#workflow-actions [role=menuitem]")].map(
		(e) => [e.dataset.testid, e.getAttribute("aria-disabled") === "false"]))`)
	b.picture("9-actions")
	want := map[string]bool{"signal-button": true, "reset-button": false, "update-button": false, "terminate-button": false, "start-workflow-button": false}
	if !maps.Equal(got, want) {
		t.Errorf("the page offers %v, want %v", got, want)
	}
}

// signals sends a signal by the menu of a flow's page, which is open.
func (b *browser) signals(name string) {
	b.t.Helper()
	b.press(`[data-testid="signal-button"]`)
	b.press(`dialog[open] [data-testid="signal-select-button"]`)
	option := `[...document.querySelectorAll("dialog[open] [role=option]")].find((e) => e.textContent.trim() === ` + quoted(name) + `)`
	b.until(option)
	b.do(chromedp.Evaluate[chromedp.Void](option + `.click()`))
	b.until(`!document.querySelector('dialog[open] [data-testid="confirm-modal-button"]').disabled`)
	b.picture("9-signal")
	b.press(`dialog[open] [data-testid="confirm-modal-button"]`)
}

// request is what a page of the Web UI may ask for.
type request struct {
	Method string `json:"method"`
	Path   string `json:"path"`
}

const ofFlows = "/api/v1/namespaces/kivuko/workflows"

// reads are requests that show something of a flow, or send it a signal.
func reads(flow string) []request {
	return []request{
		{http.MethodGet, ofFlows},
		{http.MethodGet, ofFlows + "/" + flow},
		{http.MethodGet, "/api/v1/settings"},
		{http.MethodPost, "/codec/decode"},
		{http.MethodPost, ofFlows + "/" + flow + "/signal/retry"},
	}
}

// changes are requests that no session may send, whatever the buttons say.
func changes(flow string) []request {
	var all []request
	for _, verb := range []string{
		"", "/terminate", "/cancel", "/reset", "/pause", "/update/" + workflows.UpdateCommand, "/signal/" + workflows.SignalResume,
		"/signal/" + workflows.SignalFloat, "/signal/" + workflows.SignalCallback, "/activities/pause", "/signal-with-start/retry",
	} {
		all = append(all, request{http.MethodPost, ofFlows + "/" + flow + verb})
	}
	return append(all,
		request{http.MethodPost, "/api/v1/namespaces/kivuko/batch-operations/" + uuid.NewString()},
		request{http.MethodPost, "/api/v1/namespaces/kivuko/schedules/seal-audit/patch"},
		request{http.MethodDelete, "/api/v1/namespaces/kivuko/schedules/seal-audit"},
		request{http.MethodPost, ofFlows + "/temporal-sys-scheduler:seal-audit/signal/retry"},
		request{http.MethodPost, "/api/v1/namespaces/kivuko"},
	)
}

// answers checks that requests of the page, with the cookies of the browser, have one answer.
func (b *browser) answers(t *testing.T, who string, want int, all []request) {
	t.Helper()
	for _, r := range all {
		body := "undefined"
		if r.Method == http.MethodPost {
			body = `"{}"`
		}
		got := evaluate[int](b, `fetch(`+quoted(r.Path)+`, {method: `+quoted(r.Method)+`, body: `+body+`, headers: {"Content-Type": "application/json"}}).then((a) => a.status)`)
		if got != want {
			t.Errorf("%s, %s %s is answered with %d", who, r.Method, r.Path, got)
		}
	}
}
