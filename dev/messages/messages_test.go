package messages

import (
	"context"
	"errors"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"kivuko/notify"
	"kivuko/notify/africastalking"
	"kivuko/notify/smtp"
)

// carriers serves a box and returns the addresses of the page and of the mail server.
func carriers(t *testing.T) (b *Box, page, post string) {
	t.Helper()
	listen := func() net.Listener {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	b = &Box{}
	web, mails := listen(), listen()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, b, web, mails) }()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return b, web.Addr().String(), mails.Addr().String()
}

// TestDriversDeliver sends by the product's drivers to the carriers of the local stack.
func TestDriversDeliver(t *testing.T) {
	b, page, post := carriers(t)
	mails, err := smtp.New(smtp.Config{URL: "smtp+plain://" + post, From: "Kivuko <security@kivuko.example>"})
	if err != nil {
		t.Fatal(err)
	}
	sms := africastalking.New(africastalking.Config{BaseURL: "http://" + page, Username: Username, APIKey: APIKey})
	text := "Habari: 104104 is your code – tell nobody.\n\nhttps://kivuko.example/people/invitation#abc_DEF-1234567890abcdefghijklmnopqrstuvwxyzABCDEFGHIJ"
	if err := mails.Send(t.Context(), notify.Message{ID: uuid.New(), To: "amina@example.com", Subject: "Karibu – welcome", Text: text}); err != nil {
		t.Fatal(err)
	}
	if err := sms.Send(t.Context(), notify.Message{ID: uuid.New(), To: "254712345678", Text: "104104 is your code"}); err != nil {
		t.Fatal(err)
	}
	got := b.Messages("Amina@example.com")
	if len(got) != 1 || got[0].Subject != "Karibu – welcome" || strings.ReplaceAll(got[0].Text, "\r\n", "\n") != text {
		t.Errorf("by e-mail came %+v", got)
	}
	if got := b.Messages("254712345678"); len(got) != 1 || got[0].Text != "104104 is your code" || got[0].Channel != "sms" {
		t.Errorf("by SMS came %+v", got)
	}
	err = sms.Send(t.Context(), notify.Message{To: "254700000404", Text: "x"})
	if !errors.Is(err, notify.ErrRefused) {
		t.Errorf("a number that can't be: %v", err)
	}
	foreign := africastalking.New(africastalking.Config{BaseURL: "http://" + page, Username: Username, APIKey: "another"})
	if err := foreign.Send(t.Context(), notify.Message{To: "254712345678", Text: "x"}); err == nil || errors.Is(err, notify.ErrRefused) {
		t.Errorf("a wrong key is no refusal of the message: %v", err)
	}
	if err := mails.Send(t.Context(), notify.Message{To: "nobody", Text: "x"}); !errors.Is(err, notify.ErrRefused) {
		t.Errorf("no address: %v", err)
	}
}

// TestErrorsTellNothing looks for the recipient and the text in what drivers return.
func TestErrorsTellNothing(t *testing.T) {
	m := notify.Message{ID: uuid.New(), To: "254712345678", Text: "104104"}
	mails, err := smtp.New(smtp.Config{URL: "smtp+plain://127.0.0.1:1", From: "a@b.example"})
	if err != nil {
		t.Fatal(err)
	}
	to := m
	to.To = "amina@example.com"
	for _, err := range []error{
		africastalking.New(africastalking.Config{BaseURL: "http://127.0.0.1:1", APIKey: "k"}).Send(t.Context(), m), mails.Send(t.Context(), to),
	} {
		if err == nil || strings.Contains(err.Error(), "254712") || strings.Contains(err.Error(), "amina") || strings.Contains(err.Error(), "104104") {
			t.Errorf("%v", err)
		}
	}
}

// TestPageEscapes shows a message that would be a script.
func TestPageEscapes(t *testing.T) {
	b := &Box{}
	b.add(Message{Channel: "sms", To: "254712345678", Text: "<script>alert(1)</script>"})
	w := httptest.NewRecorder()
	b.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/", nil))
	if strings.Contains(w.Body.String(), "<script>") || !strings.Contains(w.Body.String(), "alert(1)") {
		t.Errorf("the page is %s", w.Body.String())
	}
}
