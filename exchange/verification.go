package exchange

import (
	"time"

	"github.com/google/uuid"
)

// VerificationPurpose is what a one-time code is for.
type VerificationPurpose string

// The purposes.
const (
	VerifyContact  VerificationPurpose = "contact"  // to prove a number or an address
	VerifyPassword VerificationPurpose = "password" // to set a new password
)

// Limits of one-time codes.
const (
	VerificationLife     = 15 * time.Minute
	MaxVerifications     = 5  // codes of one kind to one number or address in an hour
	MaxVerificationsElse = 15 // codes to one number or address in an hour that accounts ask for whose own it is not, together
	MaxVerificationTry   = 5  // wrong guesses at one code
	UnprovenClaimLife    = 24 * time.Hour
	VerificationsWindow  = time.Hour
)

// Verification is a one-time code that was sent. The code itself is only in the message.
type Verification struct {
	ID        uuid.UUID
	Purpose   VerificationPurpose
	Channel   MessageChannel
	Contact   string    // the number or address that it went to
	UserID    uuid.UUID // zero before a registration
	CreatedAt time.Time
	ExpiresAt time.Time
}

// Life is how long a code can be used. Anybody may ask for a code with which an account's password is set, so the codes of an hour are
// valid for an hour: who spends them all has sent the owner what opens the account.
func (v Verification) Life() time.Duration {
	if v.Purpose == VerifyPassword {
		return VerificationsWindow
	}
	return VerificationLife
}

// CodeProof is a code as somebody typed it in, as its keyed hash.
type CodeProof struct {
	ID   uuid.UUID // of the Verification
	Hash [32]byte
}
