package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

// newUser is a user of a request, before the role is known.
type newUser struct {
	user          exchange.User
	password, pin string
}

// readUser reads the fields that are common to registration and to both operations that create users.
func (f *form) readUser() newUser {
	n := newUser{user: exchange.User{
		ID: newID(), FirstName: f.personName("first_name"), LastName: f.personName("last_name"),
		IsActive: true,
	}}
	if email := f.line("email", true, exchange.MaxEmailLength); email != "" {
		var err error
		n.user.Email, err = exchange.ParseEmail(email)
		f.check("email", err)
	}
	if phone := f.line("phone_number", true, maxPhoneText); phone != "" {
		var err error
		n.user.PhoneNumber, err = exchange.ParsePhone(phone)
		f.check("phone_number", err)
	}
	n.password = f.newPassword("password", n.user)
	if n.pin = f.secret("pin", false); n.pin != "" || f.values["pin"] == "" {
		f.check("pin", exchange.CheckPIN(n.pin))
	}
	return n
}

// personName reads a first or last name.
func (f *form) personName(name string) string {
	before := len(*f.bad)
	text := f.line(name, true, exchange.MaxNameLength)
	if text == "" || len(*f.bad) > before || strings.ContainsRune(text, 0) { // NUL is refused by parseObject
		return ""
	}
	text, err := exchange.ParseName(text)
	f.check(name, err)
	return text
}

// addUser hashes the secrets and stores the user.
func (s *server) addUser(c *call, n newUser, by exchange.Principal) error {
	if c.objectID != uuid.Nil {
		n.user.ID = c.objectID
	}
	credentials := exchange.Credentials{UserID: n.user.ID}
	var err error
	if credentials.PasswordHash, err = s.hasher.hash(c.ctx, passwordOf(n.user.ID, n.password)); err != nil {
		return err
	}
	if n.pin != "" {
		if credentials.PINHash, err = s.hasher.hash(c.ctx, pinOf(n.user.ID, n.pin)); err != nil {
			return err
		}
	}
	u, err := s.Store.CreateUser(c.ctx, n.user, credentials, by)
	if err != nil {
		return err
	}
	if u.Role.Officer() && !u.IsActive {
		waits, _, err := s.Store.ControlChanges(c.ctx, store.ControlFilter{Status: exchange.ControlPending, SubjectID: u.ID}, store.Page{Number: 1, Size: maxPageSize})
		if err != nil {
			return err
		}
		if len(waits) > 0 {
			return answerPending(c, waits...)
		}
	}
	return c.json(http.StatusCreated, userWire(u))
}

// register creates a user without a verified identity.
func (s *server) register(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	n := f.readUser()
	if err := f.done(); err != nil {
		return err
	}
	n.user.Role = exchange.RoleUser
	by := c.who
	by.UserID, by.Role = uuid.Nil, ""
	return s.addUser(c, n, by)
}

func roleNames() []string {
	return names(exchange.Roles())
}

// createUser lets an admin create a user of any role. A user who may approve is inactive until a second admin
// confirms the user.
func (s *server) createUser(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	n := f.readUser()
	n.user.Role = exchange.Role(f.oneOf("role", true, roleNames()...))
	n.user.VendorID = f.id("vendor_id", false)
	switch {
	case n.user.Role == exchange.RoleSubvendor && !f.has("vendor_id"):
		f.fail("vendor_id", "required", "is required for a subvendor")
	case n.user.Role != exchange.RoleSubvendor && f.has("vendor_id"):
		f.fail("vendor_id", "conflict", "must be left out unless the role is subvendor")
	}
	if err := f.done(); err != nil {
		return err
	}
	if err := s.checkVendor(c, n.user.VendorID, "/vendor_id"); err != nil {
		return err
	}
	return s.addUser(c, n, c.who)
}

// checkVendor refuses the id of a user who is not a master vendor.
func (s *server) checkVendor(c *call, id uuid.UUID, pointer string) error {
	if id == uuid.Nil {
		return nil
	}
	u, err := s.Store.User(c.ctx, id)
	if exchange.CodeOf(err) == exchange.CodeNotFound || (err == nil && u.Role != exchange.RoleVendor) {
		return exchange.Invalid(exchange.FieldError{Pointer: pointer, Code: "not_found", Message: "is not the id of a vendor"})
	}
	return err
}

// createSubvendor lets a vendor create its own subvendors, and an admin those of any vendor.
func (s *server) createSubvendor(c *call) error {
	id, err := c.pathID("merchant_id")
	if err != nil {
		return err
	}
	f, err := c.body()
	if err != nil {
		return err
	}
	n := f.readUser()
	if err := f.done(); err != nil {
		return err
	}
	if _, err := s.Store.Merchant(c.ctx, c.view(), id); err != nil {
		return hideAbsence(err)
	}
	n.user.Role, n.user.VendorID = exchange.RoleSubvendor, id
	return s.addUser(c, n, c.who)
}

func (s *server) me(c *call) error { return c.json(http.StatusOK, userWire(c.user)) }

func (s *server) accountStatus(c *call) error {
	q := c.query()
	page := q.page(accountPage)
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "users", page, userEntry)(s.Store.ListUsers(c.ctx, store.UserFilter{}, page))
}

// countByRole counts the users of a role. It accepts all roles, not only those of the interface description.
func (s *server) countByRole(c *call) error {
	role := exchange.Role(c.fc.Params("role"))
	if !role.Valid() {
		return exchange.Invalid(exchange.FieldError{Pointer: "path/role", Code: "enum", Message: "must be " + orList(roleNames())})
	}
	n, err := s.Store.CountUsers(c.ctx, role)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{"count": n, "role": role})
}

func (s *server) listUsers(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	filter := store.UserFilter{Role: exchange.Role(q.oneOf("role", roleNames()...)), Query: q.text("query", false)}
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "users", page, userWire)(s.Store.ListUsers(c.ctx, filter, page))
}

func (s *server) getUser(c *call) error {
	id, err := c.pathID("id")
	if err != nil {
		return err
	}
	return s.answerUser(c, id)
}

// patchUser activates, deactivates or verifies a user, or sets the user's own limits. Deactivation ends all sessions
// of the user. When a part has to be confirmed by a second admin, the answer is 202; the other parts take effect.
func (s *server) patchUser(c *call) error {
	id, f, err := c.idAndBody()
	if err != nil {
		return err
	}
	p := store.UserPatch{IsActive: f.boolean("is_active", false), Verified: f.boolean("verified", false), IfVersions: c.ifVersions}
	if in := f.object("limits", false); in != nil {
		l := in.spendingLimits()
		p.Limits = &l
	}
	if err := f.done(); err != nil {
		return err
	}
	if p.IsActive == nil && p.Verified == nil && p.Limits == nil {
		return exchange.Invalid(exchange.FieldError{Pointer: "", Code: "required", Message: "must change is_active, verified or limits"})
	}
	if p.IsActive != nil && !*p.IsActive && id == c.who.UserID {
		return exchange.Errorf(exchange.CodeStateConflict, "You can't deactivate your own account.")
	}
	u, err := s.Store.UpdateUser(c.ctx, id, p, c.who)
	s.sessions.forgetAll() // a vendor's subvendors lose access too
	if err != nil {
		return hideAbsence(err)
	}
	if len(u.Waits) > 0 {
		return answerPending(c, u.Waits...)
	}
	return s.answerUser(c, id)
}

// merchantWire is a master vendor in the listing.
func merchantWire(u exchange.User) wireUser { return userWire(u) }

// balanceWire is a balance of one asset.
type balanceWire struct {
	Asset     string `json:"asset"`
	Posted    string `json:"posted"`
	Held      string `json:"held"`
	Available string `json:"available"`
}

func accountBalance(a exchange.Account) balanceWire {
	return balanceWire{string(a.Ref.Asset), a.Posted.String(), a.Held.String(), a.Available().String()}
}

type subvendorWire struct {
	wireUser
	Wallets []wireWallet `json:"wallets"`
}

type merchantDetail struct {
	wireUser
	FiatBalance balanceWire     `json:"fiat_balance"`
	Wallets     []wireWallet    `json:"wallets"`
	Subvendors  []subvendorWire `json:"subvendors"`
}

func (s *server) listMerchants(c *call) error {
	q := c.query()
	page := q.page(anyPage)
	if err := q.done(); err != nil {
		return err
	}
	return listed(c, "merchants", page, merchantWire)(s.Store.ListMerchants(c.ctx, c.view(), page))
}

func (s *server) getMerchant(c *call) error {
	id, err := c.pathID("merchant_id")
	if err != nil {
		return err
	}
	m, err := s.Store.Merchant(c.ctx, c.view(), id)
	if err != nil {
		return hideAbsence(err)
	}
	return c.json(http.StatusOK, merchantDetail{
		wireUser: userWire(m.User), FiatBalance: accountBalance(m.FiatKES), Wallets: each(m.Wallets, walletWire),
		Subvendors: each(slices.Clone(m.Subvendors), func(v exchange.Subvendor) subvendorWire {
			return subvendorWire{userWire(v.User), each(v.Wallets, walletWire)}
		}),
	})
}
