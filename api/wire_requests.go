package api

import (
	"bytes"
	"slices"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// checkFraming refuses requests that fasthttp accepts but that a proxy may read differently: header lines that end in a
// bare line feed or continue on the next line, and a Content-Length with chunked encoding (RFC 9112, sections 2.2, 5.2 and
// 6.1). The tests list what fasthttp refuses by itself. The connection is closed after the answer, so that the bytes after
// the request are not read as another request.
//
// The raw headers do not include the end of the request line. A bare line feed there is harmless: the version before it
// must be exactly HTTP/1.x, so no program can read a longer line.
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

// routable replaces methods that the router doesn't know with a method that it knows but that no route has. So the same
// handlers refuse these requests; the router itself would answer in plain text.
func routable(next fasthttp.RequestHandler) fasthttp.RequestHandler {
	return func(c *fasthttp.RequestCtx) {
		if !slices.Contains(fiber.DefaultMethods, string(c.Method())) {
			c.Request.Header.SetMethod(fiber.MethodTrace)
		}
		next(c)
	}
}
