package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"kivuko/exchange"
	"kivuko/notify"
	"kivuko/store/storetest"
)

// carrier takes messages, or fails as told.
type carrier struct {
	took []notify.Message
	fail error
}

func (c *carrier) Send(_ context.Context, m notify.Message) error {
	if c.fail == nil {
		c.took = append(c.took, m)
	}
	return c.fail
}

func TestMessagesAreSentOnceAndForgotten(t *testing.T) {
	e := start(t)
	by := &carrier{}
	m, err := NewMessenger(Deps{Store: e.store, Config: e.server.Config, Logger: e.server.log, Metrics: prometheus.NewRegistry()},
		map[exchange.MessageChannel]notify.Sender{exchange.BySMS: by})
	if err != nil {
		t.Fatal(err)
	}
	send := func() {
		t.Helper()
		_, _ = m.Send(t.Context()) // the rows tell
	}
	status := func(id uuid.UUID) string {
		t.Helper()
		var s string
		err := storetest.Owner(t, e.store).QueryRowContext(t.Context(), `SELECT status || ' ' || octet_length(sealed) || ' ' || attempts FROM messages WHERE id = $1`, id).Scan(&s)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	add := func(once string, life time.Duration) exchange.Message {
		t.Helper()
		msg := e.server.seal(uuid.Nil, letter{"test", "", "104104 is the secret", life}, exchange.BySMS, "254712345678", once)
		if strings.Contains(string(msg.Sealed), "104104") || strings.Contains(string(msg.Sealed), "254712") {
			t.Error("a stored message can be read")
		}
		if err := e.store.AddMessages(t.Context(), msg); err != nil {
			t.Fatal(err)
		}
		return msg
	}
	due := func() {
		storetest.Exec(t, e.store, `UPDATE messages SET next_at = now() - interval '1 second' WHERE status = 'waiting'`)
	}

	first := add("a", time.Hour)
	add("a", time.Hour) // the same once more is none
	send()
	due()
	send()
	if len(by.took) != 1 || by.took[0].Text != "104104 is the secret" || by.took[0].To != "254712345678" || status(first.ID) != "sent 0 1" {
		t.Errorf("%v, %s", by.took, status(first.ID))
	}

	by.fail = errors.New("the carrier is down")
	second := add("b", time.Hour)
	send()
	send() // not before its time
	if s := status(second.ID); !strings.HasPrefix(s, "waiting") || !strings.HasSuffix(s, " 1") {
		t.Errorf("while the carrier is down: %s", s)
	}
	by.fail = fmt.Errorf("%w: no such number", notify.ErrRefused)
	due()
	send()
	if s := status(second.ID); s != "failed 0 2" {
		t.Errorf("refused: %s", s)
	}

	by.fail = nil
	third := add("c", time.Hour)
	storetest.Exec(t, e.store, `ALTER TABLE messages DISABLE TRIGGER messages_same; UPDATE messages SET expires_at = now() WHERE once = 'c'; ALTER TABLE messages ENABLE TRIGGER messages_same`)
	send()
	if s := status(third.ID); s != "failed 0 1" || len(by.took) != 1 {
		t.Errorf("expired: %s, %d were sent", s, len(by.took))
	}
}

// TestMessagesAreBoundToTheirRow moves the sealed text of one message into the row of another.
func TestMessagesAreBoundToTheirRow(t *testing.T) {
	peppers := []Key{testKey("new", 2), testKey("old", 1)}
	one := exchange.Message{ID: newID(), Channel: exchange.BySMS}
	one.Sealed = sealMessage(peppers[1], one, sealedLetter{To: "254712345678", Text: "x"})
	if got, err := openMessage(peppers, one); err != nil || got.Text != "x" {
		t.Errorf("after a rotation: %v, %v", got, err)
	}
	other := exchange.Message{ID: newID(), Channel: exchange.BySMS, Sealed: one.Sealed}
	if _, err := openMessage(peppers, other); err == nil {
		t.Error("another row's text opens")
	}
	if _, err := openMessage(peppers[:1], one); err == nil {
		t.Error("a text opens without its pepper")
	}
}
