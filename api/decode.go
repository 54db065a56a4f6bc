package api

import (
	"bytes"
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

// form reads the fields of a JSON object one by one. What a handler does not ask for is refused at
// the end, so the handler's reads are the list of allowed fields. Broken rules are gathered, so that
// a client hears of all of them at once.
type form struct {
	values map[string]any
	at     string // the JSON pointer of the object
	read   map[string]bool
	bad    *[]exchange.FieldError
	inner  []*form
}

// body reads the request's JSON object. An empty body counts as an empty object: a verb without
// parameters needs none, and where fields are required their absence is told by name.
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

// idAndBody reads what a verb on an object is about, and with what.
func (c *call) idAndBody() (uuid.UUID, *form, error) {
	id, err := c.pathID("id")
	if err != nil {
		return id, nil, err
	}
	f, err := c.body()
	return id, f, err
}

// idAlone reads what a verb without parameters is about.
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

// parseObject reads one JSON object. encoding/json takes the last of two equal keys; proxies and
// people may take the first, so two are refused.
func parseObject(raw []byte) (map[string]any, []exchange.FieldError, error) {
	if !utf8.Valid(raw) {
		return nil, nil, exchange.Errorf(exchange.CodeMalformed, "The body is not UTF-8.")
	}
	if !json.Valid(raw) {
		var any any
		return nil, nil, exchange.Errorf(exchange.CodeMalformed, "The body is not JSON%s.", where(json.Unmarshal(raw, &any)))
	}
	p := parser{dec: json.NewDecoder(bytes.NewReader(raw))}
	p.dec.UseNumber()
	v, err := p.value("", 0)
	if err != nil {
		return nil, nil, err
	}
	values, ok := v.(map[string]any)
	if !ok {
		return nil, nil, exchange.Errorf(exchange.CodeMalformed, "The body must be a JSON object.")
	}
	return values, p.nul, nil
}

func where(err error) string {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf(" (at byte %d)", e.Offset)
	}
	return ""
}

type parser struct {
	dec *json.Decoder
	nul []exchange.FieldError
}

func (p *parser) value(at string, depth int) (any, error) {
	t, err := p.dec.Token()
	if err != nil {
		return nil, exchange.Wrap(exchange.CodeMalformed, err, "The body is not JSON.")
	}
	switch t := t.(type) {
	case json.Delim:
		if depth >= maxJSONDepth {
			return nil, exchange.Errorf(exchange.CodeMalformed, "The body is nested deeper than %d levels.", maxJSONDepth)
		}
		if t == '{' {
			return p.object(at, depth)
		}
		return p.array(at, depth)
	case string:
		if strings.ContainsRune(t, 0) {
			p.nul = append(p.nul, exchange.FieldError{Pointer: at, Code: "control_character", Message: "must not contain the NUL character"})
		}
	}
	return t, nil
}

func (p *parser) object(at string, depth int) (any, error) {
	values := map[string]any{}
	for p.dec.More() {
		t, err := p.dec.Token()
		if err != nil {
			return nil, exchange.Wrap(exchange.CodeMalformed, err, "The body is not JSON.")
		}
		name, _ := t.(string)
		if _, twice := values[name]; twice {
			return nil, exchange.Errorf(exchange.CodeMalformed, "The body has the key %q twice.", clip(name, clipLength))
		}
		if values[name], err = p.value(at+"/"+escape(name), depth+1); err != nil {
			return nil, err
		}
	}
	_, err := p.dec.Token()
	return values, err
}

func (p *parser) array(at string, depth int) (any, error) {
	values := []any{}
	for p.dec.More() {
		v, err := p.value(at+"/"+strconv.Itoa(len(values)), depth+1)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	_, err := p.dec.Token()
	return values, err
}

// escape writes a key as a part of a JSON pointer (RFC 6901), clipped because it comes from outside.
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(clip(name, clipLength))
}

const clipLength = 64

// clip bounds a text from outside and takes control characters and broken UTF-8 out of it.
func clip(s string, length int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '\uFFFD'
		}
		return r
	}, s)
	if r := []rune(s); len(r) > length {
		return string(r[:length]) + "…"
	}
	return s
}

// fail notes a broken rule of a field.
func (f *form) fail(name, code, message string) {
	*f.bad = append(*f.bad, exchange.FieldError{Pointer: f.at + "/" + escape(name), Code: code, Message: message})
}

// done refuses what nobody asked for and returns all broken rules.
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

// maxListed is how many words a message lists.
const maxListed = 24

func orList(words []string) string {
	if len(words) > maxListed {
		return "one of the words that the contract lists"
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

// id reads a UUID; the zero id when absent or broken.
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

// parseID takes the plain form alone; the library also takes braces, "urn:uuid:" and bare digits,
// and one object must not have several names.
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

// amount reads an amount of an asset. The zero amount stands for an absent or broken one.
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

// time reads a moment; the zero time when absent or broken.
func (f *form) time(name string, required bool) time.Time {
	text, ok := f.timeText(name, required)
	if !ok {
		return time.Time{}
	}
	t, err := parseTime(text)
	f.check(name, err)
	return t
}

// timeText reads the text of a time or a day, of which an empty one is none.
func (f *form) timeText(name string, required bool) (string, bool) {
	const limit = 40
	before := len(*f.bad)
	text := f.line(name, required, limit)
	return text, f.has(name) && len(*f.bad) == before
}

// parseTime reads what clients send as a time, in a body or in the query.
func parseTime(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1970 || t.Year() > 9999 {
		return time.Time{}, exchange.Errorf(exchange.CodeInvalid, "must be a time such as 2026-01-31T12:00:00Z")
	}
	return t.UTC(), nil
}

// date reads a required day; the zero time when absent or broken.
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

// object reads an inner object; absent ones read as nil.
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

// check notes an error of a domain parser at a field.
func (f *form) check(name string, err error) {
	if err != nil {
		f.fail(name, "format", exchange.MessageOf(err))
	}
}
