package api

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store"
)

// query reads the query parameters of a request and collects the rules that they break. Unknown parameters are ignored,
// because HTTP caches and trackers add some.
type query struct {
	fc  *fiber.Ctx
	bad []exchange.FieldError
}

func (c *call) query() *query { return &query{fc: c.fc} }

func (q *query) fail(name, code, message string) {
	q.bad = append(q.bad, exchange.FieldError{Pointer: "query/" + name, Code: code, Message: message})
}

func (q *query) done() error { return exchange.Invalid(q.bad...) }

// take reads the value of a parameter. A repeated parameter is refused, because it is ambiguous.
func (q *query) take(name string, required bool) (string, bool) {
	all := q.fc.Context().QueryArgs().PeekMulti(name)
	switch {
	case len(all) > 1:
		q.fail(name, "repeated", "must be given once")
		return "", false
	case len(all) == 0 || len(all[0]) == 0:
		if required {
			q.fail(name, "required", "is required")
		}
		return "", false
	}
	s := string(all[0])
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		q.fail(name, "control_character", "must be UTF-8 without control characters")
		return "", false
	}
	return s, true
}

// text reads a parameter of at most maxQueryLength characters.
func (q *query) text(name string, required bool) string {
	s, ok := q.take(name, required)
	if !ok {
		return ""
	}
	s = strings.TrimSpace(s)
	if required && s == "" {
		q.fail(name, "required", "must not be empty")
	}
	if utf8.RuneCountInString(s) > maxQueryLength {
		q.fail(name, "too_long", fmt.Sprintf("must have at most %d characters", maxQueryLength))
		return ""
	}
	return s
}

func (q *query) oneOf(name string, allowed ...string) string {
	s, ok := q.take(name, false)
	if ok && !slices.Contains(allowed, s) {
		q.fail(name, "enum", "must be "+orList(allowed))
		return ""
	}
	return s
}

// word reads a required parameter that is one of some words.
func (q *query) word(name string, allowed ...string) string {
	if s := q.oneOf(name, allowed...); s != "" || q.given(name) {
		return s
	}
	q.fail(name, "required", "is required")
	return ""
}

// given reports whether a parameter has a value, be it wrong.
func (q *query) given(name string) bool { return len(q.fc.Context().QueryArgs().Peek(name)) > 0 }

func (q *query) id(name string) uuid.UUID {
	s, ok := q.take(name, false)
	if !ok {
		return uuid.Nil
	}
	id, ok := parseID(s)
	if !ok {
		q.fail(name, "format", "must be a UUID")
	}
	return id
}

func (q *query) time(name string) time.Time {
	s, ok := q.take(name, false)
	if !ok {
		return time.Time{}
	}
	t, err := parseTime(s)
	if err != nil {
		q.fail(name, "format", exchange.MessageOf(err))
	}
	return t
}

// integer reads a whole number within bounds; fallback when it is absent.
func (q *query) integer(name string, required bool, fallback, least, most int64) int64 {
	s, ok := q.take(name, required)
	if !ok {
		return fallback
	}
	n, err := parseInteger(s)
	switch {
	case err != nil && !errors.Is(err, strconv.ErrRange):
		q.fail(name, "type", "must be a whole number")
	case err != nil, n < least, n > most:
		q.fail(name, "out_of_range", fmt.Sprintf("must be between %d and %d", least, most))
	default:
		return n
	}
	return fallback
}

// parseInteger refuses the plus sign that strconv accepts.
func parseInteger(s string) (int64, error) {
	if strings.HasPrefix(s, "+") {
		return 0, strconv.ErrSyntax
	}
	return strconv.ParseInt(s, 10, 64)
}

// pageRule bounds a list operation.
type pageRule struct {
	required    bool // page_id and page_size must both be given
	least, most int64
	standard    int64
}

// The bounds of the interface description. Lists that it does not name have anyPage.
var (
	anyPage     = pageRule{least: 1, most: maxPageSize, standard: defaultPageSize}
	searchPage  = pageRule{required: true, least: 1, most: 100, standard: defaultPageSize}
	offersPage  = pageRule{required: true, least: 5, most: 10, standard: 10}
	accountPage = pageRule{least: 5, most: 50, standard: defaultPageSize}
)

func (q *query) page(r pageRule) store.Page {
	id := q.integer("page_id", r.required, 1, 1, maxPageID)
	size := q.integer("page_size", r.required, r.standard, r.least, r.most)
	return store.Page{Number: int(id), Size: int(size)}
}

// amount reads an amount of an asset; nil when absent.
func (q *query) amount(name string, asset money.Asset) *money.Amount {
	s, ok := q.take(name, false)
	if !ok {
		return nil
	}
	m, err := money.Parse(asset, s)
	if err != nil || !m.Positive() {
		q.fail(name, "format", "must be a decimal above zero such as 10.50")
		return nil
	}
	return &m
}

// pathID reads a UUID of the path.
func (c *call) pathID(name string) (uuid.UUID, error) {
	id, ok := parseID(c.fc.Params(name))
	if !ok {
		return uuid.Nil, exchange.Invalid(exchange.FieldError{Pointer: "path/" + name, Code: "format", Message: "must be a UUID"})
	}
	return id, nil
}

// list answers with a list: its rows under their plural, the page, and the total number of rows.
func (c *call) list(plural string, rows any, p store.Page, total int) error {
	c.fc.Set(headerTotal, strconv.Itoa(total))
	return c.json(http.StatusOK, map[string]any{plural: rows, "page_id": p.Number, "page_size": p.Size, "total": total})
}

// bare answers with a list that the interface description defines as an array. The total is in a header.
func (c *call) bare(rows any, total int) error {
	c.fc.Set(headerTotal, strconv.Itoa(total))
	return c.json(http.StatusOK, rows)
}
