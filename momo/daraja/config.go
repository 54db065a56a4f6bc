package daraja

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"kivuko/exchange"
)

// Doer sends HTTP requests; *http.Client is one. It must neither retry nor follow redirects, because the second request
// could be a second payment. New stops an *http.Client from following redirects.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// StatusKey is the field of a status query with our id of the payment. The operator's portal and the code of its integrators
// use different names.
type StatusKey string

// The two names.
const (
	OriginalConversationID   StatusKey = "OriginalConversationID"   // the portal's, and the default
	OriginatorConversationID StatusKey = "OriginatorConversationID" // the integrators'
)

// DefaultTimeout bounds one HTTP exchange when Config.HTTP is empty.
const DefaultTimeout = 30 * time.Second

// Config is the configuration of a Client. It never prints its secrets.
type Config struct {
	BaseURL        string // of the operator's gateway, https (http on loopback only)
	ConsumerKey    string // of the application on the portal
	ConsumerSecret string

	Shortcode string // the number that collections are paid to (a till's head office number)
	Till      string // set when collections are paid to a till ("buy goods")
	Passkey   string // of the shortcode, for prompts

	PayoutShortcode string // empty when payouts are not offered
	InitiatorName   string // the API user for payouts, status queries, balances and reversals
	// SecurityCredential is the initiator's password, encrypted for the operator. When empty it is made from
	// InitiatorPassword and CertificatePEM, the operator's certificate.
	SecurityCredential string
	InitiatorPassword  string
	CertificatePEM     string

	CallbackBase string // e.g. https://pay.example.com/api/v1/callbacks/momo, without trailing slash
	// StandingToken is the 64 hexadecimal digits of the addresses that belong to no attempt: confirmations, validations,
	// balances, and status answers for attempts whose token is gone.
	StandingToken string

	// CheckPayees asks for the owner of a number before money is sent to it; the operator must have enabled the product. A
	// payout to a number without an owner is refused without sending; without a response the payout is sent.
	CheckPayees bool

	StatusKey   StatusKey // "": OriginalConversationID
	Description string    // shown on the prompt, at most 13 characters; "": "Payment"

	HTTP  Doer             // nil: a client with DefaultTimeout
	Clock func() time.Time // nil: the system's
}

// Format prints only addresses and numbers that are not secret, for every verb.
func (c Config) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "daraja.Config{BaseURL:%q Shortcode:%q PayoutShortcode:%q CallbackBase:%q}",
		c.BaseURL, c.Shortcode, c.PayoutShortcode, c.CallbackBase)
}

// Client sends requests to the operator. It is safe for concurrent use. The operator invalidates an access token when it
// issues the next, so the whole deployment should have one Client per consumer key; several work, but need more token
// requests.
type Client struct {
	Notices

	cfg        Config
	base       *url.URL
	shortcode  int64
	receiver   int64 // the party that a prompt pays: the shortcode or the till
	credential string
	tokens     *tokenSource
}

// Format prints no secrets, for every verb.
func (c *Client) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "daraja.Client{BaseURL:%q Shortcode:%q}", c.cfg.BaseURL, c.cfg.Shortcode)
}

// New checks the configuration and makes a Client. It does not call the operator. The error is a CodeInvalid exchange.Error
// that lists every invalid field.
func New(cfg Config) (*Client, error) {
	var fields []exchange.FieldError
	bad := func(name, rule string) {
		fields = append(fields, exchange.FieldError{Pointer: name, Code: "invalid", Message: rule})
	}
	c := &Client{cfg: cfg}
	var err error
	if c.base, err = parseBase(cfg.BaseURL); err != nil {
		bad("BaseURL", err.Error())
	}
	for _, f := range []struct{ name, value string }{
		{"ConsumerKey", cfg.ConsumerKey},
		{"ConsumerSecret", cfg.ConsumerSecret},
		{"Passkey", cfg.Passkey},
	} {
		if f.value == "" {
			bad(f.name, "must not be empty")
		}
	}
	if c.shortcode, err = parseShortcode(cfg.Shortcode); err != nil {
		bad("Shortcode", err.Error())
	}
	c.receiver = c.shortcode
	if cfg.Till != "" {
		if c.receiver, err = parseShortcode(cfg.Till); err != nil {
			bad("Till", err.Error())
		}
	}
	if err := CheckCallbackBase(cfg.CallbackBase); err != nil {
		bad("CallbackBase", err.Error())
	}
	if cfg.StandingToken != "" && !isHex64(cfg.StandingToken) {
		bad("StandingToken", "must be 64 lower-case hexadecimal digits")
	}
	if len(cfg.Description) > maxDescription || !printable(cfg.Description) {
		bad("Description", fmt.Sprintf("must have at most %d printable ASCII characters", maxDescription))
	}
	switch cfg.StatusKey {
	case "":
		c.cfg.StatusKey = OriginalConversationID
	case OriginalConversationID, OriginatorConversationID:
	default:
		bad("StatusKey", "must be OriginalConversationID or OriginatorConversationID")
	}
	c.checkInitiator(bad)
	if err := exchange.Invalid(fields...); err != nil {
		return nil, err
	}
	c.defaults()
	return c, nil
}

// checkInitiator checks the API user of payouts, status queries, balances and reversals. It encrypts the password once: the
// credential is valid until the password changes.
func (c *Client) checkInitiator(bad func(name, rule string)) {
	cfg := c.cfg
	if cfg.PayoutShortcode != "" {
		if _, err := parseShortcode(cfg.PayoutShortcode); err != nil {
			bad("PayoutShortcode", err.Error())
		}
		if cfg.InitiatorName == "" {
			bad("InitiatorName", "must not be empty when payouts are offered")
		}
	}
	if cfg.InitiatorName == "" {
		return
	}
	if c.credential = cfg.SecurityCredential; c.credential != "" {
		return
	}
	if cfg.InitiatorPassword == "" {
		bad("SecurityCredential", "must be given, or InitiatorPassword and CertificatePEM to make it from")
		return
	}
	credential, err := EncryptCredential(cfg.InitiatorPassword, []byte(cfg.CertificatePEM))
	if err != nil {
		bad("CertificatePEM", err.Error())
		return
	}
	c.credential = credential
}

func (c *Client) defaults() {
	switch h := c.cfg.HTTP.(type) {
	case nil:
		c.cfg.HTTP = &http.Client{Timeout: DefaultTimeout, CheckRedirect: stayHere}
	case *http.Client:
		own := *h
		own.CheckRedirect = stayHere
		c.cfg.HTTP = &own
	}
	if c.cfg.Clock == nil {
		c.cfg.Clock = time.Now
	}
	if c.cfg.Description == "" {
		c.cfg.Description = "Payment"
	}
	c.tokens = newTokenSource(c.cfg.Clock, c.fetchToken)
}

// stayHere returns a redirect as the response: following it would send a payment a second time.
func stayHere(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// EncryptCredential makes the security credential of an API user: the password encrypted with the public key of the
// operator's certificate, RSA with PKCS #1 v1.5 padding, in base64. The portal prescribes that padding.
func EncryptCredential(password string, certificatePEM []byte) (string, error) {
	block, _ := pem.Decode(certificatePEM)
	if block == nil {
		return "", errors.New("must be a certificate in PEM form")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return "", errors.New("must be an X.509 certificate")
	}
	key, ok := certificate.PublicKey.(*rsa.PublicKey)
	if !ok {
		return "", errors.New("must hold an RSA key")
	}
	//nolint:staticcheck // The operator prescribes this padding; the plaintext is never decrypted by us.
	sealed, err := rsa.EncryptPKCS1v15(rand.Reader, key, []byte(password))
	if err != nil {
		return "", errors.New("must hold a key that is large enough for the password")
	}
	return base64.StdEncoding.EncodeToString(sealed), nil
}

func parseShortcode(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || len(s) < 5 || len(s) > 8 {
		return 0, errors.New("must be a number of 5 to 8 digits")
	}
	return n, nil
}

func parseBase(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("must be an absolute address without user, query and fragment")
	}
	if err := checkScheme(u); err != nil {
		return nil, err
	}
	u.Path = strings.TrimRight(u.Path, "/")
	return u, nil
}

// checkScheme requires https, except for loopback addresses on development machines.
func checkScheme(u *url.URL) error {
	if u.Scheme == "https" || (u.Scheme == "http" && loopback(u.Hostname())) {
		return nil
	}
	return errors.New("must start with https:// (http:// is for loopback addresses only)")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

func printable(s string) bool {
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}
