// Package notify is what Kivuko needs of somebody who carries messages to people: one message, one recipient, sent or not.
// A driver is a package below: notify/smtp for e-mail, notify/africastalking for SMS.
package notify

import (
	"context"
	"errors"

	"github.com/google/uuid"
)

// Message is a text for one person.
type Message struct {
	ID      uuid.UUID
	To      string // a phone number as 254…, or an e-mail address
	Subject string // of an e-mail
	Text    string
}

// String hides whom the message is for and what it says.
func (m Message) String() string { return "message " + m.ID.String() }

// GoString hides them from %#v too.
func (m Message) GoString() string { return m.String() }

// Sender carries messages of one channel. Send returns nil when the next carrier has accepted the message; whether it
// reached its person is unknown. An error that wraps ErrRefused is final. After any other error the message may be sent
// again, and may then arrive twice. An error holds neither the text nor the recipient.
type Sender interface {
	Send(ctx context.Context, m Message) error
}

// ErrRefused is a carrier's final refusal: of the recipient or of the message.
var ErrRefused = errors.New("the carrier refuses the message")
