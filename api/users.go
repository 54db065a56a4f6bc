package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store"
)

// newUser is a registration, before the role is known.
type newUser struct {
	user          exchange.User
	password, pin string
}

// readUser reads the fields of a registration.
func (f *form) readUser() newUser {
	person := f.readPerson()
	n := newUser{user: person.User()}
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

// register creates a user without a verified identity. A code that went to the phone number or the e-mail address proves it;
// without one, the account only claims it.
func (s *server) register(c *call) error {
	f, err := c.body()
	if err != nil {
		return err
	}
	n, proofs := f.readUser(), s.verifications(f)
	if err := f.done(); err != nil {
		return err
	}
	n.user.Role = exchange.RoleUser
	if c.objectID != uuid.Nil {
		n.user.ID = c.objectID
	}
	credentials := exchange.Credentials{UserID: n.user.ID}
	if credentials.PasswordHash, err = s.hasher.hash(c.ctx, passwordOf(n.user.ID, n.password)); err != nil {
		return err
	}
	if n.pin != "" {
		if credentials.PINHash, err = s.hasher.hash(c.ctx, pinOf(n.user.ID, n.pin)); err != nil {
			return err
		}
	}
	by := c.who
	by.UserID, by.Role = uuid.Nil, ""
	u, err := s.Store.CreateUser(c.ctx, n.user, credentials, by, proofs...)
	if err != nil {
		return err
	}
	return c.json(http.StatusCreated, userWire(u))
}

func roleNames() []string {
	return names(exchange.Roles())
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
