package api

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const codeDigits = 6

// newCode makes a random one-time code.
func newCode() string {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		panic(err) // the system has no randomness
	}
	return fmt.Sprintf("%0*d", codeDigits, n)
}

// codeHash is what is stored of a code: keyed, because a million codes are quickly tried.
func (s *server) codeHash(id uuid.UUID, code string) [32]byte {
	return [32]byte(s.hasher.mac("kivuko code v1", id.String(), code))
}

// contact is a number or an address in a request.
type contact struct {
	channel exchange.MessageChannel
	value   string
}

// contact reads the one of phone_number and email that is given; zero when neither is and none is required.
func (f *form) contact(required bool) contact {
	phone, email := f.line("phone_number", false, maxPhoneText), f.line("email", false, exchange.MaxEmailLength)
	switch {
	case f.has("phone_number") && f.has("email"):
		f.fail("email", "conflict", "must be left out when phone_number is given")
	case phone != "":
		p, err := exchange.ParsePhone(phone)
		f.check("phone_number", err)
		return contact{exchange.BySMS, p.Digits()}
	case email != "":
		e, err := exchange.ParseEmail(email)
		f.check("email", err)
		return contact{exchange.ByEmail, e}
	case required:
		f.fail("phone_number", "required", "is required, or email instead")
	}
	return contact{}
}

// wireVerification is a code that was sent. The answer is the same whether or not anybody gets it.
type wireVerification struct {
	ID        uuid.UUID `json:"id"`
	ExpiresAt timestamp `json:"expires_at"`
}

func codeLetter(code string) letter {
	return letter{"verification.contact", "Your code", code + " is your Kivuko code. Never tell it to anybody, not even to us.", exchange.VerificationLife}
}

func resetLetter(link, code string) letter {
	return letter{"verification.password", "Set a new password", "Somebody, we hope you, asks for a new password for your Kivuko account.\n\n" +
		"Your code is " + code + ". Or open " + link + "\n\nIf it was not you, do nothing.", exchange.VerificationsWindow}
}

func passwordNotice(at time.Time) letter {
	return letter{"password.changed", "Password changed", "The password of your Kivuko account was changed at " + minute(at) +
		". If that was not you, set a new one at once and tell us.", noticeLife}
}

func contactNotice(at time.Time) letter {
	return letter{"contact.changed", "Contact changed", "The phone number or e-mail address of your Kivuko account was changed at " + minute(at) +
		". If that was not you, tell us at once.", noticeLife}
}

// code reads a one-time code.
func (f *form) code(name string) string {
	text := f.line(name, true, codeDigits)
	if text != "" && (len(text) != codeDigits || strings.Trim(text, "0123456789") != "") {
		f.fail(name, "format", fmt.Sprintf("must have %d digits", codeDigits))
	}
	return text
}

// countCode counts a one-time code that a caller asks for, by its account. Only who has none is counted by the address, which a carrier's
// customers share.
func (s *server) countCode(c *call) error {
	key, delays := "code-ip:"+c.who.Origin(), s.Config.Guesses.Public
	if c.who.UserID != uuid.Nil {
		key, delays = "code-user:"+c.who.UserID.String(), s.Config.Guesses.Codes
	}
	counted, err := s.Store.LoginAttempt(c.ctx, key, delays)
	if err != nil || counted.Allowed {
		return err
	}
	s.retryAfter(c, counted.Until)
	return exchange.Errorf(exchange.CodeRateLimited, "Too many codes were asked for. Try again after the time in Retry-After.")
}

// sendCode sends a one-time code to a contact; without a letter it only stores one. It answers for how long the code can be used.
func (s *server) sendCode(c *call, v exchange.Verification, life time.Duration, l func(code string) letter) error {
	if err := s.countCode(c); err != nil {
		return err
	}
	code := newCode()
	var messages []exchange.Message
	if l != nil {
		messages = append(messages, s.seal(v.UserID, l(code), v.Channel, v.Contact, "verification:"+v.ID.String()))
	}
	if err := s.Store.AddVerification(c.ctx, v, s.codeHash(v.ID, code), messages...); err != nil {
		return err
	}
	return c.json(http.StatusAccepted, wireVerification{v.ID, stamp(s.now().Add(life))})
}

// startVerification sends a code to a number or an address that somebody is about to register with.
func (s *server) startVerification(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	to := f.contact(true)
	if err := f.done(); err != nil {
		return err
	}
	v := exchange.Verification{ID: newID(), Purpose: exchange.VerifyContact, Channel: to.channel, Contact: to.value}
	return s.sendCode(c, v, v.Life(), codeLetter)
}

// verifyContact sends a code to the caller's number or address: the one of the account, or a new one, for which the caller
// has to have stepped up.
func (s *server) verifyContact(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	to := f.contact(true)
	if err := f.done(); err != nil {
		return err
	}
	if to.value != c.user.Email && to.value != c.user.PhoneNumber.Digits() {
		if err := s.steppedUp(c); err != nil {
			return err
		}
	}
	v := exchange.Verification{ID: newID(), Purpose: exchange.VerifyContact, Channel: to.channel, Contact: to.value, UserID: c.who.UserID}
	return s.sendCode(c, v, v.Life(), codeLetter)
}

// confirmContact proves a number or an address of the caller's by the code that went there.
func (s *server) confirmContact(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	code := f.code("code")
	if err := f.done(); err != nil {
		return err
	}
	if v, err := s.Store.Verification(c.ctx, id); err != nil || v.UserID != c.who.UserID {
		return hideAbsence(cmp.Or(err, notFound()))
	}
	now := s.now().UTC()
	u, err := s.Store.ProveContact(c.ctx, c.who.UserID, exchange.CodeProof{ID: id, Hash: s.codeHash(id, code)}, c.who,
		s.letters(c.user, contactNotice(now), id.String())...)
	s.sessions.forgetAll() // another account may have lost its claim
	if err != nil {
		return hideAbsence(err)
	}
	return c.json(http.StatusOK, userWire(u))
}

// verifications reads the codes of a registration: each proves its contact.
func (s *server) verifications(f *form) []exchange.CodeProof {
	var all []exchange.CodeProof
	for _, name := range []string{"phone_verification", "email_verification"} {
		if in := f.object(name, false); in != nil {
			id, code := in.id("id", true), in.code("code")
			all = append(all, exchange.CodeProof{ID: id, Hash: s.codeHash(id, code)})
		}
	}
	return all
}

// requestReset sends a code with which a new password can be set. It goes only to an e-mail address that an active account
// has proven: a phone number can be taken over at a counter of its operator. For any other address the same is stored and
// answered, and nothing sent.
func (s *server) requestReset(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	email := f.line("email", true, exchange.MaxEmailLength)
	if err := f.done(); err != nil {
		return err
	}
	u, _, err := s.findByEmail(c, email)
	if err != nil {
		return err
	}
	v := exchange.Verification{ID: newID(), Purpose: exchange.VerifyPassword, Channel: exchange.ByEmail, Contact: u.Email, UserID: u.ID}
	life := v.Life() // the answer is the same for any address
	if u.EmailProvenAt.IsZero() || !u.IsActive {
		if parsed, err := exchange.ParseEmail(email); err == nil { // spellings of one address are counted together, as an account's are
			email = parsed
		}
		v.Purpose, v.Contact, v.UserID = exchange.VerifyContact, "unknown:"+hex.EncodeToString(s.hasher.mac("kivuko unknown v1", strings.ToLower(email))), uuid.Nil
		return s.sendCode(c, v, life, nil)
	}
	return s.sendCode(c, v, life, func(code string) letter { return resetLetter(s.pageLink("reset", v.ID.String()+"."+code), code) })
}

// pageLink is a link to a page of ours. Its secret stands behind the #, which browsers send to nobody.
func (s *server) pageLink(page, secret string) string {
	return strings.TrimSuffix(s.Config.PublicURL, "/") + "/people/" + page + "#" + secret
}

// reset sets a new password by a code, and ends every session. Staff need their passkey besides it.
func (s *server) reset(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	id, code := f.id("id", true), f.code("code")
	text := f.secret("new_password", true)
	if code, message := checkPassword(text); text != "" && code != "" {
		f.fail("new_password", code, message)
	}
	if err := f.done(); err != nil {
		return err
	}
	wrong := exchange.Invalid(exchange.FieldError{Pointer: "/code", Code: "wrong", Message: "is wrong, expired or used"})
	v, err := s.Store.Verification(c.ctx, id)
	if exchange.CodeOf(err) == exchange.CodeNotFound || err == nil && v.UserID == uuid.Nil {
		return wrong
	}
	if err != nil {
		return err
	}
	u, err := s.Store.User(c.ctx, v.UserID)
	if err != nil {
		return err
	}
	hash, err := s.hasher.hash(c.ctx, passwordOf(u.ID, text))
	if err != nil {
		return err
	}
	now := s.now().UTC()
	by := exchange.Principal{UserID: u.ID, Role: u.Role, IP: c.who.IP, RequestID: c.who.RequestID}
	err = s.Store.ResetPassword(c.ctx, exchange.CodeProof{ID: id, Hash: s.codeHash(id, code)}, hash, by, s.letters(u, passwordNotice(now), id.String())...)
	s.sessions.forget(u.ID)
	if err != nil {
		return err
	}
	return c.empty()
}
