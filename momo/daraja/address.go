package daraja

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"kivuko/exchange"
)

// maxBase bounds the base of callback addresses. The operator documents no limit.
const maxBase = 256

// forbiddenWords must not occur in a callback address, in any case (portal, "Getting Started"): the operator refuses the
// address or never calls it. "exe" covers "exec".
var forbiddenWords = []string{"mpesa", "m-pesa", "safaricom", "exe", "cmd", "sql", "query"}

// blockedHosts are public tunnels and request catchers. The portal says that the operator does not call them.
var blockedHosts = []string{"ngrok", "mockbin", "requestbin"}

// CheckCallbackBase returns why the operator can't use callback addresses under base, or nil.
func CheckCallbackBase(base string) error {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return errors.New("must be an absolute address without user, query and fragment")
	}
	if err := checkScheme(u); err != nil {
		return err
	}
	if strings.HasSuffix(base, "/") {
		return errors.New("must not end with a slash")
	}
	if u.Host != strings.ToLower(u.Host) {
		return errors.New("must have a host in lower case: the operator has refused others")
	}
	lower := strings.ToLower(base)
	for _, word := range forbiddenWords {
		if strings.Contains(lower, word) {
			return fmt.Errorf("must not contain %q: the operator refuses addresses with that word", word)
		}
	}
	for _, host := range blockedHosts {
		if strings.Contains(u.Hostname(), host) {
			return fmt.Errorf("must not be on %q: the operator does not call it", host)
		}
	}
	if len(base) > maxBase {
		return fmt.Errorf("must have at most %d characters", maxBase)
	}
	return nil
}

// address returns the callback address: base, token, kind. A hexadecimal token can't contain a forbidden word; the whole is
// checked all the same.
func (c *Client) address(token string, kind exchange.CallbackKind) (string, error) {
	if !isHex64(token) {
		return "", errors.New("callback token: must be 64 lower-case hexadecimal digits")
	}
	if !kind.Valid() {
		return "", fmt.Errorf("callback kind: %q is not one", kind)
	}
	return c.cfg.CallbackBase + "/" + token + "/" + string(kind), nil
}

// token returns a token of an attempt, or the standing one when only its hash is left. Prompts don't use it: only the address
// connects a prompt's result with its attempt.
func (c *Client) token(own string) string { return cmp.Or(own, c.cfg.StandingToken) }
