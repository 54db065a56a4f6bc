// Package messages stands in for the carriers of messages on the local stack: a mail server and an SMS service that deliver to
// a page. The product speaks to it by its real drivers, over SMTP and over Africa's Talking's HTTP API.
package messages

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"html/template"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/mail"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-smtp"
)

// Message is one that was delivered.
type Message struct {
	At      time.Time `json:"at"`
	Channel string    `json:"channel"` // sms or email
	To      string    `json:"to"`
	Subject string    `json:"subject"`
	Text    string    `json:"text"`
}

// The account at the SMS service.
const (
	Username = "sandbox"
	APIKey   = "kivuko-development"
)

// kept is how many messages the page has.
const kept = 1000

// Box is what was delivered, oldest first.
type Box struct {
	mu  sync.Mutex
	all []Message
}

func (b *Box) add(m Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m.At = time.Now().UTC()
	b.all = append(b.all, m)
	if len(b.all) > kept {
		b.all = slices.Delete(b.all, 0, len(b.all)-kept)
	}
}

// Messages returns what was delivered to a number or an address, to all with "", newest first.
func (b *Box) Messages(to string) []Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := []Message{}
	for _, m := range slices.Backward(b.all) {
		if to == "" || strings.EqualFold(m.To, to) {
			out = append(out, m)
		}
	}
	return out
}

// Command runs the carriers until ctx ends.
func Command(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("messages", flag.ContinueOnError)
	listen := flags.String("listen", "127.0.0.1:0", "address of the page and of the SMS service")
	mails := flags.String("smtp", "127.0.0.1:0", "address of the mail server")
	if err := flags.Parse(args); err != nil {
		return err
	}
	page, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *listen)
	if err != nil {
		return err
	}
	post, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *mails)
	if err != nil {
		return errors.Join(err, page.Close())
	}
	return Serve(ctx, &Box{}, page, post)
}

// Serve delivers into a box until ctx ends.
func Serve(ctx context.Context, b *Box, page, post net.Listener) error {
	const headerTime = 5 * time.Second
	web := &http.Server{Handler: b.Handler(), ReadHeaderTimeout: headerTime}
	mails := b.mailServer()
	failed := make(chan error, 2)
	go func() { failed <- web.Serve(page) }()
	go func() { failed <- mails.Serve(post) }()
	select {
	case <-ctx.Done():
		return errors.Join(web.Close(), mails.Close())
	case err := <-failed:
		return errors.Join(err, web.Close(), mails.Close())
	}
}

// Handler serves the page, the list as JSON (?to= one recipient's), and the SMS service.
func (b *Box) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
		_ = page.Execute(w, b.Messages(r.URL.Query().Get("to"))) // the reader is gone
	})
	mux.HandleFunc("GET /messages", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(b.Messages(r.URL.Query().Get("to"))) // the reader is gone
	})
	mux.HandleFunc("POST /version1/messaging", b.takeSMS)
	return mux
}

var page = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Messages</title>
<style>body{font:16px sans-serif;margin:2em;max-width:60em}article{border-top:1px solid #ccc;padding:.6em 0}pre{white-space:pre-wrap;font:inherit;margin:.3em 0}small{color:#666}</style>
</head><body><h1>Messages of the local stack</h1>
<p>What Kivuko sent by SMS and e-mail, newest first. Nothing leaves this machine.</p>
{{range .}}<article><small>{{.At.Format "15:04:05"}} {{.Channel}} to {{.To}}</small> <b>{{.Subject}}</b><pre>{{.Text}}</pre></article>{{else}}<p>None yet.</p>{{end}}
</body></html>
`))

// takeSMS answers as Africa's Talking does. The number 254700000404 is refused.
func (b *Box) takeSMS(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("apiKey") != APIKey || r.FormValue("username") != Username {
		http.Error(w, "The supplied authentication is invalid", http.StatusUnauthorized)
		return
	}
	to := r.FormValue("to")
	number, plus := strings.CutPrefix(to, "+")
	code, status := 101, "Success"
	if !plus || len(number) != len("254712345678") || number == "254700000404" {
		code, status = 403, "InvalidPhoneNumber"
	} else {
		b.add(Message{Channel: "sms", To: number, Text: r.FormValue("message")})
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(map[string]any{"SMSMessageData": map[string]any{ // the caller is gone
		"Message":    "Sent to 1/1 Total Cost: KES 0.8000",
		"Recipients": []map[string]any{{"statusCode": code, "number": to, "status": status, "cost": "KES 0.8000", "messageId": "ATXid_local"}},
	}})
}

func (b *Box) mailServer() *smtp.Server {
	const limit, timeout = 1 << 20, 30 * time.Second
	s := smtp.NewServer(smtp.BackendFunc(func(*smtp.Conn) (smtp.Session, error) { return &session{box: b}, nil }))
	s.Domain, s.MaxMessageBytes, s.MaxRecipients, s.ReadTimeout, s.WriteTimeout = "localhost", limit, 1, timeout, timeout
	s.EnableSMTPUTF8 = true
	return s
}

// session takes the mails of one connection.
type session struct {
	box *Box
	to  string
}

func (s *session) Reset()                               { s.to = "" }
func (s *session) Logout() error                        { return nil }
func (s *session) Mail(string, *smtp.MailOptions) error { return nil }

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	return nil
}

func (s *session) Data(r io.Reader) error {
	m, err := mail.ReadMessage(r)
	if err != nil {
		return &smtp.SMTPError{Code: 554, Message: fmt.Sprint("no message: ", err)}
	}
	body := m.Body
	if strings.EqualFold(m.Header.Get("Content-Transfer-Encoding"), "quoted-printable") {
		body = quotedprintable.NewReader(body)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	subject, err := (&mime.WordDecoder{}).DecodeHeader(m.Header.Get("Subject"))
	if err != nil {
		subject = m.Header.Get("Subject")
	}
	s.box.add(Message{Channel: "email", To: s.to, Subject: subject, Text: strings.TrimRight(string(text), "\r\n")})
	return nil
}
