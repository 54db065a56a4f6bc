package api

import (
	"encoding/json"
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
	body, err := json.Marshal(problem{
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

// retryAfter is in how many seconds a client may try again. Addresses come back when orders end, not at once.
func retryAfter(c exchange.Code) string {
	if c == exchange.CodeEscrowDry {
		return "5"
	}
	return "2"
}

// understand finds the error to tell a client. A status other than zero overrides that of the code.
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

// fromFiber words what the router and the HTTP server below it refuse by themselves.
func fromFiber(e *fiber.Error) (*exchange.Error, int) {
	switch e.Code {
	case http.StatusNotFound:
		return exchange.Errorf(exchange.CodeNotFound, "There is nothing at this address."), 0
	case http.StatusMethodNotAllowed:
		return exchange.Errorf(exchange.CodeMethodNotAllowed, "This address does not take this method; Allow lists those it takes."), 0
	case http.StatusRequestEntityTooLarge:
		return exchange.Errorf(exchange.CodeTooLarge, "The body is larger than this operation takes."), 0
	case http.StatusRequestHeaderFieldsTooLarge:
		return exchange.Errorf(exchange.CodeTooLarge, "Address and headers together must not exceed %d bytes.", maxHeaderBytes), e.Code
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

// notFound is the answer for what does not exist and for what the caller may not see: one text, so
// that they can't be told apart.
func notFound() error {
	return exchange.Errorf(exchange.CodeNotFound, "There is no such object.")
}

// hideAbsence gives every "not found" of a store or a flow the same words.
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

// StatusOf is the HTTP status of a code.
func StatusOf(c exchange.Code) int { return meanings[c].status }
