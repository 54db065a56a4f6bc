package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"
	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// form reads the fields of a JSON object one by one. done refuses fields that the handler did not read, so the
// handler's reads are the list of allowed fields. Broken rules are collected, so that a client gets all of them at once.
type form struct {
	values map[string]any
	at     string // the JSON pointer of the object
	read   map[string]bool
	bad    *[]exchange.FieldError
	inner  []*form
}

// body reads the request's JSON object. An empty body counts as an empty object: a verb without parameters needs no
// body, and each missing required field is reported by name.
func (c *call) body() (*form, error) {
	raw := c.fc.Request().Body()
	bad := &[]exchange.FieldError{}
	f := &form{values: map[string]any{}, read: map[string]bool{}, bad: bad}
	if len(raw) == 0 {
		return f, nil
	}
	if err := checkMediaType(c.fc); err != nil {
		return nil, err
	}
	values, nul, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	f.values = values
	*bad = append(*bad, nul...)
	return f, nil
}

// noBody takes an empty body or an empty object.
func (c *call) noBody() error {
	f, err := c.body()
	if err != nil {
		return err
	}
	return f.done()
}

// idAndBody reads the id of the path and the body of a verb on an object.
func (c *call) idAndBody() (uuid.UUID, *form, error) {
	id, err := c.pathID("id")
	if err != nil {
		return id, nil, err
	}
	f, err := c.body()
	return id, f, err
}

// idAlone reads the id of the path of a verb without parameters.
func (c *call) idAlone() (uuid.UUID, error) {
	id, err := c.pathID("id")
	if err != nil {
		return id, err
	}
	return id, c.noBody()
}

func checkMediaType(fc *fiber.Ctx) error {
	if len(fc.Request().Header.ContentEncoding()) > 0 {
		return exchange.Errorf(exchange.CodeMediaType, "Send the body without a Content-Encoding.")
	}
	media, params, err := mime.ParseMediaType(string(fc.Request().Header.ContentType()))
	charset := strings.ToLower(params["charset"])
	if err != nil || media != "application/json" || (charset != "" && charset != "utf-8") {
		return exchange.Errorf(exchange.CodeMediaType, "Send the body as application/json.")
	}
	return nil
}

// fail records a broken rule of a field.
func (f *form) fail(name, code, message string) {
	*f.bad = append(*f.bad, exchange.FieldError{Pointer: f.at + "/" + escape(name), Code: code, Message: message})
}

// done refuses fields that the handler did not read, and returns all broken rules.
func (f *form) done() error {
	f.refuseRest()
	return exchange.Invalid(*f.bad...)
}

func (f *form) refuseRest() {
	var rest []string
	for name := range f.values {
		if !f.read[name] {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	for _, name := range rest {
		f.fail(name, "unknown_field", "is not a field of this request")
	}
	for _, in := range f.inner {
		in.refuseRest()
	}
}

// take marks a field as known and returns its value; null counts as absent.
func (f *form) take(name string, required bool) (any, bool) {
	f.read[name] = true
	v := f.values[name]
	if v == nil && required {
		f.fail(name, "required", "is required")
	}
	return v, v != nil
}

func (f *form) has(name string) bool { return f.values[name] != nil }

// text reads a string of at most max characters. Control characters are refused.
func (f *form) text(name string, required bool, limit int) string {
	v, ok := f.take(name, required)
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		f.fail(name, "type", "must be a string")
		return ""
	}
	switch {
	case required && s == "":
		f.fail(name, "required", "must not be empty")
	case utf8.RuneCountInString(s) > limit:
		f.fail(name, "too_long", fmt.Sprintf("must have at most %d characters", limit))
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && r != 0 && r != '\n' }):
		f.fail(name, "control_character", "must not contain control characters")
	default:
		return s
	}
	return ""
}

// line is text without line breaks and without space at its ends.
func (f *form) line(name string, required bool, limit int) string {
	s := f.text(name, required, limit)
	if strings.Contains(s, "\n") {
		f.fail(name, "control_character", "must be a single line")
		return ""
	}
	t := strings.TrimSpace(s)
	if required && s != "" && t == "" {
		f.fail(name, "required", "must not be empty")
	}
	return t
}

// secret reads a password or PIN: as text, and its value never reaches an error.
func (f *form) secret(name string, required bool) string {
	return f.text(name, required, exchange.MaxPasswordLength)
}

// oneOf reads a string out of a fixed list.
func (f *form) oneOf(name string, required bool, allowed ...string) string {
	v, ok := f.take(name, required)
	if !ok {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		f.fail(name, "type", "must be a string")
		return ""
	}
	if !slices.Contains(allowed, s) {
		f.fail(name, "enum", "must be "+orList(allowed))
		return ""
	}
	return s
}

// maxListed is how many values a message lists.
const maxListed = 24

func orList(words []string) string {
	if len(words) > maxListed {
		return "one of the values that the contract lists"
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// boolean reads true or false; nil when absent.
func (f *form) boolean(name string, required bool) *bool {
	v, ok := f.take(name, required)
	if !ok {
		return nil
	}
	b, ok := v.(bool)
	if !ok {
		f.fail(name, "type", "must be true or false")
		return nil
	}
	return &b
}

// integer reads a whole number within bounds; nil when absent.
func (f *form) integer(name string, required bool, least, most int) *int {
	v, ok := f.take(name, required)
	if !ok {
		return nil
	}
	number, ok := v.(json.Number)
	n, err := strconv.Atoi(number.String())
	switch {
	case !ok, err != nil && !errors.Is(err, strconv.ErrRange):
		f.fail(name, "type", "must be a whole number")
	case err != nil, n < least, n > most:
		f.fail(name, "out_of_range", fmt.Sprintf("must be between %d and %d", least, most))
	default:
		return &n
	}
	return nil
}

// id reads a UUID; the zero id when absent or invalid.
func (f *form) id(name string, required bool) uuid.UUID {
	v, ok := f.take(name, required)
	if !ok {
		return uuid.Nil
	}
	s, isText := v.(string)
	if !isText {
		f.fail(name, "type", "must be a string")
		return uuid.Nil
	}
	id, ok := parseID(s)
	if !ok {
		f.fail(name, "format", "must be a UUID such as 019a9f5e-0000-7000-8000-000000000000")
	}
	return id
}

// parseID accepts only the plain form, so that an object has one name. The library also accepts braces, "urn:uuid:"
// and bare digits.
func parseID(s string) (uuid.UUID, bool) {
	if len(s) != 36 {
		return uuid.Nil, false
	}
	id, err := uuid.Parse(s)
	return id, err == nil
}

const amountForm = "must be a decimal string such as \"10.50\"; amounts are never JSON numbers"

// decimalText reads the text of an amount or rate and refuses JSON numbers, which clients and
// proxies read as floats.
func (f *form) decimalText(name string, required bool) (string, bool) {
	v, ok := f.take(name, required)
	if !ok {
		return "", false
	}
	s, ok := v.(string)
	if !ok {
		f.fail(name, "type", amountForm)
	}
	return s, ok
}

// amount reads an amount of an asset; the zero amount when absent or invalid.
func (f *form) amount(name string, asset money.Asset, required bool) money.Amount {
	s, ok := f.decimalText(name, required)
	if !ok || !asset.Valid() {
		return money.Amount{}
	}
	m, err := money.Parse(asset, s)
	if err == nil && !m.Positive() {
		f.fail(name, "out_of_range", "must be above zero")
	}
	f.failDecimal(name, err)
	return m
}

// rate reads a price in KES per unit.
func (f *form) rate(name string, required bool) decimal.Decimal {
	s, ok := f.decimalText(name, required)
	if !ok {
		return decimal.Decimal{}
	}
	r, err := money.ParseDecimal(s, exchange.RatePlaces)
	if err == nil && !r.IsPositive() {
		f.fail(name, "out_of_range", "must be above zero")
	}
	f.failDecimal(name, err)
	return r
}

func (f *form) failDecimal(name string, err error) {
	switch {
	case err == nil:
	case errors.Is(err, money.ErrPrecision):
		f.fail(name, "precision", err.Error())
	case errors.Is(err, money.ErrTooLarge):
		f.fail(name, "out_of_range", err.Error())
	case errors.Is(err, money.ErrEmpty):
		f.fail(name, "required", err.Error())
	default:
		f.fail(name, "format", err.Error())
	}
}

// time reads a moment; the zero time when absent or invalid.
func (f *form) time(name string, required bool) time.Time {
	text, ok := f.timeText(name, required)
	if !ok {
		return time.Time{}
	}
	t, err := parseTime(text)
	f.check(name, err)
	return t
}

// timeText reads the text of a time or a day. An empty text counts as absent.
func (f *form) timeText(name string, required bool) (string, bool) {
	const limit = 40
	before := len(*f.bad)
	text := f.line(name, required, limit)
	return text, f.has(name) && len(*f.bad) == before
}

// parseTime reads a time in a body or in the query.
func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1970 || t.Year() > 9999 {
		return time.Time{}, exchange.Errorf(exchange.CodeInvalid, "must be a time such as 2026-01-31T12:00:00Z")
	}
	return t.UTC(), nil
}

// date reads a required day; the zero time when absent or invalid.
func (f *form) date(name string) time.Time {
	text, ok := f.timeText(name, true)
	if !ok {
		return time.Time{}
	}
	day, err := time.Parse(time.DateOnly, text)
	if err != nil || day.Year() < 2000 {
		f.fail(name, "format", "must be a date such as 2026-01-31")
		return time.Time{}
	}
	return day
}

// object reads an inner object; nil when absent.
func (f *form) object(name string, required bool) *form {
	v, ok := f.take(name, required)
	if !ok {
		return nil
	}
	values, ok := v.(map[string]any)
	if !ok {
		f.fail(name, "type", "must be an object")
		return nil
	}
	in := &form{values: values, at: f.at + "/" + escape(name), read: map[string]bool{}, bad: f.bad}
	f.inner = append(f.inner, in)
	return in
}

// objects reads a list of at most so many objects, which what names.
func (f *form) objects(name string, required bool, what string, most int) []*form {
	v, ok := f.take(name, required)
	if !ok {
		return nil
	}
	items, ok := v.([]any)
	if !ok {
		f.fail(name, "type", "must be a list of "+what)
		return nil
	}
	if len(items) > most {
		f.fail(name, "out_of_range", fmt.Sprintf("must have at most %d %s", most, what))
		return nil
	}
	list := &form{values: map[string]any{}, at: f.at + "/" + escape(name), read: map[string]bool{}, bad: f.bad}
	for i, item := range items {
		index := strconv.Itoa(i)
		list.values[index] = item
		list.object(index, true)
	}
	f.inner = append(f.inner, list.inner...)
	return list.inner
}

// check records an error of a domain parser for a field.
func (f *form) check(name string, err error) {
	if err != nil {
		f.fail(name, "format", exchange.MessageOf(err))
	}
}
