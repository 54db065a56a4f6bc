// Package webhook sends events to addresses that users set. Receivers may be slow, down or hostile: what they may be is the
// policy's, and nothing of their answers is kept but the status.
package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
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

// Limits of an attempt.
const (
	timeout    = 15 * time.Second
	maxAnswer  = 4 << 10 // bytes of a response body; read only so that the receiver can finish
	maxHeaders = 16 << 10
)

// Policy decides where events may be sent. Local is for a developer's machine: it allows http, and addresses of the
// machine and its private networks. Link-local addresses, where clouds serve metadata, are never allowed.
type Policy struct{ Local bool }

// CheckURL refuses a forbidden URL, as CodeInvalid with the rule. The addresses of a host name are checked when it is
// dialled, because they may change until then.
func (p Policy) CheckURL(text string) error {
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
			return bad("must name an address of the public internet")
		}
		return nil
	}
	if !p.Local && (host == "localhost" || strings.HasSuffix(host, ".localhost") || !strings.Contains(host, ".") || endsInDigit(host)) {
		return bad("must name a host of the public internet")
	}
	return nil
}

// endsInDigit finds addresses in forms that resolvers accept and netip does not (127.1, 0x7f.1): no top-level domain ends in
// a digit.
func endsInDigit(host string) bool { return host[len(host)-1] >= '0' && host[len(host)-1] <= '9' }

// public refuses every address with a special purpose in the IANA registries, and all IPv6 addresses that are not routed.
var public = ssrf.New(ssrf.WithAnyPort())

// Allows reports whether events may be sent to an address.
func (p Policy) Allows(a netip.Addr) bool {
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

// control checks each connection after the name was resolved and before anything is sent, because earlier resolutions may
// differ.
func (p Policy) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !p.Allows(to.Addr()) {
		return errBlocked
	}
	return nil
}

// Sender sends signed messages. It follows no redirects, uses no proxy, and keeps no connections.
type Sender struct {
	policy Policy
	client *http.Client
}

// NewSender returns a sender. Roots configures the trusted certificate authorities; nil means the system's.
func NewSender(p Policy, roots *tls.Config) *Sender {
	dialer := &net.Dialer{Timeout: timeout, Control: p.control}
	return &Sender{policy: p, client: &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: roots, TLSHandshakeTimeout: timeout, DisableKeepAlives: true,
			DisableCompression: true, MaxResponseHeaderBytes: maxHeaders, ResponseHeaderTimeout: timeout,
		},
	}}
}

// Through wraps the sender's transport.
func (s *Sender) Through(wrap func(http.RoundTripper) http.RoundTripper) *Sender {
	s.client.Transport = wrap(s.client.Transport)
	return s
}

// Send makes one attempt. It returns the status, 0 when there was no answer, and a failure code, "" when the message was
// accepted. Neither status nor code means that ctx was cancelled, so that nothing is known. The code contains nothing of the
// answer or the address.
func (s *Sender) Send(ctx context.Context, m exchange.WebhookMessage) (status int, failure string) {
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
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return answer.StatusCode, exchange.WebhookErrStatus
	}
	return answer.StatusCode, ""
}

// sendFailure returns the code of a failure, because the error itself names the address.
func sendFailure(ctx context.Context, err error) string {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ""
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
