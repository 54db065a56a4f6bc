package exchange

import "strings"

// MaxPayoutNote is the most characters of the note of a payout's attestation, which says how the outcome was found out.
const MaxPayoutNote = 500

// Lengths of a receipt of the mobile money operator. Current ones have ten characters.
const (
	minReceipt = 8
	maxReceipt = 20
)

// ReceiptIn returns an officer's note if it can be a receipt of the mobile money operator, capital letters and digits alone;
// otherwise "".
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
