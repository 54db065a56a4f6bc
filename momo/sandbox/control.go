package sandbox

import (
	"context"
	"encoding/json"
	"html/template"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
)

// settleTimeout bounds how long POST /control/settle waits.
const settleTimeout = time.Minute

func (s *Server) routeControl(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", s.showPage)
	mux.HandleFunc("GET /control/books", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.Books()) })
	mux.HandleFunc("GET /control/certificate", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-pem-file")
		_, _ = io.WriteString(w, s.CertificatePEM())
	})
	mux.HandleFunc("GET /control/faults", func(w http.ResponseWriter, _ *http.Request) {
		s.mu.Lock()
		faults := slices.Clone(s.faults)
		s.mu.Unlock()
		reply(w, http.StatusOK, map[string]any{"faults": faults})
	})
	mux.HandleFunc("POST /control/faults", command(func(_ context.Context, f Fault) (any, error) {
		return map[string]string{"status": "set"}, s.Set(f)
	}))
	mux.HandleFunc("POST /control/reset", command(func(context.Context, struct{}) (any, error) {
		s.Reset()
		return map[string]string{"status": "reset"}, nil
	}))
	mux.HandleFunc("POST /control/release", command(func(context.Context, struct{}) (any, error) {
		s.Release()
		return map[string]string{"status": "released"}, nil
	}))
	mux.HandleFunc("POST /control/revoke", command(func(context.Context, struct{}) (any, error) {
		s.RevokeToken()
		return map[string]string{"status": "revoked"}, nil
	}))
	mux.HandleFunc("POST /control/settle", command(func(ctx context.Context, _ struct{}) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, settleTimeout)
		defer cancel()
		return map[string]string{"status": "settled"}, s.Settle(ctx)
	}))
	mux.HandleFunc("POST /control/pay", command(func(_ context.Context, in struct {
		Phone     string `json:"phone"`
		Reference string `json:"reference"`
		Amount    int64  `json:"amount"`
	},
	) (any, error) {
		receipt, err := s.Pay(in.Phone, in.Reference, in.Amount)
		return map[string]string{"receipt": receipt}, err
	}))
	mux.HandleFunc("POST /control/fund", command(func(_ context.Context, in struct {
		Account string `json:"account"`
		Amount  int64  `json:"amount"`
	},
	) (any, error) {
		return map[string]string{"status": "booked"}, s.Fund(in.Account, in.Amount)
	}))
}

// command handles a JSON body; an empty body is an empty object. It requires the JSON content type, so that no web page can
// send a command without a preflight request.
func command[In any](run func(context.Context, In) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		fail := func(status int, text string) { reply(w, status, map[string]string{"error": text}) }
		if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
			fail(http.StatusUnsupportedMediaType, "Content-Type: must be application/json")
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			fail(http.StatusRequestEntityTooLarge, "the body is too long")
			return
		}
		if len(body) == 0 {
			body = []byte("{}")
		}
		var in In
		decoder := json.NewDecoder(strings.NewReader(string(body)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&in); err != nil {
			fail(http.StatusBadRequest, err.Error())
			return
		}
		out, err := run(r.Context(), in)
		if err != nil {
			fail(http.StatusUnprocessableEntity, err.Error())
			return
		}
		reply(w, http.StatusOK, out)
	}
}

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"eat": func(t time.Time) string { return t.In(eat).Format("2006-01-02 15:04:05") },
}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Mobile money sandbox</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1c2733}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin-top:2rem}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #dde3e8;vertical-align:top}
th{font-weight:600}code{background:#f1f4f6;padding:.1rem .3rem;border-radius:3px}.n{text-align:right}
</style></head><body>
<h1>Mobile money sandbox</h1>
<p>Working account KES {{.Books.Working}}, utility account KES {{.Books.Utility}}. Times are East Africa Time.
This page as JSON: ask for <code>application/json</code>; all of the books: <a href="/control/books">/control/books</a>.</p>
<h2>Numbers that force an outcome</h2>
<p>A number <code>{{.Prefix}}NN</code>{{if .Amounts}}, or an amount of {{.Amount}} + NN shillings,{{end}} asks for one; every other number works.
For the next requests: <code>POST /control/faults {"behaviour":"declined","phone":"254712345678","times":2}</code>,
and <code>POST /control/reset</code> to forget that. <code>result:CODE</code> ends a prompt or payout with any code.</p>
<table><tr><th>NN</th><th>Behaviour</th><th>For</th><th>What happens</th></tr>
{{range .Behaviours}}<tr><td>{{.Magic}}</td><td><code>{{.Name}}</code></td><td>{{range .Ops}}{{.}} {{end}}</td><td>{{.Text}}</td></tr>
{{end}}</table>
<p>The newest {{.Rows}} of each follow: <a href="#effects">effects</a>, <a href="#prompts">prompts</a>, <a href="#payouts">payouts</a>.</p>
<h2 id="effects">Effects: money that moved</h2>
<table><tr><th>Time</th><th>Direction</th><th>Receipt</th><th>Reference</th><th>Phone</th><th class="n">KES</th></tr>
{{range .Effects}}<tr><td>{{eat .Time}}</td><td>{{.Direction}}</td><td><code>{{.Receipt}}</code></td><td>{{.Reference}}</td><td>{{.Phone}}</td><td class="n">{{.Amount}}</td></tr>
{{else}}<tr><td colspan="6">None yet.</td></tr>{{end}}</table>
<h2 id="prompts">Prompts</h2>
<table><tr><th>Time</th><th>Phone</th><th>Reference</th><th class="n">KES</th><th>Behaviour</th><th>Result</th></tr>
{{range .Prompts}}<tr><td>{{eat .CreatedAt}}</td><td>{{.Phone}}</td><td>{{.Reference}}</td><td class="n">{{.Amount}}</td><td>{{.Behaviour}}</td><td>{{range .Results}}{{.Code}} {{.Text}} {{.Receipt}}<br>{{else}}open{{end}}</td></tr>
{{else}}<tr><td colspan="6">None yet.</td></tr>{{end}}</table>
<h2 id="payouts">Payouts</h2>
<table><tr><th>Time</th><th>Phone</th><th>Originator's id</th><th class="n">KES</th><th>Behaviour</th><th>Result</th></tr>
{{range .Payouts}}<tr><td>{{eat .CreatedAt}}</td><td>{{.Phone}}</td><td>{{.OriginatorConversationID}}</td><td class="n">{{.Amount}}</td><td>{{.Behaviour}}</td><td>{{range .Results}}{{.Code}} {{.Text}} {{.Receipt}}<br>{{else}}open{{end}}</td></tr>
{{else}}<tr><td colspan="6">None yet.</td></tr>{{end}}</table>
</body></html>`))

// pageRows is the most rows of each list on the page.
const pageRows = 50

// overview is the page's content.
type overview struct {
	Books      Books       `json:"-"`
	Working    int64       `json:"working"`
	Utility    int64       `json:"utility"`
	Effects    []Effect    `json:"effects"` // newest first, as in all lists here
	Prompts    []Prompt    `json:"prompts"`
	Payouts    []Transfer  `json:"payouts"`
	Behaviours []Behaviour `json:"behaviours"`
	Prefix     string      `json:"magic_prefix"`
	Amount     int64       `json:"magic_amount"`
	Amounts    bool        `json:"magic_amounts"`
	Rows       int         `json:"-"` // of each list
}

func newest[T any](rows []T) []T {
	rows = slices.Clone(rows)
	slices.Reverse(rows)
	return rows[:min(len(rows), pageRows)]
}

// showPage serves the overview, as JSON when the request accepts that.
func (s *Server) showPage(w http.ResponseWriter, r *http.Request) {
	b := s.Books()
	o := overview{
		Books: b, Working: b.Working, Utility: b.Utility,
		Effects: newest(b.Effects), Prompts: newest(b.Prompts), Payouts: newest(b.Payouts),
		Behaviours: Behaviours(), Prefix: magicPrefix, Amount: magicAmount, Amounts: s.cfg.MagicAmounts, Rows: pageRows,
	}
	if strings.Contains(r.Header.Get("Accept"), "application/json") {
		reply(w, http.StatusOK, o)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_ = page.Execute(w, o) // the reader went away
}
