package store

import (
	"context"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const invitationColumns = `id, user_id, role, vendor_id, email, phone_number, first_name, last_name, invited_by, created_at, expires_at, accepted_at, withdrawn_at`

const insertInvitation = `
INSERT INTO invitations (id, user_id, token_hash, role, vendor_id, email, phone_number, first_name, last_name, invited_by, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING ` + invitationColumns

func invitationSnapshot(i exchange.Invitation) map[string]any {
	return map[string]any{"id": i.ID, "user_id": i.UserID, "role": i.Role, "expires_at": i.ExpiresAt}
}

const (
	readInvitation = `SELECT ` + invitationColumns + ` FROM invitations WHERE id = $1`
	withdrawOpen   = `UPDATE invitations SET withdrawn_at = $2 WHERE user_id = $1 AND accepted_at IS NULL AND withdrawn_at IS NULL`
	phoneTaken     = `SELECT id FROM users WHERE phone_number = $1`
	contactsTaken  = `SELECT id FROM users WHERE id <> $3 AND (email = $1 AND email_proven_at IS NOT NULL OR phone_number = $2 AND phone_proven_at IS NOT NULL) LIMIT 1`
)

// Invite stores an invitation and the message with its link, and withdraws an earlier one of the same account. A repeated
// call with the same id changes nothing. CodeConflict when another account has proven the address or the number;
// CodeLimitReached when its vendor has the maximum of subvendors.
func (s *Store) Invite(ctx context.Context, i exchange.Invitation, tokenHash [32]byte, m exchange.Message, by exchange.Principal) (exchange.Invitation, error) {
	var stored exchange.Invitation
	err := s.inTx(ctx, "invitation", func(t unitTx) error {
		known, found, err := readFound[exchange.Invitation](ctx, t, readInvitation, i.ID)
		if err != nil || found {
			stored = known
			return err
		}
		_, taken, err := readFound[uuid.UUID](ctx, t, contactsTaken, i.Email, i.PhoneNumber.Digits(), i.UserID)
		if err != nil {
			return err
		}
		if taken {
			return exchange.Errorf(exchange.CodeConflict, "An account with this e-mail address or phone number already exists.")
		}
		if i.VendorID != uuid.Nil {
			if err := t.One(ctx, lockOwner, i.VendorID); err != nil {
				return err
			}
			if err := t.below(ctx, MaxSubvendorsPerVendor, countSubvendors, i.VendorID, "subvendors of one vendor"); err != nil {
				return err
			}
		}
		now := t.s.now()
		if _, err := t.Exec(ctx, withdrawOpen, i.UserID, now); err != nil {
			return err
		}
		err = t.Get(ctx, &stored, insertInvitation, i.ID, i.UserID, tokenHash[:], i.Role, nullID(i.VendorID), i.Email, i.PhoneNumber.Digits(), i.FirstName, i.LastName,
			by.UserID, now, now.Add(exchange.InvitationLife))
		if err != nil {
			return err
		}
		if err := t.addMessages(ctx, []exchange.Message{m}); err != nil {
			return err
		}
		return t.audit(ctx, by, "invitation.created", "invitation", i.ID, nil, invitationSnapshot(stored))
	})
	return stored, err
}

const readOpenInvitation = `
SELECT ` + invitationColumns + ` FROM invitations WHERE token_hash = $1 AND accepted_at IS NULL AND withdrawn_at IS NULL AND expires_at > $2`

// OpenInvitation finds the invitation of a token. CodeNotFound when it is unknown or not open any more.
func (s *Store) OpenInvitation(ctx context.Context, tokenHash [32]byte) (exchange.Invitation, error) {
	return readOne[exchange.Invitation](ctx, s.db, "invitation", readOpenInvitation, tokenHash[:], s.now())
}

// Invitations pages through the invitations that a caller may see, newest first: an admin all, a vendor those of its
// subvendors.
func (s *Store) Invitations(ctx context.Context, vendorID uuid.UUID, p Page) ([]exchange.Invitation, int, error) {
	var w where
	w.id("vendor_id", vendorID)
	return readPage[exchange.Invitation](ctx, s, "invitation", list{columns: invitationColumns, from: "invitations", where: w, order: "created_at DESC, id DESC"}, p)
}

const withdrawInvitation = `
UPDATE invitations SET withdrawn_at = $2 WHERE id = $1 AND ($3::uuid IS NULL OR vendor_id = $3) AND accepted_at IS NULL AND withdrawn_at IS NULL`

// WithdrawInvitation makes the link of an invitation useless. CodeNotFound when there is no open one that the caller may see.
func (s *Store) WithdrawInvitation(ctx context.Context, id, vendorID uuid.UUID, by exchange.Principal) error {
	return s.inTx(ctx, "invitation", func(t unitTx) error {
		n, err := t.Exec(ctx, withdrawInvitation, id, t.s.now(), nullID(vendorID))
		if err != nil {
			return err
		}
		if n == 0 {
			return exchange.Errorf(exchange.CodeNotFound, "There is no such open invitation.")
		}
		return t.audit(ctx, by, "invitation.withdrawn", "invitation", id, nil, nil)
	})
}

const (
	acceptInvitation = `UPDATE invitations SET accepted_at = $2 WHERE id = $1 AND accepted_at IS NULL AND withdrawn_at IS NULL AND expires_at > $2`
	// Staff with new secrets wait again for a second person. A merchant that was switched off stays off.
	recoverUser = `
UPDATE users SET password_hash = $2, pin_hash = '', is_active = is_active AND NOT is_staff(role), auth_version = auth_version + 1, updated_at = $3, version = version + 1
WHERE id = $1 RETURNING ` + userColumns
	removePasskeys = `UPDATE passkeys SET removed_at = $2, reason = 'replaced by an invitation' WHERE user_id = $1 AND removed_at IS NULL`
)

// Accepted is what a person sets by accepting an invitation.
type Accepted struct {
	Invitation   exchange.Invitation
	PasswordHash string
	Passkey      exchange.Passkey // zero when none is set
}

// AcceptInvitation makes the account with the secrets that its owner set. Its e-mail address is proven, because the link
// went there. An account of staff is inactive until a second officer lets it in (ControlChanges lists it): the inviter is
// the first. CodeNotFound when the invitation is not open any more.
func (s *Store) AcceptInvitation(ctx context.Context, a Accepted, by exchange.Principal) (exchange.User, error) {
	var u exchange.User
	err := s.inTx(ctx, "invitation", func(t unitTx) error {
		n, err := t.Exec(ctx, acceptInvitation, a.Invitation.ID, t.s.now())
		if err != nil {
			return err
		}
		if n == 0 {
			return exchange.Errorf(exchange.CodeNotFound, "There is no such open invitation.")
		}
		inviter, err := readOne[exchange.User](ctx, t, "user", readUser, a.Invitation.InvitedBy)
		if err != nil {
			return err
		}
		if !inviter.IsActive {
			return exchange.Errorf(exchange.CodeStateConflict, "Who sent the invitation was deactivated. Ask for another invitation.")
		}
		first := exchange.Principal{UserID: inviter.ID, Role: inviter.Role, VendorID: exchange.VendorOf(inviter), IP: by.IP, RequestID: by.RequestID}
		if u, err = t.invited(ctx, a, first); err != nil {
			return err
		}
		by.UserID, by.Role = u.ID, u.Role
		if a.Passkey.ID != uuid.Nil {
			if err := t.addPasskey(ctx, a.Passkey, by); err != nil {
				return err
			}
		}
		return t.audit(ctx, by, "invitation.accepted", "invitation", a.Invitation.ID, nil, invitationSnapshot(a.Invitation))
	})
	return u, err
}

// invited makes the account of an invitation, or renews one that exists.
func (t unitTx) invited(ctx context.Context, a Accepted, by exchange.Principal) (exchange.User, error) {
	now := t.s.now()
	before, known, err := readFound[exchange.User](ctx, t, lockUser, a.Invitation.UserID)
	if err != nil {
		return before, err
	}
	if known {
		return t.recovered(ctx, before, a, by, now)
	}
	u := a.Invitation.User()
	u.EmailProvenAt = now
	if err := t.dropClaims(ctx, exchange.Verification{Channel: exchange.ByEmail, Contact: u.Email}, u.ID, by); err != nil {
		return u, err
	}
	if err := t.freeLapsed(ctx, u, by); err != nil {
		return u, err
	}
	_, taken, err := readFound[uuid.UUID](ctx, t, phoneTaken, u.PhoneNumber.Digits())
	if err != nil {
		return u, err
	}
	if taken {
		u.PhoneNumber = "" // until its owner proves it by a code
	}
	return t.addUser(ctx, u, exchange.Credentials{PasswordHash: a.PasswordHash}, by)
}

func (t unitTx) recovered(ctx context.Context, before exchange.User, a Accepted, by exchange.Principal, now time.Time) (exchange.User, error) {
	if before.Email != a.Invitation.Email || before.Role != a.Invitation.Role {
		return before, exchange.Errorf(exchange.CodeStateConflict, "The account has changed since the invitation. Ask for another one.")
	}
	if _, err := t.Exec(ctx, revokeFamilies, before.ID, now, "new secrets"); err != nil {
		return before, err
	}
	if _, err := t.Exec(ctx, removePasskeys, before.ID, now); err != nil {
		return before, err
	}
	var u exchange.User
	if err := t.Get(ctx, &u, recoverUser, before.ID, a.PasswordHash, now); err != nil {
		return u, err
	}
	err := t.record(ctx, auditEvent{
		by: by, object: "user", id: u.ID, name: "user.updated", owner: u.ID, vendor: exchange.VendorOf(u), before: userSnapshot(before), after: userSnapshot(u),
	})
	if err != nil {
		return u, err
	}
	if u.Role.Staff() {
		_, err = t.proposeAccess(ctx, u, by)
	}
	return u, err
}
