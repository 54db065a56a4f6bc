package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
)

// call is one request.
type call struct {
	fc         *fiber.Ctx
	ctx        context.Context
	route      *route
	who        exchange.Principal
	user       exchange.User
	device     uuid.UUID // of the caller's session
	auth       int64     // the version of the caller's rights and credentials, which ends tokens of earlier ones
	refused    error     // why the caller is not authenticated
	version    int64     // of the object that is answered, where a PATCH can change it
	ifVersions []int64   // the versions in If-Match, one of which a PATCH expects; none is any, unknownVersion matches none
	objectID   uuid.UUID // the id of what a creating request creates; stable over retries with one key
}

// encode is the JSON of an answer. Unlike json.Marshal it leaves <, > and & as they are: no answer is part of a page.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func (c *call) json(status int, body any) error { return c.fc.Status(status).JSON(body) }

func (c *call) empty() error { return c.fc.SendStatus(fiber.StatusNoContent) }

const (
	headerRequestID = "X-Request-Id"
	headerTotal     = "X-Total-Count"
)

type localKey int

const (
	localCall localKey = iota
	localRequestID
)

func callOf(fc *fiber.Ctx) *call {
	c, _ := fc.Locals(localCall).(*call)
	return c
}

// requestID returns the id of the request in logs, problems and audit rows. It is never taken from the client, so
// that clients can't write into our logs.
func requestID(fc *fiber.Ctx) string {
	if id, ok := fc.Locals(localRequestID).(string); ok {
		return id
	}
	id := newID().String()
	fc.Locals(localRequestID, id)
	return id
}

// newID makes a UUIDv7. It panics when the system has no randomness, because then nothing is safe.
func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

func routeOf(fc *fiber.Ctx) string {
	if c := callOf(fc); c != nil {
		return c.route.path
	}
	return "unmatched"
}

// harden sets the security headers of every response, also of errors from the HTTP server below.
func harden(fc *fiber.Ctx) {
	fc.Set(headerRequestID, requestID(fc))
	fc.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	fc.Set(fiber.HeaderXFrameOptions, "DENY")
	fc.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	fc.Set(fiber.HeaderCacheControl, "no-store")
	fc.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; frame-ancestors 'none'")
	fc.Set("Cross-Origin-Resource-Policy", "same-origin")
	fc.Set(fiber.HeaderStrictTransportSecurity, "max-age=31536000")
}

// outer wraps every request: id, headers, recover, metrics and one log line. The line has no personal
// data: it has the route's template instead of the path, ids instead of names, and no address.
func (s *server) outer(fc *fiber.Ctx) error {
	start := time.Now()
	harden(fc)
	if err := s.guarded(fc); err != nil {
		if err := s.writeError(fc, err); err != nil {
			return err
		}
	}
	took := time.Since(start)
	status := fc.Response().StatusCode()
	s.metrics.observe(fc.Method(), routeOf(fc), status, took)
	attributes := []slog.Attr{
		slog.String("request_id", requestID(fc)), slog.String("method", fc.Method()), slog.String("route", routeOf(fc)),
		slog.Int("status", status), slog.Duration("took", took),
	}
	if c := callOf(fc); c != nil && c.who.UserID != uuid.Nil {
		attributes = append(attributes, slog.String("user_id", c.who.UserID.String()), slog.String("role", string(c.who.Role)))
	}
	s.log.LogAttrs(context.Background(), slog.LevelInfo, "request", attributes...)
	return nil
}

// guarded turns a panic of a handler into an error, so that one bad request can't end the process.
func (s *server) guarded(fc *fiber.Ctx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("panic in a handler", "request_id", requestID(fc), "route", routeOf(fc), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = exchange.Errorf(exchange.CodeInternal, "panic")
		}
	}()
	if err := checkFraming(&fc.Request().Header); err != nil {
		fc.Context().SetConnectionClose()
		return err
	}
	if !isForm(&fc.Request().Header) {
		if err := readBody(fc, maxBody); err != nil {
			return err
		}
	}
	return fc.Next()
}

// identify starts a call: its deadline and its caller. It does not refuse invalid tokens yet, so that the
// rate limit behind it counts these requests too.
func (s *server) identify(r *route) fiber.Handler {
	timeout := s.within(cmp.Or(r.timeout, requestTimeout))
	return func(fc *fiber.Ctx) error {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		c := &call{fc: fc, ctx: ctx, route: r}
		c.who.IP, c.who.RequestID = s.clientIP(fc), requestID(fc)
		fc.Locals(localCall, c)
		fc.SetUserContext(ctx)
		if !r.public {
			c.refused = s.authenticate(c)
		}
		return fc.Next()
	}
}

// clientIP is the address of the client: the peer of the connection, or, when that is a trusted proxy,
// the last address in X-Forwarded-For that is not a trusted proxy. Addresses to the left of it are claims
// of the client. Some proxies add a header line of their own, so all lines count, in their order.
func (s *server) clientIP(fc *fiber.Ctx) string {
	peer, ok := netip.AddrFromSlice(fc.Context().RemoteIP())
	if !ok {
		return ""
	}
	peer = peer.Unmap()
	if !contains(s.Config.TrustedProxies, peer) {
		return peer.String()
	}
	lines := fc.Request().Header.PeekAll(fiber.HeaderXForwardedFor)
	hops := strings.Split(string(bytes.Join(lines, []byte(","))), ",")
	for i := len(hops) - 1; i >= 0; i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		if peer = hop.Unmap().WithZone(""); !contains(s.Config.TrustedProxies, peer) {
			break
		}
	}
	return peer.String()
}

func contains(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

func containsText(prefixes []netip.Prefix, address string) bool {
	a, err := netip.ParseAddr(address)
	return err == nil && contains(prefixes, a)
}
