package api

import (
	"bytes"
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// checkFraming refuses what fasthttp reads but another program on the way may read as a different request: header lines
// that end in a bare line feed or continue on the next line, and a length beside chunks (RFC 9112, sections 2.2, 5.2 and
// 6.1). What fasthttp refuses by itself is listed in the tests. The connection ends with the answer, so that nothing
// behind the request is taken for another one.
//
// The end of the request line is not among the raw headers. A bare line feed there is harmless: the version before it
// must be exactly HTTP/1.x, so nobody can read the line as longer than it is.
func checkFraming(h *fasthttp.RequestHeader) error {
	var length, coding bool
	for line := range bytes.Lines(h.RawHeaders()) {
		name, _, _ := bytes.Cut(line, []byte(":"))
		length = length || bytes.EqualFold(name, []byte(fiber.HeaderContentLength))
		coding = coding || bytes.EqualFold(name, []byte(fiber.HeaderTransferEncoding))
		if !bytes.HasSuffix(line, []byte("\r\n")) || line[0] == ' ' || line[0] == '\t' || (length && coding) {
			return fiber.ErrBadRequest
		}
	}
	return nil
}

// routable has requests with methods that the router doesn't know go through the same handlers as all others. The
// router itself would answer them in plain text, so they take on a method that it knows and no route has.
func routable(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(c *fasthttp.RequestCtx) {
		if !slices.Contains(fiber.DefaultMethods, string(c.Method())) {
			c.Request.Header.SetMethod(fiber.MethodTrace)
		}
		next(c)
	}
}
