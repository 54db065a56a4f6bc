package daraja

import (
	"regexp"
	"strings"
)

// maxText bounds a stored message of the operator.
const maxText = 200

// The operator's texts repeat access tokens ("Invalid Access Token - c9SQ…") and telephone numbers. A long unbroken run of
// letters and digits is treated as a token, because words have no digits; a long run of digits, with or without separators,
// as a telephone number. CheckoutRequestIDs end in the payer's number and are redacted too.
var (
	tokenLike = regexp.MustCompile(`[A-Za-z0-9+/=_]{20,}`)
	phoneLike = regexp.MustCompile(`\+?\d(?:[ \-*]{0,3}\d){8,}`)
	namedLike = regexp.MustCompile(`(\d{3,}\s*-\s*)[A-Z][A-Za-z' ]+`)
)

// redact makes a text of the operator safe for logs and rows: no tokens, no telephone numbers, no control characters, and
// limited length. It also removes the given secrets.
func redact(s string, secrets ...string) string {
	for _, secret := range secrets {
		if len(secret) >= 4 {
			s = strings.ReplaceAll(s, secret, "[redacted]")
		}
	}
	s = clean(s)
	if i := strings.Index(strings.ToLower(s), "access token - "); i >= 0 {
		s = s[:i+len("access token")]
	}
	s = namedLike.ReplaceAllString(s, "${1}[redacted]")
	s = tokenLike.ReplaceAllStringFunc(s, func(run string) string {
		if !strings.ContainsAny(run, "0123456789") {
			return run // a field's name, such as OriginatorConversationID
		}
		return "[redacted]"
	})
	s = phoneLike.ReplaceAllString(s, "[number]")
	s = strings.TrimSpace(s)
	if r := []rune(s); len(r) > maxText {
		s = string(r[:maxText]) + "…"
	}
	return s
}
