package exchange

import (
	"errors"
	"time"

	"github.com/google/uuid"
)

// ErrFrozen is the cause of a refusal to let money leave while an officer has frozen all outgoing payments.
var ErrFrozen = errors.New("outgoing payments are frozen")

// ErrInactive is the cause of a refusal to let money leave for a party that is switched off.
var ErrInactive = errors.New("a party is switched off")

// ErrUnread is the cause of a refusal to give a payment up that may have moved money which the deposit watch has not read yet.
var ErrUnread = errors.New("the watch has not read what the payment may have moved")

// MaxFreezeReason bounds the reason of a freeze, in characters.
const MaxFreezeReason = 500

// Freeze stops all value that leaves: nothing is signed, no signed bytes are sent for the first time, and no payout begins.
// One officer pulls it; it ends when two lift it.
type Freeze struct {
	ID       uuid.UUID
	Reason   string
	PulledBy uuid.UUID
	PulledAt time.Time
	LiftedAt time.Time // zero while it is in force
}
