package exchange

import (
	"time"

	"github.com/google/uuid"
)

// MessageChannel is how a message to a person travels.
type MessageChannel string

// The channels.
const (
	BySMS   MessageChannel = "sms"
	ByEmail MessageChannel = "email"
)

// Message is a message to a person, sealed until it is sent.
type Message struct {
	ID        uuid.UUID
	UserID    uuid.UUID // zero for an address that belongs to no account yet
	Kind      string    // "login.failed"
	Channel   MessageChannel
	Once      string // another message with the same text of Once is not stored
	Sealed    []byte
	Attempts  int
	CreatedAt time.Time
	ExpiresAt time.Time // after that it is not sent any more
}

// Device is where a user has logged in.
type Device struct {
	ID        uuid.UUID
	UserID    uuid.UUID
	Origin    string // the address, of IPv6 the site
	UserAgent string
	CreatedAt time.Time
	SeenAt    time.Time
}
