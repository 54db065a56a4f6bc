package api

import (
	"errors"
	"log/slog"
	"net/http"
	"slices"

	"github.com/gofiber/fiber/v2"

	"kivuko/exchange"
)

const problemType = "application/problem+json"

// problem is the body of every error (RFC 9457 with members of our own).
type problem struct {
	Type      string                `json:"type"`
	Title     string                `json:"title"`
	Status    int                   `json:"status"`
	Detail    string                `json:"detail"`
	Instance  string                `json:"instance"`
	Code      exchange.Code         `json:"code"`
	RequestID string                `json:"request_id"`
	Errors    []exchange.FieldError `json:"errors,omitempty"`
}

// writeError answers with a problem. It is the only place that turns an error into a response.
func (s *server) writeError(fc *fiber.Ctx, err error) error {
	known, status := s.understand(err)
	m := meanings[known.Code]
	if status == 0 {
		status = m.status
	}
	id := requestID(fc)
	if status >= http.StatusInternalServerError && known.Code != exchange.CodeUnsupported {
		s.log.LogAttrs(fc.UserContext(), slog.LevelError, "request failed", slog.String("request_id", id),
			slog.String("route", routeOf(fc)), slog.Any("error", err))
	}
	if status == http.StatusUnauthorized {
		fc.Set(fiber.HeaderWWWAuthenticate, `Bearer realm="kivuko"`)
	}
	if status == http.StatusServiceUnavailable && len(fc.Response().Header.Peek(fiber.HeaderRetryAfter)) == 0 {
		fc.Set(fiber.HeaderRetryAfter, retryAfter(known.Code))
	}
	body, err := encode(problem{
		Type: errorsPath + string(known.Code), Title: m.title, Status: status,
		Detail: exchange.MessageOf(known), Instance: "urn:kivuko:request:" + id, Code: known.Code,
		RequestID: id, Errors: known.Fields,
	})
	if err != nil {
		return err
	}
	fc.Set(fiber.HeaderContentType, problemType)
	return fc.Status(status).Send(body)
}

// retryAfter is after how many seconds a client may try again. An escrow address becomes free only when an order ends.
func retryAfter(c exchange.Code) string {
	if c == exchange.CodeEscrowExhausted {
		return "5"
	}
	return "2"
}

// understand returns the error for the client. A status other than zero overrides that of the code.
func (s *server) understand(err error) (*exchange.Error, int) {
	if e, ok := errors.AsType[*exchange.Error](err); ok {
		if _, ok := meanings[e.Code]; ok {
			return e, 0
		}
		return exchange.Wrap(exchange.CodeInternal, err, "unknown code"), 0
	}
	if e, ok := errors.AsType[*fiber.Error](err); ok {
		return fromFiber(e)
	}
	return exchange.Wrap(exchange.CodeInternal, err, "unknown error"), 0
}

// fromFiber converts errors of the router and of the HTTP server below it.
func fromFiber(e *fiber.Error) (*exchange.Error, int) {
	switch e.Code {
	case http.StatusNotFound:
		return exchange.Errorf(exchange.CodeNotFound, "This path does not exist."), 0
	case http.StatusMethodNotAllowed:
		return exchange.Errorf(exchange.CodeMethodNotAllowed, "This path does not support this method; Allow lists the supported methods."), 0
	case http.StatusRequestEntityTooLarge:
		return exchange.Errorf(exchange.CodeTooLarge, "The body is larger than this operation allows."), 0
	case http.StatusRequestHeaderFieldsTooLarge:
		return exchange.Errorf(exchange.CodeTooLarge, "The request line and headers together must not exceed %d bytes.", maxHeaderBytes), e.Code
	case http.StatusRequestTimeout:
		return exchange.Errorf(exchange.CodeMalformed, "The request did not arrive in time."), e.Code
	case http.StatusServiceUnavailable:
		return exchange.Wrap(exchange.CodeUnavailable, e, "The service is busy. Try again."), 0
	}
	if e.Code >= http.StatusBadRequest && e.Code < http.StatusInternalServerError {
		return exchange.Wrap(exchange.CodeMalformed, e, "The request can't be read as HTTP."), 0
	}
	return exchange.Wrap(exchange.CodeInternal, e, "router"), 0
}

// notFound is the error for an object that does not exist and for one that the caller may not see: the text is the
// same, so that a caller can't tell them apart.
func notFound() error {
	return exchange.Errorf(exchange.CodeNotFound, "The object does not exist.")
}

// hideAbsence replaces every "not found" of a store or a flow with notFound.
func hideAbsence(err error) error {
	if exchange.CodeOf(err) == exchange.CodeNotFound {
		return notFound()
	}
	return err
}

// Codes lists the codes of the catalogue in alphabetical order.
func Codes() []exchange.Code {
	var all []exchange.Code
	for c := range meanings {
		all = append(all, c)
	}
	slices.Sort(all)
	return all
}
