package store

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/pg"
)

// UserFilter narrows a list of users. Query matches the beginning of a name, an e-mail address or a phone number.
type UserFilter struct {
	Role  exchange.Role
	Query string
}

// UserPatch changes a user; nil leaves a field as it is. Deactivation ends every session; Verified turns a user into a
// customer and back.
type UserPatch struct {
	IsActive *bool
	Verified *bool
	Limits   *exchange.SpendingLimits // replaces the user's own limits; absent ones fall back to the role's

	IfVersions []int64 // the expected versions; none is any
}

// An unproven address or number that lapsed is absent.
const userColumns = `id, coalesce(email, '') AS email, coalesce(phone_number, '') AS phone_number, first_name, last_name, role, vendor_id, is_active, verified_at,
    email_proven_at, phone_proven_at, created_at, updated_at, version`

// utc converts a nullable time: zero for NULL.
func utc(t sql.NullTime) time.Time {
	if !t.Valid {
		return time.Time{}
	}
	return t.Time.UTC()
}

// nullTime is a time as a nullable column.
func nullTime(t time.Time) sql.NullTime { return sql.NullTime{Time: t, Valid: !t.IsZero()} }

// userSnapshot is a user in events and audit rows: without name, address and number.
func userSnapshot(u exchange.User) map[string]any {
	return map[string]any{
		"id": u.ID, "role": u.Role, "is_active": u.IsActive, "verified": !u.VerifiedAt.IsZero(), "version": u.Version,
		"phone_number": u.PhoneNumber.String(),
	}
}

const insertUser = `
INSERT INTO users (id, email, phone_number, first_name, last_name, role, vendor_id, is_active, verified_at, password_hash, pin_hash,
    created_at, updated_at, email_proven_at, phone_proven_at)
VALUES ($1, $2, nullif($3, ''), $4, $5, $6, $7, $8, $9, $10, $11, $12, $12, $13, $14) RETURNING ` + userColumns

const readUser = `SELECT ` + userColumns + ` FROM users WHERE id = $1`

// CreateUser adds a user. A repeated call with the same id and e-mail address returns the existing user. An account
// that may approve is inactive until a second officer confirms it (ControlChanges lists it). CodeLimitReached when its
// vendor has the maximum of subvendors. CodeConflict names the field that another account has: /email or
// /phone_number. Proofs are codes that went to the address or the number: with one, an account that only claims it loses
// it. CodeInvalid for a wrong code.
func (s *Store) CreateUser(ctx context.Context, u exchange.User, c exchange.Credentials, by exchange.Principal, proofs ...exchange.CodeProof) (exchange.User, error) {
	var created exchange.User
	wrong := false
	err := s.inTx(ctx, "user", func(t unitTx) error {
		var rows []exchange.User
		if err := t.All(ctx, &rows, readUser, u.ID); err != nil {
			return err
		}
		if len(rows) == 1 && rows[0].Email == u.Email {
			created = rows[0]
			return nil
		}
		err := t.claimContacts(ctx, &u, proofs, by)
		if wrong = errors.Is(err, errWrongCode); wrong {
			return nil
		}
		if err != nil {
			return err
		}
		if u.VendorID != uuid.Nil {
			if err := t.One(ctx, lockOwner, u.VendorID); err != nil {
				return err
			}
			if err := t.below(ctx, MaxSubvendorsPerVendor, countSubvendors, u.VendorID, "subvendors of one vendor"); err != nil {
				return err
			}
		}
		created, err = t.addUser(ctx, u, c, by)
		return err
	})
	if err == nil && wrong {
		err = exchange.Invalid(exchange.FieldError{Pointer: "/verifications", Code: "wrong", Message: wrongCode})
	}
	return created, err
}

const lockStaff = `SELECT pg_advisory_xact_lock(x'6b697374'::int)`

const countOfficers = `SELECT count(*) FROM users WHERE role IN ('admin', 'treasury')`

// officersToConfirm is how many officers' accounts there must be before new ones need a confirmation by two officers.
const officersToConfirm = 2

// addUser stores a new account. One of staff is inactive until a second officer confirms it, unless there are too few
// officers to confirm.
func (t unitTx) addUser(ctx context.Context, u exchange.User, c exchange.Credentials, by exchange.Principal) (exchange.User, error) {
	guarded, alone := u.Role.Staff() && u.IsActive, false
	if guarded {
		if _, err := t.Exec(ctx, lockStaff); err != nil {
			return u, err
		}
		var officers int
		if err := t.Get(ctx, &officers, countOfficers); err != nil {
			return u, err
		}
		alone = officers < officersToConfirm
		u.IsActive = alone
	}
	var created exchange.User
	err := t.Get(ctx, &created, insertUser, u.ID, u.Email, u.PhoneNumber.Digits(), u.FirstName, u.LastName, u.Role, nullID(u.VendorID),
		u.IsActive, nullTime(u.VerifiedAt), c.PasswordHash, c.PINHash, t.s.now(), nullTime(u.EmailProvenAt), nullTime(u.PhoneProvenAt))
	if err != nil {
		return u, userClash(err)
	}
	err = t.record(ctx, auditEvent{by: by, object: "user", id: u.ID, name: "user.created", owner: u.ID, vendor: exchange.VendorOf(created), after: userSnapshot(created)})
	switch {
	case err != nil || !guarded:
	case alone:
		err = t.audit(ctx, by, "staff.appointed_by_one_officer", "user", u.ID, nil, map[string]any{"role": u.Role})
	default:
		_, err = t.proposeAccess(ctx, created, by)
	}
	return created, err
}

// staffTerms is the access of an officer as stored and shown. The database's guard reads the role.
type staffTerms struct {
	Role     exchange.Role `json:"role"`
	IsActive bool          `json:"is_active"`
	Version  int64         `json:"version,omitempty"` // the account's version when proposed
}

func (t unitTx) proposeAccess(ctx context.Context, u exchange.User, by exchange.Principal) (exchange.ControlChange, error) {
	return t.propose(ctx, exchange.ControlStaffAccess, u.ID, staffTerms{u.Role, u.IsActive, u.Version}, staffTerms{Role: u.Role, IsActive: true}, by)
}

// applyStaffAccess applies a confirmed change of an officer's account.
func (t unitTx) applyStaffAccess(ctx context.Context, c exchange.ControlChange, by exchange.Principal) error {
	var before exchange.User
	if err := t.Get(ctx, &before, lockUser, c.SubjectID); err != nil {
		return translate(err, "user")
	}
	if err := unchanged(c, staffTerms{before.Role, before.IsActive, before.Version}); err != nil {
		return err
	}
	want := before
	want.IsActive = true
	_, err := t.saveUser(ctx, before, want, by)
	return err
}

// userClash names the field behind a unique constraint of users.
func userClash(err error) error {
	for constraint, field := range map[string]exchange.FieldError{
		"users_email_key":        {Pointer: "/email", Code: "taken", Message: "belongs to another account"},
		"users_phone_number_key": {Pointer: "/phone_number", Code: "taken", Message: "belongs to another account"},
	} {
		if pg.Broke(err, constraint) {
			return &exchange.Error{Code: exchange.CodeConflict, Message: "An account with this e-mail address or phone number already exists.", Fields: []exchange.FieldError{field}, Cause: err}
		}
	}
	return err
}

// User reads a user.
func (s *Store) User(ctx context.Context, id uuid.UUID) (exchange.User, error) {
	return s.oneUser(ctx, readUser, id)
}

const readUserByEmail = `SELECT ` + userColumns + ` FROM users WHERE email = $1`

// UserByEmail reads the user with an e-mail address, whatever its case.
func (s *Store) UserByEmail(ctx context.Context, email string) (exchange.User, error) {
	if strings.ContainsRune(email, 0) {
		return exchange.User{}, translate(sql.ErrNoRows, "user")
	}
	return s.oneUser(ctx, readUserByEmail, strings.ToLower(email))
}

const readUserByPhone = `SELECT ` + userColumns + ` FROM users WHERE phone_number = $1`

// UserByPhone reads the user with a phone number.
func (s *Store) UserByPhone(ctx context.Context, phone exchange.Phone) (exchange.User, error) {
	return s.oneUser(ctx, readUserByPhone, phone.Digits())
}

func (s *Store) oneUser(ctx context.Context, query string, key any) (exchange.User, error) {
	return readOne[exchange.User](ctx, s.db, "user", query, key)
}

const readCredentials = `SELECT id, password_hash, pin_hash, auth_version FROM users WHERE id = $1`

// CredentialsOf reads the credentials of a user.
func (s *Store) CredentialsOf(ctx context.Context, userID uuid.UUID) (exchange.Credentials, error) {
	var r struct {
		ID           uuid.UUID
		PasswordHash string
		PINHash      string
		AuthVersion  int64
	}
	if err := s.db.Get(ctx, &r, readCredentials, userID); err != nil {
		return exchange.Credentials{}, translate(err, "user")
	}
	return exchange.Credentials{UserID: r.ID, PasswordHash: r.PasswordHash, PINHash: r.PINHash, AuthVersion: r.AuthVersion}, nil
}

const updatePIN = `UPDATE users SET pin_hash = $2, updated_at = $3, version = version + 1 WHERE id = $1 RETURNING ` + userColumns

// SetPIN replaces the hash of a user's PIN. The audit log records the change without the PIN.
func (s *Store) SetPIN(ctx context.Context, userID uuid.UUID, pinHash string, by exchange.Principal) error {
	return s.inTx(ctx, "user", func(t unitTx) error {
		var u exchange.User
		if err := t.Get(ctx, &u, updatePIN, userID, pinHash, t.s.now()); err != nil {
			return err
		}
		return t.record(ctx, auditEvent{by: by, object: "user", id: u.ID, name: "user.pin_changed", owner: u.ID, vendor: exchange.VendorOf(u), after: userSnapshot(u)})
	})
}

const updatePassword = `
UPDATE users SET password_hash = $2, updated_at = $3, version = version + 1 WHERE id = $1 RETURNING ` + userColumns

// ChangePassword replaces the hash of a user's password, and ends the codes that could reset it and every session of the user but
// keep. CodeNotFound for an unknown user.
func (s *Store) ChangePassword(ctx context.Context, userID uuid.UUID, passwordHash string, keep uuid.UUID, by exchange.Principal, told ...exchange.Message) error {
	return s.inTx(ctx, "user", func(t unitTx) error {
		if err := t.setPassword(ctx, userID, passwordHash, keep, by); err != nil {
			return err
		}
		return t.addMessages(ctx, told)
	})
}

func (t unitTx) setPassword(ctx context.Context, userID uuid.UUID, passwordHash string, keep uuid.UUID, by exchange.Principal) error {
	var u exchange.User
	if err := t.Get(ctx, &u, updatePassword, userID, passwordHash, t.s.now()); err != nil {
		return err
	}
	if _, err := t.Exec(ctx, endResets, userID, t.s.now()); err != nil {
		return err
	}
	if _, err := t.Exec(ctx, revokeOthers, userID, t.s.now(), "password changed", keep); err != nil {
		return err
	}
	return t.record(ctx, auditEvent{by: by, object: "user", id: u.ID, name: "user.password_changed", owner: u.ID, vendor: exchange.VendorOf(u), after: userSnapshot(u)})
}

const revokeOthers = `UPDATE session_families SET revoked_at = $2, reason = $3 WHERE user_id = $1 AND id <> $4 AND revoked_at IS NULL`

const renewHashes = `
UPDATE users SET password_hash = CASE WHEN password_hash = $2 THEN $3 ELSE password_hash END,
    pin_hash = CASE WHEN pin_hash = $2 THEN $3 ELSE pin_hash END
WHERE id = $1 AND $2 IN (password_hash, pin_hash)`

// RenewHash replaces the hash of a password or PIN by another one of the same secret, with today's cost and pepper. It
// changes nothing when the secret was changed since.
func (s *Store) RenewHash(ctx context.Context, userID uuid.UUID, old, renewed string) error {
	_, err := s.write(ctx, "user", renewHashes, userID, old, renewed)
	return err
}

// MaxUserQuery bounds the text of a search for users.
const MaxUserQuery = 100

// ListUsers pages through the users, newest first, with their number.
func (s *Store) ListUsers(ctx context.Context, f UserFilter, p Page) ([]exchange.User, int, error) {
	q := strings.ToLower(strings.TrimSpace(f.Query))
	if err := checkQuery(q, MaxUserQuery); err != nil {
		return nil, 0, err
	}
	var w where
	w.add(`id <> ?`, exchange.PlatformTreasury) // a system account
	w.eq("role", string(f.Role))
	if q != "" {
		like := escapeLike(q) + "%"
		phone := escapeLike(phonePrefix(q)) + "%"
		w.add(`(lower(first_name) LIKE ? OR lower(last_name) LIKE ? OR lower(first_name || ' ' || last_name) LIKE ? OR email LIKE ? OR phone_number LIKE ?)`,
			like, like, like, like, phone)
	}
	return readPage[exchange.User](ctx, s, "user", list{columns: userColumns, from: "users", where: w, order: "created_at DESC, id DESC"}, p)
}

const countUsers = `SELECT count(*) FROM users WHERE role = $1 AND id <> platform_treasury()`

// CountUsers counts the users of a role.
func (s *Store) CountUsers(ctx context.Context, role exchange.Role) (int, error) {
	return readOne[int](ctx, s.db, "user", countUsers, role)
}

const lockUser = `SELECT ` + userColumns + ` FROM users WHERE id = $1 FOR UPDATE`

const updateUser = `
UPDATE users SET is_active = $2, role = $3, verified_at = $4, auth_version = auth_version + $5, updated_at = $6, version = version + 1
WHERE id = $1 RETURNING ` + userColumns

// UpdatedUser is a user after a patch, with the changes that wait for a second officer.
type UpdatedUser struct {
	exchange.User
	Waits []exchange.ControlChange
}

// wait adds a proposed change; one without an id took effect at once.
func (u *UpdatedUser) wait(c exchange.ControlChange, err error) error {
	if err == nil && c.ID != uuid.Nil {
		u.Waits = append(u.Waits, c)
	}
	return err
}

// UpdateUser applies a patch. Deactivation makes every token of the user invalid at once. Verification changes limits
// but no rights, so it ends no session. Only users and customers can be verified: CodeStateConflict for other roles.
// Limits above those of the role, and the activation of an officer's account, wait for a second officer and change
// nothing yet.
func (s *Store) UpdateUser(ctx context.Context, id uuid.UUID, patch UserPatch, by exchange.Principal) (UpdatedUser, error) {
	var updated UpdatedUser
	err := s.inTx(ctx, "user", func(t unitTx) error {
		updated = UpdatedUser{}
		var before exchange.User
		if err := t.Get(ctx, &before, lockUser, id); err != nil {
			return err
		}
		stored, err := versionOf(ctx, t, userVersion, id)
		if err != nil {
			return err
		}
		if err := expect(patch.IfVersions, stored); err != nil {
			return err
		}
		want, err := patch.apply(before, t.s.now())
		if err != nil {
			return err
		}
		if patch.Limits != nil {
			if err := updated.wait(t.changeUserLimits(ctx, before, *patch.Limits, by)); err != nil {
				return err
			}
		}
		if want.IsActive && !before.IsActive && want.Role.Staff() {
			want.IsActive = false
			if err := updated.wait(t.proposeAccess(ctx, before, by)); err != nil {
				return err
			}
		}
		updated.User, err = t.saveUser(ctx, before, want, by)
		return err
	})
	return updated, err
}

// saveUser stores the mutable columns of a user. Deactivation ends its sessions and withdraws an open invitation.
func (t unitTx) saveUser(ctx context.Context, before, want exchange.User, by exchange.Principal) (exchange.User, error) {
	if want == before {
		return before, nil
	}
	bump := 0
	if !want.IsActive {
		bump = 1
	}
	var updated exchange.User
	if err := t.Get(ctx, &updated, updateUser, before.ID, want.IsActive, want.Role, nullTime(want.VerifiedAt), bump, t.s.now()); err != nil {
		return before, err
	}
	if !updated.IsActive {
		if _, err := t.Exec(ctx, revokeFamilies, before.ID, t.s.now(), "deactivated"); err != nil {
			return before, err
		}
		if _, err := t.Exec(ctx, withdrawOpen, before.ID, t.s.now()); err != nil {
			return before, err
		}
	}
	return updated, t.record(ctx, auditEvent{
		by: by, object: "user", id: before.ID, name: "user.updated", owner: before.ID, vendor: exchange.VendorOf(updated),
		before: userSnapshot(before), after: userSnapshot(updated),
	})
}

func (p UserPatch) apply(u exchange.User, now time.Time) (exchange.User, error) {
	if p.IsActive != nil {
		u.IsActive = *p.IsActive
	}
	if p.Verified == nil || *p.Verified == !u.VerifiedAt.IsZero() {
		return u, nil
	}
	if u.Role != exchange.RoleUser && u.Role != exchange.RoleCustomer {
		return u, exchange.Errorf(exchange.CodeStateConflict, "An account with the role %s can't be verified.", u.Role)
	}
	if *p.Verified {
		u.Role, u.VerifiedAt = exchange.RoleCustomer, now
	} else {
		u.Role, u.VerifiedAt = exchange.RoleUser, time.Time{}
	}
	return u, nil
}
