package exchange

import (
	"strings"

	"github.com/google/uuid"
)

// PayoutWord is what two persons say of a payout of which the operator says too little. With a receipt it was made;
// without one the attempt that it names was not.
type PayoutWord struct {
	OrderID   uuid.UUID
	AttemptID uuid.UUID
	Receipt   string
	Note      string // how it was found out, of 1 to MaxPayoutNote characters
}

// MaxPayoutNote is how many characters may say how it was found out what became of a payout.
const MaxPayoutNote = 500

// CodeDeclared is the result code of an attempt to pay out that two persons declared not made. Nobody has proven it, so
// that its order stays in doubt for ever.
const CodeDeclared = "declared"

// CodeFloatShort is the operator's result code of a payout for which our account had too little (portal, B2C result codes).
const CodeFloatShort = "1"

// Lengths of what can be a receipt of the mobile money operator; those of today have ten characters.
const (
	minReceipt = 8
	maxReceipt = 20
)

// ReceiptIn reads a person's note that is a receipt of the mobile money operator: capital letters and digits alone. Any
// other note is "".
func ReceiptIn(note string) string {
	note = strings.TrimSpace(note)
	if len(note) < minReceipt || len(note) > maxReceipt {
		return ""
	}
	for _, c := range []byte(note) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			return ""
		}
	}
	return note
}
