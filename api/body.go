package api

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"kivuko/exchange"
)

// Bodies are read here, because the HTTP server below hands over every body as a stream. All but those of forms with files are read
// whole before anything else happens to a request. A form stays a stream until its route is known and the caller may use it: its
// file is never in memory.

const mediaForm = "multipart/form-data"

// form reports whether a request says that its body is a form with files.
func isForm(h *fasthttp.RequestHeader) bool {
	media, _, err := mime.ParseMediaType(string(h.ContentType()))
	return err == nil && media == mediaForm
}

// patience gives the form of an operation that takes one more time to arrive, and the content of a file or a statement more time to leave;
// zero is the server's own time.
func (s *server) patience(table []route) func(*fasthttp.RequestHeader) fasthttp.RequestConfig {
	var forms [][]byte // what their paths begin with, up to a parameter
	for _, r := range table {
		if start, _, _ := strings.Cut(r.path, ":"); r.form {
			forms = append(forms, []byte(start))
		}
	}
	return func(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
		var c fasthttp.RequestConfig
		path, _, _ := bytes.Cut(h.RequestURI(), []byte("?"))
		if isForm(h) && slices.ContainsFunc(forms, func(start []byte) bool { return bytes.HasPrefix(path, start) }) {
			c.ReadTimeout = s.within(uploadTimeout)
		}
		if bytes.Contains(path, []byte("/files/")) || bytes.HasSuffix(path, []byte("/statement")) {
			c.WriteTimeout = s.within(downloadTimeout)
		}
		return c
	}
}

// largestForm is the largest form: a bank statement, and what is around it.
const largestForm = exchange.MaxStatementSize + maxBody

// expected answers a client that asks before it sends a body (RFC 9110, 10.1.1): one that announces too much is refused at once.
func (s *server) expected(app *fiber.App) func(*fasthttp.RequestCtx) int {
	return func(c *fasthttp.RequestCtx) int {
		limit := maxBody
		if isForm(&c.Request.Header) {
			limit = largestForm
		}
		if c.Request.Header.ContentLength() <= limit {
			return http.StatusContinue
		}
		fc := app.AcquireCtx(c)
		defer app.ReleaseCtx(fc)
		harden(fc)
		if err := s.writeError(fc, fiber.ErrRequestEntityTooLarge); err != nil {
			s.log.Error("a refusal could not be written", "error", err)
		}
		return http.StatusRequestEntityTooLarge
	}
}

// readBody reads a body of at most limit bytes. After an error the connection is closed, because the rest of the body can't be told
// from another request.
func readBody(fc *fiber.Ctx, limit int) error {
	r := fc.Request()
	if !r.IsBodyStream() {
		return nil
	}
	length := r.Header.ContentLength() // negative for chunks
	var body []byte
	err := error(fiber.ErrRequestEntityTooLarge)
	if length <= limit {
		body, err = io.ReadAll(io.LimitReader(r.BodyStream(), int64(limit)+1))
	}
	switch {
	case err != nil:
		fc.Context().SetConnectionClose()
		return unreadable(err)
	case len(body) > limit:
		fc.Context().SetConnectionClose()
		return fiber.ErrRequestEntityTooLarge
	case length > len(body):
		fc.Context().SetConnectionClose()
		return fiber.ErrBadRequest
	}
	r.SetBodyRaw(body)
	return nil
}

// unreadable is the error for a body that did not arrive.
func unreadable(err error) error {
	known, isFiber := errors.AsType[*fiber.Error](err)
	slow, isNet := errors.AsType[net.Error](err)
	switch {
	case isFiber:
		return known
	case isNet && slow.Timeout():
		return fiber.NewError(http.StatusRequestTimeout)
	}
	return fiber.ErrBadRequest
}
