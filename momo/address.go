package momo

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"kivuko/exchange"
)

// maxBase bounds the base of callback addresses. The operator documents no limit; this one is ours.
const maxBase = 256

// forbiddenWords may stand nowhere in a callback address, in any case (portal, "Getting Started"):
// the operator refuses the address or never calls it. "exec" is covered by "exe".
var forbiddenWords = []string{"mpesa", "m-pesa", "safaricom", "exe", "cmd", "sql", "query"}

// blockedHosts are public tunnels and request catchers that the portal says are not called.
var blockedHosts = []string{"ngrok", "mockbin", "requestbin"}

// CheckCallbackBase tells whether the operator can be given addresses under base, and why not.
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
		return errors.New("must have a host in lower case: the operator was seen to refuse others")
	}
	lower := strings.ToLower(base)
	for _, word := range forbiddenWords {
		if strings.Contains(lower, word) {
			return fmt.Errorf("must not contain %q: the operator refuses addresses with that word", word)
		}
	}
	for _, host := range blockedHosts {
		if strings.Contains(u.Hostname(), host) {
			return fmt.Errorf("must not lie on %q: the operator does not call it", host)
		}
	}
	if len(base) > maxBase {
		return fmt.Errorf("must have at most %d characters", maxBase)
	}
	return nil
}

// address is where the operator calls back: the base, the token, the kind. A token of hexadecimal
// digits can spell none of the forbidden words, but the whole is checked all the same.
func (c *Client) address(token string, kind exchange.CallbackKind) (string, error) {
	if !isHex64(token) {
		return "", errors.New("callback token: must be 64 lower-case hexadecimal digits")
	}
	if !kind.Valid() {
		return "", fmt.Errorf("callback kind: %q is not one", kind)
	}
	return c.cfg.CallbackBase + "/" + token + "/" + string(kind), nil
}

// token is the attempt's own, or the standing one where only its hash is left. Prompts don't use it, because
// nothing but the address ties a prompt's result to its attempt.
func (c *Client) token(a exchange.PaymentAttempt) string {
	if a.CallbackToken != "" {
		return a.CallbackToken
	}
	return c.cfg.StandingToken
}
