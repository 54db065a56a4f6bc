package exchange

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// StepUpLife is how long a proof counts for operations that move money or rights.
const StepUpLife = 5 * time.Minute

// Passkey is the public half of a key pair in a user's authenticator.
type Passkey struct {
	ID           uuid.UUID
	UserID       uuid.UUID
	CredentialID []byte
	PublicKey    []byte
	AAGUID       []byte // the model of the authenticator
	Transports   []string
	Syncable     bool // a service may keep it and bring it to other devices
	Synced       bool // one does
	Name         string
	SignCount    int64 // of the authenticator, at its last use
	CreatedAt    time.Time
	UsedAt       time.Time
}

// MaxPasskeys is how many passkeys an account has at most.
const MaxPasskeys = 10

// MaxPasskeyName bounds the name that a user gives a passkey.
const MaxPasskeyName = 80

// ChallengePurpose is what an authenticator is asked to sign for.
type ChallengePurpose string

// The purposes.
const (
	ChallengeEnrol      ChallengePurpose = "enrol"
	ChallengeStepUp     ChallengePurpose = "step_up"
	ChallengeInvitation ChallengePurpose = "invitation"
)

// ChallengeLife is how long a challenge may be answered.
const ChallengeLife = 5 * time.Minute

// Challenge is what an authenticator is asked to sign, once, in one session.
type Challenge struct {
	ID        uuid.UUID
	Purpose   ChallengePurpose
	UserID    uuid.UUID
	SessionID uuid.UUID // zero for an invitation
	Terms     json.RawMessage
	ExpiresAt time.Time
}

// InvitationLife is how long an invitation may be accepted.
const InvitationLife = 3 * 24 * time.Hour

// Invitation asks a person to set the secrets of a new account, or new ones of an account whose owner lost them.
type Invitation struct {
	ID          uuid.UUID
	UserID      uuid.UUID // of the account
	Role        Role
	VendorID    uuid.UUID
	Email       string
	PhoneNumber Phone
	FirstName   string
	LastName    string
	InvitedBy   uuid.UUID
	CreatedAt   time.Time
	ExpiresAt   time.Time
	AcceptedAt  time.Time
	WithdrawnAt time.Time
}

// User is the account as the invitation has it, not active yet where another person lets it in.
func (i Invitation) User() User {
	return User{
		ID: i.UserID, Email: i.Email, PhoneNumber: i.PhoneNumber, FirstName: i.FirstName, LastName: i.LastName, Role: i.Role, VendorID: i.VendorID, IsActive: true,
	}
}
