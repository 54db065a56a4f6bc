package api

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

// attempt is one try to prove an account by a password or a PIN.
type attempt struct {
	by          exchange.Assurance
	user        exchange.User // zero for an unknown account
	credentials exchange.Credentials
	identifier  string // as the request names the account
	text        string
	device      uuid.UUID // the known device that it comes from; zero for another one
	named       bool      // whether a token or a session names the device, and not only its address and client
}

// apart reports whether nobody but the account's owner can count failures where an attempt counts: on a device that is
// known, and named.
func (a attempt) apart() bool { return a.device != uuid.Nil && a.named }

// prove counts an attempt before it looks at the secret, so that concurrent attempts can't all pass before the first
// failure is counted. Every operation that asks for a password or a PIN calls it, so that they share their counters.
//
// A device that the account knows has a counter of its own, which a success resets. What only looks like it, by its address
// and client, has another one: a stranger in the same network may look so too. All others share one. A success resets
// neither, so that each login of the owner would not buy a guesser new guesses. A stranger can make these wait, but not the
// device's own.
func (s *server) prove(c *call, a attempt) (bool, error) {
	address := string(a.by) + "-ip:" + c.who.Origin()
	if !a.apart() {
		if err := s.refuseLocked(c, address, a.by); err != nil {
			return false, err
		}
	}
	counter := a.counter()
	counted, err := s.Store.LoginAttempt(c.ctx, counter, s.Config.Guesses.Account)
	if err != nil {
		return false, err
	}
	if !counted.Allowed {
		return false, s.locked(c, a.by, counted.Until)
	}
	ok, err := s.verify(c, a.hash(), a.secret())
	if err != nil {
		return false, err
	}
	if ok && a.user.IsActive {
		return true, s.Store.LoginSuccess(c.ctx, counter, a.apart())
	}
	if !a.apart() {
		// Only failures count against an address, and a success does not reset them: one known secret must not buy guesses at
		// others.
		if _, err := s.Store.LoginAttempt(c.ctx, address, s.Config.Guesses.Address); err != nil {
			return false, err
		}
	}
	return false, s.failed(c, a, counted.Failures)
}

// hash is the stored hash that an attempt is compared with. Staff have no PIN: four digits open none of their accounts.
func (a attempt) hash() string {
	switch {
	case a.by == exchange.AssurancePassword:
		return a.credentials.PasswordHash
	case a.user.Role.Staff():
		return ""
	}
	return a.credentials.PINHash
}

func (a attempt) secret() secret {
	if a.by == exchange.AssurancePassword {
		return passwordOf(a.user.ID, a.text)
	}
	return pinOf(a.user.ID, a.text)
}

// counter is the key of the counter of an attempt. An unknown account is counted by the identifier of the request, so that
// known and unknown accounts make a guesser wait alike.
func (a attempt) counter() string {
	switch {
	case a.user.ID == uuid.Nil:
		sum := sha256.Sum256([]byte(strings.ToLower(a.identifier)))
		return string(a.by) + "-unknown:" + hex.EncodeToString(sum[:16])
	case a.device == uuid.Nil:
		return string(a.by) + ":" + a.user.ID.String()
	}
	own := string(a.by) + ":" + a.user.ID.String() + ":" + a.device.String()
	if !a.named {
		return own + ":unnamed"
	}
	return own
}

// noticeAfter is the failure in a row of which the owner is told. Fewer are slips.
const noticeAfter = 3

// failed records an attempt, and tells the owner of the account at most once a day. It records attempts at unknown accounts
// too: they show what somebody tries, and take as long as others.
func (s *server) failed(c *call, a attempt, failures int) error {
	var notices []exchange.Message
	if failures >= noticeAfter && a.user.ID != uuid.Nil {
		now := s.now().UTC()
		notices = s.letters(a.user, failedNotice(now), now.Format(time.DateOnly))
	}
	proof := store.FailedProof{UserID: a.user.ID, By: a.by, DeviceID: a.device, Failures: failures}
	return s.Store.RecordFailedProof(c.ctx, proof, exchange.Principal{IP: c.who.IP, RequestID: c.who.RequestID}, notices...)
}

// proveAgain checks a secret of the caller's in a session.
func (s *server) proveAgain(c *call, by exchange.Assurance, text string) (bool, error) {
	credentials, err := s.Store.CredentialsOf(c.ctx, c.who.UserID)
	if err != nil {
		return false, err
	}
	a := attempt{by: by, user: c.user, credentials: credentials, text: text, device: c.device, named: true}
	return s.prove(c, a)
}

// verify checks a secret against its stored hash, and stores a hash at today's cost and pepper in place of an older one.
// The secret is right even if that fails; the next login tries again.
func (s *server) verify(c *call, hash string, given secret) (bool, error) {
	ok, stale, err := s.hasher.verify(c.ctx, hash, given)
	if err != nil || !ok || !stale {
		return ok, err
	}
	renewed, err := s.hasher.hash(c.ctx, given)
	if err == nil {
		err = s.Store.RenewHash(c.ctx, given.user, hash, renewed)
	}
	if err != nil {
		s.log.Warn("the hash of a secret was not renewed", "user_id", given.user, "error", err)
	}
	return true, nil
}

// refuseLocked fails with the remaining time while a counter refuses attempts.
func (s *server) refuseLocked(c *call, key string, by exchange.Assurance) error {
	until, err := s.Store.LoginLocked(c.ctx, key)
	if err != nil || !until.After(s.now()) {
		return err
	}
	return s.locked(c, by, until)
}

func (s *server) locked(c *call, by exchange.Assurance, until time.Time) error {
	s.retryAfter(c, until)
	if by == exchange.AssurancePassword {
		return exchange.Errorf(exchange.CodeRateLimited, "Too many wrong passwords. Try again after the time in Retry-After, from a device that you have logged in on, or reset the password.")
	}
	return exchange.Errorf(exchange.CodePINLocked, "Too many wrong PINs. Log in with the password or from a device that you have logged in on, or try again after the time in Retry-After.")
}

// retryAfter tells when the next attempt is looked at.
func (s *server) retryAfter(c *call, until time.Time) {
	left := max(until.Sub(s.now()), 0)
	c.fc.Set(fiber.HeaderRetryAfter, strconv.Itoa(int(left/time.Second)+1))
}
