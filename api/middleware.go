package api

import (
	"bytes"
	"context"
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

// call is one request on its way to a handler.
type call struct {
	fc       *fiber.Ctx
	ctx      context.Context
	route    *route
	who      exchange.Principal
	user     exchange.User
	refused  error     // why who is nobody
	objectID uuid.UUID // the id of what a creating request creates; stable over retries with one key
}

func (c *call) json(status int, body any) error { return c.fc.Status(status).JSON(body) }

func (c *call) empty() error { return c.fc.SendStatus(fiber.StatusNoContent) }

type localKey int

const (
	localCall localKey = iota
	localRequestID
)

func callOf(fc *fiber.Ctx) *call {
	c, _ := fc.Locals(localCall).(*call)
	return c
}

// requestID names the request in logs, problems and audit rows. It is ours: a client's own name for
// its request would let it write into our logs.
func requestID(fc *fiber.Ctx) string {
	if id, ok := fc.Locals(localRequestID).(string); ok {
		return id
	}
	id := newID().String()
	fc.Locals(localRequestID, id)
	return id
}

// newID makes a UUIDv7. It can only fail when the system has no randomness, and then nothing here is safe.
func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

func routeOf(fc *fiber.Ctx) string {
	if c := callOf(fc); c != nil {
		return c.route.path
	}
	return "unmatched"
}

// harden sets the headers that every response carries, errors of the server below included.
func harden(fc *fiber.Ctx) {
	fc.Set("X-Request-Id", requestID(fc))
	fc.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	fc.Set(fiber.HeaderXFrameOptions, "DENY")
	fc.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	fc.Set(fiber.HeaderCacheControl, "no-store")
	fc.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; frame-ancestors 'none'")
	fc.Set("Cross-Origin-Resource-Policy", "same-origin")
	fc.Set(fiber.HeaderStrictTransportSecurity, "max-age=31536000")
}

// outer surrounds every request: id, headers, recover, metrics and one log line. The line holds no
// personal data: the route's template instead of the path, ids instead of names, and no address.
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
	return fc.Next()
}

// identify starts a call: its deadline, and who asks. It refuses nobody yet, so that the limiter
// behind it counts requests with bad tokens too.
func (s *server) identify(r *route) fiber.Handler {
	timeout := r.timeout
	if timeout == 0 {
		timeout = requestTimeout
	}
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

// clientIP is the address of the client: the peer of the connection, or, when that is a trusted
// proxy, the last address in X-Forwarded-For that is not one itself. Addresses left of that one are
// the client's own claims. Some proxies add a line of their own below the client's instead of
// continuing it, so all lines count, in their order.
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

// sitePrefix is what a provider hands to one site of IPv6: each of its addresses is the client's to choose.
const sitePrefix = 64

// origin is what counters of an address count by: the address, or for IPv6 the site that it belongs to.
func (c *call) origin() string {
	a, err := netip.ParseAddr(c.who.IP)
	if err != nil || !a.Is6() {
		return c.who.IP
	}
	site, err := a.Prefix(sitePrefix)
	if err != nil {
		return c.who.IP
	}
	return site.String()
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
