package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

// tokensWire is the response to a login and a refresh.
type tokensWire struct {
	AccessToken      string    `json:"access_token"`
	RefreshToken     string    `json:"refresh_token"`
	TokenType        string    `json:"token_type"`
	AccessExpiresAt  timestamp `json:"access_token_expires_at"`
	RefreshExpiresAt timestamp `json:"refresh_token_expires_at"`
	SessionID        uuid.UUID `json:"session_id"`
	User             wireUser  `json:"user"`
}

// errWrongLogin is the one answer to an unknown account, a wrong secret and a deactivated account.
var errWrongLogin = exchange.Errorf(exchange.CodeInvalidCredentials, "The account is unknown or the secret is wrong.")

func (s *server) login(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	email, password := f.line("email", true, exchange.MaxEmailLength), f.secret("password", true)
	if err := f.done(); err != nil {
		return err
	}
	if err := s.refuseLocked(c, "password-ip:"+c.origin()); err != nil {
		return err
	}
	user, credentials, err := s.findByEmail(c, email)
	if err != nil {
		return err
	}
	ok, err := s.verify(c, credentials.PasswordHash, passwordOf(user.ID, password))
	if err != nil {
		return err
	}
	if !ok || !user.IsActive {
		// Only the address is counted. A counter of the account would let a stranger lock its owner out.
		if _, err := s.Store.LoginFailure(c.ctx, "password-ip:"+c.origin(), maxPasswordFailures, passwordLock); err != nil {
			return err
		}
		return errWrongLogin
	}
	return s.begin(c, user, credentials, exchange.AssurancePassword)
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

// An address is locked out of password login after this many failures, for this long at first.
const (
	maxPasswordFailures = 50
	passwordLock        = 5 * time.Minute
)

func (s *server) loginPIN(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	email, phone := f.line("email", f.has("email"), exchange.MaxEmailLength), f.line("phone_number", f.has("phone_number"), maxPhoneText)
	pin := f.secret("pin", true)
	switch {
	case f.has("email") && f.has("phone_number"):
		f.fail("phone_number", "conflict", "must be left out when email is given")
	case !f.has("email") && !f.has("phone_number"):
		f.fail("email", "required", "is required, or phone_number instead")
	}
	if err := f.done(); err != nil {
		return err
	}
	find, identifier := s.findByEmail, email
	if f.has("phone_number") {
		find, identifier = s.findByPhone, phone
	}
	user, credentials, err := find(c, identifier)
	if err != nil {
		return err
	}
	ok, err := s.provePIN(c, user, credentials, identifier, pin)
	if err != nil {
		return err
	}
	if !ok {
		return errWrongLogin
	}
	return s.begin(c, user, credentials, exchange.AssurancePIN)
}

const maxPhoneText = 20

// provePIN counts the attempt of the account before it checks the PIN, so that concurrent attempts can't all
// pass before the first failure is counted. A success resets the count. Every operation that asks for a PIN
// calls provePIN, so that they share one lock.
func (s *server) provePIN(c *call, user exchange.User, credentials exchange.Credentials, identifier, pin string) (bool, error) {
	lock, account, address := s.Config.PINLock, pinKey(user.ID, identifier), "pin-ip:"+c.origin()
	if err := s.refuseLocked(c, address); err != nil {
		return false, err
	}
	allowed, until, err := s.Store.LoginAttempt(c.ctx, account, lock.PerAccount, lock.Base)
	if err != nil {
		return false, err
	}
	if !allowed {
		return false, s.locked(c, account, until)
	}
	hash := credentials.PINHash
	if user.Role.Staff() {
		hash = "" // four digits open no account of staff
	}
	ok, err := s.verify(c, hash, pinOf(user.ID, pin))
	if err != nil {
		return false, err
	}
	if !ok || !user.IsActive {
		// Only failures count against an address: many users may share one.
		_, err := s.Store.LoginFailure(c.ctx, address, lock.PerAddress, lock.Base)
		return false, err
	}
	// The address keeps its count: one known PIN must not buy guesses at others.
	return true, s.Store.LoginSuccess(c.ctx, account)
}

// pinKey is the key of an account's counter. An unknown account is counted by the identifier of the request,
// so that known and unknown accounts lock alike.
func pinKey(user uuid.UUID, identifier string) string {
	if user != uuid.Nil {
		return "pin:" + user.String()
	}
	sum := sha256.Sum256([]byte(strings.ToLower(identifier)))
	return "pin-unknown:" + hex.EncodeToString(sum[:16])
}

// refuseLocked fails with the remaining time while a counter is locked.
func (s *server) refuseLocked(c *call, key string) error {
	until, err := s.Store.LoginLocked(c.ctx, key)
	if err != nil || !until.After(s.now()) {
		return err
	}
	return s.locked(c, key, until)
}

func (s *server) locked(c *call, key string, until time.Time) error {
	left := max(until.Sub(s.now()), 0)
	c.fc.Set(fiber.HeaderRetryAfter, strconv.Itoa(int(left/time.Second)+1))
	if strings.HasPrefix(key, "password") {
		return exchange.Errorf(exchange.CodeRateLimited, "Too many failed logins from this address. Try again after the time in Retry-After.")
	}
	return exchange.Errorf(exchange.CodePINLocked, "Too many wrong PINs. Log in with the password, or try again after the time in Retry-After.")
}

// findByEmail finds the account and its credentials. For an unknown account it returns zero values and no error.
func (s *server) findByEmail(c *call, email string) (exchange.User, exchange.Credentials, error) {
	email, err := exchange.ParseEmail(email)
	if err != nil {
		return exchange.User{}, exchange.Credentials{}, nil //nolint:nilerr // an invalid address means: no account
	}
	return s.withCredentials(c)(s.Store.UserByEmail(c.ctx, email))
}

func (s *server) findByPhone(c *call, text string) (exchange.User, exchange.Credentials, error) {
	phone, err := exchange.ParsePhone(text)
	if err != nil {
		return exchange.User{}, exchange.Credentials{}, nil //nolint:nilerr // an invalid number means: no account
	}
	return s.withCredentials(c)(s.Store.UserByPhone(c.ctx, phone))
}

func (s *server) withCredentials(c *call) func(exchange.User, error) (exchange.User, exchange.Credentials, error) {
	return func(u exchange.User, err error) (exchange.User, exchange.Credentials, error) {
		if exchange.CodeOf(err) == exchange.CodeNotFound {
			return exchange.User{}, exchange.Credentials{}, nil
		}
		if err != nil {
			return exchange.User{}, exchange.Credentials{}, err
		}
		credentials, err := s.Store.CredentialsOf(c.ctx, u.ID)
		return u, credentials, err
	}
}

// begin opens a session: a new family of refresh tokens and the first access token.
func (s *server) begin(c *call, u exchange.User, credentials exchange.Credentials, by exchange.Assurance) error {
	now := s.now().UTC()
	next := store.Session{
		ID: newID(), FamilyID: newID(), UserID: u.ID, Assurance: by, IP: c.who.IP, UserAgent: userAgent(c.fc),
		CreatedAt: now, ExpiresAt: now.Add(RefreshTokenLife),
	}
	text, hash, err := s.ring.refresh(u.ID, next.FamilyID, now, next.ExpiresAt)
	if err != nil {
		return err
	}
	next.TokenHash = hash
	if err := s.Store.CreateSession(c.ctx, next); err != nil {
		return err
	}
	return s.tokens(c, u, credentials.AuthVersion, next, text)
}

const maxUserAgent = 200

func userAgent(fc *fiber.Ctx) string {
	return clip(fc.Get(fiber.HeaderUserAgent), maxUserAgent)
}

func (s *server) tokens(c *call, u exchange.User, version int64, session store.Session, refresh string) error {
	access, expires, err := s.ring.access(claims{u.ID, session.FamilyID, version}, s.now().UTC())
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, tokensWire{
		AccessToken: access, RefreshToken: refresh, TokenType: "Bearer", AccessExpiresAt: stamp(expires),
		RefreshExpiresAt: stamp(session.ExpiresAt), SessionID: session.FamilyID, User: userWire(u),
	})
}
