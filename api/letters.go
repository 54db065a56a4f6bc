package api

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/crypto/chacha20poly1305"

	"kivuko/exchange"
	"kivuko/notify"
)

// letter is a message before it is addressed.
type letter struct {
	kind    string
	subject string
	text    string
	life    time.Duration // after which it is of no use
}

const noticeLife = 3 * 24 * time.Hour

func newDeviceNotice(at time.Time) letter {
	return letter{"device.added", "New device", "Your Kivuko account was logged in to from a new device at " + minute(at) +
		". If that was not you, change your password and end all sessions.", noticeLife}
}

func failedNotice(at time.Time) letter {
	return letter{"login.failed", "Failed logins", "Somebody tried to log in to your Kivuko account with a wrong password or PIN, last at " + minute(at) +
		". If that was not you, nothing has happened yet; never tell anybody your PIN.", noticeLife}
}

// minute is a time as people in Kenya read it.
func minute(at time.Time) string {
	return at.In(time.FixedZone("EAT", 3*60*60)).Format("15:04 on 2 January")
}

// letters addresses a letter to the owner of an account: by every channel that the owner has proven, or by e-mail when
// there is none. Once makes it one of its kind to this user.
func (s *server) letters(u exchange.User, l letter, once string) []exchange.Message {
	var all []exchange.Message
	add := func(channel exchange.MessageChannel, to string) {
		all = append(all, s.seal(u.ID, l, channel, to, strings.Join([]string{l.kind, u.ID.String(), once, string(channel)}, ":")))
	}
	if !u.PhoneProvenAt.IsZero() {
		add(exchange.BySMS, u.PhoneNumber.Digits())
	}
	if u.Email != "" && (!u.EmailProvenAt.IsZero() || len(all) == 0) {
		add(exchange.ByEmail, u.Email)
	}
	return all
}

// sealedLetter is what is sealed of a message.
type sealedLetter struct {
	To      string `json:"to"`
	Subject string `json:"subject"`
	Text    string `json:"text"`
}

// seal encrypts a message, because it may hold a code or a link: the database keeps it until it is sent.
func (s *server) seal(user uuid.UUID, l letter, channel exchange.MessageChannel, to, once string) exchange.Message {
	m := exchange.Message{ID: newID(), UserID: user, Kind: l.kind, Channel: channel, Once: once, ExpiresAt: s.now().UTC().Add(l.life)}
	m.Sealed = sealMessage(s.Config.Peppers[0], m, sealedLetter{to, l.subject, l.text})
	return m
}

func messageKey(pepper Key) []byte { return pepper.mac("kivuko message v1") }

func boundTo(m exchange.Message) []byte { return []byte(m.ID.String() + " " + string(m.Channel)) }

func sealMessage(pepper Key, m exchange.Message, l sealedLetter) []byte {
	plain, err1 := json.Marshal(l)
	aead, err2 := chacha20poly1305.NewX(messageKey(pepper))
	if err := errors.Join(err1, err2); err != nil {
		panic(err) // texts and a key of the right length
	}
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return append([]byte(pepper.ID+" "), aead.Seal(nonce, nonce, plain, boundTo(m))...)
}

// openMessage decrypts a message under the pepper that its beginning names.
func openMessage(peppers []Key, m exchange.Message) (notify.Message, error) {
	out := notify.Message{ID: m.ID}
	id, rest, found := strings.Cut(string(m.Sealed), " ")
	for _, pepper := range peppers {
		if !found || pepper.ID != id {
			continue
		}
		aead, err := chacha20poly1305.NewX(messageKey(pepper))
		if err != nil || len(rest) < aead.NonceSize() {
			return out, fmt.Errorf("a sealed message can't be opened: %w", err)
		}
		plain, err := aead.Open(nil, []byte(rest[:aead.NonceSize()]), []byte(rest[aead.NonceSize():]), boundTo(m))
		if err != nil {
			return out, fmt.Errorf("a sealed message can't be opened: %w", err)
		}
		var l sealedLetter
		err = json.Unmarshal(plain, &l)
		out.To, out.Subject, out.Text = l.To, l.Subject, l.Text
		return out, err
	}
	return out, errors.New("a sealed message has an unknown pepper")
}
