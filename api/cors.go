package api

import (
	"errors"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
)

// preflightLife is how long a browser may keep the answer to a preflight request.
const preflightLife = 10 * time.Minute

// What scripts of a listed origin may send and read. There are no cookies, and credentials are never allowed: a client
// sends its token itself.
var (
	corsRequestHeaders  = []string{fiber.HeaderAuthorization, fiber.HeaderContentType, headerKey, fiber.HeaderIfMatch, fiber.HeaderIfNoneMatch, fiber.HeaderRange, fiber.HeaderIfRange}
	corsResponseHeaders = []string{fiber.HeaderETag, fiber.HeaderContentDisposition, fiber.HeaderContentRange, headerReplayed, fiber.HeaderLocation, fiber.HeaderRetryAfter, headerRequestID, headerTotal}
)

var originForm = regexp.MustCompile(`^(https?)://([a-z0-9.-]+|\[[0-9a-f:]+\])(?::([1-9][0-9]{0,4}))?$`)

// CheckOrigin returns why a text is no exact origin as browsers write it in the header Origin, which is compared as a
// whole. The error continues after the origin ("must …").
func CheckOrigin(text string) error {
	part := originForm.FindStringSubmatch(text)
	if part == nil {
		return errors.New("must be a scheme, a host and at most a port, in small letters: no wildcard, path or slash at the end")
	}
	scheme, host, port := part[1], part[2], part[3]
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n > 65535) {
		return errors.New("must have a port of at most 65535")
	}
	if scheme == "https" && port == "443" || scheme == "http" && port == "80" {
		return errors.New("must not name the scheme's own port, which browsers leave out")
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if strings.HasPrefix(host, "[") && (err != nil || ip.String() != strings.Trim(host, "[]")) {
		return errors.New("must have an IPv6 address in its short form")
	}
	if scheme == "http" && host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return errors.New("must be https, unless the host is this machine")
	}
	return nil
}

// browsers lets scripts of the listed origins call the API and answers their preflight requests. Without a list nothing
// is added to any response. An origin that is not listed is served like a client without a browser: the browser refuses
// it the answer. CORS is no guard of ours; the token is.
func (s *server) browsers(table []route) fiber.Handler {
	if len(s.Config.Origins) == 0 {
		return func(fc *fiber.Ctx) error { return fc.Next() }
	}
	var methods []string
	for _, r := range table {
		methods = append(methods, r.method)
	}
	slices.Sort(methods)
	allowedMethods := strings.Join(slices.Compact(methods), ", ")
	allowedHeaders, exposed := strings.Join(corsRequestHeaders, ", "), strings.Join(corsResponseHeaders, ", ")
	return func(fc *fiber.Ctx) error {
		fc.Vary(fiber.HeaderOrigin)
		origin := fc.Get(fiber.HeaderOrigin)
		if !slices.Contains(s.Config.Origins, origin) {
			return fc.Next()
		}
		fc.Set(fiber.HeaderAccessControlAllowOrigin, origin)
		if fc.Method() != fiber.MethodOptions || fc.Get(fiber.HeaderAccessControlRequestMethod) == "" {
			fc.Set(fiber.HeaderAccessControlExposeHeaders, exposed)
			return fc.Next()
		}
		fc.Vary(fiber.HeaderAccessControlRequestMethod, fiber.HeaderAccessControlRequestHeaders)
		fc.Set(fiber.HeaderAccessControlAllowMethods, allowedMethods)
		fc.Set(fiber.HeaderAccessControlAllowHeaders, allowedHeaders)
		fc.Set(fiber.HeaderAccessControlMaxAge, strconv.Itoa(int(preflightLife/time.Second)))
		return fc.SendStatus(http.StatusNoContent)
	}
}
