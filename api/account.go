package api

import (
	"net/http"

	"kivuko/exchange"
)

// setPIN sets or changes the caller's own PIN. The password confirms it: a stolen access token alone must not be
// enough to set a PIN that is valid for longer than the token. Staff have no PIN.
func (s *server) setPIN(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	f, err := c.body()
	if err != nil {
		return err
	}
	pin, password := f.secret("pin", true), f.secret("password", true)
	if f.has("pin") && pin != "" {
		f.check("pin", exchange.CheckPIN(pin))
	}
	if err := f.done(); err != nil {
		return err
	}
	if id != c.who.UserID {
		return notFound()
	}
	if c.who.Role.Staff() {
		return exchange.Errorf(exchange.CodeUnsupported, "Staff have no PIN. Use a passkey.")
	}
	if err := s.confirmPassword(c, "password", password); err != nil {
		return err
	}
	hash, err := s.hasher.hash(c.ctx, pinOf(id, pin))
	if err != nil {
		return err
	}
	if err := s.Store.SetPIN(c.ctx, id, hash, c.who); err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"id": id, "pin_set": true, "updated_at": stamp(s.now())})
}

// changePassword replaces the caller's own password, which the present one confirms. Every other session ends.
func (s *server) changePassword(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	present, next := f.secret("password", true), f.newPassword("new_password", c.user)
	if err := f.done(); err != nil {
		return err
	}
	if err := s.confirmPassword(c, "password", present); err != nil {
		return err
	}
	hash, err := s.hasher.hash(c.ctx, passwordOf(c.who.UserID, next))
	if err != nil {
		return err
	}
	err = s.Store.ChangePassword(c.ctx, c.who.UserID, hash, c.who.SessionID, c.who, s.letters(c.user, passwordNotice(s.now()), newID().String())...)
	s.sessions.forget(c.who.UserID)
	if err != nil {
		return err
	}
	return c.empty()
}

// newPassword reads a password that a user chooses.
func (f *form) newPassword(name string, u exchange.User) string {
	text := f.secret(name, true)
	if text == "" {
		return ""
	}
	if code, message := checkPassword(text, u.Email, u.FirstName, u.LastName); code != "" {
		f.fail(name, code, message)
	}
	return text
}

// confirmPassword checks the caller's password in a field again.
func (s *server) confirmPassword(c *call, field, password string) error {
	ok, err := s.proveAgain(c, exchange.AssurancePassword, password)
	if err != nil || ok {
		return err
	}
	return exchange.Invalid(exchange.FieldError{Pointer: "/" + field, Code: "wrong", Message: "is not your password"})
}

// confirmPIN checks the caller's PIN again.
func (s *server) confirmPIN(c *call, pin string) error {
	ok, err := s.proveAgain(c, exchange.AssurancePIN, pin)
	if err != nil || ok {
		return err
	}
	return exchange.Invalid(exchange.FieldError{Pointer: "/pin", Code: "wrong", Message: "is not your PIN; set one if you have none"})
}
