package store

import (
	"context"
	"crypto/subtle"
	"errors"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
)

const verificationColumns = `id, purpose, channel, contact, user_id, created_at, expires_at`

const insertVerification = `
INSERT INTO verifications (id, purpose, channel, contact, user_id, code_hash, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

const (
	lockContact = `SELECT pg_advisory_xact_lock(hashtextextended('contact:' || $1, 0))`
	// A new code that a user asked for in a session replaces its older ones. One that anybody could ask for replaces none, or a
	// stranger could end the code that its owner is about to type.
	replaceCodes = `UPDATE verifications SET used_at = $3 WHERE contact = $1 AND purpose = 'contact' AND user_id = $2 AND used_at IS NULL`
	// Codes are counted for each purpose and account apart: what strangers ask for takes nothing from the owner's own.
	countCodes = `SELECT count(*) FROM verifications WHERE contact = $1 AND purpose = $2 AND user_id IS NOT DISTINCT FROM $3 AND created_at > $4`
	// Accounts that name another's contact are counted together too: a stranger with many of them could flood it. The owner's own
	// account is not among them.
	//
	// This has a price that is accepted: strangers with three accounts who go on asking keep the true owner from moving an older
	// account to the contact, until an hour after they stop. Nothing is lost meanwhile: the account keeps its old contact, the
	// owner may register with the contact (those codes are counted apart), and each code names the account that asked, so that
	// officers can switch it off. To count young or unverified accounts only would let old ones, which cost nothing but patience,
	// send any number of codes to a person who never asked for one.
	countElse = `
SELECT count(*) FROM verifications v JOIN users u ON u.id = v.user_id
WHERE v.contact = $1 AND v.purpose = 'contact' AND v.created_at > $3 AND v.contact NOT IN (coalesce(u.email, ''), coalesce(u.phone_number, ''))
    AND NOT EXISTS (SELECT FROM users o WHERE o.id = $2 AND v.contact IN (o.email, o.phone_number))`
	endResets = `UPDATE verifications SET used_at = $2 WHERE user_id = $1 AND purpose = 'password' AND used_at IS NULL`
)

// AddVerification stores a code and the messages that carry it. CodeRateLimited when too many of its purpose and account, or of
// all accounts that don't have its contact, went there lately.
func (s *Store) AddVerification(ctx context.Context, v exchange.Verification, codeHash [32]byte, carried ...exchange.Message) error {
	return s.inTx(ctx, "verification", func(t unitTx) error {
		now := t.s.now()
		if _, err := t.Exec(ctx, lockContact, v.Contact); err != nil {
			return err
		}
		var lately, others int
		err := t.Get(ctx, &lately, countCodes, v.Contact, v.Purpose, nullID(v.UserID), now.Add(-exchange.VerificationsWindow))
		if err == nil && v.Purpose == exchange.VerifyContact && v.UserID != uuid.Nil {
			err = t.Get(ctx, &others, countElse, v.Contact, v.UserID, now.Add(-exchange.VerificationsWindow))
		}
		if err != nil {
			return err
		}
		if lately >= exchange.MaxVerifications || others >= exchange.MaxVerificationsElse {
			return exchange.Errorf(exchange.CodeRateLimited, "Too many codes were sent there in the last hour. Use the newest one, or try again later.")
		}
		if v.Purpose == exchange.VerifyContact {
			if _, err := t.Exec(ctx, replaceCodes, v.Contact, nullID(v.UserID), now); err != nil {
				return err
			}
		}
		err = t.One(ctx, insertVerification, v.ID, v.Purpose, v.Channel, v.Contact, nullID(v.UserID), codeHash[:], now, now.Add(v.Life()))
		if err != nil {
			return err
		}
		return t.addMessages(ctx, carried)
	})
}

const lockVerification = `
SELECT ` + verificationColumns + `, code_hash, guesses, used_at FROM verifications WHERE id = $1 AND purpose = $2 FOR UPDATE`

const (
	useCode   = `UPDATE verifications SET used_at = $2 WHERE id = $1 AND used_at IS NULL`
	countTry  = `UPDATE verifications SET guesses = guesses + 1 WHERE id = $1`
	wrongCode = "is wrong, expired or used; request another one after five wrong ones"
)

// errWrongCode ends a transaction that has to commit the count of a wrong code.
var errWrongCode = errors.New("a wrong code")

// useVerification uses up a code. errWrongCode when it is not the right one, or not valid any more.
func (t unitTx) useVerification(ctx context.Context, p exchange.CodeProof, purpose exchange.VerificationPurpose) (exchange.Verification, error) {
	row, found, err := readFound[struct {
		exchange.Verification
		CodeHash []byte
		Guesses  int
		UsedAt   time.Time
	}](ctx, t, lockVerification, p.ID, purpose)
	if err != nil {
		return row.Verification, err
	}
	now := t.s.now()
	if !found || !row.UsedAt.IsZero() || !now.Before(row.ExpiresAt) || row.Guesses >= exchange.MaxVerificationTry {
		return row.Verification, errWrongCode
	}
	if subtle.ConstantTimeCompare(row.CodeHash, p.Hash[:]) != 1 {
		if _, err := t.Exec(ctx, countTry, p.ID); err != nil {
			return row.Verification, err
		}
		return row.Verification, errWrongCode
	}
	return row.Verification, t.One(ctx, useCode, p.ID, now)
}

// withCode runs fn in the transaction that uses up a code. The count of a wrong one is kept: CodeInvalid at the pointer.
func (s *Store) withCode(ctx context.Context, p exchange.CodeProof, purpose exchange.VerificationPurpose, pointer string,
	fn func(unitTx, exchange.Verification) error,
) error {
	wrong := false
	err := s.inTx(ctx, "user", func(t unitTx) error {
		v, err := t.useVerification(ctx, p, purpose)
		if wrong = errors.Is(err, errWrongCode); wrong {
			return nil
		}
		if err != nil {
			return err
		}
		return fn(t, v)
	})
	if err == nil && wrong {
		return exchange.Invalid(exchange.FieldError{Pointer: pointer, Code: "wrong", Message: wrongCode})
	}
	return err
}

// Who proves a number or an address gets it: the account that only claimed it has none any more.
const (
	dropPhoneClaim = `
UPDATE users SET phone_number = NULL, updated_at = $3, version = version + 1
WHERE phone_number = $1 AND id <> $2 AND phone_proven_at IS NULL RETURNING ` + userColumns
	dropEmailClaim = `
UPDATE users SET email = NULL, updated_at = $3, version = version + 1 WHERE email = $1 AND id <> $2 AND email_proven_at IS NULL RETURNING ` + userColumns
	provePhone = `
UPDATE users SET phone_number = $2, phone_proven_at = $3, updated_at = $3, version = version + 1 WHERE id = $1 RETURNING ` + userColumns
	proveEmail = `
UPDATE users SET email = $2, email_proven_at = $3, updated_at = $3, version = version + 1 WHERE id = $1 RETURNING ` + userColumns
)

// ProveContact gives a user the number or address that a code went to. CodeInvalid for a wrong code; CodeConflict when
// another account has proven it.
func (s *Store) ProveContact(ctx context.Context, userID uuid.UUID, p exchange.CodeProof, by exchange.Principal, told ...exchange.Message) (exchange.User, error) {
	var u exchange.User
	err := s.withCode(ctx, p, exchange.VerifyContact, "/code", func(t unitTx, v exchange.Verification) error {
		if v.UserID != userID {
			return exchange.Errorf(exchange.CodeNotFound, "There is no such verification.")
		}
		before, err := readOne[exchange.User](ctx, t, "user", lockUser, userID)
		if err != nil {
			return err
		}
		if err := t.dropClaims(ctx, v, userID, by); err != nil {
			return err
		}
		query := provePhone
		if v.Channel == exchange.ByEmail {
			query = proveEmail
		}
		if err := t.Get(ctx, &u, query, userID, v.Contact, t.s.now()); err != nil {
			return userClash(err)
		}
		if changed := u.Email != before.Email || u.PhoneNumber != before.PhoneNumber; changed {
			if _, err := t.Exec(ctx, endResets, userID, t.s.now()); err != nil { // they went to the old address
				return err
			}
			if err := t.addMessages(ctx, told); err != nil {
				return err
			}
		}
		return t.record(ctx, auditEvent{
			by: by, object: "user", id: u.ID, name: "user.contact_proven", owner: u.ID, vendor: exchange.VendorOf(u), before: userSnapshot(before), after: userSnapshot(u),
		})
	})
	return u, err
}

// dropClaims takes a proven contact from the account that only claimed it.
func (t unitTx) dropClaims(ctx context.Context, v exchange.Verification, to uuid.UUID, by exchange.Principal) error {
	query := dropPhoneClaim
	if v.Channel == exchange.ByEmail {
		query = dropEmailClaim
	}
	var dropped []exchange.User
	if err := t.All(ctx, &dropped, query, v.Contact, to, t.s.now()); err != nil {
		return err
	}
	for _, u := range dropped {
		err := t.record(ctx, auditEvent{
			by: by, object: "user", id: u.ID, name: "user.claim_lapsed", owner: u.ID, vendor: exchange.VendorOf(u), after: userSnapshot(u),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// An unproven claim of an account that has nothing gives way after a day to whoever registers.
const lapseClaims = `
UPDATE users u SET email = CASE WHEN email = $1 AND email_proven_at IS NULL THEN NULL ELSE email END,
    phone_number = CASE WHEN phone_number = $2 AND phone_proven_at IS NULL THEN NULL ELSE phone_number END, updated_at = $3, version = version + 1
WHERE ((email = $1 AND email_proven_at IS NULL) OR (phone_number = $2 AND phone_proven_at IS NULL))
    AND role = 'user' AND created_at < $4 AND NOT EXISTS (SELECT FROM wallets w WHERE w.owner_id = u.id)
    AND NOT EXISTS (SELECT FROM orders o WHERE o.customer_id = u.id) RETURNING ` + userColumns

// freeLapsed frees the contacts of a new account from claims that lapsed.
func (t unitTx) freeLapsed(ctx context.Context, u exchange.User, by exchange.Principal) error {
	now := t.s.now()
	var lapsed []exchange.User
	if err := t.All(ctx, &lapsed, lapseClaims, u.Email, u.PhoneNumber.Digits(), now, now.Add(-exchange.UnprovenClaimLife)); err != nil {
		return err
	}
	for _, l := range lapsed {
		if err := t.record(ctx, auditEvent{by: by, object: "user", id: l.ID, name: "user.claim_lapsed", owner: l.ID, after: userSnapshot(l)}); err != nil {
			return err
		}
	}
	return nil
}

// ResetPassword sets a new password by a code that went to a proven address of the caller's account, and ends every
// session. CodeInvalid for a wrong code.
func (s *Store) ResetPassword(ctx context.Context, p exchange.CodeProof, passwordHash string, by exchange.Principal, told ...exchange.Message) error {
	return s.withCode(ctx, p, exchange.VerifyPassword, "/code", func(t unitTx, v exchange.Verification) error {
		if v.UserID != by.UserID {
			return exchange.Errorf(exchange.CodeInternal, "a code of user %s is not one of user %s", v.UserID, by.UserID)
		}
		if err := t.setPassword(ctx, v.UserID, passwordHash, uuid.Nil, by); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, bumpAuthVersion, v.UserID); err != nil {
			return err
		}
		return t.addMessages(ctx, told)
	})
}

const readVerification = `SELECT ` + verificationColumns + ` FROM verifications WHERE id = $1`

// Verification reads a code that was sent, without the code.
func (s *Store) Verification(ctx context.Context, id uuid.UUID) (exchange.Verification, error) {
	return readOne[exchange.Verification](ctx, s.db, "verification", readVerification, id)
}

// claimContacts prepares the contacts of a new account: the proven ones are taken from accounts that only claim them, the
// others from accounts whose claim lapsed. All codes are looked at before anything changes, because the count of a wrong one
// is committed.
func (t unitTx) claimContacts(ctx context.Context, u *exchange.User, proofs []exchange.CodeProof, by exchange.Principal) error {
	var proven []exchange.Verification
	for _, p := range proofs {
		v, err := t.useVerification(ctx, p, exchange.VerifyContact)
		if err != nil {
			return err
		}
		switch {
		case v.UserID != uuid.Nil:
			return errWrongCode
		case v.Channel == exchange.BySMS && v.Contact == u.PhoneNumber.Digits():
			u.PhoneProvenAt = t.s.now()
		case v.Channel == exchange.ByEmail && v.Contact == u.Email:
			u.EmailProvenAt = t.s.now()
		default:
			return errWrongCode
		}
		proven = append(proven, v)
	}
	for _, v := range proven {
		if err := t.dropClaims(ctx, v, u.ID, by); err != nil {
			return err
		}
	}
	return t.freeLapsed(ctx, *u, by)
}
