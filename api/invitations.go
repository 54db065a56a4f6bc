package api

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

// invitationBytes is the randomness of an invitation's token.
const invitationBytes = 32

// wireInvitation is an invitation without its token, which is only in the message.
type wireInvitation struct {
	ID          uuid.UUID     `json:"id"`
	UserID      uuid.UUID     `json:"user_id"`
	Role        exchange.Role `json:"role"`
	VendorID    *uuid.UUID    `json:"vendor_id"`
	Email       string        `json:"email"`
	PhoneNumber string        `json:"phone_number"`
	FirstName   string        `json:"first_name"`
	LastName    string        `json:"last_name"`
	InvitedBy   uuid.UUID     `json:"invited_by"`
	CreatedAt   timestamp     `json:"created_at"`
	ExpiresAt   timestamp     `json:"expires_at"`
	AcceptedAt  *timestamp    `json:"accepted_at"`
	WithdrawnAt *timestamp    `json:"withdrawn_at"`
}

func invitationWire(i exchange.Invitation) wireInvitation {
	return wireInvitation{
		ID: i.ID, UserID: i.UserID, Role: i.Role, VendorID: optID(i.VendorID), Email: i.Email, PhoneNumber: i.PhoneNumber.Digits(), FirstName: i.FirstName,
		LastName: i.LastName, InvitedBy: i.InvitedBy, CreatedAt: stamp(i.CreatedAt), ExpiresAt: stamp(i.ExpiresAt), AcceptedAt: optTime(i.AcceptedAt),
		WithdrawnAt: optTime(i.WithdrawnAt),
	}
}

func invitationLetter(link string) letter {
	return letter{"invitation", "Your Kivuko account", "You are invited to Kivuko. Open this link within three days, on the device that will have your passkey, and set your password:\n\n" +
		link + "\n\nThe link works once. Give it to nobody.", exchange.InvitationLife}
}

// invite stores an invitation and sends its link.
func (s *server) invite(c *call, i exchange.Invitation) error {
	if c.objectID != uuid.Nil {
		i.ID = c.objectID
	}
	raw := make([]byte, invitationBytes)
	_, _ = rand.Read(raw) // never fails
	token := base64.RawURLEncoding.EncodeToString(raw)
	m := s.seal(uuid.Nil, invitationLetter(s.pageLink("invitation", token)), exchange.ByEmail, i.Email, "invitation:"+i.ID.String())
	stored, err := s.Store.Invite(c.ctx, i, sha256.Sum256([]byte(token)), m, c.who)
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, invitationWire(stored))
}

// readPerson reads who is invited.
func (f *form) readPerson() exchange.Invitation {
	i := exchange.Invitation{ID: newID(), UserID: newID(), FirstName: f.personName("first_name"), LastName: f.personName("last_name")}
	if email := f.line("email", true, exchange.MaxEmailLength); email != "" {
		var err error
		i.Email, err = exchange.ParseEmail(email)
		f.check("email", err)
	}
	if phone := f.line("phone_number", true, maxPhoneText); phone != "" {
		var err error
		i.PhoneNumber, err = exchange.ParsePhone(phone)
		f.check("phone_number", err)
	}
	return i
}

// invitedRoles are the roles that accounts get by invitation; users register themselves.
var invitedRoles = []string{
	string(exchange.RoleVendor), string(exchange.RoleSubvendor), string(exchange.RoleAdmin), string(exchange.RoleOTCOfficer), string(exchange.RoleTreasury),
}

// inviteUser invites a person to an account of a role, or the owner of an account to set new secrets.
func (s *server) inviteUser(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	if f.has("user_id") {
		id := f.id("user_id", true)
		if err := f.done(); err != nil {
			return err
		}
		return s.inviteAgain(c, id)
	}
	i := f.readPerson()
	i.Role = exchange.Role(f.oneOf("role", true, invitedRoles...))
	i.VendorID = f.id("vendor_id", false)
	switch {
	case i.Role == exchange.RoleSubvendor && !f.has("vendor_id"):
		f.fail("vendor_id", "required", "is required for a subvendor")
	case i.Role != exchange.RoleSubvendor && f.has("vendor_id"):
		f.fail("vendor_id", "conflict", "must be left out unless the role is subvendor")
	}
	if err := f.done(); err != nil {
		return err
	}
	if err := s.checkVendor(c, i.VendorID, "/vendor_id"); err != nil {
		return err
	}
	return s.invite(c, i)
}

// inviteAgain invites the owner of an account that exists.
func (s *server) inviteAgain(c *call, id uuid.UUID) error {
	u, err := s.Store.User(c.ctx, id)
	if exchange.CodeOf(err) == exchange.CodeNotFound || err == nil && (u.Role == exchange.RoleCustomer || u.Role == exchange.RoleUser || u.ID == c.who.UserID || u.Email == "") {
		return exchange.Invalid(exchange.FieldError{Pointer: "/user_id", Code: "not_found", Message: "is no account of another person who works for us or for a merchant"})
	}
	if err != nil {
		return err
	}
	return s.invite(c, exchange.Invitation{
		ID: newID(), UserID: u.ID, Role: u.Role, VendorID: u.VendorID, Email: u.Email, PhoneNumber: u.PhoneNumber, FirstName: u.FirstName, LastName: u.LastName,
	})
}

// createSubvendor lets a vendor invite its own subvendors, and an admin those of any vendor.
func (s *server) createSubvendor(c *call) error {
	id, err := c.pathID("merchant_id")
	if err != nil {
		return err
	}
	f, err := c.body()
	if err != nil {
		return err
	}
	i := f.readPerson()
	if err := f.done(); err != nil {
		return err
	}
	if _, err := s.Store.Merchant(c.ctx, c.view(), id); err != nil {
		return hideAbsence(err)
	}
	i.Role, i.VendorID = exchange.RoleSubvendor, id
	return s.invite(c, i)
}

// invitationsOf is the vendor whose invitations a caller may see; zero for an admin, who sees all.
func (c *call) invitationsOf() uuid.UUID {
	if c.who.Role.Merchant() {
		return c.who.VendorID
	}
	return uuid.Nil
}

func (s *server) listInvitations(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "invitations", page, invitationWire)(s.Store.Invitations(c.ctx, c.invitationsOf(), page))
}

func (s *server) withdrawInvitation(c *call) error {
	id, err := c.idAlone()
	if err != nil {
		return err
	}
	if err := s.Store.WithdrawInvitation(c.ctx, id, c.invitationsOf(), c.who); err != nil {
		return hideAbsence(err)
	}
	return c.empty()
}

// opened finds the invitation of a token. Each address may try few of them.
func (s *server) opened(c *call, token string) (exchange.Invitation, error) {
	i, err := s.Store.OpenInvitation(c.ctx, sha256.Sum256([]byte(token)))
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		err = exchange.Errorf(exchange.CodeNotFound, "The invitation is unknown, was accepted or withdrawn, or has expired.")
	}
	return i, err
}

// wireOpened is an invitation as its person sees it, with what the authenticator is asked to make a key pair for.
type wireOpened struct {
	FirstName       string        `json:"first_name"`
	LastName        string        `json:"last_name"`
	Email           string        `json:"email"`
	Role            exchange.Role `json:"role"`
	PasskeyRequired bool          `json:"passkey_required"`
	wireChallenge
}

const maxInvitationToken = 100

// openInvitation shows an invitation to who has its link.
func (s *server) openInvitation(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	token := f.text("token", true, maxInvitationToken)
	if err := f.done(); err != nil {
		return err
	}
	i, err := s.opened(c, token)
	if err != nil {
		return err
	}
	options, terms, err := s.beginEnrolment(holder{user: i.User()})
	if err != nil {
		return err
	}
	wire, err := s.challenge(c, exchange.ChallengeInvitation, i.UserID, uuid.Nil, options.Response, terms)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, wireOpened{i.FirstName, i.LastName, i.Email, i.Role, i.Role.Staff(), wire})
}

// acceptInvitation makes the account with the password and the passkey that its person sets. Nobody else knows either.
func (s *server) acceptInvitation(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	token := f.text("token", true, maxInvitationToken)
	challenge, raw := f.id("challenge_id", f.has("credential")), f.credential("credential", f.has("challenge_id"))
	name := f.line("passkey_name", f.has("credential") || f.has("passkey_name"), exchange.MaxPasskeyName)
	f.secret("password", true)
	if err := f.done(); err != nil {
		return err
	}
	i, err := s.opened(c, token)
	if err != nil {
		return err
	}
	// Only the invitation says whose password it is, and whether a passkey is needed.
	text := f.newPassword("password", i.User())
	if i.Role.Staff() && !f.has("credential") {
		f.fail("credential", "required", "is required: staff have a passkey")
	}
	if err := f.done(); err != nil {
		return err
	}
	a := store.Accepted{Invitation: i}
	if raw != nil {
		terms, err := s.answered(c, challenge, exchange.ChallengeInvitation, i.UserID, uuid.Nil)
		if err != nil {
			return err
		}
		if a.Passkey, err = s.finishEnrolment(c, holder{user: i.User()}, terms, raw, name); err != nil {
			return err
		}
	}
	if a.PasswordHash, err = s.hasher.hash(c.ctx, passwordOf(i.UserID, text)); err != nil {
		return err
	}
	u, err := s.Store.AcceptInvitation(c.ctx, a, exchange.Principal{IP: c.who.IP, RequestID: c.who.RequestID})
	s.sessions.forget(i.UserID)
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, userWire(u))
}
