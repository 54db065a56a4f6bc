package api

import (
	"net/http"

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
	DeviceToken      string    `json:"device_token,omitempty"` // only of a login
}

// errWrongLogin is the one answer to an unknown account, a wrong secret and a deactivated account.
var errWrongLogin = exchange.Errorf(exchange.CodeInvalidCredentials, "The account is unknown or the secret is wrong.")

func (s *server) login(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	email, password := f.line("email", true, exchange.MaxEmailLength), f.secret("password", true)
	device := f.text("device_token", f.has("device_token"), maxRefreshLength)
	if err := f.done(); err != nil {
		return err
	}
	user, credentials, err := s.findByEmail(c, email)
	if err != nil {
		return err
	}
	return s.enter(c, attempt{by: exchange.AssurancePassword, user: user, credentials: credentials, identifier: email, text: password}, device)
}

func (s *server) loginPIN(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	email, phone := f.line("email", f.has("email"), exchange.MaxEmailLength), f.line("phone_number", f.has("phone_number"), maxPhoneText)
	pin, device := f.secret("pin", true), f.text("device_token", f.has("device_token"), maxRefreshLength)
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
	return s.enter(c, attempt{by: exchange.AssurancePIN, user: user, credentials: credentials, identifier: identifier, text: pin}, device)
}

const maxPhoneText = 20

// enter proves an account and opens a session on the device that the request comes from.
func (s *server) enter(c *call, a attempt, deviceToken string) error {
	device, known, err := s.deviceOf(c, a.user, deviceToken)
	if err != nil {
		return err
	}
	if known {
		a.device, a.named = device, deviceToken != ""
	}
	ok, err := s.prove(c, a)
	if err != nil {
		return err
	}
	if !ok {
		return errWrongLogin
	}
	return s.begin(c, a.user, a.credentials, a.by, device)
}

// deviceOf returns the device that a request comes from, and whether its user knows it; the id of a new one otherwise. A
// client without a device token is known by its address and name, which prove nothing: networks share addresses.
func (s *server) deviceOf(c *call, u exchange.User, token string) (uuid.UUID, bool, error) {
	var named uuid.UUID
	if token != "" {
		of, err := s.ring.openDevice(token, s.now())
		if err != nil || of.UserID != u.ID {
			return newID(), false, nil //nolint:nilerr // a foreign or expired token names no device
		}
		named = of.SessionID
	}
	d, known, err := s.Store.KnownDevice(c.ctx, u.ID, named, c.who.Origin(), userAgent(c.fc))
	if err != nil || known {
		return d.ID, known, err
	}
	return newID(), false, nil
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
func (s *server) begin(c *call, u exchange.User, credentials exchange.Credentials, by exchange.Assurance, device uuid.UUID) error {
	now := s.now().UTC()
	next := store.Session{
		ID: newID(), FamilyID: newID(), UserID: u.ID, Assurance: by, DeviceID: device, Origin: c.who.Origin(), IP: c.who.IP, UserAgent: userAgent(c.fc),
		CreatedAt: now, ExpiresAt: now.Add(RefreshTokenLife),
	}
	text, hash, err := s.ring.refresh(u.ID, next.FamilyID, now, next.ExpiresAt)
	if err != nil {
		return err
	}
	next.TokenHash = hash
	if err := s.Store.CreateSession(c.ctx, next, s.letters(u, newDeviceNotice(now), device.String())...); err != nil {
		return err
	}
	answer, err := s.tokens(u, credentials.AuthVersion, next, text)
	if err != nil {
		return err
	}
	if answer.DeviceToken, err = s.ring.device(u.ID, device, now); err != nil {
		return err
	}
	return c.json(http.StatusOK, answer)
}

const maxUserAgent = 200

func userAgent(fc *fiber.Ctx) string {
	return clip(fc.Get(fiber.HeaderUserAgent), maxUserAgent)
}

func (s *server) tokens(u exchange.User, version int64, session store.Session, refresh string) (tokensWire, error) {
	access, expires, err := s.ring.access(claims{u.ID, session.FamilyID, version}, s.now().UTC())
	return tokensWire{
		AccessToken: access, RefreshToken: refresh, TokenType: "Bearer", AccessExpiresAt: stamp(expires),
		RefreshExpiresAt: stamp(session.ExpiresAt), SessionID: session.FamilyID, User: userWire(u),
	}, err
}
