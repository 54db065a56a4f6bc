package api

import (
	"context"

	"kivuko/exchange"
	"kivuko/store"
)

// FirstAdmin is the admin of the configuration, who creates all other admins.
type FirstAdmin struct {
	Email, PhoneNumber, FirstName, LastName, Password string
}

// EnsureAdmin creates the first admin unless an admin exists, and reports whether it did. Existing admins don't
// change, so that an old configuration can't add an admin later. It fails with CodeConflict when an account of
// another role has the e-mail address, and with CodeInvalid for a weak password or an invalid field. The password is
// hashed under the API's first pepper.
func EnsureAdmin(ctx context.Context, st *store.Store, pepper Key, a FirstAdmin) (bool, error) {
	email, err := exchange.ParseEmail(a.Email)
	if err != nil {
		return false, exchange.Errorf(exchange.CodeInvalid, "The first admin's e-mail address %s.", exchange.MessageOf(err))
	}
	phone, err := exchange.ParsePhone(a.PhoneNumber)
	if err != nil {
		return false, exchange.Errorf(exchange.CodeInvalid, "The first admin's phone number %s.", exchange.MessageOf(err))
	}
	if code, message := checkPassword(a.Password, email); code != "" {
		return false, exchange.Errorf(exchange.CodeInvalid, "The first admin's password %s.", message)
	}
	if admins, err := st.CountUsers(ctx, exchange.RoleAdmin); err != nil || admins > 0 {
		return false, err
	}
	u, err := st.UserByEmail(ctx, email)
	switch {
	case err == nil:
		return false, exchange.Errorf(exchange.CodeConflict, "The first admin's e-mail address belongs to an account with the role %s.", u.Role)
	case exchange.CodeOf(err) != exchange.CodeNotFound:
		return false, err
	}
	u = exchange.User{
		ID: newID(), Email: email, PhoneNumber: phone, FirstName: a.FirstName, LastName: a.LastName, Role: exchange.RoleAdmin, IsActive: true,
	}
	hash, err := hashSecret(pepper, passwordOf(u.ID, a.Password))
	if err != nil {
		return false, err
	}
	_, err = st.CreateUser(ctx, u, exchange.Credentials{UserID: u.ID, PasswordHash: hash}, exchange.System("configuration"))
	return err == nil, err
}
