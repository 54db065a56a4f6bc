package activities

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"code.dny.dev/ssrf"

	"kivuko/exchange"
)

const (
	statusGone = http.StatusGone
	// webhookStopped is no word of an attempt: the worker was told to stop while it waited.
	webhookStopped    = "stopped"
	maxWebhookAnswer  = 4 << 10 // bytes of a body; read only so that the other side can finish
	maxWebhookHeaders = 16 << 10
)

// WebhookPolicy says where events may be sent. Local is for a developer's machine: it lets http and addresses
// of the machine and its networks pass. Addresses of the link, where clouds keep their metadata, never do.
type WebhookPolicy struct{ Local bool }

// CheckURL refuses an address that nothing may be sent to, as CodeInvalid with a sentence. What a name resolves
// to is checked when it is dialled, because it may resolve to something else by then.
func (p WebhookPolicy) CheckURL(text string) error {
	bad := func(rule string) error { return exchange.Errorf(exchange.CodeInvalid, "%s", rule) }
	u, err := url.Parse(text)
	switch {
	case err != nil || !u.IsAbs() || u.Opaque != "" || u.Hostname() == "":
		return bad("must be an absolute URL")
	case u.Scheme != "https" && (!p.Local || u.Scheme != "http"):
		return bad("must begin with https://")
	case u.User != nil:
		return bad("must not hold a user or password")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return bad("must not have a fragment")
	case strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII || r <= ' ' }):
		return bad("must be ASCII without spaces; write names of other scripts in their xn-- form")
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return bad("must have a port between 1 and 65535")
		}
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if a, err := netip.ParseAddr(host); err == nil {
		if !p.Allows(a) {
			return bad("must not name an address that is not of the public internet")
		}
		return nil
	}
	if !p.Local && (host == "localhost" || strings.HasSuffix(host, ".localhost") || !strings.Contains(host, ".") || endsInDigit(host)) {
		return bad("must name a host of the public internet")
	}
	return nil
}

// endsInDigit finds addresses in forms that resolvers take and netip does not (127.1, 0x7f.1): no top-level
// domain ends in a digit.
func endsInDigit(host string) bool { return host[len(host)-1] >= '0' && host[len(host)-1] <= '9' }

// public refuses every address that the IANA registries give a special purpose, and of IPv6 all that is not routed.
var public = ssrf.New(ssrf.WithAnyPort())

// Allows tells whether events may be sent to an address.
func (p WebhookPolicy) Allows(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" || a.IsUnspecified() || a.IsLinkLocalUnicast() || a.IsMulticast() {
		return false
	}
	if p.Local && (a.IsLoopback() || a.IsPrivate()) {
		return true
	}
	return public.SafeAddr(a) == nil
}

// errBlocked is a connection that the policy refuses.
var errBlocked = errors.New("the address is not of the public internet")

// control is asked for each connection, after the name was resolved and before anything is sent: what a name
// resolved to earlier says nothing.
func (p WebhookPolicy) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !p.Allows(to.Addr()) {
		return errBlocked
	}
	return nil
}

// WebhookSender sends signed messages. It follows no redirects, goes through no proxy, and keeps no
// connection.
type WebhookSender struct {
	policy WebhookPolicy
	client *http.Client
}

// NewWebhookSender makes a sender. Roots are the authorities that receivers are believed by; nil is the
// system's.
func NewWebhookSender(p WebhookPolicy, roots *tls.Config) *WebhookSender {
	dialer := &net.Dialer{Timeout: webhookTimeout, Control: p.control}
	return &WebhookSender{policy: p, client: &http.Client{
		Timeout:       webhookTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: roots, TLSHandshakeTimeout: webhookTimeout, DisableKeepAlives: true,
			DisableCompression: true, MaxResponseHeaderBytes: maxWebhookHeaders, ResponseHeaderTimeout: webhookTimeout,
		},
	}}
}

// Through puts something around the sender's transport.
func (s *WebhookSender) Through(wrap func(http.RoundTripper) http.RoundTripper) *WebhookSender {
	s.client.Transport = wrap(s.client.Transport)
	return s
}

// WebhookMessage is a delivery on its way.
type WebhookMessage struct {
	URL       string
	ID        string
	At        time.Time
	Signature string
	Keys      string
	Body      []byte
}

// Send makes one attempt. It returns the status, 0 when there was no answer, and a word for what went wrong,
// "" when the message was taken. Nothing of the answer or of the address is in it.
func (s *WebhookSender) Send(ctx context.Context, m WebhookMessage) (status int, failure string) {
	if err := s.policy.CheckURL(m.URL); err != nil {
		return 0, exchange.WebhookErrBlocked
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL, bytes.NewReader(m.Body))
	if err != nil {
		return 0, exchange.WebhookErrConnect
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Kivuko-Webhooks/1")
	r.Header.Set(exchange.WebhookHeaderID, m.ID)
	r.Header.Set(exchange.WebhookHeaderTimestamp, strconv.FormatInt(m.At.Unix(), 10))
	r.Header.Set(exchange.WebhookHeaderSignature, m.Signature)
	r.Header.Set(exchange.WebhookHeaderKeys, m.Keys)
	answer, err := s.client.Do(r)
	if err != nil {
		return 0, sendFailure(ctx, err)
	}
	defer func() { _ = answer.Body.Close() }() // given up after what is read
	_, _ = io.CopyN(io.Discard, answer.Body, maxWebhookAnswer)
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return answer.StatusCode, exchange.WebhookErrStatus
	}
	return answer.StatusCode, ""
}

// sendFailure is a word for a failure; the error itself names the address.
func sendFailure(ctx context.Context, err error) string {
	if errors.Is(ctx.Err(), context.Canceled) {
		return webhookStopped
	}
	if errors.Is(err, errBlocked) {
		return exchange.WebhookErrBlocked
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return exchange.WebhookErrDNS
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return exchange.WebhookErrTimeout
	}
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	if certificate || record || alert {
		return exchange.WebhookErrTLS
	}
	return exchange.WebhookErrConnect
}

// String hides the address and the signature.
func (m WebhookMessage) String() string {
	return fmt.Sprintf("webhook %s of %d bytes", m.ID, len(m.Body))
}
