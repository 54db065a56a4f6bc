package exchange

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Phone is a Kenyan mobile number in the operator's canonical form, 254 and nine digits ("254712345678"). It is personal
// data: String masks it, and only Digits returns it.
type Phone string

// ParsePhone reads the usual spellings: 0712…, 0112…, +254…, 254…, or the bare nine digits, with spaces or hyphens. The
// prefix does not identify the operator, because numbers are portable.
func ParsePhone(s string) (Phone, error) {
	t := strings.NewReplacer(" ", "", "-", "").Replace(strings.TrimSpace(s))
	t = strings.TrimPrefix(t, "+")
	switch {
	case len(t) == 10 && t[0] == '0':
		t = "254" + t[1:]
	case len(t) == 9:
		t = "254" + t
	}
	if len(t) != 12 || !strings.HasPrefix(t, "254") || (t[3] != '7' && t[3] != '1') {
		return "", Errorf(CodeInvalid, "must be a Kenyan mobile number such as 0712345678 or +254712345678")
	}
	for _, c := range []byte(t) {
		if c < '0' || c > '9' {
			return "", Errorf(CodeInvalid, "must be a Kenyan mobile number such as 0712345678 or +254712345678")
		}
	}
	return Phone(t), nil
}

// Digits returns the full number, for the operator and for the owner of the number.
func (p Phone) Digits() string { return string(p) }

// String hides all but the last three digits, so that a log line can't leak the number.
func (p Phone) String() string {
	if len(p) < 4 {
		return strings.Repeat("*", len(p))
	}
	return strings.Repeat("*", len(p)-3) + string(p[len(p)-3:])
}

// GoString hides the number from %#v too.
func (p Phone) GoString() string { return p.String() }

// Hash is the SHA-256 in hexadecimal. The operator identifies payers by it in its notices.
func (p Phone) Hash() string {
	h := sha256.Sum256([]byte(p))
	return hex.EncodeToString(h[:])
}
